"""Bins of equal volume at every dyadic scale, and the debiased squared error over them, of many sets of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.types import AnyArray, FloatArray
from ..data.weights import ones_or
from ..notions import Target

#: Finest scale: bins this many rounding units of the scores wide.
_UNITS = 8
#: Rows in an occupied bin, on average, below which a scale is left out: a few chance pairs say little, and their
#: distribution has a tail that would drown the other scales.
ROWS_A_BIN = 2
#: Of more rows than this no scale has more than 2 ** MOST_CELLS bins a side.
MANY_ROWS, MOST_CELLS = 1 << 18, 15
#: Numbers held at a time.
_BLOCK = 1 << 20
#: Sums over a unit's rows of the entries v of their covariance matrices, and of v²; how often the entries occur.
Term = tuple[FloatArray, FloatArray, int]
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
        Adds up bins of the next finer level, or units, into the occupied bins of this one.
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
    """A problem cut at all scales, in units of rows, or of cells with many rows each.

    Attributes
    ----------
    target : Target
    count : ndarray of shape (u,)
        Rows of each unit.
    weights : ndarray of shape (u,)
        Weight of each of these rows.
    probs, squares : ndarray of shape (u, d)
        Mean of the rows' stated probabilities, of one outcome or of all classes, and sum of their squares.
    happened : list of ndarray of shape (u, 1)
        Rows of each unit whose outcome happened.
    levels : tuple of Level
        Finest first; those that say something of their own.
    """

    target: Target
    count: FloatArray
    weights: FloatArray
    probs: FloatArray
    squares: FloatArray
    happened: list[FloatArray]
    levels: tuple[Level, ...]

    @classmethod
    def of(
        cls, target: Target, codes: AnyArray, eps: float, weights: FloatArray | None = None, n_scales: int | None = None
    ) -> Scales:
        """Cut a target's rows by their scores, given labels, the rounding unit of scores and weights of all rows."""
        s = target.scores.astype(np.float64)
        if weights is not None and target.rows is not None:
            weights = weights[target.rows]
        w, n = ones_or(weights, len(s)), len(s)
        probs, place = (s, _simplex_place(s)) if s.ndim == 2 else (s[:, None], _place(target, s)[:, None])
        most = _most(n, place.shape[1], eps, n_scales)
        cells = _cells(place, eps, most)
        variances = probs * (1 - probs)
        # Squares of the entries of the rows' covariance matrices, diag(p) - p pᵀ.
        squared = variances**2
        pairs = [(v, v * v) for v in [probs[:, a] * probs[:, b] for a in range(probs.shape[1]) for b in range(a)]]
        terms = [(v, q, 1) for v, q in zip(variances.T, squared.T, strict=True)] + [(v, q, 2) for v, q in pairs]
        levels = _levels(cells[:, 0] if cells.shape[1] == 1 else cells, most, np.ones(n), w, variances.sum(1), terms)
        happened = _split(target.outcomes(codes[:, None]))
        return cls(target, np.ones(n), w, probs, probs**2, happened, levels)

    @classmethod
    def of_cells(cls, target: Target, codes: AnyArray, eps: float, n_scales: int | None = None) -> Scales:
        """The same for many rows without weights and one outcome each: cells of the finest scale are the units."""
        n, most = len(target.scores), _most(len(target.scores), 1, eps, n_scales)
        sums = np.zeros((6, 2**most))
        hits = target.outcomes(codes)
        for a in range(0, n, _BLOCK):
            s = target.scores[a : a + _BLOCK].astype(np.float64)
            home, v = _cells(_place(target, s), eps, most), s * (1 - s)
            for total, each in zip(sums, (None, hits[a : a + _BLOCK], s, s * s, v, v * v), strict=True):
                total += np.bincount(home, each, 2**most)
        used = np.flatnonzero(sums[0])
        count, happened, total, squares, variance, squared = sums[:, used]
        w, terms = np.ones(used.size), [(variance, squared, 1)]
        levels = _levels(used, most, count, w, variance, terms)
        return cls(target, count, w, (total / count)[:, None], squares[:, None], [happened[:, None]], levels)

    def outcomes(self, sets: AnyArray) -> list[FloatArray]:
        """Whether each row's outcome happened, (n, r) each, from labels (r, n of the sample)."""
        return _split(self.target.outcomes(np.ascontiguousarray(sets.T)))

    def drawn(self, n: int, rng: np.random.Generator) -> Iterator[list[FloatArray]]:
        """Rows of each unit whose outcome happened, drawn from the stated probabilities, some of n sets at a time."""
        together = max(1, _BLOCK // max(self.count.size, 1))
        count, chance = self.count.astype(np.int64)[:, None], self.probs.clip(0, 1)
        for a in range(0, n, together):
            yield [rng.binomial(count, chance, (count.size, min(together, n - a))).astype(np.float64)]

    def squared_errors(self, happened: list[FloatArray]) -> FloatArray:
        """T at each scale, (levels, r), of outcomes that happened in the units, (u, r) each."""
        w, count = self.weights[:, None], self.count[:, None]
        columns = [(k, self.probs[:, [i]], self.squares[:, [i]]) for i, k in enumerate(happened)]
        sums = [w * (k - count * p) for k, p, _ in columns]
        alone = np.add.reduce([w * w * (k * (1 - 2 * p) + q) for k, p, q in columns])
        found = []
        for level in self.levels:
            sums, alone = [level.adds @ one for one in sums], level.adds @ alone
            found.append((1 / level.weight) @ (np.add.reduce([one * one for one in sums]) - alone))
        return np.asarray(np.stack(found) / (self.weights @ self.count))

    def errors_of(self, residuals: list[FloatArray]) -> FloatArray:
        """``Σ_b (Σ_i w_i r_i)² / w_b`` at each scale, (levels, r), of residuals of the units, (u, r) each."""
        sums = [self.weights[:, None] * one for one in residuals]
        found = []
        for level in self.levels:
            sums = [level.adds @ one for one in sums]
            found.append((1 / level.weight) @ np.add.reduce([one * one for one in sums]))
        return np.asarray(np.stack(found) / (self.weights @ self.count))

    def standardised(self, errors: FloatArray) -> FloatArray:
        """T of each level as a normal variable with mean 0 and sd 1, nearly."""
        mean, sd = (np.array([[getattr(level, name)] for level in self.levels]) for name in ("mean", "sd"))
        spread = (sd / mean) ** 2 / 9  # 2 / (9 ν), with ν = 2 (mean / sd)² degrees of freedom
        return np.asarray((np.cbrt(1 + errors / mean) - (1 - spread)) / np.sqrt(spread))

    def largest(self, happened: list[FloatArray]) -> FloatArray:
        """Largest standardised error over scales, (r,)."""
        return np.asarray(self.standardised(self.squared_errors(happened)).max(axis=0))


def impossible(target: Target, codes: AnyArray) -> int:
    """Rows whose outcome had stated probability 0."""
    hits, s = target.outcomes(codes), target.scores
    wrong = np.where(hits, s, 1 - s) <= 0
    return int((wrong.any(axis=1) if wrong.ndim == 2 else wrong).sum())


def _split(hits: AnyArray) -> list[FloatArray]:
    return [one.astype(np.float64) for one in (np.moveaxis(hits, -1, 0) if hits.ndim == 3 else (hits,))]


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


def _place(target: Target, scores: FloatArray) -> FloatArray:
    low, high = target.domain
    return np.asarray((scores - low) / (high - low))


def _most(n: int, axes: int, eps: float, n_scales: int | None) -> int:
    """Base-2 logarithm of the bins a side at the finest scale."""
    most = finest(n, axes, eps) if n_scales is None else min(n_scales - 1, int(-np.log2(_UNITS * eps)))
    return min(most, MOST_CELLS) if n > MANY_ROWS else most


def _cells(place: FloatArray, eps: float, most: int) -> AnyArray:
    """Right-closed bins at the finest scale, of places in the unit cube."""
    # A place that exceeds an edge by its rounding error lies on the edge.
    return np.asarray(np.clip(np.ceil((place - 4 * eps) * 2.0**most).astype(np.int64) - 1, 0, 2**most - 1))


def _levels(
    cells: AnyArray, most: int, count: FloatArray, w: FloatArray, variance: FloatArray, terms: Sequence[Term]
) -> tuple[Level, ...]:
    """Bins at every scale, from those of the units at the finest."""
    n = count.sum()
    homes: list[tuple[int, int, AnyArray]] = []
    home = np.arange(len(count))
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
    below = np.arange(len(count))
    for _, a_side, home in homes:
        level = _level(a_side, below, home, count * w, w, variance, terms)
        if level.sd > 0:
            levels.append(level)
            below = home
    return tuple(levels)


def _level(
    a_side: int,
    below: AnyArray,
    home: AnyArray,
    mass: FloatArray,
    w: FloatArray,
    variance: FloatArray,
    terms: Sequence[Term],
) -> Level:
    """Bins' weights, and mean and standard deviation under calibration, given the scores.

    ``below`` and ``home`` are the units' bins at the finer level and at this one, ``variance`` the sum of their rows'.
    """
    from scipy.sparse import csr_array

    bins = int(home.max()) + 1
    parent = np.empty(int(below.max()) + 1, dtype=np.intp)
    parent[below] = home
    adds = csr_array((np.ones(parent.size), (parent, np.arange(parent.size))), shape=(bins, parent.size))
    weight = np.bincount(home, mass, bins).astype(np.float64)
    own = w**2 / weight[home]
    # Over pairs of rows of a bin: product of w² v, over the square of the bin's weight.
    total = sum(
        times * float((np.bincount(home, own * one, bins) ** 2).sum() - own**2 @ squared)
        for one, squared, times in terms
    )
    alone = float(own @ variance)
    real = total > _ROUNDING * alone**2
    scale = mass.sum()
    return Level(a_side, adds, weight, alone / scale, float(np.sqrt(2 * total)) / scale if real else 0.0)
