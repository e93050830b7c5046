"""A Gaussian process on the log odds: smooth maps of any shape, close to the identity unless data suggest otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from ..data.checks import check_int
from ..data.fields import Field, Number, Numbers
from ..data.types import FloatArray
from ..sums.logistic_fit import expit
from .base import EPS, STEPS, BinaryCalibrator, check_eps, parameter
from .inputs import CalibrationSample, Scores
from .logistic import standard
from .monotone import cells, points
from .newton import Solution, minimise, sigmoid_objective

#: Standard deviations tried, in log odds: those of the shift and the change of slope, and those of the rest.
_STRAIGHT = (0.1, 0.3, 1.0, 3.0)
_BENT = (0.1, 0.3, 1.0, 3.0)
#: Length scales tried, in standard deviations of the log odds.
_LENGTHS = (0.3, 0.6, 1.2, 2.4)
#: Least spread of log odds that are not all equal.
_LEAST_SCALE = 1e-30
#: Largest share of the kernel's variance that inducing points may leave unexplained, and their largest number.
_LEFT, _MOST = 1e-6, 100
#: Numbers processed at a time.
_TILE = 1 << 20


class Mode(NamedTuple):
    """A posterior mode and the evidence of the outcomes, by Laplace's approximation."""

    log_evidence: float
    found: Solution


