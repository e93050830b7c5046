"""Bayesian logistic recalibration on rank cells, for one sample or for many at once: the model of `EmpiricalBayes`.

With the score's logit ``l`` and its rank ``u`` in (0, 1), the model is

    logit P(o = 1 | s) = l + θ_0 + Σ_k θ_k cos(kπu) + θ_z (l - c mean l) / sd l + Σ_a θ_a [s = a]

where a are the two end scores and other heavy scores (those of many rows, with few rows at the adjacent scores), and c
is 1 for up to 300 rows, then 300 / n: for few rows the slope pivots about the mean logit, for many about 0, like a
temperature,

with normal θ of mean 0, so that the prior mean is perfect calibration and the amplitude τ of most coefficients gives
the typical size of deviations. For each component of the prior (a τ and a shape) the posterior is approximated by a
normal distribution at its mode (Laplace), and the components are averaged by their evidence. All arrays may have
leading axes: one fit, or thousands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..data.checks import check_number, received
from ..data.types import AnyArray, FloatArray, IntArray
from ..sums.logistic_fit import Counts, Point, bounded_maximum, expit

#: Scores with their own coefficient: the two ends, and two others.
ENDS = 2
APART = ENDS + 2
#: Largest number of ranges of scores with their own coefficient, and its prior sd: see :mod:`.ranges`.
RANGES, RANGE_SD = 6, 1.0
#: Share of the rows at an end of the domain from which it counts as heavy.
_HEAVY_END = 0.05
#: Rank cells per coefficient.
CELLS_A_TERM = 4
#: Cosines up to which their number grows fast.
_MANY_TERMS = 32
#: Sample size beyond which the model no longer grows.
LARGEST_SIZE = 1e7
#: Least expected number of outcomes of either kind, since a kind that is not expected may still occur.
_LEAST_EXPECTED = 1e-3
#: Prior sd of coefficients of a calibrated model, practically 0.
_NOTHING = 1e-6
#: Cosines computed directly; the others are obtained from products.
_COSINES = 9
#: Rows up to which the slope pivots about the mean logit; with more rows it pivots closer to 0, in proportion. A
#: temperature pivots about 0, which far from a score of ½ acts as an offset: rare, but many rows can detect it.
_TURNED_AT_MEAN = 300.0
#: Largest change of a logit in one step, beyond which the quadratic approximation of the likelihood is poor.
_LARGEST_STEP = 2.0
#: Bounds of the parameters of a prior, which keep powers of twice as many cosines and inverse squares finite.
_LEAST, _MOST = 1e-6, 100.0


def n_terms(n: float) -> int:
    """Number of cosines for a sample of size n: ``2 n^(1/3)`` up to 32, and ``2 n^(1/4) + 2`` if that is more.

    The model can thus follow any relevant curve: those of support vector machines are narrow.
    The number stops growing at 10⁷: cost depends on rows, not on the size of their weights.
    """
    size = min(max(n, 1.0), LARGEST_SIZE)
    return int(np.ceil(max(min(2 * np.cbrt(size), _MANY_TERMS), 2 * size**0.25 + 2)))


class Component(NamedTuple):
    """Component of a prior: a normal distribution with sd ``amplitude (1 + k)^(-decay)`` of θ_k.

    Attributes
    ----------
    amplitude : float
        The amplitude τ.
    decay : float
        Rate of decrease of the sd with k; small decays give rough maps.
    weight : float
        Prior probability of the component.
    intercept, slope : float or None
        Sd of θ_0 and θ_z in units of the amplitude; None uses those of the prior.

    See Also
    --------
    calibrant.estimators.Prior : The mixture.

    Examples
    --------
    >>> from calibrant.estimators import Component
    >>> Component(0.4, 1.5, 1.0).amplitude
    0.4
    """

    amplitude: float
    decay: float
    weight: float
    intercept: float | None = None
    slope: float | None = None


@dataclass(frozen=True)
class Prior:
    """Prior of the recalibration map: a mixture of normal distributions.

    Parameters
    ----------
    components : sequence of (amplitude, decay, weight) or (amplitude, decay, weight, intercept, slope)
        Amplitudes τ > 0; decays, where small ones give rough maps; weights > 0, which are scaled to sum to 1.
    intercept : float, default 0.25
        Prior sd of θ_0 in units of τ, > 0, for components without their own.
    slope : float, default 0.5
        Prior sd of θ_z in units of τ, > 0, for components without their own.
    ends : float, default 4
        Prior sd of the logit offsets at the two end scores and at other heavy scores, independent of τ, > 0.

    See Also
    --------
    calibrant.EmpiricalBayes : The estimator that uses it.
    calibrant.estimators.Component : One distribution of the mixture.

    Examples
    --------
    >>> import calibrant as cal
    >>> prior = cal.estimators.Prior([(0.1, 1.0, 0.5), (1.0, 1.5, 0.5)])
    >>> [component.weight for component in prior.components]
    [0.5, 0.5]
    """

    components: tuple[Component, ...]
    intercept: float = 0.25
    slope: float = 0.5
    ends: float = 4.0

    def __post_init__(self) -> None:
        try:
            given = [Component(*_numbers(c)) for c in self.components]
        except (TypeError, ValueError) as error:
            raise TypeError(
                "components must be (amplitude, decay, weight) or (amplitude, decay, weight, intercept, slope); got "
                f"{received(self.components)}"
            ) from error
        finite = all(abs(v) <= _MOST for c in given for v in c if v is not None)
        if not given or not finite or not all(v >= _LEAST for c in given for v in (*c[:1], *c[2:]) if v is not None):
            raise ValueError(
                f"components must have decays of at most {_MOST:g}, and other numbers between {_LEAST:g} and {_MOST:g}"
                f"; got {received(given)}"
            )
        for name in ("intercept", "slope", "ends"):
            check_number(name, getattr(self, name), least=_LEAST, most=_MOST)
        total = sum(c.weight for c in given)
        object.__setattr__(self, "components", tuple(c._replace(weight=c.weight / total) for c in given))

    def spread(self, component: Component, terms: int) -> FloatArray:
        """Prior sd of the coefficients: intercept, cosines, slope, heavy scores, ranges."""
        cosines = (1.0 + np.arange(1, terms)) ** -component.decay
        intercept = self.intercept if component.intercept is None else component.intercept
        slope = self.slope if component.slope is None else component.slope
        smooth = component.amplitude * np.concatenate([[intercept], cosines, [slope]])
        return np.concatenate([smooth, [self.ends] * APART, [RANGE_SD] * RANGES])


def _numbers(component: Iterable[Any]) -> list[Any]:
    """Fields of a component as floats; None is kept."""
    return [v if v is None else float(v) for v in component]


@dataclass(frozen=True, eq=False)
class RankCells:
    """Samples in cells of ranks; empty cells have count 0.

    Attributes
    ----------
    count, positive, score, rank : ndarray of shape (…, m)
        Samples, positives, mean score and mean rank.
    apart : ndarray of shape (…, m, 4)
        Share of the cell's samples at the lowest and at the highest possible score, and at two other heavy scores. The
        errors of a model that gives exactly 0 or 1 (or another single score) to many samples carry no information
        about adjacent scores.
    size : float, or ndarray of shape (…)
        Sample sizes; those of problems side by side give the same number of cells.
    shared : ndarray of shape (…, 3) or None
        For rows in groups: excess variance of sums with the first cosines due to effects shared within groups, in
        units of the variance for ``size`` independent rows.
    cosines : int or None
        Number of cosines of the model, if not given by the sizes (:func:`n_terms`).
    """

    count: FloatArray
    positive: FloatArray
    score: FloatArray
    rank: FloatArray
    apart: FloatArray
    size: Any
    shared: FloatArray | None = None
    cosines: int | None = None

    def of(self, some: slice | IntArray) -> RankCells:
        """Cells of some of many samples, with cached values; the model keeps its coefficients."""
        model = {"apart_used": self.apart_used, "terms_used": self.terms_used}
        known = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        part = replace(self)
        vars(part).update({name: value[some] for name, value in known.items() if name not in model} | model)
        return part

    @property
    def terms(self) -> int:
        """Number of cosines of the model."""
        return self.cosines or n_terms(float(np.max(self.size)))

    @cached_property
    def logit(self) -> FloatArray:
        """Logit of the mean score, shrunk by ``1 / (2n + 4)`` to the middle, as n samples do not resolve less.

        If less than one outcome of a kind is expected, shrinkage is reduced in proportion, so that one class among
        thousands is not moved away from its scores.
        """
        n = np.asarray(self.size)[..., None]
        total = np.maximum(self.count.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        mean = (self.count * self.score).sum(axis=-1, keepdims=True) / total
        low, high = (0.5 / (n + 2) * np.clip(n * m, _LEAST_EXPECTED, 1.0) for m in (mean, 1 - mean))
        p = low + (1 - low - high) * self.score
        return np.asarray(np.log(p) - np.log1p(-p))

    @cached_property
    def waves(self) -> FloatArray:
        """``cos(jπu)`` at the cells, j = 0 … 2(K - 1), (…, m, 2K - 1): products of two cosines are sums of two."""
        out = np.empty((*self.rank.shape, 2 * self.terms - 1))
        known = min(_COSINES, out.shape[-1])
        np.cos(np.pi * self.rank[..., None] * np.arange(known), out=out[..., :known])
        while known < out.shape[-1]:  # cos (m + j) = 2 cos m cos j - cos (m - j), of the last known m
            new = min(2 * known - 1, out.shape[-1]) - known
            np.multiply(2 * out[..., known - 1 : known], out[..., 1 : new + 1], out=out[..., known : known + new])
            out[..., known : known + new] -= out[..., known - 2 :: -1][..., :new]
            known += new
        return out

    @cached_property
    def others(self) -> FloatArray:
        """Basis functions other than the cosines, at the cells, (…, m, 1 to 5): the slope, and heavy scores."""
        share = self.count / self.count.sum(axis=-1, keepdims=True)
        mean = (share * self.logit).sum(axis=-1, keepdims=True)
        sd = np.sqrt((share * (self.logit - mean) ** 2).sum(axis=-1, keepdims=True))
        turned = self.logit - mean * np.minimum(1.0, _TURNED_AT_MEAN / np.asarray(self.size)[..., None])
        slope = np.divide(turned, sd, out=np.zeros_like(turned), where=sd > 1e-9)
        return np.concatenate([slope[..., None], self.apart[..., self.apart_used]], axis=-1)

    def spread(self, prior: Prior, component: Component) -> FloatArray:
        """Prior sd of the coefficients that are fitted, (…, P)."""
        used = prior.spread(component, self.terms)[self.terms_used]
        return np.broadcast_to(used, (*self.count.shape[:-1], used.size))

    @cached_property
    def moved(self) -> FloatArray | None:
        """Variance added to the coefficients by groups of rows, (…, P); None if rows are independent."""
        if self.shared is None:
            return None
        chance, few = expit(self.logit), self.shared.shape[-1]
        mass = (self.count * chance * (1 - chance))[..., None]
        out = np.zeros((*self.count.shape[:-1], self.terms_used.size))
        out[..., :few] = self.shared / np.maximum((mass * self.waves[..., :few] ** 2).sum(axis=-2), _LEAST_EXPECTED)
        return out

    @cached_property
    def apart_used(self) -> IntArray:
        """Indices of the heavy scores with samples; the data carry no information about the others."""
        return np.flatnonzero(self.apart.reshape(-1, self.apart.shape[-1]).any(axis=0))

    @property
    def has_heavy_score(self) -> AnyArray:
        """Which problems (R,) have a heavy score inside the domain, or many rows at an end of it."""
        share = np.einsum("rm,rma->ra", self.count, self.apart) / np.maximum(self.count.sum(axis=-1), 1.0)[:, None]
        return np.asarray((share[:, ENDS:] > 0).any(axis=-1) | (share[:, :ENDS] >= _HEAVY_END).any(axis=-1))

    @cached_property
    def terms_used(self) -> IntArray:
        """Which of the model's K + 5 coefficients are fitted, shape (P,)."""
        smooth = self.terms + 1
        return np.concatenate([np.arange(smooth), smooth + self.apart_used])

    @cached_property
    def design(self) -> FloatArray:
        """Basis functions at the cells, (…, m, P)."""
        return np.concatenate([self.waves[..., : self.terms], self.others], axis=-1)


