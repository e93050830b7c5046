"""`from_frame`: the public function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..data.checks import check_choice
from ..data.libraries import library_of
from ..data.progress import working
from ..data.result import came_in
from ..estimators import Binned, CellEstimator, EmpiricalBayes
from ..measure.streaming import Accumulator
from ..notions import ClassSpecific, Notion, as_notion
from ..sums import Bins, Grid
from ..sums.grid import GRID_CELLS
from .bad_rows import refuse
from .batches import Sums, added
from .frame_columns import FrameColumns
from .frame_subgroups import FrameSubgroups
from .from_keys import decoded
from .group_effects import hang_together
from .keys import BAD, KeyTable, aggregate, no_group, without_group

#: Cells there may be: powers of two, which scale scores without rounding.
_CELLS = tuple(GRID_CELLS * 2**i for i in range(9))

#: Explicit edges that every score is compared with.
_MOST_EDGES = 100


def from_frame(
    frame: Any,
    *,
    label: str,
    prob: str | Sequence[str],
    weight: str | None = None,
    groups: str | None = None,
    by: str | None = None,
    notion: str | Notion = "auto",
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    n_cells: int = GRID_CELLS,
    on_invalid: str = "raise",
    binned: str | Binned | None = None,
    estimators: Sequence[str | CellEstimator] = (),
) -> Accumulator | FrameSubgroups:
    """Sums of the rows of a frame, made by its own engine: the same numbers as in memory, from any number of rows.

    Parameters
    ----------
    frame : data frame, lazy frame or relation
        Of Polars (lazy or eager), DuckDB, pandas, pyarrow, Dask, PySpark (classic or Connect), or another library that
        narwhals reads. Lazy ones are not loaded.
    label : str
        Column of observed labels: whole numbers, bools, text or categories.
    prob : str or sequence of str
        Column of the probability of ``pos_label``; or one column a class, 1000 at most.
    weight : str, optional
        Column of sample weights.
    groups : str, optional
        Column of the group of each row (a patient, a prompt): rows of one group are not independent. Takes two further
        passes, batch by batch, as ranks of all scores come first; and memory for 64 bytes a group and class.
    by : str, optional
        Column of subgroups, such as model versions, days or regions, up to some thousands: one result for each value,
        in the same pass.
    notion, labels, pos_label, binned, estimators
        See :class:`Accumulator`. Of several columns without ``labels`` the distinct labels are asked for first.
    n_cells : int, default 4096
        Cells of scores that are told apart: 4096, 8192, 16384, … 1048576. Estimators whose sums are not kept (quantile
        bins, ``Isotonic``) are read from them; all others are exact whatever their number.
    on_invalid : {"raise", "drop"}, default "raise"
        What to do with rows that cannot be read: a label or probability that is missing or none, probabilities outside
        [0, 1] or that do not sum to 1, a weight that is negative or infinite. ``"drop"`` leaves them out; ``.dropped``
        is their number.

    Returns
    -------
    Accumulator
        Or with ``by`` a mapping from value to Accumulator, whose ``.estimate()`` is a table of all subgroups. What
        ``.made`` says is how: ``"one aggregation"`` or ``"batches of rows"``.

    Raises
    ------
    ValueError, TypeError
        Naming the argument; for bad rows with their number and one of them.

    Notes
    -----
    One column of probabilities is one GROUP BY of the engine: by outcome, cell ``floor(s · n_cells)`` and bin, with
    rows, weights, scores and scores' offsets within cells added up. Counts on the grid, sums of bins and scoring rules
    follow exactly. Several columns, estimators with other bins than hard ones, and frames of pandas and Dask without
    ``by`` (whose subgroups cost twice our own counts) are read batch by batch: in Dask's and Spark's workers, whose
    sums are added; from others in this process, some 16 MB at a time. Batches know 65536 cells, whatever ``n_cells``.

    Sums agree with ``Accumulator().update`` up to the rounding of float64 addition, in float32 as in float64. Cost: one
    pass over the columns, in constant memory; `docs/scale.md` has times.

    Examples
    --------
    >>> import pandas as pd, calibrant as cal
    >>> frame = pd.DataFrame({"clicked": [0, 1, 1, 0], "p": [0.2, 0.7, 0.9, 0.4]})
    >>> sums = cal.from_frame(frame, label="clicked", prob="p")
    >>> round(sums.estimate(cal.Binned(2)).value, 3)
    0.25
    """
    check_choice("on_invalid", on_invalid, ("raise", "drop"))
    if groups is not None and by is not None:
        raise ValueError(
            f"groups and by cannot go together; got groups={groups!r} and by={by!r}: ask for one value of by"
        )
    if n_cells not in _CELLS:
        raise ValueError(f"n_cells must be one of {', '.join(map(str, _CELLS))}; got {n_cells!r}")
    settings: dict[str, Any] = {"notion": notion, "binned": binned, "estimators": estimators}
    given = Accumulator(**settings, labels=labels, pos_label=pos_label)
    roles = {"label": label, "prob": prob, "weight": weight, "by": by, "groups": groups}
    everything = FrameColumns.of(frame, roles, labels, pos_label)
    lost, n = (0, 0) if groups is None else without_group(everything)
    if lost and (on_invalid == "raise" or lost == n):
        refuse(everything, lost, n)
    if lost:
        everything = replace(everything, frame=everything.frame.filter(~no_group(everything)))
    columns = replace(everything, groups=None)
    chosen, needs = as_notion(notion, columns.empty), _bins(given)
    adds_up, found, how = _adds_up(columns, chosen, needs), None, "batches of rows"
    if not adds_up or _counts_better(columns):
        columns = columns if adds_up else columns.looked_up()
        with working("from_frame"):
            found = _batched(columns, settings)
    if found is None or (adds_up and any(one.dropped for one in found.values())):
        # Of rows that are not as they should this tells which labels they have.
        with working("from_frame"):
            table, how = aggregate(columns, needs, n_cells), "one aggregation"
        columns = columns if columns.told else _told(columns, table)
        found = {v: _filled(Accumulator(**settings), columns, t, needs, n_cells) for v, t in table.split().items()}
    for one in found.values():
        came_in(library_of(frame), one)
    sums = _judged(columns, found, f"{how}, {columns.engine}", on_invalid)
    if groups is not None and isinstance(sums, Accumulator):
        hang_together(sums, everything)
        sums.dropped += lost
    return sums


def _batched(c: FrameColumns, settings: dict[str, Any]) -> Sums:
    """Sums of batches, whose labels are known."""
    positive = None if c.positive is None else c.classes[c.positive]
    return added(c, partial(Accumulator, **settings, labels=c.classes, pos_label=positive))


def _bins(given: Accumulator) -> list[Any]:
    """Sums that are asked for, but for the grid."""
    named = [e._needs((0.0, 1.0)) for e in (given.binned, EmpiricalBayes(), *given.estimators)]
    return [need for need in dict.fromkeys(named) if need is not None and need != Grid()]


def _adds_up(c: FrameColumns, notion: Notion, needs: Sequence[Any]) -> bool:
    """Whether sums by key tell all that is kept."""
    bins = [need for need in needs if isinstance(need, Bins) and need.mapping == "hard"]
    hard = len(bins) == len(needs) and all(b.edges.uniform or b.edges.n_bins <= _MOST_EDGES for b in bins)
    return hard and c.positive is not None and isinstance(notion, ClassSpecific) and notion.index(c.empty) == c.positive


def _counts_better(c: FrameColumns) -> bool:
    """Whether batches take half the time: frames of pandas, whose keys cost more than our own counts."""
    kind = c.frame.implementation
    return c.by is None and (kind.is_dask() or kind.is_pandas())


def _told(c: FrameColumns, table: KeyTable) -> FrameColumns:
    """The labels that rows tell: 1, and either 0 or -1."""
    codes = np.unique(table.outcome[table.outcome != BAD])
    if not codes.size:
        return c
    return c.with_labels(np.array([0, 1, 0, -1])[codes])


def _filled(empty: Accumulator, c: FrameColumns, table: KeyTable, needs: Sequence[Bins], cells: int) -> Accumulator:
    """An accumulator with the rows of a table."""
    bad = table.outcome == BAD
    empty.dropped = int(table.sums["n"][bad].sum())
    if not bad.all() and c.positive is not None:
        label = c.classes[c.positive]
        empty.notion, empty.classes, empty.positive = as_notion(empty.notion, c.empty), c.classes, c.positive
        empty.totals, empty.kept = decoded(table.where(~bad), needs, cells, label, c.positive)
    return empty


def _judged(c: FrameColumns, found: Sums, made: str, on_invalid: str) -> Accumulator | FrameSubgroups:
    """What was found, if there are rows and none of them is bad, or bad ones may be left out."""
    bad = sum(one.dropped for one in found.values())
    n = bad + sum(one.n_samples for one in found.values())
    if not n:
        raise ValueError("frame must not be empty; got 0 rows")
    if bad and (on_invalid == "raise" or bad == n):
        refuse(c, bad, n)
    read = {value: one for value, one in found.items() if one.n_samples}
    for one in read.values():
        if not one.required_totals().weight > 0 and c.by is None:
            raise ValueError(f"weight must not be all zero; column {c.weight!r} is")
        one.made = made
    return read[None] if c.by is None else FrameSubgroups(c.by, read, bad)
