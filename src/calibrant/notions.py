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
from .problem import OneVsRest, Problem, Reduction, VectorProblem

_AVERAGES = ("power", "mean", "max")


class Notion(ABC):
    """Base class: a frozen value with a ``name`` and :meth:`reduce`."""

    name: ClassVar[str]
    #: Whether its problems share rows.
    dependent: ClassVar[bool] = False

    @abstractmethod
    def reduce(self, predictions: Predictions) -> Reduction:
        """Turn predictions into the problem, or problems, that this notion asks to be calibrated."""

    def max_problems(self, predictions: Predictions) -> int:
        """How many problems it makes of predictions like these at most."""
        return 1

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

    def reduce(self, predictions: Predictions) -> Problem:
        """One problem, scores in [0, 1]."""
        return one_vs_rest(predictions, self.index(predictions))

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
    dependent: ClassVar[bool] = True

    def max_problems(self, predictions: Predictions) -> int:
        """One a class."""
        return predictions.n_classes

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

    def reduce(self, predictions: Predictions) -> Problem:
        """One problem, scores in [1/K, 1]."""
        p = predictions
        correct = p.predicted == p.codes
        return Problem(
            p.confidence,
            correct,
            p.weights,
            integral=p.integral_weights,
            domain=_domain(p),
            eps=p.eps,
            starts=np.array([0, p.n_samples]),
        )


@dataclass(frozen=True)
class TopLabel(Notion):
    """The winner's probability given who wins: ``P(Y = k | argmax = k, max P(X) = s) = s`` for every k, s.

    Classes that are never predicted make no problem; the others count by how often they are predicted.
    """

    average: str = "power"
    name: ClassVar[str] = "top-label"

    def max_problems(self, predictions: Predictions) -> int:
        """One a class."""
        return predictions.n_classes

    def __post_init__(self) -> None:
        if self.average not in _AVERAGES:
            raise ValueError(f"average must be one of {', '.join(map(repr, _AVERAGES))}; got {self.average!r}")

    def reduce(self, predictions: Predictions) -> Problem:
        """One problem a predicted class; they split the rows."""
        p = predictions
        masses = np.bincount(p.predicted, p.weights, minlength=p.n_classes)
        order = np.argsort(p.predicted, kind="stable")
        counts = np.bincount(p.predicted, minlength=p.n_classes)
        if not masses[counts > 0].all():  # a class that is predicted by rows of weight 0 alone
            order = order[masses[p.predicted[order]] > 0]
            counts = np.where(masses > 0, counts, 0)
        held = np.flatnonzero(counts)
        share = masses[held] / masses.sum()
        return Problem(
            p.confidence[order],
            (p.predicted == p.codes)[order],
            None if p.weights is None else p.weights[order],
            integral=p.integral_weights,
            domain=_domain(p),
            eps=p.eps,
            label=tuple(p.classes[k] for k in held),
            share=tuple(share.tolist()),
            starts=np.concatenate([[0], np.cumsum(counts[held])]),
            average=self.average,
        )


@dataclass(frozen=True)
class Canonical(Notion):
    """The whole vector: ``P(Y = k | P(X) = q) = q_k`` for every q in the simplex and every k."""

    name: ClassVar[str] = "canonical"

    def reduce(self, predictions: Predictions) -> VectorProblem:
        """One vector problem."""
        p = predictions
        return VectorProblem(p.matrix, p.codes, p.weights, p.integral_weights, p.eps, p.classes, p.logs)


_BY_NAME: dict[str, Notion] = {n.name: n for n in (ClassSpecific(), Classwise(), Confidence(), TopLabel(), Canonical())}


def notion_named(notion: str | Notion) -> str | Notion:
    """The notion of a name; ``"auto"``, which predictions decide, stays what it is."""
    if isinstance(notion, Notion) or notion == "auto":
        return notion
    if isinstance(notion, str) and notion in _BY_NAME:
        return _BY_NAME[notion]
    allowed = ", ".join(repr(n) for n in ("auto", *_BY_NAME))
    raise ValueError(f"notion must be one of {allowed} or a Notion object; got {notion!r}")


def as_notion(notion: str | Notion, predictions: Predictions) -> Notion:
    """Resolve a notion given as a string or an object; ``"auto"`` is decided by the shape of ``y_prob``."""
    found = notion_named(notion)
    if isinstance(found, Notion):
        return found
    return ClassSpecific() if predictions.positive is not None else Confidence()


def _domain(p: Predictions) -> tuple[float, float]:
    """Where a confidence can lie: [1/K, 1], or further down where a loose ``sum_tolerance`` let rows sum to less."""
    lowest = float(p.confidence.min())
    floor = 1 / p.n_classes
    return (floor if lowest > floor * (1 - 1e-3) else lowest, 1.0)


def one_vs_rest(predictions: Predictions, k: int) -> Problem:
    """Build the problem of class ``k`` against the rest."""
    p = predictions
    return Problem(
        p.score(k),
        p.outcome(k),
        p.weights,
        integral=p.integral_weights,
        eps=p.eps,
        label=(p.classes[k],),
        share=(1.0,),
        starts=np.array([0, p.n_samples]),
    )
