"""Locally miscalibrated ranges of scores, found where the evidence for one exceeds that of a smooth map alone.

A smooth map that follows a gap on a few scores is rough everywhere. Where the data support it, a range of neighbouring
cells therefore has its own coefficient, as heavy scores have, so that the rest may be calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from ..sums.logistic_fit import Counts, Point, bounded_maximum, expit
from .laplace import RANGE_SD, RANGES, RankCells, precisions, quadratic

#: Cosines of the map with which ranges are compared, prior sds of its coefficients, and of heavy scores.
_COSINES, _BASE_SD, _APART_SD = 3, 0.3, 4.0
#: Evidence of the smooth map against calibrated scores from which ranges are sought; its excess over that of its first
#: cosines from which they are sought in addition to these (and the evidence against a heavy score); and the amount by
#: which that of ranges, to a first approximation, may be below it.
_CLEAR, _ROOM, _NEAR_EVIDENCE = 4.0, 1.0, 4.0
#: Number of further ranges as good as the last that are hoped for, if the first cosines explain less than all.
_AS_GOOD = 3.0
#: Rows below which ranges are not sought.
_ROWS = 500
#: Rows below which a map with ranges is less probable, in proportion: with few rows a wave also looks like a range.
_SURE = 5000.0
#: Log prior odds of an additional range.
LOG_ODDS = float(np.log(0.25))
#: Largest share of the cells in a range, widths sought for each power of 2, and places for each width.
_WIDEST, _WIDTHS, _PLACES = 0.75, 2, 4
#: Gap of a range with coefficient 1, if constant in probabilities; least share of a score it leaves; number of shapes.
_GAP, _LEFT, _SHAPES = 0.1, 0.25, 3
_LARGEST_STEP = 2.0
#: Shifts of both ends, (2, k), in the search for the best ones, and of nearly equivalent ranges.
_NEAR, _NEXT = (np.stack(np.meshgrid(*[np.arange(-k, k + 1)] * 2)).reshape(2, 1, -1) for k in (1, 2))


class LocalRanges(NamedTuple):
    """Ranges of some problems: ``at``, their indices (r,); ``columns`` (r, m, RANGES), 0 outside; log prior odds (r,).

    The odds are those of all nearly equivalent ranges, which are represented by the evidence of the fit with these.
    """

    at: IntArray
    columns: FloatArray
    log_odds: FloatArray


class _Candidates(NamedTuple):
    """Ranges of cells ``first`` to ``last - 1``, (C,), and the log of their prior probabilities."""

    first: IntArray
    last: IntArray
    log_prior: FloatArray


@lru_cache(maxsize=64)
def _candidates(m: int) -> _Candidates:
    """Ranges of m cells; wide ones are thinned, each representing those of similar width and place."""
    most = int(_WIDTHS * np.log2(max(_WIDEST * m, 1)))
    widths = np.unique(np.rint(2 ** (np.arange(most + 1) / _WIDTHS)).astype(np.intp))
    ends = np.concatenate([[0.5], (widths[1:] + widths[:-1]) / 2, [widths[-1] + 0.5]])
    first, last, log_prior = [], [], []
    for width, alike in zip(widths.tolist(), np.diff(ends).tolist(), strict=True):
        step = max(1, width // _PLACES)
        at = np.arange(0, m - width + 1, step)
        first.append(at)
        last.append(at + width)
        log_prior.append(np.full(at.size, _log_prior(width, m) + np.log(alike * step)))
    return _Candidates(np.concatenate(first), np.concatenate(last), np.concatenate(log_prior))


def _log_prior(width: Any, m: int) -> Any:
    """Log prior of one range among m cells: uniform over shapes, 1/w over widths, uniform over places of a width."""
    return -np.log(_SHAPES * np.log(m) * width * (m - width + 1.0))


def local_ranges(cells: RankCells, evidence: FloatArray) -> LocalRanges:
    """Ranges of problems side by side, of cells (R, m), where the evidence for a smooth map (R,) leaves room for them.

    Ranges are not sought with few rows or if scores look calibrated; if the first cosines explain
    as much as all, a single range must do so as well, and none is sought in addition to them. A map is fitted with
    ranges only if their evidence, by the quadratic approximation, comes near that of the smooth map. A problem with a
    miscalibrated heavy score counts as one with ranges: outside of that score the rest may be
    calibrated.
    """
    size = np.broadcast_to(cells.size, evidence.shape)
    at = np.flatnonzero((size >= _ROWS) & (evidence > _CLEAR))
    cells, evidence, sure = cells.of(at), evidence[at], np.log(np.minimum(size[at] / _SURE, 1.0))
    columns, odds = np.zeros((*cells.count.shape, RANGES)), sure.copy()
    if not at.size:
        return LocalRanges(at, columns, odds)
    calibrated, stiff = _Search.of(cells, None), _Search.of(cells, _BASE_SD)
    beside = calibrated.evidence(columns)
    most = np.where(cells.has_heavy_score & (beside > _ROOM), beside + odds, -np.inf)
    rough = np.flatnonzero(stiff.evidence(columns) + _ROOM < evidence)
    more = np.zeros(at.size)
    more[rough] = _AS_GOOD
    for search, numbers in ((calibrated, np.arange(at.size)), (stiff, rough)):
        some, found, prior = search.some(numbers).ranges(evidence[numbers] - _NEAR_EVIDENCE, more[numbers])
        some = numbers[some]
        prior = prior + sure[some]
        total = search.some(some).evidence(found) + prior
        better = total > most[some]
        some = some[better]
        columns[some], odds[some], most[some] = found[better], prior[better], total[better]
    near = most + _NEAR_EVIDENCE > evidence
    return LocalRanges(at[near], columns[near], odds[near])


@dataclass(frozen=True, eq=False)
class _Search:
    """A stiff map of each problem, in addition to which ranges are sought."""

    count: FloatArray  # (R, m)
    positive: FloatArray
    logit: FloatArray
    base: FloatArray  # (R, m, P)
    precision: FloatArray  # (R, P)

    @classmethod
    def of(cls, cells: RankCells, sd: float | None) -> _Search:
        """Constant, slope and first cosines with a prior sd, or none of them; and heavy scores."""
        few = 0 if sd is None else _COSINES + 1
        base = np.concatenate([cells.waves[..., :few], cells.others[..., 0 if few else 1 :]], axis=-1)
        spread = np.full(base.shape[-1], _APART_SD)
        spread[: few + bool(few)] = sd
        moved = None
        if cells.moved is not None:
            moved = np.zeros((len(base), base.shape[-1]))
            moved[:, :few] = cells.moved[:, :few]
        precision = np.broadcast_to(precisions(spread, moved), (len(base), base.shape[-1]))
        return cls(cells.count, cells.positive, cells.logit, base, precision)

    @property
    def shapes(self) -> FloatArray:
        """Shapes of gaps in logits, (R, S, m): constant in logits, or in probabilities, downwards and upwards."""
        p = expit(self.logit)
        shifted = (np.maximum(p - _GAP, _LEFT * p), np.minimum(p + _GAP, 1 - _LEFT * (1 - p)))
        gaps = [np.log(q) - np.log1p(-q) - self.logit for q in shifted]
        return np.stack([np.ones(p.shape), *gaps], axis=1)

    def ranges(self, needed: FloatArray, more: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Indices of the problems (r,) with ranges, columns of these (r, m, RANGES), and their log prior odds (r,).

        Problems are dropped if ``more`` further ranges as good as the last would not reach the evidence ``needed``,
        (R,).
        """
        columns, odds = np.zeros((*self.count.shape, RANGES)), np.zeros((len(self.count), RANGES))
        active, reached = np.arange(len(self.count)), self.evidence(columns)
        for new in range(RANGES if active.size else 0):
            # A range that is there is sought again beside the others: the first may stand for two.
            for place in (new, *range(new)):
                rest = columns[active]
                rest[..., place] = 0.0
                column, gain, total = self.some(active).best(rest)
                found = total + LOG_ODDS > 0
                if place == new:
                    active, column, gain, total = active[found], column[found], gain[found], total[found]
                    found = found[found]
                columns[active, :, place] = np.where(found[:, None], column, 0.0)
                odds[active, place] = np.where(found, total - gain + LOG_ODDS, 0.0)
                if place == new:
                    reached[active] += total
                    hopeful = reached[active] + more[active] * total > needed[active]
                    columns[active[~hopeful]] = 0.0
                    active = active[hopeful]
                if not active.size:
                    break
            if not active.size:
                break
        at = np.flatnonzero(columns.any(axis=(1, 2)))
        return at, columns[at], odds[at].sum(axis=-1)

    def some(self, at: AnyArray) -> _Search:
        """Search of some problems."""
        return _Search(*(values[at] for values in vars(self).values()))

    def evidence(self, columns: FloatArray) -> FloatArray:
        """Log evidence of the map with ranges (R, m, K) against calibrated scores, (R,)."""
        columns = columns[..., columns.any(axis=(0, 1))]
        if not self.base.shape[-1] + columns.shape[-1]:
            return np.zeros(len(columns))
        _, precision, start, point = self._fitted(columns)
        information = point.information + precision[..., None] * np.eye(precision.shape[-1])
        gain = point.likelihood - 0.5 * quadratic(point.theta, precision) - start.likelihood
        return np.asarray(gain + 0.5 * (np.log(precision).sum(axis=-1) - np.linalg.slogdet(information)[1]))

    def _fitted(self, columns: FloatArray) -> tuple[Counts, FloatArray, Point, Point]:
        """Counts with the base and further columns, their prior precision, the point without gaps, the mode."""
        own = np.full(columns.shape[::2], RANGE_SD**-2)
        precision = np.concatenate([self.precision, own], axis=-1)
        every = np.concatenate([self.base, columns], axis=-1)
        counts = Counts(every.swapaxes(-1, -2), self.count, self.positive)
        start = Point.at(np.zeros(precision.shape), self.logit, counts)
        mode = bounded_maximum(counts, precision, start, _LARGEST_STEP) if precision.size else start
        return counts, precision, start, mode

    def best(self, others: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Best range in addition to others (R, m, K): its column (R, m), log evidence of it, and of any range.

        The evidence is that of the quadratic approximation of the likelihood, against a coefficient of 0.
        """
        counts, precision, _, point = self._fitted(others[..., others.any(axis=(0, 1))])
        count, positive, shapes = self.count, self.positive, self.shapes
        columns = counts.columns.swapaxes(-1, -2)
        inverse = np.linalg.inv(point.information + precision[..., None] * np.eye(precision.shape[-1]))
        weight = (count * point.chance * (1 - point.chance))[:, None] * shapes
        score = _running(shapes * (positive - count * point.chance)[:, None])
        square, across = _running(weight * shapes), _running(weight[..., None] * columns[:, None], axis=-2)

        def gain(rows: AnyArray, shape: Any, first: IntArray, last: IntArray) -> FloatArray:
            g, h, b = (v[rows, shape, last] - v[rows, shape, first] for v in (score, square, across))
            h = np.maximum(h - ((b @ inverse) * b).sum(axis=-1), 0.0) * RANGE_SD**2
            return np.asarray(0.5 * (g * g * RANGE_SD**2 / (1 + h) - np.log1p(h)))

        from scipy.special import logsumexp

        m = count.shape[-1]
        numbers, known = np.arange(len(count))[:, None], _candidates(m)
        each = np.stack([gain(numbers, k, known.first, known.last) for k in range(_SHAPES)], axis=1)
        total = logsumexp(each + known.log_prior, axis=(1, 2))
        shape, best = np.unravel_index((each + known.log_prior).reshape(len(count), -1).argmax(axis=-1), each.shape[1:])
        first, last, reach = known.first[best], known.last[best], np.full(len(count), m)
        while (reach > 1).any():  # ends between those places
            reach = np.maximum(np.minimum(reach // 2, (last - first) // _PLACES), 1)
            near, far = _around(first, last, reach[:, None] * _NEAR, m)
            best = gain(numbers, shape[:, None], near, far).argmax(axis=-1)[:, None]
            first, last = (np.take_along_axis(v, best, -1)[:, 0] for v in (near, far))
        near, far = _around(first, last, _NEXT, m)
        each = np.stack([gain(numbers, k, near, far) for k in range(_SHAPES)], axis=1)
        scores = each + _log_prior(far - near, m)[:, None]
        # Either sum is over a part of all ranges, those of the first on a coarse grid.
        total = np.maximum(total, logsumexp(scores, axis=(1, 2)))
        shape, best = np.unravel_index(scores.reshape(len(count), -1).argmax(axis=-1), scores.shape[1:])
        first, last, most = near[numbers[:, 0], best], far[numbers[:, 0], best], each[numbers[:, 0], shape, best]
        cell = np.arange(m)
        inside = (cell >= first[:, None]) & (cell < last[:, None])
        return np.where(inside, shapes[numbers[:, 0], shape], 0.0), most, total


def _around(first: IntArray, last: IntArray, by: IntArray, m: int) -> tuple[IntArray, IntArray]:
    """Ranges (r, k) with ends near those of others (r,)."""
    near = np.clip(first[:, None] + by[0], 0, m - 1)
    return near, np.clip(last[:, None] + by[1], near + 1, m)


def _running(values: FloatArray, axis: int = -1) -> FloatArray:
    """Sums before each cell and after the last, along an axis."""
    shape = list(values.shape)
    shape[axis] += 1
    out = np.zeros(shape)
    behind = (slice(None),) * (values.ndim + axis if axis < 0 else axis) + (slice(1, None),)
    np.cumsum(values, axis=axis, out=out[behind])
    return out
