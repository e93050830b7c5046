"""Test of whether subgroups differ at the same score, from sums of their cells; and variances of their gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.types import FloatArray, IntArray
from ...significance.belt import fit_polynomial
from ...significance.logit_polynomial import LogitSums
from ...significance.null import DrawnOutcomes, GroupSigns, Null
from ...significance.result import TestResult
from ...significance.saddlepoint import upper_tails
from ...sums.logistic_fit import expit, logits_of
from .cells import SubgroupCells, binomials

#: Cells worked on at a time: their features stay in the cache.
_TILE = 1 << 14
#: Information, in outcomes, below which a subgroup's score statistic is not treated as normal.
_FEW = 10.0
_DRAWS = 1999
#: First draws where there are many columns.
_FIRST_DRAWS = 99
#: Factor by which draws reach below the p-value that must be possible, the most numbers drawn for that, and the factor
#: reached whatever the cost.
_FINE, _MORE_DRAWN, _COARSE = 20, 20_000_000, 2
#: Numbers drawn at most.
_MOST_DRAWN = 40_000_000
_CLIP = 1e-6
_DEGREE = 4
#: Share of the largest variance below which a direction is taken to have none.
_NO_VARIANCE = 1e-9


class PooledMap(NamedTuple):
    """Polynomial logistic curve through all rows, from which subgroups may differ; without sums, a constant."""

    sums: LogitSums | None
    theta: FloatArray

    @classmethod
    def of(cls, cells: SubgroupCells, design: float = 1.0) -> PooledMap | None:
        """The curve, its degree chosen as by :func:`.calibration_belt`; None if no finite one exists.

        ``design``: design effect of the mean residual of all rows.
        """
        total = float(cells.weights.sum())
        size = (total if cells.integral else total**2 / float(cells.times.sum())) / design
        weights = cells.weights if size == total else cells.weights * (size / total)
        sums = LogitSums.of(logits_of(cells.scores, _CLIP), cells.outcomes, weights, _DEGREE)
        if sums.most < 1:
            mean = float(cells.weights @ cells.outcomes / total)
            return cls(None, np.array([mean])) if 0 < mean < 1 else None
        try:
            theta, _, _ = fit_polynomial(sums, _DEGREE, 0.95)
        except ValueError:
            return None
        return cls(sums, theta)

    def at(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Columns (n, d) of the curve at scores, and its probabilities."""
        if self.sums is None:
            return np.ones((scores.size, 1)), np.full(scores.size, self.theta[0])
        columns = self.sums.columns(logits_of(scores, _CLIP), self.theta.size - 1)
        return columns, np.asarray(expit(columns @ self.theta))


