"""`TrackDistribution`: predictions and labels with known calibration error, and forms with one score per row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ...data.checks import check_choice, check_number
from ...data.problem import Problem
from ...data.types import AnyArray, FloatArray
from .score_mixtures import ScoreLaw
from .true_maps import IdentityMap, TrueMap

Function = Callable[[FloatArray], FloatArray]
#: Gauss points per panel; panels are at most half the length over which the integrand is smooth.
_NODES = 20


class ExactTruth(NamedTuple):
    """A true calibration error and its standard error (0 if computed by quadrature)."""

    value: float
    standard_error: float = 0.0


class TrackDistribution(ABC):
    """Predictions and labels with known calibration error.

    Attributes
    ----------
    name, track : str
    """

    name: str
    track: str

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes K."""

    @property
    @abstractmethod
    def notions(self) -> tuple[str, ...]:
        """Notions for which the truth is known."""

    @property
    @abstractmethod
    def calibrated(self) -> bool:
        """Whether every true error is exactly 0."""

    @abstractmethod
    def sample(self, n_sets: int, n: int, rng: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Draw evaluation sets.

        Returns
        -------
        scores : ndarray of shape (n_sets, n) or (n_sets, n, n_classes)
            One score per sample, or its probability vector.
        labels : ndarray of shape (n_sets, n)
            Outcomes 0 and 1, or numbers of classes.
        """

    @abstractmethod
    def problems(self, scores: FloatArray, labels: AnyArray, notion: str) -> tuple[Problem, ...]:
        """Reduce evaluation sets to the problems of a notion: one per class for ``"classwise"``, else a single one."""

    @abstractmethod
    def truth(self, notion: str, norm: float = 1) -> ExactTruth:
        """True error ``(E |gap|^p)^(1/p)`` of a notion."""

    def check(self, notion: str, norm: float) -> None:
        """Raise ValueError for a notion or norm without a known truth."""
        check_choice(f"notion of {self.name!r}", notion, self.notions)
        check_number("norm", norm, least=1)

    def __str__(self) -> str:
        return f"{self.track}/{self.name}"


@dataclass(frozen=True)
class ScalarDistribution(TrackDistribution):
    r"""One score per sample and a known map to outcomes; subclasses define the score.

    .. math:: s \sim law, \quad o \sim Bernoulli(g(s)), \quad truth = (E\,|g(s) - s|^p)^{1/p}

    Attributes
    ----------
    name, track : str
    law : ScoreLaw
    curve : TrueMap
        The map g; atoms of the distribution have their own frequencies.
    n_classes : int
    digits32 : bool
        Whether scores are rounded to float32, as in networks: many are then exactly 1. (Moves the truth by < 6e-8.)
    """

    name: str
    track: str
    law: ScoreLaw
    curve: TrueMap
    n_classes: int = 2
    digits32: bool = False

    @property
    def calibrated(self) -> bool:
        """Whether the map is the identity and the frequency of each atom equals its score."""
        return isinstance(self.curve, IdentityMap) and all(atom.frequency == atom.score for atom in self.law.atoms)

    def sample(self, n_sets: int, n: int, rng: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Scores and outcomes, each of shape (n_sets, n)."""
        x, kind = self.law.draw(n_sets * n, rng)
        scores, chance = self.law.scores(x), self.curve(self.law.logits(x))
        for i, atom in enumerate(self.law.atoms):
            scores[kind == i] = atom.score
            chance[kind == i] = atom.frequency
        outcomes = rng.random(n_sets * n) < chance
        if self.digits32:
            scores = np.maximum(scores.astype(np.float32).astype(np.float64), self.law.low)
        return scores.reshape(n_sets, n), outcomes.reshape(n_sets, n).astype(np.int8)

    @property
    def base_rate(self) -> float:
        """``E g(s)``."""
        smooth = integrate(
            lambda x: self.law.density(x) * self.curve(self.law.logits(x)),
            self.law.support(),
            self.law.scale(),
            self.breaks.tolist(),
        )
        return smooth + sum(atom.mass * atom.frequency for atom in self.law.atoms)

    @property
    def breaks(self) -> FloatArray:
        """Values of ``logit(t)`` at which the map is not smooth."""
        z = np.array([b for b in self.curve.breaks if self.law.low == 0 or expit(b) > self.law.low])
        return self.law.positions(z) if len(z) else z

    def signed(self, x: FloatArray) -> FloatArray:
        """Density times gap at logits x."""
        return self.law.density(x) * (self.curve(self.law.logits(x)) - self.law.scores(x))

    def _direct(self, norm: float) -> float:
        """Error of the unfolded scores."""
        merged = _merge((atom.score, atom.mass, atom.mass * (atom.frequency - atom.score)) for atom in self.law.atoms)
        power = integrate_gap(
            self.signed, self.law.density, self.law.support(), self.law.scale(), norm, self.breaks.tolist()
        )
        return _root(power + _atom_power(merged, norm), norm)


@dataclass(frozen=True)
class BinaryDistribution(ScalarDistribution):
    """Scores of one class: ``"class-specific"`` unchanged, ``"confidence"`` folded at one half.

    With ``folds=False`` only the former: the score of one of several classes does not determine the confidence.
    """

    folds: bool = True

    def __post_init__(self) -> None:
        if self.law.low != 0:
            raise ValueError(f"law of a BinaryDistribution must have low=0; got {self.law.low!r}")

    @property
    def notions(self) -> tuple[str, ...]:
        """Notions for which the truth is known."""
        return ("class-specific", "confidence") if self.folds else ("class-specific",)

    def problems(self, scores: FloatArray, labels: AnyArray, notion: str) -> tuple[Problem, ...]:
        """One problem; the first class wins a tie at one half."""
        self.check(notion, 1)
        if notion == "class-specific":
            return (Problem.samples(scores, labels),)
        up = scores > 0.5
        return (Problem.samples(np.where(up, scores, 1 - scores), labels == up, domain=(0.5, 1.0)),)

    def truth(self, notion: str, norm: float = 1) -> ExactTruth:
        """True error, by quadrature."""
        self.check(notion, norm)
        if self.calibrated:
            return ExactTruth(0.0)
        return ExactTruth(self._direct(norm) if notion == "class-specific" else self._folded(norm))

    def _folded(self, norm: float) -> float:
        """Error of ``max(s, 1 - s)``: the gap at a confidence mixes those at s and, with opposite sign, at 1 - s."""
        low, high = self.law.support()
        atoms = ((a.score, a.mass, a.mass * (a.frequency - a.score)) for a in self.law.atoms)
        merged = _merge((s, m, d) if s > 0.5 else (1 - s, m, -d) for s, m, d in atoms)
        power = integrate_gap(
            lambda x: self.signed(x) - self.signed(-x),
            lambda x: self.law.density(x) + self.law.density(-x),
            (0.0, max(high, -low)),
            self.law.scale(),
            norm,
            np.abs(self.breaks).tolist(),
        )
        return _root(power + _atom_power(merged, norm), norm)


@dataclass(frozen=True)
class ConfidenceDistribution(ScalarDistribution):
    """Confidences in ``[1/K, 1]`` and whether the predicted class was right."""

    @property
    def notions(self) -> tuple[str, ...]:
        """Notions for which the truth is known."""
        return ("confidence",)

    def problems(self, scores: FloatArray, labels: AnyArray, notion: str) -> tuple[Problem, ...]:
        """One problem on ``[1/K, 1]``."""
        self.check(notion, 1)
        return (Problem.samples(scores, labels, domain=(self.law.low, 1.0)),)

    def truth(self, notion: str, norm: float = 1) -> ExactTruth:
        """True error, by quadrature."""
        self.check(notion, norm)
        return ExactTruth(0.0 if self.calibrated else self._direct(norm))


def _root(power: float, norm: float) -> float:
    """Error from its p-th power; rounding noise, left if gaps at s and 1 - s cancel for every s, gives 0."""
    error = float(power ** (1 / norm))
    return error if error > 1e-10 else 0.0


def _merge(atoms: Iterable[tuple[float, float, float]]) -> dict[float, tuple[float, float]]:
    """Mass and mass times gap by score."""
    out: dict[float, tuple[float, float]] = {}
    for score, mass, signed in atoms:
        known = out.get(score, (0.0, 0.0))
        out[score] = (known[0] + mass, known[1] + signed)
    return out


def _atom_power(merged: dict[float, tuple[float, float]], norm: float) -> float:
    return float(sum(mass * abs(signed / mass) ** norm for mass, signed in merged.values() if mass > 0))


def integrate_gap(
    signed: Function,
    density: Function,
    support: tuple[float, float],
    scale: float,
    norm: float,
    breaks: Sequence[float] = (),
) -> float:
    r"""``∫ f |D / f|^p dx`` where ``signed`` is ``D = f · gap`` and ``density`` is f.

    Both are analytic between ``breaks``, so 20 points on panels of ``scale / 2`` are exact up to rounding once the
    panels end where D changes sign. Absolute error about 1e-12.

    Examples
    --------
    >>> import numpy as np
    >>> bell = lambda x: np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    >>> value = integrate_gap(lambda x: x * bell(x), bell, (-9.0, 9.0), 1.0, 1)  # E|x| of a normal x
    >>> bool(abs(value - np.sqrt(2 / np.pi)) < 1e-13)
    True
    """
    low, high = support
    if not high > low:
        raise ValueError(f"support must be an interval (low, high); got {support!r}")
    grid = np.linspace(low, high, max(int(np.ceil((high - low) / (scale / 20))), 400) + 1)
    inner = [b for b in breaks if low < b < high]
    edges = np.unique(np.concatenate([[low, high], inner, _sign_changes(signed, grid)]))
    x, weight = _panels(edges, scale / 2)
    gap = np.abs(signed(x))
    if norm == 1:
        return float(weight @ gap)
    f = density(x)
    return float(weight @ np.where(f > 0, gap**norm / np.where(f > 0, f, 1.0) ** (norm - 1), 0.0))


def integrate(function: Function, support: tuple[float, float], scale: float, breaks: Sequence[float] = ()) -> float:
    """``∫ function dx`` of a function that is smooth between breaks."""
    low, high = support
    edges = np.unique([low, high, *(b for b in breaks if low < b < high)])
    x, weight = _panels(edges, scale / 2)
    return float(weight @ function(x))


def _sign_changes(function: Function, grid: FloatArray) -> FloatArray:
    """Zeros between nodes of opposite sign (even with exact zeros between them), by bisection."""
    sign = np.sign(function(grid))
    known = np.flatnonzero(sign)
    at = np.flatnonzero(sign[known[:-1]] != sign[known[1:]])
    left, right, left_sign = grid[known[at]], grid[known[at + 1]], sign[known[at]]
    for _ in range(60):
        middle = (left + right) / 2
        same = np.sign(function(middle)) == left_sign
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return np.asarray((left + right) / 2)


def _panels(edges: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    """Points and weights of every panel between edges."""
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    counts = np.maximum(np.ceil(np.diff(edges) / width).astype(np.int64), 1)
    pieces = [np.linspace(a, b, k + 1) for a, b, k in zip(edges[:-1], edges[1:], counts, strict=True)]
    starts = np.concatenate([p[:-1] for p in pieces])
    lengths = np.concatenate([np.diff(p) for p in pieces])
    x = starts[:, None] + lengths[:, None] * (points + 1) / 2
    return x.ravel(), (lengths[:, None] / 2 * weights).ravel()
