"""Do intervals of rows with several labels cover the true error, where the labels' outcomes depend on each other?

    python -m benchmarks.coverage.several_labels [--repetitions 200]

Scores of a row's labels share half the variance of their log-odds (standard deviation 1.5, means from -2.5 to 0.5). A
label is present with the probability of its score (*calibrated*), or with one whose log-odds are 0.6 times as large,
for all labels or only the last. A row's outcomes depend on each other through a normal copula with correlation 0.5.
`estimate` uses `notions.Multilabel(average)`: labels count equally (*macro*), by how often they are present
(*weighted*), or entry by entry (*micro*). The truth is the mean distance of the probability from the score, by
quadrature. For micro, it is known where all labels have one map.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept
from .aims import told

LEVEL, SD, SHARED, COPULA = 95, 1.5, 0.5, 0.5
LABELS, ROWS = (3, 12), (300, 2000)
AVERAGES = ("macro", "weighted", "micro")
#: Factors of the log-odds of each label's probability.
MAPS: dict[str, Callable[[int], np.ndarray]] = {
    "calibrated": lambda labels: np.ones(labels),
    "all by 0.6": lambda labels: np.full(labels, 0.6),
    "last by 0.6": lambda labels: np.where(np.arange(labels) == labels - 1, 0.6, 1.0),
}


def means(labels: int) -> np.ndarray:
    """Mean log-odds of the labels."""
    return np.linspace(-2.5, 0.5, labels)


@cache
def truth(name: str, labels: int) -> dict[str, float]:
    """Mean distance of the probabilities from the scores, averaged in three ways."""
    scales = MAPS[name](labels)
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000) * SD + means(labels)[:, None]
    chance = expit(scales[:, None] * z)
    gaps, often = np.abs(chance - expit(z)).mean(axis=1), chance.mean(axis=1)
    found = {"macro": float(gaps.mean()), "weighted": float(np.average(gaps, weights=often))}
    return found | ({"micro": found["macro"]} if np.ptp(scales) == 0 else {})


def rows(name: str, labels: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores, (n, L)."""
    rng = np.random.default_rng([seed, [*MAPS].index(name), labels, n])

    def correlated(part: float) -> np.ndarray:
        return np.sqrt(part) * rng.normal(size=(n, 1)) + np.sqrt(1 - part) * rng.normal(size=(n, labels))

    p = expit(SD * correlated(SHARED) + means(labels))
    return (norm.cdf(correlated(COPULA)) < expit(MAPS[name](labels) * logit(p))).astype(int), p


def sample(name: str, labels: int, n: int, seed: int) -> dict[str, float]:
    """Whether the interval covers the truth, and how wide it is, for each average."""
    y, p = rows(name, labels, n, seed)
    out = {}
    for average, true in truth(name, labels).items():
        low, high = cal.estimate(y, p, notion=cal.notions.Multilabel(average), random_state=seed).interval
        out |= {f"{average}: covered": float(low <= true <= high), f"{average}: width": high - low}
    return out


def _cells(kept: Kept, average: str) -> dict[str, tuple[float, float]]:
    return {
        f"{average}, {case['name']}, {case['labels']} labels, {case['n']:,} rows": percent(
            kept.where(**case)[f"{average}: covered"]
        )
        for case in EXPERIMENT.every()
        if average in truth(case["name"], case["labels"])
    }


def answer(kept: Kept) -> str:
    overall = [f"{share(kept[f'{average}: covered'])} % ({average})" for average in AVERAGES]
    every = {name: pair for average in AVERAGES for name, pair in _cells(kept, average).items()}
    micro = ~np.isnan(kept["micro: width"])
    ratio = np.median(kept["macro: width"][micro] / kept["micro: width"][micro])
    return (
        f"{LEVEL} % intervals cover the true error in {', '.join(overall[:-1])} and {overall[-1]} of samples. Coverage "
        f"is below {LEVEL} % by more than two standard errors in {told(every, LEVEL)}. Macro intervals are {ratio:.1f} "
        "times as wide (median) as micro ones of the same rows."
    )


def picture(kept: Kept) -> Figure:
    every = EXPERIMENT.every()
    names = [f"{case['name']}, {case['labels']} labels, {case['n']:,} rows" for case in every]
    nothing = (float("nan"), float("nan"))
    series = {
        average: [_cells(kept, average).get(f"{average}, {name}", nothing) for name in names] for average in AVERAGES
    }
    return dots(names, series, "covered, % of samples", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent by labels and rows, and the median width with 3 labels and 300 rows."
    yield ""
    head = [f"{labels}, {n:,}" for labels in LABELS for n in ROWS]
    yield from table(("map, average", *head, "width"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name in MAPS:
        for average in truth(name, LABELS[0]):
            parts = [kept.where(name=name, labels=labels, n=n) for labels in LABELS for n in ROWS]
            cells = [f"{100 * some[f'{average}: covered'].mean():.1f}" for some in parts]
            yield [f"{name}, {average}", *cells, f"{np.median(parts[0][f'{average}: width']):.3f}"]


EXPERIMENT = Experiment(
    __spec__.name,
    {"name": MAPS, "labels": LABELS, "n": ROWS},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
)

if __name__ == "__main__":
    EXPERIMENT.main()
