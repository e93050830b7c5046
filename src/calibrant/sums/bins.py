"""`BinMoments`: sums per bin. They add, merge, and serialise, so data can come in any batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ..data.checks import check_choice
from ..data.fields import need, need_within
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray
from ..data.weights import are_binary
from .base import Sums, as_often, common, number_as_often, summed
from .edges import Edges
from .runs import DistinctScores, Runs

#: Rows processed at a time, so that temporary arrays fit into the cache.
_TILE, _LONG_TILE = 1 << 15, 1 << 16
_BITS_OF_ONE = np.float64(1).view(np.int64)
_FIELDS = ("weight", "score", "outcome", "square", "repeat")
#: How a sample is shared among bins: hard, linear, or linear as Posocco & Bonnefoy (2021, §4.3) print it.
MAPPINGS = ("hard", "linear", "linear-as-printed")


@dataclass(frozen=True, eq=False)
class BinMoments(Sums):
    """Sums over samples, one entry per bin, with ``a`` the share of a sample assigned to the bin.

    Leading axes (…) are problems side by side: none for one problem, (R,) for many.

    Attributes
    ----------
    edges : Edges
        Common edges of all problems; or, with ``values`` of shape (R, B + 1), edges per problem, NaN after the last.
    mapping : {"hard", "linear", "linear-as-printed"}
        Assignment of samples to bins; see :class:`calibrant.Binned`.
    weight, score, outcome : ndarray of shape (…, B)
        ``Σ w a``, ``Σ w a s`` and ``Σ w a o``.
    square, repeat : ndarray of shape (…, B)
        ``Σ (w a)²`` and ``Σ w a²``, for the effective sample size of a bin.
    n_samples : int, or ndarray of shape (…)
        Number of rows.
    integral : bool
        Whether all weights were whole numbers.
    parts : ndarray of shape (…, 5) or None
        Design effects of parts of the residuals, for rows in groups; see :class:`.base.Shared`.

    See Also
    --------
    calibrant.estimators.Bins : The specification used by estimators.
    calibrant.estimators.GridMoments : Counts on a grid.

    Notes
    -----
    Merging is exact: ``BinMoments.of(a) + BinMoments.of(b)`` equals the sums over the rows of both, up to the
    rounding of float64 addition. Sums of unweighted hard bins are exact counts.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data.problem import Problem
    >>> from calibrant.sums import BinMoments, uniform_edges
    >>> m = BinMoments.of(Problem(np.array([0.2, 0.9]), np.array([0, 1])), uniform_edges(2))
    >>> (m + m).weight
    array([2., 2.])
    """

    edges: Edges
    mapping: str
    weight: Annotated[FloatArray, summed("B")]
    score: Annotated[FloatArray, summed("B")]
    outcome: Annotated[FloatArray, summed("B")]
    square: Annotated[FloatArray, summed("B")]
    repeat: Annotated[FloatArray, summed("B")]
    n_samples: Annotated[Any, summed(low=0, kinds="i")]
    integral: Annotated[bool, common()] = True
    parts: Annotated[FloatArray | None, summed("5", low=0)] = None

    @classmethod
    def empty(cls, edges: Edges, mapping: str = "hard") -> BinMoments:
        """Sums without samples."""
        check_choice("mapping", mapping, MAPPINGS)
        zero = np.zeros(edges.n_bins)
        return cls(edges, mapping, zero, zero, zero, zero, zero, 0)

    @classmethod
    def of(cls, problem: Problem, edges: Edges, mapping: str = "hard") -> BinMoments:
        """Sums of the samples of one or many problems. Cost O(n), with a few temporary tiles of 2¹⁵ rows."""
        check_choice("mapping", mapping, MAPPINGS)
        sums = _hard_sums(problem, edges) if mapping == "hard" else _sums_of_reals(problem, edges, mapping)
        shape = (*problem.shape, edges.n_bins)
        n = problem.counts if problem.shape else problem.n_samples
        weight, score, outcome, square, repeat = (v.reshape(shape) for v in sums)
        if problem.design is not None:
            square = problem.variances(square, repeat)
        return cls(edges, mapping, weight, score, outcome, square, repeat, n, problem.counted, problem.parts)

    def __getitem__(self, index: Any) -> BinMoments:
        """Sums of one or some of many problems."""
        edges, some = self.edges[index], self._fields_at(index)
        if edges.n_bins < self.edges.n_bins:
            some |= {f: some[f][..., : edges.n_bins] for f in _FIELDS}
        return replace(self, edges=edges, **some)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of the resampled units: of the bins, in units of the effective sample size."""
        return self.mean_score, self.weight * self._unit, self.outcome * self._unit

    def resampled(self, count: FloatArray, positive: FloatArray) -> BinMoments:
        """Sums with other samples (R, B) and positives (b R, B) in these bins, at the same mean scores.

        Many problems have equally many samples each, one problem after the other.
        """
        blocks = len(positive) // len(count)
        score = np.tile(count * as_often(np.nan_to_num(self.mean_score), count), (blocks, 1))
        n = np.tile(number_as_often(self.n_samples, count), blocks)
        count = np.tile(count, (blocks, 1))
        return BinMoments(self.edges, self.mapping, count, score, positive, count, count, n, True)

    @property
    def _unit(self) -> Any:
        """Effective sample size per unit of weight."""
        total = self.weight.sum(axis=-1, keepdims=True)
        if self.integral:
            return 1.0
        return np.divide(
            self.effective_size.sum(axis=-1, keepdims=True), total, out=np.zeros(total.shape), where=total > 0
        )

    @cached_property
    def mean_score(self) -> FloatArray:
        """Mean score per bin; NaN for empty bins."""
        return _ratio(self.score, self.weight)

    @cached_property
    def mean_outcome(self) -> FloatArray:
        """Frequency of the outcome per bin; NaN for empty bins."""
        return _ratio(self.outcome, self.weight)

    @cached_property
    def gap(self) -> FloatArray:
        """Observed minus predicted per bin; NaN for empty bins."""
        return _ratio(self.outcome - self.score, self.weight)

    @cached_property
    def effective_size(self) -> FloatArray:
        """Sample size per bin: ``(Σ w a)² / Σ w a²`` for whole-number weights, else ``/ Σ (w a)²``; 0 if empty."""
        return np.nan_to_num(_ratio(self.weight**2, self.repeat if self.integral else self.square))

    def coarsen(self, keep: AnyArray) -> BinMoments:
        """Merge neighbouring bins, keeping only the edges at positions ``keep`` (which include both ends)."""
        starts = np.asarray(keep)[:-1]
        sums: dict[str, Any] = {f: np.add.reduceat(getattr(self, f), starts, axis=-1) for f in _FIELDS}
        return replace(self, edges=Edges(self.edges.values[keep], exact=self.edges.exact), **sums)

    def as_rows(self, domain: tuple[float, float]) -> Problem:
        """Approximate samples of one problem: the positives and negatives of each bin at its mean score."""
        used = self.weight > 0
        weight, positive, square = self.weight[used], self.outcome[used], self.square[used]
        score = np.clip(self.mean_score[used], *domain)
        whole = self.integral or (self.parts is not None and not (weight % 1).any())
        total, squares = (float(v.sum()) if used.any() else 1.0 for v in (weight, square))
        # Sums of relative weights have squares that say nothing: as many rows as say the same are taken instead.
        unit = 1.0 if whole else total / squares
        about: dict[str, Any] = {"starts": np.array([0, 2 * score.size]) if self.shape else None}
        if self.parts is not None:
            about |= {"design": unit * squares / total, "effects": unit / total * np.atleast_2d(self.parts)}
        weights = unit * np.concatenate([positive, weight - positive])
        rows = Problem(np.tile(score, 2), np.repeat([1.0, 0.0], score.size), weights, True, domain, **about)
        if not self.integral:  # by score the squares are known
            n, bounds = np.atleast_1d(self.n_samples), np.array([0, score.size])
            seen = (n, whole, domain, rows.eps, bounds, self.n_samples, self.parts is not None, self.parts)
            rows._kept[DistinctScores()] = Runs(score, weight, positive, square, *seen)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain lists and numbers, for JSON."""
        edges = {"edges": self.edges.values.tolist(), "uniform": self.edges.uniform, "exact": self.edges.exact}
        return edges | {"mapping": self.mapping} | super().to_dict()

    @classmethod
    def _named(cls, data: dict[str, Any]) -> BinMoments:
        values, *flags, mapping = (data.pop(name) for name in ("edges", "uniform", "exact", "mapping"))
        edges = np.asarray(values)
        need(edges.ndim == 1 and edges.dtype.kind in "fi" and edges.size > 1, "edges must be a list of numbers")
        need(np.diff(edges) > 0, "edges must be strictly increasing")
        need(edges[0] <= 0 and edges[-1] >= 1 and np.isfinite(edges), "edges must cover [0, 1]")
        need([type(flag) is bool for flag in flags], "uniform and exact must be true or false")
        return cls.empty(Edges(edges.astype(np.float64), *flags), mapping)

    def in_groups(self, effects: FloatArray, each: FloatArray) -> BinMoments:
        """Sums of rows in groups, by design effects (R, 5); ``each`` (R,) are the variance sums of independent rows."""
        square = (self.repeat if self.integral else self.square) * effects[:, :1]
        return replace(self, square=square, integral=False, parts=each[:, None] * effects)

    def check(self) -> None:
        """Raise ValueError unless these are possible sums of rows."""
        super().check()
        need(self.weight.shape[-1] == self.edges.n_bins, "weight must have one number per bin")
        for f in ("score", "outcome", "repeat"):
            need_within(f, getattr(self, f), self.weight)
        need_within("square", self.square, self.weight * self.weight.sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class Bins:
    """Specification of sums over bins with known edges.

    Parameters
    ----------
    edges : Edges
        Edges of the bins.
    mapping : {"hard", "linear", "linear-as-printed"}, default "hard"
        Assignment of samples to bins; see :class:`calibrant.Binned`.

    See Also
    --------
    calibrant.estimators.QuantileBins : Bins with edges chosen from the data.
    calibrant.estimators.BinMoments : The sums.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> sums = cal.Binned(2)._needs((0.0, 1.0))
    >>> type(sums).__name__, sums.mapping
    ('Bins', 'hard')
    """

    edges: Edges
    mapping: str = "hard"

    def of(self, problem: Problem) -> BinMoments:
        """Sums of a problem's samples."""
        return BinMoments.of(problem, self.edges, self.mapping)

    def residuals(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        """``Σ w a (outcome - score)`` per bin, (R, B), and ``Σ w``, (R,): sufficient for the error with p = 1.

        The gap of a bin times its weight is this sum, so one histogram is enough (two for linear shares), whereas the
        full sums need two (ten).
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
        return _sums_of_reals(p, edges, "hard")
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


def _residuals(p: Problem, edges: Edges, mapping: str) -> tuple[FloatArray, FloatArray]:
    hard = mapping == "hard"
    size, n = edges.n_bins + (2 if hard else 1), p.n_samples
    sums = np.zeros(len(p) * size)
    room = np.empty(min(n, _LONG_TILE))
    for a in range(0, n, _LONG_TILE):
        rows = slice(a, a + _LONG_TILE)
        x = p.scores[rows]
        residual = _as_float(p.outcomes[rows], room[: x.size])
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
    """``np.bincount(index, values, size)`` without its search for the largest index: a third of its time here."""
    out = np.zeros(size)
    np.add.at(out, index, values)
    return out


def _as_float(outcomes: AnyArray, out: FloatArray) -> FloatArray:
    """0/1 outcomes as float64. Mixed-dtype arithmetic would go through small buffers, at twice the cost."""
    if outcomes.dtype == np.int64:
        # 0 and 1 times the bit pattern of 1.0 are the patterns of 0.0 and 1.0; an integer product is a vector
        # instruction where the conversion of int64 is not.
        np.multiply(outcomes, _BITS_OF_ONE, out=out.view(np.int64))
    else:
        out[...] = outcomes
    return out


def _sums_of_reals(p: Problem, edges: Edges, mapping: str) -> tuple[FloatArray, ...]:
    """Sums of real-valued outcomes, such as flipped residuals, and of samples that may be shared by two bins."""
    hard = mapping == "hard"
    size, n = edges.n_bins + (2 if hard else 1), p.n_samples
    sums = np.zeros((5, len(p) * size))
    for a in range(0, n, _TILE):
        rows = slice(a, a + _TILE)
        x = p.scores[rows].astype(np.float64, copy=False)
        o = np.asarray(p.outcomes[rows], dtype=np.float64)
        w = None if p.weights is None else p.weights[rows]
        shares: list[tuple[AnyArray, FloatArray]]
        if hard:
            shares = [(_slots(p, rows, edges, size).astype(np.intp, copy=False), np.ones(x.size))]
        else:
            lower, up = linear_shares(edges, x, as_printed=mapping != "linear")
            if len(p) > 1:
                lower = lower + p.row[rows] * size
            shares = [(lower, 1 - up), (lower + 1, up)]
        for index, share in shares:
            part = share if w is None else w * share
            for row, values in zip(sums, (part, part * x, part * o, part * part, part * share), strict=True):
                row += np.bincount(index, values, minlength=sums.shape[1])
    tables = sums.reshape(5, -1, size)
    return tuple(edges.fold(table) if hard else table[:, :-1] for table in tables)


def linear_shares(edges: Edges, scores: FloatArray, *, as_printed: bool) -> tuple[AnyArray, FloatArray]:
    """Lower bin of each sample and the share of the bin above it.

    A sample between the centres ``c_i`` and ``c_{i+1}`` gives ``(s - c_i) / (c_{i+1} - c_i)`` to bin i + 1 and
    the rest to bin i: the nearer centre takes more. Below the first and above the last centre one bin takes
    all. ``as_printed`` swaps the two shares, as the formula in the paper (and its authors' code) does.
    """
    centres = edges.centres
    if len(centres) == 1:
        return np.zeros(scores.size, dtype=np.intp), np.zeros(scores.size)
    if edges.uniform and not as_printed:
        position = np.clip((scores - centres[0]) / (centres[1] - centres[0]), 0, len(centres) - 1)
    else:  # as printed, shares jump at the centres: scores on one must be found there
        position = np.interp(scores, centres, np.arange(len(centres), dtype=np.float64))
    lower = np.minimum(position.astype(np.intp), len(centres) - 2)
    share = position - lower
    if as_printed:
        inside = (scores > centres[0]) & (scores < centres[-1])
        share = np.where(inside, 1 - share, share)
    return lower, share
