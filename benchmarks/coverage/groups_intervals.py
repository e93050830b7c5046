"""Do intervals of grouped rows cover as often as those of independent rows that carry the same information?

    python -m benchmarks.coverage.groups_intervals [--repetitions 200]

The number of independent rows is n / d, where d is the true design effect of the mean residual: its variance over
samples divided by that of independent rows. Rows are those of `groups.md`, or have a group effect with sd 0.7. Scores
are distorted by a scale and shift of the logit z. The truth is their mean distance from the calibrated ones. Ways to
make intervals were compared on the cases with sd 0.7, and in first trials on the others, with other seeds. *Bins* are
ten of equal counts.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, table
from ..provenance import Kept
from .grouped_rows import CASES, Rows, clusters, distorted

REPORTED = ("40 events × 60", "60 clusters × 10", "20 hospitals × 50", "21 hospitals, 1 big")
#: On these ways to make intervals were compared, with other seeds.
CHOSEN_ON: dict[str, Callable[[np.random.Generator], Rows]] = {
    "60 clusters, sd 0.7": lambda rng: clusters(rng, np.full(60, 10), 0.7),
    "20 hospitals, sd 0.7": lambda rng: clusters(rng, np.full(20, 50), 0.7),
}
ROWS = {name: CASES[name] for name in REPORTED} | CHOSEN_ON
#: Logit scale and shift: of the cases reported, and of those on which ways were compared.
DISTORTIONS = {"1, 0": (1.0, 0.0), "1, 0.5": (1.0, 0.5), "1.5, 0": (1.5, 0.0)}
COMPARED = {"1, 0.3": (1.0, 0.3), "1, 0.7": (1.0, 0.7), "0.7, 0": (0.7, 0.0)}
EVERY = DISTORTIONS | COMPARED
ESTIMATORS = {"default": "auto", "density": cal.estimators.Density(), "bins": cal.Binned(10, "quantile")}
HOW = ("groups", "independent")
LEVEL = 95


def some(rows: str, distortion: str) -> bool:
    return distortion in (COMPARED if rows in CHOSEN_ON else DISTORTIONS)


@cache
def known(rows: str) -> tuple[np.ndarray, int]:
    """Calibrated scores of 400 samples, and the number of independent rows that say as much as a sample."""
    every = np.concatenate([ROWS[rows](np.random.default_rng([i, 12]))[1] for i in range(400)])
    others = [ROWS[rows](np.random.default_rng([i, 13])) for i in range(400)]
    residuals = np.array([(outcome - scores).mean() for _, scores, outcome in others])
    n = others[0][1].size
    effect = float((residuals**2).mean() * n / (every * (1 - every)).mean())
    return every, max(round(n / effect), 20)


def sample(rows: str, distortion: str, seed: int) -> dict[str, float]:
    """Whether intervals cover, and how wide they are."""
    rng = np.random.default_rng([seed, [*ROWS].index(rows), [*EVERY].index(distortion)])
    group, scores, outcome = ROWS[rows](rng)
    every, alone = known(rows)
    few = rng.choice(every, alone)
    by = EVERY[distortion]
    true = float(np.abs(distorted(every, *by) - every).mean())
    drawn = (group, scores, outcome), (None, few, rng.random(alone) < few)
    out: dict[str, float] = {"truth": true, "n": float(scores.size), "n / d": float(alone)}
    for how, (groups, s, y) in zip(HOW, drawn, strict=True):
        p = cal.as_predictions(y, distorted(s, *by), groups=groups, labels=[0, 1])
        for name, estimator in ESTIMATORS.items():
            low, high = cal.estimate(p, estimator=estimator).interval
            out[f"{name}, {how}: covers"] = float(low - 1e-12 <= true <= high + 1e-12)
            out[f"{name}, {how}: width"] = float(high - low)
    return out


def of_cases(kept: Kept, estimator: str, how: str) -> dict[str, tuple[float, float]]:
    """Coverage of each case in per cent, with its standard error."""
    return {
        f"{case['rows']}, {_told(case['distortion'])}": percent(kept.where(**case)[f"{estimator}, {how}: covers"])
        for case in EXPERIMENT.every()
    }


def _told(distortion: str) -> str:
    """Scale and shift of the logit in words."""
    scale, shift = distortion.split(", ")
    told = "z" if scale == "1" else f"{scale} z"
    return told if shift == "0" else f"{told} + {shift}"


def answer(kept: Kept) -> str:
    shares = {(name, how): of_cases(kept, name, how) for name in ESTIMATORS for how in HOW}
    average = [f"{_mean(shares[name, how]):.1f}" for how in HOW for name in ESTIMATORS]
    missed = [sum(v + 2 * error < LEVEL for v, error in shares[name, "groups"].values()) for name in ESTIMATORS]
    lowest = [_lowest(shares[name, "groups"]) for name in ESTIMATORS]
    return (
        f"95 % intervals of the default, the density and bins cover the truth in {_listed(average[:3])} % of samples "
        f"of grouped rows and in {_listed(average[3:])} % of samples of independent rows. With grouped rows, coverage "
        f"is below 95 % by more than two standard errors in {_listed(map(str, missed))} of {len(EXPERIMENT.every())} "
        f"cases. The lowest values are {_listed(lowest)}."
    )


def _listed(texts: Iterable[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} and {last}"


def _lowest(shares: dict[str, tuple[float, float]]) -> str:
    case, (value, error) = min(shares.items(), key=lambda one: one[1][0])
    return f"{value:.1f} ± {error:.1f} % ({case})"


def _mean(shares: dict[str, tuple[float, float]]) -> float:
    return float(np.mean([value for value, _ in shares.values()]))


def picture(kept: Kept) -> Figure:
    series = {f"default, {how}": [*of_cases(kept, "default", how).values()] for how in HOW}
    series["bins, groups"] = [*of_cases(kept, "bins", "groups").values()]
    return dots(
        [*of_cases(kept, "default", "groups")], series, "95 % intervals that cover the truth, %", LEVEL, share=True
    )


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent for grouped rows by three estimators, and for independent rows by the"
    yield "default, each at the distortion where it is lowest."
    yield ""
    yield from table(("rows", "default", "independent", "density", "bins"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for rows in ROWS:
        parts = [kept.where(rows=rows, distortion=distortion) for distortion in EVERY if some(rows, distortion)]
        names = ("default, groups", "default, independent", "density, groups", "bins, groups")
        lowest = (min(percent(part[f"{name}: covers"])[0] for part in parts) for name in names)
        yield [rows, *(f"{value:.1f}" for value in lowest)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"rows": ROWS, "distortion": EVERY},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
    quick=2,
    some=some,
)

if __name__ == "__main__":
    EXPERIMENT.main()
