"""`EmpiricalBayes` for many samples at once: the same model, its cells made from sorted scores instead of a grid."""

from __future__ import annotations

import numpy as np

from ..._types import FloatArray, IntArray
from ...density.grid import GRID_CELLS
from ...errors import laplace
from ...errors.empirical_bayes import EmpiricalBayes, expected_power, from_sums
from . import reads
from .batch import Batch


@reads(EmpiricalBayes)
def empirical_bayes(estimator: EmpiricalBayes, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample; the public estimator first puts scores on 1/4096 of the domain."""
    return expected_power(cells_of(batch), estimator.law(batch.domain[0]), norm)


def cells_of(batch: Batch) -> laplace.RankCells:
    """Rank cells of every sample, (R, m)."""
    n, m = batch.size, laplace.n_cells(batch.size)
    rank = _ranks(batch)
    cell: IntArray = np.minimum((rank * m).astype(np.int64), m - 1)
    cell += (np.arange(batch.n_samples) * m)[:, None]
    flat, length = cell.ravel(), batch.n_samples * m

    def sums(values: FloatArray | None) -> FloatArray:
        weights = None if values is None else values.ravel()
        return np.bincount(flat, weights, minlength=length).reshape(-1, m).astype(np.float64)

    low, high = batch.domain
    ends = [_near(batch.scores, flat, length, end, (high - low) / GRID_CELLS).reshape(-1, m) for end in (low, high)]
    return from_sums(
        sums(None), sums(batch.outcomes), sums(batch.scores), sums(rank), np.stack(ends, axis=-1), float(n)
    )


def _near(scores: FloatArray, cell: IntArray, length: int, end: float, step: float) -> FloatArray:
    """Of every cell, what its scores leave at an end of the domain that is less than a grid step away."""
    close = np.flatnonzero(np.abs(scores - end) < step)
    share = 1 - np.abs(scores.ravel()[close] - end) / step
    return np.asarray(np.bincount(cell[close], share, minlength=length), dtype=np.float64)


def _ranks(batch: Batch) -> FloatArray:
    """Ranks in (0, 1); scores in one cell of the public grid cannot be told apart and share their mean rank."""
    low, high = batch.domain
    n = batch.size
    place = np.minimum(((batch.scores - low) * (GRID_CELLS / (high - low))).astype(np.int64), GRID_CELLS - 1)
    first = np.ones(place.shape, dtype=bool)
    np.not_equal(place[:, 1:], place[:, :-1], out=first[:, 1:])
    if first.all():
        return np.broadcast_to((np.arange(n) + 0.5) / n, place.shape)
    start = np.maximum.accumulate(np.where(first, np.arange(n), 0), axis=1)
    end = np.full(place.shape, n)
    np.copyto(end[:, :-1], np.arange(1, n), where=first[:, 1:])
    end = np.minimum.accumulate(end[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((start + end) / (2 * n))
