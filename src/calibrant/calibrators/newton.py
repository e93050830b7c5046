"""Newton's method for convex fits, with what it reached: nothing stops silently before the optimum."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._types import ConvergenceWarning, FloatArray

#: Ends after the step whose decrement (twice what it promises to gain) is below this share of the objective.
_DECREMENT = 1e-13
_ITERATIONS, _HALVINGS = 200, 50
#: Curvature added so that flat directions (a common shift of all logits) have a step of 0.
_DAMPING = 1e-12

#: The objective and its gradient, and its Hessian where asked for.
Objective = Callable[[FloatArray, bool], tuple[float, FloatArray, FloatArray | None]]


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a fit ended.

    Attributes
    ----------
    x : ndarray
    value : float
        Objective, a mean over rows and penalties.
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
        """Warn when the optimum was not reached."""
        if not self.converged:
            warnings.warn(
                f"{what} did not converge: after {self.n_iter} steps the gradient is {self.gradient_norm:.2g}. If "
                "classes are separated by their scores the optimum lies at infinity: add a penalty, or use a "
                "calibrator with fewer parameters, such as TemperatureScaling",
                ConvergenceWarning,
                stacklevel=5,
            )
        return self


def minimise(objective: Objective, start: FloatArray) -> Solution:
    """Minimise a convex function by Newton's method with step halving; cost ``iterations · (Hessian + p³)``."""
    x = np.asarray(start, dtype=np.float64)
    value, gradient, hessian = objective(x, True)
    done, step_number = False, 0
    for step_number in range(1, _ITERATIONS + 1):
        if hessian is None:
            raise RuntimeError("the Hessian was asked for")
        direction = _direction(hessian, gradient)
        decrement = -float(direction @ gradient)
        tolerance = _DECREMENT * (1e-3 + abs(value))
        length, moved = 1.0, False
        for _ in range(_HALVINGS):
            trial = x + length * direction
            new, new_gradient, _ = objective(trial, False)
            if new <= value - 1e-4 * length * decrement + 1e-15 * abs(value):
                moved = True
                break
            length /= 2
        if not moved:
            # No better number exists in floating point: the optimum, if the promised gain is rounding noise.
            done = decrement <= 1e-9 * (1e-3 + abs(value))
            break
        x, value, gradient = trial, new, new_gradient
        if decrement <= tolerance:
            done = True
            break
        value, gradient, hessian = objective(x, True)
    return Solution(x, value, float(np.abs(gradient).max(initial=0.0)), step_number, done)


def _direction(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """Newton's step; flat directions are damped, more if the matrix does not factor."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    size = float(np.diag(hessian).max(initial=0.0))
    damping = _DAMPING * max(size, 1e-300)
    for _ in range(12):
        try:
            factor = cho_factor(hessian + damping * np.eye(len(gradient)), lower=True)
            return np.asarray(-cho_solve(factor, gradient))
        except LinAlgError:
            damping *= 100
    return -gradient


def minimise_large(objective: Objective, start: FloatArray) -> Solution:
    """Minimise a convex function of many parameters by L-BFGS, down to the rounding noise of its gradient."""
    from scipy.optimize import minimize

    first = float(np.abs(objective(np.asarray(start), False)[1]).max(initial=0.0))

    def pair(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient, _ = objective(x, False)
        return value, gradient

    target = 1e-7 * max(first, 1e-3)
    options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 0.0, "gtol": target}
    found = minimize(pair, start, jac=True, method="L-BFGS-B", options=options)
    value, gradient, _ = objective(found.x, False)
    norm = float(np.abs(gradient).max(initial=0.0))
    return Solution(np.asarray(found.x), value, norm, int(found.nit), norm <= 10 * target)


def sigmoid_objective(
    columns: FloatArray, targets: FloatArray, weights: FloatArray, offset: FloatArray | float = 0.0
) -> Objective:
    """Mean weighted log-loss of ``σ(columns @ θ + offset)`` against targets in [0, 1]."""
    total = float(weights.sum())

    def objective(theta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        z = columns @ theta + offset
        value = float(weights @ (np.logaddexp(0, z) - targets * z)) / total
        p = 0.5 + 0.5 * np.tanh(0.5 * z)
        gradient = columns.T @ (weights * (p - targets)) / total
        hessian = (columns * (weights * p * (1 - p))[:, None]).T @ columns / total if curved else None
        return value, np.asarray(gradient), hessian

    return objective
