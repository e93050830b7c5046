"""`calibration_over_time`: the public function; and what it computes, of rows or of sums of periods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from ..comparison.subgroups.build import SubgroupOptions, SubgroupProblems, SubgroupsOfRows, assess
from ..comparison.subgroups.cells import cell_keys, coarse_cells
from ..comparison.subgroups.heterogeneity import PooledMap
from ..comparison.subgroups.membership import Subgroups
from ..comparison.subgroups.result import SubgroupColumn
from ..data.checks import check_level, check_number, check_random_state
from ..data.problem import Problem
from ..data.public_function import InputOptions, public_function
from ..data.types import Interval, Label, RandomState
from ..data.validation import as_predictions
from ..estimators import Estimator
from ..measure.question import resolve_estimator
from ..notions import Notion, as_notion, only_problem
from ..significance.result import TestResult
from .changes import Blocks, Located, changes, cut, first_search, trend
from .over_time_result import CalibrationOverTime, Change, Period
from .periods import LEAST_ROWS, Periods, Time, TimeInterval, Times

#: Periods without rows that are named.
_NAMED = 5
#: Rows beyond which changes are looked for among cells of them.
_MANY_ROWS = 1 << 20
#: Draws of Kuiper's test of each period.
_RESAMPLES = 1999


@public_function(grouped=True)
def calibration_over_time(
    y_true: Any,
    y_prob: Any = None,
    time: Any = None,
    *,
    every: str | int = "auto",
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    level: float = 0.95,
    tolerance: float = 0.05,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> CalibrationOverTime:
    r"""Calibration period by period, whether it changed over time, and when.

    .. math:: \text{gap}_t = \frac{\sum_{i \in t} w_i (o_i - s_i)}{\sum_{i \in t} w_i}

    is the gap of period t, observed minus predicted. A change is a time from which outcomes at equal scores have
    another frequency: a different mix of scores is no change.

    Parameters
    ----------
    time : array-like of shape (n,), or name of a column
        Time of each row, in any order: dates, datetimes (of one time zone, whose clock counts), texts in ISO 8601, or
        numbers. None may be missing. Where ``y_true`` are Predictions, pass it by name.
    every : {"auto", "hour", "day", "week", "month", "quarter", "year"} or int, default "auto"
        Length of a period: of the calendar (weeks begin on Monday), or a number of rows; rows of one time stay
        together, and those that are left over belong to the last period. ``"auto"``: the shortest calendar period, of
        60 at most, whose median has enough rows for gaps to be known within ± ``tolerance``; else so many rows.
    notion : str or Notion, default "auto"
        The notion of calibration, of one problem: the positive class, the confidence, or ``ClassSpecific``.
    estimator : "auto" or Estimator, default "auto"
        Estimator of calibration errors and their intervals; see :func:`calibrant.estimate`.
    level : float, default 0.95
        Level of each interval; adjusted p-values are compared with ``1 - level``.
    tolerance : float in (0, 1), default 0.05
        Half the width that intervals of gaps may have where ``every`` is ``"auto"``.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as visits of a patient (see :func:`calibrant.as_predictions`).

    Returns
    -------
    CalibrationOverTime
        ``str(result)``, ``.periods``, ``.changes``, ``.change_test``, ``.trend_test``, ``.period_test``, ``.plot()``,
        ``.to_frame()``, ``.to_dict()``, ``.to_html()``.

    Raises
    ------
    ValueError, TypeError
        For bad input: times that are missing, or of several time zones or kinds.

    See Also
    --------
    calibrant.CalibrationMonitor : Rows that keep coming, with a guarantee at every look.
    calibrant.subgroup_calibration : Subgroups without an order.
    calibrant.from_frame : Periods of a lazy frame, by its own engine (``time``, ``every``).
    calibrant.results.CalibrationOverTime : The result, field by field.

    Notes
    -----
    Three tests look at residuals about one polynomial logistic curve through all rows (degree chosen as by
    :func:`calibration_belt`). *No change*: the largest squared standardised sum of residuals up to any of 1,000 times,
    among such sums of normal scores with the same covariance, 999 draws. *No trend*: a slope in time. *No difference*:
    an intercept for each period. They are adjusted for there being three (Holm), and a change is looked for where the
    first is at most ``1 - level``; then on either side of each that was found, each of these with its own p-value.

    The interval of the time of a change contains the times at which its likelihood ratio is less than
    :math:`-2 \log(1 - \sqrt{\text{level}})` below the largest (7.4 for 95 %). Gaps before and after have intervals for
    a known time of the change.

    With groups, variances are multiplied by the design effect of the mean residual. How often tests reject and
    intervals cover: docs/over_time.md. Cost: that of :func:`subgroup_calibration`, and one pass over the rows.

    References
    ----------
    Andrews (1993), *Tests for parameter instability and structural change with unknown change point*; Eo & Morley
    (2015), *Likelihood-ratio-based confidence sets for the timing of structural breaks*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, day = rng.random(9000), np.datetime64("2026-01-01") + np.arange(9000) // 50
    >>> y = rng.random(9000) < np.where(day < np.datetime64("2026-05-12"), p, 0.85 * p)
    >>> found = cal.calibration_over_time(y, p, day, every="month")
    >>> change = found.changes[0]
    >>> str(change.interval.low) <= "2026-05-12" <= str(change.interval.high), change.after < -0.04
    (True, True)
    """
    check_level(level)
    check_number("tolerance", tolerance, above=0, below=1)
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    problem = only_problem(chosen, p)
    reader = resolve_estimator(estimator, problem, chosen.name)
    times = Times.read(time, p.n_given)
    times = times.where(p.of_given(np.arange(p.n_given)))
    (target,) = chosen.targets(p)
    groups = p.groups
    if target.rows is not None:
        times = times.where(target.rows)
        groups = None if groups is None else groups[target.rows]
    periods = Periods.of(times, every, rows_needed(problem.scores, tolerance, level))
    named = Subgroups("time", periods.codes, tuple(range(len(periods.names))))
    column = SubgroupsOfRows.of(problem, named, groups)
    asked = Asked(chosen.name, problem.label, p.n_samples, reader, level)
    return over_time(column, periods, Fine.of(problem, times), asked, check_random_state(random_state))


def rows_needed(scores: Any, tolerance: float, level: float) -> int:
    """Rows for an interval of a gap of ± tolerance, if scores are right."""
    from scipy.special import ndtri

    spread = float(np.mean(scores * (1 - scores)))
    return max(LEAST_ROWS, int(np.ceil(ndtri((1 + level) / 2) ** 2 * spread / tolerance**2)))


class Fine(NamedTuple):
    """Rows, or cells of them, by blocks of time that are finer than periods: scores, outcomes, weights, squares."""

    code: Any
    ends: tuple[Any, Any]
    rows: tuple[Any, Any, Any, Any]
    times: Times

    @classmethod
    def of(cls, problem: Problem, times: Times) -> Fine:
        """Of rows; very many are added up in cells, a thousand of the log-odds a block."""
        code, ends = cut(times)
        s, o, w = problem.scores, problem.outcomes, problem.weights
        squares = None if w is None or problem.integral else w**2
        if s.size <= _MANY_ROWS:
            return cls(code, ends, (s, o, w, squares), times)
        coarse = coarse_cells()
        size = int(coarse[-1]) + 1
        key = cell_keys(code, s, coarse)
        count = np.bincount(key, w)
        used = np.flatnonzero(count)
        count = count[used].astype(np.float64)
        score, outcome = (np.bincount(key, v if w is None else w * v)[used] / count for v in (s, o))
        times_of = None if squares is None else np.bincount(key, squares)[used]
        return cls(used // size, ends, (score, outcome, count, times_of), times)


class Asked(NamedTuple):
    """The notion, the class, the number of rows, the estimator and the level of intervals."""

    notion: str
    label: Label
    n_samples: int
    reader: Estimator
    level: float


def over_time(
    column: SubgroupProblems, periods: Periods, fine: Fine, asked: Asked, rng: np.random.Generator
) -> CalibrationOverTime:
    """The result, of rows by period or of a frame's sums of periods."""
    level, n = asked.level, asked.n_samples
    options = SubgroupOptions.checked("kuiper", level, "holm", LEAST_ROWS, _RESAMPLES)
    (found,) = assess([column], asked.reader, asked[:3], options, rng).columns
    cells = column.cells
    pooled = PooledMap.of(cells.coarse, column.design)
    known = pooled or PooledMap(None, np.array([np.average(cells.outcomes, weights=cells.weights)]))
    blocks = Blocks.of(fine.code, fine.ends, fine.rows, known, column.design)
    nan = float("nan")
    searched, slope = (nan, nan), nan
    if pooled is not None:
        searched, slope = first_search(blocks, rng), trend(blocks)
    result = CalibrationOverTime(
        periods=_periods(column, found, periods),
        changes=(),
        change_test=_change_test(searched, n, blocks.weight.size),
        trend_test=_trend_test(slope, n),
        period_test=replace(found.heterogeneity, null="outcomes at equal scores are equally frequent in all periods"),
        every=periods.every,
        notion=asked.notion,
        estimator=repr(asked.reader),
        label=asked.label,
        level=level,
        n_samples=n,
        gap=blocks.gap(slice(None))[0],
        gap_interval=_interval(blocks, slice(None), level)[1],
        warnings=_notes(periods, pooled),
    )
    if not result.adjusted["change"] <= 1 - level:
        return result
    places = changes(blocks, level, rng)
    ends = [0, *(one.at for one in places), blocks.weight.size]
    every = [_change(blocks, one, ends[i], ends[i + 2], fine.times, level) for i, one in enumerate(places)]
    return replace(result, changes=tuple(every))


