"""Does `SubgroupCalibrator` cost less than one map for all subgroups, or one for each alone?

    python -m benchmarks.coverage.subgroup_maps [--repetitions 200]

Scores are Beta(0.8, 0.7) distributed (three classes: softmaxes of normal logits). A score with log-odds z has true
log-odds 0.7 exp(A) z + B in its subgroup. A and B are normal, with a case's standard deviations (slopes, then shifts).
The alternatives are `PlattScaling()` (three classes: `TemperatureScaling()`), fitted to all rows or to each subgroup
alone. A cost is the expected log-loss on new rows minus that of the truth: a mean Kullback-Leibler divergence over
fixed scores, weighted by subgroup size.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import softmax, xlogy
from scipy.stats import beta

from calibrant import calibrators as c

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept

SUBGROUPS = {
    "2 × 500": [500] * 2,
    "5 × 100": [100] * 5,
    "20 × 50": [50] * 20,
    "60 × 5": [5] * 60,
    "2000, 20 × 30": [2000] + [30] * 20,
}
#: Standard deviations of slopes and shifts.
SPREADS = {"0, 0": (0.0, 0.0), "0, 0.2": (0.0, 0.2), "0.2, 0.5": (0.2, 0.5), "0.4, 1": (0.4, 1.0)}
NONE = "0, 0"
CLASSES = {2: "two classes", 3: "three classes"}
MAPS = ("common", "alone", "SubgroupCalibrator")
LEAST = 1e-4


def sample(classes: int, subgroups: str, spread: str, seed: int) -> dict[str, float]:
    """What each map costs, in thousandths."""
    k, sizes = classes, SUBGROUPS[subgroups]
    rng = np.random.default_rng([seed, k, [*SUBGROUPS].index(subgroups), [*SPREADS].index(spread)])
    n_subgroups = len(sizes)
    of_slopes, of_shifts = SPREADS[spread]
    slopes = 0.7 * np.exp(rng.normal(0, of_slopes, n_subgroups))
    shifts = rng.normal(0, of_shifts, (n_subgroups, k)) * np.array([0, 1] if k == 2 else [1] * k)
    by = np.repeat(np.arange(n_subgroups), sizes)
    z, at = _logits(rng, k, len(by)), _logits(None, k, 400)
    true = softmax(z * slopes[by, None] + shifts[by], axis=1)
    y = (rng.random((len(z), 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    p, new = softmax(z, axis=1), softmax(at, axis=1)
    truth = softmax(at * slopes[:, None, None] + shifts[:, None], axis=2)
    one = (c.PlattScaling if k == 2 else c.TemperatureScaling)(labels=list(range(k)))
    common = np.repeat(one.fit(p, y).predict_proba(new)[None], n_subgroups, axis=0)
    alone = np.stack([one.fit(p[by == g], y[by == g]).predict_proba(new) for g in range(n_subgroups)])
    shrunk = c.SubgroupCalibrator(labels=list(range(k))).fit(p, y, by=by)
    ours = np.stack([shrunk.predict_proba(new, by=np.full(len(new), g)) for g in range(n_subgroups)])
    costs = (float(np.average(_divergence(truth, q), weights=sizes)) for q in (common, alone, ours))
    return {name: 1000 * cost for name, cost in zip(MAPS, costs, strict=True)}


def _logits(rng: np.random.Generator | None, k: int, n: int) -> np.ndarray:
    """Drawn logits, or fixed ones."""
    if k > 2:
        return (np.random.default_rng(0) if rng is None else rng).normal(0, 1.5, (n, k))
    s = beta.ppf((np.arange(n) + 0.5) / n, 0.8, 0.7) if rng is None else rng.beta(0.8, 0.7, n)
    s = s.clip(1e-9, 1 - 1e-9)
    return np.log(np.column_stack([1 - s, s]))


def _divergence(truth: np.ndarray, q: np.ndarray) -> np.ndarray:
    q = np.maximum(q, LEAST)
    q = q / q.sum(axis=2, keepdims=True)
    return np.asarray((xlogy(truth, truth) - xlogy(truth, q)).sum(axis=2).mean(axis=1))


def beyond(part: Kept) -> np.ndarray:
    """What the subgroups' calibrator costs beyond the map that is the better one on average."""
    return part[MAPS[2]] - min((part[name] for name in MAPS[:2]), key=np.mean)


def answer(kept: Kept) -> str:
    out = []
    for k, name in CLASSES.items():
        parts = {
            (subgroups, spread): estimate(beyond(kept.where(classes=k, subgroups=subgroups, spread=spread)))
            for subgroups in SUBGROUPS
            for spread in SPREADS
        }
        alike = [value for (_, spread), (value, _) in parts.items() if spread == NONE]
        others = {case: pair for case, pair in parts.items() if case[1] != NONE}
        less = sum(value + 2 * error < 0 for value, error in others.values())
        more = sum(value - 2 * error > 0 for value, error in others.values())
        (subgroups, spread), (most, error) = max(others.items(), key=lambda one: one[1][0])
        out.append(
            f"With {name}, `SubgroupCalibrator` costs {min(alike):.2f} to {max(alike):.2f} thousandths of log-loss "
            f"more than the better alternative where subgroups do not differ. Where they differ, it costs less in "
            f"{less} of {len(others)} cases and more in {more}, by more than two standard errors, and {most:.2f} ± "
            f"{error:.2f} more in the worst case ({subgroups}; {spread})."
        )
    return " ".join(out)


def picture(kept: Kept) -> Figure:
    cases = [(subgroups, spread) for subgroups in SUBGROUPS for spread in SPREADS]
    series = {
        name: [estimate(kept.where(classes=2, subgroups=one, spread=spread)[name]) for one, spread in cases]
        for name in MAPS
    }
    axis = "log-loss above that of the truth, thousandths, two classes"
    return dots([f"{subgroups}; {spread}" for subgroups, spread in cases], series, axis, log=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives `SubgroupCalibrator`'s cost minus that of the better alternative, in thousandths of"
    yield "log-loss, by the standard deviations of slopes and shifts. The picture is for two classes."
    yield ""
    yield from table(("classes, subgroups × rows", *SPREADS), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for k in CLASSES:
        for subgroups in SUBGROUPS:
            some = (kept.where(classes=k, subgroups=subgroups, spread=spread) for spread in SPREADS)
            yield [f"{k}, {subgroups}", *(f"{beyond(one).mean():.2f}" for one in some)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"classes": CLASSES, "subgroups": SUBGROUPS, "spread": SPREADS},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
)

if __name__ == "__main__":
    EXPERIMENT.main()
