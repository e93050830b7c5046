"""Kernel smoothing of many samples at once, each with a bandwidth of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np
from scipy.fft import dct, idct

from ..._types import AnyArray, FloatArray, IntArray
from ...density import KERNELS
from ...density import grid as public_grid
from .batch import Batch

#: Cells of the grid of public estimators.
PUBLIC_CELLS: int = public_grid.GRID_CELLS
# Step and end (in radians a standard deviation) of the table behind a kernel's transform; beyond, it is below 1e-6.
_TABLE_STEP = 1 / 256
_TABLE_END = 64.0
# Below this many steps a standard deviation the samples of a kernel are transformed instead of the kernel.
_NARROW = 6.0
# Grid nodes worked on at a time.
_BLOCK = 1 << 16


def smoothed(counts: FloatArray, width: FloatArray, kernel: str) -> FloatArray:
    """Counts (R, G + 1) smoothed by kernels of standard deviation ``width`` (R,) grid steps, mirrored at both ends.

    What :meth:`calibrant.density.Smoother.smooth` does, up to how a kernel is sampled: see :func:`spectrum`.
    """
    transformed = dct(mirrored(counts), type=1, axis=-1, overwrite_x=True)
    transformed *= spectrum(counts.shape[-1] - 1, width, kernel)
    return np.asarray(idct(transformed, type=1, axis=-1, overwrite_x=True))


def mirrored(counts: FloatArray) -> FloatArray:
    """Counts as a transform wants them: a sample on an end meets its mirror image there."""
    out = counts.copy()
    out[..., [0, -1]] *= 2
    return out


def spectrum(cells: int, width: FloatArray, kernel: str) -> FloatArray:
    """Transform, shape (R, G + 1), of kernels that are sampled at grid nodes and have sum 1.

    Sampling adds the transform's images at multiples of 2π to it. For a Gaussian of at least half a step the
    four nearest are all that double precision holds. Those of other kernels are below 1e-4 from 6 steps
    on; narrower ones are sampled.
    """
    angle = np.pi / cells * np.arange(cells + 1)
    w = width[:, None]
    if kernel == "gaussian":
        total: FloatArray = np.exp(-0.5 * (w * angle) ** 2)
        if float(width.min()) < 3:  # the image of the highest frequency is below 1e-19 beyond
            for image in (angle + turn for turn in np.pi * np.array([-4, -2, 2, 4])):
                total = total + np.exp(-0.5 * (w * image) ** 2)
            total /= total[:, :1]
        return total
    table = _transform(kernel)
    position = np.minimum(w * angle / _TABLE_STEP, len(table) - 2)
    cell = position.astype(np.int32)
    position -= cell
    out = table[cell] * (1 - position) + table[cell + 1] * position
    narrow = width < _NARROW
    if narrow.any():
        reach = min(cells, int(_NARROW * KERNELS[kernel].support) + 1)
        sampled = np.zeros((int(narrow.sum()), cells + 1))
        sampled[:, : reach + 1] = KERNELS[kernel].profile(np.arange(reach + 1) / w[narrow])
        whole = dct(sampled, type=1, axis=-1)
        out[narrow] = whole / whole[:, :1]
    return np.asarray(out)


@lru_cache(maxsize=8)
def _transform(kernel: str) -> FloatArray:
    """Characteristic function of a kernel at multiples of the table's step, by Gauss–Legendre quadrature."""
    profile, support = KERNELS[kernel].profile, KERNELS[kernel].support
    x, weight = np.polynomial.legendre.leggauss(400)
    mass = weight * profile(support * x)
    t = np.arange(0, _TABLE_END + _TABLE_STEP, _TABLE_STEP)
    return np.asarray(np.cos(np.outer(t, support * x)) @ mass / mass.sum())


