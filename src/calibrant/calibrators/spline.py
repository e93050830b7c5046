"""Increasing maps: a cubic spline of the log odds, a linear spline of all logits, and the reliability curve."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_int, check_number
from ..data.fields import Field, Numbers
from ..data.types import AnyArray, FloatArray
from ..exceptions import CalibrantWarning
from ..measure.reliability import curve_estimator, reliability_curve
from .base import EPS, PROBABILITIES, STEPS, Calibrator, check_eps, parameter
from .histogram import UnitMap
from .inputs import CalibrationSample, Scores
from .logistic import LaplaceMap, covariance_field, fit_logistic
from .monotone import kept_inside
from .newton import MANY_DEAR, Solution, minimise_over_rows, part_of
from .temperature import softmax

_DEGREE = 3
#: Log odds that differ by less count as equal: their squared second differences would overflow.
_NARROWEST, _APART = 1e-60, 1e-9
#: Largest distance of a logit from the largest one: beyond it, the probability is 0 in any case.
_FURTHEST = 1e100
_CURVE_NODES = 513
#: Least slope of order-preserving maps: a flat piece would make classes equal.
_LEAST = 1e-3
#: Numbers processed at a time.
_TILE = 1 << 18


@dataclass(eq=False, repr=False)
class SplineCalibrator(LaplaceMap):
    r"""Monotone cubic spline of the log odds z: :math:`\operatorname{logit} P(1 \mid s) = \sum_j \beta_j B_j(z)`.

    Increasing coefficients of B-splines give an increasing map. It is shrunk towards straight lines, that is, towards
    Platt scaling:

    .. math:: & \min_\beta\; \text{mean log-loss} + \frac{\alpha}{2 n} \sum_j (s_{j+1} - s_j)^2, \\
        & s_j = \frac{\beta_{j+1} - \beta_j}{\xi_{j+1} - \xi_j} \ge 0

    where ξ are the Greville abscissae, so that s is the slope, and α is the precision of a normal prior on its changes.

    Parameters
    ----------
    n_knots : int, default 6
        Number of inner knots, at quantiles of the log odds; fewer if these coincide.
    alpha : float, default 1
        The precision α ≥ 0.

    Attributes
    ----------
    knots_ : ndarray
        The knots, including the repeated ends.
    coef_ : ndarray
        The coefficients β.
    covariance_ : ndarray
        Covariance of β, from the information at the fit, ignoring the constraints.
    gradient_norm_ : float
        Largest violation of the optimality conditions.
    n_iter_ : int
        Number of iterations.

    See Also
    --------
    calibrant.calibrators.PlattScaling : The straight line.
    calibrant.calibrators.IsotonicCalibrator : Any increasing map.
    calibrant.calibrators.OrderPreserving : An increasing map of the logits of many classes.

    Notes
    -----
    Fits any smooth increasing map; beyond the observed scores it is linear in the log odds. The problem is convex,
    and solved by Newton's method with bounds. Cost: O(n) per step.

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
    alpha: float = parameter(1.0, partial(check_number, least=0, most=1e12))

    _state: ClassVar[Mapping[str, Field]] = {
        "knots_": Numbers((f"c+{_DEGREE + 1}",), ascending=True),
        "coef_": Numbers(("c",)),
        "covariance_": covariance_field("c"),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        z, w = sample.scores.log_odds(self.eps), sample.weights
        o = sample.shrunk(sample.outcomes(), self.shrinkage, self.eps)
        low, high = float(z.min()), float(z.max())
        if high - low < max(_NARROWEST, _APART * max(abs(low), abs(high))):
            low, high = low - 1.0, high + 1.0
        inner = quantiles(z, w, np.arange(1, self.n_knots + 1) / (self.n_knots + 1))
        # Knots nearer to each other than this share of the range are one.
        inner = np.unique(inner[(inner > low) & (inner < high)])
        inner = inner[np.diff(inner, prepend=low, append=high)[:-1] > _APART * (high - low)]
        inner = inner[high - inner > _APART * (high - low)]
        self.knots_ = np.concatenate([[low] * (_DEGREE + 1), inner, [high] * (_DEGREE + 1)])
        slopes = self._keep(self._solve(self._basis(z), o, w))
        self.coef_ = slopes[0] + np.concatenate([[0.0], np.cumsum(slopes[1:] * self._gaps())])
        bends = np.diff(np.diff(np.eye(len(self.coef_)), axis=0) / self._gaps()[:, None], axis=0)
        self._measure(sample, penalty=self.alpha * bends.T @ bends)

    def _design(self, scores: Scores) -> FloatArray:
        return self._basis(scores.log_odds(self.eps))

    def _coefficients(self) -> FloatArray:
        return np.asarray(self.coef_)

    def _gaps(self) -> FloatArray:
        """Distances between Greville abscissae."""
        m = len(self.knots_) - _DEGREE - 1
        greville = np.array([self.knots_[j + 1 : j + 1 + _DEGREE].mean() for j in range(m)])
        return np.asarray(np.diff(greville))

    def _basis(self, z: FloatArray) -> FloatArray:
        """B-splines at log odds, (n, m), extrapolated linearly beyond the range of the knots."""
        from scipy.interpolate import BSpline

        inside, gaps = np.clip(z, self.knots_[0], self.knots_[-1]), self._gaps()
        basis = np.asarray(BSpline.design_matrix(inside, self.knots_, _DEGREE).toarray())
        below, above = np.minimum(z - inside, 0) / gaps[0], np.maximum(z - inside, 0) / gaps[-1]
        basis[:, :2] += np.column_stack([-below, below])
        basis[:, -2:] += np.column_stack([-above, above])
        return basis

    def _solve(self, basis: FloatArray, o: FloatArray, w: FloatArray) -> Solution:
        """The first coefficient and the non-negative slopes."""
        total = float(w.sum())
        gaps = self._gaps()
        # β = first + cumulated gaps · slopes.
        columns = np.cumsum(basis[:, ::-1], axis=1)[:, ::-1] * np.concatenate([[1.0], gaps])
        m = columns.shape[1]
        change = np.diff(np.eye(m)[1:], axis=0)
        start, lower = np.ones(m), np.zeros(m)
        start[0], lower[0] = self.knots_[0], -np.inf
        penalty = self.alpha / total * change.T @ change
        return fit_logistic(columns, o, w, start, lower, penalty=penalty, many=MANY_DEAR)


@dataclass(eq=False, repr=False)
class OrderPreserving(Calibrator):
    r"""Order-preserving map: :math:`\operatorname{softmax}(g(z - \max z))` with one increasing, piecewise linear g.

    Temperature scaling has one slope for all logits; here the slope depends on the distance of a class's logit from the
    largest one, so that the second choice and unlikely classes can be over-confident by different amounts. The order of
    the classes in every row is preserved, so accuracy and every top-k accuracy are unchanged.

    .. math:: & \min_\beta\; \text{mean log-loss} + \frac{1}{2 n} (\beta_1 - 1)^2 \\
        & \quad + \frac{\alpha}{2 n} \sum_j (\beta_{j+1} - \beta_j)^2, \qquad \beta_j \ge 0.001

    where β are the slopes of g. The normal prior is centred at the identity for the first slope, with precision α for
    changes of slope. A large α gives temperature scaling.

    Parameters
    ----------
    n_knots : int, default 6
        Largest number of knots. These are quantiles of the distances from the largest logit, weighted by the classes'
        probabilities.
    alpha : float, default 10
        The precision α ≥ 0.

    Attributes
    ----------
    knots_ : ndarray of shape (m + 1,)
        Distances from the largest logit at which the slope changes, ascending from 0; the last piece is unbounded.
    slopes_ : ndarray of shape (m + 1,)
        The slope β of the piece that begins at each knot.
    gradient_norm_ : float
        Largest violation of the optimality conditions.
    n_iter_ : int
        Number of iterations.

    See Also
    --------
    calibrant.TemperatureScaling : A single slope.
    calibrant.calibrators.SplineCalibrator : An increasing map for two classes.

    Notes
    -----
    This is the diagonal, order-invariant member of the family of Rahimi et al., who fit it by a network; with given
    knots the problem is convex and solved by Newton's method. It treats all classes alike; for differences between
    classes use :class:`VectorScaling`. Differences of logits below the rounding of the softmax become ties. Cost:
    O(n K m²) per step, with about eight steps.

    References
    ----------
    Rahimi et al. (2020), *Intra order-preserving functions for calibration of multi-class neural networks*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import OrderPreserving
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1, 1], 5000)
    >>> y = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> q = OrderPreserving().fit(p**2 / (p**2).sum(axis=1, keepdims=True), y).predict_proba(p)
    >>> bool((q.argsort(axis=1) == p.argsort(axis=1)).all())
    True
    """

    n_knots: int = parameter(6, partial(check_int, least=0))
    alpha: float = parameter(10.0, partial(check_number, least=0, most=1e12))
    _: KW_ONLY
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {
        "knots_": Numbers(("m",), 0, ascending=True),
        "slopes_": Numbers(("m",), _LEAST),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        behind = _behind(sample.scores, self.eps)
        part = part_of(len(behind)) or slice(None)
        self.knots_ = _knots(behind[part], sample.weights[part], self.n_knots)
        m = len(self.knots_)

        def loss(rows: slice) -> _OrderedLoss:
            return _OrderedLoss(behind[rows], sample.codes[rows], sample.weights[rows], self.knots_, self.alpha)

        self.slopes_ = self._keep(minimise_over_rows(loss, len(behind), np.ones(m), np.full(m, _LEAST)))

    def _probabilities(self, scores: Scores) -> FloatArray:
        behind = _behind(scores, self.eps)
        reach = np.concatenate([[0.0], np.cumsum(self.slopes_[:-1] * np.diff(self.knots_))])
        piece = np.searchsorted(self.knots_, behind, side="right") - 1
        p = softmax(-(reach[piece] + self.slopes_[piece] * (behind - self.knots_[piece])))
        return scores.kept_inside(p, self.eps)


@dataclass(eq=False, repr=False)
class CurveCalibrator(UnitMap):
    r"""The reliability curve as a map: smoothed, projected onto increasing functions, and cross-fitted.

    On each fold's complement the curve ``rel(s)`` is estimated and replaced by the nearest increasing function,
    weighted by the density of the scores; the calibrated probability is the mean over folds. Logits are converted to
    probabilities before smoothing, margins are scaled by the observed range.

    Parameters
    ----------
    estimator : {"adaptive", "density", "residual"} or an estimator with a curve, default "adaptive"
        The estimator of the curve; see :func:`calibrant.reliability_curve`.
    cv : int, default 5
        Number of folds, at most the number of rows; 1 fits one curve to all rows.

    Attributes
    ----------
    scores_, values_ : ndarray of shape (513,)
        Points of the map, which is linear between them.

    See Also
    --------
    calibrant.reliability_curve : The curve.
    calibrant.calibrators.SplineCalibrator : A smooth increasing map fitted by likelihood.

    Notes
    -----
    Fits any increasing map that is smooth on the scale of the bandwidth. Where the kernel contains no sample, the
    map is interpolated from its neighbours. Cost: O(n + G²) per fold.

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
        **UnitMap._state,
        "scores_": Numbers(("m",), *PROBABILITIES, ascending=True),
        "values_": Numbers(("m",), *PROBABILITIES),
    }

    @property
    def _parts_rows(self) -> bool:
        """See :class:`Calibrator`."""
        return self.cv > 1

    def _fit_units(self, u: FloatArray, sample: CalibrationSample) -> None:
        o, w = sample.outcomes(), sample.weights
        folds = min(self.cv, len(u))
        # Sorted rows dealt in turn: the folds do not depend on the order of rows, and each spans all scores.
        order = np.lexsort((o, u))
        parts = [np.arange(len(u))]
        if folds > 1:
            parts = [np.sort(np.delete(order, np.arange(f, len(u), folds))) for f in range(folds)]
        self.scores_ = np.linspace(0, 1, _CURVE_NODES)
        maps = [self._curve(u[rows], o[rows], w[rows]) for rows in parts]
        self.values_ = kept_inside(np.mean(maps, axis=0), sample)

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

    def _map_units(self, u: FloatArray) -> FloatArray:
        return np.asarray(np.interp(u, self.scores_, self.values_))


def _behind(scores: Scores, eps: float) -> FloatArray:
    """Largest logit of each row minus each logit, (n, K), float64."""
    z = scores.logs(eps).astype(np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(z.max(axis=1, keepdims=True) - z, _FURTHEST))


def _knots(behind: FloatArray, weights: FloatArray, n_knots: int) -> FloatArray:
    """0 and quantiles of the positive distances, weighted by the probabilities of their classes."""
    use = behind > 0
    if not use.any() or n_knots == 0:
        return np.zeros(1)
    mass = (softmax(-behind) * weights[:, None])[use]
    inner = quantiles(behind[use], mass, np.arange(1, n_knots + 1) / (n_knots + 1))
    return np.unique(np.concatenate([[0.0], inner]))


class _OrderedLoss:
    """Mean log-loss and penalty, with derivatives in the slopes (logits are linear in these), computed tile by tile."""

    def __init__(
        self, behind: FloatArray, codes: AnyArray, weights: FloatArray, knots: FloatArray, alpha: float
    ) -> None:
        self.behind, self.codes, self.weights, self.knots = behind, codes, weights, knots
        self.total = float(weights.sum())
        m = len(knots)
        change = np.diff(np.eye(m), axis=0)
        self.precision = (np.diag(np.eye(m)[0]) + alpha * change.T @ change) / self.total

    def _tiles(self) -> Iterator[tuple[FloatArray, AnyArray, FloatArray]]:
        """Length of each piece before a logit (t, K, m), codes, and weights."""
        ends = np.append(self.knots[1:], np.inf)
        step = max(1, _TILE // (self.behind.shape[1] * len(self.knots)))
        for a in range(0, len(self.codes), step):
            rows = slice(a, a + step)
            inside = np.minimum(self.behind[rows, :, None], ends) - self.knots
            yield np.maximum(inside, 0.0, out=inside), self.codes[rows], self.weights[rows]

    def __call__(self, slopes: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        off = slopes - 1
        gradient: FloatArray = self.precision @ off
        value = 0.5 * float(off @ gradient)
        hessian: FloatArray | None = self.precision if curved else None
        for reach, codes, w in self._tiles():
            logits = -(reach @ slopes)
            e = np.exp(logits)  # the first class of a row has 0
            whole = e.sum(axis=1)
            p = e / whole[:, None]
            own = np.arange(len(codes)), codes
            mean = np.einsum("ik,ikm->im", p, reach)
            value += float(w @ (np.log(whole) - logits[own])) / self.total
            gradient = gradient + w @ (reach[own] - mean) / self.total
            if hessian is not None:
                flat = reach.reshape(-1, len(slopes))
                hessian = hessian + (flat * (p * w[:, None]).reshape(-1, 1)).T @ flat / self.total
                hessian = hessian - (mean * w[:, None]).T @ mean / self.total
        return value, gradient, hessian


def quantiles(z: FloatArray, w: FloatArray, levels: FloatArray) -> FloatArray:
    """Weighted quantiles: the smallest score at which the share is reached, the same for weights and repeated rows."""
    order = np.argsort(z)
    share = np.cumsum(w[order])
    at = np.searchsorted(share, levels * share[-1] * (1 - 1e-12), side="left")
    return np.asarray(z[order][np.minimum(at, len(z) - 1)])
