"""Parts that are means of what rows add to them: values, and intervals of paired differences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...comparison.models.units import IndependentUnits
from ...data.types import FloatArray, Interval


def mean_of(units: IndependentUnits, values: FloatArray) -> float:
    """Weighted mean."""
    return float(units.row_mass @ values / units.total)


def limits(
    units: IndependentUnits, values: Mapping[str, FloatArray], level: float, *, sides: int = 2, least: float = 0.0
) -> dict[str, Interval]:
    """Intervals ``mean ± t · se`` of means over independent units; of one side, the upper end is infinite.

    What has no finite mean has none; a standard error is ``least`` at least.
    """
    from scipy.special import stdtrit

    df = units.size - 1
    t = float(stdtrit(df, (1 + level) / 2 if sides == 2 else level)) if df > 0 else float("nan")
    out = {}
    for name, each in values.items():
        mean = mean_of(units, each)
        if np.isfinite(mean):
            influence = units.sums(each - mean) / units.total
            off = t * max(float(np.sqrt(units.covariance(influence[None])[0, 0])), least)
            out[name] = Interval(mean - off, mean + off if sides == 2 else float("inf"))
    return out
