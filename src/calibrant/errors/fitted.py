"""Cells of estimators that fit a map, and the curve drawn for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._types import FloatArray
from ..density import GridMoments
from ..density.grid import GRID_CELLS
from .adaptive import AdaptiveKernel
from .base import Cells


@dataclass(frozen=True, eq=False)
class FittedCells(Cells):
    """Cells without a smoother, whose gap a fit has found from all of them.

    Attributes
    ----------
    fitted : ndarray of shape (m,)
        Gap of each cell.
    """

    fitted: FloatArray = field(kw_only=True)

    @cached_property
    def gap(self) -> FloatArray:
        """Fitted minus predicted."""
        return self.fitted

    @cached_property
    def residual_gap(self) -> FloatArray:
        """Fitted minus predicted."""
        return self.fitted


@dataclass(frozen=True, repr=False)
class DrawnFromNodes(AdaptiveKernel):
    """:class:`AdaptiveKernel` on the counts of a summary that has a grid of its own."""

    def __repr__(self) -> str:
        return repr(AdaptiveKernel(self.wanted, self.widest))

    def cells(self, summary: Any) -> Cells:
        """Cells of the score axis, of a summary that can say its counts on a regular grid."""
        return super().cells(summary.grid())


def grid_of(
    scores: FloatArray,
    count: FloatArray,
    positive: FloatArray,
    domain: tuple[float, float],
    *,
    total: float,
    squares: float,
    n_samples: int,
    integral: bool,
) -> GridMoments:
    """Counts that lie at ``scores``, shared linearly by the nodes of the regular grid."""
    low, high = domain
    position = np.clip((scores - low) * (GRID_CELLS / (high - low)), 0, GRID_CELLS)
    cell = np.minimum(position.astype(np.intp), GRID_CELLS - 1)
    share = position - cell

    def spread(values: FloatArray) -> FloatArray:
        below = np.bincount(cell, values * (1 - share), minlength=GRID_CELLS + 1)
        return np.asarray(below + np.bincount(cell + 1, values * share, minlength=GRID_CELLS + 1))

    return GridMoments(low, high, spread(count), spread(positive), total, squares, n_samples, integral)
