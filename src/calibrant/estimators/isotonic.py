"""Estimators from sorted scores: the gap to the isotonic fit (`Isotonic`), and sums of residuals (`Cumulative`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.checks import check_choice
from ..data.types import AnyArray, FloatArray
from ..data.weights import run_starts
from ..sums import DistinctScores, Runs
from .base import CellEstimator
from .norm import is_linear, mean_power

STATISTICS = ("ks", "kuiper")


@dataclass(frozen=True)
class Cumulative(CellEstimator):
    r"""Calibration error without bins or bandwidth: the largest deviation of the cumulative sum of residuals.

    .. math:: & C(t) = \frac{\sum_{i:\, s_i \le t} w_i\,(o_i - s_i)}{\sum_i w_i}, \\
        & \text{ks} = \sup_t |C(t)|, \qquad \text{kuiper} = \sup_t C(t) - \inf_t C(t)

    with C = 0 before the first score. ``"ks"`` is the KS calibration error, also called ECCE-MAD; ``"kuiper"``, the
    range, is ECCE-R: the largest \|sum of residuals\| over any interval of scores.

    Parameters
    ----------
    statistic : {"ks", "kuiper"}, default "ks"
        The largest deviation, or the range.

    See Also
    --------
    calibrant.significance.cumulative_test : The test based on this statistic.
    calibrant.estimators.Isotonic : An L_p error without bandwidth.

    Notes
    -----
    C is evaluated at the ends of runs of equal scores, so the order of tied samples does not matter. The norm is
    irrelevant: the value is the same for every p.

    Range [0, 1], and ``kuiper / 2 ≤ ks ≤ kuiper``. In the population ``kuiper ≤ ECE``, since the absolute integral
    of the gap over an interval is at most the integral of the absolute gap: both are lower bounds of the ECE. They
    equal it if all gaps have the same sign. Gaps of opposite signs cancel: with one change of sign kuiper is still at
    least half the ECE, with more changes it can be any fraction of it. On a sample neither exceeds the plug-in ECE with
    one bin per distinct score.

    Bias: upward, from noise, of order n^(-1/2) whatever the density of the scores, the fastest rate of all estimators
    here. Null scale: under perfect calibration C is close to a Brownian motion whose end point has standard deviation
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
        check_choice("statistic", self.statistic, STATISTICS)

    def _needs(self, domain: tuple[float, float]) -> DistinctScores:
        """Sums per distinct score."""
        return DistinctScores()

    def read(self, sums: Runs, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem; NaN without weight."""
        residual, weight = sums.table(sums.outcome - sums.weight * sums.scores, sums.weight)
        path = np.cumsum(residual, axis=-1)  # behind a problem's last score it stays where it is
        high, low = path.max(axis=-1, initial=0.0), path.min(axis=-1, initial=0.0)
        total = weight.sum(axis=-1)
        error = (np.maximum(high, -low) if self.statistic == "ks" else high - low) / np.where(total > 0, total, np.nan)
        return np.asarray(error if is_linear(norm) else error**norm).reshape(sums.shape)


#: Number of distinct scores fitted together, chosen to fit into the cache.
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Isotonic(CellEstimator):
    r"""Calibration error against the isotonic fit, which finds bins and their number from the data (CORP).

    .. math:: & \Big(\frac{\sum_i w_i\,|\hat o(s_i) - s_i|^p}{\sum_i w_i}\Big)^{1/p}, \\
        & \hat o = \arg\min_{g \text{ non-decreasing}} \sum_i w_i\,(o_i - g(s_i))^2

    The fit, by the pool-adjacent-violators algorithm, is the mean outcome of blocks of neighbouring scores, and is
    therefore calibrated. It is valid where P(o = 1 | s) does not decrease with s.

    See Also
    --------
    calibrant.calibrators.IsotonicCalibrator : The fit as a calibrator.
    calibrant.decompose : The decomposition based on the same fit (CORP).

    Notes
    -----
    Samples with equal scores are merged first, so they get the same value. Range [0, 1]. Bias: upward, from noise,
    about n^(-1/3) for a calibrated model whose scores have a density; the fit overshoots at both ends (the initial
    run of zeros is fitted as 0, the final run of ones as 1), which p = inf reports. Downward where the true frequency
    decreases, or hardly increases, with the score: there the fit is flat (a model that is always certain and always
    wrong has the fit ½ and the error ½). p = 2 is not CORP's miscalibration term for the Brier score, which is
    ``Σ w [(s - o)² - (ô - o)²] / Σ w ≥ Σ w (ô - s)² / Σ w``: the latter retains the covariance of scores and outcomes
    within each block. Curve: ``reliability_curve(..., estimator="isotonic")``. Cost: O(n log n) for the sort and
    O(n) for the fit.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), *Stable reliability diagrams for probabilistic classifiers*.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]  # the fit is 0, ½, ½, 1
    >>> round(cal.calibration_error(y, p, estimator=cal.estimators.Isotonic()), 3)
    0.1
    """

    def _needs(self, domain: tuple[float, float]) -> DistinctScores:
        """Sums per distinct score."""
        return DistinctScores()

    def read(self, sums: Runs, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem; NaN without weight."""
        out: list[FloatArray] = [np.empty(0)]
        for part in sums.blocks(_BLOCK):
            # One fit for many: each problem's outcomes lie 2 above those of the problem before.
            fit = isotonic_means(part.outcome, part.weight, 2.0 * part.row)
            gap, weight = part.table(fit - part.scores, part.weight)
            out.append(mean_power(gap, weight, norm))
        return np.concatenate(out).reshape(sums.shape)


