"""Calibrators that are linear in logits: vector, matrix and Dirichlet scaling, with optional shrinkage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_bool, check_choice
from ..data.fields import Field, Numbers
from ..data.types import FloatArray
from .base import EPS, STEPS, Calibrator, check_eps, check_not_negative, check_shrinkage, parameter
from .inputs import CalibrationSample, Scores
from .newton import MANY_DEAR, Solution, minimise, minimise_large, part_of
from .temperature import softmax, temperature_of

#: Largest number of parameters for Newton's method: beyond it, the Hessian is larger than the data.
_NEWTON = 700
#: Curvature below this share of the largest counts as 0.
_LEAST = 1e-10
#: Relative error of sums over rows; a direction with less than this share of its penalty counts as flat.
_ROUNDING, _FLAT = 1e-14, 1e-6
Product = Callable[[FloatArray], FloatArray]


@dataclass(eq=False, repr=False)
class VectorScaling(Calibrator):
    r"""Vector scaling: :math:`\operatorname{softmax}(v \odot z + b)`, with a slope and an intercept per class.

    Parameters
    ----------
    shrinkage : float or "auto", default "auto"
        The penalty λ ≥ 0: adds ``λ (Σ (v_k - v̄)² + Σ b_k²) / K`` to the mean log-loss. Large values give temperature
        scaling, 0 is vector scaling as published. ``"auto"``: ``K² / n``, that is ``K / n`` per squared deviation, and
        the prior of :class:`TemperatureScaling`.
    intercept : bool, default True
        Whether to fit b; False gives "vector scaling without bias".

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (K,)
        The slopes v and the intercepts b, with sum 0 (a common shift has no effect).
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient where the fit ended, and number of iterations.

    See Also
    --------
    calibrant.TemperatureScaling : One slope for all classes.
    calibrant.calibrators.MatrixScaling : A matrix in place of the slopes.
    calibrant.torch.VectorScaler : The same as a torch module.

    Notes
    -----
    Corrects over- and under-prediction and unequal sharpness of classes; slopes may be negative if the data support it.
    The problem is convex; it is solved by Newton's method, with conjugate gradients for more than 350 classes. Cost:
    O(n K²) per step, or about a hundred times O(n K).

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

    shrinkage: float | str = parameter("auto", check_shrinkage)
    _: KW_ONLY
    intercept: bool = parameter(True, check_bool)
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {"coef_": Numbers(("K",)), "intercept_": Numbers(("K",)), **STEPS}

    def _fit(self, sample: CalibrationSample) -> None:
        z = sample.scores.logs(self.eps).astype(np.float64)
        k = z.shape[1]
        strength = k**2 / sample.total if isinstance(self.shrinkage, str) else self.shrinkage
        pull = _pull(z, sample, "auto" if isinstance(self.shrinkage, str) else 0.0)
        objective = VectorObjective(z, sample, strength, pull, free=bool(self.intercept))
        start = np.concatenate([_slope(sample, self.eps) * np.ones(k), np.zeros(k if self.intercept else 0)])
        x = self._keep(_minimised(objective, start))
        self.coef_, self.intercept_ = x[:k], x[k:] - x[k:].mean() if self.intercept else np.zeros(k)

    def _probabilities(self, scores: Scores) -> FloatArray:
        z = scores.logs(self.eps).astype(np.float64)
        return scores.kept_inside(softmax(z * self.coef_ + self.intercept_), self.eps)


