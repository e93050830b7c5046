"""What a report on subgroups holds, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...data.digits import equals, half_width, known, pvalue_text, signed
from ...data.printable import printable, printable_lines
from ...data.result import Paged, Picture, Result, Section
from ...data.types import Interval, Label
from ...significance.result import TestResult

#: Groups that a summary names.
_NAMED = 3


@dataclass(frozen=True, repr=False)
class Subgroup(Result):
    """Calibration of one group.

    Attributes
    ----------
    name : str
        ``"(missing)"`` for rows without a value.
    value : object
        As found in the column.
    n_samples : int
    base_rate, mean_probability : float
        Share of the class, and its mean probability (accuracy and mean confidence of that notion).
    gap : float
        ``base_rate - mean_probability``: below 0 the class is overstated.
    gap_interval : Interval
    error : float
        Calibration error.
    error_interval : Interval
    pvalue : float
        Of the test that the group is calibrated.
    adjusted : float
        The same by the correction that was asked for.
    holm, bh : float
        By Holm's, and by Benjamini and Hochberg's.
    warnings : tuple of str
    """

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


@dataclass(frozen=True, repr=False)
class Difference(Result):
    """Gap of one group minus that of another, with an interval that allows for the choice among all pairs."""

    first: str
    second: str
    value: float
    interval: Interval


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupColumn(Result):
    """The groups of one column.

    Attributes
    ----------
    name : str
    groups : tuple of Subgroup
    heterogeneity : TestResult
        Are outcomes at a score as frequent in every group?
    largest_difference : Difference or None
        Between gaps in the large; None for a single group.
    """

    name: str
    groups: tuple[Subgroup, ...]
    heterogeneity: TestResult
    largest_difference: Difference | None


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupReport(Picture, Paged):
    """Calibration group by group.

    Attributes
    ----------
    columns : tuple of SubgroupColumn
    test, adjust : str
        Test of each group, and the correction of ``adjusted``, over all groups of all columns together.
    notion, estimator : str
    label : object
        The class that gaps are of; None for a confidence.
    level : float
        Of the intervals; ``1 - level`` is what adjusted p-values are compared with.
    n_samples : int
    """

    display: ClassVar[str] = "SubgroupDisplay"
    title: ClassVar[str] = "Calibration by group"

    columns: tuple[SubgroupColumn, ...]
    test: str
    adjust: str
    notion: str
    estimator: str
    label: Label
    level: float
    n_samples: int

    @property
    def groups(self) -> tuple[Subgroup, ...]:
        """Of all columns, one after the other."""
        return tuple(group for column in self.columns for group in column.groups)

    @property
    def rejected(self) -> tuple[Subgroup, ...]:
        """Groups that are not calibrated, by adjusted p-values."""
        return tuple(group for group in self.groups if group.adjusted <= 1 - self.level)

    def __str__(self) -> str:
        about = "" if self.label is None else f" of {printable(str(self.label))}"
        lines = [f"Calibration{about} by group: {self.n_samples:,} rows, {100 * self.level:g} % intervals"]
        names = [printable(name) for name in [*(g.name for g in self.groups), *(c.name for c in self.columns)]]
        width = min(max(map(len, names)), 28)
        for column in self.columns:
            head = f"{_cut(column.name, width):<{width}}{'rows':>9}{'observed':>10}{'stated':>8}"
            lines += ["", f"  {head}  {'gap':^27}{'error':^26}{'p':>8}{'p adj.':>9}"]
            lines += [self._line(group, width) for group in column.groups]
            lines += [f"  {text}" for text in self._between(column)]
            lines += [f"  note: {printable(g.name)}: {text}" for g in column.groups for text in g.warnings]
        return printable_lines("\n".join([*lines, "", self._key()]))

    def _key(self) -> str:
        """What marked groups are."""
        how = {"holm": "Holm", "bh": "Benjamini and Hochberg", "none": "none"}[self.adjust]
        return f"* not calibrated at {1 - self.level:.3g}; test: {self.test}, correction: {how}"

    def _line(self, group: Subgroup, width: int) -> str:
        mark = "*" if group.adjusted <= 1 - self.level else " "
        value, low, high = (signed(v, half_width(*group.gap_interval)) for v in (group.gap, *group.gap_interval))
        gap = f"{value} ({low} to {high})"
        value, low, high = (known(v, half_width(*group.error_interval)) for v in (group.error, *group.error_interval))
        error = f"{value} ({low} to {high})"
        observed, stated = _means(group)
        p, adjusted = pvalue_text(group.pvalue), pvalue_text(group.adjusted)
        return (
            f"{mark} {_cut(group.name, width):<{width}}{group.n_samples:>9,}{observed:>10}{stated:>8}"
            f"  {gap:<27}  {error:<24}{p:>8}{adjusted:>9}"
        )

    def _between(self, column: SubgroupColumn) -> list[str]:
        found = column.heterogeneity
        if found.pvalue != found.pvalue:
            return [f"groups compared: {found.warnings[0]}"]
        out = [f"groups differ at the same score: p {equals(found.pvalue)} ({found.name})"]
        largest = column.largest_difference
        if largest is not None:
            value, low, high = (signed(v, half_width(*largest.interval)) for v in (largest.value, *largest.interval))
            pair = f"{printable(largest.first)} - {printable(largest.second)}"
            out.append(f"largest difference of gaps: {pair} {value} ({low} to {high}, all pairs together)")
        return out

    @property
    def summary(self) -> str:
        """Which groups are off and in what direction, and whether groups differ at the same score."""
        off = sorted(self.rejected, key=lambda group: group.adjusted)
        n = len(self.groups)
        if not off:
            said = f"None of the {n:,} groups stands out at {1 - self.level:.3g}."
        else:
            named = [f"{g.name} ({_way(g)}error {known(g.error, half_width(*g.error_interval))})" for g in off[:_NAMED]]
            more = f" and {len(off) - _NAMED:,} more" if len(off) > _NAMED else ""
            many = f"All {n:,}" if 1 < n == len(off) else f"{len(off):,} of the {n:,}"
            said = f"{many} groups {'is' if len(off) == 1 else 'are'} off: {', '.join(named)}{more}."
        differ = [c.name for c in self.columns if c.heterogeneity.pvalue <= 1 - self.level]
        if differ:
            said += f" Groups of {', '.join(differ)} differ at the same score."
        return said

    def _sections(self) -> list[Section]:
        out = []
        for column in self.columns:
            groups = column.groups
            told: dict[str, list[Any]] = {
                "group": [g.name for g in groups],
                "rows": [g.n_samples for g in groups],
                "observed": [_means(g)[0] for g in groups],
                "stated": [_means(g)[1] for g in groups],
                "gap": [g.gap for g in groups],
                "gap_low": [g.gap_interval.low for g in groups],
                "gap_high": [g.gap_interval.high for g in groups],
                "error": [g.error for g in groups],
                "error_low": [g.error_interval.low for g in groups],
                "error_high": [g.error_interval.high for g in groups],
                "p, adjusted": [pvalue_text(g.adjusted) for g in groups],
            }
            notes = [self._key(), *self._between(column), *(f"{g.name}: {text}" for g in groups for text in g.warnings)]
            marked = [bool(g.adjusted <= 1 - self.level) for g in groups]
            out.append(Section(column.name, told, marked, "; ".join(notes)))
        return out

    def _columns(self) -> dict[str, Any]:
        plain_names = ("n_samples", "base_rate", "mean_probability", "gap", "error", "pvalue", "adjusted", "holm", "bh")
        columns: dict[str, list[Any]] = {
            "column": [column.name for column in self.columns for _ in column.groups],
            "group": [group.name for group in self.groups],
        }
        columns |= {name: [getattr(group, name) for group in self.groups] for name in plain_names}
        for name in ("gap_interval", "error_interval"):
            short = name.removesuffix("_interval")
            columns[f"{short}_low"] = [getattr(group, name).low for group in self.groups]
            columns[f"{short}_high"] = [getattr(group, name).high for group in self.groups]
        columns["warnings"] = ["; ".join(group.warnings) for group in self.groups]
        return columns


def _means(group: Subgroup) -> tuple[str, str]:
    """What was observed and what was stated, with the digits that so many rows allow."""
    spread = 0.5 / np.sqrt(group.n_samples)
    return known(group.base_rate, spread), known(group.mean_probability, spread)


def _way(group: Subgroup) -> str:
    """The direction of a group's gap, observed less stated, in words; nothing where it may be 0."""
    low, high = group.gap_interval
    return "happens more often than stated, " if low > 0 else "happens less often than stated, " if high < 0 else ""


def _cut(name: str, width: int) -> str:
    text = printable(name)
    return text if len(text) <= width else text[: width - 1] + "…"
