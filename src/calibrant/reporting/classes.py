"""The classes of a report: each against the rest, with interval and test, and a sentence that names bad ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.types import Interval
from ..measure.inference.bin_intervals import binned_intervals
from ..measure.streaming import Accumulator
from ..significance.multiple import holm
from ..significance.score_ranges import range_pvalues
from ..sums import BinMoments
from .report import ClassRow

#: A class of fewer rows is not named, and so many are at most.
LEAST_ROWS, NAMED = 20, 5
_FIELDS = ("weight", "score", "outcome", "square", "repeat", "n_samples")


def class_rows(sums: Accumulator, level: float) -> list[ClassRow]:
    """Per-class table, worst first; empty for two classes and one column. All classes are judged side by side."""
    totals, kept = sums.required_totals(), sums.by_class
    if kept is None or not totals.weight > 0:
        return []
    parts: list[BinMoments] = list(kept.sums(sums.binned._needs(kept.domain)))
    tables: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS}
    bins = replace(parts[0], **tables)
    errors = sums.binned.read(bins, 1)  # p-th powers of p = 1
    low, high = binned_intervals(bins, level)
    pvalues = range_pvalues(bins)
    # Holm's: a calibrated model has any class marked in at most 1 - level of all samples, however tests depend. The
    # columns of a row add up to 1, so what is needed for Benjamini and Hochberg's need not hold.
    adjusted = holm(pvalues)
    marked = adjusted <= 1 - level
    rates, stated = totals.class_weight / totals.weight, totals.prob_sum / totals.weight
    shown = np.maximum(errors, 0.0)
    ends = np.fmin(low, shown), np.fmax(high, shown)
    order = np.argsort(-errors, kind="stable")
    columns = (totals.class_weight, rates, stated, errors, *ends, pvalues, adjusted)
    numbers = np.stack(columns)[:, order].T.tolist()
    return [
        ClassRow(sums.classes[k], count, rate, mean, error, Interval(bottom, top), p, corrected, bool(marked[k]))
        for k, (count, rate, mean, error, bottom, top, p, corrected) in zip(order, numbers, strict=True)
    ]


def class_sentence(rows: Sequence[ClassRow], unit: float = 1.0) -> str:
    """Which classes are off, the worst first, or that none is; nothing of two classes, which are one question.

    ``unit``: rows that a unit of weight stands for, the effective sample size over all weight.
    """
    if len(rows) <= 2 or all(np.isnan(row.pvalue) for row in rows):
        return ""
    marked = [row for row in rows if row.significant]
    if not marked:
        return f"Class by class, none of the {len(rows):,} stands out."
    sizes = [(row, round(row.count * unit)) for row in marked]
    named = [f"{row.label} ({size:,} rows)" for row, size in sizes if size >= LEAST_ROWS][:NAMED]
    rest = len(marked) - len(named)
    if not named:
        few = f"fewer than {LEAST_ROWS} rows"
        what = f"one class of {few}" if rest == 1 else f"{rest:,} classes of {few} each"
    elif rest:
        what = f"{', '.join(named)} and {rest:,} more"
    else:
        what = ", ".join(named[:-1]) + " and " * (len(named) > 1) + named[-1]
    verb = "is" if len(marked) == 1 else "are"
    of_all = f"all {len(rows):,}" if len(marked) == len(rows) else f"{len(marked):,} of the {len(rows):,}"
    return f"Class by class, {of_all} {verb} off: {what}."
