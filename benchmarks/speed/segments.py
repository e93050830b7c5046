"""`find_segments` on many rows and features: seconds, and memory beyond that of the rows.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.segments [--cases 1000000x50:split,…] [--write FILE]

Four fifths of the features are numbers, the others texts of six values; a segment with three conditions, of 3 % of the
rows and with a gap of 0.12, is planted. Each case runs once, in a process of its own; memory is the largest that the
process held, less what it held before the call.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import json
import resource
import subprocess
import sys
import time

import numpy as np

import calibrant as cal

from .. import arguments

CASES = "10000x50:simulate,100000x20:simulate,1000000x50:split,1000000x50:simulate,10000000x20:split"


def held() -> float:
    """Most memory that this process has held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(n: int, number: int, way: str) -> dict[str, float | str]:
    """One case."""
    rng = np.random.default_rng(1)
    X: dict[str, np.ndarray] = {}
    for i in range(number):
        X[f"x{i}"] = rng.choice(list("abcdef"), n) if i % 5 == 4 else rng.normal(size=n).astype(np.float32)
    p = rng.uniform(0.05, 0.85, n)
    wrong = (X["x0"] > 0.3) & (X["x1"] < 0) & (X["x4"] == "a")
    y = rng.random(n) < p + 0.12 * wrong
    cal.find_segments(y[:2000], p[:2000], {"x0": X["x0"][:2000]}, confirm="split")  # imports
    before, began = held(), time.perf_counter()
    found = cal.find_segments(y, p, X, confirm=way)
    taken = time.perf_counter() - began
    inside = [found.mask(i) for i in range(len(found.segments))]
    overlap = max((float((one & wrong).sum() / (one | wrong).sum()) for one in inside), default=0.0)
    return {"seconds": taken, "memory": held() - before, "overlap": overlap}


def main() -> None:
    made = arguments.parser(__doc__, write=True)
    made.add_argument("--cases", default=CASES, help="rows x features : way, with commas")
    made.add_argument("--one", help="a case to run in this process")
    options = made.parse_args()
    if options.one:
        size, way = options.one.split(":")
        print(json.dumps(measured(*map(int, size.split("x")), way)))
        return
    lines = [
        "# Segments: seconds and memory",
        "",
        f"Written by `python -m benchmarks.speed.segments --cases {options.cases}`:",
        "one run each, one thread. *memory*: beyond that of the rows; *overlap*: Jaccard overlap of the best segment",
        "with the planted one, 0 where none is found.",
        "",
        "| rows | features | way | seconds | memory, MB | overlap |",
        "|---:|---:|---|---:|---:|---:|",
    ]
    for case in options.cases.split(","):
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.speed.segments", "--one", case],
            check=True,
            capture_output=True,
            text=True,
        )
        one = json.loads(run.stdout)
        size, way = case.split(":")
        n, number = map(int, size.split("x"))
        lines.append(
            f"| {n:,} | {number} | {way} | {one['seconds']:.1f} | {one['memory']:,.0f} | {one['overlap']:.2f} |"
        )
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
