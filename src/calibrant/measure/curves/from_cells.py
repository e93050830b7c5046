"""From an estimator's summary to a `ReliabilityCurve`, with a band where a level is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.types import FloatArray, Label
from ...estimators.base import MIN_LOCAL_SIZE, CellEstimator, Cells
from ...estimators.model_cells import DrawnFromNodes
from ...sums import BinMoments
from ..inference.tied_scores import TiedScores
from ..result import ReliabilityCurve
from .band_kinds import Band, binned_band, smooth_band


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
    estimator = estimator._drawn_as or DrawnFromNodes()
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
        estimator=describe(estimator),
        n_samples=int(summary.n_samples),
        band=None if level is None else band,
    )


def describe(estimator: Any) -> str:
    """Short name of an estimator for tables and legends."""
    return repr(estimator)


def _where(known: Any, values: FloatArray) -> FloatArray:
    return np.where(known, values, np.nan)


def _density(cells: Cells, width: FloatArray) -> FloatArray:
    total = float((cells.density * cells.quadrature).sum())
    with np.errstate(over="ignore"):  # two scores may be closer than 1e-308
        return cells.density / (total * width) if total > 0 else np.zeros_like(width)
