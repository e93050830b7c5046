"""Shares (k of n): rows in which a fraction had the outcome, as two weighted rows with one outcome each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .labels import check_label_list, check_pos_label, is_missing
from .types import AnyArray, FloatArray, IntArray, Label

#: Number of rounding units of a share's dtype by which k = w·y may differ from a whole number.
ROUNDINGS = 4


class SplitRows(NamedTuple):
    """Rows with one outcome each, split from rows with shares.

    Attributes
    ----------
    truth : ndarray of shape (m,)
        Labels: the one that the shares refer to, then the other.
    weights : ndarray of shape (m,)
    given : ndarray of shape (m,)
        The given row that each is a part of, ascending.
    """

    truth: AnyArray
    weights: FloatArray
    given: IntArray

    @classmethod
    def of(
        cls, shares: FloatArray, eps: float, weights: FloatArray, labels: Sequence[Any] | None, pos_label: Any
    ) -> SplitRows:
        """Split shares into the label with weight w·y and the other with w·(1 - y); one row if the share is 0 or 1."""
        hit, other = two_labels(labels, pos_label)
        with_label, without = parts_of(shares, weights, eps)
        given = np.repeat(np.arange(len(shares)), 1 + ((shares > 0) & (shares < 1)))
        first = np.diff(given, prepend=-1) > 0
        of_label = first & (shares[given] > 0)
        truth = np.where(of_label, np.asarray(hit), np.asarray(other))
        return cls(truth, np.where(of_label, with_label[given], without[given]), given)


def parts_of(shares: FloatArray, weights: FloatArray, eps: float) -> tuple[FloatArray, FloatArray]:
    """Weights w·y and w·(1 - y), whole numbers if w is one and w·y differs from one only by rounding.

    The share k / n of n = w draws then counts as k of n repeats.
    """
    part = weights * shares
    whole = np.rint(part)
    counted = (weights == np.floor(weights)) & (np.abs(part - whole) <= ROUNDINGS * eps * weights)
    return np.where(counted, whole, part), np.where(counted, weights - whole, weights * (1 - shares))


def read_shares(truth: AnyArray) -> tuple[FloatArray, float] | None:
    """Shares (n,) float64, and the rounding unit of their dtype; None if the values are labels.

    Numbers are shares if one of them lies strictly between 0 and 1; if all are 0 or 1, they are labels.
    """
    if truth.dtype.kind == "O" and len(truth) and not isinstance(truth[0], (str, bytes)):
        items = truth.tolist()
        if not all(is_missing(v) or isinstance(v, (bool, int, float, np.number, np.bool_)) for v in items):
            return None
        truth = np.array([np.nan if is_missing(v) else v for v in items])
    if truth.dtype.kind != "f":
        return None
    eps = float(np.finfo(truth.dtype).eps)
    found = truth.astype(np.float64, copy=False)
    between = (found > 0) & (found < 1)
    if not between.any():
        return None
    wrong = ~((found >= 0) & (found <= 1))
    if wrong.any():
        row, one = int(np.argmax(wrong)), int(np.argmax(between))
        raise ValueError(
            f"y_true must hold class labels, or shares in [0, 1] of two classes; row {row} is {truth[row]!s}, and row "
            f"{one} is {truth[one]!s} (continuous numbers: are y_true and y_prob swapped?)"
        )
    return found, eps


def check_shares(shares: FloatArray, scores: FloatArray) -> None:
    """ValueError for shares with scores that they cannot belong to."""
    row = int(np.argmax((shares > 0) & (shares < 1)))
    if scores.ndim == 2 and scores.shape[1] != 2:
        raise ValueError(
            f"y_true must hold class labels; row {row} is {shares[row]!s}, and shares need two classes (y_prob has "
            f"{scores.shape[1]} columns)"
        )
    if ((scores == 0) | (scores == 1)).all() and scores.min() < scores.max():
        raise ValueError(
            f"y_true must hold class labels; row {row} is {shares[row]!s}, and every score in y_prob is 0 or 1: are "
            "y_true and y_prob swapped?"
        )


def two_labels(labels: Sequence[Any] | None, pos_label: Any) -> tuple[Label, Label]:
    """The label that shares refer to (1 if it is a label, else ``pos_label`` or the second), and the other."""
    pos_label = check_pos_label(pos_label)
    if labels is None:
        if pos_label in (None, -1, 0, 1):
            return 1, -1 if pos_label == -1 else 0
        return pos_label, f"not {pos_label}" if isinstance(pos_label, str) else 0
    classes = check_label_list(labels, 2)
    hit = classes.index(1) if 1 in classes else classes.index(pos_label) if pos_label in classes else 1
    return classes[hit], classes[1 - hit]
