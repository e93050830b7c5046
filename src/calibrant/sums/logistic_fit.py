"""Logistic regression by Newton's method: many samples side by side, with offsets and normal priors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self

import numpy as np

from ..data.types import AnyArray, FloatArray
from ..exceptions import ConvergenceWarning

#: Newton's method stops after the step whose decrement (twice the expected gain in log-likelihood) is below this: it
#: converges quadratically, so the remaining decrement is about its square.
DECREMENT = 1e-9
#: With bounded steps it stops after one that changes no logit by more than this.
_SMALLEST_STEP = 1e-3
_ITERATIONS = 100
#: The largest float below 1.
BELOW_ONE = float(np.nextafter(1, 0))
_HALVINGS = 40


def logits_of(scores: FloatArray, eps: float) -> FloatArray:
    """``log s/(1-s)`` of scores clipped to [eps, 1 - eps]."""
    clipped = np.clip(scores, eps, min(1 - eps, BELOW_ONE))
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


@dataclass(frozen=True, eq=False)
class Counts:
    """Input of a fit to R samples: columns (R, k, m), and weights of all rows and of the positives (R, m)."""

    columns: FloatArray
    mass: FloatArray
    positive: FloatArray

    def of(self, samples: AnyArray) -> Self:
        """Some of the samples."""
        return replace(self, **{f.name: getattr(self, f.name)[samples] for f in fields(self)})

    def logits(self, theta: FloatArray) -> FloatArray:
        """Sums ``θ · columns``, (R, m)."""
        return np.asarray((theta[:, None, :] @ self.columns)[:, 0])

    def likelihood(self, logit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log-likelihood (R,) of logits (R, m), and the corresponding probabilities."""
        growth, chance = softplus_and_expit(logit)
        return (self.positive * logit - self.mass * growth).sum(axis=-1), chance

    def information(self, chance: FloatArray) -> FloatArray:
        """``Σ mass g (1 - g) z zᵀ`` of the columns z, (R, k, k)."""
        weight = self.mass * chance * (1 - chance)
        return np.asarray((self.columns * weight[:, None]) @ self.columns.swapaxes(-1, -2))


class Point(NamedTuple):
    """Coefficients θ (R, k), with logits, probabilities, likelihood and information there, without a prior."""

    theta: FloatArray
    logit: FloatArray
    chance: FloatArray
    likelihood: FloatArray
    information: FloatArray

    @classmethod
    def at(cls, theta: FloatArray, offset: FloatArray, counts: Counts) -> Point:
        """Compute all fields from coefficients and offsets, (R, m)."""
        logit = offset + counts.logits(theta) if theta.any() else offset
        likelihood, chance = counts.likelihood(logit)
        return cls(theta, logit, chance, likelihood, counts.information(chance))

    def of(self, samples: AnyArray) -> Point:
        """Some of the samples."""
        return Point(*(values[samples] for values in self))

    def put(self, samples: AnyArray, point: Point) -> None:
        """Replace some of the samples by those of another point."""
        for mine, new in zip(self, point, strict=True):
            mine[samples] = new


def fit(
    columns: FloatArray,
    offset: FloatArray,
    count: FloatArray,
    positive: FloatArray,
    precision: float,
    start: FloatArray | None = None,
) -> FloatArray:
    """Coefficients (R, k) that maximise ``Σ positive·z - count·log(1+e^z) - precision/2 |θ|²``, z = offset + θ·columns.

    A :class:`ConvergenceWarning` is issued if Newton's method did not converge.
    """
    counts = Counts(columns, count, positive)
    theta = np.zeros(columns.shape[:2]) if start is None else start
    return warned(*maximum(counts, precision, Point.at(theta, offset, counts))).theta


def warned(point: Point, left: FloatArray, end: float = DECREMENT) -> Point:
    """Return the point, with a warning if the search for it did not converge."""
    going = left > end
    if going.any():
        warnings.warn(
            f"the logistic fit did not converge in {_ITERATIONS} steps for {int(going.sum())} of {going.size} samples "
            f"({'decrement' if end == DECREMENT else 'last change of a logit'} {float(left.max()):.3g})",
            ConvergenceWarning,
            stacklevel=4,
        )
    return point


