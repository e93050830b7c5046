"""Beam search over conditions for segments with the largest residuals relative to their variance, by sums of codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...data.types import AnyArray, FloatArray, IntArray
from .features import Condition, Feature, within

#: Segments of a length that are extended.
_BEAM = 10
#: Keys that are summed at a time: they stay in the cache.
_KEYS = 1 << 18
#: Largest share of its parent's variance that a segment may have.
_MOST_OF_PARENT = 0.95
_ROUNDS = 2


class Limits(NamedTuple):
    """Most conditions of a segment, and smallest variance and number of rows of a segment and its complement."""

    terms: int
    variance: float
    rows: int


class FoundSegment(NamedTuple):
    """A segment, and half of its squared statistic, ``z²/2``."""

    conditions: tuple[Condition, ...]
    rank: float

    def less(self, penalty: FloatArray) -> float:
        """Rank among segments of any length: ``z²/2`` minus the penalty of its length."""
        return self.rank - float(penalty[len(self.conditions)])


_NOTHING = FoundSegment((), -np.inf)


@dataclass(frozen=True, eq=False)
class Searched:
    """Input of a search: codes of rows, the residuals' variance, and its inflation by groups for each feature.

    Attributes
    ----------
    features : sequence of F Feature
    codes : ndarray of shape (F, n)
    variance : ndarray of shape (n,)
    inflation : ndarray of shape (F,)
        Variance of sums of residuals by the feature's values, for dependent rows over independent ones; at least 1.
    limits : Limits
    """

    features: Sequence[Feature]
    codes: AnyArray
    variance: FloatArray
    inflation: FloatArray
    limits: Limits

    @cached_property
    def _offsets(self) -> IntArray:
        """Where the codes of each feature begin among those of all."""
        return np.cumsum([0, *(feature.missing + 1 for feature in self.features)])

    @cached_property
    def _candidates(self) -> tuple[IntArray, IntArray, IntArray]:
        """Feature, first code and end of every condition; codes are numbered across features."""
        every = [(f, *(self._offsets[f] + np.array(c))) for f, one in enumerate(self.features) for c in one.candidates]
        table = np.array(every, dtype=np.intp).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    @cached_property
    def log_number(self) -> FloatArray:
        """Logarithm of the number of segments per number of conditions, (terms + 1,), as if they were independent.

        Ranges of a number that share an end are alike: only twice as many count as there are bins.
        """
        from scipy.special import gammaln

        number = sum(2 * one.starts.size if one.ordered else one.missing for one in self.features)
        n, d = max(number, self.limits.terms), np.arange(self.limits.terms + 1)
        return np.asarray(gammaln(n + 1) - gammaln(d + 1) - gammaln(n - d + 1))

    @cached_property
    def _total(self) -> float:
        return float(self.variance.sum())

    def inside(self, conditions: Sequence[Condition]) -> AnyArray:
        """Mask of the rows in a segment."""
        return within(self.codes, conditions)

    def complement(self, conditions: Sequence[Condition], inside: AnyArray) -> tuple[Condition, ...]:
        """The condition of all other rows, if a single one describes them; else none."""
        if len(conditions) > 1:
            return ()
        at = conditions[0].feature
        of, feature = self.codes[at][~inside], self.features[at]
        low, high = int(of.min()), int(of.max()) + 1
        one = high == low + 1 or (feature.ordered and high <= feature.missing)
        other = (Condition(at, low, high),)
        return other if one and (self.inside(other) != inside).all() else ()

    def sums(self, values: Sequence[FloatArray], rows: AnyArray | None) -> FloatArray:
        """Sums of values over the rows of each condition, (m, K)."""
        of = self.codes if rows is None else self.codes.take(rows, axis=1)
        n, width = of.shape[1], int(self._offsets[-1])
        out = np.zeros((len(values), width + 1))
        together = max(1, _KEYS // max(n, 1))
        for first in range(0, len(of), together):
            some = of[first : first + together]
            keys = (some + self._offsets[first : first + len(some), None]).reshape(-1)
            for total, one in zip(out, values, strict=True):
                weights = one if len(some) == 1 else np.tile(one, len(some))
                total[1:] += np.bincount(keys, weights, width)
        running = np.cumsum(out, axis=1)
        _, low, high = self._candidates
        return np.asarray(running[:, high] - running[:, low])

    def best(self, residuals: FloatArray) -> list[list[FoundSegment]]:
        """For each row of residuals (m, n), the best segment of each length, with its ends refined."""
        m = len(residuals)
        best: list[list[FoundSegment]] = [[] for _ in range(m)]
        parents: dict[tuple[Condition, ...], list[int]] = {(): list(range(m))}
        for _ in range(1, min(self.limits.terms, len(self.features)) + 1):
            tops = [_NOTHING] * m
            pools: list[dict[tuple[Condition, ...], float]] = [{} for _ in range(m)]
            for parent, sets in parents.items():
                for j, (found, top) in zip(sets, self._children(parent, residuals[sets]), strict=True):
                    pools[j].update(found)
                    tops[j] = max(tops[j], top, key=lambda one: one.rank)
            parents = {}
            for j, pool in enumerate(pools):
                for one in sorted(pool, key=pool.__getitem__, reverse=True)[:_BEAM]:
                    parents.setdefault(one, []).append(j)
            for of, top, own in zip(best, tops, residuals, strict=True):
                of.extend([self._refined(top, own)] if top.conditions else [])
        return best

    def _children(
        self, parent: tuple[Condition, ...], residuals: FloatArray
    ) -> list[tuple[dict[tuple[Condition, ...], float], FoundSegment]]:
        """For each row of residuals, the best further condition on each feature, of either sign, with its rank.

        Also the best one with at most half of all variance, as a segment and its complement are equivalent.
        """
        rows = np.flatnonzero(within(self.codes, parent)) if parent else None
        values = [v if rows is None else v[rows] for v in (self.variance, *residuals)]
        if self.limits.rows:
            values.append(np.ones(values[0].size))
        sums = self.sums(values, rows)
        feature = self._candidates[0]
        inflation = np.maximum(self.inflation[feature], self.inflation_for(parent))
        allowed = self._allowed(sums[0], float(values[0].sum()))
        if self.limits.rows:
            allowed &= (sums[-1] >= self.limits.rows) & (self.codes.shape[1] - sums[-1] >= self.limits.rows)
        for used in parent:
            allowed &= feature != used.feature
        kept = np.flatnonzero(allowed)
        if not kept.size:
            return [({}, _NOTHING)] * len(residuals)
        scale = self._scale(sums[0, kept], inflation[kept])
        small = sums[0, kept] <= self._total / 2
        starts = np.flatnonzero(np.diff(feature[kept], prepend=-1))
        out = []
        for own in sums[1 : 1 + len(residuals), kept]:
            rank = own**2 * scale
            found: dict[tuple[Condition, ...], float] = {}
            for side in (own > 0, own < 0):
                best = _best_each(np.where(side, rank, -np.inf), starts)
                found |= {self._with(parent, kept[i]): float(rank[i]) for i in best}
            top = int(np.argmax(np.where(small, rank, -np.inf)))
            out.append(
                (found, FoundSegment(self._with(parent, kept[top]), float(rank[top])) if small[top] else _NOTHING)
            )
        return out

    def _with(self, parent: tuple[Condition, ...], at: int) -> tuple[Condition, ...]:
        """A segment with a further condition, in order."""
        feature, low, high = (int(v[at]) for v in self._candidates)
        first = int(self._offsets[feature])
        return tuple(sorted((*parent, Condition(feature, low - first, high - first))))

    def inflation_for(self, conditions: Sequence[Condition]) -> float:
        """The largest inflation among features of conditions."""
        return max((float(self.inflation[one.feature]) for one in conditions), default=1.0)

    def _scale(self, variance: FloatArray, inflation: FloatArray | float) -> FloatArray:
        """Factor of squared sums: half of one over their variance about the mean of all rows."""
        return np.asarray(0.5 / (variance * (1 - variance / self._total) * inflation))

    def _allowed(self, variance: FloatArray, parent: float) -> AnyArray:
        least = self.limits.variance
        return (variance >= least) & (self._total - variance >= least) & (variance <= _MOST_OF_PARENT * parent)

    def _refined(self, found: FoundSegment, residuals: FloatArray) -> FoundSegment:
        """The segment with ends moved between the bins that were searched, one condition after the other."""
        conditions, rank = list(found.conditions), found.rank
        for place in [*range(len(conditions))] * _ROUNDS:
            one = self.features[conditions[place].feature]
            if not one.ordered or conditions[place].low == one.missing:
                continue
            others = [c for i, c in enumerate(conditions) if i != place]
            rows = within(self.codes, others)
            keys = self.codes[conditions[place].feature, rows]
            each = [np.bincount(keys, v[rows], one.missing + 1) for v in (self.variance, residuals)]
            running = np.concatenate([np.zeros((2, 1)), np.cumsum(each, axis=1)], axis=1)
            lows, highs = _ends(one, conditions[place].low), _ends(one, conditions[place].high)
            low, high = (v.reshape(-1) for v in np.meshgrid(lows, highs, indexing="ij"))
            low, high = low[low < high], high[low < high]
            variance, own = running[:, high] - running[:, low]
            allowed = self._allowed(variance, float(each[0].sum()))
            if self.limits.rows:
                count = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=one.missing + 1))])
                number_of = count[high] - count[low]
                allowed &= (number_of >= self.limits.rows) & (self.codes.shape[1] - number_of >= self.limits.rows)
            if not allowed.any():
                continue
            ranks = np.full(low.size, -np.inf)
            ranks[allowed] = own[allowed] ** 2 * self._scale(variance[allowed], self.inflation_for(conditions))
            at = int(np.argmax(ranks))
            if ranks[at] > rank:
                conditions[place] = Condition(conditions[place].feature, int(low[at]), int(high[at]))
                rank = float(ranks[at])
        return FoundSegment(tuple(conditions), rank)


def _best_each(rank: FloatArray, starts: IntArray) -> list[int]:
    """Position of the largest rank between each start and the next, for the best of these."""
    top = np.maximum.reduceat(rank, starts)
    first = np.flatnonzero(rank == np.repeat(top, np.diff(starts, append=rank.size)))
    first = first[np.flatnonzero(np.diff(np.searchsorted(starts, first, side="right"), prepend=0))]
    return [i for i in first[np.argsort(-rank[first])[:_BEAM]].tolist() if rank[i] > -np.inf]


def _ends(feature: Feature, end: int) -> IntArray:
    """Positions that an end may be moved to: between its neighbours among the bins searched; the outermost stay."""
    if end in (0, feature.missing):
        return np.array([end])
    ends = np.append(feature.starts, feature.missing)
    # An end that was moved already lies between two that were searched.
    before, after = int(np.searchsorted(ends, end)), int(np.searchsorted(ends, end, side="right"))
    return np.arange(ends[before - 1] + 1, ends[after])


def inflation_of(codes: AnyArray, residuals: FloatArray, groups: IntArray | None) -> FloatArray:
    """Factor by which dependence within groups inflates the variance of sums over each feature's values, (F,)."""
    if groups is None:
        return np.ones(len(codes))
    number = int(groups.max()) + 1
    apart = float(residuals @ residuals)
    every = []
    for one in codes:
        pairs = np.unique(groups * 256 + one.astype(np.intp), return_inverse=True)[1]
        sums = np.bincount(pairs, residuals)
        every.append(float(sums @ sums) / apart * number / max(number - 1, 1))
    return np.maximum(every, 1.0)
