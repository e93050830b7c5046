"""`from_frame`: the public function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..comparison.subgroups.membership import Subgroups, read_subgroups
from ..data.checks import check_choice
from ..data.libraries import library_of
from ..data.progress import working
from ..data.result import with_origin
from ..data.types import AnyArray, Label
from ..estimators import Binned, CellEstimator, EmpiricalBayes
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import FINE_CELLS, Totals
from ..notions import ClassSpecific, Notion, as_notion
from ..sums import Bins, Grid
from ..sums.grid import GRID_CELLS
from .batches import Sums, added
from .frame_columns import FrameColumns
from .frame_periods import by_period
from .from_keys import decoded
from .group_effects import hang_together
from .keys import KeyTable, aggregate, no_group, refuse, without_group
from .subgroup_sums import SubgroupsOfSums, SubgroupSums, of_accumulators, of_keys

#: Allowed numbers of cells: powers of two, which scale scores without rounding.
_CELLS = tuple(GRID_CELLS * 2**i for i in range(9))

#: Largest number of explicit edges that every score is compared with.
_MOST_EDGES = 100


def from_frame(
    frame: Any,
    *,
    label: str | Sequence[str],
    prob: str | Sequence[str],
    weight: str | None = None,
    groups: str | None = None,
    by: str | Sequence[str] | None = None,
    time: str | None = None,
    every: str | None = None,
    notion: str | Notion = "auto",
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    n_cells: int = GRID_CELLS,
    on_invalid: str = "raise",
    binned: str | Binned | None = None,
    estimators: Sequence[str | CellEstimator] = (),
) -> Accumulator | SubgroupSums:
    """Sum the rows of a frame in its own engine, with the same results as in memory.

    Parameters
    ----------
    frame : data frame, lazy frame or relation
        A frame of Polars (lazy or eager), DuckDB, pandas, pyarrow, Dask, PySpark (classic or Connect), or another
        library that narwhals reads. Lazy ones are not loaded.
    label : str, or list of str
        Column of observed labels: whole numbers, bools, text or categories; or floats that are shares in [0, 1] (see
        :func:`calibrant.as_predictions`), with at most two columns of probabilities. A list is for rows with several
        labels or none (:class:`calibrant.notions.Multilabel`): each column is 1 where a row has one of the labels, else
        0, and ``prob`` lists as many columns. For ``"multilabel:micro"`` the dependence between the entries of a row,
        which intervals allow for, is estimated batch by batch, so it differs slightly between engines.
    prob : str or sequence of str
        Column of the probability of ``pos_label``; or one column per class, at most 1000.
    weight : str, optional
        Column of sample weights.
    groups : str, optional
        Column of the group of each row (a patient, a prompt): rows of one group are dependent. Takes two further
        passes, batch by batch (ranks of all scores come first), and 64 bytes of memory per group and class; with ``by``
        or ``time`` three passes (with both, three per subgroup), and as much memory per group in each subgroup or
        period. May be the column ``time``: rows of one day are dependent.
    by : str or sequence of str, optional
        Column of subgroups, such as model versions, days or regions: one result per value, in the same pass. Several
        columns take one pass each.
    time : str, optional
        Column of dates or datetimes: one result per period, in the same pass; datetimes with a time zone are cut by its
        clock. With ``by``, one result per subgroup and period, and ``.over_time()`` follows each subgroup.
    every : {"hour", "day", "week", "month", "quarter", "year"}, optional
        Length of a period of ``time``; weeks begin on Monday.
    notion : str or Notion, default "auto"
        The notion of calibration; see :class:`Accumulator`.
    labels : sequence of K labels, optional
        The labels, in the order of the columns ``prob``. By default, with several columns, the distinct labels are
        queried first.
    pos_label : label, optional
        The label that a single column ``prob`` is the probability of. Default: 1 for labels in {0, 1} or bool.
    n_cells : int, default 4096
        Number of cells of scores: 4096, 8192, 16384, … 1048576; with ``by`` at least 65536. Estimators whose sums are
        not kept (quantile bins, ``Isotonic``) are computed from the cells; all others are exact for any number.
    on_invalid : {"raise", "drop"}, default "raise"
        Handling of invalid rows: a missing or invalid label or probability, probabilities outside [0, 1] or that do
        not sum to 1, a negative or infinite weight. ``"drop"`` leaves them out; ``.dropped`` is their number.
    binned : str, Binned or None, optional
        Further bins whose sums are kept; see :class:`Accumulator`.
    estimators : sequence of str or CellEstimator, optional
        Estimators whose sums are kept; see :class:`Accumulator`.

    Returns
    -------
    Accumulator
        With ``by``, a mapping from value to Accumulator instead, whose ``.subgroups()`` compares them as
        :func:`calibrant.subgroup_calibration` does; with ``time``, one whose ``.over_time()`` follows them as
        :func:`calibrant.calibration_over_time` does. ``.source`` says how the rows were summed
        (``"one aggregation"`` or ``"batches of rows"``), and by which engine.

    Raises
    ------
    ValueError, TypeError
        The message names the argument; for invalid rows it has their number and one of them.

    See Also
    --------
    calibrant.Accumulator : The result; also sums pieces that you read yourself.
    calibrant.subgroup_calibration : Compares subgroups of rows in memory.
    calibrant.calibration_over_time : Follows rows in memory over time.
    calibrant.as_predictions : Validates rows of a data frame in memory.

    Notes
    -----
    One column of probabilities takes one GROUP BY of the engine: by outcome, cell ``floor(s · n_cells)`` and bin,
    adding up rows, weights, scores and the scores' offsets within cells. Counts on the grid, sums of bins and scoring
    rules follow exactly. Several columns, estimators without hard bins, and frames of pandas and Dask without ``by``
    (whose GROUP BY takes twice as long) are read batch by batch: for Dask and Spark in their workers, whose sums are
    added; otherwise in this process, some 16 MB at a time. Batches use 65536 cells, whatever ``n_cells``. A column of
    float labels takes one more small query, which looks for shares; a frame with shares is read twice, once for each
    outcome, and invalid rows may count twice.

    Sums agree with ``Accumulator().update`` up to the rounding of float64 addition, in float32 as in float64. Cost: one
    pass over the columns, in constant memory; `docs/scale.md` gives times.

    Examples
    --------
    >>> import pandas as pd, calibrant as cal
    >>> frame = pd.DataFrame({"clicked": [0, 1, 1, 0], "p": [0.2, 0.7, 0.9, 0.4]})
    >>> sums = cal.from_frame(frame, label="clicked", prob="p")
    >>> round(sums.estimate(cal.Binned(2)).value, 3)
    0.25
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    check_choice("n_cells", n_cells, _CELLS)
    if time is not None or every is not None:
        kept = f"{time} as group" if groups == time else None
        frame, groups = by_period(frame, time, every, kept), kept or groups
    settings: dict[str, Any] = {"notion": notion, "binned": binned, "estimators": estimators}
    given, library = Accumulator(**settings, labels=labels, pos_label=pos_label), library_of(frame)
    roles = {"label": label, "prob": prob, "weight": weight, "groups": groups}
    names = [by] if by is None or isinstance(by, str) or not isinstance(by, Sequence) else list(dict.fromkeys(by))
    if not names:
        raise ValueError("by must name at least one column; got none")
    columns = [FrameColumns.of(frame, {**roles, "by": name, "time": time}, labels, pos_label) for name in names]
    lost, n = (0, 0) if groups is None else without_group(columns[0])
    if lost and (on_invalid == "raise" or lost == n):
        refuse(columns[0], lost, n)
    if lost:
        columns = [replace(c, frame=c.frame.filter(~no_group(c))) for c in columns]
    if by is not None or time is not None:
        reading = _Reading(settings, _bins(given), max(n_cells, FINE_CELLS), on_invalid)
        _check_groups(columns[0], given.notion)
        found, dropped = zip(*(reading.subgroups(c) for c in columns), strict=True)
        every_column = [one for each in found for one in each]
        if time is None or by is None:
            several = by is not None and not isinstance(by, str)
            return SubgroupSums(every_column, several=several, dropped=dropped[0] + lost, library=library, every=every)
        if len(columns) > 1:
            pairs = ((c.by, one) for c, each in zip(columns, found, strict=True) for one in each)
            every_column = [replace(one, name=f"{name}={one.name}") for name, one in pairs]
        followed = ", ".join(str(c.by) for c in columns)
        return SubgroupSums(
            every_column,
            several=True,
            dropped=dropped[0] + lost,
            library=library,
            every=every,
            followed=followed,
            whole=len(found[0]),
        )
    (everything,) = columns
    _check_groups(everything, given.notion)
    sums = _Reading(settings, _bins(given), n_cells, on_invalid).all_rows(replace(everything, groups=None))
    if groups is not None:
        hang_together(sums, everything)
        sums.dropped += lost
    return with_origin(library, sums)


