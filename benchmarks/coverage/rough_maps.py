"""Do intervals of `estimate` cover the error of support vector machines, whose maps are rough?

    python -m benchmarks.coverage.rough_maps [--repetitions 100]

The machines are those among the first 24 distributions of `calibrant benchmark` in its order of work, as in
`coverage_tracks`. The true error is that of a pool of 500,000 rows. Maps of the machines' confidence and class
probabilities have gaps of -0.3 to 0.5 that change sign dozens of times. *Smooth* is the default.
`assume="variation:1"` assumes only that the map's variation is 1 or less. Both use the same rows. No library choice
was made on these machines.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.benchmark.config import Config, Distribution
from calibrant.benchmark.pool import NOTIONS, Pool, draw_pool, truth_of

from ..charts import dots
from ..experiment import Experiment
from ..markdown import mean, percent, table
from ..provenance import Kept

SIZES, WAYS, LEVEL = (1000, 5000), ("smooth", "variation:1"), 95
CONFIG = Config(pool=500_000, rows=500_000, sets=10)
#: Machines by classes and features; two of them have the same.
_FOUND = sorted(
    (d for d in CONFIG.shuffled[:24] if d.model == "svc"), key=lambda d: (d.classes, d.dimensions, d.mixture)
)
MACHINES: dict[str, Distribution] = {}
for _one in _FOUND:
    _name = f"{_one.classes} × {_one.dimensions}"
    MACHINES[_name + (" b" if _name in MACHINES else "")] = _one


@cache
def pool_of(machine: str) -> Pool:
    return draw_pool(CONFIG, MACHINES[machine])


def sample(machine: str, rows: int, seed: int) -> dict[str, float]:
    """Intervals of both notions, and the truths that they should cover."""
    pool = pool_of(machine)
    chosen = np.random.default_rng([seed, rows]).integers(len(pool.labels), size=rows)
    given = {"labels": range(MACHINES[machine].classes), "random_state": seed}
    out = {}
    for notion in NOTIONS:
        truth = truth_of(pool.truth, notion, 1.0).truth
        out[f"{notion}: truth"] = truth
        for way in WAYS:
            found = cal.estimate(pool.labels[chosen], pool.scores[chosen], assume=way, notion=notion, **given).interval
            out[f"{notion}, {way}: covered"] = float(found.low <= truth <= found.high)
            out[f"{notion}, {way}: width"] = found.high - found.low
    return out


def answer(kept: Kept) -> str:
    told = []
    for way in WAYS:
        every = {
            f"{machine}, {notion}": kept.where(machine=machine)[f"{notion}, {way}: covered"]
            for machine in MACHINES
            for notion in NOTIONS
        }
        over = mean(np.array([100 * values.mean() for values in every.values()]), 1)
        less = [f"{name}: {percent(values)[0]:.0f}" for name, values in every.items() if percent(values)[0] < LEVEL]
        told.append(f"{over} % of samples (below {LEVEL} % {'for ' + '; '.join(less) if less else 'in no case'})")
    ratios = [_wider(kept, machine, notion) for machine in MACHINES for notion in NOTIONS]
    return (
        f"Default {LEVEL} % intervals cover the error in {told[0]}. The standard error is over machines and notions. "
        f'Intervals of `assume="{WAYS[1]}"` cover it in {told[1]} and are {min(ratios):.1f} to {max(ratios):.1f} times '
        "as wide."
    )


def picture(kept: Kept) -> Figure:
    cases = {f"{machine}, {notion}": (machine, notion) for machine in MACHINES for notion in NOTIONS}
    series = {
        f"{way}, {n:,}": [
            percent(kept.where(machine=machine, rows=n)[f"{notion}, {way}: covered"])
            for machine, notion in cases.values()
        ]
        for way in WAYS
        for n in SIZES
    }
    return dots([*cases], series, "intervals that cover the error, %", float(LEVEL), share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of default intervals that cover the error, by rows. Machines are named by"
    yield "classes × features."
    yield ""
    head = ("machine", "notion", "error", "1,000", "5,000")
    yield from table(head, _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for machine in MACHINES:
        for notion in NOTIONS:
            parts = [kept.where(machine=machine, rows=n) for n in SIZES]
            covered = [percent(some[f"{notion}, {WAYS[0]}: covered"]) for some in parts]
            cells = [f"{p:.0f}" for p, _ in covered]
            error = f"{parts[0][f'{notion}: truth'][0]:.4f}"
            yield [machine, notion, error, *cells]


def _wider(kept: Kept, machine: str, notion: str) -> float:
    """Ratio of mean widths."""
    some = kept.where(machine=machine)
    free, smooth = (some[f"{notion}, {way}: width"].mean() for way in reversed(WAYS))
    return float(free / smooth)


EXPERIMENT = Experiment(__spec__.name, {"machine": [*MACHINES], "rows": SIZES}, sample, answer, page, picture, quick=1)

if __name__ == "__main__":
    EXPERIMENT.main()
