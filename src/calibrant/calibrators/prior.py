r"""The weak prior of parametric calibrators: a few rows more, whose labels are what the scores themselves expect.

With m such rows, spread over the n that were given, each row's label o becomes the target
:math:`(n o + m p) / (n + m)`, p the probabilities that the scores stand for. The fit is pulled towards leaving the
scores alone, by m rows whatever n is: it is finite where scores separate the classes or a class has no rows, and its
effect vanishes as m / n. Of margins, which stand for no probabilities, the rows have the shares of the classes.

References
----------
Huang, Stein, Rubin & Kou (2020), *Catalytic prior distributions with application to generalized linear models*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from ..data.checks import check_choice
from ..data.types import FloatArray
from .base import check_not_negative
from .inputs import CalibrationSample

#: Rows of ``shrinkage="auto"``, and where scores are margins: shares of classes tell less than probabilities.
ROWS, OF_MARGINS = 8.0, 0.5


def check_shrinkage(name: str, value: Any) -> None:
    """Judge ``shrinkage``: "auto", or a number of at least 0."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    else:
        check_not_negative(name, value)


def prior_rows(shrinkage: float | str, sample: CalibrationSample) -> float:
    """The prior's rows, m."""
    rule = OF_MARGINS if sample.scores.kind == "margin" else ROWS
    return float(rule if isinstance(shrinkage, str) else shrinkage)


def effective_rows(shrinkage: float | str, sample: CalibrationSample) -> float:
    """The prior's rows and the sample's."""
    return sample.effective_rows + prior_rows(shrinkage, sample)


def share_of(shrinkage: float | str, sample: CalibrationSample) -> float:
    """The prior's share of all rows, ``m / (n + m)``."""
    rows = prior_rows(shrinkage, sample)
    return rows / (sample.total + rows)


def prior_shares(sample: CalibrationSample) -> FloatArray:
    """What the rows of the prior expect where scores are margins: the shares of the classes, (K,), none of them 0."""
    count = np.bincount(sample.codes, weights=sample.weights, minlength=sample.n_classes)
    return np.asarray((count + 1) / (count.sum() + sample.n_classes))


def shrunk(targets: FloatArray, sample: CalibrationSample, shrinkage: float | str, eps: float) -> FloatArray:
    """Targets of the second of two classes, with the prior's rows among them."""
    share = share_of(shrinkage, sample)
    if share == 0:
        return targets
    margin = sample.scores.kind == "margin"
    likely = prior_shares(sample)[1] if margin else expit(sample.scores.log_odds(eps))
    return np.asarray(targets + share * (likely - targets))
