"""Statistics of one subgroup: its gap in the large with an interval, and whether it is calibrated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...data.types import FloatArray, IntArray, Interval
from ...data.weights import repeats, run_starts
from ...significance.belt.polynomial import compressed
from ...significance.kuiper import kuiper_pvalue, ranges
from ...significance.sign_flips import Flips
from .rows import ProblemRows

#: Rows up to which the distribution of a sum of outcomes is worked out, in intervals and in p-values.
_EXACT_INTERVAL, _EXACT_TEST = 200, 2000
#: Numbers drawn at most for one subgroup's test: beyond, its limiting distribution is used.
_MOST_DRAWN = 10_000_000
#: How far below ``(1 - level) / subgroups`` p-values of draws should reach, the numbers drawn for that at most, and how
#: far they reach whatever the cost.
_FINE, _MORE_DRAWN, _COARSE = 20, 20_000_000, 2
#: Cells of logits within which rows of a large subgroup become two nodes each, and rows of which there must be so many:
#: means of chances are then right to some 1e-13.
_CELLS, _LARGE = 4096, 1 << 14


def gap_interval(rows: ProblemRows, level: float) -> Interval:
    r"""Interval for the gap in the large: outcomes of odds :math:`e^a` times as large as stated, for which a is it?

    Those a whose sum of outcomes is not extreme, as mean gaps: by the exact distribution of the sum up to 200 rows,
    which makes the interval conservative, else by the score test, whose variance is that of a and not of the estimate.
    Of rows in groups by the latter, with the design effect of the mean residual.
    """
    from scipy.special import expit, logit, ndtri

    z = logit(rows.scores)
    if not np.isfinite(z).any():
        return Interval(float("nan"), float("nan"))
    tail = (1 - level) / 2
    exact = rows.groups is None and rows.integral and rows.total <= _EXACT_INTERVAL
    observed = float(rows.weights @ rows.outcomes)
    k, again = round(observed), repeats(rows.weights) if exact else None
    nodes, mass = _nodes(z, rows.weights)
    same = rows.times is rows.weights
    nodes_of_variance, times = (nodes, mass) if same else _nodes(z, rows.times)

    def excess(a: float, side: int) -> float:
        """Above 0 where a is too far down (side 1) or up (side -1) for what was seen."""
        p = expit(nodes + a)
        if exact:
            pmf = characteristic_pmf(p[again])
            return tail - float(pmf[k:].sum() if side == 1 else pmf[: k + 1].sum())
        v = p if same else expit(nodes_of_variance + a)
        spread = np.sqrt(float(times @ (v * (1 - v))) * rows.design)
        off = side * (observed - float(mass @ p))
        return float(off / spread + ndtri(tail)) if spread > 0 else float(np.sign(off))

    mean = float(rows.weights @ rows.scores)
    ends = []
    for side in (1, -1):
        a = _zero(partial(excess, side=side), side)
        ends.append((float(mass @ expit(nodes + a)) - mean) / rows.total)
    return Interval(min(ends[0], rows.gap), max(ends[1], rows.gap))


def _nodes(z: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logits and their weights; of a large subgroup fewer, over which means of smooth functions are the same."""
    if z.size < _LARGE:
        return z, weights
    inner = np.isfinite(z)
    nodes, mass = compressed(z[inner], weights[inner], _CELLS)
    sure = [float(weights[z == end].sum()) for end in (-np.inf, np.inf)]
    return np.concatenate([nodes, [-np.inf, np.inf]]), np.concatenate([mass, sure])


def _zero(function: Callable[[float], float], side: int) -> float:
    """Where a function that falls with side · a crosses 0; the end that it tends to if it does not within ± 60."""
    from scipy.optimize import brentq

    low, high = -60.0, 60.0
    first, last = function(low), function(high)
    if first * last >= 0:
        return high if side * (first + last) > 0 else low
    return float(brentq(function, low, high, xtol=1e-7))


def characteristic_pmf(chances: FloatArray) -> FloatArray:
    """:func:`outcomes_pmf` by Fourier transform of its characteristic function: faster, to some 1e-15 absolutely."""
    n = chances.size
    turns = np.exp(-2j * np.pi * np.arange((n + 1) // 2 + 1) / (n + 1)) - 1
    return np.asarray(np.fft.irfft(np.prod(1 + chances[:, None] * turns, axis=0), n + 1))


def _flipped_pvalue(
    rows: ProblemRows, groups: IntArray, test: str, n_draws: int, rng: np.random.Generator, smallest: float
) -> float:
    """p-value by signs of whole groups of rows; more draws where none of the first reaches what was observed."""
    residual = rows.outcomes - rows.scores
    variances = rows.scores * (1 - rows.scores)
    if not float(rows.times @ variances) > 0:
        return 0.0 if residual.any() else float("nan")
    flips = Flips.of(groups, residual**2, variances, rows.weights)
    order = np.argsort(rows.scores, kind="stable")
    ends = np.append(run_starts(rows.scores[order])[1:], order.size) - 1
    moved, group = (rows.weights * residual)[order], flips.group[order]
    each = np.bincount(flips.group, rows.weights * residual)

    def values(signs: FloatArray) -> FloatArray:
        return ranges(signs[:, group] * moved, ends) if test == "kuiper" else np.abs(signs @ each)

    near = float(values(np.ones((1, flips.n_groups)))[0]) * (1 - 1e-9)

    def reached(number: int) -> int:
        return sum(int((values(signs) >= near).sum()) for signs in flips.signs(number, rng, order.size))

    at_least, most = reached(n_draws), int(np.ceil(min(_FINE / smallest, _MORE_DRAWN / order.size)))
    if at_least or most <= n_draws:
        return (1 + at_least) / (1 + n_draws)
    # At most what is known before, as in kuiper_pvalue.
    return min((1 + reached(most - n_draws)) / (1 + most), 1 / (1 + n_draws))


def outcomes_pmf(chances: FloatArray) -> FloatArray:
    """``P(Σ o = k)``, k = 0 … n, of independent outcomes: the product of their generating functions, two by two."""
    parts = [np.array([1 - p, p]) for p in chances]
    while len(parts) > 1:
        pairs = [np.convolve(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + ([parts[-1]] if len(parts) % 2 else [])
    return parts[0] if parts else np.ones(1)


def subgroup_pvalue(
    rows: ProblemRows, test: str, n_resamples: int, rng: np.random.Generator, smallest: float = 1.0
) -> float:
    """p-value of a subgroup by one of the tests that :func:`subgroup_calibration` offers.

    ``smallest``: what it is compared with, 1 - level over the number of subgroups; draws are made to reach below.
    """
    if rows.groups is not None:
        return _flipped_pvalue(rows, rows.groups, test, n_resamples, rng, smallest)
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
        pmf = outcomes_pmf(rows.scores[repeats(rows.weights)])
        k = round(observed)
        return float(min(1.0, 2 * min(pmf[: k + 1].sum(), pmf[k:].sum())))
    spread = float(np.sqrt(rows.times @ (rows.scores * (1 - rows.scores))))
    off = abs(observed - float(rows.weights @ rows.scores))
    if not spread > 0:
        return 0.0 if off > 0 else float("nan")
    return float(2 * ndtr(-off / spread))
