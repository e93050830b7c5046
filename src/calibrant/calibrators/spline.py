"""Smooth maps: a monotone spline of the log odds, and the density reliability curve made monotone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_int
from ..data.types import FloatArray
from ..exceptions import CalibrantWarning
from ..measure.reliability import curve_estimator, reliability_curve
from .base import BinaryCalibrator, check_not_negative, parameter
from .histogram import UnitScores
from .inputs import CalibrationSample, Scores
from .laplace_map import LaplaceMap, covariance_field
from .newton import MANY_DEAR, Solution, minimise, part_of, sigmoid_objective
from .prior import shrunk
from .saved_state import PROBABILITIES, STEPS, Field, Numbers

_DEGREE = 3
_CURVE_NODES = 513


@dataclass(eq=False, repr=False)
class SplineCalibrator(LaplaceMap):
    r"""Monotone cubic spline of the log odds z: :math:`\operatorname{logit} P(1 \mid s) = \sum_j \beta_j B_j(z)`.

    Rising coefficients of B-splines make a rising map. It is shrunk towards straight lines, that is Platt scaling:

    .. math:: \min_\beta\; \text{mean log-loss} + \frac{\alpha}{2 n} \sum_j (s_{j+1} - s_j)^2, \qquad
        s_j = \frac{\beta_{j+1} - \beta_j}{\xi_{j+1} - \xi_j} \ge 0

    with ξ the Greville abscissae, so that s is the slope: α is the precision of a normal prior on its changes.

    Parameters
    ----------
    n_knots : int, default 6
        Inner knots, at quantiles of the log odds; fewer where these coincide.
    alpha : float, default 1
        α ≥ 0.
    shrinkage : float or "auto", default "auto"
        As :class:`PlattScaling`.
    input, labels, eps
        As :class:`PlattScaling`.

    Attributes
    ----------
    knots_ : ndarray
        With the repeated ends.
    coef_ : ndarray
        β.
    covariance_ : ndarray
        Of β, as :class:`PlattScaling`; without the constraints.
    gradient_norm_ : float
        Largest violation of the conditions of the optimum.
    n_iter_ : int

    Notes
    -----
    Expresses any smooth rising map; beyond the scores that were seen it goes on straight. Convex, solved by
    Newton's method with bounds. Cost O(n) a step.

    References
    ----------
    Lucena (2018), *Spline-based probability calibration*; Eilers & Marx (1996) for penalised splines.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import SplineCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> fitted = SplineCalibrator().fit(p, rng.random(5000) < p**2)
    >>> bool(abs(fitted.predict_proba([0.5])[0, 1] - 0.25) < 0.03)
    True
    """

    n_knots: int = parameter(6, partial(check_int, least=0))
    alpha: float = parameter(1.0, check_not_negative)

    _state: ClassVar[Mapping[str, Field]] = {
        "knots_": Numbers((f"c+{_DEGREE + 1}",), ascending=True),
        "coef_": Numbers(("c",)),
        "covariance_": covariance_field("c"),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        z, w = sample.scores.log_odds(self.eps), sample.weights
        o = shrunk(sample.outcomes(), sample, self.shrinkage, self.eps)
        low, high = float(z.min()), float(z.max())
        if low == high:
            low, high = low - 1.0, high + 1.0
        inner = quantiles(z, w, np.arange(1, self.n_knots + 1) / (self.n_knots + 1))
        inner = np.unique(inner[(inner > low) & (inner < high)])
        self.knots_ = np.concatenate([[low] * (_DEGREE + 1), inner, [high] * (_DEGREE + 1)])
        found = self._solve(self._basis(z), o, w).warn("SplineCalibrator")
        slopes = found.x
        self.coef_ = slopes[0] + np.concatenate([[0.0], np.cumsum(slopes[1:] * self._gaps())])
        self.gradient_norm_, self.n_iter_ = found.gradient_norm, found.n_iter
        bends = np.diff(np.diff(np.eye(len(self.coef_)), axis=0) / self._gaps()[:, None], axis=0)
        self._measure(sample, penalty=self.alpha * bends.T @ bends)

    def _design(self, scores: Scores) -> FloatArray:
        return self._basis(scores.log_odds(self.eps))

    def _coefficients(self) -> FloatArray:
        return np.asarray(self.coef_)

    def _gaps(self) -> FloatArray:
        """Distances of Greville abscissae."""
        m = len(self.knots_) - _DEGREE - 1
        greville = np.array([self.knots_[j + 1 : j + 1 + _DEGREE].mean() for j in range(m)])
        return np.asarray(np.diff(greville))

    def _basis(self, z: FloatArray) -> FloatArray:
        """B-splines at log odds within the range, (n, m); beyond it straight on."""
        from scipy.interpolate import BSpline

        low, high = self.knots_[0], self.knots_[-1]
        inside = np.clip(z, low, high)
        basis = BSpline.design_matrix(inside, self.knots_, _DEGREE).toarray()
        for end, i, j, beyond in ((low, 0, 1, z - inside), (high, -2, -1, z - inside)):
            out = (beyond < 0) if end == low else (beyond > 0)
            if out.any():
                gap = self._gaps()[i if i == 0 else -1]
                basis[out, j] += beyond[out] / gap
                basis[out, i] -= beyond[out] / gap
        return np.asarray(basis)

    def _solve(self, basis: FloatArray, o: FloatArray, w: FloatArray) -> Solution:
        """The first coefficient and the slopes, which are not negative."""
        total = float(w.sum())
        gaps = self._gaps()
        # β = first + cumulated gaps · slopes.
        columns = np.cumsum(basis[:, ::-1], axis=1)[:, ::-1] * np.concatenate([[1.0], gaps])
        m = columns.shape[1]
        change = np.diff(np.eye(m)[1:], axis=0)
        curvature = self.alpha / total * change.T @ change

        def solved(rows: slice, start: FloatArray) -> Solution:
            fit = sigmoid_objective(columns[rows], o[rows], w[rows])

            def objective(x: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
                value, gradient, hessian = fit(x, curved)
                bent = curvature @ x
                return value + 0.5 * float(bent @ x), gradient + bent, None if hessian is None else hessian + curvature

            return minimise(objective, start, np.concatenate([[-np.inf], np.zeros(m - 1)]))

        start = np.concatenate([[self.knots_[0]], np.ones(m - 1)])
        part = part_of(len(o), MANY_DEAR)
        return solved(slice(None), start if part is None else solved(part, start).x)

    def _map(self, scores: Scores) -> FloatArray:
        z = scores.log_odds(self.eps)
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * (self._basis(z) @ self.coef_)))


@dataclass(eq=False, repr=False)
class CurveCalibrator(BinaryCalibrator):
    r"""The reliability curve as a map: smoothed, projected onto rising functions, and cross-fitted.

    On each fold's complement the curve ``rel(s)`` is estimated and replaced by the rising function nearest to it in the
    density of the scores; the calibrated probability is the mean over folds.

    Parameters
    ----------
    estimator : {"adaptive", "density", "residual"} or an estimator with a curve, default "adaptive"
        As in :func:`calibrant.reliability_curve`.
    cv : int, default 5
        Folds (1: one curve from all rows); never more than rows.
    input, labels
        As :class:`PlattScaling`. Logits are smoothed as the probabilities that they stand for, margins over the range
        that was seen.

    Attributes
    ----------
    scores_, values_ : ndarray of shape (513,)
        The map; straight lines join its points.

    Notes
    -----
    Expresses any rising map that is smooth on the scale of the bandwidth. Where no sample lies within the kernel, the
    map goes on from its neighbours. Cost O(n + G²) a fold.

    References
    ----------
    Posocco & Bonnefoy (2021), §7, where it is proposed.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import CurveCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> fitted = CurveCalibrator().fit(p, rng.random(5000) < p**2)
    >>> bool(abs(fitted.predict_proba([0.5])[0, 1] - 0.25) < 0.05)
    True
    """

    estimator: Any = parameter("adaptive", lambda _, value: curve_estimator(value))
    cv: int = parameter(5, partial(check_int, least=1))

    _state: ClassVar[Mapping[str, Field]] = {
        "range_": Numbers(("2",), ascending=True),
        "scores_": Numbers(("m",), *PROBABILITIES, ascending=True),
        "values_": Numbers(("m",), *PROBABILITIES),
    }

    @property
    def _parts_rows(self) -> bool:
        """See :class:`Calibrator`."""
        return self.cv > 1

    def _fit(self, sample: CalibrationSample) -> None:
        units = UnitScores.of(sample.scores)
        self.range_ = np.array([units.low, units.high])
        u, o, w = units.values, sample.outcomes(), sample.weights
        folds = min(self.cv, len(u))
        # Sorted rows dealt in turn: the folds do not depend on the order of rows, and each spans all scores.
        order = np.lexsort((o, u))
        parts = [np.arange(len(u))]
        if folds > 1:
            parts = [np.sort(np.delete(order, np.arange(f, len(u), folds))) for f in range(folds)]
        self.scores_ = np.linspace(0, 1, _CURVE_NODES)
        maps = [self._curve(u[rows], o[rows], w[rows]) for rows in parts]
        self.values_ = np.mean(maps, axis=0)

    def _curve(self, u: FloatArray, o: FloatArray, w: FloatArray) -> FloatArray:
        from scipy.optimize import isotonic_regression

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrantWarning)  # constant scores have no bandwidth, and need none
            curve = reliability_curve(o.astype(np.int8), u, estimator=self.estimator, sample_weight=w)
        known = ~np.isnan(curve.observed)
        if not known.any():
            return np.full(_CURVE_NODES, float(w @ o) / float(w.sum()))
        weight = np.maximum(curve.density[known], 1e-12)
        rising = isotonic_regression(np.clip(curve.observed[known], 0, 1), weights=weight).x
        return np.asarray(np.interp(self.scores_, curve.scores[known], rising))

    def _map(self, scores: Scores) -> FloatArray:
        units = UnitScores(scores, float(self.range_[0]), float(self.range_[1]))
        return np.asarray(np.interp(units.values, self.scores_, self.values_))


def quantiles(z: FloatArray, w: FloatArray, levels: FloatArray) -> FloatArray:
    """Weighted quantiles: the smallest score at which the share is reached, the same for weights and for repeats."""
    order = np.argsort(z)
    share = np.cumsum(w[order])
    at = np.searchsorted(share, levels * share[-1] * (1 - 1e-12), side="left")
    return np.asarray(z[order][np.minimum(at, len(z) - 1)])
