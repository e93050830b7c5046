"""Comparisons and costs of rows in few groups: do their intervals cover?

    python -m benchmarks.coverage.groups_comparisons --store FILE [--repetitions 500] [--only TEXT] [--write FILE]

Every sample is a line of the store: a run that was stopped goes on. Two models see a normal feature each, one states
its calibrated probability and the other a too sharp one. Rows of a group share half of the variance of both features
and 60 % of that of the outcome's latent normal, so that outcomes of a group hang together beside what scores say.
Groups have 20 rows each; or a lognormal number (sd of the log 0.8, mean 20); or one of them has half of all rows.

Truths of models and costs are integrals over the feature. That of a calibrator's gain is the mean, over folds, of what
each fold's fit gains on 100,000 other rows.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

import calibrant as cal
from calibrant.calibrators.crossval import fold_fits, folds_of, losses_of
from calibrant.calibrators.select import as_sample

from .. import arguments
from ..store import found_of, share
from .model_comparison_coverage import DENSITY, GRID, MEASURES, same, seen, sharper, true_measures

SIZES, GROUPS, ROWS = ("equal", "lognormal", "one has half"), (10, 30, 100), 20
#: Weight of either feature, how much too sharp the second model is, and costs of a false positive and negative.
WEIGHT, SHARP, FP, FN = 1.2, 1.6, 1.0, 4.0
POOL, CALIBRATOR, SHARED = 100_000, "platt", 0.6
COSTS = {"realised": "cost", "stated": "stated cost", "gap": "gap", "half_excess": "against acting at ½"}


def drawn(sizes: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Labels, the probabilities of both models, and groups of rows."""
    group = np.repeat(np.arange(sizes.size), sizes)
    common = rng.standard_normal((3, sizes.size))[:, group]
    x = np.sqrt(0.5) * (common[:2] + rng.standard_normal((2, group.size)))
    u = ndtr(np.sqrt(SHARED) * common[2] + np.sqrt(1 - SHARED) * rng.standard_normal(group.size))
    first, second = (np.interp(each, GRID, calibrated()) for each in x)
    return (u < expit(WEIGHT * x.sum(axis=0))).astype(int), first, sharper(SHARP)(second), group


@cache
def calibrated() -> np.ndarray:
    """Calibrated probability at each feature of the grid."""
    return seen(GRID, WEIGHT, WEIGHT)


@cache
def truths() -> dict[str, float]:
    """Differences of the models' measures, and costs of the second."""
    one, other = (true_measures(WEIGHT, WEIGHT, stated) for stated in (same, sharper(SHARP)))
    p = calibrated()
    s = sharper(SHARP)(p)

    def cost(acts: np.ndarray, q: np.ndarray) -> float:
        return float(DENSITY @ np.where(acts, FP * (1 - q), FN * q))

    at = s >= FP / (FP + FN)
    costs = {"realised": cost(at, p), "stated": cost(at, s), "half_excess": cost(s >= 0.5, p) - cost(at, p)}
    return {m: one[m] - other[m] for m in MEASURES} | costs | {"gap": costs["realised"] - costs["stated"]}


@cache
def pool() -> tuple[np.ndarray, np.ndarray]:
    """Labels and the second model's probabilities of independent rows."""
    y, _, p, _ = drawn(np.ones(POOL, dtype=int), np.random.default_rng(99))
    return y, p


def true_gain(y: np.ndarray, p: np.ndarray, group: np.ndarray) -> float:
    """What the fits of the folds gain in log-loss on other rows."""
    sample = as_sample(p, y, None, "probability", None, group)
    folds = folds_of(sample.codes, 5, 0, sample.groups)
    fits, _ = fold_fits(cal.calibrators.PlattScaling(), (sample.part(train) for train, _ in folds))
    labels, scores = pool()
    before = losses_of(np.stack([1 - scores, scores], axis=1), labels, "log-loss").mean()
    gains = [before - losses_of(fit.predict_proba(scores), labels, "log-loss").mean() for fit in fits]
    return float(np.average(gains, weights=[len(test) for _, test in folds]))


def found(kind: str, number: int, repetition: int) -> dict[str, Any]:
    """Which intervals cover."""
    rng = np.random.default_rng([61, SIZES.index(kind), number, repetition])
    sizes = np.full(number, ROWS)
    if kind == "lognormal":
        sizes = np.maximum(np.round(ROWS * np.exp(0.8 * rng.standard_normal(number) - 0.32)), 1).astype(int)
    elif kind == "one has half":
        sizes[0] = ROWS * (number - 1)
    y, first, second, group = drawn(sizes, rng)
    compared = cal.compare_models(y, {"first": first, "second": second}, groups=group, n_resamples=200)
    costs = cal.expected_cost(y, second, {"fp": FP, "fn": FN}, groups=group, calibrator=None)
    gain = cal.compare_calibrators(y, second, groups=group, candidates=["identity", CALIBRATOR]).row(CALIBRATOR)
    intervals = {m: compared.difference(m, "first", "second").interval for m in MEASURES}
    intervals |= {name: getattr(costs, name).interval for name in COSTS}
    covered = {name: bool(low <= truths()[name] <= high) for name, (low, high) in intervals.items()}
    low, high = gain.gain_interval
    return covered | {"gain": bool(low <= true_gain(y, second, group) <= high)}


def page(every: dict[tuple[Any, ...], dict[str, Any]]) -> Iterator[str]:
    """The page, as lines."""
    yield "# Comparisons and costs of rows in few groups\n"
    yield "Written by `python -m benchmarks.coverage.groups_comparisons`, which says how samples are drawn: the share"
    yield "of 95 % intervals that cover the truth, in % with its standard error. Standard errors are those of groups,"
    yield "and intervals Student's with Kish's number of groups, less one, as degrees of freedom.\n"
    names = {"compare_models": MEASURES, "expected_cost": COSTS, "compare_calibrators": {"gain": "gain in log-loss"}}
    for function, measures in names.items():
        yield f"\n## `{function}`\n"
        if function == "compare_calibrators":
            yield "Of the gain of Platt scaling; degrees of freedom are those of a heavy-tailed mean's variance.\n"
        yield f"| sizes | groups | samples | {' | '.join(measures.values())} |"
        yield "|---|---:|---:|" + "---:|" * len(measures)
        for kind in SIZES:
            for number in GROUPS:
                some = [one for key, one in every.items() if key[:2] == (kind, number)]
                if some:
                    cells = " | ".join(share([one[m] for one in some]) for m in measures)
                    yield f"| {kind} | {number} | {len(some):,} | {cells} |"


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=500, only="sizes", write=True, store=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
    asked = [
        (kind, number, repetition)
        for repetition in range(options.repetitions)
        for kind in SIZES
        for number in GROUPS
        if options.only in kind
    ]
    arguments.finish(options, page(found_of(options.store, asked, found)))


if __name__ == "__main__":
    main()
