"""Do `calibrant.censoring_weights` and the weighted Brier score agree with scikit-survival?

    python -m benchmarks.censoring [--repetitions 200]

Needs `pip install scikit-survival==0.28.0`. Weights are compared with those of `CensoringDistributionEstimator`, and
Brier scores with `sksurv.metrics.brier_score`. The latter divides by the number of rows and `calibrant.brier_score` by
the sum of weights, so ours are multiplied by the mean weight. Horizons are a quarter, a half and three quarters of the
longest time. The censoring distribution comes from all rows, or from the first half (`reference`) and is applied to the
second. Risks are uniform. Rows are those of scikit-survival's data sets, or 200 drawn ones with Weibull events and
exponential censoring. Drawn times have no ties, or are rounded up to whole numbers, so that events and censorings are
tied. Scikit-survival's numbers for *twelve rows* are in the data file and in `tests/measure/test_censoring.py`.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from typing import Any

import numpy as np

import calibrant as cal

from .experiment import Experiment
from .markdown import table
from .provenance import Kept

SEED, ROWS = 0, 200
#: Follow-up with ties of events and censorings.
TIED = {"time": [2, 3, 3, 3, 5, 6, 6, 8, 8, 9, 11, 12], "event": [1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0]}
LOADERS = ("gbsg2", "veterans_lung_cancer", "whas500", "aids", "flchain")
DRAWN, TWELVE, HORIZONS = ("drawn, whole times", "drawn, no ties"), "twelve rows", (3.0, 7.0, 8.0)
#: Difference that is rounding.
EQUAL = 1e-12


def theirs(train: Any, test: Any, risk: np.ndarray, horizon: float) -> tuple[np.ndarray, float]:
    """Weights and Brier score of scikit-survival."""
    from sksurv.metrics import brier_score
    from sksurv.nonparametric import CensoringDistributionEstimator

    event, time = (test[name] for name in test.dtype.names)
    fitted = CensoringDistributionEstimator().fit(train)
    case, late = event & (time <= horizon), time > horizon
    weight = np.zeros(len(test))
    weight[case] = 1 / fitted.predict_proba(time[case])
    weight[late] = 1 / fitted.predict_proba(np.array([horizon]))
    return weight, float(brier_score(train, test, 1 - risk, horizon)[1][0])


def differences(train: Any, test: Any, risk: np.ndarray, horizon: float) -> dict[str, Any]:
    """Largest difference of a weight, that of the Brier score, the mean weight, and scikit-survival's numbers."""
    event, time = (test[name] for name in test.dtype.names)
    other = None if train is test else tuple(train[name] for name in train.dtype.names[::-1])
    found = cal.censoring_weights(time, event, horizon, reference=other)
    weight, score = theirs(train, test, risk, horizon)
    mean = found.sample_weight.mean()
    ours = cal.brier_score(found.y_true, risk, sample_weight=found.sample_weight, scale="half") * mean
    return {
        "weight": float(np.abs(found.sample_weight - weight).max()),
        "score": float(abs(ours - score)),
        "mean weight": float(mean),
        "theirs": (weight, score),
    }


def follow_up(rows: str, rng: np.random.Generator) -> Any:
    """Times and events, as scikit-survival has them."""
    from sksurv import datasets
    from sksurv.util import Surv

    if rows in LOADERS:
        return getattr(datasets, f"load_{rows}")()[1]
    if rows == TWELVE:
        return Surv.from_arrays(np.array(TIED["event"], bool), np.array(TIED["time"], float))
    event, censored = rng.weibull(1.5, ROWS) * 6, rng.exponential(10, ROWS)
    if rows == DRAWN[0]:
        event, censored = np.ceil(event), np.ceil(censored)
    return Surv.from_arrays(event <= censored, np.minimum(event, censored))


def sample(rows: str, seed: int) -> dict[str, list[float]]:
    """Differences at three horizons, with the rows' own censoring and with that of the first half."""
    rng = np.random.default_rng([SEED, seed, [*LOADERS, *DRAWN, TWELVE].index(rows)])
    y = follow_up(rows, rng)
    if rows == TWELVE:
        risk = np.linspace(0.05, 0.95, len(y))
        found = [differences(y, y, risk, horizon) for horizon in HORIZONS]
        more = {f"their weight {i + 1}": [float(one["theirs"][0][i]) for one in found] for i in range(len(y))}
        more |= {"their score": [one["theirs"][1] for one in found], "horizon": [*HORIZONS]}
        return {name: [one[name] for one in found] for name in ("weight", "score", "mean weight")} | more
    times, half = y[y.dtype.names[1]], len(y) // 2
    later = y[half:][times[half:] <= times[:half].max()]  # theirs needs the censoring distribution at all times
    found = []
    for train, test in ((y, y), (y[:half], later)):
        risk = rng.random(len(test))
        longest = float(test[y.dtype.names[1]].max())
        found += [differences(train, test, risk, share * longest) for share in (0.25, 0.5, 0.75)]
    return {name: [one[name] for one in found] for name in ("weight", "score", "mean weight")}


def answer(kept: Kept) -> str:
    weight, score = kept["weight"].max(), kept["score"].max()
    same = "agree" if max(weight, score) < EQUAL else "do not agree everywhere"
    return (
        f"Both {same}: in {len(kept):,} comparisons the largest difference is {_shown(weight)} for weights and "
        f"{_shown(score)} for Brier scores."
    )


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the largest differences of weights and Brier scores, and the range of mean weights."
    yield ""
    yield from table(("rows", "comparisons", "of a weight", "of a score", "mean weight"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for rows in (*LOADERS, *DRAWN, TWELVE):
        some = kept.where(rows=rows)
        mean = some["mean weight"]
        yield [
            rows,
            f"{len(some):,}",
            _shown(some["weight"].max()),
            _shown(some["score"].max()),
            f"{mean.min():.4f} to {mean.max():.4f}",
        ]


def _shown(gap: float) -> str:
    return f"{gap:.1e}" if gap else "0"


EXPERIMENT = Experiment(
    __spec__.name,
    {"rows": [*LOADERS, *DRAWN, TWELVE]},
    sample,
    answer,
    page,
    repetitions=200,
    portion=lambda rows: 1.0 if rows in DRAWN else 0.05 if rows in LOADERS else 0.0,
    needs=("sksurv",),
)

if __name__ == "__main__":
    EXPERIMENT.main()
