"""What every estimator eats: one 1-D problem, a set of them, or one vector problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from ._types import AnyArray, FloatArray, IntArray, Label
from .predictions import effective_size


@dataclass(frozen=True, eq=False)
class Problem:
    """One calibration problem in one dimension: is the mean of ``outcomes`` at score s equal to s?

    Parameters
    ----------
    scores : ndarray of shape (n,)
        float32 or float64, in [0, 1].
    outcomes : ndarray of shape (n,)
        0/1, any integer, bool or float dtype.
    weights : ndarray of shape (n,) or None
    integral : bool
        Whether the weights count repeats (see :attr:`Predictions.integral_weights`).
    domain : tuple of float
        Where scores can lie: (0, 1), or (1/K, 1) for a confidence.
    eps : float
        Rounding unit of the scores as the user passed them.
    label : object
        The class it speaks of; None for a confidence.
    share : float
        Weight of this problem among its siblings; a set's shares sum to 1.
    """

    scores: FloatArray
    outcomes: AnyArray
    weights: FloatArray | None = None
    integral: bool = True
    domain: tuple[float, float] = (0.0, 1.0)
    eps: float = float(np.finfo(np.float64).eps)
    label: Label = None
    share: float = 1.0

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.scores.shape[0])

    @cached_property
    def effective_size(self) -> float:
        """Sample size; see :func:`calibrant.predictions.effective_size`."""
        return effective_size(self.weights, self.n_samples, integral=self.integral)


@dataclass(frozen=True, eq=False)
class ProblemSet(Sequence[Problem]):
    """Problems that are estimated one by one and then combined.

    Parameters
    ----------
    problems : tuple of Problem
    average : {"power", "mean", "max"}
        ``"power"``: ``(Σ share · eᵖ)^(1/p)``, the maximum for p = inf; ``"mean"``: ``Σ share · e``;
        ``"max"``: the worst.
    dependent : bool
        Whether the problems share rows (one-vs-rest), rather than splitting them.
    """

    problems: tuple[Problem, ...]
    average: str = "power"
    dependent: bool = False

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | Sequence[Problem]:
        return self.problems[index]

    def __len__(self) -> int:
        return len(self.problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)


@dataclass(frozen=True, eq=False)
class OneVsRest(Sequence[Problem]):
    """The K one-vs-rest problems of a probability matrix, sliced out only when asked for.

    Estimators that can work on the whole matrix do so, in row tiles that stay in the cache; the others
    iterate and get one contiguous column at a time.
    """

    probs: FloatArray
    codes: IntArray
    weights: FloatArray | None
    integral: bool
    eps: float
    classes: tuple[Label, ...]
    average: str = "power"
    dependent: bool = True

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | Sequence[Problem]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Problem(
            np.ascontiguousarray(self.probs[:, index]),
            self.codes == index,
            self.weights,
            self.integral,
            (0.0, 1.0),
            self.eps,
            self.classes[index],
            1 / len(self),
        )

    def __len__(self) -> int:
        return len(self.classes)


@dataclass(frozen=True, eq=False)
class VectorProblem:
    """The canonical problem: is the vector of class frequencies at probability vector q equal to q?"""

    probs: FloatArray
    codes: IntArray
    weights: FloatArray | None
    integral: bool
    eps: float
    classes: tuple[Label, ...]
    logs: FloatArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    @cached_property
    def effective_size(self) -> float:
        """Sample size; see :func:`calibrant.predictions.effective_size`."""
        return effective_size(self.weights, self.n_samples, integral=self.integral)


Reduction = ProblemSet | OneVsRest | VectorProblem


def is_vector(reduction: Any) -> bool:
    """Whether the reduction is a vector problem."""
    return isinstance(reduction, VectorProblem)