@dataclass(frozen=True, eq=False)
class SubgroupTotals:
    r"""Sums over the cells of each subgroup and of all; probabilities c and columns are those of the pooled curve.

    Attributes
    ----------
    weight, residual : ndarray of shape (G,)
        Sums of weights w, and of ``w (o - s)``.
    times, crossed, squares, stated : ndarray of shape (G,)
        Sums of the weights t of variances, of ``t (o - s)``, of ``t (o - s)²``, and of ``t s (1 - s)``.
    score, information, spread : ndarray of shape (G,)
        Sums of ``w (o - c)``, ``w c (1 - c)`` and ``t c (1 - c)``; 0 without a curve.
    bent, spread_bent : ndarray of shape (G, d)
        Sums of the latter two times the columns.
    score_all : ndarray of shape (d,)
    bent_all, spread_all : ndarray of shape (d, d)
        Sums over all rows, times the columns twice.
    """

    weight: FloatArray
    residual: FloatArray
    times: FloatArray
    crossed: FloatArray
    squares: FloatArray
    stated: FloatArray
    score: FloatArray
    information: FloatArray
    spread: FloatArray
    bent: FloatArray
    spread_bent: FloatArray
    score_all: FloatArray
    bent_all: FloatArray
    spread_all: FloatArray

    @classmethod
    def of(cls, cells: SubgroupCells, pooled: PooledMap | None) -> SubgroupTotals:
        """Totals of all subgroups, in one pass over their cells."""
        d = 0 if pooled is None else pooled.theta.size
        totals = np.zeros((9 + 2 * d, cells.n_subgroups))
        score_all, bent_all, spread_all = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
        subgroup = cells.subgroup
        for start in range(0, cells.scores.size, _TILE):
            tile = slice(start, start + _TILE)
            s, w, t, o = cells.scores[tile], cells.weights[tile], cells.times[tile], cells.outcomes[tile]
            # Outcomes are 0 or 1: their squares are they.
            features = [w, w * (o - s), t, t * (o - s), t * (o * (1 - 2 * s) + s**2), t * s * (1 - s)]
            if pooled is not None:
                columns, chance = pooled.at(s)
                variance = chance * (1 - chance)
                left, known, spread = w * (o - chance), w * variance, t * variance
                bent, spread_bent = known * columns.T, spread * columns.T
                features += [left, known, spread, *bent, *spread_bent]
                score_all += left @ columns
                bent_all += bent @ columns
                spread_all += spread_bent @ columns
            first, last = int(subgroup[start]), int(subgroup[tile][-1]) + 1
            begins = np.maximum(cells.starts[first:last] - start, 0)
            totals[: len(features), first:last] += np.add.reduceat(np.stack(features), begins, axis=1)
        fields = [*totals[:9], totals[9 : 9 + d].T, totals[9 + d :].T, score_all, bent_all, spread_all]
        return cls(*fields)

    @property
    def gap(self) -> FloatArray:
        """Mean outcome minus mean score, (G,)."""
        return self.residual / self.weight

    @property
    def gap_variance(self) -> FloatArray:
        """Variance of each subgroup's gap: that of its residuals, by the curve, or by its scores, whichever is largest.

        The residual of a single row has no spread: its score gives the variance.
        """
        centred = self.squares - 2 * self.gap * self.crossed + self.gap**2 * self.times
        return np.asarray(np.maximum(np.maximum(centred, self.spread), self.stated) / self.weight**2)


def difference_variance(cells: SubgroupCells, totals: SubgroupTotals, one: int, other: int) -> float:
    """Variance of the difference of two subgroups' gaps; for rows in groups, with the covariance of groups in both."""
    variance = totals.gap_variance * cells.design
    if cells.groups is None:
        return float(variance[one] + variance[other])
    n = int(cells.groups.max()) + 1
    sums = []
    for i in (one, other):
        some = slice(int(cells.starts[i]), int(cells.starts[i + 1]))
        off = cells.weights[some] * (cells.outcomes[some] - cells.scores[some] - totals.gap[i])
        sums.append(np.bincount(cells.groups[some], off, n) / totals.weight[i] * np.sqrt(n / (n - 1)))
    own = [max(float(variance[i]), float(v @ v)) for i, v in zip((one, other), sums, strict=True)]
    return sum(own) - 2 * float(sums[0] @ sums[1])


class _ScoreTest:
    """Score test of one intercept per subgroup: its statistic from scores (…, G), without a matrix of subgroups.

    Scores minus their fit by the curve's columns have the covariance ``D - U - Uᵀ + V``, with D diagonal and the
    others of the rank of the curve: the difference from D lies in the span of few vectors.
    """

    def __init__(self, totals: SubgroupTotals) -> None:
        t = totals
        self.slopes = np.linalg.lstsq(t.bent_all, t.bent.T, rcond=None)[0]  # (d, G)
        self._held = t.spread > _NO_VARIANCE * t.spread.max()
        self._root = np.sqrt(t.spread[self._held])
        bent, slopes = (
            t.spread_bent[self._held] / self._root[:, None],
            self.slopes[:, self._held].T / self._root[:, None],
        )
        base, size, _ = np.linalg.svd(np.concatenate([bent, slopes], axis=1), full_matrices=False)
        self._base = base[:, size > 1e-12 * size.max(initial=0.0)]
        one, two = self._base.T @ bent, self._base.T @ slopes
        inner = np.eye(len(one)) - one @ two.T - two @ one.T + two @ t.spread_all @ two.T
        values, vectors = np.linalg.eigh(inner)
        known = values > _NO_VARIANCE * max(1.0, values.max(initial=0.0))
        self._whiten = vectors[:, known] / np.sqrt(values[known])
        self.df = int(self._held.sum()) - len(one) + int(known.sum())

    def statistic(self, score: FloatArray, score_all: FloatArray) -> FloatArray:
        """The statistic, from scores (…, G) of subgroups and (…, d) of the curve's columns."""
        scaled = (score - score_all @ self.slopes)[..., self._held] / self._root
        inner = scaled @ self._base
        return np.asarray(
            (scaled**2).sum(axis=-1) - (inner**2).sum(axis=-1) + ((inner @ self._whiten) ** 2).sum(axis=-1)
        )


