"""Which tests of calibration keep their size, and which find what is wrong?

    python -m benchmarks.coverage.power [--repetitions 500]

All tests get the same samples and reject at 5 %. Scores are uniform. Outcomes follow the scores, a map of
`calibrant.datasets.true_map`, or a narrow gap around 0.3 (*local*). For comparison, the gaps of each map are scaled to
a mean absolute size of 0.05. Tests by resampling use 99 draws. The Hosmer–Lemeshow test has the degrees of freedom for
new rows (*new*), or for rows that the model was fitted to (*fit*). E-values can be checked after every row
(*sequential*), or use a map fitted to half of the rows (*split*).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

import calibrant as cal
from calibrant.datasets import true_map

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

ERROR, ALPHA, SIZES, DRAWS = 0.05, 0.05, (100, 500, 2000), 99
GRID = (np.arange(20_000) + 0.5) / 20_000
Map = Callable[[np.ndarray], np.ndarray]
MAPS: dict[str, Map] = {
    "calibrated": lambda s: s,
    "overconfident": lambda s: true_map(s, "overconfident"),
    "underconfident": lambda s: true_map(s, "underconfident"),
    "shifted": lambda s: true_map(s, "shifted"),
    "wavy": lambda s: true_map(s, "wavy"),
    "local": lambda s: s + 0.5 * np.exp(-(((s - 0.3) / 0.06) ** 2)),
}
WRONG = [*MAPS][1:]
HEADS = ("over", "under", "shift", "wavy", "local")
S = cal.significance
TESTS: dict[str, Callable[[np.ndarray, np.ndarray, int], float]] = {
    "Hosmer–Lemeshow, new": lambda y, p, seed: S.hosmer_lemeshow_test(y, p, df="external").pvalue,
    "Hosmer–Lemeshow, fit": lambda y, p, seed: S.hosmer_lemeshow_test(y, p, df="fit").pvalue,
    "Spiegelhalter": lambda y, p, seed: S.spiegelhalter_test(y, p).pvalue,
    "Cox": lambda y, p, seed: S.cox_test(y, p).pvalue,
    "cumulative, KS": lambda y, p, seed: S.cumulative_test(y, p, statistic="ks").pvalue,
    "cumulative, Kuiper": lambda y, p, seed: S.cumulative_test(y, p).pvalue,
    "default": lambda y, p, seed: cal.calibration_test(y, p, n_resamples=DRAWS, random_state=seed).pvalue,
    "15 bins": lambda y, p, seed: (
        cal.calibration_test(y, p, estimator=cal.Binned(15), n_resamples=DRAWS, random_state=seed).pvalue
    ),
    "kernel": lambda y, p, seed: S.kernel_test(y, p, n_resamples=DRAWS, random_state=seed).pvalue,
    "kernel, blocks": lambda y, p, seed: S.kernel_test(y, p, algorithm="asymptotic", random_state=seed).pvalue,
    "adaptive": lambda y, p, seed: S.adaptive_test(y, p, n_resamples=DRAWS, random_state=seed).pvalue,
    "e-value, sequential": lambda y, p, seed: S.evalue_test(y, p, random_state=seed).pvalue,
    "e-value, split": lambda y, p, seed: S.evalue_test(y, p, algorithm="split", random_state=seed).pvalue,
}
#: Standard errors by which a test is said to reject too often: with this many tests, two are often exceeded.
ERRORS = 3


@cache
def scaled(name: str) -> Map:
    """The map whose gaps are multiplied until their mean size is ERROR."""
    gap = MAPS[name](GRID) - GRID
    if name == "calibrated":
        return MAPS[name]

    def too_large(factor: float) -> float:
        return float(np.abs(np.clip(GRID + factor * gap, 0, 1) - GRID).mean()) - ERROR

    factor = brentq(too_large, 0, 50)
    return lambda s: np.clip(s + factor * (MAPS[name](s) - s), 0, 1)


def sample(model: str, n: int, seed: int) -> dict[str, float]:
    """Which tests reject."""
    rng = np.random.default_rng([seed, [*MAPS].index(model), n])
    p = rng.random(n)
    y = (rng.random(n) < scaled(model)(p)).astype(int)
    return {test: float(run(y, p, seed) <= ALPHA) for test, run in TESTS.items()}


def _wrong(kept: Kept, test: str, n: int) -> np.ndarray:
    """Samples of all maps that are not the identity."""
    return np.concatenate([kept.where(model=model, n=n)[test] for model in WRONG])


def answer(kept: Kept) -> str:
    fine = kept.where(model="calibrated")
    sizes = {test: percent(fine[test]) for test in TESTS}
    above = [test for test, (value, error) in sizes.items() if value - ERRORS * error > 100 * ALPHA]
    keep = [test for test in TESTS if test not in above]
    best = {model: max((float(kept.where(model=model, n=500)[test].mean()), test) for test in keep) for model in WRONG}
    found = {test: float(np.mean([_wrong(kept, test, n).mean() for n in SIZES])) for test in keep}
    most, least = max(keep, key=found.__getitem__), min(keep, key=found.__getitem__)
    said = " and ".join(f"*{test}* ({share(fine[test])} %)" for test in above) or "no test"
    return (
        f"More than 5 % of calibrated samples (by more than three standard errors) are rejected by {said}. Among the "
        f"other tests, *{most}* rejects most miscalibrated samples over all maps and sizes ({100 * found[most]:.0f} %) "
        f"and *{least}* fewest ({100 * found[least]:.0f} %). In 500 rows, the most powerful tests by map "
        "are " + ", ".join(f"*{test}* ({model}, {100 * value:.0f} %)" for model, (value, test) in best.items()) + "."
    )


def picture(kept: Kept) -> Figure:
    fine = kept.where(model="calibrated")
    series = {"calibrated, all sizes": [percent(fine[test]) for test in TESTS]}
    series |= {f"wrong, {n:,} rows": [percent(_wrong(kept, test, n)) for test in TESTS] for n in SIZES}
    return dots([*TESTS], series, "rejected at 5 %, % of samples", 100 * ALPHA, share=True)


def page(kept: Kept) -> Iterator[str]:
    worst = max(percent(kept.where(model=model, n=500)[test])[1] for model in WRONG for test in TESTS)
    yield "The table gives the per cent of rejected samples, for calibrated scores of all sizes and for each map in 500"
    yield f"rows (standard errors up to {worst:.1f})."
    yield ""
    yield from table(("test", "calibrated", *HEADS), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for test in TESTS:
        by_map = [kept.where(model=model, n=500)[test] for model in WRONG]
        cells = [f"{100 * values.mean():.0f}" for values in by_map]
        yield [test, share(kept.where(model="calibrated")[test]), *cells]


EXPERIMENT = Experiment(__spec__.name, {"model": MAPS, "n": SIZES}, sample, answer, page, picture, repetitions=500)

if __name__ == "__main__":
    EXPERIMENT.main()
