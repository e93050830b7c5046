"""`calibration_over_time` of many rows in 60 months, beside one pass of an `Accumulator` and beside `from_frame`.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.over_time [--rows 10000000] [--write FILE]

Processor time, best of five runs, in turns: of one thread, and of all threads of the engine. All three must give the
same gaps for every month, or the script fails. Then a thousand classes in 12 months, each of them followed, once.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import calibrant as cal

from .. import arguments


def seconds(*calls: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Processor time, best of five runs of each, taken in turns; and what came out."""
    runs: list[list[float]] = [[] for _ in calls]
    found: list[Any] = [None] * len(calls)
    for _ in range(5):
        for i, call in enumerate(calls):
            began = time.process_time()
            found[i] = call()
            runs[i].append(time.process_time() - began)
    return [min(one) for one in runs], found


def classes(n: int, k: int) -> list[str]:
    """Rows of the table of classes."""
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.full(k, 0.1), n)
    y = (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    day = np.datetime64("2025-01-01") + (np.arange(n) * 365 // n).astype("m8[D]")
    lines = []
    for name, estimator in (('"auto"', "auto"), ("Binned(5)", cal.Binned(5))):
        began = time.process_time()
        options: dict[str, Any] = {"notion": "classwise", "every": "month", "labels": range(k), "estimator": estimator}
        found = cal.calibration_over_time(y, q, day, **options)
        took = time.process_time() - began
        assert {len(one.periods) for one in found.courses} == {12}
        lines.append(f"| {name} | {took:.0f} | {1000 * took / k / 12:.1f} |")
    return lines


def main() -> None:
    made = arguments.parser(__doc__, write=True)
    made.add_argument("--rows", type=int, default=10_000_000)
    made.add_argument("--classes", type=int, default=1000)
    options = made.parse_args()
    n = options.rows
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int64)
    day = np.datetime64("2021-01-01") + (np.arange(n) * 1826 // n).astype("m8[D]")
    frame = pl.DataFrame({"y": y, "p": p, "day": day.astype("M8[ms]")}).lazy()
    (one, rows, sums), (_, found, again) = seconds(
        lambda: cal.Accumulator().update(y, p),
        lambda: cal.calibration_over_time(y, p, day, every="month"),
        lambda: cal.from_frame(frame, label="y", prob="p", time="day", every="month").over_time(),  # type: ignore[union-attr]
    )
    month = day.astype("M8[M]").astype(np.int64)
    month -= month[0]
    gaps = np.bincount(month, y - p) / np.bincount(month)
    for result in (found, again):
        np.testing.assert_allclose([period.gap for period in result.periods], gaps, atol=1e-9)
    lines = [
        f"# Calibration over time of {n:,} rows in {len(found.periods)} months",
        "",
        f"Written by `python -m benchmarks.speed.over_time --rows {n}`: processor time, best of five runs,",
        "in turns: of one thread, and of all threads of the engine. The machine had other work to do.",
        "",
        "| call | seconds | times one pass |",
        "|---|---:|---:|",
        f"| `Accumulator().update(y, p)`: one pass | {one:.2f} | 1 |",
        f'| `calibration_over_time(y, p, day, every="month")` | {rows:.2f} | {rows / one:.1f} |',
        f'| `from_frame(lazy Polars, time=…, every="month").over_time()` | {sums:.2f} | {sums / one:.1f} |',
        "",
        f'{options.classes:,} classes, 12,000 rows, `calibration_over_time(y, q, day, notion="classwise", '
        'every="month")`:',
        "",
        "| estimator | seconds | milliseconds for each class and month |",
        "|---|---:|---:|",
        *classes(12_000, options.classes),
    ]
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
