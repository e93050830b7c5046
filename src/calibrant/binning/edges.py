"""Bin edges and which bin a score belongs to. Bins are right-closed; the first also takes its left edge.

A score within two rounding units of 1 (in the dtype it arrived in) above an edge lies on that edge, so that 0.3
belongs to (0.2, 0.3] whether it was typed, computed as 1 - 0.7, or stored as float32. Edges found in the data
(quantiles) lie between scores and are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray

#: Scores are compared with edges up to this many rounding units of 1 in their dtype: 1 - x carries the rounding
#: error of x, which is a fraction of that unit however small 1 - x is.
EDGE_UNITS = 2.0
_CELLS = 4096


@dataclass(frozen=True, eq=False)
class Edges:
    """Strictly increasing bin edges over a domain.

    ``uniform`` marks equal widths (indexed without a search), ``exact`` edges that allow no rounding error.
    """

    values: FloatArray
    uniform: bool = False
    exact: bool = False

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.values) - 1

    @property
    def centres(self) -> FloatArray:
        """Midpoints of the bins."""
        return (self.values[:-1] + self.values[1:]) / 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edges) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def slots(self, scores: FloatArray, eps: float) -> AnyArray:
        """Slot of each score: bin number + 1; slot 0 is the left edge itself and belongs to bin 1.

        Scores below the first edge get slot 0 and above the last edge slot ``n_bins + 1``, which
        :meth:`fold` adds to the end bins.
        """
        if self.uniform:
            return self._uniform_slots(scores, eps)
        return self._table_slots(scores, eps)

    def fold(self, sums: AnyArray) -> AnyArray:
        """Sums a slot (last axis) to sums a bin."""
        bins: AnyArray = sums[..., 1:-1].copy()
        bins[..., 0] += sums[..., 0]
        bins[..., -1] += sums[..., -1]
        return bins

    def _uniform_slots(self, scores: FloatArray, eps: float) -> AnyArray:
        low, high = float(self.values[0]), float(self.values[-1])
        kind = scores.dtype.type
        factor = self.n_bins / (high - low)
        # ceil(x - slack) = floor(x + 1 - slack): pulling scores a rounding error above an edge onto it is free.
        slack = min(EDGE_UNITS * eps * factor, 0.5)
        if low == 0:
            position = scores * kind(factor)
        else:
            position = scores - kind(low)
            position *= kind(factor)
            np.clip(position, 0, self.n_bins, out=position)
        position += kind(1 - slack)
        return position.astype(np.int32)

    def limits(self, eps: float) -> FloatArray:
        """Inner edges, each raised by the rounding error that a score on it may have.

        Where edges lie so close that this would matter, the error is relative to the edge.
        """
        inner = self.values[1:-1]
        if self.exact or inner.size == 0:
            return inner
        unit = EDGE_UNITS * eps
        gap = np.diff(self.values[1:])
        return np.asarray(inner + np.maximum(np.minimum(unit, gap / 1000), np.minimum(unit * np.abs(inner), gap / 4)))

    def _table(self, limits: FloatArray) -> tuple[AnyArray, FloatArray, bool]:
        """For each of 4096 cells of [low, high]: bins left of it, and the one limit inside it (else inf)."""
        low, high = float(self.values[0]), float(self.values[-1])
        cell = np.minimum(((limits - low) * (_CELLS / (high - low))).astype(np.intp), _CELLS - 1)
        alone = len(np.unique(cell)) == len(cell)
        threshold = np.full(_CELLS, np.inf)
        threshold[cell] = limits
        before = np.searchsorted(cell, np.arange(_CELLS), side="left").astype(np.int32)
        return before, threshold, alone

    @cached_property
    def _tables(self) -> dict[float, tuple[AnyArray, FloatArray, bool]]:
        return {}

    def _table_slots(self, scores: FloatArray, eps: float) -> AnyArray:
        """Arbitrary edges: a look-up table where each cell holds at most one edge, else a binary search."""
        limits = self.limits(eps)
        if scores.size < _CELLS:
            slots = np.searchsorted(limits, scores, side="left").astype(np.int32)
        else:
            if eps not in self._tables:
                self._tables[eps] = self._table(limits)
            before, threshold, alone = self._tables[eps]
            if alone:
                low, high = float(self.values[0]), float(self.values[-1])
                position = scores.astype(np.float64)
                position -= low
                position *= _CELLS / (high - low)
                np.clip(position, 0, _CELLS - 1, out=position)
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
    """Edges as the user gave them (judged by ``Binned``)."""
    return Edges(np.asarray(values, dtype=np.float64))


def resolve_n_bins(n_bins: int | str, n: float) -> int:
    """Number of bins: ``"sqrt"`` is floor(√n), ``"cbrt"`` floor(∛n), at least 1."""
    if n_bins == "sqrt":
        return max(1, int(np.floor(np.sqrt(n) * (1 + 1e-12))))
    if n_bins == "cbrt":
        return max(1, int(np.floor(np.cbrt(n) * (1 + 1e-12))))
    return int(n_bins)


def quantile_edges(
    scores: FloatArray,
    weights: FloatArray | None,
    n_bins: int,
    domain: tuple[float, float] = (0.0, 1.0),
    *,
    integral: bool = True,
) -> Edges:
    """Edges that give every bin the same number of samples, up to one, where scores do not tie.

    Cut j lies after the ``floor(j n / B)``-th smallest score, midway to the next; when these two are equal
    the cut lies on them and the whole tie goes left, so equal scores never part. A tie of the smallest or the
    largest score, such as an atom at 0 or 1, is cut off from the others. Cuts that coincide merge: there are at
    most ``n_bins`` bins, and fewer when there are fewer distinct scores.

    Cost: O(n) for n samples (only the cells of a fine histogram that hold a cut are sorted).
    """
    below, above = _order_statistics(scores, weights, n_bins, integral)
    keep = ~np.isnan(below)
    below, above = below[keep], above[keep]
    middle = below + (above - below) / 2
    cuts = np.unique(np.where(middle < above, middle, below))  # neighbouring floats have no number between them
    if (below == above).any():
        cuts = _off_the_ends(cuts, scores if weights is None else scores[weights > 0])
    low, high = domain
    inner = cuts[(cuts > low) & (cuts < high)]
    return Edges(np.concatenate([[low], inner, [high]]), exact=True)


def _off_the_ends(cuts: FloatArray, scores: FloatArray) -> FloatArray:
    """Cuts on the smallest score moved up, and on the largest moved down, midway to the next distinct score."""
    least, most = float(scores.min()), float(scores.max())
    moved = cuts.copy()
    if least < most:
        if (cuts == least).any():
            moved[cuts == least] = (least + float(scores[scores > least].min())) / 2
        if (cuts >= most).any():
            moved[cuts >= most] = (most + float(scores[scores < most].max())) / 2
    return np.unique(moved)


def _order_statistics(
    scores: FloatArray, weights: FloatArray | None, n_bins: int, integral: bool
) -> tuple[FloatArray, FloatArray]:
    """The scores just below and just above each of the ``n_bins - 1`` cuts; NaN where a cut precedes all."""
    j = np.arange(1, n_bins)
    if weights is None:
        n = scores.size
        ranks = j * n // n_bins  # samples left of the cut
        ranks = ranks[ranks > 0]
        if ranks.size == 0:
            return np.empty(0), np.empty(0)
        wanted = np.unique(np.concatenate([ranks - 1, ranks]))
        values = _select(scores, wanted)
        return values[np.searchsorted(wanted, ranks - 1)], values[np.searchsorted(wanted, ranks)]
    used = weights > 0
    order = np.argsort(scores[used], kind="stable")
    x = scores[used][order].astype(np.float64)
    cumulative = np.cumsum(weights[used][order])
    target = j * (cumulative[-1] / n_bins)
    slack = 1e-12 * cumulative[-1]
    if integral:
        target = np.floor(target + slack)
    target = target[target > slack]
    # The sample in which the target falls; on its end, the cut lies between it and the next one.
    i = np.minimum(np.searchsorted(cumulative, target - slack, side="left"), x.size - 1)
    on_end = np.abs(cumulative[i] - target) <= slack
    return x[i], x[np.where(on_end, np.minimum(i + 1, x.size - 1), i)]


def _select(scores: FloatArray, ranks: AnyArray) -> FloatArray:
    """Order statistics at sorted 0-based ``ranks``, without sorting everything."""
    n = scores.size
    if n < 20_000 or ranks.size > 400:
        return np.sort(scores)[ranks].astype(np.float64)
    cell = (scores * scores.dtype.type(_CELLS)).astype(np.int32)
    np.minimum(cell, _CELLS - 1, out=cell)
    ends = np.cumsum(np.bincount(cell, minlength=_CELLS))
    home = np.searchsorted(ends, ranks, side="right")
    cells = np.unique(home)
    if (ends[cells] - np.concatenate([[0], ends])[cells]).sum() > n // 3:
        return np.sort(scores)[ranks].astype(np.float64)
    chosen = np.zeros(_CELLS, dtype=bool)
    chosen[cells] = True
    part = np.sort(scores[chosen[cell]])
    # Ranks within the part: subtract what lies in the cells left out.
    counts = np.diff(ends, prepend=0)
    skipped = np.cumsum(np.where(chosen, 0, counts))
    return np.asarray(part[ranks - skipped[home]], dtype=np.float64)
