"""Are tests, intervals and reports right with `groups=` when rows belong together?

    python -m benchmarks.coverage.groups [--repetitions 200]

Sixty forecasts of an event are a martingale that ends in its outcome. Clusters, hospitals and prompts have an unseen
normal effect on the latent score (sd 1, 0.5 and 1). Repeats of a prompt have one score. One of 21 hospitals has half of
the rows. Scores are distorted by a scale and shift of the logit (1, 0; 1.5, 0; 1, 0.5; 2, 0.5). The truth is their mean
distance from the calibrated ones.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, share, table
from ..provenance import Kept
from .grouped_rows import CASES, TESTS, distorted, many, truth

#: Logit scale and shift of scores.
DISTORTIONS = {
    "1, 0": (1.0, 0.0),
    "1.5, 0": (1.5, 0.0),
    "1, 0.5": (1.0, 0.5),
    "2, 0.5": (2.0, 0.5),
    "1.3, 0": (1.3, 0.0),
}
NONE, POWER = "1, 0", "1.3, 0"
TENS, FIVES = "500 rows in tens", "300 rows in fives"
ROWS = [name for name in CASES if name != FIVES]
DEPENDENT = ROWS[:6]
ESTIMATORS = {"default": "auto", "bins": cal.Binned(10, "quantile")}
BINS = {
    "fives, 15 debiased": cal.Binned(15, debias=True),
    "fives, 40 debiased": cal.Binned(40, debias=True),
    "fives, 40 kumar": cal.Binned(40, debias="kumar"),
    "fives, 40 bins": cal.Binned(40),
}
#: Without groups and with them.
HOW = {"rows": "without groups", "groups": "with groups"}
ALPHA, LEVEL = 0.05, 95


def some(rows: str, distortion: str) -> bool:
    return distortion == NONE or (rows == TENS if distortion == POWER else rows != FIVES)


@cache
def tenths(rows: str) -> np.ndarray:
    """Mean calibrated score of each tenth, which is calibrated too: few distinct scores, as Pearson's test wants."""
    cell = (10 * many(rows)).astype(int).clip(0, 9)
    return np.bincount(cell, many(rows)) / np.bincount(cell)


def sample(rows: str, distortion: str, seed: int) -> dict[str, float]:
    """P-values, intervals and the report's verdict, without groups and with them."""
    about = [seed, [*CASES].index(rows), [*DISTORTIONS].index(distortion)]
    group, scores, outcome = CASES[rows](np.random.default_rng(about))
    by = DISTORTIONS[distortion]
    coarse = distorted(tenths(rows)[(10 * scores).astype(int).clip(0, 9)], *by)
    out: dict[str, float] = {}
    for how, groups in (("rows", None), ("groups", group)):
        p, tenth = (
            cal.as_predictions(outcome, s, groups=groups, labels=[0, 1]) for s in (distorted(scores, *by), coarse)
        )
        if rows == FIVES:
            found = {name: cal.calibration_test(p, estimator=e, n_resamples=39).pvalue for name, e in BINS.items()}
        elif distortion in (NONE, POWER):
            found = {name: test(tenth if name == "Pearson" else p).pvalue for name, test in TESTS.items()}
        else:
            found = {}
        if rows != FIVES and distortion != POWER:
            for name, estimator in ESTIMATORS.items():
                low, high = cal.estimate(p, estimator=estimator).interval
                covered = low - 1e-12 <= truth(rows, *by) <= high + 1e-12
                found |= {f"{name} covers": float(covered), f"{name}, width": high - low}
        if rows != FIVES and distortion == NONE:
            found["report"] = float(cal.report(p).evidence.status == "miscalibrated")
        out |= {f"{name}: {how}": float(value) for name, value in found.items()}
    return out


def rejected(kept: Kept, name: str, how: str) -> np.ndarray:
    return (kept[f"{name}: {how}"] <= ALPHA).astype(float)


def of_tests(kept: Kept, rows: str, how: str, distortion: str = NONE) -> np.ndarray:
    """Share of the nine tests that reject, in per cent, of each sample."""
    part = kept.where(rows=rows, distortion=distortion)
    return 100 * np.mean([rejected(part, name, how) for name in TESTS], axis=0)


