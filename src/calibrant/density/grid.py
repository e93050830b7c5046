"""`GridMoments`: linear-binned counts of scores and of positives. All that density estimates need to know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray
from ..problem import Problem

#: Grid cells over the domain; on [0, 1] the step is 0.00024, finer than the published code's 0.00037.
GRID_CELLS = 4096
_TILE = 1 << 15


@dataclass(frozen=True, eq=False)
class GridMoments:
    """Counts on the nodes of a regular grid; each sample is shared by its two nearest nodes.

    Attributes
    ----------
    low, high : float
        Domain of the scores.
    count, positive : ndarray of shape (G + 1,)
        ``Σ w a`` and ``Σ w a o`` with the linear share ``a`` of a sample at a node: a sample between two
        nodes gives each the share proportional to its nearness, which keeps the mean score exact.
    total, squares : float
        ``Σ w`` and ``Σ w²``.
    n_samples : int
    integral : bool
        Whether all weights were whole numbers.

    Notes
    -----
    Grids of one domain and size add, so data can come in any pieces, and a bootstrap can resample the counts
    instead of the rows.
    """

    low: float
    high: float
    count: FloatArray
    positive: FloatArray
    total: float = 0.0
    squares: float = 0.0
    n_samples: int = 0
    integral: bool = True

    @classmethod
    def empty(cls, domain: tuple[float, float] = (0.0, 1.0), cells: int = GRID_CELLS) -> GridMoments:
        """Counts of no sample."""
        zero = np.zeros(cells + 1)
        return cls(float(domain[0]), float(domain[1]), zero, zero)

    @classmethod
    def of(cls, problem: Problem, cells: int = GRID_CELLS) -> GridMoments:
        """Counts of a problem's samples. Cost O(n + G)."""
        p = problem
        count, positive = _linear_counts(p.scores, p.outcomes, p.weights, p.domain, cells)
        if p.weights is None:
            total = squares = float(p.n_samples)
        else:
            total, squares = float(p.weights.sum()), float(p.weights @ p.weights)
        return cls(p.domain[0], p.domain[1], count, positive, total, squares, p.n_samples, p.integral)

    def __add__(self, other: GridMoments) -> GridMoments:
        if not isinstance(other, GridMoments):
            return NotImplemented
        if (self.low, self.high, self.count.size) != (other.low, other.high, other.count.size):
            raise ValueError(
                f"GridMoments of different grids cannot merge: [{self.low}, {self.high}] with {self.count.size} nodes "
                f"and [{other.low}, {other.high}] with {other.count.size}"
            )
        return GridMoments(
            self.low,
            self.high,
            self.count + other.count,
            self.positive + other.positive,
            self.total + other.total,
            self.squares + other.squares,
            self.n_samples + other.n_samples,
            self.integral and other.integral,
        )

    merge = __add__

    @property
    def cells(self) -> int:
        """Number of grid cells G."""
        return self.count.size - 1

    @property
    def step(self) -> float:
        """Distance between nodes."""
        return (self.high - self.low) / self.cells

    @cached_property
    def nodes(self) -> FloatArray:
        """Scores of the nodes."""
        return np.linspace(self.low, self.high, self.cells + 1)

    @property
    def effective_size(self) -> float:
        """Sample size: rows, repeats, or Kish's effective size for relative weights."""
        if self.integral:
            return self.total
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    def coarsen(self, factor: int) -> GridMoments:
        """Counts on every ``factor``-th node, the others shared linearly (``factor`` divides G)."""
        if factor == 1:
            return self
        up = np.arange(factor) / factor

        def fold(values: FloatArray) -> FloatArray:
            inner = values[:-1].reshape(-1, factor)
            out = np.zeros(self.cells // factor + 1)
            out[:-1] += inner @ (1 - up)
            out[1:] += inner @ up
            out[-1] += values[-1]
            return out

        return GridMoments(
            self.low,
            self.high,
            fold(self.count),
            fold(self.positive),
            self.total,
            self.squares,
            self.n_samples,
            self.integral,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        return {
            "low": self.low,
            "high": self.high,
            "count": self.count.tolist(),
            "positive": self.positive.tolist(),
            "total": self.total,
            "squares": self.squares,
            "n_samples": self.n_samples,
            "integral": self.integral,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GridMoments:
        """Inverse of :meth:`to_dict`; raises ValueError when a field is missing or of the wrong length."""
        try:
            count, positive = (np.asarray(data[f], dtype=np.float64) for f in ("count", "positive"))
            scalars = [float(data[f]) for f in ("low", "high", "total", "squares")]
            n, integral = int(data["n_samples"]), bool(data["integral"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a serialised GridMoments: {error}") from error
        if count.ndim != 1 or count.shape != positive.shape or count.size < 2:
            raise ValueError("not a serialised GridMoments: count and positive must have one number a node")
        return cls(scalars[0], scalars[1], count, positive, scalars[2], scalars[3], n, integral)


def _linear_counts(
    scores: FloatArray,
    outcomes: AnyArray,
    weights: FloatArray | None,
    domain: tuple[float, float],
    cells: int,
) -> tuple[FloatArray, FloatArray]:
    """Linear-binned counts of all samples and of the positives.

    Two histograms by (outcome, cell) are enough: the number of samples in a cell and the sum of their
    offsets within it, since a cell with m samples of offset sum f gives m - f to its left node and f to its right.
    """
    low, high = domain
    size = cells + 1
    mass = np.zeros(2 * size)
    offset = np.zeros(2 * size)
    for a in range(0, scores.shape[0], _TILE):
        position = scores[a : a + _TILE].astype(np.float64)
        if low != 0.0:
            position -= low
        position *= cells / (high - low)
        if low != 0.0:
            np.clip(position, 0, cells, out=position)
        cell = position.astype(np.int32)
        position -= cell
        cell += np.multiply(outcomes[a : a + _TILE], size, dtype=np.int32, casting="unsafe")
        index = cell.astype(np.intp)
        if weights is None:
            mass += np.bincount(index, minlength=2 * size)
        else:
            w = weights[a : a + _TILE]
            mass += np.bincount(index, w, minlength=2 * size)
            position *= w
        offset += np.bincount(index, position, minlength=2 * size)
    by_outcome = (mass - offset).reshape(2, size)
    by_outcome[:, 1:] += offset.reshape(2, size)[:, :-1]
    return by_outcome.sum(axis=0), by_outcome[1]
