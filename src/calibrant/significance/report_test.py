"""Tests of a report, from sums only: smoothed residuals, with their power, and ranges of scores of many problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..data.printing import number_of
from ..data.types import AnyArray, FloatArray, IntArray
from ..estimators import ResidualKernel
from ..estimators.base import Cells
from ..estimators.norm import root
from ..measure.bands import poisson
from ..measure.intervals import spread_together
from ..measure.question import Question
from ..sums import BinMoments, GridMoments, Smoother
from .null import share_at_least
from .result import TestResult
from .saddlepoint import upper_tails

#: Draws for the p-value and for the power; fewer with more than MANY classes, whose mean varies less.
DRAWS, POWER_DRAWS, MANY = 999, 400, 10
LEAST_DRAWS, LEAST_POWER_DRAWS = 199, 100
#: Draws per problem if there are so many problems that their sum is normal.
FEW_DRAWS = 16
#: Each of many problems is tested as a whole, and by halves and quarters of its outcomes' variance.
LEVELS = 3
#: Sums within this many standard deviations of their mean are not extreme; and problems processed at a time.
_NEAR, _TOGETHER = 1.0, 1024
#: P-values below which deviations are not distinguished, and above which there is none.
_LEAST, _NOT_OUT = 1e-15, 0.4
#: Share of samples in which a detectable error would be found.
POWER = 0.8
_READER = ResidualKernel()
#: The true probability at each score.
Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Power:
    """Power of a test with this many rows.

    Attributes
    ----------
    detectable : float
        Calibration error that the test would find in four of five samples like this one, if the log odds of all scores
        are too large or too small by a factor, or too high or too low by a constant, whichever is hardest to detect;
        infinite if even the largest constant would be missed.
    n_samples : int
        Number of rows.
    """

    detectable: float
    n_samples: int

    def rows_for(self, error: float) -> float:
        """Approximate number of rows to detect an error as often: detectable errors decrease with the root of n."""
        ratio = self.detectable / error
        return self.n_samples * ratio * ratio  # infinite where ** would raise


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Problems that one kernel smooths: their counts (K, m), and smoothed residuals of calibrated draws, (K, R, m).

    ``at``: their places among all problems; ``known``: where they have samples; ``total``: their smoothed mass there.
    """

    at: IntArray
    smoother: Smoother
    score: FloatArray
    count: FloatArray
    known: AnyArray
    total: FloatArray
    noise: FloatArray
    observed: FloatArray

    @classmethod
    def of(
        cls,
        at: Sequence[int],
        cells: Sequence[Cells],
        rates: Sequence[FloatArray],
        n_draws: int,
        rng: np.random.Generator,
    ) -> _Drawn:
        smoother = cells[0].smoother or Smoother(cells[0].count.size - 1, 1.0)
        score, count = np.stack([np.nan_to_num(c.scores) for c in cells]), np.stack([c.count for c in cells])
        positive = np.stack([c.positive for c in cells])
        density = count @ smoother.matrix
        known = density > 1e-12 * density.max(axis=-1, keepdims=True)
        noise = np.empty((len(cells), n_draws, count.shape[1]))
        for out, s, n, rate in zip(noise, score, count, rates, strict=True):
            # Residuals of Bernoulli outcomes: Poisson draws of both kinds have the same mean, variance and skewness.
            drawn = poisson(n * rate * s, n_draws, rng) * ((1 - s) / rate)
            drawn -= poisson(n * rate * (1 - s), n_draws, rng) * (s / rate)
            np.matmul(drawn, smoother.matrix, out=out)
        observed = (positive - count * score) @ smoother.matrix
        total = np.where(known, density, 0.0) @ smoother.quadrature
        return cls(np.asarray(at), smoother, score, count, known, total, noise, observed)

    def errors(self, smooth: FloatArray) -> FloatArray:
        """Errors of smoothed residuals (K, R, m), (K, R)."""
        size = np.abs(smooth)
        if not self.known.all():
            size *= self.known[:, None]
        return np.asarray(size @ self.smoother.quadrature / self.total[:, None])

    def shifted(self, truth: Map) -> tuple[FloatArray, FloatArray]:
        """Smoothed mean residuals under another truth, (K, m), and its calibration errors, (K,)."""
        gap = truth(self.score) - self.score
        error = (self.count * np.abs(gap)).sum(axis=-1) / self.count.sum(axis=-1)
        return (self.count * gap) @ self.smoother.matrix, error


