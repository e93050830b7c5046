"""`EmpiricalBayes` for many samples at once: the same model, its cells made from sorted scores instead of a grid."""

from __future__ import annotations

import numpy as np

from ..._types import FloatArray, IntArray
from ...errors import laplace
from ...errors.empirical_bayes import EmpiricalBayes, expected_power, from_sums
from . import reads
from .batch import Batch


@reads(EmpiricalBayes)
def empirical_bayes(estimator: EmpiricalBayes, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample; the public estimator first puts scores on 1/4096 of the domain."""
    return expected_power(cells_of(batch), estimator.law, norm)


def cells_of(batch: Batch) -> laplace.RankCells:
    """Rank cells of every sample, (R, m)."""
    n, m = batch.size, laplace.n_cells(batch.size)
    rank = batch.mid_ranks
    cell: IntArray = np.minimum((rank * m).astype(np.int64), m - 1)
    cell += (np.arange(batch.n_samples) * m)[:, None]
    flat, length = cell.ravel(), batch.n_samples * m

    def sums(values: FloatArray | None) -> FloatArray:
        weights = None if values is None else values.ravel()
        return np.bincount(flat, weights, minlength=length).reshape(-1, m).astype(np.float64)

    return from_sums(sums(None), sums(batch.outcomes), sums(batch.scores), sums(rank), float(n))
