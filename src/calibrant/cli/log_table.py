"""Logs of LLM evaluations, as tables that commands read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..data.tables import FileTable
from ..data.writing import scratch_file

if TYPE_CHECKING:
    from ..llm import Answers

#: Columns of a table of answers, if labels and probabilities were not named.
_OF_ANSWERS = {"confidence", "correct"}


class LogTable(FileTable):
    """Answers as a table of ``y_true`` (1: right), ``y_prob`` and ``question``, whose repeats are groups.

    Parameters
    ----------
    answers : Answers
    name : str
        Of the log.
    """

    def __init__(self, answers: Answers, name: str) -> None:
        import polars as pl

        with scratch_file() as path:
            columns = {"y_true": answers.codes, "y_prob": answers.probs, "question": [str(i) for i in answers.ids]}
            pl.DataFrame(columns).write_parquet(path)
            super().__init__(str(path), "parquet")
            self.frame = self.frame.collect().lazy()
        self.name = name
        self.groups = None if answers.groups is None else "question"


def opened_log(path: str, score: str | None) -> LogTable | None:
    """A log as a table; None for any other file."""
    from ..llm.reading import is_log, read

    return LogTable(read(path, score=score), path) if path != "-" and is_log(path) else None


def of_answers(table: FileTable, named: bool, score: str | None) -> FileTable:
    """A table of confidences and correctness, as of a log; any other table unchanged."""
    from ..llm.reading import read

    if named or not _OF_ANSWERS.issubset(table.columns) or "y_true" in table.columns:
        if score is not None:
            table.close()
            raise ValueError(f"--score is for logs of LLM evaluations, and {table.name} is not one")
        return table
    with table:
        frame: Any = next(table.batches())
        return LogTable(read(frame, score=score), table.name)
