"""`SubgroupCells`: the rows of many subgroups in fine cells of the score, the input of their tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from ...data.problem import Problem
from ...data.types import AnyArray, FloatArray, IntArray
from ...data.weights import ones_or, run_starts
from ...measure.sums_by_class import FINE_CELLS

#: Cells beyond which smooth functions of the score are summed over coarser ones, and number of these per unit of the
#: log-odds: the mean of such a function then changes by at most 3e-6.
_MANY, _IN_A_UNIT = 1 << 17, 40
#: Rows whose keys are computed at a time.
_TILE = 1 << 16
#: Numbers in a table of cells that is processed at a time.
_TABLE = 1 << 18
#: Most cells per row that are summed in a table of all; with more, rows are sorted.
_DENSE = 2
#: Most subgroups whose sums are computed together, and most cells that they may have.
_TOGETHER, _CELLS_TOGETHER = 64, 1 << 19


class CellTable(NamedTuple):
    """Cells of some subgroups side by side, (R, m); those with fewer cells end with empty ones, of weight 0.

    ``at`` (R,) gives their indices among all subgroups; see :class:`SubgroupCells` for the rest.
    """

    at: IntArray
    scores: FloatArray
    weights: FloatArray
    outcomes: FloatArray
    times: FloatArray
    last: AnyArray
    groups: IntArray | None
    design: FloatArray
    integral: bool
    scale: FloatArray | None

    @property
    def total(self) -> FloatArray:
        """Sum of weights, (R,)."""
        return np.asarray(self.weights.sum(axis=-1))

    @property
    def residual(self) -> FloatArray:
        """Weighted outcomes minus scores, (R, m)."""
        return self.weights * (self.outcomes - self.scores)

    @property
    def variance(self) -> FloatArray:
        """Variance of each subgroup's sum of residuals if it is calibrated, (R,)."""
        return np.asarray((self.times * self.scores * (1 - self.scores)).sum(axis=-1))

    def where(self, some: AnyArray) -> CellTable:
        """Some of the subgroups."""
        fields: list[Any] = [v[some] if isinstance(v, np.ndarray) else v for v in self]
        return CellTable(*fields)


