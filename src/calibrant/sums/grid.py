"""`GridMoments`: linear-binned counts of scores and of positives, sufficient for density estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from ..data.checks import is_real
from ..data.fields import need, need_within
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from ..data.weights import are_binary, ones_or
from .base import Sums, as_often, common, located, number_as_often, summed
from .rank_axis import RANK_CELLS, RankMoments

#: Grid cells over the domain; on [0, 1] the step is 0.00024, finer than the published code's 0.00037.
GRID_CELLS = 4096
#: Cells of the grid from which all coarser ones are made.
_FINE_CELLS = 1024
#: Up to this many rows a problem is sorted to find its nodes in use; with more rows a dense histogram is made.
_FEW = 1024
_TILE = 1 << 15


@dataclass(frozen=True, eq=False)
class GridMoments(Sums):
    """Counts on the nodes of a regular grid, with each sample shared by its two nearest nodes.

    Leading axes (…) are problems side by side: none for one problem, (R,) for many.

    Attributes
    ----------
    low, high : float
        Domain of the scores.
    count, positive : ndarray of shape (…, m)
        ``Σ w a`` and ``Σ w a o`` with the linear share ``a`` of a sample at a node: a sample between two
        nodes is shared in proportion to its nearness to each, which keeps the mean score exact.
    total, squares : float, or ndarray of shape (…)
        ``Σ w`` and ``Σ w²``.
    n_samples : int, or ndarray of shape (…)
        Number of rows.
    integral : bool
        Whether all weights were whole numbers.
    node : ndarray of shape (…, m) or None
        Nodes of the counts, ascending, if only those in use are kept (problems with fewer nodes are padded with
        empty ones); None for all nodes, m = G + 1.
    cells : int
        Number G of cells of the grid.
    parts : ndarray of shape (…, 5) or None
        For rows in groups, ``squares`` for each design effect of parts of the residuals; see :class:`.base.Shared`.
    blocks : int
        Number of consecutive repetitions of the same counts, with different positives.

    See Also
    --------
    calibrant.estimators.Grid : The specification used by estimators.
    calibrant.estimators.BinMoments : Sums per bin.

    Notes
    -----
    Grids with the same domain and size add, so data can come in any batches, and a bootstrap can resample the counts
    instead of the rows. Thirty rows use at most sixty nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data.problem import Problem
    >>> from calibrant.estimators import GridMoments
    >>> sums = GridMoments.of(Problem(np.array([0.2, 0.9]), np.array([0, 1])), cells=4)
    >>> sums.count.round(1).tolist(), sums.positive.round(1).tolist()
    ([0.2, 0.8, 0.0, 0.4, 0.6], [0.0, 0.0, 0.0, 0.4, 0.6])
    """

    low: float
    high: float
    count: Annotated[FloatArray, summed("m")]
    positive: Annotated[FloatArray, summed("m")]
    total: Annotated[Any, summed()] = 0.0
    squares: Annotated[Any, summed()] = 0.0
    n_samples: Annotated[Any, summed(low=0, kinds="i")] = 0
    integral: Annotated[bool, common()] = True
    node: Annotated[IntArray | None, located("m", low=0, kinds="i")] = None
    cells: int = 0
    blocks: int = 1
    parts: Annotated[FloatArray | None, summed("5", low=0)] = None

    def __post_init__(self) -> None:
        if self.node is None:
            object.__setattr__(self, "cells", self.count.shape[-1] - 1)

    @classmethod
    def empty(cls, domain: tuple[float, float] = (0.0, 1.0), cells: int = GRID_CELLS) -> GridMoments:
        """Counts without samples."""
        zero = np.zeros(cells + 1)
        return cls(float(domain[0]), float(domain[1]), zero, zero)

    @classmethod
    def of(cls, problem: Problem, cells: int = GRID_CELLS) -> GridMoments:
        """Counts of the samples of one or many problems. Cost O(n + G), for few rows O(n log n)."""
        p = problem
        if p.weights is None:
            total = squares = p.counts.astype(np.float64)
        else:
            total = np.array([float(one.sum()) for one in np.split(p.weights, p.bounds[1:-1])])
            squares = np.array([float(one @ one) for one in np.split(p.weights, p.bounds[1:-1])])
        if p.design is not None:
            squares = (total if p.integral else squares) * p.designs
        if not p.shape:
            count, positive = dense_counts(p, cells)
            return cls(
                *p.domain,
                count[0],
                positive[0],
                float(total[0]),
                float(squares[0]),
                p.n_samples,
                p.counted,
                parts=p.parts,
            )
        node, count, positive = _on_nodes(p, cells)
        return cls(*p.domain, count, positive, total, squares, p.counts, p.counted, node, cells, parts=p.parts)

    def __getitem__(self, index: Any) -> GridMoments:
        """Counts of one of many problems, on all nodes, or of some problems."""
        fields = self._fields_at(index)
        if isinstance(index, (int, np.integer)):
            plain = {name: fields[name].item() for name in ("total", "squares", "n_samples")}
            return replace(self, blocks=1, **fields | plain).dense
        some = replace(self, blocks=1, **fields)
        if "_fine" in self.__dict__ and index is not None:
            some.__dict__["_fine"] = tuple(v[index] for v in self._fine)
        return some

    @property
    def shape(self) -> tuple[int, ...]:
        """() for one problem, (R,) for many."""
        return self.count.shape[:-1]

    @property
    def dense(self) -> GridMoments:
        """Counts on all nodes."""
        if self.node is None:
            return self
        size, rows = self.cells + 1, int(np.prod(self.shape))
        index = (self.node.reshape(rows, -1) + (size * np.arange(rows))[:, None]).reshape(-1)
        tables: list[Any] = [
            np.bincount(index, v.reshape(-1), minlength=rows * size).reshape(*self.shape, size)
            for v in (self.count, self.positive)
        ]
        return replace(self, count=tables[0], positive=tables[1], node=None)

    def __add__(self, other: GridMoments) -> GridMoments:
        if not isinstance(other, GridMoments):
            return NotImplemented
        one = self.dense
        return replace(one, **one._merged(other.dense))

    @property
    def step(self) -> float:
        """Distance between nodes."""
        return (self.high - self.low) / self.cells

    @cached_property
    def place(self) -> IntArray:
        """Index of each node, (m,) or (…, m)."""
        return np.arange(self.cells + 1) if self.node is None else self.node

    @cached_property
    def nodes(self) -> FloatArray:
        """Scores of the nodes, (m,) or (…, m)."""
        nodes = np.linspace(self.low, self.high, self.cells + 1)
        return nodes if self.node is None else nodes[self.node]

    @property
    def effective_size(self) -> Any:
        """Sample size: rows, repeats, or Kish's effective size for relative weights."""
        if self.integral:
            return self.total
        total, squares = np.asarray(self.total), np.asarray(self.squares)
        size = np.divide(total**2, squares, out=np.zeros(total.shape), where=squares > 0)
        return size if self.shape else float(size)

    @property
    def unit(self) -> Any:
        """Effective sample size per unit of weight, (…)."""
        total = np.asarray(self.total)
        scale = np.divide(self.effective_size, total, out=np.zeros(total.shape), where=total > 0)
        return scale if self.shape else float(scale)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of the resampled units: of the nodes, in units of the effective sample size."""
        unit = np.asarray(self.unit)[..., None]
        return self.nodes, self.count * unit, self.positive * unit

    def resampled(self, count: FloatArray, positive: FloatArray) -> GridMoments:
        """Counts with other samples (R, m) and positives (b R, m) on these nodes, in b blocks of the same samples.

        Many problems have equally many samples each, one problem after the other.
        """
        blocks = len(positive) // len(count)
        n = np.tile(number_as_often(self.n_samples, count), blocks)
        node = None if self.node is None else np.tile(as_often(self.node, count), (blocks, 1))
        count = np.tile(count, (blocks, 1)) if blocks > 1 else count
        total = count.sum(axis=-1)
        return GridMoments(self.low, self.high, count, positive, total, total, n, True, node, self.cells, blocks)

    def on(self, cells: int) -> GridMoments:
        """Counts on all nodes of a coarser grid with a subset of these nodes; the result is that of direct sharing."""
        if cells == self.cells:
            return self.dense
        if cells <= _FINE_CELLS < self.cells:
            count, positive = (v if cells == _FINE_CELLS else fold(v, cells) for v in self._fine)
        elif self.node is None:
            count, positive = fold(self.count, cells), fold(self.positive, cells)
        else:
            count, positive = self._spread(cells)
        return replace(self, count=count, positive=positive, node=None)

    @cached_property
    def _fine(self) -> tuple[FloatArray, FloatArray]:
        """Counts and positives on the grid from which all coarser ones are made."""
        if self.node is None:
            return fold(self.count, _FINE_CELLS), fold(self.positive, _FINE_CELLS)
        return self._spread(_FINE_CELLS)

    def _spread(self, cells: int) -> tuple[FloatArray, FloatArray]:
        factor = self.cells // cells
        cell, up = np.divmod(self.place, factor)
        return share_out(cell, up / factor, self.count, cells), share_out(cell, up / factor, self.positive, cells)

    def shortest(self, reach: AnyArray | float, least: int) -> IntArray:
        """Cells (R,) of the shortest lower half, quarter, … of the grid that is sufficient for each problem.

        It has at least ``least`` cells; nodes beyond it are empty, and so are those within ``reach`` steps of its end.
        Kernels of at most that reach smooth both alike. With a thousand classes, most scores lie in a small part of
        [0, 1].
        """
        used = np.where(self.count > 0, self.place, 0).max(axis=-1, initial=0)
        wanted = np.maximum(used + 1 + reach, least)
        size = np.full(used.shape, self.cells)
        while (shorter := (size % 2 == 0) & (size // 2 >= wanted)).any():
            size[shorter] //= 2
        return size

    def cropped(self, cells: int) -> GridMoments:
        """Counts on all nodes of the first cells of the grid, beyond which all nodes are empty."""
        whole = self.dense
        some: dict[str, Any] = {f: getattr(whole, f)[..., : cells + 1] for f in ("count", "positive")}
        return replace(whole, high=self.low + cells * self.step, cells=cells, **some)

    @cached_property
    def ranked(self) -> RankMoments:
        """The samples by rank instead of score."""
        g = self.rows
        unit = np.asarray(g.unit)[:, None]
        count, positive = g.count * unit, g.positive * unit
        total = np.maximum(count.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        rank = (np.cumsum(count, axis=-1) - count / 2) / total
        position = np.clip(rank, 0, 1) * RANK_CELLS
        cell = np.minimum(position.astype(np.intp), RANK_CELLS - 1)
        position -= cell
        parts = [share_out(cell, position, v, RANK_CELLS) for v in (count, positive, g.nodes * count)]
        if not self.shape:
            parts = [v[0] for v in parts]
        return RankMoments(parts[0], parts[1], parts[2], self.effective_size, self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain lists and numbers, for JSON."""
        return {"low": self.low, "high": self.high} | super(GridMoments, self.dense).to_dict()

    @classmethod
    def _named(cls, data: dict[str, Any]) -> GridMoments:
        low, high = data.pop("low"), data.pop("high")
        need(is_real(low) and is_real(high), "low and high must be numbers")
        need(np.size(data["count"]) > 1, "count must have one number per node")
        return cls.empty((low, high), np.size(data["count"]) - 1)

    def in_groups(self, effects: FloatArray, each: FloatArray) -> GridMoments:
        """Counts of rows in groups, by design effects (R, 5); ``each`` (R,) are variance sums of independent rows."""
        parts = each[:, None] * effects
        return replace(self, squares=parts[:, 0], integral=False, parts=parts)

    def check(self) -> None:
        """Raise ValueError unless these are possible counts of rows."""
        super().check()
        total, nodes = np.asarray(self.total), self.count.shape[-1]
        need(0 <= self.low < self.high <= 1, "low and high must satisfy 0 <= low < high <= 1")
        if self.node is None:
            need(nodes == self.cells + 1, "count must have one number per node")
        else:
            need(self.node <= self.cells, "node must be one of the grid's")
        need_within("positive", self.positive, self.count)
        need(np.isclose(self.count.sum(axis=-1), total, rtol=1e-6, atol=1e-9), "count must add up to total")
        need_within("squares", np.asarray(self.squares), total**2)


