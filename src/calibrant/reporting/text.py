"""The report as plain text."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from ..data.printable import printable
from ..measure.result import Estimate, ReliabilityCurve

if TYPE_CHECKING:
    from .report import Report

_WORST = 10
_WIDTH = 45


def render(report: Report) -> str:
    """Text of at most 100 columns."""
    r = report
    title = printable(r.title)
    lines = [title, "=" * min(len(title), 100), ""]
    for part in r.verdict_parts:
        lines += textwrap.wrap(printable(part), 98, break_on_hyphens=False)
    lines += [
        "",
        f"rows       {r.n_samples:,}" + (" (weighted)" if r.weighted else ""),
        f"classes    {len(r.classes)}  {_classes(r)}",
        f"accuracy   {r.accuracy:.4f}",
        f"Brier      {r.brier:.4f}",
        f"log-loss   {r.log_loss:.4f}"
        + ("  (a probability of 0 was given to what happened)" if np.isinf(r.log_loss) else ""),
        f"evidence   {_evidence(r)}",
        f"repair     {_repair(r)}",
        "",
        f"{'calibration error (' + r.notion + ')':<46}{'value':>9}{'interval':>20}{'corrected':>12}",
    ]
    lines += [_row(name, e) for name, e in r.estimates.items()]
    if r.bins is not None:
        lines += ["", *_diagram(r.bins)]
    if r.per_class:
        shown = list(r.per_class)[:_WORST]
        lines += ["", f"{'class':<24}{'rows':>12}{'base rate':>12}{'mean prob.':>12}{'ECE':>9}  on the whole"]
        lines += [
            f"{_short(str(c.label), 23):<24}{c.count:>12,.0f}{c.base_rate:>12.4f}{c.mean_prob:>12.4f}{c.ece:>9.4f}"
            f"  {c.direction}"
            for c in shown
        ]
        if len(r.per_class) > _WORST:
            lines.append(f"… and {len(r.per_class) - _WORST} more classes, none worse")
    lines += ["", *textwrap.wrap(footnote(r), 98)]
    return "\n".join(lines)


def _diagram(bins: ReliabilityCurve) -> list[str]:
    """Reliability diagram in text: stated (|), observed (o) and its interval (-) for each bin that holds rows."""
    lines = [f"{'bin':<13}{'rows':>12}{'stated':>8}{'observed':>10}   0{'observed frequency':^{_WIDTH - 2}}1"]
    edges = bins.edges if bins.edges is not None else np.empty(0)
    for i in np.flatnonzero(bins.count > 0):
        strip = [" "] * _WIDTH
        low, high, stated, observed = (
            round(float(v[i]) * (_WIDTH - 1)) for v in (bins.lower, bins.upper, bins.scores, bins.observed)
        )
        strip[low : high + 1] = "-" * (high + 1 - low)
        strip[stated] = "|"
        strip[observed] = "o"
        name = f"{edges[i]:.3f}-{edges[i + 1]:.3f}"
        numbers = f"{bins.count[i]:>12,.0f}{bins.scores[i]:>8.3f}{bins.observed[i]:>10.3f}"
        lines.append(f"{name:<13}{numbers}   {''.join(strip)}".rstrip())
    return [*lines, "o observed, - its interval, | stated: they meet where the model is calibrated"]


def _row(name: str, e: Estimate) -> str:
    interval = f"{decimals(e.interval.low)} – {decimals(e.interval.high)}"
    return f"{_short(name, 45):<46}{e.value:>9.4f}{interval:>20}{e.corrected:>12.4f}"


def decimals(value: float) -> str:
    """Four decimals; what is above 0 is not shown as 0."""
    return "<0.0001" if 0 < value < 5e-5 else f"{value:.4f}"


def _evidence(r: Report) -> str:
    """The test behind the verdict."""
    test = r.evidence.test
    return f"{r.evidence.status}: p = {test.pvalue:.3f} ({test.method})"


def repair(r: Report) -> str:
    """What a perfect repair would gain in log-loss; of several classes, each against the rest, in that of one."""
    each = " a class" if r.curves is None and r.notion != "top-label" else ""
    g = r.gain
    return f"{g.log_loss:.2g}{each} ({g.log_loss_interval.low:.2g} to {g.log_loss_interval.high:.2g})"


def _repair(r: Report) -> str:
    g = r.gain
    log_loss = "a finite log-loss" if np.isinf(r.log_loss) else f"log-loss {repair(r)}"
    return f"would gain {log_loss}, Brier {g.brier:.2g} ({g.brier_interval.low:.2g} to {g.brier_interval.high:.2g})"


def _classes(r: Report) -> str:
    shown = ", ".join(f"{_short(str(c), 20)} {100 * r.base_rates[c]:.1f} %" for c in r.classes[:5])
    return shown + (", …" if len(r.classes) > 5 else "")


def footnote(r: Report) -> str:
    """What the numbers are."""
    note = (
        f"Intervals are {100 * r.headline.level:g} % and account for the estimator's own bias, so much of one can lie "
        "below its value; they start at 0 unless the p-value is evidence of miscalibration. 'corrected' is the "
        "median-unbiased value. What repair would gain is that of saying at every score how often it happens there."
    )
    if r.streamed:
        note += " Rows were streamed: edges of equal-mass bins are rounded to 1/65536."
    return note


def _short(name: str, width: int) -> str:
    text = printable(name)
    return text if len(text) <= width else text[: width - 1] + "…"


def seconds_of(seconds: float) -> str:
    """``3.2 ms``, ``0.41 s``, ``12 s``."""
    if seconds < 0.0995:
        return f"{1e3 * seconds:.2g} ms"
    return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
