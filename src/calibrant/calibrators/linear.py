"""Calibrators that are linear in logits: vector, matrix and Dirichlet scaling, free or shrunk to a temperature."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray
from .base import EPS, Calibrator, check_eps, choice, not_below
from .newton import Objective, Solution, minimise, minimise_large
from .reading import Sample, Scores
from .temperature import fit_temperature, softmax

#: Parameters up to which Newton's method is used: beyond, the Hessian is larger than the data.
_NEWTON = 700
PENALTIES = ("odir", "l2")


class VectorScaling(Calibrator):
    r"""Vector scaling: :math:`\operatorname{softmax}(v \odot z + b)`, a slope and an intercept for each class.

    Parameters
    ----------
    shrinkage : float, default 0
        λ ≥ 0: adds ``λ (Σ (v_k - v̄)² + Σ b_k²) / K`` to the mean log-loss. Large values give temperature scaling: the
        structured form, for few rows a class.
    intercept : bool, default True
        Whether b is fitted; without it this is "vector scaling without bias".
    input, labels, eps
        As :class:`TemperatureScaling`.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (K,)
        v, and b with sum 0 (a common shift changes nothing).
    gradient_norm_, n_iter_
        As :class:`PlattScaling`.

    Notes
    -----
    Expresses classes that are over-predicted or of unequal sharpness; slopes may be below 0 where data say so. Convex;
    Newton's method up to 350 classes, L-BFGS beyond. Cost O(n K²) a step.

    References
    ----------
    Guo et al. (2017); for the shrinkage Berta, Holzmüller, Jordan & Bach (2025), *Structured matrix scaling*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import VectorScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 5000)
    >>> y = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> VectorScaling().fit(p, y).coef_.round(0).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        shrinkage: float = 0.0,
        *,
        intercept: bool = True,
        input: str = "probability",  # noqa: A002
        labels: Any = None,
        eps: float = EPS,
    ) -> None:
        self.shrinkage = shrinkage
        self.intercept = intercept
        self.input = input
        self.labels = labels
        self.eps = eps

    def _check(self, sample: Sample) -> None:
        check_eps(self.eps)
        not_below("shrinkage", self.shrinkage, 0.0)

    def _fit(self, sample: Sample) -> None:
        z = sample.scores.logs(self.eps).astype(np.float64)
        k = z.shape[1]
        quadratic = np.zeros((2 * k, 2 * k))
        quadratic[:k, :k] = 2 * self.shrinkage / k * (np.eye(k) - 1 / k)
        quadratic[k:, k:] = 2 * self.shrinkage / k * np.eye(k)
        objective = vector_objective(z, sample.codes, sample.weights, quadratic)
        start = np.concatenate([_slope(z, sample) * np.ones(k), np.zeros(k)])
        if not self.intercept:
            objective, start = _first(objective, k, 2 * k), start[:k]
        found = (minimise if 2 * k <= _NEWTON else minimise_large)(objective, start).warn("VectorScaling")
        self.coef_ = found.x[:k]
        self.intercept_ = found.x[k:] - found.x[k:].mean() if self.intercept else np.zeros(k)
        self.gradient_norm_, self.n_iter_ = found.gradient_norm, found.n_iter

    def _probabilities(self, scores: Scores) -> FloatArray:
        return softmax(scores.logs(self.eps).astype(np.float64) * self.coef_ + self.intercept_)


