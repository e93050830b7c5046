"""`Totals`: sums over all rows that need no binning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import or_
from typing import Annotated

import numpy as np

from ..data.fields import need
from ..data.predictions import Predictions
from ..data.problem import OneVsRestProblems, Problem
from ..data.types import AnyArray, FloatArray
from ..sums.base import Sums, common, summed
from .scoring_rules import brier_per_sample, log_loss_per_sample


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
        """Those of no rows."""
        none = np.zeros(n_classes)
        return cls(0, 0.0, 0.0, True, none, none, 0.0, 0.0, 0.0, False)

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

    def check(self) -> None:
        """ValueError unless these can be the totals of rows."""
        super().check()
        need(self.prob_sum >= -1e-9 * self.weight, "prob_sum must not be negative")
        need(np.isclose(self.class_weight.sum(), self.weight, rtol=1e-6), "class_weight must add up to weight")

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
