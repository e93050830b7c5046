r"""Deviations of subgroups from a common map: a multinomial logistic model with random effects, by empirical Bayes.

Subgroup g has logits :math:`z + a_g (z - c) + C \gamma_g`, z the common logarithms of probabilities, c their mean and C
the K - 1 orthonormal contrasts of classes. Effects :math:`\theta_g = (a_g, \gamma_g)` are normal around their
mean, with one standard deviation for slopes and one for contrasts (the names of classes do not matter), and the mean is
normal around 0 with the same ones: where subgroups do not differ, nothing is left to add to the common map.

References
----------
Breslow & Clayton (1993), *Approximate inference in generalized linear mixed models*; Morris (1983), *Parametric
empirical Bayes inference*; Harville (1977) on restricted likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import helmert

from ..data.types import AnyArray, FloatArray, IntArray
from .newton import Curvature, Solution, minimise

#: Standard deviations that are tried: of slopes relative to the common one, and of contrasts of logits.
_SLOPES = np.concatenate([[0.0], np.geomspace(0.02, 1.0, 12)])
_SHIFTS = np.concatenate([[0.0], np.geomspace(0.02, 3.0, 14)])
_ROUNDS = 12
_ROUNDING = 1e-13
#: Changes of standard deviations that are none.
_SAME = 1e-3
#: Prior probability of no spread at all, of either.
_NONE = 0.25


@dataclass(frozen=True, eq=False)
class SubgroupRows:
    """Rows sorted by subgroup.

    Attributes
    ----------
    z : ndarray of shape (n, K)
        Common logits.
    u : ndarray of shape (n, K)
        The same, about their mean: what slopes multiply.
    targets : ndarray of shape (n, K)
    weights : ndarray of shape (n,)
    start : ndarray of shape (G,)
        First row of each subgroup.
    """

    z: FloatArray
    u: FloatArray
    targets: FloatArray
    weights: FloatArray
    start: IntArray

    @classmethod
    def of(
        cls, z: FloatArray, targets: FloatArray, weights: FloatArray, subgroups: AnyArray
    ) -> tuple[SubgroupRows, FloatArray]:
        """Rows in any order, with the subgroup of each: each of 0 … G - 1 has some. Beside them the mean c, (K,)."""
        order = np.argsort(subgroups, kind="stable")
        start = np.flatnonzero(np.diff(subgroups[order], prepend=-1))
        centre = np.asarray(weights @ z / weights.sum())
        return cls(z[order], z[order] - centre, targets[order], weights[order], start), centre

    def likelihood(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood of effects (G, K), its gradient, and its negative Hessian (G, K, K)."""
        n_rows = np.diff(self.start, append=len(self.z))
        spread = contrasts(self.z.shape[1])
        logits = self.z + self.u * np.repeat(theta[:, :1], n_rows, axis=0)
        logits += np.repeat(theta[:, 1:] @ spread, n_rows, axis=0)
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        total = chance.sum(axis=1, keepdims=True)
        chance /= total
        value = float(self.weights @ ((self.targets * logits).sum(axis=1) - np.log(total[:, 0])))
        off = self.weights[:, None] * (self.targets - chance)
        slope = np.add.reduceat((off * self.u).sum(axis=1), self.start)
        gradient = np.column_stack([slope, np.add.reduceat(off, self.start) @ spread.T])
        mass = self.weights[:, None] * chance
        middle = (chance * self.u).sum(axis=1)
        k = self.z.shape[1]
        whole = np.empty((len(self.start), k, k))
        for c in range(k):  # covariances of one class with all
            whole[:, c] = -np.add.reduceat(mass[:, [c]] * chance, self.start)
        whole[:, np.arange(k), np.arange(k)] += np.add.reduceat(mass, self.start)
        curvature = np.empty_like(whole)
        curvature[:, 1:, 1:] = spread @ whole @ spread.T
        crossed = np.add.reduceat(mass * (self.u - middle[:, None]), self.start) @ spread.T
        curvature[:, 0, 1:] = curvature[:, 1:, 0] = crossed
        curvature[:, 0, 0] = np.add.reduceat((mass * (self.u - middle[:, None]) ** 2).sum(axis=1), self.start)
        return value, gradient, curvature


def contrasts(k: int) -> FloatArray:
    """Orthonormal contrasts of K classes, (K - 1, K)."""
    return np.asarray(helmert(k))


@dataclass(frozen=True, eq=False)
class Effects:
    """What subgroups deviate by.

    Attributes
    ----------
    mean : ndarray of shape (K,)
        Slope and contrasts.
    each : ndarray of shape (G, K)
    slope_sd, shift_sd : float
    solution : Solution
        Where the fit of the modes ended: of minus the penalised log-likelihood, divided by the total weight. Its steps
        are all passes over the rows.
    """

    mean: FloatArray
    each: FloatArray
    slope_sd: float
    shift_sd: float
    solution: Solution