@dataclass(frozen=True)
class Grid:
    """Specification of linear-binned counts of scores and of positives.

    See Also
    --------
    calibrant.estimators.GridMoments : The sums.
    calibrant.estimators.DistinctScores : Sums per distinct score.

    Examples
    --------
    >>> from calibrant.estimators import Density, Grid
    >>> Density()._needs((0.0, 1.0)) == Grid()
    True
    """

    def of(self, problem: Problem) -> GridMoments:
        """Counts of a problem's samples."""
        return GridMoments.of(problem)


def fold(values: FloatArray, cells: int) -> FloatArray:
    """Share counts (…, G + 1) linearly between every (G / cells)-th node."""
    factor = (values.shape[-1] - 1) // cells
    up = np.arange(factor) / factor
    inner = values[..., :-1].reshape(*values.shape[:-1], cells, factor)
    out: FloatArray = np.zeros((*values.shape[:-1], cells + 1))
    out[..., :-1] = inner @ (1 - up)
    out[..., 1:] += inner @ up
    out[..., -1] += values[..., -1]
    return out


def share_out(cell: IntArray, up: FloatArray, values: FloatArray, cells: int) -> FloatArray:
    """Values (…, m) at ``cell + up`` on a regular grid, each shared by the two nearest of its nodes, (…, cells + 1)."""
    shape = values.shape[:-1]
    rows = int(np.prod(shape))
    width = cells + 2
    index = np.broadcast_to(cell, values.shape).reshape(rows, -1) + (width * np.arange(rows))[:, None]
    flat, above = values.reshape(-1), (values * up).reshape(-1)
    index = index.reshape(-1)
    out = np.bincount(index, flat - above, minlength=rows * width)
    out[1:] += np.bincount(index, above, minlength=rows * width)[:-1]
    return np.asarray(out.reshape(*shape, width)[..., : cells + 1], dtype=np.float64)


