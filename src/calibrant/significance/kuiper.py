"""Kuiper's statistic of residuals against labels drawn from the probabilities: exact for any number of rows."""

from __future__ import annotations

import numpy as np

from ..data.types import AnyArray, FloatArray
from ..data.weights import of_variances
from .cumulative_sums import range_survival

#: Numbers drawn at a time.
_IN_CACHE = 1 << 16


def kuiper_pvalue(
    scores: FloatArray,
    outcomes: AnyArray,
    weights: FloatArray,
    n_draws: int,
    rng: np.random.Generator,
    *,
    repeats: bool = False,
) -> float:
    r"""``P(sup C - inf C ≥ observed)`` under calibration, C the running sum of ``w (o - s)`` in the order of scores.

    Outcomes are drawn for every row, ``n_draws`` times, the p-value ``(1 + #{draws ≥ observed}) / (1 + n_draws)``;
    with ``n_draws = 0`` it is that of a Brownian motion, for many rows. ``repeats``: weights count rows with outcomes
    of their own, whose variances add up. NaN where all scores are 0 or 1 and nothing else happened.
    """
    s, o, w = _sorted(scores, outcomes, weights)
    last = np.append(s[1:] != s[:-1], True)  # equal scores are one: only sums over whole runs of them count
    observed = float(ranges(w * (o - s), last))
    times = of_variances(w, integral=repeats)
    spread = float(np.sqrt(times @ (s * (1 - s))))
    if not spread > 0:
        return 0.0 if observed > 0 else float("nan")
    if n_draws == 0:
        return range_survival(observed / spread)
    near = observed - 1e-9 * spread  # the same sum in another order
    weighted, stated = bool((w != 1).any()), w * s
    whole = w.astype(np.int64) if repeats and weighted else None
    rows, at_least = max(1, _IN_CACHE // s.size), 0
    for first in range(0, n_draws, rows):
        some = min(rows, n_draws - first)
        if whole is None:
            drawn = rng.random((some, s.size))
            np.less(drawn, s, out=drawn)
            if weighted:
                drawn *= w
        else:
            drawn = rng.binomial(whole, s, size=(some, s.size)).astype(np.float64)
        drawn -= stated
        at_least += int((ranges(drawn, last) >= near).sum())
    return (1 + at_least) / (1 + n_draws)


def _sorted(scores: FloatArray, outcomes: AnyArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows in the order of scores, which are not negative."""
    if (weights == weights[0]).all() and scores.dtype == np.float64:
        # Sorted without an index: bits of such numbers ascend as they do, and leave one free for the outcome.
        key = (np.abs(scores).view(np.uint64) << 1) | (outcomes != 0)
        key.sort()
        return (key >> 1).view(np.float64), (key & 1).astype(np.float64), weights
    order = np.argsort(scores, kind="stable")
    return scores[order], np.asarray(outcomes, dtype=np.float64)[order], weights[order]


def ranges(residuals: FloatArray, last: AnyArray) -> FloatArray:
    """Largest minus smallest running sum over the last axis, 0 at the start among them; residuals are overwritten.

    Only sums at the ``last`` of rows with one score count.
    """
    running = np.cumsum(residuals, axis=-1, out=residuals)
    if not last.all():
        running *= last
    return np.asarray(np.maximum(running.max(axis=-1), 0.0) - np.minimum(running.min(axis=-1), 0.0))