@dataclass(frozen=True, eq=False)
class SumsTest:
    """Test of calibration by smoothed residuals over ranks, from grids of counts, and its power.

    Labels are drawn from the scores on the grid: cost O(R G) per problem, whatever the number of rows.

    Attributes
    ----------
    drawn : sequence of drawn problems
    question : Question
        How errors of several problems are combined; its level is one minus the size of the test whose power is given.
    n_samples : int
    """

    drawn: Sequence[_Drawn]
    question: Question
    n_samples: int

    @classmethod
    def of(
        cls,
        grids: Sequence[GridMoments],
        bins: Sequence[BinMoments],
        question: Question,
        rng: np.random.Generator,
        n_draws: int = DRAWS,
    ) -> SumsTest:
        """Draw calibrated residuals of every problem; bins show how weights vary with the score.

        With more than :data:`MANY` classes, fewer than ``n_draws`` draws for each.
        """
        of_errors = replace(question, norm=1.0)
        least = min(LEAST_DRAWS, n_draws)
        draws = FEW_DRAWS if of_errors.sum_is_normal else max(int(n_draws / max(1.0, len(grids) / MANY)), least)
        cells = [_READER._cells(grid) for grid in grids]
        # Samples that a cell's outcomes vary like, a unit of its count: 1, unless weights differ from score to score.
        rates = [_trials_a_unit(b, g, np.nan_to_num(c.scores)) for b, g, c in zip(bins, grids, cells, strict=True)]
        alike: dict[Smoother | None, list[int]] = {}
        for i, one in enumerate(cells):
            alike.setdefault(one.smoother, []).append(i)
        drawn = [_Drawn.of(at, [cells[i] for i in at], [rates[i] for i in at], draws, rng) for at in alike.values()]
        rows = [grid.n_samples for grid in grids]
        # One-vs-rest problems share their rows, others split them.
        return cls(drawn, of_errors, max(rows) if question.dependent else sum(rows))

    def _each(self, found: Sequence[FloatArray]) -> FloatArray:
        """Values of every part of the problems, in the order of all problems."""
        out = np.empty((len(self.question), *found[0].shape[1:]))
        for part, values in zip(self.drawn, found, strict=True):
            out[part.at] = values
        return out

    @property
    def _usable(self) -> bool:
        return all((part.total > 0).all() for part in self.drawn)

    @cached_property
    def _draws(self) -> FloatArray:
        return drawn_together(self._each([part.errors(part.noise) for part in self.drawn]), self.question)

    @property
    def rejects_at(self) -> float:
        """P-values up to this are significant: ``1 - level``, or the smallest possible with these draws."""
        return max(1 - self.question.level, 1 / (self._draws.size + 1))

    @cached_property
    def _threshold(self) -> float:
        """Errors above this are significant."""
        most = int(np.floor(self.rejects_at * (self._draws.size + 1) * (1 + 1e-12))) - 1
        return float(np.sort(self._draws)[::-1][most])

    @cached_property
    def result(self) -> TestResult:
        """Statistic and p-value; NaN without data."""
        null = f"the probabilities are calibrated ({self.question.notion})"
        if not self._usable:
            return TestResult(float("nan"), float("nan"), null, "smoothed residuals over ranks", self.n_samples)
        each = self._each([part.errors(part.observed[:, None]) for part in self.drawn])
        observed = float(self.question.combine_draws(each)[0])
        return TestResult(
            statistic=observed,
            pvalue=share_at_least(self._draws, observed),
            null=null,
            name=f"smoothed residuals over ranks, {number_of(self._draws.size, 'draw')} of a calibrated model",
            n_samples=self.n_samples,
            details={"mean_of_draws": float(self._draws.mean())},
            draws=self._draws,
            n_groups=self.question.n_groups,
        )

    @property
    def rejects(self) -> bool:
        """Whether the test rejects; False without data."""
        return self.result.pvalue <= self.rejects_at * (1 + 1e-9)

    @property
    def excess(self) -> float:
        """Amount by which the statistic exceeds the critical value: above 0 exactly if the test rejects.

        A lower limit of the calibration error at the test's level, if noise is as large as for a calibrated model:
        smoothing does not increase a mean absolute gap, and the estimate is at most the gap plus noise.
        """
        return self.result.statistic - self._threshold if self.rejects else 0.0

    @cached_property
    def power(self) -> Power:
        """The power of the test."""
        if not self._usable:
            return Power(float("nan"), self.n_samples)
        found = [self._detectable(family) for family in (higher, lower, sharper, flatter)]
        seen = all(known for _, known in found[:2])
        # One row in n that is otherwise: where scores are certain, nothing else can be seen.
        least = 1 - (1 - POWER) ** (1 / max(self.n_samples, 1))
        return Power(max(least, *(error for error, _ in found)) if seen else float("inf"), self.n_samples)

    def _seen(self, truth: Map) -> tuple[float, float]:
        """Share of samples in which a truth is detected, and its calibration error."""
        few = max(int(POWER_DRAWS / max(1.0, len(self.question) / MANY)), LEAST_POWER_DRAWS)
        moved = [part.shifted(truth) for part in self.drawn]
        pairs = zip(self.drawn, moved, strict=True)
        each = self._each([d.errors(d.noise[:, :few] + gap[:, None]) for d, (gap, _) in pairs])
        found = _combined(each, self.question)
        error = self.question.combine_draws(self._each([error for _, error in moved])[:, None])
        return float((found > self._threshold).mean()), float(error[0])

    def _detectable(self, family: Callable[[float], Map]) -> tuple[float, bool]:
        """Smallest error of a family of truths detected with :data:`POWER`; the largest and False if none is."""
        low, high = 0.0, 1.0
        share, error = self._seen(family(1.0))
        if share < POWER:
            return error, False
        for _ in range(10):
            middle = (low + high) / 2
            share, found = self._seen(family(middle))
            if share >= POWER:
                high, error = middle, found
            else:
                low = middle
        return error, True


