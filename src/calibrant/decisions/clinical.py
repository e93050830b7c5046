"""Measures of clinical prediction models: ICI, E50, E90, slope and intercept, net benefit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ..comparison.models.units import IndependentUnits
from ..data.checks import check_level, check_random_state, check_resamples
from ..data.dependence import group_codes
from ..data.predictions import Predictions, rows_with_weight
from ..data.problem import Problem
from ..data.public_function import InputOptions, public_function
from ..data.result import Curve, Measure, MeasuresDrawn, Table
from ..data.types import FloatArray, Interval, Label, RandomState
from ..data.validation import as_predictions
from ..data.weights import of_variances, ones_or
from ..estimators import CellEstimator, EmpiricalBayes
from ..estimators.base import ErrorDraws
from ..estimators.empirical_bayes import WIDE, cells_of_groups
from ..estimators.maps import FittedMaps
from ..measure.posterior import credible
from ..measure.question import Question
from ..measure.reliability import reliability_curve
from ..notions import ClassSpecific, only_problem
from ..scores.murphy import BinaryRows, better_at, check_thresholds
from ..significance.classical import EPS, SEPARATED, cox_test, errors_of_groups
from ..significance.null import GroupSigns
from ..sums.logistic_fit import expit, logits_of

#: Posterior draws per resample, as for every posterior.
_POSTERIOR = 5
_WORTH = "Acting on the probabilities is worth more than acting always or never"
#: Standard error of log odds above which an estimate is treated as infinite.
ENDLESS = 1e3
_NONE = Interval(float("nan"), float("nan"))


@dataclass(frozen=True, repr=False)
class CalibrationMeasures(MeasuresDrawn, Table):
    """Calibration measures of binary predictions, as clinical papers report them.

    Attributes
    ----------
    ici : float
        Integrated calibration index: mean absolute difference between observed and predicted probability.
    e50, e90, emax : float
        Median, 90th percentile and maximum of these distances.
    eci : float
        Estimated calibration index: 100 times the mean squared distance.
    observed_expected : float
        Observed outcomes divided by the sum of predicted probabilities (O:E); 1 is ideal.
    in_the_large : float
        Calibration in the large: intercept of the log odds at slope 1; 0 is ideal, and positive values mean that
        outcomes are more frequent than predicted.
    intercept, slope : float
        Intercept and slope of the logistic recalibration; 0 and 1 are ideal, and a slope below 1 means overconfidence.
    slope_se, intercept_se : float
        Standard errors of intercept and slope.
    level : float or None
        Level of the intervals; None for no intervals.
    intervals : mapping of name to Interval
        Intervals of all measures except ``e90`` and ``emax``, by the names above; empty if ``level`` is None.
    standard_errors : mapping of name to float
        Standard errors of the same measures; for distances and the ECI, their posterior standard deviations.

    See Also
    --------
    calibrant.calibration_measures : Computes them.
    calibrant.results.OptimismCorrected : The same measures, corrected for optimism.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> found = cal.calibration_measures(rng.random(1000) < p, p)
    >>> found.intervals["slope"].low < 1 < found.intervals["slope"].high
    True
    """

    ici: float
    e50: float
    e90: float
    emax: float
    observed_expected: float
    in_the_large: float
    intercept: float
    slope: float
    intercept_se: float
    slope_se: float
    n_samples: int
    eci: float
    level: float | None
    intervals: Mapping[str, Interval]
    standard_errors: Mapping[str, float]
    n_groups: int | None = None
    warnings: tuple[str, ...] = ()

    one_unit: ClassVar[bool] = False
    _blank: ClassVar[str] = "no interval without a level, and never for E90 and Emax (the largest gaps)"

    def measured(self) -> list[Measure]:
        """All measures; O:E and slope are ideally 1, the others 0."""
        return [
            Measure(words, getattr(self, name), self.intervals.get(name, _NONE), IDEALS.get(name, 0.0))
            for name, words in MEASURES.items()
        ]

    def _columns(self) -> dict[str, Any]:
        found = self.measured()
        return {
            "measure": list(MEASURES),
            "value": [one.value for one in found],
            "low": [one.interval[0] for one in found],
            "high": [one.interval[1] for one in found],
            "ideal": [one.ideal for one in found],
        }

    @property
    def summary(self) -> str:
        """O:E and the slope, in words, and warnings."""
        slope = "too extreme" if self.slope < 1 else "not extreme enough"
        held = self.intervals.get("slope")
        if held is None or not (held.high < 1 or held.low > 1):
            slope = "neither too extreme nor too moderate, as far as these rows can tell"
        return (
            f"Outcomes are {self.observed_expected:.3g} times as frequent as stated, and the probabilities are {slope} "
            f"(slope {self.slope:.3g})." + "".join(f" Warning: {text}." for text in self.warnings)
        )

    def _text(self) -> str:
        of = "" if self.level is None else f", {100 * self.level:g} % intervals"
        rows = f"{self.n_samples:,} rows" + ("" if self.n_groups is None else f" in {self.n_groups:,} groups")
        lines = [f"Calibration measures of {rows}{of}"]
        for name, words in MEASURES.items():
            held = self.intervals.get(name)
            ends = "" if held is None else f"   ({held.low:.4g} to {held.high:.4g})"
            lines.append(f"  {words:<26}{getattr(self, name):>9.4g}{ends}")
        return "\n".join(lines)


#: Names of the measures in text.
MEASURES = {
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "eci": "ECI",
    "observed_expected": "observed : expected",
    "in_the_large": "calibration in the large",
    "intercept": "intercept",
    "slope": "slope",
}
#: Values for a calibrated model, where these are not 0.
IDEALS = {"observed_expected": 1.0, "slope": 1.0}


@public_function(grouped=True)
def calibration_measures(
    y_true: Any,
    y_prob: Any = None,
    *,
    estimator: str | CellEstimator = "adaptive",
    level: float | None = 0.95,
    n_resamples: int = 400,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> CalibrationMeasures:
    r"""ICI, E50, E90, Emax, ECI, O:E, calibration in the large, intercept and slope, with intervals.

    .. math:: \mathrm{ICI} = \frac{\sum_i w_i |\hat g(s_i) - s_i|}{\sum_i w_i}, \qquad
              \mathrm{ECI} = 100\, \frac{\sum_i w_i (\hat g(s_i) - s_i)^2}{\sum_i w_i}

    with ĝ a smooth reliability curve.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, 2)
        Predicted probability of ``pos_label``, or one column for each of the two classes.
    estimator : {"adaptive", "residual", "density"}, other name or estimator, default "adaptive"
        Estimator of ĝ; see :func:`calibrant.reliability_curve`. Clinical papers use loess.
    level : float or None, default 0.95
        Level of the intervals; None for no intervals.
    n_resamples : int, default 400
        Number of resamples; intervals of distances use five times as many posterior draws.
    groups : array-like of shape (n,), or name of a column, optional
        The group of each row, such as a patient or a hospital: all intervals then allow for dependence within groups.
        Default: all rows are independent.

    Returns
    -------
    CalibrationMeasures
        ``.ici``, ``.e50``, ``.e90``, ``.emax``, ``.eci``, ``.observed_expected``, ``.in_the_large``, ``.intercept``,
        ``.slope`` and their ``.intervals``.

    Raises
    ------
    ValueError
        For more than two classes.

    See Also
    --------
    calibrant.decisions.optimism_corrected : The same measures of a model's training data, corrected for optimism.
    calibrant.decision_curve : The net benefit of acting on the probabilities.
    calibrant.significance.cox_test : Intercept and slope with p-values.

    Notes
    -----
    The ICI is the L1 calibration error by that curve. Like every plug-in estimate, it is biased upwards by noise, and
    so are E50, E90, Emax and ECI. Resampling rows adds the noise a second time: a percentile bootstrap of a calibrated
    model's ICI lies above the truth in every sample. Intervals of ICI, E50 and ECI are therefore credible intervals of
    the model behind :func:`calibrant.estimate`, whatever the ``estimator``: they start at exactly 0 if the scores may
    well be calibrated, and are widened to include the estimate. E90 and Emax have no interval: the largest distances
    depend on few rows, and no interval covered them in all simulations.

    O:E: normal on the log scale; calibration in the large: normal; both use the variance of the observed residuals, so
    that neither the scores nor the slope need be right. Intercept and slope: Wald's. If all outcomes are equal or
    separated by the scores, the log odds have no interval (NaN). With ``groups``, these variances are those of sums of
    residuals over groups (cluster-robust), as in :func:`calibrant.significance.cox_test`, with Student's quantiles and
    Kish's number of groups minus one as degrees of freedom. Scores of 0 and 1, which are moved inwards by 1e-12,
    strongly influence slope, intercept and calibration in the large: ``.warnings`` says so. Coverage is simulated in
    benchmarks/coverage/clinical.md. For p-values of intercept and slope see :func:`calibrant.significance.cox_test`.
    Cost O(n), plus posterior draws on about 100 cells.

    References
    ----------
    Austin & Steyerberg (2019), *The Integrated Calibration Index (ICI) and related metrics*; Van Hoorde, Van Huffel,
    Timmerman, Bourne & Van Calster (2015), *A spline-based tool to assess and visualize the calibration of multiclass
    risk predictions* (ECI); Van Calster et al. (2016); Debray et al. (2017), *A guide to systematic review and
    meta-analysis of prediction model performance* (O:E on the log scale).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> m = cal.calibration_measures(rng.random(20_000) < p**2, p)  # distances p - p²: mean 1/6, maximum 1/4
    >>> bool(abs(m.ici - 1 / 6) < 0.01 and abs(m.emax - 0.25) < 0.03)
    True
    >>> m.intervals["ici"].low < 1 / 6 < m.intervals["ici"].high
    True
    """
    if level is not None:
        level = check_level(level)
    n_draws = _POSTERIOR * check_resamples(n_resamples)
    p = as_predictions(y_true, y_prob, **inputs)
    rows = BinaryRows.of(p)
    scores, w = rows.scores, rows.weights
    notion = ClassSpecific(rows.label)
    curve = reliability_curve(p, None, notion=notion, estimator=estimator, level=None)
    gap = np.abs(np.asarray(curve.at(scores).observed) - scores)
    known = ~np.isnan(gap) & (w > 0)
    if not known.any():
        raise ValueError("estimator must give a reliability curve with a value at some row; this one has none")
    e50, e90 = map(float, _quantiles(gap[known], w[known], (0.5, 0.9)))
    tested = cox_test(p, n_resamples=1)
    cox = tested.details
    distances = {
        "ici": float(np.average(gap[known], weights=w[known])),
        "e50": e50,
        "e90": e90,
        "eci": 100 * float(np.average(gap[known] ** 2, weights=w[known])),
    }
    found: dict[str, Uncertain] = {}
    if level is not None:
        problem = only_problem(notion, p)
        rng = check_random_state(random_state)
        found = _of_distances(problem, level, n_draws, rng, distances)
        sums = _Sums.of(problem, p, level)
        found["observed_expected"] = sums.of_ratio()
        found["in_the_large"] = sums.of_intercept(cox["in_the_large"])
        for name in ("intercept", "slope"):
            # Groups' sums of residuals vanish where the fit is perfect, as their standard errors would.
            se = cox[f"{name}_se"] if SEPARATED not in tested.warnings else float("inf")
            found[name] = sums.around(cox[name], se)
    with np.errstate(over="ignore"):
        ratio = float(w @ rows.happened / (w @ scores)) if w @ scores > 0 else float("inf")
    return CalibrationMeasures(
        **distances,
        emax=float(gap[known].max()),
        observed_expected=ratio,
        in_the_large=cox["in_the_large"],
        intercept=cox["intercept"],
        slope=cox["slope"],
        intercept_se=cox["intercept_se"],
        slope_se=cox["slope_se"],
        n_samples=p.n_samples,
        level=level,
        intervals={name: one.interval for name, one in found.items()},
        standard_errors={name: one.se for name, one in found.items()},
        n_groups=tested.n_groups,
        warnings=tested.warnings,
    )


class Uncertain(NamedTuple):
    """An interval and a standard error."""

    interval: Interval
    se: float


@dataclass(frozen=True, eq=False)
class _Sums:
    """Intervals from sums over the rows with weight, which are independent or in groups.

    ``weights`` are in units of the effective sample size; ``reach`` is the quantile that intervals use.
    """

    problem: Problem
    weights: FloatArray
    signs: GroupSigns | None
    level: float
    reach: float

    @classmethod
    def of(cls, problem: Problem, p: Predictions, level: float) -> _Sums:
        """From a problem and the predictions that it is of."""
        from scipy.special import stdtrit

        used = rows_with_weight(p)
        w = ones_or(p.weights, p.n_samples)
        signs, df = None, np.inf
        if used.groups is not None:
            signs, df = GroupSigns(group_codes(used.groups)), IndependentUnits.of(used).df
        w = w * (problem.effective_size / w.sum())
        return cls(problem, w, signs, level, float(stdtrit(df, (1 + level) / 2)))

    @cached_property
    def scores(self) -> FloatArray:
        """Scores as float64."""
        return self.problem.scores.astype(np.float64)

    def se(self, residual: FloatArray) -> float:
        """Standard error of the weighted sum of residuals."""
        w = self.weights
        if self.signs is not None:
            return float(errors_of_groups(self.signs, (w * residual)[w > 0]))
        return float(np.sqrt(of_variances(w, integral=self.problem.integral) @ residual**2))

    def around(self, value: float, se: float) -> Uncertain:
        """Symmetric interval; NaN if the estimate is not finite."""
        if not (np.isfinite(value) and se < ENDLESS):
            return Uncertain(_NONE, float("nan"))
        return Uncertain(Interval(value - self.reach * se, value + self.reach * se), se)

    def of_ratio(self) -> Uncertain:
        r"""O:E: normal on the log scale, with the variance of ``o - s O/E``, so that scores need not be right.

        If all outcomes are equal, one side is the exact binomial bound.
        """
        w, outcomes = self.weights, self.problem.outcomes
        observed, expected, n = float(w @ outcomes), float(w @ self.scores), float(w.sum())
        if not expected > 0 or not np.isfinite(observed / expected):
            return Uncertain(_NONE, float("nan"))
        ratio, rarest = observed / expected, ((1 - self.level) / 2) ** (1 / n)
        if not observed > 0:
            return Uncertain(Interval(0.0, (1 - rarest) * n / expected), float("nan"))
        se = self.se(outcomes - ratio * self.scores) / observed
        factor = float(np.exp(self.reach * se))
        low = ratio / factor if observed < n else min(ratio / factor, rarest * n / expected)
        return Uncertain(Interval(low, ratio * factor), ratio * se)

    def of_intercept(self, value: float) -> Uncertain:
        """Calibration in the large, with the variance of the residuals, so that the slope need not be 1."""
        chance = expit(logits_of(self.scores, EPS) + value)
        information = float(self.weights @ (chance * (1 - chance)))
        if not information > 1 / ENDLESS**2:
            return Uncertain(_NONE, float("nan"))
        return self.around(value, self.se(self.problem.outcomes - chance) / information)


def _of_distances(
    problem: Problem, level: float, n_draws: int, rng: np.random.Generator, values: Mapping[str, float]
) -> dict[str, Uncertain]:
    """Credible intervals of ICI, E50 and ECI from the posterior of the map, widened to contain the values.

    It is the posterior behind :func:`calibrant.estimate`: an interval starts at exactly 0 if the scores may well be
    calibrated.
    """
    (_, cells), *_ = cells_of_groups(EmpiricalBayes().summarize(problem), 1)
    drawn = FittedMaps.of(cells, WIDE).draw_gaps(n_draws, rng)
    size = np.abs(drawn.gap)
    (e50,) = _quantiles(size, drawn.share, (0.5,))
    # Added: outcomes that the map missed beside the median, in the direction of the gap.
    near = drawn.beside(size, e50[..., None])
    e50 = e50 + (near * np.sign(drawn.gap) * drawn.missed).sum(axis=-1) / (near * drawn.share).sum(axis=-1)
    draws = {"ici": drawn.mean_power(1)[0], "e50": e50[0], "eci": drawn.mean_power(2)[0]}
    out = {}
    for name, power in draws.items():
        squared = name == "eci"
        question = Question.of_one(problem, "class-specific", level, 1.0 + squared)
        found = credible(ErrorDraws(power[None], drawn.log_odds, corrected=True), question)
        low, high = (100 * end**2 if squared else end for end in found.interval)
        mean, second = (float(np.mean(v)) * (1 - (found.calibrated or 0.0)) for v in (power, power**2))
        se = float(np.sqrt(max(second - mean**2, 0.0)))
        value = values[name]
        out[name] = Uncertain(Interval(min(low, value), max(high, value)), 100 * se if squared else se)
    return out


def _quantiles(values: FloatArray, shares: FloatArray, at: tuple[float, ...]) -> list[FloatArray]:
    """Weighted quantiles of each row, as the smallest value that reaches each share of the weight, (…,) each."""
    order = np.argsort(values, axis=-1)
    values = np.take_along_axis(values, order, axis=-1)
    running = np.cumsum(np.take_along_axis(shares, order, axis=-1), axis=-1)
    places = [(running < q * running[..., -1:] * (1 - 1e-12)).sum(axis=-1, keepdims=True) for q in at]
    return [np.take_along_axis(values, place, axis=-1)[..., 0] for place in places]


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Curve):
    """Net benefit at each decision threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
        Thresholds within (0, 1).
    net_benefit : ndarray of shape (m,)
        Net benefit of acting if the probability is at least the threshold.
    treat_all : ndarray of shape (m,)
        Net benefit of always acting; never acting has 0.
    label : object
        The class that is acted upon.

    See Also
    --------
    calibrant.decision_curve : Computes it.
    calibrant.plot.DecisionCurveDisplay : Draws it.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.decision_curve([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], [0.5])
    >>> curve.net_benefit.tolist(), curve.treat_all.tolist()
    ([0.5], [0.0])
    """

    display: ClassVar[str] = "DecisionCurveDisplay"

    thresholds: FloatArray
    net_benefit: FloatArray
    treat_all: FloatArray
    label: Label
    n_samples: int

    @property
    def summary(self) -> str:
        """Thresholds at which the probabilities are worth acting upon."""
        gain = (1 - self.thresholds) * (self.net_benefit - np.maximum(self.treat_all, 0.0))
        return better_at(self.thresholds, gain, _WORTH, self.n_samples)

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.thresholds, "net_benefit": self.net_benefit, "treat_all": self.treat_all}


@public_function()
def decision_curve(
    y_true: Any,
    y_prob: Any = None,
    thresholds: Any = None,
    **inputs: Unpack[InputOptions],
) -> DecisionCurve:
    r"""Decision curve (Vickers & Elkin 2006): the net benefit of acting on the probabilities.

    .. math:: NB(c) = P(s \ge c,\, o = 1) - \frac{c}{1 - c} P(s \ge c,\, o = 0)

    in true positives per row; false positives are weighted by the odds of the threshold.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, 2)
        Predicted probability of ``pos_label``, or one column for each of the two classes.
    thresholds : array-like, optional
        Thresholds within (0, 1); by default 0.01, 0.02, …, 0.99.

    Returns
    -------
    DecisionCurve
        ``.net_benefit`` and ``.treat_all`` at ``.thresholds``; ``.plot()`` draws them.

    See Also
    --------
    calibrant.expected_cost : The cost of decisions at given costs of errors.
    calibrant.calibration_measures : Distances of the probabilities from observed frequencies.
    calibrant.plot.DecisionCurveDisplay : The plot of several models.

    Notes
    -----
    Cost O(n log n) for sorting scores, and O(1) per threshold.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.decision_curve([0, 1, 1, 0], [0.2, 0.4, 0.9, 0.6], [0.5])
    >>> float(curve.net_benefit[0]), float(curve.treat_all[0])  # one true and one false alarm in four; all: two and two
    (0.0, 0.0)
    """
    p = as_predictions(y_true, y_prob, **inputs)
    rows = BinaryRows.of(p)
    at = np.arange(1, 100) / 100 if thresholds is None else check_thresholds(thresholds)
    below = rows.before(at, "left")
    # Sums in one order: acting on no row, or on all, has the value of never, or of always, to the last digit.
    odds, every = at / (1 - at), rows.before(np.array([np.inf]), "left")
    return DecisionCurve(
        thresholds=at,
        net_benefit=(every.happened - below.happened) - odds * (every.others - below.others),
        treat_all=every.happened - odds * every.others,
        label=rows.label,
        n_samples=p.n_samples,
    )
