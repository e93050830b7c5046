"""Bands around reliability curves: by resampling grid counts, or binomial for bins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...data.types import FloatArray
from ...estimators.base import Cells

#: Above this mean a Poisson distribution is drawn as the normal one it tends to, five times faster. Its skewness is
#: then below 0.1 in a cell, and a kernel averages over many cells.
_NORMAL_FROM = 100.0


def bootstrap_band(
    cells: Cells, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, median and upper end of the curve under a Poisson bootstrap of the cells' counts.

    Positives and negatives of every cell are drawn from Poisson distributions with the observed counts as means, which
    is resampling rows with replacement up to the total's own fluctuation, and both are smoothed as the
    data were. Percentiles are taken cell by cell. Cost O(R · G log G), independent of the number of rows.

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
    """Lower end, median and upper end of the curve that this estimator would draw of a calibrated model.

    As :func:`bootstrap_band`, with outcomes drawn from the scores instead of those observed.

    Source: Bröcker & Smith (2007), *Increasing the reliability of reliability diagrams*.
    """
    stated = replace(cells, positive=cells.count * np.nan_to_num(cells.scores))
    return bootstrap_band(stated, level, n_resamples, rng)


def poisson(mean: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Poisson draws, (n_draws, cells); normal ones, of the same mean and variance, in cells of large mean."""
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
    """Wilson's score interval of a binomial proportion, NaN for n = 0.

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
    """Clopper and Pearson's exact interval of a binomial proportion, NaN for n = 0; never below its level.

    Also of the mean of unequal probabilities: a sum of such outcomes spreads less than a binomial one (Hoeffding 1956).

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

    Outcomes of different scores spread less than binomial ones, so the range is wide enough; n is rounded down.

    Source: Bröcker & Smith (2007), with the binomial distribution in place of draws from it.
    """
    trials = np.maximum(np.floor(n + 1e-9), 1)
    chance = np.where(n > 0, score, 0.5)
    tail = (1 - level) / 2
    ends = (_binomial_quantile(q, trials, chance) / trials for q in (tail, 1 - tail))
    lower, upper = (np.where(n > 0, end, np.nan) for end in ends)
    return lower, upper


def _binomial_quantile(q: float, n: FloatArray, p: FloatArray) -> FloatArray:
    """The smallest number of successes with a cumulative probability of q or more."""
    from scipy.special import bdtr, bdtrik

    inner = np.clip(p, 1e-300, 1 - 1e-16)
    k = np.clip(np.ceil(bdtrik(q, n, inner)), 0, n)
    less = np.maximum(k - 1, 0)
    k = np.where(bdtr(less, n.astype(np.int64), inner) >= q, less, k)
    return np.where(p <= 0, 0.0, np.where(p >= 1, n, k))
