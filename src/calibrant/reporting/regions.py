"""Miscalibrated scores: ranges where outcomes are not as frequent as stated, or values shared by many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from ..sums import BinMoments

#: Minimum share of all rows, and minimum number of rows, of a region.
LEAST_SHARE, LEAST_ROWS = 0.01, 20
#: Probability of any finding for a calibrated model, and the factor for the neighbours of a run.
CHANCE, BESIDE = 0.01, 3.0
#: Number of cells that make up ranges, and rows per cell.
CELLS, ROWS_A_CELL = 256, 5
#: A value has ``TIMES`` times the rows of scores within ``NEAR`` cells of the histogram. At most ``VALUES`` are tested
#: singly, if all but a twentieth of the rows have one of them; if more than ``NAMED`` are wrong, ranges are named.
TIMES, NEAR, VALUES, NEARLY_ALL, NAMED = 10.0, 8, 32, 0.95, 6


@dataclass(frozen=True)
class Region:
    """Scores from ``low`` to ``high``, rounded to ``decimals``, or some ``values``, all too high or all too low.

    The other fields describe the rows with these scores; ``rows`` is their number, by Kish's formula if weighted.
    """

    low: float
    high: float
    stated: float
    observed: float
    share: float
    rows: float
    values: tuple[float, ...] = ()
    decimals: int = 2

    @property
    def gap(self) -> float:
        """Observed minus stated frequency."""
        return self.observed - self.stated


@dataclass(frozen=True, eq=False)
class _Runs:
    """Sums over runs of scores: weights, scores, outcomes and squared weights before every cell, (4, m + 1)."""

    sums: FloatArray
    integral: bool

    def of(self, start: AnyArray, stop: AnyArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Effective rows, stated and observed frequency of runs."""
        weight, score, outcome, square = self.sums[:, stop] - self.sums[:, start]
        mass = np.where(weight > 0, weight, 1.0)
        rows = weight if self.integral else weight**2 / np.where(square > 0, square, 1.0)
        return rows, np.clip(score / mass, 0.0, 1.0), np.clip(outcome / mass, 0.0, 1.0)

    def above(self, start: int, stop: int) -> bool:
        """Whether outcomes of a run are more frequent than stated."""
        _, score, outcome, _ = self.sums[:, stop] - self.sums[:, start]
        return bool(outcome > score)

    def evidence(self, start: AnyArray, stop: AnyArray) -> FloatArray:
        """Evidence in nats: a calibrated model has it in a given run with probability ≤ ``2 exp(-nats)`` (Chernoff)."""
        from scipy.special import rel_entr

        rows, stated, observed = self.of(start, stop)
        stated = np.clip(stated, 1e-12, 1 - 1e-12)
        return np.asarray(rows * (rel_entr(observed, stated) + rel_entr(1 - observed, 1 - stated)))


def regions(fine: BinMoments) -> list[Region]:
    """Miscalibrated ranges or values, largest gap times rows first; for a calibrated model none, in ≥ 99 % of samples.

    If nearly all rows share a few values, these are tested one by one. Otherwise, or if many of them are wrong, dynamic
    programming finds the runs of cells of equal mass whose evidence, minus that by chance in as many runs of their
    length, has the largest sum: a narrow gap is not spread over its neighbours, and a wide one is not cut up.
    """
    used = np.flatnonzero(fine.weight > 0)
    if not used.size:
        return []
    columns = np.stack([v[used] for v in (fine.weight, fine.score, fine.outcome, fine.square)])
    apart = _values(fine)[used]
    few = apart.sum() <= VALUES and columns[0, apart].sum() >= NEARLY_ALL * columns[0].sum()
    found = _of_values(columns[:, apart], fine) if few else []
    if not few or any(len(r.values) > NAMED for r in found):
        found = _of_ranges(columns, apart, used, fine)
    found = [r for r in found if r.share >= LEAST_SHARE and r.rows >= LEAST_ROWS]
    return sorted(found, key=lambda r: -abs(r.gap) * r.share)


def stands_out(fine: BinMoments) -> bool:
    """Whether all rows together are miscalibrated in one direction."""
    sums = np.array([[0.0, v.sum()] for v in (fine.weight, fine.score, fine.outcome, fine.square)])
    return bool(_Runs(sums, fine.integral).evidence(*np.array([[0], [1]]))[0] >= np.log(2 / CHANCE))


def _values(fine: BinMoments) -> AnyArray:
    """Cells whose rows share one value: many rows where nearby scores are rare."""
    rows = fine.weight if fine.integral else fine.effective_size
    padded = np.concatenate([[0.0] * (NEAR + 1), np.cumsum(fine.weight)])
    padded = np.concatenate([padded, [padded[-1]] * NEAR])
    beside = (padded[2 * NEAR + 1 :] - padded[: -2 * NEAR - 1] - fine.weight) / (2 * NEAR)
    return np.asarray((rows >= LEAST_ROWS) & (fine.weight >= TIMES * beside))


