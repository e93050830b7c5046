r"""Bounds of the calibration error for every map, and smaller upper bounds if gaps of pooled rows have one sign.

Lower bound: bets on the sign of the gap, learnt from earlier rows
------------------------------------------------------------------
Rows are processed in random order. Before each row a function h with values in [-1, 1] is estimated
from the rows before it: the sign of their residuals in bins, smoothed if uncertain. With
``X_i = h(S_i)(O_i - S_i)``

.. math:: E[X_i \mid earlier\ rows] = E[h(S)(P(O = 1 \mid S) - S)] \le E|P(O = 1 \mid S) - S| = \theta,

for any distribution of score and outcome and any quality of h. So for every ``m ≥ θ`` and bets
``0 ≤ λ_i < 1 / (1 + m)``, chosen from earlier rows, the wealth

.. math:: W(m) = \prod_i (1 + \lambda_i (X_i - m))

is nonnegative with mean at most 1, and so is its average over several orders of the rows. By Markov's inequality it
exceeds 1/δ with probability at most δ: the bound is the smallest m at which it does not. W decreases in m, both for
bets that do not depend on m and for bets that are a share of ``1 / (1 + m)``, so this m is found by root search.

For K classes that share rows, ``X_i = ½ Σ_k h_k(S_ik)(O_ik - S_ik)`` lies in [-1, 1], because the absolute residuals of
a row add up to ``2 (1 - s_y)``, and it bounds ``½ Σ_k E|gap_k|``.

Upper bounds: rows pooled by their scores
-----------------------------------------
Let pools depend only on the scores, and let the gap ``g = P(o = 1 | s) - s`` have one sign σ in each. With
``a = 1 - e^{-λ}`` and the cumulant function ``φ_±(s) = log E e^{∓λ(B - s)}`` of a calibrated outcome B, which is 1 with
probability s,

.. math:: E[e^{-\lambda \sigma (o - s)} \mid s] = e^{\varphi_\sigma(s)} \Big(1 - \frac{a\,|g|}{1 - a s_\sigma}\Big)
          \le e^{\varphi_\sigma(s)} (1 - a\,|g|), \qquad s_+ = s,\ s_- = 1 - s,

while a single row ("alone") has ``E[e^{-λ|o - s|} | s] ≤ 1 - a E[|o - s| | s] ≤ 1 - a |g|``. As
``|Σ(o - s)| ≥ σ Σ(o - s)``, products over all rows give, with θ = E|g|,

.. math:: E \exp(-T) \le E \prod_i (1 - a\,|g(S_i)|) = (1 - a\theta)^n, \qquad
          T = \sum_{pools} \Big(\lambda \Big|\sum (o - s)\Big| + \max_\pm \sum \varphi_\pm(s)\Big)
            + \sum_{alone} \lambda |o - s|,

so that by Markov's inequality, with probability at least 1 - δ,

.. math:: \theta \le \frac{1 - \exp(-(T + \log 1/\delta) / n)}{1 - e^{-\lambda}} \approx
          \frac1n \Big(\sum_{pools} \Big|\sum (o - s)\Big| + \sum_{alone} |o - s|\Big) + margin.

It is valid for every n, and outcomes of a pool need not be identically distributed. Which rows are pooled and which
remain single depends only on scores. Five values of λ are used, each with a share of δ.

**Every map.** Rows with equal scores are a pool without any assumption. If no score repeats, the bound is
that of ``E|o - s|``, and no valid bound is smaller: n rows with different scores look the same under the distribution
of (s, o) and under a distribution on finitely many scores drawn from it, each with a fixed outcome, whose error is
``E|o - s|``.

**Sign changes.** If the gap has total variation at most V, it varies within a pool by ``v_j``, with ``Σ v_j ≤ V``
for pools of neighbouring scores. If it has both signs, the absolute gaps of the sign with the smaller sum add up to at
most ``m_j v_j / 4`` for m_j rows. For those the factor is ``1 + (e^λ - 1)|g| ≤ (1 - a|g|) e^{(a + e^λ - 1)|g|}``,
so T grows by ``(a + e^λ - 1) · V/4 · max_j m_j``: about V/2 times the share of the largest pool.

**Norms.** ``|g|^p ≤ |g|``, and ``E|g|^p ≤ E|o - s|^p``: the same for θᵖ with ``|o - s|^p`` for single rows.

**K classes.** The geometric mean of their e-values is at most their mean, and log(1 - aθ) is concave: T and θ are means
over classes. For single rows the bound is that of ``½ Σ_k |o_k - s_k|^p``, which lies in [0, 1].

References
----------
Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by betting*.
Impossibility results: Gupta, Podkopaev & Ramdas (2020), *Distribution-free binary classification: prediction sets,
confidence intervals and calibration*, and Barber (2020), *Is distribution-free inference possible for binary
regression?*; Lee, Huang, Hassani & Dobriban (2023), *T-Cal: an optimal test for the calibration of predictive models*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from ..data.problem import OneVsRestProblems, Problem
from ..data.types import AnyArray, FloatArray, IntArray
from .question import Question

#: Number of rows before the first bet, and factor by which it grows from one fit of the signs to the next.
_FIRST, _GROWTH = 8, 1.25
#: Largest bet, as a share of 1 / (1 + m), the bet at which one row can lose all wealth.
_LARGEST = 0.9
#: Finest bins: 2⁸ of equal mass; and minimum number of rows per bin.
_FINEST, _ROWS = 8, 3
#: Weight of earlier blocks in the choice of the bin size.
_MEMORY = 0.8
#: The δ for which bets are optimised, at all levels, so that bounds of higher levels are never larger.
_USUAL = 0.025
#: Initial variance of X, and number of rows for which it counts.
_GUESS, _GUESSED = 0.1, 8
#: Maximum number of orders of the rows, and of rows over all orders.
_ORDERS, _IN_ALL = 4, 200_000
#: Variances of ``o - s`` for which bets are optimised, and their shares of δ.
VARIANCES = (0.25, 0.06, 0.015, 0.004, 0.001)
SHARES = (0.5, 0.25, 0.125, 0.0625, 0.0625)
#: The δ for which bets are optimised, at all levels, so that bounds of higher levels are never smaller.
USUAL = 0.0125


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one problem.

    Attributes
    ----------
    scores, residuals : ndarray of shape (m,)
        s and o - s.
    rows : ndarray of shape (m,)
        Index of each among the n rows.
    typed : ndarray of shape (m,)
        Scores in their original dtype, and ``eps``, its rounding unit, for bin edges.
    """

    scores: FloatArray
    residuals: FloatArray
    rows: IntArray
    typed: FloatArray
    eps: float