@dataclass(eq=False, repr=False)
class MatrixScaling(Calibrator):
    r"""Matrix scaling: :math:`\operatorname{softmax}(W z + b)`, multinomial logistic regression of the logits.

    Parameters
    ----------
    shrinkage : float or "auto", default "auto"
        The penalty λ ≥ 0: adds ``λ (Σ_{k≠l} W_kl² + Σ (W_kk - w̄)² + Σ b_k²) / K`` to the mean log-loss, where w̄ is
        the mean of the diagonal. Large values give temperature scaling, 0 is matrix scaling as published. ``"auto"``:
        ``K (K - 1) / n`` per squared off-diagonal element, ``K / n`` per squared deviation of a diagonal element and
        per squared intercept, and the prior of :class:`TemperatureScaling`.

    Attributes
    ----------
    coef_ : ndarray of shape (K, K)
        The matrix W, one row per class; without shrinkage its columns sum to 0 (a common shift has no effect).
    intercept_ : ndarray of shape (K,)
        The intercepts b, with sum 0.
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient where the fit ended, and number of iterations.

    See Also
    --------
    calibrant.calibrators.VectorScaling : The diagonal only.
    calibrant.calibrators.DirichletCalibration : The same map with other penalties.

    Notes
    -----
    Corrects confusions between classes; may change the predicted class. It has K² + K parameters: without shrinkage it
    overfits below some tens of K² rows, and has no optimum if classes are separated (:class:`ConvergenceWarning`).
    Newton's method, with conjugate gradients above 25 classes. Cost: O(n K⁴) per step, or about 100 times O(n K²).

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
    >>> (MatrixScaling().fit(p, y).coef_.round(0) + 0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    shrinkage: float | str = parameter("auto", check_shrinkage)
    _: KW_ONLY
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {"coef_": Numbers(("K", "K")), "intercept_": Numbers(("K",)), **STEPS}

    def _features(self, scores: Scores) -> FloatArray:
        return scores.logs(self.eps).astype(np.float64)

    def _penalty(self, k: int, n: float) -> Quadratic:
        if isinstance(self.shrinkage, str):
            return Quadratic(2 * k * (k - 1) / n, 2 * k / n, 2 * k / n, centred=True)
        weight = 2 * self.shrinkage / k
        return Quadratic(weight, weight, weight, centred=True)

    def _rows(self) -> float | str:
        """Number of rows of the prior."""
        return "auto" if isinstance(self.shrinkage, str) else 0.0

    def _fit(self, sample: CalibrationSample) -> None:
        z = self._features(sample.scores)
        k = z.shape[1]
        penalty = self._penalty(k, sample.total)
        start = np.column_stack([_slope(sample, self.eps) * np.eye(k), np.zeros(k)]).ravel()
        part = part_of(len(z), MANY_DEAR)
        if part is not None:
            some = sample.part(part)
            start = _minimised(MatrixObjective(z[part], some, penalty, _pull(z[part], some, self._rows())), start).x
        objective = MatrixObjective(z, sample, penalty, _pull(z, sample, self._rows()))
        w = self._keep(_minimised(objective, start)).reshape(k, k + 1)
        free = penalty.off == 0 and penalty.diagonal == 0
        self.coef_ = w[:, :-1] - w[:, :-1].mean(axis=0) if free else w[:, :-1]
        self.intercept_ = w[:, -1] - w[:, -1].mean()

    def _probabilities(self, scores: Scores) -> FloatArray:
        return scores.kept_inside(softmax(self._features(scores) @ self.coef_.T + self.intercept_), self.eps)


def _check_strength(name: str, value: Any) -> None:
    if value is not None:
        check_not_negative(name, value)


@dataclass(eq=False, repr=False)
class DirichletCalibration(MatrixScaling):
    r"""Dirichlet calibration: :math:`\operatorname{softmax}(W \log p + b)`, with off-diagonal and intercept penalties.

    Exact by Bayes' rule if the probability vectors of each class are Dirichlet distributed; for two classes, beta
    calibration without its constraint. Logits are first converted to log-probabilities, which affects the penalty.

    Parameters
    ----------
    penalty : {"odir", "l2"}, default "odir"
        ODIR: ``λ Σ_{k≠l} W_kl² / (K (K-1)) + μ Σ b_k² / K``. ``"l2"``: ``λ (Σ W_kl² + Σ b_k²)``; μ is not used.
    strength : float, default 1e-3
        The penalty λ ≥ 0, added to the mean log-loss.
    intercept_strength : float or None, default None
        The penalty μ ≥ 0 of the intercepts; None: equal to λ.
    shrinkage : float or "auto", default "auto"
        Weight of the prior of :class:`calibrant.TemperatureScaling`, as a number m ≥ 0 of rows, in addition to the
        penalty. 0 is Dirichlet calibration as published.

    Attributes
    ----------
    coef_ : ndarray of shape (K, K)
        The matrix W, one row per class.
    intercept_ : ndarray of shape (K,)
        The intercepts b, with sum 0.
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient where the fit ended, and number of iterations.

    See Also
    --------
    calibrant.calibrators.MatrixScaling : The same map, shrunk towards temperature scaling.
    calibrant.calibrators.BetaCalibration : The analogue for two classes.

    Notes
    -----
    Cost and warnings: as for :class:`MatrixScaling`. λ and μ are best chosen by cross-validation over powers of
    ten; with many classes and few rows, the small values that suit ten classes overfit badly.

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

    penalty: str = parameter("odir", partial(check_choice, allowed=("odir", "l2")))
    strength: float = parameter(1e-3, check_not_negative)
    intercept_strength: float | None = parameter(None, _check_strength)
    _: KW_ONLY
    shrinkage: float | str = parameter("auto", check_shrinkage)

    def _features(self, scores: Scores) -> FloatArray:
        return scores.log_probabilities(self.eps)

    def _rows(self) -> float | str:
        return self.shrinkage

    def _penalty(self, k: int, n: float) -> Quadratic:
        if self.penalty == "l2":
            return Quadratic(2 * self.strength, 2 * self.strength, 2 * self.strength, centred=False)
        mu = self.strength if self.intercept_strength is None else self.intercept_strength
        return Quadratic(2 * self.strength / max(k * (k - 1), 1), 0.0, 2 * mu / k, centred=False)


