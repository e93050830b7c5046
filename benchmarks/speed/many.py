"""Cost of many problems side by side: CPU seconds, and memory beyond the input, of default calls.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.many [--only TEXT] [--scale 1]

Each row is a process of its own, and what it imports is counted. ``--scale 0.01`` takes a hundredth of the rows of
subgroups.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from .. import arguments
from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np

import calibrant as cal

ROWS = 5_000_000


def subgroups(number: int, columns: int, scale: float, *, text: bool = False) -> Callable[[], Any]:
    """Calibrated scores, split at random."""
    rng = np.random.default_rng(0)
    n = int(ROWS * scale)
    p = rng.beta(1, 3, n)
    y = (rng.random(n) < p).astype(int)
    by = {f"column {i}": rng.integers(0, number, n) for i in range(columns)}
    if text:
        by = {name: np.array([f"region {g}" for g in range(number)])[codes] for name, codes in by.items()}
    return lambda: cal.subgroup_calibration(y, p, by)


def models(number: int, notion: str) -> Callable[[], Any]:
    """Networks of 1000 classes, judged by 40 rows."""
    rng = np.random.default_rng(0)
    n, k = 40, 1000
    z = 2 * rng.standard_normal((n, k))

    def softmax(z: np.ndarray) -> np.ndarray:
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    given = {f"m{i}": softmax((0.7 + 0.2 * i) * z + 0.1 * rng.standard_normal((n, k))) for i in range(number)}
    y = (rng.random((n, 1)) > softmax(z).cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return lambda: cal.compare_models(y, given, labels=range(k), notion=notion, random_state=0)


CALLS: dict[str, Callable[[float], Callable[[], Any]]] = {
    "subgroup_calibration, 1 column of 5 subgroups": lambda scale: subgroups(5, 1, scale),
    "subgroup_calibration, 1 column of 5 named subgroups": lambda scale: subgroups(5, 1, scale, text=True),
    "subgroup_calibration, 3 columns of 5 subgroups": lambda scale: subgroups(5, 3, scale),
    "subgroup_calibration, 1 column of 200 subgroups": lambda scale: subgroups(200, 1, scale),
    "compare_models, 2 models, 40 rows of 1000 classes": lambda _: models(2, "auto"),
    "compare_models, 3 models, 40 rows of 1000 classes": lambda _: models(3, "auto"),
    "compare_models, 3 models, 40 rows of 1000 classes, classwise": lambda _: models(3, "classwise"),
}


def measured(call: Callable[[], Any]) -> dict[str, float]:
    """CPU seconds, and by how much the peak of memory in use grew (MB)."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    call()
    seconds = time.process_time() - start
    return {"seconds": seconds, "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}


def main() -> None:
    parser = arguments.parser(__doc__, only="rows")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measured(CALLS[options.row](options.scale))))
        return
    print("| call | CPU seconds | MB |\n|---|--:|--:|")
    for name in (name for name in CALLS if options.only in name):
        command = [sys.executable, "-m", "benchmarks.speed.many", "--row", name, "--scale", str(options.scale)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"| {name} | failed | {done.stderr.strip().splitlines()[-1:]} |", flush=True)
            continue
        found = json.loads(done.stdout)
        print(f"| {name} | {found['seconds']:.1f} | {found['memory']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
