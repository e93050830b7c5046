"""The report on subgroups and its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...data.printing import (
    equals,
    half_width,
    known,
    nouns_of,
    printable,
    printable_lines,
    pvalue_text,
    signed,
    text_table,
    with_ends,
)
from ...data.result import Paged, Picture, Result, Section
from ...data.types import Interval, Label
from ...significance.result import TestResult

#: Subgroups that a summary names, notes that the text prints, and the name of a column without one.
_NAMED, _NOTES = 3, 5
UNNAMED = "subgroup"


@dataclass(frozen=True, repr=False)
class Subgroup(Result):
    """Calibration of one subgroup.

    Attributes
    ----------
    name : str
        The value as text; ``"(missing)"`` for rows without one.
    value : object
        The value as found in the column.
    base_rate, mean_probability : float
        Share of the class, and its mean probability (for confidences, accuracy and mean confidence).
    gap : float
        ``base_rate - mean_probability``; negative if the class is over-predicted.
    gap_interval : Interval
        Interval of the gap.
    error : float
        Calibration error.
    error_interval : Interval
        Interval of the error.
    pvalue : float
        The p-value (null: the subgroup is calibrated).
    adjusted : float
        The p-value, adjusted by the requested method.
    holm, bh : float
        The p-value, adjusted by Holm's and by Benjamini and Hochberg's method.

    See Also
    --------
    calibrant.subgroup_calibration : Computes it, in ``subgroups``.
    calibrant.results.SubgroupReport : The whole report.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(2000), rng.choice(["north", "south"], 2000)
    >>> north = cal.subgroup_calibration(rng.random(2000) < p, p, region).subgroups[0]
    >>> north.name, north.gap_interval.low < 0 < north.gap_interval.high
    ('north', True)
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the report draws it."

    name: str
    value: Label
    n_samples: int
    base_rate: float
    mean_probability: float
    gap: float
    gap_interval: Interval
    error: float
    error_interval: Interval
    pvalue: float
    adjusted: float
    holm: float
    bh: float
    warnings: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The subgroup's gap and adjusted p-value, in words."""
        gap = with_ends(self.gap, self.gap_interval, signed)
        return f"In {printable(self.name)} observed minus stated is {gap}; adjusted p {equals(self.adjusted)}."


