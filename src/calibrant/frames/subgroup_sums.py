"""`SubgroupSums`: the sums of each subgroup of a frame's rows, and the report on all of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import narwhals.stable.v2 as nw
import numpy as np

from ..comparison.subgroups.build import SubgroupOptions, SubgroupProblems, assess, subgroup_calibration
from ..comparison.subgroups.cells import SubgroupCells
from ..comparison.subgroups.heterogeneity import GroupScores, PooledMap
from ..comparison.subgroups.membership import Subgroups
from ..comparison.subgroups.result import SubgroupReport
from ..data.checks import check_level, check_random_state
from ..data.docs import document
from ..data.problem import Problem
from ..data.result import Printable, with_origin
from ..data.types import FloatArray, RandomState
from ..estimators import CellEstimator
from ..measure.question import reader_of_sums
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import FINE_CELLS
from ..monitoring.courses import Asked, over_time_of_sums
from ..monitoring.over_time import calibration_over_time
from ..monitoring.over_time_result import CalibrationOverTime
from ..sums import BinMoments, Grid, GridMoments
from .frame_columns import FrameColumns
from .from_keys import moments
from .group_effects import design_of, shared_codes, tallied
from .keys import HIT, KeyTable
from .sign_sums import signed


class SubgroupSums(Printable, Mapping[Any, Accumulator]):
    """Sums of each subgroup of rows: a mapping from a column's value to its :class:`calibrant.Accumulator`.

    :meth:`subgroups` is the report on all. With several columns, keys are pairs of a column's name and a value.
    Subgroups without a valid row are left out. Missing values form their own subgroup, None.

    Parameters
    ----------
    columns : sequence of SubgroupsOfSums
        The sums, column by column.
    several : bool
        Whether several columns were named.
    dropped : int
        Number of rows left out as invalid.
    library : str or None
        Library of the frame, and of the tables that results return.
    every : str or None
        Length of a period, where subgroups are periods.
    followed : str or None
        Name of the column of subgroups that are followed over the periods: ``columns`` has the periods of each.
    whole : int, default 1
        Number of columns that together contain all rows.

    See Also
    --------
    calibrant.from_frame : Returns it, with ``by``.
    calibrant.subgroup_calibration : The same report from rows in memory.

    Examples
    --------
    >>> import pandas as pd, calibrant as cal
    >>> frame = pd.DataFrame({"y": [0, 1, 1, 0], "p": [0.2, 0.7, 0.9, 0.4], "day": ["mon", "mon", "tue", "tue"]})
    >>> sums = cal.from_frame(frame, label="y", prob="p", by="day")
    >>> sorted(sums), sums["mon"].n_samples
    (['mon', 'tue'], 2)
    """

    _unpictured: ClassVar[str] = "No picture: subgroups().plot() draws one."

    def __init__(
        self,
        columns: Sequence[SubgroupsOfSums],
        *,
        several: bool,
        dropped: int,
        library: str | None,
        every: str | None = None,
        followed: str | None = None,
        whole: int = 1,
    ) -> None:
        self._columns, self._several, self._library, self._every = tuple(columns), several, library, every
        self._followed, self._whole = followed, whole
        #: Number of rows left out as invalid, including those of subgroups without a valid row.
        self.dropped = dropped
        self._places = {
            (column.name, value) if several else value: (column, place)
            for column in columns
            for place, value in enumerate(column.values)
        }

    def __getitem__(self, value: Any) -> Accumulator:
        column, place = self._places[value]
        return with_origin(self._library, column.accumulator(place))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def summary(self) -> str:
        """Number of rows and of subgroups."""
        if self._every is not None:
            both = " and subgroup" if self._followed else ""
            return f"Sums of {self.n_samples:,} rows by {self._every}{both}; over_time() tests them for changes."
        return f"Sums of {self.n_samples:,} rows in {len(self):,} subgroups; subgroups() compares them."

    def _shown(self) -> Iterable[tuple[str, Any]]:
        columns = tuple(column.name for column in self._columns)
        yield "column", self._followed or (columns if self._several else columns[0])
        yield from {"subgroups": tuple(self._places), "n_samples": self.n_samples}.items()
        if self.dropped:
            yield "dropped", self.dropped

    @property
    def n_samples(self) -> int:
        """Number of rows of all subgroups."""
        return sum(int(column.n_samples.sum()) for column in self._columns[: self._whole])

    def subgroups(
        self,
        estimator: str | CellEstimator = "auto",
        *,
        test: str = "kuiper",
        level: float = 0.95,
        adjust: str = "holm",
        min_size: int = 50,
        n_resamples: int = 1999,
        random_state: RandomState = 0,
    ) -> SubgroupReport:
        """Calibration of each subgroup, as :func:`calibrant.subgroup_calibration` estimates it from rows.

        Parameters
        ----------
        estimator : "auto" or one that reads sums, default "auto"
            Exact where its sums were kept (see :class:`Accumulator`), else computed from rows moved within a cell.

        Raises
        ------
        ValueError
            For a notion of several problems.
        TypeError
            For an estimator that needs the rows.

        Notes
        -----
        For rows in groups, p-values by signs use at most as many groups as in :meth:`over_time`. Cost: that of
        :func:`calibrant.subgroup_calibration`, without the pass over the rows.
        """
        options = SubgroupOptions.checked(test, level, adjust, min_size, n_resamples)
        reader, about = self._question(estimator)
        rng = check_random_state(random_state)
        return with_origin(self._library, assess(self._columns, reader, about, options, rng))

    document(subgroups, subgroup_calibration)

    def over_time(
        self, estimator: str | CellEstimator = "auto", *, level: float = 0.95, random_state: RandomState = 0
    ) -> CalibrationOverTime:
        """Calibration of each period and when it changed, as :func:`calibrant.calibration_over_time` from rows.

        Changes are located between periods: the interval of a change is its period and the neighbouring ones. With
        ``by`` of :func:`calibrant.from_frame` each subgroup is followed, and ``.courses`` has them all.

        Parameters
        ----------
        estimator : "auto" or one that reads sums, default "auto"
            Exact where its sums were kept (see :class:`Accumulator`), else computed from rows moved within a cell.

        Raises
        ------
        ValueError
            If subgroups are not periods (``time`` and ``every`` of :func:`calibrant.from_frame`), if times are
            missing, and for a notion of several problems.
        TypeError
            For an estimator that needs the rows.

        Notes
        -----
        For rows in groups, design effects are those of the rows, and the p-values of periods and of their difference
        use random signs of groups, the same in all periods. Beyond 2,048 groups (256 with very many periods) bundles of
        whole groups, which are independent too, share a sign. With more than 8 million pairs of a group and a score in
        all periods, running sums are evaluated after ranges of equal weight, at least 32 per period. Cost: that of
        :func:`calibrant.calibration_over_time`, without the passes over the rows.
        """
        if self._every is None:
            raise ValueError("over_time() needs periods: pass time= and every= to from_frame")
        reader, about = self._question(estimator)
        rng = check_random_state(random_state)
        columns = [column for column in self._columns if column.held.size]
        number = len(columns)
        n_periods = len({value for column in columns for value in column.values})
        asked = Asked(about[0], reader, check_level(level), number, number * n_periods)
        found = over_time_of_sums(columns, self._every, about[1], self._followed or "", asked, rng)
        return with_origin(self._library, found)

    document(over_time, calibration_over_time)

    def _question(self, estimator: str | CellEstimator) -> tuple[CellEstimator, tuple[str, Any, int]]:
        """The estimator; and the notion, the class and the number of rows."""
        reader = reader_of_sums(estimator)
        about = next(iter(self.values()))
        (label,) = about.required().labels if len(about.required().labels) == 1 else (None,)
        notion: Any = about.notion
        if (
            notion.several
            or notion.per_class
            or any(column.cells.n_subgroups and column.kept is None for column in self._columns)
        ):
            raise ValueError(f"notion {notion.name!r} has several problems: take one class with ClassSpecific(label)")
        return reader, (notion.name, label, self.n_samples)


#: Sums, by name, of some subgroups with weight, side by side; None if they were not kept.
_Kept = Callable[[Any, slice], Any]


@dataclass(frozen=True, eq=False)
class SubgroupsOfSums(SubgroupProblems):
    """The subgroups of a column whose sums were kept.

    Attributes
    ----------
    accumulator : callable
        Returns the accumulator of one subgroup, by its index.
    kept : callable or None
        Function that returns kept sums; None for several problems.
    domain : tuple of float
    effects : ndarray of shape (H, 5) or None
        For rows in groups, design effects of the subgroups with weight.
    signed : tuple of SubgroupCells and GroupScores, or None
        Input of their tests by signs of groups.
    """

    accumulator: Callable[[int], Accumulator]
    kept: _Kept | None
    domain: tuple[float, float]
    effects: FloatArray | None = None
    signed: tuple[SubgroupCells, GroupScores | None] | None = None

    @property
    def of_groups(self) -> SubgroupCells:
        """Cells of bundles of groups, for rows in groups."""
        return self.cells if self.signed is None else self.signed[0]

    def group_scores(self, cells: SubgroupCells, pooled: PooledMap | None) -> GroupScores | None:
        """Scores of bundles of groups; None for independent rows."""
        return None if self.signed is None else self.signed[1]

    def sums(self, estimator: CellEstimator, some: slice) -> Any:
        """Kept sums, or sums of rows moved within a cell."""
        effects = None if self.effects is None else self.effects[some]
        found = None if self.kept is None else self.kept(estimator._needs(self.domain), some)
        if found is None:
            rows = self.cells.as_rows(some, self.domain)
            if effects is not None:
                rows = replace(rows, design=tuple(effects[:, 0].tolist()), effects=effects)
            return estimator.summarize(rows)
        if effects is None:
            return found
        each = self.cells.added(self.cells.weights if self.cells.integral else self.cells.times)
        return found.in_groups(effects, each[some])

    def in_groups(self, c: FrameColumns) -> SubgroupsOfSums:
        """The same for rows in groups of a column of the frame, by three further passes."""
        if not self.held.size:
            return self
        if c.weight is not None:
            c = replace(c, frame=c.frame.filter(nw.col(c.weight) > 0))
        tallies = tallied(c, self.accumulator(int(self.held[0])))
        held = self.held.tolist()
        written = {_plain(value): value for value in tallies}
        values = [written[_plain(self.values[place])] for place in held]
        each = {place: tallies[value] for place, value in zip(held, values, strict=True)}
        keys, codes = shared_codes(list(each.values()))
        alone = c.weight is None and keys.size == int(self.n_samples.sum())

        def one(place: int) -> Accumulator:
            sums = copy(self.accumulator(place))
            if place in each:
                each[place].widen(sums, alone=alone)
            return sums

        found = replace(self, accumulator=one)
        if alone or self.kept is None:
            return found
        integral = self.cells.integral
        effects = np.concatenate([each[place].effects("problem_sums", integral=integral) for place in held])
        design = design_of(list(each.values()), codes, integral=integral)
        cells = replace(self.cells, design=effects[:, 1])
        signs = signed(c, cells, tallies, values, design, self.domain)
        return replace(found, cells=cells, design=design, effects=effects, signed=signs)

    def each(self) -> Iterator[Problem]:
        """Rows, moved within a cell."""
        return (self.cells.as_rows(slice(i, i + 1), self.domain)[0] for i in range(self.cells.n_subgroups))


def of_keys(
    column: Subgroups, table: KeyTable, needs: Sequence[Any], cells: int, accumulator: Callable[[KeyTable], Accumulator]
) -> SubgroupsOfSums:
    """Subgroups from sums by key: the engine's table, in the order of subgroups."""
    order = np.argsort(column.codes, kind="stable")
    codes, table = column.codes[order], table.where(order)
    ends = np.searchsorted(codes, np.arange(len(column.values) + 1))
    good = table.good
    n_samples = np.bincount(codes[good], table.sums["n"][good], len(column.values)).astype(np.intp)
    weighty = np.flatnonzero(good & (table.weight > 0))
    held, number = np.unique(codes[weighty], return_inverse=True)
    used = table.where(weighty)
    fine = np.maximum((used.step + 1) // 2, 1) - 1
    key = number.reshape(-1) * FINE_CELLS + fine // (cells // FINE_CELLS)
    hit = (used.outcome == HIT) * used.weight
    square = None if table.integral else used.sums["w2"]
    found = SubgroupCells.of_sums(held.size, key, used.score(cells), hit, used.weight, square)
    starts = np.searchsorted(number, np.arange(held.size + 1))

    def kept(need: Any, some: slice) -> Any:
        if need != Grid() and need not in needs:
            return None
        keys = slice(int(starts[some.start]), int(starts[some.stop]))
        subgroup = number[keys] - some.start
        place = None if need == Grid() else list(needs).index(need)
        return moments(used.where(keys), need, place, cells, subgroup, some.stop - some.start, integral=table.integral)

    def one(place: int) -> Accumulator:
        return accumulator(table.where(slice(int(ends[place]), int(ends[place + 1]))))

    return SubgroupsOfSums(column.name, column.values, n_samples, held, found, 1.0, one, kept, (0.0, 1.0))


def of_accumulators(column: Subgroups, sums: Sequence[Accumulator]) -> SubgroupsOfSums:
    """Subgroups from an accumulator for each."""
    kept = [one.required() for one in sums]
    n_samples = np.array([one.n_samples for one in sums])
    totals = np.array([one.required_totals().weight for one in sums])
    held = np.flatnonzero(totals > 0)
    one_problem = kept[0].fine
    fine = [kept[i].parts[0][kept[i].histogram] for i in held] if one_problem else []
    used = [np.flatnonzero(m.weight[0]) for m in fine]
    key = np.concatenate([np.empty(0, np.intp), *(i * FINE_CELLS + cells for i, cells in enumerate(used))])

    def joined(name: str) -> FloatArray:
        return np.concatenate([np.empty(0), *(getattr(m, name)[0][u] for m, u in zip(fine, used, strict=True))])

    integral = all(m.integral for m in fine)
    square = None if integral else joined("square")
    cells = SubgroupCells.of_sums(len(fine), key, joined("score"), joined("outcome"), joined("weight"), square)

    def of(need: Any, some: slice) -> Any:
        found = [kept[i].parts[0].get(need) for i in held[some]]
        return stacked(found) if isinstance(found[0], BinMoments | GridMoments) else None

    about = (column.name, column.values, n_samples, held, cells, 1.0)
    return SubgroupsOfSums(*about, list(sums).__getitem__, of if one_problem else None, kept[0].domain)


def stacked(sums: Sequence[Any]) -> Any:
    """Sums of problems side by side, each of which has a leading axis of one."""
    return BinMoments.together([one.dense for one in sums] if isinstance(sums[0], GridMoments) else sums)


def _plain(value: Any) -> Any:
    """A value of a column in the form common to an engine and its batches: dates without zone, as datetimes."""
    if not isinstance(value, dt.date):
        return value
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
