"""Are bootstrap-corrected calibration measures of an overfitted model those of fresh rows?

    python -m benchmarks.coverage.optimism [--repetitions 100]

Logistic regressions of some features of which one matters, on 120 rows; the truth of each fitted model is measured on
20,000 fresh rows.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import calibrant as cal

from ..experiment import Experiment, title
from ..markdown import mean, share, table
from ..provenance import Kept

RESAMPLES = 50
MEASURES = ("slope", "intercept", "in_the_large", "observed_expected", "ici", "eci")


@cache
def rows(n: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, features, seed])
    X = rng.normal(size=(n, features))
    return X, (rng.random(n) < expit(X[:, 0] - 0.5)).astype(int)


def sample(n: int, features: int, seed: int) -> dict[str, float]:
    """Each measure on fresh rows, as it appears and as it is corrected; and whether its interval covers."""
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


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    slope = kept.where(features=10)
    yield (
        f"With ten features the slope appears to be {slope['slope: apparent'].mean():.2f}, is corrected to "
        f"{slope['slope: corrected'].mean():.2f}, and is {slope['slope: fresh'].mean():.2f} on fresh rows; its "
        f"interval covers that in {share(slope['slope: covered'])} % of samples."
    )
    yield ""
    head = ("rows", "features", "measure", "fresh", "apparent", "corrected", "corrected - fresh", "covered, %")
    yield from table(head, _rows(kept), texts=3)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        for name in MEASURES:
            fresh, apparent, corrected, covered = (
                some[f"{name}: {what}"] for what in ("fresh", "apparent", "corrected", "covered")
            )
            means = [f"{values.mean():.3f}" for values in (fresh, apparent, corrected)]
            off = mean(corrected - fresh, sign="+")
            yield [str(case["n"]), str(case["features"]), name, *means, off, share(covered)]


EXPERIMENT = Experiment(__spec__.name, {"n": [120], "features": [4, 10]}, sample, page, quick=1)

if __name__ == "__main__":
    EXPERIMENT.main()
