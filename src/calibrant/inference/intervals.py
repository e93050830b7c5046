r"""Confidence intervals for a calibration error by test inversion along a path from perfect calibration.

Why not the percentile bootstrap: a plug-in calibration error averages absolute gaps, so noise adds to it, and
resampling adds the noise a second time; a calibrated model's percentile interval excludes 0 for every n. The
basic ("pivotal") bootstrap overshoots the other way.

What is done instead. The estimated gaps :math:`\hat d` define a family of truths: at scale λ a sample with
score s has outcome probability :math:`s + \lambda \hat d(s)`; λ = 0 is perfect calibration. The true error at
scale λ is known: it is λ times that of :math:`\hat d`. New samples are drawn at every λ (Poisson counts a cell,
normal outcomes), the estimator is applied with all its bias, and the interval holds the true errors of
all λ at which the value actually observed is not extreme. So the interval starts at exactly 0 whenever
the data are compatible with calibration, its bias is the estimator's own and is inverted, and it may lie below the
estimate. ``corrected`` is the median-unbiased value (λ whose median draw is the observed value).

Approximations: the shape of the gaps is taken from the data; outcomes within a cell share one probability; classes
of a one-vs-rest problem are drawn independently and the spread of their mean is widened by
:math:`\sqrt{1 + 0.876/(K-1)}`, the factor for exchangeable classes under calibration (for K = 2 the two
problems are each other's mirror image and one stands for both).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._types import FloatArray, Interval
from ..errors.base import CellEstimator, Cells, speaks
from ..errors.norm import combine, mean_power

#: Scales at which truths are simulated; between them quantiles are interpolated.
_SCALES = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0])
Draw = Callable[[float], FloatArray]


def cell_draws(
    estimator: CellEstimator, cells: Cells, norm: float, n_resamples: int, rng: np.random.Generator
) -> tuple[Draw, float]:
    """Sampler of ``errorᵖ`` at a scale, with common random numbers, and the true ``errorᵖ`` at scale 1."""
    count = rng.poisson(np.maximum(cells.count, 0), size=(n_resamples, cells.count.size)).astype(np.float64)
    density = cells.apply(count)
    noise = rng.standard_normal(count.shape) * np.sqrt(count)
    scores = np.nan_to_num(cells.scores)
    gap = np.nan_to_num(cells.gap)

    def draw(scale: float) -> FloatArray:
        chance = np.clip(scores + scale * gap, 0, 1)
        positive = count * chance + np.sqrt(chance * (1 - chance)) * noise
        return estimator.resampled_power(cells, density, cells.outcome(positive, count), norm)

    # What the estimator would read from these gaps without noise: smoothing blurs them once more, and only
    # noise is to be inverted, not the blur.
    blurred = np.divide(cells.apply(cells.count * gap), cells.density, out=np.zeros_like(gap), where=cells.density > 0)
    present = cells.density > 0 if cells.smoother is None else speaks(cells.density, cells.smoother.peak, norm)
    return draw, float(mean_power(blurred, np.where(present, cells.density * cells.quadrature, 0.0), norm))


def invert(
    observed: float,
    draws: Sequence[Draw],
    truths: Sequence[float],
    shares: Sequence[float],
    *,
    norm: float,
    average: str,
    level: float,
    n: float,
    dependent: bool = False,
    largest: float = 1.0,
) -> tuple[Interval, float]:
    """Interval and median-unbiased value for the combined error of several problems.

    ``draws[i](scale)`` gives draws of the i-th problem's ``errorᵖ``; ``truths[i]`` its true value at scale 1.
    """
    from scipy.special import ndtri

    if np.isnan(observed):
        return Interval(float("nan"), float("nan")), float("nan")
    truth = combine(truths, shares, norm, average)
    tail = (1 - level) / 2
    if not truth > 0:
        # Not one deviation in n samples: the exact binomial bound.
        return Interval(0.0, float(1 - tail ** (1 / max(n, 1.0)))), 0.0
    widen = np.sqrt(1 + 0.876 / (len(draws) - 1)) if dependent and len(draws) > 1 else 1.0
    table = np.empty((3, _SCALES.size))
    for i, scale in enumerate(_SCALES):
        sample = _combined([d(scale) for d in draws], shares, norm, average)
        sample = sample[~np.isnan(sample)]
        if sample.size == 0:
            return Interval(float("nan"), float("nan")), float("nan")
        centre = sample.mean()
        if sample.size >= 100:
            table[:, i] = np.quantile(centre + widen * (sample - centre), [tail, 0.5, 1 - tail])
        else:  # a mean over many classes: close to normal, and a few draws give its mean and spread
            reach = widen * float(ndtri(1 - tail)) * sample.std(ddof=1)
            table[:, i] = centre - reach, centre, centre + reach
    # Errors grow with the scale; sampling noise in the quantiles must not undo that.
    lows, medians, highs = np.maximum.accumulate(table, axis=1)
    low = truth * _scale_at(observed, highs)
    middle = truth * _scale_at(observed, medians)
    high = truth * _scale_at(observed, lows)
    if observed < lows[0]:
        high = max(observed, 0.0)  # better than calibrated models usually look: no scale explains it
    high = min(max(high, middle), max(largest, observed))
    return Interval(float(min(low, high)), float(high)), float(min(middle, high))


def _combined(samples: Sequence[FloatArray], shares: Sequence[float], norm: float, average: str) -> FloatArray:
    """:func:`combine`, draw by draw."""
    values = np.stack(samples)
    weight = np.asarray(shares)[:, None] * ~np.isnan(values)
    values = np.nan_to_num(values)
    with np.errstate(invalid="ignore"):
        weight = weight / weight.sum(axis=0)
    if average == "power" and not np.isinf(norm):
        total = (weight * values).sum(axis=0)
        return np.asarray(total if norm == 1 else np.maximum(total, 0) ** (1 / norm))
    if average == "power":
        return np.asarray(values.max(axis=0))
    errors = values if norm == 1 or np.isinf(norm) else np.maximum(values, 0) ** (1 / norm)
    return np.asarray(errors.max(axis=0) if average == "max" else (weight * errors).sum(axis=0))


def _scale_at(observed: float, quantile: FloatArray) -> float:
    """Scale at which a quantile of the draws equals the observed value; 0 below, extrapolated above."""
    if observed <= quantile[0]:
        return 0.0
    if observed >= quantile[-1]:
        return float(_SCALES[-1] * observed / max(quantile[-1], 1e-300))
    i = int(np.searchsorted(quantile, observed, side="left"))
    a, b = quantile[i - 1], quantile[i]
    share = (observed - a) / (b - a) if b > a else 1.0
    return float(_SCALES[i - 1] + share * (_SCALES[i] - _SCALES[i - 1]))
