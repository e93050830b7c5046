"""When calibration changed: a search over time, with a p-value and an interval for the time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..comparison.subgroups.heterogeneity import PooledMap
from ..data.types import AnyArray, FloatArray, IntArray
from .periods import Times, compact, ends_of

#: Maximum number of blocks of time, number of rows that determine their edges, and number of rows processed at once.
BLOCKS, _SAMPLE, _TILE = 1000, 200_000, 1 << 16
#: Minimum information on either side of a tested change, in outcomes and as a share of the total.
_FEW, _SHARE = 10.0, 0.01
_DRAWS, _MOST_CHANGES = 999, 20
#: Draws of the first round if a tail bound is available, and number reaching the statistic at which draws stop.
_FIRST, _ENOUGH = 64, 10


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sums over blocks of rows in order of time; probabilities c are from a curve through all rows.

    Attributes
    ----------
    first, last : ndarray of shape (B,)
        Time of the first and last row.
    weight, residual, square : ndarray of shape (B,)
        Sums of weights w, of ``w (o - s)``, and of ``t (o - s)²``.
    score : ndarray of shape (B, d)
        Sums of ``w (o - c)`` times the curve's columns, the first of which is 1.
    information : ndarray of shape (B, d, d)
        Sums of ``t c (1 - c)`` times two columns, with variance weights t: the covariance of the scores.
    cube : ndarray of shape (B,)
        Sums of ``c (1 - c) (1 - 2c)``, weighted likewise: the third cumulant of the first score.
    """

    first: AnyArray
    last: AnyArray
    weight: FloatArray
    residual: FloatArray
    square: FloatArray
    score: FloatArray
    information: FloatArray
    cube: FloatArray

    @classmethod
    def of(
        cls,
        code: IntArray,
        ends: tuple[AnyArray, AnyArray],
        rows: tuple[FloatArray, AnyArray, FloatArray | None, FloatArray | None],
        pooled: PooledMap,
        design: float = 1.0,
    ) -> Blocks:
        """Sums of rows (scores, outcomes, weights, variance weights), or of cells of rows, by block."""
        n, (s, o, w, t) = ends[0].size, rows
        if w is not None and t is not None:  # relative weights: cubes of very small or large ones are no numbers
            scale = float(w.mean())
            w, t = w / scale, t / scale / scale
        d = pooled.theta.size
        above = np.triu_indices(d)
        sums = np.zeros((4 + d + above[0].size, n))
        for start in range(0, code.size, _TILE):
            some = slice(start, start + _TILE)
            score, weight = s[some].astype(np.float64), np.ones(1) if w is None else w[some]
            columns, chance = pooled.at(score)
            columns = columns / columns[0, 0]
            left = weight * (o[some] - chance)
            times, gap = (weight if t is None else t[some]) * design, o[some] - score
            spread = times * chance * (1 - chance)
            # Outcomes are 0 or 1: their squares are they.
            square = times * (o[some] * (1 - 2 * score) + score**2)
            cube = spread * (1 - 2 * chance) * (design**0.5 if t is None else weight * design**0.5)
            features = [np.broadcast_to(weight, score.shape), weight * gap, square, cube, *(left * columns.T)]
            features += [spread * columns[:, i] * columns[:, j] for i, j in zip(*above, strict=True)]
            for total, values in zip(sums, features, strict=True):
                total += np.bincount(code[some], values, n)
        information = np.empty((n, d, d))
        information[:, above[0], above[1]] = information[:, above[1], above[0]] = sums[4 + d :].T
        weights, residuals, squares, cubes = sums[:4]
        return cls(*ends, weights, residuals, squares, sums[4 : 4 + d].T, information, cubes)

    def gap(self, some: slice) -> tuple[float, float]:
        """Observed minus predicted of some blocks, and its standard error: from residuals, or the curve if larger."""
        weight = float(self.weight[some].sum())
        variance = max(float(self.square[some].sum()), float(self.information[some, 0, 0].sum()))
        return float(self.residual[some].sum()) / weight, float(np.sqrt(variance)) / weight


