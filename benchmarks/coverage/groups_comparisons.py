"""Do intervals of comparisons and costs cover the truth with few groups?

    python -m benchmarks.coverage.groups_comparisons [--repetitions 200]

Two models each see one normal feature. One states its calibrated probability; the other states one that is too sharp.
Rows of a group share half the variance of both features and 60 % of that of the outcome's latent normal. Groups have 20
rows each, or a lognormal number (log sd 0.8, mean 20), or one of them has half of all rows.

Truths of models and costs are integrals over the feature. The true gain of Platt scaling is the mean gain of the folds'
fits on 100,000 other rows. Intervals are Student's. Degrees of freedom are Kish's number of groups minus one, and for
the gain those of a heavy-tailed mean's variance.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, ndtr

import calibrant as cal
from calibrant.calibrators.crossval import fold_fits, folds_of, losses_of
from calibrant.calibrators.select import as_sample

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, table
from ..provenance import Kept
from .model_comparison_coverage import DENSITY, GRID, MEASURES, same, seen, sharper, true_measures

SIZES, GROUPS, ROWS = ("equal", "lognormal", "one has half"), (10, 30, 100), 20
#: Weight of either feature, how much too sharp the second model is, and costs of a false positive and negative.
WEIGHT, SHARP, FP, FN = 1.2, 1.6, 1.0, 4.0
POOL, CALIBRATOR, SHARED = 100_000, "platt", 0.6
COSTS = {"realised": "cost", "stated": "stated cost", "gap": "gap", "half_excess": "against acting at ½"}
FUNCTIONS = (MEASURES, COSTS, {"gain": "gain in log-loss"})
EVERY = {m: name for each in FUNCTIONS for m, name in each.items()}
LEVEL = 95


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
    sample = as_sample(p, y, None, "probability", None, groups=group)
    folds = folds_of(sample.codes, 5, 0, sample.groups)
    fits, _ = fold_fits(cal.calibrators.PlattScaling(), (sample.part(train) for train, _ in folds))
    labels, scores = pool()
    before = losses_of(np.stack([1 - scores, scores], axis=1), labels, "log-loss").mean()
    gains = [before - losses_of(fit.predict_proba(scores), labels, "log-loss").mean() for fit in fits]
    return float(np.average(gains, weights=[len(test) for _, test in folds]))


def sample(sizes: str, groups: int, seed: int) -> dict[str, float]:
    """Which intervals cover."""
    rng = np.random.default_rng([seed, SIZES.index(sizes), groups])
    rows = np.full(groups, ROWS)
    if sizes == "lognormal":
        rows = np.maximum(np.round(ROWS * np.exp(0.8 * rng.standard_normal(groups) - 0.32)), 1).astype(int)
    elif sizes == "one has half":
        rows[0] = ROWS * (groups - 1)
    y, first, second, group = drawn(rows, rng)
    compared = cal.compare_models(y, {"first": first, "second": second}, groups=group, n_resamples=200)
    costs = cal.expected_cost(y, second, {"fp": FP, "fn": FN}, groups=group, calibrator=None)
    gain = cal.compare_calibrators(y, second, groups=group, candidates=["identity", CALIBRATOR]).row(CALIBRATOR)
    intervals = {m: compared.difference(m, "first", "second").interval for m in MEASURES}
    intervals |= {name: getattr(costs, name).interval for name in COSTS}
    covered = {name: float(low <= truths()[name] <= high) for name, (low, high) in intervals.items()}
    low, high = gain.gain_interval
    return covered | {"gain": float(low <= true_gain(y, second, group) <= high)}


def answer(kept: Kept) -> str:
    cases = EXPERIMENT.every()
    shares = {(m, *case.values()): percent(kept.where(**case)[m]) for m in EVERY for case in cases}
    by = {
        number: [np.mean([shares[key][0] for key in shares if key[0] in of and key[2] == number]) for of in FUNCTIONS]
        for number in GROUPS
    }
    means = ["{:.1f}, {:.1f} and {:.1f}".format(*(by[number][i] for number in GROUPS)) for i in range(len(FUNCTIONS))]
    missed = [key[0] for key, (value, error) in shares.items() if value + 2 * error < LEVEL]
    counted = "; ".join(f"{EVERY[m]}: {missed.count(m)}" for m in dict.fromkeys(missed)) or "none"
    (m, sizes, number), (value, error) = min(shares.items(), key=lambda one: one[1][0])
    return (
        f"With 10, 30 and 100 groups, 95 % intervals cover the truth on average in {means[0]} % of samples "
        f"(`compare_models`), {means[1]} % (`expected_cost`) and {means[2]} % (`compare_calibrators`). Coverage is "
        f"below 95 % by more than two standard errors in {len(missed)} of {len(shares)} cases ({counted}). The lowest "
        f"is {value:.1f} ± {error:.1f} % ({EVERY[m]}, {number} groups, {sizes})."
    )


def picture(kept: Kept) -> Figure:
    series = {f"{number} groups": [percent(kept.where(groups=number)[m]) for m in EVERY] for number in GROUPS}
    return dots([*EVERY.values()], series, "95 % intervals that cover the truth, %", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent by group sizes, over all numbers of groups, and the lowest of nine"
    yield "cases."
    yield ""
    yield from table(("measure", *SIZES, "lowest"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for m, name in EVERY.items():
        lowest = min((kept.where(**case)[m] for case in EXPERIMENT.every()), key=np.mean)
        yield [
            name,
            *(f"{100 * kept.where(sizes=sizes)[m].mean():.1f}" for sizes in SIZES),
            f"{100 * lowest.mean():.1f}",
        ]


EXPERIMENT = Experiment(
    __spec__.name,
    {"sizes": SIZES, "groups": GROUPS},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
)

if __name__ == "__main__":
    EXPERIMENT.main()
