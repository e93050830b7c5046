"""How long does calibration over time take compared with one pass over the rows?

    OMP_NUM_THREADS=1 python -m benchmarks.speed.over_time [--repetitions 7] [--only TEXT]

CPU time is that of `calibration_over_time` (*arrays*) or of `from_frame(…).over_time()` on a lazy Polars frame
(*frame*), month by month. A *pass* is `Accumulator().update` on the same rows. Gaps of all months must be those of
plain sums to 1e-9. 277,000 rows have 306 *groups*, each on one day or on all days; 12,000 rows have 1,000 *classes*.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept

#: A pass is timed for this long or longer.
BLOCK_SECONDS = 0.05
GROUPS, CLASSES = 306, 1000


@dataclass(frozen=True)
class Rows:
    """Labels, scores and days, with groups or without."""

    y: np.ndarray
    p: np.ndarray
    day: np.ndarray
    groups: np.ndarray | None = None

    @property
    def month(self) -> np.ndarray:
        month = self.day.astype("M8[M]").astype(np.int64)
        return month - month.min()

    def frame(self) -> pl.LazyFrame:
        columns = {"y": self.y, "p": self.p, "day": self.day.astype("M8[us]")}
        return pl.DataFrame(columns if self.groups is None else {**columns, "groups": self.groups}).lazy()


def plain(n: int) -> Rows:
    """Calibrated rows of five years."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int64)
    return Rows(y, p, np.datetime64("2021-01-01") + (np.arange(n) * 1826 // n).astype("m8[D]"))


def grouped(n: int, *, daily: bool) -> Rows:
    """Rows of 306 days whose outcomes are more or less frequent than predicted, group by group."""
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(GROUPS, size=n))
    p, group = rng.beta(2, 6, n), day if daily else rng.integers(GROUPS, size=n)
    odds = np.log(p / (1 - p)) + rng.normal(0, 0.3, GROUPS)[group]
    y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    return Rows(y, p, np.datetime64("2026-01-01") + day.astype("m8[D]"), group)


def of_classes(n: int) -> Rows:
    """Calibrated rows of a year."""
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.full(CLASSES, 0.1), n)
    y = (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return Rows(y, q, np.datetime64("2025-01-01") + (np.arange(n) * 365 // n).astype("m8[D]"))


#: How many rows, and what makes them.
ROWS: dict[str, tuple[int, Callable[[int], Rows]]] = {
    "10⁷ in 60 months": (10**7, plain),
    "10⁵ in 60 months": (10**5, plain),
    "groups of a day": (277_000, lambda n: grouped(n, daily=True)),
    "groups on all days": (277_000, lambda n: grouped(n, daily=False)),
    "classes": (12_000, of_classes),
    "classes, 5 bins": (12_000, of_classes),
}


@lru_cache(maxsize=1)
def made(rows: str) -> Rows:
    number, make = ROWS[rows]
    return make(number)


def found(given: Rows, rows: str, way: str) -> Any:
    """What is found."""
    if way == "frame":
        names = {"label": "y", "prob": "p", "time": "day", "groups": None if given.groups is None else "groups"}
        sums: Any = cal.from_frame(given.frame(), every="month", **names)
        return sums.over_time()
    options: dict[str, Any] = {} if given.groups is None else {"groups": given.groups}
    if given.p.ndim > 1:
        estimator: Any = cal.Binned(5) if "bins" in rows else "auto"
        options = {"notion": "classwise", "labels": range(CLASSES), "estimator": estimator}
    return cal.calibration_over_time(given.y, given.p, given.day, every="month", **options)


def one_pass(given: Rows) -> Any:
    options: Any = {"notion": "classwise", "labels": range(CLASSES)} if given.p.ndim > 1 else {}
    return cal.Accumulator(**options).update(given.y, given.p)


def check(result: Any, given: Rows) -> float:
    """The mean absolute gap of all months, each of which must be that of plain sums."""
    each = [given.y - given.p] if given.p.ndim == 1 else [(given.y == k) - given.p[:, k] for k in range(CLASSES)]
    gaps = np.array([np.bincount(given.month, r) for r in each]) / np.bincount(given.month)
    courses = [result] if given.p.ndim == 1 else result.courses
    np.testing.assert_allclose([[period.gap for period in one.periods] for one in courses], gaps, rtol=0, atol=1e-9)
    return float(np.abs(gaps).mean())


def seconds(call: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    start = process_time()
    result = call(*given)
    return process_time() - start, result


@lru_cache
def warm(rows: str, way: str) -> None:
    """What a first call imports is not timed."""
    few = ROWS[rows][1](2_000)
    one_pass(few)
    if few.p.ndim == 1:
        found(few, rows, way)


def sample(rows: str, way: str, seed: int) -> dict[str, float]:
    """CPU seconds of a call and of a pass, the mean absolute gap, and the p-value of a change."""
    warm(rows, way)
    given = made(rows)
    took, result = seconds(found, given, rows, way)
    number = max(1, round(BLOCK_SECONDS / seconds(one_pass, given)[0]))
    passed = float(np.mean([seconds(one_pass, given)[0] for _ in range(number)]))
    value = check(result, given)
    return {"seconds": took, "pass": passed, "value": value, "pvalue": float(result.change_test.pvalue)}


def middle(kept: Kept, rows: str, way: str) -> tuple[float, float]:
    """Medians of CPU seconds and passes."""
    some = kept.where(rows=rows, way=way)
    return float(np.median(some["seconds"])), float(np.median(some["seconds"] / some["pass"]))


def answer(kept: Kept) -> str:
    large, frame = (middle(kept, "10⁷ in 60 months", way)[1] for way in ("arrays", "frame"))
    groups = [middle(kept, rows, way)[0] for rows in ROWS if "groups" in rows for way in ("arrays", "frame")]
    classes, bins = (middle(kept, rows, "arrays")[0] for rows in ("classes", "classes, 5 bins"))
    return (
        f"10⁷ rows in 60 months take as long as {large:.1f} passes as arrays, and {frame:.1f} as a lazy frame. Rows in "
        f"groups take {min(groups):.1f} to {max(groups):.1f} s. Each class and month takes "
        f"{1e3 * classes / CLASSES / 12:.1f} ms with the default estimator and {1e3 * bins / CLASSES / 12:.1f} ms with "
        "5 bins."
    )


def cases(kept: Kept) -> Iterator[tuple[str, str]]:
    yield from dict.fromkeys(zip(kept.columns["rows"], kept.columns["way"], strict=True))


def page(kept: Kept) -> Iterator[str]:
    rows = []
    for case in cases(kept):
        took, passes = middle(kept, *case)
        rows.append((*case, f"{took:.3g}", f"{passes:,.1f}"))
    yield from table(("rows", "way", "CPU s", "passes"), rows, texts=2)


def picture(kept: Kept) -> Figure:
    """Passes of each case."""
    pairs = [(middle(kept, *case)[1], float("nan")) for case in cases(kept)]
    return dots([f"{rows}, {way}" for rows, way in cases(kept)], {"": pairs}, "passes", log=True)


EXPERIMENT = Experiment(
    module=__spec__.name,
    cases={"rows": [*ROWS], "way": ["arrays", "frame"]},
    some=lambda rows, way: way == "arrays" or "classes" not in rows,
    here=lambda rows, way: rows == "10⁵ in 60 months",
    sample=sample,
    answer=answer,
    page=page,
    picture=picture,
    repetitions=7,
    portion=lambda rows, way: 1 / 7 if "classes" in rows else 3 / 7 if "groups" in rows else 1.0,
    quick=2,
    timed=("seconds", "pass"),
    packages=("polars",),
)

if __name__ == "__main__":
    EXPERIMENT.main()
