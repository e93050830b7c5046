"""Are `subgroup_calibration` and `decompose` right for rows in groups?

    python -m benchmarks.coverage.groups_elsewhere [--repetitions 500]

Models are calibrated. Rows of a hospital share a normal effect that scores do not see (60 hospitals of 10 rows, sd 1;
24 of 25, sd 0.5). Each of 40 events has 60 forecasts. With three classes, six in ten rows of a group share what decides
the outcome besides the scores. Three subgroups lie *across* hospitals (each is in all of them) or *within* (each
hospital is in one). Tests are Kuiper's with 199 draws; errors use five bins. `decompose` uses CORP with 100 resamples.
The true mean score is its expectation given the scores.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept
from .grouped_rows import Rows, clusters, forecasts


def three(rng: np.random.Generator) -> Rows:
    """Three classes; six in ten rows of a group share what decides beside the scores."""
    group = np.repeat(np.arange(60), 10)
    q = np.exp(rng.standard_normal((group.size, 3)))
    q /= q.sum(axis=1, keepdims=True)
    shared, own = rng.gumbel(size=(60, 3))[group], rng.gumbel(size=q.shape)
    mixed = np.where(rng.random((group.size, 1)) < 0.6, shared, own)
    return group, q, np.argmax(np.log(q) + mixed, axis=1)


CASES: dict[str, Callable[[np.random.Generator], Rows]] = {
    "60 hospitals": lambda rng: clusters(rng, np.full(60, 10), 1.0),
    "24 hospitals": lambda rng: clusters(rng, np.full(24, 25), 0.5),
    "40 events": lambda rng: forecasts(rng, 40),
    "three classes": three,
}
HOSPITALS = [name for name in CASES if "hospitals" in name]
#: What is wrong in a sample.
SUBGROUPS = ("a subgroup rejected", "differences rejected", "gap missed", "largest difference missed")
OF_SUBGROUPS = [f"{where}: {what}" for where in ("across", "within") for what in SUBGROUPS]
OF_PARTS = ("decompose: error above 0", "decompose: score missed")
TOLD = {"with groups": True, "without": False}
ALPHA = 5


def sample(rows: str, seed: int) -> dict[str, float]:
    """What is wrong, with groups and without."""
    rng = np.random.default_rng([seed, [*CASES].index(rows)])
    group, p, y = CASES[rows](rng)
    y = y.astype(int)
    subgroups = {"across": rng.integers(3, size=y.size), "within": group % 3}
    out = {}
    for name, told in TOLD.items():
        groups = group if told else None
        for where, by in subgroups.items() if rows in HOSPITALS else ():
            out |= {f"{where}: {what}, {name}": value for what, value in _wrong(y, p, by, groups).items()}
        found = cal.decompose(y, p, groups=groups, n_resamples=100)
        truth = np.mean(p * (1 - p)) if p.ndim == 1 else np.mean(1 - (p**2).sum(axis=1))
        low, high = found.intervals["total"]
        wrong = found.intervals["calibration"].low > 0, not low <= truth <= high
        out |= {f"{what}, {name}": float(value) for what, value in zip(OF_PARTS, wrong, strict=True)}
    return out


def _wrong(y: np.ndarray, p: np.ndarray, by: np.ndarray, groups: np.ndarray | None) -> dict[str, float]:
    found = cal.subgroup_calibration(y, p, by, groups=groups, n_resamples=199, estimator=cal.Binned(5))
    (column,) = found.columns
    missed = [not g.gap_interval.low <= 0 <= g.gap_interval.high for g in column.subgroups]
    low, high = column.largest_difference.interval
    wrong = bool(found.rejected), column.heterogeneity.pvalue <= ALPHA / 100, np.mean(missed), not low <= 0 <= high
    out = {what: float(value) for what, value in zip(SUBGROUPS, wrong, strict=True)}
    return out | {"p-value": float(np.mean([g.pvalue <= ALPHA / 100 for g in column.subgroups]))}


def wrong_of(values: np.ndarray) -> tuple[float, float]:
    """Per cent, with a standard error; values are shares of the three subgroups, or 0 and 1."""
    return percent(values) if np.isin(values, (0, 1)).all() else tuple(100 * x for x in estimate(values))  # type: ignore[return-value]


def lines(kept: Kept) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Per cent that is wrong, with groups and without, of rows and promises."""
    out = {}
    for rows in CASES:
        part = kept.where(rows=rows)
        for what in (*(OF_SUBGROUPS if rows in HOSPITALS else ()), *OF_PARTS):
            out[rows, what] = [wrong_of(part[f"{what}, {name}"]) for name in TOLD]
    return out


def answer(kept: Kept) -> str:
    each = lines(kept)
    over = [sum(pair[i][0] - 2 * pair[i][1] > ALPHA for pair in each.values()) for i in range(2)]
    (rows, what), (most, _) = max(each.items(), key=lambda one: one[1][0][0])
    low, high = (of(pair[1][0] for pair in each.values()) for of in (min, max))
    single = [
        np.mean(
            [kept.where(rows=rows)[f"{where}: p-value, {name}"] for rows in HOSPITALS for where in ("across", "within")]
        )
        for name in TOLD
    ]
    return (
        f"With groups, false alarms or 95 % intervals that miss the truth exceed {ALPHA} % by more than two standard "
        f"errors in {over[0]} of {len(each)} cases; the highest share is {most[0]:.1f} ± {most[1]:.1f} % ({what}, "
        f"{rows}). Without groups they do in {over[1]}, and range from {low:.1f} to {high:.1f} %. P-values "
        f"of single subgroups are 0.05 or less in {100 * single[0]:.1f} % with groups and in "
        f"{100 * single[1]:.1f} % without."
    )


def picture(kept: Kept) -> Figure:
    each = lines(kept)
    series = {name: [pair[i] for pair in each.values()] for i, name in enumerate(TOLD)}
    return dots([f"{rows}, {what}" for rows, what in each], series, "wrong, % of samples", ALPHA, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of samples where 5 % tests reject or 95 % intervals miss the truth, in the"
    yield f"worst case. The aim is {ALPHA} or less."
    yield ""
    yield from table(("wrong", *TOLD), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    every: dict[str, list[list[tuple[float, float]]]] = {}
    for (_, what), pairs in lines(kept).items():
        every.setdefault(what, []).append(pairs)
    for what, some in every.items():
        yield [what, *(f"{value:.1f} ± {error:.1f}" for value, error in map(max, zip(*some, strict=True)))]


EXPERIMENT = Experiment(__spec__.name, {"rows": CASES}, sample, answer, page, picture, repetitions=500, quick=2)

if __name__ == "__main__":
    EXPERIMENT.main()
