"""Bands of reliability curves: exact for bins, by resampling for smooth curves, and for isotonic curves.

The simultaneous band of curves without bins covers all increasing curves (:func:`simultaneous_band`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..data.checks import received
from ..data.types import AnyArray, FloatArray
from ..estimators.base import Cells
from ..estimators.isotonic import isotonic_means
from .tied_scores import MOST, TiedScores

#: Names of bands; the last two are confidence intervals of bins.
BANDS = ("confidence", "consistency", "simultaneous", "wilson", "clopper-pearson")
#: From this mean on, Poisson draws are replaced by normal draws, five times faster. The skewness is
#: then at most 0.1 in a cell, and a kernel averages over many cells.
_NORMAL_FROM = 100.0
#: Number of scores at which resampled fits are kept, and at which the likelihood ratio is inverted; else interpolated.
CONSISTENCY_POINTS, RATIO_POINTS = 512, 128
#: Number of scores at either end that are always used as points.
OUTER = 16
#: Number of draws processed at a time.
_TOGETHER = 1 << 20
#: Number of samples with one score, not pooled with others, from which the chi-squared distribution is used.
_ATOM = 10.0
#: Minimum number of samples of a run: shorter runs give weak bounds, and each run tested widens all others.
_LEAST = 5.0
#: Quantiles of the limiting distribution of the likelihood ratio at one point, by simulation
#: (`benchmarks/coverage/ratio_limit.py`).
LIMIT_LEVELS = (0.0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999)
LIMIT = (0.0, 0.065, 0.283, 0.436, 0.657, 0.991, 1.244, 1.611, 2.265, 2.96, 3.904, 4.628, 6.241)


class Band(NamedTuple):
    """Lower end, median and upper end at each score of a curve."""

    lower: FloatArray
    median: FloatArray
    upper: FloatArray

    @classmethod
    def none(cls, size: int) -> Band:
        """Return a band of NaN."""
        return cls(*(np.full(size, np.nan) for _ in range(3)))


def check_band(band: str, *, binned: bool) -> str:
    """Check the ``band`` argument, and whether it is available for the curve."""
    allowed = BANDS if binned else BANDS[:3]
    if not isinstance(band, str) or band not in allowed:
        more = " for a curve without bins" if isinstance(band, str) and band in BANDS else ""
        raise ValueError(f"band must be one of {', '.join(map(repr, allowed))}{more}; got {received(band)}")
    return band


def binned_band(band: str, scores: FloatArray, observed: FloatArray, size: FloatArray, level: float) -> Band:
    """Binomial band of bins, without resampling."""
    if band == "consistency":
        lower, upper = binomial_consistency(scores, size, level)
        return Band(lower, scores, upper)
    if band == "simultaneous":
        used = max(int((size > 0).sum()), 1)
        lower, upper = clopper_pearson(observed * size, size, 1 - (1 - level) / used)
    elif band == "clopper-pearson":
        lower, upper = clopper_pearson(observed * size, size, level)
    else:
        lower, upper = wilson_interval(observed * size, size, level)
    return Band(lower, observed, upper)


def smooth_band(
    band: str, cells: Cells, ties: TiedScores | None, level: float, n_resamples: int, rng: np.random.Generator
) -> Band:
    """Band of a smooth curve; the simultaneous band is for increasing curves compatible with the rows."""
    if band == "consistency":
        return Band(*consistency_band(cells, level, n_resamples, rng))
    if band == "confidence":
        return Band(*bootstrap_band(cells, level, n_resamples, rng))
    return increasing_band(ties, level, cells.scores)


def increasing_band(ties: TiedScores | None, level: float, scores: FloatArray) -> Band:
    """Simultaneous band at given scores."""
    if ties is None or not ties.size:
        return Band.none(scores.size)
    lower, upper = steps(ties, *simultaneous_band(ties, level), scores)
    return Band(lower, np.full(lower.shape, np.nan), upper)


def isotonic_band(band: str, ties: TiedScores, level: float, n_resamples: int, rng: np.random.Generator) -> Band:
    """Band of an isotonic curve at each score; interpolated from fewer if there are very many."""
    few = ties.merged(MOST)
    if band == "simultaneous":
        return increasing_band(few, level, ties.score)
    if band == "consistency":
        found = Band(*isotonic_consistency_band(few, level, n_resamples, rng))
    else:
        lower, upper = likelihood_ratio_band(few, level)
        found = Band(lower, np.full(lower.shape, np.nan), upper)
    return found if few is ties else Band(*(np.interp(ties.score, few.score, v) for v in found))


def bootstrap_band(
    cells: Cells, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, median and upper end of the curve under a Poisson bootstrap of the cells' counts.

    Positives and negatives of every cell are drawn from Poisson distributions with the observed counts as means, which
    is resampling rows with replacement except that the total fluctuates, and both are smoothed like the
    data. Percentiles are computed per cell. Cost O(R · G log G), independent of the number of rows.

    Source: Posocco & Bonnefoy (2021), §4.5, for the band; Hanley & MacGibbon (2006) for Poisson weights.
    """
    positive = poisson(np.maximum(cells.positive, 0), n_resamples, rng)
    total = poisson(np.maximum(cells.count - cells.positive, 0), n_resamples, rng)
    total += positive
    density = cells.apply(total)
    smooth = cells.apply(cells.outcome(positive, total))
    present = density > 1e-12 * density.max(initial=0.0)
    observed = np.divide(smooth, density, out=np.full_like(density, np.nan), where=present)
    if cells.residual:
        observed += cells.scores
    return quantiles(np.clip(observed, 0, 1, out=observed), level)


