"""The engine of `calibration_over_time`: courses over periods, from rows or from sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..comparison.subgroups.build import SubgroupOptions, SubgroupProblems, assess
from ..comparison.subgroups.cells import cell_keys, coarse_cells, counts_of
from ..comparison.subgroups.heterogeneity import PooledMap
from ..comparison.subgroups.result import SubgroupColumn
from ..data.printing import Time
from ..data.problem import Problem
from ..data.types import Interval, Label
from ..estimators import Estimator
from ..significance.result import TestResult, holm
from .changes import Blocks, Located, changes, first_search, trend
from .over_time_result import CalibrationOverTime, Change, Period
from .periods import LEAST_ROWS, Periods, TimeInterval, Times

#: Number of tests per course, for adjusted p-values, and maximum number of periods without rows that are named.
_TESTS = 3
_NAMED = 5
#: Number of rows beyond which the search for changes uses cells of rows.
_MANY_ROWS = 1 << 20
#: Number of rows summed at a time.
_TILE = 1 << 16
#: Draws of Kuiper's test of each period.
_RESAMPLES = 1999


class Fine(NamedTuple):
    """Rows, or cells of rows, by blocks of time finer than periods: scores, outcomes, weights, squares."""

    code: Any
    ends: tuple[Any, Any]
    rows: tuple[Any, Any, Any, Any]
    times: Times

    @classmethod
    def of(cls, problem: Problem, times: Times, blocks: tuple[Any, tuple[Any, Any]]) -> Fine:
        """Rows by blocks (see :func:`.cut`); very many rows are summed in cells of the log-odds, some 900 per block."""
        code, ends = blocks
        s, o, w = problem.scores, problem.outcomes, problem.weights
        squares = None if w is None or problem.integral else w**2
        if s.size <= _MANY_ROWS:
            return cls(code, ends, (s, o, w, squares), times)
        coarse = coarse_cells()
        size = int(coarse[-1]) + 1
        sums = np.zeros((4, (int(code.max()) + 1) * size))
        # Rows in order of time fall into a few blocks at a time.
        tile = _TILE if (code[1:] >= code[:-1]).all() else _MANY_ROWS
        for start in range(0, s.size, tile):
            part = slice(start, start + tile)
            key = cell_keys(code[part], s[part], coarse)
            first = int(key.min())
            key -= first
            some = slice(first, first + int(key.max()) + 1)
            if w is None:
                sums[:2, some] += counts_of(key, o[part])
                sums[2, some] += np.bincount(key, s[part])
                continue
            every = (w[part], w[part] * o[part], w[part] * s[part], *(() if squares is None else (squares[part],)))
            for total, values in zip(sums, every, strict=False):
                total[some] += np.bincount(key, values)
        used = np.flatnonzero(sums[0])
        count, outcome, score, times_of = sums[:, used]
        return cls(
            used // size, ends, (score / count, outcome / count, count, None if squares is None else times_of), times
        )


class Asked(NamedTuple):
    """The notion, the estimator, the level of intervals, and the numbers of courses and of their periods."""

    notion: str
    reader: Estimator
    level: float
    n_courses: int = 1
    n_periods: int = 0


class Course(NamedTuple):
    """Rows followed over the periods: all rows, a subgroup, or a one-vs-rest problem."""

    name: str
    label: Label
    n_samples: int
    column: SubgroupProblems
    periods: Periods
    fine: Fine


def over_time(courses: Iterable[Course], by: str, asked: Asked, rng: np.random.Generator) -> CalibrationOverTime:
    """The result for one course, or for the most significant of several, with all courses."""
    read = [_Found.of(course, by, asked, rng) for course in courses]
    every = np.array([p for one in read for p in one.pvalues])
    tests = iter(holm(every).tolist())
    of_periods = iter(holm(np.array([p.pvalue for one in read for p in one.result.periods])).tolist())
    found = [one.finished(tests, of_periods, asked.level, rng) for one in read]
    if len(found) == 1 and not by:
        return found[0]
    worst = min(found, key=_doubt)
    return replace(worst, courses=tuple(found))


def _doubt(found: CalibrationOverTime) -> tuple[float, float]:
    """Sort key of courses: the most significant change first."""
    known = [p for p in found.adjusted.values() if p == p]
    tests = (found.change_test, found.trend_test, found.period_test)
    return min(known, default=2.0), min((t.pvalue for t in tests if t.pvalue == t.pvalue), default=2.0)


@dataclass(frozen=True, eq=False)
class _Found:
    """A course with its tests, before p-values are adjusted and changes are searched for."""

    result: CalibrationOverTime
    blocks: Blocks
    times: Times

    @classmethod
    def of(cls, course: Course, by: str, asked: Asked, rng: np.random.Generator) -> _Found:
        """Test a single course."""
        level, n, column, periods = asked.level, course.n_samples, course.column, course.periods
        options = SubgroupOptions.checked("kuiper", level, "holm", LEAST_ROWS, _RESAMPLES)
        about = (asked.notion, course.label, n)
        among = max(asked.n_periods, _TESTS * asked.n_courses) if asked.n_courses > 1 else 0
        (found,) = assess([column], asked.reader, about, options, rng, among).columns
        cells, fine = column.cells.coarse, course.fine
        pooled = PooledMap.of(cells, column.design)
        known = pooled or PooledMap(None, np.array([np.average(cells.outcomes, weights=cells.weights)]))
        blocks = Blocks.of(fine.code, fine.ends, fine.rows, known, column.design)
        nan = float("nan")
        searched, slope = (nan, nan), (nan, nan)
        if pooled is not None:
            least = (1 - level) / (_TESTS * asked.n_courses) if asked.n_courses > 1 else 1.0
            searched, slope = first_search(blocks, rng, least), trend(blocks)
        result = CalibrationOverTime(
            periods=_periods(column, found, periods),
            changes=(),
            change_test=_change_test(searched, n, blocks.weight.size),
            trend_test=_trend_test(slope[0], slope[asked.n_courses > 1], n),
            period_test=_of_periods(found.heterogeneity),
            every=periods.every,
            notion=asked.notion,
            estimator=repr(asked.reader),
            label=course.label,
            level=level,
            n_samples=n,
            gap=blocks.gap(slice(None))[0],
            gap_interval=_interval(blocks, slice(None), level)[1],
            adjusted={},
            by=by,
            course=course.name,
            warnings=_notes(periods, pooled),
        )
        return cls(result, blocks, fine.times)

    @property
    def pvalues(self) -> tuple[float, ...]:
        """The p-values of no change, no trend and no difference."""
        found = self.result
        return found.change_test.pvalue, found.trend_test.pvalue, found.period_test.pvalue

    def finished(
        self, tests: Iterator[float], of_periods: Iterator[float], level: float, rng: np.random.Generator
    ) -> CalibrationOverTime:
        """The result with adjusted p-values, taken from the iterators, and with changes."""
        found, blocks = self.result, self.blocks
        adjusted = dict(zip(("change", "trend", "periods"), tests, strict=False))
        periods = tuple(replace(p, adjusted=q) for p, q in zip(found.periods, of_periods, strict=False))
        found = replace(found, adjusted=adjusted, periods=periods)
        if not adjusted["change"] <= 1 - level:
            return found
        places = changes(blocks, level, rng, found.change_test.pvalue)
        ends = [0, *(one.at for one in places), blocks.weight.size]
        return replace(
            found,
            changes=tuple(
                _change(blocks, one, ends[i], ends[i + 2], self.times, level) for i, one in enumerate(places)
            ),
        )


def over_time_of_sums(
    columns: Sequence[SubgroupProblems], every: str, label: Label, by: str, asked: Asked, rng: np.random.Generator
) -> CalibrationOverTime:
    """As :func:`over_time`, from sums of periods, given by their start times: changes are searched for between these.

    ``columns`` contains the periods of all rows, or those of each subgroup of a column ``by``, named by its value.
    """
    return over_time((_of_sums(column, every, label, by) for column in columns), by, asked, rng)


def _of_sums(column: SubgroupProblems, every: str, label: Label, by: str) -> Course:
    times = Times.read(list(column.values), len(column.values))
    periods, ends = Periods.of_starts(times, every)
    cells = column.cells
    rows = (cells.scores, cells.outcomes, cells.weights, None if cells.integral else cells.times)
    fine = Fine(cells.subgroup, (ends[0][column.held], ends[1][column.held]), rows, times)
    return Course(column.name if by else "", label, int(column.n_samples.sum()), column, periods, fine)


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
    brier = np.full(len(periods.names), np.nan)
    brier[column.held] = column.cells.brier()
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
    name = f"maximum of squared sums of residuals up to each of {blocks:,} times, simulated"
    return TestResult(
        *found, null="outcomes at equal scores are equally frequent at all times", name=name, n_samples=n, warnings=why
    )


def _of_periods(test: TestResult) -> TestResult:
    """A test of subgroups, in the words of periods."""
    why = tuple(text.removeprefix("no test: ").replace("subgroup", "period") for text in test.warnings)
    null = "outcomes at equal scores are equally frequent in all periods"
    return replace(test, null=null, name=test.name.replace("subgroup", "period"), warnings=why)


def _trend_test(z: float, normal: float, n: int) -> TestResult:
    from scipy.special import ndtr

    why = ("all rows have one time, or outcomes are all the same",) if z != z else ()
    pvalue = float(2 * ndtr(-abs(normal)))
    null = "outcomes at equal scores become neither more nor less frequent over time"
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
