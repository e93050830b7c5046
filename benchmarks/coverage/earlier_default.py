"""Which truths does the default read worse than before it had ranges of scores?

    python -m benchmarks.coverage.earlier_default [--repetitions 2]

The same samples are read by a smooth map alone whose slope turns it about the mean of the log-odds, as before, and by
the default now, with ranges. *Local*, *beta*, *imbalance*, *networks* and *dirichlet* are tracks of the known-truth
benchmark, on which both were developed, with other seeds. *Mixtures* (48 models trained on 300 rows, truths of 100,000
labelled rows) and *hostile* truths (those of [assumptions.md](../../benchmarks/coverage/assumptions.md) but the rule)
played no part. A cell is a truth and a size, of 1,000, 5,000 or 20,000 rows; errors are compared in pairs. 25 samples
are drawn side by side, and their means kept.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.benchmark.tracks import distributions
from calibrant.estimators import laplace, ranges
from calibrant.estimators.base import ErrorDraws
from calibrant.measure.posterior import credible
from calibrant.measure.question import Question

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, mean, table
from ..provenance import Kept
from .assumptions import MACHINES, TRUTHS
from .correction import Hostile, OfMixture

SIZES, DRAWS = (1000, 5000, 20_000), 800
NOTIONS = {
    "local": "class-specific",
    "beta": "class-specific",
    "imbalance": "class-specific",
    "networks": "confidence",
    "dirichlet": "confidence",
}
MODELS = ("logistic", "bayes", "svc", "forest")
GROUPS = (*NOTIONS, "mixtures", "hostile", "calibrated")
WHEN = ("before", "now")
#: Samples that are drawn side by side.
SIDE = 25


@cache
def truths() -> dict[str, tuple[Any, str]]:
    """Truths by name, with the notion they are read under."""
    found: list[tuple[Any, str]] = []
    for track, notion in NOTIONS.items():
        found += [(d, notion) for d in distributions(track) if notion in d.notions]
    found += [(OfMixture(seed, model), "confidence") for seed in range(12) for model in MODELS]
    found += [(Hostile(t), "confidence") for t in (*TRUTHS, *MACHINES) if not t.name.startswith("by a rule")]
    return {f"{d.track}: {d.name}": (d, notion) for d, notion in found}


def read(problem: Any, n: int, seed: int) -> np.ndarray:
    """Value and interval of every sample, (samples, 3)."""
    estimator = cal.EmpiricalBayes()
    sums = estimator.summarize(problem)
    values = np.atleast_1d(estimator.read(sums, 1))
    drawn = estimator._draws(sums, 1, DRAWS, np.random.default_rng(seed))
    question = Question("class-specific", 1.0, 0.95, (None,), (1.0,), "power", False, n, float(n))
    out = []
    for value, powers, odds in zip(values, drawn.powers, drawn.log_odds, strict=True):
        out.append([float(value), *credible(ErrorDraws(powers[None], odds[None], drawn.corrected), question).interval])
    return np.array(out)


def both(problem: Any, n: int, seed: int) -> dict[str, np.ndarray]:
    """What is read before and now."""
    shipped = ranges._ROWS, laplace._TURNED_AT_MEAN
    try:
        ranges._ROWS = laplace._TURNED_AT_MEAN = np.inf  # type: ignore[assignment]  # nothing is sought
        before = read(problem, n, seed)
    finally:
        ranges._ROWS, laplace._TURNED_AT_MEAN = shipped
    return {"before": before, "now": read(problem, n, seed)}


def compared(found: dict[str, np.ndarray], error: float, slack: float = 0.0) -> dict[str, float]:
    """Means over samples: sizes of errors and their squares, coverage and width, and the squares of differences."""
    out = {"error": error}
    off = {}
    for when, (value, low, high) in ((when, found[when].T) for when in WHEN):
        off[when] = np.abs(value - error)
        held = (low - slack <= error + 1e-9) & (error <= high + slack + 1e-9)
        numbers = {"size": off[when], "square": off[when] ** 2, "covered": held, "width": high - low}
        out |= {f"{when}: {name}": float(values.mean()) for name, values in numbers.items()}
    return out | {"difference, squared": float(((off["now"] - off["before"]) ** 2).mean())}


def sample(truth: str, rows: int, seed: int) -> dict[str, float]:
    """Of samples side by side."""
    d, notion = truths()[truth]
    rng = np.random.default_rng([seed, 41, [*truths()].index(truth), rows])
    (problem,) = d.problems(*d.sample(SIDE, rows, rng), notion)
    return compared(both(problem, rows, seed), max(float(d.truth(notion, 1).value), 0.0))


def answer(kept: Kept) -> str:
    every = [one for cells in _grouped(kept).values() for one in cells]
    wrong = [one for one in every if one["error"][0] >= 1e-9]
    better, worse = ([one for one in every if sign * change_of(one)[0] > 2 * change_of(one)[1]] for sign in (-1, 1))
    most = sorted(worse, key=ratio_of, reverse=True)[:3]
    told = [f"{one.columns['truth'][0]}, {float(one['rows'][0]):,.0f} rows, {ratio_of(one):.2f} times" for one in most]
    now, before = (
        mean(np.array([100 * one[f"{when}: covered"].mean() for one in wrong]), 1) for when in ("now", "before")
    )
    ratio = middle_of([ratio_of(one) for one in wrong])[0]
    return (
        f"Of {len(every)} cells the error grew in {len(worse)} and fell in {len(better)}, by more than two standard "
        f"errors; of those in which it grew, the RMSE did most for {'; '.join(told) or 'none'}. Where models are wrong "
        f"it is {ratio:.2f} times what it was in the geometric mean over cells, and 95 % intervals cover in {now} % of "
        f"samples, before in {before} %."
    )


def picture(kept: Kept) -> Figure:
    grouped = _grouped(kept)
    series = {
        f"{n:,} rows": [middle_of([ratio_of(one) for one in grouped[group, n]]) for group in GROUPS] for n in SIZES
    }
    return dots(GROUPS, series, "RMSE, as a ratio to that of before (geometric mean over truths)", 1.0)


def page(kept: Kept) -> Iterator[str]:
    yield "Geometric means over truths of the ratio of RMSE (of means, where models are calibrated) and of width, now"
    yield "to before, with a standard error over truths; intervals that cover, in per cent; cells in which the error"
    yield "fell (*better*) or grew (*worse*) by more than two standard errors, as 2 % do by chance."
    yield ""
    yield from table(("truths", "rows", "RMSE", "before", "covered", "width", "better", "worse"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for (group, n), cells in _grouped(kept).items():
        ratio, error = middle_of([ratio_of(one) for one in cells])
        before, now = (np.array([100 * one[f"{when}: covered"].mean() for one in cells]) for when in WHEN)
        width = middle_of([one["now: width"].mean() / one["before: width"].mean() for one in cells])[0]
        many = [sum(sign * change_of(one)[0] > 2 * change_of(one)[1] for one in cells) for sign in (-1, 1)]
        name = f"{group} ({len(cells)})"
        yield [
            name,
            f"{n:,}",
            f"{ratio:.2f} ± {error:.2f}",
            f"{before.mean():.1f}",
            mean(now, 1),
            f"{width:.2f}",
            *map(str, many),
        ]


def _grouped(kept: Kept) -> dict[tuple[str, int], list[Kept]]:
    """What is kept of each cell, by group and size."""
    out: dict[tuple[str, int], list[Kept]] = {(group, n): [] for group in GROUPS for n in SIZES}
    for truth in kept.distinct("truth"):
        some = kept.where(truth=truth)
        group = "calibrated" if some["error"][0] < 1e-9 else truth.partition(":")[0]
        for n in SIZES:
            out[group, n].append(some.where(rows=n))
    return out


def ratio_of(one: Kept) -> float:
    """Of the RMSE now to that before; of means, where the model is calibrated."""
    if one["error"][0] < 1e-9:
        return float(one["now: size"].mean() / one["before: size"].mean())
    return float(np.sqrt(one["now: square"].mean() / one["before: square"].mean()))


def change_of(one: Kept) -> tuple[float, float]:
    """Mean difference of errors, now less before, and its standard error."""
    n = SIDE * len(one)
    change = float(one["now: size"].mean() - one["before: size"].mean())
    return change, float(np.sqrt(max(one["difference, squared"].mean() - change**2, 0.0) / (n - 1)))


def middle_of(ratios: Sequence[float]) -> tuple[float, float]:
    """Geometric mean and its standard error over ratios."""
    middle, error = estimate(np.log(ratios))
    return float(np.exp(middle)), float(np.exp(middle)) * error


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": [*truths()], "rows": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=2,
    quick=1,
    at="docs/development/earlier_default.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()
