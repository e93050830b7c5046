"""Score distributions: mixtures of Beta and logit-normal components, with atoms. All arithmetic is on the logit axis.

A score t in (0, 1) is stored as x = logit t, which resolves both ends: a score of 1 - 10⁻²⁰ differs from 1,
and densities that are infinite at 0 or 1 are smooth functions of x with exponential tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import betainc, betaln, expit, log_expit, logit, ndtr

from ...data.checks import check_number, check_positive
from ...data.types import FloatArray

#: Largest |logit| that is drawn: its score and its complement are normal float64 numbers.
LARGEST_LOGIT = 700.0
#: Logarithm of the mass that integrals may leave out at each end.
LOG_TAIL = -36.0


class ScoreComponent(Protocol):
    """One component of a score distribution, on (0, 1)."""

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw logits of ``size`` scores."""
        ...

    def density(self, x: FloatArray) -> FloatArray:
        """Density of the logit."""
        ...

    def cdf(self, scores: FloatArray) -> FloatArray:
        """Cumulative distribution function of the score."""
        ...

    def support(self) -> tuple[float, float]:
        """Range of logits outside of which at most about 10⁻¹⁵ of the mass lies."""
        ...

    def scale(self) -> float:
        """Length on the logit axis over which the density is smooth."""
        ...