@dataclass(frozen=True, eq=False)
class RowsAlike:
    """Independent rows of equal weight, for R problems.

    Attributes
    ----------
    parts : tuple of Part
    n : int
        Number of rows, each repeated by its whole-number weight.
    classes : int
        Number of problems that share the rows: K for K one-vs-rest problems; 1 if problems split the rows.
    """

    parts: tuple[Part, ...]
    n: int
    classes: int

    @classmethod
    def of(cls, question: Question) -> RowsAlike:
        """Rows of a question's problems; of two complementary classes, only the first."""
        wanted, rows = len(question.informative), cast(Problem | OneVsRestProblems, question.rows)
        shared = question.dependent and wanted > 1
        parts = tuple(_parts(list(rows)[:wanted], shared=question.dependent))
        return cls(parts, parts[0].rows.size if shared else sum(p.rows.size for p in parts), wanted if shared else 1)


def _parts(problems: list[Problem], *, shared: bool) -> Iterator[Part]:
    first = 0
    for one in problems:
        typed, outcomes = one.scores, np.asarray(one.outcomes, dtype=np.float64)
        if one.weights is not None:
            times = one.weights.astype(np.intp)
            typed, outcomes = np.repeat(typed, times), np.repeat(outcomes, times)
        scores = typed.astype(np.float64)
        rows: AnyArray = np.arange(first, first + scores.size)
        yield Part(scores, outcomes - scores, rows, typed, one.eps)
        first += 0 if shared else scores.size


