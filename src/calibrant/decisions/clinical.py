"""What clinical prediction models are judged by: ICI, E50, E90, slope and intercept, net benefit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from ..data.checks import check_level, check_resamples
from ..data.public_function import InputOptions, verb
from ..data.result import Picture, Result, Table
from ..data.types import FloatArray, Interval, Label, RandomState
from ..data.validation import as_predictions
from ..estimators import CellEstimator
from ..measure.reliability import reliability_curve
from ..notions import ClassSpecific, only_problem
from ..scores.murphy import BinaryRows, check_thresholds
from . import measure_intervals


@dataclass(frozen=True, repr=False)
class CalibrationMeasures(Result):
    """Calibration measures of binary predictions, as clinical papers report them.

    Attributes
    ----------
    ici : float
        Integrated calibration index: mean distance of observed from stated probability over the rows.
    e50, e90, emax : float
        Median, 90th percentile and maximum of these distances.
    eci : float
        Estimated calibration index: 100 times the mean squared distance.
    observed_expected : float
        Outcomes over the sum of stated probabilities (O:E); 1 is right.
    in_the_large : float
        Calibration in the large: intercept of the log odds at slope 1; 0 is right, above 0 outcomes are more frequent
        than stated.
    intercept, slope : float
        Of the logistic recalibration; 0 and 1 are right, a slope below 1 is overconfidence.
    slope_se, intercept_se : float
    n_samples : int
    level : float or None
    intervals : mapping of name to Interval
        Of all measures but ``emax``, by the names above; empty where no level was asked for.
    standard_errors : mapping of name to float
        Of the same; of the distances and the ECI standard deviations of their posterior.
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

    def __str__(self) -> str:
        of = "" if self.level is None else f", {100 * self.level:g} % intervals"
        lines = [f"Calibration measures of {self.n_samples:,} rows{of}"]
        for name, words in MEASURES.items():
            held = self.intervals.get(name)
            ends = "" if held is None else f"   ({held.low:.4g} to {held.high:.4g})"
            lines.append(f"  {words:<26}{getattr(self, name):>9.4g}{ends}")
        return "\n".join(lines)


#: The measures, as text names them.
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


