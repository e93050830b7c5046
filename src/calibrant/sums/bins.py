"""`BinMoments`: the sums a bin holds. They add, merge, and serialise, so data can come in any pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..data.checks import check_choice
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray
from ..data.weights import are_binary, ones_or
from .design_effects import added_parts, check_parts, held_parts, written
from .edges import Edges
from .field_checks import judged, need, need_shape, need_within
from .resample import as_often, number_as_often
from .shares import MAPPINGS, linear_shares

#: Rows worked on at a time: the temporary arrays stay in the cache.
_TILE = 1 << 15
_BITS_OF_ONE = np.float64(1).view(np.int64)
_FIELDS = ("weight", "score", "outcome", "square", "repeat")


@dataclass(frozen=True, eq=False)
class BinMoments:
    """Sums over samples, one entry a bin, with ``a`` the share of a sample that a bin takes.

    Leading axes (…) are problems side by side: none for one problem, (R,) for many.

    Attributes
    ----------
    edges : Edges
        Of all problems; or with ``values`` of shape (R, B + 1), those of each, NaN behind its last.
    mapping : {"hard", "linear", "linear-as-printed"}
    weight, score, outcome : ndarray of shape (…, B)
        ``Σ w a``, ``Σ w a s`` and ``Σ w a o``.
    square, repeat : ndarray of shape (…, B)
        ``Σ (w a)²`` and ``Σ w a²``: what the effective sample size of a bin needs.
    n_samples : int, or ndarray of shape (…)
        Rows seen.
    integral : bool
        Whether all weights seen were whole numbers.
    parts : ndarray of shape (…, 5) or None
        What design effects of parts of the residuals make of rows in groups; see :mod:`.shared`.

    Notes
    -----
    Merging is exact: ``BinMoments.of(a) + BinMoments.of(b)`` has the sums of the rows of both, up to the
    rounding of float64 addition. Sums of unweighted hard bins are exact counts.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.sums import BinMoments, uniform_edges
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
    n_samples: Any
    integral: bool = True
    parts: FloatArray | None = None

    @classmethod
    def empty(cls, edges: Edges, mapping: str = "hard") -> BinMoments:
        """Sums of no sample."""
        check_choice("mapping", mapping, MAPPINGS)
        zero = np.zeros(edges.n_bins)
        return cls(edges, mapping, zero, zero, zero, zero, zero, 0)

    @classmethod
    def of(cls, problem: Problem, edges: Edges, mapping: str = "hard") -> BinMoments:
        """Sums of the samples of one problem or of many. Cost O(n), a few temporary tiles of 2¹⁵ rows."""
        check_choice("mapping", mapping, MAPPINGS)
        sums = _hard_sums(problem, edges) if mapping == "hard" else _linear_sums(problem, edges, mapping)
        shape = (*problem.shape, edges.n_bins)
        n = problem.counts if problem.shape else problem.n_samples
        weight, score, outcome, square, repeat = (v.reshape(shape) for v in sums)
        if problem.design is not None:
            square = problem.variances(square, repeat)
        return cls(edges, mapping, weight, score, outcome, square, repeat, n, problem.counted, problem.parts)

    def add(
        self,
        scores: FloatArray,
        outcomes: AnyArray,
        weights: FloatArray | None = None,
        *,
        eps: float | None = None,
    ) -> BinMoments:
        """Sums with further samples; ``scores`` in [0, 1], ``outcomes`` 0/1. Nothing is judged here."""
        eps = float(np.finfo(scores.dtype).eps) if eps is None else eps
        integral = weights is None or bool(np.all(weights == np.floor(weights)))
        part = BinMoments.of(Problem(scores, outcomes, weights, integral, eps=eps), self.edges, self.mapping)
        return part if not self.n_samples else self + part

    def __getitem__(self, index: Any) -> BinMoments:
        """Sums of one of many problems, or of some."""
        edges = self.edges[index]
        bins = edges.n_bins if isinstance(index, (int, np.integer)) else self.weight.shape[-1]
        sums = {f: getattr(self, f)[index][..., :bins] for f in _FIELDS}
        parts = None if self.parts is None else self.parts[index]
        return replace(self, edges=edges, n_samples=self.n_samples[index], parts=parts, **sums)

    def __len__(self) -> int:
        return len(self.weight)

    def __add__(self, other: BinMoments) -> BinMoments:
        if not isinstance(other, BinMoments):
            return NotImplemented
        if self.edges != other.edges or self.mapping != other.mapping:
            raise ValueError(
                f"BinMoments with different edges or mapping cannot merge: {self.edges.n_bins} {self.mapping} bins and "
                f"{other.edges.n_bins} {other.mapping} bins"
                + ("" if self.mapping != other.mapping else " with other edges")
            )
        sums = {f: getattr(self, f) + getattr(other, f) for f in _FIELDS}
        n, parts = self.n_samples + other.n_samples, added_parts(self.parts, other.parts)
        return replace(self, n_samples=n, integral=self.integral and other.integral, parts=parts, **sums)

    merge = __add__

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of what is drawn anew: of the bins, in units of the effective sample size."""
        return self.mean_score, self.weight * self._unit, self.outcome * self._unit

    def redrawn(self, count: FloatArray, positive: FloatArray) -> BinMoments:
        """Sums with other samples (R, B) and positives (b R, B) in these bins, at the same mean scores.

        Of many problems, as many samples of each, one problem after the other.
        """
        blocks = len(positive) // len(count)
        score = np.tile(count * as_often(np.nan_to_num(self.mean_score), count), (blocks, 1))
        n = np.tile(number_as_often(self.n_samples, count), blocks)
        count = np.tile(count, (blocks, 1))
        return BinMoments(self.edges, self.mapping, count, score, positive, count, count, n, True)

    @property
    def _unit(self) -> Any:
        """From relative weights to the effective sample size."""
        total = self.weight.sum(axis=-1, keepdims=True)
        if self.integral:
            return 1.0
        return np.divide(
            self.effective_size.sum(axis=-1, keepdims=True), total, out=np.zeros(total.shape), where=total > 0
        )

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
        sums: dict[str, Any] = {f: np.add.reduceat(getattr(self, f), starts, axis=-1) for f in _FIELDS}
        return replace(self, edges=Edges(self.edges.values[keep], exact=self.edges.exact), **sums)

    def as_rows(self, domain: tuple[float, float]) -> Problem:
        """What is known of the samples of one problem: those of a bin at its mean score, positives and negatives."""
        used = self.weight > 0
        score = np.clip(self.mean_score[used], *domain)
        positive = self.outcome[used]
        outcomes = np.repeat([1.0, 0.0], score.size)
        weights = np.concatenate([positive, self.weight[used] - positive])
        # Weights are sums over rows, whose squares say nothing: as many rows as say the same are taken instead.
        if not self.integral and used.any():
            weights *= self.weight.sum() / self.square.sum()
        return Problem(np.tile(score, 2), outcomes, weights, True, domain)

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
            **written(self.parts),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BinMoments:
        """Inverse of :meth:`to_dict`; raises ValueError when a field is missing or is not what it means."""
        with judged("BinMoments", data) as held:
            edges = Edges(held.numbers("edges"), held.flag("uniform"), held.flag("exact"))
            fields = {f: held.numbers(f) for f in _FIELDS}
            mapping, n, integral = str(data["mapping"]), held.whole("n_samples"), held.flag("integral")
            held.need(len(edges.values) > 1 and bool((np.diff(edges.values) > 0).all()), "edges must ascend")
            held.need(edges.values[0] <= 0 and edges.values[-1] >= 1, "edges must cover [0, 1]")
            held.need(mapping in MAPPINGS, f"mapping must be one of {', '.join(MAPPINGS)}")
            out = cls(edges, mapping, n_samples=n, integral=integral, parts=held_parts(held), **fields)
            out.check()
        return out

    def in_groups(self, effects: FloatArray, each: FloatArray) -> BinMoments:
        """Sums of rows in groups, by design effects (R, 5); ``each`` (R,) is what their variances count otherwise."""
        square = (self.repeat if self.integral else self.square) * effects[:, :1]
        return replace(self, square=square, integral=False, parts=each[:, None] * effects)

    def check(self) -> None:
        """ValueError unless these can be the sums of rows."""
        fields = {f: getattr(self, f) for f in _FIELDS}
        need_shape((*np.shape(self.n_samples), self.edges.n_bins), **fields)
        need(np.asarray(self.n_samples) >= 0, "n_samples must not be negative")
        for f in ("score", "outcome", "repeat"):
            need_within(f, fields[f], self.weight)
        need_within("square", self.square, self.weight * self.weight.sum(axis=-1, keepdims=True))
        check_parts(self.parts, np.shape(self.n_samples))


@dataclass(frozen=True)
class Bins:
    """Sums that an estimator may name: those of bins with known edges."""

    edges: Edges
    mapping: str = "hard"

    def of(self, problem: Problem) -> BinMoments:
        """Sums of a problem's samples."""
        return BinMoments.of(problem, self.edges, self.mapping)

    def residuals(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        """``Σ w a (outcome - score)`` of each bin, (R, B), and ``Σ w``, (R,): all that the error of p = 1 needs.

        The gap of a bin times its weight is this sum, so one histogram does (two for linear shares), where the full
        sums need two (ten).
        """
        return _residuals(problem, self.edges, self.mapping)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    out: FloatArray = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def _slots(p: Problem, rows: slice, edges: Edges, size: int) -> AnyArray:
    """Slot ``problem · size + bin`` of some rows."""
    slots = edges.slots(p.scores[rows], p.eps)
    if len(p) == 1:
        return slots
    if slots.size == p.n_samples and slots.size == len(p) * int(p.counts[0]) and int(np.ptp(p.counts)) == 0:
        # In int32, and to intp later: each is a vector instruction, float64 to int64 is none on most processors.
        first = np.arange(len(p), dtype=np.int32) * size
        table = slots.reshape(-1, len(p)).T if p.alternate else slots.reshape(len(p), -1)
        table += first[:, None]
        return slots
    return slots.astype(np.intp) + p.row[rows] * size


def _hard_sums(p: Problem, edges: Edges) -> tuple[FloatArray, ...]:
    """Sums of hard bins, tile by tile. Counts of both outcomes come from one integer histogram."""
    if not are_binary(p.outcomes):
        return _hard_sums_of_reals(p, edges)
    size, n = edges.n_bins + 2, p.n_samples
    length = 2 * len(p) * size
    counts = np.zeros(length, dtype=np.int64 if p.weights is None else np.float64)
    score, square = np.zeros(length), np.zeros(length)
    for a in range(0, n, _TILE):
        rows = slice(a, a + _TILE)
        x = p.scores[rows]
        slots = _slots(p, rows, edges, 2 * size)
        slots += np.multiply(p.outcomes[rows], size, dtype=np.int32, casting="unsafe")
        index = slots.astype(np.intp, copy=False)
        if p.weights is None:
            counts += np.bincount(index, minlength=length)
            score += np.bincount(index, x, minlength=length)
        else:
            w = p.weights[rows]
            counts += np.bincount(index, w, minlength=length)
            score += np.bincount(index, w * x, minlength=length)
            square += np.bincount(index, w * w, minlength=length)

    def folded(sums: AnyArray) -> AnyArray:
        return edges.fold(sums.reshape(-1, 2, size).astype(np.float64, copy=False))

    by_outcome = folded(counts)
    weight = by_outcome.sum(axis=1)
    squares = weight if p.weights is None else folded(square).sum(axis=1)
    return weight, folded(score).sum(axis=1), by_outcome[:, 1], squares, weight


def _hard_sums_of_reals(p: Problem, edges: Edges) -> tuple[FloatArray, ...]:
    """Sums of hard bins of outcomes that are any numbers, as those of flipped residuals are."""
    size, n = edges.n_bins + 2, p.n_samples
    sums = np.zeros((4, len(p) * size))
    for a in range(0, n, _TILE):
        rows = slice(a, a + _TILE)
        index = _slots(p, rows, edges, size).astype(np.intp, copy=False)
        w = ones_or(None if p.weights is None else p.weights[rows], len(index))
        for row, values in zip(sums, (w, w * p.scores[rows], w * p.outcomes[rows], w * w), strict=True):
            row += np.bincount(index, values, minlength=sums.shape[1])
    weight, score, outcome, square = (edges.fold(row.reshape(-1, size)) for row in sums)
    return weight, score, outcome, weight if p.weights is None else square, weight


def _residuals(p: Problem, edges: Edges, mapping: str) -> tuple[FloatArray, FloatArray]:
    hard = mapping == "hard"
    size, n = edges.n_bins + (2 if hard else 1), p.n_samples
    sums = np.zeros(len(p) * size)
    for a in range(0, n, _TILE):
        rows = slice(a, a + _TILE)
        x = p.scores[rows]
        residual = _as_float(p.outcomes[rows])
        residual -= x if x.dtype == np.float64 else x.astype(np.float64)
        if p.weights is not None:
            residual *= p.weights[rows]
        if hard:
            index = _slots(p, rows, edges, size).astype(np.intp, copy=False)
        else:
            index, up = linear_shares(edges, x.astype(np.float64, copy=False), as_printed=mapping != "linear")
            if len(p) > 1:
                index = index + p.row[rows] * size
            up *= residual
            residual -= up
            sums[1:] += _summed(index, up, sums.size)[:-1]
        sums += _summed(index, residual, sums.size)
    total: FloatArray = p.counts.astype(np.float64)
    if p.weights is not None:
        total = np.bincount(p.row, p.weights, minlength=len(p)).astype(np.float64)
    table = sums.reshape(-1, size)
    return (edges.fold(table) if hard else table[:, :-1]), total


def _summed(index: AnyArray, values: FloatArray, size: int) -> FloatArray:
    """``np.bincount(index, values, size)``, which looks for the largest index first: a third of the time here."""
    out = np.zeros(size)
    np.add.at(out, index, values)
    return out


def _as_float(outcomes: AnyArray) -> FloatArray:
    """A float64 copy of 0/1 outcomes. Mixed-dtype arithmetic would go through small buffers, at twice the cost."""
    if outcomes.dtype == np.int64:
        # 0 and 1 times the bit pattern of 1.0 are the patterns of 0.0 and 1.0; an integer product is a vector
        # instruction where the conversion of int64 is not.
        return (outcomes * _BITS_OF_ONE).view(np.float64)
    return outcomes.astype(np.float64)


def _linear_sums(p: Problem, edges: Edges, mapping: str) -> tuple[FloatArray, ...]:
    """Sums where every sample is shared by two neighbouring bins."""
    size, n = edges.n_bins, p.n_samples
    sums = np.zeros((5, len(p) * (size + 1)))
    for a in range(0, n, _TILE):
        rows = slice(a, a + _TILE)
        x = p.scores[rows].astype(np.float64, copy=False)
        o = np.asarray(p.outcomes[rows], dtype=np.float64)
        w = None if p.weights is None else p.weights[rows]
        lower, up = linear_shares(edges, x, as_printed=mapping != "linear")
        if len(p) > 1:
            lower = lower + p.row[rows] * (size + 1)
        for index, share in ((lower, 1 - up), (lower + 1, up)):
            part = share if w is None else w * share
            for row, values in enumerate((part, part * x, part * o, part * part, part * share)):
                sums[row] += np.bincount(index, values, minlength=sums.shape[1])
    return tuple(sums.reshape(5, -1, size + 1)[..., :size])
