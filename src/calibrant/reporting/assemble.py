"""`report`: from predictions, or from streamed sums, to a `Report`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_random_state, check_type, received
from ..data.dependence import warn_of_class_weights, warn_of_draws, warn_of_order
from ..data.predictions import Predictions
from ..data.progress import counted
from ..data.public_function import InputOptions, public_function
from ..data.result import LazyMapping
from ..data.types import Label, RandomState
from ..data.validation import as_predictions
from ..estimators import Binned, CellEstimator, Density, EmpiricalBayes, Estimator, ResidualKernel
from ..estimators.base import ErrorDraws, FittedSums
from ..estimators.names import as_estimator
from ..measure.estimation import POSTERIOR, estimate_from_fits
from ..measure.question import Question
from ..measure.result import Estimate
from ..measure.scoring_rules import log_loss_per_sample
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import FINE_CELLS
from ..notions import Classwise, Notion, as_notion
from ..significance.report_test import SumsTest
from ..sums import BinMoments, uniform_edges
from .class_table import ClassRow, class_rows, class_sentence
from .evidence import (
    JOINT,
    Evidence,
    RepairGain,
    check_threshold,
    check_tolerance,
    gain_functionals,
    settled,
    share_of_test,
    usual_tolerance,
)
from .odds_ratio import MovedBaseRate
from .report import Report
from .report_curves import curves_of
from .verdict import Found, sentences

#: Bands are computed for this many classes, the worst ones; the others get bins with intervals.
BANDED_CLASSES = 12
#: Draws of intervals.
RESAMPLES = 400
_DEFAULT, _RESIDUAL, _DENSITY = EmpiricalBayes(), ResidualKernel(), Density()
_BINNED, _QUANTILE = Binned(), Binned(15, "quantile")


def _report_of(
    sums: Accumulator,
    rows: Predictions | None,
    *,
    estimator: str | Estimator,
    level: float,
    tolerance: float | None,
    threshold: float | None,
    random_state: RandomState,
    title: str,
) -> Report:
    """Build a report from sums; estimators whose sums were not kept use the ``rows``, if available."""
    totals = sums.required_totals()
    chosen = _estimator(estimator)
    tolerance, threshold = check_tolerance(tolerance), check_threshold(threshold)
    check_type("title", title, str)
    rng = check_random_state(random_state)
    problems = sums.problems
    question = sums.question(1, level)
    if rows is not None and rows.groups is not None:
        question = replace(question, n_groups=rows.n_groups)
    reduction: Any = None if rows is None else as_notion(sums.notion, rows).reduce(rows)

    kept: dict[CellEstimator, list[FittedSums]] = {}

    def fits(e: CellEstimator) -> list[FittedSums]:
        if e not in kept:
            parts = sums.sums(e) if reduction is None or sums.keeps(e) else (e.summarize(t) for t in reduction.tiles())
            kept[e] = [e.fit(part) for part in parts]
        return kept[e]

    shown: dict[str, tuple[CellEstimator, float]] = {}
    if chosen != _DEFAULT:
        shown[f"chosen: {_short(chosen)}"] = (chosen, 1)
    shown |= {"empirical Bayes": (_DEFAULT, 1), "smoothed residuals over ranks": (_RESIDUAL, 1)}
    shown |= {"density ratio (Silverman)": (_DENSITY, 1), "15 bins of equal width": (_BINNED, 1)}
    if reduction is not None or all(s.fine is not None for s in problems.values()):
        shown["15 bins of equal mass"] = (_QUANTILE, 1)
    shown["15 bins of equal width, debiased"] = (Binned(debias=True), 1)
    shown["maximum over 15 bins of equal width (MCE)"] = (_BINNED, float("inf"))
    functionals = gain_functionals(question, threshold, POSTERIOR)
    known: dict[tuple[CellEstimator, float], Estimate] = {}
    first, drawn = estimate_from_fits(fits(chosen), question, RESAMPLES, rng, functionals)
    if not drawn.functionals:  # without a posterior, the gain of a repair is that of the default
        known[_DEFAULT, 1], drawn = estimate_from_fits(fits(_DEFAULT), question, RESAMPLES, rng, functionals)
    known[chosen, 1] = first

    weight = totals.weight
    by_class = sums.class_sums
    seed, tested, of_gain = rng.integers(2**63, size=3).tolist()
    table, judged, draw_test = tests_of(sums, question, tested)
    test = draw_test()
    only = next(iter(problems.values())) if len(problems) == 1 else None
    curves = None if only is None else curves_of(only, sums, level, [seed, 0], band=True, fine=only.fine)
    known = {key: settled(one, test.excess) for key, one in known.items()}
    if curves is not None and (_DEFAULT, 1) in known:  # its curve is the report's
        known[_DEFAULT, 1] = replace(known[_DEFAULT, 1], drawn=partial(curves.smooth.__getitem__, "confidence"))
    headline = known[chosen, 1]
    bar = usual_tolerance([one.grid for one in problems.values()], question) if tolerance is None else tolerance
    evidence = Evidence.of(test, headline, judged, bar, draw_test, bool(np.isinf(totals.log_loss)))
    if not judged:
        wrong = evidence.status == "miscalibrated"
        table = [replace(row, adjusted=evidence.pvalue, significant=wrong) for row in table]
    least = max([headline.interval.low, *(row.interval.low for row in judged if row.significant)])
    of_notion = drawn, replace(question, average="power")
    seed_of_classes = of_gain if judged and not question.dependent else None
    gain = LazyMapping({"gain": partial(_gain, sums, of_notion, seed_of_classes, least, threshold)})
    values: dict[str, float] = {}
    estimates: dict[str, Callable[[], Estimate]] = {}
    for k, (name, (one, norm)) in enumerate(counted(shown.items(), "estimators")):
        about = replace(question, norm=norm)
        values[name] = about.combine(np.concatenate([fit.powers(norm) for fit in fits(one)]))
        estimates[name] = (
            partial(known.__getitem__, (one, norm))
            if (one, norm) in known
            else partial(_estimate, fits(one), about, [seed, k], test.excess)
        )
    fine = _fine_of({row.label for row in table[:BANDED_CLASSES]}, rows)
    class_curves = {
        row.label: curves_of(
            by_class[row.label], sums, level, [seed, k], band=k <= BANDED_CLASSES, fine=fine.get(row.label)
        )
        for k, row in enumerate(table, start=1)
    }
    # Rows, without the design effect of groups.
    unit = (totals if rows is None else rows).effective_size / weight if totals.weighted else 1.0
    n_groups = question.n_groups if rows is None else None if rows.groups is None else rows.n_groups
    base_rates = {c: float(v / weight) for c, v in zip(sums.classes, totals.class_weight, strict=True)}
    # A base rate moves for one class; its test needs independent rows.
    asked = only is not None and only.label in base_rates and n_groups is None
    moved = MovedBaseRate.of(only.grid, base_rates[only.label], weight * unit) if only is not None and asked else None
    found = Found(evidence, gain, totals.log_loss, tolerance is not None, test.rejects, tuple(judged), moved)
    said = partial(sentences, only, headline, found, class_sentence(table, unit))
    return Report(
        n_samples=totals.n_samples,
        classes=sums.classes,
        base_rates=base_rates,
        accuracy=totals.correct / weight,
        brier=totals.brier / weight * (0.5 if sums.in_two_columns else 1.0),
        log_loss=totals.log_loss / weight,
        notion=headline.notion,
        headline=headline,
        estimates=LazyMapping(estimates),
        values=values,
        evidence=evidence,
        _gain=gain,
        _verdict=LazyMapping({"verdict": said}),
        per_class=tuple(table),
        curves=curves,
        class_curves=class_curves,
        positive=None if sums.positive is None else sums.classes[sums.positive],
        several=sums.several,
        weighted=totals.weighted,
        streamed=rows is None,
        n_cells=sums.required().histogram.edges.n_bins,
        n_groups=n_groups,
        zero_probability_rows=() if rows is None or not np.isinf(totals.log_loss) else _zero_probability_rows(rows),
        title=title,
        left_out="" if rows is None else rows.left_out,
    )


@public_function(grouped=True, sums=True)
def report(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    level: float = 0.95,
    tolerance: float | None = None,
    threshold: float | None = None,
    random_state: RandomState = 0,
    title: str = "Calibration report",
    **inputs: Unpack[InputOptions],
) -> Report:
    """Report the calibration of predictions: scores, calibration errors with intervals, classes, curves, a verdict.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        Any notion but canonical; see :func:`calibration_error`.
    estimator : "auto" or an estimator with cells, default "auto"
        Estimator of the headline and the verdict.
    level : float in (0, 1), default 0.95
        Level of intervals and bands; a p-value of at most ``1 - level`` is evidence.
    tolerance : float in (0, 1), optional
        Calibration error below which miscalibration does not matter to you. Default: ``0.1 sd √H``, with the standard
        deviation of the outcome and the entropy of its base rate in bits: 0.05 at a base rate of one half, 0.02 at
        10 %, 0.003 at 1 % (``2 / K`` of that for classes against the rest). At the base rate, an error of that size
        costs 0.7 % of the log-loss of always predicting the base rate, and at most 1 % of the Brier score.
    threshold : float in (0, 1), optional
        Decision threshold: the lowest score at which you act, for example that of
        :func:`calibrant.decisions.optimal_threshold` for your costs. The verdict then gives the share of decisions that
        recalibration would change.
    title : str, default "Calibration report"
        Title of the text and of the page.

    Returns
    -------
    Report
        ``str(report)``, ``.to_dict()``, ``.to_frame()``, ``.to_html(path)``, ``.verdict``; ``.evidence.matters``
        indicates whether the error is ``tolerance`` or more: True, False, or None if the data are inconclusive.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    Warns
    -----
    DependenceWarning
        If no ``groups`` are given and the residuals of consecutive rows, among similar scores, are correlated.

    See Also
    --------
    calibrant.estimate : The headline number only.
    calibrant.compare_models : Several models on the same rows.
    calibrant.compare_calibrators : Find the calibrator that recalibrates the probabilities best.
    calibrant.results.Report : The result, field by field.

    Notes
    -----
    The test decides where intervals start: above 0 exactly where its p-value is evidence. How often a calibrated model
    is called miscalibrated, and how often ``matters`` is correct, is simulated in ``benchmarks/coverage/verdict.md``.

    With three or more classes, each is tested against the rest by counts of outcomes in ranges of scores
    (:func:`.range_tests`), with p-values adjusted by Holm's method; the verdict names the miscalibrated classes. Their
    intervals are those of 15 bins per class, computed from cumulants instead of draws (:func:`.binned_intervals`).

    Cost: one pass over the rows for the sums, then a test, intervals and bands at a cost that grows with the number of
    classes and not with n: a fifth of a second for two classes as for a hundred, two thirds for a thousand; classwise,
    two seconds for a hundred and about five for a thousand. The posterior is fitted once. Intervals other than the
    headline's, the gain of recalibration and the sentences on it (about two seconds for a thousand classes), curves,
    and the power of the test are computed on first access.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> r = cal.report(rng.random(5000) < p**2, p)
    >>> print(r.verdict)  # doctest: +ELLIPSIS
    Evidence of miscalibration (p ≤ 0.001): scores from ... are too high: where the model says ..., it happens ...
    >>> r.evidence.matters
    True
    """
    rows = None
    if isinstance(y_true, Accumulator):
        sums = y_true
    else:
        rows = as_predictions(y_true, y_prob, **inputs)
        sums = Accumulator(notion=notion).update(rows)
        warn_of_class_weights(rows)
        warn_of_draws(rows)
        if rows.groups is None and not rows.several and (rows.weights is None or not np.ptp(rows.weights)):
            one = rows.positive is not None
            outcome = rows.codes == (rows.positive if one else rows.predicted)
            warn_of_order(rows.probs if one else rows.confidence, outcome)
    return _report_of(
        sums,
        rows,
        estimator=estimator,
        level=level,
        tolerance=tolerance,
        threshold=threshold,
        random_state=random_state,
        title=title,
    )


def _gain(
    sums: Accumulator, of_notion: tuple[ErrorDraws, Question], seed: int | None, least: float, threshold: float | None
) -> RepairGain:
    """Gain of the notion, or of the whole vector where there is a seed for its classes."""
    vector = of_notion if seed is None else _of_classes(sums, of_notion[1], seed)
    return RepairGain.of(vector, least, threshold, of_notion, [one.grid for one in sums.problems.values()])


def _of_classes(sums: Accumulator, question: Question, seed: int) -> tuple[ErrorDraws, Question]:
    """Gains from one map per class, by the posterior of the default estimator, where the notion has other problems."""
    labels = tuple(sums.class_sums)
    shares = (1 / len(labels),) * len(labels)
    asked = replace(question, labels=labels, shares=shares, average="power", dependent=True, exclusive=not sums.several)
    draws, functionals, rng = asked.n_draws(RESAMPLES), gain_functionals(asked), np.random.default_rng(seed)
    fits = [_DEFAULT.fit(part[: len(asked.informative)]) for part in sums.sums(_DEFAULT, sums.by_class)]
    return ErrorDraws.joined([fit.draws(1, draws, rng, functionals, POSTERIOR) for fit in fits]), asked


def tests_of(
    sums: Accumulator, question: Question, seed: int
) -> tuple[list[ClassRow], list[ClassRow], Callable[[], SumsTest]]:
    """The table of classes, the classes tested in addition to all rows, and a function that draws the test."""
    table = class_rows(sums, question.level, 1 - JOINT, question.n_groups)
    notion: Any = sums.notion
    # Two classes are one question where each is asked against the other.
    one = len(sums.classes) == 2 and question.labels != (None,) and not notion.splits and not sums.several
    judged = [] if one else table
    at = replace(question, level=1 - share_of_test(judged) * (1 - question.level))
    problems = sums.problems.values()
    grids, bins = [p.grid for p in problems], [p.bins for p in problems]
    return table, judged, lambda: SumsTest.of(grids, bins, at, np.random.default_rng(seed))


def _estimate(fits: list[FittedSums], question: Question, seed: list[int], excess: float) -> Estimate:
    """A secondary estimate, with its own draws."""
    rng = np.random.default_rng([*seed, *b"estimate"])
    return settled(estimate_from_fits(fits, question, RESAMPLES, rng)[0], excess)


def _zero_probability_rows(rows: Predictions) -> tuple[int, ...]:
    """Rows whose label had probability 0."""
    lost = np.isinf(log_loss_per_sample(rows))
    return tuple(np.flatnonzero(lost if rows.weights is None else lost & (rows.weights > 0)).tolist())


def _estimator(estimator: str | Estimator) -> CellEstimator:
    chosen = as_estimator(estimator, _DEFAULT)
    if not isinstance(chosen, CellEstimator):
        raise TypeError(
            f"a report needs an estimator that reads sums, such as Binned() or Density(); got {received(estimator)}"
        )
    return chosen


def _fine_of(labels: set[Label], rows: Predictions | None) -> dict[Label, BinMoments]:
    """Fine histograms of some classes, for their isotonic curves; empty if the rows are not available."""
    if rows is None or rows.positive is not None:
        return {}
    every = Classwise().reduce(rows)
    return {k: BinMoments.of(every[i], uniform_edges(FINE_CELLS)) for i, k in enumerate(rows.classes) if k in labels}


def _short(estimator: CellEstimator) -> str:
    """``Binned(n_bins='sqrt', strategy='quantile')``: the parameters that differ from the default."""
    default = type(estimator)()
    changed = {k: v for k, v in vars(estimator).items() if v != getattr(default, k)}
    return f"{type(estimator).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"
