"""`calibrant.censoring_weights` beside scikit-survival, on its data and on drawn rows: the largest differences.

    python -m benchmarks.censoring [--repetitions 200] [--write FILE]

Needs `pip install scikit-survival==0.28.0`. Weights are compared with those of `CensoringDistributionEstimator`, Brier
scores with `sksurv.metrics.brier_score`, which divides by the number of rows where `calibrant.brier_score` divides by
the sum of weights: the mean weight is between them. The censoring distribution is that of all rows, and that of the
first half (`reference`), judged on the second. Drawn rows have times that are whole numbers of few values, so that
events and censorings are tied, or times without ties. Last come the numbers that `tests/measure/test_censoring.py` has
copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import sksurv
from sksurv import datasets
from sksurv.metrics import brier_score
from sksurv.nonparametric import CensoringDistributionEstimator
from sksurv.util import Surv

import calibrant as cal

from . import arguments

SEED, ROWS = 0, 200
#: Follow-up with ties of events and censorings.
TIED = {"time": [2, 3, 3, 3, 5, 6, 6, 8, 8, 9, 11, 12], "event": [1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0]}
LOADERS = ("gbsg2", "veterans_lung_cancer", "whas500", "aids", "flchain")


def theirs(train: Any, test: Any, risk: np.ndarray, horizon: float) -> tuple[np.ndarray, float]:
    """Weights and Brier score of scikit-survival."""
    event, time = (test[name] for name in test.dtype.names)
    fitted = CensoringDistributionEstimator().fit(train)
    case, late = event & (time <= horizon), time > horizon
    weight = np.zeros(len(test))
    weight[case] = 1 / fitted.predict_proba(time[case])
    weight[late] = 1 / fitted.predict_proba(np.array([horizon]))
    return weight, float(brier_score(train, test, 1 - risk, horizon)[1][0])


def differences(train: Any, test: Any, risk: np.ndarray, horizon: float, *, own: bool) -> tuple[float, float, float]:
    """Largest difference of a weight, that of the Brier score, and the mean weight."""
    event, time = (test[name] for name in test.dtype.names)
    other = None if own else tuple(train[name] for name in train.dtype.names[::-1])
    found = cal.censoring_weights(time, event, horizon, reference=other)
    weight, score = theirs(train, test, risk, horizon)
    mean = found.sample_weight.mean()
    ours = cal.brier_score(found.y_true, risk, sample_weight=found.sample_weight, scale="half") * mean
    return float(np.abs(found.sample_weight - weight).max()), abs(ours - score), float(mean)


def shipped() -> Iterator[tuple[str, Any]]:
    """Follow-up of the data sets that scikit-survival ships."""
    for name in LOADERS:
        yield name, getattr(datasets, f"load_{name}")()[1]


def drawn(rng: np.random.Generator, *, ties: bool) -> Any:
    """Follow-up of drawn rows."""
    event, censored = rng.weibull(1.5, ROWS) * 6, rng.exponential(10, ROWS)
    if ties:
        event, censored = np.ceil(event), np.ceil(censored)
    return Surv.from_arrays(event <= censored, np.minimum(event, censored))


def both(y: Any, rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """Differences at three horizons, with the rows' own censoring and with that of the first half."""
    times, half = y[y.dtype.names[1]], len(y) // 2
    later = y[half:][times[half:] <= times[:half].max()]  # theirs needs the censoring distribution at all times
    found = []
    for train, test in ((y, y), (y[:half], later)):
        risk = rng.random(len(test))
        for share in (0.25, 0.5, 0.75):
            horizon = share * float(test[y.dtype.names[1]].max())
            found.append(differences(train, test, risk, horizon, own=train is test))
    return found


def lines(repetitions: int) -> Iterator[str]:
    yield "# Censoring weights beside scikit-survival\n"
    yield f"Written by `benchmarks/censoring.py` with scikit-survival {sksurv.__version__}, seed {SEED}.\n"
    yield "| rows | comparisons | largest difference of a weight | of a Brier score | mean weight |"
    yield "|---|--:|--:|--:|--:|"
    rng = np.random.default_rng(SEED)
    cases = {name: [y] for name, y in shipped()}
    for name, ties in (("drawn, whole times", True), ("drawn, no ties", False)):
        cases[name] = [drawn(rng, ties=ties) for _ in range(repetitions)]
    for name, samples in cases.items():
        found = np.array([values for y in samples for values in both(y, rng)])
        weight, score, _ = found.max(axis=0)
        low, high = found[:, 2].min(), found[:, 2].max()
        yield f"| {name} | {len(found)} | {weight:.1e} | {score:.1e} | {low:.4f} to {high:.4f} |"
    y = Surv.from_arrays(np.array(TIED["event"], bool), np.array(TIED["time"], float))
    risk = np.linspace(0.05, 0.95, len(y))
    yield "\nNumbers of scikit-survival for twelve rows with ties, which a test has copied:\n"
    yield f"- times {TIED['time']}, events {TIED['event']}, risks from 0.05 to 0.95 in equal steps"
    for horizon in (3.0, 7.0, 8.0):
        weights, score = theirs(y, y, risk, horizon)
        yield f"- horizon {horizon:g}: weights {[float(f'{w:.12g}') for w in weights]}, Brier score {score:.12g}"


def main() -> None:
    options = arguments.parser(__doc__, repetitions=200, write=True).parse_args()
    arguments.finish(options, lines(options.repetitions))


if __name__ == "__main__":
    main()
