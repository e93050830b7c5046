"""Assumptions of an interval about the true calibration map: ``assume=`` of :func:`calibrant.estimate`.

``"smooth"`` (default)
    The estimator can follow the map: its own interval, by a posterior or by test inversion. This is the narrowest, has
    simulated coverage (benchmarks/coverage/coverage_tracks.md), and cannot detect gaps that change faster than
    the estimator follows.
``"none"``
    Only independent rows. The lower end is from bets on the sign of the gap, learnt from earlier rows;
    the upper end allows all unexplained variation to be a gap (both in :mod:`.bounds`).
``"bins"``, ``"bins:B"``
    The gap does not change sign within each of B bins of equal width over [0, 1] (default 15): probabilities in a bin
    are too high or too low, but not both. Then the error is that of the bins.
``"variation:V"``
    The gap (the map minus the identity, for every class) has a total variation of at most V over all scores. A line
    from +.2 to -.2 has .4, a step of .1 has .1, twelve waves of ±.1 have 4.8, and a non-decreasing map at most 2.

The last three are theorems for every n, not approximations: the error probability of each end is bounded. They share
the same lower end, and the upper end of "none" is never below those of the others. The lower end uses half of the
error ``1 - level``, the upper end without assumptions three tenths, and a smaller upper end two tenths.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_int, check_positive, check_type, received
from ..data.problem import VectorProblem
from ..data.public_function import SumsOfRows
from ..data.types import Interval
from ..sums import uniform_edges
from .bounds import Part, Pools, RowsAlike, lower_bound, same_scores, upper_bound, upper_bound_of_rows
from .question import Question

#: Shares of ``1 - level`` for the lower end, the upper end for every map, and the upper end under an assumption.
LOW, FREE, NARROW = 0.5, 0.3, 0.2
#: Maximum number of rows that whole-number weights may stand for: there is one bet per row.
_MOST_ROWS = 10_000_000
#: Number of bins of ``"bins"``.
_BINS = 15


class Assumption(ABC):
    """An assumption about the true map; subclasses are frozen values."""

    #: Errors that no sample of this size can show under it, and how the interval treats them.
    unseen: ClassVar[str]

    @abstractmethod
    def interval(self, question: Question, rng: np.random.Generator) -> Interval | None:
        """Interval of the error; None to use the interval of the estimator."""


@dataclass(frozen=True)
class SmoothMap(Assumption):
    """The estimator can follow the true map."""

    unseen: ClassVar[str] = "gaps that change faster with the score than the estimator can follow"

    def __str__(self) -> str:
        return "smooth"

    def interval(self, question: Question, rng: np.random.Generator) -> None:
        """None: the estimator's own interval."""
        return


@dataclass(frozen=True)
class NoAssumption(Assumption):
    """No assumption about the true map."""

    unseen: ClassVar[str] = (
        "whether outcomes of unrepeated scores vary by chance or by a gap: the upper end allows for a gap"
    )

    def __str__(self) -> str:
        return "none"

    def interval(self, question: Question, rng: np.random.Generator) -> Interval:
        """Interval with ends of level ``1 - LOW (1 - level)`` and ``1 - FREE (1 - level)``."""
        rows = _judge(self, question)
        share = 1 - question.level
        low = lower_bound(rows, LOW * share, rng) * (2 / rows.classes if rows.classes > 1 else 1.0)
        high = _root(_highest(rows, question, FREE * share), question.norm)
        return Interval(min(low, high), high)


class _Pooled(Assumption):
    """An upper bound of the error from gaps of pooled rows."""

    @abstractmethod
    def pools(self, part: Part) -> Pools:
        """Pools of one problem's rows, based only on their scores."""

    def interval(self, question: Question, rng: np.random.Generator) -> Interval:
        """The interval of no assumption, with a smaller upper end if possible; total error at most ``1 - level``."""
        rows = _judge(self, question)
        return self.narrowed(NoAssumption().interval(question, rng), rows, question)

    def narrowed(self, free: Interval, rows: RowsAlike, question: Question) -> Interval:
        """The interval of no assumption with the smaller of its upper end and the one under this assumption."""
        own = _root(upper_bound(rows, self.pools, question.norm, NARROW * (1 - question.level)), question.norm)
        return Interval(free.low, max(free.low, min(own, free.high)))


@dataclass(frozen=True)
class SameSign(_Pooled):
    """The gap does not change sign within any of ``n_bins`` bins of equal width."""

    n_bins: int = _BINS

    unseen: ClassVar[str] = "gaps that change sign within a bin, which the assumption excludes"

    def __post_init__(self) -> None:
        check_int("n_bins of assume='bins:B'", self.n_bins, 1)

    def __str__(self) -> str:
        return f"bins:{self.n_bins}"

    def pools(self, part: Part) -> Pools:
        """Rows pooled by bin."""
        slots = uniform_edges(self.n_bins).slots(part.typed, part.eps)
        return Pools(np.unique(np.clip(slots, 1, self.n_bins), return_inverse=True)[1].reshape(-1))


