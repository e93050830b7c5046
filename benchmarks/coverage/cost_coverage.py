"""Do intervals of `expected_cost` cover the true costs, and does its test of stated costs keep its level?

    python -m benchmarks.coverage.cost_coverage [--repetitions 400]

There are two classes and three decisions. A false alarm costs 1, a miss 4, and asking 0.4. *Cost* is the mean cost of
deciding by the scores. *Gap* is this cost minus the stated one, *excess* this cost minus that of deciding by the true
map. The interval of the excess compares with a cross-fitted beta calibration, which is no better than the true map.
Scores and maps are those of `decision_coverage`.
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
from ..markdown import estimate, percent, share, table
from ..provenance import Kept
from .aims import shown, told
from .decision_coverage import GRID, LEVEL, MAPS, SIZES, rows

ALPHA = 0.05
COSTS = np.array([[0.0, 1.0, 0.4], [4.0, 0.0, 0.4]])
WHAT = ("cost", "gap", "excess")


@cache
def truth(name: str) -> dict[str, float]:
    """Costs a row: by the scores, minus what the scores say, and minus those by the true map."""
    right = MAPS[name](GRID)
    real, said = (np.column_stack([1 - q, q]) @ COSTS for q in (right, GRID))
    taken, every = said.argmin(axis=1), np.arange(GRID.size)
    cost = float(real[every, taken].mean())
    gap, excess = cost - float(said[every, taken].mean()), cost - float(real.min(axis=1).mean())
    return {"cost": cost, "gap": gap, "excess": excess}


def sample(name: str, n: int, seed: int) -> dict[str, float]:
    """Whether each interval covers the truth, how far its number is from it, and whether the gap is significant."""
    found = cal.expected_cost(*rows(name, n, seed), COSTS)
    out = {"rejected": float(found.gap_pvalue <= ALPHA)}
    for what, one in zip(WHAT, (found.realised, found.gap, found.excess), strict=True):
        true = truth(name)[what]
        out[f"{what}: covered"] = float(one.interval.low <= true <= one.interval.high)
        out[f"{what}: off"] = one.value - true
    return out


def answer(kept: Kept) -> str:
    cells = {
        f"{what}, {case['name']}, {case['n']:,} rows": percent(kept.where(**case)[f"{what}: covered"])
        for case in EXPERIMENT.every()
        for what in WHAT
    }
    overall = [f"{share(kept[f'{what}: covered'])} % ({what})" for what in WHAT]
    size = [f"{share(kept.where(name='calibrated', n=n)['rejected'])} % ({n:,} rows)" for n in SIZES]
    covering, rejecting = (
        f"{', '.join(parts[:-1])} and {parts[-1]}".replace(" (", " of samples (", 1) for parts in (overall, size)
    )
    return (
        f"95 % intervals cover the truth in {covering}. Coverage is below {LEVEL} % by more than two standard "
        f"errors in {told(cells, LEVEL)}. The test of the gap at {100 * ALPHA:g} % rejects calibrated models "
        f"in {rejecting}."
    )


def picture(kept: Kept) -> Figure:
    cases = [f"{case['name']}, {case['n']:,} rows" for case in EXPERIMENT.every()]
    parts = [kept.where(**case) for case in EXPERIMENT.every()]
    series = {what: [percent(some[f"{what}: covered"]) for some in parts] for what in WHAT}
    return dots(cases, series, "covered, % of samples", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    off = [f"{shown(estimate(kept.where(n=n)['excess: off']), 4)} with {n:,} rows" for n in (SIZES[0], SIZES[-1])]
    yield "The table gives coverage of cost, gap and excess, and how often the gap is significant at 5 %, in per cent."
    yield f"Averaged over maps, the estimated excess minus the true one is {' and '.join(off)}."
    yield ""
    yield from table(("map", "rows", *WHAT, "significant"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        shares = [f"{100 * some[what].mean():.1f}" for what in (*(f"{one}: covered" for one in WHAT), "rejected")]
        yield [case["name"], f"{case['n']:,}", *shares]


EXPERIMENT = Experiment(__spec__.name, {"name": MAPS, "n": SIZES}, sample, answer, page, picture, repetitions=400)

if __name__ == "__main__":
    EXPERIMENT.main()