def answer(kept: Kept) -> str:
    calm = {rows: kept.where(rows=rows, distortion=NONE) for rows in DEPENDENT}
    reports = [_range([percent(one[f"report: {how}"])[0] for one in calm.values()]) for how in HOW]
    tests = [np.mean([of_tests(kept, rows, how).mean() for rows in DEPENDENT]) for how in HOW]
    worst, rows, name = max((rejected(calm[r], t, "groups").mean(), r, t) for r in DEPENDENT for t in TESTS)
    cases = [case for case in EXPERIMENT.every() if case["rows"] in DEPENDENT]
    covered = [[percent(kept.where(**case)[f"default covers: {how}"]) for case in cases] for how in HOW]
    missed = [
        f"{case['rows']} at {case['distortion']}"
        for case, (value, error) in zip(cases, covered[1], strict=True)
        if value + 2 * error < LEVEL
    ]
    power = [of_tests(kept, TENS, how, POWER) for how in HOW]
    gap, error = estimate(power[1] - power[0])
    part = kept.where(rows=TENS, distortion=POWER)
    gaps = {name: estimate(100 * (rejected(part, name, "groups") - rejected(part, name, "rows"))) for name in TESTS}
    least = min(gaps, key=lambda name: gaps[name][0])
    fewer = f"{abs(gap):.1f} ± {error:.1f} points {'less' if gap < 0 else 'more'} often"
    return (
        f"With groups, `report` calls {reports[1]} % of calibrated samples of dependent rows miscalibrated "
        f"({reports[0]} % without). Tests at 5 % reject {tests[1]:.1f} % on average ({tests[0]:.0f} % without) and "
        f"{100 * worst:.1f} % at worst ({name}, {rows}). The default's 95 % intervals cover the truth in "
        f"{_range([v for v, _ in covered[1]])} % ({_range([v for v, _ in covered[0]])} % without), and coverage is "
        f"below 95 % by more than two standard errors in {'; '.join(missed) or 'no case'}. On independent rows in tens "
        f"with logits 1.3 times too large, tests reject {power[0].mean():.1f} % without groups, and {fewer} with them "
        f"({least} by {abs(gaps[least][0]):.1f} ± {gaps[least][1]:.1f})."
    )


def _range(values: list[float]) -> str:
    return f"{min(values):.0f} to {max(values):.0f}"


def picture(kept: Kept) -> Figure:
    names = {"rows": "without groups", "groups": "with groups"}
    series = {f"tests {names[how]}": [estimate(of_tests(kept, rows, how)) for rows in ROWS] for how in HOW}
    for how in HOW:
        some = (kept.where(rows=rows, distortion=NONE) for rows in ROWS)
        series[f"report {names[how]}"] = [percent(one[f"report: {how}"]) for one in some]
    return dots(ROWS, series, "called miscalibrated, % of calibrated samples", 100 * ALPHA, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives, in per cent, how often the worst test rejects calibrated samples at 5 %, and coverage of"
    yield "95 % intervals by the default and ten bins, without and *with* groups."
    yield ""
    head = (name for what in ("test", "default", "bins") for name in (what, "with"))
    yield from table(("rows", *head), _rows(kept))
    fives = {(name, how): rejected(kept.where(rows=FIVES), name, how) for name in BINS for how in HOW}
    name, how = max(fives, key=lambda one: fives[one].mean())
    yield ""
    most = f"{share(fives[name, how])} % of samples ({name.removeprefix('fives, ')}, {HOW[how]})"
    yield f"On rows in fives, `calibration_test` with bins rejects no more than {most}."


def _rows(kept: Kept) -> Iterator[list[str]]:
    for rows in ROWS:
        part, calm = kept.where(rows=rows), kept.where(rows=rows, distortion=NONE)
        tests = [max(rejected(calm, name, how).mean() for name in TESTS) for how in HOW]
        covers = [np.nanmean(part[f"{name} covers: {how}"]) for name in ESTIMATORS for how in HOW]
        yield [rows, *(f"{100 * value:.1f}" for value in (*tests, *covers))]


EXPERIMENT = Experiment(
    __spec__.name,
    {"rows": CASES, "distortion": DISTORTIONS},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
    quick=2,
    some=some,
)

if __name__ == "__main__":
    EXPERIMENT.main()
