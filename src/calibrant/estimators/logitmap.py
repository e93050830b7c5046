"""Maps of the logit, ``logit g = logit s + Σ θ_k z_k``, fitted by penalised likelihood; many samples at once."""

from __future__ import annotations

import numpy as np

from ..data.types import AnyArray, FloatArray
from ..sums.logistic_fit import Counts, Point, maximum, warned
from ..sums.logistic_fit import expit as expit
from ..sums.logistic_fit import fit as fit
from ..sums.logistic_fit import logits_of as logits_of
from ..sums.logistic_fit import softplus_and_expit as softplus_and_expit

FAMILIES = ("logistic", "beta", "quadratic")
#: Prior standard deviations between which the evidence of the data decides, for ``shrinkage="auto"``.
PRIOR_SDS = (0.1, 0.3, 1.0, 3.0)


def columns_of(logits: FloatArray, count: FloatArray, family: str, step: float = 0.0) -> FloatArray:
    """Standardised deviations of the family from the identity, shape (R, k, m), for logits and counts (R, m).

    ``1, ℓ`` (logistic), ``1, ℓ, ℓ²`` (quadratic), ``1, ℓ, log s(1-s)`` (beta: its maps are
    ``a + b log s - c log(1-s)``), made orthonormal one after the other over the sample. A column that the ones before
    it determine (constant scores, two distinct scores) is 0, and all but the first are where ℓ varies no more than
    sharing a sample between nodes a ``step`` apart makes it vary.
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
    """Laplace's logarithm of the probability of the data under ``θ ~ N(0, 1/precision)``, (R,)."""
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

    For ``shrinkage="auto"`` the coefficients are averaged over priors, from exactly calibrated (standard deviation 0)
    through :data:`PRIOR_SDS`, weighted by the evidence of the data for each.
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