@dataclass(frozen=True, eq=False)
class CosineCounts(Counts):
    """Counts with cosines as first columns, whose products are sums: ``waves`` (R, m, 2K - 1), and the others."""

    waves: FloatArray
    others: FloatArray

    def information(self, chance: FloatArray) -> FloatArray:
        """``Σ mass g (1 - g) x xᵀ`` of the columns x, (R, P, P): O(m P) for the cosines."""
        weight = self.mass * chance * (1 - chance)
        terms = self.waves.shape[-1] // 2 + 1
        moment = (weight[:, None, :] @ self.waves)[:, 0]
        moment *= 0.5
        both = np.concatenate([moment[:, :0:-1], moment], axis=1)  # j = -2(K-1) … 2(K-1)
        out = np.empty((len(weight), *[self.columns.shape[1]] * 2))
        # Entry (k, l) of the sums is j = k + l, and of the differences j = l - k: windows of the same numbers.
        sums, differences = _windows(moment, terms, 0, 1), _windows(both, terms, 2 * terms - 2, -1)
        np.add(sums, differences, out=out[:, :terms, :terms])
        border = (self.others.swapaxes(-1, -2) * weight[:, None]) @ self.columns.swapaxes(-1, -2)
        out[:, terms:] = border
        out[:, :terms, terms:] = border[..., :terms].swapaxes(-1, -2)
        return out