@dataclass(frozen=True)
class BoundedVariation(_Pooled):
    """The gap has a total variation of at most ``limit``."""

    limit: float

    unseen: ClassVar[str] = "gaps with a larger total variation, which the assumption excludes"

    def __post_init__(self) -> None:
        check_positive("V of assume='variation:V'", self.limit)

    def __str__(self) -> str:
        return f"variation:{self.limit:g}"

    def pools(self, part: Part) -> Pools:
        """Scores at least as frequent as a bin, and bins of equal mass for the others.

        The number of bins minimises the sum of the variation within bins, ``V / 2B``, and the noise of their gaps,
        ``(2 B E s(1 - s) / πn)^½``.
        """
        s = part.scores
        if not s.size:
            return same_scores(part)
        noise = max(float((s * (1 - s)).mean()), 1 / s.size)
        bins = float(np.clip((self.limit**2 * np.pi * s.size / (2 * noise)) ** (1 / 3), 1, s.size))
        _, code, count = np.unique(s, return_inverse=True, return_counts=True)
        often = count >= s.size / bins
        rest = np.where(often, 0, count)
        middle = np.cumsum(rest) - rest / 2
        number = np.floor(middle * bins / s.size).astype(np.intp)
        of_score = np.where(often, np.arange(count.size) + s.size + 1, number)
        return Pools(np.unique(of_score[code.reshape(-1)], return_inverse=True)[1].reshape(-1), self.limit)


#: By name: class, type of the value after the colon (None for no value), and whether the value is required.
_NAMES: dict[str, tuple[Callable[..., Assumption], Callable[[str], Any] | None, bool]] = {
    "smooth": (SmoothMap, None, False),
    "none": (NoAssumption, None, False),
    "bins": (SameSign, int, False),
    "variation": (BoundedVariation, float, True),
}


def as_assumption(assume: str | Assumption) -> Assumption:
    """Check an ``assume`` argument: a name, or an :class:`Assumption`.

    Examples
    --------
    >>> from calibrant.measure.assumptions import as_assumption
    >>> as_assumption("variation:0.5")
    BoundedVariation(limit=0.5)
    >>> str(as_assumption("bins"))
    'bins:15'
    """
    if isinstance(assume, Assumption):
        return assume
    allowed = "'smooth', 'none', 'bins', 'bins:B' with B bins or 'variation:V' with a number V"
    name, colon, value = check_type("assume", assume, str, allowed).partition(":")
    kind, read, needed = _NAMES.get(name, (None, None, False))
    if kind is None or (colon and read is None) or (needed and not colon):
        raise ValueError(f"assume must be {allowed}; got {received(assume)}")
    if not colon:
        return kind()
    try:
        found = read(value) if read else None
    except ValueError:
        raise ValueError(f"assume must be {allowed}; got {received(assume)}") from None
    return kind(found)


def _judge(assumption: Assumption, question: Question) -> RowsAlike:
    """Rows in the form of the theorems; TypeError or ValueError if these do not apply."""
    refused, reduction = f"assume={str(assumption)!r} gives no interval ", question.rows
    if reduction is None or isinstance(reduction, SumsOfRows):
        raise TypeError(
            f"assume={str(assumption)!r} needs single rows, which are not kept: use calibrant.estimate() on "
            "some of them, or assume='smooth'"
        )
    if isinstance(reduction, VectorProblem):
        raise TypeError(f"{refused}for the notion {question.notion!r}: use 'confidence', 'top-label' or 'classwise'")
    if question.dependent and not question.exclusive and len(question) > 1:
        raise TypeError(
            f"{refused}for the notion {question.notion!r}, whose problems are not one per class: use one of them"
        )
    if reduction.design is not None:
        raise ValueError(f"{refused}for rows in groups: it treats rows as independent; use assume='smooth'")
    if reduction.weights is not None and not reduction.integral:
        raise ValueError(
            f"{refused}for sample_weight other than whole numbers, which count repeats: its theorem is for rows of "
            "equal weight; use assume='smooth'"
        )
    if reduction.weights is not None and reduction.weights.sum() > _MOST_ROWS:
        raise ValueError(
            f"{refused}for sample_weight that adds up to more than {_MOST_ROWS:,} repeats; got "
            f"{float(reduction.weights.sum()):g}"
        )
    if np.isinf(question.norm):
        raise ValueError(f"{refused}for norm=inf: the largest gap may lie where there are no rows; use a finite norm")
    if question.average == "max":
        raise ValueError(f"{refused}for average='max': use the mean over classes, or one class at a time")
    return RowsAlike.of(question)


def _highest(rows: RowsAlike, question: Question, delta: float) -> float:
    """Upper bound of ``E|gap|^p`` for every map: from rows for several classes, from equal scores for one problem."""
    if rows.classes > 1:
        return upper_bound_of_rows(rows, question.norm, delta)
    return upper_bound(rows, same_scores, question.norm, delta)


def _root(power: float, norm: float) -> float:
    return float(power ** (1 / norm))


__all__ = ["Assumption", "BoundedVariation", "NoAssumption", "SameSign", "SmoothMap", "as_assumption"]
