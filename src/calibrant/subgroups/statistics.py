"""Statistics of groups: gaps in the large with intervals, corrections for many tests, whether groups differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._types import AnyArray, FloatArray, Interval
from ..belt.belt import fit_polynomial, logit_sums
from ..errors.logitmap import expit, logits_of
from ..problem import Problem
from ..significance.drawn import kuiper_pvalue
from ..significance.result import TestResult

#: Rows up to which the law of a sum of outcomes is worked out, in intervals and in p-values.
_EXACT_INTERVAL, _EXACT_TEST = 200, 2000
#: Numbers drawn at most for one group's test: beyond, its limit law is used.
_MOST_DRAWN = 10_000_000
#: How far below ``(1 - level) / groups`` p-values of draws should reach, the numbers drawn for that at most, and how
#: far they reach whatever the cost.
_FINE, _MORE_DRAWN, _COARSE = 20, 20_000_000, 2
#: Information, in outcomes, below which a group's score statistic is not taken for normal.
_FEW = 10.0
_DRAWS = 1999
_CLIP = 1e-6


class Rows(NamedTuple):
    """Scores, outcomes, weights, and weights of variances: those themselves for repeats, else their squares."""

    scores: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    times: FloatArray
    integral: bool

    @classmethod
    def of(cls, problem: Problem) -> Rows:
        """Rows of a problem that count."""
        s: FloatArray = problem.scores.astype(np.float64)
        o = np.asarray(problem.outcomes, dtype=np.float64)
        if problem.weights is None:
            ones = np.ones(s.size)
            return cls(s, o, ones, ones, True)
        used = problem.weights > 0
        w = problem.weights[used]
        return cls(s[used], o[used], w, w if problem.integral else w**2, problem.integral)

    def where(self, mask: AnyArray) -> Rows:
        """Some of the rows."""
        return Rows(self.scores[mask], self.outcomes[mask], self.weights[mask], self.times[mask], self.integral)

    @property
    def total(self) -> float:
        """Sum of weights."""
        return float(self.weights.sum())

    @property
    def gap(self) -> float:
        """Mean outcome minus mean score."""
        return float(self.weights @ (self.outcomes - self.scores) / self.total)


def gap_interval(rows: Rows, level: float) -> Interval:
    r"""Interval for the gap in the large: outcomes of odds :math:`e^a` times as large as stated, for which a is it?

    Those a whose sum of outcomes is not extreme, as mean gaps: by the exact law of the sum up to 200 rows, which makes
    the interval conservative, else by the score test, whose variance is that of a and not of the estimate.
    """
    with np.errstate(divide="ignore"):
        z = np.log(rows.scores) - np.log1p(-rows.scores)
    if not np.isfinite(z).any():
        return Interval(float("nan"), float("nan"))
    tail = (1 - level) / 2
    exact = rows.integral and rows.total <= _EXACT_INTERVAL
    observed = float(rows.weights @ rows.outcomes)
    k, repeats = round(observed), rows.weights.astype(np.intp)

    def chance(a: float) -> FloatArray:
        return expit(np.clip(z + a, -700, 700))

    def excess(a: float, side: int) -> float:
        """Above 0 where a is too far down (side 1) or up (side -1) for what was seen."""
        p = chance(a)
        if exact:
            law = characteristic_law(np.repeat(p, repeats))
            return tail - float(law[k:].sum() if side == 1 else law[: k + 1].sum())
        from scipy.special import ndtri

        spread = np.sqrt(float(rows.times @ (p * (1 - p))))
        off = side * (observed - float(rows.weights @ p))
        return float(off / spread + ndtri(tail)) if spread > 0 else float(np.sign(off))

    mean = float(rows.weights @ rows.scores)
    ends = []
    for side in (1, -1):
        a = _zero(lambda a, side=side: excess(a, side), side)
        ends.append((float(rows.weights @ chance(a)) - mean) / rows.total)
    return Interval(min(ends[0], rows.gap), max(ends[1], rows.gap))


def _zero(function: Any, side: int) -> float:
    """Where a function that falls with side · a crosses 0; the end that it tends to if it does not within ± 60."""
    from scipy.optimize import brentq

    low, high = -60.0, 60.0
    first, last = function(low), function(high)
    if first * last >= 0:
        return high if side * (first + last) > 0 else low
    return float(brentq(function, low, high, xtol=1e-7))


def characteristic_law(chances: FloatArray) -> FloatArray:
    """:func:`outcomes_law` by Fourier transform of its characteristic function: faster, to some 1e-15 absolutely."""
    n = chances.size
    turns = np.exp(-2j * np.pi * np.arange((n + 1) // 2 + 1) / (n + 1)) - 1
    return np.asarray(np.fft.irfft(np.prod(1 + chances[:, None] * turns, axis=0), n + 1))


def outcomes_law(chances: FloatArray) -> FloatArray:
    """``P(Σ o = k)``, k = 0 … n, of independent outcomes: the product of their generating functions, two by two."""
    parts = [np.array([1 - p, p]) for p in chances]
    while len(parts) > 1:
        pairs = [np.convolve(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + ([parts[-1]] if len(parts) % 2 else [])
    return parts[0] if parts else np.ones(1)


def group_pvalue(rows: Rows, test: str, n_resamples: int, rng: np.random.Generator, smallest: float = 1.0) -> float:
    """p-value of a group by one of the tests that :func:`subgroup_calibration` offers.

    ``smallest``: what it is compared with, 1 - level over the number of groups; draws are made to reach below.
    """
    if test == "kuiper":
        size = rows.scores.size
        draws = n_resamples if size * n_resamples <= _MOST_DRAWN else 0
        more = max(min(_FINE / smallest, _MORE_DRAWN / size), _COARSE / smallest) if draws else 0
        return kuiper_pvalue(
            rows.scores, rows.outcomes, rows.weights, draws, rng, repeats=rows.integral, most_draws=int(np.ceil(more))
        )
    from scipy.special import ndtr

    observed = float(rows.weights @ rows.outcomes)
    if rows.integral and rows.total <= _EXACT_TEST:
        law = outcomes_law(np.repeat(rows.scores, rows.weights.astype(np.intp)))
        k = round(observed)
        return float(min(1.0, 2 * min(law[: k + 1].sum(), law[k:].sum())))
    spread = float(np.sqrt(rows.times @ (rows.scores * (1 - rows.scores))))
    off = abs(observed - float(rows.weights @ rows.scores))
    if not spread > 0:
        return 0.0 if off > 0 else float("nan")
    return float(2 * ndtr(-off / spread))


def holm(pvalues: FloatArray) -> FloatArray:
    """Holm's step-down correction: rejects any true hypothesis with probability at most α. NaN stays, uncounted."""
    return _stepped(pvalues, lambda p, m: np.maximum.accumulate((m - np.arange(m)) * p))


