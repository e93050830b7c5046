"""Prior shift: probabilities under other base rates, and estimates of the base rates of unlabelled rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from ..data.checks import check_fraction, is_real, received
from ..data.types import AnyArray, FloatArray, IntArray
from .base import EPS, Calibrator
from .combined import Composed
from .inputs import CalibrationSample, Scores
from .linear import VectorObjective, VectorScaling
from .newton import minimise
from .temperature import mixture_weights, softmax

#: Number of rows of two classes above which rows of nearly equal log odds are merged, and the tolerance.
_MERGED, _STEP = 2000, 0.01
#: Cosines of the rank of a class's probability whose means the test of the mixture compares.
_COSINES = 4
#: Lower bound of base rates, so that their ratios are finite.
RAREST = 1e-300


def check_base_rates(name: str, value: Any, k: int) -> FloatArray:
    """Check base rates of k classes, (k,): numbers above 0 that sum to 1, or for two classes that of the second."""
    if k == 2 and is_real(value):
        second = check_fraction(name, value)
        value = (1 - second, second)
    try:
        rates = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        rates = np.empty(0)
    if rates.shape != (k,) or not (rates > RAREST).all() or abs(rates.sum() - 1) > 1e-6:
        of_two = "a number strictly between 0 and 1, or " if k == 2 else ""
        raise ValueError(f"{name} must be {of_two}{k} base rates above 0 that sum to 1; got {received(value)}")
    return rates


def shifted(p: FloatArray, old: FloatArray, new: FloatArray) -> FloatArray:
    """Probabilities (n, K) under new base rates instead of old ones."""
    out = np.asarray(p * (new / old))
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def prior_shift(classes: AnyArray, old: FloatArray, new: FloatArray) -> VectorScaling:
    """The change from old to new base rates as a calibrator: a vector scaling with slopes 1."""
    shift, ratio = VectorScaling(), np.log(new / old)
    shift.classes_, shift.n_features_in_, shift.order_, shift.prior_ = classes, len(new), None, old
    shift.coef_, shift.intercept_ = np.ones(len(new)), ratio - ratio.mean()
    shift.gradient_norm_, shift.n_iter_ = 0.0, 0
    return shift


def under_prior(fitted: Calibrator, old: FloatArray, new: FloatArray) -> Composed:
    """A fitted calibrator, followed by the change from old to new base rates."""
    inner, out = copy(fitted), Composed([clone(fitted), VectorScaling()])
    out.set_params(input=fitted.input, labels=fitted.labels)
    for name in ("classes_", "n_features_in_", "order_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(out, name, getattr(fitted, name))
    # The whole judges names and order of the columns.
    inner.order_ = None
    if hasattr(inner, "feature_names_in_"):
        del inner.feature_names_in_
    out.calibrators_, out.prior_ = [inner, prior_shift(fitted.classes_, old, new)], new
    return out


def at_base_rates(fitted: Calibrator, rates: Sequence[float], name: str) -> Composed:
    """A fitted calibrator under base rates in the order of the fitted columns, or under that of the second class."""
    k, order, old = len(fitted.classes_), fitted.order_, getattr(fitted, "prior_", None)
    if len(rates) == k and order is not None:
        rates = [rates[i] for i in order]
    new = check_base_rates(name, rates[0] if len(rates) == 1 else rates, k)
    if old is None or not old.all():
        raise ValueError(
            f"{name} needs a calibrator whose file contains the base rates of its rows, none of them 0: "
            "refit it with calibrant fix"
        )
    return under_prior(fitted, old, new)


@dataclass(frozen=True, eq=False)
class PriorRows:
    """Rows of a sample: logarithms of probabilities (n, K), weights, and codes of classes where these are known.

    ``groups`` are codes of groups of dependent rows; ``counted`` is whether weights stand for repeated rows.
    """

    z: FloatArray
    weights: FloatArray
    codes: AnyArray | None = None
    groups: IntArray | None = None
    counted: bool = True

    @classmethod
    def of(cls, p: FloatArray, weights: FloatArray | None = None, **about: Any) -> Self:
        """From probabilities."""
        z = np.log(np.maximum(np.asarray(p, dtype=np.float64), EPS))
        return cls(z, np.ones(len(z)) if weights is None else weights, **about)

    def merged(self) -> Self:
        """Merge rows of two classes with nearly the same log odds, and add their weights, if there are many."""
        if self.z.shape[1] != 2 or len(self.z) <= _MERGED or self.groups is not None or not self.counted:
            return self
        odds = self.z[:, 1] - self.z[:, 0]
        cell = np.round(odds / _STEP).astype(np.int64) * 2 + (0 if self.codes is None else self.codes)
        cells, at = np.unique(cell, return_inverse=True)
        weights = np.asarray(np.bincount(at, self.weights), dtype=np.float64)
        odds = np.bincount(at, self.weights * odds) / weights
        z = -np.logaddexp(0, np.column_stack([odds, -odds]))
        return type(self)(z, weights, None if self.codes is None else cells % 2)

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """Weights of a Bayesian bootstrap: exponential draws per row, or per group."""
        if self.groups is not None:
            return np.asarray(self.weights * rng.exponential(size=int(self.groups.max()) + 1)[self.groups])
        if self.counted:
            return np.asarray(rng.gamma(self.weights))
        return np.asarray(self.weights * rng.exponential(size=len(self.weights)))


class BiasCorrectedTemperature:
    """Mean log-loss of ``softmax(t z + b)``, one slope and an intercept per class: vector scaling with equal slopes."""

    def __init__(self, z: FloatArray, codes: AnyArray, weights: FloatArray) -> None:
        k = z.shape[1]
        sample = CalibrationSample(Scores(z, "logit"), codes, weights, tuple(range(k)))
        self._vector = VectorObjective(z, sample, 0.0, None, free=True)
        self._to_vector = np.zeros((2 * k, 1 + k))
        self._to_vector[:k, 0], self._to_vector[k:, 1:] = 1, np.eye(k)

    def __call__(self, theta: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        """Value, gradient and, if requested, Hessian."""
        to = self._to_vector
        value, gradient, hessian = self._vector(to @ theta, curved)
        return value, to.T @ gradient, None if hessian is None else to.T @ hessian @ to

    @classmethod
    def solve(cls, z: FloatArray, codes: AnyArray, weights: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Non-negative slope, and intercepts with sum 0, (1 + K,), that minimise the log-loss."""
        k = z.shape[1]
        start = np.concatenate([[1.0], np.zeros(k)]) if start is None else start
        theta = minimise(cls(z, codes, weights), start, np.concatenate([[0.0], np.full(k, -np.inf)])).x
        return np.concatenate([theta[:1], theta[1:] - theta[1:].mean()])


