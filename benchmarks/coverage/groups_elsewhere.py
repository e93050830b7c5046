"""Rows in groups in `subgroup_calibration` and `decompose`: false alarms and coverage of calibrated models.

    python benchmarks/coverage/groups_elsewhere.py

writes groups_elsewhere.md beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import norm

import calibrant as cal
from calibrant.data.writing import write_text

SAMPLES = 100
Made = tuple[np.ndarray, np.ndarray, np.ndarray]


def hospitals(rng: np.random.Generator, n_groups: int, size: int, tau: float) -> Made:
    """Rows of a hospital share a normal effect that calibrated scores know nothing of."""
    group = np.repeat(np.arange(n_groups), size)
    known = rng.standard_normal(group.size)
    happened = known + tau * rng.standard_normal(n_groups)[group] + rng.standard_normal(group.size) > 0
    return happened.astype(int), norm.cdf(known / np.sqrt(1 + tau**2)), group


def forecasts(rng: np.random.Generator, events: int = 40, times: int = 60) -> Made:
    """Forecasts of one event as it comes nearer: a martingale, and one outcome for all."""
    path = rng.standard_normal((events, times + 1)).cumsum(axis=1)
    left = np.sqrt(times + 1 - np.arange(1, times + 1))
    happened = np.repeat(path[:, -1] > 0, times).astype(int)
    return happened, norm.cdf(path[:, :-1] / left).ravel(), np.repeat(np.arange(events), times)


def three(rng: np.random.Generator) -> Made:
    """Three classes; six in ten rows of a group share what decides beside the scores."""
    group = np.repeat(np.arange(60), 10)
    q = np.exp(rng.standard_normal((group.size, 3)))
    q /= q.sum(axis=1, keepdims=True)
    shared, own = rng.gumbel(size=(60, 3))[group], rng.gumbel(size=q.shape)
    mixed = np.where(rng.random((group.size, 1)) < 0.6, shared, own)
    return np.argmax(np.log(q) + mixed, axis=1), q, group


CASES: dict[str, Callable[[np.random.Generator], Made]] = {
    "60 hospitals of 10 rows": lambda rng: hospitals(rng, 60, 10, 1.0),
    "24 hospitals of 25 rows": lambda rng: hospitals(rng, 24, 25, 0.5),
    "60 forecasts of 40 events": forecasts,
    "three classes, 60 groups of 10": three,
}


def subgroups(case: str, *, straddle: bool, told: bool) -> str:
    """A row of the first table."""
    rng = np.random.default_rng(7)
    each, off, differ, held, pairs = [], [], [], [], []
    for _ in range(SAMPLES):
        y, p, group = CASES[case](rng)
        by = rng.integers(3, size=y.size) if straddle else group % 3
        found = cal.subgroup_calibration(
            y, p, by, groups=group if told else None, n_resamples=199, estimator=cal.Binned(5)
        )
        (column,) = found.columns
        each += [g.pvalue <= 0.05 for g in column.subgroups]
        held += [g.gap_interval.low <= 0 <= g.gap_interval.high for g in column.subgroups]
        off.append(bool(found.rejected))
        differ.append(column.heterogeneity.pvalue <= 0.05)
        largest = column.largest_difference
        assert largest is not None
        pairs.append(largest.interval.low <= 0 <= largest.interval.high)
    where = "across" if straddle else "within"
    values = " | ".join(f"{100 * np.mean(v):.1f}" for v in (each, off, differ, held, pairs))
    return f"| {case} | {where} | {'yes' if told else 'no'} | {values} |"


def parts(case: str, *, told: bool) -> str:
    """A row of the second table."""
    rng = np.random.default_rng(3)
    above, held = [], []
    for _ in range(SAMPLES):
        y, p, group = CASES[case](rng)
        found = cal.decompose(y, p, groups=group if told else None, n_resamples=100)
        truth = np.mean(p * (1 - p)) if p.ndim == 1 else np.mean(1 - (p**2).sum(axis=1))
        above.append(found.intervals["calibration"].low > 0)
        held.append(found.intervals["total"].low <= truth <= found.intervals["total"].high)
    return f"| {case} | {'yes' if told else 'no'} | {100 * np.mean(above):.1f} | {100 * np.mean(held):.1f} |"


def main() -> None:
    first = [
        subgroups(case, straddle=straddle, told=told)
        for case in list(CASES)[:2]
        for straddle in (True, False)
        for told in (True, False)
    ]
    second = [parts(case, told=told) for case in CASES for told in (True, False)]
    error = 100 * np.sqrt(0.05 * 0.95 / SAMPLES)
    text = f"""# Rows in groups: subgroups and decompositions

Written by `benchmarks/coverage/groups_elsewhere.py`: {SAMPLES} samples a row of calibrated models, in percent; the
standard error of an entry of 5 or 95 is {error:.1f}. *Told*: whether `groups=` was given.

## `subgroup_calibration`

Three subgroups, across hospitals (each lies in all) or within (each lies in one). *Each*: p-values of Kuiper's test of
a subgroup that are at most 0.05; *any*: samples in which a subgroup is called off after Holm's correction; *differ*:
heterogeneity rejected; all wanted at most 5. *Gaps*, *largest difference*: intervals that cover 0, wanted 95 or more.

| rows | subgroups | told | each | any | differ | gaps | largest difference |
|---|---|---|--:|--:|--:|--:|--:|
{chr(10).join(first)}

## `decompose`

CORP with 100 resamples. *False*: intervals of the calibration that do not start at 0, wanted at most 5; *total*:
intervals of the mean score that hold its expectation, wanted 95.

| rows | told | false | total |
|---|---|--:|--:|
{chr(10).join(second)}
"""
    write_text(Path(__file__).with_suffix(".md"), text)


if __name__ == "__main__":
    main()
