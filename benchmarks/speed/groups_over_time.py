"""`calibration_over_time` of 277,000 rows in 306 groups, 11 months, and `from_frame` of the same.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.groups_over_time [--before SRC] [--write FILE]

With the folder ``src`` of another commit the same rows go through that, too, and the script fails unless all statistics
and p-values are equal to 1e-9. Best of three runs.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import polars as pl

import calibrant as cal

from .. import arguments

ROWS, GROUPS, RUNS = 277_000, 306, 3
KINDS = {"a group is a day": True, "a group has rows on all days": False}


def rows(*, daily: bool) -> pl.DataFrame:
    """Rows whose outcomes are more or less frequent than predicted, group by group."""
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(GROUPS, size=ROWS))
    p, group = rng.beta(2, 6, ROWS), day if daily else rng.integers(GROUPS, size=ROWS)
    odds = np.log(p / (1 - p)) + rng.normal(0, 0.3, GROUPS)[group]
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    date = (np.datetime64("2026-01-01") + day.astype("m8[D]")).astype("M8[us]")
    return pl.DataFrame({"y": y, "p": p, "day": date, "group": group})


def numbers(found: Any) -> list[float]:
    """All statistics and p-values."""
    tests = [found.change_test, found.trend_test, found.period_test]
    each = [(one.gap, *one.gap_interval, one.error, *one.error_interval, one.pvalue) for one in found.periods]
    return [v for one in [*((test.statistic, test.pvalue) for test in tests), *each] for v in one]


def of_rows(table: pl.DataFrame) -> Any:
    """From arrays."""
    y, p, day, group = (table[name].to_numpy() for name in ("y", "p", "day", "group"))
    return cal.calibration_over_time(y, p, day, every="month", groups=group)


def of_frame(table: pl.DataFrame) -> Any:
    """From a lazy frame of Polars."""
    sums: Any = cal.from_frame(table.lazy(), label="y", prob="p", time="day", every="month", groups="group")
    return sums.over_time()


def best(call: Any, table: pl.DataFrame) -> tuple[float, list[float]]:
    """Seconds of the best run, and what was found."""
    took, found = [], None
    for _ in range(RUNS):
        began = time.perf_counter()
        found = call(table)
        took.append(time.perf_counter() - began)
    return min(took), numbers(found)


def main() -> None:
    made = arguments.parser(__doc__, write=True)
    made.add_argument("--before", default="", help="Folder src of another commit.")
    made.add_argument("--json", action="store_true", help="Print times and numbers of arrays for another process.")
    options = made.parse_args()
    found = {name: best(of_rows, rows(daily=daily)) for name, daily in KINDS.items()}
    if options.json:
        print(json.dumps(found))
        return
    before: dict[str, Any] = {}
    if options.before:
        call = [sys.executable, "-m", "benchmarks.speed.groups_over_time", "--json"]
        ran = subprocess.run(call, env={**os.environ, "PYTHONPATH": options.before}, stdout=subprocess.PIPE, check=True)
        before = json.loads(ran.stdout)
    lines = [
        f"# Calibration over time of {ROWS:,} rows in {GROUPS} groups",
        "",
        "Written by `python -m benchmarks.speed.groups_over_time --before SRC`, SRC being the package before signs of",
        f"groups were drawn for their sums (commit ac9d080e): best of {RUNS} runs, one thread. Statistics and p-values",
        "of rows are equal to 1e-9. The machine had other work to do.",
        "",
        "| rows | seconds, rows one by one | seconds now | `from_frame` (lazy Polars), seconds |",
        "|---|---:|---:|---:|",
    ]
    for name, daily in KINDS.items():
        took, values = found[name]
        if before:
            np.testing.assert_allclose(values, before[name][1], rtol=1e-9, atol=1e-9)
        frame, _ = best(of_frame, rows(daily=daily))
        earlier = f"{before[name][0]:.1f}" if before else ""
        lines.append(f"| {name} | {earlier} | {took:.1f} | {frame:.1f} |")
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
