"""Tests, decompositions and scores beside other libraries: CPU seconds of both, taking turns, and whether they agree.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.judging [--rounds 5] [--only TEXT] [--write
    benchmarks/speed/judging.md]

Needs `pip install pycalib==0.1.0.dev6 calzone-tool==0.1.0 statsmodels==0.15.0 model-diagnostics==1.5.0
scoringrules==0.10.0 scikit-learn==1.9.1`, which `benchmarks/requirements.txt` lists among others. Where conventions
differ they are set equal, or the remark names the difference. An answer that differs by more than its tolerance ends
the run with an error.
"""

import datetime
import importlib.metadata
import math
import os
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.data.writing import write_text

from .. import arguments
from . import table

DRAWS = 1000
PEERS = ("pycalib", "calzone-tool", "statsmodels", "model-diagnostics", "scoringrules", "scikit-learn")


@dataclass(frozen=True)
class Case:
    """One piece of work by us and by a peer.

    `ours` and `peer` give arrays of numbers that should be the same, up to `close`: an absolute difference, or a
    function of both that returns a text and whether they agree.
    """

    name: str
    library: str
    ours: Callable[[], Any]
    peer: Callable[[], Any]
    close: float | Callable[[Any, Any], tuple[str, bool]]
    remark: str = ""