def fit_effects(rows: SubgroupRows) -> Effects:
    """Posterior modes of effects under the standard deviations of the largest approximate restricted likelihood.

    The likelihood of each subgroup is taken as normal about its present mode, standard deviations are chosen on a grid,
    modes are found anew, and so on until the choice stays. Cost some thirty passes of O(n K²), and grids of O(G K³).
    """
    k, n_subgroups = rows.z.shape[1], len(rows.start)
    x: FloatArray = np.zeros((1 + n_subgroups) * k)
    sds, taken = np.array([0.1, 0.3]), 0
    for _ in range(_ROUNDS):
        t = _spread_of(sds, k)
        found = _modes(rows, x, t)
        taken += found.n_iter
        theta = t * (found.x[:k] + found.x[k:].reshape(-1, k))
        _, gradient, curvature = rows.likelihood(theta)
        chosen = _chosen(curvature, np.einsum("gij,gj->gi", curvature, theta) + gradient)
        x = found.x
        if np.abs(chosen - sds).max() <= _SAME:
            break
        new = _spread_of(chosen, k)
        x = x * np.tile(np.divide(t, new, out=np.zeros(k), where=new > 0), 1 + n_subgroups)
        sds = chosen
    t = _spread_of(sds, k)
    found = _modes(rows, x, t)
    m, v = found.x[:k], found.x[k:].reshape(-1, k)
    found = replace(found, n_iter=taken + found.n_iter)
    return Effects(t * m, t * (m + v), float(sds[0]), float(sds[1]), found)


def _chosen(curvature: FloatArray, pull: FloatArray) -> FloatArray:
    """Roots of the posterior means of both variances, given normal likelihoods."""
    k = curvature.shape[1]
    pairs = np.array([(a, b) for a in _SLOPES for b in _SHIFTS])
    log_weight = np.array([_evidence(curvature, pull, _spread_of(pair, k)) for pair in pairs])
    for column, tried in ((0, _SLOPES), (1, _SHIFTS)):
        log_weight += np.log(np.where(pairs[:, column] > 0, (1 - _NONE) / (len(tried) - 1), _NONE))
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(np.sqrt(weight @ pairs**2 / weight.sum()))


def _spread_of(sds: FloatArray, k: int) -> FloatArray:
    return np.concatenate([[sds[0]], np.full(k - 1, sds[1])])


def _marginal(curvature: FloatArray, pull: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of normal likelihoods with the effects integrated out: precisions W (G, K, K), ``W · estimate``, log|I + tHt|."""
    inner = curvature * t**2
    # Beside enormous weights the identity would be lost, and with it what makes the matrix regular.
    inner += np.eye(len(t)) * (1 + _ROUNDING * np.abs(inner).max(axis=(1, 2), keepdims=True))
    both = np.linalg.solve(inner, np.concatenate([curvature, pull[..., None]], axis=2))
    return both[..., :-1], both[..., -1], np.linalg.slogdet(inner)[1]


def _centre(precision: FloatArray, weighted: FloatArray, t: FloatArray) -> tuple[FloatArray, float]:
    """The mean effect in standard units, and the log-determinant of its posterior precision."""
    total = np.eye(len(t)) + t[:, None] * precision.sum(axis=0) * t
    return np.asarray(np.linalg.solve(total, t * weighted.sum(axis=0))), float(np.linalg.slogdet(total)[1])


def _evidence(curvature: FloatArray, pull: FloatArray, t: FloatArray) -> float:
    """Log-probability, up to a number, with all effects integrated out of normal likelihoods with these curvatures."""
    precision, weighted, logdets = _marginal(curvature, pull, t)
    m, logdet = _centre(precision, weighted, t)
    mean = t * m
    off = pull - curvature @ mean
    # t² (I + H t²)⁻¹ is symmetric: the gain by moving each subgroup from the mean to its mode.
    gain = float(np.einsum("gi,gi->", off, t**2 * (weighted - precision @ mean)))
    level = float(mean @ pull.sum(axis=0) - 0.5 * mean @ curvature.sum(axis=0) @ mean)
    return level + 0.5 * (gain - float(m @ m) - float(logdets.sum()) - logdet)


def _modes(rows: SubgroupRows, start: FloatArray, t: FloatArray) -> Solution:
    """Standard effects m and v, one after the other, of the largest penalised likelihood, effects being ``t (m + v)``.

    The objective is minus the penalised log-likelihood, divided by the total weight.
    """
    k, total = len(t), float(rows.weights.sum())

    def objective(x: FloatArray, curved: bool) -> tuple[float, FloatArray, Curvature]:
        m, v = x[:k], x[k:].reshape(-1, k)
        theta = t * (m + v)
        value, gradient, curvature = rows.likelihood(theta)
        slope = np.concatenate([m - t * gradient.sum(axis=0), (v - t * gradient).ravel()])

        def step(_gradient: FloatArray) -> FloatArray:
            pull = np.einsum("gij,gj->gi", curvature, theta) + gradient
            precision, weighted, _logdets = _marginal(curvature, pull, t)
            new_m, _logdet = _centre(precision, weighted, t)
            return np.concatenate([new_m, (t * (weighted - precision @ (t * new_m))).ravel()]) - x

        return (0.5 * float(x @ x) - value) / total, slope / total, step

    return minimise(objective, start)
