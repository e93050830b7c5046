"""`calibration_error` and `estimate`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Unpack, cast

import numpy as np

from ..data.checks import check_norm, check_random_state, check_resamples
from ..data.dependence import warn_of_class_weights, warn_of_draws
from ..data.predictions import Predictions
from ..data.printing import number_of
from ..data.problem import Problem, VectorProblem
from ..data.public_function import InputOptions, SumsOfRows, public_function
from ..data.types import FloatArray, Interval, RandomState
from ..data.validation import as_predictions
from ..estimators import CellEstimator, Estimator, SimplexBinned
from ..estimators.base import ErrorDraws, EstimatorWithSE, FittedPosterior, FittedSums, Functional, TruthPath
from ..estimators.norm import combine, root, to_power
from ..exceptions import UndefinedErrorWarning
from ..notions import Notion, as_notion
from .assumptions import Assumption, SmoothMap, as_assumption
from .curve_from_sums import CurveSpec
from .intervals import invert, row_path, sums_paths
from .posterior import Credible, credible
from .question import Question, resolve_estimator
from .result import Estimate, ReliabilityCurve

#: Default assumption of intervals.
_ESTIMATORS_OWN = SmoothMap()
#: Posterior draws per resample of other intervals: draws are cheaper.
POSTERIOR = 5


@public_function(grouped=True, sums=True)
def calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    norm: float = 1,
    **inputs: Unpack[InputOptions],
) -> float:
    r"""Calibration error: how far stated probabilities are from observed frequencies.

    .. math:: \big(E\,|P(o = 1 \mid s) - s|^p\big)^{1/p}

    for the score s and the outcome o of the notion, as estimated by the estimator.

    Returns
    -------
    float
        In [0, 1]; 0 is perfect. Debiased estimators may return negative values.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.estimate : The same error with a confidence interval and the underlying curve.
    calibrant.expected_calibration_error : The binned error reported in papers.
    calibrant.calibration_test : Whether the error is larger than chance allows.
    calibrant.report : Verdict, numbers, classes and curves at once.

    Notes
    -----
    The cost depends on the estimator: in general O(n) plus work on a few thousand sums, times the number of classes for
    class-wise notions; O(n log n) for :class:`Isotonic`, :class:`Cumulative` and :class:`Sweep`; O(n² K) for
    ``"canonical"`` by :class:`DirichletKernel`.

    References
    ----------
    Silva Filho et al. (2023), §2 and §4; Posocco & Bonnefoy (2021), §4.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.calibration_error([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5], estimator=cal.Binned()), 3)
    0.0
    >>> ece_a = cal.Binned(n_bins="sqrt", strategy="quantile")
    >>> cal.calibration_error([0, 1], [[1, 0], [0, 1]], notion="classwise", estimator=ece_a)
    0.0
    """
    if isinstance(y_true, SumsOfRows):
        question = Question.of(y_true, estimator=estimator, norm=norm)
        return question.combine(question.powers)
    predictions = as_predictions(y_true, y_prob, **inputs)
    chosen, p = as_notion(notion, predictions), check_norm(norm)
    reduction = chosen.reduce(predictions)
    reader = resolve_estimator(estimator, reduction, chosen.name, p)
    # No question is asked of more than the number, so that a call on few rows costs little.
    if isinstance(reduction, VectorProblem):
        value = root(reader.power(reduction, p), p)
    else:
        powers = reader._powers(reduction, p)
        value = combine(powers, reduction.shares, p, reduction.average, reduction.exclusive)
    return known(value, reader, predictions.n_samples, chosen.name)


@public_function(grouped=True, sums=True)
def estimate(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    norm: float = 1,
    level: float = 0.95,
    assume: str | Assumption = "smooth",
    n_resamples: int = 400,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> Estimate:
    """Calibration error with a confidence interval, per-class values and the underlying curve.

    Parameters
    ----------
    level : float in (0, 1), default 0.95
        Level of the interval.
    assume : {"smooth", "none", "bins", "bins:B", "variation:V"} or Assumption, default "smooth"
        Assumption about the true calibration map. ``"smooth"``: the estimator can follow it (see Notes).
        The others are valid for every n: ``"none"`` for any map; ``"bins:B"`` if the gap keeps its sign within each
        of B bins of equal width (default 15), ``"variation:V"`` if its total variation is at most V: both are narrower.
    n_resamples : int, default 400
        Number of resamples per simulated truth; five times as many posterior draws.

    Returns
    -------
    Estimate
        ``.value`` (as :func:`calibration_error`), ``.interval``, ``.corrected`` (median-unbiased),
        ``.calibrated``, ``.per_class``, ``.curve``, ``.unseen`` (errors that the interval cannot show), ``.to_dict()``.

    Raises
    ------
    ValueError, TypeError
        As :func:`calibration_error`. If ``assume`` is not ``"smooth"``, also for ``groups``, weights that are not
        whole numbers, ``norm=inf``, notions with ``average="max"``, and the ordinal, multilabel, canonical and
        drawn-class notions: its theorems require independent rows of equal weight.

    See Also
    --------
    calibrant.calibration_error : The error without an interval.
    calibrant.reliability_curve : The curve with its band.
    calibrant.report : Verdict, numbers, classes and curves at once.
    calibrant.results.Estimate : The result, field by field.

    Notes
    -----
    ``EmpiricalBayes``, the default, has a posterior: the interval contains a share ``level`` of it, corrected for
    the part of the outcomes that its maps miss (norm ≤ 32). It starts at exactly 0 when the data are compatible with
    calibration; ``.calibrated`` is the posterior probability of calibration (see :mod:`calibrant.measure.posterior`).
    Maps whose gap changes sign dozens of times, such as those of multiclass support vector machines, are
    covered only by ``assume="variation:1"`` (benchmarks/coverage/rough_maps.md). Cost: ``5 n_resamples`` draws on rank
    cells.

    For all other estimators the interval inverts a test along the path from perfect calibration to the estimated gaps,
    so it accounts for the estimator's noise and bias: it starts at exactly 0 when the data are compatible with
    calibration, and is widened to include the value if bias alone excludes it. Detail that the estimator blurs is
    not recovered, and classes are treated as exchangeable: see :mod:`calibrant.measure.intervals`. Neither value nor
    interval exceeds the maximum for K classes of a matrix, ``(2 / K)^(1/p)``. Cost: 11 scales × ``n_resamples`` draws
    on bins or grid cells per problem (fewer draws beyond 8 problems), independent of n; on occupied cells × K for the
    canonical notion. Estimators without cells draw outcomes for every row, at most 100 times per scale. Coverage of
    both is simulated in benchmarks/coverage/coverage_tracks.md.

    With other assumptions the value is clipped to the interval, whose ends are theorems. The lower end is above 0 if
    bets on the sign of the gap, learnt from earlier rows, win more than chance allows. Without an assumption the upper
    end is near the mean of ``|outcome - score|`` (lower for repeated scores), since without repeated scores
    deterministic outcomes are indistinguishable from random ones. ``.calibrated`` is None. See docs/assumptions.md for
    theorems, proofs and simulated coverage. Cost O(n log n) per class and per order of the rows: four orders up
    to 50,000 rows in all classes together, one beyond 10⁵.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> calibrated = rng.random(2000) < p
    >>> cal.estimate(calibrated, p, random_state=0).interval.low
    0.0
    >>> rules = p * 1000 % 1 < p  # deterministic outcomes, right on average at every score
    >>> smooth, anything = (cal.estimate(rules, p, assume=assume).interval for assume in ("smooth", "none"))
    >>> bool(smooth.high < 0.1 and anything.high > 1 / 3)  # which is the truth
    True
    """
    given = as_assumption(assume)
    n_resamples = check_resamples(n_resamples)
    rng = check_random_state(random_state)
    rows = y_true if isinstance(y_true, SumsOfRows) else as_predictions(y_true, y_prob, **inputs)
    if isinstance(rows, Predictions):
        warn_of_class_weights(rows)
        warn_of_draws(rows)
    question = Question.of(rows, notion, estimator, norm, level)
    interval = given.interval(question, rng)
    if interval is None:
        found = answered(question, n_resamples, rng)
    else:
        found = _assumed(question, given, interval, n_resamples, rng)
    if isinstance(rows, Predictions):
        known(found.value, cast(Estimator, question.estimator), question.n_samples, question.notion)
    return found


def answered(question: Question, n_resamples: int, rng: np.random.Generator) -> Estimate:
    """The error with the interval of its estimator."""
    chosen, rows = question.estimator, cast(Any, question.rows)
    if isinstance(chosen, CellEstimator) and not isinstance(rows, VectorProblem):
        return estimate_from_fits(question.fits(), question, n_resamples, rng)[0]
    if rows.design is not None and not isinstance(chosen, SimplexBinned):
        raise TypeError(
            f"estimate() cannot give an interval for {chosen!r} with groups, since it needs single rows: use an "
            "estimator of bins or cells (EmpiricalBayes(), Binned(), Density(), SimplexBinned()) or calibration_error()"
        )
    if isinstance(chosen, EstimatorWithSE):
        return _normal(chosen, [rows] if isinstance(rows, VectorProblem) else list(rows), question)
    if isinstance(rows, VectorProblem):
        if not isinstance(chosen, SimplexBinned):
            raise TypeError(f"estimate() cannot give an interval for {chosen!r} with the notion {question.notion!r}")
        largest = 1.0 if np.isinf(question.norm) or rows.drawn else 2 ** (1 / question.norm)
        path = chosen._path(rows, question.norm, n_resamples, rng)
        return _inverted(chosen, question.powers, [path], question, largest=largest)
    reader = cast(Estimator, chosen)
    some = islice(rows, len(question.informative))
    paths = [row_path(reader, one, question.norm, min(n_resamples, 100), rng) for one in some]
    return _inverted(reader, question.powers, paths, question)


def _assumed(
    question: Question, assumption: Assumption, interval: Interval, n_resamples: int, rng: np.random.Generator
) -> Estimate:
    """The error with the interval of an assumption: no posterior, and draws only for the curve's band."""
    chosen, powers, curve = cast(Estimator, question.estimator), question.powers, None
    if len(question) == 1 and isinstance(chosen, CellEstimator) and isinstance(question.rows, Problem):
        sums = next(question.fits()).sums
        curve = partial(_curve, chosen, sums[0], question, n_resamples, int(rng.integers(2**63)))
    low, high = interval
    value = float(np.clip(question.combine(powers), low, high))  # what is proven to be off is moved
    found = _result(chosen, powers, Credible(interval, value, None), question, curve, assumption)
    return replace(found, value=value, interval=interval)


