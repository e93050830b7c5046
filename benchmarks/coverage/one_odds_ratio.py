"""How often does a report say that scores are miscalibrated by one odds ratio, where they are and where they are not?

    python -m benchmarks.coverage.one_odds_ratio [--repetitions 400]

Scores p follow Beta(1, 2). The true probability has the log-odds of p minus 0.7 (*one odds ratio*), or is another
function of p. A report should say so in 95 % of samples of the former, given enough rows, and never in others. It says
so "as far as these rows can tell", and only where its test of calibration also rejects, which is not required here.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.reporting.odds_ratio import MovedBaseRate

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept
from .aims import shown

LEVEL, SIZES = 95, (500, 2000, 10_000)
ONE = "one odds ratio"
TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    ONE: lambda p: expit(logit(p) - 0.7),
    "calibrated": lambda p: p,
    "p^1.5": lambda p: p**1.5,
    "log-odds times 0.6": lambda p: expit(0.6 * logit(p)),
    "log-odds times 0.6, minus 0.7": lambda p: expit(0.6 * logit(p) - 0.7),
    "p - 0.15 from 0.5 to 0.7": lambda p: p - 0.15 * ((p > 0.5) & (p < 0.7)),
    "p - 0.1": lambda p: np.clip(p - 0.1, 0.001, 1),
}


def sample(truth: str, n: int, seed: int) -> dict[str, float]:
    """Whether one odds ratio is claimed."""
    rng = np.random.default_rng([seed, [*TRUTHS].index(truth), n])
    p = rng.beta(1, 2, n).clip(0.005, 0.995)
    y = rng.random(n) < TRUTHS[truth](p)
    problems = cal.Accumulator().update(y, p).problems
    found = MovedBaseRate.of(next(iter(problems.values())).grid, float(y.mean()), float(n))
    return {"said": float(found is not None)}


def answer(kept: Kept) -> str:
    right = [f"{share(kept.where(truth=ONE, n=n)['said'])} % ({n:,} rows)" for n in SIZES]
    wrong = {
        f"{case['truth']}, {case['n']:,} rows": percent(kept.where(**case)["said"])
        for case in EXPERIMENT.every()
        if case["truth"] != ONE
    }
    some = sum(value > 0 for value, _ in wrong.values())
    most = max(wrong, key=lambda name: wrong[name][0])
    worst = f", most often for *{most}* ({shown(wrong[most])} % of samples)" if some else ""
    return (
        f"A report rightly claims one odds ratio in {', '.join(right[:-1])} and {right[-1]} of samples "
        f"(aim: {LEVEL} %). It wrongly claims one at least once in {some or 'none'} of {len(wrong)} cases{worst}."
    )


def picture(kept: Kept) -> Figure:
    series = {f"{n:,} rows": [percent(kept.where(truth=truth, n=n)["said"]) for truth in TRUTHS] for n in SIZES}
    return dots([*TRUTHS], series, "samples with this claim, %", share=True)


def page(kept: Kept) -> Iterator[str]:
    yield f"The table gives the per cent of samples with this claim. The aim is {LEVEL} in the first row and 0 below."
    yield ""
    rows = ([truth, *(f"{100 * kept.where(truth=truth, n=n)['said'].mean():.1f}" for n in SIZES)] for truth in TRUTHS)
    yield from table(("truth", *(f"{n:,} rows" for n in SIZES)), rows)


EXPERIMENT = Experiment(__spec__.name, {"truth": TRUTHS, "n": SIZES}, sample, answer, page, picture, repetitions=400)

if __name__ == "__main__":
    EXPERIMENT.main()
