"""Draws of recalibration maps from the posterior of :mod:`.laplace`, and their gaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.types import FloatArray, IntArray
from ..sums.logistic_fit import expit, softplus_and_expit
from .laplace import Posterior, Prior, RankCells, log_mean_evidence, precisions, quadratic, weights
from .norm import LARGE_NORM, mean_power

#: Number of rows from which the misfit of a drawn map is corrected by more than half.
_HALF_CORRECTED = 25.0
#: Share of all samples, on either side of a value, from which the misfit of a map at that value is estimated.
_BESIDE = 0.25
#: Share of draws in which the model's part of smooth terms has the amplitude of a component of the prior.
_AS_DRAWN = 0.5


class DrawnMaps(NamedTuple):
    """Draws from a posterior.

    Attributes
    ----------
    gap, share : ndarray of shape (…, n_draws, m)
        Gaps of the cells, and the shares of samples in them.
    missed : ndarray of shape (…, n_draws, m)
        Sums of outcomes minus the drawn map, relative to the sum of all samples, times ``n / (n + 25)``.
    log_odds : ndarray of shape (…)
        Log of the mean evidence of the components against perfect calibration.
    """

    gap: FloatArray
    share: FloatArray
    missed: FloatArray
    log_odds: FloatArray

    def every(self, step: int) -> DrawnMaps:
        """Every ``step``-th draw."""
        return self._replace(**{name: getattr(self, name)[..., ::step, :] for name in ("gap", "share", "missed")})

    def mean(self, value: FloatArray, slope: FloatArray) -> FloatArray:
        """Draws (…, n_draws) of the mean of a function of the gap, from its values and slopes at the drawn gaps.

        To first order, the mean for a map that is too smooth is biased by ``E[slope · (outcome - map)]``. This is
        corrected, so that means do not depend on the smoothness of the prior if rows are many. The result may be below
        the minimum of the function.
        """
        return np.asarray(
            np.einsum("...m,...m->...", self.share, value) + np.einsum("...m,...m->...", self.missed, slope)
        )

    def mean_power(self, norm: float) -> FloatArray:
        """Draws of the mean of ``|gap|^p``, (…, n_draws); for p > 32, of the error itself, without correction."""
        if norm > LARGE_NORM:
            return np.asarray(mean_power(self.gap, self.share, norm))
        size = np.abs(self.gap)
        slope = np.sign(self.gap) if norm == 1 else norm * np.sign(self.gap) * size ** (norm - 1)
        return self.mean(size if norm == 1 else size**norm, slope)

    def beside(self, values: FloatArray, at: FloatArray) -> FloatArray:
        """Weights of the samples of each cell (…, n_draws, m) by the distance of ``values`` to ``at`` (…, n_draws, 1).

        Quantiles and shares depend on the map where it takes one value, and too few outcomes lie there to estimate its
        misfit: in the order of the values, samples within a share :data:`_BESIDE` of all are given partial weight.
        """
        order = values.argsort(axis=-1)
        share = np.take_along_axis(self.share, order, axis=-1)
        place = np.where(values < at, self.share, 0.0).sum(axis=-1, keepdims=True)
        away = np.maximum(np.abs(share.cumsum(axis=-1) - share / 2 - place) - share / 2, 0.0)
        count = np.empty(share.shape)
        np.put_along_axis(count, order, np.maximum(1 - (away / _BESIDE) ** 2, 0.0), axis=-1)
        return count


def draw_gaps(
    cells: RankCells, prior: Prior, posteriors: list[Posterior], n_draws: int, rng: np.random.Generator, of: int = 1
) -> DrawnMaps:
    """Draw gaps and shares of the cells from the posterior; see :func:`draw_maps`.

    Shares are those of a Bayesian bootstrap of the samples, and so are the outcomes with which a map is compared.
    """
    gap, held, log_odds = draw_maps(cells, prior, posteriors, n_draws, rng, of)
    missed = held + cells.score[..., None, :]
    del held  # of many draws each is as large as what is kept
    # Rounded, whatever the order in which rows came: nearly none, or nearly one, would take other random numbers.
    sides = (np.round(v, 9).clip(0.0)[..., None, :] for v in (cells.positive, cells.count - cells.positive))
    ones, mass = (rng.standard_gamma(np.broadcast_to(v, gap.shape)) for v in sides)
    mass += ones
    missed *= mass
    np.subtract(ones, missed, out=missed)
    total = mass.sum(axis=-1, keepdims=True)
    missed *= (cells.size / (np.asarray(cells.size) + _HALF_CORRECTED))[..., None, None] / total
    mass /= total
    return DrawnMaps(gap, mass, missed, log_odds)


def draw_maps(
    cells: RankCells, prior: Prior, posteriors: list[Posterior], n_draws: int, rng: np.random.Generator, of: int = 1
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw gaps (…, n_draws, m) of the cells from the posterior; the same with shared group effects; log odds (…).

    Components are drawn in proportion to their evidence (by systematic sampling), maps from their normal distribution,
    and then resampled by importance, the ratio of the posterior to that distribution: with few samples of one outcome,
    a normal distribution of the log odds extends far beyond plausible values. The mean importance weight corrects the
    evidence. Problems side by side have independent noise. Each draw is selected from ``of`` maps, so that a few draws
    are each as good as many.
    """
    from scipy.linalg.lapack import dtrtrs

    leading, proposed = cells.count.shape[:-1], of * n_draws
    bounds = np.cumsum(weights(prior, posteriors), axis=-1)
    bounds[..., -1] = 1.0
    position = (np.arange(proposed) + rng.random((*leading, 1))) / proposed
    noise = rng.standard_normal((*leading, cells.terms + 1 + cells.apart.shape[-1], proposed))[..., cells.terms_used, :]
    theta = np.empty(noise.shape)
    log_weight = 0.5 * (noise**2).sum(axis=-2)
    first = np.zeros(leading, dtype=np.intp)
    for i, (component, posterior) in enumerate(zip(prior.components, posteriors, strict=True)):
        last = (position < bounds[..., i : i + 1]).sum(axis=-1)
        precision = precisions(cells.spread(prior, component), cells.moved)
        each = np.broadcast_to(precision, posterior.mode.shape)
        top = posterior.likelihood - 0.5 * quadratic(posterior.mode, precision)
        drawn = np.asarray(last > first)  # of many problems, few draw from one component
        for at in map(tuple, np.argwhere(drawn)):
            some = (*at, slice(None), slice(first[at], last[at]))
            # precision = C Cᵀ, so C⁻ᵀ of white noise has the covariance; of few draws no inverse is worth its cost.
            theta[some] = posterior.mode[at][:, None] + dtrtrs(posterior.lower[at].T, noise[some])[0]
            log_weight[(*at, some[-1])] -= top[at] + 0.5 * (each[at] @ theta[some] ** 2)
        first = last
    likelihood, chance = _log_likelihood(cells, theta)
    log_weight += likelihood
    stated = expit(cells.logit)[..., None, :]
    fitted = own = chance - stated
    if cells.moved is not None:  # what groups share is in the outcomes, but is no gap
        own = _log_likelihood(cells, _own(cells, prior, theta, cells.moved[..., None], rng))[1] - stated
    kept, log_mean = _resampled(log_weight, rng)
    kept = kept[..., :n_draws]
    gap = _rows(own, kept)
    held = gap if own is fitted else _rows(fitted, kept)
    return gap, held, log_mean_evidence(prior, posteriors) + log_mean