def estimate_from_fits(
    fits: Iterable[FittedSums],
    question: Question,
    n_resamples: int,
    rng: np.random.Generator,
    functionals: Sequence[Functional] = (),
) -> tuple[Estimate, ErrorDraws]:
    """:func:`estimate` from fitted sums of the question's problems, a few at a time, in memory or out of core.

    Also returns posterior draws, if the estimator has a posterior.
    """
    powers: list[FloatArray] = []
    posteriors: list[ErrorDraws] = []
    paths: list[TruthPath] = []
    curve: Callable[[], ReliabilityCurve] | None = None
    draws, resamples, wanted = question.n_draws(n_resamples), question.n_paths(n_resamples), len(question.informative)
    known = 0
    for fit in fits:
        estimator = fit.estimator
        powers.append(fit.powers(question.norm))
        if len(question) == 1:
            curve = partial(_curve, estimator, fit.sums[0], question, n_resamples, int(rng.integers(2**63)))
        problems = len(powers[-1])
        some = max(0, min(problems, wanted - known))
        known += problems
        part = fit if some == problems else fit.first(some)
        if isinstance(part, FittedPosterior):
            posteriors.append(part.draws(question.norm, POSTERIOR * draws, rng, functionals))
        else:
            noise = _noise(rng, some)
            paths += sums_paths(estimator, part.sums, question.norm, resamples, noise, counts=question.errors_add)
    values = np.concatenate(powers)
    if not posteriors:
        return _inverted(estimator, values, paths, question, curve), ErrorDraws(np.empty((0, 0)), np.empty(0))
    drawn = ErrorDraws.joined(posteriors)
    return _result(estimator, values, credible(drawn, question.informative), question, curve), drawn


