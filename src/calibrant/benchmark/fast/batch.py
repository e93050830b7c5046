"""`Batch`: R samples of one size, sorted by score, and what estimators can share of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..._types import AnyArray, FloatArray, IntArray
from ...problem import Problem
from .masses import NodeMasses

#: Cells of the coarse grid on which batches are smoothed (public estimators use 4096).
GRID_CELLS = 1024


class Runs(NamedTuple):
    """Runs of equal scores: their sample, first place there, rows, score and positives, each of shape (m,)."""

    row: IntArray
    place: IntArray
    size: IntArray
    score: FloatArray
    ones: IntArray

    def of(self, some: AnyArray) -> Runs:
        """Some of the runs."""
        return Runs(self.row[some], self.place[some], self.size[some], self.score[some], self.ones[some])


@dataclass(frozen=True, eq=False)
class Batch:
    """R samples of n scores and outcomes, each sorted by score.

    Attributes
    ----------
    scores : ndarray of shape (R, n)
        float64, ascending along the last axis.
    outcomes : ndarray of shape (R, n)
        0.0 or 1.0, in the same order; among equal scores, descending.
    domain : tuple of float
    eps : float
        Rounding unit of the scores as they arrived (see :attr:`calibrant.problem.Problem.eps`).
    kept : dict
        What several estimators need of the batch and one of them has made, by name.
    """

    scores: FloatArray
    outcomes: FloatArray
    domain: tuple[float, float] = (0.0, 1.0)
    eps: float = float(np.finfo(np.float64).eps)
    kept: dict[str, tuple[FloatArray, ...]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, scores: FloatArray, outcomes: AnyArray, domain: tuple[float, float] = (0.0, 1.0)) -> Batch:
        """Sort samples, shape (R, n), by score."""
        if scores.dtype == np.float32:
            return cls(*_sorted_together(scores, outcomes), domain, float(np.finfo(np.float32).eps))
        order = np.lexsort((1 - np.asarray(outcomes, dtype=np.int8), scores), axis=1)
        return cls(
            np.take_along_axis(scores, order, 1).astype(np.float64),
            np.take_along_axis(outcomes, order, 1).astype(np.float64),
            domain,
        )

    @property
    def n_samples(self) -> int:
        """Samples R."""
        return int(self.scores.shape[0])

    @property
    def size(self) -> int:
        """Rows n of each sample."""
        return int(self.scores.shape[1])

    def problems(self) -> Iterator[Problem]:
        """Each sample as a problem that public estimators read."""
        return (self.problem(i) for i in range(self.n_samples))

    def problem(self, i: int) -> Problem:
        """One sample as a problem."""
        return Problem(self.scores[i], self.outcomes[i], None, True, self.domain, self.eps)

    @cached_property
    def residuals(self) -> FloatArray:
        """``o - s``, shape (R, n)."""
        return self.outcomes - self.scores

    @cached_property
    def residual_sums(self) -> FloatArray:
        """Sums of the first i residuals, i = 0 … n, shape (R, n + 1)."""
        return running(self.residuals)

    @cached_property
    def first(self) -> AnyArray:
        """True where a score differs from the one before it (ties form one run), shape (R, n)."""
        out = np.ones(self.scores.shape, dtype=bool)
        np.not_equal(self.scores[:, 1:], self.scores[:, :-1], out=out[:, 1:])
        return out

    @cached_property
    def tied(self) -> bool:
        """Whether any sample has equal scores."""
        return not bool(self.first.all())

    @cached_property
    def run_end(self) -> IntArray:
        """Index behind the run of equal scores that each score belongs to, shape (R, n)."""
        end = np.full(self.scores.shape, self.size, dtype=np.intp)
        np.copyto(end[:, :-1], np.arange(1, self.size), where=self.first[:, 1:])
        return np.asarray(np.minimum.accumulate(end[:, ::-1], axis=1)[:, ::-1])

    @cached_property
    def runs(self) -> Runs:
        """Runs of equal scores, of all samples one after the other."""
        start = np.flatnonzero(self.first)
        size = np.diff(start, append=self.scores.size)
        ones = np.add.reduceat(self.outcomes.ravel(), start).astype(np.int64)
        return Runs(start // self.size, start % self.size, size, self.scores.ravel()[start], ones)

    @cached_property
    def grouped(self) -> bool:
        """Whether scores tie so much that runs are far fewer than rows."""
        return 4 * int(np.count_nonzero(self.first)) < self.scores.size

    @cached_property
    def masses(self) -> NodeMasses:
        """Samples on the nodes of the public grid, for what is smoothed over ranks."""
        return NodeMasses.of(self.scores, self.outcomes, self.domain)

    @cached_property
    def grid(self) -> tuple[FloatArray, FloatArray]:
        """Linear-binned counts of scores and of positives on ``GRID_CELLS`` cells, each (R, G + 1)."""
        return node_counts(self.scores, self.outcomes, self.domain, GRID_CELLS)

    def counts(self, cells: int, rows: AnyArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Linear-binned counts of scores and of positives of some rows (all by default), each (rows, cells + 1).

        Up to 1024 cells (a divisor of 1024) from :attr:`grid`: sharing twice is sharing once where the nodes of one
        grid are nodes of the other.
        """
        if cells > GRID_CELLS:
            scores, outcomes = (
                (self.scores, self.outcomes) if rows is None else (self.scores[rows], self.outcomes[rows])
            )
            return node_counts(scores, outcomes, self.domain, cells)
        count, positive = self.grid if rows is None else (self.grid[0][rows], self.grid[1][rows])
        return _coarsened(count, cells), _coarsened(positive, cells)


