"""True maps: ``P(outcome | score)``, called with the logit of a score, and ``P(label = k | vector)``.

Given ``P_k = s``, a Dirichlet vector's other entries are ``(1 - s) V`` with V Dirichlet again and independent of s.
For class k, each map of vectors depends on V only through one number (:meth:`VectorMap.statistic`), so the
conditional expectation given a single score s is a sum over a histogram.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logit

from ...data.checks import check_number, check_positive
from ...data.types import FloatArray


class TrueMap(ABC):
    """A map from logits of scores to probabilities."""

    @abstractmethod
    def __call__(self, z: FloatArray) -> FloatArray:
        """``P(outcome | logit(score) = z)``."""

    @property
    def breaks(self) -> tuple[float, ...]:
        """Logits at which the map is not smooth."""
        return ()


@dataclass(frozen=True)
class IdentityMap(TrueMap):
    """A calibrated model: the probability is the score."""

    def __call__(self, z: FloatArray) -> FloatArray:
        """``expit(z)``."""
        return np.asarray(expit(z))


@dataclass(frozen=True)
class Logistic(TrueMap):
    """``expit(slope · z + shift)``: over-confident scores have a slope below 1, under-confident ones above."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, z: FloatArray) -> FloatArray:
        """``expit(slope · z + shift)``."""
        return np.asarray(expit(self.slope * z + self.shift))


@dataclass(frozen=True)
class BetaMap(TrueMap):
    """The map of beta calibration: ``expit(a · log s - b · log(1 - s) + c)``; the identity is (1, 1, 0).

    References
    ----------
    Kull, Silva Filho & Flach (2017), *Beta calibration*.
    """

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    def __call__(self, z: FloatArray) -> FloatArray:
        """``expit(a · log s - b · log(1 - s) + c)``."""
        return np.asarray(expit(self.a * log_expit(z) - self.b * log_expit(-z) + self.c))


@dataclass(frozen=True)
class Wavy(TrueMap):
    """``s + amplitude · 4 s (1 - s) · sin(waves · π s)``: calibrated on average, miscalibrated nearly everywhere."""

    amplitude: float = 0.1
    waves: float = 3.0

    def __post_init__(self) -> None:
        check_number("amplitude", self.amplitude, least=-0.25, most=0.25)  # beyond them the map leaves [0, 1]

    def __call__(self, z: FloatArray) -> FloatArray:
        """``s + amplitude · 4 s (1 - s) · sin(waves · π s)``."""
        s = expit(z)
        return np.asarray(s + self.amplitude * 4 * s * expit(-z) * np.sin(self.waves * np.pi * s))


@dataclass(frozen=True)
class Rippled(TrueMap):
    """``expit(z + shift + amplitude · sin(frequency · z))``: waves on the logit axis, so near 0 and 1 too."""

    amplitude: float
    frequency: float
    shift: float = 0.0

    def __call__(self, z: FloatArray) -> FloatArray:
        """``expit(z + shift + amplitude · sin(frequency · z))``."""
        return np.asarray(expit(z + self.shift + self.amplitude * np.sin(self.frequency * z)))


@dataclass(frozen=True)
class Local(TrueMap):
    """``s + gap`` on ranges of scores ``(low, high, gap)``, and the score itself elsewhere."""

    ranges: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        for low, high, gap in self.ranges:
            if not 0 <= low < high <= 1 or min(low + gap, high + gap) < 0 or max(low + gap, high + gap) > 1:
                raise ValueError(f"ranges must be (low, high, gap) that stay within [0, 1]; got {(low, high, gap)!r}")

    def __call__(self, z: FloatArray) -> FloatArray:
        """``s + gap``."""
        s = expit(z)
        return np.asarray(s + sum(np.where((s >= low) & (s < high), gap, 0.0) for low, high, gap in self.ranges))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Ends of the ranges."""
        ends = {float(logit(end)) for low, high, _ in self.ranges for end in (low, high)}
        return tuple(sorted(end for end in ends if np.isfinite(end)))


@dataclass(frozen=True)
class Spline(TrueMap):
    """``expit`` of a natural cubic spline of the logit: linear beyond the outer knots, constant beyond the limits.

    Attributes
    ----------
    knots : tuple of float
        Ascending logits, at least three.
    coefficients : tuple of float
        Intercept, slope, and one coefficient per truncated cubic: ``len(knots)`` in all.
    limits : tuple of float
        Logits beyond which the map is constant, so that even a score of 1 may sometimes be wrong.
    """

    knots: tuple[float, ...]
    coefficients: tuple[float, ...]
    limits: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        if len(self.knots) < 3 or any(b <= a for a, b in zip(self.knots, self.knots[1:], strict=False)):
            raise ValueError(f"knots must be three or more ascending logits; got {self.knots!r}")
        if len(self.coefficients) != len(self.knots):
            raise ValueError(
                f"coefficients must have one value per knot ({len(self.knots)}); got {len(self.coefficients)}: "
                f"{self.coefficients!r}"
            )

    def __call__(self, z: FloatArray) -> FloatArray:
        """``expit(Σ coefficient · basis)``."""
        basis = spline_basis(np.clip(z, *self.limits), self.knots)
        return np.asarray(expit(basis @ np.asarray(self.coefficients)))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Knots and limits."""
        return tuple(b for b in (*self.knots, *self.limits) if np.isfinite(b))


