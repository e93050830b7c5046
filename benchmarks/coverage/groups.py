"""Rows that belong together: false alarms, coverage and power with groups and without, where the truth is known.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.groups [--repetitions 300] [--kept FILE] [--write FILE]

Every case draws groups, calibrated scores of their rows and outcomes that hang together within groups. Scores are then
distorted by a logit scale and shift; the truth is the mean distance of the distorted from the calibrated ones. What a
repetition found is kept in FILE, so that a stopped run goes on where it was; its seed is its number.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal
from calibrant.data.writing import write_text

from .. import arguments
from ..store import lines_of

#: Group, score and outcome of each row.
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
SCALES = [(1.0, 0.0), (1.5, 0.0), (1.0, 0.5), (2.0, 0.5)]
#: Logit scale at which tests of 500 independent rows find what is wrong in about 60 % of samples.
POWER = (1.3, 0.0)
#: Reports are made in every third repetition.
REPORTS = 3


def forecasts(rng: np.random.Generator, events: int) -> Rows:
    """Sixty forecasts of each event while it nears: a martingale that ends in the outcome."""
    path = rng.normal(size=(events, 61)).cumsum(axis=1)
    left = np.arange(60, 0, -1)
    scores = norm.cdf(path[:, :-1] / np.sqrt(left))
    return np.repeat(np.arange(events), 60), scores.ravel(), np.repeat(path[:, -1] > 0, 60)


def clusters(rng: np.random.Generator, sizes: np.ndarray, tau: float, same: bool = False) -> Rows:
    """What the model does not see moves the latent score of a whole group by a normal variable with sd tau."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    seen = rng.normal(size=len(sizes))[group] if same else rng.normal(size=len(group))
    unseen = tau * rng.normal(size=len(sizes))
    outcome = seen + unseen[group] + rng.normal(size=len(group)) > 0
    return group, norm.cdf(seen / np.sqrt(1 + tau**2)), outcome


def independent(rng: np.random.Generator, size: int) -> Rows:
    scores = rng.random(500)
    return np.arange(500) // size, scores, rng.random(500) < scores


CASES: dict[str, Callable[[np.random.Generator], Rows]] = {
    "40 events × 60 forecasts": lambda rng: forecasts(rng, 40),
    "15 events × 60 forecasts": lambda rng: forecasts(rng, 15),
    "60 clusters × 10": lambda rng: clusters(rng, np.full(60, 10), 1.0),
    "20 hospitals × 50": lambda rng: clusters(rng, np.full(20, 50), 0.5),
    "21 hospitals, one with half": lambda rng: clusters(rng, np.array([1000] + [50] * 20), 0.5),
    "100 prompts × 8": lambda rng: clusters(rng, np.full(100, 8), 1.0, same=True),
    "500 rows, groups of 1": lambda rng: independent(rng, 1),
    "500 rows, groups of 10": lambda rng: independent(rng, 10),
}
FEW = {"n_resamples": 199}
TESTS: dict[str, Callable[[Any], Any]] = {
    "calibration_test": lambda p: cal.calibration_test(p, **FEW),
    "… Binned(10)": lambda p: cal.calibration_test(p, estimator=cal.Binned(10), **FEW),
    "… Brier": lambda p: cal.calibration_test(p, estimator="brier", **FEW),
    "adaptive": lambda p: cal.significance.adaptive_test(p, **FEW),
    "cumulative": lambda p: cal.significance.cumulative_test(p, **FEW),
    "Hosmer–Lemeshow": lambda p: cal.significance.hosmer_lemeshow_test(p, df="external", **FEW),
    "Pearson": lambda p: cal.significance.pearson_test(p, **FEW),
    "Spiegelhalter": lambda p: cal.significance.spiegelhalter_test(p, **FEW),
    "Cox": lambda p: cal.significance.cox_test(p, **FEW),
}
ESTIMATORS = {"default": "auto", "Binned(10, quantile)": cal.Binned(10, "quantile")}


def distorted(scores: np.ndarray, scale: float, shift: float) -> np.ndarray:
    return expit(scale * logit(scores.clip(1e-9, 1 - 1e-9)) + shift)


@cache
def many(name: str) -> np.ndarray:
    """Calibrated scores of 400 samples."""
    rng = np.random.default_rng(0)
    return np.concatenate([CASES[name](rng)[1] for _ in range(400)])


