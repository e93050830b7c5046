"""Maps fitted by logistic likelihood, with normal posteriors: Platt scaling, beta calibration and a quadratic map."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_bool, check_choice, check_level
from ..data.fields import Field, Number, Numbers
from ..data.types import FloatArray
from ..sums.logistic_fit import BELOW_ONE, expit
from .base import (
    EPS,
    PROBABILITIES,
    STEPS,
    BinaryCalibrator,
    Later,
    check_eps,
    check_shrinkage,
    needs_fitted,
    parameter,
)
from .inputs import CalibrationSample, Scores, read_scores
from .newton import MANY, Objective, Solution, minimise_over_rows, sigmoid_objective
from .score_sums import Streamed

#: Least information, and the constant added to correlations: without information the interval is all of [0, 1].
_NOTHING, _SINGULAR = 1e-100, 1e-12
#: Spread, relative to the largest score, that counts as rounding.
_ROUNDING = 8 * np.finfo(np.float64).eps


def covariance_field(size: str) -> Later:
    """Type of ``covariance_``."""
    return Later(Numbers((size, size)))


@dataclass(eq=False, repr=False)
class LaplaceMap(Streamed, BinaryCalibrator):
    r"""A map ``σ(v · β)`` of the design vector v of a score, with a normal posterior of β around the fit.

    Subclasses define ``_design(scores)``, the columns (n, p), and ``_coefficients()``, (p,).

    Parameters
    ----------
    shrinkage : float or "auto", default "auto"
        Weight of the prior, as a number m ≥ 0 of rows. They are spread over the n rows given, and their outcomes are
        the probabilities p that the scores represent (for margins, the share of the class). Targets become ``(n o + m
        p) / (n + m)``: a weak pull towards unchanged scores, which keeps the fit finite where scores separate the
        classes, and vanishes as n grows. 0 gives maximum likelihood exactly, or a :class:`ConvergenceWarning` if there
        is no maximum. ``"auto"``: 8 rows, or half a row for margins.
    """

    _: KW_ONLY
    shrinkage: float | str = parameter("auto", check_shrinkage)
    eps: float = parameter(EPS, check_eps)

    @abstractmethod
    def _design(self, scores: Scores) -> FloatArray:
        """Columns that the coefficients multiply."""

    @abstractmethod
    def _coefficients(self) -> FloatArray:
        """Coefficients of the columns."""

    def _map(self, scores: Scores) -> FloatArray:
        return scores.kept_inside(expit(self._design(scores) @ self._coefficients()), self.eps)

    def _measure(
        self,
        sample: CalibrationSample,
        *,
        free: FloatArray | None = None,
        penalty: FloatArray | None = None,
        shrinkage: float | str | None = None,
    ) -> None:
        """Set ``covariance_``, for coefficients ``free @ θ`` and a normal prior with precision ``penalty``.

        The rows of the weak prior (``shrinkage``, by default the calibrator's) are added to the others; relative
        weights count as their effective number.
        """
        columns, w = self._design(sample.scores), sample.weights
        p = expit(columns @ self._coefficients())
        rows = sample.effective_rows(self.shrinkage if shrinkage is None else shrinkage)
        mass = rows * (w / w.sum()) * p * (1 - p)
        free = np.eye(columns.shape[1]) if free is None else free
        columns = columns @ free  # before the products: a sum of squares is no negative rounding error
        inner = (columns * mass[:, None]).T @ columns + _NOTHING * np.eye(free.shape[1])
        if penalty is not None:
            inner = inner + free.T @ penalty @ free
        scale = np.sqrt(np.diag(inner))
        scales = np.outer(scale, scale)
        inverse = np.linalg.inv(inner / scales + _SINGULAR * np.eye(len(scale))) / scales
        self.covariance_ = np.asarray(free @ inverse @ free.T)

    @needs_fitted("covariance_")
    def predict_interval(self, scores: Any, level: float = 0.95) -> FloatArray:
        """Compute a central interval for the map at each row, (n, 2): probabilities of the second class.

        The posterior of the coefficients is approximated as normal around the fit, by the information there (Laplace's
        approximation). It gives the uncertainty within this family of maps, and does not account for true maps outside
        it (``benchmarks/coverage/map_intervals.md``). Not available for calibrators saved by earlier versions.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores, of the kind given by ``input``.
        level : float in (0, 1), default 0.95
            Level of the interval.
        """
        check_is_fitted(self)
        width = float(ndtri(0.5 + check_level(level) / 2))
        columns = self._design(read_scores(self, scores, self.input))
        middle = columns @ self._coefficients()
        variance = np.einsum("ij,jk,ik->i", columns, np.asarray(self.covariance_), columns)
        half = width * np.sqrt(np.maximum(variance, 0.0))
        return expit(np.column_stack([middle - half, middle + half]))


@dataclass(eq=False, repr=False)
class PlattScaling(LaplaceMap):
    r"""Logistic map of the score: :math:`P(1 \mid s) = \sigma(a s + b)`.

    Probabilities enter as log odds, so that a = 1, b = 0 is the identity; logits and margins enter unchanged. The fit
    minimises the (convex) log-loss by Newton's method, or uses class means and a common variance.

    Parameters
    ----------
    smoothing : bool, default True
        Use Platt's targets ``(n₁ + 1) / (n₁ + 2)`` and ``1 / (n₀ + 2)`` instead of 1 and 0, where n₁ and n₀ are the
        weights of the classes: the fit is then finite even if scores separate the classes.
    solver : {"maximum-likelihood", "closed-form"}, default "maximum-likelihood"
        ``"closed-form"``: Bayes' rule for scores (log odds of probabilities) that are normal in each class, with means
        m₁ and m₀ and a common variance v, the mean squared deviation from the class mean:

        .. math:: a = \frac{m_1 - m_0}{v}, \qquad b = \log\frac{n_1}{n_0} - a\,\frac{m_1 + m_0}{2}

        This is linear discriminant analysis of one feature, exactly so with ``smoothing=False``; with smoothing a row
        counts for both classes, according to its target. On such scores both solvers converge to the same map, and
        this one has less variance (Efron 1975); on others it is biased for any number of rows. It is finite if scores
        separate the classes, and gives the base rate if all scores are equal. It has no prior.

    Attributes
    ----------
    coef_, intercept_ : float
        The slope a and the intercept b.
    covariance_ : ndarray of shape (2, 2)
        Covariance of a and b, from the information at the fit; used by ``predict_interval``.
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient of the mean log-loss where the fit ended, and number of iterations (0 for the
        closed form).

    Raises
    ------
    ValueError
        If the closed form without smoothing is fitted to only one class, or to scores that differ only between the
        classes (v is 0).

    See Also
    --------
    calibrant.calibrators.BetaCalibration : A map for scores in [0, 1] with up to three parameters.
    calibrant.TemperatureScaling : The slope only, for any number of classes.
    calibrant.calibrators.IsotonicCalibrator : Any increasing map.

    Notes
    -----
    Fits shifts and changes of slope of the log odds, including a reversal (a < 0), but not asymmetric or wavy maps; it
    can make a calibrated model worse: see :class:`BetaCalibration`. Cost: O(n) per step, with about six steps, or one
    for the closed form.

    References
    ----------
    Platt (1999), *Probabilistic outputs for support vector machines*; Silva Filho et al. (2023), §5, and §2.2 on the
    closed form; Efron (1975), *The efficiency of logistic regression compared to normal discriminant analysis*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < 1 / (1 + np.sqrt(1 / p - 1))  # log odds halved
    >>> round(PlattScaling().fit(p, y).coef_, 1)
    0.5
    """

    _: KW_ONLY
    smoothing: bool = parameter(True, check_bool)
    solver: str = parameter("maximum-likelihood", partial(check_choice, allowed=("maximum-likelihood", "closed-form")))

    _state: ClassVar[Mapping[str, Field]] = {
        "coef_": Number(),
        "intercept_": Number(),
        "covariance_": covariance_field("2"),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        z, o, w = sample.scores.log_odds(self.eps), sample.outcomes(), sample.weights
        targets = o
        if self.smoothing:
            up, down = float(w @ o), float(w @ (1 - o))
            targets = np.where(o == 1, (up + 1) / (up + 2), 1 / (down + 2))
        centre, scale = standard(z, w)
        columns = np.column_stack([(z - centre) / scale, np.ones_like(z)])
        if self.solver == "closed-form":
            found = _of_normal_scores(columns, targets, w, _ROUNDING * float(np.abs(z).max()) / scale)
        else:
            found = fit_logistic(columns, sample.shrunk(targets, self.shrinkage, self.eps), w)
        slope, level = self._keep(found, warn=self.solver != "closed-form")
        self.coef_, self.intercept_ = float(slope / scale), float(level - slope * centre / scale)
        self._measure(sample, shrinkage=0 if self.solver == "closed-form" else None)

    def _design(self, scores: Scores) -> FloatArray:
        z = scores.log_odds(self.eps)
        return np.column_stack([z, np.ones_like(z)])

    def _coefficients(self) -> FloatArray:
        return np.array([self.coef_, self.intercept_])


@dataclass(eq=False, repr=False)
class BetaCalibration(LaplaceMap):
    r"""Beta calibration: :math:`\operatorname{logit} P(1 \mid s) = a \log s - b \log(1 - s) + c`, a, b ≥ 0.

    Exact by Bayes' rule if the scores of each class are Beta distributed. With ``c = b log(1 - m) - a log m``, the map
    passes through ½ at m. Logits and margins are treated as log odds.

    Parameters
    ----------
    parameters : {"abm", "am", "ab", "a"}, default "abm"
        Free parameters: ``"am"`` sets b = a (Platt scaling of log odds, with a ≥ 0), ``"ab"`` sets m = ½, ``"a"`` both.

    Attributes
    ----------
    a_, b_, c_ : float
        Coefficients of the map.
    m_ : float
        The score that is mapped to ½; NaN if there is none.
    covariance_ : ndarray of shape (3, 3)
        Covariance of a, b and c, from the information at the fit.
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient of the mean log-loss where the fit ended, among parameters not at a bound, and
        number of iterations.

    See Also
    --------
    calibrant.calibrators.PlattScaling : The case a = b.
    calibrant.calibrators.QuadraticLogit : A map that need not be increasing.
    calibrant.calibrators.DirichletCalibration : An extension to more than two classes.

    Notes
    -----
    Fits the identity, sigmoid, inverse-sigmoid and asymmetric maps. The constraints make it monotone; the convex
    constrained problem is solved by Newton's method. Cost: O(n) per step.

    References
    ----------
    Kull, Silva Filho & Flach (2017), *Beyond sigmoids: beta calibration*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import BetaCalibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> fitted = BetaCalibration().fit(p, rng.random(20_000) < p)  # calibrated: the identity
    >>> bool(abs(fitted.a_ - 1) < 0.1 and abs(fitted.b_ - 1) < 0.1 and abs(fitted.c_) < 0.1)
    True
    """

    parameters: str = parameter("abm", partial(check_choice, allowed=("abm", "am", "ab", "a")))

    _state: ClassVar[Mapping[str, Field]] = {
        "a_": Number(),
        "b_": Number(),
        "c_": Number(),
        "m_": Number(*PROBABILITIES, nan=True),
        "covariance_": covariance_field("3"),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        up, down = self._columns(sample.scores)
        o, w = sample.shrunk(sample.outcomes(), self.shrinkage, self.eps), sample.weights
        same, free = self.parameters in ("am", "a"), self.parameters in ("abm", "am")
        if not free:  # c = (a - b) log 2 for m = 1/2
            up, down = up + np.log(2), down + np.log(2)
        # Logit = a·up - b·down + c with up = log s, down = log(1 - s).
        shapes = [up - down] if same else [up, -down]
        columns = np.column_stack([*shapes, np.ones_like(o)] if free else shapes)
        start = np.array([1.0] * len(shapes) + [0.0] * free)
        lower = np.array([0.0] * len(shapes) + [-np.inf] * free)
        x = self._keep(fit_logistic(columns, o, w, start, lower))
        self.a_, self.b_ = float(x[0]), float(x[len(shapes) - 1])
        self.c_ = float(x[-1]) if free else float((self.a_ - self.b_) * np.log(2))
        self.m_ = _crossing(self.a_, self.b_, self.c_)
        one, half = np.eye(3), np.log(2)
        ties = {
            "abm": one,
            "am": np.column_stack([one[0] + one[1], one[2]]),
            "ab": np.array([[1, 0], [0, 1], [half, -half]]),
            "a": np.array([[1.0], [1.0], [0.0]]),
        }
        self._measure(sample, free=ties[self.parameters])

    def _design(self, scores: Scores) -> FloatArray:
        up, down = self._columns(scores)
        return np.column_stack([up, -down, np.ones_like(up)])

    def _coefficients(self) -> FloatArray:
        return np.array([self.a_, self.b_, self.c_])

    def _columns(self, scores: Scores) -> tuple[FloatArray, FloatArray]:
        """``log s`` and ``log(1 - s)``, computed without clipping if log odds are given."""
        v = scores.values
        if scores.kind != "probability":
            z = scores.log_odds(self.eps)
            return -np.logaddexp(0, -z), -np.logaddexp(0, z)
        p = np.clip(v.astype(np.float64), self.eps, min(1 - self.eps, BELOW_ONE))
        return (np.log(p), np.log1p(-p)) if p.ndim == 1 else (np.log(p[:, 1]), np.log(p[:, 0]))


class QuadraticLogit(LaplaceMap):
    r"""Quadratic map of the log odds: :math:`\operatorname{logit} P(1 \mid s) = a + b z + c z^2`, z = logit s.

    Attributes
    ----------
    coef_ : ndarray of shape (2,)
        The coefficients b and c.
    intercept_ : float
        The constant a.
    covariance_ : ndarray of shape (3, 3)
        Covariance of a, b and c, from the information at the fit.
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient of the mean log-loss where the fit ended, and number of iterations.

    See Also
    --------
    calibrant.calibrators.PlattScaling : The case c = 0.
    calibrant.calibrators.SplineCalibrator : A flexible increasing map.

    Notes
    -----
    Exact by Bayes' rule if the log odds are normal in each class, with different variances. The map changes direction
    at ``z = -b / 2c``, so it is not monotone. Cost: O(n) per step.

    References
    ----------
    Silva Filho et al. (2023), §5, on the binormal family; Cox (1958) for the linear part.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import QuadraticLogit
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> QuadraticLogit().fit(p, rng.random(5000) < p).predict_proba([0.5]).round(1).tolist()
    [[0.5, 0.5]]
    """

    _state: ClassVar[Mapping[str, Field]] = {
        "coef_": Numbers(("2",)),
        "intercept_": Number(),
        "covariance_": covariance_field("3"),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        z, w = sample.scores.log_odds(self.eps), sample.weights
        o = sample.shrunk(sample.outcomes(), self.shrinkage, self.eps)
        centre, scale = standard(z, w)
        u = (z - centre) / scale
        a, b, c = self._keep(fit_logistic(np.column_stack([np.ones_like(u), u, u**2]), o, w))
        # From u back to z.
        self.coef_ = np.array([b / scale - 2 * c * centre / scale**2, c / scale**2])
        self.intercept_ = float(a - b * centre / scale + c * (centre / scale) ** 2)
        self._measure(sample)

    def _design(self, scores: Scores) -> FloatArray:
        z = scores.log_odds(self.eps)
        return np.column_stack([np.ones_like(z), z, z**2])

    def _coefficients(self) -> FloatArray:
        return np.array([self.intercept_, *self.coef_])


def fit_logistic(
    columns: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    start: FloatArray | None = None,
    lower: FloatArray | None = None,
    *,
    penalty: FloatArray | None = None,
    many: int = MANY,
) -> Solution:
    """Coefficients of columns that minimise the penalised mean log-loss."""

    def objective(rows: slice) -> Objective:
        return sigmoid_objective(columns[rows], targets[rows], weights[rows], penalty=penalty)

    start = np.zeros(columns.shape[1]) if start is None else start
    return minimise_over_rows(objective, len(targets), start, lower, many)


def _of_normal_scores(columns: FloatArray, targets: FloatArray, weights: FloatArray, rounding: float) -> Solution:
    """Slope and intercept by Bayes' rule for normal scores of equal variance; a spread of ``rounding`` counts as 0."""
    u = columns[:, 0]
    own = weights * np.stack([1 - targets, targets])
    sizes = own.sum(axis=1)
    if not sizes.all():
        raise ValueError("solver='closed-form' needs rows of both classes, or smoothing=True; one class has no rows")
    means = own @ u / sizes
    variance = float((own * (u - means[:, None]) ** 2).sum() / sizes.sum())
    gap = float(means[1] - means[0])
    if np.sqrt(variance) > rounding:
        slope = gap / variance
    elif abs(gap) <= rounding:  # all scores are equal
        slope = 0.0
    else:
        raise ValueError(
            "solver='closed-form' needs scores that differ within a class, or smoothing=True; these differ only "
            "between the classes, so the slope is infinite"
        )
    x = np.array([slope, np.log(sizes[1] / sizes[0]) - slope * means.mean()])
    value, gradient, _ = sigmoid_objective(columns, targets, weights)(x, False)
    return Solution(x, value, float(np.abs(gradient).max()), n_iter=0, converged=True)


def standard(z: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Weighted mean and standard deviation (1 for scores that are constant up to rounding)."""
    total = float(weights.sum())
    centre = float(weights @ z) / total
    spread = float(np.sqrt(weights @ (z - centre) ** 2 / total))
    return centre, spread if spread > _ROUNDING * float(np.abs(z).max(initial=0.0)) else 1.0


def _crossing(a: float, b: float, c: float) -> float:
    """The score at which the logit is 0, found on the log-odds scale."""
    from scipy.optimize import brentq

    if a + b <= 0:
        return float("nan")
    low, high = -700.0, 700.0

    def at(z: float) -> float:
        return float(-a * np.logaddexp(0, -z) + b * np.logaddexp(0, z) + c)

    if at(low) > 0 or at(high) < 0:
        return float("nan")
    return float(expit(np.asarray(brentq(at, low, high, xtol=1e-13))))
