"""Tests of many binned problems side by side: do outcomes in ranges of scores come as often as stated?"""

from __future__ import annotations

import numpy as np

from ..data.types import FloatArray
from ..sums import BinMoments

#: Each problem is tested as a whole, by halves and by quarters of what its outcomes can vary.
LEVELS = 3
#: Sums closer to their mean than so many standard deviations are not extreme, and problems worked on at a time.
_NEAR, _TOGETHER = 1.0, 1024
#: Largest tilt of the log odds sought, and steps that find it.
_STEEPEST, _STEPS = 60.0, 60


def range_pvalues(sums: BinMoments) -> FloatArray:
    r"""p-value of every problem, (R,): are outcomes as frequent as stated, on the whole and in ranges of scores?

    Neighbouring bins make up ranges of about equal variance, which the scores alone decide: the whole, its halves, its
    quarters. The outcomes of a range are counted and

    .. math:: p = \min_{\ell,\,j}\; 2 \cdot 3 \cdot 2^\ell \; P\Big(\sum_b X_b \text{ as far out}\Big), \qquad
              X_b \sim \mathrm{Binomial}(n_b, \bar s_b)

    is valid whatever ranges have in common (Bonferroni's correction over the :math:`2^\ell` ranges of the three levels
    ℓ and the two sides). Scores that differ within a bin make outcomes less variable than this binomial distribution,
    so that tails are those at least (Hoeffding 1956). They are those of the saddlepoint approximation for counts, right
    to some per cent far out, where normal tails of few positives are wrong by orders of magnitude.

    Parameters
    ----------
    sums : BinMoments of shape (R, B)
        Relative weights count by each bin's effective sample size, approximately.

    Returns
    -------
    ndarray of shape (R,)
        In [0, 1]: 1 for sums within a standard deviation, 0 where what cannot be was observed. NaN where nothing varies
        and nothing else happened.

    Notes
    -----
    Cost: some ten steps on R × B numbers, independent of n.

    References
    ----------
    Lugannani & Rice (1980); Daniels (1987), *Tail probability approximations* (for counts); Hoeffding (1956), *On the
    distribution of the number of successes in independent trials*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data.problem import Problem
    >>> from calibrant.sums import BinMoments, uniform_edges
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(3000)
    >>> two = [BinMoments.of(Problem(s, rng.random(3000) < p, None, True), uniform_edges(15)) for p in (s, s**1.3)]
    >>> [bool(range_pvalues(one)[0] < 1e-4) for one in two]
    [False, True]
    """
    weight = np.atleast_2d(sums.weight)
    parts = [_pvalues(*_counts(sums, slice(a, a + _TOGETHER))) for a in range(0, len(weight), _TOGETHER)]
    return np.concatenate([np.empty(0), *parts])


def _counts(sums: BinMoments, some: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Trials, their stated probability, and what was observed, (r, B) each."""
    weight, score, outcome = (np.atleast_2d(v)[some] for v in (sums.weight, sums.score, sums.outcome))
    size = np.where(weight > 0, weight, 1.0)
    if sums.integral:
        trials = weight
    elif sums.mapping == "hard":
        trials = np.atleast_2d(sums.effective_size)[some]
    else:  # bins share rows, whose residuals must add up
        trials = weight * np.reshape(sums._unit, (-1, 1))[some]
    return trials, np.clip(score / size, 0.0, 1.0), trials * outcome / size


def _pvalues(trials: FloatArray, chance: FloatArray, observed: FloatArray) -> FloatArray:
    variance = trials * chance * (1 - chance)
    total = variance.sum(axis=-1, keepdims=True)
    middle = np.cumsum(variance, axis=-1) - variance / 2
    place = np.divide(middle, total, out=np.zeros_like(middle), where=total > 0)
    out = np.ones(len(trials))
    gap = observed - trials * chance
    for level in range(LEVELS):
        ranges = 2**level
        home = np.minimum((place * ranges).astype(np.intp), ranges - 1)
        members = home[:, None] == np.arange(ranges)[:, None]  # (r, ranges, B)
        off = np.where(members, gap[:, None], 0.0).sum(axis=-1)
        spread = np.sqrt(np.where(members, variance[:, None], 0.0).sum(axis=-1))
        problem, part = np.nonzero((np.abs(off) > _NEAR * spread) & (np.abs(off) > 1e-9 * trials.sum(-1)[:, None]))
        if not problem.size:
            continue
        # Too few outcomes are too many of their opposites.
        n = np.where(members[problem, part], trials[problem], 0.0)
        few = (off[problem, part] < 0)[:, None]
        p = np.where(few, 1 - chance[problem], chance[problem])
        hits = np.where(few, trials[problem] - observed[problem], observed[problem])
        tails = upper_tails(n, p, np.where(n > 0, hits, 0.0).sum(axis=-1))
        np.minimum.at(out, problem, 2 * LEVELS * ranges * tails)
    return np.where((total[:, 0] > 0) | (out < 1), out, np.nan)


def upper_tails(trials: FloatArray, chance: FloatArray, count: FloatArray) -> FloatArray:
    r"""``P(Σ_b X_b ≥ count)``, (r,), of independent binomial X_b, (r, B): of counts above their means.

    Daniels' second form of Lugannani and Rice's formula, for lattices. With the cumulant function
    :math:`K(t) = \sum_b n_b \log(1 - p_b + p_b e^t)` and :math:`K'(t) = k`

    .. math:: P = \Phi(-w) + \varphi(w) \Big(\frac1u - \frac1w\Big), \qquad
              w = \sqrt{2 (t k - K(t))}, \quad u = (1 - e^{-t}) \sqrt{K''(t)}.
    """
    from scipy.special import expit, logit, ndtr

    n = np.where(chance > 0, trials, 0.0)
    most = n.sum(axis=-1)
    sure = np.exp((n * np.log(np.where(chance > 0, chance, 1.0))).sum(axis=-1))
    out = np.where(count > most * (1 + 1e-9), 0.0, sure)
    inner = np.flatnonzero(count < most * (1 - 1e-9))
    if not inner.size:
        return np.asarray(out)
    n, k = n[inner], count[inner]
    z = np.clip(logit(chance[inner]), -700.0, 700.0)
    low, high = np.zeros(len(k)), np.full(len(k), _STEEPEST)
    t = np.zeros(len(k))
    for _ in range(_STEPS):
        tilted = expit(z + t[:, None])
        mean = np.einsum("ij,ij->i", n, tilted)
        slope = np.einsum("ij,ij,ij->i", n, tilted, 1 - tilted)
        short = mean < k
        low, high = np.where(short, t, low), np.where(short, high, t)
        step = np.divide(k - mean, slope, out=np.full(len(k), np.inf), where=slope > 0)
        t, before = t + step, t
        t = np.where((t > low) & (t < high), t, (low + high) / 2)
        if (np.abs(t - before) <= 1e-9 * (1 + t)).all():
            break
    tilted = expit(z + t[:, None])
    slope = np.einsum("ij,ij,ij->i", n, tilted, 1 - tilted)
    # log(1 - p + p e^t) from log odds, which hold where a probability rounds to 1.
    cumulant = (n * (np.logaddexp(0.0, z + t[:, None]) - np.logaddexp(0.0, z))).sum(axis=-1)
    w = np.sqrt(2 * np.maximum(t * k - cumulant, 1e-300))
    u = -np.expm1(-t) * np.sqrt(slope)
    density = np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
    tail = ndtr(-w) + density * (1 / np.maximum(u, 1e-300) - 1 / w)
    out[inner] = np.clip(tail, 0.0, 1.0)
    return np.asarray(out)
