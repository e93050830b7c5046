"""State of an accumulator: sums of a notion's problems, by the keys of estimators, and totals over all rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import or_
from typing import Annotated, Any

import numpy as np

from ..data.fields import need
from ..data.predictions import Predictions
from ..data.problem import OneVsRestProblems, Problem
from ..data.types import AnyArray, FloatArray, Label
from ..sums import BinMoments, Bins, Grid, GridMoments, uniform_edges
from ..sums.base import Sums, common, summed
from .scoring_rules import accuracy_per_sample, brier_per_sample, log_loss_per_sample

#: Number of cells of the fine histogram that replaces rows that were not kept.
FINE_CELLS = 65536
FINE = Bins(uniform_edges(FINE_CELLS))
#: Number of problems whose sums are stored together.
TOGETHER = 8


@dataclass(frozen=True, eq=False)
class ProblemSums:
    """Sums of one problem: bins, grid counts and, if kept, a fine histogram."""

    label: Label
    domain: tuple[float, float]
    bins: BinMoments
    grid: GridMoments
    fine: BinMoments | None = None


@dataclass(frozen=True, eq=False)
class SumsByClass:
    """Sums of a notion's problems, several stored together, by key (``CellEstimator._needs``)."""

    labels: tuple[Label, ...]
    domain: tuple[float, float]
    parts: tuple[dict[Any, Any], ...]
    #: Fine histogram that replaces rows, if it was kept.
    histogram: Bins = FINE

    @classmethod
    def of(cls, problems: Problem | OneVsRestProblems, needs: Sequence[Any]) -> SumsByClass:
        """Sums of rows."""
        parts = []
        for a in range(0, len(problems), TOGETHER):
            some = problems[a : a + TOGETHER]
            parts.append({need: need.of(some) for need in needs})
        domain = problems.domain if isinstance(problems, Problem) else (0.0, 1.0)
        return cls(problems.labels, domain, tuple(parts))

    def __add__(self, other: SumsByClass) -> SumsByClass:
        if self.histogram != other.histogram:
            cells = math.gcd(self.histogram.edges.n_bins, other.histogram.edges.n_bins)
            return self.coarsened(cells) + other.coarsened(cells)
        pairs = zip(self.parts, other.parts, strict=True)
        parts = tuple({need: a[need] + b[need] for need in a} for a, b in pairs)
        return replace(self, parts=parts)

    @property
    def fine(self) -> bool:
        """Whether there is a fine histogram."""
        return bool(self.parts) and self.histogram in self.parts[0]

    def in_groups(self, effects: FloatArray) -> SumsByClass:
        """Sums of correlated rows, from sums that treat them as independent; design effects are (problems, 5)."""
        parts = []
        for i, part in enumerate(self.parts):
            grid, some = part[Grid()], effects[i * TOGETHER : (i + 1) * TOGETHER]
            each = np.asarray(grid.total if grid.integral else grid.squares)
            parts.append({need: sums.in_groups(some, each) for need, sums in part.items()})
        return replace(self, parts=tuple(parts))

    def coarsened(self, cells: int) -> SumsByClass:
        """The same sums with fewer fine cells, a divisor of those kept."""
        edges = self.histogram.edges
        every = np.arange(0, edges.n_bins + 1, edges.n_bins // cells)
        fine = fine_on((float(edges.values[0]), float(edges.values[-1])), cells)
        parts = tuple(
            {(fine if need == self.histogram else need): _coarser(sums, every, fine) if need == self.histogram else sums
             for need, sums in part.items()}
            for part in self.parts
        )  # fmt: skip
        return replace(self, parts=parts, histogram=fine)

    def sums(self, need: Any) -> Iterator[Any]:
        """Sums for a key, a few problems at a time."""
        return (part[need] for part in self.parts)

    def one(self, i: int, bins: Any) -> ProblemSums:
        """Sums of one problem."""
        part, at = self.parts[i // TOGETHER], i % TOGETHER
        fine = part[self.histogram][at] if self.histogram in part else None
        return ProblemSums(self.labels[i], self.domain, part[bins][at], part[Grid()][at], fine)


def fine_on(domain: tuple[float, float], cells: int = FINE_CELLS) -> Bins:
    """A fine histogram of scores in a domain."""
    return Bins(uniform_edges(cells, domain))


def _coarser(sums: BinMoments, every: AnyArray, fine: Bins) -> BinMoments:
    return replace(sums.coarsen(every), edges=fine.edges)


def aligned(problems: Problem, p: Predictions) -> Problem:
    """Problems with one for every class, including those without rows, so that the sums of all pieces can be added."""
    at = [p.classes.index(label) for label in problems.labels]
    counts = np.zeros(p.n_classes, dtype=np.intp)
    counts[at] = problems.counts
    starts = np.concatenate([[0], np.cumsum(counts)])
    designs = np.ones(p.n_classes)
    designs[at] = problems.designs
    design = None if problems.design is None else tuple(designs.tolist())
    effects = None
    if problems.effects is not None:
        effects = np.ones((p.n_classes, problems.effects.shape[1]))
        effects[at] = problems.effects
    shares = (1 / p.n_classes,) * p.n_classes
    return replace(problems, label=p.classes, share=shares, starts=starts, design=design, effects=effects)


def added(a: SumsByClass | None, b: SumsByClass | None) -> SumsByClass | None:
    """Sums of both pieces, or of the one with sums."""
    return a + b if a is not None and b is not None else a if b is None else b


@dataclass(frozen=True, eq=False)
class Totals(Sums):
    """Sums over all rows that need no binning; ``squares`` and ``integral`` allow for the design effect of groups."""

    n_samples: Annotated[int, summed(low=0, kinds="i")]
    weight: Annotated[float, summed(low=0)]
    squares: Annotated[float, summed(low=0)]
    integral: Annotated[bool, common()]
    class_weight: Annotated[FloatArray, summed("K", low=0)]
    prob_sum: Annotated[FloatArray, summed("K")]
    correct: Annotated[float, summed(low=0)]
    brier: Annotated[float, summed(low=0)]
    log_loss: Annotated[float, summed(low=0, infinite=True)]
    weighted: Annotated[bool, common(or_)]

    @classmethod
    def nothing(cls, n_classes: int) -> Totals:
        """Totals of zero rows."""
        none = np.zeros(n_classes)
        return cls(0, 0.0, 0.0, True, none, none, 0.0, 0.0, 0.0, False)

    @classmethod
    def of(cls, p: Predictions, problems: Problem | OneVsRestProblems) -> Totals:
        """Totals of validated predictions and of their problems."""
        w, independent = p.weights, problems.design is None
        weight = float(p.n_samples if w is None else w.sum())
        squares = weight if w is None else float(w @ w)
        if not independent:
            squares = (weight if p.integral_weights else squares) * float(problems.designs.mean())
        stated = p.probs.sum(axis=0, dtype=np.float64) if w is None else w @ p.probs
        if p.positive is not None:
            other = weight - stated
            stated = [stated, other] if p.positive == 0 else [other, stated]
        return cls(
            p.n_samples,
            weight,
            squares,
            p.integral_weights and independent,
            _class_weight(p),
            np.asarray(stated, dtype=np.float64),
            _summed(accuracy_per_sample(p), w),
            _summed(brier_per_sample(p), w),
            _summed(log_loss_per_sample(p), w),
            w is not None,
        )

    def check(self) -> None:
        """Raise ValueError unless these can be totals of rows."""
        super().check()
        need(self.prob_sum >= -1e-9 * self.weight, "prob_sum must not be negative")
        need(self.class_weight <= self.weight * (1 + 1e-6), "class_weight must not exceed weight")

    def in_groups(self, design: float) -> Totals:
        """Totals of correlated rows, from totals that treat them as independent, by their design effect."""
        squares = (self.weight if self.integral else self.squares) * design
        return replace(self, squares=squares, integral=False)

    @property
    def effective_size(self) -> float:
        """Effective sample size: rows, repeats, or Kish's effective size for relative weights and for groups."""
        return self.weight if self.integral else self.weight**2 / self.squares


def _class_weight(p: Predictions) -> FloatArray:
    """Total weight of the rows of each class, or with each label."""
    w = p.weights
    if p.several:
        return np.asarray(p.truth.sum(axis=0) if w is None else w @ p.truth, dtype=np.float64)
    return np.bincount(p.codes.astype(np.intp), w, minlength=p.n_classes).astype(np.float64)


def _summed(values: AnyArray, weights: FloatArray | None) -> float:
    """Weighted sum that keeps infinities but not those of rows with weight 0 (0 · inf)."""
    if weights is None:
        return float(values.sum())
    used = weights > 0
    return float(weights[used] @ values[used])
