"""Credible intervals of estimators with a posterior, for one problem or for several combined.

A model may be exactly calibrated (prior probability :data:`SPIKE`), all its classes together, or not; then each class
has draws of its own. So the posterior of the error has a spike at 0, and an interval starts at exactly 0 when the
probability of that is above ``(1 - level) / 2``. The upper end leaves the spike out: it says how large an error the
sample could have missed, which "exactly 0" would hide.

The draws are those of a model, not of the world: over the tracks of the known-truth benchmark, intervals read from
them directly cover a little less than they say where the true map is of a shape that the prior finds unlikely. They are
widened by :data:`WIDEN` about their median. That, :data:`CORRELATION` and the wide prior were chosen on these tracks:
the coverage table has other seeds than most of the trials, but not other distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._types import Interval
from ..errors.base import ErrorDraws
from ..errors.norm import combine_draws

#: Prior probability of exact calibration.
SPIKE = 0.1
#: Factor about the median by which draws are spread.
WIDEN = 1.1
#: Correlation of the errors of one-vs-rest problems, whose draws are independent.
CORRELATION = 0.3


class Credible(NamedTuple):
    """Interval, a median of the error, and the probability of exact calibration (None without a posterior)."""

    interval: Interval
    median: float
    calibrated: float | None


def credible(
    draws: Sequence[ErrorDraws],
    shares: Sequence[float],
    *,
    norm: float,
    average: str,
    level: float,
    dependent: bool = False,
) -> Credible:
    """Combine the posteriors of several problems.

    One-vs-rest problems share their rows, and what a prior gets wrong about one class it gets wrong about the others:
    the evidence of K of them counts as K - 1, and the spread of their mean is that of errors with a correlation of
    :data:`CORRELATION`.
    """
    nan = float("nan")
    known = [d for d in draws if not np.isnan(d.powers).any()]
    if not known:
        return Credible(Interval(nan, nan), nan, nan)
    m = len(known)
    dependent = dependent and m > 1
    log_odds = sum(d.log_odds for d in known) * ((m - 1) / m if dependent else 1.0)
    calibrated = float(1 / (1 + np.exp(np.clip(log_odds, -700, 700)) * (1 - SPIKE) / SPIKE))
    values = np.sort(combine_draws([d.powers for d in draws], shares, norm, average))
    factor = WIDEN * (np.sqrt(1 + CORRELATION * (m - 1)) if dependent and average != "max" else 1.0)
    middle = float(np.median(values))
    values = np.maximum(middle + factor * (values - middle), 0.0)
    tail = (1 - level) / 2

    def quantile(q: float) -> float:
        """Quantile of the mixture of the spike and the draws."""
        return 0.0 if q <= calibrated else float(np.quantile(values, (q - calibrated) / (1 - calibrated)))

    high = float(np.quantile(values, 1 - tail))
    return Credible(Interval(quantile(tail), min(high, 1.0)), quantile(0.5), calibrated)
