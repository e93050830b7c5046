"""Credible intervals of estimators with a posterior, for one problem or for several combined.

A model may be exactly calibrated (prior probability :data:`SPIKE`), for all classes jointly, or not; then each class
has its own draws. The ends of the interval are quantiles of the draws, without the spike: the upper end indicates how
large an error the sample could have missed, which "exactly 0" would hide. The lower end is exactly 0 while the
posterior probability of exact calibration is above :func:`threshold`.

The draws rely on the model being correct. If the part of the outcomes that a drawn map misses is added to its error
(:class:`.ErrorDraws`, ``corrected``; a posterior with a one-step correction: Yiu, Fong, Holmes &
Rousseau 2023, *Semiparametric posterior corrections*), the interval is their quantiles, and draws of a calibrated model
extend below 0. For the largest gap, quantiles of gaps and shares of decisions there is no such correction, and
some constants were fitted to the tracks of the known-truth benchmark, for a level of 0.95: draws are widened about
their median (:func:`widening`), since without widening their coverage is slightly too low if the prior considers the
shape of the true map unlikely, increasingly so with less noise, and the lower end is a quantile at
``1 - level``, twice the tail of the upper end, since a calibrated model can be missed only on one side. Errors of
classes have correlation :data:`CORRELATION`, and the posterior probability of calibrated models of the tracks is below
the threshold in about ``1 - level`` of samples. (At the nominal ``(1 - level) / 2``, 99.7 % of calibrated models are
covered. The probability increases with n for a calibrated model, as Bayes factors do, and so does the threshold.) The
coverage table uses other seeds than these trials, but, except for its mixtures, the same distributions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.types import FloatArray, Interval
from ..estimators.base import ErrorDraws
from .question import Question

#: Prior probability of exact calibration.
SPIKE = 0.1
#: Factor by which draws without a correction are widened about the median at 1000 rows, the power of n by which it
#: increases, and its maximum.
WIDEN, WIDEN_GROWTH, WIDEST = 1.1, 0.05, 1.5
#: Correlation of the errors of one-vs-rest problems, whose draws are independent.
CORRELATION = 0.3
#: Threshold at level 0.95 and 500 rows, the powers of n and of ``1 - level`` by which it increases, and its maximum.
THRESHOLD, GROWTH, TAIL_GROWTH, LARGEST = 0.1, 0.15, 0.5, 0.3


class Credible(NamedTuple):
    """Interval, median of the error, and the probability of exact calibration (None without a posterior)."""

    interval: Interval
    median: float
    calibrated: float | None


def credible(draws: ErrorDraws, question: Question) -> Credible:
    """Combine the posteriors of a question's problems, draws (R, n_draws) and log odds (R,).

    One-vs-rest problems share their rows, and errors of the prior are common to all classes:
    the evidence of K of them counts as K - 1, and the spread of their mean is that of errors with correlation
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
    """Lower end for the largest of several errors (R, n_draws): the largest lower end, with the tail divided by R.

    The maximum over draws of several similar errors overestimates the largest error.
    """
    from scipy.special import ndtr, ndtri

    below, middle = np.quantile(errors, [float(ndtr(-1.0)), 0.5], axis=-1)
    return max(0.0, float((middle + ndtri(tail / len(errors)) * (middle - below)).max()))


def widening(size: float) -> float:
    """Factor by which draws without a correction are widened about their median."""
    return float(min(WIDEN * (max(size, 1.0) / 1000) ** WIDEN_GROWTH, WIDEST))


def threshold(size: float, level: float) -> float:
    """Posterior probability of exact calibration above which intervals start at 0."""
    return float(min(THRESHOLD * ((1 - level) / 0.05) ** TAIL_GROWTH * (max(size, 1.0) / 500) ** GROWTH, LARGEST))
