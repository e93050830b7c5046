"""`FrameSubgroups`: an accumulator for each value of a column, and what they say side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from ..comparison.subgroups.build import ADJUSTMENTS
from ..comparison.subgroups.membership import MISSING
from ..data.checks import check_choice, check_level
from ..data.printing import half_width, known, printable, printable_lines, pvalue_text, signed
from ..data.result import Printable, Result, Table, came_in
from ..data.types import Interval, Label, RandomState
from ..estimators import CellEstimator, EmpiricalBayes
from ..estimators.names import as_estimator
from ..measure.streaming import Accumulator
from ..significance.multiple import benjamini_hochberg, holm
from ..significance.report_test import DRAWS, SumsTest

#: Draws of one subgroup's test.
_MOST_DRAWS = 20_000


@dataclass(frozen=True, repr=False)
class SubgroupEstimate(Result):
    """What the rows of one subgroup say.

    Attributes
    ----------
    name : str
        ``"(missing)"`` for rows without a value.
    value : object
        As found in the column.
    n_samples : int
    base_rate, mean_probability : float
        Share of the outcome, and its mean probability (accuracy and mean confidence of that notion); of several
        problems the means over them.
    gap : float
        ``base_rate - mean_probability``: below 0 the outcome is overstated.
    error : float
        Calibration error.
    error_interval : Interval
    pvalue : float
        Of the test that the subgroup is calibrated (see :meth:`FrameSubgroups.estimate`).
    adjusted : float
        The same, corrected for the number of subgroups.
    """

    name: str
    value: Label
    n_samples: int
    base_rate: float
    mean_probability: float
    gap: float
    error: float
    error_interval: Interval
    pvalue: float
    adjusted: float


@dataclass(frozen=True, repr=False)
class SubgroupEstimates(Table):
    """Calibration errors of subgroups, with intervals and p-values corrected for their number.

    Attributes
    ----------
    column : str
        Whose values the subgroups are.
    subgroups : tuple of SubgroupEstimate
        In the order of their values, missing ones last.
    notion, estimator, adjust : str
    level : float
        Of the intervals; ``1 - level`` is what adjusted p-values are compared with.
    n_samples : int
    """

    column: str
    subgroups: tuple[SubgroupEstimate, ...]
    notion: str
    estimator: str
    adjust: str
    level: float
    n_samples: int

    @property
    def rejected(self) -> tuple[SubgroupEstimate, ...]:
        """Subgroups that are not calibrated, by adjusted p-values."""
        return tuple(g for g in self.subgroups if g.adjusted <= 1 - self.level)

    def __str__(self) -> str:
        width = min(max(len(printable(n)) for n in (self.column, *(g.name for g in self.subgroups))), 28)
        head = f"{printable(self.column)[:width]:<{width}}{'rows':>13}{'observed':>10}{'stated':>8}{'gap':>9}"
        lines = [f"Calibration by subgroup: {self.n_samples:,} rows, {100 * self.level:g} % intervals", ""]
        lines.append(f"  {head}  {'error':^26}{'p':>8}{'p adj.':>9}")
        for g in self.subgroups:
            value, low, high = (known(v, half_width(*g.error_interval)) for v in (g.error, *g.error_interval))
            spread = 0.5 / np.sqrt(g.n_samples)
            observed, stated = known(g.base_rate, spread), known(g.mean_probability, spread)
            lines.append(
                f"{'*' if g in self.rejected else ' '} {printable(g.name)[:width]:<{width}}{g.n_samples:>13,}"
                f"{observed:>10}{stated:>8}{signed(g.gap, spread):>9}  {f'{value} ({low} to {high})':<26}"
                f"{pvalue_text(g.pvalue):>8}{pvalue_text(g.adjusted):>9}"
            )
        lines += ["", f"* not calibrated at {1 - self.level:.3g}; correction: {self.adjust}"]
        return printable_lines("\n".join(lines))

    def _marked(self) -> list[bool]:
        return [bool(subgroup.adjusted <= 1 - self.level) for subgroup in self.subgroups]

    def _columns(self) -> dict[str, Any]:
        plain = ("n_samples", "base_rate", "mean_probability", "gap", "error", "pvalue", "adjusted")
        out: dict[str, Any] = {
            "column": [self.column] * len(self.subgroups),
            "subgroup": [g.name for g in self.subgroups],
        }
        out |= {name: [getattr(g, name) for g in self.subgroups] for name in plain}
        out["error_low"] = [g.error_interval.low for g in self.subgroups]
        out["error_high"] = [g.error_interval.high for g in self.subgroups]
        return out


class FrameSubgroups(Printable, Mapping[Label, Accumulator]):
    """Sums of each subgroup of rows: a mapping from a column's value to its :class:`calibrant.Accumulator`.

    Subgroups without a row that can be read are left out. Missing values are a subgroup of their own, None.
    """

    def __init__(self, column: str, sums: Mapping[Label, Accumulator], dropped: int) -> None:
        self.column = column
        #: Rows that were left out as bad, those of subgroups without another row too.
        self.dropped = dropped
        self._sums = dict(sorted(sums.items(), key=lambda item: _order(item[0])))

    def __getitem__(self, value: Label) -> Accumulator:
        return self._sums[value]

    def __iter__(self) -> Iterator[Label]:
        return iter(self._sums)

    def __len__(self) -> int:
        return len(self._sums)

    def _shown(self) -> Iterable[tuple[str, Any]]:
        yield from {"column": self.column, "subgroups": tuple(self._sums), "n_samples": self.n_samples}.items()
        if self.dropped:
            yield "dropped", self.dropped

    @property
    def n_samples(self) -> int:
        """Rows of all subgroups."""
        return sum(one.n_samples for one in self._sums.values())

    def estimate(
        self,
        estimator: str | CellEstimator | None = None,
        *,
        norm: float = 1,
        level: float = 0.95,
        adjust: str = "holm",
        n_resamples: int = 400,
        random_state: RandomState = 0,
    ) -> SubgroupEstimates:
        """Calibration error of every subgroup, as :meth:`Accumulator.estimate`; ``.to_frame()`` is the table.

        P-values are those of a report's test: smoothed residuals over ranks, against draws of a calibrated model. There
        are 999, with G subgroups ``2 G / (1 - level)`` if that is more and at most 20,000, so that one subgroup that is
        off stands out among up to 500. Cost: one estimate and these draws of 257 numbers a subgroup, whatever the
        number of rows.

        Parameters
        ----------
        estimator, norm, level, n_resamples, random_state
            See :meth:`Accumulator.estimate`; every subgroup has draws of its own.
        adjust : {"holm", "bh", "none"}, default "holm"
            Correction for the number of subgroups, as in :func:`calibrant.subgroup_calibration`.
        """
        check_choice("adjust", adjust, ADJUSTMENTS)
        seeds = np.random.default_rng(random_state).integers(2**63, size=(len(self), 2))
        reader: Any = None if estimator is None else as_estimator(estimator, EmpiricalBayes())
        # So many that a subgroup by itself can be told from calibrated ones after the correction.
        draws = min(max(DRAWS, ceil(2 * len(self) / (1 - check_level(level)))), _MOST_DRAWS)
        found = []
        for (value, sums), (first, second) in zip(self.items(), seeds.tolist(), strict=True):
            estimate = sums.estimate(reader, norm=norm, level=level, n_resamples=n_resamples, random_state=first)
            problems = list(sums.problems.values())
            question = sums.question(1, level)
            rng = np.random.default_rng(second)
            test = SumsTest.of([p.grid for p in problems], [p.bins for p in problems], question, rng, draws)
            shares = np.array(question.shares)
            means = [(p.bins.outcome.sum() / p.grid.total, p.bins.score.sum() / p.grid.total) for p in problems]
            observed, stated = (float(v) for v in shares @ np.array(means))
            numbers = sums.n_samples, observed, stated, observed - stated, estimate.value
            found.append((value, numbers, estimate.interval, test.result.pvalue))
        pvalues = np.array([one[-1] for one in found])
        adjusted = {"holm": holm(pvalues), "bh": benjamini_hochberg(pvalues), "none": pvalues}[adjust]
        subgroups = tuple(
            SubgroupEstimate(_name(value), value, *numbers, interval, float(p), float(q))
            for (value, numbers, interval, p), q in zip(found, adjusted, strict=True)
        )
        about = (estimate.notion, estimate.estimator, adjust, level, self.n_samples)
        return came_in(sums._library, SubgroupEstimates(self.column, subgroups, *about))


def _name(value: Label) -> str:
    return MISSING if value is None else str(value)


def _order(value: Label) -> tuple[bool, str, Any]:
    return (value is None, type(value).__name__, 0 if value is None else value)
