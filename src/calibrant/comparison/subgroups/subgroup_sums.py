"""Sums over the rows of each subgroup, all in one pass over tiles of rows; whether subgroups differ, from those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...data.predictions import effective_size
from ...data.types import AnyArray, FloatArray
from ...significance.belt.belt import fit_polynomial
from ...significance.belt.polynomial import LogitSums
from ...significance.result import TestResult
from ...significance.sign_flips import Flips, share_at_least
from ...sums.logistic_fit import expit, logits_of
from .rows import ProblemRows

#: Rows worked on at a time: their features stay in the cache.
_TILE = 1 << 14
#: Information, in outcomes, below which a subgroup's score statistic is not taken for normal.
_FEW = 10.0
_DRAWS = 1999
#: Numbers drawn at most.
_MOST_DRAWN = 40_000_000
_CLIP = 1e-6
_DEGREE = 4


class PooledMap(NamedTuple):
    """Polynomial logistic curve through all rows, of which subgroups may differ; without sums a constant."""

    sums: LogitSums | None
    theta: FloatArray

    @classmethod
    def of(cls, rows: ProblemRows) -> PooledMap | None:
        """The curve, its degree chosen as by :func:`.calibration_belt`; None without a finite one."""
        size = effective_size(rows.weights, rows.scores.size, integral=rows.integral)
        size /= rows.design
        weights = rows.weights if size == rows.total else rows.weights * (size / rows.total)
        sums = LogitSums.of(logits_of(rows.scores, _CLIP), rows.outcomes, weights, _DEGREE)
        if sums.most < 1:
            mean = float(rows.weights @ rows.outcomes / rows.total)
            return cls(None, np.array([mean])) if 0 < mean < 1 else None
        try:
            theta, _, _ = fit_polynomial(sums, _DEGREE, 0.95)
        except ValueError:
            return None
        return cls(sums, theta)

    def at(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Columns (n, d) of the curve at scores, and its chances."""
        if self.sums is None:
            return np.ones((scores.size, 1)), np.full(scores.size, self.theta[0])
        raw = np.polynomial.chebyshev.chebvander(self.sums.within(logits_of(scores, _CLIP)), self.theta.size - 1)
        columns = raw @ self.sums.orthonormal(self.theta.size)
        return columns, np.asarray(expit(columns @ self.theta))