def known(value: float, estimator: Estimator, n_samples: int, notion: str) -> float:
    """Return the value; warn if it is NaN."""
    if np.isnan(value):
        few = number_of(n_samples, "row")
        message = f"{estimator!r} gives no number for {few} (notion {notion!r}): it needs more rows; NaN is returned"
        warnings.warn(message, UndefinedErrorWarning, stacklevel=4)
    return value


def _noise(rng: np.random.Generator, problems: int) -> list[np.random.Generator]:
    """One random generator per problem, independent of the other problems."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=problems)]


def _curve(estimator: CellEstimator, sums: Any, question: Question, n_resamples: int, seed: int) -> ReliabilityCurve:
    """Curve of a question's only problem, with its own random draws."""
    rng = np.random.default_rng(seed)
    return CurveSpec(estimator, question.notion, question.level, rng, n_resamples).of_sums(sums, question.labels[0])


def _inverted(
    estimator: Estimator,
    powers: FloatArray,
    paths: Sequence[TruthPath],
    question: Question,
    curve: Callable[[], ReliabilityCurve] | None = None,
    largest: float | None = None,
) -> Estimate:
    """Estimate with the interval from simulated paths of the problems."""
    interval, corrected = invert(paths, question.informative, question.largest if largest is None else largest)
    return _result(estimator, powers, Credible(interval, corrected, None), question, curve)