def binary(n: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities that are a little too low."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.9, 1.2, n).clip(1e-6, 1 - 1e-6)
    return (rng.random(n) < p**0.97).astype(int), p


def several(n: int, k: int, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probability vectors that are `power` times as sharp as the labels' own."""
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    p = q**power
    return y, p / p.sum(axis=1, keepdims=True)


def resampling() -> Case:
    from pycalib.metrics import _score_sampling, classwise_ECE
    from scipy.stats import percentileofscore
    from sklearn.preprocessing import label_binarize

    y, p = several(10_000, 3, 1.02)
    ten = cal.Binned(10)

    def ours() -> tuple[float, float]:
        found = cal.calibration_test(y, p, notion="classwise", estimator=ten, n_resamples=DRAWS, random_state=0)
        return found.statistic, found.details["share_of_draws_above"]

    def peer() -> tuple[float, float]:
        np.random.seed(0)  # noqa: NPY002 (the peer draws from the global state)
        observed = classwise_ECE(label_binarize(y, classes=range(3)), p, bins=10)
        draws = _score_sampling(p, DRAWS, lambda a, b: classwise_ECE(a, b, bins=10))
        return observed, 1 - percentileofscore(draws, observed) / 100

    def same(a: tuple[float, float], b: tuple[float, float]) -> tuple[str, bool]:
        error = math.sqrt(2 * max(a[1] * (1 - a[1]), 1 / DRAWS) / DRAWS)
        text = f"statistic differs by {abs(a[0] - b[0]):.1e}; p {a[1]:.3f} and {b[1]:.3f}, standard error {error:.3f}"
        return text, abs(a[0] - b[0]) < 1e-12 and abs(a[1] - b[1]) < 4 * error

    remark = "what `pECE` does, in one process (its own workers are forked with one seed); p: share of larger draws"
    return Case(f"resampling test, {DRAWS} draws, 10⁴ × 3, class-wise ECE", "pycalib", ours, peer, same, remark)


def hosmer_lemeshow_test() -> Case:
    from calzone.metrics import hosmer_lemeshow_test
    from calzone.utils import reliability_diagram

    y, p = binary()
    both = np.column_stack([1 - p, p])
    least = int(np.argmin(p))

    def ours() -> list[float]:
        found = cal.significance.hosmer_lemeshow_test(y, p, df="external")
        return [found.statistic, found.pvalue, found.df]

    def peer() -> list[float]:
        rate, mean, _, count = reliability_diagram(y, both, 10, class_to_plot=1, is_equal_freq=True)
        hits, sums = rate * count, mean * count
        hits[0], sums[0], count[0] = hits[0] + y[least], sums[0] + p[least], count[0] + 1
        return list(hosmer_lemeshow_test(hits / count, sums / count, count, df=len(count)))

    remark = "10 groups by percentiles, df 10; the smallest score, which calzone's first group leaves out, is put back"
    return Case("Hosmer–Lemeshow, 10⁵", "calzone-tool", ours, peer, 1e-7, remark)


def spiegelhalter() -> Case:
    from calzone.metrics import spiegelhalter_z_test

    y, p = binary()
    both = np.column_stack([1 - p, p])

    def ours() -> list[float]:
        found = cal.significance.spiegelhalter_test(y, p)
        return [found.statistic, found.pvalue]

    return Case("Spiegelhalter's z, 10⁵", "calzone-tool", ours, lambda: spiegelhalter_z_test(y, both), 1e-9)


def cox_calzone() -> Case:
    from calzone.metrics import cox_regression_analysis

    y, p = binary()
    both = np.column_stack([1 - p, p])

    def ours() -> list[float]:
        found = cal.significance.cox_test(y, p).details
        return [found["slope"], found["intercept"], found["slope_se"], found["intercept_se"]]

    def peer() -> list[float]:
        slope, intercept, slope_ci, intercept_ci = cox_regression_analysis(y, both)
        width = 2 * 1.959963984540054
        return [slope, intercept, np.ptp(slope_ci) / width, np.ptp(intercept_ci) / width]

    remark = "slope, intercept and standard errors (from its intervals); ours also tests them, at slope 1 too"
    return Case("Cox's slope and intercept, 10⁵", "calzone-tool", ours, peer, 1e-6, remark)


def cox_statsmodels() -> Case:
    import statsmodels.api as sm
    from scipy.stats import chi2

    y, p = binary()
    z = np.log(p) - np.log1p(-p)

    def ours() -> list[float]:
        found = cal.significance.cox_test(y, p)
        return [found.statistic, found.pvalue, found.details["slope"], found.details["in_the_large"]]

    def peer() -> list[float]:
        free = sm.GLM(y, sm.add_constant(z), family=sm.families.Binomial()).fit()
        large = sm.GLM(y, np.ones_like(z), family=sm.families.Binomial(), offset=z).fit()
        plain = float((y * np.log(p) + (1 - y) * np.log1p(-p)).sum())
        statistic = 2 * (free.llf - plain)
        return [statistic, chi2.sf(statistic, 2), free.params[1], large.params[0]]

    remark = "likelihood-ratio statistic, p, slope, and intercept at slope 1, from two fits of its GLM"
    return Case("Cox's test, 10⁵", "statsmodels", ours, peer, 1e-6, remark)


def corp(score: str) -> Case:
    from model_diagnostics.scoring import LogLoss, SquaredError, decompose

    y, p = binary()
    function = SquaredError() if score == "brier" else LogLoss()
    outcome = y.astype(float)

    def ours() -> list[float]:
        found = cal.decompose(y, p, score=score)
        return [found.miscalibration, found.discrimination, found.uncertainty, found.total]

    def peer() -> list[float]:
        found = decompose(outcome, p, scoring_function=function)
        return [float(found[part][0]) for part in ("miscalibration", "discrimination", "uncertainty", "score")]

    return Case(f"CORP decomposition, {score}, 10⁵", "model-diagnostics", ours, peer, 1e-10)


def corp_curve() -> Case:
    from scoringrules.visualization.reliability import corp_reliability

    y, p = binary()
    order = np.argsort(p)

    def ours() -> Any:
        return cal.reliability_curve(y, p, estimator="isotonic")

    def same(a: Any, b: Any) -> tuple[str, bool]:
        gap = float(np.abs(a.at(p[order]).observed - b[2]).max())
        return f"differ by {gap:.1e}", gap < 1e-9

    remark = "at every score; scores without ties, which the peer would part"
    return Case("CORP reliability curve, 10⁵", "scoringrules", ours, lambda: corp_reliability(y, p), same, remark)


def corp_parts() -> Case:
    from scoringrules.visualization.reliability import corp_reliability, corp_score_decomposition

    y, p = binary()

    def ours() -> list[float]:
        parts = cal.decompose(y, p)
        return [parts.miscalibration, parts.discrimination, parts.uncertainty]

    def peer() -> list[float]:
        best, stated, base = corp_score_decomposition(*corp_reliability(y, p))
        return [stated - best, base - best, base]

    return Case("CORP decomposition, brier, 10⁵", "scoringrules", ours, peer, 1e-10, "mean scores, subtracted")


def murphy() -> Case:
    from model_diagnostics.scoring import ElementaryScore

    y, p = binary()
    at = np.arange(1, 101) / 101
    outcome = y.astype(float)

    def peer() -> np.ndarray:
        return np.array([ElementaryScore(eta)(outcome, p) for eta in at])

    remark = "100 thresholds, what `plot_murphy_diagram` computes"
    return Case(
        "Murphy diagram, 10⁵",
        "model-diagnostics",
        lambda: cal.scores.murphy_curve(y, p, at).scores,
        peer,
        1e-10,
        remark,
    )


def scores(library: str) -> Case:
    y, p = binary(1_000_000)
    if library == "scikit-learn":
        from sklearn.metrics import brier_score_loss, log_loss

        def peer() -> list[float]:
            return [brier_score_loss(y, p), log_loss(y, p)]

    else:
        import scoringrules as sr

        def peer() -> list[float]:
            return [sr.brier_score(y, p).mean(), sr.log_score(y, p).mean()]

    def ours() -> list[float]:
        return [cal.brier_score(y, p, scale="half"), cal.log_loss(y, p)]

    return Case("Brier and log score, 10⁶", library, ours, peer, 1e-12)


def scores_of_classes() -> Case:
    from sklearn.metrics import brier_score_loss, log_loss

    y, p = several(100_000, 10)

    def ours() -> list[float]:
        return [cal.brier_score(y, p), cal.log_loss(y, p)]

    def peer() -> list[float]:
        return [brier_score_loss(y, p, scale_by_half=False), log_loss(y, p)]

    return Case("Brier and log score, 10⁵ × 10", "scikit-learn", ours, peer, 1e-12)


CASES: dict[str, Callable[[], Case]] = {
    "resampling": resampling,
    "hosmer-lemeshow": hosmer_lemeshow_test,
    "spiegelhalter": spiegelhalter,
    "cox-calzone": cox_calzone,
    "cox-statsmodels": cox_statsmodels,
    "corp-brier": lambda: corp("brier"),
    "corp-log": lambda: corp("log-loss"),
    "corp-parts": corp_parts,
    "corp-curve": corp_curve,
    "murphy": murphy,
    "scores-sklearn": lambda: scores("scikit-learn"),
    "scores-scoringrules": lambda: scores("scoringrules"),
    "scores-classes": scores_of_classes,
}


def alone() -> dict[str, Callable[[], Any]]:
    """Tests of ours without a counterpart, at their defaults."""
    y, p = binary(10_000)
    z, q = several(10_000, 3)
    draws = {"random_state": 0}
    return {
        "`calibration_test`, 10⁴": lambda: cal.calibration_test(y, p, **draws),
        "`cumulative_test`, 10⁴": lambda: cal.significance.cumulative_test(y, p),
        "`kernel_test`, asymptotic, 10⁴": lambda: cal.significance.kernel_test(y, p, algorithm="asymptotic"),
        "`adaptive_test`, 10⁴": lambda: cal.significance.adaptive_test(y, p, **draws),
        "`adaptive_test`, class-wise, 10⁴ × 3": lambda: cal.significance.adaptive_test(
            z, q, notion="classwise", **draws
        ),
        "`adaptive_test`, canonical, 10⁴ × 3": lambda: cal.significance.adaptive_test(
            z, q, notion="canonical", **draws
        ),
        "`evalue_test`, sequential, 10⁴": lambda: cal.significance.evalue_test(y, p),
        "`evalue_test`, split, 10⁴": lambda: cal.significance.evalue_test(y, p, algorithm="split", **draws),
    }


def agreement(case: Case, ours: Any, theirs: Any) -> str:
    """What agrees, in words; an error where it does not."""
    if callable(case.close):
        text, good = case.close(ours, theirs)
    else:
        gap = float(np.abs(np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)).max())
        text, good = f"differ by {gap:.1e}", gap <= case.close
    assert good, (case.name, case.library, text)
    return text


def main() -> None:
    parser = arguments.parser(__doc__, rounds=5, write=True)
    parser.add_argument("--only", choices=list(CASES), help="one case; nothing else is run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in [options.only] if options.only else CASES:
        case = CASES[name]()
        times: dict[str, list[float]] = {"ours": [], "peer": []}
        found: dict[str, Any] = {}
        # A peer that takes seconds is timed once; the others run once before the run that is timed.
        start = process_time()
        case.peer()
        slow = process_time() - start > 2
        for _ in range(1 if slow else options.rounds):
            for who, run in (("ours", case.ours), ("peer", case.peer)):
                if not (slow and who == "peer"):
                    run()
                start = process_time()
                found[who] = run()
                times[who].append(process_time() - start)
        same = agreement(case, found["ours"], found["peer"])
        a, b = (statistics.median(times[who]) for who in ("ours", "peer"))
        print(f"{case.name:<52} {case.library:<18} {a:8.4f}s {b:8.4f}s {a / b:7.3f}  {same}", flush=True)
        rows.append(f"| {case.name} | {case.library} | {a:.4f} | {b:.4f} | {a / b:.3f} | {same} | {case.remark} |")
    own = []
    for name, run in {} if options.only else alone().items():
        run()
        seconds = [0.0] * options.rounds
        for i in range(options.rounds):
            start = process_time()
            run()
            seconds[i] = process_time() - start
        print(f"{name:<71} {statistics.median(seconds):8.4f}s", flush=True)
        own.append(f"| {name} | {statistics.median(seconds):.3f} |")
    if options.write is not None and options.only is None:
        write_text(options.write, page(rows, own, options.rounds))


def page(rows: list[str], own: list[str], rounds: int) -> str:
    facts = table.facts({peer: importlib.metadata.version(peer) for peer in PEERS})
    return PAGE.format(
        rounds=rounds,
        rows="\n".join(rows),
        own="\n".join(own),
        date=datetime.date.today().isoformat(),
        machine=f"{facts['cpu']}, {os.cpu_count()} cores, Python {facts['python']}",
        versions=", ".join(f"{name} {version}" for name, version in (facts["versions"] | facts["peers"]).items()),
    )


PAGE = """# Tests, decompositions and scores beside other libraries

Written by `OMP_NUM_THREADS=1 python -m benchmarks.speed.judging --rounds {rounds} --write
benchmarks/speed/judging.md`, which says
what to install. Median CPU seconds of a call, both in one process on the same arrays, taking turns (each runs once
before the run that is timed); *ratio* is ours over the peer's; “agree” is the largest difference between the numbers
of both. {date}; {machine}; {versions}.

| work | peer | ours [s] | peer [s] | ratio | agree | remark |
|---|---|--:|--:|--:|---|---|
{rows}

Tests of ours for which none of these libraries has a counterpart, at their defaults (999 draws where they draw):

| test | [s] |
|---|--:|
{own}
"""


if __name__ == "__main__":
    main()