def _combined(each: FloatArray, question: Question) -> FloatArray:
    """Combined errors of draws of every problem (K, R); of a sum over many, a normal sample with its spread."""
    if not question.sum_is_normal:
        return question.combine_draws(each)
    from scipy.special import ndtri

    share = np.array(question.shares)
    spread = np.sqrt(share**2 @ each.var(axis=-1, ddof=1))
    powers = np.asarray(share @ each.mean(axis=-1) + spread * ndtri((np.arange(DRAWS) + 0.5) / DRAWS))
    return powers if question.norm == 1 else np.array([root(float(v), question.norm) for v in powers])


def drawn_together(each: FloatArray, question: Question) -> FloatArray:
    """:func:`_combined`, for one-vs-rest classes, drawn independently, with the spread of joint draws."""
    draws = _combined(each, question)
    if not question.dependent or len(each) < 2:
        return draws
    # Classes that hardly vary do not count: two that share all the noise are as one against the rest.
    variance = np.array(question.shares) ** 2 * each.var(axis=-1)
    if not variance.any():
        return draws
    varying = float(variance.sum() ** 2 / (variance**2).sum())
    widened = question.spread(varying, spread_together(max(varying, 2.0)))
    return np.asarray(draws.mean() + widened * (draws - draws.mean()))


def _trials_a_unit(bins: BinMoments, grid: GridMoments, score: FloatArray) -> FloatArray:
    """Kish's effective size per unit of weight at some scores, from their bins, over that of all rows."""
    if bins.integral or not grid.total > 0:
        return np.ones(score.shape)
    everywhere = grid.effective_size / grid.total
    local = np.divide(bins.weight, bins.square, out=np.full(bins.weight.shape, everywhere), where=bins.square > 0)
    edges = bins.edges.values
    home = np.clip(np.searchsorted(edges, score, side="left") - 1, 0, local.size - 1)
    return np.asarray(local[home] / everywhere)


def sharper(amount: float) -> Map:
    """Truth of a model whose log odds are too large by the factor ``1 / (1 - amount)``."""
    return _on_log_odds(lambda z: (1 - amount) * z)


def flatter(amount: float) -> Map:
    """Truth of a model whose log odds are too small by a factor that grows from 1 to 20."""
    return _on_log_odds(lambda z: (1 + 19 * amount**2) * z)


def higher(amount: float) -> Map:
    """Truth of a model whose log odds are too high by a constant that grows from 0 to 10 with ``amount`` in [0, 1]."""
    return _on_log_odds(lambda z: z - 10 * amount**2)


