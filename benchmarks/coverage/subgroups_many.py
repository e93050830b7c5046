"""Are p-values and intervals of `subgroup_calibration` right with many subgroups?

    python -m benchmarks.coverage.subgroups_many [--repetitions 100]

A sample is 250 calibrated subgroups. Kuiper's test has a method for *many* subgroups (more than fifty) and one for
*few*. The first makes up to 199 draws, or until ten are as large as the observed value. If none is, the p-value is the
tail of the limit distribution by a saddlepoint, below 1/200. The second makes 1999 draws or more. Intervals are for
errors of a hundred subgroups with 300 rows and Beta(1, 3) scores. Half are calibrated, half are *flat* (true
log-odds 1.6 times those stated). One report makes 400 posterior draws, and two reports on fifty make 2000.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.comparison.subgroups.build import SubgroupsOfRows
from calibrant.comparison.subgroups.membership import Subgroups
from calibrant.comparison.subgroups.statistics import subgroup_pvalues
from calibrant.data.problem import Problem

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept

#: Parameters of the scores' Beta distribution, and rows a subgroup.
SCORES = {
    "Beta(1, 1) × 100": (1.0, 1.0, 100),
    "Beta(1, 3) × 100": (1.0, 3.0, 100),
    "Beta(0.5, 25) × 400": (0.5, 25.0, 400),
    "Beta(1, 1) × 1000": (1.0, 1.0, 1_000),
}
INTERVALS = "intervals"
#: By how many subgroups a report would have, draws of the posterior.
HOW = {"many": 400, "few": 2_000}
LEVELS = (0.05, 0.01, 1e-3, 1e-4)
DIGITS = (2, 2, 2, 3)
TOGETHER, OF_INTERVALS = 250, 100
TRUTHS = ("calibrated", "flat")


def sample(scores: str, how: str, seed: int) -> dict[str, float]:
    """Share of p-values up to each level, or of intervals that miss the true error; many and few have the same rows."""
    if scores == INTERVALS:
        return _intervals(how == "many", seed)
    rng = np.random.default_rng([seed, [*SCORES].index(scores)])
    a, b, rows = SCORES[scores]
    codes = np.repeat(np.arange(TOGETHER), rows)
    s = rng.beta(a, b, codes.size)
    problem = Problem(s, (rng.random(codes.size) < s).astype(int))
    cells = SubgroupsOfRows.of(problem, Subgroups("subgroup", codes, tuple(range(TOGETHER))), None).cells
    many = how == "many"
    found = subgroup_pvalues(cells, "kuiper", 199 if many else 1999, rng, 0.001, many=many)
    return {f"p ≤ {level:g}": float(np.mean(found <= level)) for level in LEVELS}


@cache
def true_error() -> float:
    """Of a flat subgroup."""
    grid = np.random.default_rng(5).beta(1, 3, 200_000)
    return float(np.abs(expit(1.6 * logit(grid)) - grid).mean())


def _intervals(many: bool, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, len(SCORES)])
    codes = np.repeat(np.arange(OF_INTERVALS), 300)
    p = rng.beta(1, 3, codes.size)
    y = (rng.random(codes.size) < np.where(codes % 2 == 0, p, expit(1.6 * logit(p)))).astype(int)
    parts = [codes >= 0] if many else [codes < OF_INTERVALS // 2, codes >= OF_INTERVALS // 2]
    missed: dict[str, list[bool]] = {truth: [] for truth in TRUTHS}
    for part in parts:
        report = cal.subgroup_calibration(y[part], p[part], codes[part], n_resamples=99, random_state=seed)
        for one in report.subgroups:
            truth, (low, high) = TRUTHS[one.value % 2], one.error_interval
            missed[truth].append(not low <= (0.0 if truth == "calibrated" else true_error()) <= high)
    return {f"{truth} missed": float(np.mean(values)) for truth, values in missed.items()}


def share_of(kept: Kept, scores: str, how: str, what: str) -> tuple[float, float]:
    """A share of subgroups and its standard error over samples: that of half a hit where there is none."""
    values = kept.where(scores=scores, how=how)[what]
    value, error = estimate(values)
    return value, error if value else 0.5 / (TOGETHER * values.size)


def answer(kept: Kept) -> str:
    shares = {
        (scores, how, level): share_of(kept, scores, how, f"p ≤ {level:g}")
        for scores in SCORES
        for how in HOW
        for level in LEVELS
    }
    means = {
        how: ", ".join(f"{100 * np.mean([shares[s, how, level][0] for s in SCORES]):.2g}" for level in LEVELS)
        for how in HOW
    }
    over = {how: sum(v - 2 * e > key[2] for key, (v, e) in shares.items() if key[1] == how) for how in HOW}
    missed = {how: [share_of(kept, INTERVALS, how, f"{truth} missed") for truth in TRUTHS] for how in HOW}
    covered = {how: " and ".join(f"{100 * (1 - v):.1f} ± {100 * e:.1f}" for v, e in missed[how]) for how in HOW}
    levels = ", ".join(f"{level:g}" for level in LEVELS)
    return (
        f"P-values of calibrated subgroups are at most {levels} in {means['many']} % of cases by the method for many, "
        f"and in {means['few']} % by that for few. Shares exceed the level by more than two standard errors in "
        f"{over['many']} and {over['few']} of {len(shares) // 2} cases. 95 % intervals cover errors of calibrated "
        f"and flat subgroups in {covered['many']} % with {HOW['many']} draws and in {covered['few']} % with "
        f"{HOW['few']:,}."
    )


def picture(kept: Kept) -> Figure:
    cases = [(scores, level) for level in LEVELS[:3] for scores in SCORES]
    series = {}
    for how in HOW:
        pairs = [(share_of(kept, scores, how, f"p ≤ {level:g}"), level) for scores, level in cases]
        series[how] = [(value / level, error / level) for (value, error), level in pairs]
    names = [f"{scores}, level {level:g}" for scores, level in cases]
    return dots(names, series, "share of p-values up to the level, over the level", 1.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the percentage of p-values of calibrated subgroups up to each level, by the distribution of"
    yield "scores, the rows per subgroup, and the method. The picture has standard errors."
    yield ""
    yield from table(("subgroups", "method", *(f"{100 * level:g} %" for level in LEVELS)), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for scores in SCORES:
        for how in HOW:
            shares = (share_of(kept, scores, how, f"p ≤ {level:g}") for level in LEVELS)
            yield [
                scores,
                how,
                *(f"{100 * value:.{digits}f}" for (value, _), digits in zip(shares, DIGITS, strict=True)),
            ]


EXPERIMENT = Experiment(
    __spec__.name, {"scores": [*SCORES, INTERVALS], "how": HOW}, sample, answer, page, picture, repetitions=100, quick=2
)

if __name__ == "__main__":
    EXPERIMENT.main()
