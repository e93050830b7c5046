"""`Runs`: the distinct scores of a sample in ascending order, with what lies on each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import FloatArray
from ..problem import Problem


@dataclass(frozen=True, eq=False)
class Runs:
    """Sums over equal scores. Samples with one score cannot be told apart, so they are never parted.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Distinct scores, ascending, float64.
    weight, outcome : ndarray of shape (m,)
        ``Σ w`` and ``Σ w o`` of the samples on each score. Samples of weight 0 are absent.
    n_rows : int
        Rows with weight.
    integral : bool
        Whether the weights count repeats.
    """

    scores: FloatArray
    weight: FloatArray
    outcome: FloatArray
    n_rows: int
    integral: bool

    @classmethod
    def of(cls, problem: Problem) -> Runs:
        """Runs of a problem's samples. Cost O(n log n)."""
        scores, outcomes, weights = problem.scores, problem.outcomes, problem.weights
        if weights is not None:
            used = weights > 0
            scores, outcomes, weights = scores[used], outcomes[used], weights[used]
        order = np.argsort(scores, kind="stable")
        s = scores[order].astype(np.float64)
        o = outcomes[order].astype(np.float64)
        n = s.size
        start = np.flatnonzero(np.concatenate([[n > 0], s[1:] != s[:-1]])) if n else np.empty(0, dtype=np.intp)
        if weights is None:
            weight = np.diff(start, append=n).astype(np.float64)
            outcome = o if start.size == n else np.add.reduceat(o, start)
        else:
            w = weights[order].astype(np.float64)
            weight, outcome = np.add.reduceat(w, start) if n else w, np.add.reduceat(w * o, start) if n else o
        return cls(s[start], weight, outcome, n, problem.integral)

    @property
    def size(self) -> int:
        """Distinct scores m."""
        return self.scores.size

    @cached_property
    def mean(self) -> FloatArray:
        """Mean outcome of each run."""
        return self.outcome / self.weight

    @cached_property
    def weight_sums(self) -> FloatArray:
        """Weight of the first i runs, i = 0 … m."""
        return np.concatenate([[0.0], np.cumsum(self.weight)])

    @cached_property
    def outcome_sums(self) -> FloatArray:
        """Positives among the first i runs, i = 0 … m."""
        return np.concatenate([[0.0], np.cumsum(self.outcome)])

    @cached_property
    def middles(self) -> FloatArray:
        """Midpoints between neighbouring scores, shape (m - 1,); the lower one where floats leave no room."""
        below, above = self.scores[:-1], self.scores[1:]
        middle = below + (above - below) / 2
        return np.where(middle < above, middle, below)
