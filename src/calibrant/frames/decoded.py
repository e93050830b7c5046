"""A table of keys to the sums of an :class:`Accumulator`: grids, bins and totals are sums of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.predictions import COUNTED
from ..data.types import AnyArray, FloatArray, Label
from ..measure.kept import Kept, fine_on
from ..measure.totals import Totals
from ..sums import BinMoments, Bins, Grid, GridMoments
from ..sums.grid import GRID_CELLS, fold
from .expressions import HIT, KeyTable


def decoded(table: KeyTable, needs: Sequence[Bins], cells: int, label: Label, positive: int) -> tuple[Totals, Kept]:
    """Totals and kept sums of the rows of a table, none of them bad."""
    weighted = "w" in table.sums
    n = table.sums["n"]
    weight = table.sums["w"] if weighted else n
    integral = not weighted or (not table.sums["parts"].any() and float(weight.sum()) <= COUNTED)
    squares = table.sums["w2"] if weighted else n
    hit = (table.outcome == HIT).astype(np.float64)
    score = (table.sums["offset"] + table.cell * weight) / cells
    rows = int(n.sum())

    def binned(need: Bins, slot: AnyArray) -> BinMoments:
        def of(values: FloatArray) -> FloatArray:
            sums = np.bincount(slot, values, minlength=need.edges.n_bins + 2)
            return np.asarray(need.edges.fold(sums)[None])

        mass = of(weight)
        moments = mass, of(score), of(weight * hit), of(squares), mass
        return BinMoments(need.edges, need.mapping, *moments, np.array([rows]), integral)

    fine = fine_on((0.0, 1.0), cells)
    at = np.clip(table.cell if positive == 1 else table.cell + 1, 1, cells)
    part: dict[Any, Any] = {need: binned(need, slot) for need, slot in zip(needs, table.bins, strict=True)}
    total = float(weight.sum()), float(squares.sum())
    count, positives = (_shared(table, values, cells) for values in (None, hit))
    part[Grid()] = GridMoments(
        0.0, 1.0, count[None], positives[None], np.array([total[0]]), np.array([total[1]]), np.array([rows]), integral
    )
    part[fine] = binned(fine, at)
    kept = Kept((label,), (0.0, 1.0), (part,), fine)
    sides = np.array([float(weight @ (1 - hit)), float(weight @ hit)])
    stated = np.array([total[0] - float(score.sum()), float(score.sum())])
    # A score of one half goes to the first class: cells are closed so that it lies on that side.
    half = cells // 2
    second = table.cell > half if positive == 1 else table.cell < half
    right = second == (hit == positive)
    order = slice(None) if positive == 1 else slice(None, None, -1)
    brier = float(table.sums["square"].sum() + hit @ (weight - 2 * score))
    totals = Totals(
        rows, *total, integral, sides[order], stated[order], float(weight @ right), brier,
        float(table.sums["loss"].sum()), weighted,
    )  # fmt: skip
    return totals, kept


def _shared(table: KeyTable, share: FloatArray | None, cells: int) -> FloatArray:
    """Linear-binned counts of all rows, or of some share of each key's, on the nodes of the usual grid."""
    share = np.ones(table.cell.size) if share is None else share
    mass = table.sums["w"] if "w" in table.sums else table.sums["n"]
    # Offsets are from the cell's number: up from it (cells begin there) or down to the one before (cells end there).
    up = table.sums["offset"] * share
    out: Any = np.bincount(table.cell, mass * share - np.abs(up), minlength=cells + 1)
    below = np.bincount(table.cell, np.maximum(-up, 0), minlength=cells + 1)
    above = np.bincount(table.cell, np.maximum(up, 0), minlength=cells + 1)
    out[:-1] += below[1:]
    out[1:] += above[:-1]
    return np.asarray(out if cells == GRID_CELLS else fold(out, GRID_CELLS))
