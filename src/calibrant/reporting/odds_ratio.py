"""Scores that are all miscalibrated by one odds ratio, as if the base rate had changed."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from ..data.types import FloatArray
from ..sums import GridMoments
from ..sums.logistic_fit import Counts, Point, logits_of, maximum

#: The largest standard error of a log odds ratio that is reported: base rates then have two digits.
_PRECISE = 0.1
#: Twice the log-likelihood ratio that an added slope and curvature may gain by chance (5 %), and by which one odds
#: ratio must explain the outcomes better than another slope.
_ADDED, _BETTER = 5.99, 10.0


class MovedBaseRate(NamedTuple):
    """The base rate for which the scores are calibrated, and that of the outcomes."""

    before: float
    now: float

    @classmethod
    def of(cls, grid: GridMoments, now: float, effective: float) -> Self | None:
        """Base rates if one odds ratio explains all of the miscalibration, and nothing else does so as well; else None.

        ``effective`` is the number of independent rows that the counts stand for, and ``now`` the base rate.
        """
        if not 0 < now < 1:
            return None
        each = effective / float(grid.total)
        z = logits_of(grid.nodes, 1 / (2 * effective + 4))
        used = grid.count > 0
        z, count, positive = z[used], each * grid.count[used], each * grid.positive[used]
        scale = max(float(np.sqrt(np.average(z**2, weights=count))), 1e-9)
        columns = np.stack([np.ones(len(z)), z / scale, (z / scale) ** 2])
        nothing = _log_likelihood(z, count, positive)
        shift, slope, every = (_fitted(columns[of], z, count, positive) for of in ([0], [1], [0, 1, 2]))
        simple, other, most = (2 * float(one.likelihood[0]) for one in (shift, slope, every))
        precise = float(shift.information[0, 0, 0]) ** -0.5 <= _PRECISE
        better = simple - max(other, 2 * nothing) >= _BETTER
        if not (precise and better and most - simple <= _ADDED):
            return None
        odds = now / (1 - now) * float(np.exp(-shift.theta[0, 0]))
        return cls(odds / (1 + odds), now)


def _log_likelihood(z: FloatArray, count: FloatArray, positive: FloatArray) -> float:
    """Log-likelihood of log odds z."""
    return float(positive @ z - count @ np.logaddexp(0, z))


def _fitted(columns: FloatArray, z: FloatArray, count: FloatArray, positive: FloatArray) -> Point:
    """Fit of columns added to the log odds of the scores."""
    counts = Counts(columns[None], count[None], positive[None])
    return maximum(counts, 0.0, Point.at(np.zeros((1, len(columns))), z[None], counts))[0]
