"""Kuiper's statistic of residuals against labels drawn from the probabilities: exact for any number of rows."""

from __future__ import annotations

import numpy as np

from .._types import AnyArray, FloatArray
from .cumulative import range_survival

#: Numbers drawn at a time.
_TOGETHER = 1 << 21


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
    order = np.argsort(scores, kind="stable")
    s, o, w = scores[order], np.asarray(outcomes, dtype=np.float64)[order], weights[order]
    # Equal scores are one: only sums over whole runs of them count.
    ends = np.flatnonzero(np.concatenate([s[1:] != s[:-1], [True]]))
    observed = float(_ranges((w * (o - s))[None], ends)[0])
    times = w if repeats else w**2
    spread = float(np.sqrt(times @ (s * (1 - s))))
    if not spread > 0:
        return 0.0 if observed > 0 else float("nan")
    if n_draws == 0:
        return range_survival(observed / spread)
    near = observed - 1e-9 * spread  # the same sum in another order
    at_least, done = 0, 0
    whole = w.astype(np.int64) if repeats and (w != 1).any() else None
    while done < n_draws:
        r = max(1, min(n_draws - done, _TOGETHER // s.size))
        if whole is None:
            drawn = w * (rng.random((r, s.size)) < s)
        else:
            drawn = rng.binomial(whole, s, size=(r, s.size)).astype(np.float64)
        at_least += int((_ranges(drawn - w * s, ends) >= near).sum())
        done += r
    return (1 + at_least) / (1 + n_draws)


def _ranges(residuals: FloatArray, ends: AnyArray) -> FloatArray:
    """Largest minus smallest running sum of each row, 0 at the start among them."""
    running = np.cumsum(residuals, axis=1)[:, ends]
    return np.asarray(np.maximum(running.max(axis=1), 0.0) - np.minimum(running.min(axis=1), 0.0))
