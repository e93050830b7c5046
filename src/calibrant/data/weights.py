"""Small pure functions of weights that many modules share."""

from __future__ import annotations

import numpy as np

from .types import AnyArray, FloatArray, IntArray


def ones_or(weights: FloatArray | None, n_rows: int) -> FloatArray:
    """Weights as float64; ones if there are none."""
    return np.ones(n_rows) if weights is None else weights.astype(np.float64, copy=False)


def repeats(weights: FloatArray) -> IntArray:
    """Indices of rows, each repeated by its whole-number weight."""
    return np.repeat(np.arange(weights.size), weights.astype(np.intp))


def of_variances(weights: FloatArray, *, integral: bool) -> FloatArray:
    """Weight of each row's variance in that of the weighted sum: repeats add, other weights are squared."""
    return weights if integral else weights**2


def rest_of(shares: FloatArray) -> FloatArray:
    """One minus each share, but at least 1e-12."""
    return np.maximum(1 - shares, 1e-12)


def are_binary(outcomes: AnyArray) -> bool:
    """Whether all outcomes are 0 or 1, as always except with changed residuals."""
    return outcomes.dtype.kind in "biu" or bool(((outcomes == 0) | (outcomes == 1)).all())


def run_starts(ordered: AnyArray) -> IntArray:
    """Where runs of equal values start."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def mean(values: FloatArray, weights: FloatArray | None) -> float:
    """Weighted mean; rows of weight 0 do not count, whatever their value."""
    if weights is None:
        return float(values.mean())
    used = weights > 0
    return float(np.average(values[used], weights=weights[used]))