def truth(name: str, scale: float, shift: float) -> float:
    """Mean distance of distorted from calibrated scores."""
    return float(np.abs(distorted(many(name), scale, shift) - many(name)).mean())


@cache
def tenths(name: str) -> np.ndarray:
    """Mean calibrated score of each tenth, which is calibrated too: few distinct scores, as Pearson's test wants."""
    cell = (10 * many(name)).astype(int).clip(0, 9)
    return np.bincount(cell, many(name)) / np.bincount(cell)


def found(name: str, scale: float, shift: float, repetition: int) -> dict[str, Any]:
    """P-values, intervals and the report's verdict of one sample, without groups and with them."""
    asked = [*SCALES, POWER].index((scale, shift))
    group, scores, outcome = CASES[name](np.random.default_rng([repetition, list(CASES).index(name), asked]))
    stated = distorted(scores, scale, shift)
    made: dict[str, Any] = {}
    for how, groups in (("rows", None), ("groups", group)):
        if how == "groups" and len(np.unique(group)) == len(group):
            made[how] = made["rows"]  # no groups at all: tests/data/test_groups.py says so
            continue
        p = cal.as_predictions(outcome, stated, groups=groups, labels=[0, 1])
        one: dict[str, Any] = {}
        if shift == 0 and scale in (1, POWER[0]):
            coarse = distorted(tenths(name)[(10 * scores).astype(int).clip(0, 9)], scale, shift)
            coarse = cal.as_predictions(outcome, coarse, groups=groups, labels=[0, 1])
            one |= {t: test(coarse if t == "Pearson" else p).pvalue for t, test in TESTS.items()}
        if (scale, shift) in SCALES:
            one |= {e: list(cal.estimate(p, estimator=reader).interval) for e, reader in ESTIMATORS.items()}
        if (scale, shift) == (1, 0) and repetition % REPORTS == 0:
            one["report"] = cal.report(p).evidence.status
        made[how] = one
    return made


def share(values: Any) -> str:
    """A share in per cent, with its standard error."""
    values = np.asarray(values, dtype=float)
    return f"{100 * values.mean():.1f} ± {100 * np.sqrt(values.mean() * (1 - values.mean()) / len(values)):.1f}"


def page(kept: dict[tuple[str, float, float], list[dict[str, Any]]]) -> str:
    """The page's tables: each cell without groups → with groups."""

    def cell(results: list[dict[str, Any]], judged: Callable[[dict[str, Any]], Any], of: Callable[[Any], str]) -> str:
        return " → ".join(of([judged(r[how]) for r in results]) for how in ("rows", "groups"))

    def alarms(case: str, at: tuple[float, float]) -> list[str]:
        results = kept[(case, *at)]
        return [cell(results, lambda r, t=t: r[t] <= 0.05, share) for t in TESTS]

    columns = [*TESTS, "report", *(f"estimate, {e}" for e in ESTIMATORS)]
    lines = [
        "## False alarms",
        "",
        "Share of calibrated samples, in per cent, of which a test at 5 % says that they are not, `report` says "
        '"miscalibrated", and the 95 % interval of `estimate` leaves out 0.',
        "",
        "| | " + " | ".join(CASES) + " |",
        "|---|" + "---:|" * len(CASES),
    ]
    tables = {}
    for case in CASES:
        results = kept[(case, *SCALES[0])]
        some = [r for r in results if "report" in r["rows"]]
        tables[case] = [
            *alarms(case, SCALES[0]),
            cell(some, lambda r: r["report"] == "miscalibrated", share),
            *(cell(results, lambda r, e=e: r[e][0] > 0, share) for e in ESTIMATORS),
        ]
    lines += [f"| {name} | " + " | ".join(tables[c][i] for c in CASES) + " |" for i, name in enumerate(columns)]
    lines += ["", "## Intervals", ""]
    lines += [
        "Share of 95 % intervals that cover the truth, in per cent, and their mean width.",
        "",
        "| case | logit scale, shift | truth | " + " | ".join(f"{e}: coverage | width" for e in ESTIMATORS) + " |",
        "|---|---|---:|" + "---:|---:|" * len(ESTIMATORS),
    ]
    for case in CASES:
        for at in SCALES:
            true, results = truth(case, *at), kept[(case, *at)]
            cells = []
            for e in ESTIMATORS:
                cells.append(cell(results, lambda r, e=e, true=true: r[e][0] - 1e-12 <= true <= r[e][1] + 1e-12, share))
                cells.append(cell(results, lambda r, e=e: r[e][1] - r[e][0], lambda v: f"{np.mean(v):.3f}"))
            lines.append(f"| {case} | {at[0]:g}, {at[1]:g} | {true:.3f} | " + " | ".join(cells) + " |")
    lines += ["", "## Power", ""]
    powerful = "500 rows, groups of 10"
    lines += [
        f"500 independent rows at a logit scale of {POWER[0]:g}, in groups of ten: share of samples, in per cent, in "
        "which a test at 5 % says that they are not calibrated. The difference is of the same samples.",
        "",
        "| test | without groups → with groups | difference |",
        "|---|---:|---:|",
    ]
    results = kept[(powerful, *POWER)]
    for t, text in zip(TESTS, alarms(powerful, POWER), strict=True):
        gap = np.array([float(r["groups"][t] <= 0.05) - float(r["rows"][t] <= 0.05) for r in results])
        lines.append(f"| {t} | {text} | {100 * gap.mean():+.1f} ± {100 * gap.std() / np.sqrt(len(gap)):.1f} |")
    return "\n".join(lines) + debiased()


