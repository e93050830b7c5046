"""Curve of the default estimator and its bands: maps drawn from the posterior, and an interval per heavy value.

The maps are those of :mod:`calibrant.estimators.laplace` under the diffuse prior, with more cosines than
the calibration error needs, since a band must follow steps. Isolated scores that many rows share ("heavy values") are
not part of the map: their rows are evidence only about this score, so each has its own frequency and interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from ..estimators import laplace
from ..estimators.empirical_bayes import WIDE, cells_of_groups
from ..estimators.laplace import CELLS_A_TERM, RankCells
from ..estimators.maps import FittedMaps
from ..sums import GridMoments
from ..sums.logistic_fit import expit
from .bands import Band, binomial_consistency, quantiles, wilson_interval

#: Number of cosines for n rows: ``COSINES n^(1/3)``, at most ``MOST_COSINES``.
COSINES, MOST_COSINES = 2.5, 60
#: Factor by which draws are widened about the median at 500 rows, the power of n by which it decreases to 1, and its
#: maximum: near a step a smooth map of few rows is overconfident (benchmarks/coverage/default_band.py).
WIDER, WIDER_FALLS, WIDEST = 1.15, 0.06, 1.2
#: A value is heavy with at least this share of the rows, this number of rows, and this multiple of its neighbours.
HEAVY_SHARE, HEAVY_ROWS, HEAVY_TIMES = 0.01, 8.0, 5.0
#: Number of occupied nodes on either side that are neighbours of a value.
_BESIDE = 8
#: Largest part of the domain without rows across which a curve is drawn; half of it beyond the last rows.
BRIDGED = 0.25


@dataclass(frozen=True, eq=False)
class PosteriorCurve:
    """Points of a curve over the domain, (m,), ascending; NaN without rows nearby; ``shared``: whether heavy."""

    scores: FloatArray
    observed: FloatArray
    count: FloatArray
    density: FloatArray
    band: Band
    shared: AnyArray


def posterior_curve(
    grid: GridMoments, band: str | None, level: float, n_draws: int, rng: np.random.Generator
) -> PosteriorCurve:
    """Curve and band (None: no band) of one problem from its grid counts; cost independent of the number of rows."""
    grid = grid.dense
    nodes, mass, positive = grid.atoms
    found = np.full((5, mass.size), np.nan)  # observed, rows, and the band's three
    others, heavy, on = without_heavy(grid)
    keep, known = np.zeros(mass.size, dtype=bool), _near_rows(mass > 0, grid.cells)
    for _, cells in cells_of_groups(others, 1, cosines):
        used, score = np.flatnonzero(cells.count[0] > 0), cells.score[0]
        maps = FittedMaps.of(cells, WIDE)
        ends = _smooth_band(maps, band, level, n_draws, rng)
        values = (np.clip(score + maps.mean_gap()[0], 0, 1), _reached(cells), *ends)
        found[:] = [np.interp(nodes, score[used], v[used]) for v in values]
        keep[np.rint((score[used] - grid.low) / grid.step).astype(np.intp)] = True
    for first in heavy:
        pair = slice(first, first + 2)
        rows = float(mass[pair].sum())
        share = float(positive[pair].sum()) / rows
        stated = float(mass[pair] @ nodes[pair]) / rows
        own = np.array([share, rows, *_own_band(band, stated, share, rows, level)])
        found[:, pair] = np.where(on[pair], own[:, None], found[:, pair])
        keep[max(first - 1, 0) : first + 3] = True
    found[:, ~known] = np.nan
    edge = known[1:] != known[:-1]
    keep[1:] |= edge
    keep[:-1] |= edge
    keep[[0, -1]] = True
    at = np.flatnonzero(keep)
    observed, rows, lower, median, upper = found[:, at]
    drawn = Band(np.fmin(lower, observed), median, np.fmax(upper, observed)) if band == "confidence" else None
    return PosteriorCurve(
        nodes[at],
        observed,
        np.nan_to_num(rows),
        _density(nodes, mass, at),
        drawn or Band(lower, median, upper),
        on[at],
    )


def without_heavy(grid: GridMoments) -> tuple[GridMoments, IntArray, AnyArray]:
    """Counts on all nodes without those of heavy values; first nodes of these, and whether each node belongs to one."""
    _, mass, _ = grid.atoms
    total, heavy = float(mass.sum()), heavy_values(mass)
    on = np.zeros(mass.size, dtype=bool)
    on[heavy] = on[np.minimum(heavy + 1, grid.cells)] = True
    on &= mass > 0
    rest = float(mass[~on].sum()) / total if total > 0 else 0.0
    fields: dict[str, Any] = {"count": np.where(on, 0.0, grid.count), "positive": np.where(on, 0.0, grid.positive)}
    return replace(grid, total=grid.total * rest, squares=grid.squares * rest, **fields), heavy, on


def heavy_values(mass: FloatArray) -> IntArray:
    """First nodes of heavy values, from rows (m,) on all nodes: a score lies on one node or on two.

    A value is heavy with at least 1 % of the rows, eight rows, and five times the average of neighbouring values:
    if scores lie on a regular grid with similar counts, none is.
    """
    used = np.flatnonzero(mass > 0)
    m = mass[used]
    pair = m + np.append(m[1:] * (np.diff(used) == 1), 0.0)[: m.size]
    sums = np.concatenate([[0.0], np.cumsum(m)])
    number = np.arange(m.size)
    first, last = np.maximum(number - _BESIDE, 0), np.minimum(number + _BESIDE + 2, m.size)
    beside = 2 * np.maximum(sums[last] - sums[first] - pair, 0.0) / np.maximum(last - first - 2, 1)
    largest = (pair >= np.append(0.0, pair)[:-1]) & (pair > np.append(pair, 0.0)[1:])
    enough = pair >= np.maximum(np.maximum(HEAVY_ROWS, HEAVY_SHARE * m.sum()), HEAVY_TIMES * beside)
    return np.asarray(used[largest & enough])


def cosines(n: float) -> int:
    """Number of cosines of the curve for n rows."""
    return int(np.ceil(min(COSINES * np.cbrt(n), MOST_COSINES)))


def _near_rows(used: AnyArray, cells: int) -> AnyArray:
    """Whether each node has rows, or lies in a sufficiently short stretch without rows."""
    number = np.arange(used.size)
    before = np.maximum.accumulate(np.where(used, number, -1))
    behind = np.minimum.accumulate(np.where(used, number, used.size)[::-1])[::-1]
    inside = (before >= 0) & (behind < used.size)
    beyond = np.where(before < 0, behind - number, number - before) <= BRIDGED / 2 * cells
    near: AnyArray = np.where(inside, behind - before <= BRIDGED * cells, beyond) | used
    return near & used.any()


def _reached(cells: RankCells) -> FloatArray:
    """Number of rows within the width of the shortest cosine."""
    return np.convolve(cells.count[0], np.ones(CELLS_A_TERM + 1), mode="same")


def _smooth_band(maps: FittedMaps, band: str | None, level: float, n_draws: int, rng: np.random.Generator) -> Band:
    """Band of the map in the cells of one problem."""
    cells = maps.cells
    if band == "consistency":
        return Band(*quantiles(_null_curves(cells, n_draws, rng), level))
    if band != "confidence":
        return Band.none(cells.count.shape[-1])
    gap = maps.drawn_gap(n_draws, rng)[0]
    lower, median, upper = quantiles(np.clip(gap + cells.score[0], 0, 1), level)
    wider = widened(cells)
    ends = (np.clip(median + wider * (end - median), 0, 1) for end in (lower, upper))
    return Band(next(ends), median, next(ends))


def widened(cells: RankCells) -> float:
    """Factor by which draws of the curve are widened about their centre."""
    size = max(float(np.max(cells.size)), 1.0)
    return float(np.clip(WIDER * (500 / size) ** WIDER_FALLS, 1.0, WIDEST))


def _null_curves(cells: RankCells, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Curves (n_draws, m) of a calibrated model, to first order in the noise of the outcomes."""
    stated, design, prior = expit(cells.logit[0]), cells.design[0], WIDE
    ones, zeros = (rng.poisson(cells.count[0] * p, (n_draws, stated.size)) for p in (stated, 1 - stated))
    information = design.T @ (design * (cells.count[0] * stated * (1 - stated))[:, None])
    score = (ones - (ones + zeros) * stated) @ design
    if cells.moved is not None:
        score += (rng.standard_normal(score.shape) * np.sqrt(cells.moved[0])) @ information
    thetas, evidence = [], []
    for component in prior.components:
        precision = laplace.precisions(cells.spread(prior, component), cells.moved)[0]
        curvature = information + np.diag(precision)
        thetas.append(np.linalg.solve(curvature, score.T).T)
        gain = np.log(precision).sum() - np.linalg.slogdet(curvature)[1] + (score * thetas[-1]).sum(axis=-1)
        evidence.append(np.log(component.weight) + gain / 2)
    weight = np.exp(evidence - np.max(evidence, axis=0))
    weight /= weight.sum(axis=0)
    gap = sum(w[:, None] * (expit(cells.logit[0] + t @ design.T) - stated) for w, t in zip(weight, thetas, strict=True))
    return np.asarray(np.clip(cells.score[0] + gap, 0, 1))


def _own_band(band: str | None, stated: float, share: float, rows: float, level: float) -> tuple[float, float, float]:
    """Lower end, middle and upper end of the band at a heavy value."""
    if band is None or band == "simultaneous":
        return (float("nan"),) * 3
    if band == "consistency":
        ends, middle = binomial_consistency(np.array([stated]), np.array([rows]), level), stated
    else:
        ends, middle = wilson_interval(np.array([share * rows]), np.array([rows]), level), share
    return float(ends[0][0]), middle, float(ends[1][0])


def _density(nodes: FloatArray, mass: FloatArray, at: IntArray) -> FloatArray:
    """Density at some nodes, from the rows nearest to each, so that linear interpolation integrates to 1."""
    home = np.searchsorted((at[1:] + at[:-1]) / 2, np.arange(mass.size))
    rows = np.bincount(home, mass, minlength=at.size)
    gaps = np.diff(nodes[at])
    width = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2
    total = float(mass.sum())
    return np.asarray(rows / (width * total)) if total > 0 else np.zeros(at.size)
