"""What a report on subgroups holds, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...data.printable import printable, printable_lines
from ...data.result import Picture, Result, Table
from ...data.types import Interval, Label
from ..tests.result import TestResult


@dataclass(frozen=True, repr=False)
class Subgroup(Result):
    """One group.

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
class SubgroupReport(Picture, Table):
    """Calibration group by group.

    Attributes
    ----------
    columns : tuple of SubgroupColumn
    test, adjust : str
        Test of each group, and the correction of ``adjusted``, over all groups of all columns together.
    notion, estimator : str
    label : object
        The class that gaps speak of; None for a confidence.
    level : float
        Of the intervals; ``1 - level`` is what adjusted p-values are compared with.
    n_samples : int
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
        how = {"holm": "Holm", "bh": "Benjamini and Hochberg", "none": "none"}[self.adjust]
        lines += ["", f"* not calibrated at {1 - self.level:.3g}; test: {self.test}, correction: {how}"]
        return printable_lines("\n".join(lines))

    def _line(self, group: Subgroup, width: int) -> str:
        mark = "*" if group.adjusted <= 1 - self.level else " "
        gap = f"{group.gap:+.4f} ({group.gap_interval.low:+.4f} to {group.gap_interval.high:+.4f})"
        error = f"{group.error:.4f} ({group.error_interval.low:.4f} to {group.error_interval.high:.4f})"
        return (
            f"{mark} {_cut(group.name, width):<{width}}{group.n_samples:>9,}{group.base_rate:>10.4f}"
            f"{group.mean_probability:>8.4f}  {gap:<27}  {error:<24}{group.pvalue:>8.2g}{group.adjusted:>9.2g}"
        )

    def _between(self, column: SubgroupColumn) -> list[str]:
        found = column.heterogeneity
        if found.pvalue != found.pvalue:
            return [f"groups compared: {found.warnings[0]}"]
        out = [f"groups differ at the same score: p = {found.pvalue:.3g} ({found.method})"]
        largest = column.largest_difference
        if largest is not None:
            low, high = largest.interval
            pair = f"{printable(largest.first)} - {printable(largest.second)}"
            out.append(
                f"largest difference of gaps: {pair} {largest.value:+.4f} "
                f"({low:+.4f} to {high:+.4f}, all pairs together)"
            )
        return out

    _unseen: ClassVar[tuple[str, ...]] = ("holm", "bh")

    def _marked(self) -> list[bool]:
        return [bool(group.adjusted <= 1 - self.level) for group in self.groups]

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


def _cut(name: str, width: int) -> str:
    text = printable(name)
    return text if len(text) <= width else text[: width - 1] + "…"
