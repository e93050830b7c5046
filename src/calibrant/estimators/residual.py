"""`ResidualKernel`: residuals smoothed once, over ranks or over scores, instead of a ratio of densities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..data.checks import check_bool, check_choice
from ..data.types import AnyArray, FloatArray
from ..sums import KERNELS, BandwidthRule, GridMoments, RankMoments, Smoother, resolve_bandwidth
from ..sums.bandwidth import RULES, one_by_one
from ..sums.rank_axis import RANK_CELLS
from ..sums.smoothing import by_cells, peak_of, smoothed, spectrum
from .adaptive import AdaptiveKernel
from .base import CellEstimator, Cells, GridEstimator, ResampleInputs, check_bandwidth
from .density import (
    CELLS_PER_BANDWIDTH,
    COARSEST,
    WIDTHS,
    choose,
    kernel_cells,
    loo_width,
    on_cells,
    residual_power,
)

#: Half of Silverman's rule for a uniform sample, at size 1.
_AUTO = 0.5 * 0.9 * 0.289


@dataclass(frozen=True)
class ResidualKernel(GridEstimator):
    r"""Calibration error from kernel-smoothed residuals ``o - s``.

    .. math:: \Big(\int f \,|d|^p\Big)^{1/p}, \qquad d = \frac{\sum_i K_h(\cdot, i)\,(o_i - s_i)}{\sum_i K_h(\cdot, i)}

    Parameters
    ----------
    bandwidth : "auto", rule, float or callable, default "auto"
        Standard deviation of the kernel. Over ranks (which run from 0 to 1): ``"auto"`` is
        ``0.5 · 0.9 · 0.289 · n^(-1/5)``, half of Silverman's rule for a uniform sample, or a number. Over scores:
        ``"auto"`` is Scott's rule with ``min(sd, 2 sd of the scores folded at the middle of the domain)`` (so that the
        distance between piles at the two ends does not set the scale), or any value that :class:`Density` accepts.
        ``"loo"`` for either axis: the width among ``2^(-k/2)`` of the axis, k = 0 … 18, with the largest leave-one-out
        likelihood of the outcomes; it is wide if a calibrated model gives no reason for a narrow one.
    space : {"rank", "score"}, default "rank"
        Axis along which residuals are smoothed. Ranks (ties share their mean rank) adapt to the density of the
        scores: the kernel is narrow where samples are dense.
    kernel : {"gaussian", "triweight", "epanechnikov", "cosine"}, default "gaussian"
        Shape of the kernel.
    debias : bool, default False
        Replace ``|d|`` by ``√max(d² - v, 0)`` at every point, with v the variance of d if the model were calibrated,
        ``v = Σ_i K_h(·, i)² s_i(1-s_i) / (Σ_i K_h(·, i))²``: less upward bias at small n, but some remains, since
        negative values are clipped pointwise. The reliability curve remains d.

    See Also
    --------
    calibrant.estimators.AdaptiveKernel : One bandwidth per score.
    calibrant.estimators.Density : A ratio of densities.

    Notes
    -----
    The residual uses each sample's own score, so the smoothed residual of a calibrated model is 0 on
    average whatever the bandwidth, whereas the ratio of densities of :class:`Density` leaks where the density
    changes within a bandwidth. Range [0, 1]. Bias: upward, from noise; downward where the kernel averages gaps
    of opposite signs. Scores are binned at a resolution of 1/4096 of the domain. Over ranks its reliability curve is
    that of :class:`AdaptiveKernel`. Cost O(n + G log G).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # true error: ∫|p² - p| dp = 1/6
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.estimators.ResidualKernel()) - 1 / 6) < 0.01)
    True
    """

    _cells_are_atoms: ClassVar[bool] = True
    bandwidth: BandwidthRule = "auto"
    space: str = "rank"
    kernel: str = "gaussian"
    debias: bool = False

    def __post_init__(self) -> None:
        check_choice("space", self.space, ("rank", "score"))
        rules = ("auto", "loo") if self.space == "rank" else ("auto", *RULES, "loo")
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, rules, function=True))
        if self.space == "rank" and callable(self.bandwidth):
            raise ValueError("bandwidth over ranks must be 'auto', 'loo' or a number; a callable needs space='score'")
        check_choice("kernel", self.kernel, KERNELS)
        check_bool("debias", self.debias)

    @property
    def _drawn_as(self) -> CellEstimator:
        """For ranks, residuals over scores with an adaptive bandwidth, since a diagram has no axis of ranks."""
        return self if self.space == "score" else AdaptiveKernel()

    def read(self, sums: GridMoments | RankMoments, norm: float) -> FloatArray:
        """``errorᵖ`` from grid counts, or from counts on the rank axis."""
        if self.space == "rank":
            return self._read_ranks(sums.ranked, norm)
        if isinstance(sums, RankMoments):
            raise TypeError(f"{self!r} reads counts on a grid of scores; got counts on ranks")
        return self._read_scores(sums, norm)

    def _read_ranks(self, axis: RankMoments, norm: float) -> FloatArray:
        """``errorᵖ`` from residuals smoothed over ranks; each sample size has its own bandwidth and matrix."""
        shape = axis.count.shape[:-1]
        count, positive, score = (v.reshape(-1, RANK_CELLS + 1) for v in (axis.count, axis.positive, axis.score))
        widths = np.reshape(self._rank_widths(axis), -1)
        out: FloatArray = np.full(widths.shape, np.nan)
        for width in np.unique(widths):
            some = np.flatnonzero((widths == width) & count.any(axis=-1))
            smoother = smoother_of(float(width), self.kernel)
            residual = (positive[some] - score[some]) @ smoother.matrix
            if norm == 1 and not self.debias:  # smoothing keeps the mass, and the density cancels
                out[some] = np.abs(residual) @ smoother.quadrature / count[some].sum(axis=-1)
                continue
            density = count[some] @ smoother.matrix
            noise = None
            if self.debias:
                mean = np.divide(score[some], count[some], out=np.zeros(density.shape), where=count[some] > 0)
                noise = (count[some] * mean * (1 - mean)) @ smoother.squares
            out[some] = residual_power(density, residual, noise, smoother.peak, norm)
        return out.reshape(shape)

    def _read_scores(self, sums: GridMoments, norm: float) -> FloatArray:
        """``errorᵖ`` from residuals smoothed over scores, on the coarsest grid with six cells per bandwidth."""
        g = sums.rows
        out: FloatArray = np.empty(len(g))
        for some, part, width, density, residual, transform in self._smoothed(g):
            noise = None
            if self.debias:
                mass = part.count * np.asarray(part.unit)[:, None]
                variance = mass * part.nodes * (1 - part.nodes)
                noise = np.stack(
                    [
                        Smoother(part.cells, float(w), self.kernel).smooth_squares(v)
                        for w, v in zip(width, variance, strict=True)
                    ]
                )
            out[some] = residual_power(np.maximum(density, 0.0), residual, noise, peak_of(transform)[:, None], norm)
        out[~g.count.any(axis=-1)] = np.nan
        return out.reshape(sums.shape)

    def _smoothed(
        self, g: GridMoments
    ) -> Iterator[tuple[AnyArray, GridMoments, FloatArray, FloatArray, FloatArray, FloatArray]]:
        """Parts of the problems: counts on a grid, bandwidths in steps, smoothed counts and residuals, transforms."""
        h = np.reshape(self._widths(g), -1)
        for cells, some in by_cells(CELLS_PER_BANDWIDTH * (g.high - g.low) / h, COARSEST, g.cells):
            part = g[some].on(cells)
            unit = np.asarray(part.unit)[:, None]
            width = np.maximum(h[some] / part.step, 0.5)
            transform = spectrum(cells, width, self.kernel)
            count = part.count * unit
            density, residual = smoothed(np.stack([count, part.positive * unit - count * part.nodes]), transform)
            yield some, part, width, density, residual, transform

    def _gaps(self, sums: GridMoments, at: FloatArray) -> FloatArray:
        """Smoothed residuals over smoothed counts, of problems side by side (R,) at scores (R, m); 0 without counts."""
        g = sums.rows
        out = np.zeros((len(g), at.shape[-1]))
        for some, part, _, density, residual, _ in self._smoothed(g):
            present = density > 1e-12 * density.max(axis=-1, keepdims=True, initial=0.0)
            gap = np.divide(residual, density, out=np.zeros(density.shape), where=present)
            position = np.clip((at[some] - part.low) / part.step, 0, part.cells)
            cell = np.minimum(position.astype(np.intp), part.cells - 1)
            low, high = np.take_along_axis(gap, cell, -1), np.take_along_axis(gap, cell + 1, -1)
            out[some] = low + (position - cell) * (high - low)
        return out

    def _cells(self, sums: GridMoments) -> Cells:
        """Cells of the score axis or of the rank axis, with the smoother of residuals along it."""
        if self.space == "score":
            return kernel_cells(sums, float(self._widths(sums)), self.kernel, residual=True)
        axis = sums.ranked
        width = np.unique(self._rank_widths(axis))
        if width.size > 1:
            raise ValueError(f"{self!r} has cells for problems of one size; got bandwidths of {width / RANK_CELLS}")
        return self._on_axis(axis, smoother_of(float(width[0]), self.kernel))

    def _held(self, sums: GridMoments) -> tuple[ResidualKernel, GridMoments]:
        """The estimator with the bandwidth over scores found, and the counts on the grid used for it."""
        h = float(self._widths(sums))
        return replace(self, bandwidth=h), on_cells(sums, h)

    def _held_together(self, sums: GridMoments | RankMoments, problems: int, most: int) -> Iterator[ResampleInputs]:
        """For ranks, problems with the same bandwidth together."""
        if self.space == "score":
            yield from super()._held_together(sums, problems, most)
            return
        axis = sums.ranked
        widths = self._rank_widths(axis)
        step = max(1, most // RANK_CELLS)
        for width in np.unique(widths).tolist():
            alike = np.flatnonzero(widths == width)
            reader = replace(self, bandwidth=width / RANK_CELLS)
            for a in range(0, len(alike), step):
                yield ResampleInputs(alike[a : a + step], reader, axis[alike[a : a + step]])

    def _widths(self, sums: GridMoments) -> FloatArray:
        """Bandwidth over scores of each problem, (…)."""
        if self.bandwidth == "loo":
            return one_by_one(sums, lambda one: loo_width(one, self.kernel, residual=True))
        return resolve_bandwidth("folded" if self.bandwidth == "auto" else self.bandwidth, sums)

    def _rank_widths(self, axis: RankMoments) -> FloatArray:
        """Bandwidth over ranks of each problem, in cells, (…): at least one."""
        size = np.maximum(np.asarray(axis.size, dtype=np.float64), 1.0)
        if self.bandwidth == "loo":
            flat = [axis] if size.ndim == 0 else [axis[i] for i in range(size.size)]
            h = np.array([self._likeliest(one) for one in flat]).reshape(size.shape)
        else:
            h = np.full(size.shape, self.bandwidth) if isinstance(self.bandwidth, float) else _AUTO * size**-0.2
        return np.asarray(np.maximum(h * RANK_CELLS, 1.0))

    def _likeliest(self, axis: RankMoments) -> float:
        """Bandwidth over ranks with the largest leave-one-out likelihood of the outcomes."""
        return choose(WIDTHS, lambda h: self._on_axis(axis, smoother_of(max(h * RANK_CELLS, 1.0), self.kernel)))

    @staticmethod
    def _on_axis(axis: RankMoments, smoother: Smoother) -> Cells:
        scores, count, positive = axis.atoms
        return Cells(scores, count, positive, smoother, smoother.quadrature, residual=True)


@lru_cache(maxsize=64)
def smoother_of(width: float, kernel: str) -> Smoother:
    """Smoother of the rank axis, cached with its matrix: samples of the same size have the same width."""
    return Smoother(RANK_CELLS, width, kernel)
