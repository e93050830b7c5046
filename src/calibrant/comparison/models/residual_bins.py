"""Residuals in bins of equal counts, by units: what calibration errors of several models are compared by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.predictions import Predictions
from ...data.problem import OneVsRestProblems, Problem, VectorProblem
from ...data.types import AnyArray, FloatArray
from ...estimators import Binned
from ...notions import Notion
from .units import IndependentUnits


def problems_of(p: Predictions, notion: Notion) -> Problem | OneVsRestProblems:
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
    units: IndependentUnits

    @classmethod
    def of(
        cls, p: Predictions, notion: Notion, units: IndependentUnits, rule: Callable[[float], float], most: int
    ) -> BinnedResiduals:
        """Of predictions whose rows all have weight; ``rule`` gives the number of bins for a sample size."""
        reduction = problems_of(p, notion)
        each = max(1, most // len(reduction))
        bins, places, gaps, shares = [], [], [], []
        before, everything = 0, np.arange(p.n_samples)
        for problem, target in zip(reduction, notion.targets(p), strict=True):
            n_bins = int(np.clip(rule(problem.effective_size), 1, each))
            edges = Binned(n_bins, "quantile")._edges(problem)
            cell = np.clip(edges.slots(problem.scores, problem.eps) - 1, 0, edges.n_bins - 1).astype(np.intp)
            rows = everything if target.rows is None else target.rows
            bins.append(cell + before)
            places.append(rows)
            gaps.append(problem.outcomes.astype(np.float64) - problem.scores.astype(np.float64))
            shares.append(np.full(edges.n_bins, problem.share / float(units.row_mass[rows].sum())))
            before += edges.n_bins
        row = np.concatenate(places)
        bin_of, unit_of, mass = np.concatenate(bins), units.of_row[row], units.weight[row]
        residual = mass * np.concatenate(gaps)
        if units.grouped:  # rows of a unit in one bin are one entry
            key, entry = np.unique(bin_of * units.copies.size + unit_of, return_inverse=True)
            bin_of, unit_of = np.divmod(key, units.copies.size)
            residual, mass = (np.bincount(entry.reshape(-1), weights=v, minlength=key.size) for v in (residual, mass))
        return cls(bin_of, unit_of, residual, mass, np.concatenate(shares), units)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over all copies of all units, (B,), of what each entry has."""
        copies = self.units.copies[self.unit_of]
        found = np.bincount(self.bin_of, weights=copies * values, minlength=self.scale.size)
        return np.asarray(found, dtype=np.float64)

    def sparse(self, values: FloatArray) -> Any:
        """What each entry has as an array (B, G)."""
        from scipy.sparse import csr_array

        return csr_array((values, (self.bin_of, self.unit_of)), shape=(self.scale.size, self.units.copies.size))
