"""Does the belt's test keep its level on the rows that a logistic regression was fitted to?

    python -m benchmarks.coverage.belt_internal [--repetitions 800]

An unpenalised logistic regression is fitted to the rows that `calibration_belt(…, devel=…)` then tests. Features are
normal and independent. The true log-odds are linear in them (*logistic*), or curved by the square of their sum
(*bent*). `devel="external"` is for rows unseen by the model, and counts intercept and slope as free.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept
from .aims import told

FEATURES, SIZES, ALPHA = (1, 3, 10), (200, 500, 2000), 5
TRUTHS = {"logistic": 0.0, "bent": -0.15}
KINDS = ("internal", "external")


def sample(features: int, truth: str, n: int, seed: int) -> dict[str, float]:
    """Whether each test rejects."""
    rng = np.random.default_rng([seed, features, [*TRUTHS].index(truth), n])
    x = rng.standard_normal((n, features))
    line = 1.3 * x.sum(axis=1) / np.sqrt(features)
    y = (rng.random(n) < expit(-0.4 + line + TRUTHS[truth] * line**2)).astype(int)
    p = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8).fit(x, y).predict_proba(x)[:, 1]
    return {
        kind: float(cal.significance.calibration_belt(y, p, levels=0.8, n_points=2, devel=kind).pvalue <= ALPHA / 100)
        for kind in KINDS
    }


def _name(case: dict[str, int | str]) -> str:
    return f"{case['truth']}, {case['features']} feature{'s' * (case['features'] != 1)}, {case['n']:,} rows"


def answer(kept: Kept) -> str:
    calm, bent = kept.where(truth="logistic"), kept.where(truth="bent")
    every = [case for case in EXPERIMENT.every() if case["truth"] == "logistic"]
    cells = {_name(case): percent(kept.where(**case)["internal"]) for case in every}
    return (
        f'With `devel="internal"`, the test at {ALPHA} % rejects {share(calm["internal"])} % of logistic samples. The '
        f"rate exceeds {ALPHA} % by two standard errors in {told(cells, ALPHA, above=True)}. "
        f'With `devel="external"` it rejects {share(calm["external"])} %. It rejects {share(bent["internal"])} % '
        f"(internal) and {share(bent['external'])} % (external) of bent samples."
    )


def picture(kept: Kept) -> Figure:
    every = sorted(EXPERIMENT.every(), key=lambda case: -TRUTHS[case["truth"]])
    series = {kind: [percent(kept.where(**case)[kind]) for case in every] for kind in KINDS}
    return dots([_name(case) for case in every], series, "rejected, % of samples", ALPHA, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield f"The table gives rejections at {ALPHA} % in per cent, by number of rows: first internal, then external."
    yield ""
    yield from table(("truth, features", *(f"{n:,}" for _ in KINDS for n in SIZES)), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for truth in TRUTHS:
        for features in FEATURES:
            parts = [kept.where(truth=truth, features=features, n=n) for n in SIZES]
            yield [f"{truth}, {features}", *(f"{100 * part[kind].mean():.1f}" for kind in KINDS for part in parts)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"features": FEATURES, "truth": TRUTHS, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=800,
)

if __name__ == "__main__":
    EXPERIMENT.main()