class MatrixScaling(Calibrator):
    r"""Matrix scaling: :math:`\operatorname{softmax}(W z + b)`, multinomial logistic regression of the logits.

    Parameters
    ----------
    shrinkage : float, default 0
        λ ≥ 0: adds ``λ (Σ_{k≠l} W_kl² / (K (K-1)) + Σ (W_kk - w̄)² / K + Σ b_k² / K)`` to the mean log-loss, w̄ the mean
        of the diagonal: large values give temperature scaling (the structured form).
    input, labels, eps
        As :class:`TemperatureScaling`.

    Attributes
    ----------
    coef_ : ndarray of shape (K, K)
        W, rows of classes, with columns of sum 0 where there is no shrinkage (a common shift changes nothing).
    intercept_ : ndarray of shape (K,)
        b, with sum 0.
    gradient_norm_, n_iter_
        As :class:`PlattScaling`.

    Notes
    -----
    Expresses classes that are mistaken for one another; changes which class is first. K² + K parameters: without
    shrinkage it over-fits as soon as rows are fewer than some tens of K², and has no optimum where classes are separated
    (:class:`ConvergenceWarning`). Newton's method up to 25 classes, L-BFGS beyond. Cost O(n K⁴), or O(n K²), a step.

    References
    ----------
    Guo et al. (2017); for the shrinkage Berta, Holzmüller, Jordan & Bach (2025), *Structured matrix scaling*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import MatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 5000)
    >>> y = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> (3 * MatrixScaling().fit(p, y).coef_).round(0).tolist()
    [[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]]
    """

    def __init__(
        self, shrinkage: float = 0.0, *, input: str = "probability", labels: Any = None, eps: float = EPS
    ) -> None:  # noqa: A002
        self.shrinkage = shrinkage
        self.input = input
        self.labels = labels
        self.eps = eps

    def _check(self, sample: Sample) -> None:
        check_eps(self.eps)
        not_below("shrinkage", self.shrinkage, 0.0)

    def _features(self, scores: Scores) -> FloatArray:
        return scores.logs(self.eps).astype(np.float64)

    def _penalty(self, k: int) -> Quadratic:
        weight = 2 * self.shrinkage
        return Quadratic(weight / max(k * (k - 1), 1), weight / k, weight / k, centred=True)

    def _fit(self, sample: Sample) -> None:
        z = self._features(sample.scores)
        k = z.shape[1]
        penalty = self._penalty(k)
        objective = matrix_objective(z, sample.codes, sample.weights, penalty)
        start = np.column_stack([_slope(z, sample) * np.eye(k), np.zeros(k)]).ravel()
        method = minimise if k * (k + 1) <= _NEWTON else minimise_large
        found = method(objective, start).warn(type(self).__name__)
        w = found.x.reshape(k, k + 1)
        free = penalty.off == 0 and penalty.diagonal == 0
        self.coef_ = w[:, :-1] - w[:, :-1].mean(axis=0) if free else w[:, :-1]
        self.intercept_ = w[:, -1] - w[:, -1].mean()
        self.gradient_norm_, self.n_iter_ = found.gradient_norm, found.n_iter

    def _probabilities(self, scores: Scores) -> FloatArray:
        return softmax(self._features(scores) @ self.coef_.T + self.intercept_)


class DirichletCalibration(MatrixScaling):
    r"""Dirichlet calibration: :math:`\operatorname{softmax}(W \log p + b)`, with off-diagonal and intercept penalties.

    What Bayes' rule gives where the probability vectors of each class are Dirichlet distributed; for two classes, beta
    calibration without its constraint.

    Parameters
    ----------
    penalty : {"odir", "l2"}, default "odir"
        ODIR: ``λ Σ_{k≠l} W_kl² / (K (K-1)) + μ Σ b_k² / K``. ``"l2"``: ``λ (Σ W_kl² + Σ b_k²)``; μ is not used.
    strength : float, default 1e-3
        λ ≥ 0, on the mean log-loss.
    intercept_strength : float or None, default None
        μ; None: λ.
    input, labels, eps
        As :class:`TemperatureScaling`. Logits become log-probabilities first, which matters to the penalty.

    Attributes
    ----------
    coef_, intercept_, gradient_norm_, n_iter_
        As :class:`MatrixScaling`.

    Notes
    -----
    As :class:`MatrixScaling`. λ and μ are best chosen by cross-validation, over powers of ten; with many classes and few
    rows the small values that suit ten classes over-fit badly.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song & Flach (2019), *Beyond temperature scaling*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import DirichletCalibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 5000)
    >>> y = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> np.diag(DirichletCalibration().fit(p, y).coef_).round(0).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        penalty: str = "odir",
        strength: float = 1e-3,
        intercept_strength: float | None = None,
        *,
        input: str = "probability",  # noqa: A002
        labels: Any = None,
        eps: float = EPS,
    ) -> None:
        self.penalty = penalty
        self.strength = strength
        self.intercept_strength = intercept_strength
        self.input = input
        self.labels = labels
        self.eps = eps

    def _check(self, sample: Sample) -> None:
        check_eps(self.eps)
        choice("penalty", self.penalty, PENALTIES)
        not_below("strength", self.strength, 0.0)
        if self.intercept_strength is not None:
            not_below("intercept_strength", self.intercept_strength, 0.0)

    def _features(self, scores: Scores) -> FloatArray:
        return scores.log_probabilities(self.eps)

    def _penalty(self, k: int) -> Quadratic:
        if self.penalty == "l2":
            return Quadratic(2 * self.strength, 2 * self.strength, 2 * self.strength, centred=False)
        mu = self.strength if self.intercept_strength is None else self.intercept_strength
        return Quadratic(2 * self.strength / max(k * (k - 1), 1), 0.0, 2 * mu / k, centred=False)


class Quadratic:
    """Half a quadratic form of a matrix (K, K + 1): off-diagonal, diagonal (about its mean if centred), last column."""

    def __init__(self, off: float, diagonal: float, last: float, *, centred: bool) -> None:
        self.off, self.diagonal, self.last, self.centred = off, diagonal, last, centred

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradient; the value is half its product with w, as the form is quadratic."""
        k = len(w)
        out = self.off * w
        middle = np.diag(w[:, :k])
        out[np.arange(k), np.arange(k)] = self.diagonal * (middle - middle.mean() if self.centred else middle)
        out[:, k] = self.last * w[:, k]
        return out

    def hessian(self, k: int) -> FloatArray:
        """The form, (K (K + 1), K (K + 1))."""
        scale = np.full((k, k + 1), self.off)
        scale[np.arange(k), np.arange(k)] = self.diagonal
        scale[:, k] = self.last
        out = np.diag(scale.ravel())
        if self.centred:
            at = np.arange(k) * (k + 1) + np.arange(k)
            out[np.ix_(at, at)] -= self.diagonal / k
        return out


