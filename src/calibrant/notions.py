"""What must be calibrated: the notions of the survey, as values. A notion turns predictions into problems.

References
----------
Silva Filho et al. (2023), *Classifier calibration: a survey*, §2; Gupta & Ramdas (2022), *Top-label
calibration and multiclass-to-binary reductions* (for top-label).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ._types import Label
from .predictions import Predictions
from .problem import OneVsRest, Problem, ProblemSet, Reduction, VectorProblem

_AVERAGES = ("power", "mean", "max")


class Notion(ABC):
    """Base class: a frozen value with a ``name`` and :meth:`reduce`."""

    name: ClassVar[str]

    @abstractmethod
    def reduce(self, predictions: Predictions) -> Reduction:
        """Turn predictions into the problem, or problems, that this notion asks to be calibrated."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ClassSpecific(Notion):
    """One class: ``P(Y = label | P_label(X) = s) = s`` for every s.

    Parameters
    ----------
    label : label or None
        None means the positive class of a binary problem.

    Examples
    --------
    >>> import calibrant as cal
    >>> P = [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error([0, 1, 2], P, notion=cal.ClassSpecific(1), estimator=cal.Binned(5)), 3)
    0.267
    """

    label: Label = None
    name: ClassVar[str] = "class-specific"

    def reduce(self, predictions: Predictions) -> ProblemSet:
        """One problem, scores in [0, 1]."""
        k = self.index(predictions)
        return ProblemSet((one_vs_rest(predictions, k),))

    def index(self, predictions: Predictions) -> int:
        """Position of the class among the predictions' classes."""
        if self.label is None:
            if predictions.positive is not None:
                return predictions.positive
            if predictions.n_classes == 2:
                return 1
            raise ValueError(
                f"notion ClassSpecific() needs a label when there are {predictions.n_classes} classes: "
                f"ClassSpecific(label), one of {list(predictions.classes[:6])!r}"
            )
        if self.label not in predictions.classes:
            raise ValueError(f"notion ClassSpecific({self.label!r}): the labels are {list(predictions.classes)!r}")
        return predictions.classes.index(self.label)

    def __str__(self) -> str:
        return self.name if self.label is None else f"{self.name}({self.label})"


@dataclass(frozen=True)
class Classwise(Notion):
    """Every class by itself: ``P(Y = k | P_k(X) = s) = s`` for every k and s.

    Parameters
    ----------
    average : {"power", "mean", "max"}
        How class errors e_k become one number. ``"power"`` (default): ``(mean_k e_kᵖ)^(1/p)``, the
        maximum over classes for p = inf; ``"mean"``: the plain mean of the class errors (with p = inf the
        survey's mean class-wise MCE); ``"max"``: the worst class.
    """

    average: str = "power"
    name: ClassVar[str] = "classwise"

    def __post_init__(self) -> None:
        if self.average not in _AVERAGES:
            raise ValueError(f"average must be one of {', '.join(map(repr, _AVERAGES))}; got {self.average!r}")

    def reduce(self, predictions: Predictions) -> OneVsRest:
        """K problems that share their rows."""
        p = predictions
        return OneVsRest(p.matrix, p.codes, p.weights, p.integral_weights, p.eps, p.classes, self.average)


@dataclass(frozen=True)
class Confidence(Notion):
    """The winner's probability: ``P(Y = argmax P(X) | max P(X) = s) = s``. The first label wins a tie."""

    name: ClassVar[str] = "confidence"

    def reduce(self, predictions: Predictions) -> ProblemSet:
        """One problem, scores in [1/K, 1]."""
        p = predictions
        correct = p.predicted == p.codes
        return ProblemSet((Problem(p.confidence, correct, p.weights, p.integral_weights, _domain(p), p.eps),))


@dataclass(frozen=True)
class TopLabel(Notion):
    """The winner's probability given who wins: ``P(Y = k | argmax = k, max P(X) = s) = s`` for every k, s.

    Classes that are never predicted make no problem; the others count by how often they are predicted.
    """

    average: str = "power"
    name: ClassVar[str] = "top-label"

    def __post_init__(self) -> None:
        if self.average not in _AVERAGES:
            raise ValueError(f"average must be one of {', '.join(map(repr, _AVERAGES))}; got {self.average!r}")

    def reduce(self, predictions: Predictions) -> ProblemSet:
        """One problem a predicted class; they split the rows."""
        p = predictions
        correct = p.predicted == p.codes
        masses = np.bincount(p.predicted, p.weights, minlength=p.n_classes)
        problems = []
        domain = _domain(p)
        for k in np.flatnonzero(masses > 0):
            rows = np.flatnonzero(p.predicted == k)
            problems.append(
                Problem(
                    p.confidence[rows],
                    correct[rows],
                    None if p.weights is None else p.weights[rows],
                    p.integral_weights,
                    domain,
                    p.eps,
                    p.classes[k],
                    float(masses[k] / masses.sum()),
                )
            )
        return ProblemSet(tuple(problems), self.average)


@dataclass(frozen=True)
class Canonical(Notion):
    """The whole vector: ``P(Y = k | P(X) = q) = q_k`` for every q in the simplex and every k."""

    name: ClassVar[str] = "canonical"

    def reduce(self, predictions: Predictions) -> VectorProblem:
        """One vector problem."""
        p = predictions
        return VectorProblem(p.matrix, p.codes, p.weights, p.integral_weights, p.eps, p.classes, p.logs)


_BY_NAME: dict[str, Notion] = {n.name: n for n in (ClassSpecific(), Classwise(), Confidence(), TopLabel(), Canonical())}


def as_notion(notion: str | Notion, predictions: Predictions) -> Notion:
    """Resolve a notion given as a string or an object; ``"auto"`` is decided by the shape of ``y_prob``."""
    if isinstance(notion, Notion):
        return notion
    if notion == "auto":
        return ClassSpecific() if predictions.positive is not None else Confidence()
    if isinstance(notion, str) and notion in _BY_NAME:
        return _BY_NAME[notion]
    allowed = ", ".join(repr(n) for n in ("auto", *_BY_NAME))
    raise ValueError(f"notion must be one of {allowed} or a Notion object; got {notion!r}")


def _domain(p: Predictions) -> tuple[float, float]:
    """Where a confidence can lie: [1/K, 1], or further down where a loose ``sum_tolerance`` let rows sum to less."""
    lowest = float(p.confidence.min())
    floor = 1 / p.n_classes
    return (floor if lowest > floor * (1 - 1e-3) else lowest, 1.0)


def one_vs_rest(predictions: Predictions, k: int) -> Problem:
    """Build the problem of class ``k`` against the rest."""
    p = predictions
    return Problem(p.score(k), p.outcome(k), p.weights, p.integral_weights, (0.0, 1.0), p.eps, p.classes[k])
