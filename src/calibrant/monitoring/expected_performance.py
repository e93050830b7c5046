"""`expected_performance`: expected metrics of a model on rows without labels yet."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from ..calibrators import Calibrator
from ..calibrators.label_shift import check_base_rates
from ..data.checks import (
    called,
    check_choice,
    check_fraction,
    check_level,
    check_list,
    check_random_state,
    check_resamples,
    check_type,
)
from ..data.docs import document
from ..data.predictions import Predictions, rows_with_weight
from ..data.problem import Problem
from ..data.progress import working
from ..data.result import with_origin
from ..data.types import FloatArray, IntArray, Interval, RandomState
from ..data.validation import as_predictions
from ..data.weights import of_variances, ones_or
from ..decisions.cost import cheapest
from ..decisions.priors import (
    PriorEstimate,
    class_shares,
    labelled_pair,
    labelled_rows,
    prior_with_draws,
    rows_like,
)
from ..decisions.thresholds import check_costs
from ..exceptions import PriorShiftWarning
from ..measure.drawn_curve import DrawnCurves
from ..measure.scoring_rules import matrix_of
from ..notions import ClassSpecific, only_problem
from .outcomes import MOST_ROWS, OutcomeCurves, values_drawn
from .over_time import rows_needed
from .performance_metrics import METRICS, DecidedRows, one_hot
from .performance_result import ExpectedMetric, ExpectedPerformance, ExpectedPeriod
from .periods import Periods, Times
from .sample_shift import BothSamples, RowsOfSample, of_scores, read_features, shifts

#: Default metrics, without the cost, which is added if costs are given.
_USUAL = tuple(name for name in METRICS if name != "cost")
#: Share of new rows outside the reference above which a warning reports extrapolation.
_OUTSIDE = 0.01
#: Minimum number of rows of a period that are used for draws.
_OF_PERIOD = 2_000


@document
def expected_performance(
    p_new: Any,
    *,
    reference: Any = None,
    calibrator: Calibrator | None = None,
    metric: str | Sequence[str] = "auto",
    threshold: float = 0.5,
    costs: Any = None,
    prior: Any = None,
    features: Any = None,
    time: Any = None,
    every: str | int = "auto",
    groups: Any = None,
    sample_weight: Any = None,
    level: float = 0.95,
    n_resamples: int = 400,
    random_state: RandomState = 0,
) -> ExpectedPerformance:
    r"""Expected accuracy, cost, scores, precision, recall, F1 and AUC on unlabelled rows, from their probabilities.

    The frequency of outcomes at each score is learnt from labelled rows; a metric is its expectation over outcomes,

    .. math:: E[m] = E_{q \mid \text{reference}}\; E_{y_i \sim q(s_i)}\; m(y_1 \ldots y_n, s_1 \ldots s_n).

    It is valid if outcomes at equal scores are as frequent as in the reference, whatever the mix of scores. Unlabelled
    rows contain no information on whether this holds: see docs/expected_performance.md for an example of an
    undetectable shift.

    Parameters
    ----------
    p_new : array-like of shape (n,) or (n, K)
        Probabilities of the unlabelled rows, with the columns of the reference.
    reference : (y, p), or Predictions
        Labels and probabilities of the labelled rows, which the model was not trained on.
        Use :func:`calibrant.as_predictions` for weights, groups and ``pos_label``.
    calibrator : Calibrator, optional
        A fitted calibrator, applied to all scores first. Without a reference its probabilities are taken as correct,
        and the interval includes only the uncertainty of the outcomes.
    metric : str or list of str, default "auto"
        ``"accuracy"``, ``"cost"``, ``"log-loss"``, ``"brier"``, ``"precision"``, ``"recall"``, ``"f1"`` or
        ``"roc-auc"``; ``"auto"``: all of them, the cost only if ``costs`` are given. The first one is ``.value``.
        Precision, recall, F1 and AUC refer to the positive class, or for more than two classes are means over the
        classes for which they are defined (AUC: one-vs-rest). Brier score as in :func:`calibrant.scores.mean_score`.
    threshold : float in (0, 1), default 0.5
        Smallest probability predicted positive, for two classes; for more the most probable class is predicted.
    costs : array-like of shape (K, K), or mapping with the keys "fp" and "fn", optional
        Cost of decision a if class k is true (see :func:`calibrant.expected_cost`). Decisions then minimise the
        expected cost.
    prior : None, "estimate", "pacc", float, or array-like of shape (K,)
        Base rates of the new rows if only these have changed: known (a number is that of the
        positive class), or estimated in each period by :func:`calibrant.estimate_prior`, with the algorithm ``"em"``
        for ``"estimate"``. None: outcomes at equal scores are as frequent as in the reference.
    features : (X_reference, X_new), optional
        Features of both samples, as frames or arrays: each column is compared, as are the scores.
    time : array-like of shape (n,), optional
        Time of each new row, for results by period; see :func:`calibrant.calibration_over_time`.
    every : {"auto", "hour", "day", "week", "month", "quarter", "year"} or int, default "auto"
        Length of a period.
    groups : array-like of shape (n,), optional
        The group of each new row. The correlation within groups is learnt from the groups of the reference.
    sample_weight : array-like of shape (n,), optional
        Weights of the new rows.
    n_resamples : int, default 400
        Number of draws for the intervals.

    Returns
    -------
    ExpectedPerformance
        ``.value`` and ``.interval`` of the first metric, ``.metrics``, ``.periods``, ``.shifts``, ``.prior``,
        ``.plot()``, ``.to_frame()``, ``.to_html()``.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    Warns
    -----
    PriorShiftWarning
        With ``prior="estimate"``, if more than the base rates has changed.

    See Also
    --------
    calibrant.estimate_prior : Base rates of the same rows.
    calibrant.calibration_over_time : Calibration by period, once labels are available.
    calibrant.results.ExpectedPerformance : The result, field by field.

    Notes
    -----
    Curves of each class are drawn from the posterior behind the bands of :func:`calibrant.reliability_curve`, and for
    more than two classes normalised in each row; then outcomes are drawn from them. The interval predicts the value
    that the labels of these rows would give, so it includes the uncertainty of the curves and of the outcomes. Beyond
    50,000 rows draws use a subset of 50,000, with the dispersion of outcomes of all rows.

    Scores and features are compared by the Kolmogorov-Smirnov test, categories by Pearson's, adjusted by Holm's
    method; with groups, sample sizes are divided by the design effect of ranks. Errors compared with NannyML's CBPE,
    and coverage of intervals: benchmarks/coverage/expected_performance.md. Cost O(n K + R m K) for R draws of m rows.

    References
    ----------
    Garg, Balakrishnan, Lipton, Neyshabur & Sedghi (2022), *Leveraging unlabeled data to predict out-of-distribution
    performance*; Guillory et al. (2021), *Predicting with confidence on unseen distributions*; the *confidence-based
    performance estimation* (CBPE) of NannyML.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> y = rng.random(5000) < 0.2 + 0.6 * p  # overconfident
    >>> new = rng.beta(2, 1, 2000)
    >>> labels = rng.random(2000) < 0.2 + 0.6 * new  # not known in practice
    >>> found = cal.expected_performance(new, reference=(y, p))
    >>> bool(found.interval.low < np.mean(labels == (new >= 0.5)) < found.interval.high)
    True
    """
    level, n_resamples = check_level(level), check_resamples(n_resamples)
    rng = check_random_state(random_state)
    if reference is None and calibrator is None:
        raise TypeError("expected_performance() needs a reference (y, p), a fitted calibrator, or both")
    with working("expected_performance"):
        known, new = _both_samples(p_new, reference, calibrator, groups=groups, sample_weight=sample_weight)
        asked = _Asked(
            metrics=_metrics(metric, costs),
            rows=_decided(new.rows, threshold, costs),
            new=new,
            known=known,
            before=None if known is None else _decided(known.rows, threshold, costs),
            prior=_base_rates(prior, known),
            level=level,
            curves=_curves(known, new.rows, n_resamples, rng),
        )
        metrics, estimated = asked.of(np.arange(new.rows.n_samples), MOST_ROWS, rng)
        periods = () if time is None else tuple(asked.by_period(time, every, rng))
        moved = () if known is None else shifts(known.sample, new.sample, _columns(known, new, features))
    said = [] if estimated is None else [text.replace("algorithm=", "prior=") for text in estimated.warnings]
    for text in said:
        warnings.warn(text, PriorShiftWarning, stacklevel=2)
    if far := [one for one in moved if one.outside > _OUTSIDE]:
        most = max(far, key=lambda one: one.outside)
        said.append(
            f"{100 * most.outside:.3g} % of the new rows have values of {most.name} outside the reference: there the "
            "numbers are extrapolated"
        )
    found = ExpectedPerformance(
        metrics=metrics,
        periods=periods,
        shifts=moved,
        prior=estimated,
        classes=new.rows.classes,
        label=new.rows.classes[_second(new.rows)] if new.rows.n_classes == 2 else None,
        level=level,
        n_samples=new.rows.n_samples,
        n_reference=0 if known is None else known.rows.n_samples,
        warnings=tuple(said),
    )
    return with_origin(new.rows.library, found)


class _Rows(NamedTuple):
    """Rows with positive weight, and the index of each among the rows given."""

    rows: Predictions
    places: IntArray
    n_given: int

    @classmethod
    def of(cls, p: Predictions) -> _Rows:
        places = p.of_given(np.arange(p.n_given))
        return cls(rows_with_weight(p), places if p.weights is None else places[p.weights > 0], p.n_given)

    @property
    def sample(self) -> RowsOfSample:
        p = self.rows
        groups = None if p.together is None else np.unique(p.together, return_inverse=True)[1]
        return RowsOfSample(ones_or(p.weights, p.n_samples), p.integral_weights, groups)


@dataclass(frozen=True, eq=False)
class _Asked:
    """The settings of a call, and metrics for subsets of the new rows."""

    metrics: list[str]
    rows: DecidedRows
    new: _Rows
    known: _Rows | None
    before: DecidedRows | None
    prior: Any
    level: float
    curves: OutcomeCurves

    def of(self, some: IntArray, most: int, rng: np.random.Generator) -> tuple[Any, PriorEstimate | None]:
        """Metrics of some of the new rows, and their base rates if these are estimated."""
        new, estimated, curves = self.new.rows.subset(some), None, self.curves
        if self.prior is not None and self.known is not None:
            old = class_shares(self.known.rows)
            if isinstance(self.prior, str):
                how = "em" if self.prior == "estimate" else self.prior
                estimated, drawn = prior_with_draws(self.known.rows, new, how, self.level, curves.n_draws, rng)
                curves = replace(curves, ratios=drawn.draws / old, ratio=drawn.value / old)
            else:
                curves = replace(curves, ratio=self.prior / old)
        readers = [METRICS[name] for name in self.metrics]
        value, drawn_values = values_drawn(self.rows.some(some), curves, readers, self._spread(new), most, rng)
        return tuple(map(self._metric, self.metrics, value, drawn_values.T, self._references)), estimated

    def _metric(self, name: str, value: float, drawn: FloatArray, reference: float) -> ExpectedMetric:
        """A metric with its interval, from the draws in which it is defined."""
        drawn = np.clip(drawn[~np.isnan(drawn)], *METRICS[name].range)
        ends = (np.nan, np.nan)
        if drawn.size and value == value:
            # Infinite draws have no points between them.
            tails = [(1 - self.level) / 2, (1 + self.level) / 2]
            low, high = np.quantile(drawn, tails, method="weibull" if np.isfinite(drawn).all() else "nearest")
            ends = min(low, value), max(high, value)
        return ExpectedMetric(name, float(value), Interval(float(ends[0]), float(ends[1])), float(reference))

    @cached_property
    def _references(self) -> list[float]:
        """Metrics of the labelled rows, computed from their labels."""
        if self.known is None or self.before is None:
            return [np.nan] * len(self.metrics)
        said = one_hot(self.known.rows.codes, self.known.rows.n_classes)
        return [float(METRICS[name].of(self.before)(said)[0]) for name in self.metrics]

    def _spread(self, new: Predictions) -> float:
        """Variance of means of the new rows' outcomes, relative to independent rows with these weights."""
        weights = ones_or(new.weights, new.n_samples)
        spread = float(weights.sum() / (weights @ weights)) if new.integral_weights else 1.0
        if new.groups is None or self.known is None or self.known.rows.groups is None:
            return spread
        return spread * (1 + self._alike * (_mean_size(new) - 1))

    @cached_property
    def _alike(self) -> float:
        """Correlation of outcomes within groups, given their scores, in the labelled rows."""
        known = cast("_Rows", self.known).rows
        effect = max(float(np.max(one.design or 1.0)) for one in _problems(known))
        others = _mean_size(known) - 1
        return min((effect - 1) / others, 1.0) if others > 0 else 0.0

    def by_period(self, time: Any, every: Any, rng: np.random.Generator) -> Iterator[ExpectedPeriod]:
        """Metrics of each period."""
        times = Times.read(time, self.new.n_given).where(self.new.places)
        likely = self.rows.probs[np.arange(len(self.rows.decided)), self.rows.decided]
        periods = Periods.of(times, every, lambda: rows_needed(likely, 0.05, self.level))
        number = len(periods.names)
        most = max(MOST_ROWS // number, _OF_PERIOD)
        rows = np.split(np.argsort(periods.codes, kind="stable"), np.cumsum(np.bincount(periods.codes))[:-1])
        for name, start, end, some in zip(periods.names, periods.starts, periods.ends, rows, strict=True):
            yield ExpectedPeriod(name, start, end, len(some), self.of(some, most, rng)[0])


def _mean_size(p: Predictions) -> float:
    """Size of a row's group, averaged over rows."""
    weights = ones_or(p.weights, p.n_samples)
    sizes = np.bincount(np.unique(np.asarray(p.groups), return_inverse=True)[1], weights)
    return float((sizes**2).sum() / of_variances(weights, integral=p.integral_weights).sum())


def _both_samples(
    p_new: Any, reference: Any, calibrator: Calibrator | None, **about: Any
) -> tuple[_Rows | None, _Rows]:
    """Labelled rows, if any, and new rows, both after recalibration."""
    if about["groups"] is not None and reference is None:
        raise ValueError("groups need a reference with groups, from which the correlation within groups is estimated")
    if calibrator is None:
        known = labelled_rows(reference)
    else:
        check_type("calibrator", calibrator, Calibrator)
        with called(scores="p_new"):
            p_new = _calibrated(calibrator, p_new)
        if reference is None:
            classes = calibrator.classes_.tolist()
            unread = [classes[0]] * len(p_new)
            second = classes[1] if len(classes) == 2 else None
            return None, _Rows.of(as_predictions(unread, p_new, labels=classes, pos_label=second, **about))
        known = _recalibrated(calibrator, reference)
    if known.several:
        raise ValueError("reference must have one label per row; got rows with several labels")
    if about["groups"] is not None and known.groups is None:
        raise ValueError("groups need a reference with groups, from which the correlation within groups is estimated")
    known_rows = _Rows.of(known)
    return known_rows, _Rows.of(rows_like(known_rows.rows, p_new, **about))


def _calibrated(calibrator: Calibrator, scores: Any) -> FloatArray:
    """Calibrated probabilities, of the second of two classes or of all classes."""
    found = calibrator.predict_proba(scores)
    return found[:, 1] if found.shape[1] == 2 else found


def _recalibrated(calibrator: Calibrator, reference: Any) -> Predictions:
    """Labelled rows after recalibration; the calibrator must have the same classes."""
    classes = calibrator.classes_.tolist()
    second = classes[1] if len(classes) == 2 else None
    if not isinstance(reference, Predictions):
        y, scores = labelled_pair(reference)
        with called(y_true="reference[0]", y_prob="reference[1]", scores="reference[1]"):
            return as_predictions(y, _calibrated(calibrator, scores), labels=classes, pos_label=second)
    if list(reference.classes) != classes:
        raise ValueError(f"calibrator must have the classes of the reference, {reference.classes}; got {classes}")
    positive = None if second is None else 1
    return replace(reference, probs=_calibrated(calibrator, reference.probs), positive=positive, logs=None)


def _problems(p: Predictions) -> Iterator[Problem]:
    """The problem of the positive of two classes, or of each of several classes."""
    for k in [_second(p)] if p.n_classes == 2 else range(p.n_classes):
        yield only_problem(ClassSpecific(p.classes[k]), p)


def _curves(known: _Rows | None, new: Predictions, n_draws: int, rng: np.random.Generator) -> OutcomeCurves:
    """Curves of the classes; without labelled rows, each is the diagonal."""
    columns = (_second(new),) if new.n_classes == 2 else tuple(range(new.n_classes))
    if known is None:
        return OutcomeCurves(columns, (DrawnCurves.diagonal(n_draws),) * len(columns), n_draws)
    return OutcomeCurves(columns, tuple(DrawnCurves.of(one, n_draws, rng) for one in _problems(known.rows)), n_draws)


def _columns(known: _Rows, new: _Rows, features: Any) -> list[BothSamples]:
    """Scores and features of both samples."""
    k, classes = new.rows.n_classes, new.rows.classes
    out = [
        of_scores("score" if k == 2 else f"score of {classes[i]}", known.rows.score(i), new.rows.score(i))
        for i in ([_second(new.rows)] if k == 2 else range(k))
    ]
    more = () if features is None else read_features(features, known.n_given, new.n_given)
    return [*out, *(one.where(known.places, new.places) for one in more)]


def _base_rates(prior: Any, known: _Rows | None) -> Any:
    """Check the ``prior`` argument."""
    if prior is None:
        return None
    if known is None:
        raise ValueError("prior needs a reference, whose base rates it replaces")
    if isinstance(prior, str):
        return check_choice("prior", prior, ("estimate", "pacc"), instead="base rates, or ")
    k, second = known.rows.n_classes, _second(known.rows)
    rates = check_base_rates("prior", prior, k)
    return rates[::-1] if k == 2 and second == 0 and np.ndim(prior) == 0 else rates


def _second(p: Predictions) -> int:
    """Index of the positive of two classes, to which precision etc. refer."""
    return 1 if p.positive is None else p.positive


def _metrics(metric: Any, costs: Any) -> list[str]:
    """Check the ``metric`` argument."""
    if isinstance(metric, str) and metric == "auto":
        return [*_USUAL, *(["cost"] if costs is not None else [])]
    names = [metric] if isinstance(metric, str) else check_list("metric", metric, "names of metrics")
    if not names:
        raise ValueError("metric must have at least one name; got none")
    for name in names:
        check_choice("metric", name, METRICS, instead="'auto', a list of names, or ")
    if "cost" in names and costs is None:
        raise ValueError("metric='cost' needs costs")
    return names


def _decided(p: Predictions, threshold: float, costs: Any) -> DecidedRows:
    """Rows with their decisions."""
    k, second, matrix = p.n_classes, _second(p), matrix_of(p)
    threshold = check_fraction("threshold", threshold)
    if costs is not None:
        if threshold != 0.5:
            raise ValueError("threshold and costs both define the decisions: pass only one of them")
        table = check_costs(costs, k, second)
        if table.shape[1] != k:
            raise ValueError(f"costs must have a column for each of {k} classes; got {table.shape[1]}")
        decided = cheapest(matrix, table, second)
    else:
        if k != 2 and threshold != 0.5:
            raise ValueError(f"threshold is for two classes; got {k}: pass costs")
        table = 1 - np.eye(k)
        decided = np.where(p.score(second) >= threshold, second, 1 - second) if k == 2 else matrix.argmax(axis=1)
    about = (second,) if k == 2 else tuple(range(k))
    return DecidedRows(matrix, decided, ones_or(p.weights, p.n_samples), about, table, p.positive is not None)
