"""Sums over a function of the score: distinct scores if they are few, otherwise counts on a regular grid of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from ..data.fields import need
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from ..data.weights import ones_or
from ..sums import DistinctScores, Runs
from ..sums.base import Sums, common, located, summed
from ..sums.grid import share_out
from ..sums.logistic_fit import expit, logits_of

_FIELDS = ("scores", "mass", "square")


@dataclass(frozen=True)
class Angles:
    """Specification of sums over θ, with ``score = sin² θ``.

    A Beta kernel at z, of standard deviation ``√(h z (1-z))``, has width ``√h / 2`` everywhere over θ, so a grid that
    is regular in θ resolves all kernels equally well.
    """

    #: Cells of the grid, and the number of samples up to which no grid is used.
    cells: ClassVar[int] = 2048
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = np.pi / 2

    def of(self, problem: Problem) -> AxisCounts:
        """Sums of a problem's samples."""
        return AxisCounts.of(problem, self)

    def held(self, scores: FloatArray) -> FloatArray:
        """Scores as counted."""
        return scores

    def places(self, scores: FloatArray) -> FloatArray:
        """θ of scores."""
        return np.asarray(np.arcsin(np.sqrt(np.clip(scores, 0, 1))))

    def nodes(self, cells: int) -> FloatArray:
        """Scores of a regular grid."""
        return np.asarray(np.sin(np.arange(cells + 1) * (self.high / cells)) ** 2)


@dataclass(frozen=True)
class Logits:
    """Specification of sums over the logit, of scores clipped to [eps, 1 - eps].

    Unlike a grid of scores it is fine near 0 and 1, where logits differ most. Sharing a sample between its two
    nearest nodes preserves ``Σ o ℓ`` and ``Σ ℓ``, on which likelihoods of logit maps depend to first order.
    """

    eps: float
    cells: ClassVar[int] = 512

    @property
    def high(self) -> float:
        """Largest logit in absolute value: rounding makes the two ends differ in their last digits."""
        low, high = logits_of(np.array([self.eps, 1 - self.eps]), self.eps)
        return float(max(-low, high))

    @property
    def low(self) -> float:
        """Smallest logit."""
        return -self.high

    def of(self, problem: Problem) -> AxisCounts:
        """Sums of a problem's samples."""
        return AxisCounts.of(problem, self)

    def held(self, scores: FloatArray) -> FloatArray:
        """Scores as counted."""
        return np.clip(scores, self.eps, 1 - self.eps)

    def places(self, scores: FloatArray) -> FloatArray:
        """Logits of scores."""
        return logits_of(scores, self.eps)

    def nodes(self, cells: int) -> FloatArray:
        """Scores of a regular grid."""
        return expit(np.linspace(self.low, self.high, cells + 1))


