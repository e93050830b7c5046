"""`calibration_over_time` of many rows in 60 months, beside one pass of an `Accumulator` and beside `from_frame`.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.over_time [--rows 10000000] [--write FILE]

Medians of three runs. All three must give the same gaps for every month, or the script fails.
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


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Median of three runs, and what came out."""
    runs = []
    for _ in range(3):
        began = time.perf_counter()
        found = call()
        runs.append(time.perf_counter() - began)
    return sorted(runs)[1], found


def main() -> None:
    made = arguments.parser(__doc__, write=True)
    made.add_argument("--rows", type=int, default=10_000_000)
    options = made.parse_args()
    n = options.rows
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int64)
    day = np.datetime64("2021-01-01") + np.arange(n) * 1826 // n
    frame = pl.DataFrame({"y": y, "p": p, "day": day.astype("M8[ms]")}).lazy()
    one, _ = seconds(lambda: cal.Accumulator().update(y, p))
    rows, found = seconds(lambda: cal.calibration_over_time(y, p, day, every="month"))
    sums, again = seconds(
        lambda: cal.from_frame(frame, label="y", prob="p", time="day", every="month").over_time()  # type: ignore[union-attr]
    )
    month = day.astype("M8[M]").astype(np.int64)
    month -= month[0]
    gaps = np.bincount(month, y - p) / np.bincount(month)
    for result in (found, again):
        np.testing.assert_allclose([period.gap for period in result.periods], gaps, atol=1e-9)
    lines = [
        f"# Calibration over time of {n:,} rows in {len(found.periods)} months",
        "",
        f"Written by `python -m benchmarks.speed.over_time --rows {n}`: medians of three runs, one thread (an engine",
        "has its own).",
        "",
        "| call | seconds | times one pass |",
        "|---|---:|---:|",
        f"| `Accumulator().update(y, p)`: one pass | {one:.2f} | 1 |",
        f'| `calibration_over_time(y, p, day, every="month")` | {rows:.2f} | {rows / one:.1f} |',
        f'| `from_frame(lazy Polars, time=…, every="month").over_time()` | {sums:.2f} | {sums / one:.1f} |',
    ]
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
