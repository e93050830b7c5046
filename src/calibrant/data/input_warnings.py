"""Warnings about valid input that looks wrong: predicted labels, and columns in another order."""

from __future__ import annotations

import warnings

import numpy as np

from ..exceptions import LabelWarning, ScoreWarning
from .types import AnyArray, FloatArray, IntArray, Label

#: Values processed at a time in a single pass that may stop early.
LONG_TILE = 1 << 17
#: Number of values checked first, which usually end the search.
_FIRST_TILE = 64
#: From this number of rows on, scores that are only 0 and 1 are treated as predicted labels.
_ENOUGH = 8
#: Standard errors by which another order of the columns must be better, on rows not used to choose it.
_CLEARLY = 4.0
#: Scores from 0 up to this number look like labels if all numbers between occur.
_MOST_CLASSES = 100_000


def warn_of_labels(probs: FloatArray) -> None:
    """Warn if all scores are 0 or 1, like predicted labels."""
    flat = probs.reshape(-1)
    if len(probs) < _ENOUGH:
        return
    end, size = 0, _FIRST_TILE
    while end < flat.size:  # ends in the first tile where scores are soft, mostly a small one
        tile = flat[end : end + size]
        if ((tile != 0) & (tile != 1)).any():
            return
        end, size = end + size, LONG_TILE
    warnings.warn(
        "every score in y_prob is 0 or 1: if these are predicted labels, pass probabilities (predict_proba) instead; a "
        "model that is always certain is calibrated only if it is always right",
        ScoreWarning,
        stacklevel=3,
    )


def warn_of_columns(probs: FloatArray, codes: IntArray, classes: tuple[Label, ...], truth: AnyArray) -> None:
    """Warn if unnamed columns, matched to sorted text labels, clearly fit better in another order.

    The other order is chosen on every second row and evaluated on the rest.
    """
    if truth.dtype.kind not in "USO" or not isinstance(classes[0], (str, bytes)) or len(probs) < _ENOUGH:
        return
    from scipy.optimize import linear_sum_assignment

    best = probs.argmax(axis=1)
    k = len(classes)
    together = np.bincount(codes[::2] * k + best[::2], minlength=k * k).reshape(k, k)
    column = linear_sum_assignment(together, maximize=True)[1]
    own, other = best[1::2] == codes[1::2], best[1::2] == column[codes[1::2]]
    gained, lost = int((other & ~own).sum()), int((own & ~other).sum())
    if gained - lost <= _CLEARLY * np.sqrt(gained + lost):
        return
    order = [str(classes[c]) for c in np.argsort(column)]
    shown = f"[{', '.join(map(repr, order[:6]))}{', …' if k > 6 else ''}]"
    warnings.warn(
        f"the columns of y_prob are assumed to be in the order of the sorted labels: the most probable label is "
        f"right in {100 * own.mean():.0f} % of rows, and with labels={shown} in {100 * other.mean():.0f} %. Pass "
        "labels in column order (model.classes_)",
        LabelWarning,
        stacklevel=3,
    )


def range_hint(values: FloatArray, tolerance: float) -> str:
    """Hint at the likely meaning of scores outside [0, 1]."""
    low, high = float(values.min()), float(values.max())
    if low == 0 and high < _MOST_CLASSES and np.array_equal(np.unique(values), np.arange(high + 1)):
        return ": these look like class indices; pass probabilities (predict_proba) instead"
    if low >= 0 and high <= 1.5:
        return (
            f", beyond rounding error ({tolerance:g} for {values.dtype}): if it is noise, pass numpy.clip(y_prob, 0, 1)"
        )
    if low >= 0 and high <= 100:
        return ": these look like percentages; divide by 100"
    function = "scipy.special.softmax(z, axis=1)" if values.ndim == 2 else "scipy.special.expit(z)"
    return f": these look like logits or margins (they range from {low:.4g} to {high:.4g}); pass {function}"
