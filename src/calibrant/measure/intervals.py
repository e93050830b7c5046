r"""Confidence intervals for a calibration error by test inversion along a path from perfect calibration.

The percentile bootstrap is not valid here: a plug-in calibration error averages absolute gaps, so noise adds to it, and
resampling adds the noise a second time; a calibrated model's percentile interval excludes 0 for every n. The
basic ("pivotal") bootstrap errs in the opposite direction.

Instead, the estimated gaps :math:`\hat d` define a family of truths: at scale λ a sample with
score s has outcome probability :math:`s + \lambda \hat d(s)`, clipped to [0, 1]; λ = 0 is perfect calibration, and the
true error is known at every λ. New samples are drawn (Poisson counts per cell, normal outcomes), the estimator is
applied with all its bias, and the interval contains the true errors of all λ at which the observed estimate is
not extreme. So the interval starts at exactly 0 whenever the data are compatible with calibration, and
noise and bias of the estimator are inverted; it may lie below the estimate (the reported one is widened to include it).
``corrected`` is the true error at the λ whose median estimate is the observed one. Tests are one-sided
at calibration and two-sided far from it (:func:`reach`): otherwise calibrated models would be covered more
often than the nominal level.

Approximations, each with a noticeable effect:

* the shape of the gaps is taken from the data, after the estimator's own smoothing: detail that a bin or a kernel
  averages away is not restored, so with an estimator that blurs much the interval covers the blurred error;
* outcomes within a cell share one probability and are drawn as normal; for rows in groups also with the variation that
  groups share: shifts and two smooth parts of the residuals have separate design effects
  (:mod:`calibrant.sums.base`);
* classes of a one-vs-rest problem are drawn independently and the spread of their mean is widened by
  :math:`\sqrt{1 + 0.876/(K-1)}`, the factor for exchangeable classes under calibration (for K = 2 the two problems are
  complementary and only one is used).

``benchmarks/coverage/interval_coverage.py`` measures the coverage for known true errors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ..data.problem import Problem
from ..data.progress import counted, progress_bar
from ..data.types import AnyArray, FloatArray, Interval
from ..estimators.adaptive import as_grid
from ..estimators.base import SCALES, CellEstimator, Estimator, ResampleInputs, TruthPath
from ..estimators.norm import mean_power, root
from ..estimators.residual import ResidualKernel
from ..sums.base import Shared
from .question import Question

_NODES = 129


def reach(distance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    r"""Acceptance limits of estimates below and above their median, for truths at a distance from the boundary.

    A calibration error cannot be below 0. Acceptance with equal tails everywhere would cover a calibrated model with
    probability ``(1 + level) / 2``; ordering estimates x of a truth t by the likelihood ratio
    ``f(x | t) / f(x | max(x, 0))`` covers every truth with probability ``level``. For a unit normal estimate this
    accepts ``t - a ≤ x ≤ t + c`` with ``Φ(c) - Φ(-a) = level`` and

    .. math:: a = \frac{t^2 + c^2}{2t} \text{ where } t < |c|, \qquad a = c \text{ elsewhere.}

    Parameters
    ----------
    distance : ndarray
        Distances t ≥ 0 in standard deviations.
    level : float

    Returns
    -------
    below, above : ndarray
        a (infinite at t = 0) and c, in standard deviations.

    References
    ----------
    Feldman & Cousins (1998), *Unified approach to the classical statistical analysis of small signals*.

    Examples
    --------
    >>> import numpy as np
    >>> below, above = reach(np.array([0.0, 0.5, 3.0]), 0.95)
    >>> below.round(2).tolist(), above.round(2).tolist()
    ([inf, 3.0, 1.96], [1.64, 1.66, 1.96])
    """
    nodes, table = _above(level)
    c = np.interp(distance, nodes, table)
    with np.errstate(divide="ignore", over="ignore"):
        tilted = (distance**2 + c**2) / (2 * distance)
    return np.where(distance < np.abs(c), tilted, c), c


@cache
def _above(level: float) -> tuple[FloatArray, FloatArray]:
    """Upper acceptance limits at distances from 0 to where tails are equal, by bisection."""
    from scipy.special import ndtr, ndtri

    widest = float(ndtri((1 + level) / 2))
    nodes = np.linspace(0, widest, _NODES)
    low, high = np.full(_NODES, float(ndtri(level))), np.full(_NODES, widest)
    for _ in range(60):
        c = (low + high) / 2
        with np.errstate(divide="ignore"):
            below = (nodes**2 + c**2) / (2 * nodes)
        enough = ndtr(c) - ndtr(-below) >= level
        low, high = np.where(enough, low, c), np.where(enough, c, high)
    return nodes, high


#: Most numbers drawn at a time, and minimum number of samples.
_MOST, _LEAST = 1 << 22, 100
#: Most numbers read at a time.
_TOGETHER = 1 << 19
_RESIDUALS = ResidualKernel(space="score")

_FINE = np.linspace(0, SCALES[-1], 601)


def sums_paths(
    estimator: CellEstimator,
    sums: Any,
    norm: float,
    n_resamples: int,
    noise: Sequence[np.random.Generator],
    *,
    counts: bool = False,
    scales: FloatArray = SCALES,
) -> list[TruthPath]:
    """Paths of an estimator that reads sums, for several problems at once, each with its own random generator.

    Outcomes in a cell are drawn as normal, or as ``counts`` for a sum over many classes with few positives each,
    where approximation errors add up. Quantities chosen from the data are kept fixed, and sums are resampled. Cost and
    memory are O(``n_resamples`` × cells) for any n (for sums on distinct scores, these are the cells: 100 draws if
    there are very many, a few at a time).
    """
    out: list[Any] = [None] * len(noise)
    with progress_bar("intervals of classes", len(noise)) as advance:
        for held in estimator._held_together(sums, len(noise), max(1, _TOGETHER // (n_resamples * scales.size))):
            own = [noise[i] for i in held.at]
            for i, path in zip(held.at, _paths(held, norm, n_resamples, own, counts, scales), strict=True):
                out[i] = path
            advance(len(held.at))
    return out


def _paths(
    held: ResampleInputs,
    norm: float,
    n_resamples: int,
    noise: Sequence[np.random.Generator],
    counts: bool,
    scales: FloatArray,
) -> Iterator[TruthPath]:
    reader, base = held.reader, held.sums
    scores, counted, positive = (np.atleast_2d(v) for v in base.atoms)  # (r, m)
    scores = np.nan_to_num(scores)
    shown = reader._cells(base) if reader._cells_are_atoms else None
    gap = np.atleast_2d(shown.residual_gap) if shown is not None else _RESIDUALS._gaps(as_grid(base), scores)
    chances = np.clip(scores + scales[:, None, None] * gap, 0, 1)  # (S, r, m)
    some = max(1, _MOST // max(scores.size, 1))  # draws that are held at a time
    n = min(n_resamples, max(_LEAST, some))
    drawn = CountedDraws.of if counts and not hasattr(base, "trials") else NormalDraws.of
    parts = [drawn(base, counted, chances, min(some, n - a), noise).read(reader, base, norm) for a in range(0, n, some)]
    powers = np.concatenate(parts, axis=-1)
    if shown is not None:
        # The true error as far as the estimator resolves it: its smoothing blurs these gaps once more.
        blurred = shown.blur(shown.count * (chances - scores))
        truths = mean_power(blurred, np.broadcast_to(shown.density * shown.quadrature, blurred.shape), norm)
    else:  # what it gives when outcomes are the probabilities themselves
        expected = (counted * chances).reshape(-1, scores.shape[-1])
        truths = reader.read(base.resampled(counted, expected), norm).reshape(scales.size, -1)
    data = reader.read(base.resampled(counted, positive), norm)
    return (TruthPath(powers[:, i], truths[:, i], float(data[i])) for i in range(len(data)))


@dataclass(frozen=True, eq=False)
class Draws(ABC):
    """Resamples with common random numbers under S truths: their counts (r, R, m)."""

    count: FloatArray

    @abstractmethod
    def positive(self, truth: int) -> FloatArray:
        """Positives of the samples under one of the truths, (r, R, m)."""

    @property
    @abstractmethod
    def n_truths(self) -> int:
        """Number of truths S."""

    def read(self, reader: Any, sums: Any, norm: float) -> FloatArray:
        """Estimates from these samples under each truth, (S, r, R)."""
        together = max(1, _TOGETHER // max(self.count.size, 1))
        rows = self.count.reshape(-1, self.count.shape[-1])
        n = self.n_truths
        out: FloatArray = np.empty((n, len(rows)))
        for a in range(0, n, together):
            some = range(a, min(a + together, n))
            drawn: FloatArray = np.empty((len(some), *rows.shape))
            for i, under in enumerate(some):
                drawn[i] = self.positive(under).reshape(rows.shape)
            found = reader.read(sums.resampled(rows, drawn.reshape(-1, rows.shape[-1])), norm)
            out[a : a + together] = found.reshape(len(some), -1)
        return out.reshape(n, *self.count.shape[:2])


@dataclass(frozen=True, eq=False)
class NormalDraws(Draws):
    """Samples whose outcomes are normal in cells, and drawn one by one in sums of ``single`` rows.

    For rows in groups, ``moved`` are the standardised shared effects of groups, (r, R, 3), and ``waves`` the
    smooth functions of the score whose multiples these effects add to the logits of whole samples, (r, m, 3).
    """

    chances: FloatArray
    noise: FloatArray
    single: AnyArray
    moved: FloatArray | None = None
    waves: FloatArray | None = None

    @property
    def n_truths(self) -> int:
        """Number of truths S."""
        return len(self.chances)

    @classmethod
    def of(
        cls, sums: Any, count: FloatArray, chances: FloatArray, n: int, noise: Sequence[np.random.Generator]
    ) -> NormalDraws:
        """Poisson counts and normal outcomes of cells (r, m); for sums of single rows only outcomes are drawn.

        ``chances`` are the outcome probabilities under the truths, (S, r, m).
        """
        trials = getattr(sums, "trials", None)
        shape = (len(count), n, count.shape[-1])
        if trials is not None:
            kept = np.broadcast_to(count[:, None], shape)
            if sums.grouped:  # correlated rows are not independent trials: their sums vary more, and are nearly normal
                normal = np.stack([rng.standard_normal(shape[1:]) for rng in noise])
                return cls(kept, chances, normal, np.zeros(shape[-1], dtype=bool)).shared_by(sums, count, noise)
            return cls(kept, chances, np.stack([rng.random(shape[1:]) for rng in noise]), trials <= 1)
        counts, normal = np.empty(shape), np.empty(shape)
        for i, rng in enumerate(noise):
            counts[i] = rng.poisson(np.maximum(count[i], 0), size=shape[1:])
            rng.standard_normal(out=normal[i])
        return cls(counts, chances, normal, np.zeros(shape[-1], dtype=bool)).shared_by(sums, count, noise)

    def shared_by(self, sums: Any, count: FloatArray, noise: Sequence[np.random.Generator]) -> NormalDraws:
        """The draws for rows in groups: smooth sums over cells vary more, and rough ones less, than the average."""
        shared = Shared.of(sums)
        if shared is None:
            return self
        few = np.arange(shared.smooth.shape[-1])
        total = np.maximum(count.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        waves = np.cos(np.pi * few * ((np.cumsum(count, axis=-1) - count / 2) / total)[..., None])
        normal = np.stack([rng.standard_normal((self.noise.shape[1], few.size)) for rng in noise])
        moved = normal * np.sqrt(shared.smooth)[:, None]
        return replace(self, noise=self.noise * np.sqrt(shared.rough)[:, None, None], moved=moved, waves=waves)

    def positive(self, truth: int) -> FloatArray:
        """Positives of the samples under one of the truths, (r, R, m)."""
        chance = self.chances[truth][:, None]
        if not self.single.any():
            variance = self.count * chance * (1 - chance)
            out: FloatArray = self.noise * np.sqrt(variance)
            out += self.count * chance
            if self.moved is not None and self.waves is not None:
                information = (variance.mean(axis=1)[..., None] * self.waves**2).sum(axis=-2)
                sd = np.divide(1.0, np.sqrt(information), out=np.zeros_like(information), where=information > 0)
                out += variance * ((self.moved * sd[:, None]) @ np.swapaxes(self.waves, -1, -2))
            return out
        from scipy.special import ndtri

        several = np.flatnonzero(~self.single)
        out = np.asarray(np.where(self.noise < chance, self.count, 0.0))
        p, n = chance[..., several], self.count[..., several]
        normal = n * p + ndtri(np.clip(self.noise[..., several], 1e-12, 1 - 1e-12)) * np.sqrt(n * p * (1 - p))
        out[..., several] = np.clip(normal, 0, n)
        return out


@dataclass(frozen=True, eq=False)
class CountedDraws(Draws):
    """Samples whose ``positives`` are counts under every truth, (S, r, R, m).

    A Poisson count is thinned. Probabilities are monotone along the path, so the samples of a cell that are positive
    under every truth, become positive from one truth to the next, or never are, have independent Poisson counts.
    """

    positives: FloatArray

    @property
    def n_truths(self) -> int:
        """Number of truths S."""
        return len(self.positives)

    @classmethod
    def of(
        cls, sums: Any, count: FloatArray, chances: FloatArray, n: int, noise: Sequence[np.random.Generator]
    ) -> CountedDraws:
        """Counts of cells (r, m) with given expected counts, and their positives."""
        shape = (len(count), n, count.shape[-1])
        positive, total = np.empty((len(chances), *shape)), np.empty(shape)
        mass = np.maximum(count, 0)
        least, most = chances.min(axis=0), chances.max(axis=0)
        steps = np.abs(np.diff(chances, axis=0))
        rises = chances[-1] >= chances[0]
        for i, rng in enumerate(noise):
            always = rng.poisson(mass[i] * least[i], size=shape[1:])
            up = np.zeros((len(chances), *shape[1:]))
            turning = rng.poisson(mass[i] * (most[i] - least[i]), size=shape[1:])
            draw, cell = np.nonzero(turning)  # few have any
            if draw.size:
                share = steps[:, i, cell] / (most[i] - least[i])[cell]
                up[1:, draw, cell] = np.cumsum(rng.multinomial(turning[draw, cell], share.T), axis=-1).T
            positive[:, i] = always + np.where(rises[i], up, up[-1] - up)
            total[i] = always + up[-1] + rng.poisson(mass[i] * (1 - most[i]), size=shape[1:])
        return cls(total, positive)

    def positive(self, truth: int) -> FloatArray:
        """Positives of the samples under one of the truths, (r, R, m)."""
        return np.asarray(self.positives[truth])


def row_path(
    estimator: Estimator, problem: Problem, norm: float, n_resamples: int, rng: np.random.Generator
) -> TruthPath:
    """Path of any estimator of rows, by drawing outcomes for every row: cost ``11 n_resamples`` estimates.

    The gaps are those of :class:`ResidualKernel` over scores, and the truth at a scale is the estimate with
    probabilities as outcomes. Scores are not resampled: their sampling noise is ignored.
    """
    gap = _RESIDUALS._gaps(_RESIDUALS.summarize(problem), problem.scores.astype(np.float64)[None])[0]
    powers, truths = np.empty((SCALES.size, n_resamples)), np.empty(SCALES.size)

    def chance(scale: float) -> FloatArray:
        return np.asarray(np.clip(problem.scores + scale * gap, 0, 1))

    def read(outcomes: FloatArray) -> float:
        return estimator.power(replace(problem, outcomes=outcomes), norm)

    for r in counted(range(n_resamples), "draws"):
        uniform = rng.random(problem.n_samples)
        for i, scale in enumerate(SCALES):
            powers[i, r] = read((uniform < chance(scale)).astype(np.float64))
    for i, scale in enumerate(SCALES):
        truths[i] = read(chance(scale))
    return TruthPath(powers, truths, estimator.power(problem, norm))


def invert(paths: Sequence[TruthPath], question: Question, largest: float) -> tuple[Interval, float]:
    """Interval and median-unbiased value for the combined error of a question's problems."""
    nothing = Interval(float("nan"), float("nan")), float("nan")
    observed = question.combine(np.array([p.observed for p in paths]))
    if np.isnan(observed):
        return nothing
    truths = np.array([question.combine(np.array([p.truths[i] for p in paths])) for i in range(SCALES.size)])
    tail = (1 - question.level) / 2
    if not truths[-1] > 0:
        # Not one deviation in n samples: the exact binomial bound.
        return Interval(0.0, float(1 - tail ** (1 / max(question.size, 1.0)))), 0.0
    widen = question.spread(len(paths), spread_together(len(paths)))
    table = np.empty((3, SCALES.size))
    draws = min(p.powers.shape[-1] for p in paths)  # problems of very many distinct scores are drawn less often
    for i in range(SCALES.size):
        each = np.stack([p.powers[i, :draws] for p in paths])
        if question.sum_is_normal:
            table[:, i] = _normal(each, question, tail, widen)
            continue
        sample = question.combine_draws(each)
        sample = sample[~np.isnan(sample)]
        if sample.size < 2:
            return nothing
        table[:, i] = _quantiles(sample, tail, widen)
    return _accepted(observed, table, truths, max(largest, observed), question.level)