class Quadratic:
    """Half a quadratic form of a (K, K + 1) matrix: off-diagonal, diagonal (about its mean if centred), last column."""

    def __init__(self, off: float, diagonal: float, last: float, *, centred: bool) -> None:
        self.off, self.diagonal, self.last, self.centred = off, diagonal, last, centred

    def gradient(self, w: FloatArray) -> FloatArray:
        """The gradient at w; the value of the form is half the product of gradient and w."""
        k = len(w)
        out = self.off * w
        middle = np.diag(w[:, :k])
        out[np.arange(k), np.arange(k)] = self.diagonal * (middle - middle.mean() if self.centred else middle)
        out[:, k] = self.last * w[:, k]
        return out

    def scale(self, k: int) -> FloatArray:
        """The diagonal of the form's matrix, (K, K + 1), without centring."""
        out = np.full((k, k + 1), self.off)
        out[np.arange(k), np.arange(k)] = self.diagonal
        out[:, k] = self.last
        return out

    def hessian(self, k: int) -> FloatArray:
        """The form's matrix, (K (K + 1), K (K + 1))."""
        out = np.diag(self.scale(k).ravel())
        if self.centred:
            at = np.arange(k) * (k + 1) + np.arange(k)
            out[np.ix_(at, at)] -= self.diagonal / k
        return out


