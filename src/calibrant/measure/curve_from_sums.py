"""From sums to a `ReliabilityCurve`, smooth, binned or isotonic (CORP), with a band where a level is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.problem import Problem
from ..data.types import FloatArray, Label
from ..estimators import AdaptiveKernel, Isotonic
from ..estimators.base import MIN_LOCAL_SIZE, CellEstimator, Cells
from ..estimators.isotonic import isotonic_means
from ..sums import BinMoments
from .bands import (
    Band,
    binned_band,
    isotonic_consistency_band,
    likelihood_ratio_band,
    simultaneous_band,
    smooth_band,
    steps,
)
from .result import ReliabilityCurve
from .tied_scores import MOST, TiedScores


def curve_from(
    estimator: CellEstimator,
    summary: Any,
    *,
    label: Label,
    notion: str,
    level: float | None,
    n_resamples: int,
    rng: np.random.Generator,
    band: str = "confidence",
    ties: TiedScores | None = None,
) -> ReliabilityCurve:
    """Curve of one problem from its summary; cost independent of the number of rows.

    A smooth curve's simultaneous band needs the scores of its rows.
    """
    estimator = estimator._drawn_as or AdaptiveKernel()
    summary = estimator._shown(summary)
    cells = estimator._cells(summary)
    found = Band.none(cells.count.size)
    edges = summary.edges.values if isinstance(summary, BinMoments) else None
    if edges is not None:
        known = cells.count > 0
        observed = cells.scores + cells.gap
        if level is not None:
            found = binned_band(band, cells.scores, observed, summary.effective_size, level)
        width = np.diff(edges)
    else:
        known = cells.local_size >= MIN_LOCAL_SIZE
        observed = np.clip(cells.scores + cells.gap, 0, 1)
        if level is not None:
            found = smooth_band(band, cells, ties, level, n_resamples, rng)
        width = np.full(cells.count.shape, (cells.scores[-1] - cells.scores[0]) / (cells.scores.size - 1))
    return ReliabilityCurve(
        scores=cells.scores,
        observed=_where(known, observed),
        lower=_where(known, found.lower),
        upper=_where(known, found.upper),
        median=_where(known, found.median),
        density=_density(cells, width),
        count=cells.local_size,
        edges=edges,
        level=level,
        label=label,
        notion=notion,
        estimator=repr(estimator),
        n_samples=int(summary.n_samples),
        band=None if level is None else band,
    )


def _where(known: Any, values: FloatArray) -> FloatArray:
    return np.where(known, values, np.nan)


def _density(cells: Cells, width: FloatArray) -> FloatArray:
    total = float((cells.density * cells.quadrature).sum())
    with np.errstate(over="ignore"):  # two scores may be closer than 1e-308
        return cells.density / (total * width) if total > 0 else np.zeros_like(width)


def is_isotonic(estimator: Any) -> bool:
    """Whether a ``estimator`` argument asks for the isotonic curve."""
    return isinstance(estimator, Isotonic) or (isinstance(estimator, str) and estimator in ("isotonic", "corp"))


def isotonic_curve(
    problem: Problem,
    *,
    notion: str,
    level: float | None,
    n_resamples: int = 1000,
    rng: np.random.Generator | None = None,
    band: str = "confidence",
) -> ReliabilityCurve:
    """Curve of one problem. Cost O(n log n), and that of the band."""
    return curve_of_ties(
        TiedScores.of(problem, most=None),
        domain=problem.domain,
        label=problem.label,
        notion=notion,
        n_samples=problem.n_samples,
        level=level,
        n_resamples=n_resamples,
        rng=rng,
        band=band,
    )


def curve_of_ties(
    ties: TiedScores,
    *,
    domain: tuple[float, float],
    label: Label,
    notion: str,
    n_samples: int,
    level: float | None,
    n_resamples: int,
    rng: np.random.Generator | None,
    band: str = "confidence",
) -> ReliabilityCurve:
    """Curve with one value per score; steps lie midway between neighbouring scores."""
    low, high = domain
    nothing: FloatArray = np.full(1, np.nan, dtype=np.float64)
    scores: FloatArray = nothing
    observed: FloatArray = nothing
    count: FloatArray = np.zeros(1)
    edges: FloatArray = np.array([low, high])
    found = Band.none(1)
    if ties.size:
        scores, count = ties.score, ties.count
        observed = isotonic_means(ties.positive, count)
        edges = np.concatenate([[low], _middles(scores), [high]])
        found = Band.none(scores.size) if level is None else _band(band, ties, level, n_resamples, rng)
    width = np.diff(edges)
    density = np.divide(count, width * count.sum(), out=np.zeros_like(count), where=(count > 0) & (width > 0))
    return ReliabilityCurve(
        scores=scores,
        observed=observed,
        lower=found.lower,
        upper=found.upper,
        median=found.median,
        density=density,
        count=count,
        edges=edges,
        level=level,
        label=label,
        notion=notion,
        estimator=repr(Isotonic()),
        n_samples=n_samples,
        band=None if level is None else band,
        isotonic=True,
    )


def _band(band: str, ties: TiedScores, level: float, n_resamples: int, rng: np.random.Generator | None) -> Band:
    """Band at each score; of very many, found from fewer."""
    few = ties.merged(MOST)
    if band == "simultaneous":
        lower, upper = steps(few, *simultaneous_band(few, level), ties.score)
        return Band(lower, np.full(lower.shape, np.nan), upper)
    if band == "consistency":
        found = Band(*isotonic_consistency_band(few, level, n_resamples, np.random.default_rng(rng)))
    else:
        lower, upper = likelihood_ratio_band(few, level)
        found = Band(lower, np.full(lower.shape, np.nan), upper)
    return found if few is ties else Band(*(np.interp(ties.score, few.score, v) for v in found))


def _middles(scores: FloatArray) -> FloatArray:
    """Midpoints between neighbouring scores; the lower one where floats leave no room."""
    below, above = scores[:-1], scores[1:]
    middle = below + (above - below) / 2
    return np.where(middle < above, middle, below)
