"""Intervals of the clinical measures: of ratios and intercepts from rows, of distances from draws of the map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..data.problem import Problem
from ..data.types import FloatArray, Interval
from ..data.weights import of_variances
from ..estimators import EmpiricalBayes, laplace
from ..estimators.base import ErrorDraws
from ..estimators.empirical_bayes import WIDE, rank_cells
from ..estimators.laplace_draws import draw_gaps
from ..measure.posterior import credible
from ..measure.question import Question
from ..sums.logistic_fit import expit, logits_of

#: Draws for every resample, as of every posterior.
POSTERIOR = 5
#: A standard error of log odds above this is that of an estimate that does not end.
_ENDLESS = 1e3
_NONE = Interval(float("nan"), float("nan"))


class Uncertain(NamedTuple):
    """An interval and a standard error."""

    interval: Interval
    se: float


def around(value: float, se: float, level: float) -> Uncertain:
    """Normal interval; none about an estimate that is not finite."""
    from scipy.special import ndtri

    if not (np.isfinite(value) and se < _ENDLESS):
        return Uncertain(_NONE, float("nan"))
    reach = float(ndtri((1 + level) / 2)) * se
    return Uncertain(Interval(value - reach, value + reach), se)


def of_ratio(problem: Problem, weights: FloatArray, level: float) -> Uncertain:
    r"""O:E: normal on the log scale, whose variance is that of ``o - s O/E``, so that scores need not be right.

    Where nothing happened, or always, one side is the exact binomial bound.
    """
    from scipy.special import ndtri

    w, v = _scaled(problem, weights)
    scores: FloatArray = problem.scores.astype(np.float64)
    observed, expected, n = float(w @ problem.outcomes), float(w @ scores), float(w.sum())
    if not expected > 0:
        return Uncertain(_NONE, float("nan"))
    ratio, rarest = observed / expected, ((1 - level) / 2) ** (1 / n)
    if not observed > 0:
        return Uncertain(Interval(0.0, (1 - rarest) * n / expected), float("nan"))
    se = float(np.sqrt(v @ (problem.outcomes - ratio * scores) ** 2)) / observed
    factor = float(np.exp(ndtri((1 + level) / 2) * se))
    low = ratio / factor if observed < n else min(ratio / factor, rarest * n / expected)
    return Uncertain(Interval(low, ratio * factor), ratio * se)


def of_intercept(problem: Problem, weights: FloatArray, value: float, eps: float, level: float) -> Uncertain:
    """Calibration in the large: its variance is that of the residuals, so that the slope need not be 1."""
    w, v = _scaled(problem, weights)
    chance = expit(logits_of(problem.scores.astype(np.float64), eps) + value)
    information = float(w @ (chance * (1 - chance)))
    if not information > 1 / _ENDLESS**2:
        return Uncertain(_NONE, float("nan"))
    return around(value, float(np.sqrt(v @ (problem.outcomes - chance) ** 2)) / information, level)


def of_distances(
    problem: Problem, level: float, n_draws: int, rng: np.random.Generator, values: Mapping[str, float]
) -> dict[str, Uncertain]:
    """Credible intervals of ICI, E50, E90 and ECI from the posterior of the map, widened to hold the values.

    It is the posterior behind :func:`calibrant.estimate`: an interval starts at exactly 0 where the scores may well be
    calibrated.
    """
    (_, cells), *_ = rank_cells(EmpiricalBayes().summarize(problem), 1)
    drawn = draw_gaps(cells, WIDE, laplace.fit(cells, WIDE), n_draws, rng)
    gap, share = np.abs(drawn.gap[0]), drawn.share[0]
    e50, e90 = _quantiles(gap, share, (0.5, 0.9))
    ici, eci = drawn.mean_power(1)[0], drawn.mean_power(2)[0]
    draws = {"ici": ici, "e50": e50, "e90": e90, "eci": eci}
    out = {}
    for name, power in draws.items():
        squared = name == "eci"
        question = Question.of_one(problem, "class-specific", level, 1.0 + squared)
        found = credible(ErrorDraws(power[None], drawn.log_odds, name in ("ici", "eci")), question)
        low, high = (100 * end**2 if squared else end for end in found.interval)
        mean, second = (float(np.mean(values)) * (1 - (found.calibrated or 0.0)) for values in (power, power**2))
        se = float(np.sqrt(max(second - mean**2, 0.0)))
        value = values[name]
        out[name] = Uncertain(Interval(min(low, value), max(high, value)), 100 * se if squared else se)
    return out


def _quantiles(values: FloatArray, shares: FloatArray, at: tuple[float, ...]) -> list[FloatArray]:
    """Smallest value that a share of each row's weight does not exceed, (D,) each."""
    order = np.argsort(values, axis=-1)
    values = np.take_along_axis(values, order, axis=-1)
    running = np.cumsum(np.take_along_axis(shares, order, axis=-1), axis=-1)
    places = [(running < q * running[:, -1:] * (1 - 1e-12)).sum(axis=-1, keepdims=True) for q in at]
    return [np.take_along_axis(values, place, axis=-1)[:, 0] for place in places]


def _scaled(problem: Problem, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights for sums and for their variances, in units of the effective sample size."""
    w = weights * (problem.effective_size / weights.sum())
    return w, of_variances(w, integral=problem.integral)
