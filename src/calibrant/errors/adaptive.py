"""`AdaptiveKernel`: residuals smoothed narrowly where samples are many and widely where they are few."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._types import FloatArray
from ..density import GridMoments, Smoother
from ..density.bandwidth import folded_scott
from ..problem import Problem
from .base import CellEstimator, Cells
from .left_out import choose
from .norm import mean_power

#: Cells of the score axis, and kernels that are tried from the narrowest to the widest.
CELLS = 256
STEPS = 8
#: Numbers that ``wanted="loo"`` tries, the smoothest first.
_WANTED = tuple(7.5 * 2.0**k for k in range(7, -1, -1))


@dataclass(frozen=True)
class AdaptiveKernel(CellEstimator):
    r"""Smoothed residuals with a bandwidth of its own for every score that occurs; made for drawing.

    .. math:: d(s) = \frac{\sum_i K_{h_i}(s - s_i)\,(o_i - s_i)}{\sum_i K_{h_i}(s - s_i)}

    A single bandwidth follows the bulk of the scores. Where 99 % of them lie near 0, as for one class of a
    hundred, it shows the noise of single samples elsewhere, and a wider one smears the bulk over its neighbours. Here
    a sample's bandwidth starts at Scott's rule for folded scores and grows until ``wanted`` samples speak at its
    score, but not beyond ``widest``: a bulk stays narrow and does not leak.

    Parameters
    ----------
    wanted : float or "loo", default 60
        Samples that should speak at a score; a sixth of all where that is less. ``"loo"``: the number among
        7.5, 15, … 960 under which outcomes are likeliest, each predicted from the other samples.
    widest : float, default 0.1
        Largest standard deviation of a kernel, as a share of the domain.

    Notes
    -----
    Cost O(n + G² · R) with G = 256 cells and R resamples. Source: Abramson (1982), *On bandwidth variation in kernel
    estimates*, for bandwidths that belong to samples.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> curve = cal.reliability_curve(rng.random(5000) < p**2, p, method=cal.AdaptiveKernel())
    >>> bool(abs(curve.at(0.5).observed[0] - 0.25) < 0.06)
    True
    """

    wanted: float | str = 60.0
    widest: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.wanted, str):
            if self.wanted != "loo":
                raise ValueError(f"wanted must be a number > 0 or 'loo'; got {self.wanted!r}")
        elif not self.wanted > 0:
            raise ValueError(f"wanted must be a number > 0 or 'loo'; got {self.wanted!r}")
        if not 0 < self.widest <= 1:
            raise ValueError(f"widest must lie in (0, 1]; got {self.widest!r}")

    def summarize(self, problem: Problem) -> GridMoments:
        """Linear-binned counts of the problem's samples."""
        return GridMoments.of(problem)

    def power_of(self, summary: GridMoments, norm: float) -> float:
        """``errorᵖ`` of the smoothed residuals."""
        cells = self.cells(summary)
        if not cells.count.any():
            return float("nan")
        return float(mean_power(np.nan_to_num(cells.gap), cells.density * cells.quadrature, norm))

    def cells(self, summary: GridMoments) -> Cells:
        """Cells of the score axis and how residuals are smoothed along it."""
        grid = summary.coarsen(max(1, summary.cells // CELLS))
        scale = grid.effective_size / grid.total if grid.total > 0 else 0.0
        count, positive = grid.count * scale, grid.positive * scale
        start = folded_scott(summary)

        def make(wanted: float) -> Cells:
            smoother = self._smoother(grid, count, start, wanted)
            return AdaptiveCells(grid.nodes, count, positive, smoother, smoother.quadrature, residual=True)

        return make(choose(_WANTED, make) if isinstance(self.wanted, str) else self.wanted)

    def _smoother(self, grid: GridMoments, count: FloatArray, start: float, wanted: float) -> VaryingSmoother:
        """Rows of the smoothing matrix, each from the narrowest kernel under which enough samples speak."""
        widest = self.widest * grid.cells
        narrowest = min(max(start / grid.step, 0.5), widest)
        wanted = min(wanted, float(count.sum()) / 6)
        rows: FloatArray = np.empty((grid.cells + 1, grid.cells + 1))
        peaks: FloatArray = np.empty(grid.cells + 1)
        widths: FloatArray = np.empty(grid.cells + 1)
        pending = np.ones(grid.cells + 1, dtype=bool)
        for width in np.geomspace(narrowest, widest, STEPS):
            smoother = Smoother(grid.cells, float(width))
            rows[pending] = smoother.matrix[pending]
            peaks[pending] = smoother.peak
            widths[pending] = width
            pending &= count @ smoother.matrix / smoother.peak < wanted
            if not pending.any():
                break
        return VaryingSmoother(grid.cells, narrowest, rows=rows, peaks=peaks, widths=widths)


@dataclass(frozen=True, eq=False)
class VaryingSmoother(Smoother):
    """Smoothing by a matrix whose row i is the kernel of cell i."""

    rows: FloatArray = field(kw_only=True)
    peaks: FloatArray = field(kw_only=True)
    widths: FloatArray = field(kw_only=True)

    def __call__(self, counts: FloatArray) -> FloatArray:
        """:meth:`smooth`."""
        return np.asarray(counts @ self.rows)

    def smooth(self, counts: FloatArray) -> FloatArray:
        """Smoothed counts a cell (last axis)."""
        return self(counts)

    @property
    def diagonal(self) -> FloatArray:
        """Weight of a sample at its own cell."""
        return np.asarray(np.diagonal(self.rows))

    @cached_property
    def shares(self) -> FloatArray:
        """Part of a sample of cell i that speaks at cell j: 1 at its own, 0 beyond one standard deviation."""
        i = np.arange(self.cells + 1)
        near = np.abs(i[:, None] - i[None, :]) <= np.maximum(self.widths, 1.0)[:, None]
        return np.where(near, self.rows / self.peaks[:, None], 0.0)


@dataclass(frozen=True, eq=False)
class AdaptiveCells(Cells):
    """Cells of which each has a kernel of its own height."""

    @cached_property
    def local_size(self) -> FloatArray:
        """Samples that speak at a cell: ``Σ K_i(s - s_i) / K_i(0)`` within one standard deviation."""
        if not isinstance(self.smoother, VaryingSmoother):
            return super().local_size
        return np.asarray(np.maximum(self.count @ self.smoother.shares, 0.0))