def positions(scores: FloatArray, domain: tuple[float, float], cells: int) -> FloatArray:
    """Scores in grid steps from the lower end of their domain."""
    low, high = domain
    position = scores.astype(np.float64)
    if low != 0.0:
        position -= low
    position *= cells / (high - low)
    if low != 0.0:
        np.clip(position, 0, cells, out=position)
    return position


def dense_counts(p: Problem, cells: int) -> tuple[FloatArray, FloatArray]:
    """Linear-binned counts of all samples and of the positives, each (R, G + 1).

    Two histograms by (problem, outcome, cell) are enough: the number of samples in a cell and the sum of their
    offsets within it, since a cell with m samples of offset sum f gives m - f to its left node and f to its right.
    """
    if not are_binary(p.outcomes):
        position = positions(p.scores, p.domain, cells)
        cell = position.astype(np.intp)
        w = ones_or(p.weights, p.n_samples)
        shared = [
            share_out(cell[a:b], position[a:b] - cell[a:b], np.stack([w[a:b], (w * p.outcomes)[a:b]]), cells)
            for a, b in pairwise(p.bounds.tolist())
        ]
        count, positive = np.stack(shared, axis=1)
        return count, positive
    size = cells + 1
    mass, offset = np.zeros((2, len(p), 2 * size))
    for i in range(len(p)):
        start, end = int(p.bounds[i]), int(p.bounds[i + 1])
        for a in range(start, end, _TILE):
            rows = slice(a, min(a + _TILE, end))
            position = positions(p.scores[rows], p.domain, cells)
            cell = position.astype(np.int32)
            position -= cell
            cell += np.multiply(p.outcomes[rows], size, dtype=np.int32, casting="unsafe")
            index = cell.astype(np.intp)
            if p.weights is None:
                mass[i] += np.bincount(index, minlength=2 * size)
            else:
                w = p.weights[rows]
                mass[i] += np.bincount(index, w, minlength=2 * size)
                position *= w
            offset[i] += np.bincount(index, position, minlength=2 * size)
    mass -= offset
    by_outcome = mass.reshape(-1, 2, size)
    by_outcome[..., 1:] += offset.reshape(-1, 2, size)[..., :-1]
    return by_outcome.sum(axis=1), by_outcome[:, 1]