@dataclass(frozen=True, eq=False)
class SubgroupCells:
    """Rows of subgroups in 65536 cells of the score: one subgroup after the other, scores ascending.

    The cells are those of an :class:`Accumulator`'s fine histogram, so rows and the sums of a frame give the same
    results. Dependent rows are not summed: each has its own cell.

    Attributes
    ----------
    starts : ndarray of shape (G + 1,)
        Where the cells of each subgroup begin, and the end of the last one's.
    scores, outcomes : ndarray of shape (E,)
        Mean score, and mean outcome, of a cell's rows.
    weights, times : ndarray of shape (E,)
        Sum of weights, and of their squares, which enter variances (for repeats, the weights again).
    last : ndarray of bool, shape (E,)
        Whether the next one is in another cell of the score: rows within a cell have no order.
    integral : bool
        Whether weights count repeats.
    groups : ndarray of shape (E,) or None
        Code of the group of dependent rows.
    design : ndarray of shape (G,)
        Design effect of each subgroup's mean residual.
    scale : ndarray of shape (G,) or None
        Scale of residuals whose signs are drawn (see :class:`.GroupSigns`), if cells contain several rows of a group.
    """

    starts: IntArray
    scores: FloatArray
    weights: FloatArray
    outcomes: FloatArray
    times: FloatArray
    last: AnyArray
    integral: bool
    groups: IntArray | None
    design: FloatArray
    scale: FloatArray | None = None

    @classmethod
    def of_sums(
        cls,
        n_subgroups: int,
        key: IntArray,
        score: FloatArray,
        positive: FloatArray,
        weight: FloatArray | None,
        square: FloatArray | None,
    ) -> SubgroupCells:
        """From sums of rows by keys ``subgroup · cells + cell``: of scores, outcomes, weights and their squares.

        Weights are None if all are 1, squares are None if weights count repeats.
        """
        size = n_subgroups * FINE_CELLS
        if size <= _DENSE * key.size:
            every = np.bincount(key, minlength=size)
            used: AnyArray = np.flatnonzero(every)
            number: AnyArray = every[used]

            def added(values: FloatArray) -> FloatArray:
                return np.asarray(np.bincount(key, values, size)[used], dtype=np.float64)
        else:
            order = np.argsort(key)
            first = run_starts(key[order]) if key.size else np.empty(0, np.intp)
            used, number = key[order][first], np.diff(first, append=key.size)

            def added(values: FloatArray) -> FloatArray:
                return np.asarray(np.add.reduceat(values[order], first) if first.size else values)

        total: FloatArray = number.astype(np.float64) if weight is None else added(weight)
        starts = np.searchsorted(used, np.arange(n_subgroups + 1) * FINE_CELLS)
        times = total if square is None else added(square)
        each, design = np.ones(used.size, dtype=bool), np.ones(n_subgroups)
        means = added(score) / total, added(positive) / total
        return cls(starts, means[0], total, means[1], times, each, square is None, None, design)

    @classmethod
    def of_rows(
        cls, problem: Problem, groups: IntArray | None = None, design: FloatArray | None = None
    ) -> SubgroupCells:
        """From rows, one subgroup after the other; for rows in groups, with the design effect of each subgroup."""
        if groups is None or design is None:
            # Cells of a few subgroups at a time stay in the cache.
            parts = [cls._of_part(part) for part in problem.tiles()]
            return parts[0] if len(parts) == 1 else cls._together(parts)
        s, o = _plain(problem)
        key = cell_keys(problem.row, problem.scores)
        order = np.argsort(key, kind="stable")
        key, w = key[order], ones_or(problem.weights, s.size)[order]
        last = np.append(key[1:] != key[:-1], True)
        times = w if problem.integral else w * w
        return cls(problem.bounds, s[order], w, o[order], times, last, problem.integral, groups[order], design)

    @classmethod
    def _of_part(cls, problem: Problem) -> SubgroupCells:
        s, o = _plain(problem)
        w = problem.weights
        square = None if w is None or problem.integral else w * w
        key = cell_keys(problem.row, problem.scores)
        return cls.of_sums(len(problem), key, s if w is None else w * s, o if w is None else w * o, w, square)

    @classmethod
    def _together(cls, parts: Sequence[SubgroupCells]) -> SubgroupCells:
        """Cells of independent rows, subgroups one after the other."""
        starts = np.cumsum([0, *(size for part in parts for size in np.diff(part.starts).tolist())])
        one = parts[0]
        names = ("scores", "weights", "outcomes", "last", *(() if one.times is one.weights else ("times",)))
        fields: Iterator[Any] = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        s, w, o, last, *times = fields
        return cls(starts, s, w, o, times[0] if times else w, last, one.integral, None, np.ones(starts.size - 1))

    @cached_property
    def coarse(self) -> SubgroupCells:
        """The same rows for sums of smooth functions of the score."""
        return self.coarser()

    def coarser(self, above: int = _MANY, in_a_unit: int = _IN_A_UNIT) -> SubgroupCells:
        """The same rows for sums of smooth functions of the score: neighbours are pooled ``above`` this many cells.

        ``in_a_unit``: number of pooled cells per unit of the log-odds.
        """
        if self.groups is not None or self.scores.size <= above:
            return self
        # A few subgroups at a time stay in the cache.
        parts = [self._coarser(some, coarse_cells(in_a_unit)) for some in self.slices()]
        return replace(SubgroupCells._together(parts), design=self.design)

    def _coarser(self, some: slice, coarse: IntArray) -> SubgroupCells:
        starts, cells = self._cells(some)
        score, weight, outcome, times = (v[cells] for v in (self.scores, self.weights, self.outcomes, self.times))
        place = np.maximum(np.ceil(score * FINE_CELLS).astype(np.intp), 1) - 1
        first = run_starts(np.repeat(np.arange(starts.size - 1), np.diff(starts)) * FINE_CELLS + coarse[place])
        total = np.add.reduceat(weight, first)
        score, outcome = (np.add.reduceat(weight * v, first) / total for v in (score, outcome))
        times = total if self.integral else np.add.reduceat(times, first)
        starts, each = np.searchsorted(first, starts), np.ones(first.size, dtype=bool)
        return SubgroupCells(starts, score, total, outcome, times, each, self.integral, None, self.design[some])

    @property
    def n_subgroups(self) -> int:
        """Number of subgroups G."""
        return self.starts.size - 1

    @property
    def subgroup(self) -> IntArray:
        """The subgroup of each cell, (E,)."""
        return np.repeat(np.arange(self.n_subgroups), np.diff(self.starts))

    def added(self, values: FloatArray) -> FloatArray:
        """Sums of values (E, …) over the cells of each subgroup; all subgroups have cells."""
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=0))

    @property
    def size(self) -> FloatArray:
        """Effective sample size of each subgroup, (G,)."""
        total = self.added(self.weights)
        return total if self.integral else total**2 / self.added(self.times)

    def _cells(self, some: slice) -> tuple[IntArray, slice]:
        """Where each of some subgroups begins among their cells, and the last ends; and the slice of these cells."""
        starts = self.starts[some.start : some.stop + 1]
        return starts - starts[0], slice(int(starts[0]), int(starts[-1]))

    def brier(self) -> FloatArray:
        """Brier score of each subgroup, (G,), for outcomes that are 0 or 1."""
        out = np.empty(self.n_subgroups)
        for some in self.slices():
            starts, cells = self._cells(some)
            s, w, o = (v[cells] for v in (self.scores, self.weights, self.outcomes))
            squares, weight = (np.add.reduceat(v, starts[:-1]) for v in (w * (o * (1 - 2 * s) + s**2), w))
            out[some] = squares / weight
        return out

    def slices(self) -> Iterator[slice]:
        """Neighbouring subgroups whose sums are computed together, the same for rows and for the sums of a frame."""
        first = 0
        while first < self.n_subgroups:
            room = int(np.searchsorted(self.starts, self.starts[first] + _CELLS_TOGETHER, side="right")) - 1
            last = min(max(room, first + 1), first + _TOGETHER, self.n_subgroups)
            yield slice(first, last)
            first = last

    def as_rows(self, some: slice, domain: tuple[float, float]) -> Problem:
        """Rows of some subgroups, as far as known: positives and negatives of each cell at its mean score."""
        starts, cells = self._cells(some)
        weight, outcome = self.weights[cells], self.outcomes[cells]
        # Weights are sums over rows, whose squares say nothing: as many rows as say the same are taken instead.
        if not self.integral:
            weight = weight * np.repeat((self.size / self.added(self.weights))[some], np.diff(self.starts)[some])
        both = np.stack([weight * outcome, weight * (1 - outcome)], axis=-1).reshape(-1)
        score = np.repeat(np.clip(self.scores[cells], *domain), 2)
        used = both > 0
        starts = np.concatenate([[0], np.cumsum(used)])[2 * starts]
        outcomes = np.tile([1.0, 0.0], weight.size)
        return Problem(score[used], outcomes[used], both[used], True, domain, starts=starts)

    def tables(self, numbers: int = _TABLE) -> Iterator[CellTable]:
        """Subgroups with similar numbers of cells, as many at a time as fill a table of ``numbers``."""
        counts = np.diff(self.starts)
        order = np.argsort(counts, kind="stable")
        first = 0
        while first < order.size:
            # The largest comes last: as many as fit beside it.
            fits = np.arange(1, order.size - first + 1) * counts[order[first:]] <= numbers
            some = max(1, int(np.argmin(fits)) if not fits.all() else fits.size)
            yield self._table(order[first : first + some], counts)
            first += some

    def _table(self, at: IntArray, counts: IntArray) -> CellTable:
        place = np.arange(int(counts[at].max()))
        held = place < counts[at][:, None]
        index = np.where(held, self.starts[at][:, None] + place, 0)
        half = np.where(held, self.scores[index], 0.5)
        weights, outcomes, times = (np.where(held, v[index], 0.0) for v in (self.weights, self.outcomes, self.times))
        groups = None if self.groups is None else np.where(held, self.groups[index], 0)
        last = held & self.last[index]
        scale = None if self.scale is None else self.scale[at]
        return CellTable(at, half, weights, outcomes, times, last, groups, self.design[at], self.integral, scale)


