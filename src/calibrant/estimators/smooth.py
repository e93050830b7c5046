"""`Smooth`: smECE, smoothed residuals with the bandwidth that equals the resulting error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..data.types import FloatArray
from ..sums import GridMoments, Smoother
from ..sums.bandwidth import BandwidthRule
from ..sums.grid import share_out
from ..sums.smoothing import peak_of, smoothed, spectrum, trapezoid
from .base import Cells, GridEstimator, check_bandwidth
from .density import kernel_cells, on_cells, residual_power

#: Below this many grid steps a kernel does not reach the neighbouring nodes, and smoothing changes nothing.
_NARROWEST = 0.1
#: From this many grid steps on, the spectrum of a sampled Gaussian is that of the Gaussian itself, up to 1e-8.
_SAMPLED_WELL = 2.0
#: Cells of the finest grid on which many problems are solved together.
_FINEST = 1024
#: Numbers of nodes at which smoothed residuals are summed, with the smallest bandwidth that these resolve.
_RESOLUTIONS = ((512, 0.0085), (2048, 0.00215))
#: Samples below this size are read on the full grid.
_SMALL = 8
#: Numbers smoothed at a time.
_BLOCK = 1 << 17


@dataclass(frozen=True)
class Smooth(GridEstimator):
    r"""Smooth calibration error smECE: a kernel estimate that chooses its own bandwidth.

    .. math:: & \mathrm{smECE}_\sigma = \int_0^1 |\hat r_\sigma(t)|\,dt, \\
        & \hat r_\sigma(t) = \frac{\sum_i w_i\,(o_i - s_i)\,\tilde K_\sigma(t, s_i)}{\sum_i w_i}, \\
        & \mathrm{smECE} = \mathrm{smECE}_{\sigma^*} = \sigma^*

    with the Gaussian kernel of standard deviation σ mirrored at 0 and at 1. smECE_σ does not increase with σ, so there
    is exactly one σ* at which it equals σ.

    Parameters
    ----------
    bandwidth : "auto" or float, default "auto"
        The standard deviation σ; ``"auto"`` is the fixed point σ*.

    See Also
    --------
    calibrant.estimators.ResidualKernel : Smoothed residuals with other bandwidths.
    calibrant.estimators.Density : A ratio of densities.

    Notes
    -----
    Range [0, 1]. It measures the distance to the nearest calibrated predictor (it lies between half of that distance
    and twice its square root) and is continuous in the scores, unlike any binned error. It is *not* an
    estimate of the ECE: gaps are averaged over a width as large as the error itself. Bias relative to the ECE: downward
    where gaps of opposite signs lie within a few σ* of each other, however large n is (none if all gaps have the same
    sign); upward, from noise, about n^(-1/3) for a calibrated model.

    Confidence scores are also mirrored at 0 and 1, as published, not at 1/K. For p ≠ 1 gaps ``r̂_σ / f̂_σ``
    are averaged with the density f̂_σ at the bandwidth σ* of p = 1 (for p = 1 the result is the same). Scores are
    binned at a resolution of 1/4096. The interval and the curve keep this bandwidth fixed.
    Cost: O(n + I · G log G) with G = 4096 and I ≈ 8 steps of the search for σ*.

    References
    ----------
    Błasiok & Nakkiran (2023), *Smooth ECE: principled reliability diagrams via kernel smoothing*.

    Examples
    --------
    >>> import calibrant as cal
    >>> smooth = cal.estimators.Smooth()
    >>> round(cal.calibration_error([1, 1, 1], [0.5, 0.7, 0.9], estimator=smooth), 3)  # all gaps of one sign
    0.3
    >>> round(cal.calibration_error([1, 0], [0.2, 0.8], estimator=smooth), 3)
    0.39
    """

    _cells_are_atoms: ClassVar[bool] = True
    _cells_on_scores: ClassVar[bool] = True
    bandwidth: BandwidthRule = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, ("auto",)))

    def read(self, sums: GridMoments, norm: float) -> FloatArray:
        """``errorᵖ`` from counts on 1024 cells; on the full grid for small bandwidths or samples, or p = inf."""
        g = on_unit_interval(sums.rows)
        out: FloatArray = np.full(len(g), np.nan)
        known = np.flatnonzero(np.asarray(g.total) > 0)
        step = max(1, _BLOCK // (g.cells + 1))
        for a in range(0, known.size, step):
            some = known[a : a + step]
            out[some] = self._read_some(g[some], norm)
        return out.reshape(sums.shape)

    def _read_some(self, grid: GridMoments, norm: float) -> FloatArray:
        width = self._widths(grid, exact=bool(np.isinf(norm)))
        if norm == 1 and self.bandwidth == "auto":
            return width  # that is what a fixed point means
        out: FloatArray = np.empty(len(grid))
        whole = np.isinf(norm) | (width < _RESOLUTIONS[-1][1]) | (np.asarray(grid.effective_size) < _SMALL)
        for cells, some in ((min(_FINEST, grid.cells), ~whole), (grid.cells, whole)):
            if not some.any():
                continue
            part = grid[np.flatnonzero(some)].on(cells)
            w = np.sqrt(np.maximum(width[some] ** 2 - _spread(cells, grid.cells), 0.0))
            transform = spectrum(cells, np.maximum(w / part.step, _NARROWEST), "gaussian")
            unit = np.asarray(part.unit)[:, None]
            count = part.count * unit
            density, residual = smoothed(np.stack([count, part.positive * unit - count * part.nodes]), transform)
            if norm == 1:
                out[some] = np.abs(residual) @ trapezoid(cells) / count.sum(axis=-1)
                continue
            out[some] = residual_power(density, residual, None, peak_of(transform)[:, None], norm)
        return out

    def _cells(self, sums: GridMoments) -> Cells:
        """Cells of a coarse grid over [0, 1] with at least six cells per bandwidth, with their smoother."""
        grid = on_unit_interval(sums)
        return kernel_cells(grid, max(float(self._widths(grid.rows)[0]), grid.step), "gaussian", residual=True)

    def _held(self, sums: GridMoments) -> tuple[Smooth, GridMoments]:
        """The estimator with the bandwidth found, and the counts on the grid used for it."""
        grid = on_unit_interval(sums)
        h = max(float(self._widths(grid.rows)[0]), grid.step)
        return Smooth(h), on_cells(grid, h)

    def _widths(self, grid: GridMoments, *, exact: bool = False) -> FloatArray:
        """σ of every problem, (R,), from counts over [0, 1]."""
        if isinstance(self.bandwidth, float):
            return np.full(len(grid), self.bandwidth)
        return np.array([fixed_point(grid[i]) for i in range(len(grid))]) if exact else fixed_points(grid)


def on_unit_interval(sums: GridMoments) -> GridMoments:
    """Grid counts over [0, 1], shared linearly by its nodes; the grid itself if it spans [0, 1]."""
    if (sums.low, sums.high) == (0.0, 1.0):
        return sums
    position = np.clip(sums.nodes, 0, 1) * sums.cells
    cell = np.minimum(position.astype(np.intp), sums.cells - 1)
    share = position - cell
    count, positive = (share_out(cell, share, v, sums.cells) for v in (sums.count, sums.positive))
    return replace(sums, low=0.0, high=1.0, count=count, positive=positive, node=None)


def _spread(cells: int, finest: int) -> float:
    """Average variance added by sharing samples between the nodes of a coarser grid: √(1/6) steps."""
    return (1 / cells**2 - 1 / finest**2) / 6


def fixed_points(grid: GridMoments) -> FloatArray:
    """σ* with ``smECE_σ* = σ*`` of every problem, (R,), from counts over [0, 1].

    Smoothing shrinks ∫|r̂|, but not below |∫r̂|: σ* lies between the absolute mean residual and the mean absolute
    unsmoothed residual. The lowest frequencies determine it to 3e-6; if σ* or the sample is too small for that, the
    whole grid is searched.
    """
    from scipy.fft import dct

    fine = grid.dense
    total = np.where(np.asarray(grid.total) > 0, grid.total, 1.0)[:, None]
    residual = (fine.positive - fine.nodes * fine.count) / total
    low, high = np.abs(residual.sum(axis=-1)), np.abs(residual).sum(axis=-1)
    out: FloatArray = np.full(len(grid), np.nan)
    small = np.asarray(grid.effective_size) < _SMALL
    same = (high <= low * (1 + 1e-9)) & ~small
    out[same] = high[same]
    mirrored = residual.copy()
    mirrored[:, [0, -1]] *= 2
    coefficients = dct(mirrored, type=1, axis=-1)
    pending = np.flatnonzero(~same & ~small)
    for resolution, least in _RESOLUTIONS:
        if resolution < grid.cells:
            some = pending[high[pending] > least]
            found = _solve(coefficients[some, : resolution + 1], np.maximum(low[some], least), high[some])
            # A root at the lower end of the search may lie below it: it is left to the next resolution.
            known = (found > least * (1 + 1e-6)) | (low[some] >= least)
            out[some[known]] = found[known]
            pending = pending[np.isnan(out[pending])]
    for i in np.flatnonzero(np.isnan(out)).tolist():
        out[i] = fixed_point(grid[i])
    return out


def _solve(coefficients: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Roots σ in [low, high] of ``area(σ) = σ``, row by row: the secant method on the log scale, kept in its bracket.

    The area decreases in σ, so the root lies between σ and area(σ) for every σ.
    """
    from scipy.fft import idct

    cells = coefficients.shape[1] - 1
    frequency = np.pi * np.arange(cells + 1)
    bottom, top = np.log(low), np.log(high)
    x = np.clip(np.log(0.05), bottom, top)
    slope = np.full(x.shape, -1.3)
    last_x, last_excess = x, np.zeros(x.shape)
    rows = np.arange(len(x))
    for step in range(30):
        if not rows.size:
            break
        here = x[rows]
        variance = np.exp(2 * here)
        area = np.abs(
            idct(coefficients[rows] * np.exp(-0.5 * frequency**2 * variance[:, None]), type=1, axis=1, overwrite_x=True)
        )
        excess = np.log(area.sum(axis=1) - (area[:, 0] + area[:, -1]) / 2) - here
        bottom[rows] = np.maximum(bottom[rows], np.minimum(here, here + excess))
        top[rows] = np.maximum(np.minimum(top[rows], np.maximum(here, here + excess)), bottom[rows])
        if step:
            moved = here - last_x[rows]
            tilt = np.divide(excess - last_excess[rows], moved, out=slope[rows], where=moved != 0)
            slope[rows] = np.minimum(tilt, -0.9)  # the area falls, so the slope is below -1
        last_x, last_excess = last_x.copy(), last_excess.copy()
        last_x[rows], last_excess[rows] = here, excess
        x[rows] = np.clip(here - excess / slope[rows], bottom[rows], top[rows])
        rows = rows[np.abs(x[rows] - here) > 1e-9]
    return np.asarray(np.exp(x))


