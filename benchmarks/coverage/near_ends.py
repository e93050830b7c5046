"""About which score should the slope of the default turn the map, judged near 0 and 1?

    python -m benchmarks.coverage.near_ends [--repetitions 10]

Under the prior an offset of all log-odds is rare, since models are fitted to base rates; but near 0 and 1 what
elsewhere is a temperature is an offset, too. So the slope of the default turns the map about the mean of the log-odds,
as if the base rate were known, less and less so as rows become many: by min(1, 300 / n) of the mean. Held against it
are a slope that always turns it about the mean and one that always turns it about ½, a temperature. The number 300 was
chosen on other truths of these kinds and on the tracks of the benchmark. Ten samples are computed side by side.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.benchmark.tracks import distributions
from calibrant.estimators import laplace

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept
from .local_truths import NUMBERS, Map, Scores, beside_best, beta, geometric, log_ratio

SIZES, FEW, SIDE = (100, 300, 1000, 5000), (100, 300), 10


def confident(rng: np.random.Generator, n: int) -> np.ndarray:
    return expit(7.5 + 1.5 * rng.standard_normal(n))


def slope(by: float) -> Map:
    return lambda s: expit(by * logit(np.clip(s, 1e-9, 1 - 1e-9)))


def times(by: float) -> Map:
    return lambda s: np.minimum(by * s, 1.0)


TRUTHS: dict[str, tuple[Scores, Map]] = {
    "98 % above .99, log odds × .6": (confident, slope(0.6)),
    "98 % above .99, log odds × .75": (confident, slope(0.75)),
    "1.7 % on average, three times too high": (beta(0.7, 40), times(1 / 3)),
    "½ % on average, half of what comes": (beta(0.6, 119), times(2.0)),
    "½ % on average, twice what comes": (beta(0.6, 119), times(0.5)),
    "Beta(2, 30), log odds × .8": (beta(2, 30), slope(0.8)),
    "Beta(2, 30), log odds × 1.25": (beta(2, 30), slope(1.25)),
    "98 % above .99, calibrated": (confident, times(1.0)),
    "½ % on average, calibrated": (beta(0.6, 119), times(1.0)),
    "Beta(2, 30), calibrated": (beta(2, 30), times(1.0)),
}
#: Distributions fitted to networks, in samples of 100.
NETWORKS = {f"network: {d.name}": d for d in distributions("networks")}
EVERY = [*TRUTHS, *NETWORKS]
#: Up to how many rows the slope turns the map about the mean of the log-odds.
TRIALS = {"default": laplace._TURNED_AT_MEAN, "about mean": np.inf, "about ½": 0.0}


@cache
def truth(name: str) -> float:
    """The true error; of scores from four million of them."""
    if name in NETWORKS:
        d = NETWORKS[name]
        return max(float(d.truth(d.notions[0], 1).value), 0.0)
    scores, right = TRUTHS[name]
    s = scores(np.random.default_rng(EVERY.index(name)), 4_000_000)
    return float(np.abs(right(s) - s).mean())


def sample(scores: str, n: int, seed: int) -> dict[str, float | list[float]]:
    """Errors of the trials and the rivals less the truth, of samples side by side."""
    rng = np.random.default_rng([seed, EVERY.index(scores), n, 1])
    if scores in NETWORKS:
        d = NETWORKS[scores]
        s, outcomes = d.sample(SIDE, n, rng)
    else:
        draw, right = TRUTHS[scores]
        d = distributions("imbalance")[0]
        s = draw(rng, SIDE * n).reshape(SIDE, n)
        outcomes = (rng.random(s.shape) < right(s)).astype(float)
    (problem,) = d.problems(s, outcomes, d.notions[0])

    def errors(estimator: Any) -> list[float]:
        values = np.atleast_1d(estimator.read(estimator.summarize(problem), 1))
        return [round(float(v) - truth(scores), 6) for v in values]

    out: dict[str, float | list[float]] = {"truth": round(truth(scores), 6)}
    try:
        for trial, rows in TRIALS.items():
            laplace._TURNED_AT_MEAN = rows
            out[trial] = errors(cal.EmpiricalBayes())
    finally:
        laplace._TURNED_AT_MEAN = TRIALS["default"]
    return out | {name: errors(estimator) for name, estimator in NUMBERS.items()}


def _ratio(parts: list[Kept], trial: str) -> tuple[float, float]:
    """RMSE over that of the best rival, of calibrated scores over the default's, in the geometric mean over cases."""
    return geometric(
        [
            beside_best(part, trial) if part["truth"].max() > 0 else log_ratio(part[trial], part["default"])
            for part in parts
        ]
    )


