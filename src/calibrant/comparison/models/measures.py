"""What models are compared by: values, their noise, and their bias, each for all models at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...data.predictions import Predictions
from ...data.types import FloatArray
from ...estimators import Estimator
from ...estimators.norm import combine
from ...measure.ece import DEFAULT
from ...measure.scoring_rules import ScoringRule, score_rows
from ...notions import Notion
from .gaps import Gaps
from .overfit import N_DRAWS, overfits
from .parts import ScoreParts
from .residual_bins import problems_of
from .squares import Squares, squares_covariance
from .units import IndependentUnits


@dataclass(frozen=True, eq=False)
class Measured:
    """One measure of M models.

    Attributes
    ----------
    values : ndarray of shape (M,)
        As the measure is usually read.
    centres : ndarray of shape (M,)
        Without the bias of noise.
    covariance : ndarray of shape (M, M)
        Of the centres.
    df : float
        Degrees of freedom of that.
    least : ndarray of shape (M, M) or None
        Covariance that no difference's variance is taken to be below.
    """

    values: FloatArray
    centres: FloatArray
    covariance: FloatArray
    df: float
    least: FloatArray | None = None

    def se(self, i: int, j: int) -> float:
        """Standard error of the difference of two models."""

        def variance(table: FloatArray) -> float:
            return float(table[i, i] + table[j, j] - 2 * table[i, j])

        found = variance(self.covariance)
        if self.least is not None:
            found = max(found, variance(self.least))
        return float(np.sqrt(max(found, 0.0)))


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of several models' predictions, all of whose rows have weight, for the same outcomes."""

    models: Sequence[Predictions]
    units: IndependentUnits

    @cached_property
    def _df(self) -> float:
        return max(self.units.size - 1, 1.0)

    def mean(self, losses: Sequence[FloatArray]) -> Measured:
        """Weighted means of what each model has in each row; models share the rows, so their noise cancels."""
        units = self.units
        values = np.array([float(units.row_mass @ loss) / units.total for loss in losses])
        finite = np.isfinite(values)
        influence = np.full((len(losses), units.copies.size), np.nan)
        for i, loss in enumerate(losses):
            if finite[i]:
                influence[i] = units.sums(loss - values[i]) / units.total
        return Measured(values, values, units.covariance(influence), self._df)

    def accuracy(self) -> Measured:
        """Share of rows whose most probable class was right."""
        return self.mean([(p.predicted == p.codes).astype(np.float64) for p in self.models])

    def score(self, rule: ScoringRule) -> Measured:
        """Mean of a proper score."""
        return self.mean([score_rows(p, rule) for p in self.models])

    def squared_error(self, notion: Notion) -> Measured:
        """Squared calibration error: pairs of units for the difference, bins' own variance for the value."""
        found = [Squares.of(p, notion, self.units) for p in self.models]
        covariance, least = squares_covariance(found, self.units)
        values = []
        for p in self.models:
            reduction = problems_of(p, notion)
            squares = [DEFAULT._square(problem) for problem in reduction]
            values.append(combine(squares, reduction.shares, 1, reduction.average))
        return Measured(np.array(values), np.array([s.value for s in found]), covariance, self._df, least)

    def resampled(
        self,
        notion: Notion,
        estimator: Estimator,
        rules: Mapping[str, ScoringRule],
        n_resamples: int,
        rng: np.random.Generator,
    ) -> dict[str, Measured]:
        """Measures whose noise is told by resamples of units: calibration error, and parts of scores."""
        gaps = [Gaps.of(p, notion, self.units) for p in self.models]
        parts = ScoreParts.of(self.models, rules, self.units)
        noise: list[list[FloatArray]] = [[] for _ in gaps]
        drawn: list[FloatArray] = []
        for times in self.units.draws(n_resamples, rng):
            for one, sample in zip(gaps, noise, strict=True):
                sample.append(one.influence @ times)
            drawn.append(parts.read(times))
        wider = np.sqrt(self.units.size / self._df)
        found = [g.corrected(wider * np.concatenate(sample, axis=1)) for g, sample in zip(gaps, noise, strict=True)]
        values = np.array([_error_of(p, notion, estimator) for p in self.models])
        # Resamples know each model's noise, but not how what is taken off hangs together: the standard error of a
        # difference is the sum of both, which no dependence exceeds.
        sd = np.array([draws.std(ddof=1) for _, draws in found])
        worst = 2 * np.diag(sd**2) - np.outer(sd, sd)
        error = Measured(values, np.array([middle for middle, _ in found]), worst, self._df)
        with np.errstate(invalid="ignore"):  # of scores of ∞, which have no interval
            draws, once = np.concatenate(drawn, axis=-1), self.units.copies[:, None]
            exact = ScoreParts.of(self.models, rules, self.units, None).read(once)[..., 0]
            seed = int(rng.integers(2**63))
            bias = overfits(self.models, rules, self.units, seed)
            # If the truth has steps, the bias is less: how much less is as unknown as noise is.
            doubt = bias.mean(axis=-1) - overfits(self.models, rules, self.units, seed, steps=True).mean(axis=-1)
            out = {"calibration_error": error}
            for i, name in enumerate(rules):
                for j, part in enumerate(("miscalibration", "discrimination")):
                    # The mean of draws has noise of its own.
                    covariance = np.cov(draws[i, j]) + np.cov(bias[i]) / N_DRAWS + np.outer(doubt[i], doubt[i])
                    centres = exact[i, j] - bias[i].mean(axis=-1)
                    out[f"{name}_{part}"] = Measured(exact[i, j], centres, covariance, self._df)
        return out


def _error_of(p: Predictions, notion: Notion, estimator: Estimator) -> float:
    """L1 calibration error."""
    reduction = problems_of(p, notion)
    return combine(estimator._powers(reduction, 1), reduction.shares, 1, reduction.average, reduction.dependent)
