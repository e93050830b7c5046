"""Newton's method for convex fits, with convergence diagnostics: no fit stops silently before the optimum."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from ..data.printing import number_of
from ..data.types import FloatArray, IntArray
from ..exceptions import ConvergenceWarning

#: The iteration ends after a step whose decrement (twice the predicted gain) is below this share of the objective.
_DECREMENT = 1e-13
#: A predicted gain below this share that no step achieves is rounding noise.
_NOISE = 1e-9
_ITERATIONS, _HALVINGS, _PRODUCTS = 200, 50, 400
#: Pivot of a scaled Hessian above which no direction is flat; shares of the largest curvature below which a direction
#: or a column is flat up to rounding (a common shift of all logits; slopes if all scores are equal); slope of a flat
#: direction that exceeds rounding, in units of the curvature's root; least curvature there.
_SURE, _FLAT, _NOTHING, _SLOPING, _LEAST = 1e-4, 1e-11, 1e-20, 1e-6, 1e-15

#: A mean log-loss that only separated classes reach: it decreases without end as parameters grow.
_SEPARATED = 1e-7

#: The Hessian, or a function from a gradient to Newton's step (without bounds).
Curvature = FloatArray | Callable[[FloatArray], FloatArray]
#: The objective and its gradient, and its curvature if requested.
Objective = Callable[[FloatArray, bool], tuple[float, FloatArray, Curvature | None]]
WithHessian = Callable[[FloatArray, bool], tuple[float, FloatArray, FloatArray | None]]


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a fit.

    Attributes
    ----------
    x : ndarray
    value : float
        Objective: a mean over rows, plus penalties.
    gradient_norm : float
        Largest component of the gradient of the objective.
    n_iter : int
    converged : bool
    """

    x: FloatArray
    value: float
    gradient_norm: float
    n_iter: int
    converged: bool

    def warn(self, what: str) -> Solution:
        """Warn if the optimum was not reached or lies at infinity."""
        if not self.converged or self.value < _SEPARATED:
            warnings.warn(
                f"{what} did not converge in {number_of(self.n_iter, 'step')} (objective {self.value:.2g}, "
                f"gradient {self.gradient_norm:.2g}). If classes are separated by their scores, the optimum lies at "
                "infinity: add a penalty or rows, smooth labels or fit fewer parameters, as TemperatureScaling does",
                ConvergenceWarning,
                stacklevel=6,
            )
        return self


def minimise(objective: Objective, start: FloatArray, lower: FloatArray | None = None) -> Solution:
    """Minimise a convex function by Newton's method with step halving; cost ``iterations · (Hessian + p³)``.

    Lower bounds are handled by projected steps; the reported gradient is that of the free parameters.

    References
    ----------
    Bertsekas (1982), *Projected Newton methods for optimization problems with simple constraints*.
    """
    lower = np.full(len(start), -np.inf) if lower is None else lower
    x = np.maximum(np.asarray(start, dtype=np.float64), lower)
    value, gradient, curvature = objective(x, True)
    done, taken = False, 0
    while taken < _ITERATIONS:
        taken += 1
        near = min(1e-6, float(np.abs(x - np.maximum(x - gradient, lower)).max()))
        held = (x <= lower + near) & (gradient > 0)
        direction = _direction(curvature, gradient, np.flatnonzero(~held))
        direction[held] = (lower - x)[held]
        decrement = -float(direction[~held] @ gradient[~held])
        small = decrement <= _DECREMENT * (1e-3 + abs(value))
        length, moved = 1.0, False
        for _ in range(_HALVINGS):
            trial = np.maximum(x + length * direction, lower)
            # Whole steps nearly always do: their Hessian comes in one pass with them, unless it is the last step.
            new, new_gradient, ahead = objective(trial, length == 1.0 and not small)
            promised = length * decrement + float(gradient[held] @ (x - trial)[held])
            if new <= value - 1e-4 * promised + 1e-15 * abs(value):
                moved = True
                break
            length /= 2
        noise = decrement <= _NOISE * (1e-3 + abs(value))
        if not moved:
            # No better number exists in floating point: the optimum, if the promised gain is rounding noise.
            done = noise
            break
        done = (new >= value and noise) or (small and length == 1.0)
        x, value, gradient = trial, new, new_gradient
        if done:
            break
        curvature = objective(x, True)[2] if ahead is None else ahead
    violation = np.where(x <= lower, np.maximum(-gradient, 0.0), np.abs(gradient))
    return Solution(x, value, float(violation.max(initial=0.0)), taken, done)


