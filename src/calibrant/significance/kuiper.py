"""Kuiper's statistic of residuals against labels drawn from the probabilities: exact for any number of rows."""

from __future__ import annotations

import numpy as np

from ..data.types import AnyArray, FloatArray
from ..data.weights import of_variances, run_starts
from .cumulative_sums import range_survival

#: Numbers drawn at a time.
_TOGETHER = 1 << 21
#: Of these, numbers worked on at a time.
_IN_CACHE = 1 << 16


def kuiper_pvalue(
    scores: FloatArray,
    outcomes: AnyArray,
    weights: FloatArray,
    n_draws: int,
    rng: np.random.Generator,
    *,
    repeats: bool = False,
    most_draws: int = 0,
) -> float:
    r"""``P(sup C - inf C ≥ observed)`` under calibration, C the running sum of ``w (o - s)`` in the order of scores.

    Outcomes are drawn for every row, ``n_draws`` times, the p-value ``(1 + #{draws ≥ observed}) / (1 + n_draws)``;
    with ``n_draws = 0`` it is that of a Brownian motion, for many rows. ``repeats``: weights count rows with outcomes
    of their own, whose variances add up. NaN where all scores are 0 or 1 and nothing else happened.

    Where no draw is as large as what was observed, up to ``most_draws`` (if more) are made, and the p-value is
    ``(1 + #{draws ≥ observed}) / (1 + most_draws)``, at most the ``1 / (1 + n_draws)`` known before. It remains valid:
    a value below the latter needs the p-value of all ``most_draws`` to be as small, any other is that of the first.
    """
    s, o, w = _sorted(scores, outcomes, weights)
    # Equal scores are one: only sums over whole runs of them count.
    ends = np.append(run_starts(s)[1:], s.size) - 1
    observed = float(ranges((w * (o - s))[None], ends)[0])
    times = of_variances(w, integral=repeats)
    spread = float(np.sqrt(times @ (s * (1 - s))))
    if not spread > 0:
        return 0.0 if observed > 0 else float("nan")
    if n_draws == 0:
        return range_survival(observed / spread)
    near = observed - 1e-9 * spread  # the same sum in another order
    weighted, stated = bool((w != 1).any()), w * s
    whole = w.astype(np.int64) if repeats and weighted else None
    rows = max(1, _IN_CACHE // s.size)

    def reached(number: int, enough: float) -> int:
        """How many of so many draws are at least as large; it stops at enough of them."""
        count, done = 0, 0
        while done < number and count < enough:
            r = max(1, min(number - done, _TOGETHER // s.size))
            for first in range(0, r, rows):
                some = min(rows, r - first)
                if whole is None:
                    drawn = rng.random((some, s.size))
                    np.less(drawn, s, out=drawn)
                    if weighted:
                        drawn *= w
                else:
                    drawn = rng.binomial(whole, s, size=(some, s.size)).astype(np.float64)
                drawn -= stated
                count += int((ranges(drawn, ends) >= near).sum())
            done += r
        return count

    at_least = reached(n_draws, np.inf)
    least = 1 / (1 + n_draws)
    if at_least > 0 or most_draws <= n_draws:
        return (1 + at_least) * least
    further = reached(most_draws - n_draws, least * (1 + most_draws))
    return min((1 + further) / (1 + most_draws), least)


def _sorted(scores: FloatArray, outcomes: AnyArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows in the order of scores, which are not negative."""
    if (weights == weights[0]).all() and scores.dtype == np.float64:
        # Sorted without an index: bits of such numbers ascend as they do, and leave one free for the outcome.
        key = (np.abs(scores).view(np.uint64) << 1) | (outcomes != 0)
        key.sort()
        return (key >> 1).view(np.float64), (key & 1).astype(np.float64), weights
    order = np.argsort(scores, kind="stable")
    return scores[order], np.asarray(outcomes, dtype=np.float64)[order], weights[order]


def ranges(residuals: FloatArray, ends: AnyArray) -> FloatArray:
    """Largest minus smallest running sum of each row, 0 at the start among them; residuals are overwritten."""
    running = np.cumsum(residuals, axis=1, out=residuals)
    running = running if ends.size == running.shape[1] else running[:, ends]
    return np.asarray(np.maximum(running.max(axis=1), 0.0) - np.minimum(running.min(axis=1), 0.0))