#: From calibrated probabilities of labelled rows, their codes and weights, and those of new rows with their weights.
PriorAlgorithm = Callable[[FloatArray, AnyArray, FloatArray, FloatArray, FloatArray], FloatArray]


def likeliest_prior(p: FloatArray, old: FloatArray, weights: FloatArray) -> FloatArray:
    """Maximum-likelihood base rates (K,), for p calibrated under old ones: the limit of EM."""
    return mixture_weights(p / old, weights)[0]


def _em(p: FloatArray, codes: AnyArray, w: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    return likeliest_prior(q, w @ p, v)


def _bbse(p: FloatArray, codes: AnyArray, w: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Solve the joint confusion matrix of predicted and true classes for the ratio of base rates."""
    k = p.shape[1]
    confusion = np.zeros((k, k))
    np.add.at(confusion, (p.argmax(axis=1), codes), w)
    if not confusion.any(axis=1).all() or np.linalg.cond(confusion) > 1 / EPS:
        raise ValueError(
            "algorithm='bbse' needs a reference in which every class is predicted and no two classes are predicted in "
            "the same proportions: use algorithm='em'"
        )
    ratio = np.linalg.solve(confusion, np.bincount(q.argmax(axis=1), v, minlength=k))
    prior = np.maximum(ratio, 0) * confusion.sum(axis=0)
    return np.asarray(prior / prior.sum())


def _pacc(p: FloatArray, codes: AnyArray, w: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Match mixed class means of probabilities to means of new rows, with probabilities under the base rates of EM."""
    k, old = p.shape[1], w @ p
    near = likeliest_prior(q, old, v)
    means = np.zeros((k, k))
    np.add.at(means, codes, w[:, None] * shifted(p, old, near))
    means /= np.bincount(codes, w, minlength=k)[:, None]
    prior = np.maximum(np.linalg.lstsq(means.T, v @ shifted(q, old, near), rcond=None)[0], 0)
    return np.asarray(prior / prior.sum())


ALGORITHMS: dict[str, PriorAlgorithm] = {"em": _em, "bbse": _bbse, "pacc": _pacc}


class PriorDraws(NamedTuple):
    """Base rates (K,), draws of them (R, K), and two p-values.

    ``mixture``: the new scores are a mixture of those of the reference's classes. ``consistent``: the base rates agree
    with those of an algorithm that does not need calibrated probabilities.
    """

    value: FloatArray
    draws: FloatArray
    mixture: float
    consistent: float


def draw_priors(
    reference: PriorRows, new: PriorRows, algorithm: str, n_resamples: int, rng: np.random.Generator
) -> PriorDraws:
    """Estimate the base rates of new rows, and again with both samples resampled.

    Under prior shift, the mean of any function of the scores over new rows is a mixture of its means in the reference's
    classes, weighted by the base rates. The test compares these for cosines of ranks.
    """
    reference, new = reference.merged(), new.merged()
    f, g = _cosines(reference, new)
    codes: Any = reference.codes

    def once(w: FloatArray, v: FloatArray, start: FloatArray | None) -> tuple[FloatArray, ...]:
        w, v = w / w.sum(), v / v.sum()
        theta = BiasCorrectedTemperature.solve(reference.z, codes, w, start)
        p, q = (softmax(theta[0] * one.z + theta[1:]) for one in (reference, new))
        prior, matched = (ALGORITHMS[name](p, codes, w, q, v) for name in (algorithm, "pacc"))
        mixed = w * (matched / np.bincount(codes, w, minlength=len(prior)))[codes]
        return prior, v @ g - mixed @ f, prior - matched, theta

    first = once(reference.weights, new.weights, None)
    drawn = [once(reference.drawn(rng), new.drawn(rng), first[-1])[:-1] for _ in range(n_resamples)]
    draws, offs, apart = map(np.array, zip(*drawn, strict=True))
    # Jeffreys' half a row per class: where no row is of a class, that is not certain of all rows to come.
    half = rng.gamma(0.5, size=draws.shape)
    rows = new.weights.sum() if new.groups is None else new.groups.max() + 1
    draws = (rows * draws + half) / (rows + half.sum(axis=1, keepdims=True))
    return PriorDraws(first[0], draws, _pvalue(first[1], offs), _pvalue(first[2], apart))


def _pvalue(observed: FloatArray, draws: FloatArray) -> float:
    """P-value of zero means: their sum of squares in units of the draws' spread, against that of centred draws."""
    spread = draws.std(axis=0)
    spread[spread == 0] = np.inf
    statistic, null = ((((v / spread) ** 2).sum(axis=-1)) for v in (observed, draws - observed))
    return float((1 + (null >= statistic * (1 - 1e-12)).sum()) / (1 + len(draws)))


def _cosines(reference: PriorRows, new: PriorRows) -> tuple[FloatArray, FloatArray]:
    """Cosines of the rank of each class's probability in both samples together: (n, features) for each."""
    shares = np.concatenate([one.weights / one.weights.sum() / 2 for one in (reference, new)])
    out = []
    for z in np.concatenate([reference.z, new.z]).T[1 if reference.z.shape[1] == 2 else 0 :]:
        _, at = np.unique(z, return_inverse=True)
        share = np.bincount(at, shares)
        rank = (np.cumsum(share) - share / 2)[at]
        out.append(np.cos(np.pi * rank[:, None] * np.arange(1, _COSINES + 1)))
    both = np.concatenate(out, axis=1)
    return both[: len(reference.z)], both[len(reference.z) :]
