"""Do intervals of `decision_calibration_error` cover the true error and regret of a range of thresholds?

    python -m benchmarks.coverage.decision_coverage [--repetitions 400]

Scores are uniform. Outcomes follow maps of `calibrant.datasets.true_map`, and one that is calibrated only below 0.3.
Thresholds range from 0.05 to 0.25 (*low*) or from 0.4 to 0.6 (*mid*). Intervals have level 95 % and use 100 resamples.
Where the test of a range does not reject, the interval starts at 0, so it covers a true error of 0.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.datasets import true_map

from ..charts import dots
from ..experiment import Experiment
from ..markdown import mean, percent, share, table
from ..provenance import Kept
from .aims import told

LEVEL, SIZES = 95, (300, 1000, 5000)
REGIONS = {"low": (0.05, 0.25), "mid": (0.4, 0.6)}
GRID = (np.arange(20_000) + 0.5) / 20_000
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{kind: lambda s, kind=kind: true_map(s, kind) for kind in ("calibrated", "overconfident", "shifted", "wavy")},
    "right below 0.3": lambda s: np.where(s < 0.3, s, np.minimum(s**2 + 0.21, 1.0)),
}
COLUMNS = [f"{what}, {region}" for what in ("error", "regret") for region in REGIONS]
#: Where scores are right over the whole range.
RIGHT = [("calibrated", "low"), ("calibrated", "mid"), ("right below 0.3", "low")]


@cache
def truth(name: str, region: str) -> tuple[float, float]:
    """Error and regret: midpoints of scores, and of thresholds."""
    right, (start, end) = MAPS[name](GRID), REGIONS[region]
    inside = np.abs(GRID - (start + end) / 2) <= (end - start) / 2
    error = float(np.abs(right - GRID)[inside].mean())
    thresholds = start + (end - start) * (np.arange(400) + 0.5) / 400
    low, high = np.minimum(right, GRID), np.maximum(right, GRID)
    regret = [float((np.abs(right - c) * ((low < c) & (c < high))).mean()) for c in thresholds]
    return error, float(np.mean(regret))


def rows(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and scores."""
    rng = np.random.default_rng([seed, [*MAPS].index(name), n])
    p = rng.random(n)
    return (rng.random(n) < MAPS[name](p)).astype(int), p


def sample(name: str, n: int, seed: int) -> dict[str, float]:
    """Error and regret of both ranges, and whether their intervals cover the truth."""
    y, p = rows(name, n, seed)
    out: dict[str, float] = {}
    for region, ends in REGIONS.items():
        found = cal.decisions.decision_calibration_error(y, p, thresholds=ends, n_resamples=100, random_state=seed)
        values = (found.error, found.regret)
        intervals = (found.error_interval, found.regret_interval)
        for what, value, (low, high), true in zip(
            ("error", "regret"), values, intervals, truth(name, region), strict=True
        ):
            out |= {f"{what}, {region}": value, f"{what}, {region}: covered": float(low <= true <= high)}
    return out


def answer(kept: Kept) -> str:
    cells, right, wrong = {}, [], []
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        for column in COLUMNS:
            covered = some[f"{column}: covered"]
            cells[f"{column} thresholds, {case['name']}, {case['n']:,} rows"] = percent(covered)
        for region in REGIONS:
            (right if (case["name"], region) in RIGHT else wrong).append(some[f"error, {region}: covered"])
    zero = [
        mean(np.concatenate([kept.where(name=name, n=n)[f"error, {region}"] for name, region in RIGHT]))
        for n in (SIZES[0], SIZES[-1])
    ]
    return (
        f"{LEVEL} % intervals cover the true error in {share(np.concatenate(wrong))} % of samples where scores in the "
        f"range are miscalibrated, and in {share(np.concatenate(right))} % where they are calibrated. Coverage "
        f"is below {LEVEL} % by more than two standard errors in {told(cells, LEVEL)}. Where the true "
        f"error is 0, the mean estimate is {zero[0]} with {SIZES[0]} rows and {zero[1]} with {SIZES[-1]:,}."
    )


def picture(kept: Kept) -> Figure:
    cases = [f"{case['name']}, {case['n']:,} rows" for case in EXPERIMENT.every()]
    parts = [kept.where(**case) for case in EXPERIMENT.every()]
    series = {f"error, {region}": [percent(some[f"error, {region}: covered"]) for some in parts] for region in REGIONS}
    return dots(cases, series, "true error covered, % of samples", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage of the true error and regret in per cent, for low and mid thresholds."
    yield ""
    yield from table(("map", "rows", *COLUMNS), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        yield [
            case["name"],
            f"{case['n']:,}",
            *(f"{100 * some[f'{column}: covered'].mean():.1f}" for column in COLUMNS),
        ]


EXPERIMENT = Experiment(__spec__.name, {"name": MAPS, "n": SIZES}, sample, answer, page, picture, repetitions=400)

if __name__ == "__main__":
    EXPERIMENT.main()
