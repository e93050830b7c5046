"""Score statistics of an offset in the logit, in some rows, beyond the recalibrated map of all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...data.dependence import design_effects, group_codes
from ...data.problem import Problem
from ...data.types import AnyArray, FloatArray, IntArray, Label
from ...data.weights import ones_or
from ...significance.null import scale_of
from ...sums.logistic_fit import expit, logits_of
from ..subgroups.cells import SubgroupCells
from ..subgroups.heterogeneity import PooledMap

_CLIP = 1e-12
_STEPS, _SMALLEST = 8, 1e-8
#: Ridge of the information of columns, as a share of their mean: collinear columns then have one solution.
_RIDGE = 1e-12


@dataclass(frozen=True, eq=False)
class SegmentRows:
    """Rows with weight of one problem, and their positions among the rows of the features.

    Attributes
    ----------
    at : ndarray of shape (n,)
        Position of each row among those given.
    scores, outcomes, weights, times : ndarray of shape (n,)
        Relative weights sum to the effective sample size; ``times`` enter variances.
    counts : bool
        Whether weights are numbers of independent outcomes.
    groups : ndarray of shape (n,) or None
        Codes of groups of dependent rows, some of which may be absent.
    """

    at: IntArray
    scores: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    times: FloatArray
    counts: bool
    groups: IntArray | None
    label: Label = None

    @classmethod
    def of(cls, problem: Problem, at: IntArray, groups: AnyArray | None) -> SegmentRows:
        """The rows of a problem that have weight."""
        weights = ones_or(problem.weights, problem.scores.size)
        used = np.flatnonzero(weights > 0)
        w = weights[used]
        if not problem.integral and w.size:
            w = w / w.max()  # squares of small ones would vanish
            w = w * (w.sum() / (w @ w))
        of = None if groups is None else groups[used]
        scores, outcomes = (np.asarray(v[used], dtype=np.float64) for v in (problem.scores, problem.outcomes))
        times = w if problem.integral else w * w
        return cls(at[used], scores, outcomes, w, times, problem.integral, of, problem.label)

    def some(self, rows: AnyArray) -> SegmentRows:
        """Some rows, by a mask or by positions."""
        names = ("at", "scores", "outcomes", "weights", "times", "groups")
        each: dict[str, Any] = {name: v if (v := getattr(self, name)) is None else v[rows] for name in names}
        return replace(self, **each)

    @cached_property
    def n_groups(self) -> int:
        """Number of groups; number of rows if these are independent."""
        return self.at.size if self.groups is None else int(np.unique(self.groups).size)

    @property
    def problem(self) -> Problem:
        """The rows as a problem."""
        return Problem(self.scores, self.outcomes, self.weights, self.counts)


@dataclass(frozen=True, eq=False)
class OffsetModel:
    """Probabilities of all rows: a polynomial logistic curve of the score, and an offset for each segment found.

    Attributes
    ----------
    rows : SegmentRows
    columns : ndarray of shape (n, d)
        Columns of the curve at each row, and of the segments.
    chance : ndarray of shape (n,)
    n_curve : int
        Number of columns of the curve.
    """

    rows: SegmentRows
    columns: FloatArray
    chance: FloatArray
    n_curve: int

    @classmethod
    def of(cls, rows: SegmentRows) -> OffsetModel | None:
        """The model without segments; None if no finite curve fits best."""
        if rows.scores.size == 0:
            return None
        problem, design = rows.problem, 1.0
        if rows.groups is not None:
            if rows.n_groups < 2:
                return None
            design = float(design_effects(problem, group_codes(rows.groups), (1.0,))[0])
        curve = PooledMap.of(SubgroupCells.of_rows(problem), design)
        if curve is None:
            return None
        columns, chance = curve.at(rows.scores)
        return cls(rows, columns, chance, columns.shape[1])._fitted(logits_of(chance, _CLIP))

    def beyond(self, segment: AnyArray) -> OffsetModel:
        """The model with an offset for another segment."""
        columns = np.column_stack([self.columns, segment])
        return replace(self, columns=columns)._fitted(logits_of(self.chance, _CLIP))

    def _fitted(self, logit: FloatArray) -> OffsetModel:
        """The model at maximum likelihood, from logits near it; a few steps, as an offset may be infinite."""
        model = self
        for _ in range(_STEPS):
            model = replace(self, chance=np.clip(expit(logit), _CLIP, 1 - _CLIP))
            step = model.columns @ model.solved(model.residuals)
            logit = logit + step
            if np.abs(step).max() < _SMALLEST:
                break
        return model

    @property
    def residuals(self) -> FloatArray:
        """``w (o - c)``."""
        return self.rows.weights * (self.rows.outcomes - self.chance)

    @cached_property
    def variance(self) -> FloatArray:
        """Variances of residuals, (n,)."""
        return self.rows.times * self.chance * (1 - self.chance)

    @cached_property
    def _bent(self) -> FloatArray:
        """Columns times the information of rows."""
        return self.columns * (self.rows.weights * self.chance * (1 - self.chance))[:, None]

    @cached_property
    def _inverse(self) -> FloatArray:
        information = self.columns.T @ self._bent
        ridge = _RIDGE * np.trace(information) / len(information)
        return np.asarray(np.linalg.inv(information + ridge * np.eye(len(information))))

    def solved(self, residuals: FloatArray) -> FloatArray:
        """Step of the coefficients for residuals (…, n)."""
        return np.asarray((residuals @ self.columns) @ self._inverse)

    def refitted(self, residuals: FloatArray) -> FloatArray:
        """Residuals (…, n) about the model refitted to them, to first order."""
        return np.asarray(residuals - self.solved(residuals) @ self._bent.T)

    @cached_property
    def _signs(self) -> float:
        """Factor that scales residuals whose signs are drawn to at least the variance that the probabilities imply."""
        stated = self.rows.weights**2 @ (self.chance * (1 - self.chance))
        return float(scale_of(self.residuals @ self.residuals, stated))

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Residuals (number, n) if the model is right: of drawn outcomes, or with drawn signs of groups."""
        rows = self.rows
        if rows.groups is not None:
            signs = 2.0 * rng.integers(2, size=(number, int(rows.groups.max()) + 1)) - 1
            return self.refitted(self._signs * signs[:, rows.groups] * self.residuals)
        if rows.counts and rows.weights.max() > 1:
            times = rows.weights.astype(np.int64)
            drawn = rng.binomial(times, self.chance, size=(number, times.size)) - times * self.chance
        else:
            drawn = (rng.random((number, self.chance.size)) < self.chance) - self.chance
            drawn *= rows.weights
        return self.refitted(drawn)

    def score(self, segment: AnyArray) -> tuple[float, float, float]:
        """Score statistic z of an offset in a segment, its skewness, and its degrees of freedom (inf: normal)."""
        rows, residuals = self.rows, self.residuals
        inside = segment.astype(np.float64)
        part = inside - self.columns @ (self._inverse @ (self._bent.T @ inside))
        each = part * residuals
        by_model = float(part**2 @ self.variance)
        if not by_model > 1e-9 * max(float(self.variance @ inside), 1e-300):
            return 0.0, 0.0, np.inf
        if rows.groups is None:
            third = rows.weights if rows.counts else rows.weights**3
            skew = float((part**3 * third * self.chance * (1 - self.chance)) @ (1 - 2 * self.chance)) / by_model**1.5
            return float(each.sum()) / by_model**0.5, skew, np.inf
        number = np.unique(rows.groups[segment]).size
        sums = np.bincount(rows.groups, each)
        by_groups = float(sums @ sums) * number / max(number - 1, 1)
        return float(each.sum()) / max(by_model, by_groups) ** 0.5, 0.0, float(max(number - 1, 1))

    def gap(self, segment: AnyArray, inflation: float = 1.0) -> tuple[float, float, float, float]:
        """Means of outcomes, of scores, and of residuals about the model; standard error of outcomes minus scores.

        The variance is at least ``inflation`` times that of independent rows, as in the search.
        """
        rows, w = self.rows, self.rows.weights[segment]
        o, s, total = rows.outcomes[segment], rows.scores[segment], float(w.sum())
        observed, stated = float(w @ o) / total, float(w @ s) / total
        off = w * (o - s - (observed - stated))
        # As of subgroups: the residuals' variance, or that of the chances or scores, whichever is largest.
        per_row = rows.times[segment] / w
        stated_variance = float(rows.times[segment] @ (s * (1 - s)))
        variance = max(float(per_row @ (off**2 / w)), inflation * float(self.variance[segment].sum()), stated_variance)
        if rows.groups is not None:
            sums = np.bincount(rows.groups[segment], off)
            number = np.unique(rows.groups[segment]).size
            variance = max(variance, float(sums @ sums) * number / max(number - 1, 1))
        return observed, stated, float(self.residuals[segment].sum()) / total, variance**0.5 / total

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the outcomes."""
        return _log_likelihood(self.rows, self.chance)

    @property
    def gain(self) -> float:
        """Gain in log-likelihood of the curve over the scores as given, minus its expected gain by chance."""
        return max(self.log_likelihood - _log_likelihood(self.rows, self.rows.scores) - self.n_curve / 2, 0.0)


def _log_likelihood(rows: SegmentRows, chance: FloatArray) -> float:
    c = np.clip(chance, _CLIP, 1 - _CLIP)
    return float(rows.weights @ np.where(rows.outcomes > 0, np.log(c), np.log1p(-c)))
