"""Time of one row: a lone `update(y, p)` of the monitor, with and without a time, and of an awaited label.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.lone_update [--rounds 15]

The best of some rounds of 2,000 updates each, in microseconds a row, for a calm stream of uniform scores. River's
ADWIN answers another question, and is there for scale.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable
from datetime import datetime, timedelta
from importlib.util import find_spec
from time import perf_counter

import numpy as np

import calibrant as cal

from .. import arguments

ROWS = 2_000


def uses(seed: int) -> dict[str, Callable[[], None]]:
    """Each way to give the rows one by one, to monitors that have seen as many before."""
    rng = np.random.default_rng(seed)
    p = rng.random(ROWS)
    y = (rng.random(ROWS) < p).astype(int)
    rows = list(zip(y.tolist(), p.tolist(), strict=True))
    start = datetime(2026, 1, 1)
    times = [start + timedelta(minutes=i) for i in range(ROWS)]
    plain, timed, awaited = cal.CalibrationMonitor(), cal.CalibrationMonitor(), cal.CalibrationMonitor()

    def one_by_one() -> None:
        for a, b in rows:
            plain.update(a, b)

    def with_times() -> None:
        for (a, b), when in zip(rows, times, strict=True):
            timed.update(a, b, time=when)

    def with_late_labels() -> None:
        for i, (a, b) in enumerate(rows):
            awaited.expect(i, b)
            awaited.observe(i, a)

    found = {"update": one_by_one, "update with a time": with_times, "expect and observe": with_late_labels}
    if find_spec("river"):
        from river.drift import ADWIN

        adwin = ADWIN()

        def of_adwin() -> None:
            for a, b in rows:
                adwin.update(a - b)

        found["river's ADWIN"] = of_adwin
    return found


def main() -> None:
    options = arguments.parser(__doc__, rounds=15).parse_args()
    best: dict[str, float] = {}
    for seed in range(options.rounds):
        for name, use in uses(seed).items():
            begin = perf_counter()
            use()
            best[name] = min(best.get(name, np.inf), (perf_counter() - begin) / ROWS)
    arguments.finish(type("Options", (), {"write": None})(), [f"{1e6 * v:6.1f} µs  {name}" for name, v in best.items()])


if __name__ == "__main__":
    main()