def spline_basis(z: FloatArray, knots: tuple[float, ...]) -> FloatArray:
    """Harrell's restricted cubic basis: 1, z, and ``len(knots) - 2`` cubics that become linear outside the knots."""
    z = np.asarray(z, dtype=np.float64)
    first, before, last = knots[0], knots[-2], knots[-1]

    def cube(knot: float) -> FloatArray:
        return np.asarray(np.maximum(z - knot, 0.0) ** 3)

    columns = [np.ones(z.shape), z]
    for knot in knots[:-2]:
        bend = cube(knot) - (cube(before) * (last - knot) - cube(last) * (before - knot)) / (last - before)
        columns.append(bend / (last - first) ** 2)
    return np.stack(columns, axis=-1)


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
        """Effect of each class on the probability of class k; classes with equal effects are exchangeable."""

    @abstractmethod
    def statistic(self, k: int, others: FloatArray) -> FloatArray:
        """Statistics, for class k's probability, of the other classes' shares ``V``, (n, K - 1), which sum to 1."""

    @abstractmethod
    def bounds(self, k: int) -> tuple[float, float]:
        """Range of the statistic."""

    @abstractmethod
    def given(self, k: int, x: FloatArray, statistic: FloatArray) -> FloatArray:
        """Probability of class k at logit x of its score; broadcasts."""


@dataclass(frozen=True)
class Softened(VectorMap):
    """``softmax(power · log p + bias)``: over-confident vectors have a power below 1, under-confident ones above.

    Attributes
    ----------
    power : float
    bias : tuple of float
        One number per class.
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
        """Whether the power is 1 and all biases are equal."""
        return self.power == 1 and len(set(self.bias)) == 1

    def roles(self, k: int) -> FloatArray:
        """The biases."""
        return np.asarray(self.bias)

    def statistic(self, k: int, others: FloatArray) -> FloatArray:
        """``log Σ exp(bias_j) V_j^power``."""
        return np.asarray(np.log(others**self.power @ np.exp(np.delete(self.bias, k))))

    def bounds(self, k: int) -> tuple[float, float]:
        """Range of the power mean, shifted by that of the biases."""
        bias = np.delete(self.bias, k)
        even = (1 - self.power) * np.log(len(bias))
        return float(bias.min() + min(even, 0.0)), float(bias.max() + max(even, 0.0))

    def given(self, k: int, x: FloatArray, statistic: FloatArray) -> FloatArray:
        """``expit(power · x + bias_k - statistic)``."""
        return np.asarray(expit(self.power * x + self.bias[k] - statistic))


@dataclass(frozen=True)
class Confused(VectorMap):
    """``p @ matrix``: labels are drawn from p, then class j is mistaken for k with probability ``matrix[j][k]``."""

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
        """Whether no class is mistaken for another."""
        return bool((np.asarray(self.matrix) == np.eye(len(self.matrix))).all())

    def roles(self, k: int) -> FloatArray:
        """Column k."""
        return np.asarray(self.matrix)[:, k]

    def statistic(self, k: int, others: FloatArray) -> FloatArray:
        """``Σ V_j matrix[j][k]``."""
        return np.asarray(others @ np.delete(self.roles(k), k))

    def bounds(self, k: int) -> tuple[float, float]:
        """Smallest and largest probability of being mistaken for k."""
        column = np.delete(self.roles(k), k)
        return float(column.min()), float(column.max())

    def given(self, k: int, x: FloatArray, statistic: FloatArray) -> FloatArray:
        """``matrix[k][k] s + (1 - s) statistic``."""
        return np.asarray(self.matrix[k][k] * expit(x) + expit(-x) * statistic)