def by_cells(wanted: FloatArray, least: int, most: int) -> Iterator[tuple[int, AnyArray]]:
    """Groups of rows by the smallest power of two, from ``least`` to ``most``, that is at least ``wanted`` cells.

    Of as many rows as stay in the cache.
    """
    cells = np.full(wanted.shape, least)
    while (short := (cells < wanted) & (cells < most)).any():
        cells[short] *= 2
    for size in np.unique(cells):
        rows = np.flatnonzero(cells == size)
        together = max(1, _BLOCK // int(size))
        for a in range(0, len(rows), together):
            yield int(size), rows[a : a + together]


class Spread:
    """Bandwidth rules for each row, as :mod:`calibrant.density.bandwidth` finds them from linear-binned counts."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.low, self.high = batch.domain
        self.step = (self.high - self.low) / PUBLIC_CELLS

    @cached_property
    def _places(self) -> tuple[IntArray, FloatArray]:
        """Grid cell of each score, and its offset there in steps."""
        position = np.clip((self.batch.scores - self.low) / self.step, 0, PUBLIC_CELLS)
        cell = position.astype(np.int64)
        position -= cell
        return cell, position

    @cached_property
    def _widening(self) -> FloatArray:
        """Variance that sharing each score between two nodes adds."""
        _, offset = self._places
        return np.asarray(self.step**2 * (offset * (1 - offset)).mean(axis=1))

    @cached_property
    def _keys(self) -> IntArray:
        """Cells of all samples in one ascending row: those of a sample lie above those of the sample before."""
        cell, _ = self._places
        return np.asarray((cell + (PUBLIC_CELLS + 2) * np.arange(len(cell))[:, None]).ravel())

    def sd(self, values: FloatArray) -> FloatArray:
        """Standard deviation of values of the scores, as widened by sharing each score between two nodes."""
        n = self.batch.size
        if n <= 1:
            return np.zeros(len(values))
        return np.asarray(np.sqrt((values.var(axis=1) + self._widening) * (n / (n - 1))))

    def silverman(self) -> FloatArray:
        """``min(sd, IQR / 1.34898) · (3n/4)^(-1/5)``."""
        sd = self.sd(self.batch.scores)
        factor = (0.75 * self.batch.size) ** -0.2
        h = np.minimum(sd, self._iqr() / 1.34898) * factor
        return np.asarray(np.maximum(h, self.step))

    def folded_scott(self) -> FloatArray:
        """``min(sd, 2 sd of folded scores) · n^(-1/5)``."""
        kept, s = self.batch.kept, self.batch.scores
        if "folded scott" not in kept:
            sd = np.minimum(self.sd(s), 2 * self.sd(np.minimum(s - self.low, self.high - s)))
            kept["folded scott"] = (np.maximum(sd * float(self.batch.size) ** -0.2, self.step),)
        return kept["folded scott"][0]

    def _iqr(self) -> FloatArray:
        """Interquartile range between nodes: a quantile is the node where the count passes it."""
        n = self.batch.size
        if n <= 1:
            return np.zeros(self.batch.n_samples)
        lower, upper = (self._quantile(q * (n - 1)) for q in (0.25, 0.75))
        return upper - lower

    def _quantile(self, position: float) -> FloatArray:
        below = int(position)
        a, b = self._order_statistic(below), self._order_statistic(min(below + 1, self.batch.size - 1))
        return a + (position - below) * (b - a)

    def _order_statistic(self, i: int) -> FloatArray:
        """Node at which the cumulative linear-binned count reaches i + ½.

        It is one of the two nodes around the i-th score, or a node next to them: the count at node c is the number of
        scores in cells below c and what the scores in cell c leave there.
        """
        cell, offset = self._places
        own = cell[:, i]
        at = np.arange(len(own)) * self.batch.size
        mine = self._keys[at + i]
        first, end = np.searchsorted(self._keys, mine), np.searchsorted(self._keys, mine, side="right")
        left = np.add.reduceat(np.append(1 - offset, 0.0), np.stack([first, end], axis=1).ravel())[::2]
        node = np.where(first - at + left >= i + 0.5, own, own + 1)
        return np.asarray(self.low + self.step * np.minimum(node, PUBLIC_CELLS))
