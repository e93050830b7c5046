"""Reliability curves drawn from the posterior, at any scores: outcome frequencies and their uncertainty.

They are the curves of :mod:`.posterior_curve`: smooth maps of the scores, and isolated scores that many rows share
("heavy values"), each with its own frequency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from ..estimators import EmpiricalBayes
from ..estimators.empirical_bayes import WIDE, cells_of_groups
from ..estimators.maps import FittedMaps
from .posterior_curve import cosines, widened, without_heavy


@dataclass(frozen=True, eq=False)
class DrawnCurves:
    """Curves of one problem.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Scores, ascending.
    gaps : ndarray of shape (R, m)
        Drawn gaps at the scores; linearly interpolated between them, and constant outside.
    heavy : ndarray of shape (h,)
        Scores with their own frequencies, ascending.
    frequencies : ndarray of shape (R, h)
        Drawn frequencies of heavy values.
    step : float
        Largest distance at which a score is matched to a heavy value.
    """

    scores: FloatArray
    gaps: FloatArray
    heavy: FloatArray
    frequencies: FloatArray
    step: float

    @classmethod
    def diagonal(cls, n_draws: int) -> DrawnCurves:
        """Curves of a calibrated model: frequencies equal scores."""
        return cls(np.array([0.5]), np.zeros((n_draws, 1)), np.empty(0), np.empty((n_draws, 0)), 0.0)

    @classmethod
    def of(cls, problem: Problem, n_draws: int, rng: np.random.Generator) -> DrawnCurves:
        """Draw curves; cost O(n), plus that of the posterior, independent of the number of rows."""
        grid = EmpiricalBayes().summarize(problem).dense
        nodes, mass, positive = grid.atoms
        others, first, _ = without_heavy(grid)
        scores, gaps = np.array([0.5]), np.zeros((n_draws, 1))
        for _, cells in cells_of_groups(others, 1, cosines):
            used = np.flatnonzero(cells.count[0] > 0)
            drawn = FittedMaps.of(cells, WIDE).draw_gaps(n_draws, rng)
            found = drawn.gap[0][:, used]
            middle = found.mean(axis=0)
            scores, gaps = cells.score[0][used], middle + widened(cells) * (found - middle)
        pairs = first[:, None] + [0, 1]
        # Behind the last node, which a score of 1 lies on, there are no rows.
        rows, ones, total = (np.append(v, 0.0)[pairs].sum(axis=1) for v in (mass, positive, mass * nodes))
        heavy = total / rows
        unit = float(grid.effective_size / mass.sum())
        # Jeffreys' prior.
        frequencies = rng.beta(ones * unit + 0.5, (rows - ones) * unit + 0.5, (n_draws, heavy.size))
        return cls(scores, gaps, heavy, frequencies, grid.step)

    def read(self, at: AnyArray) -> ReadCurves:
        """Locate scores (n,) on the curves."""
        right = np.clip(np.searchsorted(self.scores, at), 1, max(self.scores.size - 1, 1))
        left = right - 1
        right = np.minimum(right, self.scores.size - 1)
        width = self.scores[right] - self.scores[left]
        part = np.divide(at - self.scores[left], width, out=np.zeros(at.shape), where=width > 0).clip(0, 1)
        apart, value = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        if self.heavy.size:
            value = np.abs(at[:, None] - self.heavy).argmin(axis=1)
            apart = np.flatnonzero(np.abs(at - self.heavy[value]) <= self.step)
            value = value[apart]
        return ReadCurves(self, at, left, right, part, apart, value)


@dataclass(frozen=True, eq=False)
class ReadCurves:
    """Positions of scores (n,) on curves."""

    curves: DrawnCurves
    at: FloatArray
    left: IntArray
    right: IntArray
    part: FloatArray
    apart: IntArray
    value: IntArray

    def of(self, draws: slice) -> FloatArray:
        """Probabilities (d, n) from some of the draws."""
        return self._from(self.curves.gaps[draws], self.curves.frequencies[draws])

    def mean(self) -> FloatArray:
        """Probabilities (n,) from the mean of all draws."""
        gaps, frequencies = (v.mean(axis=0, keepdims=True) for v in (self.curves.gaps, self.curves.frequencies))
        return np.asarray(self._from(gaps, frequencies)[0])

    def _from(self, gaps: FloatArray, frequencies: FloatArray) -> FloatArray:
        out: FloatArray = gaps[:, self.left] * (1 - self.part)
        out += gaps[:, self.right] * self.part
        out += self.at
        np.clip(out, 0, 1, out=out)
        out[:, self.apart] = frequencies[:, self.value]
        return out
