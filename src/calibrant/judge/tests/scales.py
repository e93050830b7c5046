"""Bins of equal volume at every dyadic scale, and the debiased squared error over them, of many sets of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.notions import Target
from ...data.types import AnyArray, FloatArray
from ...data.weights import ones_or

#: Finest scale: bins this many rounding units of the scores wide.
_UNITS = 8
#: Rows in an occupied bin, on average, below which a scale is left out: a few chance pairs say little, and their law
#: has a tail that would drown the other scales.
ROWS_A_BIN = 2
#: Share of a sum of squares that rounding may leave.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Level:
    """One scale.

    Attributes
    ----------
    a_side : int
        Bins along each axis, empty ones among them.
    adds : sparse matrix
        Adds up bins of the next finer level, or rows, into the occupied bins of this one.
    weight : ndarray of shape (B,)
        Weight of each bin.
    mean, sd : float
        Under calibration, of the part of T that comes from rows with themselves, and of T.
    """

    a_side: int
    adds: Any
    weight: FloatArray
    mean: float
    sd: float


@dataclass(frozen=True, eq=False)
class Scales:
    """A problem cut at all scales.

    Attributes
    ----------
    target : Target
    probs : ndarray of shape (n, d)
        Stated probabilities: of one outcome, or of all classes.
    weights : ndarray of shape (n,)
    levels : tuple of Level
        Finest first; those that say something of their own.
    """

    target: Target
    probs: FloatArray
    weights: FloatArray
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, target: Target, eps: float, weights: FloatArray | None, n_scales: int | None) -> Scales:
        """Cut a target's rows by their scores, given the rounding unit of these and weights of all rows."""
        s = target.scores.astype(np.float64)
        if weights is not None and target.rows is not None:
            weights = weights[target.rows]
        w = ones_or(weights, len(s))
        low, high = target.domain
        probs, place = (s, _simplex_place(s)) if s.ndim == 2 else (s[:, None], ((s - low) / (high - low))[:, None])
        return cls(target, probs, w, _levels(probs, place, eps, w, n_scales))

    def outcomes(self, sets: AnyArray) -> list[FloatArray]:
        """Whether each outcome happened, (n, r) each, from labels (r, n of the sample)."""
        hits = self.target.outcomes(np.ascontiguousarray(sets.T))
        return [one.astype(np.float64) for one in (np.moveaxis(hits, -1, 0) if hits.ndim == 3 else (hits,))]

    def impossible(self, codes: AnyArray) -> int:
        """Rows whose outcome had stated probability 0."""
        happened = np.stack([o[:, 0] for o in self.outcomes(codes[None])], axis=1)
        stated = np.where(happened > 0, self.probs, 1 - self.probs)
        return int((stated[self.weights > 0] <= 0).any(axis=1).sum())

    def squared_errors(self, sets: AnyArray) -> FloatArray:
        """T at each scale, (levels, r)."""
        sums = [self.weights[:, None] * (o - self.probs[:, [k]]) for k, o in enumerate(self.outcomes(sets))]
        alone = np.add.reduce([one * one for one in sums])
        found = []
        for level in self.levels:
            sums, alone = [level.adds @ one for one in sums], level.adds @ alone
            found.append((1 / level.weight) @ (np.add.reduce([one * one for one in sums]) - alone))
        return np.asarray(np.stack(found) / self.weights.sum())

    def standardised(self, errors: FloatArray) -> FloatArray:
        """T of each level as a normal variable with mean 0 and sd 1, nearly."""
        mean, sd = (np.array([[getattr(level, name)] for level in self.levels]) for name in ("mean", "sd"))
        spread = (sd / mean) ** 2 / 9  # 2 / (9 ν), with ν = 2 (mean / sd)² degrees of freedom
        return np.asarray((np.cbrt(1 + errors / mean) - (1 - spread)) / np.sqrt(spread))


def finest(n: int, axes: int, eps: float) -> int:
    """Base-2 logarithm of the paper's largest number of bins a side, as far as the scores' rounding allows."""
    most = int(np.ceil(2 / axes * np.log2(n / np.sqrt(np.log(n))))) if n > 2 else 1
    return max(1, min(most, int(-np.log2(_UNITS * eps))))


def _simplex_place(q: FloatArray) -> FloatArray:
    """Places of vectors in the unit cube, uniform there if the vectors are uniform on the simplex."""
    k = q.shape[1]
    rest = np.maximum(1 - np.cumsum(q, axis=1) + q, 0)[:, :-1]
    broken = np.divide(q[:, :-1], rest, out=np.zeros_like(rest), where=rest > 0).clip(0, 1)
    return np.asarray(1 - (1 - broken) ** np.arange(k - 1, 0, -1))


def _levels(probs: FloatArray, place: FloatArray, eps: float, w: FloatArray, n_scales: int | None) -> tuple[Level, ...]:
    """Right-closed bins at every scale, from places in the unit cube (n, axes)."""
    n, axes = place.shape
    most = finest(n, axes, eps) if n_scales is None else min(n_scales - 1, int(-np.log2(_UNITS * eps)))
    # A place that exceeds an edge by its rounding error lies on the edge.
    cells = np.maximum(np.ceil((place - 4 * eps) * 2.0**most).astype(np.int64) - 1, 0)
    cells = cells[:, 0] if axes == 1 else cells
    homes: list[tuple[int, int, AnyArray]] = []
    home = np.arange(n)
    for b in range(most, -1, -1):
        cells, parent = np.unique(cells, axis=0, return_inverse=True)
        home = parent.reshape(-1)[home]
        # Bins are nested: as many bins as at the finer scale are the same bins.
        if homes and len(cells) == homes[-1][0]:
            homes.pop()
        if len(cells) * ROWS_A_BIN <= n:
            homes.append((len(cells), 2**b, home))
        cells = cells >> 1
    levels: list[Level] = []
    below = np.arange(n)
    for _, a_side, home in homes:
        level = _level(a_side, below, home, probs, w)
        if level.sd > 0:
            levels.append(level)
            below = home
    return tuple(levels)


def _level(a_side: int, below: AnyArray, home: AnyArray, probs: FloatArray, w: FloatArray) -> Level:
    """Bins' weights, and mean and standard deviation under calibration, given the scores.

    ``below`` and ``home`` are the rows' bins at the finer level and at this one.
    """
    from scipy.sparse import csr_array

    bins = int(home.max()) + 1
    parent = np.empty(int(below.max()) + 1, dtype=np.intp)
    parent[below] = home
    adds = csr_array((np.ones(parent.size), (parent, np.arange(parent.size))), shape=(bins, parent.size))
    weight = np.bincount(home, w, bins).astype(np.float64)
    own = w**2 / weight[home]
    variances = probs * (1 - probs)
    d = probs.shape[1]

    def pairs(values: FloatArray) -> float:
        """Sum over pairs of rows of a bin: product of w² v, over the square of the bin's weight."""
        each = own * values
        return float((np.bincount(home, each, bins) ** 2).sum() - each @ each)

    # Squares of the entries of the rows' covariance matrices, diag(p) - p pᵀ.
    total = sum(pairs(variances[:, k]) for k in range(d))
    total += 2 * sum(pairs(probs[:, a] * probs[:, b]) for a in range(d) for b in range(a))
    alone = float(own @ variances.sum(axis=1))
    real = total > _ROUNDING * alone**2
    scale = w.sum()
    return Level(a_side, adds, weight, alone / scale, float(np.sqrt(2 * total)) / scale if real else 0.0)