def matrix_objective(z: FloatArray, codes: AnyArray, weights: FloatArray, penalty: Quadratic) -> Objective:
    """Mean log-loss of ``softmax(W [z, 1])`` and a penalty; parameters are W, (K, K + 1), row by row."""
    n, k = z.shape
    features = np.column_stack([z, np.ones(n)])
    share = weights / weights.sum()
    own = np.zeros((n, k))
    own[np.arange(n), codes] = 1.0
    seen = (own * share[:, None]).T @ features

    def objective(theta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        w = theta.reshape(k, k + 1)
        logits = features @ w.T
        top = logits.max(axis=1, keepdims=True)
        logits -= top
        p = np.exp(logits)
        whole = p.sum(axis=1, keepdims=True)
        p /= whole
        loss = float(share @ (np.log(whole[:, 0]) - logits[np.arange(n), codes]))
        shrink = penalty.gradient(w)
        gradient = (p * share[:, None]).T @ features - seen + shrink
        hessian = None
        if curved:
            # -Σ w (p_k f)(p_l f)ᵀ, and Σ w p_k f fᵀ in the blocks of the diagonal.
            long = (p[:, :, None] * features[:, None, :]).reshape(n, -1)
            long *= np.sqrt(share)[:, None]
            hessian = -(long.T @ long)
            for c in range(k):
                block = slice(c * (k + 1), (c + 1) * (k + 1))
                hessian[block, block] += (features * (share * p[:, c])[:, None]).T @ features
            hessian += penalty.hessian(k)
        return loss + 0.5 * float((shrink * w).sum()), gradient.ravel(), hessian

    return objective


def vector_objective(z: FloatArray, codes: AnyArray, weights: FloatArray, quadratic: FloatArray) -> Objective:
    """Mean log-loss of ``softmax(v z + b)`` and half a quadratic form of (v, b)."""
    n, k = z.shape
    share = weights / weights.sum()
    own = np.zeros((n, k))
    own[np.arange(n), codes] = 1.0

    def objective(theta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        logits = z * theta[:k] + theta[k:]
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        whole = p.sum(axis=1, keepdims=True)
        p /= whole
        loss = float(share @ (np.log(whole[:, 0]) - logits[np.arange(n), codes]))
        rest = (p - own) * share[:, None]
        shrink = quadratic @ theta
        gradient = np.concatenate([(rest * z).sum(axis=0), rest.sum(axis=0)]) + shrink
        hessian = None
        if curved:
            long = np.concatenate([p * z, p], axis=1) * np.sqrt(share)[:, None]
            hessian = -(long.T @ long) + quadratic
            weighted = p * share[:, None]
            at = np.arange(k)
            hessian[at, at] += (weighted * z**2).sum(axis=0)
            cross = (weighted * z).sum(axis=0)
            hessian[at, k + at] += cross
            hessian[k + at, at] += cross
            hessian[k + at, k + at] += weighted.sum(axis=0)
        return loss + 0.5 * float(shrink @ theta), gradient, hessian

    return objective


def _first(objective: Objective, k: int, whole: int) -> Objective:
    """The objective as a function of its first k parameters, the others being 0."""

    def part(theta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        value, gradient, hessian = objective(np.concatenate([theta, np.zeros(whole - k)]), curved)
        return value, gradient[:k], None if hessian is None else hessian[:k, :k]

    return part


def _slope(z: FloatArray, sample: Sample) -> float:
    """Where fits start: the inverse temperature."""
    found: Solution = fit_temperature(z, sample.codes, sample.weights)
    return float(np.clip(found.x[0], 1e-3, 1e3))
