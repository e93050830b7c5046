"""How far from the truth are squared calibration errors over 15 and over √n quantile bins?

    python -m benchmarks.coverage.squares [--repetitions 60]

`squared_calibration_error` uses `Binned(15, "quantile", debias="kumar")` and `Binned("sqrt", …)` on the miscalibrated
distributions of three tracks of the benchmark, for one class. *Bias* is the mean of value / truth - 1 over samples,
and *spread* is its root mean square. Standard errors are from 200 resamples of the samples.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.benchmark.tracks import TrackDistribution, distributions

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept
from .aims import shown

SIZES, TRACKS = (100, 1000, 5000), ("beta", "imbalance", "networks")
BINS = {
    "15 bins": cal.Binned(15, "quantile", debias="kumar"),
    "√n bins": cal.Binned("sqrt", "quantile", debias="kumar"),
}
NOTION, RESAMPLES = "class-specific", 200


@cache
def miscalibrated(track: str) -> list[tuple[TrackDistribution, float]]:
    """Distributions of a track, with the true square of each."""
    found = [d for d in distributions(track) if not d.calibrated and NOTION in d.notions]
    return [(d, d.truth(NOTION, 2).value ** 2) for d in found]


def sample(track: str, n: int, seed: int) -> dict[str, list[float]]:
    """Relative error of both squares, for each distribution."""
    rng = np.random.default_rng([seed, TRACKS.index(track), n])
    out: dict[str, list[float]] = {name: [] for name in BINS}
    for distribution, true in miscalibrated(track):
        scores, labels = distribution.sample(1, n, rng)
        for name, bins in BINS.items():
            found = cal.squared_calibration_error(labels[0], scores[0], pos_label=1, estimator=bins)
            out[name].append(float(found) / true - 1)
    return {"distribution": [float(i) for i in range(len(out["15 bins"]))], **out}


def _medians(kept: Kept, track: str, n: int, name: str) -> dict[str, tuple[float, float]]:
    """Bias and spread, with standard errors."""
    some = kept.where(track=track, n=n)
    errors = some[name].reshape(-1, len(set(some.columns["distribution"])))  # (samples, distributions)
    rng = np.random.default_rng(0)
    # Samples of all distributions, and resamples of them.
    rows = np.vstack([np.arange(len(errors)), rng.integers(len(errors), size=(RESAMPLES, len(errors)))])
    drawn = errors[rows]
    bias, spread = np.median(drawn.mean(axis=1), axis=1), np.median(np.sqrt((drawn**2).mean(axis=1)), axis=1)
    return {what: (one[0], one[1:].std(ddof=1)) for what, one in (("bias", bias), ("spread", spread))}


def answer(kept: Kept) -> str:
    cases = EXPERIMENT.every()
    found = [{name: _medians(kept, **case, name=name) for name in BINS} for case in cases]
    few, many = BINS
    farther = {
        what: sum(abs(one[few][what][0]) > abs(one[many][what][0]) for one in found) for what in ("bias", "spread")
    }
    every = {
        f"{case['track']}, {case['n']:,} rows, {name}": pair["spread"]
        for case, one in zip(cases, found, strict=True)
        for name, pair in one.items()
    }
    most, least = (pick(every, key=lambda name: every[name][0]) for pick in (max, min))
    return (
        f"The root mean square error (*spread*) ranges from {shown(every[least], 2)} ({least}) to "
        f"{shown(every[most], 2)} ({most}) times the truth. With 15 bins, the spread is larger than with √n "
        f"bins in {farther['spread']} of {len(cases)} cases, and the bias is farther from 0 in {farther['bias']}."
    )


def picture(kept: Kept) -> Figure:
    cases = EXPERIMENT.every()
    series = {name: [_medians(kept, **case, name=name)["spread"] for case in cases] for name in BINS}
    return dots(
        [f"{case['track']}, {case['n']:,} rows" for case in cases], series, "spread, multiples of the truth", log=True
    )


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives medians over the distributions of a track, in multiples of the truth."
    yield ""
    head = [f"{what}, {bins}" for what in ("bias", "spread") for bins in ("15", "√n")]
    yield from table(("track", "rows", *head), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        found = [_medians(kept, **case, name=name) for name in BINS]
        cells = [f"{one[what][0]:.2f}" for what in ("bias", "spread") for one in found]
        yield [case["track"], f"{case['n']:,}", *cells]


EXPERIMENT = Experiment(__spec__.name, {"track": TRACKS, "n": SIZES}, sample, answer, page, picture, repetitions=60)

if __name__ == "__main__":
    EXPERIMENT.main()
