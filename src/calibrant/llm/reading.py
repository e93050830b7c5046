"""`read`: logs of LLM evaluations as `Predictions`."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from ..data.checks import check_choice, check_type, received
from ..data.columns import some
from ..data.libraries import library_of
from ..data.predictions import Predictions
from ..data.tables import FileTable
from ..data.types import FloatArray, Label
from ..data.validation import as_predictions
from ..exceptions import UnreadAnswersWarning
from .answer import Answer, judged
from .harness import harness_answers, is_harness
from .inspect_logs import archived_samples, inspect_answers, is_archive, is_inspect
from .stated import read_stated, said_in

#: Outcomes, and places where a confidence can come from.
_OUTCOMES, _SOURCES = ("correct", "option"), ("auto", "likelihood", "stated")
#: Columns of a plain table, the first of which may be missing.
_COLUMNS = ("id", "confidence", "correct")
#: Bytes of a file by which its kind is told.
_HEAD = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class Answers(Predictions):
    """Predictions of a language model, with the questions that they answer: what :func:`read` returns.

    They are :class:`calibrant.Predictions`, which all functions take; one row is one answer.

    Parameters
    ----------
    probs : ndarray of shape (n,) or (n, K)
        Confidence of each answer, or the probability of each option.
    truth : ndarray of shape (n,)
        1 where the answer is right; or the position of the right option.
    weights : ndarray of shape (n,) or None
        None.
    classes : tuple
        ``("wrong", "correct")``, or 0 … K - 1.
    positive : int or None
        1, or None for options.
    eps : float
        Machine epsilon of float64.
    logs : ndarray of shape (n, K) or None
        None.
    groups : ndarray of shape (n,) or None
        Codes of the questions, where one has several answers.
    library : str or None
        That of a data frame which was read.
    ids : tuple of labels, optional
        The question of each row; repeats of one have the same, and are a group.
    unread : mapping of str to int, optional
        Answers of the log that have no row here, counted by the reason.
    read_from : str, optional
        Where the confidences were read.

    See Also
    --------
    calibrant.llm.read : Makes them.
    calibrant.Predictions : Those of any classifier.

    Examples
    --------
    >>> import pandas as pd
    >>> from calibrant import llm
    >>> table = pd.DataFrame({"id": [1, 1, 2], "confidence": ["90 %", "80 %", "likely"], "correct": [1, 0, 1]})
    >>> answers = llm.read(table)
    >>> answers.ids, answers.n_groups, answers.probs.tolist()
    ((1, 1, 2), 2, [0.9, 0.8, 0.675])
    """

    ids: tuple[Label, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    read_from: str = ""

    @property
    def summary(self) -> str:
        """Answers, questions, and what is missing."""
        missing = sum(self.unread.values())
        left = f"; {missing:,} more could not be read" if missing else ""
        return f"{self.n_samples:,} answers to {len(set(self.ids)):,} questions{left}; confidence: {self.read_from}."

    def _shown(self) -> Iterable[tuple[str, Any]]:
        yield from super()._shown()
        yield from {"read_from": self.read_from, "unread": dict(self.unread)}.items()

    def subset(self, rows: Any) -> Answers:
        """Return the answers chosen by a mask or an index array.

        Parameters
        ----------
        rows : array-like of bool or int
            A mask, or indices of rows.
        """
        chosen = super().subset(rows)
        kept = np.arange(self.n_samples)[rows]
        return replace(chosen, ids=tuple(self.ids[i] for i in kept))  # type: ignore[return-value, call-arg]  # of this class


def read(
    log: Any,
    *,
    score: str | None = None,
    confidence: str = "auto",
    outcome: str = "correct",
    words: Mapping[str, float] | None = None,
) -> Answers:
    r"""Read the results of an LLM evaluation: how confident each answer was, and whether it was right.

    Parameters
    ----------
    log : path, or data frame
        A log of samples by lm-evaluation-harness (``samples_*.jsonl``, written with ``--log_samples``); a log of
        inspect_ai (``.eval`` or ``.json``); or a table (CSV, NDJSON, Parquet, Arrow, or a data frame) with the columns
        ``id``, ``confidence`` and ``correct``, of which ``id`` may be missing. Known by contents, not by name.
    score : str, optional
        The score that says which answers are right, where a log has several: for lm-evaluation-harness ``"acc"``
        (default), ``"acc_norm"`` and ``"acc_bytes"``, which divide log-likelihoods of options by their length, or as in
        ``"exact_match,strict-match"`` with its filter; for inspect_ai a scorer.
    confidence : {"auto", "likelihood", "stated"}, default "auto"
        ``"likelihood"``: the model's probability of its answer. Among options it is the largest of
        ``exp(l_k) / Σ_j exp(l_j)``, l their log-likelihoods as ``score`` compares them; of a written answer
        ``exp`` of the sum of log-probabilities of its tokens. ``"stated"``: what the scorer has in its metadata as
        ``confidence``, else what the text says after "Confidence:", as :func:`stated_confidence` reads it.
        ``"auto"``: the scorer's where it has any, else the likelihood where there is any, else what the text says.
    outcome : {"correct", "option"}, default "correct"
        ``"correct"``: a row has one score, the confidence, and its outcome is whether the answer was right; questions
        may have any number of options. ``"option"``: a column for each option (0, 1, …), and the right one is the
        label, where all questions of a log of lm-evaluation-harness have as many. Options are then what classes are
        elsewhere: ``notion="confidence"`` asks the same as ``"correct"`` does, others ask more.
    words : mapping of str to float, optional
        Probabilities of terms, such as ``{"high": 0.9}``, beside the table of :func:`stated_confidence`.

    Returns
    -------
    Answers
        :class:`calibrant.Predictions` with classes ``"wrong"`` and ``"correct"``, or options. Repeats of a question
        (epochs, several runs in one file, equal ``id``) are ``groups``. ``.ids`` has the questions, ``.unread``
        counts answers that are not among the rows.

    Raises
    ------
    ValueError
        For a file of another kind, a log with several scores, options whose scores are not those that the log has,
        and where no answer can be read.
    ImportError
        For tables in files without polars, and archives of inspect_ai without zipfile-zstd (extra ``llm``).

    Warns
    -----
    UnreadAnswersWarning
        Once, with the number of refusals and of other answers that have no confidence that can be read, or are neither
        right nor wrong. An accuracy that a tool reports counts such answers as wrong; the rows here lack them.

    See Also
    --------
    calibrant.report : What to do with the result; pass it in place of ``y_true`` and ``y_prob``.
    calibrant.llm.stated_confidence : Probabilities of words and numbers.
    calibrant.llm.Answers : The result, field by field.

    Notes
    -----
    Questions of lm-evaluation-harness are told apart by their contents (``doc_hash``), so that logs of several tasks,
    or runs, may be put into one file. The harness scores one answer of its repeats (``repeats: 5``), the
    one that its filter leaves. Scores between wrong and right ("P" of inspect_ai) are counted as unread. Cost: one
    pass over the file, whose parsed lines, or samples, are in memory.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import calibrant as cal
    >>> from calibrant import llm
    >>> line = {"doc_id": 0, "target": 1, "filtered_resps": [[-2.0, False], [-1.0, False], [-4.0, False]], "acc": 1.0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "samples_task.jsonl")
    ...     written = path.write_text(json.dumps(line) + "\n")
    ...     answers = llm.read(path)
    >>> answers.probs.round(3).tolist(), answers.codes.tolist(), answers.classes
    ([0.705], [1], ('wrong', 'correct'))
    """
    check_choice("confidence", confidence, _SOURCES)
    check_choice("outcome", outcome, _OUTCOMES)
    if score is not None:
        check_type("score", score, str, "None or the name of a score")
    answers = _answers(log, score)
    return as_answers(answers, confidence, words) if outcome == "correct" else _of_options(answers)


def as_answers(answers: list[Answer], confidence: str = "auto", words: Mapping[str, float] | None = None) -> Answers:
    """Rows with a confidence each, and whether the answer is right."""
    values, faults, source = _confidences(answers, confidence, words)
    kept, unread = _kept(answers, faults)
    found = list(compress(answers, kept))
    y = np.array(["wrong", "correct"])[[int(bool(a.correct)) for a in found]]
    groups = _groups(found)
    rows = as_predictions(y, values[kept], labels=["wrong", "correct"], pos_label="correct", groups=groups)
    return _with(rows, found, unread, source)


def _of_options(answers: list[Answer]) -> Answers:
    """Rows with a probability for each option."""
    faults = [None if a.options is not None and a.target is not None else "no single right option" for a in answers]
    kept, unread = _kept(answers, faults)
    found = list(compress(answers, kept))
    sizes = Counter(len(a.options) for a in found if a.options is not None)
    if len(sizes) > 1:
        several = ", ".join(f"{n:,} with {k}" for k, n in sorted(sizes.items()))
        raise ValueError(f"outcome='option' needs questions with one number of options; got {several}: use 'correct'")
    (k,) = sizes
    rows = as_predictions(
        [a.target for a in found], np.array([a.options for a in found]), labels=range(k), groups=_groups(found)
    )
    return _with(rows, found, unread, "likelihood of each option")


def _with(rows: Predictions, found: list[Answer], unread: Mapping[str, int], source: str) -> Answers:
    given = {f.name: getattr(rows, f.name) for f in fields(rows)}
    return Answers(**given, ids=tuple(a.id for a in found), unread=unread, read_from=source)


def _groups(found: list[Answer]) -> list[str] | None:
    """Questions, where one is repeated."""
    names = [str(a.id) for a in found]
    return names if 1 < len(set(names)) < len(names) else None


def _confidences(
    answers: list[Answer], wanted: str, words: Mapping[str, float] | None
) -> tuple[FloatArray, list[str | None], str]:
    """Confidence of each answer, why each that is NaN is, and where they were read."""
    likely = np.array([np.nan if a.likelihood is None else a.likelihood for a in answers], dtype=np.float64)
    scored = any(a.scored is not None for a in answers)
    if wanted == "likelihood" or (wanted == "auto" and not scored and not np.isnan(likely).all()):
        return likely, ["no likelihood of the answer" if v != v else None for v in likely], "likelihood of the answer"
    values, faults = read_stated([a.scored if scored else said_in(a.text) for a in answers], words)
    return values, faults, "stated, by the scorer or table" if scored else "stated, in the text"


def _kept(answers: list[Answer], faults: list[str | None]) -> tuple[Any, dict[str, int]]:
    """Which answers are read, and how many are not for which reason; a warning says so."""
    why = [a.fault or fault for a, fault in zip(answers, faults, strict=True)]
    unread = dict(Counter(reason for reason in why if reason is not None).most_common())
    if not unread:
        return np.ones(len(answers), dtype=bool), unread
    missing = sum(unread.values())
    told = ", ".join(f"{n:,} {reason}" for reason, n in unread.items())
    if missing == len(answers):
        raise ValueError(f"none of the {missing:,} answers of the log can be read: {told}")
    warnings.warn(f"{missing:,} of {len(answers):,} answers are left out: {told}", UnreadAnswersWarning, stacklevel=4)
    return np.array([reason is None for reason in why]), unread


def is_log(path: Path | str) -> bool:
    """Whether a file is a log that :func:`read` knows by its contents, tables aside."""
    return _kind(Path(path)) is not None


def _kind(path: Path) -> str | None:
    """Tool whose log a file is, by how it begins."""
    if not os.path.isfile(path):  # which is false, too, of names too long for a file
        return None
    if is_archive(path):
        return "archive"
    with path.open("rb") as file:
        first = file.readline()
        head = first + file.read(_HEAD)
    if not head.lstrip().startswith((b"{", b"[")):
        return None
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):  # of a JSON text of several lines, or none, or nested without end
        if all(key in head for key in (b'"version"', b'"status"', b'"eval"')):
            return "inspect"
        return "harness" if head.lstrip().startswith(b"[") and b'"doc_id"' in head else None
    if isinstance(line, list):
        return "harness" if line and is_harness(line[0]) else None
    return "harness" if is_harness(line) else "inspect" if is_inspect(line) else None


def _in_json(path: Path, kind: str) -> list[dict[str, Any]]:
    """Lines, or samples, of a log."""
    with path.open(encoding="utf-8") as file:
        if kind == "harness" and file.read(1) != "[":
            file.seek(0)
            return [_loaded(path, line, number) for number, line in enumerate(file, start=1) if line.strip()]
        file.seek(0)
        whole = _loaded(path, file.read())
    if kind == "inspect" and not whole.get("samples"):
        raise ValueError(f"{path} has no samples: it was logged without them, or is a header only")
    return list(whole["samples"] if kind == "inspect" else whole)


def _loaded(path: Path, text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = "" if line is None else f"line {line} "
        raise ValueError(f"{path}: {where}is not JSON: {error}") from error


def _answers(log: Any, score: str | None) -> list[Answer]:
    """Answers of a log or a table."""
    if library_of(log) is not None:
        return _tabled(log, score)
    path = Path(check_type("log", log, (str, Path), "a path or a data frame"))
    if (kind := _kind(path)) == "archive":
        return inspect_answers(archived_samples(path), score)
    if kind is not None:
        return (harness_answers if kind == "harness" else inspect_answers)(_in_json(path, kind), score)
    with FileTable(str(path)) as table:
        missing = [name for name in _COLUMNS[1:] if name not in table.columns]
        if missing:
            raise ValueError(
                f"{path} is not a log of lm-evaluation-harness or inspect_ai, and as a table it lacks the column "
                f"{missing[0]!r}; its columns are {some(table.columns, most=12)}"
            )
        return _tabled(next(table.batches()), score)


def _tabled(frame: Any, score: str | None) -> list[Answer]:
    """Answers of a table."""
    import narwhals as nw

    if score is not None:
        raise ValueError(f"score is for logs; a table has one, its column 'correct'; got {score!r}")
    try:
        held = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(f"log must be the path of a log, or a frame in memory; got {received(frame)}") from error
    missing = [name for name in _COLUMNS[1:] if name not in held.columns]
    if missing:
        raise ValueError(
            f"log must have the columns {', '.join(_COLUMNS)}; {missing[0]!r} is not in {some(held.columns)}"
        )
    ids = held["id"].to_list() if "id" in held.columns else list(range(len(held)))
    found = []
    for name, said, value in zip(ids, held["confidence"].to_list(), held["correct"].to_list(), strict=True):
        correct, fault = judged(value)
        found.append(Answer(id=name, correct=correct, scored="" if said is None else said, fault=fault))
    return found