class GroupScores(NamedTuple):
    """Scores ``w (o - c)`` of groups of dependent rows, whose signs are drawn; c is the probability by the curve.

    Attributes
    ----------
    subgroup, group : ndarray of shape (P,)
        Each subgroup's groups, one after the other.
    score : ndarray of shape (P,)
        Sum over the rows of the group in the subgroup.
    bent : ndarray of shape (G, d)
        Sum over all rows of each group, times the curve's columns.
    scale : float
        Scale of the residuals; see :class:`.GroupSigns`.
    n_groups : int or None
        Number of groups, where G counts bundles of them.
    """

    subgroup: IntArray
    group: IntArray
    score: FloatArray
    bent: FloatArray
    scale: float
    n_groups: int | None = None

    @classmethod
    def of(cls, cells: SubgroupCells, pooled: PooledMap | None) -> GroupScores | None:
        """Scores from rows; None for independent rows or without a curve."""
        if cells.groups is None or pooled is None:
            return None
        columns, chance = pooled.at(cells.scores)
        signs = GroupSigns.of(cells.groups, (cells.outcomes - chance) ** 2, chance * (1 - chance), cells.weights)
        residual = cells.weights * (cells.outcomes - chance)
        pairs, place = np.unique(cells.subgroup * signs.n_groups + signs.group, return_inverse=True)
        subgroup, group = np.divmod(pairs, signs.n_groups)
        score = np.asarray(np.bincount(place.reshape(-1), residual), dtype=np.float64)
        bent: FloatArray = signs.sums(residual[:, None] * columns)
        return cls(np.asarray(subgroup), np.asarray(group), score, bent, signs.scale)

    def drawn(self, n_subgroups: int, test: _ScoreTest) -> tuple[Null, Callable[[FloatArray], FloatArray]]:
        """Draws of the groups' signs, and the statistic of the scores with given signs."""
        from scipy.sparse import csr_array

        signs = GroupSigns(np.arange(len(self.bent)), self.scale)
        scores = csr_array((self.score, (self.subgroup, self.group)), shape=(n_subgroups, signs.n_groups))
        return signs, lambda sets: test.statistic((scores @ sets.T).T, sets @ self.bent)