def _result(
    estimator: Estimator,
    powers: FloatArray,
    found: Credible,
    question: Question,
    curve: Callable[[], ReliabilityCurve] | None = None,
    assumption: Assumption = _ESTIMATORS_OWN,
) -> Estimate:
    """Value and per-class values with their uncertainty; the interval is widened to contain the value.

    The interval accounts for the estimator's bias, so it may lie below the value; but readers of both
    expect the value within the interval.
    """
    value = question.combine(powers)
    shown = max(value, 0.0)
    return Estimate(
        value,
        Interval(min(found.interval.low, shown), max(found.interval.high, shown)),
        found.median,
        question.level,
        question.notion,
        repr(estimator),
        question.norm,
        question.n_samples,
        question.per_class(powers),
        curve,
        found.calibrated,
        assume=str(assumption),
        unseen=assumption.unseen,
    )


def _normal(estimator: EstimatorWithSE, problems: Sequence[Any], question: Question) -> Estimate:
    """Normal intervals of powers; problems that share rows are treated as fully dependent."""
    from scipy.special import ndtri

    norm = question.norm
    inner = estimator._inner(norm)
    estimates = [estimator._power_and_se(problem, inner) for problem in problems]
    power, se = np.array([e.power for e in estimates]), np.array([e.se for e in estimates])
    if (np.isnan(se) & ~np.isnan(power)).any():
        raise TypeError(
            f"estimate() cannot give an interval for {estimator!r} with norm={norm:g}: its bias is not known; use "
            "debias='cross' and norm 1 or 2, or calibration_error()"
        )
    z = float(ndtri((1 + question.level) / 2))

    def combined(values: FloatArray) -> float:
        return question.combine(_from(values, inner, norm))

    low, value = combined(power - z * se), combined(power)
    # Below 0 by chance, a power still does not exclude what its noise hides.
    interval = Interval(max(low, 0.0), combined(np.maximum(power, 0.0) + z * se))
    found = Credible(interval, min(max(value, interval.low), interval.high), None)
    result = _result(estimator, _from(power, inner, norm), found, question)
    return replace(result, details=estimator._details(problems[0], norm) if len(problems) == 1 else {})


def _from(powers: FloatArray, inner: float, norm: float) -> FloatArray:
    """Convert powers of one norm to those of another."""
    return powers if inner == norm else np.array([to_power(root(float(p), inner), norm) for p in powers])
