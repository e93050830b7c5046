"""`Smooth`: smECE, smoothed residuals with the bandwidth that equals the error it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import FloatArray
from ..density import GridMoments, Smoother
from ..density.bandwidth import BandwidthRule
from ..density.grid import GRID_CELLS
from ..problem import Problem
from .base import CellEstimator, Cells, speaks
from .density import check_bandwidth, kernel_cells
from .norm import mean_power

#: Below this many grid steps a kernel touches no neighbour: smoothing changes nothing.
_NARROWEST = 0.1
#: From this many grid steps on, a sampled Gaussian's spectrum is the Gaussian's own, up to 1e-8.
_SAMPLED_WELL = 2.0


@dataclass(frozen=True)
class Smooth(CellEstimator):
    r"""Smooth calibration error smECE: a kernel estimate that chooses its own bandwidth.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 |\hat r_\sigma(t)|\,dt, \qquad
        \hat r_\sigma(t) = \frac{\sum_i w_i\,(o_i - s_i)\,\tilde K_\sigma(t, s_i)}{\sum_i w_i}, \qquad
        \mathrm{smECE} = \mathrm{smECE}_{\sigma^*} = \sigma^*

    with the Gaussian kernel of standard deviation σ mirrored at 0 and at 1. smECE_σ does not rise with σ, so there is
    exactly one σ* at which it equals σ.

    Parameters
    ----------
    bandwidth : "auto" or float, default "auto"
        σ. ``"auto"`` is the fixed point σ*.

    Notes
    -----
    Range [0, 1]. It measures the distance to the nearest calibrated predictor (it lies between half of that distance
    and twice its square root), and it is continuous in the scores, which no binned error is. It is *not* an
    estimate of the ECE: gaps are averaged over a width as large as the error itself. Bias against the ECE: downward
    where gaps of both signs lie within a few σ* of each other, however large n is (none where all gaps have one
    sign); upward by noise, about n^(-1/3) for a calibrated model.

    Scores of a confidence are also mirrored at 0 and 1, as published, not at 1/K. For p ≠ 1 gaps ``r̂_σ / f̂_σ``
    are averaged with the density f̂_σ at the bandwidth σ* of p = 1 (for p = 1 that is the same number). Scores are
    taken at a resolution of 1/4096. The interval and the curve hold the bandwidth found.
    Cost: O(n + I · G log G) with G = 4096 and I ≈ 8 steps of the search for σ*.

    References
    ----------
    Błasiok & Nakkiran (2023), *Smooth ECE: principled reliability diagrams via kernel smoothing*.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.calibration_error([1, 1, 1], [0.5, 0.7, 0.9], estimator=cal.Smooth()), 3)  # all gaps of one sign
    0.3
    >>> round(cal.calibration_error([1, 0], [0.2, 0.8], estimator=cal.Smooth()), 3)
    0.39
    """

    bandwidth: BandwidthRule = "auto"

    def __post_init__(self) -> None:
        if callable(self.bandwidth):
            raise TypeError(f"bandwidth must be 'auto' or a number > 0; got {self.bandwidth!r}")
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, ("auto",)))

    def summarize(self, problem: Problem) -> GridMoments:
        """Linear-binned counts of the problem's samples."""
        return GridMoments.of(problem)

    def power_of(self, summary: GridMoments, norm: float) -> float:
        """``errorᵖ`` from grid counts, on the full grid."""
        grid = on_unit_interval(summary)
        if not grid.total > 0:
            return float("nan")
        smoother = Smoother(grid.cells, max(self._width(grid) / grid.step, _NARROWEST))
        density, residual = smoother.smooth(np.stack([grid.count, _residuals(grid)]))
        if norm == 1:
            return float(smoother.quadrature @ np.abs(residual) / grid.total)
        present = speaks(density * (grid.effective_size / grid.total), smoother.peak, norm)
        gap = np.divide(residual, density, out=np.zeros_like(density), where=present)
        return float(mean_power(gap, np.where(present, density * smoother.quadrature, 0.0), norm))

    def cells(self, summary: GridMoments) -> Cells:
        """Coarse grid over [0, 1] with at least six cells a bandwidth, and how it is smoothed."""
        grid = on_unit_interval(summary)
        return kernel_cells(grid, max(self._width(grid), grid.step), "gaussian", residual=True)

    def _width(self, grid: GridMoments) -> float:
        return self.bandwidth if isinstance(self.bandwidth, float) else fixed_point(grid)


def on_unit_interval(summary: GridMoments) -> GridMoments:
    """Grid counts over [0, 1], shared linearly by its nodes; the grid itself when it spans that."""
    if (summary.low, summary.high) == (0.0, 1.0):
        return summary
    position = np.clip(summary.nodes, 0, 1) * GRID_CELLS
    cell = np.minimum(position.astype(np.intp), GRID_CELLS - 1)
    share = position - cell

    def move(values: FloatArray) -> FloatArray:
        out = np.bincount(cell, values * (1 - share), minlength=GRID_CELLS + 1)
        return np.asarray(out + np.bincount(cell + 1, values * share, minlength=GRID_CELLS + 1))

    return GridMoments(
        0.0,
        1.0,
        move(summary.count),
        move(summary.positive),
        summary.total,
        summary.squares,
        summary.n_samples,
        summary.integral,
    )


def _residuals(grid: GridMoments) -> FloatArray:
    return np.asarray(grid.positive - grid.nodes * grid.count)


def fixed_point(grid: GridMoments) -> float:
    """σ* with ``smECE_σ* = σ*``, from grid counts over [0, 1] with some weight.

    Smoothing shrinks ∫|r̂|, and never below |∫r̂|: σ* lies between the size of the mean residual and the
    mean size of unsmoothed ones. On the log scale the function to solve is nearly a straight line.
    """
    from scipy.fft import dct, idct
    from scipy.optimize import brentq

    residual = _residuals(grid) / grid.total
    low, high = abs(float(residual.sum())), float(np.abs(residual).sum())
    narrowest = _NARROWEST * grid.step
    if high <= max(narrowest, low * (1 + 1e-9)):
        return high
    mirrored = residual.copy()
    mirrored[[0, -1]] *= 2
    coefficients = dct(mirrored, type=1)
    quadrature = Smoother(grid.cells, 1.0).quadrature
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