def debiased(repetitions: int = 150) -> str:
    """What debiased bins of a few rows make of calibrated rows in groups of five."""
    lines = ["", "", "## Debiased bins of a few rows", ""]
    lines += [
        f"False alarms, in per cent, of `calibration_test` at 5 % with 39 draws on {repetitions} samples of 300 "
        "calibrated rows, independent and in groups of five.",
        "",
        "| estimator | without groups → with groups |",
        "|---|---:|",
    ]
    for e in (cal.Binned(15, debias=True), cal.Binned(40, debias=True), cal.Binned(40, debias="kumar"), cal.Binned(40)):
        found = []
        for i in range(repetitions):
            rng = np.random.default_rng(i)
            s = rng.random(300)
            y = (rng.random(300) < s).astype(int)
            both = (cal.as_predictions(y, s, groups=g) for g in (None, np.arange(300) // 5))
            found.append([cal.calibration_test(p, estimator=e, n_resamples=39).pvalue <= 0.05 for p in both])
        rows, groups = np.array(found).T
        name = f"Binned({e.n_bins}, debias={e.debias!r})"
        lines.append(f"| `{name}` | {share(rows)} → {share(groups)} |")
    return "\n".join(lines)


HEAD = """# Rows that belong together

Written by `python -m benchmarks.coverage.groups`: {n} samples a case, reports of every third, seeds their numbers. Each
cell is **without groups → with groups**, shares with their standard error. Scores are calibrated for rows drawn at
random; outcomes of one group hang together: forecasts of one event are a martingale that ends in its outcome, clusters,
hospitals and prompts have a normal effect on the latent score that the model does not see (sd 1, 0.5 and 1), and the
eight repeats of a prompt have one score. One of the 21 hospitals has half of the rows. Pearson's test uses the mean
score of each tenth, which is calibrated too. [docs/groups.md](../../docs/groups.md) says what follows.

"""


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=300, write=True)
    parser.add_argument("--kept", type=Path, default=Path("groups_kept.jsonl"), help="what repetitions found")
    parser.add_argument("--only-kept", action="store_true", help="run nothing, write the page of what is kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
    kept: dict[tuple[str, float, float], list[dict[str, Any]]] = defaultdict(list)
    known = set()
    asked = [(case, *at) for case in CASES for at in SCALES] + [("500 rows, groups of 10", *POWER)]
    with lines_of(options.kept) as (there, add):
        for case, scale, shift, repetition, result in there:
            if repetition < options.repetitions:
                known.add((case, scale, shift, repetition))
                kept[(case, scale, shift)].append(result)
        for repetition in range(0 if options.only_kept else options.repetitions):
            for one in asked:
                if (*one, repetition) in known:
                    continue
                result = found(*one, repetition)
                kept[one].append(result)
                add([*one, repetition, result])
    text = HEAD.format(n=min(len(results) for results in kept.values())) + page(kept) + "\n"
    print(text) if options.write is None else write_text(options.write, text)


if __name__ == "__main__":
    main()
