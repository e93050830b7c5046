"""Measures of models: values, and the noise and bias of their differences, for all models at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...data.predictions import Predictions
from ...data.types import FloatArray
from ...estimators import CellEstimator, EmpiricalBayes, Estimator
from ...estimators.norm import combine
from ...measure.ece import DEFAULT
from ...measure.estimation import estimate
from ...measure.reliability import reliability_curve
from ...measure.scoring_rules import ScoringRule, accuracy_per_sample, score_rows
from ...notions import Notion
from ...significance.result import least_pvalue
from .parts import N_DRAWS, ScoreParts, overfits
from .squares import Squares, problems_of, squares_covariance
from .units import IndependentUnits

#: Level of the intervals of single errors, and their half-width in standard errors.
_LEVEL, _REACH = 0.95, 1.959963984540054


@dataclass(frozen=True, eq=False)
class Measured:
    """One measure of M models.

    Attributes
    ----------
    values : ndarray of shape (M,)
        Values as usually reported.
    centres : ndarray of shape (M,)
        Values corrected for the bias of noise.
    se : ndarray of shape (M, M)
        Standard error of the difference of centres i minus j, on its lower side; on its upper side it is that of j
        minus i.
    df : float
        Degrees of freedom of the standard errors.
    least : float
        Smallest possible p-value, given the number of groups of rows.
    """

    values: FloatArray
    centres: FloatArray
    se: FloatArray
    df: float
    least: float


def standard_errors(*covariances: FloatArray) -> FloatArray:
    """Standard errors (M, M) of differences from covariances (M, M), elementwise the largest."""
    with np.errstate(invalid="ignore"):  # of infinite ones, as weights near the largest number give: no number
        found = [np.add.outer(c.diagonal(), c.diagonal()) - 2 * c for c in covariances]
    return np.asarray(np.sqrt(np.maximum(np.max(found, axis=0), 0.0)))


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of several models' predictions for the same outcomes; all rows have weight."""

    models: Sequence[Predictions]
    units: IndependentUnits

    @cached_property
    def _rests_on(self) -> tuple[float, float]:
        """Degrees of freedom, and the smallest possible p-value."""
        units = self.units
        return units.df, float(least_pvalue(units.copies.size)) if units.grouped else 0.0

    def mean(self, losses: Sequence[FloatArray]) -> Measured:
        """Weighted mean of each model's values per row; models share the rows, so their common noise cancels."""
        units = self.units
        values = np.array([float(units.row_mass @ loss) / units.total for loss in losses])
        finite = np.isfinite(values)
        influence = np.full((len(losses), units.copies.size), np.nan)
        for i, loss in enumerate(losses):
            if finite[i]:
                influence[i] = units.sums(loss - values[i]) / units.total
        return Measured(values, values, standard_errors(units.covariance(influence)), *self._rests_on)

    def accuracy(self) -> Measured:
        """Share of rows whose most probable class was right."""
        return self.mean([accuracy_per_sample(p) for p in self.models])

    def score(self, rule: ScoringRule) -> Measured:
        """Mean of a proper score."""
        return self.mean([score_rows(p, rule) for p in self.models])

    def calibration_error(
        self, notion: Notion, estimator: Estimator, n_resamples: int, rng: np.random.Generator
    ) -> Measured:
        r"""L1 error by the estimator, with the intervals of :func:`calibrant.estimate`, combined for differences.

        With l and u the distances of a single interval's ends from its median, a difference has (Zou & Donner 2008)

        .. math:: l_{ij}^2 = l_i^2 + u_j^2 - 2 r\, l_i u_j, \qquad u_{ij} = l_{ji}.

        The correlation r is that of the errors' noise on the same units, used where negative. An interval that reaches
        0 is not normal: its lower end is combined with r = -1.
        """
        grouped = self.models[0].groups is not None
        # Estimators that need single rows have no interval for groups.
        source = EmpiricalBayes() if grouped and not isinstance(estimator, CellEstimator) else estimator
        seed, few = int(rng.integers(2**63)), max(2, n_resamples // 5)
        found = [
            estimate(p, notion=notion, estimator=source, level=_LEVEL, n_resamples=few, random_state=seed)
            for p in self.models
        ]
        ends = np.array([one.interval for one in found])
        centres = np.clip([one.corrected for one in found], ends[:, 0], ends[:, 1])
        below, above = np.abs(ends.T - centres) / _REACH
        covariance = self.units.covariance(np.stack([self.units.sums(self._noise(p, notion)) for p in self.models]))
        sd = np.sqrt(covariance.diagonal())
        shared = np.divide(covariance, np.outer(sd, sd), out=np.zeros(covariance.shape), where=np.outer(sd, sd) > 0)
        shared = np.where(ends[:, :1] > 0, np.minimum(shared, 0.0), -1.0)
        se = np.sqrt(below[:, None] ** 2 + above**2 - 2 * shared * np.outer(below, above))
        values = np.array([_error_of(p, notion, estimator) for p in self.models])
        return Measured(values, centres, se, *self._rests_on)

    def _noise(self, p: Predictions, notion: Notion) -> FloatArray:
        """Contribution of each row's noise to a model's error, (n,): its residual times the sign of the gap there.

        Gaps are those of a smooth curve, whose signs agree with those of most estimators.
        """
        curves = reliability_curve(p, notion=notion, estimator="adaptive", level=None)
        out = np.zeros(p.n_samples)
        every = curves.values() if isinstance(curves, dict) else [curves]
        for problem, target, curve in zip(problems_of(p, notion), notion.targets(p), every, strict=True):
            rows = slice(None) if target.rows is None else target.rows
            share = problem.share / self.units.row_mass[rows].sum()
            observed = curve.at(problem.scores).observed
            noise = np.sign(observed - problem.scores) * (problem.outcomes - observed)
            out[rows] += share * np.nan_to_num(noise)
        return out

    def squared_error(self, notion: Notion) -> Measured:
        """Squared calibration error: pairs of units for the difference, bins' own variance for the value."""
        found = [Squares.of(p, notion, self.units) for p in self.models]
        values = []
        for p in self.models:
            reduction = problems_of(p, notion)
            squares = [DEFAULT._square(problem) for problem in reduction]
            values.append(combine(squares, reduction.shares, 1, reduction.average))
        centres = np.array([s.value for s in found])
        return Measured(
            np.array(values), centres, standard_errors(*squares_covariance(found, self.units)), *self._rests_on
        )

    def parts(
        self, rules: Mapping[str, ScoringRule], n_resamples: int, rng: np.random.Generator
    ) -> dict[str, Measured]:
        """Miscalibration and discrimination by each score, with their noise from resamples of units."""
        parts = ScoreParts.of(self.models, rules, self.units)
        with np.errstate(invalid="ignore"):  # of scores of ∞, which have no interval
            draws = np.concatenate([parts.read(times) for times in self.units.draws(n_resamples, rng)], axis=-1)
            exact = ScoreParts.of(self.models, rules, self.units, None).read(self.units.copies[:, None])[..., 0]
            seed = int(rng.integers(2**63))
            bias = overfits(self.models, rules, self.units, seed)
            # If the truth has steps, the bias is less: how much less is as unknown as noise is.
            doubt = bias.mean(axis=-1) - overfits(self.models, rules, self.units, seed, steps=True).mean(axis=-1)
            out = {}
            for i, name in enumerate(rules):
                for j, part in enumerate(("miscalibration", "discrimination")):
                    # The bootstrap of G units has (G - 1) / G of the variance; the mean of draws has noise of its own.
                    covariance = (
                        np.cov(draws[i, j]) * self.units.inflation
                        + np.cov(bias[i]) / N_DRAWS
                        + np.outer(doubt[i], doubt[i])
                    )
                    centres = exact[i, j] - bias[i].mean(axis=-1)
                    out[f"{name}_{part}"] = Measured(exact[i, j], centres, standard_errors(covariance), *self._rests_on)
        return out


def _error_of(p: Predictions, notion: Notion, estimator: Estimator) -> float:
    """L1 calibration error."""
    reduction = problems_of(p, notion)
    return combine(estimator._powers(reduction, 1), reduction.shares, 1, reduction.average, reduction.exclusive)
