r"""A lower bound of the calibration error for every truth: bets on the side of the gap, learnt from earlier rows.

Rows come one after the other, in an order of chance. Before each row a function h with values in [-1, 1] is found
from the rows before it: by the sign of their residuals in bins, softly where it is in doubt. With
``X_i = h(S_i)(O_i - S_i)``

.. math:: E[X_i \mid earlier\ rows] = E[h(S)(P(O = 1 \mid S) - S)] \le E|P(O = 1 \mid S) - S| = \theta,

whatever the distribution of score and outcome, however well or badly h was learnt. So for every ``m ≥ θ`` and bets
``0 ≤ λ_i < 1 / (1 + m)``, chosen from earlier rows, the wealth

.. math:: W(m) = \prod_i (1 + \lambda_i (X_i - m))

is not negative and 1 at most on average, and so is its mean over several orders of the rows. By Markov's inequality it
exceeds 1/δ with probability δ at most: the bound is the least m at which it does not. W falls in m, for bets that do
not depend on m and for those that are a share of ``1 / (1 + m)``, so the least m is found by bisection.

K classes that share rows: ``X_i = ½ Σ_k h_k(S_ik)(O_ik - S_ik)``, in [-1, 1] because the residuals of a row add up to
``2 (1 - s_y)`` in size, and bounds ``½ Σ_k E|gap_k|``.

References
----------
Waudby-Smith & Ramdas (2024), *Estimating means of bounded random variables by betting*.
"""

from __future__ import annotations

import numpy as np

from ...data.types import AnyArray, FloatArray
from .rows_alike import Part, RowsAlike

#: Rows before the first bet, and how much their number grows from one fit of the signs to the next.
_FIRST, _GROWTH = 8, 1.25
#: Largest bet, as a share of 1 / (1 + m), where one row can cost all.
_LARGEST = 0.9
#: Finest bins: 2⁸ of equal mass; and rows a bin has at least.
_FINEST, _ROWS = 8, 3
#: What earlier blocks still say when bins of one size are chosen.
_MEMORY = 0.8
#: The δ that bets are made for; those of other levels are the same, so that bounds of higher levels are never larger.
_USUAL = 0.025
#: Variance of X before there are rows, and the rows it counts as.
_GUESS, _GUESSED = 0.1, 8
#: Orders of the rows, fewer where there are many.
_ORDERS, _IN_ALL = 4, 200_000


def lower_bound(rows: RowsAlike, delta: float, rng: np.random.Generator) -> float:
    """Lower bound, of level ``1 - delta``, of the mean over rows of ``|gap|`` (of K classes: of half its sum).

    Cost O(orders · n log n) a class; four orders of the rows, one where there are 10⁵.
    """
    from scipy.optimize import brentq
    from scipy.special import logsumexp

    n, needed = rows.n, float(np.log(1 / delta))
    if n <= _FIRST:
        return 0.0
    orders = int(np.clip(_IN_ALL // (n * len(rows.parts)), 1, _ORDERS))
    every = [_bets(rows, rng.permutation(n)) for _ in range(orders)]

    def excess(m: float) -> float:
        won = [np.log1p(np.minimum(bet, _LARGEST / (1 + m)) * (x - m)).sum() for bet, x in every]
        return float(logsumexp(won) - np.log(orders)) - needed

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, 1.0, xtol=1e-9))


def _bets(rows: RowsAlike, place: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Bets and X of all rows but the first, in one order."""
    sides = [_Sides(part, place[part.rows]) for part in rows.parts]
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


class _Sides:
    """The side of one problem's gap, learnt from rows in an order of chance, in 1, 2, 4, … bins of equal mass.

    Bins are those of the rows so far, found anew whenever these have doubled; equal scores are in one.
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
        """Places behind ``start`` of the problem's rows from there to ``stop``, and their X."""
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
        """Side of the gap, in [-1, 1], in the bins of each size, from the coarsest to the finest."""
        from scipy.special import erf

        sums, sides = self.sums, []
        for level in range(self.depth + 1):
            gap, squares, stated = sums if level == 0 else sums.reshape(3, -1, 1 << level).sum(axis=2)
            # A bin without a single error says little: its variance is at least what its scores say.
            noise = np.sqrt(2 * np.maximum(squares, stated))
            sides.append(erf(np.divide(gap, noise, out=np.zeros_like(gap), where=noise > 0)))
        return sides[::-1]
