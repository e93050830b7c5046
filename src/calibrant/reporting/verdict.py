"""The verdict in plain words: is the error real, how large and where, does it matter, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..data.printing import Audience, nouns_of
from ..data.types import Interval
from ..measure.result import Estimate
from ..measure.sums_by_class import ProblemSums
from ..sums import BinMoments, GridMoments
from .class_table import ClassRow
from .evidence import Evidence, RepairGain
from .odds_ratio import MovedBaseRate
from .regions import Region, regions, stands_out

#: How a summary begins where there is evidence, by whether the error matters.
_REAL = {True: "Not calibrated", None: "Not calibrated", False: "Slightly off, too little to matter"}
#: Number of rows below which a calibrator should have only one or two parameters.
FEW_TO_REPAIR = 500


@dataclass(frozen=True)
class Found:
    """Findings that a verdict states: ``given`` if a tolerance was, ``rejects`` if the test of all rows does.

    ``classes`` are those tested in addition, the worst first. The gain is computed on first access. ``moved``: base
    rates whose change explains all of the miscalibration.
    """

    evidence: Evidence
    late: Mapping[str, RepairGain]
    log_loss: float
    given: bool
    rejects: bool
    classes: tuple[ClassRow, ...] = ()
    moved: MovedBaseRate | None = None

    @property
    def gain(self) -> RepairGain:
        """Gain of a perfect recalibration."""
        return self.late["gain"]

    @property
    def off(self) -> ClassRow | None:
        """The worst significant class."""
        return next((row for row in self.classes if row.significant), None)

    @property
    def widest(self) -> ClassRow | None:
        """The class with the largest upper limit of the error."""
        return max(self.classes, key=lambda row: np.nan_to_num(row.interval.high), default=None)


class Verdict(NamedTuple):
    """A summary in one sentence, and all findings: is the error real, how large is it, does it matter."""

    summary: str
    findings: tuple[str, ...]


def sentences(only: ProblemSums | None, estimate: Estimate, found: Found, by_class: str = "") -> Verdict:
    """The verdict in plain words; ``only`` is the notion's problem if it has only one."""
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
            summary += f", and those of {worst.name} by up to {_number(worst.interval.high)}"
        summary += "."
        told = _undecided(evidence, rows, p, f"{high} on average ({ends})")
        if worst is not None and not worst.interval.high < evidence.tolerance:
            told.insert(1, f"The probabilities of {worst.name} may be off by up to {_number(worst.interval.high)}.")
    elif evidence.status == "no evidence":
        summary = f"No sign of miscalibration: the probabilities are off by {high} on average at most."
        told = [
            f"No evidence of miscalibration in these {rows} ({p}).",
            f"If the probabilities are off, then by {high} on average at most ({ends}): {_small(found)}.",
        ]
    else:
        where = _where(only, estimate, found)
        summary = f"{_REAL[evidence.matters]}: {where.plain}."
        told = _real(found, estimate, where.whole, p, ends)
    return Verdict(summary, (*told, *_decisions(found, estimate.level), *filter(None, [by_class])))


def advice_of(
    evidence: Evidence, estimate: Estimate, audience: Audience, *, several: bool = False, log_loss: float = 0.0
) -> str:
    """Next step, also for rows with several labels; "" if there are too few data."""
    if np.isnan(estimate.interval.high) or np.isnan(evidence.test.pvalue):
        return ""
    if evidence.status == "undecided":
        return "Next: collect more rows before repairing anything."
    if evidence.status == "no evidence":
        return "Next: nothing to repair; look again when the data change."
    if evidence.matters is False and np.isinf(log_loss):
        end = audience.names("EndSmoothing()", "calibrant fix --calibrator end-smoothing")
        return f"Next: keep probabilities away from 0 and 1 by {end}, fitted on other rows."
    if evidence.matters is False:
        return "Next: leave it as it is, or set a smaller tolerance if such errors matter to you."
    if several:
        kind = "logistic" if estimate.n_samples < FEW_TO_REPAIR else "isotonic"
        return f"Next: repair each label by OneVsRest({kind!r}, normalisation='none'), fitted on other rows."
    if estimate.n_samples < FEW_TO_REPAIR:
        return "Next: repair with one or two parameters (temperature or logistic scaling), fitted on other rows."
    compare = audience.names("compare_calibrators(y_true, y_prob)", "calibrant compare")
    fit = "it, or AutoCalibrator," if audience is Audience.PYTHON else "it"
    return f"Next: run {compare} to choose a calibrator, and fit {fit} on other data."