def _rows(values: FloatArray, numbers: IntArray) -> FloatArray:
    """Rows (…, d, m) of values (…, D, m), by index (…, d)."""
    first = values.shape[-2] * np.arange(numbers[..., 0].size).reshape(*numbers.shape[:-1], 1)
    return np.asarray(values.reshape(-1, values.shape[-1])[first + numbers])


def _own(cells: RankCells, prior: Prior, theta: FloatArray, moved: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The model's part of coefficients (…, P, D) that include group effects.

    Coefficients are sums of two normal variables. The variance of the first is that of a component drawn given the
    sum, or, in half of the draws, of the mixture of all: without rough gaps the amplitude of the fit is small, and an
    offset of the scores may be absent, or need not be small.
    """
    variances = np.stack([cells.spread(prior, c) for c in prior.components], axis=-2) ** 2  # (…, components, P)
    weight = np.array([c.weight for c in prior.components])
    few = slice(0, 0 if cells.shared is None else cells.shared.shape[-1])
    total = variances[..., few, None] + moved[..., None, few, :]  # (…, components, 3, 1)
    score = np.log(total) + theta[..., None, few, :] ** 2 / total
    score = np.log(weight)[:, None] - 0.5 * score.sum(axis=-2)
    chosen = (score + rng.gumbel(size=score.shape)).argmax(axis=-2)[..., None]
    drawn = np.take_along_axis(variances, chosen, axis=-2)
    either = rng.random(drawn.shape[:-1])[..., None] < _AS_DRAWN
    variance = np.swapaxes(np.where(either, drawn, (weight @ variances)[..., None, :]), -1, -2)
    share = variance / (variance + moved)
    return np.asarray(share * theta + np.sqrt(share * moved) * rng.standard_normal(theta.shape))


def _log_likelihood(cells: RankCells, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-likelihood (…, D) of coefficients (…, P, D), and the corresponding probabilities (…, D, m)."""
    eta = np.swapaxes(theta, -1, -2) @ np.swapaxes(cells.design, -1, -2)
    eta += cells.logit[..., None, :]
    growth, chance = softplus_and_expit(eta)
    value = eta @ cells.positive[..., None] - growth @ cells.count[..., None]
    return np.asarray(value[..., 0]), chance


def _resampled(log_weight: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Indices of the draws kept, in proportion to their weights and in random order, and the log of the mean weight."""
    n = log_weight.shape[-1]
    largest = log_weight.max(axis=-1, keepdims=True)
    total = np.cumsum(np.exp(log_weight - largest), axis=-1)
    mean = total[..., -1:] / n
    ends = np.ceil(total / mean - rng.random(mean.shape))
    ends[..., -1] = n
    times = np.diff(np.clip(ends, 0, n).astype(np.intp), axis=-1, prepend=0)
    kept = np.repeat(np.broadcast_to(np.arange(n), times.shape).reshape(-1), times.reshape(-1)).reshape(times.shape)
    return rng.permuted(kept, axis=-1), np.asarray((largest + np.log(mean))[..., 0])
