"""`ResidualKernel` for many samples at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from ..._types import FloatArray
from ...density import Smoother
from ...errors.density import CELLS_PER_BANDWIDTH
from ...errors.norm import mean_power
from ...errors.residual import RANK_CELLS, ResidualKernel
from . import reads
from .batch import Batch
from .smoothing import PUBLIC_CELLS, Spread, by_cells, smoothed

_COARSEST = 128
# Up to this bandwidth, as a share of the domain, a kernel's second mirror images are below 1e-5 of its peak.
_ONE_IMAGE = 0.2


@reads(ResidualKernel)
def residual(estimator: ResidualKernel, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample, equal to the public estimator's up to rounding (for a Gaussian kernel).

    Not for the maximum, which needs the local size at every node, nor for bandwidths that a search finds.
    """
    found = estimator.bandwidth != "auto" and not isinstance(estimator.bandwidth, float)
    if np.isinf(norm) or found:
        return _one_by_one(estimator, batch, norm, range(batch.n_samples))
    return _over_ranks(estimator, batch, norm) if estimator.space == "rank" else _over_scores(estimator, batch, norm)


def _one_by_one(estimator: ResidualKernel, batch: Batch, norm: float, rows: Iterable[int]) -> FloatArray:
    return np.array([estimator.power(batch.problem(i), norm) for i in rows])


def power_of(count: FloatArray, residual: FloatArray, noise: FloatArray | None, norm: float, size: int) -> FloatArray:
    """Mean p-th power of smoothed residuals over smoothed counts, less ``noise`` (over squared counts) if there is one.

    At p = 1 the counts cancel.
    """
    if norm == 1:
        area = np.abs(residual) if noise is None else np.sqrt(np.maximum(residual**2 - noise, 0.0))
        area[:, [0, -1]] *= 0.5
        return np.asarray(area.sum(axis=1) / size)
    held = count > 1e-12 * count.max(axis=1, keepdims=True)
    gap = np.divide(residual, count, out=np.zeros_like(residual), where=held)
    if noise is not None:
        variance = np.divide(noise, count**2, out=np.zeros_like(noise), where=held)
        gap = np.sqrt(np.maximum(gap**2 - variance, 0.0))
    weight = np.where(held, count, 0.0)
    weight[:, [0, -1]] *= 0.5
    return mean_power(gap, weight, norm)


def _over_scores(estimator: ResidualKernel, batch: Batch, norm: float) -> FloatArray:
    low, high = batch.domain
    if isinstance(estimator.bandwidth, float):
        h = np.full(batch.n_samples, max(estimator.bandwidth, (high - low) / PUBLIC_CELLS))
    else:
        h = Spread(batch).folded_scott()
    out: FloatArray = np.empty(batch.n_samples)
    split = np.ones(h.shape, dtype=bool)
    if estimator.debias:
        split = (h <= _ONE_IMAGE * (high - low)) & (estimator.kernel == "gaussian")
        alone = np.flatnonzero(~split)
        out[alone] = _one_by_one(estimator, batch, norm, alone)
    rows_in_turn = np.flatnonzero(split)
    for cells, chosen in by_cells(CELLS_PER_BANDWIDTH * (high - low) / h[split], _COARSEST, PUBLIC_CELLS):
        rows = rows_in_turn[chosen]
        count, positive = batch.counts(cells, None if len(rows) == batch.n_samples else rows)
        width = np.maximum(h[rows] * (cells / (high - low)), 0.5)
        nodes = np.linspace(low, high, cells + 1)
        gap = smoothed(positive - count * nodes, width, estimator.kernel)
        total = gap if norm == 1 else np.maximum(smoothed(count, width, estimator.kernel), 0.0)
        noise = squares_smoothed(count * nodes * (1 - nodes), width) if estimator.debias else None
        out[rows] = power_of(total, gap, noise, norm, batch.size)
    return out


def squares_smoothed(values: FloatArray, width: FloatArray) -> FloatArray:
    """Sums of values (R, G + 1) with the squares of a Gaussian smoother's weights, each row with its own width.

    The weight of node i at j is ``K(i - j) + K(i + j)`` (and the image beyond the upper end). Of its square, the
    squared parts are a Gaussian narrower by √2, and the product of two is ``exp(-i²/w²) exp(-j²/w²)``, a product
    of numbers: what :meth:`calibrant.density.Smoother.smooth_squares` does in O(G²) takes O(G log G).
    """
    cells = values.shape[1] - 1
    w = width[:, None]
    reach = np.arange(1, int(9 * float(width.max())) + 2)
    mass = 1 + 2 * np.exp(-0.5 * (reach / w) ** 2).sum(axis=1, keepdims=True)
    mass_of_square = 1 + 2 * np.exp(-((reach / w) ** 2)).sum(axis=1, keepdims=True)
    out = smoothed(values, width / np.sqrt(2), "gaussian") * (mass_of_square / mass**2)
    end = np.exp(-((np.arange(cells + 1) / w) ** 2)) / mass
    for decay in (end, end[:, ::-1]):
        out += 2 * decay * (values * decay).sum(axis=1, keepdims=True)
    return np.asarray(np.maximum(out, 0.0))


def _over_ranks(estimator: ResidualKernel, batch: Batch, norm: float) -> FloatArray:
    n = batch.size
    h = 0.5 * 0.9 * 0.289 * float(n) ** -0.2
    if isinstance(estimator.bandwidth, float):
        h = estimator.bandwidth
    matrix = _matrix(max(h * RANK_CELLS, 1.0), estimator.kernel)
    masses = batch.masses
    gap = masses.ranked_residuals @ matrix
    if norm == 1 and not estimator.debias:
        return power_of(gap, gap, None, norm, n)
    count = masses.ranked_counts
    noise = None
    if estimator.debias:
        score = np.divide(masses.ranked_score_sums, count, out=np.zeros_like(count), where=count > 0)
        noise = (count * score * (1 - score)) @ matrix**2
    return power_of(count @ matrix, gap, noise, norm, n)


@lru_cache(maxsize=64)
def _matrix(width: float, kernel: str) -> FloatArray:
    return Smoother(RANK_CELLS, width, kernel).matrix