def over_time_of_sums(
    column: SubgroupProblems, every: str, asked: Asked, rng: np.random.Generator
) -> CalibrationOverTime:
    """The same from sums of periods, whose values are their beginnings: changes are looked for between them."""
    times = Times.read(list(column.values), len(column.values))
    periods, ends = Periods.of_starts(times, every)
    cells = column.cells
    rows = (cells.scores, cells.outcomes, cells.weights, None if cells.integral else cells.times)
    fine = Fine(cells.subgroup, (ends[0][column.held], ends[1][column.held]), rows, times)
    return over_time(column, periods, fine, asked, rng)


def _interval(blocks: Blocks, some: slice, level: float) -> tuple[float, Interval]:
    from scipy.special import ndtri

    gap, error = blocks.gap(some)
    reach = float(ndtri((1 + level) / 2)) * error
    return gap, Interval(gap - reach, gap + reach)


def _change(blocks: Blocks, found: Located, start: int, end: int, times: Times, level: float) -> Change:
    before, after = (_interval(blocks, some, level) for some in (slice(start, found.at), slice(found.at, end)))
    # Within the blocks on either side, too.
    low, high = times.shown(blocks.first[found.low - 1]), times.shown(blocks.last[found.high])
    at: Time = times.shown(blocks.first[found.at])
    return Change(at, TimeInterval(low, high), *before, *after, found.pvalue)


