"""Bin edges, and the assignment of scores to bins. Bins are right-closed; the first also includes its left edge.

A score within two rounding units of 1 (in its original dtype) above an edge lies on that edge, so that 0.3
belongs to (0.2, 0.3] whether it was typed, computed as 1 - 0.7, or stored as float32. Edges found in the data
(quantiles) lie between scores and are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from ..data.printing import number_of
from ..data.types import AnyArray, FloatArray

#: Scores are compared with edges up to this many rounding units of 1 in their dtype: 1 - x carries the rounding
#: error of x, which is a fraction of that unit however small 1 - x is.
EDGE_UNITS = 2.0
CELLS = 4096
#: Sample size beyond which rules give no more bins (10⁵), whatever the size of weights.
_LARGEST_SIZE = 1e10


@dataclass(frozen=True, eq=False)
class Edges:
    """Strictly increasing bin edges over a domain, ``values`` of shape (B + 1,).

    Or those of many problems, (R, B + 1), with NaN after a problem's last edge: ``edges[i]`` are those of one.
    ``uniform`` marks equal widths (indexed without a search), ``exact`` edges without tolerance for rounding errors.
    """

    values: FloatArray
    uniform: bool = False
    exact: bool = False

    @property
    def n_bins(self) -> int:
        """Number of bins (the largest one, for many problems)."""
        return int(self.values.shape[-1]) - 1

    @property
    def centres(self) -> FloatArray:
        """Midpoints of the bins."""
        return (self.values[..., :-1] + self.values[..., 1:]) / 2

    def __getitem__(self, index: Any) -> Edges:
        """Edges of one or some of many problems; common edges are those of each problem."""
        if self.values.ndim == 1:
            return self
        values = self.values[index]
        return Edges(values[~np.isnan(values)] if values.ndim == 1 else values, exact=self.exact)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edges) and np.array_equal(self.values, other.values, equal_nan=True)

    def __str__(self) -> str:
        inner = self.values[1:-1] if self.values.ndim == 1 and self.n_bins <= 10 else ""
        return f"{number_of(self.n_bins, 'bin')} {inner}".rstrip()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # The same in every process, as edges travel with what was kept: that of bytes is salted.
        return crc32(self.values.tobytes())

    def slots(self, scores: FloatArray, eps: float) -> AnyArray:
        """Slot of each score: bin number + 1; slot 0 is the left edge itself and belongs to bin 1.

        Scores below the first edge get slot 0 and those above the last edge slot ``n_bins + 1``, which
        :meth:`fold` adds to the end bins.
        """
        if self.uniform:
            return self._uniform_slots(scores, eps)
        return self._table_slots(scores, eps)

    def fold(self, sums: AnyArray) -> AnyArray:
        """Convert sums per slot (last axis) to sums per bin."""
        bins: AnyArray = sums[..., 1:-1].copy()
        bins[..., 0] += sums[..., 0]
        bins[..., -1] += sums[..., -1]
        return bins

    def _uniform_slots(self, scores: FloatArray, eps: float) -> AnyArray:
        low, factor, shift = self.steps(eps)
        kind = scores.dtype.type
        if low == 0:
            position = scores * kind(factor)
        else:
            position = scores - kind(low)
            position *= kind(factor)
            np.clip(position, 0, self.n_bins, out=position)
        position += kind(shift)
        return position.astype(np.int32)

    def steps(self, eps: float) -> tuple[float, float, float]:
        """Low, factor and shift of uniform edges: slots are ``floor((s - low) · factor + shift)`` in the scores' dtype.

        ``ceil(x - slack) = floor(x + 1 - slack)``: moving scores a rounding error above an edge onto it is free.
        """
        low, high = float(self.values[0]), float(self.values[-1])
        factor = self.n_bins / (high - low)
        return low, factor, 1 - min(EDGE_UNITS * eps * factor, 0.5)

    def limits(self, eps: float) -> FloatArray:
        """Inner edges, each raised by the rounding error that a score on it may have.

        If edges are so close that this would matter, the error is relative to the edge.
        """
        inner = self.values[1:-1]
        if self.exact or inner.size == 0:
            return inner
        unit = EDGE_UNITS * eps
        gap = np.diff(self.values[1:])
        return np.asarray(inner + np.maximum(np.minimum(unit, gap / 1000), np.minimum(unit * np.abs(inner), gap / 4)))

    def _table(self, limits: FloatArray) -> tuple[AnyArray, FloatArray, bool]:
        """For each of 4096 cells of [low, high]: number of bins left of it, and the one limit inside it (else inf)."""
        low, high = float(self.values[0]), float(self.values[-1])
        cell = np.minimum(((limits - low) * (CELLS / (high - low))).astype(np.intp), CELLS - 1)
        alone = len(np.unique(cell)) == len(cell)
        threshold = np.full(CELLS, np.inf)
        threshold[cell] = limits
        before = np.searchsorted(cell, np.arange(CELLS), side="left").astype(np.int32)
        return before, threshold, alone

    @cached_property
    def _tables(self) -> dict[float, tuple[AnyArray, FloatArray, bool]]:
        return {}

    def _table_slots(self, scores: FloatArray, eps: float) -> AnyArray:
        """Slots for arbitrary edges: by a look-up table if cells contain at most one edge, else by binary search."""
        limits = self.limits(eps)
        if scores.size < CELLS:
            slots = np.searchsorted(limits, scores, side="left").astype(np.int32)
        else:
            if eps not in self._tables:
                self._tables[eps] = self._table(limits)
            before, threshold, alone = self._tables[eps]
            if alone:
                low, high = float(self.values[0]), float(self.values[-1])
                position = scores.astype(np.float64)
                position -= low
                position *= CELLS / (high - low)
                np.clip(position, 0, CELLS - 1, out=position)
                cell = position.astype(np.int32)
                slots = before[cell]
                slots += scores > threshold[cell]
            else:
                slots = np.searchsorted(limits, scores, side="left").astype(np.int32)
        slots += 1
        return slots


@lru_cache(maxsize=64)
def uniform_edges(n_bins: int, domain: tuple[float, float] = (0.0, 1.0)) -> Edges:
    """``n_bins`` bins of equal width over ``domain``; the same object for the same arguments."""
    values = np.linspace(domain[0], domain[1], n_bins + 1)
    values.flags.writeable = False
    return Edges(values, uniform=True)


def fixed_edges(values: Any) -> Edges:
    """Edges as given by the user (checked by ``Binned``)."""
    return Edges(np.asarray(values, dtype=np.float64))


def resolve_n_bins(n_bins: int | str, n: float) -> int:
    """Number of bins: ``"sqrt"`` is floor(√n), ``"cbrt"`` floor(∛n), at least 1, with n capped at 10¹⁰."""
    n = min(n, _LARGEST_SIZE)
    if n_bins == "sqrt":
        return max(1, int(np.floor(np.sqrt(n) * (1 + 1e-12))))
    if n_bins == "cbrt":
        return max(1, int(np.floor(np.cbrt(n) * (1 + 1e-12))))
    return int(n_bins)
