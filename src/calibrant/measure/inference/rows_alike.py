"""Rows as intervals for every truth take them: scores and residuals of problems that split rows or share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...data.problem import OneVsRestProblems, Problem
from ...data.types import AnyArray, FloatArray, IntArray
from ..question import Question


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one problem.

    Attributes
    ----------
    scores, residuals : ndarray of shape (m,)
        s and o - s.
    rows : ndarray of shape (m,)
        Which of the n rows each is.
    typed : ndarray of shape (m,)
        Scores in the dtype they came in, and ``eps``, its rounding unit, for edges of bins.
    """

    scores: FloatArray
    residuals: FloatArray
    rows: IntArray
    typed: FloatArray
    eps: float


@dataclass(frozen=True, eq=False)
class RowsAlike:
    """Independent rows that count alike, of R problems.

    Attributes
    ----------
    parts : tuple of Part
    n : int
        Rows, each as often as its whole-number weight says.
    classes : int
        Problems that share the rows: K of K classes, each against the rest; 1 where problems split them.
    """

    parts: tuple[Part, ...]
    n: int
    classes: int

    @classmethod
    def of(cls, reduction: Problem | OneVsRestProblems, question: Question) -> RowsAlike:
        """Those of a question's problems; of two classes that mirror each other, the first."""
        wanted = len(question.informative)
        shared = question.dependent and wanted > 1
        parts = tuple(_parts(list(reduction)[:wanted], shared=question.dependent))
        return cls(parts, parts[0].rows.size if shared else sum(p.rows.size for p in parts), wanted if shared else 1)


def _parts(problems: list[Problem], *, shared: bool) -> Iterator[Part]:
    first = 0
    for one in problems:
        typed, outcomes = one.scores, np.asarray(one.outcomes, dtype=np.float64)
        if one.weights is not None:
            times = one.weights.astype(np.intp)
            typed, outcomes = np.repeat(typed, times), np.repeat(outcomes, times)
        scores = typed.astype(np.float64)
        rows: AnyArray = np.arange(first, first + scores.size)
        yield Part(scores, outcomes - scores, rows, typed, one.eps)
        first += 0 if shared else scores.size