def _direction(curvature: Curvature | None, gradient: FloatArray, free: IntArray) -> FloatArray:
    """Newton's step of the free components, 0 for others.

    Along flat directions without effect, a step would be the ratio of two rounding errors. The step has no component in
    them, so that the optimum nearest to the start is found, for any order of the rows. Along a flat direction with a
    slope, as for the weights of a mixture whose columns are multiples of each other, the step is long and ends at a
    bound.
    """
    from scipy.linalg.lapack import dpotrf, dpotrs

    if curvature is None:
        raise RuntimeError("the curvature is missing")
    if not isinstance(curvature, np.ndarray):
        return curvature(gradient)
    out, slope = np.zeros(len(gradient)), gradient[free]
    if not free.size:
        return out
    hessian = curvature[np.ix_(free, free)]
    diagonal = np.diag(hessian)
    # A column of rounding errors is flat, however it varies.
    scale = np.sqrt(np.maximum(diagonal, max(_NOTHING * float(diagonal.max()), 1e-100)))
    scaled = hessian / np.outer(scale, scale)
    factor, failed = dpotrf(scaled, lower=True)
    if not failed and np.diag(factor).min() > _SURE:
        out[free] = -dpotrs(factor, slope / scale, lower=True)[0] / scale
        return out
    values, vectors = np.linalg.eigh(scaled)
    curved = values > max(_FLAT * float(values[-1]), 1e-100)  # below, a step would be more than floats hold
    if not curved.any():
        out[free] = -slope
        return out
    slopes = (slope / scale) @ vectors
    curved |= np.abs(slopes) > _SLOPING
    step = vectors[:, curved] @ (slopes[curved] / np.maximum(values[curved], _LEAST * values[-1])) / scale
    flat = np.linalg.qr(vectors[:, ~curved] / scale[:, None])[0]
    out[free] = flat @ (flat.T @ step) - step
    return out


class Curved(Protocol):
    """A convex function of many parameters, used only through products with its Hessian."""

    def __call__(self, x: FloatArray, curved: bool, /) -> tuple[float, FloatArray, FloatArray | None]:
        """Value and gradient."""
        ...

    def product(self, x: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]:
        """Product with the Hessian at x, and with an approximate inverse of it."""
        ...


def minimise_large(objective: Curved, start: FloatArray) -> Solution:
    """Minimise by Newton's method with conjugate gradients, using about a hundred products with the Hessian."""
    first = max(float(np.linalg.norm(objective(np.asarray(start, dtype=np.float64), False)[1])), 1e-300)
    steepest = 0.0

    def step(x: FloatArray, gradient: FloatArray) -> FloatArray:
        nonlocal steepest
        accuracy = min(0.1, float(np.linalg.norm(gradient)) / first)  # small in directions of little curvature, too
        d, steepest = _conjugate_gradients(*objective.product(x), gradient, max(accuracy, 1e-8), steepest)
        return d

    def by_products(x: FloatArray, curved: bool) -> tuple[float, FloatArray, Curvature | None]:
        value, gradient, _ = objective(x, False)
        return value, gradient, partial(step, x) if curved else None

    return minimise(by_products, start)


def _conjugate_gradients(
    times: Callable[[FloatArray], FloatArray],
    near_inverse: Callable[[FloatArray], FloatArray],
    gradient: FloatArray,
    accuracy: float,
    steepest: float,
) -> tuple[FloatArray, float]:
    """Solve ``H d = -gradient`` with an approximate inverse of H; return d and the largest curvature encountered."""
    d, rest = np.zeros_like(gradient), -gradient
    z = near_inverse(rest)
    p, product = z, float(rest @ z)
    goal = accuracy**2 * product
    for _ in range(_PRODUCTS):
        hp = times(p)
        curve, size = float(p @ hp), float(p @ p)
        steepest = max(steepest, curve / max(size, 1e-300))
        if curve <= 1e-13 * steepest * size:
            break  # flat: rounding has eaten what curvature there is
        step = product / curve
        d = d + step * p
        rest = rest - step * hp
        z = near_inverse(rest)
        before, product = product, float(rest @ z)
        if product <= goal:
            break
        p = z + product / before * p
    return d if d.any() else near_inverse(-gradient), steepest


def sigmoid_objective(
    columns: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    *,
    offset: FloatArray | float = 0.0,
    penalty: FloatArray | None = None,
) -> WithHessian:
    """Mean weighted log-loss of ``σ(columns @ θ + offset)`` for targets in [0, 1], plus half a quadratic form of θ.

    ``penalty`` is the form's matrix.
    """
    share = weights / weights.sum()

    def objective(theta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        z = columns @ theta + offset
        # log(1 + eᶻ) and σ(z) from one exponential, without overflow.
        e = np.exp(-np.abs(z))
        value = float(share @ (np.maximum(z, 0) + np.log1p(e) - targets * z))
        p = np.where(z >= 0, 1.0, e) / (1 + e)
        gradient = columns.T @ (share * (p - targets))
        hessian = (columns * (share * p * (1 - p))[:, None]).T @ columns if curved else None
        if penalty is not None:
            pull = penalty @ theta
            value, gradient = value + 0.5 * float(pull @ theta), gradient + pull
            hessian = None if hessian is None else hessian + penalty
        return value, np.asarray(gradient), hessian

    return objective


#: Numbers of rows above which a part of them gives Newton's start, for cheap and for costly passes; rows of that part.
MANY, MANY_DEAR, _PART = 20_000, 10_000, 4_000


def part_of(n: int, many: int = MANY) -> slice | None:
    """Evenly spread rows that give a starting value, to save passes over all rows; None if rows are few."""
    return slice(None, None, n // _PART) if n > many else None


def minimise_over_rows(
    objective: Callable[[slice], Objective],
    n: int,
    start: FloatArray,
    lower: FloatArray | None = None,
    many: int = MANY,
) -> Solution:
    """Minimise a mean over n rows, ``objective(rows)``; if there are many, a part of them gives the start."""
    part = part_of(n, many)
    if part is not None:
        start = minimise(objective(part), start, lower).x
    return minimise(objective(slice(None)), start, lower)