def cell_keys(subgroup: IntArray, scores: FloatArray, coarse: IntArray | None = None) -> IntArray:
    """Key ``subgroup · cells + cell`` of each row; cells are closed on the right, and scaling them does not round.

    ``coarse``: cells to use instead of the fine ones, see :func:`coarse_cells`.
    """
    out = np.empty(scores.size, dtype=np.int64)
    size = FINE_CELLS if coarse is None else int(coarse[-1]) + 1
    for start in range(0, scores.size, _TILE):
        some = slice(start, start + _TILE)
        cell = np.maximum(np.ceil(scores[some] * scores.dtype.type(FINE_CELLS)).astype(np.int64), 1) - 1
        np.multiply(subgroup[some], size, out=out[some], casting="unsafe")
        out[some] += cell if coarse is None else coarse[cell]
    return out


def counts_of(key: IntArray, outcomes: AnyArray, size: int = 0) -> FloatArray:
    """Number of rows with each key, and their sums of outcomes, (2, size or more); one pass if outcomes are 0 or 1."""
    size = max(size, int(key.max(initial=-1)) + 1)
    if outcomes.dtype.kind == "f":
        return np.stack([np.bincount(key, minlength=size), np.bincount(key, outcomes, size)])
    without, having = np.bincount(2 * key + outcomes, minlength=2 * size).reshape(-1, 2).T.astype(np.float64)
    return np.stack([without + having, having])


def _plain(problem: Problem) -> tuple[FloatArray, FloatArray]:
    return problem.scores.astype(np.float64, copy=False), np.asarray(problem.outcomes, dtype=np.float64)


@cache
def coarse_cells(in_a_unit: int = _IN_A_UNIT) -> IntArray:
    """Coarse cell that contains each fine cell: equal steps of the log-odds, about 900 by default."""
    middle = (np.arange(FINE_CELLS) + 0.5) / FINE_CELLS
    step = np.floor(np.log(middle / (1 - middle)) * in_a_unit)
    return np.cumsum(np.diff(step, prepend=step[0]) > 0)


def binomials(weights: FloatArray, times: FloatArray, *, integral: bool) -> tuple[IntArray, FloatArray]:
    """Number of outcomes in each cell, and the weight of each: 1 for repeats, else by Kish's number."""
    rows = weights if integral else np.divide(weights**2, times, out=np.zeros(times.shape), where=times > 0)
    trials = np.rint(rows).astype(np.intp)
    return trials, np.sqrt(times / np.maximum(trials, 1))