@dataclass(frozen=True, eq=False)
class _Reading:
    """How a frame's rows become sums: settings of accumulators, bins, cells, and the treatment of bad rows."""

    settings: dict[str, Any]
    needs: Sequence[Any]
    cells: int
    on_invalid: str

    def all_rows(self, c: FrameColumns) -> Accumulator:
        """Sums of all rows: in batches for pandas (half the time), and where sums by key are not enough."""
        adds_up, kind = self._adds_up(c), c.frame.implementation
        found, how = None, "batches of rows"
        if not adds_up or kind.is_dask() or kind.is_pandas():
            try:
                found = self._batched(c).get(None, Accumulator(**self.settings))
            except ImportError:  # workers without this package: the engine's own expressions do without
                if not adds_up:
                    raise
        # This finds the labels of bad rows.
        if found is None or (found.dropped and adds_up):
            (c, table), how = self._keyed(c), "one aggregation"
            found = self._filled(c, table)
        self._check(c, found.dropped, found.n_samples)
        self._check_weight(c, found.required_totals())
        found.source = f"{how}, {c.engine}"
        return found

    def subgroups(self, c: FrameColumns) -> tuple[list[SubgroupsOfSums], int]:
        """Sums of the subgroups of a column that have valid rows, and the number of invalid rows.

        With periods: those of each subgroup, one after the other.
        """
        found, dropped = self._independent(replace(c, groups=None))
        if c.groups is None:
            return [one for _, one in found], dropped
        if len(c.parts) == 1:
            return [one.in_groups(c) for _, one in found], dropped
        return [one.in_groups(self._of_subgroup(c, value)) for value, one in found], dropped

    def _of_subgroup(self, c: FrameColumns, value: Label) -> FrameColumns:
        """The columns of a frame with the rows of one subgroup."""
        of = nw.col(str(c.by))
        return replace(c, frame=c.frame.filter(of.is_null() if value is None else of == value), by=None)

    def _independent(self, c: FrameColumns) -> tuple[list[tuple[Label, SubgroupsOfSums]], int]:
        """The same as if rows were independent, with the value of the subgroup that the periods belong to."""
        if not self._adds_up(c):
            each = self._batched(c)
            dropped = sum(one.dropped for one in each.values())
            self._check(c, dropped, sum(one.n_samples for one in each.values()))
            read = {value: one for value, one in each.items() if one.n_samples}
            for one in read.values():
                one.source = f"batches of rows, {c.engine}"
            values, sums = list(read), list(read.values())
            columns = (values,) if len(c.parts) == 1 else tuple(zip(*values, strict=True))
            parts = _parts(c, columns, np.ones(len(values), dtype=bool))
            return [
                (value, of_accumulators(column, [sums[some[i]] for i in np.argsort(column.codes)]))
                for value, column, some in parts
            ], dropped
        c, table = self._keyed(c)
        rows, good = table.sums["n"], table.good
        dropped = int(rows[~good].sum())
        self._check(c, dropped, int(rows[good].sum()))
        filled = partial(self._filled, c)
        return [
            (value, of_keys(column, table.where(some), self.needs, self.cells, filled))
            for value, column, some in _parts(c, table.parts, good)
        ], dropped

    def _adds_up(self, c: FrameColumns) -> bool:
        """Whether sums by key contain everything that is kept."""
        bins = [need for need in self.needs if isinstance(need, Bins) and need.mapping == "hard"]
        hard = len(bins) == len(self.needs) and all(b.edges.uniform or b.edges.n_bins <= _MOST_EDGES for b in bins)
        notion = as_notion(self.settings["notion"], c.empty)
        one = c.positive is not None and isinstance(notion, ClassSpecific) and notion.index(c.empty) == c.positive
        return hard and one

    def _batched(self, c: FrameColumns) -> Sums:
        """Sums of batches, whose labels are known."""
        c = c if self._adds_up(c) else c.looked_up()
        positive = None if c.positive is None else c.classes[c.positive]
        with working("from_frame"):
            start = partial(_begun, bool(c.truths), **self.settings, labels=c.classes, pos_label=positive)
            return added(c, start)

    def _keyed(self, c: FrameColumns) -> tuple[FrameColumns, KeyTable]:
        """The columns with the labels that the rows have, 1 and either 0 or -1; and sums by key."""
        with working("from_frame"):
            table = aggregate(c, self.needs, self.cells)
        codes = np.unique(table.outcome[table.good])
        told = c.told or not codes.size
        return c if told else c.with_labels(np.array([0, 1, 0, -1])[codes]), table

    def _filled(self, c: FrameColumns, table: KeyTable) -> Accumulator:
        """An accumulator with the rows of a table."""
        empty, good = Accumulator(**self.settings), table.good
        empty.dropped, empty.source = int(table.sums["n"][~good].sum()), f"one aggregation, {c.engine}"
        if good.any() and c.positive is not None:
            label = c.classes[c.positive]
            empty.notion, empty.classes, empty.positive = as_notion(empty.notion, c.empty), c.classes, c.positive
            empty.totals, empty.problem_sums = decoded(table.where(good), self.needs, self.cells, label, c.positive)
        return empty

    def _check_weight(self, c: FrameColumns, totals: Totals) -> None:
        """ValueError for weights that are all zero, or whose squares overflow or underflow."""
        if not totals.weight > 0:
            raise ValueError(f"weight must not be all zero; column {c.weight!r} is")
        if not 0 < totals.squares < np.inf:
            raise ValueError(
                f"weight must have squares within range; those of column {c.weight!r} overflow or underflow: rescale it"
            )

    def _check(self, c: FrameColumns, bad: int, n_read: int) -> None:
        """ValueError unless there are rows and none of them is bad, or bad ones may be left out."""
        n = bad + n_read
        if not n:
            raise ValueError("frame must not be empty; got 0 rows")
        if bad and (self.on_invalid == "raise" or bad == n):
            refuse(c, bad, n)


