"""The verdict in plain words: evidence or not, how much, in which direction and where, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.types import AnyArray
from ..measure.inference.bands import wilson_interval
from ..measure.result import Estimate, ReliabilityCurve
from ..sums import GridMoments
from .evidence import Evidence
from .report import ClassRow

#: Rows below which a repair should have one or two parameters.
FEW_TO_REPAIR = 500


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
    curve: ReliabilityCurve | None,
    grid: GridMoments | None,
    estimate: Estimate,
    evidence: Evidence,
    classes: Sequence[ClassRow] = (),
) -> str:
    """Plain words: is there evidence, how large is the error, in which direction and where, and what to do next."""
    if np.isnan(estimate.value) or np.isnan(evidence.test.pvalue):
        return "There is not enough data to say anything."
    low, high = estimate.interval
    p = f"p {_pvalue(evidence.test.pvalue)}, test of smoothed residuals"
    size = f"The {100 * estimate.level:g} % interval of the calibration error is {_number(low)} to {_number(high)}."
    if low > 0 and evidence.status != "miscalibrated":
        size = f"{size[:-1]}: it leaves 0 out, but the test does not bear that out."
    rows, seen = f"{estimate.n_samples:,} rows", _number(evidence.detectable)
    if evidence.status == "undecided" and not np.isfinite(evidence.detectable):
        text = f"Not enough data to tell: no error could be shown by these {rows} ({p}). {size}"
    elif evidence.status == "undecided":
        text = (
            f"Not enough data to tell: these {rows} are compatible with a perfectly calibrated model ({p}), but an "
            f"error below {seen} could easily be missed. {size} An error of {_number(evidence.material)} is "
            f"detectable, in four samples of five, from about {_rows(evidence.rows_needed)} rows on."
        )
    elif evidence.status == "no evidence":
        text = (
            f"No evidence of miscalibration in these {rows} ({p}); a model too high, too low, over- or "
            f"under-confident by {seen} or more would be found in four samples of five. {size}"
        )
    else:
        text = f"Evidence of miscalibration ({p}): {_where(curve, grid, estimate, classes)}. {size}"
    return f"{text} {advice(evidence, estimate)}"


def advice(evidence: Evidence, estimate: Estimate) -> str:
    """What to do next."""
    if evidence.status == "undecided":
        return "Next: collect more rows before repairing anything."
    if evidence.status == "no evidence":
        return "Next: nothing to repair; look again when the data change, and at the diagram for errors that alternate."
    if estimate.n_samples < FEW_TO_REPAIR:
        return "Next: repair with one or two parameters (temperature or logistic scaling), fitted on other rows."
    return "Next: calibrant compare finds the calibrator that repairs it best; fit it on other rows than these."


def _where(
    curve: ReliabilityCurve | None, grid: GridMoments | None, estimate: Estimate, classes: Sequence[ClassRow]
) -> str:
    """What is wrong where."""
    if curve is None or grid is None:
        errors = {c.label: c.ece for c in classes}
        if estimate.notion == "top-label":
            errors = {label: e for label, e in estimate.per_class.items() if e == e}
        worst = max(errors, key=lambda label: errors[label])
        return f"worst for class {worst} (ECE {_number(errors[worst])})"
    confident = estimate.notion in ("confidence", "top-label")
    words = ("over-confident", "under-confident") if confident else ("too high", "too low")
    found = regions(curve, grid)[:2]
    if not found:
        gap = float(grid.positive.sum() - grid.nodes @ grid.count) / grid.total
        return f"no region of scores stands out; on the whole they are {words[gap > 0]} by {_number(abs(gap))}"
    what = "the model is right" if confident else "it happens"
    parts = []
    for r in found:
        where = f"scores from {r.low:.2f} to {r.high:.2f}" if r.high - r.low > 0.015 else f"scores near {r.stated:.2f}"
        parts.append(
            f"{where} ({100 * r.share:.0f} % of rows) are {words[r.gap > 0]}: {what} {_percent(r.observed, r.gap)} of "
            f"the time where {_percent(r.stated, r.gap)} is stated"
        )
    return "; ".join(parts)


def _pvalue(p: float) -> str:
    return f"= {p:.2f}" if p >= 0.1 else f"= {p:.3f}"


def _rows(n: float) -> str:
    """Two digits of a number of rows: what a power statement is worth."""
    if not n < 1e15:
        return "very many"
    digits = max(len(str(int(n))) - 2, 0)
    return f"{int(-(-n // 10**digits) * 10**digits):,}"


def _number(value: float) -> str:
    """Three decimals, or two digits where that says too little."""
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"


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