def _of_values(columns: FloatArray, fine: BinMoments) -> list[Region]:
    """Miscalibrated values, those too high together and those too low together."""
    number = columns.shape[1]
    runs = _Runs(np.concatenate([np.zeros((4, 1)), np.cumsum(columns, axis=1)], axis=1), fine.integral)
    at = np.arange(number)
    _, stated, observed = runs.of(at, at + 1)
    nats = runs.evidence(at, at + 1)
    off = nats >= np.log(2 * number / CHANCE)
    # Where any is wrong, the largest gap times rows is named from two standard deviations on.
    largest = int(np.abs(columns[2] - columns[1]).argmax())
    off[largest] |= bool(off.any() and nats[largest] >= 2)
    off &= columns[0] >= LEAST_SHARE * fine.weight.sum()
    found = []
    for side in (observed > stated, observed < stated):
        here = np.flatnonzero(off & side)
        if here.size:
            values = tuple(stated[here].tolist())
            found.append(_region(values[0], values[-1], columns[:, here].sum(axis=1), fine, values))
    return found


def _of_ranges(columns: FloatArray, apart: AnyArray, used: IntArray, fine: BinMoments) -> list[Region]:
    weight = columns[0]
    total, size = float(weight.sum()), float(weight.sum() if fine.integral else weight.sum() ** 2 / columns[3].sum())
    cells = int(np.clip(size / ROWS_A_CELL, 1, CELLS))
    # Equal masses, and single values.
    home = ((np.cumsum(weight) - weight / 2) / total * cells).astype(np.intp)
    change = (np.diff(home) > 0) | apart[1:] | apart[:-1]
    starts = np.concatenate([[0], np.flatnonzero(change) + 1])
    sums = np.add.reduceat(columns, starts, axis=1)
    runs = _Runs(np.concatenate([np.zeros((4, 1)), np.cumsum(sums, axis=1)], axis=1), fine.integral)
    edges = fine.edges.values
    stops = np.append(starts[1:], used.size)
    out = []
    alone = apart[starts] if weight[apart].sum() < NEARLY_ALL * total else np.zeros(len(starts), dtype=bool)
    for a, b in _merged(runs, _best(runs, alone)):
        low, high = float(edges[used[starts[a]]]), float(edges[used[stops[b - 1] - 1] + 1])
        if b - a == 1 and apart[starts[a]]:
            value = float(sums[1, a] / sums[0, a])
            out.append(_region(value, value, sums[:, a], fine, (value,)))
        else:
            ranged = _between(low, high, fine)
            if ranged is not None and (ranged.gap > 0) == runs.above(a, b):
                out.append(ranged)
    return out


def _best(runs: _Runs, alone: AnyArray) -> list[tuple[int, int]]:
    """Disjoint runs of cells with the most evidence beyond chance; some cells stay ``alone``."""
    m = len(alone)
    start, stop = np.triu_indices(m + 1, 1)
    before = np.concatenate([[0], np.cumsum(alone)])
    whole = (before[stop] == before[start]) | (stop == start + 1)
    start, stop = start[whole], stop[whole]
    often = m / (stop - start)
    # As many runs as long, times the number of lengths; neighbours of a run add a factor, by simulation.
    price = np.log(2 * BESIDE / CHANCE) + np.log(often) + np.log1p(np.log2(often))
    worth = np.full((m + 1, m + 1), -np.inf)
    worth[stop, start] = runs.evidence(start, stop) - price
    best, came = np.zeros(m + 1), np.zeros(m + 1, dtype=np.intp)
    for j in range(1, m + 1):
        sums = best[:j] + worth[j, :j]
        i = int(sums.argmax())
        best[j], came[j] = (sums[i], i) if sums[i] > best[j - 1] else (best[j - 1], -1)
    found, j = [], m
    while j > 0:
        if came[j] >= 0:
            found.append((int(came[j]), j))
            j = int(came[j])
        else:
            j -= 1
    return found[::-1]


def _merged(runs: _Runs, found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge neighbouring runs on one side if the cells between are on that side too, or few."""
    out: list[tuple[int, int]] = []
    for a, b in found:
        side, last = runs.above(a, b), out[-1] if out else (a, a)
        little = last[1] == a or 10 * (a - last[1]) <= b - last[0]
        if out and runs.above(*last) == side and (little or runs.above(last[1], a) == side):
            out[-1] = last[0], b
        else:
            out.append((a, b))
    return out


def _between(low: float, high: float, fine: BinMoments) -> Region | None:
    """The rows from one score to another, both rounded; None without any."""
    # Two decimals, or as many as tell the ends apart by two units.
    decimals = int(np.clip(np.ceil(-np.log10(max(high - low, 1e-9) / 2)), 2, 5))
    unit = 10.0**-decimals
    low, high = max(round(low / unit) * unit, 0.0), min(round(high / unit) * unit, 1.0)
    edges, width = fine.edges.values, 1e-9
    inside = (edges[1:] > low - width) & (edges[:-1] < high + width)
    # Only whole cells count as rows of a region: the rows of a cell beyond its ends are not known.
    whole = inside & (edges[:-1] >= low - width) & (edges[1:] <= high + width)
    sums = np.array([v[inside].sum() for v in (fine.weight, fine.score, fine.outcome)])
    if sums[0] <= 0:
        return None
    sums = np.append(sums, fine.square[whole].sum())
    found = _region(low, high, sums, fine)
    weight = float(fine.weight[whole].sum())
    rows = weight if fine.integral else weight**2 / sums[3] if sums[3] > 0 else 0.0
    return replace(found, rows=rows, decimals=decimals)


def _region(low: float, high: float, sums: FloatArray, fine: BinMoments, values: tuple[float, ...] = ()) -> Region:
    weight, score, outcome, square = (float(v) for v in sums)
    rows = weight if fine.integral else weight**2 / square if square > 0 else 0.0
    return Region(low, high, score / weight, outcome / weight, weight / float(fine.weight.sum()), rows, values)
