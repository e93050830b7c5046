"""Do intervals cover the true error where outcomes are shares k / n of independent or correlated draws?

    python -m benchmarks.coverage.shares [--repetitions 400]

Rows have uniform scores and n draws each. A draw's chance is the score (scale 1), or has 0.6 times the score's
log-odds. Draws are independent, or each row has its own chance, from a beta distribution around that of its score, so
that draws of a row are correlated (ρ = 0.2). The truth is the mean distance of the chance given the score from the
score. *Weights* passes `sample_weight=n`, *groups* also `groups=range(len(y))`, and *unweighted* only the shares.
*Warned* are samples for which `estimate` says that draws of a row look dependent.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.exceptions import DependenceWarning

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

LEVEL, SCALES, CORRELATIONS = 0.95, (1.0, 0.6), (0.0, 0.2)
#: Rows, and the least and most draws of a row.
SIZES = {"100 × 1 to 20": (100, 1, 20), "400 × 1 to 20": (400, 1, 20), "60 × 50 to 150": (60, 50, 150)}
ARMS: dict[str, Any] = {
    "weights": lambda n: {"sample_weight": n},
    "groups": lambda n: {"sample_weight": n, "groups": np.arange(len(n))},
    "unweighted": lambda n: {},
}


@cache
def truth(scale: float) -> float:
    """Mean distance of the chance from the score."""
    s = (np.arange(1_000_000) + 0.5) / 1_000_000
    return float(np.abs(expit(scale * logit(s)) - s).mean())


def sample(scale: float, size: str, correlation: float, seed: int) -> dict[str, float]:
    """Which intervals cover, and their widths."""
    rows, low, high = SIZES[size]
    about = (SCALES.index(scale), [*SIZES].index(size), CORRELATIONS.index(correlation))
    rng = np.random.default_rng([seed, *about])
    s, n = rng.random(rows), rng.integers(low, high + 1, rows)
    chance = expit(scale * logit(s))
    if correlation:
        strength = 1 / correlation - 1
        chance = rng.beta(chance * strength, (1 - chance) * strength)
    y, out = rng.binomial(n, chance) / n, {}
    for arm, given in ARMS.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = cal.estimate(y, s, level=LEVEL, random_state=seed, **given(n)).interval
        out[arm] = float(found.low <= truth(scale) <= found.high)
        out[f"{arm}: width"] = found.high - found.low
        if arm == "weights":
            out["warned"] = float(any(w.category is DependenceWarning for w in said))
    return out


def answer(kept: Kept) -> str:
    alone, together = (kept.where(correlation=c) for c in CORRELATIONS)
    cases = {arm: [percent(kept.where(**case)[arm]) for case in EXPERIMENT.every()] for arm in ("weights", "groups")}
    below = {arm: sum(v + 2 * se < 100 * LEVEL for v, se in each) for arm, each in cases.items()}
    groups = np.median(alone["groups: width"] / alone["weights: width"])
    return (
        f"With independent draws, 95 % intervals cover the true error in {share(alone['weights'])} % of samples with "
        f"weights and in {share(alone['groups'])} % with groups. With correlated draws, they cover it in "
        f"{share(together['weights'])} and {share(together['groups'])} %. Coverage is below 95 % by more than two "
        f"standard errors in {below['weights']} and {below['groups']} of {len(cases['groups'])} cases. A warning "
        f"appears in {share(together['warned'])} % of samples of correlated draws and {share(alone['warned'])} % "
        f"of others. For independent draws, intervals with groups are {groups:.2f} times as wide (median) as with "
        "weights alone."
    )


def picture(kept: Kept) -> Figure:
    lines = {
        f"scale {case['scale']:g}, {case['size']} draws, ρ = {case['correlation']:g}": kept.where(**case)
        for case in EXPERIMENT.every()
    }
    series = {arm: [percent(part[arm]) for part in lines.values()] for arm in ARMS}
    return dots([*lines], series, "samples whose interval covers, %", 100 * LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of intervals that cover and of samples *warned*, by scale and rows × draws per"
    yield "row, first for independent, then for correlated draws."
    yield ""
    names = ("weights", "groups", "warned")
    yield from table(("scale", "rows", *names, *names), _rows(kept, names), texts=2)


def _rows(kept: Kept, names: tuple[str, ...]) -> Iterator[list[str]]:
    for scale in SCALES:
        for size in SIZES:
            parts = [kept.where(scale=scale, size=size, correlation=correlation) for correlation in CORRELATIONS]
            yield [f"{scale:g}", size, *(f"{100 * part[name].mean():.0f}" for part in parts for name in names)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scale": SCALES, "size": SIZES, "correlation": CORRELATIONS},
    sample,
    answer,
    page,
    picture,
    repetitions=400,
)

if __name__ == "__main__":
    EXPERIMENT.main()