def consistency_band(
    cells: Cells, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, median and upper end of the curve that this estimator would give for a calibrated model.

    As :func:`bootstrap_band`, with outcomes drawn from the scores instead of observed outcomes.

    Source: Bröcker & Smith (2007), *Increasing the reliability of reliability diagrams*.
    """
    stated = replace(cells, positive=cells.count * np.nan_to_num(cells.scores))
    return bootstrap_band(stated, level, n_resamples, rng)


def poisson(mean: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Poisson draws, (n_draws, cells); normal draws of the same mean and variance in cells with a large mean."""
    large = mean >= _NORMAL_FROM
    if not large.any():
        return rng.poisson(mean, size=(n_draws, mean.size)).astype(np.float64)
    draws: FloatArray = rng.standard_normal((n_draws, mean.size))
    draws *= np.sqrt(mean)
    draws += mean
    small = np.flatnonzero(~large)
    draws[:, small] = rng.poisson(mean[small], size=(n_draws, small.size))
    return draws


def quantiles(draws: FloatArray, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, median and upper end over the first axis, ignoring draws without data (NaN)."""
    tail = (1 - level) / 2
    n = draws.shape[0]
    ordered = np.sort(draws, axis=0)  # NaN last
    known = n - np.isnan(ordered).sum(axis=0)
    columns = np.arange(draws.shape[1])

    def at(q: float) -> FloatArray:
        position = q * np.maximum(known - 1, 0)
        low = position.astype(np.intp)
        high = np.minimum(low + 1, np.maximum(known - 1, 0))
        a, b = ordered[low, columns], ordered[high, columns]
        return np.where(known > 0, a + (position - low) * (b - a), np.nan)

    return at(tail), at(0.5), at(1 - tail)


def wilson_interval(positive: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval for a binomial proportion, NaN for n = 0.

    Source: Wilson (1927); Brown, Cai & DasGupta (2001) recommend it for small n.
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    share = positive / np.where(n > 0, n, np.nan)
    safe = np.where(n > 0, np.maximum(n, 1e-100), np.nan)  # its square is no 0 yet
    centre = (share + z**2 / (2 * safe)) / (1 + z**2 / safe)
    half = z / (1 + z**2 / safe) * np.sqrt(np.maximum(share * (1 - share) / safe + z**2 / (4 * safe**2), 0))
    return np.maximum(centre - half, 0), np.minimum(centre + half, 1)


def clopper_pearson(positive: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson exact interval for a binomial proportion, NaN for n = 0; coverage is at least its level.

    Also valid for the mean of unequal probabilities, as a sum of such outcomes varies less (Hoeffding 1956).

    Source: Clopper & Pearson (1934).
    """
    from scipy.special import betainccinv, betaincinv

    tail = (1 - level) / 2
    negative = np.maximum(n - positive, 0.0)  # rounding of sums of weights
    known = n > 0
    lower = np.where(positive > 0, betaincinv(np.maximum(positive, 1e-12), negative + 1, tail), 0.0)
    upper = np.where(negative > 0, betainccinv(positive + 1, np.maximum(negative, 1e-12), tail), 1.0)
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def binomial_consistency(score: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Range of the frequency in a bin of a calibrated model, NaN for n = 0: binomial quantiles at its score.

    Outcomes of unequal scores vary less than binomial ones, so the range is conservative; n is rounded down.

    Source: Bröcker & Smith (2007), with the binomial distribution in place of draws from it.
    """
    trials = np.maximum(np.floor(n + 1e-9), 1)
    chance = np.where(n > 0, score, 0.5)
    tail = (1 - level) / 2
    ends = (_binomial_quantile(q, trials, chance) / trials for q in (tail, 1 - tail))
    lower, upper = (np.where(n > 0, end, np.nan) for end in ends)
    return lower, upper


def _binomial_quantile(q: float, n: FloatArray, p: FloatArray) -> FloatArray:
    """Smallest number of successes with a cumulative probability of at least q."""
    from scipy.special import bdtr, bdtrik

    inner = np.clip(p, 1e-16, 1 - 1e-16)  # below, SciPy gives NaN
    k = np.clip(np.ceil(bdtrik(q, n, inner)), 0, n)
    less = np.maximum(k - 1, 0)
    k = np.where(bdtr(less, n.astype(np.int64), inner) >= q, less, k)
    return np.where(p <= 0, 0.0, np.where(p >= 1, n, k))


def isotonic_consistency_band(
    ties: TiedScores, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, median and upper end of isotonic fits to outcomes drawn from the scores, at each score.

    Source: Bröcker & Smith (2007); Dimitriadis, Gneiting & Jordan (2021) for isotonic fits. Cost O(R m).
    """
    at = _points(ties, CONSISTENCY_POINTS)
    fits = np.empty((n_resamples, at.size))
    together = max(1, _TOGETHER // max(ties.size, 1))
    for first in range(0, n_resamples, together):
        draws = ties.drawn(ties.score, min(together, n_resamples - first), rng)
        for r, positive in enumerate(draws, first):
            fits[r] = isotonic_means(positive, ties.count)[at]
    lower, median, upper = (np.interp(ties.score, ties.score[at], v) for v in quantiles(fits, level))
    return lower, median, upper


def likelihood_ratio_band(ties: TiedScores, level: float, at: AnyArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Pointwise confidence interval of an increasing probability at each score, by inverting the likelihood ratio.

    A value is accepted unless the best increasing curve through it is much less likely than the best of all. The limit
    distribution of that ratio is parameter-free, so nothing is resampled or smoothed (and a bootstrap of the isotonic
    fit is not consistent); for many samples of one score it is chi-squared. It is not valid for the outer n^(2/3)
    samples on either side: there the interval contains at least the exact intervals of two runs, that of all
    samples up to the end, and that of n^(2/3) samples inwards.

    Source: Banerjee & Wellner (2001), *Likelihood ratio tests for monotone functions*. Cost O(m) at each of some scores
    (``at``; by default :data:`RATIO_POINTS`), with linear interpolation between them.
    """
    at = _points(ties, RATIO_POINTS) if at is None else at
    fit = isotonic_means(ties.positive, ties.count)
    most = float(_log_likelihood(ties.positive, ties.count, fit))
    lower, upper = np.empty(at.size), np.empty(at.size)
    for i, j in enumerate(at):
        point = _Point.of(ties, int(j))
        limit = most - _limit(ties, fit, int(j), level) / 2
        lower[i], upper[i] = _ends(point.log_likelihood, limit, float(fit[j]))
    low, high = _exact_at_ends(ties, at, level)
    lower, upper = np.fmin(lower, low), np.fmax(upper, high)
    return np.interp(ties.score, ties.score[at], lower), np.interp(ties.score, ties.score[at], upper)


def _exact_at_ends(ties: TiedScores, at: AnyArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Exact bounds for scores near either end, from runs before and after; NaN elsewhere."""
    positive, count = (np.concatenate([[0.0], np.cumsum(v)]) for v in (ties.positive, ties.count))
    reach = float(count[-1]) ** (2 / 3)
    before, behind = count[at + 1], count[-1] - count[at]
    near = np.minimum(before, behind) <= reach
    # A run that ends here bounds from below, one that starts here from above, for the curve does not fall.
    first = np.maximum(np.searchsorted(count, before - reach, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(count, count[at] + reach, side="left"), count.size - 1)
    low, _ = clopper_pearson(positive[at + 1] - positive[first], before - count[first], level)
    _, high = clopper_pearson(positive[last] - positive[at], count[last] - count[at], level)
    return np.where(near, low, np.nan), np.where(near, high, np.nan)


@dataclass(frozen=True, eq=False)
class _Point:
    """One score, and the isotonic blocks (positives, counts, means) of the scores before and after it."""

    positive: float
    count: float
    before: tuple[FloatArray, FloatArray, FloatArray]
    behind: tuple[FloatArray, FloatArray, FloatArray]

    @classmethod
    def of(cls, ties: TiedScores, j: int) -> _Point:
        sides = (
            _blocks(ties.positive[:j], ties.count[:j]),
            _blocks(ties.positive[j + 1 :], ties.count[j + 1 :]),
        )
        return cls(float(ties.positive[j]), float(ties.count[j]), *sides)

    def log_likelihood(self, theta: FloatArray) -> FloatArray:
        """Log-likelihood of the best increasing curve through each theta here: fits of both sides, clipped at theta."""
        positive, count, mean = (v[:, None] for v in self.before)
        total = _log_likelihood(positive, count, np.minimum(mean, theta)) + _log_likelihood(
            np.full(1, self.positive), np.full(1, self.count), theta[None]
        )
        positive, count, mean = (v[:, None] for v in self.behind)
        return np.asarray(total + _log_likelihood(positive, count, np.maximum(mean, theta)))


def _blocks(positive: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    if not count.size:
        return count, count, count
    fit = isotonic_means(positive, count)
    start = np.flatnonzero(np.concatenate([[True], fit[1:] != fit[:-1]]))
    return np.add.reduceat(positive, start), np.add.reduceat(count, start), fit[start]


def _log_likelihood(positive: FloatArray, count: FloatArray, chance: FloatArray) -> FloatArray:
    """Log-likelihood, summed over the first axis; finite for a probability of 0 or 1 if no outcome contradicts it."""
    from scipy.special import xlog1py, xlogy

    return np.asarray(np.sum(xlogy(positive, chance) + xlog1py(count - positive, -chance), axis=0))


def _limit(ties: TiedScores, fit: FloatArray, j: int, level: float) -> float:
    """Quantile of the likelihood ratio at a score."""
    from scipy.special import chdtri

    alone = (j == 0 or fit[j - 1] < fit[j]) and (j == fit.size - 1 or fit[j] < fit[j + 1])
    if alone and ties.low[j] == ties.high[j] and ties.count[j] >= _ATOM:
        return float(chdtri(1, 1 - level))
    if level > LIMIT_LEVELS[-1]:  # the tail falls like that of a chi-squared distribution, whose quantiles are larger
        return float(LIMIT[-1] * chdtri(1, 1 - level) / chdtri(1, 1 - LIMIT_LEVELS[-1]))
    return float(np.interp(level, LIMIT_LEVELS, LIMIT))


def _ends(function: Callable[[FloatArray], FloatArray], limit: float, top: float) -> tuple[float, float]:
    """Points in [0, 1] at which a function decreasing from ``top`` to both sides crosses a limit, to within 2e-5."""
    inside, outside = np.array([top, top]), np.array([0.0, 1.0])
    steps = np.linspace(0, 1, 17)
    side = np.arange(2)
    for _ in range(4):
        at = inside[:, None] + (outside - inside)[:, None] * steps
        kept = function(at.ravel()).reshape(at.shape) >= limit
        kept[:, 0] = True
        last = kept.shape[1] - 1 - kept[:, ::-1].argmax(axis=1)
        inside, outside = at[side, last], at[side, np.minimum(last + 1, kept.shape[1] - 1)]
    return float(outside[0]), float(outside[1])


def simultaneous_band(ties: TiedScores, level: float) -> tuple[FloatArray, FloatArray]:
    r"""Band that covers an increasing P(o = 1 | s) at all scores at once with probability ``level``, for any n.

    .. math:: U_i = \min_{I:\, i \le \min I} u(I), \qquad L_i = \max_{I:\, \max I \le i} l(I)

    over runs I of ties, with exact (Clopper–Pearson) bounds u and l, each at an error of ``(1 - level) / 2`` divided
    by the number of runs: the frequency in a run bounds all probabilities before it from above, and all after it from
    below. The runs, of geometric lengths and a quarter of a length apart, depend only on scores; with all m²/2 runs
    each bound would need a stricter correction.

    Between scores the lower bound is that of the last score before, the upper bound that of the first score after
    (:func:`steps`). Exact for rows and repeats; for other weights an approximation by the effective sample size.

    Source: Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023), *Honest calibration assessment for binary outcome
    predictions*. Cost O(m).
    """
    first, last = runs(ties.count)
    positive, count = (np.concatenate([[0.0], np.cumsum(v)]) for v in (ties.positive, ties.count))
    h, n = positive[last + 1] - positive[first], count[last + 1] - count[first]
    low, high = clopper_pearson(h, n, 1 - (1 - level) / first.size)
    lower, upper = np.zeros(ties.size), np.ones(ties.size)
    np.maximum.at(lower, last, low)
    np.minimum.at(upper, first, high)
    return np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]


def runs(count: FloatArray) -> tuple[AnyArray, AnyArray]:
    """First and last score of the tested runs: lengths 1, 2, 3, 4, 6, 8, 12, …, with enough samples."""
    m = count.size
    total = np.concatenate([[0.0], np.cumsum(count)])
    found = [(np.zeros(1, dtype=np.intp), np.full(1, m - 1, dtype=np.intp))]
    lengths = {1, 2, 3} | {step << k for k in range(m.bit_length()) for step in (4, 6)}
    for length in sorted(v for v in lengths if v < m):
        first = np.arange(0, m - length + 1, max(1, length // 4), dtype=np.intp)
        if first[-1] != m - length:
            first = np.append(first, m - length)
        last = first + length - 1
        enough = total[last + 1] - total[first] >= _LEAST
        found.append((first[enough], last[enough]))
    return np.concatenate([f for f, _ in found]), np.concatenate([b for _, b in found])


def steps(ties: TiedScores, lower: FloatArray, upper: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A simultaneous band at any scores, from the bounds of an increasing curve at the scores on either side."""
    before = np.searchsorted(ties.high, scores, side="right")
    behind = np.searchsorted(ties.low, scores, side="left")
    return np.concatenate([[0.0], lower])[before], np.append(upper, 1.0)[behind]


def _points(ties: TiedScores, most: int) -> AnyArray:
    """Indices of representative scores: all if there are few, else at evenly spaced samples, with both ends."""
    if ties.size <= most:
        return np.arange(ties.size)
    running = np.cumsum(ties.count)
    found = np.minimum(np.searchsorted(running, np.linspace(0, running[-1], most)), ties.size - 1)
    return np.unique(np.concatenate([np.arange(OUTER), found, np.arange(ties.size - OUTER, ties.size)]))
