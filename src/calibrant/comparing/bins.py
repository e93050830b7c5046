"""Residuals in bins of equal counts, by units: what calibration errors of several models are compared by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray
from ..errors import Binned
from ..notions import Notion, TopLabel
from ..predictions import Predictions
from ..problem import OneVsRest, Problem, VectorProblem
from .units import Units


def problems_of(p: Predictions, notion: Notion) -> Problem | OneVsRest:
    """The 1-D problems of a notion; ValueError for one of vectors."""
    reduction = notion.reduce(p)
    if isinstance(reduction, VectorProblem):
        raise ValueError(
            f"models cannot be compared by the notion {notion.name!r}: use 'classwise', 'confidence', 'top-label' or a "
            "class"
        )
    return reduction


@dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """Sums over one copy of each unit within each bin, where there are any: one entry each.

    Attributes
    ----------
    bin_of, unit_of : ndarray of shape (e,)
        Bins of all problems of a notion, one after the other.
    residual, mass : ndarray of shape (e,)
        Sums of weighted residuals ``o - s``, and of weights.
    scale : ndarray of shape (B,)
        Share of a bin's problem, over that problem's weight: times a bin's weight it is the bin's share.
    units : Units
    """

    bin_of: AnyArray
    unit_of: AnyArray
    residual: FloatArray
    mass: FloatArray
    scale: FloatArray
    units: Units

    @classmethod
    def of(
        cls, p: Predictions, notion: Notion, units: Units, rule: Callable[[float], float], most: int
    ) -> BinnedResiduals:
        """Of predictions whose rows all have weight; ``rule`` gives the number of bins for a sample size."""
        reduction = problems_of(p, notion)
        rows: list[AnyArray | None] = [None] * len(reduction)
        if isinstance(notion, TopLabel):
            rows = [np.flatnonzero(p.predicted == k) for k in np.unique(p.predicted)]
        each = max(1, most // len(reduction))
        found = []
        before = 0
        for problem, some in zip(reduction, rows, strict=True):
            found.append(
                cls._of_problem(problem, some, units, int(np.clip(rule(problem.effective_size), 1, each)), before)
            )
            before += found[-1].scale.size
        if len(found) == 1:
            return found[0]
        return cls(
            np.concatenate([one.bin_of for one in found]),
            np.concatenate([one.unit_of for one in found]),
            np.concatenate([one.residual for one in found]),
            np.concatenate([one.mass for one in found]),
            np.concatenate([one.scale for one in found]),
            units,
        )

    @classmethod
    def _of_problem(
        cls, problem: Problem, rows: AnyArray | None, units: Units, n_bins: int, before: int
    ) -> BinnedResiduals:
        edges = Binned(n_bins, "quantile").summarize(problem).edges
        cell = np.clip(edges.slots(problem.scores, problem.eps) - 1, 0, edges.n_bins - 1).astype(np.intp)
        unit, weight = units.of_row, units.weight
        if rows is not None:
            unit, weight = unit[rows], weight[rows]
        g = units.copies.size
        key, entry = np.unique(cell * g + unit, return_inverse=True)
        gap = problem.outcomes.astype(np.float64) - problem.scores.astype(np.float64)
        entry = entry.reshape(-1)
        residual: FloatArray = np.bincount(entry, weights=weight * gap).astype(np.float64)
        mass: FloatArray = np.bincount(entry, weights=weight).astype(np.float64)
        bin_of, unit_of = np.divmod(key, g)
        scale = problem.share / float(mass @ units.copies[unit_of])
        return cls(bin_of + before, unit_of, residual, mass, np.full(edges.n_bins, scale), units)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over all copies of all units, (B,), of what each entry has."""
        copies = self.units.copies[self.unit_of]
        found = np.bincount(self.bin_of, weights=copies * values, minlength=self.scale.size)
        return np.asarray(found, dtype=np.float64)

    def sparse(self, values: FloatArray) -> Any:
        """What each entry has as an array (B, G)."""
        from scipy.sparse import csr_array

        return csr_array((values, (self.bin_of, self.unit_of)), shape=(self.scale.size, self.units.copies.size))