def running(values: FloatArray) -> FloatArray:
    """Sums of the first i values of each row, i = 0 … n."""
    out = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=out[:, 1:])
    return out


def node_counts(
    scores: FloatArray, outcomes: FloatArray, domain: tuple[float, float], cells: int
) -> tuple[FloatArray, FloatArray]:
    """Linear-binned counts of scores and of positives, each (R, cells + 1): as :class:`GridMoments`, row by row.

    Two histograms by (outcome, cell) are enough: samples a cell, and the sum of their offsets within it.
    """
    rows = len(scores)
    low, high = domain
    position = np.clip((scores - low) * (cells / (high - low)), 0, cells)
    cell: IntArray = position.astype(np.int32)
    position -= cell
    cell += (2 * (cells + 1)) * np.arange(rows, dtype=np.int32)[:, None]
    cell += (outcomes * (cells + 1)).astype(np.int32)
    index = cell.ravel().astype(np.intp)
    size = 2 * rows * (cells + 1)
    offset = np.bincount(index, position.ravel(), minlength=size).reshape(rows, 2, -1)
    mass = np.bincount(index, minlength=size).reshape(rows, 2, -1)
    by_outcome = np.asarray(mass - offset, dtype=np.float64)
    by_outcome[:, :, 1:] += offset[:, :, :-1]
    return by_outcome.sum(axis=1), by_outcome[:, 1]


def _coarsened(values: FloatArray, cells: int) -> FloatArray:
    """Counts (R, G + 1) shared linearly by every (G / cells)-th node."""
    factor = (values.shape[1] - 1) // cells
    if factor == 1:
        return values
    up = np.arange(factor) / factor
    inner = values[:, :-1].reshape(len(values), cells, factor)
    out: FloatArray = np.zeros((len(values), cells + 1))
    out[:, :-1] = inner @ (1 - up)
    out[:, 1:] += inner @ up
    out[:, -1] += values[:, -1]
    return out


def _sorted_together(scores: FloatArray, outcomes: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Samples sorted by score and falling outcome, in one key: float32 scores in [0, 1] leave a bit for the outcome.

    The bit patterns of numbers >= 0 are in their order, and those up to 1 fit in 30 bits.
    """
    key = (scores + np.float32(0)).view(np.uint32) << np.uint32(1)  # + 0 makes -0.0 a 0.0
    key |= 1 - outcomes.astype(np.uint32)
    key.sort(axis=1)
    scores = (key >> np.uint32(1)).view(np.float32).astype(np.float64)
    return scores, (1 - (key & np.uint32(1))).astype(np.float64)