def heterogeneity(
    cells: SubgroupCells,
    pooled: PooledMap | None,
    totals: SubgroupTotals,
    n_samples: int,
    rng: np.random.Generator,
    groups: GroupScores | None = None,
    *,
    n_resamples: int = _DRAWS,
    least: float = 1.0,
    many: bool = False,
) -> TestResult:
    """Score test of one intercept per subgroup, added to one polynomial logistic curve for all.

    Where a subgroup has little information, the statistic is compared with those of outcomes drawn from the common
    curve, with its refit linearised; for correlated rows, with those of residuals whose signs are flipped by whole
    groups. ``least``: p-value that must be possible. Then more draws than ``n_resamples`` are made where few reach the
    statistic. With ``many`` subgroups, fewer are made where many do, and for independent rows at most 20 million
    numbers (or ``n_resamples`` draws) are drawn, with the tail of :func:`_range_tails` where no draw reaches it.
    """
    from scipy.special import chdtrc

    about: dict[str, Any] = {
        "null": "outcomes at equal scores are equally frequent in all subgroups",
        "n_samples": n_samples,
    }
    if cells.n_subgroups < 2 or pooled is None:
        one, nan = cells.n_subgroups < 2, float("nan")
        why = "there is only one subgroup" if one else "outcomes are all the same, or separated by the scores"
        return TestResult(nan, nan, name="score test of subgroup intercepts", warnings=(f"no test: {why}",), **about)
    test = _ScoreTest(totals)
    statistic = float(test.statistic(totals.score, totals.score_all))
    enough = float(totals.information.min()) >= _FEW or cells.scores.size * n_resamples > _MOST_DRAWN
    if groups is None and enough:
        pvalue, how = float(chdtrc(test.df, statistic)), "chi-squared"
    else:
        null, of_set = _drawn(cells, pooled, test) if groups is None else groups.drawn(cells.n_subgroups, test)
        if groups is not None:  # one of all signs, to the last digit
            statistic = float(of_set(np.ones((1, len(groups.bent))))[0])
        size = cells.scores.size if groups is None else groups.score.size
        most = _most_draws(least, size, tail=groups is None and many, n_resamples=n_resamples)
        numbers = min(_FIRST_DRAWS, n_resamples) if many else n_resamples, most
        pvalue, n_draws = null.sequential_pvalue(of_set, statistic, numbers, rng, size)
        how = null.described(n_draws)
        if groups is None and many and pvalue * (1 + n_draws) <= 1:
            pvalue = min(pvalue, _range_tails(cells, pooled))
            how = "tails of the sums of outcomes over time"
    name = f"score test of subgroup intercepts, {how}"
    n_groups = None if groups is None else groups.n_groups or len(groups.bent)
    return TestResult(statistic, pvalue, name=name, df=float(test.df), n_groups=n_groups, **about)


def _drawn(
    cells: SubgroupCells, pooled: PooledMap, test: _ScoreTest
) -> tuple[Null, Callable[[FloatArray], FloatArray]]:
    """Outcomes of independent rows, and the statistic of their residuals."""
    columns, chance = pooled.at(cells.scores)
    null = DrawnOutcomes(chance, *binomials(cells.weights, cells.times, integral=cells.integral))
    return null, lambda sets: test.statistic(np.add.reduceat(sets, cells.starts[:-1], axis=1), sets @ columns)


def _most_draws(least: float, size: int, *, tail: bool, n_resamples: int = _DRAWS) -> int:
    """Number of draws, of ``size`` numbers each, for p-values below ``least``; bounded where there is a ``tail``."""
    if least >= 1:
        return n_resamples
    surely = 0.0 if tail else _COARSE / least
    return max(n_resamples, int(np.ceil(max(min(_FINE / least, _MORE_DRAWN / size), surely))))


def _range_tails(cells: SubgroupCells, pooled: PooledMap) -> float:
    """A p-value of no difference in the far tail: sums of outcomes about the curve, per subgroup and of all up to it.

    The smallest tail, by the saddlepoint, times the number of these sums and two sides (Bonferroni). It is
    conservative: sums about a fitted curve vary less than these, and relative weights are all taken to be as large as
    one in a cell can be (cumulants of outcomes are convex in their weight).
    """
    _, chance = pooled.at(cells.scores)
    unit = np.ones(cells.weights.size) if cells.integral else np.sqrt(cells.times)
    trials = cells.weights / unit
    ends = np.cumsum(cells.added(cells.weights * (cells.outcomes - chance)))
    sums, n = np.concatenate([np.diff(ends, prepend=0.0), ends[1:-1]]), cells.n_subgroups
    subgroup, smallest = cells.subgroup, 1.0
    for i, found in enumerate(sums.tolist()):
        some = subgroup == i if i < n else subgroup <= i - n + 1
        if found**2 <= cells.times[some] @ (chance[some] * (1 - chance[some])):  # not far out
            continue
        p = chance[some] if found > 0 else 1 - chance[some]
        mean = float((trials[some] * unit[some]) @ p)
        one = None if cells.integral else unit[None, some]
        smallest = min(smallest, float(upper_tails(trials[None, some], p[None], np.array([mean + abs(found)]), one)[0]))
    return min(2 * sums.size * smallest, 1.0)
