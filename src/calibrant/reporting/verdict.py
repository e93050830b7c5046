"""One plain sentence: over- or under-confident, where, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._types import AnyArray
from ..density import GridMoments
from ..inference.bands import wilson_interval
from ..results import Estimate, ReliabilityCurve
from .report import ClassRow


@dataclass(frozen=True)
class Region:
    """A run of scores where the band lies on one side of the diagonal."""

    low: float
    high: float
    stated: float
    observed: float
    share: float

    @property
    def gap(self) -> float:
        """Observed minus stated frequency."""
        return self.observed - self.stated


def regions(curve: ReliabilityCurve, grid: GridMoments) -> list[Region]:
    """Runs of scores where the band excludes the diagonal, the one that matters most (share times gap) first.

    The curve says where; shares and frequencies are those of the samples there, not of the smoothed curve.
    """
    # Where all nearby outcomes agree a resampled band has no width: the binomial interval guards against that.
    bottom, top = wilson_interval(curve.observed * curve.count, curve.count, curve.level or 0.95)
    above = np.fmin(curve.lower, bottom) > curve.scores
    below = np.fmax(curve.upper, top) < curve.scores
    step = float(curve.scores[1] - curve.scores[0])
    found = []
    for side in (above, below):
        for start, stop in _runs(side):
            low = float(curve.scores[start])
            high = float(curve.scores[stop - 1])
            inside = (grid.nodes >= low - step / 2) & (grid.nodes <= high + step / 2)
            mass = float(grid.count[inside].sum())
            if mass <= 0:
                continue
            stated = float(grid.nodes[inside] @ grid.count[inside]) / mass
            observed = float(grid.positive[inside].sum()) / mass
            region = Region(low, high, stated, observed, mass / grid.total)
            if (region.gap > 0) == (side is above):
                found.append(region)
    return sorted((r for r in found if r.share >= 0.01), key=lambda r: -abs(r.gap) * r.share)


def sentence(
    curve: ReliabilityCurve | None, grid: GridMoments | None, estimate: Estimate, classes: Sequence[ClassRow] = ()
) -> str:
    """Plain words for what the curve and the interval show."""
    low, high = estimate.interval
    level = f"{100 * estimate.level:g} %"
    if np.isnan(estimate.value):
        return "There is not enough data to say anything."
    if low == 0:
        return (
            f"No evidence of miscalibration in {estimate.n_samples:,} rows: they are compatible with a perfectly "
            f"calibrated model, and with a calibration error of up to {_number(high)} ({level} interval)."
        )
    size = f"calibration error {_number(low)} to {_number(high)}, {level} interval"
    if curve is None or grid is None:
        worst = f"; worst for class {classes[0].label} (ECE {_number(classes[0].ece)})" if classes else ""
        return f"The probabilities are miscalibrated ({size}){worst}."
    found = regions(curve, grid)[:2]
    if not found:
        return f"The probabilities are miscalibrated ({size}), but no region of scores stands out."
    what = "the model is right" if estimate.notion in ("confidence", "top-label") else "it happens"
    parts = []
    for r in found:
        where = f"scores from {r.low:.2f} to {r.high:.2f}" if r.high - r.low > 0.015 else f"scores near {r.stated:.2f}"
        confident = estimate.notion in ("confidence", "top-label")
        word = (
            ("over-confident" if confident else "too high")
            if r.gap < 0
            else ("under-confident" if confident else "too low")
        )
        parts.append(
            f"{where} ({100 * r.share:.0f} % of rows) are {word}: {what} {_percent(r.observed, r.gap)} of the time "
            f"where {_percent(r.stated, r.gap)} is stated"
        )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]} ({size})."


def _number(value: float) -> str:
    """Three decimals, or two digits where that says too little."""
    return f"{value:.3f}" if value >= 0.01 or value == 0 else f"{value:.2g}"


def _percent(value: float, gap: float) -> str:
    """A percentage with as many decimals as a gap of this size needs."""
    decimals = 0 if abs(gap) >= 0.05 and 0.01 <= value <= 0.99 else 1 if abs(gap) >= 0.005 else 2
    step = 10.0**-decimals
    text = f"{100 * value:.{decimals}f}"
    if value > 0 and float(text) == 0:
        return f"under {step:g} %"
    if value < 1 and float(text) == 100:
        return f"over {100 - step:g} %"
    return f"{text} %"


def _runs(mask: AnyArray) -> list[tuple[int, int]]:
    """Start and stop of every run of True."""
    padded = np.concatenate([[False], mask, [False]]).astype(np.int8)
    change = np.flatnonzero(np.diff(padded))
    return [(int(a), int(b)) for a, b in zip(change[::2], change[1::2], strict=True)]
