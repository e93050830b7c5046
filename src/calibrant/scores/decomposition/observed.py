"""Class frequencies at the stated scores: by isotonic regression, of bins, of equal probability vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...data.predictions import effective_size
from ...data.types import AnyArray, FloatArray
from ...estimators.isotonic import RowsByScore
from ...sums import quantile_edges, resolve_n_bins, uniform_edges

#: What observed frequencies are found by.
ESTIMATORS = ("corp", "binned", "exact")
#: Observed frequencies (n, K) and mean stated ones within bins (n, K) or None, given weights of the rows.
Observer = Callable[[FloatArray], tuple[FloatArray, FloatArray | None]]


def observer_of(
    stated: FloatArray,
    estimator: str,
    n_bins: int | str,
    strategy: str,
    eps: float,
    given: FloatArray,
    *,
    integral: bool,
) -> Callable[[AnyArray], Observer]:
    """What finds observed frequencies, for any labels and weights of the same rows; scores are sorted here, once."""
    k = stated.shape[1]
    if estimator == "exact":
        _, cell = np.unique(stated, axis=0, return_inverse=True)
        return lambda codes: lambda weights: (_cell_means(cell.reshape(-1), codes, weights, k), None)
    columns = [1] if k == 2 else list(range(k))
    if estimator == "corp":
        found = [RowsByScore.of(stated[:, c]) for c in columns]
        return lambda codes: (
            lambda weights: (
                _joined([one.fit(codes == c, weights) for one, c in zip(found, columns, strict=True)]),
                None,
            )
        )
    bins = [_slots(stated[:, c], n_bins, strategy, eps, given, integral=integral) for c in columns]

    def binned(codes: AnyArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        pairs = list(zip(bins, columns, strict=True))
        observed = [_slot_means(slot, (codes == c).astype(np.float64), weights) for slot, c in pairs]
        return _joined(observed), _joined([_slot_means(slot, stated[:, c], weights) for slot, c in pairs])

    return lambda codes: partial(binned, codes)


def _joined(columns: list[FloatArray]) -> FloatArray:
    """Columns side by side; of two classes the first is the rest."""
    return np.column_stack([1 - columns[0], columns[0]] if len(columns) == 1 else columns)


def _cell_means(cell: AnyArray, codes: AnyArray, weights: FloatArray, k: int) -> FloatArray:
    m = int(cell.max()) + 1
    sums = np.bincount(cell * k + codes, weights=weights, minlength=m * k).reshape(m, k)
    whole = sums.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(sums, whole, out=np.zeros(sums.shape), where=whole > 0)[cell])


def _slot_means(slot: AnyArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    whole = np.bincount(slot, weights=weights)
    means = np.divide(np.bincount(slot, weights=weights * values), whole, out=np.zeros(whole.shape), where=whole > 0)
    return np.asarray(means[slot])


def _slots(
    scores: FloatArray, n_bins: int | str, strategy: str, eps: float, weights: FloatArray, *, integral: bool
) -> AnyArray:
    """Bin of each score."""
    number = resolve_n_bins(n_bins, effective_size(weights, len(scores), integral=integral))
    edges = uniform_edges(number)
    if strategy == "quantile":
        edges = quantile_edges(scores, weights, number, integral=integral)
    return np.asarray(np.clip(edges.slots(scores, eps) - 1, 0, edges.n_bins - 1))
