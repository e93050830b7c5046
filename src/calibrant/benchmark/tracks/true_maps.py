"""True maps: ``P(outcome | score)`` as values that are called with the logit of a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

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
    """``s + amplitude · 4 s (1 - s) · sin(waves · π s)``: right on average, wrong nearly everywhere."""

    amplitude: float = 0.1
    waves: float = 3.0

    def __post_init__(self) -> None:
        if not abs(self.amplitude) <= 0.25:
            raise ValueError(f"amplitude must be in [-0.25, 0.25], or the map leaves [0, 1]; got {self.amplitude!r}")

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
class Spline(TrueMap):
    """``expit`` of a natural cubic spline of the logit: linear beyond its first and last knot, constant beyond limits.

    Attributes
    ----------
    knots : tuple of float
        Ascending logits, at least three.
    coefficients : tuple of float
        Intercept, slope, and one a truncated cubic: ``len(knots)`` in all.
    limits : tuple of float
        Logits beyond which the map is constant: even a score of 1 may fail at times.
    """

    knots: tuple[float, ...]
    coefficients: tuple[float, ...]
    limits: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        if len(self.knots) < 3 or any(b <= a for a, b in zip(self.knots, self.knots[1:], strict=False)):
            raise ValueError(f"knots must be three or more ascending logits; got {self.knots!r}")
        if len(self.coefficients) != len(self.knots):
            raise ValueError(
                f"coefficients must be one a knot ({len(self.knots)}); got {len(self.coefficients)}: "
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
