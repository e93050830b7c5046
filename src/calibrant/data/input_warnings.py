"""What can be read but is probably not meant: rows in two orders, labels for probabilities, swapped columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..exceptions import DependenceWarning, LabelWarning, ScoreWarning
from .dependence import serial_correlation
from .types import AnyArray, FloatArray, IntArray, Label

#: From so many rows on scores of 0 and 1 alone are taken for predicted labels.
_ENOUGH = 8
#: Standard errors by which another order of the columns must do better, on rows that did not choose it.
_CLEARLY = 4.0
_FEW, _TILE = 64, 1 << 17
#: Standard errors, and correlation, from which neighbouring rows are said to be alike.
_ALIKE, _MUCH = 3.5, 0.05


def check_same_order(**columns: Any) -> None:
    """Raise ValueError where pandas columns have the same index in different orders: rows are matched by position."""
    indexed = [(name, v.index) for name, v in columns.items() if hasattr(getattr(v, "index", None), "equals")]
    for name, index in indexed[1:]:
        first, other = indexed[0]
        if len(index) != len(other) or index.equals(other):
            continue
        if _same_labels(index, other):
            raise ValueError(
                f"{first} and {name} have the same index in different orders, and rows are matched by position: pass "
                f"{name}.loc[{first}.index] if they belong together by index, or both with .to_numpy() if by position"
            )


def _same_labels(one: Any, two: Any) -> bool:
    try:
        return bool(one.is_unique and set(one) == set(two))
    except TypeError:  # labels that cannot be hashed
        return False


def warn_of_labels(probs: FloatArray) -> None:
    """Warn where all scores are 0 or 1, as predicted labels are."""
    flat = probs.reshape(-1)
    if len(probs) < _ENOUGH:
        return
    end, size = 0, _FEW
    while end < flat.size:  # ends in the first tile where scores are soft, mostly a small one
        tile = flat[end : end + size]
        if ((tile != 0) & (tile != 1)).any():
            return
        end, size = end + size, _TILE
    warnings.warn(
        "every score in y_prob is 0 or 1: if these are predicted labels, pass probabilities (predict_proba) instead; a "
        "model that is always certain is calibrated only if it is always right",
        ScoreWarning,
        stacklevel=3,
    )


def warn_of_order(scores: FloatArray, outcomes: AnyArray) -> None:
    """Warn where residuals of rows that follow each other are alike: rows of one group, taken as independent."""
    correlation, errors = serial_correlation(scores, outcomes)
    if errors < _ALIKE or correlation < _MUCH or np.count_nonzero(np.diff(outcomes)) <= 1:  # sorted by outcome
        return
    warnings.warn(
        f"rows are taken as independent, but those that follow each other among similar scores are alike (correlation "
        f"of residuals {correlation:.2f}, {errors:.0f} standard errors): if some belong together (repeats of a prompt, "
        "forecasts of one event, patients of a hospital), pass groups=; else intervals are too short and p-values too "
        "small",
        DependenceWarning,
        stacklevel=4,
    )


def warn_of_columns(probs: FloatArray, codes: IntArray, classes: tuple[Label, ...], truth: AnyArray) -> None:
    """Warn where columns without names, taken in the order of sorted strings, clearly fit in another order.

    The other order is chosen on every second row and judged on the rest.
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
        f"the columns of y_prob are taken for the sorted labels, with which the most probable one is right in "
        f"{100 * own.mean():.0f} % of rows; with labels={shown} it would be in {100 * other.mean():.0f} %: pass labels "
        "in column order (model.classes_) to settle it",
        LabelWarning,
        stacklevel=3,
    )
