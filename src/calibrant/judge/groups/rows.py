"""Rows of one problem that count, as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...data.problem import Problem
from ...data.types import FloatArray
from ...data.weights import of_variances, ones_or


class Rows(NamedTuple):
    """Scores, outcomes, weights, and weights of variances: those themselves for repeats, else their squares."""

    scores: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    times: FloatArray
    integral: bool

    @classmethod
    def of(cls, problem: Problem) -> Rows:
        """Rows of a problem that count."""
        s: FloatArray = problem.scores.astype(np.float64, copy=False)
        o: FloatArray = np.asarray(problem.outcomes, dtype=np.float64)
        w = ones_or(problem.weights, s.size)
        if problem.weights is not None and not w.all():
            used = w > 0
            s, o, w = s[used], o[used], w[used]
        return cls(s, o, w, of_variances(w, integral=problem.integral), problem.integral)

    def where(self, some: Any) -> Rows:
        """Some of the rows."""
        s, o, w = self.scores[some], self.outcomes[some], self.weights[some]
        return Rows(s, o, w, w if self.times is self.weights else self.times[some], self.integral)

    @property
    def total(self) -> float:
        """Sum of weights."""
        return float(self.weights.sum())

    @property
    def gap(self) -> float:
        """Mean outcome minus mean score."""
        return float(self.weights @ (self.outcomes - self.scores) / self.total)