def _groups(kept: Kept) -> dict[str, list[Kept]]:
    """Cases by what they have in common."""
    wrong, fine = ([name for name in TRUTHS if ("calibrated" in name) == calm] for calm in (False, True))
    few, many = [[kept.where(scores=name, n=n) for name in wrong for n in sizes] for sizes in (FEW, SIZES[2:])]
    networks = [kept.where(scores=name, n=100) for name in NETWORKS]
    return {
        "few": few,
        "many": many,
        "networks": [part for part in networks if part["truth"].max() > 0],
        "calibrated": [kept.where(scores=name, n=n) for name in fine for n in SIZES],
    }


def answer(kept: Kept) -> str:
    groups = _groups(kept)
    found = {
        group: [f"{v:.2f} ± {e:.2f}" for v, e in (_ratio(parts, trial) for trial in TRIALS)]
        for group, parts in groups.items()
    }
    few, many, networks, calm = (found[group] for group in ("few", "many", "networks", "calibrated"))
    return (
        f"From 1,000 rows on the root mean square error (RMSE) of the default is {many[0]} times that of the best of "
        f"six rivals in the geometric mean; with a slope about the mean it is {many[1]} times, about ½ {many[2]}. "
        f"Up to 300 rows these are {few[0]}, {few[1]} and {few[2]}, and on distributions fitted to networks, in 100 "
        f"rows, {networks[0]}, {networks[1]} and {networks[2]}. Of calibrated scores, RMSE with a slope about the mean "
        f"is {calm[1]} times that of the default, and {calm[2]} times with one about ½."
    )


def _lines(kept: Kept) -> Iterator[tuple[str, str, list[Kept]]]:
    for name in TRUTHS:
        for words, sizes in (("≤ 300", FEW), ("≥ 1,000", SIZES[2:])):
            yield name.replace(" on average", ""), words, [kept.where(scores=name, n=n) for n in sizes]
    yield "networks", "100", _groups(kept)["networks"]


def picture(kept: Kept) -> Figure:
    lines = {f"{name}, {words} rows": parts for name, words, parts in _lines(kept)}
    lines = {name: parts for name, parts in lines.items() if "calibrated" not in name and "networks" not in name}
    series = {trial: [_bias(parts, trial) for parts in lines.values()] for trial in TRIALS}
    return dots([*lines], series, "mean value less the truth, % of the truth", 0.0)


def _bias(parts: list[Kept], trial: str) -> tuple[float, float]:
    each = np.array([estimate(100 * part[trial] / part["truth"]) for part in parts])
    return float(each[:, 0].mean()), float(np.sqrt((each[:, 1] ** 2).sum()) / len(each))


def page(kept: Kept) -> Iterator[str]:
    yield "RMSE over that of the best of six rivals (chosen for each truth and size with the truth in hand), of"
    yield "calibrated scores over that of the default; geometric means over sizes. The picture shows the bias."
    yield ""
    yield from table(("scores", "rows", *TRIALS), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name, words, parts in _lines(kept):
        yield [name, words, *(f"{v:.2f} ± {e:.2f}" for v, e in (_ratio(parts, trial) for trial in TRIALS))]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": EVERY, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=10,
    quick=2,
    some=lambda scores, n: scores in TRUTHS or n == SIZES[0],
    at="docs/development/near_ends.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()