def lower_bound(rows: RowsAlike, delta: float, rng: np.random.Generator) -> float:
    """Lower bound, of level ``1 - delta``, of the mean over rows of ``|gap|`` (for K classes, of half its sum).

    Cost O(orders · n log n) per class; four orders of the rows up to 50,000 rows in all classes together, one beyond
    10⁵.
    """
    from scipy.optimize import brentq
    from scipy.special import logsumexp

    n, needed = rows.n, float(np.log(1 / delta))
    if n <= _FIRST:
        return 0.0
    orders = int(np.clip(_IN_ALL // (n * len(rows.parts)), 1, _ORDERS))
    every = [_bets_of(rows, rng.permutation(n)) for _ in range(orders)]

    def excess(m: float) -> float:
        won = [np.log1p(np.minimum(bet, _LARGEST / (1 + m)) * (x - m)).sum() for bet, x in every]
        return float(logsumexp(won) - np.log(orders)) - needed

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, 1.0, xtol=1e-9))


def _bets_of(rows: RowsAlike, place: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Bets and X of all rows except the first :data:`_FIRST`, in one order."""
    sides = [_LearntSides(part, place[part.rows]) for part in rows.parts]
    factor, seen, squares = 1.0 if rows.classes == 1 else 0.5, float(_GUESSED), _GUESSED * _GUESS
    x, bet = np.zeros((2, rows.n))
    start = _FIRST
    while start < rows.n:
        stop = min(rows.n, max(start + 1, int(np.ceil(_GROWTH * start))))
        for one in sides:
            where, values = one.next(start, stop)
            x[start:stop][where] += factor * values
        bet[start:stop] = np.sqrt(-2 * np.log(_USUAL) * seen / (rows.n * max(squares, 1e-12)))
        seen, squares = seen + stop - start, squares + float(x[start:stop] @ x[start:stop])
        start = stop
    return bet[_FIRST:], x[_FIRST:]


class _LearntSides:
    """The sign of one problem's gap, learnt from rows in random order, in 1, 2, 4, … bins of equal mass.

    Bins are those of the rows so far, recomputed whenever these have doubled; equal scores share a bin.
    """

    def __init__(self, part: Part, place: AnyArray) -> None:
        order = np.argsort(place)
        self.place = place[order]
        self.scores, self.residuals = part.scores[order], part.residuals[order]
        self.squares, self.stated = self.residuals**2, self.scores * (1 - self.scores)
        self.gains: FloatArray = np.zeros(1)
        self.seen = self.taken = self.depth = 0
        self.edges: FloatArray = np.empty(0)
        self.cell: AnyArray = np.empty(0, np.intp)
        self.sums: FloatArray = np.zeros((3, 1))

    def next(self, start: int, stop: int) -> tuple[AnyArray, FloatArray]:
        """Offsets from ``start`` of the problem's rows up to ``stop``, and their X."""
        a, b = np.searchsorted(self.place, [start, stop])
        where, residual = self.place[a:b] - start, self.residuals[a:b]
        if a == b or a == 0:
            return where, np.zeros(b - a)
        self._learn(int(a), int(b))
        cell = self.cell[a:b]
        every = np.stack([side[cell >> (self.depth - i)] * residual for i, side in enumerate(self._sides())])
        best = every[int(np.argmax(self.gains))]
        self.gains = _MEMORY * self.gains + every.sum(axis=1)
        return where, best

    def _learn(self, a: int, b: int) -> None:
        """Sums of the first a rows in the finest bins, and the bins of all rows up to b."""
        if a >= 2 * self.seen:
            ranked = np.sort(self.scores[:a])
            self.depth = int(min(_FINEST, np.log2(max(a / _ROWS, 1))))
            self.edges = ranked[(np.arange(1, 1 << self.depth) * a) >> self.depth]
            # Finer bins begin where coarser ones stand.
            self.gains = np.pad(self.gains, (0, self.depth + 1 - self.gains.size), mode="edge")
            self.cell, self.sums, self.seen, self.taken = self.cell[:0], np.zeros((3, 1 << self.depth)), a, 0
        self.cell = np.append(self.cell, np.searchsorted(self.edges, self.scores[self.cell.size : b]))
        new = slice(self.taken, a)
        for sums, values in zip(self.sums, (self.residuals, self.squares, self.stated), strict=True):
            sums += np.bincount(self.cell[new], values[new], minlength=sums.size)
        self.taken = a

    def _sides(self) -> list[FloatArray]:
        """Sign of the gap, softened to [-1, 1], in the bins of each size, from the coarsest to the finest."""
        from scipy.special import erf

        sums, sides = self.sums, []
        for level in range(self.depth + 1):
            gap, squares, stated = sums if level == 0 else sums.reshape(3, -1, 1 << level).sum(axis=2)
            # A bin without a single error says little: its variance is at least what its scores say.
            noise = np.sqrt(2 * np.maximum(squares, stated))
            sides.append(erf(np.divide(gap, noise, out=np.zeros_like(gap), where=noise > 0)))
        return sides[::-1]


class Pools(NamedTuple):
    """The pool of each row, (m,), and the total variation of the gap over all pools of more than one score."""

    codes: AnyArray
    variation: float = 0.0


def same_scores(part: Part) -> Pools:
    """Pools of rows with equal scores."""
    return Pools(np.unique(part.scores, return_inverse=True)[1].reshape(-1))


def upper_bound(rows: RowsAlike, pools: Callable[[Part], Pools], norm: float, delta: float) -> float:
    """Upper bound, of level ``1 - delta``, of ``E|gap|^p``, the mean over classes.

    Cost O(n log n) per class.
    """
    every = [(_PoolSums.of(part, pools(part), norm)) for part in rows.parts]
    ends = []
    for bet, needed in _exponents(rows.n, delta):
        total = sum(one.total(bet) for one in every)
        ends.append(_end(bet, total / (rows.n * rows.classes) + needed / rows.n))
    return min(*ends, 1.0)


def upper_bound_of_rows(rows: RowsAlike, norm: float, delta: float) -> float:
    """Upper bound, of level ``1 - delta``, of ``E|gap|^p``, the mean over classes, from ``|o - s|^p`` of rows."""
    half = 2.0 if rows.classes > 1 else 1.0
    mean = sum(float((np.abs(part.residuals) ** norm).sum()) for part in rows.parts) / (half * rows.n)
    return min(*(_end(bet, bet * mean + needed / rows.n) for bet, needed in _exponents(rows.n, delta)), 1.0) * (
        half / rows.classes
    )


def _exponents(n: int, delta: float) -> list[tuple[float, float]]:
    """Each λ, with ``log 1/δ`` for its share of δ."""
    each = zip(VARIANCES, SHARES, strict=True)
    return [(float(np.sqrt(-2 * np.log(USUAL * w) / (n * v))), float(-np.log(delta * w))) for v, w in each]


def _end(bet: float, exponent: float) -> float:
    return float(np.expm1(-exponent) / np.expm1(-bet))


class _PoolSums(NamedTuple):
    """Sums of the rows of each pool."""

    scores: FloatArray
    codes: AnyArray
    rows: AnyArray
    gap: FloatArray
    alone: FloatArray
    #: Expected ``|Σ(o - s)|`` and ``Σ|o - s|^p`` for calibrated outcomes: functions of the scores.
    gap_expected: FloatArray
    alone_expected: FloatArray
    #: Number of rows of pools of more than one score.
    varying: AnyArray
    variation: float

    @classmethod
    def of(cls, part: Part, pools: Pools, norm: float) -> _PoolSums:
        s, r, codes = part.scores, part.residuals, pools.codes
        size = int(codes.max(initial=-1)) + 1

        def add(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(codes, values, minlength=size), dtype=np.float64)

        count = np.bincount(codes, minlength=size)
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, codes, s)
        np.maximum.at(high, codes, s)
        stated = s * (1 - s) * ((1 - s) ** (norm - 1) + s ** (norm - 1))
        return cls(
            s,
            codes,
            count,
            np.abs(add(r)),
            add(np.abs(r) ** norm),
            np.sqrt(2 / np.pi * add(s * (1 - s))),
            add(stated),
            np.where(high > low, count, 0),
            pools.variation,
        )

    def total(self, bet: float) -> float:
        """T, with rows of each pool pooled or single, whichever is expected to be smaller for calibrated outcomes."""
        a, back = -np.expm1(-bet), np.expm1(bet)
        sides = (bet * s + np.log(1 - s + s * np.exp(-bet)) for s in (self.scores, 1 - self.scores))
        up, down = (np.bincount(self.codes, v, minlength=self.rows.size) for v in sides)
        cost = np.maximum(up, down)
        pooled = (self.rows > 1) & (bet * self.gap_expected + cost < bet * self.alone_expected)
        moved = (a + back) * self.variation / 4 * np.where(pooled, self.varying, 0).max(initial=0)
        return float(np.where(pooled, bet * self.gap + cost, bet * self.alone).sum() + moved)