def cut(times: Times, at_most: int = BLOCKS) -> tuple[IntArray, tuple[AnyArray, AnyArray]]:
    """Block of each row, and first and last time per block; blocks have similar sizes and keep equal times together."""
    part = np.sort(times.some(_SAMPLE))
    edges = np.unique(part[np.linspace(0, part.size - 1, at_most + 1).astype(np.intp)[1:-1]])
    used, code = compact(np.searchsorted(edges, times.distinct, side="right"))
    return times.of_rows(code), ends_of(times.distinct, code, used.size)


class Located(NamedTuple):
    """A change before block ``at``; ``low`` to ``high`` are the positions compatible with the data."""

    at: int
    low: int
    high: int
    pvalue: float


class _Scan(NamedTuple):
    """Squared standardised score sums up to each place in a range of blocks, after a refit of the curve to the range.

    ``tail``: approximate p-value of the largest, used if few draws or none reach it.
    """

    ratio: FloatArray
    tested: AnyArray
    drawn: FloatArray
    tail: float

    @property
    def statistic(self) -> float:
        return float(self.ratio[self.tested].max(initial=0.0))

    @property
    def reached(self) -> int:
        """Number of draws without a change whose statistic is at least as large."""
        return int((self.drawn >= self.statistic).sum())

    @property
    def pvalue(self) -> float:
        """Monte Carlo p-value."""
        if not self.tested.any():
            return 1.0
        return (1 + self.reached) / (1 + self.drawn.size)


