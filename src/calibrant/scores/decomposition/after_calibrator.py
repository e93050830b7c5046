"""Parts by a calibrator: what is left of a score after it, on rows that it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibrators import Calibrator, named_calibrator
from ...calibrators.crossval import held_out
from ...calibrators.inputs import CalibrationSample
from ...calibrators.select import candidates_for
from ...comparison.models.units import IndependentUnits
from ...data.types import AnyArray, FloatArray, Interval
from ...measure.scoring_rules import ScoringRule
from .row_means import limits, mean_of


def judged_calibrator(calibrator: Any, sample: CalibrationSample) -> Calibrator:
    """Judge the ``calibrator`` argument: a name or a value, made ready for a sample."""
    one = named_calibrator(calibrator, sample.n_classes) if isinstance(calibrator, str) else calibrator
    if not isinstance(one, Calibrator):
        raise TypeError(f"calibrator must be a name or one of calibrant.calibrators; got {calibrator!r}")
    return candidates_for(sample, {"calibrator": one})["calibrator"]


@dataclass(frozen=True, eq=False)
class RowParts:
    """Losses of each row, (n,): of the scores, after the calibrator, of the base rates, and of what nobody can better.

    Attributes
    ----------
    total, refinement, uncertainty : ndarray of shape (n,)
    irreducible : ndarray of shape (n,) or None
    units : Units
    """

    total: FloatArray
    refinement: FloatArray
    uncertainty: FloatArray
    irreducible: FloatArray | None
    units: IndependentUnits

    def parts(self) -> dict[str, float]:
        """Means over rows."""
        total, refinement, uncertainty = (
            mean_of(self.units, v) for v in (self.total, self.refinement, self.uncertainty)
        )
        return {
            "total": total,
            "calibration": total - refinement,
            "refinement": refinement,
            "uncertainty": uncertainty,
            "within": 0.0,
            "irreducible": float("nan") if self.irreducible is None else mean_of(self.units, self.irreducible),
        }

    def intervals(self, level: float) -> dict[str, Interval]:
        """Of each part, from what rows add to it."""
        with np.errstate(invalid="ignore"):
            rows = {
                "total": self.total,
                "calibration": self.total - self.refinement,
                "refinement": self.refinement,
                "discrimination": self.uncertainty - self.refinement,
                "uncertainty": self.uncertainty,
            }
            if self.irreducible is not None:
                rows |= {
                    "grouping": self.refinement - self.irreducible,
                    "epistemic": self.total - self.irreducible,
                    "irreducible": self.irreducible,
                }
            own, base = (mean_of(self.units, v) for v in (self.total, self.uncertainty))
            if base > 0 and np.isfinite(own):
                # 1 - total / uncertainty, by the derivatives of the ratio, about its value.
                rows["skill"] = (
                    (1 - own / base) + own / base * (self.uncertainty / base - 1) - (self.total - own) / base
                )
        return limits(self.units, rows, level)


def after_calibrator(
    rule: ScoringRule,
    sample: CalibrationSample,
    stated: FloatArray,
    one: Calibrator,
    folds: list[tuple[AnyArray, AnyArray]],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Losses of each row: of the scores, of a calibrator fitted to the other folds, and of the base rates."""
    calibrated, _ = held_out(one, sample, folds)
    base = np.bincount(sample.codes, weights=sample.weights, minlength=stated.shape[1])[None] / sample.total
    uncertainty = rule.table(base)[0, sample.codes]
    return rule.losses(stated, sample.codes), rule.losses(calibrated, sample.codes), uncertainty
