"""Does `confidence_direction` bound over- and underconfidence from below, and do its intervals cover?

    python -m benchmarks.coverage.direction [--repetitions 300]

`confidence_direction(y, p, estimator=CrossFit())` splits the calibration error into parts where scores are too high
(*over*) and too low (*under*). Its 95 % intervals are for the *own* parts: the sample's true gaps, split by the folds'
maps. Lower ends may exceed the full true part in 2.5 % of samples. Scores are flat or rare (Beta(0.5, 6)); maps are
those of [clinical](clinical.md).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept
from .aims import shown, told
from .clinical import MAPS, SCORES, grid, rows

LEVEL, ABOVE, SIZES = 95, 2.5, (100, 300, 1000)
PARTS = ("over", "under")
FIT = cal.estimators.CrossFit()


@cache
def truth(scores: str, name: str) -> tuple[float, float]:
    """Full parts of the calibration error."""
    gap = MAPS[name](grid(scores)) - grid(scores)
    return float(np.maximum(-gap, 0).mean()), float(np.maximum(gap, 0).mean())


def own(y: np.ndarray, s: np.ndarray, name: str) -> np.ndarray:
    """Parts of the maps of the folds at their own rows, where the true gap is known."""
    problem = cal.notions.ClassSpecific(True).reduce(cal.as_predictions(y, s, labels=[False, True]))
    out = np.zeros(2)
    for fold in FIT._folds(problem):
        gap = (MAPS[name](fold.scores) - fold.scores) * fold.weight
        out += [-gap[fold.delta < 0].sum(), gap[fold.delta > 0].sum()]
    return out / len(s)


def sample(scores: str, name: str, n: int, seed: int) -> dict[str, float]:
    """Of each part, by how much it exceeds the truth; whether its interval covers the own part and lies above truth."""
    y, s = rows(scores, name, n, seed)
    found = cal.significance.confidence_direction(y, s, labels=[False, True], estimator=FIT)
    out = {}
    for part, mine, full in zip(PARTS, own(y, s, name), truth(scores, name), strict=True):
        low, high = found.intervals[part]
        out[f"{part}: off"] = getattr(found, part) - full
        out |= {f"{part}: covered": float(low <= mine <= high), f"{part}: above": float(low > full)}
    return out


def _cells(kept: Kept, what: str) -> dict[str, tuple[float, float]]:
    return {
        f"{part}, {case['scores']}, {case['name']}, {case['n']:,} rows": percent(kept.where(**case)[f"{part}: {what}"])
        for case in EXPERIMENT.every()
        for part in PARTS
    }


def answer(kept: Kept) -> str:
    # Both parts are of the same rows: the standard error is that of their mean.
    covered, above = (
        shown(estimate(50 * (kept[f"over: {what}"] + kept[f"under: {what}"]))) for what in ("covered", "above")
    )
    off = [
        f"{shown(estimate(sum(kept.where(n=n)[f'{part}: off'] for part in PARTS) / 2), 4)} ({n:,} rows)" for n in SIZES
    ]
    return (
        f"Lower ends of intervals exceed the true part in {above} % of samples. That share is above {ABOVE} % by "
        f"more than two standard errors in {told(_cells(kept, 'above'), ABOVE, above=True)}. The mean estimate minus "
        f"the true part is {', '.join(off[:-1])} and {off[-1]}. Intervals cover the *own* part in {covered} % of "
        f"samples. Coverage is below {LEVEL} % by more than two standard errors in "
        f"{told(_cells(kept, 'covered'), LEVEL)}."
    )


def picture(kept: Kept) -> Figure:
    lines = [(scores, name, part) for scores in SCORES for name in MAPS for part in PARTS]
    series = {
        f"{n:,} rows": [
            percent(kept.where(scores=scores, name=name, n=n)[f"{part}: covered"]) for scores, name, part in lines
        ]
        for n in SIZES
    }
    return dots([", ".join(one) for one in lines], series, "own part covered, % of samples", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives, in per cent, coverage of the own part by number of rows, and how often lower ends exceed"
    yield "the true part (*above*)."
    yield ""
    yield from table(("scores, map", *("over, 100", "1,000", "above"), *("under, 100", "1,000", "above")), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for scores in SCORES:
        for name in MAPS:
            some = kept.where(scores=scores, name=name)
            cells = []
            for part in PARTS:
                cells += [some.where(n=n)[f"{part}: covered"].mean() for n in (SIZES[0], SIZES[-1])]
                cells.append(some[f"{part}: above"].mean())
            yield [f"{scores}, {name}", *(f"{100 * value:.1f}" for value in cells)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": SCORES, "name": MAPS, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=300,
)

if __name__ == "__main__":
    EXPERIMENT.main()
