"""Metrics of decisions and probabilities, from labels or from probabilities of outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from ..measure.scoring_rules import as_rule

#: Values (R,) from probabilities of outcomes (R, n, K).
Reader = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """Rows with a decision each.

    Attributes
    ----------
    probs : ndarray of shape (n, K)
        Probabilities.
    decided : ndarray of shape (n,)
        Index of each decision.
    weights : ndarray of shape (n,)
    about : tuple of int
        Classes of precision, recall, F1 and AUC: the positive of two, or all.
    costs : ndarray of shape (K, A)
    half : bool
        Whether the Brier score is half of the sum over classes.
    """

    probs: FloatArray
    decided: IntArray
    weights: FloatArray
    about: tuple[int, ...]
    costs: FloatArray
    half: bool

    def some(self, rows: AnyArray) -> DecidedRows:
        """A subset of the rows."""
        return replace(self, probs=self.probs[rows], decided=self.decided[rows], weights=self.weights[rows])


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its range, and the function that computes it."""

    words: str
    range: tuple[float, float]
    of: Callable[[DecidedRows], Reader]


def one_hot(codes: IntArray, k: int) -> FloatArray:
    """Certain outcomes, (1, n, K)."""
    out = np.zeros((1, len(codes), k))
    out[0, np.arange(len(codes)), codes] = 1.0
    return out


def _mean_of(table: FloatArray, weights: FloatArray) -> Reader:
    """Mean of a value per row and outcome, (n, K), which may be infinite."""
    known = np.isfinite(table)
    each = np.where(known, table, 0.0) * (weights / weights.sum())[:, None]
    never = ~known & (weights > 0)[:, None]

    def read(q: FloatArray) -> FloatArray:
        out: FloatArray = q.reshape(len(q), -1) @ each.reshape(-1)
        return np.where((q[:, never] > 0).any(axis=1), np.inf, out) if never.any() else out

    return read


def _right(rows: DecidedRows) -> Reader:
    return _mean_of(one_hot(rows.decided, rows.probs.shape[1])[0], rows.weights)


def _cost(rows: DecidedRows) -> Reader:
    return _mean_of(rows.costs.T[rows.decided], rows.weights)


def _score(name: str, rows: DecidedRows) -> Reader:
    return _mean_of(as_rule(name, half=rows.half).table(rows.probs), rows.weights)


def _counts(ratio: Callable[..., FloatArray], rows: DecidedRows) -> Reader:
    """Mean over classes of a ratio of true positives, predicted positives and positives."""

    def read(q: FloatArray) -> FloatArray:
        out = []
        for k in rows.about:
            at = np.flatnonzero(rows.decided == k)
            found = q[:, at, k] @ rows.weights[at]
            out.append(ratio(found, np.full(len(q), rows.weights[at].sum()), q[:, :, k] @ rows.weights))
        return _over_classes(out)

    return read


def _precision(found: FloatArray, decided: FloatArray, positive: FloatArray) -> FloatArray:
    return _ratio(found, decided)


def _recall(found: FloatArray, decided: FloatArray, positive: FloatArray) -> FloatArray:
    return _ratio(found, positive)


def _f1(found: FloatArray, decided: FloatArray, positive: FloatArray) -> FloatArray:
    return _ratio(2 * found, decided + positive)


def _auc(rows: DecidedRows) -> Reader:
    """Share of pairs of a row of the class and another that are ranked correctly; ties count half."""
    sorted_by = []
    for k in rows.about:
        order = np.argsort(rows.probs[:, k], kind="stable")
        score = rows.probs[order, k]
        first = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
        sorted_by.append((k, order, first))

    def read(q: FloatArray) -> FloatArray:
        out = []
        for k, order, first in sorted_by:
            weight = rows.weights[order]
            positive = q[:, order, k] * weight
            negative = np.add.reduceat(weight - positive, first, axis=1)
            positive = np.add.reduceat(positive, first, axis=1)
            below = np.cumsum(negative, axis=1) - negative / 2
            pairs = positive.sum(axis=1) * negative.sum(axis=1)
            out.append(_ratio((positive * below).sum(axis=1), pairs))
        return _over_classes(out)

    return read


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0))


def _over_classes(values: Iterable[FloatArray]) -> FloatArray:
    """Mean over the classes with a value; NaN if none has one."""
    each = np.stack(list(values))
    known = ~np.isnan(each)
    return _ratio(np.where(known, each, 0.0).sum(axis=0), np.asarray(known.sum(axis=0), dtype=np.float64))


METRICS = {
    "accuracy": Metric("Accuracy", (0.0, 1.0), _right),
    "cost": Metric("Mean cost per row", (-np.inf, np.inf), _cost),
    "log-loss": Metric("Log-loss", (0.0, np.inf), partial(_score, "log-loss")),
    "brier": Metric("Brier score", (0.0, 2.0), partial(_score, "brier")),
    "precision": Metric("Precision", (0.0, 1.0), partial(_counts, _precision)),
    "recall": Metric("Recall", (0.0, 1.0), partial(_counts, _recall)),
    "f1": Metric("F1", (0.0, 1.0), partial(_counts, _f1)),
    "roc-auc": Metric("ROC AUC", (0.0, 1.0), _auc),
}