def _on_nodes(p: Problem, cells: int) -> Any:
    """Nodes in use of many problems, and the counts on them, all (R, m). The method depends on each problem's rows."""
    few = p.counts <= _FEW
    if few.all():
        return padded(len(p), *_sparse_counts(p, cells))
    large = np.flatnonzero(~few)
    dense = [dense_counts(p[i : i + 1], cells) for i in large.tolist()]
    used = [np.flatnonzero(count[0]) for count, _ in dense]
    row = np.repeat(large, [u.size for u in used])
    flat: list[Any] = [row, np.concatenate(used)]
    flat += [np.concatenate([d[k][0, u] for d, u in zip(dense, used, strict=True)]) for k in (0, 1)]
    if few.any():
        first, *rest = _sparse_counts(p, cells, few)
        flat = [np.concatenate(both) for both in zip(flat, (first, *rest), strict=True)]
        order = np.argsort(flat[0], kind="stable")
        flat = [values[order] for values in flat]
    return padded(len(p), *flat)


def padded(rows: int, row: IntArray, node: IntArray, *values: FloatArray) -> Any:
    """Convert flat values with ascending row numbers to tables (rows, m), empty after the last value of a row."""
    size = np.bincount(row, minlength=rows)
    m = int(size.max(initial=0))
    at = np.arange(row.size) - np.repeat(np.cumsum(size) - size, size) + row * m
    out = []
    for v in (node, *values):
        table = np.zeros(rows * m, dtype=v.dtype)
        table[at] = v
        out.append(table.reshape(rows, m))
    if (size < m).any():  # empty nodes behind the last: the last one again, so that nodes ascend
        last = np.take_along_axis(out[0], np.maximum(size - 1, 0)[:, None], 1)
        out[0] = np.where(np.arange(m) < size[:, None], out[0], last)
    return tuple(out)


