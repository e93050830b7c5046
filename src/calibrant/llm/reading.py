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
from ..data.printing import number_of
from ..data.tables import FileTable
from ..data.types import FloatArray, Label
from ..data.validation import as_predictions
from ..exceptions import UnreadAnswersWarning
from .answer import Answer, judged
from .harness import harness_answers, is_harness
from .inspect_logs import archived_samples, inspect_answers, is_archive, is_inspect
from .stated import UNCLEAR, UNREADABLE, read_stated, said_in

#: Outcomes, and sources of a confidence.
_OUTCOMES, _SOURCES = ("correct", "option"), ("auto", "likelihood", "stated")
#: Columns of a plain table; the first is optional.
_COLUMNS = ("id", "confidence", "correct")
#: Bytes of a file that are read to determine its kind.
_HEAD = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class Answers(Predictions):
    """Predictions of a language model, with the questions that they answer, as returned by :func:`read`.

    They are :class:`calibrant.Predictions`, which all functions accept; each row is one answer.

    Parameters
    ----------
    probs : ndarray of shape (n,) or (n, K)
        Confidence of each answer, or the probability of each option.
    truth : ndarray of shape (n,)
        1 if the answer is right, else 0; or the position of the right option.
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
        Codes of the questions if one has several answers.
    library : str or None
        Library of the data frame, if one was read.
    ids : tuple of labels, optional
        The question of each row; repeats of a question share it and form a group.
    unread : mapping of str to int, optional
        Number of answers of the log without a row here, by reason.
    read_from : str, optional
        Source of the confidences.

    See Also
    --------
    calibrant.llm.read : Returns them.
    calibrant.Predictions : Predictions of any classifier.

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
        """Numbers of answers, of questions and of unread answers, and the source of the confidences."""
        missing = sum(self.unread.values())
        left = f", not read: {missing:,}" if missing else ""
        return f"Answers: {self.n_samples:,}, questions: {len(set(self.ids)):,}{left}; confidence: {self.read_from}."

    @property
    def left_out(self) -> str:
        """Number of answers of the log that are not among the rows, and why; "" if there are none."""
        missing = sum(self.unread.values())
        why = ", ".join(f"{n:,} {reason}" for reason, n in self.unread.items())
        return f"Left out of {number_of(self.n_samples + missing, 'answer')}: {missing:,} ({why})." if missing else ""

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
    r"""Read the results of an LLM evaluation: the confidence of each answer, and whether it was right.

    Parameters
    ----------
    log : path, or data frame
        A log of samples by lm-evaluation-harness (``samples_*.jsonl``, written with ``--log_samples``); a log of
        inspect_ai (``.eval`` or ``.json``); or a table (CSV, NDJSON, Parquet, Arrow, or a data frame) with the columns
        ``confidence``, ``correct`` and, optionally, ``id``. Logs are recognised by their contents, not by name.
    score : str, optional
        The score that decides which answers are right, if a log has several. For lm-evaluation-harness: ``"acc"``
        (default), ``"acc_norm"`` and ``"acc_bytes"``, which divide log-likelihoods of options by their length, or a
        score with its filter, as in ``"exact_match,strict-match"``. For inspect_ai: the name of a scorer.
    confidence : {"auto", "likelihood", "stated"}, default "auto"
        ``"likelihood"``: the model's probability of its answer. With options it is the largest of
        ``exp(l_k) / Σ_j exp(l_j)``, where l are their log-likelihoods as ``score`` compares them; for a written answer
        it is ``exp`` of the sum of the log-probabilities of its tokens. ``"stated"``: ``confidence`` in the scorer's
        metadata, else the text after "Confidence:"; both are read by :func:`stated_confidence`. ``"auto"``: the
        scorer's confidence if there is any, else the likelihood if there is any, else the text.
    outcome : {"correct", "option"}, default "correct"
        ``"correct"``: each row has one score, the confidence, and its outcome is whether the answer was right;
        questions may have any number of options. ``"option"``: one column per option (0, 1, …), with the right option
        as the label, for logs of lm-evaluation-harness in which all questions have equally many. Options are then the
        classes: ``notion="confidence"`` measures the same as ``"correct"``, other notions require more.
    words : mapping of str to float, optional
        Probabilities of terms, such as ``{"high": 0.9}``, in addition to the table of :func:`stated_confidence`.

    Returns
    -------
    Answers
        :class:`calibrant.Predictions` with the classes ``"wrong"`` and ``"correct"``, or the options. Repeats of a
        question (epochs, several runs in one file, equal ``id``) form ``groups``. ``.ids`` has the questions;
        ``.unread`` counts the answers that are not among the rows.

    Raises
    ------
    ValueError
        For a file of another kind, a log with several scores and no ``score``, options that do not reproduce the
        scores of the log, and if no answer, or less than half of the confidences, can be read (refusals aside).
    ImportError
        For tables in files without polars, and archives of inspect_ai without zipfile-zstd (extra ``llm``).

    Warns
    -----
    UnreadAnswersWarning
        Once, with the number of answers that refuse, have no readable confidence, or are neither right nor wrong. The
        accuracy that a tool reports counts such answers as wrong; they have no row here.

    See Also
    --------
    calibrant.report : Takes the result in place of ``y_true`` and ``y_prob``.
    calibrant.llm.stated_confidence : Converts words and numbers to probabilities.
    calibrant.llm.Answers : The result, field by field.

    Notes
    -----
    Questions of lm-evaluation-harness are identified by their contents (``doc_hash``), so logs of several tasks or runs
    may be concatenated into one file. Among repeats (``repeats: 5``) the harness scores only the answer that its filter
    selects. Scores between wrong and right ("P" of inspect_ai) are counted as unread. Cost: one pass over the file,
    whose parsed lines or samples are held in memory.

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
    """Rows with one confidence each, whose outcome is whether the answer is right."""
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
        raise ValueError(f"outcome='option' needs questions with equally many options; got {several}: use 'correct'")
    (k,) = sizes
    rows = as_predictions(
        [a.target for a in found], np.array([a.options for a in found]), labels=range(k), groups=_groups(found)
    )
    return _with(rows, found, unread, "likelihood of each option")


