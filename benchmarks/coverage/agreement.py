"""Do the default's value and its `.corrected` agree?

    python -m benchmarks.coverage.agreement [--repetitions 100]

The value is the posterior mean under a prior of typical models, computed without draws. `.corrected` is the median of
draws under a wide prior that includes a share of exactly calibrated models. The truths are those of `local_truths`,
`near_ends` and `assumptions`. The default was not developed on them.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import zlib
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import erf

import calibrant as cal
from calibrant.benchmark.tracks import distributions
from calibrant.estimators import laplace
from calibrant.estimators.base import ErrorDraws
from calibrant.estimators.empirical_bayes import TYPICAL, expected_power, rank_cells
from calibrant.estimators.maps import FittedMaps
from calibrant.measure.posterior import credible
from calibrant.measure.question import Question

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept
from . import assumptions, local_truths, near_ends

SIZES, DRAWS, TENTH = (5000, 20_000), 800, 0.1
KINDS: dict[str, dict[str, tuple[local_truths.Scores, local_truths.Map]]] = {
    "wrong on some scores": local_truths.LOCAL,
    "wrong near 0 or 1": {k: v for k, v in near_ends.TRUTHS.items() if "calibrated" not in k},
    "wrong in other ways": {
        t.name: (lambda rng, n, t=t: t.scores(n, rng), t.chance)  # type: ignore[misc]
        for t in assumptions.TRUTHS
        if t.name != "calibrated"
    },
    "calibrated": local_truths.CALIBRATED | {k: v for k, v in near_ends.TRUTHS.items() if "calibrated" in k},
}
TRUTHS = {name: truth for kind in KINDS.values() for name, truth in kind.items()}
#: Pairs of numbers.


@cache
def error_of(name: str) -> float:
    scores, right = TRUTHS[name]
    s = scores(np.random.default_rng(zlib.crc32(name.encode())), 4_000_000)
    return float(np.abs(right(s) - s).mean())


def missed(maps: FittedMaps) -> np.ndarray:
    """What the maps of cells (R, m) miss of the outcomes in the direction of the gap, (R,)."""
    cells, weight = maps.cells, laplace.weights(maps.prior, maps.posteriors)
    n, total = cells.count.sum(axis=-1, keepdims=True), np.zeros(len(cells.count))
    for i, posterior in enumerate(maps.posteriors):
        gap, sd = laplace.gaps(cells, posterior)
        left = (cells.positive - cells.count * (cells.score + gap)) / n
        total += weight[:, i] * (left * erf(gap / sd / np.sqrt(2))).sum(axis=-1)
    return total if maps.local is None else maps.average(total, maps.local, missed(maps.local))


def sample(truth: str, rows: int, seed: int) -> dict[str, float]:
    """Interval, numbers, and the true error."""
    scores, right = TRUTHS[truth]
    rng = np.random.default_rng([seed, 47, [*TRUTHS].index(truth), SIZES.index(rows)])
    s = scores(rng, rows)
    d, estimator = distributions("imbalance")[0], cal.EmpiricalBayes()
    (problem,) = d.problems(s[None], (rng.random(s.shape) < right(s)).astype(float)[None], d.notions[0])
    sums = estimator.summarize(problem)
    drawn = estimator._draws(sums, 1, DRAWS, rng)
    question = Question("class-specific", 1.0, 0.95, (None,), (1.0,), "power", False, rows, float(rows))
    ((_, cells),) = rank_cells(sums, 1 << 14)
    value, more = expected_power(cells, TYPICAL, 1)[0], missed(FittedMaps.of(cells, TYPICAL))[0]
    read = credible(ErrorDraws(drawn.powers, drawn.log_odds, drawn.corrected), question)
    low, high = map(float, read.interval)
    return {
        "error": error_of(truth),
        "low": low,
        "high": high,
        "value": float(value),
        "corrected": float(read.median),
        "unshared": max(float(np.median(drawn.powers[0])), 0.0),
        "moved": max(float(value + more), 0.0),
    }


def answer(kept: Kept) -> str:
    apart = {kind: [100 * _apart(kept, kind, n).mean() for n in SIZES] for kind in KINDS}
    ratios = {kind: [_ratio(kept, kind, n, "corrected")[0] for n in SIZES] for kind in KINDS}
    wrong = [kind for kind in KINDS if kind != "calibrated"]
    return (
        f"The two numbers differ by more than {100 * TENTH:.0f} % of the 95 % interval's width in "
        f"{_span([v for kind in wrong for v in apart[kind]], 0)} % of samples where the model is miscalibrated, and in "
        f"{_span(apart['calibrated'], 0)} % where it is calibrated. Compared with the value, `.corrected` has "
        f"{_span([v for kind in wrong for v in ratios[kind]])} times the RMSE where the model is miscalibrated, and "
        f"{_span(ratios['calibrated'])} times the mean where it is calibrated."
    )


def _span(values: list[float], digits: int = 2) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def picture(kept: Kept) -> Figure:
    cases = [(kind, n) for kind in KINDS for n in SIZES]
    series = {"": [percent(_apart(kept, kind, n)) for kind, n in cases]}
    return dots(
        [f"{kind}, {n:,} rows" for kind, n in cases],
        series,
        "samples in which the two numbers are apart, %",
        share=True,
    )


def page(kept: Kept) -> Iterator[str]:
    yield "*Apart* is the percentage of such samples. *Ratio* is the RMSE of `.corrected` divided by that of the value,"
    yield "as a geometric mean over truths. For calibrated models, means replace RMSEs."
    yield ""
    yield from table(("truths", "rows", "apart", "ratio"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for kind in KINDS:
        for n in SIZES:
            ratio, error = _ratio(kept, kind, n, "corrected")
            yield [kind, f"{n:,}", share(_apart(kept, kind, n)), f"{ratio:.2f} ± {error:.2f}"]


def _of(kept: Kept, kind: str, n: int) -> list[Kept]:
    return [kept.where(truth=name, rows=n) for name in KINDS[kind]]


def _apart(kept: Kept, kind: str, n: int) -> np.ndarray:
    """In which samples two numbers differ by more than a tenth of the interval's width."""
    parts = _of(kept, kind, n)
    return np.concatenate([np.abs(p["value"] - p["corrected"]) > TENTH * (p["high"] - p["low"]) for p in parts]).astype(
        float
    )


def _ratio(kept: Kept, kind: str, n: int, name: str) -> tuple[float, float]:
    """RMSE over the value's, or mean where it is the error itself: geometric mean over truths, and its error."""
    logs = []
    for part in _of(kept, kind, n):
        true = part["error"]
        sizes = [
            float(np.sqrt(np.mean((part[one] - true) ** 2))) if true[0] > 1e-9 else float(part[one].mean())
            for one in (name, "value")
        ]
        logs.append(np.log(max(sizes[0], 1e-6) / sizes[1]))
    middle = float(np.exp(np.mean(logs)))
    return middle, middle * float(np.std(logs, ddof=1) / np.sqrt(len(logs)))


EXPERIMENT = Experiment(__spec__.name, {"truth": [*TRUTHS], "rows": SIZES}, sample, answer, page, picture)

if __name__ == "__main__":
    EXPERIMENT.main()
