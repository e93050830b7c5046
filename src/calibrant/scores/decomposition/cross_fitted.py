"""What cross-validation says of a decomposition: parts by a calibrator, and the grouping loss that features show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...calibrators import Calibrator
from ...calibrators.crossval import folds_of
from ...calibrators.inputs import CalibrationSample
from ...comparison.models.units import IndependentUnits
from ...data.predictions import Predictions, effective_size
from ...data.types import AnyArray, FloatArray, RandomState
from ...data.weights import of_variances
from ...measure.scoring_rules import Brier, Log, ScoringRule
from ...notions import Classwise
from .after_calibrator import RowParts, after_calibrator, judged_calibrator
from .grouping import Grouping
from .regions import Regions, read_regions
from .result import Decomposition
from .row_means import limits, mean_of


class Gains(NamedTuple):
    """What features gain in each row, (n,), and the least standard error that its mean can have."""

    rows: FloatArray
    noise: float


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Rows, a scoring rule, and how they are cross-validated.

    Attributes
    ----------
    p : Predictions
    rule : ScoringRule
    calibrator : str, Calibrator or None
    cv : int
    level : float
    random_state : int, Generator or None
    """

    p: Predictions
    rule: ScoringRule
    calibrator: Any
    cv: int
    level: float
    random_state: RandomState

    @cached_property
    def _sample(self) -> CalibrationSample:
        return CalibrationSample.of(self.p)

    @cached_property
    def _stated(self) -> FloatArray:
        """Probabilities (n, K) of the rows with weight, in the order of the sample's classes."""
        told = self._sample.scores.values.astype(np.float64)
        return told if told.ndim == 2 else np.column_stack([1 - told, told])

    @cached_property
    def _folds(self) -> list[tuple[AnyArray, AnyArray]]:
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**31))
        groups = self._units.of_row if self._units.grouped else None
        return folds_of(self._sample.codes, self.cv, seed, groups)

    @cached_property
    def _units(self) -> IndependentUnits:
        w = self.p.weights
        return IndependentUnits.of(self.p if w is None or w.all() else self.p.subset(w > 0))

    @cached_property
    def _design(self) -> float:
        """How many rows say as much as one independent row, the mean over classes."""
        if self.p.groups is None:
            return 1.0
        return float(Classwise().reduce(self.p).designs.mean())

    @cached_property
    def _calibrator(self) -> Calibrator:
        """The one asked for; of features alone, one that can say most smooth maps and is never certain."""
        plain = "quadratic" if self._sample.n_classes == 2 else "temperature"
        return judged_calibrator(plain if self.calibrator is None else self.calibrator, self._sample)

    def regions(self, features: Any) -> Regions:
        """Judge ``features``, and the score that goes with them."""
        if not isinstance(self.rule, (Brier, Log)):
            raise ValueError(f"features: the bound is of Brier's score and of the log-loss; got score={self.rule!r}")
        found = read_regions(features, self.p.n_samples)
        w = self.p.weights
        return found if w is None or w.all() else found.subset(w > 0)

    def gains(self, regions: Regions) -> Gains:
        """What features gain in each row with weight."""
        w = self._sample.weights
        size = effective_size(w, w.size, integral=self.p.integral_weights) / self._design
        grouping = Grouping(self.rule, self._sample, w * (size / w.sum()), self._stated, self._calibrator, regions)
        gain, variance = grouping.gains(self._folds, np.random.default_rng(self.random_state))
        squares = of_variances(w, integral=self.p.integral_weights) * self._design
        return Gains(gain, float(np.sqrt(squares @ variance) / w.sum()))

    def parts(self, true: FloatArray | None, gains: Gains | None, score: str) -> Decomposition:
        """By the calibrator; the irreducible part is of the posterior, or what features leave of the refinement."""
        losses = after_calibrator(self.rule, self._sample, self._stated, self._calibrator, self._folds)
        least = None if true is None else self.rule.losses(true, self._sample.codes)
        if gains is not None:
            least = losses[1] - gains.rows
        rows = RowParts(*losses, least, self._units)
        name = self.calibrator if isinstance(self.calibrator, str) else repr(self.calibrator)
        found = Decomposition(
            **rows.parts(),
            score=score,
            estimator=f"cross-fitted {name}",
            n_samples=len(self._sample.codes),
            n_classes=self._stated.shape[1],
            intervals=rows.intervals(self.level),
        )
        return found if gains is None else self.bounded(found, gains)

    def bounded(self, found: Decomposition, gains: Gains) -> Decomposition:
        """A decomposition with the bound of the grouping loss, and what that leaves of its refinement."""
        both, lower = (
            limits(self._units, {"grouping": gains.rows}, self.level, sides=sides, least=gains.noise)
            for sides in (2, 1)
        )
        return replace(
            found,
            irreducible=found.refinement - mean_of(self._units, gains.rows),
            grouping_lower=lower["grouping"].low,
            intervals={**found.intervals, **both},
        )
