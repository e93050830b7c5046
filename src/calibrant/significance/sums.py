"""The test of a report: smoothed residuals against those of a calibrated model, from sums alone, and its power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import FloatArray
from ..density import GridMoments
from ..errors import ResidualKernel
from ..errors.base import Cells
from ..errors.norm import combine_draws
from ..inference.bands import poisson
from ..inference.intervals import spread_together
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
        Calibration error that the test would find in four of five samples like this one: of a model whose log odds are
        too large by a factor, or too high by a constant, whichever is harder to see.
    n_samples : float
        Effective number of rows.
    """

    detectable: float
    n_samples: float

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
    def of(cls, grid: GridMoments, n_draws: int, rng: np.random.Generator) -> _Drawn:
        cells = _READER.cells(grid)
        score = np.nan_to_num(cells.scores)
        # Residuals of Bernoulli outcomes: Poisson draws of both kinds have the same mean, variance and skewness.
        noise = poisson(cells.count * score, n_draws, rng) * (1 - score)
        noise -= poisson(cells.count * (1 - score), n_draws, rng) * score
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
    shares, average, dependent
        How the errors of problems become one; whether the problems share rows.
    notion : str
    level : float
        One less the size of the test whose power is told.
    n_samples : int
    size : float
        Effective number of rows.
    """

    drawn: Sequence[_Drawn]
    shares: Sequence[float]
    average: str
    dependent: bool
    notion: str
    level: float
    n_samples: int
    size: float

    @classmethod
    def of(
        cls,
        grids: Sequence[GridMoments],
        shares: Sequence[float],
        *,
        notion: str,
        average: str,
        dependent: bool,
        level: float,
        rng: np.random.Generator,
    ) -> SumsTest:
        """Draw calibrated residuals of every problem."""
        draws = max(int(DRAWS / max(1.0, len(grids) / MANY)), LEAST_DRAWS)
        sizes = [grid.effective_size for grid in grids]
        return cls(
            [_Drawn.of(grid, draws, rng) for grid in grids],
            shares,
            average,
            dependent,
            notion,
            level,
            max(grid.n_samples for grid in grids),
            float(max(sizes) if dependent else sum(sizes)),  # one-vs-rest problems share their rows, others split them
        )

    def _combined(self, smooth: Sequence[FloatArray]) -> FloatArray:
        errors = [d.errors(s) for d, s in zip(self.drawn, smooth, strict=True)]
        return np.asarray(combine_draws(errors, self.shares, 1, self.average))

    @property
    def _usable(self) -> bool:
        return all(d.cells.density.any() for d in self.drawn)

    @cached_property
    def _draws(self) -> FloatArray:
        draws = self._combined([d.noise for d in self.drawn])
        widened = spread_together(len(self.drawn)) if self.dependent else 1.0
        return np.asarray(draws.mean() + widened * (draws - draws.mean()))

    @cached_property
    def result(self) -> TestResult:
        """Statistic and p-value; NaN without data."""
        null = f"the probabilities are calibrated ({self.notion})"
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
            return Power(float("nan"), self.size)
        return Power(max(self._detectable(sharper), self._detectable(higher)), self.size)

    def _seen(self, truth: Map) -> tuple[float, float]:
        """Share of samples in which a truth is found, and its calibration error."""
        few = max(int(POWER_DRAWS / max(1.0, len(self.drawn) / MANY)), LEAST_POWER_DRAWS)
        moved = [d.shifted(truth) for d in self.drawn]
        found = self._combined([d.noise[:few] + gap for d, (gap, _) in zip(self.drawn, moved, strict=True)])
        error = combine_draws([np.array([error]) for _, error in moved], self.shares, 1, self.average)
        return float((found > np.quantile(self._draws, self.level)).mean()), float(error[0])

    def _detectable(self, family: Callable[[float], Map]) -> float:
        """Least error of a family of truths that is seen with :data:`POWER`; the largest it has, if none is."""
        low, high = 0.0, 1.0
        share, error = self._seen(family(1.0))
        if share < POWER:
            return error
        for _ in range(10):
            middle = (low + high) / 2
            share, found = self._seen(family(middle))
            if share >= POWER:
                high, error = middle, found
            else:
                low = middle
        return error


def sharper(amount: float) -> Map:
    """Truth of a model whose log odds are too large by the factor ``1 / (1 - amount)``."""
    return _on_log_odds(lambda z: (1 - amount) * z)


def higher(amount: float) -> Map:
    """Truth of a model whose log odds are too high by a constant that grows from 0 to 10 with ``amount`` in [0, 1]."""
    return _on_log_odds(lambda z: z - 10 * amount**2)


def _on_log_odds(change: Map) -> Map:
    from scipy.special import expit, logit

    return lambda score: np.asarray(expit(change(logit(np.clip(score, 1e-9, 1 - 1e-9)))))