def _normal(powers: FloatArray, question: Question, tail: float, widen: float) -> FloatArray:
    """Quantiles of a sum over many problems, (R, n) draws: a few draws per problem determine its variance."""
    from scipy.special import ndtri

    known = ~np.isnan(powers).any(axis=-1)
    share = np.array(question.shares)[known]
    share = share / share.sum()
    centre = float(share @ powers[known].mean(axis=-1))
    spread = float(np.sqrt(share**2 @ powers[known].var(axis=-1, ddof=1)))
    reach = (
        widen * float(ndtri(1 - tail)) * spread * float(np.sqrt(1 + 1 / powers.shape[-1]))
    )  # the centre is noisy too
    return np.array([root(v, question.norm) for v in (centre - reach, centre, centre + reach)])


def spread_together(n_problems: float) -> float:
    """Ratio of the standard deviation of the mean of one-vs-rest errors to that of independent errors."""
    return float(np.sqrt(1 + 0.876 / (n_problems - 1))) if n_problems > 1 else 1.0


def _quantiles(sample: FloatArray, tail: float, widen: float) -> FloatArray:
    """Lower, median and upper quantile after widening; from a normal distribution if there are few draws."""
    from scipy.special import ndtri

    centre = sample.mean()
    if sample.size >= 100:
        return np.asarray(np.quantile(centre + widen * (sample - centre), [tail, 0.5, 1 - tail]))
    # A mean over many classes or cells: close to normal, and a few draws give its mean and spread.
    reach = widen * float(ndtri(1 - tail)) * sample.std(ddof=1)
    return np.array([centre - reach, centre, centre + reach])


