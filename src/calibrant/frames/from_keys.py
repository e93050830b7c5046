"""Sums of an :class:`Accumulator` from a table of keys: grids, bins and totals are sums over keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.types import AnyArray, FloatArray, Label
from ..measure.sums_by_class import SumsByClass, Totals, fine_on
from ..sums import BinMoments, Bins, Grid, GridMoments
from ..sums.grid import GRID_CELLS, fold
from .keys import HIT, KeyTable


def moments(
    table: KeyTable, need: Any, place: int | None, cells: int, subgroup: AnyArray, number: int, *, integral: bool
) -> Any:
    """Sums of a kind for subgroups side by side: on the grid, in the bins number ``place``, or in the fine cells.

    ``subgroup`` is the subgroup of each key.
    """
    hit = (table.outcome == HIT).astype(np.float64)
    rows = np.bincount(subgroup, table.sums["n"], number).astype(np.intp)

    def added(values: FloatArray, at: AnyArray | int, size: int) -> FloatArray:
        return np.asarray(np.bincount(subgroup * size + at, values, number * size).reshape(number, size))

    if need == Grid():
        total, squares = (added(v, 0, 1)[:, 0] for v in (table.weight, table.squares))

        def on_nodes(share: FloatArray | float) -> FloatArray:
            up, cell = table.sums["offset"] * share, table.step // 2
            out = added(table.weight * share - up, cell, cells + 1)
            out[:, 1:] += added(up, cell, cells + 1)[:, :-1]
            return out if cells == GRID_CELLS else fold(out, GRID_CELLS)

        return GridMoments(0.0, 1.0, on_nodes(1.0), on_nodes(hit), total, squares, rows, integral)
    # Bins are closed on the right: a score on a node is of the cell before.
    slot = (table.step + 1) // 2 if place is None else table.bins[place]
    values = table.weight, table.score(cells), table.weight * hit, table.squares
    mass, score, positive, squares = (need.edges.fold(added(v, slot, need.edges.n_bins + 2)) for v in values)
    return BinMoments(need.edges, need.mapping, mass, score, positive, squares, mass, rows, integral)


@np.errstate(over="ignore", invalid="ignore")  # weights out of range are refused afterwards
def decoded(
    table: KeyTable, needs: Sequence[Bins], cells: int, label: Label, positive: int
) -> tuple[Totals, SumsByClass]:
    """Totals and kept sums of the rows of a table, all of which are valid."""
    fine = fine_on((0.0, 1.0), cells)
    alone = np.zeros(table.step.size, dtype=np.intp)
    part: dict[Any, Any] = {
        need: moments(table, need, place, cells, alone, 1, integral=table.integral)
        for need, place in (*((need, i) for i, need in enumerate(needs)), (Grid(), None), (fine, None))
    }
    problem_sums = SumsByClass((label,), (0.0, 1.0), (part,), fine)
    weight, score, hit = table.weight, table.score(cells), (table.outcome == HIT).astype(np.float64)
    total = float(weight.sum()), float(table.squares.sum())
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
    rows, weighted = int(table.sums["n"].sum()), "w" in table.sums
    totals = Totals(
        rows, *total, table.integral, sides[order], stated[order], float(weight @ right), brier, loss, weighted,
    )  # fmt: skip
    return totals, problem_sums
