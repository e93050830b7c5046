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

#: Courses beyond which changes are looked for between fewer blocks of time, and how many.
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
    by : array-like of shape (n,), mapping, data frame, or list of columns, optional
        Subgroup of each row, as in :func:`subgroup_calibration`: each is followed over the same periods.
    notion : str or Notion, default "auto"
        The notion of calibration: the positive class, the confidence, or a class (``ClassSpecific``); or each class
        against the rest (``"classwise"``), and others of several problems, of which each is followed.
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
        ``.to_frame()``, ``.to_dict()``, ``.to_html()``. With ``by``, or several classes, these are those of the
        subgroup or class that changed most surely, and ``.courses`` has all of them.

    Raises
    ------
    ValueError, TypeError
        For bad input: times that are missing, or of several time zones or kinds; ``by`` with several classes.

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
    With C subgroups or classes p-values are adjusted for 3 C tests, and those of periods for all periods of all. Where
    that needs p-values of the search that 999 draws cannot reach, they are bounded by the tail of correlated normal
    variables (Worsley), sums made normal by their third moments (Wilson & Hilferty). Where few outcomes, or groups,
    make the test of periods one by draws, drawing ends with the tenth that reaches the statistic (Besag & Clifford).
    There are at most 20 million numbers for one course; beyond these a bound from the saddlepoint tails of the sums of
    outcomes of each period, and of all up to it, and for signs of groups as many draws as p-values need.

    The interval of the time of a change contains the times at which its likelihood ratio is less than
    :math:`-2 \log(1 - \sqrt{\text{level}})` below the largest (7.4 for 95 %). Gaps before and after have intervals for
    a known time of the change.

    With groups, variances are multiplied by the design effect of the mean residual. How often tests reject and
    intervals cover: docs/over_time.md. Cost: that of :func:`subgroup_calibration`, and one pass over the rows.

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
    columns = [] if by is None else [replace(c, codes=p.of_given(c.codes)) for c in read_subgroups(by, p.n_given)]
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
    """Times, periods and groups of all rows, of which courses are some."""

    times: Times
    periods: Periods
    groups: IntArray | None
    n_blocks: int

    def course(self, name: str, problem: Problem, rows: IntArray | None = None) -> Course:
        """That of a problem of all rows, or of some."""
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
        """Those of the subgroups of some columns; ``rows`` are those of the problem, of which each has some."""
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
    """Rows for an interval of a gap of ± tolerance, if scores are right."""
    from scipy.special import ndtri

    spread = float(np.mean(scores * (1 - scores)))
    return max(LEAST_ROWS, int(np.ceil(ndtri((1 + level) / 2) ** 2 * spread / tolerance**2)))
