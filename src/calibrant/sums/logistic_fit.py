"""Logistic regression by Newton's method: many samples side by side, with offsets and normal priors."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from ..data.types import AnyArray, FloatArray
from ..exceptions import ConvergenceWarning

#: Newton's method ends after the step whose decrement (twice the expected gain in log-likelihood) is below this: it
#: converges quadratically, so what is left is about its square.
DECREMENT = 1e-9
_ITERATIONS = 100
_HALVINGS = 40


def logits_of(scores: FloatArray, eps: float) -> FloatArray:
    """``log s/(1-s)`` of scores clipped to [eps, 1 - eps]."""
    clipped = np.clip(scores, eps, 1 - eps)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def expit(z: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-z))`` without overflow."""
    from scipy.special import expit as of_scipy  # here, for modules that need nothing else of SciPy

    return np.asarray(of_scipy(z))


def softplus_and_expit(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``log(1 + e^z)`` (to rounding of 1) and its derivative ``e^z / (1 + e^z)``, without overflow."""
    grown = np.exp(np.minimum(z, 700.0))
    both = grown + 1
    grown /= both
    # log, not the slower log1p: what is lost of a small e^z is below rounding of a sum over samples.
    return np.maximum(np.log(both, out=both), z), grown


class Counts(NamedTuple):
    """What a fit needs of R samples: columns (R, k, m), and weights of all rows and of positive ones (R, m)."""

    columns: FloatArray
    mass: FloatArray
    positive: FloatArray

    def of(self, samples: AnyArray) -> Counts:
        """Some of the samples."""
        return Counts(*(values[samples] for values in self))


class Point(NamedTuple):
    """Coefficients θ (R, k), and what the likelihood is there, without a prior."""

    theta: FloatArray
    logit: FloatArray
    chance: FloatArray
    likelihood: FloatArray
    information: FloatArray

    @classmethod
    def at(cls, theta: FloatArray, offset: FloatArray, counts: Counts) -> Point:
        """All of it, from coefficients and what they are added to, (R, m)."""
        logit = offset + (theta[:, None, :] @ counts.columns)[:, 0] if theta.any() else offset
        growth, chance = softplus_and_expit(logit)
        likelihood = (counts.positive * logit - counts.mass * growth).sum(axis=-1)
        return cls(theta, logit, chance, likelihood, _information(counts, chance))

    def of(self, samples: AnyArray) -> Point:
        """Some of the samples."""
        return Point(*(values[samples] for values in self))

    def put(self, samples: AnyArray, point: Point) -> None:
        """Take some of the samples from elsewhere."""
        for mine, new in zip(self, point, strict=True):
            mine[samples] = new


def _information(counts: Counts, chance: FloatArray) -> FloatArray:
    """``Σ mass g (1 - g) z zᵀ`` of the columns z, (R, k, k)."""
    return (counts.columns * (counts.mass * chance * (1 - chance))[:, None]) @ counts.columns.swapaxes(-1, -2)


def fit(
    columns: FloatArray,
    offset: FloatArray,
    count: FloatArray,
    positive: FloatArray,
    precision: float,
    start: FloatArray | None = None,
) -> FloatArray:
    """Coefficients (R, k) that maximise ``Σ positive·z - count·log(1+e^z) - precision/2 |θ|²``, z = offset + θ·columns.

    A :class:`ConvergenceWarning` says when Newton's method did not end.
    """
    counts = Counts(columns, count, positive)
    theta = np.zeros(columns.shape[:2]) if start is None else start
    return warned(*maximum(counts, precision, Point.at(theta, offset, counts))).theta


def warned(point: Point, decrement: FloatArray) -> Point:
    """The point; a warning where the search for it did not end."""
    going = decrement > DECREMENT
    if going.any():
        warnings.warn(
            f"the logistic fit did not converge in {_ITERATIONS} steps for {int(going.sum())} of {going.size} samples "
            f"(decrement {float(decrement.max()):.3g})",
            ConvergenceWarning,
            stacklevel=4,
        )
    return point


def maximum(counts: Counts, precision: float | FloatArray, start: Point) -> tuple[Point, FloatArray]:
    """The largest penalised likelihood, from any point, and each sample's last decrement; by steps that are halved.

    ``precision``: one divided by the prior variance of all coefficients, or of each one, (k,); 0 is no prior. Where a
    decrement stays above :data:`DECREMENT`, there was no end to the search.
    """
    live = (counts.columns**2).max(axis=-1) > 0
    diagonal = np.where(live, precision, 1.0)
    if np.any(np.asarray(precision) == 0):
        # Without a prior the curvature vanishes where outcomes are separated; steps need some, the maximum does not.
        diagonal = diagonal + 1e-14 * counts.mass.sum(axis=-1)[:, None]
    k = np.arange(live.shape[1])
    out = point = start
    # Samples that have converged are left out; the rest is copied only when there are some.
    active, everything = np.arange(len(live)), True
    left = np.full(len(live), np.inf)
    for _ in range(_ITERATIONS):
        gradient = ((counts.positive - counts.mass * point.chance)[:, None, :] @ counts.columns.swapaxes(-1, -2))[:, 0]
        gradient -= precision * point.theta
        hessian = point.information.copy()
        hessian[:, k, k] += diagonal
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        left[active] = decrement = (step * gradient).sum(axis=-1)
        point = _stepped(counts, precision, point, step)
        if everything:
            out = point
        else:
            out.put(active, point)
        going = decrement > DECREMENT
        if not going.any():
            break
        if not going.all():
            if everything:  # from here on what has converged must stay as it is
                out, everything = Point(*(values.copy() for values in out)), False
            active, counts, point, diagonal = active[going], counts.of(going), point.of(going), diagonal[going]
    return out, left


def _stepped(counts: Counts, precision: float | FloatArray, point: Point, step: FloatArray) -> Point:
    """The point after a step, which is halved while the penalised likelihood falls, and 0 if it always does."""
    value = point.likelihood - 0.5 * (precision * point.theta**2).sum(axis=-1)
    least = value - 1e-12 * (1 + np.abs(value))
    move = (step[:, None, :] @ counts.columns)[:, 0]
    length: FloatArray = np.ones(len(step))
    for tries in range(_HALVINGS + 1):
        theta, logit = point.theta + length[:, None] * step, point.logit + length[:, None] * move
        growth, chance = softplus_and_expit(logit)
        likelihood = (counts.positive * logit - counts.mass * growth).sum(axis=-1)
        good = likelihood - 0.5 * (precision * theta**2).sum(axis=-1) >= least
        if good.all():
            break
        length = np.where(good, length, 0.5 * length if tries < _HALVINGS - 1 else 0.0)
    return Point(theta, logit, chance, likelihood, _information(counts, chance))
