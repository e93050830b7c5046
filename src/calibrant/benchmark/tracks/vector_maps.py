"""True maps of probability vectors: ``P(label = k | vector)`` as values.

Given ``P_k = s``, a Dirichlet vector's other entries are ``(1 - s) V`` with V Dirichlet again and independent of s.
Each map here depends on V, for class k, through one number only (:meth:`VectorMap.statistic`): that makes the
conditional expectation given s, a single score, a sum over a histogram.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ...data.checks import check_positive
from ...data.types import FloatArray


class VectorMap(ABC):
    """A map from probability vectors to the probabilities of labels."""

    @abstractmethod
    def __call__(self, p: FloatArray) -> FloatArray:
        """Probabilities of labels, of the shape (..., K) of ``p``."""

    @property
    @abstractmethod
    def calibrated(self) -> bool:
        """Whether it is the identity."""

    @abstractmethod
    def roles(self, k: int) -> FloatArray:
        """One number a class: what it does to the probability of class k. Classes alike in it are interchangeable."""

    @abstractmethod
    def statistic(self, k: int, others: FloatArray) -> FloatArray:
        """What class k's probability needs of the others' shares ``V``, (n, K - 1), which sum to 1."""

    @abstractmethod
    def bounds(self, k: int) -> tuple[float, float]:
        """Range of the statistic."""

    @abstractmethod
    def given(self, k: int, x: FloatArray, statistic: FloatArray) -> FloatArray:
        """Probability of class k where its score has logit x; broadcasts."""


@dataclass(frozen=True)
class Softened(VectorMap):
    """``softmax(power · log p + bias)``: over-confident vectors have a power below 1, under-confident ones above.

    Attributes
    ----------
    power : float
    bias : tuple of float
        One a class.
    """

    power: float
    bias: tuple[float, ...]

    def __post_init__(self) -> None:
        check_positive("power", self.power)

    def __call__(self, p: FloatArray) -> FloatArray:
        """``softmax(power · log p + bias)``."""
        # Relative to the largest entry, which keeps sums away from underflow.
        q = (p / p.max(axis=-1, keepdims=True)) ** self.power * np.exp(self.bias)
        return np.asarray(q / q.sum(axis=-1, keepdims=True))

    @property
    def calibrated(self) -> bool:
        """Power 1 and equal biases."""
        return self.power == 1 and len(set(self.bias)) == 1

    def roles(self, k: int) -> FloatArray:
        """The biases."""
        return np.asarray(self.bias)

    def statistic(self, k: int, others: FloatArray) -> FloatArray:
        """``log Σ exp(bias_j) V_j^power``."""
        return np.asarray(np.log(others**self.power @ np.exp(np.delete(self.bias, k))))

    def bounds(self, k: int) -> tuple[float, float]:
        """The power mean's range, moved by the biases'."""
        bias = np.delete(self.bias, k)
        even = (1 - self.power) * np.log(len(bias))
        return float(bias.min() + min(even, 0.0)), float(bias.max() + max(even, 0.0))

    def given(self, k: int, x: FloatArray, statistic: FloatArray) -> FloatArray:
        """``expit(power · x + bias_k - statistic)``."""
        return np.asarray(expit(self.power * x + self.bias[k] - statistic))


@dataclass(frozen=True)
class Confused(VectorMap):
    """Labels are drawn from p, then class j is mistaken for k with probability ``matrix[j][k]``: ``p @ matrix``."""

    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        m = np.asarray(self.matrix)
        if m.ndim != 2 or m.shape[0] != m.shape[1] or m.min() < 0 or np.abs(m.sum(axis=1) - 1).max() > 1e-12:
            raise ValueError(f"matrix must be square with rows of probabilities that sum to 1; got {self.matrix!r}")

    def __call__(self, p: FloatArray) -> FloatArray:
        """``p @ matrix``."""
        return np.asarray(p @ np.asarray(self.matrix))

    @property
    def calibrated(self) -> bool:
        """Nothing is mistaken."""
        return bool((np.asarray(self.matrix) == np.eye(len(self.matrix))).all())

    def roles(self, k: int) -> FloatArray:
        """Column k."""
        return np.asarray(self.matrix)[:, k]

    def statistic(self, k: int, others: FloatArray) -> FloatArray:
        """``Σ V_j matrix[j][k]``."""
        return np.asarray(others @ np.delete(self.roles(k), k))

    def bounds(self, k: int) -> tuple[float, float]:
        """Least and largest chance of being mistaken for k."""
        column = np.delete(self.roles(k), k)
        return float(column.min()), float(column.max())

    def given(self, k: int, x: FloatArray, statistic: FloatArray) -> FloatArray:
        """``matrix[k][k] s + (1 - s) statistic``."""
        return np.asarray(self.matrix[k][k] * expit(x) + expit(-x) * statistic)