def isotonic_means(positive: FloatArray, weight: FloatArray, level: FloatArray | float = 0.0) -> FloatArray:
    """Isotonic fit to ``positive / weight``; each pool's mean is computed from its sums, which is exact for counts.

    With a level that increases by more than 1 from one sample to the next, concatenated samples are fitted separately.
    Non-increasing runs always end up in one pool, so they are pooled first, which leaves few values if outcomes are 0
    and 1.
    """
    from scipy.optimize import isotonic_regression

    if weight.size == 0:
        return np.empty(0)
    value = positive / weight + level
    rises = np.empty(value.size, dtype=bool)
    rises[0] = True
    np.greater(value[1:], value[:-1], out=rises[1:])
    start = np.flatnonzero(rises)
    hits, mass = np.add.reduceat(positive, start), np.add.reduceat(weight, start)
    above = level[start] if isinstance(level, np.ndarray) else level
    pools = isotonic_regression(hits / mass + above, weights=mass).blocks
    first = pools[:-1]
    means = np.add.reduceat(hits, first) / np.add.reduceat(mass, first)
    return np.repeat(means, np.diff(np.append(start[first], value.size)))


@dataclass(frozen=True, eq=False)
class RowsByScore:
    """Rows in the order of their scores, and the starts of runs of equal scores."""

    order: AnyArray
    start: AnyArray

    @classmethod
    def of(cls, scores: FloatArray) -> RowsByScore:
        """Sort; the order of equal scores does not matter."""
        order = np.argsort(scores)
        s = scores[order]
        return cls(order, run_starts(s))

    def fit(self, outcomes: AnyArray, weights: FloatArray) -> FloatArray:
        """Isotonic frequency of each row; equal scores are merged."""
        w = weights[self.order]
        positive = w * outcomes[self.order]
        distinct = self.start.size == w.size
        weight = w if distinct else np.add.reduceat(w, self.start)
        positive = positive if distinct else np.add.reduceat(positive, self.start)
        held = weight > 0
        if held.all():
            fitted = isotonic_means(positive, weight)
        else:  # scores that a resample left out have no row that asks
            fitted = np.zeros(weight.size)
            fitted[held] = isotonic_means(positive[held], weight[held])
        out = np.empty(w.size)
        out[self.order] = fitted if distinct else np.repeat(fitted, np.diff(self.start, append=w.size))
        return out
