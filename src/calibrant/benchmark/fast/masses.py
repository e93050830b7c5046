"""Samples of a batch as masses on the public grid's nodes, and on the rank axis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import FloatArray, IntArray
from ...density.grid import GRID_CELLS as PUBLIC_CELLS
from ...errors.residual import RANK_CELLS


@dataclass(frozen=True, eq=False)
class NodeMasses:
    """Samples shared by the nodes of the public grid (4096 cells), without its empty cells: two masses a run.

    A run is what one cell of one row holds; it leaves a part of its samples at the node below and the rest at the
    node above. Both nodes have a rank: the samples below, and half of what the node itself holds.
    """

    row: IntArray
    ranks: FloatArray
    counts: FloatArray
    residuals: FloatArray
    score_sums: FloatArray
    rows: int

    @classmethod
    def of(cls, scores: FloatArray, outcomes: FloatArray, domain: tuple[float, float]) -> NodeMasses:
        """Find the runs of samples (R, n) that are sorted by score."""
        low, high = domain
        rows, n = scores.shape
        step = (high - low) / PUBLIC_CELLS
        position = np.clip((scores - low) * (PUBLIC_CELLS / (high - low)), 0, PUBLIC_CELLS)
        cell = position.astype(np.int32)
        position -= cell
        starts = np.ones(cell.shape, dtype=bool)
        np.not_equal(cell[:, 1:], cell[:, :-1], out=starts[:, 1:])
        at = np.flatnonzero(starts)
        row = at // n
        home = cell.ravel()[at]
        size = np.diff(at, append=cell.size).astype(np.float64)
        above = np.add.reduceat(position.ravel(), at)
        below = size - above
        hit = np.add.reduceat(outcomes.ravel(), at)
        hit_above = np.add.reduceat((outcomes * position).ravel(), at)
        node = low + step * home
        before = at - row * n  # samples in cells below
        joined = np.zeros(at.shape, dtype=bool)  # the next cell is occupied too
        joined[:-1] = (row[1:] == row[:-1]) & (home[1:] == home[:-1] + 1)
        from_below = np.zeros(at.shape)
        from_below[1:] = np.where(joined[:-1], above[:-1], 0.0)
        to_next = np.zeros(at.shape)
        to_next[:-1] = np.where(joined[:-1], below[1:], 0.0)
        ranks = np.stack([before + (below - from_below) / 2, before + size + (to_next - above) / 2]) / n
        counts = np.stack([below, above])
        score_sums = np.stack([below * node, above * (node + step)])
        residuals = np.stack([hit - hit_above, hit_above]) - score_sums
        return cls(row, ranks, counts, residuals, score_sums, rows)

    @cached_property
    def ranked_counts(self) -> FloatArray:
        """Samples at each node of the rank axis, (R, 257)."""
        return self._on_ranks(self.counts)

    @cached_property
    def ranked_residuals(self) -> FloatArray:
        """Sums of ``o - s`` at each node of the rank axis, (R, 257)."""
        return self._on_ranks(self.residuals)

    @cached_property
    def ranked_score_sums(self) -> FloatArray:
        """Sums of scores at each node of the rank axis, (R, 257)."""
        return self._on_ranks(self.score_sums)

    @cached_property
    def _places(self) -> tuple[IntArray, FloatArray]:
        """Flat index of the rank axis' node below each mass, and its offset from there."""
        position = np.clip(self.ranks, 0, 1) * RANK_CELLS
        cell = np.minimum(position.astype(np.int64), RANK_CELLS - 1)
        position -= cell
        cell += self.row * (RANK_CELLS + 1)
        return cell.ravel(), position.ravel()

    def _on_ranks(self, values: FloatArray) -> FloatArray:
        """Values shared linearly by the two nearest nodes of the rank axis."""
        index, share = self._places
        length = self.rows * (RANK_CELLS + 1)
        flat = values.ravel()
        up = flat * share
        out = np.bincount(index, flat - up, minlength=length)
        out[1:] += np.bincount(index, up, minlength=length)[:-1]
        return np.asarray(out.reshape(self.rows, -1), dtype=np.float64)
