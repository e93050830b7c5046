"""Do intervals of `decompose` cover the true parts of the Brier score?

    python -m benchmarks.coverage.decomposition_coverage [--repetitions 400]

Scores s are uniform. Outcomes have probability s to a power; power 1 is calibrated.
`decompose(y, p, estimator=…, n_resamples=300)` uses `"corp"` (isotonic) and `"binned"` on the same samples. Intervals
have level 95 %. True parts are integrals of powers.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept
from .aims import shown, told

LEVEL, RESAMPLES = 95, 300
METHODS, POWERS, SIZES = ("corp", "binned"), (1.0, 1.5, 3.0), (200, 1000)
PARTS = ("total", "calibration", "refinement", "discrimination", "uncertainty")


def truth(power: float) -> dict[str, float]:
    calibration = 1 / (2 * power + 1) - 2 / (power + 2) + 1 / 3
    refinement = 1 / (power + 1) - 1 / (2 * power + 1)
    base = 1 / (power + 1)
    uncertainty = base * (1 - base)
    return {
        "total": calibration + refinement,
        "calibration": calibration,
        "refinement": refinement,
        "discrimination": uncertainty - refinement,
        "uncertainty": uncertainty,
    }


def sample(power: float, n: int, seed: int) -> dict[str, float]:
    """Of each method and part, whether the interval covers the truth, and by how much the estimate is off."""
    rng = np.random.default_rng([seed, POWERS.index(power), n])
    p = rng.random(n)
    y = rng.random(n) < p**power
    out = {}
    for method in METHODS:
        found = cal.decompose(y, p, estimator=method, n_resamples=RESAMPLES, random_state=seed)
        for part, true in truth(power).items():
            low, high = found.intervals[part]
            out |= {f"{method}, {part}: covered": float(low <= true <= high)}
            out[f"{method}, {part}: off"] = getattr(found, part) - true
    return out


def answer(kept: Kept) -> str:
    cells, off = {}, {}
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        for method in METHODS:
            for part in PARTS:
                name = f"{part} ({method}), power {case['power']:g}, {case['n']:,} rows"
                cells[name] = percent(some[f"{method}, {part}: covered"])
                off[name] = estimate(some[f"{method}, {part}: off"])
    # A sample's parts depend on each other: the standard error is that of their mean.
    together = (100 * np.mean([kept[f"{method}, {part}: covered"] for part in PARTS], axis=0) for method in METHODS)
    overall = (f"{shown(estimate(one))} % (`{method}`)" for method, one in zip(METHODS, together, strict=True))
    farthest = max(off, key=lambda name: abs(off[name][0]))
    return (
        f"Over all parts, intervals cover the truth in {' and '.join(overall)} of samples. Coverage is below "
        f"{LEVEL} % by more than two standard errors in {told(cells, LEVEL)}. The mean error of an estimate is largest "
        f"for {farthest} ({shown(off[farthest], 4)})."
    )


def picture(kept: Kept) -> Figure:
    cases = [(part, power) for part in PARTS for power in POWERS]
    series = {
        f"{method}, {n:,} rows": [percent(kept.where(power=p, n=n)[f"{method}, {part}: covered"]) for part, p in cases]
        for method in METHODS
        for n in SIZES
    }
    return dots(
        [f"{part}, power {power:g}" for part, power in cases], series, "covered, % of samples", LEVEL, share=True
    )


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage of each true part in per cent, with 200 and 1,000 rows."
    yield ""
    head = [f"{method}, {n:,}" for method in METHODS for n in SIZES]
    yield from table(("part", "power", *head), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for part in PARTS:
        for power in POWERS:
            cells = [kept.where(power=power, n=n)[f"{m}, {part}: covered"] for m in METHODS for n in SIZES]
            yield [part, f"{power:g}", *(f"{100 * values.mean():.1f}" for values in cells)]


EXPERIMENT = Experiment(
    __spec__.name, {"power": POWERS, "n": SIZES}, sample, answer, page, picture, repetitions=400, quick=2
)

if __name__ == "__main__":
    EXPERIMENT.main()
