"""Credible intervals of estimators with a posterior, for one problem or for several combined.

A model may be exactly calibrated (prior probability :data:`SPIKE`), all its classes together, or not; then each class
has draws of its own. The interval's ends are quantiles of the draws, without the spike: the upper end says how large an
error the sample could have missed, which "exactly 0" would hide. The lower end is exactly 0 while "exactly calibrated"
is more probable than :func:`threshold` says.

The draws are those of a model, not of the world. Where what a drawn map misses of the outcomes is added to its error
(:class:`.ErrorDraws`, ``corrected``; a posterior with a one-step correction: Yiu, Fong, Holmes &
Rousseau 2023, *Semiparametric posterior corrections*), their quantiles are the interval, and a calibrated model's
reach below 0. For a largest gap, of its quantiles and of shares of decisions there is no such correction, and
some numbers were fitted to the tracks of the known-truth benchmark, for a level of 0.95: draws are spread about their
median (:func:`widening`), since read directly they cover a little less than they say where the true map is of a shape
that the prior finds unlikely, the more so the less noise hides that, and the lower end is a quantile at
``1 - level``, twice the upper end's tail, since a calibrated model can be missed on one side only. Errors of all
classes correlate by :data:`CORRELATION`, and the threshold is what calibrated models of the tracks fall below in about
``1 - level`` of samples. (At ``(1 - level) / 2``, its face value, the posterior probability covers 99.7 % of calibrated
models. It grows with n for a calibrated model, as Bayes factors do, and so does the threshold.) The coverage table has
other seeds than these trials, but not other distributions, its mixtures apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.types import FloatArray, Interval
from ..estimators.base import ErrorDraws
from .question import Question

#: Prior probability of exact calibration.
SPIKE = 0.1
#: Factor about the median by which draws without a correction are spread at 1000 rows, the power of n by which it
#: grows, and its largest.
WIDEN, WIDEN_GROWTH, WIDEST = 1.1, 0.05, 1.5
#: Correlation of the errors of one-vs-rest problems, whose draws are independent.
CORRELATION = 0.3
#: Threshold at level 0.95 and 500 rows, the power of n and of ``1 - level`` by which it grows, and where that ends.
THRESHOLD, GROWTH, TAIL_GROWTH, LARGEST = 0.1, 0.15, 0.5, 0.3


class Credible(NamedTuple):
    """Interval, a median of the error, and the probability of exact calibration (None without a posterior)."""

    interval: Interval
    median: float
    calibrated: float | None


def credible(draws: ErrorDraws, question: Question) -> Credible:
    """Combine the posteriors of a question's problems, draws (R, n_draws) and log odds (R,).

    One-vs-rest problems share their rows, and what a prior gets wrong about one class it gets wrong about the others:
    the evidence of K of them counts as K - 1, and the spread of their mean is that of errors with a correlation of
    :data:`CORRELATION`.
    """
    nan = float("nan")
    known = ~np.isnan(draws.powers).any(axis=-1)
    m = int(known.sum())
    if not m:
        return Credible(Interval(nan, nan), nan, nan)
    dependent = question.dependent and m > 1
    log_odds = float(draws.log_odds[known].sum()) * ((m - 1) / m if dependent and question.exclusive else 1.0)
    calibrated = float(1 / (1 + np.exp(np.clip(log_odds, -700, 700)) * (1 - SPIKE) / SPIKE))
    values = np.sort(question.combine_draws(draws.powers))
    together = dependent and question.average != "max"
    level = question.level
    factor, tail = (1.0, (1 - level) / 2) if draws.corrected else (widening(question.size), 1 - level)
    factor *= question.spread(m, float(np.sqrt(1 + CORRELATION * (m - 1)))) if together else 1.0
    middle = float(np.median(values))
    values = np.maximum(middle + factor * (values - middle), 0.0)
    median = 0.0 if calibrated >= 0.5 else float(np.quantile(values, (0.5 - calibrated) / (1 - calibrated)))
    if calibrated > threshold(question.size, level):
        low = 0.0
    elif m > 1 and question.average == "max":
        low = _of_worst(question.each(draws.powers[known]), tail)
    else:
        low = float(np.quantile(values, tail))
    high = float(np.quantile(values, (1 + level) / 2))
    # Whatever is found, something else may be true of so small a share of the rows that none of them is in the sample.
    unseen = 1 - ((1 - level) / 2) ** (1 / max(question.size, 1.0))
    high = max(high, unseen * question.largest)
    return Credible(Interval(min(low, median), min(high, question.largest)), median, calibrated)


def _of_worst(errors: FloatArray, tail: float) -> float:
    """Lower end of the largest of several errors (R, n_draws): the largest of their own, each with its share of a tail.

    The largest of many draws lies above the largest error where several are near it: each draw errs for one of them.
    """
    from scipy.special import ndtr, ndtri

    below, middle = np.quantile(errors, [float(ndtr(-1.0)), 0.5], axis=-1)
    return max(0.0, float((middle + ndtri(tail / len(errors)) * (middle - below)).max()))


def widening(size: float) -> float:
    """Factor about the median by which draws without a correction are spread."""
    return float(min(WIDEN * (max(size, 1.0) / 1000) ** WIDEN_GROWTH, WIDEST))


def threshold(size: float, level: float) -> float:
    """Posterior probability of exact calibration above which intervals start at 0."""
    return float(min(THRESHOLD * ((1 - level) / 0.05) ** TAIL_GROWTH * (max(size, 1.0) / 500) ** GROWTH, LARGEST))
