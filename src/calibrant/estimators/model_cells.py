"""Cells of estimators that fit a map, and the curve drawn for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from ..data.types import FloatArray
from ..sums import GridMoments
from ..sums.grid import GRID_CELLS, share_out
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
    """:class:`AdaptiveKernel` on the counts of sums that are no grid of scores."""

    def __repr__(self) -> str:
        return repr(AdaptiveKernel(self.wanted, self.widest))

    def _cells(self, sums: Any) -> Cells:
        """Cells of the score axis."""
        return super()._cells(as_grid(sums))


def as_grid(sums: Any) -> GridMoments:
    """Counts of one problem on the regular grid that curves are drawn from, from any sums with atoms."""
    if isinstance(sums, GridMoments):
        return sums
    scores, count, positive = sums.atoms
    used = count > 0
    low, high = getattr(sums, "domain", (0.0, 1.0))
    counts, ones = (shared_counts(scores[used], v[used], (low, high), GRID_CELLS) for v in (count, positive))
    total = float(count.sum())
    return GridMoments(low, high, counts, ones, total, total, sums.n_samples)


def shared_counts(at: FloatArray, values: FloatArray, domain: tuple[float, float], cells: int) -> FloatArray:
    """Values at positions (…, m), each shared by the two nearest of ``cells + 1`` nodes over the domain."""
    low, high = domain
    position = np.clip((at - low) * (cells / (high - low)), 0, cells)
    # A position that was a node's comes back with a rounding error, which must not open the next node.
    near = np.round(position)
    position = np.where(np.abs(position - near) < 1e-9, near, position)
    cell = np.minimum(position.astype(np.intp), cells - 1)
    return share_out(cell, position - cell, values, cells)


def check_eps(eps: Any) -> float:
    """Judge the ``eps`` argument: how near to 0 and 1 a probability may come."""
    if isinstance(eps, bool) or not isinstance(eps, (int, float, np.number)):
        raise TypeError(f"eps must be a number in (0, 0.1]; got {eps!r}")
    if not 0 < eps <= 0.1:
        raise ValueError(f"eps must lie in (0, 0.1]; got {eps!r}")
    return float(eps)


def check_width(bandwidth: float | str, rules: tuple[str, ...]) -> float | str:
    """Judge a ``bandwidth`` argument: a rule's name or a positive finite number, made a float."""
    allowed = f"bandwidth must be {', '.join(map(repr, rules))} or a positive finite number"
    if isinstance(bandwidth, str):
        if bandwidth not in rules:
            raise ValueError(f"{allowed}; got {bandwidth!r}")
        return bandwidth
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, (int, float, np.number)):
        raise TypeError(f"{allowed}; got {bandwidth!r}")
    if not 0 < bandwidth < inf:  # Not np.isfinite, which a traced training loss could not follow.
        raise ValueError(f"{allowed}; got {bandwidth!r}")
    return float(bandwidth)