def _undecided(evidence: Evidence, rows: str, p: str, up_to: str) -> list[str]:
    if not np.isfinite(evidence.detectable):
        return [
            f"Not enough data to tell: {rows} are too few to show any error ({p}), and one of up to {up_to} remains "
            "possible."
        ]
    return [
        f"Not enough data to tell: these {rows} are compatible with a perfectly calibrated model ({p}), and with "
        f"probabilities that are off by up to {up_to}.",
        f"An error of {_number(evidence.tolerance)}, the least that would matter, is detected in four samples of five, "
        f"or else ruled out, from about {_rows(evidence.rows_needed)} rows on.",
    ]


def _real(found: Found, estimate: Estimate, where: str, p: str, ends: str) -> list[str]:
    """Place, size and importance of the error, and the gain of recalibration."""
    low, high = estimate.interval
    value = estimate.value if low <= estimate.value <= high else estimate.corrected
    by = _number(value) if found.rejects else f"{_number(high)} at most"
    off = f"On average the probabilities are off by {by} ({ends})"
    enough, worst = f"{_number(found.evidence.tolerance)} or more", found.off
    if worst is not None and (not found.rejects or not low >= found.evidence.tolerance):
        words = nouns_of(estimate.notion)
        among = f", adjusted for {len(found.classes):,} {words.many}" if len(found.classes) > 2 - worst.several else ""
        ends = _interval(estimate.level, worst.interval)
        off += f"; {worst.name} is off by {_number(worst.ece)} ({ends}{among})"
    if found.evidence.matters is False:
        where = f"real, {_small(found)}. {where[0].upper()}{where[1:]}"
    elif found.evidence.matters:
        off += f", which is enough to matter ({enough})"
    else:
        off += f". There are too few rows to tell whether that is enough to matter ({enough})"
    return [f"Evidence of miscalibration ({p}): {where}.", *_moved(found), f"{off}.", _repair(found)]


def _moved(found: Found) -> list[str]:
    """Sentence on one odds ratio that explains the whole error."""
    if found.moved is None or not found.rejects:
        return []
    before, now = map(_rate, found.moved)
    way = "low" if found.moved.now > found.moved.before else "high"
    return [
        f"As far as these rows can tell, scores are too {way} everywhere by one odds ratio, as if the base rate had "
        f"moved from {before} to {now}: shift_prior."
    ]


def _small(found: Found) -> str:
    """Words for an error that is too small to matter."""
    uses = "to you" if found.given else "for most uses"
    return f"too small to matter {uses} (below {_number(found.evidence.tolerance)})"


def _repair(found: Found) -> str:
    """Gain of a perfect recalibration."""
    gain = found.gain
    brier = f"the Brier score by {_gain(gain.brier, gain.brier_interval)}"
    if np.isinf(found.log_loss):
        return (
            f"{gain.repair} would lower {brier}, and make the log-loss finite: a probability of 0 was given to the "
            "observed class."
        )
    log_loss = f"the log-loss by {_gain(gain.log_loss, gain.log_loss_interval)}"
    return f"{gain.repair} would lower {log_loss} and {brier}."


def _gain(value: float, interval: Interval) -> str:
    return f"{gain_digits(value)} ({gain_digits(interval.low)} to {gain_digits(interval.high)})"


def _decisions(found: Found, level: float) -> list[str]:
    """Share of decisions that recalibration changes; empty without a threshold."""
    gain = found.gain
    if gain.threshold is None:
        return []
    if gain.changed is None or gain.changed_interval is None:
        return [f"Too few rows lie on one side of the threshold {gain.threshold:g} to say how many decisions change."]
    low, high = (f"{100 * v:.2g}" for v in gain.changed_interval)
    at = f"of decisions at the threshold {gain.threshold:g}"
    if found.evidence.status != "miscalibrated":
        return [f"At most {high} % {at} would change after repair."]
    return [f"{100 * gain.changed:.2g} % {at} change after repair ({100 * level:g} % interval {low} to {high} %)."]


class _Where(NamedTuple):
    """Place of the error, and the worst part of it in plain words."""

    whole: str
    plain: str