def lower(amount: float) -> Map:
    """Truth of a model whose log odds are too low by such a constant."""
    return _on_log_odds(lambda z: z + 10 * amount**2)


def _on_log_odds(change: Map) -> Map:
    from scipy.special import expit, logit

    return lambda score: np.asarray(expit(change(logit(np.clip(score, 1e-9, 1 - 1e-9)))))


def range_tests(sums: BinMoments) -> tuple[FloatArray, FloatArray]:
    r"""Test for every problem whether outcomes are as frequent as stated, overall and in ranges of scores.

    Neighbouring bins form ranges of about equal variance, which depend on the scores only: the whole, its halves and
    its quarters. The outcomes of each range are counted, and

    .. math:: p = \min_{\ell,\,j}\; 2 \cdot 3 \cdot 2^\ell \; P\Big(\sum_b X_b \text{ as far out}\Big), \qquad
              X_b \sim \mathrm{Binomial}(n_b, \bar s_b)

    is valid however the ranges overlap (Bonferroni's correction over the :math:`2^\ell` ranges of the three levels ℓ
    and the two sides). If scores differ within a bin, outcomes vary less than this binomial distribution, and its tails
    are conservative (Hoeffding 1956). Tails are computed by the saddlepoint approximation for counts, accurate to some
    per cent far out, where normal tails for few positives are wrong by orders of magnitude.

    Parameters
    ----------
    sums : BinMoments of shape (R, B)
        Relative weights count by each bin's effective sample size, approximately.

    Returns
    -------
    pvalues : ndarray of shape (R,)
        In [0, 1]: 1 for sums within a standard deviation, 0 if an impossible outcome was observed. NaN if nothing
        varies and all outcomes are as stated.
    shifts : ndarray of shape (R,)
        Excess or lack of outcomes in the range with the smallest p-value, as a share of all rows: at most the
        calibration error of the bins. 0 if no range deviates.

    Notes
    -----
    Cost: about ten steps on R × B numbers, independent of n.

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
    >>> [bool(range_tests(one)[0] < 1e-4) for one in two]
    [False, True]
    """
    weight = np.atleast_2d(sums.weight)
    parts = [_range_tests(*_counts(sums, slice(a, a + _TOGETHER))) for a in range(0, len(weight), _TOGETHER)]
    pvalues, shifts = np.concatenate([np.empty((2, 0)), *parts], axis=1)
    return pvalues, shifts


def beyond(pvalues: FloatArray, at: float) -> FloatArray:
    """Share of a deviation with these one-sided p-values that is beyond the deviation with the p-value ``at``."""
    from scipy.special import ndtri

    return np.asarray(np.maximum(1 - ndtri(at) / ndtri(np.clip(pvalues, _LEAST, _NOT_OUT)), 0.0))


def _counts(sums: BinMoments, some: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Trials, their stated probabilities, and observed counts, (r, B) each."""
    weight, score, outcome = (np.atleast_2d(v)[some] for v in (sums.weight, sums.score, sums.outcome))
    size = np.where(weight > 0, weight, 1.0)
    if sums.integral:
        trials = weight
    elif sums.mapping == "hard":
        trials = np.atleast_2d(sums.effective_size)[some]
    else:  # bins share rows, whose residuals must add up
        trials = weight * np.reshape(sums._unit, (-1, 1))[some]
    return trials, np.clip(score / size, 0.0, 1.0), trials * outcome / size


def _range_tests(trials: FloatArray, chance: FloatArray, observed: FloatArray) -> FloatArray:
    """P-values and shifts, (2, r)."""
    variance = trials * chance * (1 - chance)
    total = variance.sum(axis=-1, keepdims=True)
    middle = np.cumsum(variance, axis=-1) - variance / 2
    place = np.divide(middle, total, out=np.zeros_like(middle), where=total > 0)
    out, shift = np.ones(len(trials)), np.zeros(len(trials))
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
        pvalues = np.ones(off.shape)
        pvalues[problem, part] = 2 * LEVELS * ranges * tails
        least = pvalues.argmin(axis=-1)[:, None]
        found, size = (np.take_along_axis(v, least, -1)[:, 0] for v in (pvalues, np.abs(off)))
        out, shift = np.minimum(out, found), np.where(found < out, size, shift)
    out = np.where((total[:, 0] > 0) | (out < 1), out, np.nan)
    return np.stack([out, shift / np.maximum(trials.sum(axis=-1), 1.0)])
