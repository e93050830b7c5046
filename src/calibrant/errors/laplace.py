"""Bayesian logistic recalibration on rank cells, for one sample or for many at once: the model of `EmpiricalBayes`.

With the score's logit ``l`` and its rank ``u`` in (0, 1), the model is

    logit P(o = 1 | s) = l + θ_0 + Σ_k θ_k cos(kπu) + θ_z (l - mean l) / sd l + θ_low [s = low] + θ_high [s = high]

with normal θ of mean 0, so its prior mean is perfect calibration, and the amplitude τ of most of them says how far from
it a model usually is. For each component of the prior (a τ and a shape) the posterior is approximated by a normal law
at its mode (Laplace), and the components are averaged by their evidence. All arrays may have leading axes: one fit, or
thousands.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._types import ConvergenceWarning, FloatArray

#: Rank cells a coefficient.
_CELLS_A_TERM = 4
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-3
#: Largest change of a logit in one step: beyond, the quadratic approximation of the likelihood means little.
_LARGEST_STEP = 2.0


def n_terms(n: float) -> int:
    """Cosines for a sample of size n: ``2 n^(1/4) + 2``, so that the model can follow any curve in the end."""
    return int(np.ceil(2 * max(n, 1.0) ** 0.25)) + 2


def n_cells(n: float) -> int:
    """Rank cells for a sample of size n."""
    return _CELLS_A_TERM * n_terms(n)


class Component(NamedTuple):
    """A normal law of the prior: sd ``amplitude (1 + k)^(-decay)`` of θ_k, and its prior probability."""

    amplitude: float
    decay: float
    weight: float


@dataclass(frozen=True)
class Prior:
    """Prior of the recalibration map: a mixture of normal laws.

    Parameters
    ----------
    components : sequence of (amplitude, decay, weight)
        Amplitudes τ > 0; decays, of which small ones are rough maps; weights > 0, which are scaled to sum to 1.
    intercept, slope : float
        Prior sd of θ_0 and of θ_z in units of τ, > 0.
    ends : float
        Prior sd of what is added to the logit at the two end scores, whatever τ, > 0.
    """

    components: tuple[Component, ...]
    intercept: float = 0.25
    slope: float = 0.5
    ends: float = 4.0

    def __post_init__(self) -> None:
        try:
            given = [Component(*(float(v) for v in c)) for c in self.components]
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"components must be triples (amplitude, decay, weight); got {self.components!r}"
            ) from error
        finite = all(np.isfinite(v) for c in given for v in c)
        if not given or not finite or not all(c.amplitude > 0 and c.weight > 0 for c in given):
            raise ValueError(f"components must have finite decays, amplitudes and weights above 0; got {given!r}")
        for name, value in (("intercept", self.intercept), ("slope", self.slope), ("ends", self.ends)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number; got {value!r}")
        total = sum(c.weight for c in given)
        object.__setattr__(self, "components", tuple(c._replace(weight=c.weight / total) for c in given))

    def spread(self, component: Component, terms: int) -> FloatArray:
        """Prior sd of the coefficients: intercept, cosines, slope, ends."""
        cosines = (1.0 + np.arange(1, terms)) ** -component.decay
        smooth = component.amplitude * np.concatenate([[self.intercept], cosines, [self.slope]])
        return np.concatenate([smooth, [self.ends] * 2])


@dataclass(frozen=True, eq=False)
class RankCells:
    """Samples grouped by rank; empty cells count 0.

    Attributes
    ----------
    count, positive, score, rank : ndarray of shape (…, m)
        Samples, positives, mean score and mean rank.
    ends : ndarray of shape (…, m, 2)
        Share of the cell's samples at the lowest and at the highest score there can be. A model that says exactly 0
        or 1 to many samples is wrong about them in a way that says nothing about the scores beside them.
    size : float
    """

    count: FloatArray
    positive: FloatArray
    score: FloatArray
    rank: FloatArray
    ends: FloatArray
    size: float

    @cached_property
    def logit(self) -> FloatArray:
        """Logit of the mean score, drawn ``1 / (2n + 4)`` towards the middle: n samples cannot tell 0 from less."""
        e = 0.5 / (self.size + 2)
        p = e + (1 - 2 * e) * self.score
        return np.asarray(np.log(p) - np.log1p(-p))

    @cached_property
    def design(self) -> FloatArray:
        """Basis functions at the cells, (…, m, P)."""
        terms = n_terms(self.size)
        cosines = np.cos(np.pi * self.rank[..., None] * np.arange(terms))
        share = self.count / self.count.sum(axis=-1, keepdims=True)
        centred = self.logit - (share * self.logit).sum(axis=-1, keepdims=True)
        sd = np.sqrt((share * centred**2).sum(axis=-1, keepdims=True))
        slope = np.divide(centred, sd, out=np.zeros_like(centred), where=sd > 1e-9)
        return np.concatenate([cosines, slope[..., None], self.ends], axis=-1)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Normal approximation of one component, (…) leading axes.

    Attributes
    ----------
    mode : ndarray of shape (…, P)
    root : ndarray of shape (…, P, P)
        R with ``R Rᵀ`` = posterior covariance of θ.
    log_evidence : ndarray of shape (…)
        Against perfect calibration.
    """

    mode: FloatArray
    root: FloatArray
    log_evidence: FloatArray


