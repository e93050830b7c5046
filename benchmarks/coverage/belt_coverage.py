"""Does a calibration belt cover the whole true curve, and does its test keep its level?

    python -m benchmarks.coverage.belt_coverage [--repetitions 400]

Logits z of scores are normal with mean -1 and standard deviation 1.5 (*normal*), or scores are uniform. The logit of
the truth is z (*calibrated*), 0.3 + 0.7 z (*line*) or 0.2 + 0.9 z - 0.15 z² (*parabola*). The *wave* is not a
polynomial of degree 4, the highest that a belt fits. A belt covers a curve if it does so at each of 41 scores from the
sample's smallest to its largest.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.datasets import true_map

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept
from .aims import told

SIZES, LEVELS, ALPHA = (100, 300, 1000, 5000), (80, 95), 5
SCORES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: expit(-1 + 1.5 * rng.standard_normal(n)),
    "uniform": lambda rng, n: rng.random(n),
}
TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "line": lambda s: expit(0.3 + 0.7 * logit(s)),
    "parabola": lambda s: expit(0.2 + 0.9 * logit(s) - 0.15 * logit(s) ** 2),
    "wave": lambda s: true_map(s, "wavy"),
}
NAMES = ("rejected", "covered 80", "covered 95", "left 95", "degree")


def sample(scores: str, truth: str, n: int, seed: int) -> dict[str, float]:
    """Whether the test rejects, belts cover, and the belt leaves the diagonal; NaN where all outcomes are the same."""
    rng = np.random.default_rng([seed, [*SCORES].index(scores), [*TRUTHS].index(truth), n])
    p = SCORES[scores](rng, n)
    y = (rng.random(n) < TRUTHS[truth](p)).astype(int)
    if y.min() == y.max():
        return dict.fromkeys(NAMES, float("nan"))
    belt = cal.significance.calibration_belt(y, p, n_points=41)
    true = TRUTHS[truth](belt.scores)
    inside = ((belt.lower <= true) & (true <= belt.upper)).all(axis=1)
    out = {f"covered {100 * level:.0f}": float(one) for level, one in zip(belt.levels, inside, strict=True)}
    left = [bool(belt.above[level] or belt.below[level]) for level in belt.levels]
    return out | {"rejected": float(belt.pvalue <= ALPHA / 100), "left 95": float(left[1]), "degree": belt.degree}


def _name(case: dict[str, str | int]) -> str:
    return f"{case['truth']}, {case['scores']} scores, {case['n']:,} rows"


def answer(kept: Kept) -> str:
    calm = kept.where(truth="calibrated")["rejected"]
    parts = {truth: [c for c in EXPERIMENT.every() if c["truth"] == truth] for truth in TRUTHS}
    covered = {t: {_name(c): percent(kept.where(**c)["covered 95"]) for c in cases} for t, cases in parts.items()}
    ranges = [f"{min(c.values())[0]:.1f} to {max(c.values())[0]:.1f} % ({truth})" for truth, c in covered.items()]
    covering = f"{', '.join(ranges[:-1])} and {ranges[-1]}".replace(" (", " of samples (", 1)
    size = {_name(case): percent(kept.where(**case)["rejected"]) for case in parts["calibrated"]}
    every = {name: pair for cells in covered.values() for name, pair in cells.items()}
    return (
        f"95 % belts cover the whole curve in {covering}, depending on scores and sizes. Coverage is below 95 % by "
        f"two standard errors in {told(every, 95)}. The test at {ALPHA} % rejects calibrated models in {share(calm)} % "
        f"of samples. The rate exceeds {ALPHA} % by two standard errors in {told(size, ALPHA, above=True)}."
    )


def picture(kept: Kept) -> Figure:
    cases = [(truth, n) for truth in TRUTHS for n in SIZES]
    series = {}
    for scores in SCORES:
        for level in LEVELS:
            pairs = [percent(kept.where(scores=scores, truth=truth, n=n)[f"covered {level}"]) for truth, n in cases]
            series[f"{level} %, {scores}"] = [(value - level, error) for value, error in pairs]
    return dots([f"{truth}, {n:,} rows" for truth, n in cases], series, "coverage minus level, percentage points", 0.0)


def page(kept: Kept) -> Iterator[str]:
    degrees = (f"{kept.where(truth=t, n=SIZES[-1])['degree'].mean():.2f} ({t})" for t in TRUTHS)
    yield "The table gives rejections at 5 %, then coverage of the whole curve by the 95 % belt, in per cent, by rows."
    yield f"Mean degrees with {SIZES[-1]:,} rows are {', '.join(degrees)}."
    yield ""
    sizes = [f"{n:,}" for n in SIZES]
    yield from table(("truth, scores", *sizes, *sizes), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for truth in TRUTHS:
        for scores in SCORES:
            parts = [kept.where(scores=scores, truth=truth, n=n) for n in SIZES]
            cells = [f"{100 * some[name].mean():.1f}" for name in ("rejected", "covered 95") for some in parts]
            yield [f"{truth}, {scores}", *cells]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": SCORES, "truth": TRUTHS, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=400,
)

if __name__ == "__main__":
    EXPERIMENT.main()
