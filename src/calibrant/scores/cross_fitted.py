"""Losses of rows under cross-fitted probabilities, and intervals of their means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..calibrators import Calibrator, named_calibrator
from ..calibrators.candidates import candidates_for
from ..calibrators.crossval import Folds, folds_of, held_out
from ..calibrators.inputs import CalibrationSample
from ..comparison.models.units import IndependentUnits
from ..data.checks import check_type
from ..data.predictions import Predictions
from ..data.types import FloatArray, Interval, RandomState
from ..measure.scoring_rules import ScoringRule
from .score_parts import Decomposition


def ready_calibrator(
    calibrator: str | Calibrator, sample: CalibrationSample, allowed: str = "a name or one of calibrant.calibrators"
) -> Calibrator:
    """Check a ``calibrator`` argument, a name or a calibrator, and prepare it for a sample."""
    one = named_calibrator(calibrator, sample.n_classes) if isinstance(calibrator, str) else calibrator
    check_type("calibrator", one, Calibrator, allowed)
    return candidates_for(sample, {"calibrator": one})["calibrator"]


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Rows with weight, a calibrator of their scores, and folds.

    Attributes
    ----------
    sample : CalibrationSample
    stated : ndarray of shape (n, K)
        Probabilities, in the order of the sample's classes.
    units : IndependentUnits
    calibrator : Calibrator
    name : str
    folds : list of pairs of arrays
        Rows to fit and rows to evaluate.
    """

    sample: CalibrationSample
    stated: FloatArray
    units: IndependentUnits
    calibrator: Calibrator
    name: str
    folds: Folds

    @classmethod
    def of(cls, p: Predictions, calibrator: str | Calibrator, cv: int, random_state: RandomState) -> CrossFitted:
        """From predictions; folds are stratified, and keep groups together."""
        used = p if p.weights is None or p.weights.all() else p.subset(p.weights > 0)
        sample, units = CalibrationSample.of(used), IndependentUnits.of(used)
        ready = ready_calibrator(calibrator, sample)
        told = sample.scores.values.astype(np.float64)
        stated = told if told.ndim == 2 else np.column_stack([1 - told, told])
        folds = folds_of(sample.codes, cv, random_state, sample.groups)
        return cls(sample, stated, units, ready, calibrator if isinstance(calibrator, str) else repr(calibrator), folds)

    def decomposition(self, rule: ScoringRule, true: FloatArray | None, level: float, score: str) -> Decomposition:
        """Parts by the calibrator, with intervals of paired differences of rows; irreducible by a posterior."""
        codes = self.sample.codes
        calibrated, _ = held_out(self.calibrator, self.sample, self.folds)
        base = np.bincount(codes, weights=self.sample.weights, minlength=self.stated.shape[1])[None] / self.sample.total
        total, refinement = rule.losses(self.stated, codes), rule.losses(calibrated, codes)
        uncertainty = rule.table(base)[0, codes]
        own, after, known = (mean_of(self.units, v) for v in (total, refinement, uncertainty))
        irreducible = float("nan")
        with np.errstate(invalid="ignore"):
            rows = {
                "total": total,
                "calibration": total - refinement,
                "refinement": refinement,
                "discrimination": uncertainty - refinement,
                "uncertainty": uncertainty,
            }
            if true is not None:
                least = rule.losses(true, codes)
                irreducible = mean_of(self.units, least)
                rows |= {"grouping": refinement - least, "epistemic": total - least, "irreducible": least}
            if known > 0 and np.isfinite(own):
                # 1 - total / uncertainty, by the derivatives of the ratio, about its value.
                rows["skill"] = (1 - own / known) + own / known * (uncertainty / known - 1) - (total - own) / known
        return Decomposition(
            total=own,
            calibration=own - after,
            refinement=after,
            uncertainty=known,
            within=0.0,
            irreducible=irreducible,
            score=score,
            estimator=f"cross-fitted {self.name}",
            n_samples=len(codes),
            n_classes=self.stated.shape[1],
            intervals=limits(self.units, rows, level),
        )


def mean_of(units: IndependentUnits, values: FloatArray) -> float:
    """Weighted mean."""
    return float(units.row_mass @ values / units.total)


def limits(
    units: IndependentUnits, values: Mapping[str, FloatArray], level: float, *, sides: int = 2, least: float = 0.0
) -> dict[str, Interval]:
    """Intervals ``mean ± t · se`` of means over independent units; if one-sided, the upper end is infinite.

    Values without a finite mean have no interval; standard errors are at least ``least``.
    """
    from scipy.special import stdtrit

    df = units.df
    t = float(stdtrit(df, (1 + level) / 2 if sides == 2 else level)) if df > 0 else float("nan")
    out = {}
    for name, each in values.items():
        mean = mean_of(units, each)
        if np.isfinite(mean):
            influence = units.sums(each - mean) / units.total
            off = t * max(float(np.sqrt(units.covariance(influence[None])[0, 0])), least)
            out[name] = Interval(mean - off, mean + off if sides == 2 else float("inf"))
    return out
