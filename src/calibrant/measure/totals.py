"""`Totals`: sums over all rows that need no binning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.predictions import Predictions
from ..data.problem import OneVsRest, Problem
from ..data.types import FloatArray
from ..data.weights import ones_or
from .scores import brier_per_sample, log_loss_per_sample


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
    def of(cls, p: Predictions, problems: Problem | OneVsRest) -> Totals:
        """Sums of validated predictions, and of the problems that were made of them."""
        w = ones_or(p.weights, p.n_samples)
        squares, independent = float(w @ w), problems.design is None
        if not independent:
            squares = (float(w.sum()) if p.integral_weights else squares) * float(problems.designs.mean())
        k = p.n_classes
        if p.positive is None:
            prob_sum = w @ p.probs
        else:
            prob_sum = np.empty(2)
            prob_sum[p.positive] = w @ p.probs
            prob_sum[1 - p.positive] = w.sum() - prob_sum[p.positive]
        return cls(
            p.n_samples,
            float(w.sum()),
            squares,
            p.integral_weights and independent,
            np.bincount(p.codes.astype(np.intp), w, minlength=k).astype(np.float64),
            np.asarray(prob_sum, dtype=np.float64),
            float(w @ (p.predicted == p.codes)),
            float(w @ brier_per_sample(p)),
            _weighted_sum(log_loss_per_sample(p), w),
            p.weights is not None,
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

    @property
    def effective_size(self) -> float:
        """Sample size: rows, repeats, or Kish's effective size for relative weights and for groups."""
        return self.weight if self.integral else self.weight**2 / self.squares


def _weighted_sum(values: FloatArray, weights: FloatArray) -> float:
    """Sum that keeps infinities but not those of rows with weight 0 (0 · inf)."""
    used = weights > 0
    return float(weights[used] @ values[used])