def _with(rows: Predictions, found: list[Answer], unread: Mapping[str, int], source: str) -> Answers:
    given = {f.name: getattr(rows, f.name) for f in fields(rows)}
    return Answers(**given, ids=tuple(a.id for a in found), unread=unread, read_from=source)


def _groups(found: list[Answer]) -> list[str] | None:
    """Questions if one is repeated, else None."""
    names = [str(a.id) for a in found]
    return names if 1 < len(set(names)) < len(names) else None


def _confidences(
    answers: list[Answer], wanted: str, words: Mapping[str, float] | None
) -> tuple[FloatArray, list[str | None], str]:
    """Confidence of each answer, the reason for each NaN, and the source."""
    likely = np.array([np.nan if a.likelihood is None else a.likelihood for a in answers], dtype=np.float64)
    scored = any(a.scored is not None for a in answers)
    if wanted == "likelihood" or (wanted == "auto" and not scored and not np.isnan(likely).all()):
        return likely, ["no likelihood of the answer" if v != v else None for v in likely], "likelihood of the answer"
    values, faults = read_stated([a.scored if scored else said_in(a.text) for a in answers], words)
    return values, faults, "stated, by the scorer or table" if scored else "stated, in the text"


def _kept(answers: list[Answer], faults: list[str | None]) -> tuple[Any, dict[str, int]]:
    """Mask of the answers that are read, and the numbers of others by reason, with a warning."""
    why = [a.fault or fault for a, fault in zip(answers, faults, strict=True)]
    unread = dict(Counter(reason for reason in why if reason is not None).most_common())
    if not unread:
        return np.ones(len(answers), dtype=bool), unread
    missing = sum(unread.values())
    told = ", ".join(f"{n:,} {reason}" for reason, n in unread.items())
    if missing == len(answers):
        raise ValueError(f"no answer in the log can be read (0 of {missing:,}): {told}")
    lost = unread.get(UNREADABLE, 0) + unread.get(UNCLEAR, 0)
    stated = lost + len(answers) - missing
    if 2 * lost > stated:  # a report of the others would be of something else than the log
        raise ValueError(
            f"more than half of the confidences in the log cannot be read ({lost:,} of {stated:,}): {told}; "
            "give probabilities of terms by words, or pass a table of the answers to use"
        )
    warnings.warn(f"{missing:,} of {len(answers):,} answers left out: {told}", UnreadAnswersWarning, stacklevel=4)
    return np.array([reason is None for reason in why]), unread


def is_log(path: Path | str) -> bool:
    """Whether :func:`read` recognises a file as a log (not a table) by its contents."""
    return _kind(Path(path)) is not None


def _kind(path: Path) -> str | None:
    """Kind of log that a file is, by its first bytes; None if it is not a log."""
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
    """Lines or samples of a log."""
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
        raise ValueError(f"score is for logs; a table has only one, its column 'correct'; got {score!r}")
    try:
        held = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(f"log must be the path of a log, or a frame in memory; got {received(frame)}") from error
    missing = [name for name in _COLUMNS[1:] if name not in held.columns]
    if missing:
        raise ValueError(
            f"log must have the columns {', '.join(_COLUMNS[1:])}; {missing[0]!r} is not in {some(held.columns)}"
        )
    ids = held["id"].to_list() if "id" in held.columns else list(range(len(held)))
    found = []
    for name, said, value in zip(ids, held["confidence"].to_list(), held["correct"].to_list(), strict=True):
        correct, fault = judged(value)
        found.append(Answer(id=name, correct=correct, scored="" if said is None else said, fault=fault))
    return found
