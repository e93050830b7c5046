"""`Question`: the settings of an estimation problem, its data and its estimator, as one object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from ..data.checks import check_level, check_norm, check_type
from ..data.predictions import Predictions
from ..data.problem import Problem, Reduction, VectorProblem
from ..data.public_function import SumsOfRows
from ..data.types import FloatArray, Label
from ..estimators import CellEstimator, DirichletKernel, EmpiricalBayes, Estimator, SimplexBinned
from ..estimators.base import FittedSums
from ..estimators.names import as_estimator
from ..estimators.norm import LARGE_NORM, combine, combine_draws, largest_error, root, roots
from ..notions import Notion, as_notion

#: Up to this number of problems, each has as many draws as a single one.
SEVERAL = 8
#: From this number of problems on, the spread of their sum is estimated from few draws of each: maximum and minimum.
MANY, MOST_OF_FEW, FEWEST = 64, 8, 4
#: Approximate total number of draws over all problems.
DRAWS_IN_ALL = 4096


@dataclass(frozen=True)
class Question:
    """Notion of calibration, norm, problems and level of an estimate, with its data and estimator.

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
    exclusive : bool
        Whether the problems are mutually exclusive classes, one of which is observed in every row.
    n_samples : int
        Number of rows of all problems.
    size : float
        Effective sample size.
    estimator : Estimator or None
        Estimator of the error; None if errors are computed elsewhere.
    rows : problems, SumsOfRows or None
        The data.
    n_groups : int or None
        Number of groups of the rows; None if rows are independent, or if sums do not contain it.
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
    estimator: Estimator | None = field(default=None, compare=False)
    rows: Reduction | SumsOfRows | None = field(default=None, compare=False, repr=False)
    n_groups: int | None = field(default=None, compare=False)
    exclusive: bool = False

    @classmethod
    def of(
        cls,
        given: Predictions | SumsOfRows,
        notion: str | Notion = "auto",
        estimator: str | Estimator = "auto",
        norm: Any = 1,
        level: Any = 0.95,
    ) -> Question:
        """A question about predictions, or about sums (which determine the notion), with validated arguments."""
        if isinstance(given, SumsOfRows):
            question: Question = cast(Any, given).question(norm, level)
            return replace(question, estimator=reader_of_sums(estimator), rows=given)
        chosen, p = as_notion(notion, given), check_norm(norm)
        problems = chosen.reduce(given)
        reader, r = resolve_estimator(estimator, problems, chosen.name, p), check_level(level)
        n, size = given.n_samples, given.effective_size
        if isinstance(problems, VectorProblem):
            size /= problems.design or 1.0
            return cls(chosen.name, p, r, (None,), (1.0,), "power", False, n, size, reader, problems)
        if problems.design is not None:
            size /= float(problems.designs.mean())
        about = problems.labels, problems.shares, problems.average, problems.dependent
        return cls(chosen.name, p, r, *about, n, size, reader, problems, exclusive=problems.exclusive)

    @classmethod
    def of_one(cls, problem: Problem, notion: str, level: float, norm: float = 1.0) -> Question:
        """A question about the error of one problem, without an estimator."""
        size = problem.effective_size
        return cls(notion, norm, level, (problem.label,), (1.0,), "power", False, problem.n_samples, size)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def informative(self) -> Question:
        """The question restricted to problems with separate information: one of two complementary classes."""
        if not (self.exclusive and len(self) == 2):
            return self
        return replace(self, labels=self.labels[:1], shares=(1.0,), dependent=False, exclusive=False)

    @property
    def largest(self) -> float:
        """Largest possible error."""
        return largest_error(len(self), self.norm, self.average) if self.exclusive else 1.0

    def spread(self, n_problems: float, of_classes: float) -> float:
        """Ratio of the standard deviation of the mean error of problems that share rows to that of independent ones.

        The ratio for classes is given; other problems are treated as fully dependent.
        """
        return (of_classes if self.exclusive else float(np.sqrt(n_problems))) if self.dependent else 1.0

    def fits(self) -> Iterator[FittedSums]:
        """Fitted sums of the problems, a few at a time, for an estimator that reads sums."""
        reader = cast(CellEstimator, self.estimator)
        sums: Any = self.rows
        if isinstance(sums, SumsOfRows):
            return map(reader.fit, cast(Any, sums).sums(reader))
        return (reader.fit(reader.summarize(tile)) for tile in sums.tiles())

    @property
    def powers(self) -> FloatArray:
        """Estimated ``errorᵖ`` of every problem, (R,)."""
        reader = cast(Estimator, self.estimator)
        if isinstance(self.rows, SumsOfRows):
            return np.concatenate([fit.powers(self.norm) for fit in self.fits()])
        if isinstance(self.rows, VectorProblem):
            return np.array([reader.power(self.rows, self.norm)])
        return reader._powers(cast(Problem, self.rows), self.norm)

    def combine(self, powers: FloatArray) -> float:
        """Combine errors of the problems, given as ``errorᵖ`` (R,), into one number."""
        return combine(powers, self.shares, self.norm, self.average, self.exclusive)

    def combine_draws(self, powers: FloatArray) -> FloatArray:
        """:meth:`combine` for draws of every problem, (R, n_draws)."""
        return combine_draws(powers, self.shares, self.norm, self.average, self.exclusive)

    def each(self, powers: FloatArray) -> FloatArray:
        """Errors of the separate problems, from ``errorᵖ`` of any shape."""
        return roots(powers, self.norm)

    def per_class(self, powers: FloatArray) -> dict[Label, float]:
        """Error of each of several problems."""
        if len(self) == 1:
            return {}
        return {k: root(float(v), self.norm) for k, v in zip(self.labels, powers, strict=True)}

    @property
    def errors_add(self) -> bool:
        """Whether the errors of several problems are added, rather than their maximum taken."""
        return len(self) > SEVERAL and self.average != "max" and not np.isinf(self.norm)

    @property
    def sum_is_normal(self) -> bool:
        """Whether the combined power is a sum over so many problems that a normal approximation is used."""
        return self.average == "power" and self.norm <= LARGE_NORM and len(self) >= MANY

    def n_draws(self, n_resamples: int) -> int:
        """Number of draws per problem: few for a mean over many problems, more for a maximum."""
        if len(self) <= SEVERAL:
            return n_resamples
        return max(32 if self.errors_add else 100, n_resamples // len(self))

    def n_paths(self, n_resamples: int) -> int:
        """Number of draws per problem of a simulated path: few if only the spread of a sum over many is needed."""
        problems, draws = len(self.informative), self.n_draws(n_resamples)
        if not self.sum_is_normal:
            return draws
        return min(max(FEWEST, min(MOST_OF_FEW, DRAWS_IN_ALL // problems)), draws)


def canonical_default(norm: float) -> DirichletKernel:
    """Estimator of ``"auto"`` for the canonical notion: the best on benchmarks with known true error."""
    orientation = "data" if norm == 1 else "query"
    return DirichletKernel("auto", orientation, "cross" if norm in (1, 2) else "ratio", residual=True)


def _default(problems: Reduction, norm: float) -> Estimator:
    if not isinstance(problems, VectorProblem):
        return EmpiricalBayes()
    return SimplexBinned("cbrt") if problems.drawn else canonical_default(norm)


def resolve_estimator(estimator: str | Estimator, problems: Reduction, notion: str, norm: float = 1) -> Estimator:
    """Check the ``estimator`` argument, and that it supports the notion."""
    is_value = isinstance(estimator, Estimator)
    chosen = cast(Estimator, estimator) if is_value else as_estimator(estimator, _default(problems, norm))
    chosen._check(problems, notion)
    return chosen


def reader_of_sums(estimator: str | Estimator, default: Estimator = EmpiricalBayes()) -> CellEstimator:  # noqa: B008
    """Check the ``estimator`` argument for sums, without rows."""
    wanted = "one that reads sums, such as Binned(...) or Density(...): no rows are kept"
    return cast(CellEstimator, check_type("estimator", as_estimator(estimator, default), CellEstimator, wanted))
