"""`Decomposition`: the parts of a mean score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...data.result import Table, plain
from ...data.types import Interval
from ...measure.scoring_rules import brier_words

PARTS = (
    "total",
    "calibration",
    "refinement",
    "discrimination",
    "uncertainty",
    "within",
    "grouping",
    "epistemic",
    "irreducible",
    "skill",
)


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(Table):
    r"""A mean score and its parts.

    With S the stated probabilities, C those that were observed where S was said, and :math:`\bar o` the base rates:

    Attributes
    ----------
    total : float
        Mean score, of S: ``calibration + refinement`` (``+ within`` for bins) and ``calibration - discrimination +
        uncertainty``.
    calibration, miscalibration : float
        What S loses against C: 0 for a calibrated forecast. Two names of one part.
    refinement : float
        Score of C.
    discrimination : float
        What C gains on the base rates (resolution).
    uncertainty : float
        Score of the base rates.
    within : float
        With bins: what the spread of scores within bins adds; 0 otherwise.
    grouping, epistemic, irreducible : float
        With a posterior Q: ``irreducible`` is the score of Q, ``epistemic`` what S loses against it, ``grouping`` what
        C does, so that ``refinement = grouping + irreducible`` and ``epistemic = calibration + grouping``. With
        features in its place ``grouping`` is a lower bound on average, signed, and ``irreducible`` what it leaves of
        the refinement. NaN without either.
    skill : float
        ``1 - total / uncertainty``: 0 for the base rates, 1 for certainty that comes true.
    intervals : mapping of str to Interval
        Of each part, where resamples were asked for or a calibrator was; with features, of ``grouping``.
    grouping_lower : float
        With features: the lower end of the one-sided interval of ``grouping``, which the grouping loss is above at the
        level. NaN without.
    score, estimator : str
    n_samples, n_classes : int
    """

    total: float
    calibration: float
    refinement: float
    uncertainty: float
    within: float
    irreducible: float
    score: str
    estimator: str
    n_samples: int
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    grouping_lower: float = float("nan")
    n_classes: int = 0

    def _columns(self) -> dict[str, Any]:
        nothing = Interval(float("nan"), float("nan"))
        ends = [self.intervals.get(name, nothing) for name in PARTS]
        return {
            "part": PARTS,
            "value": [getattr(self, name) for name in PARTS],
            "low": [e.low for e in ends],
            "high": [e.high for e in ends],
        }

    @property
    def miscalibration(self) -> float:
        """The same as ``calibration``."""
        return self.calibration

    @property
    def discrimination(self) -> float:
        """``uncertainty - refinement``."""
        return self.uncertainty - self.refinement

    @property
    def grouping(self) -> float:
        """``refinement - irreducible``; NaN without a posterior or features."""
        return self.refinement - self.irreducible

    @property
    def epistemic(self) -> float:
        """``total - irreducible``; NaN without a posterior or features."""
        return self.total - self.irreducible

    @property
    def skill(self) -> float:
        """``1 - total / uncertainty``; NaN where one class only was seen."""
        return 1 - self.total / self.uncertainty if self.uncertainty > 0 else float("nan")

    def __str__(self) -> str:
        lines = [f"{self.score} score of {self.n_samples:,} rows ({self.estimator})"]
        if self.score == "brier" and self.n_classes:
            lines[0] += f": {brier_words(self.n_classes)}"
        for name in PARTS:
            value = getattr(self, name)
            if np.isnan(value) or (name == "within" and self.estimator != "binned"):
                continue
            interval = self.intervals.get(name)
            shown = "" if interval is None else f"   {interval.low:.4f} – {interval.high:.4f}"
            if name == "grouping" and not np.isnan(self.grouping_lower):
                shown += f"   (lower bound: above {self.grouping_lower:.4f})"
            lines.append(f"  {name:<16}{value:>10.4f}{shown}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON (NaN and infinities as None)."""
        out = {name: plain(getattr(self, name)) for name in PARTS}
        out |= {
            "score": self.score,
            "estimator": self.estimator,
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
        }
        out |= {"grouping_lower": plain(self.grouping_lower)}
        return out | {"intervals": {k: [plain(v.low), plain(v.high)] for k, v in self.intervals.items()}}
