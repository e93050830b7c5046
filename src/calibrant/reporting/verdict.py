"""The verdict in plain words: is it real, how large is it and where, does it matter, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..data.printing import Audience
from ..data.types import AnyArray, Interval
from ..measure.bands import wilson_interval
from ..measure.result import Estimate, ReliabilityCurve
from ..measure.sums_by_class import ProblemSums
from ..sums import BinMoments
from .class_table import ClassRow
from .evidence import Evidence, RepairGain
from .report_curves import Curves

#: Share of all rows, and number of rows, that a region has at least.
LEAST_SHARE, LEAST_ROWS = 0.01, 20


@dataclass(frozen=True)
class Region:
    """A run of scores where the band lies on one side of the diagonal, from ``low`` to ``high`` as they are printed.

    Everything else is of the rows with these scores; ``rows`` is their number, by Kish's formula if they are weighted.
    """

    low: float
    high: float
    stated: float
    observed: float
    share: float
    rows: float

    @property
    def gap(self) -> float:
        """Observed minus stated frequency."""
        return self.observed - self.stated

    @property
    def decimals(self) -> int:
        """Decimals that tell its ends apart: those that it is rounded to."""
        return _decimals(self.high - self.low)


def regions(curve: ReliabilityCurve, fine: BinMoments) -> list[Region]:
    """Runs of scores where the band excludes the diagonal, the one that matters most (share times gap) first.

    The curve says where; shares and frequencies are those of the samples there, not of the smoothed curve. Ends are
    rounded outwards. A region has :data:`LEAST_ROWS` rows at least, and :data:`LEAST_SHARE` of them.
    """
    # Where all nearby outcomes agree a resampled band has no width: the binomial interval guards against that.
    bottom, top = wilson_interval(curve.observed * curve.count, curve.count, curve.level or 0.95)
    above = np.fmin(curve.lower, bottom) > curve.scores
    below = np.fmax(curve.upper, top) < curve.scores
    half = float(curve.scores[1] - curve.scores[0]) / 2
    ends = float(curve.scores[0]), float(curve.scores[-1])
    found = []
    for side in (above, below):
        for start, stop in _runs(side):
            low, high = float(curve.scores[start]) - half, float(curve.scores[stop - 1]) + half
            region = _region(max(low, ends[0]), min(high, ends[1]), fine)
            if region is not None and (region.gap > 0) == (side is above):
                found.append(region)
    return sorted(
        (r for r in found if r.share >= LEAST_SHARE and r.rows >= LEAST_ROWS), key=lambda r: -abs(r.gap) * r.share
    )


def _region(low: float, high: float, fine: BinMoments) -> Region | None:
    """What the rows from one score to another say; None without any."""
    unit = 10.0 ** -_decimals(high - low)
    low, high = max(np.floor(low / unit + 1e-9) * unit, 0.0), min(np.ceil(high / unit - 1e-9) * unit, 1.0)
    edges, width = fine.edges.values, 1e-9
    inside = (edges[1:] > low - width) & (edges[:-1] < high + width)
    # Only whole cells count as rows of a region: what a cell holds beyond its ends is not known.
    whole = inside & (edges[:-1] >= low - width) & (edges[1:] <= high + width)
    weight, square = float(fine.weight[whole].sum()), float(fine.square[whole].sum())
    mass = float(fine.weight[inside].sum())
    if mass <= 0:
        return None
    rows = weight if fine.integral else weight**2 / square if square > 0 else 0.0
    return Region(
        float(low),
        float(high),
        float(fine.score[inside].sum()) / mass,
        float(fine.outcome[inside].sum()) / mass,
        mass / float(fine.weight.sum()),
        rows,
    )


def _decimals(width: float) -> int:
    """Two, or as many as give a range of this width two digits; five at most."""
    return int(np.clip(np.ceil(-np.log10(max(width, 1e-9))) + 1, 2, 5))


def _runs(mask: AnyArray) -> list[tuple[int, int]]:
    """Start and stop of every run of True."""
    padded = np.concatenate([[False], mask, [False]]).astype(np.int8)
    change = np.flatnonzero(np.diff(padded))
    return [(int(a), int(b)) for a, b in zip(change[::2], change[1::2], strict=True)]


#: How a summary begins where there is evidence, by whether the error matters.
_REAL = {True: "Not calibrated", None: "Not calibrated", False: "Slightly off, too little to matter"}
#: Rows below which a repair should have one or two parameters.
FEW_TO_REPAIR = 500


@dataclass(frozen=True)
class Found:
    """What a verdict puts into words: ``given`` is whether a tolerance was, ``rejects`` what the test of all rows does.

    ``classes`` are those that were tested beside it, the worst first.
    """

    evidence: Evidence
    gain: RepairGain
    log_loss: float
    given: bool
    rejects: bool
    classes: tuple[ClassRow, ...] = ()

    @property
    def off(self) -> ClassRow | None:
        """The worst class of those that are significant."""
        return next((row for row in self.classes if row.significant), None)

    @property
    def widest(self) -> ClassRow | None:
        """The class that may be off by most."""
        return max(self.classes, key=lambda row: np.nan_to_num(row.interval.high), default=None)


class Verdict(NamedTuple):
    """One sentence for someone who decides, and all that was found: is it real, how large, does it matter."""

    summary: str
    findings: tuple[str, ...]


def sentences(
    only: ProblemSums | None, curves: Curves | None, estimate: Estimate, found: Found, by_class: str = ""
) -> Verdict:
    """The verdict in plain words."""
    evidence = found.evidence
    if np.isnan(estimate.interval.high) or np.isnan(evidence.test.pvalue):
        nothing = "There is not enough data to say anything."
        return Verdict(nothing, (nothing,))
    p, rows = f"p {evidence.pvalue_text}", f"{estimate.n_samples:,} rows"
    ends = _interval(estimate.level, estimate.interval)
    high = _number(estimate.interval.high)
    if evidence.status == "undecided":
        summary = f"Not enough data to tell: the probabilities may be off by up to {high} on average"
        worst = found.widest
        if worst is not None and not worst.interval.high < evidence.tolerance:
            summary += f", and those of class {worst.label} by up to {_number(worst.interval.high)}"
        summary += "."
        told = _undecided(evidence, rows, p, f"{high} on average ({ends})")
        if worst is not None and not worst.interval.high < evidence.tolerance:
            told.insert(
                1,
                f"Class {worst.label} may be off by {_number(worst.interval.high)} "
                f"({_interval(estimate.level, worst.interval)}).",
            )
    elif evidence.status == "no evidence":
        summary = f"No sign of miscalibration: the probabilities are off by {high} on average at most."
        told = [
            f"No evidence of miscalibration in these {rows} ({p}).",
            f"If the probabilities are off, then by {high} on average at most ({ends}): {_small(found)}.",
        ]
    else:
        where = _where(curves, only, estimate, found)
        summary = f"{_REAL[evidence.matters]}: {where.plain}."
        told = _real(found, estimate, where.whole, p, ends)
    return Verdict(summary, (*told, *_decisions(found, estimate.level), *filter(None, [by_class])))


def advice_of(evidence: Evidence, estimate: Estimate, audience: Audience) -> str:
    """What to do next; nothing where there was too little to judge."""
    if np.isnan(estimate.interval.high) or np.isnan(evidence.test.pvalue):
        return ""
    if evidence.status == "undecided":
        return "Next: collect more rows before repairing anything."
    if evidence.status == "no evidence":
        return "Next: nothing to repair; look again when the data change."
    if evidence.matters is False:
        return "Next: leave it as it is, or set a smaller tolerance if such errors matter to you."
    if estimate.n_samples < FEW_TO_REPAIR:
        return "Next: repair with one or two parameters (temperature or logistic scaling), fitted on other rows."
    compare = audience.names("compare_calibrators(y_true, y_prob)", "calibrant compare")
    fit = "it, or AutoCalibrator," if audience is Audience.PYTHON else "it"
    return (
        f"Next: {compare} finds the calibrator that repairs it best and says what it leaves; fit {fit} on other rows "
        "than these."
    )


def _undecided(evidence: Evidence, rows: str, p: str, up_to: str) -> list[str]:
    if not np.isfinite(evidence.detectable):
        return [
            f"Not enough data to tell: no error could be shown by these {rows} ({p}), and none of up to {up_to} can be "
            "ruled out."
        ]
    return [
        f"Not enough data to tell: these {rows} are compatible with a perfectly calibrated model ({p}), and with "
        f"probabilities that are off by up to {up_to}.",
        f"An error of {_number(evidence.tolerance)}, the least that would matter, is detected in four samples of five, "
        f"or else ruled out, from about {_rows(evidence.rows_needed)} rows on.",
    ]


def _real(found: Found, estimate: Estimate, where: str, p: str, ends: str) -> list[str]:
    """What is wrong where, how large it is, whether it matters, and what a repair would gain."""
    low, high = estimate.interval
    value = estimate.value if low <= estimate.value <= high else estimate.corrected
    by = _number(value) if found.rejects else f"{_number(high)} at most"
    off = f"On average the probabilities are off by {by} ({ends})"
    enough, worst = f"{_number(found.evidence.tolerance)} or more", found.off
    if worst is not None and (not found.rejects or not low >= found.evidence.tolerance):
        off += f"; class {worst.label} is off by {_number(worst.ece)} ({_interval(estimate.level, worst.interval)})"
    if found.evidence.matters is False:
        where = f"real, {_small(found)}. {where[0].upper()}{where[1:]}"
    elif found.evidence.matters:
        off += f", which matters ({enough} does)"
    else:
        off += f". Whether that matters ({enough} would) these rows cannot say"
    return [f"Evidence of miscalibration ({p}): {where}.", f"{off}.", _repair(found)]


def _small(found: Found) -> str:
    """Words for an error below what matters."""
    uses = "to you" if found.given else "for most uses"
    return f"too small to matter {uses} (below {_number(found.evidence.tolerance)})"


def _repair(found: Found) -> str:
    """What a perfect repair would gain."""
    gain = found.gain
    brier = f"the Brier score by {_gain(gain.brier, gain.brier_interval)}"
    if np.isinf(found.log_loss):
        return (
            f"A perfect repair would lower {brier}, and make the log-loss finite: a probability of 0 was given to the "
            "observed class."
        )
    log_loss = f"the log-loss by {_gain(gain.log_loss, gain.log_loss_interval)}"
    return f"A perfect repair would lower {log_loss} and {brier}."


def _gain(value: float, interval: Interval) -> str:
    return f"{gain_digits(value)} ({gain_digits(interval.low)} to {gain_digits(interval.high)})"


def _decisions(found: Found, level: float) -> list[str]:
    """What share of decisions a repair changes; nothing without a threshold."""
    gain = found.gain
    if gain.changed is None or gain.changed_interval is None:
        return []
    low, high = (f"{100 * v:.2g}" for v in gain.changed_interval)
    at = f"of decisions at the threshold {gain.threshold:g}"
    if found.evidence.status != "miscalibrated":
        return [f"At most {high} % {at} would change after repair."]
    return [f"{100 * gain.changed:.2g} % {at} change after repair ({100 * level:g} % interval {low} to {high} %)."]


class _Where(NamedTuple):
    """What is wrong where, and the worst of it in everyday words."""

    whole: str
    plain: str


def _where(curves: Curves | None, only: ProblemSums | None, estimate: Estimate, found: Found) -> _Where:
    """What the test of all rows found, and the worst class."""
    parts = []
    if found.rejects and curves is not None and only is not None:
        parts.append(_by_score(curves, only, estimate))
    elif found.rejects and (estimate.notion == "top-label" or found.off is None):
        errors = {label: e for label, e in estimate.per_class.items() if e == e}
        errors = errors or {c.label: c.ece for c in found.classes}  # an estimator that needs more rows found none
        worst = max(errors, key=lambda label: errors[label])
        where = "where it is predicted " if estimate.notion == "top-label" else ""
        said = f"worst for class {worst} {where}(ECE {_number(errors[worst])})"
        parts.append(_Where(said, said))
    if found.off is not None:
        parts.append(_of_class(found.off))
    return _Where(*("; ".join(texts) for texts in zip(*parts, strict=True)))


def _of_class(row: ClassRow) -> _Where:
    """What is wrong about a class: its mean, if that tells most of its error, or else its error."""
    gap = row.base_rate - row.mean_prob
    stated, happens = (_percent(v, float(np.clip(gap, -0.04, 0.04))) for v in (row.mean_prob, row.base_rate))
    if 2 * abs(gap) < row.ece or stated == happens:
        said = f"the probabilities of class {row.label} are off by {_number(row.ece)} on average"
        return _Where(said, said)
    plain = f"class {row.label} is stated at {stated} on average and occurs {happens} of the time"
    return _Where(
        f"class {row.label} is {row.direction}: stated at {stated} on average, it occurs {happens} of the time", plain
    )


def _by_score(curves: Curves, only: ProblemSums, estimate: Estimate) -> _Where:
    """Which scores are wrong, and by how much."""
    confident = estimate.notion in ("confidence", "top-label")
    words = ("over-confident", "under-confident") if confident else ("too high", "too low")
    every = [] if only.fine is None else regions(curves.smooth["confidence"], only.fine)
    found = [r for r in every if _percent(r.stated, r.gap) != _percent(r.observed, r.gap)][:2]  # what can be told
    what = "it is right" if confident else "it happens"
    grid = only.grid
    stated, observed = float(grid.nodes @ grid.count) / grid.total, float(grid.positive.sum()) / grid.total
    gap = observed - stated
    if 2 * sum(r.share * abs(r.gap) for r in found) < abs(gap) or not found:
        said = f"the model says {_percent(stated, gap)} on average, {what} {_percent(observed, gap)} of the time"
        return _Where(f"no region of scores stands out; on the whole they are {words[gap > 0]}: {said}", said)
    parts, plain = [], []
    for r in found:
        narrow = r.high - r.low <= 0.05 * min(r.stated, 1 - r.stated)
        where = (
            f"scores near {r.stated:.{r.decimals - 1}f}"
            if narrow
            else (f"scores from {r.low:.{r.decimals}f} to {r.high:.{r.decimals}f}")
        )
        said = f"where the model says {_percent(r.stated, r.gap)}, {what} {_percent(r.observed, r.gap)} of the time"
        parts.append(f"{where} ({100 * r.share:.0f} % of rows) are {words[r.gap > 0]}: {said}")
        plain.append((r.share * abs(r.gap), said))
    return _Where("; ".join(parts), max(plain)[1])


def _interval(level: float, ends: Interval) -> str:
    return f"{100 * level:g} % interval {_number(ends.low)} to {_number(ends.high)}"


def _rows(n: float) -> str:
    """Two digits of a number of rows: what a power statement is worth."""
    if not n < 1e15:
        return "very many"
    digits = max(len(str(int(n))) - 2, 0)
    return f"{int(-(-n // 10**digits) * 10**digits):,}"


def _number(value: float) -> str:
    """Three decimals, or two digits where that says too little."""
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"


def gain_digits(value: float) -> str:
    """Two digits, or three decimals of what is larger; 0 is 0."""
    return f"{value:.3f}" if value >= 0.1 else f"{value:.2g}"


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
