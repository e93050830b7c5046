"""`Runs`: the distinct scores of samples in ascending order, with what lies on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from .design_effects import added_parts, check_parts
from .field_checks import need, need_shape, need_within


@dataclass(frozen=True, eq=False)
class Runs:
    """Sums over equal scores. Samples with one score cannot be told apart, so they are never parted.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Distinct scores, ascending, float64; of many problems, those of one after those of another.
    weight, outcome, square : ndarray of shape (m,)
        ``Σ w``, ``Σ w o`` and ``Σ w²`` of the samples on each score. Samples of weight 0 are absent.
    n_rows : ndarray of shape (R,)
        Rows with weight.
    integral : bool
        Whether the weights count repeats.
    bounds : ndarray of shape (R + 1,)
        Where the runs of each problem begin, and the end of the last one's.
    n_samples : int, or ndarray of shape (R,)
        Rows, those without weight included.
    shape : tuple
        () for one problem, (R,) for many.
    parts : ndarray of shape (…, 5) or None
        What design effects of parts of the residuals make of rows in groups; see :mod:`.shared`.
    grouped : bool
        Whether rows hang together in groups: ``square`` then has their design effect, and of repeats too.
    """

    scores: FloatArray
    weight: FloatArray
    outcome: FloatArray
    square: FloatArray
    n_rows: IntArray
    integral: bool
    domain: tuple[float, float]
    eps: float
    bounds: IntArray
    n_samples: Any
    shape: tuple[int, ...] = ()
    grouped: bool = False
    parts: FloatArray | None = None

    @classmethod
    def of(cls, problem: Problem) -> Runs:
        """Runs of the samples of one problem or of many. Cost O(n log n)."""
        p = problem.ordered
        s, o, w, row = p.scores, p.outcomes, p.weights, p.row
        first = np.ones(s.size, dtype=bool)
        np.not_equal(s[1:], s[:-1], out=first[1:])
        first[p.bounds[:-1][p.counts > 0]] = True
        start = np.flatnonzero(first)
        if w is None:
            weight: FloatArray = np.diff(start, append=s.size).astype(np.float64)
            outcome, square = o if start.size == s.size else _sums(o, start), weight
        else:
            weight, outcome, square = _sums(w, start), _sums(w * o, start), _sums(w * w, start)
        if problem.design is not None:
            square = (weight if p.integral else square) * problem.designs[row[start]]
        bounds = np.searchsorted(row[start], np.arange(len(p) + 1))
        n = problem.counts if problem.shape else problem.n_samples
        about = (p.domain, p.eps, bounds, n, p.shape, p.design is not None, p.parts)
        return cls(s[start], weight, outcome, square, p.counts, p.integral, *about)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: int | slice) -> Runs:
        """Runs of one of many problems, or of neighbouring ones."""
        alone = not isinstance(index, slice)
        some = slice(index, index + 1) if not isinstance(index, slice) else index
        a, b, _ = some.indices(len(self))
        runs = slice(int(self.bounds[a]), int(self.bounds[b]))
        return replace(
            self,
            **{f: getattr(self, f)[runs] for f in ("scores", "weight", "outcome", "square")},
            n_rows=self.n_rows[a:b],
            bounds=self.bounds[a : b + 1] - self.bounds[a],
            n_samples=int(np.sum(self.n_samples if not self.shape else self.n_samples[a]))
            if alone
            else np.atleast_1d(self.n_samples)[a:b],
            shape=() if alone else (b - a,),
            parts=self.parts if self.parts is None or not self.shape else self.parts[a] if alone else self.parts[a:b],
        )

    def __add__(self, other: Runs) -> Runs:
        if not isinstance(other, Runs):
            return NotImplemented
        if (self.domain, len(self)) != (other.domain, len(other)):
            raise ValueError(
                f"Runs of different problems cannot merge: {len(self)} over {self.domain} and {len(other)} over "
                f"{other.domain}"
            )
        row, score, weight, outcome, square = (
            np.concatenate([getattr(self, f), getattr(other, f)])
            for f in ("row", "scores", "weight", "outcome", "square")
        )
        order = np.lexsort((score, row))
        row, score = row[order], score[order]
        start = np.flatnonzero(
            np.concatenate([[True], (score[1:] != score[:-1]) | (row[1:] != row[:-1])])[: score.size]
        )
        return replace(
            self,
            scores=score[start],
            weight=_sums(weight[order], start),
            outcome=_sums(outcome[order], start),
            square=_sums(square[order], start),
            n_rows=self.n_rows + other.n_rows,
            n_samples=self.n_samples + other.n_samples,
            integral=self.integral and other.integral,
            grouped=self.grouped or other.grouped,
            parts=added_parts(self.parts, other.parts),
            eps=max(self.eps, other.eps),
            bounds=np.searchsorted(row[start], np.arange(len(self) + 1)),
        )

    def in_groups(self, effects: FloatArray, each: FloatArray) -> Runs:
        """Runs of rows in groups, by design effects (R, 5); ``each`` (R,) is what their variances count otherwise."""
        square = (self.weight if self.integral else self.square) * effects[self.row, 0]
        return replace(self, square=square, grouped=True, parts=each[:, None] * effects)

    def check(self) -> None:
        """ValueError unless these can be the runs of rows."""
        need_shape((self.size,), weight=self.weight, outcome=self.outcome, square=self.square)
        need_shape((len(self),), n_rows=self.n_rows)
        need_shape(self.shape, n_samples=self.n_samples)
        need(self.bounds[0] == 0 and self.bounds[-1] == self.size, "bounds must be of these runs")
        need(np.diff(self.bounds) >= 0, "bounds must ascend")
        need((self.scores >= 0) & (self.scores <= 1), "scores must lie in [0, 1]")
        need((np.diff(self.scores) > 0) | (np.diff(self.row) > 0), "scores must ascend")
        need((self.weight > 0) & (self.square > 0), "weight and square must be above 0")
        need(0 < self.eps < 1, "eps must lie between 0 and 1")
        need_within("outcome", self.outcome, self.weight)
        check_parts(self.parts, self.shape)

    @property
    def size(self) -> int:
        """Distinct scores m, of all problems."""
        return self.scores.size

    @cached_property
    def counts(self) -> IntArray:
        """Distinct scores of each problem, (R,)."""
        return np.diff(self.bounds)

    @cached_property
    def row(self) -> IntArray:
        """The problem that each run belongs to, (m,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def totals(self) -> FloatArray:
        """Weight of each problem, (R,)."""
        return np.bincount(self.row, self.weight, minlength=len(self)).astype(np.float64)

    @cached_property
    def sizes(self) -> FloatArray:
        """Sample size of each problem, (R,): rows, repeats, or Kish's effective size for relative weights."""
        if self.integral and not self.grouped:
            return self.totals
        squares = np.bincount(self.row, self.square, minlength=len(self))
        return np.divide(self.totals**2, squares, out=np.zeros(len(self)), where=squares > 0)

    def blocks(self, numbers: int) -> Iterator[Runs]:
        """Neighbouring problems at a time, with about ``numbers`` runs."""
        first = 0
        while first < len(self):
            end = int(np.searchsorted(self.bounds, self.bounds[first] + numbers, side="right")) - 1
            end = min(max(end, first + 1), len(self))
            yield self[first:end] if (first, end) != (0, len(self)) else self
            first = end

    def table(self, *values: FloatArray) -> list[FloatArray]:
        """Values of the runs as tables (R, most), with 0 behind a problem's last."""
        m = int(self.counts.max(initial=0))
        if m * len(self) == self.size:
            return [v.reshape(len(self), m) for v in values]
        at = np.arange(self.size) + self.row * m - self.bounds[:-1][self.row]
        out = []
        for v in values:
            padded = np.zeros(len(self) * m, dtype=v.dtype)
            padded[at] = v
            out.append(padded.reshape(len(self), m))
        return out

    @cached_property
    def mean(self) -> FloatArray:
        """Mean outcome of each run."""
        return self.outcome / self.weight

    @cached_property
    def weight_sums(self) -> FloatArray:
        """Weight of the first i runs, i = 0 … m, of all problems."""
        return np.concatenate([[0.0], np.cumsum(self.weight)])

    @cached_property
    def outcome_sums(self) -> FloatArray:
        """Positives among the first i runs, i = 0 … m, of all problems."""
        return np.concatenate([[0.0], np.cumsum(self.outcome)])

    @cached_property
    def middles(self) -> FloatArray:
        """Midpoints between neighbouring scores, shape (m - 1,); the lower one where floats leave no room."""
        below, above = self.scores[:-1], self.scores[1:]
        middle = below + (above - below) / 2
        return np.where(middle < above, middle, below)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of what is drawn anew: of one problem's runs, in units of its sample size."""
        total = float(self.weight.sum())
        unit = float(self.sizes[0]) / total if total > 0 else 0.0
        return self.scores, self.weight * unit, self.outcome * unit

    @property
    def trials(self) -> FloatArray:
        """Outcomes on each score, in rows: what is drawn anew are outcomes, and scores stay."""
        counted = self.integral and not self.grouped
        return np.round(self.weight if counted else self.weight**2 / self.square)

    def redrawn(self, count: FloatArray, positive: FloatArray) -> Runs:
        """Runs of samples with other counts (R, m) and positives (b R, m) at these scores."""
        count = np.tile(count, (len(positive) // len(count), 1))
        used = count > 0
        rows, n = np.nonzero(used)[0], used.sum(axis=1)
        score = np.broadcast_to(self.scores, count.shape)[used]
        return Runs(
            score,
            count[used],
            positive[used],
            count[used],
            n,
            True,
            self.domain,
            self.eps,
            np.searchsorted(rows, np.arange(len(count) + 1)),
            n,
            (len(count),),
        )


@dataclass(frozen=True)
class DistinctScores:
    """Sums that an estimator may name: those on each distinct score, which grow with their number."""

    def of(self, problem: Problem) -> Runs:
        """Runs of a problem's samples."""
        return Runs.of(problem)


def _sums(values: AnyArray, start: IntArray) -> FloatArray:
    return np.add.reduceat(values, start) if start.size else np.empty(0)