def _scan(blocks: Blocks, a: int, b: int, rng: np.random.Generator, *, ends: bool = False) -> _Scan:
    """Squared standardised sums at the places a + 1 … b - 1; draws are of scores without a change.

    With ``ends``, drawing stops when enough draws reach the statistic.
    """
    information = blocks.information[a:b]
    whole = information.sum(axis=0)
    bent = np.cumsum(information[:-1, 0], axis=0)
    slopes = np.linalg.lstsq(whole, bent.T, rcond=1e-10)[0]  # of the refit

    def sums(score: FloatArray) -> FloatArray:
        return np.asarray(np.cumsum(score[..., :-1, 0], axis=-1) - score.sum(axis=-2) @ slopes)

    variance = bent[:, 0] - np.einsum("kd,dk->k", bent, slopes)
    held = variance > 1e-9 * whole[0, 0]
    scale = np.where(held, variance, np.inf)
    found = sums(blocks.score[a:b])
    ratio = found**2 / scale
    least = max(_FEW, _SHARE * float(whole[0, 0]))
    tested = held & (bent[:, 0] >= least) & (whole[0, 0] - bent[:, 0] >= least)
    if not tested.any():
        return _Scan(ratio, tested, np.zeros(0), 1.0)
    share, cubes = bent[:, 0] / whole[0, 0], np.cumsum(blocks.cube[a:b])
    cube = (1 - share) ** 3 * cubes[:-1] - share**3 * (cubes[-1] - cubes[:-1])
    beside = bent[:-1, 0] - np.einsum("kd,dk->k", bent[:-1], slopes[:, 1:])
    near = beside / np.sqrt(scale[:-1] * scale[1:])
    tail = _tail(np.abs(_unskewed(found, scale, cube)[tested]).max(), near[tested[:-1] & tested[1:]])
    values, vectors = np.linalg.eigh(information)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    rounds: list[FloatArray] = []
    done, size = 0, max(1, (1 << 21) // (b - a))
    scan = _Scan(ratio, tested, np.zeros(0), tail)
    while done < _DRAWS and not (ends and scan.reached >= _ENOUGH):
        number = min(size, _DRAWS - done, max(_FIRST, done) if ends else _DRAWS)
        noise = rng.standard_normal((number, b - a, whole.shape[0]))
        drawn = sums(np.einsum("bij,rbj->rbi", root, noise)) ** 2 / scale
        rounds.append(drawn[:, tested].max(axis=1))
        done += number
        scan = scan._replace(drawn=np.concatenate(rounds))
    return scan


def _unskewed(sums: Any, variance: Any, cube: Any) -> FloatArray:
    """Standardised sums, normalised by third cumulants (Wilson & Hilferty's transformation of a gamma variable)."""
    skew = np.where(np.abs(cube) < 1e-6 * variance**1.5, 1e-6, cube / variance**1.5)
    return np.asarray(6 / skew * (np.cbrt(1 + skew * sums / np.sqrt(variance) / 2) - 1) + skew / 6)


def _tail(largest: float, near: FloatArray) -> float:
    """Bound for the probability that the maximum of several standard normal variables is as large (Worsley 1982).

    ``near``: correlation of each with the next.
    """
    from scipy.special import ndtr, owens_t

    near = np.clip(near, -1 + 1e-12, 1.0)  # rounded, of many rows
    new = 4 * owens_t(largest, np.sqrt((1 - near) / (1 + near)))
    return float(np.minimum(2 * ndtr(-largest) + new.sum(), 1.0))


def first_search(blocks: Blocks, rng: np.random.Generator, least: float = 1.0) -> tuple[float, float]:
    """Statistic and p-value of the search for one change among all rows.

    ``least``: smallest p-value that must be attainable; if draws cannot attain it, the tail bound is used.
    """
    far = (1 + _DRAWS) * least < 2
    found = _scan(blocks, 0, blocks.weight.size, rng, ends=far)
    return found.statistic, found.tail if far and found.drawn.size > 0 and found.reached < _ENOUGH else found.pvalue


def changes(blocks: Blocks, level: float, rng: np.random.Generator, first: float = 1.0) -> list[Located]:
    r"""Changes in order of time, by binary segmentation: the largest, then those on either side of it.

    The interval of a time contains the places k with :math:`\Lambda_{\max} - \Lambda_k \le -2 \log(1 -
    \sqrt{\text{level}})`, where :math:`\Lambda_k` is the likelihood ratio of a change at k.

    References
    ----------
    Eo & Morley (2015), *Likelihood-ratio-based confidence sets for the timing of structural breaks*.
    """
    found: dict[int, float] = {}
    ranges = [(0, blocks.weight.size)]
    while ranges and len(found) < _MOST_CHANGES:
        a, b = ranges.pop()
        if b - a < 2:
            continue
        scan = _scan(blocks, a, b, rng)
        if scan.pvalue > 1 - level:
            continue
        at = a + 1 + int(np.argmax(np.where(scan.tested, scan.ratio, -1.0)))
        found[at] = scan.pvalue if found else min(first, scan.pvalue)
        ranges += [(a, at), (at, b)]
    return list(_located(blocks, sorted(found), found, level, rng))


def _located(
    blocks: Blocks, places: list[int], pvalues: dict[int, float], level: float, rng: np.random.Generator
) -> Iterator[Located]:
    """Each change, re-estimated between its neighbours, with its interval."""
    reach = -2 * np.log1p(-np.sqrt(level))
    ends = [0, *places, blocks.weight.size]
    for i, place in enumerate(places):
        a, b = ends[i], ends[i + 2]
        scan = _scan(blocks, a, b, rng)
        held = np.where(scan.tested, scan.ratio, -1.0)
        at = a + 1 + int(np.argmax(held)) if scan.tested.any() else place
        ends[i + 1] = at
        near = a + 1 + np.flatnonzero(scan.ratio >= scan.ratio[at - a - 1] - reach)
        yield Located(at, int(near.min()), int(near.max()), pvalues[place])


def trend(blocks: Blocks) -> tuple[float, float]:
    """Standardised score of a slope in time, added to the curve, and the same corrected for skewness.

    NaN if all rows have the same time.
    """
    middle = (blocks.first.astype(np.float64) + blocks.last) / 2
    span, nan = float(np.ptp(middle)), float("nan")
    if not span > 0:
        return nan, nan
    place = (middle - middle.min()) / span
    whole, bent = blocks.information.sum(axis=0), place @ blocks.information[:, 0]
    slopes = np.linalg.lstsq(whole, bent, rcond=1e-10)[0]
    variance = float(place**2 @ blocks.information[:, 0, 0] - bent @ slopes)
    if not variance > 1e-9 * float(whole[0, 0]):
        return nan, nan
    score = float(place @ blocks.score[:, 0] - blocks.score.sum(axis=0) @ slopes)
    cube = float((place - bent[0] / whole[0, 0]) ** 3 @ blocks.cube)
    return score / float(np.sqrt(variance)), float(_unskewed(score, variance, cube))
