"""The default near 0 and 1 beside its rivals, by the score about which its slope turns the map.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.near_ends --store FILE [--repetitions 40] [--write FILE]

Under the prior an offset of all log odds is rare, since models are fitted to base rates; but near 0 and 1 what
elsewhere is a temperature is an offset, too. So the slope turns the map about the mean of the log odds, as if the base
rate were known, less and less so as rows become many: by min(1, c / n) of the mean, with c = 300. Held against it are c
= ∞, as the default was before, and c = 0, a temperature. c was chosen on other truths of these kinds and on the tracks.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import zlib
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.benchmark.tracks import distributions
from calibrant.estimators import laplace

from .. import arguments
from ..store import found_of
from .local_truths import NUMBERS, Map, Scores, beta

SIZES = (100, 300, 1000, 5000)


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
NETWORKS = "networks: "


TRIALS = {"shipped": laplace._TURNED_AT_MEAN, "about the mean": np.inf, "about ½": 0.0}


@cache
def networks() -> dict[str, Any]:
    return {NETWORKS + d.name: d for d in distributions("networks")}


@cache
def truth(name: str) -> float:
    if name in networks():
        d = networks()[name]
        return max(float(d.truth(d.notions[0], 1).value), 0.0)
    scores, right = TRUTHS[name]
    s = scores(np.random.default_rng(zlib.crc32(name.encode())), 4_000_000)
    return float(np.abs(right(s) - s).mean())


def found(name: str, n: int, repetitions: int) -> dict[str, list[float]]:
    """Numbers of the trials and the rivals, for samples side by side."""
    rng = np.random.default_rng([43, zlib.crc32(name.encode()), n])
    if name in networks():
        d = networks()[name]
        scores, outcomes = d.sample(repetitions, n, rng)
    else:
        draw, right = TRUTHS[name]
        d = distributions("imbalance")[0]
        scores = draw(rng, repetitions * n).reshape(repetitions, n)
        outcomes = (rng.random(scores.shape) < right(scores)).astype(float)
    (problem,) = d.problems(scores, outcomes, d.notions[0])

    def numbers(estimator: Any) -> list[float]:
        return [float(v) for v in np.atleast_1d(estimator.read(estimator.summarize(problem), 1))]

    out = {}
    try:
        for one, rows in TRIALS.items():
            laplace._TURNED_AT_MEAN = rows
            out[one] = numbers(cal.EmpiricalBayes())
    finally:
        laplace._TURNED_AT_MEAN = TRIALS["shipped"]
    return out | {name: numbers(estimator) for name, estimator in NUMBERS.items()}


def errors(name: str, known: dict[str, list[float]]) -> tuple[dict[str, float], str]:
    """RMSE of each number, and whose is the smallest of the rivals'."""
    rmse = {k: float(np.sqrt(np.mean((np.array(v) - truth(name)) ** 2))) for k, v in known.items()}
    return rmse, min(NUMBERS, key=rmse.__getitem__)


def row(name: str, n: int, known: dict[str, list[float]]) -> str:
    t, (rmse, best) = truth(name), errors(name, known)
    if t < 1e-9:
        return f"| {name} | {n:,} | 0 | {best} | " + " | ".join(f"- | {np.mean(known[k]):.4f}" for k in TRIALS) + " |"
    cells = (f"{rmse[k] / rmse[best]:.2f} | {100 * (np.mean(known[k]) / t - 1):+.0f} %" for k in TRIALS)
    return f"| {name} | {n:,} | {t:.4f} | {best} | " + " | ".join(cells) + " |"


def ratios(keys: list[tuple[Any, ...]], known: dict[tuple[Any, ...], dict[str, list[float]]]) -> str:
    """Geometric means, and the largest, of RMSE over the best rival's; of calibrated scores, over what is shipped."""
    each = []
    for key in keys:
        rmse, best = errors(key[0], known[key])
        each.append([rmse[k] / rmse[best if truth(key[0]) > 1e-9 else "shipped"] for k in TRIALS])
    means, largest = np.exp(np.mean(np.log(each), axis=0)), np.max(each, axis=0)
    return ", ".join(f"{k} {a:.2f} (at most {b:.2f})" for k, a, b in zip(TRIALS, means, largest, strict=True))


def main() -> None:
    options = arguments.parser(__doc__, repetitions=40, only="truths", write=True, store=True).parse_args()
    asked = [(name, n, options.repetitions) for name in TRUTHS if options.only in name for n in SIZES]
    asked += [(name, 100, options.repetitions) for name in networks() if options.only in name]
    known = found_of(options.store, asked, found)
    lines = [
        "# Near 0 and 1",
        "",
        f"Written by `python -m benchmarks.coverage.near_ends --repetitions {options.repetitions}`: RMSE over that of",
        "the best of six rivals, which is named (chosen in each row with the truth in hand), and the bias in units of",
        "the truth (the mean, where it is 0): of the default, whose slope turns the map of 300 rows and fewer about",
        "the mean of the log odds, and that of many about nearly 0; and where it always turns it about either.",
        "",
        "| truth | rows | error | best rival | shipped | bias | about the mean | bias | about ½ | bias |",
        "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|",
        *(row(name, n, known[name, n, k]) for name, n, k in asked if name in TRUTHS),
        "",
    ]
    wrong = [key for key in asked if truth(key[0]) > 1e-9 and key[0] in TRUTHS]
    for title, keys in (
        ("Wrong, from 1,000 rows on", [key for key in wrong if key[1] >= 1000]),
        ("Wrong, fewer rows", [key for key in wrong if key[1] < 1000]),
        ("Distributions fitted to networks, 100 rows", [key for key in asked if key[0] in networks()]),
    ):
        lines.append(f"- {title}, RMSE over the best rival's in the geometric mean: {ratios(keys, known)}.")
    calibrated = [key for key in asked if truth(key[0]) <= 1e-9 and key[0] in TRUTHS]
    lines.append(f"- Calibrated, RMSE over that of what is shipped: {ratios(calibrated, known)}.")
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
