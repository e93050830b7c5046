"""Does `report(…, threshold=…).gain.changed_interval` cover the share of decisions that a repair changes?

    python -m benchmarks.coverage.changed_decisions [--repetitions 200]

Thresholds lie near the ends of the scores, where rows are few. The truth is the share of a million scores that cross
the threshold once probabilities are right. True log-odds of a score s are its own (*calibrated*), half of them (*slope
0.5*), or 0.7 log s - 1.2 log(1 - s) - 0.3 (*asymmetric*). The report gives no share where too few rows lie on one side
of the threshold. No choice in the library was made on these scores and maps.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept
from .aims import shown, told

LEVEL, SIZES = 95, (300, 1000)
SCORES = {"Beta(2, 1)": (2.0, 1.0), "Beta(5, 0.8)": (5.0, 0.8), "Beta(0.7, 6)": (0.7, 6.0)}
THRESHOLDS = {"Beta(2, 1)": (0.9, 0.98), "Beta(5, 0.8)": (0.9, 0.98), "Beta(0.7, 6)": (0.05, 0.3)}
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "slope 0.5": lambda s: expit(0.5 * logit(s)),
    "asymmetric": lambda s: expit(0.7 * np.log(s) - 1.2 * np.log1p(-s) - 0.3),
}
#: Columns of what is kept: the thresholds of the scores, in their order.
WHICH = ("first", "second")


def drawn(scores: str, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.beta(*SCORES[scores], n).clip(1e-9, 1 - 1e-9)


@cache
def truth(scores: str, name: str) -> tuple[float, ...]:
    """True shares at both thresholds."""
    pool = drawn(scores, 1_000_000, np.random.default_rng(99))
    right = MAPS[name](pool)
    return tuple(float(((pool >= t) != (right >= t)).mean()) for t in THRESHOLDS[scores])


def sample(scores: str, name: str, n: int, seed: int) -> dict[str, float]:
    """The share that the report gives for each threshold, NaN for none, and whether its interval covers the truth."""
    rng = np.random.default_rng([seed, [*SCORES].index(scores), [*MAPS].index(name), n])
    s = drawn(scores, n, rng)
    y = rng.random(n) < MAPS[name](s)
    out = {}
    for which, threshold, true in zip(WHICH, THRESHOLDS[scores], truth(scores, name), strict=True):
        gain = cal.report(y, s, labels=[False, True], threshold=threshold, random_state=seed).gain
        value, covered = float("nan"), float("nan")
        if gain.changed is not None:
            low, high = gain.changed_interval
            value, covered = float(gain.changed), float(low <= true <= high)
        out |= {which: value, f"{which}: covered": covered}
    return out


def _cells() -> Iterator[tuple[str, str, float, str, float]]:
    """Scores, map, threshold, its column, and the true share."""
    for scores, thresholds in THRESHOLDS.items():
        for name in MAPS:
            for which, threshold, true in zip(WHICH, thresholds, truth(scores, name), strict=True):
                yield scores, name, threshold, which, true


def answer(kept: Kept) -> str:
    cells = {
        f"{scores}, {name}, from {threshold:g}, {n:,} rows": percent(
            kept.where(scores=scores, name=name, n=n)[f"{which}: covered"]
        )
        for scores, name, threshold, which, _ in _cells()
        for n in SIZES
    }
    # Both thresholds are of the same rows: the standard error is that of their mean.
    covered = np.array([kept[f"{which}: covered"] for which in WHICH])
    given = ~np.isnan(covered)
    overall = np.nanmean(covered[:, given.any(axis=0)], axis=0)
    return (
        f"95 % intervals cover the true share in {shown(estimate(100 * overall))} % of reports that give a share "
        f"({shown(estimate(100 * given.mean(axis=0)))} % of all). Coverage is below {LEVEL} % by more than two "
        f"standard errors in {told(cells, LEVEL)}."
    )


def picture(kept: Kept) -> Figure:
    series = {
        f"{n:,} rows": [
            percent(kept.where(scores=scores, name=name, n=n)[f"{which}: covered"])
            for scores, name, _, which, _ in _cells()
        ]
        for n in SIZES
    }
    names = [f"{scores}, {name}, from {threshold:g}" for scores, name, threshold, *_ in _cells()]
    return dots(names, series, "covered, % of samples", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield f"The table lists cases with coverage below {LEVEL} %, with the true share, the mean share reported from"
    yield "300 rows, and coverage in per cent by number of rows."
    yield ""
    yield from table(("scores, map, from", "true", "reported", *(f"{n:,}" for n in SIZES)), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for scores, name, threshold, which, true in _cells():
        parts = [kept.where(scores=scores, name=name, n=n) for n in SIZES]
        covered = [percent(some[f"{which}: covered"])[0] for some in parts]
        if min(covered) < LEVEL:
            given = f"{np.nanmean(parts[0][which]):.3f}"
            yield [f"{scores}, {name}, {threshold:g}", f"{true:.3f}", given, *(f"{value:.1f}" for value in covered)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": SCORES, "name": MAPS, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
)

if __name__ == "__main__":
    EXPERIMENT.main()
