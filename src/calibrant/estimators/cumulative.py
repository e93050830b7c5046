"""`Cumulative`: the largest excursion of the running sum of residuals (Kolmogorov-Smirnov, Kuiper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.types import FloatArray
from ..sums import DistinctScores, Runs
from .base import CellEstimator
from .norm import is_linear

STATISTICS = ("ks", "kuiper")


@dataclass(frozen=True)
class Cumulative(CellEstimator):
    r"""Calibration error without bins or bandwidth: the largest deviation of the running sum of residuals.

    .. math:: C(t) = \frac{\sum_{i:\, s_i \le t} w_i\,(o_i - s_i)}{\sum_i w_i}, \qquad
        \text{ks} = \sup_t |C(t)|, \qquad \text{kuiper} = \sup_t C(t) - \inf_t C(t)

    with C = 0 before the first score. ``"ks"`` is the KS calibration error, also called ECCE-MAD; ``"kuiper"``, the
    range, is ECCE-R: the largest \|sum of residuals\| over any interval of scores.

    Parameters
    ----------
    statistic : {"ks", "kuiper"}, default "ks"

    Notes
    -----
    C is read at the ends of runs of equal scores, so the order of tied samples is nothing. The norm is irrelevant: the
    value is the same for every p.

    Range [0, 1], and ``kuiper / 2 ≤ ks ≤ kuiper``. In the population ``kuiper ≤ ECE``, since the size of an integral
    of the gap over an interval is at most the integral of its size: both are lower bounds of the ECE. They equal it
    where all gaps have one sign. Gaps of both signs cancel: with one change of sign kuiper is still at least half
    the ECE, with more changes it can be any fraction of it. On a sample neither exceeds the plug-in ECE with one
    bin for each distinct score.

    Bias: upward by noise, of order n^(-1/2) whatever the density of the scores, the fastest rate of all estimators
    here. Null scale: under perfect calibration C is close to a Brownian motion that ends with the standard deviation
    ``σ = sqrt(Σ w² s(1 - s)) / Σ w``, so that ks has mean ``sqrt(π/2) σ = 1.2533 σ`` and exceeds 2.2414 σ with
    probability 5 %, and kuiper has mean ``sqrt(8/π) σ = 1.5958 σ``. Cost: O(n log n).

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu & Hartley (2021), *Calibration of neural networks using splines*
    (KS); Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022), *Metrics of calibration for probabilistic predictions*
    (ECCE-MAD, ECCE-R).

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [1, 0, 0, 1], [0.2, 0.4, 0.6, 0.8]  # residuals 0.8, -0.4, -0.6, 0.2
    >>> round(cal.calibration_error(y, p, estimator=cal.estimators.Cumulative()), 3)
    0.2
    >>> round(cal.calibration_error(y, p, estimator=cal.estimators.Cumulative("kuiper")), 3)
    0.25
    """

    statistic: str = "ks"

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise ValueError(f"statistic must be one of {', '.join(map(repr, STATISTICS))}; got {self.statistic!r}")

    def _needs(self, domain: tuple[float, float]) -> DistinctScores:
        """Sums on each distinct score."""
        return DistinctScores()

    def read(self, sums: Runs, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem; NaN without weight."""
        residual, weight = sums.table(sums.outcome - sums.weight * sums.scores, sums.weight)
        path = np.cumsum(residual, axis=-1)  # behind a problem's last score it stays where it is
        high, low = path.max(axis=-1, initial=0.0), path.min(axis=-1, initial=0.0)
        total = weight.sum(axis=-1)
        error = (np.maximum(high, -low) if self.statistic == "ks" else high - low) / np.where(total > 0, total, np.nan)
        return np.asarray(error if is_linear(norm) else error**norm).reshape(sums.shape)
