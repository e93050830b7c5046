"""`Evidence`: whether a report's rows speak against calibration, and what they could have shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.result import Result
from ..judge.tests.from_sums import SumsTest
from ..judge.tests.result import TestResult
from ..measure.result import Estimate
from ..sums import GridMoments

#: What matters, as a share of the standard deviation of the outcome: 0.05 at a base rate of one half, 0.01 at 1 %.
MATERIAL = 0.1


@dataclass(frozen=True, repr=False)
class Evidence(Result):
    """Test of calibration, and what a test of so many rows can see.

    Attributes
    ----------
    status : {"miscalibrated", "no evidence", "undecided"}
        ``"miscalibrated"``: the p-value is at most ``1 - level`` (or the smallest that so many draws can give).
        ``"no evidence"``: it is not, and errors that matter
        would have been seen. ``"undecided"``: it is not, and they might not have been.
    test : TestResult
        Smoothed residuals over ranks against labels drawn from the probabilities.
    detectable : float
        Calibration error that is found in four of five samples like this one, if it is too high, too low, over- or
        under-confident throughout; infinite where none is. Errors that alternate from score to score are harder to see.
    material : float
        Calibration error that matters: a tenth of the standard deviation of the outcome.
    rows_needed : float
        About how many rows like these it takes to find an error of that size as often, and to rule out twice as much.
    """

    status: str
    test: TestResult
    detectable: float
    material: float
    rows_needed: float

    @classmethod
    def of(cls, found: SumsTest, estimate: Estimate, grids: Sequence[GridMoments]) -> Evidence:
        """Judge what was found, at the level of the estimate's interval."""
        test, power = found.result, found.power
        rates = [float(g.positive.sum() / g.total) for g in grids if g.total > 0]
        mass = [g.total for g in grids if g.total > 0]
        variance = float(np.average([r * (1 - r) for r in rates], weights=mass)) if rates else float("nan")
        # Where nothing or everything happened, as if half a row more had been otherwise.
        material = MATERIAL * float(np.sqrt(max(variance, 0.5 / max(power.n_samples, 1.0))))
        if np.isnan(test.pvalue):
            status = "undecided"
        elif test.pvalue <= found.rejects_at * (1 + 1e-9):
            status = "miscalibrated"
        else:
            sharp = power.detectable <= material and estimate.interval.high <= 2 * material
            status = "no evidence" if sharp else "undecided"
        needed = power.rows_for(material)
        if status == "undecided" and estimate.interval.high > 2 * material:
            # The interval must shrink as well, with the root of n.
            needed = max(needed, power.n_samples * (estimate.interval.high / (2 * material)) ** 2)
        return cls(status, test, power.detectable, material, needed)
