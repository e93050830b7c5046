"""Sums of fixed size, whatever the number of rows, in pairs of numbers: a sum and its rounding error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.checks import received
from ..data.types import FloatArray, IntArray
from ..estimators import Binned, CellEstimator, EmpiricalBayes, Estimator
from ..estimators.names import as_estimator
from ..sums import BinMoments, Bins, Grid
from ..sums.edges import EDGE_UNITS, Edges
from ..sums.grid import GRID_CELLS, GridMoments

#: In float32, values are split at this unit and summed over this many rows: sums of the upper parts are then exact.
_UNIT, _TILE = 2.0**-11, 1 << 13


def added(stacked: Tensor) -> Tensor:
    """Sums (2, …) of pieces (W, 2, …)."""
    out = stacked[0].clone()
    for piece in stacked[1:]:
        _add(out, piece[0])
        _add(out, piece[1])
    return out


def as_double(pair: Tensor) -> FloatArray:
    """Numbers (…) of pairs (2, …), as float64 on the CPU."""
    return np.asarray(pair.detach().cpu().double().sum(dim=0))


def as_pair(pair: Tensor, dtype: torch.dtype) -> Tensor:
    """Pairs (2, …) of numbers of another type."""
    if pair.dtype == dtype:
        return pair
    value = torch.as_tensor(as_double(pair))
    high = value.to(dtype)
    return torch.stack([high, (value - high.double()).to(dtype)]).to(pair.device)


def _add(pair: Tensor, value: Tensor) -> None:
    """Add numbers to pairs in place, without a rounding error of the first order (Knuth's and Dekker's sums)."""
    high, low = pair
    total = high + value
    moved = total - high
    error = low + ((high - (total - moved)) + (value - moved))
    pair[0] = total + error
    pair[1] = error - (pair[0] - total)


def resolved(estimator: str | Estimator) -> CellEstimator:
    """Check the estimator."""
    chosen = as_estimator(estimator, EmpiricalBayes())
    if not isinstance(chosen, CellEstimator):
        raise ValueError(f"estimator must work on grid counts or be Binned with fixed edges; got {received(estimator)}")
    return chosen


def sums_named(estimator: CellEstimator, domain: tuple[float, float]) -> StreamedSums:
    """Sums that the estimator needs."""
    needs = estimator._needs(domain)
    if isinstance(needs, Grid):
        return _Grids(domain)
    if isinstance(needs, Bins) and needs.mapping == "hard":
        return _Bins(needs.edges)
    if isinstance(estimator, Binned):
        raise ValueError(f"estimator must have fixed edges and hard mapping to be streamed; got {received(estimator)}")
    raise ValueError(
        "estimator must work on grid counts (EmpiricalBayes, Density, ResidualKernel, AdaptiveKernel, Smooth) or be "
        f"Binned with fixed edges and hard mapping; got {received(estimator)}"
    )


class StreamedSums(ABC):
    """Sums of problems: ``rows`` tables of ``size`` cells each."""

    rows: int
    size: int

    @property
    def identity(self) -> tuple[int, int]:
        """Number of bins and a checksum of their edges; zeros for a grid."""
        return 0, 0

    def empty(self, problems: int) -> Tensor:
        """Pairs without rows, (2, problems, rows, size)."""
        return torch.zeros((2, problems, self.rows, self.size), dtype=torch.float64)

    def add(self, pairs: Tensor, scores: Tensor, outcomes: Tensor, eps: float) -> None:
        """Add the rows of one problem to its sums (2, rows, size), in their type."""
        n = scores.shape[0]
        step = n if pairs.dtype == torch.float64 else _TILE
        for start in range(0, n, max(step, 1)):
            tile = slice(start, start + step)
            for row, parts in enumerate(self.shares(scores[tile], outcomes[tile], eps)):
                for slot, value in parts:
                    for share in _exact(value, pairs.dtype):
                        _add(pairs[:, row], torch.bincount(slot, share, minlength=self.size))

    @abstractmethod
    def read(self, sums: FloatArray) -> Any:
        """Sums (problems, rows, size) as the core has them; the first table counts the rows of each problem."""

    @abstractmethod
    def shares(self, scores: Tensor, outcomes: Tensor, eps: float) -> list[list[tuple[Tensor, Tensor]]]:
        """Cells and values in them, for each table: values of one cell are summed."""


def _rows_of(sums: FloatArray) -> IntArray:
    """Rows of each problem: counts were shared between nodes, and their sums are whole up to rounding."""
    return np.asarray(np.rint(sums[:, 0].sum(axis=-1)), dtype=np.intp)


def _exact(value: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Numbers in [0, 1] in parts whose sums over a tile round to what counts."""
    if dtype == torch.float64:
        return (value,)
    upper = torch.round(value / _UNIT) * _UNIT
    return upper, value - upper


@dataclass(frozen=True)
class _Grids(StreamedSums):
    """Linear-binned counts of all samples and of the positives, as `Grid` requires."""

    domain: tuple[float, float]
    rows = 2
    size = GRID_CELLS + 1

    def read(self, sums: FloatArray) -> GridMoments:
        n = _rows_of(sums)
        return GridMoments(*self.domain, sums[:, 0], sums[:, 1], n.astype(float), n.astype(float), n)

    def shares(self, scores: Tensor, outcomes: Tensor, eps: float) -> list[list[tuple[Tensor, Tensor]]]:
        low, high = self.domain
        position = ((scores.to(outcomes.dtype) - low) * (GRID_CELLS / (high - low))).clamp(0, GRID_CELLS)
        cell = position.long().clamp(max=GRID_CELLS - 1)
        above = position - cell
        return [[(cell, w * (1 - above)), (cell + 1, w * above)] for w in (torch.ones_like(outcomes), outcomes)]


@dataclass(frozen=True)
class _Bins(StreamedSums):
    """Samples, sums of scores and of outcomes per bin, as `Bins` requires."""

    edges: Edges
    rows = 3

    @property
    def size(self) -> int:  # type: ignore[override]  # of a field in the base class
        return self.edges.n_bins

    @property
    def identity(self) -> tuple[int, int]:
        return self.edges.n_bins, hash(self.edges)

    def read(self, sums: FloatArray) -> BinMoments:
        weight, score, outcome = sums[:, 0], sums[:, 1], sums[:, 2]
        return BinMoments(self.edges, "hard", weight, score, outcome, weight, weight, _rows_of(sums))

    def shares(self, scores: Tensor, outcomes: Tensor, eps: float) -> list[list[tuple[Tensor, Tensor]]]:
        edges, n_bins = self.edges, self.edges.n_bins
        if edges.uniform:
            low, high = float(edges.values[0]), float(edges.values[-1])
            factor = n_bins / (high - low)
            # As the core does, in the scores' own precision: a rounding error above an edge lies on it.
            position = scores * factor if low == 0 else ((scores - low) * factor).clamp(0, n_bins)
            slot = (position + (1 - min(EDGE_UNITS * eps * factor, 0.5))).long()
        else:
            wide = outcomes.dtype
            limits = torch.tensor(edges.limits(eps).tolist(), dtype=wide, device=scores.device)
            slot = torch.searchsorted(limits, scores.to(wide), side="left") + 1
        slot = slot.clamp(1, n_bins) - 1
        values = (torch.ones_like(outcomes), scores.to(outcomes.dtype), outcomes)
        return [[(slot, value)] for value in values]
