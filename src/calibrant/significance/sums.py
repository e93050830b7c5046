"""The test of a report: smoothed residuals against those of a calibrated model, from sums alone, and its power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import FloatArray
from ..binning import BinMoments
from ..density import GridMoments
from ..errors import ResidualKernel
from ..errors.base import Cells
from ..errors.norm import combine_draws
from ..inference.bands import poisson
from ..inference.intervals import spread_together
from ..question import Question
from .result import TestResult

#: Draws for the p-value, and for the power; fewer with more classes than these, whose mean varies less.
DRAWS, POWER_DRAWS, MANY = 999, 400, 10
LEAST_DRAWS, LEAST_POWER_DRAWS = 199, 100
#: Share of samples in which what is called detectable would be found.
POWER = 0.8
_READER = ResidualKernel()
#: The true probability at each score.
Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Power:
    """What a test of this many rows can see.

    Attributes
    ----------
    detectable : float
        Calibration error that the test would find in four of five samples like this one, if the log odds of all scores
        are too large or too small by a factor, or too high or too low by a constant, whichever is hardest to see;
        infinite where even the largest constant would be missed.
    n_samples : int
        Rows.
    """

    detectable: float
    n_samples: int

    def rows_for(self, error: float) -> float:
        """About how many rows an error needs in order to be found as often: errors in sight fall with the root of n."""
        return self.n_samples * (self.detectable / error) ** 2


@dataclass(frozen=True, eq=False)
class _Drawn:
    """One problem: its cells, and smoothed residuals of calibrated draws, (R, cells)."""

    cells: Cells
    noise: FloatArray
    observed: FloatArray

    @classmethod
    def of(cls, grid: GridMoments, bins: BinMoments, n_draws: int, rng: np.random.Generator) -> _Drawn:
        cells = _READER.cells(grid)
        score = np.nan_to_num(cells.scores)
        # Samples that a cell's outcomes vary like, a unit of its count: 1, unless weights differ from score to score.
        rate = _trials_a_unit(bins, grid, score)
        # Residuals of Bernoulli outcomes: Poisson draws of both kinds have the same mean, variance and skewness.
        noise = poisson(cells.count * rate * score, n_draws, rng) * ((1 - score) / rate)
        noise -= poisson(cells.count * rate * (1 - score), n_draws, rng) * (score / rate)
        observed = cells.outcome(cells.positive, cells.count)
        return cls(cells, cells.apply(noise), cells.apply(observed))

    def errors(self, smooth: FloatArray) -> FloatArray:
        """Errors of smoothed residuals, (R, cells)."""
        weight = self.cells.density * self.cells.quadrature
        known = self.cells.density > 1e-12 * self.cells.density.max(initial=0.0)
        return np.asarray(np.abs(smooth[:, known]) @ self.cells.quadrature[known] / weight[known].sum())

    def shifted(self, truth: Map) -> tuple[FloatArray, float]:
        """Smoothed mean residuals under another truth, and its calibration error."""
        score = np.nan_to_num(self.cells.scores)
        gap = truth(score) - score
        error = float(self.cells.count @ np.abs(gap) / self.cells.count.sum())
        return self.cells.apply(self.cells.count * gap), error


@dataclass(frozen=True, eq=False)
class SumsTest:
    """Test of calibration by smoothed residuals over ranks, from grids of counts, and what it could see.

    Labels are drawn from the scores on the grid: cost O(R G) a problem, whatever the number of rows.

    Attributes
    ----------
    drawn : sequence of drawn problems
    question : Question
        How the errors of problems become one; its level is one less the size of the test whose power is told.
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
    ) -> SumsTest:
        """Draw calibrated residuals of every problem; bins say how weights differ from score to score."""
        draws = max(int(DRAWS / max(1.0, len(grids) / MANY)), LEAST_DRAWS)
        drawn = [_Drawn.of(grid, some, draws, rng) for grid, some in zip(grids, bins, strict=True)]
        rows = [grid.n_samples for grid in grids]
        # One-vs-rest problems share their rows, others split them.
        return cls(drawn, question, max(rows) if question.dependent else sum(rows))

    def _combined(self, smooth: Sequence[FloatArray]) -> FloatArray:
        errors = [d.errors(s) for d, s in zip(self.drawn, smooth, strict=True)]
        return np.asarray(combine_draws(errors, self.question.shares, 1, self.question.average))

    @property
    def _usable(self) -> bool:
        return all(d.cells.density.any() for d in self.drawn)

    @cached_property
    def _draws(self) -> FloatArray:
        each = [d.errors(d.noise) for d in self.drawn]
        draws = np.asarray(combine_draws(each, self.question.shares, 1, self.question.average))
        if not self.question.dependent or len(each) < 2:
            return draws
        # Classes that hardly vary do not count: two that share all the noise are as one against the rest.
        variance = np.array([share**2 * one.var() for share, one in zip(self.question.shares, each, strict=True)])
        if not variance.any():
            return draws
        widened = spread_together(max(float(variance.sum() ** 2 / (variance**2).sum()), 2.0))
        return np.asarray(draws.mean() + widened * (draws - draws.mean()))

    @property
    def rejects_at(self) -> float:
        """P-values up to this are called evidence: ``1 - level``, or the smallest that the draws can give."""
        return max(1 - self.question.level, 1 / (self._draws.size + 1))

    @cached_property
    def _threshold(self) -> float:
        """Errors above this have such a p-value."""
        most = int(np.floor(self.rejects_at * (self._draws.size + 1) * (1 + 1e-12))) - 1
        return float(np.sort(self._draws)[::-1][most])

    @cached_property
    def result(self) -> TestResult:
        """Statistic and p-value; NaN without data."""
        null = f"the probabilities are calibrated ({self.question.notion})"
        if not self._usable:
            return TestResult(float("nan"), float("nan"), null, "smoothed residuals over ranks", self.n_samples)
        observed = float(self._combined([d.observed[None] for d in self.drawn])[0])
        at_least = int((self._draws >= observed * (1 - 1e-12)).sum())
        return TestResult(
            statistic=observed,
            pvalue=(at_least + 1) / (self._draws.size + 1),
            null=null,
            method=f"smoothed residuals over ranks, {self._draws.size} draws of a calibrated model",
            n_samples=self.n_samples,
            details={"expected": float(self._draws.mean())},
        )

    @cached_property
    def power(self) -> Power:
        """The error that it could see."""
        if not self._usable:
            return Power(float("nan"), self.n_samples)
        found = [self._detectable(family) for family in (higher, lower, sharper, flatter)]
        seen = all(known for _, known in found[:2])
        # One row in n that is otherwise: where scores are certain, nothing else can be seen.
        least = 1 - (1 - POWER) ** (1 / max(self.n_samples, 1))
        return Power(max(least, *(error for error, _ in found)) if seen else float("inf"), self.n_samples)

    def _seen(self, truth: Map) -> tuple[float, float]:
        """Share of samples in which a truth is found, and its calibration error."""
        few = max(int(POWER_DRAWS / max(1.0, len(self.drawn) / MANY)), LEAST_POWER_DRAWS)
        moved = [d.shifted(truth) for d in self.drawn]
        found = self._combined([d.noise[:few] + gap for d, (gap, _) in zip(self.drawn, moved, strict=True)])
        error = combine_draws([np.array([error]) for _, error in moved], self.question.shares, 1, self.question.average)
        return float((found > self._threshold).mean()), float(error[0])

    def _detectable(self, family: Callable[[float], Map]) -> tuple[float, bool]:
        """Least error of a family of truths that is seen with :data:`POWER`; the largest it has and False, if none."""
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


def _trials_a_unit(bins: BinMoments, grid: GridMoments, score: FloatArray) -> FloatArray:
    """Kish's effective size a unit of weight at some scores, by the bins they lie in, over that of all rows."""
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
