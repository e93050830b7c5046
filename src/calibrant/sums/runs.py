"""`Runs`: the distinct scores of samples in ascending order, with sums per score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import or_
from typing import Annotated, Any

import numpy as np

from ..data.fields import Number, need, need_within
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from .base import Sums, common, flat, summed


@dataclass(frozen=True, eq=False)
class Runs(Sums):
    """Sums per distinct score. Samples with equal scores are indistinguishable and never split.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Distinct scores, ascending, float64; for many problems, concatenated.
    weight, outcome, square : ndarray of shape (m,)
        ``Σ w``, ``Σ w o`` and ``Σ w²`` of the samples with each score. Samples of weight 0 are absent.
    n_rows : ndarray of shape (R,)
        Number of rows with weight.
    integral : bool
        Whether the weights count repeats.
    bounds : ndarray of shape (R + 1,)
        Starts of the runs of each problem, and the end of the last ones.
    n_samples : int, or ndarray of shape (R,)
        Number of rows, including those without weight.
    parts : ndarray of shape (…, 5) or None
        Design effects of parts of the residuals, for rows in groups; see :class:`.base.Shared`.
    grouped : bool
        Whether rows are correlated within groups: ``square`` then includes their design effect, also for repeats.
    domain : (float, float)
        Range of possible scores.
    eps : float
        Rounding unit of the scores.

    See Also
    --------
    calibrant.estimators.DistinctScores : The specification used by estimators.
    calibrant.estimators.GridMoments : Counts on a grid, whose size is fixed.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.estimators import DistinctScores, Isotonic
    >>> Isotonic()._needs((0.0, 1.0)) == DistinctScores()
    True
    """

    scores: Annotated[FloatArray, flat("m", low=0, high=1)]
    weight: Annotated[FloatArray, flat("m")]
    outcome: Annotated[FloatArray, flat("m")]
    square: Annotated[FloatArray, flat("m")]
    n_rows: Annotated[IntArray, summed(low=0, kinds="i")]
    integral: Annotated[bool, common()]
    domain: tuple[float, float]
    eps: Annotated[float, common(max, Number(0, 1))]
    bounds: Annotated[IntArray, flat("R+1", low=0, kinds="i")]
    n_samples: Annotated[Any, summed(low=0, kinds="i")]
    grouped: Annotated[bool, common(or_)] = False
    parts: Annotated[FloatArray | None, summed("5", low=0)] = None

    @classmethod
    def of(cls, problem: Problem) -> Runs:
        """Runs of the samples of one or many problems. Cost O(n log n)."""
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
        about = (p.domain, p.eps, bounds, n, p.design is not None, p.parts)
        return cls(s[start], weight, outcome, square, p.counts, p.integral, *about)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: Any) -> Runs:
        """Runs of one of many problems, or of consecutive ones."""
        alone = not isinstance(index, slice)
        some = slice(index, index + 1) if alone else index
        a, b, _ = some.indices(len(self))
        runs = slice(int(self.bounds[a]), int(self.bounds[b]))
        each = self if self.shape else self._row
        found = replace(
            self,
            **{f: getattr(self, f)[runs] for f in ("scores", "weight", "outcome", "square")},
            n_rows=self.n_rows[a:b],
            bounds=self.bounds[a : b + 1] - self.bounds[a],
            n_samples=each.n_samples[a:b],
            parts=None if each.parts is None else each.parts[a:b],
        )
        return found._alone if alone else found

    @cached_property
    def _row(self) -> Runs:
        parts = None if self.parts is None else self.parts[None]
        return replace(self, n_samples=np.array([self.n_samples]), parts=parts)

    @property
    def _alone(self) -> Runs:
        """The runs of one problem, without a leading axis."""
        return replace(self, n_samples=int(self.n_samples[0]), parts=None if self.parts is None else self.parts[0])

    def __add__(self, other: Runs) -> Runs:
        if not isinstance(other, Runs):
            return NotImplemented
        if len(self) != len(other):
            raise ValueError(f"Runs of {len(self)} and of {len(other)} problems cannot be merged")
        row, score, *values = (
            np.concatenate([getattr(self, f), getattr(other, f)])
            for f in ("row", "scores", "weight", "outcome", "square")
        )
        order = np.lexsort((score, row))
        row, score = row[order], score[order]
        new = (score[1:] != score[:-1]) | (row[1:] != row[:-1])
        start = np.flatnonzero(np.concatenate([[True], new])[: score.size])
        weight, outcome, square = (_sums(v[order], start) for v in values)
        return replace(
            self,
            **self._merged(other),
            scores=score[start],
            weight=weight,
            outcome=outcome,
            square=square,
            bounds=np.searchsorted(row[start], np.arange(len(self) + 1)),
        )

    def in_groups(self, effects: FloatArray, each: FloatArray) -> Runs:
        """Runs of rows in groups, by design effects (R, 5); ``each`` (R,) are the variance sums of independent rows."""
        square = (self.weight if self.integral else self.square) * effects[self.row, 0]
        return replace(self, square=square, grouped=True, parts=each[:, None] * effects)

    def check(self) -> None:
        """Raise ValueError unless these are possible runs of rows."""
        super().check()
        need(self.bounds[0] == 0 and self.bounds[-1] == self.size, "bounds must go from 0 to the number of runs")
        need(np.diff(self.bounds) >= 0, "bounds must not decrease")
        need((np.diff(self.scores) > 0) | (np.diff(self.row) > 0), "scores must increase within each problem")
        need((self.weight > 0) & (self.square > 0), "weight and square must be above 0")
        need(0 < self.eps < 1, "eps must lie between 0 and 1")
        need_within("outcome", self.outcome, self.weight)

    @property
    def size(self) -> int:
        """Number m of distinct scores of all problems."""
        return self.scores.size

    @cached_property
    def counts(self) -> IntArray:
        """Number of distinct scores per problem, (R,)."""
        return np.diff(self.bounds)

    @cached_property
    def row(self) -> IntArray:
        """Index of the problem of each run, (m,)."""
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
        """Iterate over blocks of consecutive problems with about ``numbers`` runs."""
        first = 0
        while first < len(self):
            end = int(np.searchsorted(self.bounds, self.bounds[first] + numbers, side="right")) - 1
            end = min(max(end, first + 1), len(self))
            yield self[first:end] if (first, end) != (0, len(self)) else self
            first = end

    def table(self, *values: FloatArray) -> list[FloatArray]:
        """Values of the runs as tables (R, most), with 0 after a problem's last."""
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
        """Midpoints between adjacent scores, shape (m - 1,); the lower one if there is no float between them."""
        below, above = self.scores[:-1], self.scores[1:]
        middle = below + (above - below) / 2
        return np.where(middle < above, middle, below)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of the resampled units: of one problem's runs, in units of its sample size."""
        total = float(self.weight.sum())
        unit = float(self.sizes[0]) / total if total > 0 else 0.0
        return self.scores, self.weight * unit, self.outcome * unit

    @property
    def trials(self) -> FloatArray:
        """Number of outcomes per score, in rows: outcomes are resampled at fixed scores."""
        counted = self.integral and not self.grouped
        return np.round(self.weight if counted else self.weight**2 / self.square)

    def resampled(self, count: FloatArray, positive: FloatArray) -> Runs:
        """Runs of samples with other counts (R, m) and positives (b R, m) at these scores."""
        count = np.tile(count, (len(positive) // len(count), 1))
        used = count > 0
        rows, n = np.nonzero(used)[0], used.sum(axis=1)
        bounds = np.searchsorted(rows, np.arange(len(count) + 1))
        score, weight = np.broadcast_to(self.scores, count.shape)[used], count[used]
        return Runs(score, weight, positive[used], weight, n, True, self.domain, self.eps, bounds, n)


@dataclass(frozen=True)
class DistinctScores:
    """Specification of sums per distinct score, which grow with the number of distinct scores.

    See Also
    --------
    calibrant.estimators.Runs : The sums.
    calibrant.estimators.Grid : Counts of fixed size.

    Examples
    --------
    >>> from calibrant.estimators import DistinctScores, Isotonic
    >>> Isotonic()._needs((0.0, 1.0)) == DistinctScores()
    True
    """

    def of(self, problem: Problem) -> Runs:
        """Runs of a problem's samples."""
        return Runs.of(problem)


def _sums(values: AnyArray, start: IntArray) -> FloatArray:
    return np.add.reduceat(values, start) if start.size else np.empty(0)
