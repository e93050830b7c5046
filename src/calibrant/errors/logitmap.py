"""Maps of the logit, ``logit g = logit s + Σ θ_k z_k``, fitted by penalised likelihood; many samples at once."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from .._types import AnyArray, ConvergenceWarning, FloatArray

FAMILIES = ("logistic", "beta", "quadratic")
#: Prior standard deviations between which the evidence of the data decides, for ``shrinkage="auto"``.
PRIOR_SDS = (0.1, 0.3, 1.0, 3.0)
#: Newton's method ends after the step whose decrement (twice the expected gain in log-likelihood) is below this: it
#: converges quadratically, so what is left is about its square.
_DECREMENT = 1e-9
_ITERATIONS = 100
_HALVINGS = 40


def logits_of(scores: FloatArray, eps: float) -> FloatArray:
    """``log s/(1-s)`` of scores clipped to [eps, 1 - eps]."""
    clipped = np.clip(scores, eps, 1 - eps)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def expit(z: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-z))`` without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * z))


def softplus_and_expit(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``log(1 + e^z)`` and its derivative ``1 / (1 + e^(-z))``, from one exponential, without overflow."""
    small = np.exp(-np.abs(z))
    share = 1 / (1 + small)
    return np.maximum(z, 0) + np.log1p(small), np.where(z >= 0, share, small * share)


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


class _Held(NamedTuple):
    """What the fit needs of each sample."""

    columns: FloatArray
    mass: FloatArray
    positive: FloatArray
    diagonal: FloatArray

    def of(self, rows: AnyArray) -> _Held:
        """Some of the samples."""
        return _Held(*(values[rows] for values in self))


def fit(
    columns: FloatArray,
    logits: FloatArray,
    count: FloatArray,
    positive: FloatArray,
    precision: float,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (R, k) that maximise ``Σ positive·z - count·log(1+e^z) - precision/2 |θ|²``, and Laplace evidence.

    Newton's method with step halving; a :class:`ConvergenceWarning` says when it did not end. The evidence is the
    logarithm of that of the data under ``θ ~ N(0, 1/precision)``, 0 for precision 0 (an improper prior has none).
    """
    live = (columns**2).max(axis=-1) > 0
    diagonal = np.where(live, precision, 1.0)
    # Without a prior the curvature vanishes where outcomes are separated; steps need some, the maximum does not.
    damping = 1e-14 * count.sum(axis=-1)[:, None] if precision == 0 else np.zeros((1, 1))
    damping = np.broadcast_to(damping, live.shape)
    k = columns.shape[-2]
    eye = np.eye(k)
    theta = np.zeros(live.shape) if start is None else start.copy()

    everything = np.arange(theta.shape[0])
    z = logits + (theta[:, None, :] @ columns)[:, 0]
    growth, g = softplus_and_expit(z)
    value = (positive * z - count * growth).sum(axis=-1) - 0.5 * precision * (theta**2).sum(axis=-1)
    # Samples that have converged are left out; the rest is copied only when there are some.
    active, held = everything, _Held(columns, count, positive, diagonal + damping)
    for _ in range(_ITERATIONS):
        now = theta[active]
        gradient = (held.columns @ (held.positive - held.mass * g)[..., None])[..., 0] - precision * now
        hessian = (held.columns * (held.mass * g * (1 - g))[:, None]) @ held.columns.swapaxes(-1, -2)
        hessian += held.diagonal[:, :, None] * eye
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        decrement = (step * gradient).sum(axis=-1)
        move = (step[:, None, :] @ held.columns)[:, 0]
        least = value[active] - 1e-12 * (1 + np.abs(value[active]))
        length = np.ones(active.size)
        for _ in range(_HALVINGS):
            tried = now + length[:, None] * step
            z_new = z + length[:, None] * move
            growth, g_new = softplus_and_expit(z_new)
            reached = (held.positive * z_new - held.mass * growth).sum(axis=-1)
            reached -= 0.5 * precision * (tried**2).sum(axis=-1)
            good = reached >= least
            if good.all():
                break
            length = np.where(good, length, 0.5 * length)
        else:
            tried = np.where(good[:, None], tried, now)
            reached = np.where(good, reached, value[active])
            z_new, g_new = (np.where(good[:, None], new, old) for new, old in ((z_new, z), (g_new, g)))
        theta[active], value[active] = tried, reached
        going = decrement > _DECREMENT
        if not going.any():
            break
        if going.all():
            z, g = z_new, g_new
        else:
            active, held, z, g = active[going], held.of(going), z_new[going], g_new[going]
    else:
        warnings.warn(
            f"the logit map's fit did not converge in {_ITERATIONS} steps for {active.size} of {everything.size} "
            f"samples (decrement {float(decrement.max()):.3g})",
            ConvergenceWarning,
            stacklevel=3,
        )
    if precision == 0:
        return theta, np.zeros(theta.shape[0])
    g = expit(logits + (theta[:, None, :] @ columns)[:, 0])
    hessian = (columns * (count * g * (1 - g))[:, None]) @ columns.swapaxes(-1, -2) + diagonal[:, :, None] * eye
    evidence = value + 0.5 * live.sum(axis=-1) * np.log(precision) - 0.5 * _log_det(hessian, live)
    return theta, evidence


def _log_det(hessian: FloatArray, live: AnyArray) -> FloatArray:
    """Logarithm of the determinant over live columns (the others are rows of the identity)."""
    return np.asarray(np.linalg.slogdet(hessian)[1])


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
        identity = (positive * logits - count * np.logaddexp(0, logits)).sum(axis=-1)
        found: list[tuple[FloatArray, FloatArray]] = [(np.zeros(columns.shape[:2]), identity)]
        for sd in PRIOR_SDS:
            found.append(fit(columns, logits, count, positive, sd**-2, found[-1][0]))
        evidence = np.stack([e for _, e in found])
        weight = np.exp(evidence - evidence.max(axis=0))
        weight /= weight.sum(axis=0)
        theta = (weight[..., None] * np.stack([t for t, _ in found])).sum(axis=0)
    else:
        theta, _ = fit(columns, logits, count, positive, float(shrinkage))
    z = logits + (theta[:, None, :] @ columns)[:, 0]
    return expit(z) - expit(logits)
