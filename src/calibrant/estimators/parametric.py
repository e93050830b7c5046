"""`Parametric`: a map of the logit with two or three parameters, shrunk towards perfect calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.checks import check_choice, check_number
from ..data.types import AnyArray, FloatArray
from ..sums.logistic_fit import Counts, Point, expit, fit, logits_of, maximum, warned
from .axis_counts import AxisCounts, Logits
from .base import CellEstimator, Cells, FittedCells, check_eps
from .norm import mean_power

#: Block size in numbers fitted at a time.
_BLOCK = 1 << 16
#: Grid cells used for resampling.
_REDRAWN_CELLS = 128
FAMILIES = ("logistic", "beta", "quadratic")
#: Prior standard deviations averaged by evidence, for ``shrinkage="auto"``.
PRIOR_SDS = (0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Parametric(CellEstimator):
    r"""Calibration error of a parametric recalibration map, shrunk towards the identity.

    .. math:: & \Big(\frac1n \sum_i |g(s_i) - s_i|^p\Big)^{1/p}, \\
        & \operatorname{logit} g(s) = \ell + \sum_k \theta_k z_k(\ell), \quad \ell = \operatorname{logit} s

    with θ maximising ``Σ log-likelihood - shrinkage/2 · |θ|²``. The z are deviations from the identity, each
    orthogonal to those before it over the sample and of mean square 1, so that θ_k is the root mean square change of
    the logit along the k-th direction, and θ = 0 is perfect calibration.

    Parameters
    ----------
    family : {"logistic", "beta", "quadratic"}, default "logistic"
        ``a + b ℓ`` (Platt on logits); ``a + b log s - c log(1-s)`` (beta calibration, without its constraint
        b, c ≥ 0); ``a + b ℓ + c ℓ²``.
    shrinkage : float ≥ 0 or "auto", default "auto"
        Precision of the normal prior of each θ_k: ``4`` expects changes of the logit of about ½; 0 is maximum
        likelihood. ``"auto"``: the posterior mean of θ over prior standard deviations 0 (exactly calibrated), .1, .3,
        1, 3, weighted by the evidence of the data for each (Laplace's approximation).
    eps : float, default 1e-6
        Scores are clipped to [eps, 1 - eps] before their logit is taken, so that it is finite for exact 0 and 1.

    See Also
    --------
    calibrant.EmpiricalBayes : A flexible map.
    calibrant.calibrators.PlattScaling : The logistic map as a calibrator.

    Notes
    -----
    Range [0, 1]. Bias: little from noise, since few parameters are fitted; downward at small n, from shrinkage. Gaps
    outside the family (such as a wavy one) are missed at every n, so it is consistent only within its family. Up to
    512 samples (counting repeats) are used individually; more are shared between the nodes of a grid of 512 steps of
    the logit, which is mergeable, with an error of about 1e-4 (p = inf is evaluated at the nodes). Its reliability
    curve is that of :class:`AdaptiveKernel`. Cost O(n + iterations · G).

    Newton's method halves steps until the penalised likelihood increases and stops when the decrement is below
    1e-9; otherwise a :class:`ConvergenceWarning` is issued.

    References
    ----------
    Platt (1999); Kull, Silva Filho & Flach (2017), *Beta calibration*; MacKay (1992), *Bayesian interpolation*, for the
    evidence.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < 1 / (1 + (1 / p - 1) ** 2)  # logit doubled: the truth is 0.0966
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.estimators.Parametric()) - 0.0966) < 0.02)
    True
    """

    _cells_are_atoms: ClassVar[bool] = True
    family: str = "logistic"
    shrinkage: float | str = "auto"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        check_choice("family", self.family, FAMILIES)
        if not (isinstance(self.shrinkage, str) and self.shrinkage == "auto"):
            shrinkage = check_number("shrinkage", self.shrinkage, least=0, instead="'auto' or ")
            object.__setattr__(self, "shrinkage", shrinkage)
        object.__setattr__(self, "eps", check_eps(self.eps))

    def _needs(self, domain: tuple[float, float]) -> Logits:
        """Sums over the logit."""
        return Logits(self.eps)

    def read(self, sums: AxisCounts, norm: float) -> FloatArray:
        """``errorᵖ`` of the fitted map of every problem."""
        shape = sums.cells.shape
        count, positive, logits = (v.reshape(int(np.prod(shape)), v.shape[-1]) for v in (*sums.atoms[1:], sums.places))
        step = sums.step.reshape(-1)
        out: FloatArray = np.full(len(count), np.nan)
        for width in np.unique(step):
            some = np.flatnonzero((step == width) & count.any(axis=-1))
            together = max(1, _BLOCK // max(count.shape[-1], 1))
            for a in range(0, some.size, together):
                rows = some[a : a + together]
                used = np.flatnonzero(count[rows].any(axis=0))
                held = slice(int(used[0]), int(used[-1]) + 1)
                x, mass, hits = logits[rows, held], count[rows, held], positive[rows, held]
                out[rows] = mean_power(gaps(x, mass, hits, self.family, self.shrinkage, float(width)), mass, norm)
        return out.reshape(shape)

    def _cells(self, sums: AxisCounts) -> Cells:
        """Nodes of a coarse grid of the logit as cells, with the gap of the fitted map."""
        coarse = sums.binned(_REDRAWN_CELLS)
        scores, count, positive = (v[None] for v in coarse.atoms)
        step = float(coarse.step)
        gap = gaps(logits_of(scores, self.eps), count, positive, self.family, self.shrinkage, step)[0]
        return FittedCells(scores[0], count[0], positive[0], None, np.ones(count.size), fitted=gap)

    def _held(self, sums: AxisCounts) -> tuple[Parametric, AxisCounts]:
        """Counts on a coarse grid are resampled; the map is refitted to every sample."""
        return self, sums.binned(_REDRAWN_CELLS)


def columns_of(logits: FloatArray, count: FloatArray, family: str, step: float = 0.0) -> FloatArray:
    """Standardised deviations of the family from the identity, shape (R, k, m), for logits and counts (R, m).

    ``1, ℓ`` (logistic), ``1, ℓ, ℓ²`` (quadratic), ``1, ℓ, log s(1-s)`` (beta: its maps are
    ``a + b log s - c log(1-s)``), orthonormalised over the sample one after the other. A column that is determined by
    the previous ones (constant scores, two distinct scores) is 0; all but the first are 0 if ℓ varies no more than
    from sharing a sample between nodes a ``step`` apart.
    """
    share = count / np.maximum(count.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    raw = [np.ones_like(logits), logits]
    if family == "quadratic":
        raw.append(logits**2)
    elif family == "beta":
        raw.append(-np.logaddexp(0, logits) - np.logaddexp(0, -logits))
    columns: list[FloatArray] = []
    varied: AnyArray = np.ones((1, 1), dtype=bool)
    for values in raw:
        rest = values
        for _ in range(2):  # twice is enough (Kahan): once leaves rounding errors of the size of what it removed
            for column in columns:
                rest = rest - (share * rest * column).sum(axis=-1, keepdims=True) * column
        size = (share * values**2).sum(axis=-1, keepdims=True)
        left = (share * rest**2).sum(axis=-1, keepdims=True)
        known = left > 1e-18 * size
        if values is logits:
            known &= left > 0.26 * step**2
            varied = known
        elif columns:
            known &= varied
        columns.append(np.where(known, rest / np.sqrt(np.where(known, left, 1.0)), 0.0))
    return np.stack(columns, axis=-2)


def _evidence(counts: Counts, precision: float, mode: Point) -> FloatArray:
    """Laplace approximation of the log evidence under ``θ ~ N(0, 1/precision)``, (R,)."""
    live = (counts.columns**2).max(axis=-1) > 0
    k = np.arange(live.shape[1])
    hessian = mode.information.copy()
    hessian[:, k, k] += np.where(live, precision, 1.0)  # columns that are not live are rows of the identity
    log_det = np.linalg.slogdet(hessian)[1]
    value = mode.likelihood - 0.5 * precision * (mode.theta**2).sum(axis=-1)
    return np.asarray(value + 0.5 * live.sum(axis=-1) * np.log(precision) - 0.5 * log_det)


def gaps(
    logits: FloatArray,
    count: FloatArray,
    positive: FloatArray,
    family: str,
    shrinkage: float | str,
    step: float = 0.0,
) -> FloatArray:
    """``g(s) - s`` of the fitted map at each logit of s, all shapes (R, m).

    For ``shrinkage="auto"`` the coefficients are averaged over priors, exactly calibrated (standard deviation 0) and
    those of :data:`PRIOR_SDS`, weighted by evidence.
    """
    columns = columns_of(logits, count, family, step)
    if isinstance(shrinkage, str):
        counts = Counts(columns, count, positive)
        point = Point.at(np.zeros(columns.shape[:2]), logits, counts)
        thetas, evidences = [point.theta], [point.likelihood]
        for sd in PRIOR_SDS:
            point = warned(*maximum(counts, sd**-2, point))
            thetas.append(point.theta)
            evidences.append(_evidence(counts, sd**-2, point))
        evidence = np.stack(evidences)
        weight = np.exp(evidence - evidence.max(axis=0))
        weight /= weight.sum(axis=0)
        theta = (weight[..., None] * np.stack(thetas)).sum(axis=0)
    else:
        theta = fit(columns, logits, count, positive, float(shrinkage))
    z = logits + (theta[:, None, :] @ columns)[:, 0]
    return expit(z) - expit(logits)