def _where(only: ProblemSums | None, estimate: Estimate, found: Found) -> _Where:
    """Finding of the test of all rows, and the worst class."""
    parts = []
    if found.rejects and only is not None:
        parts.append(_by_score(only.fine, only.grid, estimate))
    elif found.rejects and (estimate.notion == "top-label" or found.off is None):
        errors = {label: e for label, e in estimate.per_class.items() if e == e}
        errors = errors or {c.label: c.ece for c in found.classes}  # an estimator that needs more rows found none
        worst = max(errors, key=lambda label: errors[label])
        where = "where it is predicted " if estimate.notion == "top-label" else ""
        said = f"worst for {nouns_of(estimate.notion).of(worst)} {where}(ECE {_number(errors[worst])})"
        parts.append(_Where(said, said))
    if found.off is not None:
        parts.append(_of_class(found.off))
    if not parts:
        said = "an outcome was observed that had probability 0"
        parts.append(_Where(said, said))
    return _Where(*("; ".join(texts) for texts in zip(*parts, strict=True)))


def _of_class(row: ClassRow) -> _Where:
    """Error of a class: of its mean if that makes up most of it, else in total."""
    gap = row.base_rate - row.mean_prob
    stated, happens = (_percent(v, float(np.clip(gap, -0.04, 0.04))) for v in (row.mean_prob, row.base_rate))
    said = f"{row.name} is stated at {stated} on average and occurs {happens} of the time"
    if row.direction == "both" or stated == happens:
        said = f"the probabilities of {row.name} are off by {_number(row.ece)} on average"
    return _Where(said, said)


def _by_score(fine: BinMoments | None, grid: GridMoments, estimate: Estimate) -> _Where:
    """Which scores are wrong, and by how much."""
    confident = estimate.notion in ("confidence", "top-label")
    words = ("over-confident", "under-confident") if confident else ("too high", "too low")
    every = [] if fine is None else regions(fine)
    found = [r for r in every if _percent(r.stated, r.gap) != _percent(r.observed, r.gap)][:2]  # what can be told
    what = "it is right" if confident else "it happens"
    if not found:
        stated, observed = float(grid.nodes @ grid.count) / grid.total, float(grid.positive.sum()) / grid.total
        gap = observed - stated
        said = f"the model says {_percent(stated, gap)} on average, {what} {_percent(observed, gap)} of the time"
        whole = fine is not None and stands_out(fine)
        on_the_whole = f"; on the whole they are {words[gap > 0]}" if whole else ""
        return _Where(f"no range of scores stands out{on_the_whole}: {said}", said)
    each = [
        f"where the model says {_percent(r.stated, r.gap)}, {what} {_percent(r.observed, r.gap)} of the time"
        for r in found
    ]
    parts = [
        f"scores {_scores(r)} ({100 * r.share:.0f} % of rows) are {words[r.gap > 0]}: {one}"
        for r, one in zip(found, each, strict=True)
    ]
    return _Where("; ".join(parts), each[0])


def _scores(r: Region) -> str:
    """``at 0.9 and 1.0``, ``near 0.99``, ``from 0.70 to 0.75``."""
    if r.values:
        decimals = next((d for d in (1, 2) if all(abs(v - round(v, d)) < 1e-4 for v in r.values)), 3)
        *others, last = (f"{v:.{decimals}f}" for v in r.values)
        return f"at {', '.join(others)} and {last}" if others else f"at {last}"
    if r.high - r.low <= 0.05 * min(r.stated, 1 - r.stated):
        return f"near {r.stated:.{r.decimals - 1}f}"
    return f"from {r.low:.{r.decimals}f} to {r.high:.{r.decimals}f}"


def _interval(level: float, ends: Interval) -> str:
    return f"{100 * level:g} % interval {_number(ends.low)} to {_number(ends.high)}"


def _rows(n: float) -> str:
    """Two significant digits of a number of rows: the precision of a power statement."""
    if not n < 1e15:
        return "very many"
    digits = max(len(str(int(n))) - 2, 0)
    return f"{int(-(-n // 10**digits) * 10**digits):,}"


def _number(value: float) -> str:
    """Three decimals, or two significant digits for small values."""
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"


def gain_digits(value: float) -> str:
    """Two significant digits without a power of ten, or three decimals for larger numbers; 0 is 0."""
    if 0 < value < 1e-6:
        return "<0.000001"
    return f"{value:.3f}" if value >= 0.1 else np.format_float_positional(float(f"{value:.2g}"), trim="-")


def _rate(value: float) -> str:
    """A base rate in per cent, with two digits of it or of the other class."""
    decimals = next((d for d, least in enumerate((0.1, 0.01, 0.001, 0.0001)) if least <= value <= 1 - least), 4)
    return f"{100 * value:.{decimals}f} %"


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
