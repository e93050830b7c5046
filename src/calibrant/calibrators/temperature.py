"""Identity, smoothing of scores of exactly 0 and 1, temperature scaling and its mixtures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import special

from ..data.checks import check_positive
from ..data.fields import Field, Number, Numbers
from ..data.types import FloatArray
from .base import EPS, PROBABILITIES, STEPS, Calibrator, check_eps, check_shrinkage, parameter
from .inputs import CalibrationSample, Scores
from .newton import Solution, minimise, part_of
from .score_sums import Streamed

#: Numbers processed at a time.
_TILE = 1 << 17
#: Inverse temperatures at which sums are stored, and the index of the one that is 1.
_INVERSE, _AS_IT_IS = np.concatenate([[0.0, 1e-3, 5e-3], np.geomspace(0.02, 50, 97), [200.0, 1e3]]), 51
#: Inverse temperatures below this indicate nearly uninformative scores.
_MEANINGFUL = 0.01


def _no_margins(sample: CalibrationSample) -> None:
    if sample.scores.kind == "margin":
        raise ValueError("margins are not probabilities and cannot be left unchanged: use PlattScaling(input='margin')")


class Identity(Calibrator):
    """Return probabilities unchanged, and the softmax of logits; margins are not supported.

    See Also
    --------
    calibrant.calibrators.select_calibrator : Compares other calibrators with it.
    calibrant.calibrators.PlattScaling : Maps margins to probabilities.

    Notes
    -----
    Cost O(n K).

    Examples
    --------
    >>> from calibrant.calibrators import Identity
    >>> Identity().fit([0.2, 0.7], [0, 1]).predict_proba([0.7]).round(3).tolist()
    [[0.3, 0.7]]
    """

    def _check_scores(self, sample: CalibrationSample) -> None:
        _no_margins(sample)

    def _fit(self, sample: CalibrationSample) -> None:
        """Do nothing: there is nothing to fit."""

    def _probabilities(self, scores: Scores) -> FloatArray:
        return scores.probabilities()


@dataclass(eq=False, repr=False)
class EndSmoothing(Calibrator):
    r"""Replace scores of exactly 0 and 1 by observed frequencies; leave other scores unchanged.

    A probability of 0 for class k is replaced, up to normalisation, by

    .. math:: e_k = \min\left(\frac{w_k + a}{n_k + 1},\, s\right)

    where :math:`n_k` is the number of rows in which class k has probability 0, :math:`w_k` the number of these whose
    class is k, and s the smallest probability above 0, which preserves the order of scores. Forests, nearest neighbours
    and hard votes give probabilities of 0 that are never exactly true: one error makes the log-loss infinite.

    Parameters
    ----------
    prior_errors : float > 0, default 0.00003
        The number a of errors added to those observed. If none was observed, the default has no measurable cost when
        none occurs later, and reduces the cost of the first one by a third.

    Attributes
    ----------
    ends_ : ndarray of shape (K,)
        The value that replaces a probability of 0, per class.

    See Also
    --------
    calibrant.AutoCalibrator : Uses it in place of unchanged scores if some are exactly 0 or 1.
    calibrant.calibrators.LabelSmoothing : Fits another calibrator to smoothed labels.

    Notes
    -----
    Probabilities of at most ``eps`` count as 0. The default was chosen on one half of real models
    (``benchmarks/arena/ends.md``). Cost O(n K).

    References
    ----------
    Krichevsky & Trofimov (1981), *The performance of universal encoding*, with a = ½.

    Examples
    --------
    >>> from calibrant.calibrators import EndSmoothing
    >>> fitted = EndSmoothing().fit([0.0, 0.0, 0.0, 0.2, 1.0], [0, 1, 0, 0, 1])
    >>> fitted.predict_proba([0.0, 0.2, 1.0])[:, 1].round(3).tolist()  # of three zeros one was wrong
    [0.167, 0.2, 1.0]
    """

    _: KW_ONLY
    prior_errors: float = parameter(3e-5, check_positive)
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {"ends_": Numbers(("K",), *PROBABILITIES)}

    def _check_scores(self, sample: CalibrationSample) -> None:
        _no_margins(sample)

    def _fit(self, sample: CalibrationSample) -> None:
        p, w = sample.scores.probabilities(), sample.weights
        zero = p <= self.eps
        wrong = np.bincount(sample.codes, w * zero[np.arange(len(w)), sample.codes], sample.n_classes)
        self.ends_ = np.minimum((wrong + self.prior_errors) / (w @ zero + 1), p[~zero].min(initial=1.0))

    def _probabilities(self, scores: Scores) -> FloatArray:
        p = scores.probabilities()
        moved = np.where(p <= self.eps, self.ends_, 0.0)
        found = p + moved
        some = moved.any(axis=1)
        found[some] /= found[some].sum(axis=1, keepdims=True)  # other rows remain as they are
        return np.asarray(found)


@dataclass(eq=False, repr=False)
class TemperatureScaling(Streamed, Calibrator):
    r"""Temperature scaling: :math:`\operatorname{softmax}(z / T)`, with one temperature for all classes.

    The logits z of probabilities are their logarithms. float32 scores are processed in float32.

    Parameters
    ----------
    shrinkage : float or "auto", default "auto"
        Weight of the prior, as a number m ≥ 0 of rows whose class probabilities equal the scores. 0 is temperature
        scaling as published. ``"auto"``: as in :class:`calibrant.calibrators.PlattScaling`.

    Attributes
    ----------
    temperature_ : float
        T: above 1 for an over-confident model; inf if scores are unrelated or inversely related to labels.
    gradient_norm_ : float
        ``|d mean log-loss / d (1/T)|`` where the fit ended.
    n_iter_ : int
        Number of iterations.

    See Also
    --------
    calibrant.calibrators.EnsembleTemperatureScaling : A mixture with the unchanged scores.
    calibrant.calibrators.VectorScaling : A slope and an intercept per class.
    calibrant.torch.TemperatureScaler : The same as a torch module.

    Notes
    -----
    Never changes the predicted class; corrects over- or under-confidence common to all classes, but not differences
    between them. The log-loss is convex in 1/T and minimised by Newton's method, in about six steps of cost O(n K).
    There is no ``predict_interval``: the uncertainty of T does not account for true maps outside this family.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), *On calibration of modern neural networks*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import TemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 4))
    >>> p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    >>> y = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> round(TemperatureScaling(input="logit").fit(2 * z, y).temperature_, 1)  # twice too sharp
    2.0
    """

    _: KW_ONLY
    shrinkage: float | str = parameter("auto", check_shrinkage)
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {
        "temperature_": Number(0, infinite=True),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        beta = self._keep(temperature_of(sample, self.eps, self.shrinkage))
        self.temperature_ = 1 / float(beta[0]) if beta[0] > 0 else float("inf")

    def _sums_of(self, sample: CalibrationSample) -> Any:
        return super()._sums_of(sample) if sample.n_classes == 2 else _TemperatureSums.of(sample, self.eps)

    def _fit_sums(self, sums: Any, classes: tuple[Any, ...]) -> None:
        if not isinstance(sums, _TemperatureSums):
            super()._fit_sums(sums, classes)
            return
        self.classes_, self._sums = np.asarray(classes), sums
        mass = sums.values[-len(classes) :]
        self.prior_ = mass / mass.sum()
        beta = float(self._keep(sums.solved(classes, self.shrinkage))[0])
        self.temperature_ = 1 / beta if beta > 0 else float("inf")

    def _probabilities(self, scores: Scores) -> FloatArray:
        return scores.kept_inside(softmax(scores.logs(self.eps).astype(np.float64) / self.temperature_), self.eps)


@dataclass(frozen=True, eq=False)
class _TemperatureSums:
    """Sums over rows that give the log-loss at any temperature, exactly at 102 inverse temperatures.

    ``values``: slope and curvature at each of them; per class, weighted logits minus the largest; weight per class.
    """

    values: FloatArray
    own: float
    kind: str

    @classmethod
    def of(cls, sample: CalibrationSample, eps: float) -> _TemperatureSums:
        """Sums of rows."""
        k, w = sample.n_classes, sample.weights
        sums = np.zeros((2, len(_INVERSE)))
        moments, own = np.zeros(k), 0.0
        for rows, d in _tiles(sample.scores.logs(eps)):
            moments += d @ w[rows]
            own += float(w[rows] @ d[sample.codes[rows], np.arange(d.shape[1])])
            for j, beta in enumerate(_INVERSE):
                e = np.exp(beta * d)
                e /= e.sum(axis=0)
                first = (e * d).sum(axis=0)
                sums[:, j] += w[rows] @ first, w[rows] @ ((e * d**2).sum(axis=0) - first**2)
        values = np.concatenate([*sums, moments, np.bincount(sample.codes, w, k)])
        return cls(values, own, sample.scores.kind)

    def __add__(self, other: _TemperatureSums) -> _TemperatureSums:
        return replace(self, values=self.values + other.values, own=self.own + other.own)

    def faded(self, decay: float) -> _TemperatureSums:
        """The sums with all weights multiplied by ``decay``."""
        return replace(self, values=decay * self.values, own=decay * self.own)

    def solved(self, classes: tuple[Any, ...], shrinkage: float | str) -> Solution:
        """The inverse temperature."""
        from scipy.interpolate import CubicHermiteSpline
        from scipy.optimize import brentq

        m, k = len(_INVERSE), len(classes)
        slope, curve, moments, counts = np.split(self.values, np.cumsum([m, m, k]))
        n = float(counts.sum())
        # Rows that stand for all: a class each.
        every = CalibrationSample(Scores(np.zeros((k, k)), self.kind), np.arange(k), counts, classes)
        likely = float(every.class_shares() @ moments) if self.kind == "margin" else float(slope[_AS_IT_IS])
        gap = (slope - self.own - every.prior_share(shrinkage) * (likely - self.own)) / n
        at = int(np.searchsorted(gap, 0.0))
        if at in (0, m):
            end = max(at - 1, 0)
            return Solution(_INVERSE[[end]], 0.0 if at else 1.0, max(float(-gap[end]), 0.0), 1, at == 0)
        around = slice(at - 1, at + 1)
        through = CubicHermiteSpline(_INVERSE[around], gap[around], curve[around] / n)
        beta = float(brentq(through, *_INVERSE[around], xtol=1e-14))
        return Solution(np.array([beta]), 1.0, abs(float(through(beta))), 1, True)


@dataclass(eq=False, repr=False)
class EnsembleTemperatureScaling(Calibrator):
    r"""Ensemble temperature scaling: a mixture of temperature scaling, the unchanged scores and equal probabilities.

    .. math:: w_1 \operatorname{softmax}(z / T) + w_2 \operatorname{softmax}(z) + w_3 / K

    Parameters
    ----------
    shrinkage : float or "auto", default "auto"
        Weight of the temperature's prior, as a number m ≥ 0 of rows (see :class:`TemperatureScaling`); the weights of
        the mixture have no prior.

    Attributes
    ----------
    temperature_ : float
        The temperature, fitted by temperature scaling as published, before the weights.
    weights_ : ndarray of shape (3,)
        Non-negative weights of the mixture, with sum 1, that minimise the log-loss given the temperature.
    gradient_norm_ : float
        Largest violation of the optimality conditions.
    n_iter_ : int
        Number of iterations.

    See Also
    --------
    calibrant.TemperatureScaling : The first component only.
    calibrant.calibrators.Mixture : A mixture of any calibrators.

    Notes
    -----
    Never changes the predicted class. The weight w₃ models confident errors at a constant rate. The log-loss is convex
    in the weights, and minimised by Newton's method with bounds. Cost: that of temperature scaling, and O(n) per step.

    References
    ----------
    Zhang, Kailkhura & Han (2020), *Mix-n-Match*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import EnsembleTemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 3000)
    >>> y = (rng.random((3000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bool(abs(EnsembleTemperatureScaling().fit(p, y).weights_.sum() - 1) < 1e-9)
    True
    """

    _: KW_ONLY
    shrinkage: float | str = parameter("auto", check_shrinkage)
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {
        "temperature_": Number(0, infinite=True),
        "weights_": Numbers(("3",), *PROBABILITIES, total=1),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        z, w = sample.scores.logs(self.eps).astype(np.float64), sample.weights
        beta = self._keep(temperature_of(sample, self.eps, self.shrinkage))
        self.temperature_ = 1 / float(beta[0]) if beta[0] > 0 else float("inf")
        own = (np.arange(len(w)), sample.codes)
        seen = np.column_stack([softmax(z / self.temperature_)[own], softmax(z)[own], np.full(len(w), 1 / z.shape[1])])
        self.weights_, self.gradient_norm_, self.n_iter_ = mixture_weights(seen, w)

    def _probabilities(self, scores: Scores) -> FloatArray:
        z = scores.logs(self.eps).astype(np.float64)
        a, b, c = self.weights_
        p = np.asarray(a * softmax(z / self.temperature_) + b * softmax(z) + c / z.shape[1])
        return scores.kept_inside(p, self.eps)


def softmax(z: FloatArray) -> FloatArray:
    """Softmax of each row."""
    return np.asarray(special.softmax(z, axis=1))


def own_logits(z: FloatArray, sample: CalibrationSample, shrinkage: float | str) -> FloatArray:
    """Logit of each row's observed class minus its largest logit, averaged with the prior's expectation of it."""
    share = sample.prior_share(shrinkage)
    out = np.empty(len(z))
    for rows, d in _tiles(z):
        own = d[sample.codes[rows], np.arange(d.shape[1])]
        if share > 0:
            likely = sample.class_shares()[:, None] if sample.scores.kind == "margin" else special.softmax(d, axis=0)
            own = own + share * ((likely * d).sum(axis=0) - own)
        out[rows] = own
    return out


def temperature_of(sample: CalibrationSample, eps: float, shrinkage: float | str) -> Solution:
    """The inverse temperature of a sample, cached for all calibrators that need it."""
    key = ("temperature", eps, shrinkage)
    if key not in sample.found:
        z = sample.scores.logs(eps)
        sample.found[key] = fit_temperature(z, own_logits(z, sample, shrinkage), sample.weights)
    found: Solution = sample.found[key]
    return found


def fit_temperature(z: FloatArray, own: FloatArray, weights: FloatArray) -> Solution:
    """The inverse temperature that minimises the mean log-loss; 0 if uniform predictions are at least as good."""
    loss = _TemperatureLoss(z, own, weights)
    part = part_of(len(own))
    start = np.ones(1) if part is None else fit_temperature(z[part], own[part], weights[part]).x
    # Where a part of the rows says that scores mean something, all rows need not be asked.
    if part is None or start[0] < _MEANINGFUL:
        at_zero = loss(np.zeros(1), False)
        if at_zero[1][0] >= 0:
            return Solution(np.zeros(1), at_zero[0], 0.0, 0, True)
    return minimise(loss, np.maximum(start, 1e-3))


def _tiles(z: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Slices of rows, and their logits minus the largest of each row: float64, (K, rows) for fast sums over classes.

    In float32 the rounding error of the loss exceeds the gain of a step near the optimum: the search would not end.
    """
    step = max(1, _TILE // z.shape[1])
    for a in range(0, len(z), step):
        d = np.array(z[a : a + step].T, dtype=np.float64, order="C")
        d -= d.max(axis=0)
        yield slice(a, a + d.shape[1]), d


class _TemperatureLoss:
    """Mean log-loss of ``softmax(β z)`` and its derivatives in β, computed tile by tile."""

    def __init__(self, z: FloatArray, own: FloatArray, weights: FloatArray) -> None:
        self.z, self.own, self.weights = z, own, weights
        self.total = float(weights.sum())

    def __call__(self, beta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        b = float(beta[0])
        if b < 0:  # outside: a step that goes there is halved
            return np.inf, np.zeros(1), None
        value = slope = curve = 0.0
        for rows, d in _tiles(self.z):
            own, w = self.own[rows], self.weights[rows]
            e = d * b
            np.exp(e, out=e)
            whole = e.sum(axis=0)
            e *= d
            first = e.sum(axis=0) / whole
            value += float(w @ (np.log(whole) - b * own))
            slope += float(w @ (first - own))
            if curved:
                e *= d
                curve += float(w @ (e.sum(axis=0) / whole - first**2))
        n = self.total
        return value / n, np.array([slope / n]), np.array([[max(curve, 0.0) / n]]) if curved else None


def mixture_weights(seen: FloatArray, weights: FloatArray) -> tuple[FloatArray, float, int]:
    """Non-negative weights with sum 1 that minimise ``-mean log(seen @ u)``; violation of optimality, number of steps.

    With the sum of the weights added to the objective, its minimum over all non-negative weights has sum 1: the bounds
    are the only constraints, and Newton's method with bounds solves the problem.
    """
    total = float(weights.sum())

    def objective(u: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        mixed = seen @ u
        if mixed.min() <= 0:
            return np.inf, np.zeros(len(u)), None
        ratio = seen / mixed[:, None]
        value = float(u.sum()) - float(weights @ np.log(mixed)) / total
        hessian = (ratio * weights[:, None]).T @ ratio / total if curved else None
        return value, 1 - weights @ ratio / total, hessian

    k = seen.shape[1]
    found = minimise(objective, np.full(k, 1 / k), np.zeros(k))
    return found.x / found.x.sum(), found.gradient_norm, found.n_iter