@dataclass(frozen=True, eq=False)
class SubgroupSums:
    r"""Sums of rows by subgroups, and of all rows; chances and columns are those of the pooled curve.

    Attributes
    ----------
    weight, residual : ndarray of shape (G,)
        Of weights w, and of ``w (o - s)``.
    times, crossed, squares, stated : ndarray of shape (G,)
        Of weights of variances t, of ``t (o - s)``, of ``t (o - s)²``, and of ``t s (1 - s)``.
    score, information, spread : ndarray of shape (G,)
        Of ``w (o - c)``, ``w c (1 - c)`` and ``t c (1 - c)``, c the chance; 0 without a curve.
    bent, spread_bent : ndarray of shape (G, d)
        The latter two times the columns.
    score_all : ndarray of shape (d,)
    bent_all, spread_all : ndarray of shape (d, d)
        Of all rows, times columns and once more.
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
    def of(
        cls, rows: ProblemRows, partitions: Sequence[tuple[AnyArray, int]], pooled: PooledMap | None
    ) -> list[SubgroupSums]:
        """Of rows, and of the subgroup of each and the number of subgroups by one partition after the other."""
        d = 0 if pooled is None else pooled.theta.size
        by_subgroup = [np.zeros((9 + 2 * d, number)) for _, number in partitions]
        score_all, bent_all, spread_all = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
        for start in range(0, rows.scores.size, _TILE):
            tile = rows.where(slice(start, start + _TILE))
            s, w, t = tile.scores, tile.weights, tile.times
            off = tile.outcomes - s
            features = [w, w * off, t, t * off, t * off**2, t * s * (1 - s)]
            if pooled is not None:
                columns, chance = pooled.at(s)
                variance = chance * (1 - chance)
                left, known, spread = w * (tile.outcomes - chance), w * variance, t * variance
                bent, spread_bent = known * columns.T, spread * columns.T
                features += [left, known, spread, *bent, *spread_bent]
                score_all += left @ columns
                bent_all += bent @ columns
                spread_all += spread_bent @ columns
            for totals, (codes, number) in zip(by_subgroup, partitions, strict=True):
                place = codes[start : start + _TILE].astype(np.intp)
                for total, feature in zip(totals, features, strict=False):
                    total += np.bincount(place, feature, number)
        found = []
        for totals in by_subgroup:
            fields = [*totals[:9], totals[9 : 9 + d].T, totals[9 + d :].T, score_all, bent_all, spread_all]
            found.append(cls(*fields))
        return found

    @property
    def gap(self) -> FloatArray:
        """Mean outcome minus mean score, (G,)."""
        return self.residual / self.weight

    @property
    def gap_variance(self) -> FloatArray:
        """Variance of each subgroup's gap: that of its residuals, by the curve, or by its scores, whichever is largest.

        A single row has residuals without spread: its scores say what chance can do.
        """
        centred = self.squares - 2 * self.gap * self.crossed + self.gap**2 * self.times
        return np.asarray(np.maximum(np.maximum(centred, self.spread), self.stated) / self.weight**2)


def gap_covariance(rows: ProblemRows, codes: AnyArray, sums: SubgroupSums) -> FloatArray:
    """Covariances of the gaps of subgroups that share groups of rows, (S, S)."""
    from scipy.sparse import csr_array

    groups = np.asarray(rows.groups)
    n = int(groups.max()) + 1
    off = rows.weights * (rows.outcomes - rows.scores - sums.gap[codes])
    each = csr_array((off, (groups, codes)), shape=(n, sums.weight.size))
    return np.asarray((each.T @ each).toarray() / np.outer(sums.weight, sums.weight)) * (n / (n - 1))


def heterogeneity(
    rows: ProblemRows, codes: AnyArray, pooled: PooledMap | None, sums: SubgroupSums, rng: np.random.Generator
) -> TestResult:
    """Score test of an intercept a subgroup, added to one polynomial logistic curve for all.

    Where a subgroup has little information, the statistic is compared with those of outcomes drawn from the common
    curve, its fit to them linearised; of rows that hang together, with those of residuals of which whole groups of such
    rows have changed their sign.
    """
    from scipy.special import chdtrc

    n_subgroups, n = sums.weight.size, rows.scores.size
    about: dict[str, Any] = {"null": "outcomes at a score are as frequent in every subgroup", "n_samples": n}
    if n_subgroups < 2 or pooled is None:
        why = "there is one subgroup" if n_subgroups < 2 else "outcomes are all the same, or separated by the scores"
        nan = float("nan")
        return TestResult(nan, nan, name="score test of subgroup intercepts", warnings=(f"no test: {why}",), **about)
    # Members of a subgroup less what columns say of them, without making them: their products are sums of subgroups.
    slopes = np.linalg.lstsq(sums.bent_all, sums.bent.T, rcond=None)[0]
    shared = sums.spread_bent @ slopes
    covariance = np.diag(sums.spread) - shared - shared.T + slopes.T @ sums.spread_all @ slopes
    values, vectors = np.linalg.eigh(covariance)
    known = values > 1e-9 * values[-1]
    whiten = vectors[:, known] / np.sqrt(values[known])
    statistic = float((((sums.score - sums.score_all @ slopes) @ whiten) ** 2).sum())
    df = int(known.sum())
    if rows.groups is not None:
        pvalue, how = _flipped(rows, codes, pooled, slopes, whiten, statistic, rng)
    elif float(sums.information.min()) >= _FEW or n * _DRAWS > _MOST_DRAWN:
        pvalue, how = float(chdtrc(df, statistic)), "chi-squared"
    else:
        columns, chance = pooled.at(rows.scores)
        reach = whiten[codes] - columns @ (slopes @ whiten)
        pvalue, how = _drawn(rows, chance, reach, statistic, rng), f"{_DRAWS} draws"
    return TestResult(statistic, pvalue, name=f"score test of subgroup intercepts, {how}", df=float(df), **about)


def _flipped(
    rows: ProblemRows,
    codes: AnyArray,
    pooled: PooledMap,
    slopes: FloatArray,
    whiten: FloatArray,
    statistic: float,
    rng: np.random.Generator,
) -> tuple[float, str]:
    """p-value of a statistic by signs of whole groups of rows, and how it was found."""
    groups = np.asarray(rows.groups)
    columns, chance = pooled.at(rows.scores)
    left = rows.outcomes - chance
    flips = Flips.of(groups, left**2, chance * (1 - chance), rows.weights)
    each = np.zeros((flips.n_groups, whiten.shape[1]))
    np.add.at(each, groups, (rows.weights * left)[:, None] * (whiten[codes] - columns @ (slopes @ whiten)))
    draws = np.concatenate([(d**2).sum(axis=1) for d in flips.drawn(each, _DRAWS, rng)])
    return share_at_least(draws, statistic), f"{_DRAWS} draws of the signs of {flips.n_groups} groups"


def _drawn(
    rows: ProblemRows, chance: FloatArray, reach: FloatArray, statistic: float, rng: np.random.Generator
) -> float:
    """p-value of a statistic by outcomes drawn with their chances."""
    whole = rows.weights.astype(np.int64) if rows.integral else None
    at_least, done, together = 0, 0, max(1, (1 << 21) // rows.scores.size)
    while done < _DRAWS:
        r = min(together, _DRAWS - done)
        if whole is None:
            drawn = rows.weights * (rng.random((r, chance.size)) < chance)
        else:
            drawn = rng.binomial(whole, chance, size=(r, chance.size)).astype(np.float64)
        found = (((drawn - rows.weights * chance) @ reach) ** 2).sum(axis=1)
        at_least += int((found >= statistic * (1 - 1e-9)).sum())
        done += r
    return (1 + at_least) / (1 + _DRAWS)