@verb()
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
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`; two classes.
    estimator : {"adaptive", "residual", "density"}, other name or estimator, default "adaptive"
        How ĝ is found; see :func:`calibrant.reliability_curve`. Clinical papers use loess.
    level : float or None, default 0.95
        Of the intervals; None for the numbers alone.
    n_resamples : int, default 400
        Intervals of distances take five times as many draws from a posterior.
    random_state : int, Generator or None

    Returns
    -------
    CalibrationMeasures

    Raises
    ------
    ValueError
        For more than two classes.

    Notes
    -----
    The ICI is the L1 calibration error by that curve: biased upwards by noise, as every plug-in, and so are E50, E90,
    Emax and ECI. Resampling rows adds the noise a second time: a percentile bootstrap of a calibrated model's ICI lies
    above the truth in every sample. Intervals of these four are therefore credible ones of the model behind
    :func:`calibrant.estimate`, whatever the ``estimator``: they start at exactly 0 while the scores may well be
    calibrated, and are widened to hold the value. Those of E50 and E90 hold the truth less often than they say where
    gaps change within few scores. Emax, the largest of distances that each few rows tell, has none.

    O:E: normal on the log scale; calibration in the large: normal; the variances of both are those of the residuals
    found, so that neither the scores nor the slope need be right. Intercept and slope: Wald's. Where outcomes are all
    the same or separated there is no interval of the log odds (NaN). Coverage is simulated in
    benchmarks/coverage/clinical.md. For p-values of intercept and slope see :func:`calibrant.significance.cox_test`.
    Cost O(n), and draws on at most some 100 cells.

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
    from ..significance import cox_test
    from ..significance.classical import EPS

    if level is not None:
        level = check_level(level)
    n_draws = measure_intervals.POSTERIOR * check_resamples(n_resamples)
    p = as_predictions(y_true, y_prob, **inputs)
    rows = BinaryRows.of(p)
    scores, w = rows.scores, rows.weights
    notion = ClassSpecific(rows.label)
    curve = reliability_curve(p, None, notion=notion, estimator=estimator, level=None)
    gap = np.abs(np.asarray(curve.at(scores).observed) - scores)
    known = ~np.isnan(gap) & (w > 0)
    if not known.any():
        raise ValueError("the reliability curve has no value at any row")
    e50, e90 = _quantiles(gap[known], w[known], (0.5, 0.9))
    cox = cox_test(p).details
    distances = {
        "ici": float(np.average(gap[known], weights=w[known])),
        "e50": e50,
        "e90": e90,
        "eci": 100 * float(np.average(gap[known] ** 2, weights=w[known])),
    }
    found: dict[str, measure_intervals.Uncertain] = {}
    if level is not None:
        problem = only_problem(notion, p)
        rng = np.random.default_rng(random_state)
        found = measure_intervals.of_distances(problem, level, n_draws, rng, distances)
        found["observed_expected"] = measure_intervals.of_ratio(problem, w, level)
        found["in_the_large"] = measure_intervals.of_intercept(problem, w, cox["in_the_large"], EPS, level)
        for name in ("intercept", "slope"):
            found[name] = measure_intervals.around(cox[name], cox[f"{name}_se"], level)
    return CalibrationMeasures(
        **distances,
        emax=float(gap[known].max()),
        observed_expected=float(w @ rows.happened / (w @ scores)) if w @ scores > 0 else float("inf"),
        in_the_large=cox["in_the_large"],
        intercept=cox["intercept"],
        slope=cox["slope"],
        intercept_se=cox["intercept_se"],
        slope_se=cox["slope_se"],
        n_samples=p.n_samples,
        level=level,
        intervals={name: one.interval for name, one in found.items()},
        standard_errors={name: one.se for name, one in found.items()},
    )


def _quantiles(values: FloatArray, weights: FloatArray, at: tuple[float, ...]) -> list[float]:
    """The smallest value that a share of the weight does not exceed."""
    order = np.argsort(values)
    running = np.cumsum(weights[order])
    places = np.searchsorted(running, np.asarray(at) * running[-1] * (1 - 1e-12))
    return [float(v) for v in values[order][places]]


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Picture, Table):
    """Net benefit at each decision threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
    net_benefit : ndarray of shape (m,)
        Of acting where the probability is at least the threshold.
    treat_all : ndarray of shape (m,)
        Of acting always; acting never has 0.
    label : object
        The class that is acted upon.
    n_samples : int
    """

    display: ClassVar[str] = "DecisionCurveDisplay"

    thresholds: FloatArray
    net_benefit: FloatArray
    treat_all: FloatArray
    label: Label
    n_samples: int

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.thresholds, "net_benefit": self.net_benefit, "treat_all": self.treat_all}


@verb()
def decision_curve(
    y_true: Any,
    y_prob: Any = None,
    thresholds: Any = None,
    **inputs: Unpack[InputOptions],
) -> DecisionCurve:
    r"""Decision curve (Vickers & Elkin 2006): what acting on the probabilities is worth.

    .. math:: NB(c) = P(s \ge c,\, o = 1) - \frac{c}{1 - c} P(s \ge c,\, o = 0)

    in true positives a row; false ones are weighed by the odds of the threshold.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`; two classes.
    thresholds : array-like, optional
        Within (0, 1); default 0.01, 0.02, …, 0.99.

    Returns
    -------
    DecisionCurve

    Notes
    -----
    Cost O(n log n), to put scores in order, and O(1) a threshold.

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
    odds, base = at / (1 - at), rows.base_rate
    return DecisionCurve(
        thresholds=at,
        net_benefit=(base - below.happened) - odds * ((1 - base) - below.others),
        treat_all=base - odds * (1 - base),
        label=rows.label,
        n_samples=p.n_samples,
    )
