"""A table of keys to the sums of an :class:`Accumulator`: grids, bins and totals are sums of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.predictions import COUNTED
from ..data.types import AnyArray, FloatArray, Label
from ..measure.sums_by_class import SumsByClass, fine_on
from ..measure.totals import Totals
from ..sums import BinMoments, Bins, Grid, GridMoments
from ..sums.grid import GRID_CELLS, fold
from .keys import HIT, KeyTable


def decoded(
    table: KeyTable, needs: Sequence[Bins], cells: int, label: Label, positive: int
) -> tuple[Totals, SumsByClass]:
    """Totals and kept sums of the rows of a table, none of them bad."""
    weighted = "w" in table.sums
    n = table.sums["n"]
    weight = table.sums["w"] if weighted else n
    integral = not weighted or (not table.sums["parts"].any() and float(weight.sum()) <= COUNTED)
    squares = table.sums["w2"] if weighted else n
    hit = (table.outcome == HIT).astype(np.float64)
    cell = table.step // 2
    score = (table.sums["offset"] + cell * weight) / cells
    rows = int(n.sum())

    def binned(need: Bins, slot: AnyArray) -> BinMoments:
        def of(values: FloatArray) -> FloatArray:
            sums = np.bincount(slot, values, minlength=need.edges.n_bins + 2)
            return np.asarray(need.edges.fold(sums)[None])

        mass = of(weight)
        moments = mass, of(score), of(weight * hit), of(squares), mass
        return BinMoments(need.edges, need.mapping, *moments, np.array([rows]), integral)

    fine = fine_on((0.0, 1.0), cells)
    # Bins are closed on the right: a score on a node is of the cell before.
    at = (table.step + 1) // 2
    part: dict[Any, Any] = {need: binned(need, slot) for need, slot in zip(needs, table.bins, strict=True)}
    total = float(weight.sum()), float(squares.sum())
    count, positives = (_shared(table, values, cells) for values in (1.0, hit))
    part[Grid()] = GridMoments(
        0.0, 1.0, count[None], positives[None], np.array([total[0]]), np.array([total[1]]), np.array([rows]), integral
    )
    part[fine] = binned(fine, at)
    kept = SumsByClass((label,), (0.0, 1.0), (part,), fine)
    sides = np.array([float(weight @ (1 - hit)), float(weight @ hit)])
    stated = np.array([total[0] - float(score.sum()), float(score.sum())])
    # A score of one half goes to the first class.
    second = table.step > cells if positive == 1 else table.step < cells
    right = second == (hit == positive)
    order = slice(None) if positive == 1 else slice(None, None, -1)
    loss = -float(table.sums["loss"].sum())
    if (weight[table.step == np.where(hit == 1, 0, 2 * cells)] > 0).any():
        loss = float("inf")
    brier = float(table.sums["square"].sum() + hit @ (weight - 2 * score))
    totals = Totals(
        rows, *total, integral, sides[order], stated[order], float(weight @ right), brier, loss, weighted,
    )  # fmt: skip
    return totals, kept


def _shared(table: KeyTable, share: FloatArray | float, cells: int) -> FloatArray:
    """Linear-binned counts of all rows, or of some share of each key's, on the nodes of the usual grid."""
    mass = table.sums["w"] if "w" in table.sums else table.sums["n"]
    up, cell = table.sums["offset"] * share, table.step // 2
    out: Any = np.bincount(cell, mass * share - up, minlength=cells + 1)
    out[1:] += np.bincount(cell, up, minlength=cells + 1)[:-1]
    return np.asarray(out if cells == GRID_CELLS else fold(out, GRID_CELLS))