@dataclass(eq=False, repr=False)
class GaussianProcessCalibrator(BinaryCalibrator):
    r"""Gaussian process calibration: :math:`\operatorname{logit} P(1 \mid s) = z + f(z)`, z = logit s.

    f is a Gaussian process with mean 0, so that a fit to few rows hardly changes scores, and with covariance

    .. math:: k(u, u') = a^2 (1 + u u') + b^2 \exp\bigl(-(u - u')^2 / 2 \ell^2\bigr)

    in the standardised log odds u: a shift, a change of slope, and bends of length ℓ. The map is given by f's posterior
    mode (Laplace's approximation); a, b and ℓ maximise the approximate evidence on a grid, on which b may be 0. Margins
    are treated as log odds.

    Parameters
    ----------
    max_points : int, default 2000
        Largest number of distinct scores; more are replaced by their means in this number of cells of equal weight.

    Attributes
    ----------
    straight_sd_, bent_sd_, length_scale_ : float
        The parameters a, b and ℓ.
    log_evidence_ : float
        Approximate log-probability of the outcomes given the scores.
    centre_, scale_ : float
        Mean and standard deviation of the log odds: ``u = (z - centre) / scale``.
    coef_ : ndarray of shape (2,)
        Shift and slope of f in u.
    nodes_, node_coef_ : ndarray of shape (r,)
        Inducing points in u and their coefficients: the rest of f is ``Σ node_coef · exp(-(u - node)² / 2ℓ²)``.
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient where the fit ended, and number of iterations.

    See Also
    --------
    calibrant.calibrators.SplineCalibrator : A smooth increasing map.
    calibrant.calibrators.PlattScaling : The shift and the slope only.

    Notes
    -----
    Fits any smooth map, including decreasing ones; beyond the observed scores it becomes linear in the log odds. There
    is no ``predict_interval``: a posterior given a, b and ℓ, which are chosen on the same rows, is too narrow. Inducing
    points are chosen by a pivoted Cholesky factor, until they leave less than 1e-6 of the kernel's variance anywhere
    (at most 100 points); to this precision the fit equals that of the full process. Merging distinct scores shifts them
    by less than a 2000th of the ranks. Cost: O(n log n), and about seventy fits of about six steps of
    O(``max_points`` · r²): about a second for any n.

    References
    ----------
    Wenger, Kjellström & Triebel (2020), *Non-parametric calibration for classification*; Rasmussen & Williams (2006),
    §3.4, for Laplace's approximation; Silva Filho et al. (2023), §5.5.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import GaussianProcessCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> fitted = GaussianProcessCalibrator().fit(p, rng.random(3000) < p**2)
    >>> bool(abs(fitted.predict_proba([0.5])[0, 1] - 0.25) < 0.04)
    True
    """

    max_points: int = parameter(2000, partial(check_int, least=10))
    _: KW_ONLY
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {
        "straight_sd_": Number(0),
        "bent_sd_": Number(0),
        "length_scale_": Number(_LENGTHS[0], _LENGTHS[-1]),
        "log_evidence_": Number(),
        "centre_": Number(),
        "scale_": Number(_LEAST_SCALE),
        "coef_": Numbers(("2",)),
        "nodes_": Numbers(("r",)),
        "node_coef_": Numbers(("r",)),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        z, weight, positive = points(sample.scores.log_odds(self.eps), sample.outcomes(), sample.weights)
        self.centre_, self.scale_ = standard(z, weight)
        start = cells(weight, self.max_points)
        z, positive = np.add.reduceat(weight * z, start), np.add.reduceat(positive, start)
        weight = np.add.reduceat(weight, start)
        z /= weight
        u = (z - self.centre_) / self.scale_

        def mode(bends: FloatArray, straight: float, bent: float) -> Mode:
            columns = np.column_stack([np.full_like(u, straight), straight * u, bent * bends])
            return _posterior_mode(columns, positive / weight, weight, z)

        tried = [(mode(np.empty((len(z), 0)), a, 0.0), a, 0.0, _LENGTHS[-1]) for a in _STRAIGHT]
        for length in _LENGTHS:
            bends = inducing(u, length)[2]
            tried += [(mode(bends, a, b), a, b, length) for a in _STRAIGHT for b in _BENT]
        best, straight, bent, length = max(tried, key=lambda one: one[0].log_evidence)
        x = self._keep(best.found)
        self.log_evidence_, self.length_scale_ = best.log_evidence, length
        self.straight_sd_, self.bent_sd_ = straight, bent
        self.nodes_, factor, _ = inducing(u, length)
        # The columns that were fitted are combinations of the kernel at the nodes; without bends there are none.
        bends = x[2:] if bent else np.zeros(len(factor))
        self.coef_, self.node_coef_ = straight * x[:2], bent * np.linalg.inv(factor).T @ bends

    def _map(self, scores: Scores) -> FloatArray:
        z = scores.log_odds(self.eps)
        step = max(1, _TILE // max(len(self.nodes_), 1))
        tiles = (z[a : a + step] for a in range(0, max(len(z), 1), step))
        p = expit(np.concatenate([tile + self._added(tile) for tile in tiles]))
        return scores.kept_inside(p, self.eps)

    def _added(self, z: FloatArray) -> FloatArray:
        """The posterior mode of f at the given log odds."""
        u = (z - self.centre_) / self.scale_
        kernel = np.exp(-0.5 * ((u[:, None] - self.nodes_) / self.length_scale_) ** 2)
        return np.asarray(self.coef_[0] + self.coef_[1] * u + kernel @ self.node_coef_)


def _posterior_mode(columns: FloatArray, share: FloatArray, weight: FloatArray, z: FloatArray) -> Mode:
    """Mode for coefficients with a standard normal prior, from shares of positives and weights at log odds z."""
    total = float(weight.sum())
    objective = sigmoid_objective(columns, share, weight, offset=z, penalty=np.eye(columns.shape[1]) / total)
    found = minimise(objective, np.zeros(columns.shape[1]))
    p = expit(z + columns @ found.x)
    precision = np.eye(columns.shape[1]) + (columns * (weight * p * (1 - p))[:, None]).T @ columns
    return Mode(-total * found.value - 0.5 * float(np.linalg.slogdet(precision)[1]), found)


def inducing(u: FloatArray, length: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inducing points (r,), the Cholesky factor of their kernel (r, r), and ``L`` with ``L Lᵀ`` the kernel of u (n, r).

    Chosen by pivoting: the next point is where the previous ones leave the most variance.
    """
    left, chosen, columns = np.ones_like(u), [], np.empty((len(u), min(_MOST, len(u))))
    for r in range(columns.shape[1]):
        at = int(left.argmax())
        if left[at] < _LEFT:
            break
        kernel = np.exp(-0.5 * ((u - u[at]) / length) ** 2)
        columns[:, r] = (kernel - columns[:, :r] @ columns[at, :r]) / np.sqrt(left[at])
        left = np.maximum(left - columns[:, r] ** 2, 0.0)
        chosen.append(at)
    columns = columns[:, : len(chosen)]
    return u[chosen], columns[chosen], columns