@dataclass(frozen=True, eq=False)
class AxisCounts(Sums):
    """Sums per distinct score if these are few, otherwise linear-binned counts over an axis.

    Attributes
    ----------
    scores : ndarray of shape (…, m)
        Distinct scores, or those of the nodes.
    mass, square : ndarray of shape (…, 2, m)
        ``Σ w a`` and ``Σ w² a`` of the negatives and of the positives, with the linear share ``a``; 0 after a
        problem's last score.
    cells : ndarray of shape (…)
        Cells of the grid; 0 for distinct scores.
    axis : Angles or Logits
    """

    scores: Annotated[FloatArray, located("m", low=0, high=1)]
    mass: Annotated[FloatArray, summed("2", "m", low=0)]
    square: Annotated[FloatArray, summed("2", "m", low=0)]
    cells: Annotated[IntArray, located(low=0, kinds="i")]
    axis: Angles | Logits
    domain: tuple[float, float]
    n_samples: Annotated[Any, summed(low=0, kinds="i")]
    integral: Annotated[bool, common()]

    @classmethod
    def of(cls, problem: Problem, axis: Angles | Logits) -> AxisCounts:
        """Counts of the samples of one or many problems. Cost O(n log n); O(n) for many unweighted rows."""
        p = problem
        about = axis, p.domain, p.counts if p.shape else p.n_samples, p.counted
        none = np.zeros(p.shape, dtype=np.intp)
        if p.weights is None and len(p) and int(p.counts.min()) > axis.cells:
            mass = _on_nodes(p, axis)
            nodes = np.broadcast_to(axis.nodes(axis.cells), (*p.shape, axis.cells + 1))
            return cls(nodes, mass, p.variances(mass, mass), none + axis.cells, *about)
        if p.integral:
            runs = p.sums(DistinctScores())
        else:  # a sample's own share depends on its weight: rows stay rows
            q = p.ordered
            w = ones_or(q.weights, q.n_samples)
            runs = Runs(q.scores, w, w * q.outcomes, w * w, q.counts, False, p.domain, p.eps, q.bounds, q.counts)
        table = runs.table(axis.held(runs.scores), runs.weight - runs.outcome, runs.outcome)
        scores, negative, positive = (v.reshape(*p.shape, -1) for v in table)
        mass = np.stack([negative, positive], axis=-2)
        square = p.variances(mass if p.integral else mass**2, mass)
        size = runs.totals if p.integral else runs.n_rows
        return cls(scores, mass, square, none, *about).with_grids(np.reshape(size, p.shape) > axis.cells)

    def check(self) -> None:
        """Raise ValueError unless these are possible counts of rows."""
        super().check()
        on_grid = (self.cells == self.axis.cells) & (self.scores.shape[-1] > self.cells)
        need((self.cells == 0) | on_grid, "cells must be 0 or the number of cells of the grid")

    def with_grids(self, many: AnyArray) -> AxisCounts:
        """Replace distinct scores by counts on nodes for some problems."""
        many = many & (self.cells == 0)
        if not many.any():
            return self
        grid = self.binned(self.axis.cells)
        if many.all():
            return grid
        wide = max(self.scores.shape[-1], grid.scores.shape[-1])
        tables: dict[str, Any] = {f: np.zeros((*getattr(self, f).shape[:-1], wide)) for f in _FIELDS}
        for f, table in tables.items():
            for some, values in ((~many, getattr(self, f)), (many, getattr(grid, f))):
                table[some, ..., : values.shape[-1]] = values[some]
        return replace(self, cells=np.where(many, self.axis.cells, self.cells), **tables)

    def __add__(self, other: AxisCounts) -> AxisCounts:
        if not isinstance(other, AxisCounts):
            return NotImplemented
        if self.cells.any() or other.cells.any():
            one = self.binned(self.axis.cells)
            return replace(one, **one._merged(other.binned(self.axis.cells)))
        sums: dict[str, Any] = {f: np.concatenate([getattr(self, f), getattr(other, f)], axis=-1) for f in _FIELDS}
        both = replace(self, **self._merged(other, but=_FIELDS), **sums)
        size = both.total if both.integral else (both.mass.sum(axis=-2) > 0).sum(axis=-1)
        return both.with_grids(np.asarray(size > self.axis.cells))

    @property
    def step(self) -> FloatArray:
        """Distance between nodes on the axis, (…); 0 for distinct scores."""
        steps = (self.axis.high - self.axis.low) / np.maximum(self.cells, 1)
        return np.asarray(np.where(self.cells > 0, steps, 0.0))

    @property
    def places(self) -> FloatArray:
        """Positions of the scores on the axis, (…, m)."""
        found = self.axis.places(self.scores)
        if not self.cells.any():
            return found
        step = np.where(self.cells > 0, self.step, 1.0)[..., None]
        nodes = self.axis.low + np.round((found - self.axis.low) / step) * step  # without the rounding of their scores
        return np.where((self.cells > 0)[..., None], nodes, found)

    @property
    def total(self) -> FloatArray:
        """``Σ w``, (…)."""
        return np.asarray(self.mass.sum(axis=(-2, -1)))

    @property
    def effective_size(self) -> FloatArray:
        """Sample size: rows, repeats, or Kish's effective size for relative weights, (…)."""
        squares = self.square.sum(axis=(-2, -1))
        if self.integral:
            return self.total
        return np.asarray(np.divide(self.total**2, squares, out=np.zeros(np.shape(squares)), where=squares > 0))

    @cached_property
    def own(self) -> FloatArray:
        """Weight of one sample among those of an outcome at a score, (…, 2, m): 1 for repeats, else ``Σ w² / Σ w``."""
        if self.integral:
            return np.ones_like(self.mass)
        return np.divide(self.square, self.mass, out=np.zeros_like(self.mass), where=self.mass > 0)

    def binned(self, cells: int) -> AxisCounts:
        """Counts on the nodes of a regular grid, each sample shared by the two nearest."""
        places, span = self.places[..., None, :], (self.axis.low, self.axis.high)
        mass, square = (shared_counts(places, v, span, cells) for v in (self.mass, self.square))
        nodes = np.broadcast_to(self.axis.nodes(cells), (*self.cells.shape, cells + 1))
        return replace(self, scores=nodes, mass=mass, square=square, cells=np.full_like(self.cells, cells))

    @property
    def used(self) -> AxisCounts:
        """Counts of one problem without empty scores."""
        used = self.mass.any(axis=-2)
        return replace(self, scores=self.scores[used], mass=self.mass[:, used], square=self.square[:, used])

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of the resampled units, in units of the effective sample size."""
        total = self.total
        unit = np.divide(self.effective_size, total, out=np.zeros(total.shape), where=total > 0)[..., None]
        return self.scores, self.mass.sum(axis=-2) * unit, self.mass[..., 1, :] * unit

    def resampled(self, count: FloatArray, positive: FloatArray) -> AxisCounts:
        """Sums of samples with other counts (R, m) and positives (b R, m) at the same scores."""
        count = np.tile(count, (len(positive) // len(count), 1))
        positive = np.clip(positive, 0, count)
        mass = np.stack([count - positive, positive], axis=-2)
        return replace(
            self,
            scores=np.broadcast_to(self.scores, count.shape),
            mass=mass,
            square=mass,
            cells=np.full(len(count), self.cells),
            n_samples=np.full(len(count), self.n_samples),
            integral=True,
        )


def placed(at: FloatArray, domain: tuple[float, float], cells: int) -> tuple[IntArray, FloatArray]:
    """Cells of positions on a regular grid over a domain, and the relative positions within them, from 0 to 1."""
    low, high = domain
    position = np.clip((at - low) * (cells / (high - low)), 0, cells)
    # A position that was a node's comes back with a rounding error, which must not open the next node.
    near = np.round(position)
    position = np.where(np.abs(position - near) < 1e-9, near, position)
    cell = np.minimum(position.astype(np.intp), cells - 1)
    return cell, position - cell


def shared_counts(at: FloatArray, values: FloatArray, domain: tuple[float, float], cells: int) -> FloatArray:
    """Values at positions (…, m), each shared by the two nearest of ``cells + 1`` nodes over the domain."""
    cell, up = placed(at, domain, cells)
    return share_out(cell, up, values, cells)


def _on_nodes(problem: Problem, axis: Angles | Logits) -> FloatArray:
    """Negatives and positives on nodes, (…, 2, cells + 1), from rows in any order."""
    p, nodes = problem, axis.cells + 1
    cell, up = placed(axis.places(p.scores.astype(np.float64)), (axis.low, axis.high), axis.cells)
    cell += p.row * nodes
    ones = p.outcomes.astype(np.float64)
    tables = []
    for values in (1 - ones, ones):
        above = values * up
        table = np.bincount(cell, values - above, minlength=len(p) * nodes).astype(np.float64)
        table[1:] += np.bincount(cell, above, minlength=len(p) * nodes)[:-1]
        tables.append(table.reshape(*p.shape, nodes))
    return np.stack(tables, axis=-2)