def maximum(counts: Counts, precision: float | FloatArray, start: Point) -> tuple[Point, FloatArray]:
    """Maximum of the penalised likelihood, from any start, and the last decrement of each sample.

    ``precision``: reciprocal prior variance of all coefficients, or of each one, (k,) or (R, k); 0 means no prior.
    If a decrement stays above :data:`DECREMENT`, the search did not converge.
    """
    point, left = _newton(counts, precision, start, np.inf)
    return point._replace(information=counts.information(point.chance)), left


def bounded_maximum(counts: Counts, precision: float | FloatArray, start: Point, longest: float) -> Point:
    """The same with steps that change no logit by more than ``longest``, up to a last step of 1/1000.

    The information is that of the point before the last step, which saves its last computation; so is that of
    ``start``.
    """
    point, left = _newton(counts, precision, start, longest)
    return warned(point, left, _SMALLEST_STEP)


def _newton(counts: Counts, precision: float | FloatArray, start: Point, longest: float) -> tuple[Point, FloatArray]:
    """Newton's method; steps are halved while they lower the objective, which is concave: it converges globally.

    The information returned is that of the point before the last step. Also returned are the last decrement of each
    sample, or for bounded steps the largest change of a logit.
    """
    costs: FloatArray = np.broadcast_to(np.asarray(precision, dtype=np.float64), start.theta.shape)
    diagonal = costs
    if not costs.all():
        # Without a prior the curvature vanishes where outcomes are separated; steps need some, the maximum does not.
        live = (counts.columns**2).max(axis=-1) > 0
        diagonal = np.where(live, costs, 1.0) + 1e-14 * counts.mass.sum(axis=-1)[:, None]
    k = np.arange(costs.shape[-1])
    end = DECREMENT if np.isinf(longest) else _SMALLEST_STEP
    active, going = np.arange(len(costs)), np.ones(len(costs), dtype=bool)
    left, point, out = np.full(len(costs), np.inf), start, None
    for iteration in range(_ITERATIONS):
        if iteration:
            point = point._replace(information=counts.information(point.chance))
        residual = counts.positive - counts.mass * point.chance
        gradient = (residual[:, None, :] @ counts.columns.swapaxes(-1, -2))[:, 0] - costs * point.theta
        hessian = point.information.copy()
        hessian[:, k, k] += diagonal
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        move = counts.logits(step)
        if np.isinf(longest):
            last, length = (step * gradient).sum(axis=-1), np.ones(len(step))
        else:
            last = np.abs(np.where(counts.mass > 0, move, 0.0)).max(axis=-1)
            length = np.minimum(1.0, longest / np.maximum(last, end))
        point = _stepped(counts, costs, point, step, move, length)
        left[active[going]] = last[going]
        # The next step of a sample that has converged would be of the order of this one's square. What it has come to
        # is kept at once, so that no sample depends on the others; it is left out when many are, for that copies.
        ended = going & (last <= end)
        if not ended.any():
            continue
        if ended.all() and len(ended) == len(left):
            return point, left
        if out is None:
            out = Point(*(values.copy() for values in point))
        else:
            out.put(active[ended], point.of(ended))
        going = going & ~ended
        if not going.any():
            return out, left
        if 4 * going.sum() < 3 * going.size:
            active, counts, point = active[going], counts.of(going), point.of(going)
            costs, diagonal, going = costs[going], diagonal[going], going[going]
    if out is None:
        return point, left
    out.put(active[going], point.of(going))
    return out, left


def _stepped(
    counts: Counts, precision: FloatArray, point: Point, step: FloatArray, move: FloatArray, length: FloatArray
) -> Point:
    """The point after a step, which is halved while the penalised likelihood decreases, and 0 if it always does."""
    value = point.likelihood - 0.5 * (precision * point.theta**2).sum(axis=-1)
    least = value - 1e-12 * (1 + np.abs(value))
    for tries in range(_HALVINGS + 1):
        theta, logit = point.theta + length[:, None] * step, point.logit + length[:, None] * move
        likelihood, chance = counts.likelihood(logit)
        good = likelihood - 0.5 * (precision * theta**2).sum(axis=-1) >= least
        if good.all():
            break
        length = np.where(good, length, 0.5 * length if tries < _HALVINGS - 1 else 0.0)
    return Point(theta, logit, chance, likelihood, point.information)