@dataclass(frozen=True)
class Beta:
    """Beta(a, b) scores."""

    a: float
    b: float

    def __post_init__(self) -> None:
        check_positive("a", self.a)
        check_positive("b", self.b)

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw logarithms of ratios of gamma variables, exact far beyond the resolution of a score near 1."""
        with np.errstate(divide="ignore"):
            up, down = np.log(rng.standard_gamma(self.a, size)), np.log(rng.standard_gamma(self.b, size))
        x = np.maximum(up, -1e300) - np.maximum(down, -1e300)
        return np.asarray(np.clip(x, -LARGEST_LOGIT, LARGEST_LOGIT))

    def density(self, x: FloatArray) -> FloatArray:
        """``t^a (1 - t)^b / B(a, b)``."""
        return np.asarray(np.exp(self.a * log_expit(x) + self.b * log_expit(-x) - betaln(self.a, self.b)))

    def cdf(self, scores: FloatArray) -> FloatArray:
        """Regularised incomplete beta function."""
        return np.asarray(betainc(self.a, self.b, scores))

    def support(self) -> tuple[float, float]:
        """From the exponential tails ``exp(a x) / (a B)`` and ``exp(-b x) / (b B)``, which bound the density."""
        low, high = ((LOG_TAIL + np.log(k) + betaln(self.a, self.b)) / k for k in (self.a, self.b))
        return max(float(low), -LARGEST_LOGIT), min(float(-high), LARGEST_LOGIT)

    def scale(self) -> float:
        """Standard deviation at the mode, at most that of the logistic density."""
        return float(min(1.0, np.sqrt(1 / self.a + 1 / self.b)))


@dataclass(frozen=True)
class LogitNormal:
    """Scores whose logit is normal: heavier at both ends than any Beta distribution of the same median."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        check_positive("sd", self.sd)

    def draw(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw normal logits."""
        return np.clip(rng.normal(self.mean, self.sd, size), -LARGEST_LOGIT, LARGEST_LOGIT)

    def density(self, x: FloatArray) -> FloatArray:
        """Normal density of the logit."""
        z = (x - self.mean) / self.sd
        return np.asarray(np.exp(-z * z / 2) / (self.sd * np.sqrt(2 * np.pi)))

    def cdf(self, scores: FloatArray) -> FloatArray:
        """Normal probability at the logit."""
        return np.asarray(ndtr((logit(scores) - self.mean) / self.sd))

    def support(self) -> tuple[float, float]:
        """Eight standard deviations about the mean."""
        return (
            max(self.mean - 8 * self.sd, -LARGEST_LOGIT),
            min(self.mean + 8 * self.sd, LARGEST_LOGIT),
        )

    def scale(self) -> float:
        """Its standard deviation, at most 1."""
        return min(1.0, self.sd)


@dataclass(frozen=True)
class Atom:
    """Mass at one score, and the frequency of the outcome there."""

    score: float
    mass: float
    frequency: float

    def __post_init__(self) -> None:
        for name in ("score", "mass", "frequency"):
            check_number(f"{name} of an Atom", getattr(self, name), least=0, most=1)


@dataclass(frozen=True)
class ScoreLaw:
    """A mixture of components on ``[low, 1]``, and atoms.

    Attributes
    ----------
    components : tuple of Component
        Components of the distribution of ``t``, where the score is ``low + (1 - low) t``.
    weights : tuple of float
        Shares of components in the mass outside atoms; they sum to 1.
    atoms : tuple of Atom
    low : float
        Smallest score: 0, or 1/K for the confidence among K classes.
    """

    components: tuple[ScoreComponent, ...]
    weights: tuple[float, ...] = (1.0,)
    atoms: tuple[Atom, ...] = ()
    low: float = 0.0

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.components) or not self.components:
            raise ValueError(f"weights must have one value per component; got {self.weights!r} for {self.components!r}")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError(f"weights must be at least 0 and sum to 1; got {self.weights!r}")
        if self.atom_mass > 1:
            raise ValueError(f"atoms must have a total mass of at most 1; got {self.atom_mass!r}")
        check_number("low", self.low, least=0, below=1)

    @property
    def atom_mass(self) -> float:
        """Mass of all atoms."""
        return float(sum(atom.mass for atom in self.atoms))

    def draw(self, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw logits of ``t`` of ``size`` samples, and the index of the atom of each (-1 for none)."""
        shares = [w * (1 - self.atom_mass) for w in self.weights] + [atom.mass for atom in self.atoms]
        kind = np.searchsorted(np.cumsum(shares)[:-1], rng.random(size), side="right")
        x = np.zeros(size)
        for i, component in enumerate(self.components):
            rows = np.flatnonzero(kind == i)
            x[rows] = component.draw(len(rows), rng)
        return x, np.maximum(kind - len(self.components), -1)

    def logits(self, x: FloatArray) -> FloatArray:
        """``logit(score)`` from ``logit(t)``; with ``low = 0`` they are equal."""
        if self.low == 0:
            return x
        return np.asarray(np.log(self.scores(x)) - np.log1p(-self.low) - log_expit(-x))

    def scores(self, x: FloatArray) -> FloatArray:
        """Score from ``logit(t)``."""
        return np.asarray(self.low + (1 - self.low) * expit(x))

    def positions(self, z: FloatArray) -> FloatArray:
        """``logit(t)`` from ``logit(score)`` for scores above ``low``: the inverse of :meth:`logits`."""
        return z if self.low == 0 else np.asarray(np.log(expit(z) - self.low) - log_expit(-z))

    def density(self, x: FloatArray) -> FloatArray:
        """Density of ``logit(t)`` without atoms; it integrates to ``1 - atom_mass``."""
        parts = (w * c.density(x) for w, c in zip(self.weights, self.components, strict=True))
        return np.asarray((1 - self.atom_mass) * sum(parts))

    def cdf(self, scores: FloatArray) -> FloatArray:
        """Cumulative distribution function of the score."""
        scores = np.asarray(scores, dtype=np.float64)
        t = np.clip((scores - self.low) / (1 - self.low), 0, 1)
        parts = (w * c.cdf(t) for w, c in zip(self.weights, self.components, strict=True))
        below = sum((np.where(scores >= atom.score, atom.mass, 0.0) for atom in self.atoms), np.zeros(scores.shape))
        return np.asarray((1 - self.atom_mass) * sum(parts) + below)

    def support(self) -> tuple[float, float]:
        """Range of ``logit(t)`` that integrals must cover."""
        ends = [c.support() for c in self.components]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def scale(self) -> float:
        """Length on the logit axis over which the density is smooth."""
        return min(c.scale() for c in self.components)
