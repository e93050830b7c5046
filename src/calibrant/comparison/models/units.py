"""Independent units (rows, or groups of rows), and the variance of means over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...data.dependence import group_codes
from ...data.predictions import Predictions
from ...data.progress import counted
from ...data.types import AnyArray, FloatArray, IntArray
from ...data.weights import ones_or, rest_of

#: Multiplicities worked on at a time.
_TOGETHER = 1 << 22


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """Independent units that rows belong to.

    Attributes
    ----------
    of_row : ndarray of shape (n,)
        Unit of each row.
    weight : ndarray of shape (n,)
        Weight of each row.
    copies : ndarray of shape (G,)
        Number of equal units that each one stands for: whole-number weights, where rows are the units.
    grouped : bool
        Whether units are groups of rows.
    """

    of_row: IntArray
    weight: FloatArray
    copies: FloatArray
    grouped: bool

    @classmethod
    def of(cls, p: Predictions) -> IndependentUnits:
        """Units of predictions whose rows all have weight."""
        weight = ones_or(p.weights, p.n_samples)
        if p.together is not None:
            of_row = group_codes(p.together)  # of those that have weight
            return cls(of_row, weight, np.ones(int(of_row.max()) + 1), True)
        rows = np.arange(p.n_samples)
        # Repeated rows are rows: each of them may be drawn or not.
        if p.integral_weights:
            return cls(rows, np.ones(p.n_samples), weight, False)
        return cls(rows, weight, np.ones(p.n_samples), False)

    @property
    def size(self) -> float:
        """Number of independent units."""
        return float(self.copies.sum())

    @cached_property
    def row_mass(self) -> FloatArray:
        """Weight of each row, with its repeats."""
        return self.weight * self.copies[self.of_row]

    @cached_property
    def mass(self) -> FloatArray:
        """Weight of one copy of each unit, (G,)."""
        return self.sums(np.ones(self.of_row.size))

    @cached_property
    def total(self) -> float:
        """Total weight."""
        return float(self.row_mass.sum())

    @cached_property
    def effective_size(self) -> float:
        """Kish's number of units; hardly more than one if one group has most of the weight."""
        return float(self.total**2 / (self.copies @ self.mass**2))

    def sums(self, values: FloatArray) -> FloatArray:
        """Weighted sums over the rows of one copy of each unit, (G,)."""
        found = np.bincount(self.of_row, weights=self.weight * values, minlength=self.copies.size)
        return np.asarray(found, dtype=np.float64)

    def matrix(self, cell: AnyArray, n_cells: int, values: FloatArray) -> Any:
        """Sparse sums, (cells, G), of weighted values of rows that lie in cells."""
        from scipy.sparse import csr_array

        return csr_array((self.weight * values, (cell, self.of_row)), shape=(n_cells, self.copies.size))

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Counts (G, r) of units in bootstrap resamples of all units, some resamples at a time."""
        g, number = self.copies.size, round(self.size)
        plain = bool((self.copies == 1).all())
        share = self.copies / self.size
        together = max(1, _TOGETHER // g)
        for start in counted(range(0, n_resamples, together), "resamples"):
            r = min(together, n_resamples - start)
            if not plain:
                yield rng.multinomial(number, share, size=r).T.astype(np.float64)
                continue
            drawn = rng.integers(g, size=(r, number))
            drawn += (np.arange(r) * g)[:, None]
            yield np.bincount(drawn.reshape(-1), minlength=r * g).reshape(r, g).T.astype(np.float64)

    def covariance(self, influence: FloatArray) -> FloatArray:
        """Covariance (m, m) of means whose influence by one copy of each unit is (m, G).

        The larger a unit's share of the weight, the nearer the mean is to it: squares are divided by one minus that
        share (Bell & McCaffrey 2002), a factor of G / (G - 1) for equal units.
        """
        centred = influence - (influence @ self.copies / self.size)[:, None]
        return np.asarray((centred * (self.copies / rest_of(self.mass / self.total))) @ centred.T)

    @property
    def inflation(self) -> float:
        """Variance of a mean over that of its bootstrap: G / (G - 1) with Kish's number of units."""
        return 1 + 1 / max(self.df, 1.0)

    @cached_property
    def df(self) -> float:
        """Degrees of freedom of the variance: Kish's number of units minus one, at least 1; 0 for a single unit."""
        return max(self.effective_size - 1, 1.0) if self.size > 1 else 0.0
