"""`calibration_over_time`: the public function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from ..comparison.subgroups.build import SubgroupsOfRows
from ..comparison.subgroups.membership import Subgroups, read_subgroups
from ..data.checks import check_level, check_number, check_random_state
from ..data.printing import nouns_of
from ..data.problem import Problem, VectorProblem
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, IntArray, RandomState
from ..data.validation import as_predictions
from ..estimators import Estimator
from ..measure.question import resolve_estimator
from ..notions import Notion, as_notion
from .changes import BLOCKS, cut
from .courses import Asked, Course, Fine, over_time
from .over_time_result import CalibrationOverTime
from .periods import LEAST_ROWS, Periods, Times

#: Number of courses beyond which the search for changes uses fewer blocks of time, and the number of these blocks.
_MANY, _FEW_BLOCKS = 20, 100


@public_function(grouped=True)
def calibration_over_time(
    y_true: Any,
    y_prob: Any = None,
    time: Any = None,
    *,
    every: str | int = "auto",
    by: Any = None,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    level: float = 0.95,
    tolerance: float = 0.05,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> CalibrationOverTime:
    r"""Calibration by period, with tests of whether and when it changed.

    .. math:: \text{gap}_t = \frac{\sum_{i \in t} w_i (o_i - s_i)}{\sum_{i \in t} w_i}

    is the gap of period t, observed minus predicted. A change is a time from which outcomes at equal scores have
    a different frequency; a different mix of scores is not a change.

    Parameters
    ----------
    time : array-like of shape (n,), or name of a column
        Time of each row, in any order: dates, datetimes (of one time zone, in local time), ISO 8601 strings, or
        numbers, without missing values. If ``y_true`` is a Predictions object, pass ``time`` by keyword.
    every : {"auto", "hour", "day", "week", "month", "quarter", "year"} or int, default "auto"
        Length of a period: a calendar period (weeks begin on Monday), or a number of rows; rows with equal times stay
        together, and remaining rows belong to the last period. ``"auto"``: the shortest calendar period with at most 60
        periods and enough rows in the median one for gaps known within ± ``tolerance``; otherwise that number of rows.
    by : array-like of shape (n,), mapping, data frame, or list of columns, optional
        Subgroup of each row, as in :func:`subgroup_calibration`: each is followed over the same periods.
    notion : str or Notion, default "auto"
        The notion of calibration: the positive class, the confidence, or a class (``ClassSpecific``); or each class
        against the rest (``"classwise"``) and other notions of several problems, each of which is followed.
    estimator : "auto" or Estimator, default "auto"
        Estimator of calibration errors and their intervals; see :func:`calibrant.estimate`.
    level : float, default 0.95
        Level of each interval; adjusted p-values are compared with ``1 - level``.
    tolerance : float in (0, 1), default 0.05
        Largest half-width of the intervals of gaps if ``every`` is ``"auto"``.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as visits of a patient (see :func:`calibrant.as_predictions`).

    Returns
    -------
    CalibrationOverTime
        ``str(result)``, ``.periods``, ``.changes``, ``.change_test``, ``.trend_test``, ``.period_test``, ``.plot()``,
        ``.to_frame()``, ``.to_dict()``, ``.to_html()``. With ``by``, or several classes, these are for the subgroup
        or class with the most significant change, and ``.courses`` contains all of them.

    Raises
    ------
    ValueError, TypeError
        For invalid input: times that are missing, or of several time zones or types; ``by`` with several classes, or
        with a column that has more than 50 values, and fewer than two rows per value on average.

    See Also
    --------
    calibrant.CalibrationMonitor : Sequential test for rows as they arrive, valid at any time.
    calibrant.subgroup_calibration : Subgroups without an order.
    calibrant.from_frame : Periods of a lazy frame, computed by its engine (``time``, ``every``).
    calibrant.results.CalibrationOverTime : The result, field by field.

    Notes
    -----
    Three tests use residuals from one polynomial logistic curve for all rows (degree chosen as in
    :func:`calibration_belt`). *No change*: the largest squared standardised sum of residuals up to any of 1,000 times,
    compared with such sums of normal scores with the same covariance, 999 draws. *No trend*: a slope in time. *No
    difference*: an intercept per period. The three p-values are adjusted (Holm). Changes are searched for if the first
    is at most ``1 - level``; then on either side of each detected change, each with its own p-value.
    With C subgroups or classes p-values are adjusted for 3 C tests, and those of periods for all periods of all. If
    this requires p-values of the search that 999 draws cannot reach, they are bounded by the tail of correlated normal
    variables (Worsley), after normalising sums by their third moments (Wilson & Hilferty). If few outcomes, or groups,
    require a Monte Carlo test of periods, sampling stops at the tenth draw that reaches the statistic (Besag &
    Clifford). At most 20 million numbers are drawn per course; beyond these the test uses a bound from the saddlepoint
    tails of sums of outcomes of each period, and of all up to it, and for signs of groups as many draws as needed.

    The interval of the time of a change contains the times whose likelihood ratio is at most
    :math:`-2 \log(1 - \sqrt{\text{level}})` below the largest (7.4 for 95 %). Intervals of gaps before and after treat
    the time of the change as known.

    With groups, variances are multiplied by the design effect of the mean residual. Rejection rates and coverage:
    docs/over_time.md. Cost: that of :func:`subgroup_calibration`, plus one pass over the rows.

    References
    ----------
    Andrews (1993), *Tests for parameter instability and structural change with unknown change point*; Eo & Morley
    (2015), *Likelihood-ratio-based confidence sets for the timing of structural breaks*; Worsley (1982), *An improved
    Bonferroni inequality and applications*; Besag & Clifford (1991), *Sequential Monte Carlo p-values*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, day = rng.random(9000), np.datetime64("2026-01-01") + (np.arange(9000) // 50).astype("m8[D]")
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
    problems = chosen.reduce(p)
    named = [] if by is None else read_subgroups(by, p.n_given, few=True)
    columns = [replace(c, codes=p.of_given(c.codes)) for c in named]
    if isinstance(problems, VectorProblem) or (columns and len(problems) > 1):
        kind = f"notion {chosen.name!r}" + ("" if isinstance(problems, VectorProblem) else " with by")
        raise ValueError(f"{kind} cannot be followed over time: take one class with ClassSpecific(label)")
    reader = resolve_estimator(estimator, problems[0], chosen.name)
    times = Times.read(time, p.n_given)
    if p.given is not None:
        times = times.where(p.given)
    n_courses = sum(len(column.values) for column in columns) or len(problems)

    def needed() -> int:
        most = max(rows_needed(one.scores, tolerance, level) for one in problems)
        return most * (n_courses if columns else 1)

    periods = Periods.of(times, every, needed)
    blocks = BLOCKS if n_courses <= _MANY else _FEW_BLOCKS
    rows = _TimedRows(times, periods, p.groups, blocks)
    if columns:
        (target,) = chosen.targets(p)
        courses = rows.subgroups(problems[0], columns, target.rows)
        name = ", ".join(column.name for column in columns)
    else:
        several = len(problems) > 1
        courses = (
            rows.course(str(one.label) if several else "", one, target.rows)
            for one, target in zip(problems, chosen.targets(p), strict=True)
        )
        name = nouns_of(chosen.name).one if several else ""
    asked = Asked(chosen.name, reader, level, n_courses, n_courses * len(periods.names))
    return over_time(courses, name, asked, check_random_state(random_state))


@dataclass(frozen=True, eq=False)
class _TimedRows:
    """Times, periods and groups of all rows; courses use subsets of them."""

    times: Times
    periods: Periods
    groups: IntArray | None
    n_blocks: int

    def course(self, name: str, problem: Problem, rows: IntArray | None = None) -> Course:
        """Course of a problem, for all rows or a subset."""
        times, periods, groups, blocks = self.times, self.periods, self.groups, self._blocks
        if rows is not None:
            times = times.where(rows)
            periods = periods.of_rows(times, rows)
            groups = None if groups is None else np.unique(groups[rows], return_inverse=True)[1].reshape(-1)
            blocks = cut(times, self.n_blocks)
        named = Subgroups("time", periods.codes, tuple(range(len(periods.names))))
        column = SubgroupsOfRows.of(problem, named, groups)
        fine = Fine.of(problem, times, blocks)
        return Course(name, problem.label, problem.n_samples, column, periods, fine)

    def subgroups(self, problem: Problem, columns: list[Subgroups], rows: IntArray | None) -> Iterator[Course]:
        """Courses of the subgroups of some columns; ``rows`` are the rows of the problem."""
        weights = problem.weights
        alone = replace(problem, design=None, effects=None, starts=None)
        for column in columns:
            codes = column.codes if rows is None else column.codes[rows]
            for code, name in enumerate(column.names):
                mine = np.flatnonzero(codes == code)
                if not mine.size or not (weights is None or weights[mine].any()):
                    continue
                part = replace(
                    alone,
                    scores=problem.scores[mine],
                    outcomes=problem.outcomes[mine],
                    weights=None if weights is None else weights[mine],
                )
                shown = name if len(columns) == 1 else f"{column.name}={name}"
                yield self.course(shown, part, mine if rows is None else rows[mine])

    @cached_property
    def _blocks(self) -> tuple[IntArray, tuple[AnyArray, AnyArray]]:
        return cut(self.times, self.n_blocks)


def rows_needed(scores: Any, tolerance: float, level: float) -> int:
    """Number of rows for an interval of the gap of ± tolerance, if scores are calibrated."""
    from scipy.special import ndtri

    spread = float(np.mean(scores * (1 - scores)))
    return max(LEAST_ROWS, int(np.ceil(ndtri((1 + level) / 2) ** 2 * spread / tolerance**2)))
