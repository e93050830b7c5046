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
    """``log(1 + e^z)`` (to rounding of 1) and its derivative ``e^z / (1 + e^z)``, without overflow."""
    grown = np.exp(np.minimum(z, 700.0))
    both = grown + 1
    grown /= both
    # log, not the slower log1p: what is lost of a small e^z is below rounding of a sum over samples.
    return np.maximum(np.log(both, out=both), z), grown


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

    def of(self, rows: AnyArray) -> _Held:
        """Some of the samples."""
        return _Held(*(values[rows] for values in self))


class _Point(NamedTuple):
    """Coefficients θ (R, k), and what the likelihood is there, without a prior."""

    theta: FloatArray
    logit: FloatArray
    chance: FloatArray
    likelihood: FloatArray
    information: FloatArray

    @classmethod
    def at(cls, theta: FloatArray, logit: FloatArray, held: _Held) -> _Point:
        """All of it, from coefficients and the logits (R, m) that they make."""
        growth, chance = softplus_and_expit(logit)
        likelihood = (held.positive * logit - held.mass * growth).sum(axis=-1)
        return cls(theta, logit, chance, likelihood, _information(held, chance))

    def of(self, rows: AnyArray) -> _Point:
        """Some of the samples."""
        return _Point(*(values[rows] for values in self))

    def put(self, rows: AnyArray, point: _Point) -> None:
        """Take some of the samples from elsewhere."""
        for mine, new in zip(self, point, strict=True):
            mine[rows] = new


def _information(held: _Held, chance: FloatArray) -> FloatArray:
    """``Σ mass g (1 - g) z zᵀ`` of the columns z, (R, k, k)."""
    return (held.columns * (held.mass * chance * (1 - chance))[:, None]) @ held.columns.swapaxes(-1, -2)


def fit(
    columns: FloatArray,
    logits: FloatArray,
    count: FloatArray,
    positive: FloatArray,
    precision: float,
    start: FloatArray | None = None,
) -> FloatArray:
    """Coefficients (R, k) that maximise ``Σ positive·z - count·log(1+e^z) - precision/2 |θ|²``.

    Newton's method with step halving; a :class:`ConvergenceWarning` says when it did not end.
    """
    held = _Held(columns, count, positive)
    if start is None:
        return _newton(held, precision, _Point.at(np.zeros(columns.shape[:2]), logits, held)).theta
    return _newton(held, precision, _Point.at(start, logits + (start[:, None, :] @ columns)[:, 0], held)).theta


def _newton(held: _Held, precision: float, start: _Point) -> _Point:
    """The maximum, from any point."""
    live = (held.columns**2).max(axis=-1) > 0
    diagonal = np.where(live, precision, 1.0)
    if precision == 0:
        # Without a prior the curvature vanishes where outcomes are separated; steps need some, the maximum does not.
        diagonal = diagonal + 1e-14 * held.mass.sum(axis=-1)[:, None]
    k = np.arange(live.shape[1])
    out = point = start
    # Samples that have converged are left out; the rest is copied only when there are some.
    active, everything = np.arange(len(live)), True
    for _ in range(_ITERATIONS):
        gradient = ((held.positive - held.mass * point.chance)[:, None, :] @ held.columns.swapaxes(-1, -2))[:, 0]
        gradient -= precision * point.theta
        hessian = point.information.copy()
        hessian[:, k, k] += diagonal
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        decrement = (step * gradient).sum(axis=-1)
        point = _stepped(held, precision, point, step)
        if everything:
            out = point
        else:
            out.put(active, point)
        going = decrement > _DECREMENT
        if not going.any():
            return out
        if not going.all():
            if everything:  # from here on what has converged must stay as it is
                out, everything = _Point(*(values.copy() for values in out)), False
            active, held, point, diagonal = active[going], held.of(going), point.of(going), diagonal[going]
    warnings.warn(
        f"the logit map's fit did not converge in {_ITERATIONS} steps for {active.size} of {len(live)} samples "
        f"(decrement {float(decrement.max()):.3g})",
        ConvergenceWarning,
        stacklevel=4,
    )
    return out


def _stepped(held: _Held, precision: float, point: _Point, step: FloatArray) -> _Point:
    """The point after a step, which is halved while the penalised likelihood falls, and 0 if it always does."""
    value = point.likelihood - 0.5 * precision * (point.theta**2).sum(axis=-1)
    least = value - 1e-12 * (1 + np.abs(value))
    move = (step[:, None, :] @ held.columns)[:, 0]
    length: FloatArray = np.ones(len(step))
    for tries in range(_HALVINGS + 1):
        theta, logit = point.theta + length[:, None] * step, point.logit + length[:, None] * move
        growth, chance = softplus_and_expit(logit)
        likelihood = (held.positive * logit - held.mass * growth).sum(axis=-1)
        good = likelihood - 0.5 * precision * (theta**2).sum(axis=-1) >= least
        if good.all():
            break
        length = np.where(good, length, 0.5 * length if tries < _HALVINGS - 1 else 0.0)
    return _Point(theta, logit, chance, likelihood, _information(held, chance))


def _evidence(held: _Held, precision: float, mode: _Point) -> FloatArray:
    """Laplace's logarithm of the probability of the data under ``θ ~ N(0, 1/precision)``, (R,)."""
    live = (held.columns**2).max(axis=-1) > 0
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
        held = _Held(columns, count, positive)
        point = _Point.at(np.zeros(columns.shape[:2]), logits, held)
        thetas, evidences = [point.theta], [point.likelihood]
        for sd in PRIOR_SDS:
            point = _newton(held, sd**-2, point)
            thetas.append(point.theta)
            evidences.append(_evidence(held, sd**-2, point))
        evidence = np.stack(evidences)
        weight = np.exp(evidence - evidence.max(axis=0))
        weight /= weight.sum(axis=0)
        theta = (weight[..., None] * np.stack(thetas)).sum(axis=0)
    else:
        theta = fit(columns, logits, count, positive, float(shrinkage))
    z = logits + (theta[:, None, :] @ columns)[:, 0]
    return expit(z) - expit(logits)
