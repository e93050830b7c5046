"""`decision_calibration_error`: the calibration error near decision thresholds, and its cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from ..data.checks import check_level, check_random_state, check_resamples, check_type, is_auto, received
from ..data.printing import equals, with_ends
from ..data.problem import Problem
from ..data.public_function import InputOptions, public_function
from ..data.result import Result
from ..data.types import FloatArray, Interval, Label, RandomState
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..estimators import EmpiricalBayes, laplace
from ..estimators.base import ErrorDraws
from ..estimators.empirical_bayes import WIDE, from_sums
from ..estimators.laplace import Prior, RankCells
from ..estimators.laplace_draws import draw_gaps
from ..measure.posterior import credible
from ..measure.question import Question
from ..notions import ClassSpecific, only_problem
from ..scores.murphy import BinaryRows
from ..significance.cumulative_sums import kuiper_pvalue
from ..sums.edges import EDGE_UNITS
from ..sums.grid import GRID_CELLS

#: Cells of equal mass; scores in one share their gap.
_CELLS = 256
#: Equally probable gaps that stand for a normal distribution in means over the posterior.
_EQUAL = 64
#: Posterior draws per resample, as for every posterior.
_POSTERIOR = 5
#: Steps of (0, 1) in integrals over thresholds of a function.
_STEPS = 4096
#: Rows up to which the test of the region draws labels.
_DRAWN_ROWS = 5000

Thresholds = tuple[float, float] | Callable[[FloatArray], Any]


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCalibrationError(Result):
    """Calibration error at decision thresholds.

    Attributes
    ----------
    error : float
        Mean absolute gap of the scores at thresholds, weighted by the thresholds' density; NaN without such scores.
    error_interval : Interval
        Interval of the error.
    regret : float
        Excess cost, averaged over thresholds, of acting on the scores instead of calibrated ones.
    regret_interval : Interval
        Interval of the regret.
    share : float
        Mean weight of the rows; for a range of thresholds, the share of scores within it.
    pvalue : float
        The p-value of Kuiper's test of the residuals with these weights.
    thresholds : tuple of float or None
        The range; None for a function.
    label : object
        The class that is acted upon.

    See Also
    --------
    calibrant.decisions.decision_calibration_error : Computes it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.decisions.decision_calibration_error(rng.random(2000) < p, p, thresholds=(0.1, 0.3))
    >>> found.error_interval.low, round(found.share, 1)
    (0.0, 0.2)
    """

    _unpictured: ClassVar[str] = "No picture: the reliability diagram shows the error between the thresholds."

    error: float
    error_interval: Interval
    regret: float
    regret_interval: Interval
    share: float
    pvalue: float
    thresholds: tuple[float, float] | None
    level: float
    label: Label
    n_samples: int

    @property
    def summary(self) -> str:
        """The error at decision thresholds, in words."""
        if self.error != self.error:
            return "No score lies where decisions are made."
        error = with_ends(self.error, self.error_interval)
        return f"Where decisions are made, the calibration error is {error}, p {equals(self.pvalue)}."

    def _text(self) -> str:
        if self.thresholds is None:
            where = "weighted by thresholds"
        else:
            where = f"thresholds {self.thresholds[0]:g} to {self.thresholds[1]:g}"
        error, regret = self.error_interval, self.regret_interval
        return (
            f"Calibration error at decisions, {where}: {self.error:.4f} ({error.low:.4f} to {error.high:.4f}), "
            f"p = {self.pvalue:.3g}, {100 * self.share:.1f} % of {self.n_samples:,} rows\n"
            f"excess cost per row: {self.regret:.6f} ({regret.low:.6f} to {regret.high:.6f})"
        )


@public_function()
def decision_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    thresholds: Thresholds,
    estimator: str | EmpiricalBayes = "auto",
    level: float = 0.95,
    n_resamples: int = 400,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> DecisionCalibrationError:
    r"""Calibration error at decision thresholds, and the cost that it causes there.

    With ĝ the recalibration map and v the density of decision thresholds,

    .. math:: & \text{error} = \frac{\sum_i w_i v(s_i)\, |\hat g(s_i) - s_i|}{\sum_i w_i v(s_i)}, \\
              & \text{regret} = \frac{1}{\sum_i w_i} \sum_i w_i \int_{s_i}^{\hat g(s_i)} v(c)\, (\hat g(s_i) - c)\, dc
              \Big/ \int_0^1 v(c)\, dc

    Acting at threshold c costs c for an outcome of 0, and not acting ``1 - c`` for one of 1: acting on s instead of g
    costs ``|g - c|`` more if c lies between them, else nothing. The regret is the miscalibration part of the score
    :class:`calibrant.scores.CostWeighted` at c, averaged over thresholds; over all of (0, 1), it is half the mean of
    ``(g - s)²``. A score of 0.01 that should be 0.03 is an error of 0.02, but no regret if all thresholds are higher.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, 2)
        Predicted probability of ``pos_label``, or one column for each of the two classes.
    thresholds : (low, high), or function
        A range within [0, 1], in which all thresholds are equally important; or v itself, which takes an array of
        thresholds and returns weights ≥ 0, not all 0. For a single threshold see :func:`calibrant.decompose`.
    estimator : "auto" or EmpiricalBayes, default "auto"
        The estimator of the map ĝ; ``"auto"``: ``EmpiricalBayes()``. Error and regret are means over its posterior.
    n_resamples : int, default 400
        Number of resamples; intervals take five times as many draws from the posterior.

    Returns
    -------
    DecisionCalibrationError
        ``.error`` and ``.regret`` with their intervals, and ``.share``, the share of the rows at the thresholds.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.calibration_error : The error over all scores.
    calibrant.expected_cost : The cost of decisions at given costs of errors.
    calibrant.decision_curve : The net benefit at every threshold.

    Notes
    -----
    Intervals are credible intervals of the model behind :func:`calibrant.estimate`. They start at exactly 0 if the
    scores may well be calibrated, everywhere or, by Kuiper's test (labels drawn from the scores up to 5000 rows, the
    limiting distribution beyond), at the thresholds. A mean over a posterior is biased upwards for calibrated scores
    and never 0. Coverage: benchmarks/coverage/decision_coverage.md. Cost O(n log n).

    References
    ----------
    Ehm, Gneiting, Jordan & Krüger (2016), *Of quantiles and expectiles: consistent scoring functions, Choquet
    representations and forecast rankings* (elementary scores); Van Calster & Vickers (2015), *Calibration of risk
    prediction models: impact on decision-analytic performance*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < np.where(p < 0.3, p, np.minimum(p**2 + 0.21, 1))  # right below 0.3
    >>> low = cal.decisions.decision_calibration_error(y, p, thresholds=(0.05, 0.25), random_state=0)
    >>> high = cal.decisions.decision_calibration_error(y, p, thresholds=(0.4, 0.6), random_state=0)
    >>> bool(low.error_interval.low == 0 and low.error < 0.02 and abs(high.error - 0.0367) < 0.01)
    True
    """
    wanted = "'auto' or EmpiricalBayes(...), whose posterior is needed"
    chosen = check_type("estimator", EmpiricalBayes() if is_auto(estimator) else estimator, EmpiricalBayes, wanted)
    level = check_level(level)
    n_draws = _POSTERIOR * check_resamples(n_resamples)
    density = _Density.of(thresholds)
    p = as_predictions(y_true, y_prob, **inputs)
    rows = BinaryRows.of(p)
    problem = only_problem(ClassSpecific(rows.label), p)
    rng = check_random_state(random_state)
    cells, importance = _cells(problem, density)
    share = float(np.average(density.of_scores(problem), weights=problem.weights))
    error, regret = _means(cells, importance, density, chosen._prior_for(0.0))
    pvalue = _test(problem, density, rng)
    posteriors = laplace.fit(cells, WIDE)
    drawn = draw_gaps(cells, WIDE, posteriors, n_draws, rng)
    total = (drawn.share * importance).sum(axis=-1)
    found = drawn.mean(importance * np.abs(drawn.gap), importance * np.sign(drawn.gap))
    errors = np.divide(found, total, out=np.full(total.shape, np.nan), where=total > 0)
    right = np.clip(cells.score + drawn.gap, 0, 1)
    regrets = drawn.mean(density.regret(cells.score, right), density.between(cells.score, right))

    question = Question.of_one(problem, "class-specific", level)

    def interval(draws: FloatArray, value: float) -> Interval:
        found = credible(ErrorDraws(draws[None], np.reshape(drawn.log_odds, 1), corrected=True), question).interval
        # Off elsewhere, scores may still be right where decisions are made. Who is told both expects the value inside.
        low = 0.0 if pvalue > 1 - level else found.low
        return found if np.isnan(value) else Interval(min(low, value), max(found.high, value))

    return DecisionCalibrationError(
        error=error,
        error_interval=interval(errors, error),
        regret=regret,
        regret_interval=interval(regrets, regret),
        share=share,
        pvalue=pvalue,
        thresholds=density.ends,
        level=level,
        label=rows.label,
        n_samples=p.n_samples,
    )


@dataclass(frozen=True, eq=False)
class _Density:
    """Weight of thresholds: v at scores, and ``∫ v`` and ``∫ c v`` from 0, v scaled to integrate to 1.

    A function is integrated by the midpoint rule, a range exactly.
    """

    ends: tuple[float, float] | None
    function: Callable[[FloatArray], Any] | None
    edges: FloatArray
    mass: FloatArray
    moment: FloatArray

    @classmethod
    def of(cls, thresholds: Any) -> _Density:
        """Check the ``thresholds`` argument."""
        if callable(thresholds):
            middles = (np.arange(_STEPS) + 0.5) / _STEPS
            values = _values(thresholds, middles)
            if not values.sum() > 0:
                raise ValueError("thresholds must be a function that is above 0 somewhere in (0, 1)")
            share = values / values.sum()
            sums = (np.concatenate([[0.0], np.cumsum(v)]) for v in (share, share * middles))
            return cls(None, thresholds, np.linspace(0, 1, _STEPS + 1), *sums)
        try:
            low, high = (float(v) for v in thresholds)
        except (TypeError, ValueError):
            raise TypeError(f"thresholds must be (low, high) or a function; got {received(thresholds)}") from None
        if not 0 <= low < high <= 1:
            raise ValueError(f"thresholds must be (low, high) with 0 <= low < high <= 1; got {received(thresholds)}")
        none = np.empty(0)
        return cls((low, high), None, none, none, none)

    def of_scores(self, problem: Problem) -> FloatArray:
        """Weight of a problem's scores: v, or 1 within a range, whose ends allow for rounding errors of their dtype."""
        scores: FloatArray = problem.scores.astype(np.float64)
        if self.function is None:
            low, high = self.ends or (0.0, 1.0)
            unit = EDGE_UNITS * problem.eps  # as at edges of bins: relative where the range is narrow
            least = min(unit, (high - low) / 1000)
            return ((scores >= low - max(least, unit * low)) & (scores <= high + max(least, unit * high))).astype(
                np.float64
            )
        return _values(self.function, scores)

    def regret(self, said: FloatArray, right: FloatArray) -> FloatArray:
        """``∫ v(c) (right - c) dc`` from the stated to the true probability; not negative."""
        mass, moment = (b - a for a, b in zip(self._integrals(said), self._integrals(right), strict=True))
        return np.asarray(np.maximum(right * mass - moment, 0.0))

    def between(self, said: FloatArray, right: FloatArray) -> FloatArray:
        """Mass of the thresholds from the stated to the true probability, the slope of :meth:`regret` in the latter."""
        return np.asarray(self._integrals(right)[0] - self._integrals(said)[0])

    def _integrals(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.ends is not None:
            low, high = self.ends
            c = np.clip(x, low, high)
            return (c - low) / (high - low), (c**2 - low**2) / (2 * (high - low))
        return np.interp(x, self.edges, self.mass), np.interp(x, self.edges, self.moment)


def _values(function: Callable[[FloatArray], Any], at: FloatArray) -> FloatArray:
    try:
        values = np.asarray(function(at), dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != at.shape or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("thresholds must be a function that returns a finite weight >= 0 for each number of an array")
    return values


def _cells(problem: Problem, density: _Density) -> tuple[RankCells, FloatArray]:
    """Cells of nearly equal mass that do not straddle the ends of a range, and the mean weight of each one's scores.

    They are made from the rows themselves: a range of thresholds for rare events is narrower than a step of any grid.
    """
    n = problem.effective_size
    weights = ones_or(problem.weights, problem.n_samples)
    used = np.flatnonzero(weights > 0)
    scores, first, code = np.unique(problem.scores[used].astype(np.float64), return_index=True, return_inverse=True)
    mass = weights[used] * (n / weights.sum())
    count = np.bincount(code, mass).astype(np.float64)
    positive = np.bincount(code, mass * (np.asarray(problem.outcomes)[used] != 0)).astype(np.float64)
    weight = density.of_scores(problem)[used[first]]
    rank = (np.cumsum(count) - count / 2) / n
    cell = np.minimum((rank * _CELLS).astype(np.intp), _CELLS - 1)
    inside = weight > 0
    turns = np.concatenate([[False], (inside[1:] != inside[:-1]) | (cell[1:] != cell[:-1])])
    home = np.cumsum(turns)

    def sums(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(home, values))

    # At an end as far as on the grid of other estimates: a saturated model says 1e-9, and means 0.
    steps = GRID_CELLS * np.stack([scores, 1 - scores], axis=-1)
    near = count[:, None] * np.maximum(1 - steps, 0.0)
    ends = np.stack([sums(near[:, 0]), sums(near[:, 1])], axis=-1)
    cells = from_sums(sums(count), sums(positive), sums(count * scores), sums(count * rank), ends, np.asarray(n))
    return cells, sums(count * weight) / sums(count)


def _means(cells: RankCells, importance: FloatArray, density: _Density, prior: Prior) -> tuple[float, float]:
    """Posterior means of error and regret; normal logits of each cell's map are replaced by equally probable ones."""
    from scipy.special import expit, ndtri

    normal = ndtri((np.arange(_EQUAL) + 0.5) / _EQUAL)
    posteriors = laplace.fit(cells, prior)
    weights = laplace.weights(prior, posteriors)
    share = cells.count / cells.count.sum()
    important = share * importance
    stated = expit(cells.logit)
    error = regret = 0.0
    for weight, posterior in zip(weights, posteriors, strict=True):
        eta = cells.logit + cells.design @ posterior.mode
        sd = np.sqrt(((cells.design @ posterior.root()) ** 2).sum(axis=-1))
        gap = expit(eta + sd * normal[:, None]) - stated
        error += weight * float(important @ np.abs(gap).mean(axis=0))
        right = np.clip(cells.score + gap, 0, 1)
        regret += weight * float(share @ density.regret(cells.score, right).mean(axis=0))
    total = float(important.sum())
    return (float(error) / total if total > 0 else float("nan")), float(regret)


def _test(problem: Problem, density: _Density, rng: np.random.Generator) -> float:
    """Kuiper's test of the residuals, weighted by the thresholds; NaN if there are none at the thresholds."""
    s: FloatArray = problem.scores.astype(np.float64)
    w = ones_or(problem.weights, s.size)
    v = density.of_scores(problem)
    held = (v > 0) & (w > 0)
    if not held.any():
        return float("nan")
    s, w, v, o = s[held], w[held], v[held], np.asarray(problem.outcomes)[held]
    plain_range = density.ends is not None and problem.integral
    draws = 999 if s.size <= _DRAWN_ROWS else 0
    return kuiper_pvalue(s, o, w if plain_range else w * v, draws, rng, repeats=plain_range)