class SoftmaxObjective(ABC):
    """Mean log-loss of a softmax with logits linear in the parameters, plus half a quadratic form of the parameters.

    ``pull`` is the difference between weighted targets and observed labels; None: they are equal.
    """

    def __init__(self, sample: CalibrationSample, pull: FloatArray | None) -> None:
        self.share, self.k = sample.weights / sample.total, sample.n_classes
        self.own, self.pull = (np.arange(len(sample.codes)), sample.codes), pull
        targets = np.zeros((len(sample.codes), self.k))
        targets[self.own] = self.share
        self.seen = self._gathered(targets if pull is None else targets + pull)

    @abstractmethod
    def _logits(self, theta: FloatArray) -> FloatArray:
        """Logits, (n, K)."""

    @abstractmethod
    def _gathered(self, q: FloatArray) -> FloatArray:
        """Sums over rows of (n, K) numbers times the features of the parameters."""

    @abstractmethod
    def _shrink(self, theta: FloatArray) -> FloatArray:
        """Gradient of the penalty; the value is half its product with the parameters."""

    @abstractmethod
    def _hessian(self, p: FloatArray) -> FloatArray:
        """Hessian of loss and penalty, from the probabilities."""

    @abstractmethod
    def _diagonal(self, spread: FloatArray) -> FloatArray:
        """Diagonal of the Hessian, from the weighted variances of outcomes, (n, K)."""

    def __call__(self, theta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        """Value, gradient and, if ``curved``, Hessian."""
        loss, p = self._losses(self._logits(theta))
        shrink = self._shrink(theta)
        gradient = self._gathered(p * self.share[:, None]) - self.seen + shrink
        return loss + 0.5 * float(shrink @ theta), gradient, self._hessian(p) if curved else None

    def product(self, theta: FloatArray) -> tuple[Product, Product]:
        """Product with the Hessian, and with an approximate inverse of it."""
        p = self._losses(self._logits(theta))[1]

        def times(v: FloatArray) -> FloatArray:
            q = p * self._logits(v)
            q -= p * q.sum(axis=1, keepdims=True)
            q *= self.share[:, None]
            return self._gathered(q) + self._shrink(v)

        return times, self._near_inverse(p)

    def _near_inverse(self, p: FloatArray) -> Product:
        """The inverse of the Hessian's diagonal."""
        diagonal = self._diagonal(p * (1 - p) * self.share[:, None])
        scale = 1 / np.maximum(diagonal, 1e-12 * float(diagonal.max(initial=1e-300)))
        return lambda v: scale * v

    def _losses(self, logits: FloatArray) -> tuple[float, FloatArray]:
        """Mean log-loss, and probabilities, which overwrite the logits."""
        logits -= logits.max(axis=1, keepdims=True)
        own = logits[self.own]
        pulled = 0.0 if self.pull is None else float(np.vdot(self.pull, logits))
        p = np.exp(logits, out=logits)
        whole = p.sum(axis=1, keepdims=True)
        p /= whole
        return float(self.share @ (np.log(whole[:, 0]) - own)) - pulled, p


class MatrixObjective(SoftmaxObjective):
    """Objective for ``softmax(W [z, 1])``; the parameters are W, (K, K + 1), row by row."""

    def __init__(self, z: FloatArray, sample: CalibrationSample, penalty: Quadratic, pull: FloatArray | None) -> None:
        self.features, self.penalty = np.column_stack([z, np.ones(len(z))]), penalty
        super().__init__(sample, pull)

    def _matrix(self, theta: FloatArray) -> FloatArray:
        return theta.reshape(self.k, -1)

    def _logits(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.features @ self._matrix(theta).T)

    def _gathered(self, q: FloatArray) -> FloatArray:
        return np.asarray((q.T @ self.features).ravel())

    def _shrink(self, theta: FloatArray) -> FloatArray:
        return self.penalty.gradient(self._matrix(theta)).ravel()

    def _hessian(self, p: FloatArray) -> FloatArray:
        # -Σ w (p_k f)(p_l f)ᵀ, and Σ w p_k f fᵀ in the blocks of the diagonal.
        d = self.features.shape[1]
        weighted = np.sqrt(self.share)[:, None] * self.features
        long = (p[:, :, None] * weighted[:, None, :]).reshape(len(p), -1)
        out = -(long.T @ long)
        for c in range(self.k):
            block = slice(c * d, (c + 1) * d)
            out[block, block] += (weighted * p[:, c, None]).T @ weighted
        return np.asarray(out + self.penalty.hessian(self.k))

    def _diagonal(self, spread: FloatArray) -> FloatArray:
        return np.asarray((spread.T @ self.features**2 + self.penalty.scale(self.k)).ravel())

    def _near_inverse(self, p: FloatArray) -> Product:
        """Inverse as if outcomes varied equally in all rows: a Kronecker product of class and feature matrices.

        The penalty is included exactly: that of each feature by the eigenvectors shared with the feature matrix, and
        the difference on the diagonal by Woodbury's identity. Cost: about twenty times K³ once, and K³ per product.

        Source: Martens & Grosse (2015), *Optimizing neural networks with Kronecker-factored approximate curvature*.
        """
        weighted = p * self.share[:, None]
        of_classes, turn = np.linalg.eigh(np.diag(weighted.sum(axis=0)) - weighted.T @ p)
        penalty = np.append(np.full(self.k, self.penalty.off), self.penalty.last)
        both = self.features.T @ (self.features * self.share[:, None]) + np.diag(penalty)
        scale = np.sqrt(np.maximum(np.diag(both), 1e-300))
        size, axes = np.linalg.eigh(both / np.outer(scale, scale))
        some = size > _LEAST * size[-1]  # collinear features without a penalty are flat
        basis = axes[:, some] / np.sqrt(size[some]) / scale[:, None]
        part, turned = np.linalg.eigh((basis.T * penalty) @ basis)  # the penalty's part of each direction's whole
        back = basis @ turned
        curvature = np.outer(of_classes, 1 - part) + part
        curved = curvature > _LEAST * float(curvature.max())  # a common shift of all logits is flat
        inverse = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curved)
        less, at = self.penalty.off - self.penalty.diagonal, np.arange(self.k)

        def alike(w: FloatArray) -> FloatArray:
            return np.asarray(turn @ (inverse * (turn.T @ w @ back)) @ back.T)

        if less <= 0:
            return lambda v: alike(self._matrix(v)).ravel()

        def spread(diagonal: FloatArray) -> FloatArray:
            w = np.zeros((self.k, self.k + 1))
            w[at, at] = diagonal
            return alike(w)

        own = back[: self.k]
        # The inverse is a sum of few products of one vector of classes and one of features: 1 / (a + b) is smooth.
        left, weight, right = np.linalg.svd(inverse, full_matrices=False)
        few = weight > np.finfo(float).eps * weight[0]
        terms = zip(left.T[few], weight[few], right[few], strict=True)
        shared = sum(w * ((turn * x) @ turn.T) * ((own * y) @ own.T) for x, w, y in terms)
        free, axes = np.linalg.eigh(np.eye(self.k) - less * shared)
        rounding = _ROUNDING * float(np.trace(both)) / self.penalty.off
        mended = (axes / np.where(free > rounding, free, np.inf)) @ axes.T
        # Slopes and intercepts that make up for each other in all rows.
        ways = axes[:, free <= min(rounding, _FLAT)].T
        flat = np.linalg.qr(
            np.array([spread(way).ravel() for way in ways]).reshape(len(ways), self.k * (self.k + 1)).T
        )[0]

        def times(v: FloatArray) -> FloatArray:
            w = alike(self._matrix(v))
            step = (w + spread(less * (mended @ w[at, at]))).ravel()
            return np.asarray(step - flat @ (flat.T @ step))

        return times


