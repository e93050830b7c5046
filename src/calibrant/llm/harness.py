"""Logs of samples written by lm-evaluation-harness (``--log_samples``): one answer per line."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..data.checks import check_choice
from ..data.columns import some
from ..data.types import AnyArray, FloatArray
from .answer import Answer, judged

#: Scores that compare options by log-likelihood, or by log-likelihood divided by length in characters or bytes.
_BY_OPTIONS = ("acc", "acc_norm", "acc_bytes")
#: Keys of a line that are not scores.
_OTHERS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)


def is_harness(row: Any) -> bool:
    """Whether a line belongs to such a log."""
    return isinstance(row, dict) and {"doc_id", "target", "filtered_resps"} <= row.keys()


def harness_answers(rows: Sequence[dict[str, Any]], score: str | None) -> list[Answer]:
    """Answers of a log; ``score`` is "acc_norm" or "exact_match,strict-match", as the harness prints scores."""
    metric, rows = _chosen(rows, score)
    if metric not in _BY_OPTIONS:
        return [_written(row, metric) for row in rows]
    values = [_loglikelihoods(row, metric) for row in rows]
    targets = _targets(rows, metric, values)
    return [_of_options(*one, metric) for one in zip(rows, values, targets, strict=True)]


def _chosen(rows: Sequence[dict[str, Any]], score: str | None) -> tuple[str, Sequence[dict[str, Any]]]:
    """Name of the score, and the lines with its filter."""
    metric, _, chosen = (score or "").partition(",")
    filters = list(dict.fromkeys(str(row.get("filter", "none")) for row in rows))
    metrics = list(dict.fromkeys(m for row in rows for m in row.get("metrics") or row.keys() - _OTHERS))
    if not metric:
        by_options = [m for m in _BY_OPTIONS if m in metrics]
        if not by_options and len(metrics) != 1:
            raise ValueError(f"score must name one of the log's scores: {some(metrics)}")
        metric = (by_options or metrics)[0]
    check_choice("score", metric, metrics)
    if not chosen and len(filters) > 1:
        raise ValueError(f"score must name the filter, as in score={f'{metric},{filters[0]}'!r}: {some(filters)}")
    chosen = check_choice("filter of score", chosen or filters[0], filters)
    return metric, [row for row in rows if str(row.get("filter", "none")) == chosen]


def _question(row: dict[str, Any]) -> Any:
    """Identifier of the question: a hash of its contents if there is one, as every task numbers questions from 0."""
    return row.get("doc_hash", row["doc_id"])


def _written(row: dict[str, Any], metric: str) -> Answer:
    """An answer that the model wrote."""
    correct, fault = judged(row.get(metric))
    text = "\n".join(map(str, _flat((row.get("resps") or row["filtered_resps"])[:1])))
    return Answer(id=_question(row), correct=correct, text=text, fault=fault)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def _loglikelihoods(row: dict[str, Any], metric: str) -> FloatArray | None:
    """Log-likelihood of each option, divided by its length if the score requires it; None if there are none."""
    pairs = row["filtered_resps"]
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        return None
    if "acc_mutual_info" in (row.get("metrics") or ()):
        pairs = pairs[: len(pairs) // 2]  # the others are those of the options without their question
    try:
        values = np.array([float(value) for value, _ in pairs])
    except (TypeError, ValueError):
        return None
    if metric == "acc":
        return values
    texts = _options(row, len(pairs))
    return np.asarray(values / [len(text.encode() if metric == "acc_bytes" else text) for text in texts])


def _options(row: dict[str, Any], n: int) -> list[str]:
    """Texts of the options, as the model received them after the question, without the space between the two."""
    given = row.get("arguments") or ()
    calls = list(given.values()) if isinstance(given, dict) else list(given)
    texts = [str(call["arg_1"] if isinstance(call, dict) else call[1]) for call in calls[:n]]
    if len(texts) != n:
        raise ValueError(
            f"the log must have the arguments of each option, for their lengths; {_question(row)!r} lacks them"
        )
    return [text[1:] for text in texts] if all(text.startswith(" ") for text in texts) else texts


def _targets(rows: Sequence[dict[str, Any]], metric: str, values: Sequence[FloatArray | None]) -> list[AnyArray | None]:
    """Right options of each question; targets are positions or texts, whichever agrees with the scores of the log."""
    for by_text in (False, True):
        found = [None if v is None else _positions(row, len(v), by_text) for row, v in zip(rows, values, strict=True)]
        agrees = (
            v is None or (t is not None and row.get(metric) in (None, float(np.argmax(v) in t)))
            for row, v, t in zip(rows, values, found, strict=True)
        )
        if all(agrees):
            return found
    for row, v in zip(rows, values, strict=True):
        if v is not None and all(
            (t := _positions(row, len(v), by_text)) is None or row.get(metric) not in (None, float(np.argmax(v) in t))
            for by_text in (False, True)
        ):
            raise ValueError(
                f"the option with the largest score and the target {row['target']!r} do not give {metric} = "
                f"{row.get(metric)}, which the log has for doc_id {row['doc_id']}: this task is scored differently"
            )
    raise ValueError(
        f"targets of the log are positions in some lines and texts in others; {metric} does not show which"
    )


def _positions(row: dict[str, Any], n: int, by_text: bool) -> AnyArray | None:
    """Positions of the right options; None if the target cannot be read this way."""
    target = row["target"]
    try:
        if isinstance(target, str) and target.startswith("["):  # as logs say several
            target = ast.literal_eval(target)
        several: list[Any] = target if isinstance(target, list) else [target]
        if by_text:
            texts = _options(row, n)
            found = [texts.index(str(one)) for one in several]
        else:
            found = [int(one) for one in several]
    except (ValueError, TypeError, SyntaxError):
        return None
    return np.array(found) if found and all(0 <= one < n for one in found) else None


def _of_options(row: dict[str, Any], values: FloatArray | None, target: AnyArray | None, metric: str) -> Answer:
    """The most likely option as an answer."""
    if values is None or target is None or len(values) < 2:
        return Answer(id=_question(row), correct=None, fault="no log-likelihoods of two options")
    if np.isnan(values).any() or values.max() in (-np.inf, np.inf):
        return Answer(id=_question(row), correct=None, fault="log-likelihoods that are not finite")
    shares = np.exp(values - values.max())
    options = shares / shares.sum()
    best = int(np.argmax(values))
    return Answer(
        id=_question(row),
        correct=bool(best in target),
        likelihood=float(options[best]),
        options=options,
        target=int(target[0]) if len(target) == 1 else None,
    )
