"""`ResidualKernel`: smooth the residual once, over ranks or over scores, instead of taking a ratio of densities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._types import FloatArray
from ..density import BandwidthRule, GridMoments, Smoother, resolve_bandwidth
from ..density.bandwidth import RULES, folded_scott
from ..problem import Problem
from .adaptive import AdaptiveKernel
from .base import CellEstimator, Cells, speaks
from .density import check_bandwidth, check_kernel, kernel_cells, loo_width
from .left_out import WIDTHS, choose
from .norm import mean_power

#: Cells of the rank axis; the bandwidth is above one cell up to n = 10⁷, and one cell beyond.
RANK_CELLS = 256
_SPACES = ("rank", "score")


@dataclass(frozen=True)
class ResidualKernel(CellEstimator):
    r"""Calibration error from kernel-smoothed residuals ``o - s``.

    .. math:: \Big(\int f \,|d|^p\Big)^{1/p}, \qquad d = \frac{\sum_i K_h(\cdot, i)\,(o_i - s_i)}{\sum_i K_h(\cdot, i)}

    Parameters
    ----------
    bandwidth : "auto", rule, float or callable, default "auto"
        Standard deviation of the kernel. Over ranks (which run from 0 to 1): ``"auto"`` is
        ``0.5 · 0.9 · 0.289 · n^(-1/5)``, half of Silverman's rule for a uniform sample, or a number. Over scores:
        ``"auto"`` is Scott's rule with ``min(sd, 2 sd of the scores folded at the middle of the domain)`` (so that the
        distance of piles at the two ends is no scale), or what :class:`Density` takes. ``"loo"`` over either: the
        width among ``2^(-k/2)`` of the axis, k = 0 … 18, under which outcomes are likeliest, each predicted from the
        other samples. It is wide where a calibrated model gives no reason for a narrow one.
    space : {"rank", "score"}, default "rank"
        Axis along which residuals are neighbours. Ranks (ties share their mean rank) adapt to the density of the
        scores: the kernel is narrow where many samples lie.
    kernel : {"gaussian", "triweight", "epanechnikov", "cosine"}, default "gaussian"
    debias : bool, default False
        Take ``√max(d² - v, 0)`` for ``|d|`` at every point, with v the variance of d if the model were calibrated,
        ``v = Σ_i K_h(·, i)² s_i(1-s_i) / (Σ_i K_h(·, i))²``: less upward bias at small n, and noise still, since what
        is below 0 is cut pointwise. The reliability curve stays d.

    Notes
    -----
    The residual carries each sample's own score, so a calibrated model's smoothed residual is 0 on
    average whatever the bandwidth, while the ratio of densities of :class:`Density` leaks where the density
    changes within a bandwidth. Range [0, 1]. Bias: upward by noise; downward where the kernel averages gaps
    of both signs. Scores are taken at a resolution of 1/4096 of the domain. Over ranks its reliability curve is that of
    :class:`AdaptiveKernel`. Cost O(n + G log G).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # the truth is ∫|p² - p| dp = 1/6
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.ResidualKernel()) - 1 / 6) < 0.01)
    True
    """

    bandwidth: BandwidthRule = "auto"
    space: str = "rank"
    kernel: str = "gaussian"
    debias: bool = False

    def __post_init__(self) -> None:
        if self.space not in _SPACES:
            raise ValueError(f"space must be one of {', '.join(map(repr, _SPACES))}; got {self.space!r}")
        rules = ("auto", "loo") if self.space == "rank" else ("auto", *RULES, "loo")
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, rules))
        if self.space == "rank" and callable(self.bandwidth):
            raise ValueError("bandwidth over ranks must be 'auto', 'loo' or a number; a callable needs space='score'")
        check_kernel(self.kernel)
        if not isinstance(self.debias, (bool, np.bool_)):
            raise TypeError(f"debias must be True or False; got {self.debias!r}")

    @property
    def drawn_as(self) -> CellEstimator:
        """Residuals over scores with a bandwidth that adapts, as ranks do: ranks are no axis of a diagram."""
        return self if self.space == "score" else AdaptiveKernel()

    def summarize(self, problem: Problem) -> GridMoments:
        """Linear-binned counts of the problem's samples."""
        return GridMoments.of(problem)

    def power_of(self, summary: GridMoments, norm: float) -> float:
        """``errorᵖ`` from grid counts."""
        cells = self.cells(summary)
        if cells.smoother is None or not cells.count.any():
            return float("nan")
        present = speaks(cells.density, cells.smoother.peak, norm)
        gap = self._reduced(np.nan_to_num(cells.gap), cells, cells.density)
        return float(mean_power(gap, np.where(present, cells.density * cells.quadrature, 0.0), norm))

    def resampled_power(self, cells: Cells, density: FloatArray, outcome: FloatArray, norm: float) -> FloatArray:
        """``errorᵖ`` of resamples, debiased where this estimator is; see :meth:`CellEstimator.resampled_power`."""
        if not self.debias or cells.smoother is None:
            return super().resampled_power(cells, density, outcome, norm)
        smooth = cells.apply(outcome)
        present = speaks(density, cells.smoother.peak, norm)
        gap = np.divide(smooth, density, out=np.zeros_like(smooth), where=present)
        return mean_power(self._reduced(gap, cells, density), np.where(present, density * cells.quadrature, 0.0), norm)

    def _reduced(self, gap: FloatArray, cells: Cells, density: FloatArray) -> FloatArray:
        """``√max(gap² - v, 0)`` where this estimator is debiased; the noise of a resample is that of the sample."""
        if not self.debias or cells.smoother is None:
            return gap
        score = np.nan_to_num(cells.scores)
        noise = cells.smoother.smooth_squares(cells.count * score * (1 - score))
        known = density > 1e-12 * density.max(initial=0.0)
        variance = np.divide(noise, density**2, out=np.zeros_like(density), where=known)
        return np.sqrt(np.maximum(gap**2 - variance, 0.0))

    def cells(self, summary: GridMoments) -> Cells:
        """Cells of the score axis or of the rank axis, and how residuals are smoothed along it."""
        if self.space == "score":
            return kernel_cells(summary, self._width(summary), self.kernel, residual=True)
        n = summary.effective_size
        scale = n / summary.total if summary.total > 0 else 0.0
        count = summary.count * scale
        positive = summary.positive * scale
        total = max(count.sum(), np.finfo(float).tiny)
        rank = (np.cumsum(count) - count / 2) / total
        score_sum = summary.nodes * count
        axis = [_to_ranks(rank, values) for values in (count, positive, score_sum)]
        scores = np.divide(axis[2], axis[0], out=np.full(RANK_CELLS + 1, np.nan), where=axis[0] > 0)

        def make(h: float) -> Cells:
            smoother = smoother_of(max(h * RANK_CELLS, 1.0), self.kernel)
            return Cells(scores, axis[0], axis[1], smoother, smoother.quadrature, residual=True)

        if self.bandwidth == "loo":
            return make(choose(WIDTHS, make))
        return make(
            float(self.bandwidth)
            if isinstance(self.bandwidth, (int, float))
            else 0.5 * 0.9 * 0.289 * max(n, 1.0) ** -0.2
        )

    def _width(self, summary: GridMoments) -> float:
        """Bandwidth over scores."""
        if self.bandwidth == "loo":
            return loo_width(summary, self.kernel, residual=True)
        if self.bandwidth == "auto":
            return max(folded_scott(summary), summary.step)
        return resolve_bandwidth(self.bandwidth, summary)


@lru_cache(maxsize=64)
def smoother_of(width: float, kernel: str) -> Smoother:
    """A smoother of the rank axis, whose matrix is kept: samples of one size have one width."""
    return Smoother(RANK_CELLS, width, kernel)


def _to_ranks(rank: FloatArray, values: FloatArray) -> FloatArray:
    """Values at ranks in [0, 1], shared linearly by the two nearest nodes of the rank axis."""
    position = np.clip(rank, 0, 1) * RANK_CELLS
    cell = np.minimum(position.astype(np.intp), RANK_CELLS - 1)
    share = position - cell
    out = np.bincount(cell, values * (1 - share), minlength=RANK_CELLS + 1)
    return np.asarray(out + np.bincount(cell + 1, values * share, minlength=RANK_CELLS + 1))