def benjamini_hochberg(pvalues: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's step-up correction, of the share of rejections that are false. NaN stays, uncounted."""
    return _stepped(pvalues, lambda p, m: np.minimum.accumulate((m / np.arange(1, m + 1) * p)[::-1])[::-1])


def _stepped(pvalues: FloatArray, corrected: Any) -> FloatArray:
    out: FloatArray = np.full(pvalues.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    out[order] = np.minimum(corrected(pvalues[order], order.size), 1.0)
    return out


def pooled_map(problem: Problem, rows: Rows) -> tuple[FloatArray, FloatArray] | None:
    """Columns (n, d) of the polynomial logistic curve through all rows, and its chances; None without a finite one."""
    sums, _ = logit_sums(problem, _CLIP, 4)
    if sums.most < 1:
        mean = float(rows.weights @ rows.outcomes / rows.total)
        return (np.ones((rows.scores.size, 1)), np.full(rows.scores.size, mean)) if 0 < mean < 1 else None
    try:
        theta, _, _ = fit_polynomial(sums, 4, 0.95)
    except ValueError:
        return None
    columns = sums.columns(logits_of(rows.scores, _CLIP), theta.size - 1)
    return columns, expit(columns @ theta)


def heterogeneity(
    rows: Rows, codes: AnyArray, pooled: tuple[FloatArray, FloatArray] | None, n_groups: int, rng: np.random.Generator
) -> TestResult:
    """Score test of an intercept a group, added to one polynomial logistic curve for all.

    Where a group has little information, the statistic is compared with those of outcomes drawn from the common curve,
    its fit to them linearised.
    """
    from scipy.special import chdtrc

    about: dict[str, Any] = {
        "null": "outcomes at a score are as frequent in every group",
        "n_samples": int(rows.scores.size),
    }
    if n_groups < 2 or pooled is None:
        why = "there is one group" if n_groups < 2 else "outcomes are all the same, or separated by the scores"
        nan = float("nan")
        return TestResult(nan, nan, method="score test of group intercepts", warnings=(f"no test: {why}",), **about)
    columns, chance = pooled
    variance = chance * (1 - chance)
    member = (codes[:, None] == np.arange(n_groups)).astype(np.float64)
    bent = (rows.weights * variance)[:, None] * columns
    slopes = np.linalg.lstsq(columns.T @ bent, bent.T @ member, rcond=None)[0]
    free = member - columns @ slopes
    covariance = (free * (rows.times * variance)[:, None]).T @ free
    values, vectors = np.linalg.eigh(covariance)
    known = values > 1e-9 * values[-1]
    whiten = vectors[:, known] / np.sqrt(values[known])
    score = (rows.weights * (rows.outcomes - chance)) @ free
    statistic = float(((score @ whiten) ** 2).sum())
    df = int(known.sum())
    least = float((member.T @ (rows.weights * variance)).min())
    if least >= _FEW or rows.scores.size * _DRAWS > 4 * _MOST_DRAWN:
        pvalue, how = float(chdtrc(df, statistic)), "chi-squared"
    else:
        whole = rows.weights.astype(np.int64) if rows.integral else None
        reach = free @ whiten
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
        pvalue, how = (1 + at_least) / (1 + _DRAWS), f"{_DRAWS} draws"
    return TestResult(statistic, pvalue, method=f"score test of group intercepts, {how}", df=float(df), **about)


def gap_variance(rows: Rows, chance: FloatArray | None) -> float:
    """Variance of a group's gap: that of its residuals, by the common curve, or by its scores, whichever is largest.

    A single row has residuals without spread: its scores say what chance can do.
    """
    residual = rows.outcomes - rows.scores
    centred = float(rows.times @ (residual - rows.gap) ** 2)
    modelled = 0.0 if chance is None else float(rows.times @ (chance * (1 - chance)))
    stated = float(rows.times @ (rows.scores * (1 - rows.scores)))
    return max(centred, modelled, stated) / rows.total**2
