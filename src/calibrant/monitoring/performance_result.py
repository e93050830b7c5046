"""`ExpectedPerformance`: expected metrics of a model on unlabelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..data.printing import (
    Time,
    equals,
    half_width,
    known,
    number_of,
    printable,
    printable_lines,
    pvalue_text,
    text_table,
    with_ends,
)
from ..data.result import Measure, MeasuresDrawn, Paged, Result, Section
from ..data.types import Interval, Label
from ..decisions.priors import PriorEstimate
from .performance_metrics import METRICS
from .sample_shift import ColumnShift

#: Maximum number of columns named in a sentence.
_NAMED = 3


@dataclass(frozen=True, repr=False)
class ExpectedMetric(Result):
    """Expected value of one metric on unlabelled rows.

    Attributes
    ----------
    name : str
        Name of the metric.
    value : float
        Its expected value; NaN if it is not defined, such as the precision if no row is predicted positive.
    interval : Interval
        Prediction interval of the value that the labels of these rows would give.
    reference : float
        Its value in the reference, computed from labels; NaN without a reference.

    See Also
    --------
    calibrant.expected_performance : Computes it, in ``metrics``.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, new = rng.random(2000), rng.random(500)
    >>> found = cal.expected_performance(new, reference=(rng.random(2000) < p, p), metric="brier", n_resamples=99)
    >>> found.metrics[0].name, bool(0.1 < found.metrics[0].value < 0.25)
    ('brier', True)
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the whole result draws it."

    name: str
    value: float
    interval: Interval
    reference: float

    @property
    def summary(self) -> str:
        """The value with its interval, and the value in the reference."""
        spread = half_width(*self.interval)
        was = "" if self.reference != self.reference else f", {known(self.reference, spread)} in the reference"
        return f"{METRICS[self.name].words}: {with_ends(self.value, self.interval)}{was}."


