"""Squared calibration errors of several models on the same rows: unbiased, with the covariance of their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...data.predictions import Predictions
from ...data.problem import OneVsRestProblems, Problem, VectorProblem
from ...data.types import AnyArray, FloatArray
from ...estimators import Binned
from ...notions import Notion
from .units import IndependentUnits

#: Most bins of all problems of a model together: products of two models' bins are computed pair by pair.
MOST_BINS = 4096
_BLOCK = 512
#: Most units whose pairs are stored.
_MOST_UNITS = 1024


def problems_of(p: Predictions, notion: Notion) -> Problem | OneVsRestProblems:
    """The 1-D problems of a notion; ValueError for a notion of vectors."""
    reduction = notion.reduce(p)
    if isinstance(reduction, VectorProblem):
        raise ValueError(
            f"models cannot be compared by the notion {notion.name!r}: use 'classwise', 'confidence', 'top-label' or a "
            "class"
        )
    return reduction


@dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """Sums over one copy of each unit within each bin; one entry per non-empty pair of the two.

    Attributes
    ----------
    bin_of, unit_of : ndarray of shape (e,)
        Bins of all problems of a notion, one after the other.
    residual, mass : ndarray of shape (e,)
        Sums of weighted residuals ``o - s``, and of weights.
    scale : ndarray of shape (B,)
        Share of the bin's problem over that problem's weight; times the bin's weight, it is the bin's share.
    units : IndependentUnits
    """

    bin_of: AnyArray
    unit_of: AnyArray
    residual: FloatArray
    mass: FloatArray
    scale: FloatArray
    units: IndependentUnits

    @classmethod
    def of(cls, p: Predictions, notion: Notion, units: IndependentUnits) -> BinnedResiduals:
        """From predictions whose rows all have weight; √n bins, as noise does not bias products of units."""
        reduction = problems_of(p, notion)
        each = max(1, MOST_BINS // len(reduction))
        bins, places, gaps, shares = [], [], [], []
        before, everything = 0, np.arange(p.n_samples)
        for problem, target in zip(reduction, notion.targets(p), strict=True):
            n_bins = int(np.clip(np.sqrt(problem.effective_size), 1, each))
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
        """Sums of the entries over all copies of all units, (B,)."""
        copies = self.units.copies[self.unit_of]
        found = np.bincount(self.bin_of, weights=copies * values, minlength=self.scale.size)
        return np.asarray(found, dtype=np.float64)

    def sparse(self, values: FloatArray) -> Any:
        """The entries as an array (B, G)."""
        from scipy.sparse import csr_array

        return csr_array((values, (self.bin_of, self.unit_of)), shape=(self.scale.size, self.units.copies.size))


@dataclass(frozen=True, eq=False)
class Squares:
    r"""Squared error of one model, over bins j of equal counts and pairs of different units u ≠ v.

    .. math:: T = \sum_j \pi_j \frac{\sum_{u \ne v} r_{uj} r_{vj}}{\sum_{u \ne v} m_{uj} m_{vj}}

    with :math:`r_{uj}` and :math:`m_{uj}` the sums of residuals ``o - s`` and of weights of a unit's rows in a bin, and
    :math:`\pi_j` the bin's share of the weight. The noise of two units is uncorrelated, whatever the correlation within
    a unit, so T is unbiased for :math:`\sum_j \pi_j E[o - s \mid j]^2`.

    Attributes
    ----------
    value : float
    influence : ndarray of shape (G,)
        Contribution to T of one copy of each unit, paired with all others.
    factor : ndarray of shape (B,)
        Weight in T of a product of two units in a bin.
    noise : sparse array of shape (B, G)
        Residual sums minus the bins' gaps.
    """

    value: float
    influence: FloatArray
    factor: FloatArray
    noise: Any

    @classmethod
    def of(cls, p: Predictions, notion: Notion, units: IndependentUnits) -> Squares:
        """From predictions whose rows all have weight."""
        found = BinnedResiduals.of(p, notion, units)
        residual, mass, bin_of = found.residual, found.mass, found.bin_of
        gap, whole = found.sums(residual), found.sums(mass)
        products, pairs = gap**2 - found.sums(residual**2), whole**2 - found.sums(mass**2)
        # A bin with one unit has no pair: the noise of its gap is unknown, and it counts as 0.
        several = pairs > 1e-9 * whole**2
        pairs = np.where(several, pairs, np.inf)
        factor = found.scale * whole / pairs
        value = float(factor @ products)
        others = np.where(several[bin_of], whole[bin_of] - mass, np.inf)
        terms = 2 * residual * (gap[bin_of] - residual) / others - mass * (products / pairs)[bin_of]
        influence = np.bincount(found.unit_of, weights=found.scale[bin_of] * terms, minlength=units.copies.size)
        mean = np.divide(gap, whole, out=np.zeros(whole.shape), where=whole > 0)
        noise = found.sparse(residual - mass * mean[bin_of])
        return cls(value, influence - value * units.mass / units.total, factor, noise)

    @cached_property
    def of_pairs(self) -> FloatArray:
        """Contribution to T of each pair of units, (G, G)."""
        return np.asarray((self.noise.T @ self.noise.multiply(self.factor[:, None]).tocsr()).todense())


def squares_covariance(models: Sequence[Squares], units: IndependentUnits) -> tuple[FloatArray, FloatArray]:
    r"""Covariance (M, M) of squared errors, and the part of it that remains where all models are calibrated.

    .. math:: \sum_u \psi_u^2 - \tfrac12 \sum_{u \ne v} h_{uv}^2

    with the influences ψ and the contributions h of pairs of units. The influences count the noise of squared gaps
    twice (Efron & Stein 1981), that of a gap that is not 0 once.
    """
    number = len(models)
    pairs = np.empty((number, number))
    for i, one in enumerate(models):
        for j in range(i + 1):
            pairs[i, j] = pairs[j, i] = _pair_covariance(one, models[j], units.copies)
    whole = units.covariance(np.stack([m.influence for m in models]))
    return whole - pairs, pairs


def _pair_covariance(one: Squares, other: Squares, copies: FloatArray) -> float:
    """``2 Σ_{u ≠ v} (Σ_j a_j r_uj r_vj)(Σ_k b_k q_uk q_vk)``, by the products of bins, or of units if these are fewer.

    Both are sums over pairs of all copies minus those of a copy with itself.
    """
    if copies.size < min(one.factor.size, _MOST_UNITS):
        first, second = one.of_pairs, other.of_pairs
        return 2 * float(copies @ (first * second) @ copies - copies @ (np.diag(first) * np.diag(second)))
    right = other.noise.multiply(copies).T.tocsr()
    right_squared = other.noise.multiply(other.noise).multiply(copies).T.tocsr()
    total = 0.0
    for start in range(0, one.factor.size, _BLOCK):
        rows = one.noise[start : start + _BLOCK]
        a = one.factor[start : start + _BLOCK]
        met = rows @ right
        total += a @ (met.multiply(met) @ other.factor) - a @ (rows.multiply(rows) @ (right_squared @ other.factor))
    return 2 * float(total)
