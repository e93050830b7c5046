"""`Question`: what is asked of predictions, as one value that is passed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.checks import check_level, check_norm
from ..data.predictions import Predictions
from ..data.problem import OneVsRestProblems, Problem, VectorProblem
from ..data.types import FloatArray, Label
from ..estimators.norm import LARGE_NORM, combine, combine_draws, largest_error, roots

#: Up to so many problems each is drawn as often as a single one.
SEVERAL = 8
#: From so many problems on the spread of their sum is told by a few draws of each: at most and at least so many.
MANY, MOST_OF_FEW, FEWEST = 64, 8, 4
#: Draws of so many problems taken together.
DRAWS_IN_ALL = 4096


@dataclass(frozen=True)
class Question:
    """What is asked: which notion of calibration, in which norm, of which problems, and how sure the answer is to be.

    Attributes
    ----------
    notion : str
        Name of the notion.
    norm, level : float
    labels : tuple
        Class of each problem.
    shares : tuple of float
        Weight of each problem among them.
    average : str
        How the errors of several problems combine; see :class:`calibrant.data.problem.Problem`.
    dependent : bool
        Whether the problems share rows.
    n_samples : int
        Rows of all problems.
    size : float
        Effective sample size.
    """

    notion: str
    norm: float
    level: float
    labels: tuple[Label, ...]
    shares: tuple[float, ...]
    average: str
    dependent: bool
    n_samples: int
    size: float

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        reduction: Problem | OneVsRestProblems | VectorProblem,
        notion: str,
        norm: Any,
        level: Any = 0.95,
    ) -> Question:
        """The question that a notion asks of predictions, with norm and level judged."""
        p, r, sizes = check_norm(norm), check_level(level), (predictions.n_samples, predictions.effective_size)
        if isinstance(reduction, VectorProblem):
            return cls(notion, p, r, (None,), (1.0,), "power", False, sizes[0], sizes[1] / (reduction.design or 1.0))
        some = reduction
        if some.design is not None:
            sizes = (sizes[0], sizes[1] / float(some.designs.mean()))
        return cls(notion, p, r, some.labels, some.shares, some.average, some.dependent, *sizes)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def mirrored(self) -> bool:
        """Whether the problems are the two classes of a one-vs-rest pair: one of them carries all the information."""
        return self.dependent and len(self) == 2

    @property
    def informative(self) -> Question:
        """The question asked of the problems that carry information of their own."""
        if not self.mirrored:
            return self
        return Question(
            self.notion,
            self.norm,
            self.level,
            self.labels[:1],
            (1.0,),
            self.average,
            False,
            self.n_samples,
            self.size,
        )

    @property
    def largest(self) -> float:
        """Largest error there can be."""
        return largest_error(len(self), self.norm, self.average) if self.dependent else 1.0

    def combine(self, powers: FloatArray) -> float:
        """Errors of the problems, as ``errorᵖ`` (R,), as one number."""
        return combine(powers, self.shares, self.norm, self.average, self.dependent)

    def combine_draws(self, powers: FloatArray) -> FloatArray:
        """:meth:`combine` for draws of every problem, (R, n_draws)."""
        return combine_draws(powers, self.shares, self.norm, self.average, self.dependent)

    def each(self, powers: FloatArray) -> FloatArray:
        """Errors of the problems by themselves, from ``errorᵖ`` of any shape."""
        return roots(powers, self.norm)

    def per_class(self, powers: FloatArray) -> dict[Label, float]:
        """Error of each of several problems."""
        from ..estimators.norm import root

        return (
            {} if len(self) == 1 else {k: root(float(v), self.norm) for k, v in zip(self.labels, powers, strict=True)}
        )


def few_draws(question: Question, n_resamples: int) -> int:
    """Draws a problem: a mean over many problems needs few of each, a maximum some more."""
    if len(question) <= SEVERAL:
        return n_resamples
    return max(32 if adds_up(question) else 100, n_resamples // len(question))


def adds_up(question: Question) -> bool:
    """Whether what is wrong about each of several problems adds up, rather than that the largest counts."""
    return len(question) > SEVERAL and question.average != "max" and not np.isinf(question.norm)


def fewest(problems: int) -> int:
    """Draws a problem from which the spread of a sum over so many is told."""
    return max(FEWEST, min(MOST_OF_FEW, DRAWS_IN_ALL // problems))


def sums_up(question: Question) -> bool:
    """Whether the combined power is a sum over so many problems that its spread is that of independent terms."""
    return question.average == "power" and question.norm <= LARGE_NORM and len(question) >= MANY