def _windows(values: FloatArray, terms: int, first: int, direction: int) -> FloatArray:
    """View (R, K, K) of contiguous rows: entry (k, l) has index ``first + direction · k + l``."""
    row, step = values.strides
    shape, strides = (len(values), terms, terms), (row, direction * step, step)
    return np.ndarray(shape, np.float64, buffer=values, offset=first * step, strides=strides)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Normal approximation of one component, (…) leading axes.

    Attributes
    ----------
    mode : ndarray of shape (…, P)
    precision : ndarray of shape (…, P, P)
        Curvature at the mode: the inverse of the covariance of θ.
    lower : ndarray of shape (…, P, P)
        Its Cholesky factor.
    log_evidence : ndarray of shape (…)
        Log evidence against perfect calibration.
    likelihood : ndarray of shape (…)
        Log-likelihood at the mode.
    """

    mode: FloatArray
    precision: FloatArray
    lower: FloatArray
    log_evidence: FloatArray
    likelihood: FloatArray

    def of(self, some: slice | IntArray) -> Posterior:
        """Posterior of some of many samples."""
        return Posterior(*(getattr(self, f.name)[some] for f in fields(self)))

    def root(self) -> FloatArray:
        """R with ``R Rᵀ`` = posterior covariance, (…, P, P)."""
        # precision = C Cᵀ, so the covariance is C⁻ᵀ C⁻¹.
        return np.swapaxes(np.linalg.inv(self.lower), -1, -2)


def fit(cells: RankCells, prior: Prior) -> list[Posterior]:
    """Posterior of every component, each fit started at the mode of the previous one."""
    shape, size = cells.count.shape[:-1], cells.terms_used.size
    design, waves, others = (a.reshape(-1, *a.shape[-2:]) for a in (cells.design, cells.waves, cells.others))
    count, positive, logit = (a.reshape(-1, a.shape[-1]) for a in (cells.count, cells.positive, cells.logit))
    counts = CosineCounts(design.swapaxes(-1, -2), count, positive, waves, others)
    mode = calibrated = Point.at(np.zeros((len(count), size)), logit, counts)
    out: list[Posterior] = []
    moved = None if cells.moved is None else cells.moved.reshape(-1, size)

    def fitted(spread: FloatArray, start: Point) -> tuple[Point, tuple[FloatArray, FloatArray], FloatArray]:
        precision = precisions(spread, moved)
        mode = bounded_maximum(counts, precision, start, _LARGEST_STEP)
        curvature = mode.information + precision[..., None] * np.eye(size)
        lower = np.linalg.cholesky(curvature)
        log_determinant = 2 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
        gain = mode.likelihood - 0.5 * quadratic(mode.theta, precision) - calibrated.likelihood
        return mode, (curvature, lower), gain + 0.5 * (np.log(precision).sum(axis=-1) - log_determinant)

    # Effects of groups are there in a calibrated model too: they are not evidence against it.
    null = 0.0 if moved is None else fitted(np.full(size, _NOTHING), mode)[2]
    for component in prior.components:
        mode, curvatures, evidence = fitted(cells.spread(prior, component).reshape(-1, size), mode)
        evidence = evidence - null
        precision, lower = (values.reshape(*shape, size, size) for values in curvatures)
        found = mode.theta.reshape(*shape, size), precision, lower
        out.append(Posterior(*found, evidence.reshape(shape), mode.likelihood.reshape(shape)))
    return out


def _scores(prior: Prior, posteriors: list[Posterior]) -> FloatArray:
    """Log evidence plus log prior probability, (…, components)."""
    evidence = np.stack([p.log_evidence for p in posteriors], axis=-1)
    return np.asarray(evidence + np.log([c.weight for c in prior.components]))


def weights(prior: Prior, posteriors: list[Posterior]) -> FloatArray:
    """Posterior probabilities of the components, (…, components)."""
    total = _scores(prior, posteriors)
    out = np.exp(total - total.max(axis=-1, keepdims=True))
    return np.asarray(out / out.sum(axis=-1, keepdims=True))


def log_mean_evidence(prior: Prior, posteriors: list[Posterior]) -> FloatArray:
    """Log of the mean evidence of the components against perfect calibration, (…)."""
    return np.asarray(np.logaddexp.reduce(_scores(prior, posteriors), axis=-1))


def gaps(cells: RankCells, posterior: Posterior) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the gap ``P(o = 1) - s`` at every cell (delta method), each (…, m)."""
    eta = cells.logit + (cells.design @ posterior.mode[..., None])[..., 0]
    chance = expit(eta)
    # Without a deviation the model says the score itself, not the score drawn towards the middle.
    mean = chance - expit(cells.logit)
    return np.asarray(mean), np.asarray(chance * (1 - chance) * np.sqrt(_variance(cells, posterior)))


