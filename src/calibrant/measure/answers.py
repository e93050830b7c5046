"""`Answers`: what sums can say of all rows they were made of, which are not needed for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..data.checks import check_resamples
from ..data.progress import counted, working
from ..data.public_function import SumsOfRows
from ..data.result import came_in
from ..data.types import Label, RandomState
from ..estimators import CellEstimator, EmpiricalBayes, Isotonic
from ..estimators.base import Estimator
from ..estimators.names import as_estimator
from .assumptions import Assumption, as_assumption
from .curve_from_sums import is_isotonic
from .estimation import estimate_from_sums
from .question import Question
from .reliability import CurveSpec, curve_estimator
from .result import Estimate, ReliabilityCurve
from .sums_by_class import ProblemSums, SumsByClass
from .tied_scores import TiedScores

if TYPE_CHECKING:
    from ..calibrators import Calibrator
    from ..reporting import Report
    from ..scores.parts import Decomposition
    from ..significance.result import TestResult


class Answers(SumsOfRows, ABC):
    """What is asked of sums. A subclass holds them."""

    display: ClassVar[str] = "ReliabilityDisplay"

    notion: Any
    by_class: SumsByClass | None

    #: What rooms below make of these sums; :mod:`calibrant.accumulator` attaches them.
    report: Callable[..., Report]
    calibration_test: Callable[..., TestResult]
    decompose: Callable[..., Decomposition]
    fit: Callable[..., Calibrator]
    plot: Callable[..., Any]

    @abstractmethod
    def question(self, norm: float = 1, level: float = 0.95) -> Question:
        """What is asked of the rows added."""

    @abstractmethod
    def sums(self, estimator: CellEstimator, kept: SumsByClass | None = None) -> Iterator[Any]:
        """Sums that an estimator reads, some problems at a time; ValueError when they were not kept."""

    @abstractmethod
    def required(self) -> SumsByClass:
        """Sums of the notion's problems; ValueError when nothing was added."""

    @property
    @abstractmethod
    def problems(self) -> dict[Label, ProblemSums]:
        """Sums of each problem that has rows, in class order."""

    @property
    @abstractmethod
    def class_sums(self) -> dict[Label, ProblemSums]:
        """Sums of each class against the rest, in class order; empty for two classes and one column."""

    def calibration_error(self, estimator: str | Estimator = "auto", *, norm: float = 1) -> float:
        """Calibration error of all rows added, as :func:`calibrant.calibration_error` finds it in rows.

        Exact where the estimator's sums were kept, else of rows moved within a cell (see
        :class:`Accumulator`). Cost: that of estimates from the sums, whatever the number of rows.

        Parameters
        ----------
        estimator : "auto" or one that reads sums, default "auto"
            ``"auto"``: ``EmpiricalBayes()``.
        norm : float, default 1

        Raises
        ------
        TypeError
            For an estimator that needs the rows, such as ``CrossFit()``.
        ValueError
            When there are no rows, or the sums that it reads were not kept.
        """
        chosen, question = _reader(estimator), self.question(norm)
        return question.combine(np.concatenate([chosen.read(sums, question.norm) for sums in self.sums(chosen)]))

    def estimate(
        self,
        estimator: str | Estimator | None = None,
        *,
        norm: float = 1,
        level: float = 0.95,
        assume: str | Assumption = "smooth",
        n_resamples: int = 400,
        random_state: RandomState = 0,
    ) -> Estimate:
        """Calibration error with its interval, as :func:`calibrant.estimate`; by default of ``EmpiricalBayes()``.

        Exact where the estimator's sums were kept, and the interval then that of the rows with the same
        ``random_state``. Intervals of other assumptions than ``"smooth"`` need the rows (TypeError). Cost that of
        :func:`calibrant.estimate`, which does not depend on the number of rows.
        """
        if as_assumption(assume).needs_rows:
            raise TypeError(
                f"assume={str(as_assumption(assume))!r} looks at rows one by one, which are not kept: use "
                "calibrant.estimate() on a part of them, or assume='smooth'"
            )
        chosen = _reader("auto" if estimator is None else estimator)
        rng = np.random.default_rng(random_state)
        n, question = check_resamples(n_resamples), self.question(norm, level)
        with working("Accumulator.estimate"):
            return came_in(self._library, estimate_from_sums(chosen, self.sums(chosen), question, n, rng))

    def reliability_curve(
        self,
        estimator: str | CellEstimator | Isotonic = "density",
        *,
        level: float | None = None,
        band: str = "confidence",
        n_resamples: int = 1000,
        random_state: RandomState = 0,
    ) -> ReliabilityCurve | dict[Label, ReliabilityCurve]:
        """Observed frequency at every score, as :func:`calibrant.reliability_curve`: one curve, or one of each class.

        Exact for bins that were kept and for smooth curves. The isotonic curve and bins of other edges are those of
        rows moved within a cell; simultaneous bands take the rows of a cell as tied, and allow for
        where in it a score is. Of a notion with a problem per class, isotonic curves and simultaneous bands of smooth
        ones need the rows. Cost as there, without the pass over the rows.

        Returns
        -------
        ReliabilityCurve, or dict of label to ReliabilityCurve
            The notion decides, as in :func:`calibrant.reliability_curve`.
        """
        chosen = None if is_isotonic(estimator) else curve_estimator(estimator)
        self.required()
        drawn = CurveSpec(chosen, self.notion.name, level, band, n_resamples, random_state)
        with working("Accumulator.reliability_curve"):
            curves = dict(counted(self._curves(drawn), "classes", len(self.problems)))
        several = self.notion.per_class or len(curves) > 1
        return curves if several else next(iter(curves.values()))

    def _curves(self, drawn: CurveSpec) -> Iterator[tuple[Label, ReliabilityCurve]]:
        reader, problems = drawn.estimator, self.problems
        each: Iterator[Any] = iter([None] * len(problems))
        if reader is not None:
            each = (part[i] for part in self.sums(reader) for i in range(len(part)))
        for one, summary in zip(problems.values(), each, strict=True):
            about = (one.label, one.domain, one.grid.n_samples)
            yield one.label, came_in(self._library, drawn.curve(*about, summary, partial(_ties, one)))

    def to_frame(self, backend: str | None = None) -> Any:
        """One row a class and bin that was kept, as a data frame; cost its rows.

        Columns ``notion``; ``label`` (``"all"`` for the confidence); ``low`` and ``high``, the ends of the bin;
        ``weight``, and ``size``, the effective sample size; the mean ``score`` and the ``observed`` frequency, NaN in
        an empty bin; and their ``gap``. Rows of the notion's problems are followed by those of every class, where they
        were kept too.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Default: the one that scores or labels came in, in :meth:`update` or as the frame of
            :func:`calibrant.from_frame`, else the first of these that is installed. ImportError if none is.
        """
        return super().to_frame(backend)

    def _columns(self) -> dict[str, Any]:
        tables = {str(self.notion): self.problems}
        if self.by_class is not None and self.by_class.labels != self.required().labels:
            tables["classwise"] = self.class_sums
        columns: dict[str, list[Any]] = {
            name: [] for name in ("notion", "label", "low", "high", "weight", "size", "score", "observed", "gap")
        }
        for notion, problems in tables.items():
            for one in problems.values():
                m, edges = one.bins, one.bins.edges.values
                label = "all" if one.label is None else str(one.label)
                values = (edges[:-1], edges[1:], m.weight, m.effective_size, m.mean_score, m.mean_outcome, m.gap)
                constants = ([notion] * m.edges.n_bins, [label] * m.edges.n_bins)
                for column, found in zip(columns.values(), (*constants, *(v.tolist() for v in values)), strict=True):
                    column += found
        return columns


def _reader(estimator: str | Estimator) -> CellEstimator:
    """Judge an estimator of sums."""
    chosen = as_estimator(estimator, EmpiricalBayes())
    if not isinstance(chosen, CellEstimator):
        raise TypeError(
            f"estimator must be one that reads sums, such as Binned(...) or Density(...), as no rows are kept; got "
            f"{chosen!r}"
        )
    return chosen


def _ties(one: ProblemSums, most: int | None) -> TiedScores:
    """Runs of neighbouring scores; ValueError where there is no fine histogram."""
    if one.fine is None:
        raise ValueError(
            "isotonic curves and simultaneous bands of one of several problems need the rows: add them with the notion "
            f"'class-specific:{one.label}', or use bins"
        )
    return TiedScores.of_moments(one.fine, most)