def _parts(c: FrameColumns, columns: Sequence[Any], good: AnyArray) -> Iterator[tuple[Label, Subgroups, AnyArray]]:
    """Subgroups of entries by the last of some columns, if they have a good entry; with their entries.

    With two columns: those of each value of the first, one after the other.
    """
    *outer, inner = columns
    each: list[tuple[Label, str, AnyArray]] = [(None, c.parts[-1], np.arange(good.size))]
    if outer:
        (of,) = read_subgroups({c.parts[0]: outer[0]}, good.size)
        each = [
            (v, name, np.flatnonzero(of.codes == k))
            for k, (v, name) in enumerate(zip(of.values, of.names, strict=True))
        ]
    for value, name, some in each:
        held_values = inner[some] if isinstance(inner, np.ndarray) else [inner[i] for i in some.tolist()]
        (column,) = read_subgroups({name: held_values}, some.size)
        held = np.bincount(column.codes, good[some]) > 0
        if not held.any():
            continue
        kept = held[column.codes]
        values = tuple(v for v, is_held in zip(column.values, held, strict=True) if is_held)
        yield value, Subgroups(column.name, (np.cumsum(held) - 1)[column.codes[kept]], values), some[kept]


def _check_groups(c: FrameColumns, notion: str | Notion) -> None:
    """ValueError for groups of rows whose labels, in a single problem, are groups already."""
    if c.truths and c.groups is not None and str(as_notion(notion, c.empty)) == "multilabel:micro":
        raise ValueError(
            "groups are not supported by from_frame for the notion 'multilabel:micro': use 'multilabel', or add pieces "
            "to Accumulator(notion='multilabel:micro')"
        )


def _begun(several: bool, value: Label, **settings: Any) -> Accumulator:
    """An accumulator without rows, which may have ``several`` labels even where those of a batch have one each."""
    found = Accumulator(**settings)
    found.several = several
    return found


def _bins(given: Accumulator) -> list[Any]:
    """Requested sums except the grid."""
    named = [e._needs((0.0, 1.0)) for e in (given.binned, EmpiricalBayes(), *given.estimators)]
    return [need for need in dict.fromkeys(named) if need is not None and need != Grid()]
