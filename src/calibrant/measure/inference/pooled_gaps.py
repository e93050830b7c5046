r"""Upper bounds of the calibration error: for every truth, and smaller ones where gaps of pooled rows have one sign.

Let scores be put into pools by the scores alone, so that the gap ``g = P(o = 1 | s) - s`` has one sign σ in each. With
``a = 1 - e^{-λ}`` and the logarithm ``φ_±(s) = log E e^{∓λ(B - s)}``, B = 1 with probability s, of what calibrated
outcomes would do,

.. math:: E[e^{-\lambda \sigma (o - s)} \mid s] = e^{\varphi_\sigma(s)} \Big(1 - \frac{a\,|g|}{1 - a s_\sigma}\Big)
          \le e^{\varphi_\sigma(s)} (1 - a\,|g|), \qquad s_+ = s,\ s_- = 1 - s,

while a row by itself has ``E[e^{-λ|o - s|} | s] ≤ 1 - a E[|o - s| | s] ≤ 1 - a |g|``. As ``|Σ(o - s)| ≥ σ Σ(o - s)``,
products over all rows give, with θ = E|g|,

.. math:: E \exp(-T) \le E \prod_i (1 - a\,|g(S_i)|) = (1 - a\theta)^n, \qquad
          T = \sum_{pools} \Big(\lambda \Big|\sum (o - s)\Big| + \max_\pm \sum \varphi_\pm(s)\Big)
            + \sum_{alone} \lambda |o - s|,

so that by Markov's inequality, with probability at least 1 - δ,

.. math:: \theta \le \frac{1 - \exp(-(T + \log 1/\delta) / n)}{1 - e^{-\lambda}} \approx
          \frac1n \Big(\sum_{pools} \Big|\sum (o - s)\Big| + \sum_{alone} |o - s|\Big) + margin.

It is exact for every n, and outcomes of a pool are not asked to be alike. Which rows are pooled and which stay alone
is decided by scores only. λ is one of five, each with its share of δ.

**Every truth.** Rows of one and the same score are a pool without any assumption. Where no score repeats the bound is
that of ``E|o - s|``, and no valid one is below that: n rows with different scores look the same under the distribution
of (s, o) and under one of finitely many scores, drawn from it, each with an outcome of its own, whose error is
``E|o - s|``.

**Signs may change.** Where the gap has total variation V at most, it moves within a pool by ``v_j``, ``Σ v_j ≤ V``
for pools that are neighbouring scores. If it has both signs, rows of the rarer kind (rows times size) hold
``m_j v_j / 4`` at most of m_j rows. For those the factor is ``1 + (e^λ - 1)|g| ≤ (1 - a|g|) e^{(a + e^λ - 1)|g|}``,
so T grows by ``(a + e^λ - 1) · V/4 · max_j m_j``: some V/2 of the largest pool's share.

**Norms.** ``|g|^p ≤ |g|``, and ``E|g|^p ≤ E|o - s|^p``: the same for θᵖ with ``|o - s|^p`` of rows alone.

**K classes.** The geometric mean of their e-values is below their mean, and log(1 - aθ) is concave: T, θ are means over
classes. For rows alone the bound is that of ``½ Σ_k |o_k - s_k|^p``, which lies in [0, 1].

References
----------
For what cannot be had: Gupta, Podkopaev & Ramdas (2020), *Distribution-free binary classification: prediction sets,
confidence intervals and calibration*, and Barber (2020), *Is distribution-free inference possible for binary
regression?*; Lee, Huang, Hassani & Dobriban (2023), *T-Cal: an optimal test for the calibration of predictive models*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...data.types import AnyArray, FloatArray
from .rows_alike import Part, RowsAlike

#: Variances of ``o - s`` that bets are made for, and the share of δ that each has.
VARIANCES = (0.25, 0.06, 0.015, 0.004, 0.001)
SHARES = (0.5, 0.25, 0.125, 0.0625, 0.0625)
#: The δ that bets are made for; those of other levels are the same, so that bounds of higher levels are never smaller.
USUAL = 0.0125


class Pools(NamedTuple):
    """The pool of each row, (m,), and how much the gap may vary over all pools of more than one score."""

    codes: AnyArray
    variation: float = 0.0


def same_scores(part: Part) -> Pools:
    """Rows of one score."""
    return Pools(np.unique(part.scores, return_inverse=True)[1].reshape(-1))


def upper_bound(rows: RowsAlike, pools: Callable[[Part], Pools], norm: float, delta: float) -> float:
    """Upper bound, of level ``1 - delta``, of ``E|gap|^p``, the mean over classes.

    Cost O(n log n) for each class.
    """
    every = [(_Sums.of(part, pools(part), norm)) for part in rows.parts]
    ends = []
    for bet, needed in _bets(rows.n, delta):
        total = sum(one.total(bet) for one in every)
        ends.append(_end(bet, total / (rows.n * rows.classes) + needed / rows.n))
    return min(*ends, 1.0)


def upper_bound_of_rows(rows: RowsAlike, norm: float, delta: float) -> float:
    """Upper bound, of level ``1 - delta``, of ``E|gap|^p`` from ``|o - s|^p`` of rows, the mean over classes."""
    half = 2.0 if rows.classes > 1 else 1.0
    mean = sum(float((np.abs(part.residuals) ** norm).sum()) for part in rows.parts) / (half * rows.n)
    return min(*(_end(bet, bet * mean + needed / rows.n) for bet, needed in _bets(rows.n, delta)), 1.0) * (
        half / rows.classes
    )


def _bets(n: int, delta: float) -> list[tuple[float, float]]:
    """Each λ, and ``log 1/δ`` of its share."""
    each = zip(VARIANCES, SHARES, strict=True)
    return [(float(np.sqrt(-2 * np.log(USUAL * w) / (n * v))), float(-np.log(delta * w))) for v, w in each]


def _end(bet: float, exponent: float) -> float:
    return float(np.expm1(-exponent) / np.expm1(-bet))


class _Sums(NamedTuple):
    """Sums of the rows of each pool."""

    scores: FloatArray
    codes: AnyArray
    rows: AnyArray
    gap: FloatArray
    alone: FloatArray
    #: What ``|Σ(o - s)|`` and ``Σ|o - s|^p`` are of calibrated outcomes: by scores alone.
    gap_expected: FloatArray
    alone_expected: FloatArray
    #: Rows of pools of more than one score.
    varying: AnyArray
    variation: float

    @classmethod
    def of(cls, part: Part, pools: Pools, norm: float) -> _Sums:
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
        """T, with each pool taken together or its rows alone, whichever looks smaller for calibrated outcomes."""
        a, back = -np.expm1(-bet), np.expm1(bet)
        sides = (bet * s + np.log(1 - s + s * np.exp(-bet)) for s in (self.scores, 1 - self.scores))
        up, down = (np.bincount(self.codes, v, minlength=self.rows.size) for v in sides)
        cost = np.maximum(up, down)
        pooled = (self.rows > 1) & (bet * self.gap_expected + cost < bet * self.alone_expected)
        moved = (a + back) * self.variation / 4 * np.where(pooled, self.varying, 0).max(initial=0)
        return float(np.where(pooled, bet * self.gap + cost, bet * self.alone).sum() + moved)
