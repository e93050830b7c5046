"""Rows of one problem that count, as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...data.dependence import design_effects, group_codes
from ...data.problem import Problem
from ...data.types import FloatArray, IntArray
from ...data.weights import of_variances, ones_or


class ProblemRows(NamedTuple):
    """Scores, outcomes, weights, and weights of variances: those themselves for repeats, else their squares.

    Of rows in groups also their codes, and the design effect of the mean residual.
    """

    scores: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    times: FloatArray
    integral: bool
    groups: IntArray | None = None
    design: float = 1.0

    @classmethod
    def of(cls, problem: Problem, groups: IntArray | None = None) -> ProblemRows:
        """Rows of a problem that count."""
        design = 1.0
        s: FloatArray = problem.scores.astype(np.float64, copy=False)
        o: FloatArray = np.asarray(problem.outcomes, dtype=np.float64)
        w = ones_or(problem.weights, s.size)
        if problem.weights is not None and not w.all():
            used = w > 0
            s, o, w = s[used], o[used], w[used]
            groups = None if groups is None else groups[used]
        if groups is not None:
            groups = group_codes(groups)
            weights = None if problem.weights is None else w
            counted = Problem(s, o, weights, problem.integral, problem.domain, problem.eps)
            design = float(design_effects(counted, groups, (1.0,))[0])
        return cls(s, o, w, of_variances(w, integral=problem.integral), problem.integral, groups, design)

    def where(self, some: Any) -> ProblemRows:
        """Some of the rows."""
        s, o, w = self.scores[some], self.outcomes[some], self.weights[some]
        return ProblemRows(s, o, w, w if self.times is self.weights else self.times[some], self.integral)

    @property
    def total(self) -> float:
        """Sum of weights."""
        return float(self.weights.sum())

    @property
    def gap(self) -> float:
        """Mean outcome minus mean score."""
        return float(self.weights @ (self.outcomes - self.scores) / self.total)