def _periods(column: SubgroupProblems, found: SubgroupColumn, periods: Periods) -> tuple[Period, ...]:
    cells = column.cells
    squares = cells.weights * (cells.outcomes * (1 - 2 * cells.scores) + cells.scores**2)
    brier = np.full(len(periods.names), np.nan)
    brier[column.held] = cells.added(squares) / cells.added(cells.weights)
    return tuple(
        Period(
            name, start, end, one.n_samples, one.base_rate, one.mean_probability, one.gap, one.gap_interval,
            one.error, one.error_interval, score, one.pvalue, one.adjusted, one.warnings,
        )
        for name, start, end, one, score in zip(
            periods.names, periods.starts, periods.ends, found.subgroups, brier.tolist(), strict=True
        )
    )  # fmt: skip


def _change_test(found: tuple[float, float], n: int, blocks: int) -> TestResult:
    why = ("outcomes are all the same, or separated by the scores",) if found[1] != found[1] else ()
    name = f"largest squared sum of residuals up to one of {blocks:,} times, drawn"
    return TestResult(
        *found, null="outcomes at equal scores are equally frequent at all times", name=name, n_samples=n, warnings=why
    )


def _trend_test(z: float, n: int) -> TestResult:
    from scipy.special import ndtr

    why = ("all rows have one time, or outcomes are all the same",) if z != z else ()
    pvalue = float(2 * ndtr(-abs(z)))
    null = "outcomes at equal scores become neither more nor less frequent"
    return TestResult(z, pvalue, null=null, name="score test of a slope in time", n_samples=n, warnings=why)


def _notes(periods: Periods, pooled: PooledMap | None) -> tuple[str, ...]:
    out = []
    if n := len(periods.left_out):
        some: Sequence[str] = periods.left_out[:_NAMED]
        more = f" and {n - _NAMED:,} more" if n > _NAMED else ""
        out.append(f"{n:,} {periods.every}{'s have' if n > 1 else ' has'} no rows: {', '.join(some)}{more}")
    if pooled is None:
        out.append("outcomes are all the same, or separated by the scores: changes cannot be tested")
    return tuple(out)