@dataclass(frozen=True, repr=False)
class SubgroupDifference(Result):
    """Difference of the gaps of two subgroups, with an interval that allows for the choice among all pairs.

    Attributes
    ----------
    first, second : str
        Names of the subgroups.
    value : float
        The gap of the first minus that of the second.
    interval : Interval
        Interval of the difference, simultaneous for all pairs.

    See Also
    --------
    calibrant.results.SubgroupColumn : The column that has it as ``largest_difference``.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(2000), rng.choice(["north", "south"], 2000)
    >>> difference = cal.subgroup_calibration(rng.random(2000) < p, p, region).columns[0].largest_difference
    >>> sorted([difference.first, difference.second])
    ['north', 'south']
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the report draws it."

    first: str
    second: str
    value: float
    interval: Interval

    @property
    def summary(self) -> str:
        """The difference with its interval."""
        pair = f"The gap of {printable(self.first)} minus that of {printable(self.second)}"
        return f"{pair} is {with_ends(self.value, self.interval, signed)}."


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupColumn(Result):
    """The subgroups of one column.

    Attributes
    ----------
    name : str
        Name of the column.
    subgroups : tuple of Subgroup
        Its subgroups.
    heterogeneity : TestResult
        Test of whether outcomes at equal scores are equally frequent in all subgroups.
    largest_difference : SubgroupDifference or None
        The largest difference between gaps in the large; None for a single subgroup.

    See Also
    --------
    calibrant.subgroup_calibration : Computes it, in ``columns``.
    calibrant.results.SubgroupReport : The whole report.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, by = rng.random(2000), {"region": rng.choice(["north", "south"], 2000)}
    >>> column = cal.subgroup_calibration(rng.random(2000) < p, p, by).columns[0]
    >>> column.name, [subgroup.name for subgroup in column.subgroups]
    ('region', ['north', 'south'])
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the report draws it."

    name: str
    subgroups: tuple[Subgroup, ...]
    heterogeneity: TestResult
    largest_difference: SubgroupDifference | None

    @property
    def summary(self) -> str:
        """Whether subgroups differ at the same score."""
        p = self.heterogeneity.pvalue
        if p != p:
            return f"Subgroups of {printable(self.name)} could not be compared."
        found = "differ" if p <= 0.05 else "do not differ significantly"
        return f"Subgroups of {printable(self.name)} {found} at the same score (p {equals(p)})."


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupReport(Picture, Paged):
    """Report on the calibration of subgroups.

    Attributes
    ----------
    columns : tuple of SubgroupColumn
        One result for each column of subgroups.
    test, adjust : str
        Test of each subgroup, and correction over all subgroups of all columns.
    label : object
        The class whose gaps are reported; None for confidences.
    level : float
        Level of the intervals; adjusted p-values are compared with ``1 - level``.

    See Also
    --------
    calibrant.subgroup_calibration : Computes it.
    calibrant.plot.SubgroupDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(2000), rng.choice(["north", "south"], 2000)
    >>> y = rng.random(2000) < np.where(region == "south", p**2, p)
    >>> [subgroup.name for subgroup in cal.subgroup_calibration(y, p, region).rejected]
    ['south']
    """

    display: ClassVar[str] = "SubgroupDisplay"
    columns: tuple[SubgroupColumn, ...]
    test: str
    adjust: str
    notion: str
    estimator: str
    label: Label
    level: float
    n_samples: int
    title: str = "Calibration by subgroup"

    @property
    def subgroups(self) -> tuple[Subgroup, ...]:
        """Subgroups of all columns, one after the other."""
        return tuple(subgroup for column in self.columns for subgroup in column.subgroups)

    @property
    def rejected(self) -> tuple[Subgroup, ...]:
        """Subgroups that are miscalibrated according to adjusted p-values."""
        return tuple(subgroup for subgroup in self.subgroups if subgroup.adjusted <= 1 - self.level)

    def _text(self) -> str:
        about = "" if self.label is None else f" of {nouns_of(self.notion).of(self.label)}"
        lines = [f"Calibration{about} by subgroup: {self.n_samples:,} rows, {100 * self.level:g} % intervals"]
        for column in self.columns:
            lines += ["", *self._table(column)]
            lines += [f"  {text}" for text in self._between(column)]
            lines += [f"  note: {text}" for text in _notes(column)]
        return printable_lines("\n".join([*lines, "", self._key()]))

    def _key(self) -> str:
        """Meaning of the mark next to subgroups."""
        how = {"holm": "Holm", "bh": "Benjamini and Hochberg", "none": "none"}[self.adjust]
        return f"* miscalibrated at {1 - self.level:.3g}; test: {self.test}, correction: {how}"

    def _table(self, column: SubgroupColumn) -> list[str]:
        """Subgroups of a column, one line each."""
        found = column.subgroups
        columns = {
            column.name: [g.name for g in found],
            "rows": [f"{g.n_samples:,}" for g in found],
            "observed": [_means(g)[0] for g in found],
            "stated": [_means(g)[1] for g in found],
            "gap": [with_ends(g.gap, g.gap_interval, signed) for g in found],
            "error": [with_ends(g.error, g.error_interval) for g in found],
            "p": [pvalue_text(g.pvalue) for g in found],
            "p adj.": [pvalue_text(g.adjusted) for g in found],
        }
        marks = ["*" if g.adjusted <= 1 - self.level else " " for g in found]
        return text_table(columns, ("p", "stated", "observed", "rows"), marks)

    def _between(self, column: SubgroupColumn) -> list[str]:
        found = column.heterogeneity
        if found.pvalue != found.pvalue:
            return [f"subgroups compared: {found.warnings[0]}"]
        out = [f"differences between subgroups at equal scores: p {equals(found.pvalue)} ({found.name})"]
        largest = column.largest_difference
        if largest is not None:
            value, low, high = (signed(v, half_width(*largest.interval)) for v in (largest.value, *largest.interval))
            pair = f"{printable(largest.first)} - {printable(largest.second)}"
            out.append(f"largest difference of gaps: {pair} {value} ({low} to {high}, all pairs together)")
        return out

    @property
    def summary(self) -> str:
        """Which subgroups are miscalibrated and in which direction, and whether subgroups differ at equal scores."""
        off = sorted(self.rejected, key=lambda subgroup: subgroup.adjusted)
        n = len(self.subgroups)
        if not off:
            said = f"No subgroup (of {n:,}) is significantly miscalibrated at {1 - self.level:.3g}."
        else:
            named = [f"{g.name} ({_way(g)}error {known(g.error, half_width(*g.error_interval))})" for g in off[:_NAMED]]
            more = f" and {len(off) - _NAMED:,} more" if len(off) > _NAMED else ""
            every = "Both" if n == 2 else f"All {n:,}"
            many = every if 1 < n == len(off) else f"{len(off):,} of the {n:,}"
            said = f"{many} subgroups {'is' if len(off) == 1 else 'are'} miscalibrated: {', '.join(named)}{more}."
        differ = [c.name for c in self.columns if c.heterogeneity.pvalue <= 1 - self.level]
        if differ:
            of = "" if differ == [UNNAMED] else f" of {', '.join(differ)}"
            said += f" Subgroups{of} differ at equal scores."
        return said

    def _sections(self) -> list[Section]:
        out = []
        for column in self.columns:
            subgroups = column.subgroups
            told: dict[str, list[Any]] = {
                "subgroup": [g.name for g in subgroups],
                "rows": [g.n_samples for g in subgroups],
                "observed": [_means(g)[0] for g in subgroups],
                "stated": [_means(g)[1] for g in subgroups],
                "gap": [g.gap for g in subgroups],
                "gap_low": [g.gap_interval.low for g in subgroups],
                "gap_high": [g.gap_interval.high for g in subgroups],
                "error": [g.error for g in subgroups],
                "error_low": [g.error_interval.low for g in subgroups],
                "error_high": [g.error_interval.high for g in subgroups],
                "p, adjusted": [pvalue_text(g.adjusted) for g in subgroups],
            }
            notes = [self._key(), *self._between(column), *_notes(column)]
            marked = [bool(g.adjusted <= 1 - self.level) for g in subgroups]
            out.append(Section(column.name, told, marked, "; ".join(notes)))
        return out

    def _columns(self) -> dict[str, Any]:
        plain_names = ("n_samples", "base_rate", "mean_probability", "gap", "error", "pvalue", "adjusted", "holm", "bh")
        columns: dict[str, list[Any]] = {
            "column": [column.name for column in self.columns for _ in column.subgroups],
            "subgroup": [subgroup.name for subgroup in self.subgroups],
        }
        columns |= {name: [getattr(subgroup, name) for subgroup in self.subgroups] for name in plain_names}
        for name in ("gap_interval", "error_interval"):
            short = name.removesuffix("_interval")
            columns[f"{short}_low"] = [getattr(subgroup, name).low for subgroup in self.subgroups]
            columns[f"{short}_high"] = [getattr(subgroup, name).high for subgroup in self.subgroups]
        columns["warnings"] = ["; ".join(subgroup.warnings) for subgroup in self.subgroups]
        return columns


def _notes(column: SubgroupColumn) -> list[str]:
    """The first warnings of subgroups, and the number of the others."""
    notes = [f"{printable(g.name)}: {text}" for g in column.subgroups for text in g.warnings]
    more = len(notes) - _NOTES
    return notes if more <= 1 else [*notes[:_NOTES], f"{more:,} more notes on other subgroups are in to_frame()"]


def _means(subgroup: Subgroup) -> tuple[str, str]:
    """Observed and stated mean, with the digits that the number of rows allows."""
    spread = 0.5 / np.sqrt(subgroup.n_samples)
    return known(subgroup.base_rate, spread), known(subgroup.mean_probability, spread)


def _way(subgroup: Subgroup) -> str:
    """The direction of a subgroup's gap in words; empty if its interval contains 0."""
    low, high = subgroup.gap_interval
    return "more frequent than predicted, " if low > 0 else "less frequent than predicted, " if high < 0 else ""
