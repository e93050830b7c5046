"""`Totals`: sums over all rows that need no binning."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.predictions import Predictions
from ..data.problem import OneVsRestProblems, Problem
from ..data.types import AnyArray, FloatArray
from .scoring_rules import brier_per_sample, log_loss_per_sample


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over all rows that need no binning; ``squares`` and ``integral`` allow for the design effect of groups."""

    n_samples: int
    weight: float
    squares: float
    integral: bool
    class_weight: FloatArray
    prob_sum: FloatArray
    correct: float
    brier: float
    log_loss: float
    weighted: bool

    @classmethod
    def of(cls, p: Predictions, problems: Problem | OneVsRestProblems) -> Totals:
        """Sums of validated predictions, and of the problems that were made of them."""
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
            np.bincount(p.codes.astype(np.intp), w, minlength=p.n_classes).astype(np.float64),
            np.asarray(stated, dtype=np.float64),
            _summed(p.predicted == p.codes, w),
            _summed(brier_per_sample(p), w),
            _summed(log_loss_per_sample(p), w),
            w is not None,
        )

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.n_samples + other.n_samples,
            self.weight + other.weight,
            self.squares + other.squares,
            self.integral and other.integral,
            self.class_weight + other.class_weight,
            self.prob_sum + other.prob_sum,
            self.correct + other.correct,
            self.brier + other.brier,
            self.log_loss + other.log_loss,
            self.weighted or other.weighted,
        )

    def in_groups(self, design: float) -> Totals:
        """Totals of rows that hang together, by their design effect, where these took them for independent."""
        squares = (self.weight if self.integral else self.squares) * design
        return replace(self, squares=squares, integral=False)

    @property
    def effective_size(self) -> float:
        """Sample size: rows, repeats, or Kish's effective size for relative weights and for groups."""
        return self.weight if self.integral else self.weight**2 / self.squares


def _summed(values: AnyArray, weights: FloatArray | None) -> float:
    """Weighted sum that keeps infinities but not those of rows with weight 0 (0 · inf)."""
    if weights is None:
        return float(values.sum())
    used = weights > 0
    return float(weights[used] @ values[used])
