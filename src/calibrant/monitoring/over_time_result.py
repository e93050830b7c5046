"""`CalibrationOverTime`: calibration by period, and when it changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..data.printing import (
    Time,
    equals,
    half_width,
    known,
    nouns_of,
    number_of,
    printable_lines,
    pvalue_text,
    signed,
    text_table,
    time_texts,
    with_ends,
)
from ..data.result import Paged, Picture, Result, Section
from ..data.types import Interval, Label
from ..significance.result import TestResult
from .periods import TimeInterval

#: Maximum number of courses listed in the text.
_LISTED = 12


#: Maximum number of changes described in the text, the last ones.
_TOLD = 5


@dataclass(frozen=True, repr=False)
class Period(Result):
    """Calibration in one period.

    Attributes
    ----------
    name : str
        The period: ``2026-05``, ``2026 Q2``, ``week of 2026-05-04``, or the first and last time of its rows.
    start, end : date, datetime or number
        Times of its first and last row.
    base_rate, mean_probability : float
        Observed share of the class, and its mean probability (for the confidence: accuracy and mean confidence).
    gap : float
        ``base_rate - mean_probability``; negative if probabilities are too high.
    gap_interval : Interval
        Confidence interval of the gap.
    error : float
        Calibration error.
    error_interval : Interval
        Interval of the calibration error.
    brier : float
        Mean squared difference between outcome and probability, in [0, 1].
    pvalue : float
        The p-value (null: calibrated in this period).
    adjusted : float
        The p-value, adjusted for the number of periods (Holm).

    See Also
    --------
    calibrant.calibration_over_time : Computes it, in ``periods``.
    calibrant.results.CalibrationOverTime : The full result.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> day = np.datetime64("2026-01-01") + (np.arange(2000) // 20).astype("m8[D]")
    >>> first = cal.calibration_over_time(rng.random(2000) < p, p, day, every="month").periods[0]
    >>> first.name, first.n_samples, str(first.end)
    ('2026-01', 620, '2026-01-31')
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the whole result draws it."

    name: str
    start: Time
    end: Time
    n_samples: int
    base_rate: float
    mean_probability: float
    gap: float
    gap_interval: Interval
    error: float
    error_interval: Interval
    brier: float
    pvalue: float
    adjusted: float
    warnings: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Calibration of the period, in one sentence."""
        gap = with_ends(self.gap, self.gap_interval, signed)
        return f"In {self.name} observed minus predicted is {gap}; adjusted p {equals(self.adjusted)}."


@dataclass(frozen=True, repr=False)
class Change(Result):
    """A time from which outcomes at equal scores have a different frequency.

    Attributes
    ----------
    time : date, datetime or number
        Estimated time of the first row after the change.
    interval : TimeInterval
        Confidence interval, ``low`` to ``high``: times of the last row surely before the change, and of the first
        surely after it.
    before, after : float
        Gap, observed minus predicted, between the previous change and this one, and from this one to the next.
    before_interval, after_interval : Interval
        Intervals of the gaps, given the time of the change.
    pvalue : float
        The p-value of the search that detected it (null: no change in the segment searched).

    See Also
    --------
    calibrant.calibration_over_time : Computes it, in ``changes``.
    calibrant.results.CalibrationOverTime : The full result.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, day = rng.random(4000), np.arange(4000) // 40
    >>> y = rng.random(4000) < np.where(day < 60, p, 0.8 * p)
    >>> (change,) = cal.calibration_over_time(y, p, day).changes
    >>> change.interval.low <= 60 <= change.interval.high
    True
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the whole result draws it."

    time: Time
    interval: TimeInterval
    before: float
    before_interval: Interval
    after: float
    after_interval: Interval
    pvalue: float

    @property
    def between(self) -> str:
        """The interval of the time, in words."""
        low, high = time_texts(self.interval, more=1)
        return f"between {low} and {high}" if low != high else f"at {low}"

    @property
    def summary(self) -> str:
        """Time of the change, and the gaps before and after it."""
        gaps = [
            with_ends(gap, interval, signed)
            for gap, interval in ((self.before, self.before_interval), (self.after, self.after_interval))
        ]
        return f"Changed {self.between}: observed minus predicted went from {gaps[0]} to {gaps[1]}."


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationOverTime(Picture, Paged):
    """Calibration by period, and whether and when it changed.

    Attributes
    ----------
    periods : tuple of Period
        Periods with rows, in order.
    changes : tuple of Change
        Times from which outcomes at equal scores have a different frequency, in order.
    change_test : TestResult
        Test of no change: the largest standardised sum of residuals up to any time.
    trend_test : TestResult
        Test of no trend: a slope in time added to the curve of all rows. Positive: increasingly above predicted.
    period_test : TestResult
        Test of no difference between periods: an intercept for each, added to the curve of all rows.
    every : str or int
        Length of a period: a calendar period, or a number of rows.
    gap : float
        Observed minus predicted frequency of all rows.
    gap_interval : Interval
        Its interval.
    adjusted : dict
        The p-values of the three tests, "change", "trend" and "periods", adjusted by Holm's method for these three, or
        for three per course.
    label : object
        The class whose gaps are reported; None for confidences.
    level : float
        Level of the intervals; adjusted p-values are compared with ``1 - level``.
    by : str
        The column of subgroups, or "class" or "label" for courses of these; empty for a single course.
    course : str
        The subgroup or class of this result.
    courses : tuple of CalibrationOverTime
        One result per subgroup or class; the overall result is that with the most significant change.

    See Also
    --------
    calibrant.calibration_over_time : Computes it.
    calibrant.plot.OverTimeDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, day = rng.random(4000), np.datetime64("2026-01-01") + (np.arange(4000) // 40).astype("m8[D]")
    >>> found = cal.calibration_over_time(rng.random(4000) < p, p, day, every="month")
    >>> [period.name for period in found.periods], found.changes
    (['2026-01', '2026-02', '2026-03', '2026-04'], ())
    """

    display: ClassVar[str] = "OverTimeDisplay"
    periods: tuple[Period, ...]
    changes: tuple[Change, ...]
    change_test: TestResult
    trend_test: TestResult
    period_test: TestResult
    every: str | int
    notion: str
    estimator: str
    label: Label
    level: float
    n_samples: int
    gap: float
    gap_interval: Interval
    adjusted: dict[str, float]
    by: str = ""
    course: str = ""
    courses: tuple[CalibrationOverTime, ...] = ()
    warnings: tuple[str, ...] = ()
    title: str = "Calibration over time"

    @property
    def changed(self) -> tuple[CalibrationOverTime, ...]:
        """Courses with an adjusted p-value of at most ``1 - level``, the most significant first."""
        found = [(min(one._known), i, one) for i, one in enumerate(self.courses) if one._known]
        return tuple(one for p, _, one in sorted(found, key=lambda v: v[:2]) if p <= 1 - self.level)

    @property
    def _known(self) -> list[float]:
        return [p for p in self.adjusted.values() if p == p]

    @property
    def _what(self) -> str:
        return "Confidences" if self.label is None else "Probabilities"

    def _level_of(self, gap: float, interval: Interval) -> str:
        """Direction and size of the miscalibration, in words."""
        low, high = interval
        spread = half_width(low, high)
        if high < 0:
            return f"too high by {known(-high, spread)} to {known(-low, spread)}"
        if low > 0:
            return f"too low by {known(low, spread)} to {known(high, spread)}"
        return f"right on average as far as can be told (observed minus predicted {with_ends(gap, interval, signed)})"

    @property
    def summary(self) -> str:
        """Whether and when calibration changed, and the gap since; for several courses, the most significant one."""
        if len(self.courses) <= 1:
            return self._alone
        n, changed = len(self.courses), self.changed
        nouns = {"class": "classes", "label": "labels"}.get(self.by, "subgroups")
        if not changed:
            least = min((p for one in self.courses for p in one._known), default=float("nan"))
            return f"No change was found in any of the {n:,} {nouns} (p {equals(least)}, adjusted for all)."
        many = f"{len(changed):,} of the {n:,} {nouns} changed"
        return f"{many}, most significantly {self._named}: {self._alone}"

    @property
    def _named(self) -> str:
        return nouns_of(self.notion).of(self.label) if self.by in ("class", "label") else f"{self.by} {self.course}"

    @property
    def _alone(self) -> str:
        adjusted, spans = self.adjusted, number_of(len(self.periods), "period")
        if self.changes:
            last = self.changes[-1]
            since = self._level_of(last.after, last.after_interval)
            before = self._level_of(last.before, last.before_interval)
            said = f"{self._what} have been {since} since {last.between}. Before, they were {before}."
            more = len(self.changes) - 1
            were = f"were {more:,} more changes" if more > 1 else "was one more change"
            return said + (f" There {were} before that." if more else "")
        known_ones = self._known
        over = spans if len(self.periods) == 1 else f"all {spans}"
        said = f"{self._what} are {self._level_of(self.gap, self.gap_interval)} over {over}. "
        if not known_ones:
            return said + "Whether that changed cannot be tested."
        if adjusted["trend"] <= 1 - self.level:
            way = "more" if self.trend_test.statistic > 0 else "less"
            return said + (
                f"Outcomes become {way} frequent than predicted as time goes on (p {equals(adjusted['trend'])}), "
                "but no single time at which this began was found."
            )
        if adjusted["periods"] <= 1 - self.level:
            return said + f"Periods differ (p {equals(adjusted['periods'])}), but no single time of change was found."
        return said + f"No change was found (p {equals(min(known_ones))})."

    def _text(self) -> str:
        about = "" if self.label is None else f" of {nouns_of(self.notion).of(self.label)}"
        if self.by not in ("", "class", "label"):
            about += f", {self.by} {self.course}"
        head = f"{self.title}{about}: {self.n_samples:,} rows, {self._spans}, {100 * self.level:g} % intervals"
        lines = [*self._table_of_courses(), head, *self._table(), *(f"  {text}" for text in self._said())]
        before = len(self.changes) - _TOLD
        lines += [f"  {number_of(before, 'earlier change')}: see .changes"] * (before > 0)
        lines += [f"  {change.summary}" for change in self.changes[-_TOLD:]]
        return printable_lines("\n".join(lines))

    @property
    def _n_periods(self) -> int:
        return sum(len(one.periods) for one in self.courses or [self])

    @property
    def _spans(self) -> str:
        sizes = sorted({p.n_samples for p in self.periods})  # the last has the rest, and equal times stay together
        rows = f"{sizes[0]:,} to {sizes[-1]:,} rows" if len(sizes) > 1 else number_of(sizes[0], "row")
        of = f"of {rows}" if isinstance(self.every, int) else f"by {self.every}"
        return f"{number_of(len(self.periods), 'period')} {of}"

    def _table(self) -> list[str]:
        found = self.periods
        columns = {
            "period": [p.name for p in found],
            "rows": [f"{p.n_samples:,}" for p in found],
            "observed": [known(p.base_rate, 0.5 / p.n_samples**0.5) for p in found],
            "predicted": [known(p.mean_probability, 0.5 / p.n_samples**0.5) for p in found],
            "gap": [with_ends(p.gap, p.gap_interval, signed) for p in found],
            "error": [with_ends(p.error, p.error_interval) for p in found],
            "Brier": [known(p.brier, 0.2 / p.n_samples**0.5) for p in found],
            "p adj.": [pvalue_text(p.adjusted) for p in found],
        }
        marks = ["*" if p.adjusted <= 1 - self.level else " " for p in found]
        return text_table(columns, ("Brier", "predicted", "observed", "rows"), marks)

    def _columns_of_courses(self, most: int) -> dict[str, list[str]]:
        """Courses, one per line, the most significant first."""
        surest = sorted(self.courses, key=lambda one: min(one._known, default=2.0))[:most]
        return {
            self.by: [one.course for one in surest],
            "rows": [f"{one.n_samples:,}" for one in surest],
            "gap": [with_ends(one.gap, one.gap_interval, signed) for one in surest],
            "changed": ["; ".join(change.between for change in one.changes) for one in surest],
            **{
                f"p {what}": [pvalue_text(one.adjusted[name]) for one in surest]
                for name, what in (("change", "change"), ("trend", "trend"), ("periods", "periods"))
            },
        }

    def _table_of_courses(self) -> list[str]:
        if not self.courses:
            return []
        n, found = len(self.courses), self._columns_of_courses(_LISTED)
        marks = [*"*" * len(self.changed), *" " * n][: min(n, _LISTED)]
        more = [f"  and {n - _LISTED:,} more: .courses has them"] if n > _LISTED else []
        key = f"  * changed at {1 - self.level:.3g}; p-values are adjusted for {3 * n:,} tests (Holm)"
        return [*text_table(found, ("p periods", "p trend", "rows"), marks), *more, key, ""]

    def _said(self) -> list[str]:
        """Lines below the table."""
        tests = ((self.change_test, "no change"), (self.trend_test, "no trend"), (self.period_test, "no difference"))
        return [
            f"* miscalibrated at {1 - self.level:.3g}, adjusted for {number_of(self._n_periods, 'period')} (Holm)",
            "; ".join(
                f"{what}: p {equals(test.pvalue)}" if test.pvalue == test.pvalue else f"{what}: {test.warnings[0]}"
                for test, what in tests
            ),
            *(f"note: {text}" for text in self.warnings),
        ]

    def _sections(self) -> list[Section]:
        told: dict[str, Any] = {
            "period": [p.name for p in self.periods],
            "rows": [p.n_samples for p in self.periods],
            "observed": [p.base_rate for p in self.periods],
            "predicted": [p.mean_probability for p in self.periods],
            "gap": [p.gap for p in self.periods],
            "gap_low": [p.gap_interval.low for p in self.periods],
            "gap_high": [p.gap_interval.high for p in self.periods],
            "error": [p.error for p in self.periods],
            "error_low": [p.error_interval.low for p in self.periods],
            "error_high": [p.error_interval.high for p in self.periods],
            "Brier": [p.brier for p in self.periods],
            "p, adjusted": [pvalue_text(p.adjusted) for p in self.periods],
        }
        marked = [bool(p.adjusted <= 1 - self.level) for p in self.periods]
        found = {
            "changed": [change.between for change in self.changes],
            "gap before": [with_ends(change.before, change.before_interval, signed) for change in self.changes],
            "gap after": [with_ends(change.after, change.after_interval, signed) for change in self.changes],
            "p": [pvalue_text(change.pvalue) for change in self.changes],
        }
        changes = [Section("Changes", found)] if self.changes else []
        if self.courses:
            marks = [True] * len(self.changed) + [False] * (len(self.courses) - len(self.changed))
            changes.insert(0, Section("Courses", self._columns_of_courses(len(self.courses)), marks))
        about = f"Periods of {self._named}" if self.by else "Periods"
        return [*changes, Section(about, told, marked, "; ".join(self._said()))]

    def _columns(self) -> dict[str, Any]:
        each = [(one, p) for one in self.courses or [self] for p in one.periods]
        of_course = {self.by: [one.course for one, _ in each]} if self.by else {}
        plain = ("start", "end", "n_samples", "base_rate", "mean_probability", "gap", "error", "brier")
        columns: dict[str, list[Any]] = {name: [getattr(p, name) for _, p in each] for name in plain}
        for name in ("gap", "error"):
            for end in ("low", "high"):
                columns[f"{name}_{end}"] = [getattr(getattr(p, f"{name}_interval"), end) for _, p in each]
        for name in ("pvalue", "adjusted"):
            columns[name] = [getattr(p, name) for _, p in each]
        columns["warnings"] = ["; ".join(p.warnings) for _, p in each]
        return {**of_course, "period": [p.name for _, p in each], **columns}
