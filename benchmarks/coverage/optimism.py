"""Are bootstrap-corrected calibration measures of an overfitted model those of fresh rows?

    python -m benchmarks.coverage.optimism [--repetitions 100]

Logistic regressions are fitted to 120 rows with one relevant feature. The truth of each is measured on 20,000 fresh
rows.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, share, table
from ..provenance import Kept

RESAMPLES = 50
MEASURES = ("slope", "intercept", "in_the_large", "observed_expected", "ici", "eci")


@cache
def rows(n: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, features, seed])
    X = rng.normal(size=(n, features))
    return X, (rng.random(n) < expit(X[:, 0] - 0.5)).astype(int)


def sample(n: int, features: int, seed: int) -> dict[str, float]:
    """Each measure on fresh rows, on the training rows and after correction, and whether its interval covers."""
    X, y = rows(n, features, seed)
    fresh, outcomes = rows(20_000, features, 10**6)
    model = LogisticRegression(C=100.0)
    corrected = cal.decisions.optimism_corrected(model, X, y, n_resamples=RESAMPLES)
    truth = cal.calibration_measures(outcomes, model.fit(X, y).predict_proba(fresh)[:, 1], level=None)
    out = {}
    for name in MEASURES:
        low, high = corrected.intervals.get(name, (np.nan, np.nan))
        true = getattr(truth, name)
        out |= {f"{name}: fresh": true, f"{name}: apparent": corrected.apparent[name]}
        out |= {f"{name}: corrected": corrected.corrected[name]}
        out[f"{name}: covered"] = float(low <= true <= high) if low == low else np.nan
    return out


def answer(kept: Kept) -> str:
    slope = kept.where(features=10)
    fresh, apparent, corrected = (slope[f"slope: {what}"].mean() for what in ("fresh", "apparent", "corrected"))
    return (
        f"With ten features, the slope is {apparent:.2f} on training rows (*apparent*), {corrected:.2f} "
        f"after correction and {fresh:.2f} on fresh rows. The corrected slope's interval covers the fresh one in "
        f"{share(slope['slope: covered'])} % of samples."
    )


def picture(kept: Kept) -> Figure:
    parts = {f"{name}, {n} features": (name, kept.where(features=n)) for n in (4, 10) for name in MEASURES}
    series = {
        what: [estimate(some[f"{name}: {what}"] - some[f"{name}: fresh"]) for name, some in parts.values()]
        for what in ("apparent", "corrected")
    }
    return dots([*parts], series, "difference from the measure of fresh rows", 0.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives means, and the per cent of intervals covering the fresh measure."
    yield ""
    yield from table(("features", "measure", "apparent", "corrected", "fresh", "covered"), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        for name in MEASURES:
            means = [f"{some[f'{name}: {what}'].mean():.3f}" for what in ("apparent", "corrected", "fresh")]
            yield [str(case["features"]), name, *means, share(some[f"{name}: covered"])]


EXPERIMENT = Experiment(__spec__.name, {"n": [120], "features": [4, 10]}, sample, answer, page, picture, quick=1)

if __name__ == "__main__":
    EXPERIMENT.main()