def fixed_point(grid: GridMoments) -> float:
    """σ* of one problem, on its whole grid. On the log scale the function to solve is nearly linear."""
    from scipy.fft import dct, idct
    from scipy.optimize import brentq

    residual = (grid.positive - grid.nodes * grid.count) / grid.total
    low, high = abs(float(residual.sum())), float(np.abs(residual).sum())
    narrowest = _NARROWEST * grid.step
    if high <= max(narrowest, low * (1 + 1e-9)):
        return high
    mirrored = residual.copy()
    mirrored[[0, -1]] *= 2
    coefficients = dct(mirrored, type=1)
    quadrature = trapezoid(grid.cells)
    frequency = np.pi * np.arange(grid.cells + 1)

    def excess(log_width: float) -> float:
        width = float(np.exp(log_width))
        if width < _SAMPLED_WELL * grid.step:
            smooth = Smoother(grid.cells, width / grid.step).smooth(residual)
        else:
            smooth = idct(coefficients * np.exp(-0.5 * (frequency * width) ** 2), type=1)
        return float(np.log(quadrature @ np.abs(smooth))) - log_width

    ends = float(np.log(max(low, narrowest))), float(np.log(high))
    values = [excess(end) for end in ends]
    # Rounding may put the root on an end of its bracket.
    if values[0] <= 0:
        return float(np.exp(ends[0]))
    if values[1] >= 0:
        return float(np.exp(ends[1]))
    return float(np.exp(brentq(excess, *ends, xtol=1e-12, rtol=1e-12)))
