"""`CurveSpec`: computation of a `ReliabilityCurve` (smooth, binned or isotonic, CORP) and its band from sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.problem import Problem
from ..data.types import FloatArray, Label
from ..estimators import AdaptiveKernel, Binned, EmpiricalBayes, Isotonic
from ..estimators.base import MIN_LOCAL_SIZE, CellEstimator, Cells
from ..estimators.isotonic import isotonic_means
from ..sums import BinMoments, GridMoments
from .bands import Band, binned_band, increasing_band, isotonic_band, smooth_band
from .posterior_curve import posterior_curve
from .result import ReliabilityCurve
from .tied_scores import TiedScores


@dataclass(frozen=True, eq=False)
class CurveSpec:
    """Settings of curves: the estimator (None: isotonic), the band, and the random generator of its draws."""

    estimator: CellEstimator | None
    notion: str
    level: float | None
    rng: np.random.Generator
    n_resamples: int = 1000
    band: str = "confidence"

    @property
    def reads_ties(self) -> bool:
        """Whether a curve that is not isotonic also needs the scores of its rows, for a simultaneous band."""
        return self.band == "simultaneous" and self.level is not None and not isinstance(self.estimator, Binned)

    def of_rows(self, problem: Problem) -> ReliabilityCurve:
        """Curve of one problem; cost O(n), or O(n log n) if its rows are sorted, plus that of the band."""
        if self.estimator is None:
            return self.isotonic(TiedScores.of(problem, None), problem.label, problem.domain, problem.n_samples)
        ties = TiedScores.of(problem) if self.reads_ties else None
        return self.of_sums(self.estimator.summarize(problem), problem.label, ties)

    def of_sums(self, summary: Any, label: Label, ties: TiedScores | None = None) -> ReliabilityCurve:
        """Smooth curve or bins of one problem; cost independent of the number of rows."""
        reader = None if self.estimator is None else self.estimator._drawn_as
        reader = reader or AdaptiveKernel()
        if isinstance(reader, EmpiricalBayes):
            return self._posterior(summary, label, ties, repr(reader))
        summary = reader._shown(summary)
        cells = reader._cells(summary)
        found = Band.none(cells.count.size)
        edges = summary.edges.values if isinstance(summary, BinMoments) else None
        if edges is not None:
            known = cells.count > 0
            observed = cells.scores + cells.gap
            if self.level is not None:
                found = binned_band(self.band, cells.scores, observed, summary.effective_size, self.level)
            width = np.diff(edges)
        else:
            known = cells.local_size >= MIN_LOCAL_SIZE
            observed = np.clip(cells.scores + cells.gap, 0, 1)
            if self.level is not None:
                found = smooth_band(self.band, cells, ties, self.level, self.n_resamples, self.rng)
            width = np.full(cells.count.shape, (cells.scores[-1] - cells.scores[0]) / (cells.scores.size - 1))
        return self._curve(
            Band(*(np.where(known, end, np.nan) for end in found)),
            scores=cells.scores,
            observed=np.where(known, observed, np.nan),
            density=_density(cells, width),
            count=cells.local_size,
            edges=edges,
            label=label,
            estimator=repr(reader),
            n_samples=int(summary.n_samples),
        )

    def _posterior(self, grid: GridMoments, label: Label, ties: TiedScores | None, name: str) -> ReliabilityCurve:
        """Curve of the default estimator."""
        band = None if self.level is None else self.band
        found = posterior_curve(grid, band, self.level or 0.5, self.n_resamples, self.rng)
        ends = found.band
        if band == "simultaneous" and ties is not None and self.level is not None:
            ends = increasing_band(ties, self.level, found.scores)
        known = ~np.isnan(found.observed)
        return self._curve(
            Band(*(np.where(known, end, np.nan) for end in ends)),
            scores=found.scores,
            observed=found.observed,
            density=found.density,
            count=found.count,
            edges=None,
            label=label,
            estimator=name,
            n_samples=int(grid.n_samples),
            shared=found.shared,
        )

    def isotonic(self, ties: TiedScores, label: Label, domain: tuple[float, float], n_samples: int) -> ReliabilityCurve:
        """Curve with one value per score and steps midway between neighbouring scores; cost that of the band."""
        low, high = domain
        nothing: FloatArray = np.full(1, np.nan)
        scores, observed, found = nothing, nothing, Band.none(1)
        count: FloatArray = np.zeros(1)
        edges: FloatArray = np.array([low, high])
        if ties.size:
            scores, count = ties.score, ties.count
            observed = isotonic_means(ties.positive, count)
            edges = np.concatenate([[low], _middles(scores), [high]])
            found = Band.none(scores.size)
            if self.level is not None:
                found = isotonic_band(self.band, ties, self.level, self.n_resamples, self.rng)
        width = np.diff(edges)
        density = np.divide(count, width * count.sum(), out=np.zeros_like(count), where=(count > 0) & (width > 0))
        return self._curve(
            found,
            scores=scores,
            observed=observed,
            density=density,
            count=count,
            edges=edges,
            label=label,
            estimator=repr(Isotonic()),
            n_samples=n_samples,
            isotonic=True,
        )

    def _curve(self, found: Band, **about: Any) -> ReliabilityCurve:
        band = None if self.level is None else self.band
        return ReliabilityCurve(**found._asdict(), **about, level=self.level, notion=self.notion, band=band)


def _density(cells: Cells, width: FloatArray) -> FloatArray:
    total = float((cells.density * cells.quadrature).sum())
    with np.errstate(over="ignore"):  # two scores may be closer than 1e-308
        return cells.density / (total * width) if total > 0 else np.zeros_like(width)


def _middles(scores: FloatArray) -> FloatArray:
    """Midpoints between neighbouring scores; the lower score if these are adjacent floats."""
    below, above = scores[:-1], scores[1:]
    middle = below + (above - below) / 2
    return np.where(middle < above, middle, below)