def _sparse_counts(
    p: Problem, cells: int, some: AnyArray | None = None
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Problem, node, count and positives of every node in use, for problems with few rows, from sorted rows."""
    q = p.ordered
    s, o, w, row = q.scores, q.outcomes, q.weights, q.row
    if some is not None:
        kept = some[row]
        s, o, w, row = s[kept], o[kept], None if w is None else w[kept], row[kept]
    nothing: tuple[IntArray, IntArray, FloatArray, FloatArray]
    if not s.size:
        nothing = np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0), np.empty(0)
        return nothing
    x = positions(s, p.domain, cells)
    cell = x.astype(np.int32)
    x -= cell
    key = row * (cells + 2) + cell
    first = np.ones(s.size, dtype=bool)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    at = np.flatnonzero(first)
    hit, miss = (o, 1 - o) if w is None else (w * o, w * (1 - o))
    # By outcome, and nodes from below first: the order in which a dense histogram adds.
    mass1, mass0, up1, up0 = (np.add.reduceat(v, at) for v in (hit, miss, hit * x, miss * x))
    key = key[at]
    apart = np.ones(at.size, dtype=np.intp)
    apart[0] = 0
    apart[1:] += key[1:] != key[:-1] + 1
    left = np.cumsum(
        apart
    )  # the node below a cell; the node above is the next place, shared where the next cell is used
    nodes = int(left[-1]) + 2
    node = np.zeros(nodes, dtype=np.intp)
    node[left], node[left + 1] = key, key + 1
    zeros, ones = np.zeros(nodes), np.zeros(nodes)
    zeros[left], ones[left] = mass0 - up0, mass1 - up1
    zeros[left + 1] += up0
    ones[left + 1] += up1
    zeros += ones
    used = np.flatnonzero(zeros)
    number, place = np.divmod(node[used], cells + 2)
    return number, place, zeros[used], ones[used]