def _accepted(
    observed: float, table: FloatArray, truths: FloatArray, largest: float, level: float
) -> tuple[Interval, float]:
    """:func:`accepted` for one problem."""
    low, high, middle = accepted(np.array([observed]), table[:, None], truths[None], largest, level)
    return Interval(float(low[0]), float(high[0])), float(middle[0])


def accepted(
    observed: FloatArray, table: FloatArray, truths: FloatArray, largest: float | FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Range of true errors over the scales at which observed estimates (r,) are not extreme, and the median.

    ``table`` (3, r, S) contains the lower, median and upper quantile of estimates at each scale; ``truths`` (r, S).
    """
    low, median, high = _between(table)
    unified, high = _unified(low, median, high, level)
    # Never narrower above than with equal tails: where the path ends, a hair decides much (below).
    low = np.minimum(low, unified)
    truth, seen = _between(truths), observed[:, None]
    every = np.arange(len(observed))
    middle = truth[every, np.argmin(np.abs(median - seen), axis=-1)]
    fits = (low <= seen) & (seen <= high)
    some = fits.any(axis=-1)
    upper = np.where(fits, truth, -np.inf).max(axis=-1)
    # Outcomes cannot deviate further, and what is left is the noise of the scores: mirror it upward.
    upper = np.where(fits[:, -1], np.maximum(upper, 2 * observed - table[0, :, -1]), upper)
    bottom = np.where(fits[:, 0], 0.0, np.where(fits, truth, np.inf).min(axis=-1))
    inner = np.minimum(np.minimum(np.maximum(middle, bottom), upper), largest)
    upper = np.minimum(upper, largest)
    # No truth of the path usually looks so: better than any of them, calibration included, or elsewhere.
    better = ~some & (observed < low.min(axis=-1))
    least = np.maximum(observed, 0.0)
    ends = np.minimum(middle, observed), np.maximum(middle, observed)
    return (
        np.where(some, bottom, np.where(better, 0.0, ends[0])),
        np.where(some, upper, np.where(better, np.maximum(least, middle), ends[1])),
        np.where(some, inner, np.where(better, np.minimum(middle, least), middle)),
    )


def _between(rows: FloatArray) -> FloatArray:
    """Interpolate rows (…, S) of values at :data:`SCALES`."""
    place = np.searchsorted(SCALES, _FINE[1:-1], side="right")
    left = np.concatenate([[0], place - 1, [SCALES.size - 2]])
    share = (_FINE - SCALES[left]) / np.diff(SCALES)[left]
    start = rows[..., left]
    return np.asarray(start + share * (rows[..., left + 1] - start))


def _unified(low: FloatArray, median: FloatArray, high: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Convert equal-tailed quantiles to the acceptance limits of :func:`reach` for truths near calibration."""
    from scipy.special import ndtri

    equal = float(ndtri((1 + level) / 2))
    sd = (high - low) / (2 * equal)
    moved = np.maximum(median - median[..., :1], 0.0)
    distance = np.divide(moved, sd, out=np.full(sd.shape, equal), where=sd > 0)
    below, above = reach(distance, level)
    down, up = median - low, high - median
    return np.where(
        down > 0, median - below / equal * np.where(down > 0, down, 1.0), median
    ), median + above / equal * up
