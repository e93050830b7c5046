"""`BinMoments`: the sums a bin holds. They add, merge, and serialise, so data can come in any pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray
from ..problem import OneVsRest, Problem
from .edges import Edges
from .mapping import MAPPINGS, linear_shares

#: Samples worked on at a time: the temporary arrays stay in the cache.
_TILE = 1 << 15
#: Up to this many samples, one tile: fewer calls weigh more than the cache.
_ONE_TILE = 1 << 17
_BITS_OF_ONE = np.float64(1).view(np.int64)
_FIELDS = ("weight", "score", "outcome", "square", "repeat")


@dataclass(frozen=True, eq=False)
class BinMoments:
    """Sums over samples, one entry a bin, with ``a`` the share of a sample that a bin takes.

    Attributes
    ----------
    edges : Edges
    mapping : {"hard", "linear", "linear-as-printed"}
    weight, score, outcome : ndarray of shape (B,)
        ``Σ w a``, ``Σ w a s`` and ``Σ w a o``.
    square, repeat : ndarray of shape (B,)
        ``Σ (w a)²`` and ``Σ w a²``: what the effective sample size of a bin needs.
    n_samples : int
        Rows seen.
    integral : bool
        Whether all weights seen were whole numbers.

    Notes
    -----
    Merging is exact: ``BinMoments.of(a) + BinMoments.of(b)`` has the sums of the rows of both, up to the
    rounding of float64 addition. Sums of unweighted hard bins are exact counts.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.binning import BinMoments, uniform_edges
    >>> m = BinMoments.empty(uniform_edges(2)).add(np.array([0.2, 0.9]), np.array([0, 1]))
    >>> (m + m).weight
    array([2., 2.])
    """

    edges: Edges
    mapping: str
    weight: FloatArray
    score: FloatArray
    outcome: FloatArray
    square: FloatArray
    repeat: FloatArray
    n_samples: int
    integral: bool = True

    @classmethod
    def empty(cls, edges: Edges, mapping: str = "hard") -> BinMoments:
        """Sums of no sample."""
        if mapping not in MAPPINGS:
            raise ValueError(f"mapping must be one of {', '.join(map(repr, MAPPINGS))}; got {mapping!r}")
        zero = np.zeros(edges.n_bins)
        return cls(edges, mapping, zero, zero, zero, zero, zero, 0)

    @classmethod
    def of(cls, problem: Problem, edges: Edges, mapping: str = "hard") -> BinMoments:
        """Sums of a problem's samples. Cost O(n), a few temporary tiles of 2¹⁵ samples."""
        empty = cls.empty(edges, mapping)
        return empty._added(problem.scores, problem.outcomes, problem.weights, problem.integral, problem.eps)

    def add(
        self,
        scores: FloatArray,
        outcomes: AnyArray,
        weights: FloatArray | None = None,
        *,
        eps: float | None = None,
    ) -> BinMoments:
        """Sums with further samples; ``scores`` in [0, 1], ``outcomes`` 0/1. Nothing is judged here."""
        integral = weights is None or bool(np.all(weights == np.floor(weights)))
        return self._added(scores, outcomes, weights, integral, eps or float(np.finfo(scores.dtype).eps))

    def _added(
        self, scores: FloatArray, outcomes: AnyArray, weights: FloatArray | None, integral: bool, eps: float
    ) -> BinMoments:
        if self.mapping == "hard":
            sums = _hard_sums(self.edges, scores, outcomes, weights, eps)
        else:
            sums = _linear_sums(self.edges, scores, outcomes, weights, self.mapping == "linear-as-printed")
        weight, score, outcome, square, repeat = sums
        n = int(scores.shape[0])
        part = BinMoments(self.edges, self.mapping, weight, score, outcome, square, repeat, n, integral)
        return part if self.n_samples == 0 else self + part

    def __add__(self, other: BinMoments) -> BinMoments:
        if not isinstance(other, BinMoments):
            return NotImplemented
        if self.edges != other.edges or self.mapping != other.mapping:
            raise ValueError(
                f"BinMoments with different edges or mapping cannot merge: {self.edges.n_bins} {self.mapping} bins and "
                f"{other.edges.n_bins} {other.mapping} bins"
                + ("" if self.mapping != other.mapping else " with other edges")
            )
        return BinMoments(
            self.edges,
            self.mapping,
            self.weight + other.weight,
            self.score + other.score,
            self.outcome + other.outcome,
            self.square + other.square,
            self.repeat + other.repeat,
            self.n_samples + other.n_samples,
            self.integral and other.integral,
        )

    merge = __add__

    @cached_property
    def mean_score(self) -> FloatArray:
        """Mean score a bin; NaN where it is empty."""
        return _ratio(self.score, self.weight)

    @cached_property
    def mean_outcome(self) -> FloatArray:
        """Frequency of the outcome a bin; NaN where it is empty."""
        return _ratio(self.outcome, self.weight)

    @cached_property
    def gap(self) -> FloatArray:
        """Observed minus predicted, a bin; NaN where it is empty."""
        return _ratio(self.outcome - self.score, self.weight)

    @cached_property
    def effective_size(self) -> FloatArray:
        """Sample size a bin: ``(Σ w a)² / Σ w a²`` for whole-number weights, else ``/ Σ (w a)²``; 0 if empty."""
        return np.nan_to_num(_ratio(self.weight**2, self.repeat if self.integral else self.square))

    def coarsen(self, keep: AnyArray) -> BinMoments:
        """Merge neighbouring bins, keeping only the edges at positions ``keep`` (which include both ends)."""
        starts = np.asarray(keep)[:-1]
        sums = {f: np.add.reduceat(getattr(self, f), starts) for f in _FIELDS}
        edges = Edges(self.edges.values[keep], exact=self.edges.exact)
        return BinMoments(edges, self.mapping, n_samples=self.n_samples, integral=self.integral, **sums)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in _FIELDS}
        return {
            "edges": self.edges.values.tolist(),
            "uniform": self.edges.uniform,
            "exact": self.edges.exact,
            "mapping": self.mapping,
            "n_samples": self.n_samples,
            "integral": self.integral,
            **arrays,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BinMoments:
        """Inverse of :meth:`to_dict`; raises ValueError when a field is missing or of the wrong length."""
        try:
            edges = Edges(np.asarray(data["edges"], dtype=np.float64), bool(data["uniform"]), bool(data["exact"]))
            fields = {f: np.asarray(data[f], dtype=np.float64) for f in _FIELDS}
            mapping, n, integral = str(data["mapping"]), int(data["n_samples"]), bool(data["integral"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a serialised BinMoments: {error}") from error
        if any(f.shape != (edges.n_bins,) for f in fields.values()) or mapping not in MAPPINGS:
            raise ValueError(f"not a serialised BinMoments: every field must have one number a bin ({edges.n_bins})")
        return cls(edges, mapping, n_samples=n, integral=integral, **fields)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    out: FloatArray = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


Sums = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


def _hard_sums(edges: Edges, scores: FloatArray, outcomes: AnyArray, weights: FloatArray | None, eps: float) -> Sums:
    """Sums of hard bins, tile by tile. Counts of both outcomes come from one integer histogram."""
    size = edges.n_bins + 2
    counts = np.zeros(2 * size, dtype=np.int64 if weights is None else np.float64)
    score = np.zeros(2 * size)
    square = np.zeros(2 * size)
    for a in range(0, scores.shape[0], _TILE):
        x = scores[a : a + _TILE]
        slots = edges.slots(x, eps)
        slots += np.multiply(outcomes[a : a + _TILE], size, dtype=np.int32, casting="unsafe")
        index = slots.astype(np.intp)
        if weights is None:
            counts += np.bincount(index, minlength=2 * size)
            score += np.bincount(index, x, minlength=2 * size)
        else:
            w = weights[a : a + _TILE]
            counts += np.bincount(index, w, minlength=2 * size)
            score += np.bincount(index, w * x, minlength=2 * size)
            square += np.bincount(index, w * w, minlength=2 * size)
    by_outcome = counts.reshape(2, size).astype(np.float64)
    weight = edges.fold(by_outcome.sum(axis=0))
    outcome = edges.fold(by_outcome[1])
    total = edges.fold(score.reshape(2, size).sum(axis=0))
    squares = weight if weights is None else edges.fold(square.reshape(2, size).sum(axis=0))
    return weight, total, outcome, squares, weight


def residual_sums(problem: Problem, edges: Edges) -> tuple[FloatArray, float]:
    """``Σ w (outcome - score)`` of each hard bin, and ``Σ w``: all that the error of p = 1 needs.

    The gap of a bin times its weight is this sum, so a single histogram does, where the full sums need two.
    """
    size = edges.n_bins + 2
    sums = np.zeros(size)
    scores, outcomes, weights = problem.scores, problem.outcomes, problem.weights
    n = problem.n_samples
    step = _ONE_TILE if n <= _ONE_TILE else _TILE
    for a in range(0, n, step):
        x = scores[a : a + step]
        # To int32 and then to intp: each is a vector instruction, float64 to int64 is none on most processors.
        index = edges.slots(x, problem.eps).astype(np.intp)
        residual = _as_float(outcomes[a : a + step])
        residual -= x if x.dtype == np.float64 else x.astype(np.float64)
        if weights is not None:
            residual *= weights[a : a + step]
        sums += np.bincount(index, residual, minlength=size)
    return edges.fold(sums), float(n if weights is None else weights.sum())


def _as_float(outcomes: AnyArray) -> FloatArray:
    """A float64 copy of 0/1 outcomes. Mixed-dtype arithmetic would go through small buffers, at twice the cost."""
    if outcomes.dtype == np.int64:
        # 0 and 1 times the bit pattern of 1.0 are the patterns of 0.0 and 1.0; an integer product is a vector
        # instruction where the conversion of int64 is not.
        return (outcomes * _BITS_OF_ONE).view(np.float64)
    return outcomes.astype(np.float64)


def _linear_sums(
    edges: Edges, scores: FloatArray, outcomes: AnyArray, weights: FloatArray | None, as_printed: bool
) -> Sums:
    """Sums where every sample is shared by two neighbouring bins."""
    size = edges.n_bins
    sums = np.zeros((5, size + 1))
    for a in range(0, scores.shape[0], _TILE):
        x = scores[a : a + _TILE].astype(np.float64, copy=False)
        o = np.asarray(outcomes[a : a + _TILE], dtype=np.float64)
        w = np.ones_like(x) if weights is None else weights[a : a + _TILE]
        lower, up = linear_shares(edges, x, as_printed=as_printed)
        for index, share in ((lower, 1 - up), (lower + 1, up)):
            part = w * share
            for row, values in enumerate((part, part * x, part * o, part * part, part * share)):
                sums[row] += np.bincount(index, values, minlength=size + 1)
    weight, score, outcome, square, repeat = sums[:, :size]
    return weight, score, outcome, square, repeat


def matrix_moments(problems: OneVsRest, edges: Edges) -> Sequence[BinMoments]:
    """Sums of hard bins for all K one-vs-rest problems at once, sharing ``edges``.

    The matrix is read once, row tile by row tile, with slot ``k · size + bin``; the outcome touches one
    entry a row only. Same sums as one column at a time.
    """
    n, k = problems.probs.shape
    size = edges.n_bins + 2
    rows = max(1, _TILE // k)
    offset = (np.arange(k, dtype=np.int32) * size)[None, :]
    weight, score, outcome, square = (np.zeros(k * size) for _ in range(4))
    for a in range(0, n, rows):
        tile = np.ascontiguousarray(problems.probs[a : a + rows])
        slots = edges.slots(tile.reshape(-1), problems.eps).reshape(tile.shape)
        slots += offset
        index = slots.astype(np.intp)
        hit = np.take_along_axis(index, problems.codes[a : a + rows, None].astype(np.intp), axis=1)[:, 0]
        flat = index.reshape(-1)
        if problems.weights is None:
            weight += np.bincount(flat, minlength=k * size)
            score += np.bincount(flat, tile.reshape(-1), minlength=k * size)
            outcome += np.bincount(hit, minlength=k * size)
        else:
            w = problems.weights[a : a + rows]
            spread = np.repeat(w, k)
            weight += np.bincount(flat, spread, minlength=k * size)
            score += np.bincount(flat, spread * tile.reshape(-1), minlength=k * size)
            square += np.bincount(flat, spread * spread, minlength=k * size)
            outcome += np.bincount(hit, w, minlength=k * size)
    if problems.weights is None:
        square = weight
    folded = [edges.fold(f.reshape(k, size)) for f in (weight, score, outcome, square)]
    return [
        BinMoments(
            edges,
            "hard",
            folded[0][c],
            folded[1][c],
            folded[2][c],
            folded[3][c],
            folded[0][c],
            n,
            problems.integral,
        )
        for c in range(k)
    ]
