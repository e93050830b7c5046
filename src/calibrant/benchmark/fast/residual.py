"""`ResidualKernel` for many samples at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from ..._types import AnyArray, FloatArray, IntArray
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


def _power(count: FloatArray, residual: FloatArray, noise: FloatArray | None, norm: float, size: int) -> FloatArray:
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
        out[rows] = _power(total, gap, noise, norm, batch.size)
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
    masses = NodeMasses.of(batch)
    on_axis = masses.on_ranks(masses.residuals)
    gap = on_axis @ matrix
    if norm == 1 and not estimator.debias:
        return _power(gap, gap, None, norm, n)
    count = masses.on_ranks(masses.counts)
    noise = None
    if estimator.debias:
        score_sum = masses.on_ranks(masses.score_sums)
        score = np.divide(score_sum, count, out=np.zeros_like(count), where=count > 0)
        noise = (count * score * (1 - score)) @ matrix**2
    return _power(count @ matrix, gap, noise, norm, n)


@lru_cache(maxsize=64)
def _matrix(width: float, kernel: str) -> FloatArray:
    return Smoother(RANK_CELLS, width, kernel).matrix


class NodeMasses:
    """Samples shared by the nodes of the public grid (4096 cells), without its empty cells: two masses a run.

    A run is what one cell of one row holds; it leaves a part of its samples at the node below and the rest at the
    node above. Both nodes have a rank: the samples below, and half of what the node itself holds.
    """

    def __init__(
        self, row: IntArray, ranks: AnyArray, counts: AnyArray, residuals: AnyArray, score_sums: AnyArray, rows: int
    ) -> None:
        self.row = row
        self.ranks = ranks
        self.counts = counts
        self.residuals = residuals
        self.score_sums = score_sums
        self.rows = rows

    @classmethod
    def of(cls, batch: Batch) -> NodeMasses:
        """Find the runs of a batch."""
        low, high = batch.domain
        n = batch.size
        step = (high - low) / PUBLIC_CELLS
        position = np.clip((batch.scores - low) * (PUBLIC_CELLS / (high - low)), 0, PUBLIC_CELLS)
        cell = position.astype(np.int32)
        position -= cell
        starts = np.ones(cell.shape, dtype=bool)
        np.not_equal(cell[:, 1:], cell[:, :-1], out=starts[:, 1:])
        at = np.flatnonzero(starts)
        row = at // n
        home = cell.ravel()[at]
        size = np.diff(at, append=cell.size).astype(np.float64)
        above = np.add.reduceat(position.ravel(), at)
        below = size - above
        hit = np.add.reduceat(batch.outcomes.ravel(), at)
        hit_above = np.add.reduceat((batch.outcomes * position).ravel(), at)
        node = low + step * home
        before = at - row * n  # samples in cells below
        joined = np.zeros(at.shape, dtype=bool)  # the next cell is occupied too
        joined[:-1] = (row[1:] == row[:-1]) & (home[1:] == home[:-1] + 1)
        from_below = np.zeros(at.shape)
        from_below[1:] = np.where(joined[:-1], above[:-1], 0.0)
        to_next = np.zeros(at.shape)
        to_next[:-1] = np.where(joined[:-1], below[1:], 0.0)
        ranks = np.stack([before + (below - from_below) / 2, before + size + (to_next - above) / 2]) / n
        counts = np.stack([below, above])
        score_sums = np.stack([below * node, above * (node + step)])
        residuals = np.stack([hit - hit_above, hit_above]) - score_sums
        return cls(row, ranks, counts, residuals, score_sums, batch.n_samples)

    def on_ranks(self, values: AnyArray) -> FloatArray:
        """Values at ranks in [0, 1], shared linearly by the two nearest nodes of the rank axis: (R, 257)."""
        position = np.clip(self.ranks, 0, 1) * RANK_CELLS
        cell = np.minimum(position.astype(np.int32), RANK_CELLS - 1)
        position -= cell
        index = (cell + self.row * (RANK_CELLS + 1)).ravel()
        length = self.rows * (RANK_CELLS + 1)
        up = (values * position).ravel()
        out = np.bincount(index, values.ravel() - up, minlength=length)
        out[1:] += np.bincount(index, up, minlength=length)[:-1]
        return np.asarray(out.reshape(self.rows, -1), dtype=np.float64)
