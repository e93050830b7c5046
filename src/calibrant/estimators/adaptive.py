"""`AdaptiveKernel`: residuals smoothed with a bandwidth that adapts to the density of the samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_number, check_positive
from ..data.types import AnyArray, FloatArray
from ..sums import GridMoments, Smoother
from ..sums.bandwidth import folded_scott
from ..sums.grid import GRID_CELLS
from ..sums.smoothing import peak_of, spectrum
from .axis_counts import shared_counts
from .base import CellEstimator, Cells, GridEstimator
from .density import choose, residual_power
from .norm import mean_power

#: Cells of the score axis, and number of kernels tried, from the narrowest to the widest.
CELLS = 256
STEPS = 8
#: Numbers smoothed at a time.
_BLOCK = 1 << 16
#: Candidates of ``wanted="loo"``, the smoothest first.
_WANTED = tuple(7.5 * 2.0**k for k in range(7, -1, -1))


@dataclass(frozen=True)
class AdaptiveKernel(GridEstimator):
    r"""Calibration error from residuals smoothed with one bandwidth per score; intended for curves.

    .. math:: d(s) = \frac{\sum_i K_{h_i}(s - s_i)\,(o_i - s_i)}{\sum_i K_{h_i}(s - s_i)}

    A single bandwidth is dominated by the bulk of the scores. If 99 % of them lie near 0, as for one class of a
    hundred, it shows the noise of single samples elsewhere, and a wider one smears the bulk over its neighbours. Here
    a sample's bandwidth starts at Scott's rule for folded scores and grows until the effective number of samples in
    the kernel at its score reaches ``wanted``, up to ``widest``: it stays narrow in the bulk, which does not leak.

    Parameters
    ----------
    wanted : float or "loo", default 60
        Target effective number of samples in a kernel, at most a sixth of all samples. ``"loo"``: the candidate among
        7.5, 15, … 960 with the largest leave-one-out likelihood of the outcomes.
    widest : float, default 0.1
        Largest standard deviation of a kernel, as a fraction of the domain.

    See Also
    --------
    calibrant.estimators.ResidualKernel : One bandwidth for all scores.
    calibrant.reliability_curve : The curve (``estimator="adaptive"``).

    Notes
    -----
    Cost O(n + G² · R) with G = 256 cells and R resamples. Source: Abramson (1982), *On bandwidth variation in kernel
    estimates*, for sample-specific bandwidths.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> curve = cal.reliability_curve(rng.random(5000) < p**2, p, estimator=cal.estimators.AdaptiveKernel())
    >>> bool(abs(curve.at(0.5).observed[0] - 0.25) < 0.06)
    True
    """

    _cells_are_atoms: ClassVar[bool] = True
    _cells_on_scores: ClassVar[bool] = True
    wanted: float | str = 60.0
    widest: float = 0.1

    def __post_init__(self) -> None:
        if not (isinstance(self.wanted, str) and self.wanted == "loo"):
            check_positive("wanted", self.wanted, instead="'loo' or ")
        check_number("widest", self.widest, least=1e-6, most=1)

    def read(self, sums: GridMoments, norm: float) -> FloatArray:
        """``errorᵖ`` of the smoothed residuals."""
        g = sums.rows
        out: FloatArray = np.full(len(g), np.nan)
        known = np.flatnonzero(g.count.any(axis=-1))
        if np.isinf(norm) or isinstance(self.wanted, str):  # a maximum reads single cells, and a search one problem
            for i in known.tolist():
                cells = self._cells(g[i])
                out[i] = mean_power(np.nan_to_num(cells.gap), cells.density * cells.quadrature, norm)
        else:
            step = max(1, _BLOCK // (CELLS + 1))
            for a in range(0, known.size, step):
                some = known[a : a + step]
                out[some] = self._read_some(g[some], norm)
        return out.reshape(sums.shape)

    def _read_some(self, sums: GridMoments, norm: float) -> FloatArray:
        """:meth:`read` for several problems: kernels are applied as spectra, with a single inverse transform."""
        from scipy.fft import dct, idct

        start = folded_scott(sums)
        grid = sums.on(min(CELLS, sums.cells))
        unit = np.asarray(grid.unit)[:, None]
        count, cells = grid.count * unit, grid.cells
        residual = grid.positive * unit - count * grid.nodes
        widest = self.widest * cells
        narrowest = np.minimum(np.maximum(start / grid.step, 0.5), widest)
        wanted = np.minimum(float(self.wanted), count.sum(axis=-1) / 6)[:, None]

        def transformed(values: FloatArray) -> FloatArray:
            mirrored = values.copy()
            mirrored[..., [0, -1]] *= 2
            return np.asarray(dct(mirrored, type=1, axis=-1, overwrite_x=True))

        parts = np.stack([count, residual])
        whole = np.zeros(parts.shape)
        counted = transformed(count)
        pending: AnyArray = np.ones(count.shape, dtype=bool)
        for step in range(STEPS):
            kernel = spectrum(cells, narrowest * (widest / narrowest) ** (step / (STEPS - 1)), "gaussian")
            here = pending
            if step < STEPS - 1:
                short = idct(counted * kernel, type=1, axis=-1) < wanted * peak_of(kernel)[:, None]
                here, pending = pending & ~short, pending & short
            whole += transformed(parts * here) * kernel
            if not pending.any():
                break
        density, smooth = idct(whole, type=1, axis=-1, overwrite_x=True)
        return residual_power(np.maximum(density, 0.0), smooth, None, 0.0, norm)

    def _cells(self, sums: Any) -> Cells:
        """Cells of the score axis, with the smoother of residuals along it."""
        sums = as_grid(sums)
        return self._cells_of(sums, self._wanted(sums))

    def _wanted(self, sums: GridMoments) -> float:
        """Target effective number of samples at a score."""
        return choose(_WANTED, lambda w: self._cells_of(sums, w)) if isinstance(self.wanted, str) else self.wanted

    def _cells_of(self, sums: GridMoments, wanted: float) -> Cells:
        grid = sums.on(min(CELLS, sums.cells))
        scores, count, positive = grid.atoms
        smoother = self._smoother(grid, count, float(folded_scott(sums)), wanted)
        return AdaptiveCells(scores, count, positive, smoother, smoother.quadrature, residual=True)

    def _held(self, sums: GridMoments) -> tuple[CellEstimator, GridMoments]:
        """Counts on the cells are resampled; bandwidths are recomputed for every sample."""
        return replace(self, wanted=self._wanted(sums)), sums.on(min(CELLS, sums.cells))

    def _smoother(self, grid: GridMoments, count: FloatArray, start: float, wanted: float) -> VaryingSmoother:
        """Smoothing matrix; each row is from the narrowest kernel with enough samples."""
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
        """Smoothed counts per cell (last axis)."""
        return self(counts)

    @property
    def diagonal(self) -> FloatArray:
        """Weight of a sample at its own cell."""
        return np.asarray(np.diagonal(self.rows))

    @cached_property
    def shares(self) -> FloatArray:
        """Share of a sample in cell i that counts at cell j: 1 at its own, 0 beyond one standard deviation."""
        i = np.arange(self.cells + 1)
        near = np.abs(i[:, None] - i[None, :]) <= np.maximum(self.widths, 1.0)[:, None]
        return np.where(near, self.rows / self.peaks[:, None], 0.0)


@dataclass(frozen=True, eq=False)
class AdaptiveCells(Cells):
    """Cells with kernels of different heights."""

    @cached_property
    def local_size(self) -> FloatArray:
        """Effective number of samples at a cell: ``Σ K_i(s - s_i) / K_i(0)`` within one standard deviation."""
        if not isinstance(self.smoother, VaryingSmoother):
            return super().local_size
        return np.asarray(np.maximum(self.count @ self.smoother.shares, 0.0))


def as_grid(sums: Any) -> GridMoments:
    """Counts of one problem on the regular grid used for curves, from any sums with atoms."""
    if isinstance(sums, GridMoments):
        return sums
    scores, count, positive = sums.atoms
    used = count > 0
    low, high = getattr(sums, "domain", (0.0, 1.0))
    counts, ones = (shared_counts(scores[used], v[used], (low, high), GRID_CELLS) for v in (count, positive))
    total = float(count.sum())
    return GridMoments(low, high, counts, ones, total, total, sums.n_samples)