@dataclass(frozen=True, repr=False)
class ExpectedPeriod(Result):
    """Expected metrics of one period.

    Attributes
    ----------
    name : str
        The period: ``2026-05``, or the first and last time of its rows.
    start, end : date, datetime or number
        Times of its first and last row.
    metrics : tuple of ExpectedMetric
        Its metrics.

    See Also
    --------
    calibrant.expected_performance : Computes it, in ``periods``, if ``time`` is given.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, new = rng.random(2000), rng.random(500)
    >>> day = np.datetime64("2026-01-01") + (np.arange(500) // 9).astype("m8[D]")
    >>> y = rng.random(2000) < p
    >>> found = cal.expected_performance(new, reference=(y, p), time=day, every="month", n_resamples=99)
    >>> [period.name for period in found.periods]
    ['2026-01', '2026-02']
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the whole result draws it."

    name: str
    start: Time
    end: Time
    n_samples: int
    metrics: tuple[ExpectedMetric, ...]

    @property
    def summary(self) -> str:
        """The period and its metrics."""
        return f"{self.name}: {' '.join(metric.summary for metric in self.metrics)}"


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedPerformance(MeasuresDrawn, Paged):
    """Expected metrics of a model on unlabelled rows.

    Attributes
    ----------
    metrics : tuple of ExpectedMetric
        The metrics for all rows.
    periods : tuple of ExpectedPeriod
        The metrics by period; empty without ``time``.
    shifts : tuple of ColumnShift
        Whether scores and features are distributed as in the reference; empty without a reference.
    prior : PriorEstimate or None
        The base rates of the new rows, if they were estimated.
    n_reference : int
        Number of labelled rows; 0 without a reference.

    See Also
    --------
    calibrant.expected_performance : Computes it.
    calibrant.plot.PerformanceDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, new = rng.random(2000), rng.random(500)
    >>> found = cal.expected_performance(new, reference=(rng.random(2000) < p, p), n_resamples=99)
    >>> bool(found.interval.low < found.value < found.interval.high)
    True
    """

    display: ClassVar[str] = "PerformanceDisplay"
    one_unit: ClassVar[bool] = False

    metrics: tuple[ExpectedMetric, ...]
    periods: tuple[ExpectedPeriod, ...]
    shifts: tuple[ColumnShift, ...]
    prior: PriorEstimate | None
    classes: tuple[Label, ...]
    label: Label
    level: float
    n_samples: int
    n_reference: int
    warnings: tuple[str, ...] = ()
    title: str = "Expected performance"

    @property
    def value(self) -> float:
        """Expected value of the first metric."""
        return self.metrics[0].value

    @property
    def interval(self) -> Interval:
        """Interval of the first metric."""
        return self.metrics[0].interval

    @property
    def shifted(self) -> tuple[ColumnShift, ...]:
        """Columns whose distribution differs from the reference, by their adjusted p-values."""
        return tuple(one for one in self.shifts if one.adjusted <= 1 - self.level)

    @property
    def summary(self) -> str:
        """The first metric, its assumption, and detected distribution shifts."""
        first = self.metrics[0]
        spread = half_width(*first.interval)
        was = (
            "" if first.reference != first.reference else f"; in the reference it was {known(first.reference, spread)}"
        )
        if first.value != first.value:
            return f"{METRICS[first.name].words} is not defined for these rows."
        said = f"{METRICS[first.name].words} without labels: {with_ends(first.value, first.interval)}{was}."
        return " ".join([said, self._assumed, *(f"{text}." for text in self.warnings)])

    @property
    def _assumed(self) -> str:
        """Assumption under which the metrics are valid, and columns with a different distribution."""
        if self.prior is not None:
            return "Valid if only base rates have changed."
        if not self.n_reference:
            return "Valid if the calibrated probabilities are right; the interval does not include their uncertainty."
        same = "Valid if outcomes at equal scores are as frequent as in the reference."
        if not self.shifted:
            return same
        names = [printable(one.name) for one in self.shifted]
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        least = equals(min(one.adjusted for one in self.shifted))
        return f"{same} Distributed differently now: {', '.join(names[:_NAMED])}{more} (p {least})."

    def measured(self) -> list[Measure]:
        """Metrics with their values in the reference."""
        return [
            Measure(METRICS[m.name].words, m.value, m.interval, None if m.reference != m.reference else m.reference)
            for m in self.metrics
        ]

    @property
    def _rows(self) -> list[tuple[str, int, ExpectedMetric]]:
        """Period, its number of rows, and metric; those for all rows last."""
        every = [(p.name, p.n_samples, m) for p in self.periods for m in p.metrics]
        return [*every, *(("all", self.n_samples, m) for m in self.metrics)]

    def _columns(self) -> dict[str, Sequence[Any]]:
        rows = self._rows
        return {
            "period": [name for name, _, _ in rows],
            "n_samples": [n for _, n, _ in rows],
            "metric": [m.name for *_, m in rows],
            "value": [m.value for *_, m in rows],
            "low": [m.interval.low for *_, m in rows],
            "high": [m.interval.high for *_, m in rows],
            "reference": [m.reference for *_, m in rows],
        }

    def _text(self) -> str:
        columns = self._by_period() if self.periods else self._by_metric()
        return printable_lines("\n".join([*text_table(columns), *self._said()]))

    def _by_metric(self) -> dict[str, list[str]]:
        columns = {
            "": [METRICS[m.name].words for m in self.metrics],
            "expected": [with_ends(m.value, m.interval) for m in self.metrics],
            "reference": [known(m.reference, half_width(*m.interval)) for m in self.metrics],
        }
        if not self.n_reference:
            del columns["reference"]
        return columns

    def _by_period(self) -> dict[str, list[str]]:
        """One row per period, then all rows and the reference, with the first few metrics."""
        every = [*(p.metrics for p in self.periods), self.metrics]
        columns = {
            "": [*(p.name for p in self.periods), "all", "reference"],
            "rows": [f"{n:,}" for n in (*(p.n_samples for p in self.periods), self.n_samples, self.n_reference)],
        }
        for i, metric in enumerate(self.metrics[:_NAMED]):
            before = known(metric.reference, half_width(*metric.interval))
            columns[METRICS[metric.name].words] = [*(with_ends(m[i].value, m[i].interval) for m in every), before]
        if not self.n_reference:
            columns = {name: values[:-1] for name, values in columns.items()}
        return columns

    def _said(self) -> list[str]:
        """Lines below the table."""
        beside = f", {self.n_reference:,} labelled rows" if self.n_reference else ""
        more = len(self.metrics) - _NAMED if self.periods else 0
        said = [f"{self.n_samples:,} new rows{beside}, {100 * self.level:g} % intervals"]
        if more > 0:
            said.append(f"{number_of(more, 'more metric')} in to_frame()")
        said += [one.summary for one in self.shifts if one in self.shifted or one.outside > 0][:_NAMED]
        return said if self.prior is None else [*said, self.prior.said]

    def _sections(self) -> list[Section]:
        told: dict[str, Any] = {
            "metric": [METRICS[m.name].words for m in self.metrics],
            "value": [m.value for m in self.metrics],
            "low": [m.interval.low for m in self.metrics],
            "high": [m.interval.high for m in self.metrics],
            "reference": [m.reference for m in self.metrics],
        }
        if not self.n_reference:
            del told["reference"]
        moved: dict[str, Any] = {
            "column": [one.name for one in self.shifts],
            "largest difference": [one.statistic for one in self.shifts],
            "p, adjusted": [pvalue_text(one.adjusted) for one in self.shifts],
            "outside the reference": [f"{100 * one.outside:.3g} %" for one in self.shifts],
        }
        marked = [one in self.shifted for one in self.shifts]
        periods = {name or "period": values for name, values in self._by_period().items()} if self.periods else {}
        return [
            Section("Metrics", told, (), "; ".join(self._said()[:1])),
            *([Section("Periods", periods)] if periods else []),
            *([Section("Shifts", moved, marked)] if self.shifts else []),
        ]