def fit(cells: RankCells, prior: Prior) -> list[Posterior]:
    """Posterior of every component, each started at the mode of the one before."""
    terms = n_terms(cells.size)
    mode = np.zeros((*cells.count.shape[:-1], terms + 3))
    out: list[Posterior] = []
    for component in prior.components:
        out.append(_laplace(cells, prior.spread(component, terms) ** -2.0, mode))
        mode = out[-1].mode
    return out


def _laplace(cells: RankCells, precision: FloatArray, start: FloatArray) -> Posterior:
    """Mode by Newton's method with bounded steps, and the curvature there.

    Steps that lower the posterior are halved. The objective is strictly concave, so this converges from anywhere.
    """
    from scipy.special import expit

    design, logit, count, positive = cells.design, cells.logit, cells.count, cells.positive
    transposed = np.swapaxes(design, -1, -2)
    prior = np.diag(precision)
    filled = count > 0

    def objective(theta: FloatArray, eta: FloatArray) -> FloatArray:
        likelihood = (positive * eta - count * np.logaddexp(0, eta)).sum(axis=-1)
        return np.asarray(likelihood - 0.5 * (precision * theta**2).sum(axis=-1))

    theta = start
    eta = logit + (design @ theta[..., None])[..., 0]
    value = objective(theta, eta)
    for _ in range(_MAX_ITERATIONS):
        chance = expit(eta)
        gradient = (transposed @ (positive - count * chance)[..., None])[..., 0] - precision * theta
        weight = count * chance * (1 - chance)
        hessian = transposed @ (design * weight[..., None]) + prior
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        move = (design @ step[..., None])[..., 0]
        largest = np.abs(np.where(filled, move, 0.0)).max(axis=-1)
        if largest.max(initial=0.0) < _TOLERANCE:
            theta = theta + step  # the next one would be of the order of its square
            value = objective(theta, eta + move)
            break
        scale = np.minimum(1.0, _LARGEST_STEP / np.maximum(largest, _TOLERANCE))
        for _ in range(40):
            new_eta = eta + scale[..., None] * move
            new = objective(theta + scale[..., None] * step, new_eta)
            worse = new < value - 1e-9 * (1 + np.abs(value))
            if not worse.any():
                break
            scale = np.where(worse, scale / 2, scale)
        theta, eta, value = theta + scale[..., None] * step, new_eta, new
    else:
        warnings.warn(
            f"the recalibration map did not converge in {_MAX_ITERATIONS} steps (last change of a logit "
            f"{largest.max():.2g}); its error may be slightly off",
            ConvergenceWarning,
            stacklevel=2,
        )
    # hessian = C Cᵀ, so the covariance is C⁻ᵀ C⁻¹.
    lower = np.linalg.cholesky(hessian)
    root = np.swapaxes(np.linalg.inv(lower), -1, -2)
    log_determinant = 2 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
    calibrated = (positive * logit - count * np.logaddexp(0, logit)).sum(axis=-1)
    evidence = value - calibrated + 0.5 * (np.log(precision).sum() - log_determinant)
    return Posterior(theta, root, np.asarray(evidence))


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
    from scipy.special import expit

    eta = cells.logit + (cells.design @ posterior.mode[..., None])[..., 0]
    chance = expit(eta)
    sd = np.sqrt(((cells.design @ posterior.root) ** 2).sum(axis=-1))
    # Without a deviation the model says the score itself, not the score drawn towards the middle.
    mean = chance - expit(cells.logit)
    return np.asarray(mean), np.asarray(chance * (1 - chance) * sd)


def draw_gaps(
    cells: RankCells, prior: Prior, posteriors: list[Posterior], n_draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw gaps and shares of the cells from the posterior, each (…, n_draws, m).

    Components are drawn in proportion to their posterior probabilities (systematically: each gets its share of the
    draws), maps from their normal law, and the shares of the cells from a Bayesian bootstrap of the samples.
    """
    from scipy.special import expit

    leading = cells.count.shape[:-1]
    bounds = np.cumsum(weights(prior, posteriors), axis=-1)
    bounds[..., -1] = 1.0
    position = (np.arange(n_draws) + rng.random()) / n_draws
    noise = rng.standard_normal((cells.design.shape[-1], n_draws))
    gap = np.zeros((*leading, n_draws, cells.count.shape[-1]))
    calibrated = expit(cells.logit)[..., None, :]
    below = np.zeros((*leading, 1))
    for i, posterior in enumerate(posteriors):
        above = bounds[..., i : i + 1]
        chosen = (position >= below) & (position < above)
        if chosen.any():
            theta = posterior.mode[..., None] + posterior.root @ noise
            eta = cells.logit[..., None, :] + np.swapaxes(cells.design @ theta, -1, -2)
            gap = np.where(chosen[..., None], expit(eta) - calibrated, gap)
        below = above
    mass = rng.standard_gamma(np.broadcast_to(cells.count[..., None, :], gap.shape))
    return gap, np.asarray(mass / mass.sum(axis=-1, keepdims=True))