class VectorObjective(SoftmaxObjective):
    """Objective for ``softmax(v z + b)``; the parameters are v and, with an intercept, b."""

    def __init__(
        self, z: FloatArray, sample: CalibrationSample, strength: float, pull: FloatArray | None, *, free: bool
    ) -> None:
        self.z, self.free, self.strength = z, free, 2 * strength / z.shape[1]
        super().__init__(sample, pull)

    def _logits(self, theta: FloatArray) -> FloatArray:
        k = self.k
        return np.asarray(self.z * theta[:k] + theta[k:] if self.free else self.z * theta)

    def _gathered(self, q: FloatArray) -> FloatArray:
        slopes = np.einsum("ij,ij->j", q, self.z)
        return np.concatenate([slopes, q.sum(axis=0)]) if self.free else slopes

    def _shrink(self, theta: FloatArray) -> FloatArray:
        v = theta[: self.k]
        return np.asarray(self.strength * np.concatenate([v - v.mean(), theta[self.k :]]))

    def _hessian(self, p: FloatArray) -> FloatArray:
        k, z = self.k, self.z
        long = np.concatenate([p * z, p], axis=1) if self.free else p * z
        long *= np.sqrt(self.share)[:, None]
        out = -(long.T @ long)
        weighted = p * self.share[:, None]
        at = np.arange(k)
        out[at, at] += np.einsum("ij,ij,ij->j", weighted, z, z) + self.strength
        out[:k, :k] -= self.strength / k
        if self.free:
            cross = np.einsum("ij,ij->j", weighted, z)
            out[at, k + at] += cross
            out[k + at, at] += cross
            out[k + at, k + at] += weighted.sum(axis=0) + self.strength
        return np.asarray(out)

    def _diagonal(self, spread: FloatArray) -> FloatArray:
        slopes = np.einsum("ij,ij,ij->j", spread, self.z, self.z)
        return np.asarray((np.concatenate([slopes, spread.sum(axis=0)]) if self.free else slopes) + self.strength)


def _pull(z: FloatArray, sample: CalibrationSample, rows: float | str) -> FloatArray | None:
    """Change of the weighted targets due to the prior's rows."""
    share = sample.prior_share(rows)
    if share == 0:
        return None
    out = softmax(z) if sample.scores.kind != "margin" else np.tile(sample.class_shares(), (len(z), 1))
    out[np.arange(len(z)), sample.codes] -= 1
    out *= (share * sample.weights / sample.total)[:, None]
    return out


def _minimised(objective: SoftmaxObjective, start: FloatArray) -> Solution:
    return minimise(objective, start) if len(start) <= _NEWTON else minimise_large(objective, start)


def _slope(sample: CalibrationSample, eps: float) -> float:
    """The starting value of fits: the inverse temperature."""
    return float(np.clip(temperature_of(sample, eps, "auto").x[0], 1e-3, 1e3))