def _variance(cells: RankCells, posterior: Posterior) -> FloatArray:
    """Posterior variance of the logit at every cell, (…, m)."""
    covariance = np.linalg.inv(posterior.precision)
    terms = cells.terms
    # cos k · cos l is half of cos (k + l) and half of cos (k - l): the variance is itself a sum of 2K - 1 cosines.
    square = covariance[..., :terms, :terms]
    wave = square.reshape(*square.shape[:-2], -1) @ _products(terms)
    across = covariance[..., terms:, :].copy()
    across[..., :terms] *= 2
    out = (cells.waves @ wave[..., None])[..., 0]
    for i in range(cells.others.shape[-1]):
        out += cells.others[..., i] * (cells.design @ across[..., i, :, None])[..., 0]
    return np.asarray(np.maximum(out, 0.0))


@lru_cache(maxsize=64)
def _products(terms: int) -> FloatArray:
    """Coefficients of ``cos kx · cos lx`` in ``cos jx``, (K², 2K - 1)."""
    out = np.zeros((terms, terms, 2 * terms - 1))
    i, j = np.indices((terms, terms))
    np.add.at(out, (i, j, i + j), 0.5)
    np.add.at(out, (i, j, np.abs(i - j)), 0.5)
    return out.reshape(terms * terms, -1)


def precisions(spread: FloatArray, moved: FloatArray | None) -> FloatArray:
    """Inverse of the variances (…, P) of coefficients, from their prior sd and the variance added by groups."""
    return np.asarray(spread**-2.0 if moved is None else 1 / (spread**2 + moved))


def quadratic(theta: FloatArray, precision: FloatArray) -> FloatArray:
    """``Σ precision · θ²`` over the last axis, with one precision for all or one each."""
    squares = theta * theta
    return np.asarray(squares @ precision if precision.ndim == 1 else (squares * precision).sum(axis=-1))
