"""`Smooth`, `Sweep`, `Isotonic` and `Cumulative` for many samples at once."""

from __future__ import annotations

import numpy as np
from scipy.fft import dct, idct

from ..._types import AnyArray, FloatArray, IntArray
from ...errors.base import Estimator
from ...errors.cumulative import Cumulative
from ...errors.isotonic import Isotonic, isotonic_means
from ...errors.norm import is_linear, mean_power
from ...errors.smooth import Smooth
from ...errors.sweep import Sweep
from . import reads
from .batch import GRID_CELLS, Batch, node_counts, running
from .smoothing import smoothed

#: Nodes at which smoothed residuals are summed up, and the smallest bandwidth that so many frequencies describe.
_RESOLUTIONS = ((256, 0.0085), (GRID_CELLS, 0.00215))
#: A sample shared by two nodes of a grid is spread by a standard deviation of √(1/6) grid steps on average.
_SPREAD = 1 / 6 * (1 / GRID_CELLS**2 - 1 / 4096**2)
#: Rows of one isotonic fit: they stay in the cache.
_FITTED_AT_ONCE = 1 << 14
#: Numbers of bins that are tried for all samples together; the few samples left are read one by one.
_MOST_BINS = 256


@reads(Cumulative)
def cumulative(estimator: Cumulative, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample, from running sums at the ends of runs of equal scores."""
    path = batch.residual_sums[:, 1:]
    if batch.tied:
        path = np.where(_last_of_run(batch), path, 0.0)
    high, low = np.maximum(path.max(axis=1), 0.0), np.minimum(path.min(axis=1), 0.0)
    error = (np.maximum(high, -low) if estimator.statistic == "ks" else high - low) / batch.size
    return np.asarray(error if is_linear(norm) else error**norm)


@reads(Isotonic)
def isotonic(estimator: Isotonic, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample: one fit for many, in which each sample's outcomes lie 2 above those before it."""
    fit: FloatArray = np.empty(batch.scores.shape)
    step = max(1, _FITTED_AT_ONCE // batch.size)
    for a in range(0, batch.n_samples, step):
        # Equal scores are in one pool, for their outcomes fall.
        outcomes = batch.outcomes[a : a + step].ravel()
        level = np.repeat(2.0 * np.arange(outcomes.size // batch.size), batch.size)
        fit[a : a + step] = isotonic_means(outcomes, np.ones(outcomes.size), level).reshape(-1, batch.size)
    return mean_power(fit - batch.scores, np.ones(fit.shape), norm)


@reads(Sweep)
def sweep(estimator: Sweep, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample: one more bin for all, and those whose frequencies fall drop out.

    Samples that stand more than 256 bins, and bins of equal width, are read one by one.
    """
    if estimator.strategy == "uniform":
        return _one_by_one(estimator, batch, norm)
    n = batch.size
    cuts_after = _cuts_after(batch) if batch.tied else None
    hits = running(batch.outcomes)
    best = np.ones(batch.n_samples, dtype=np.intp)
    active = np.arange(batch.n_samples)
    b = 2
    while active.size and b <= min(n, _MOST_BINS):
        weight, (outcome,) = _bin_sums(n, b, cuts_after, active, hits)
        active = active[~_falls(outcome, weight)]
        best[active] = b
        b += 1
    out: FloatArray = np.empty(batch.n_samples)
    if b <= n and active.size:
        best[active] = 0
        chosen = Batch(batch.scores[active], batch.outcomes[active], batch.domain, batch.eps)
        out[active] = _one_by_one(estimator, chosen, norm)
    for b in np.unique(best[best > 0]):
        rows = np.flatnonzero(best == b)
        weight, (residual,) = _bin_sums(n, int(b), cuts_after, rows, batch.residual_sums)
        gap = np.divide(residual, weight, out=np.zeros_like(residual), where=weight > 0)
        out[rows] = mean_power(gap, weight, norm)
    return out


def _one_by_one(estimator: Estimator, batch: Batch, norm: float) -> FloatArray:
    return np.array([estimator.power(problem, norm) for problem in batch.problems()])


def _last_of_run(batch: Batch) -> AnyArray:
    out = np.ones(batch.scores.shape, dtype=bool)
    out[:, :-1] = batch.first[:, 1:]
    return out


def _cuts_after(batch: Batch) -> IntArray:
    """Samples left of a cut that was meant to lie after i samples, i = 1 … n: whole runs, the last one cut off."""
    out = batch.run_end.copy()
    start_of_last = batch.size - 1 - np.argmax(batch.first[:, ::-1], axis=1)
    last = out == batch.size
    out[last] = np.broadcast_to(start_of_last[:, None], out.shape)[last]
    return out


def _bin_sums(
    n: int, b: int, cuts_after: IntArray | None, rows: AnyArray, *running_sums: FloatArray
) -> tuple[FloatArray, list[FloatArray]]:
    """Samples a bin and sums a bin, (rows, b) each, of ``b`` quantile bins; some are empty where scores tie."""
    cuts = np.arange(1, b) * n // b
    if cuts_after is None:
        ends = np.concatenate([[0], cuts, [n]])
        weight = np.broadcast_to(np.diff(ends).astype(np.float64), (len(rows), b))
        return weight, [np.diff(sums[np.ix_(rows, ends)], axis=1) for sums in running_sums]
    ends = np.empty((len(rows), b + 1), dtype=np.intp)
    ends[:, 0], ends[:, -1] = 0, n
    ends[:, 1:-1] = cuts_after[np.ix_(rows, cuts - 1)]
    weight = np.diff(ends, axis=1).astype(np.float64)
    return weight, [np.diff(sums[rows[:, None], ends], axis=1) for sums in running_sums]


def _falls(outcome: FloatArray, weight: FloatArray) -> AnyArray:
    """Whether the mean outcome of some bin lies below that of a bin before it, empty bins left out."""
    held = weight > 0
    mean = np.divide(outcome, weight, out=np.full(outcome.shape, -1.0), where=held)
    before = np.maximum.accumulate(mean, axis=1)[:, :-1]
    return np.asarray((held[:, 1:] & (mean[:, 1:] < before)).any(axis=1))


@reads(Smooth)
def smooth(estimator: Smooth, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample, on 1024 cells instead of 4096; bandwidths below two of them are read one by one."""
    if np.isinf(norm):
        return _one_by_one(estimator, batch, norm)
    count, positive = (
        batch.grid if batch.domain == (0.0, 1.0) else node_counts(batch.scores, batch.outcomes, (0.0, 1.0), GRID_CELLS)
    )
    residual = positive - count * np.linspace(0, 1, GRID_CELLS + 1)
    if isinstance(estimator.bandwidth, float):
        width = np.full(batch.n_samples, estimator.bandwidth)
    else:
        width = _fixed_points(residual / batch.size)
    out: FloatArray = np.empty(batch.n_samples)
    narrow = ~(width >= _RESOLUTIONS[-1][1])
    if narrow.any():
        chosen = Batch(batch.scores[narrow], batch.outcomes[narrow], batch.domain, batch.eps)
        out[narrow] = _one_by_one(estimator, chosen, norm)
    rows = np.flatnonzero(~narrow)
    if norm == 1 and estimator.bandwidth == "auto":
        out[rows] = width[rows]  # that is what a fixed point means
    elif rows.size:
        steps = np.sqrt(width[rows] ** 2 - _SPREAD) * GRID_CELLS
        total = smoothed(count[rows], steps, "gaussian")
        out[rows] = _power(total, smoothed(residual[rows], steps, "gaussian"), norm)
    return out


def _power(density: FloatArray, residual: FloatArray, norm: float) -> FloatArray:
    """Mean p-th power of smoothed residuals over the smoothed density."""
    held = density > 1e-12 * density.max(axis=1, keepdims=True)
    gap = np.divide(residual, density, out=np.zeros_like(residual), where=held)
    weight = np.where(held, density, 0.0)
    weight[:, [0, -1]] *= 0.5
    return mean_power(gap, weight, norm)


def _fixed_points(residual: FloatArray) -> FloatArray:
    """Bandwidth of each row at which the smoothed residuals' area equals it; NaN below what the grid resolves."""
    low = np.abs(residual.sum(axis=1))
    high = np.abs(residual).sum(axis=1)
    out: FloatArray = np.full(len(residual), np.nan)
    same = high <= low * (1 + 1e-9)
    out[same] = high[same]
    mirrored = residual.copy()
    mirrored[:, [0, -1]] *= 2
    coefficients = dct(mirrored, type=1, axis=1)
    pending = np.flatnonzero(~same)
    for cells, least in _RESOLUTIONS:
        chosen = pending[high[pending] > least]
        found = _solve(coefficients[chosen, : cells + 1], np.maximum(low[chosen], least), high[chosen])
        # A root at the lower end of the search may lie below it: it is left to the next resolution.
        known = (found > least * (1 + 1e-6)) | (low[chosen] >= least)
        out[chosen[known]] = found[known]
        pending = pending[np.isnan(out[pending])]
    return out


def _solve(coefficients: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Roots σ in [low, high] of ``area(σ) = σ``, row by row: the secant method on the log scale, kept in its bracket.

    The area falls as σ rises, so the root lies between σ and area(σ), whatever σ.
    """
    cells = coefficients.shape[1] - 1
    frequency = np.pi * np.arange(cells + 1)
    bottom, top = np.log(low), np.log(high)
    x = np.clip(np.log(0.05), bottom, top)
    slope = np.full(x.shape, -1.3)
    last_x, last_excess = x, np.zeros(x.shape)
    rows = np.arange(len(x))
    for step in range(30):
        if not rows.size:
            break
        here = x[rows]
        variance = np.exp(2 * here) - _SPREAD
        area = np.abs(
            idct(coefficients[rows] * np.exp(-0.5 * frequency**2 * variance[:, None]), type=1, axis=1, overwrite_x=True)
        )
        excess = np.log(area.sum(axis=1) - (area[:, 0] + area[:, -1]) / 2) - here
        bottom[rows] = np.maximum(bottom[rows], np.minimum(here, here + excess))
        top[rows] = np.maximum(np.minimum(top[rows], np.maximum(here, here + excess)), bottom[rows])
        if step:
            moved = here - last_x[rows]
            tilt = np.divide(excess - last_excess[rows], moved, out=slope[rows], where=moved != 0)
            slope[rows] = np.minimum(tilt, -0.9)  # the area falls, so the slope is below -1
        last_x, last_excess = last_x.copy(), last_excess.copy()
        last_x[rows], last_excess[rows] = here, excess
        x[rows] = np.clip(here - excess / slope[rows], bottom[rows], top[rows])
        rows = rows[np.abs(x[rows] - here) > 1e-9]
    return np.asarray(np.exp(x))
