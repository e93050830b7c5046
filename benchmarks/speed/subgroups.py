"""Processor time of subgroups from rows and from a frame, which must give the same p-values.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.subgroups [--many]

A unit is ``np.sort`` of ten million doubles in the same process. ``--many`` adds 10,000 subgroups of 1,000 rows.
"""

import time

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np
import polars as pl

import calibrant as cal

from .. import arguments


def seconds(call, rounds=1):
    """Least processor time of some rounds, and what came out last."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        found = call()
        taken.append(time.process_time() - start)
    return min(taken), found


def rows(n, subgroups, rng):
    """Calibrated scores, and subgroups of equal sizes in order."""
    p = rng.random(n)
    return (rng.random(n) < p).astype(np.int8), p, np.arange(n) * subgroups // n


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--many", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    values = rng.random(10**7)
    unit, _ = seconds(lambda: np.sort(values), 3)
    y, p, by = rows(10**6, 6, rng)
    by = rng.permutation(by)
    cal.subgroup_calibration(y[:100], p[:100], by[:100], min_size=0)  # imports
    taken, _ = seconds(lambda: cal.subgroup_calibration(y, p, by), 3)
    print(f"10^6 rows, 6 subgroups: {taken / unit:.2f} units")
    y, p, by = rows(20_000, 200, rng)
    frame = pl.DataFrame({"y": y, "p": p, "by": by})
    taken, of_rows = seconds(lambda: cal.subgroup_calibration(y, p, by))
    print(f"200 subgroups of 100 rows: {taken:.2f} s")
    taken, of_frame = seconds(lambda: cal.from_frame(frame, label="y", prob="p", by="by").subgroups())
    print(f"200 subgroups of 100 rows, from a frame: {taken:.2f} s")
    each = ([subgroup.pvalue for subgroup in found.subgroups] for found in (of_rows, of_frame))
    np.testing.assert_allclose(*each, rtol=1e-9)
    if options.many:
        y, p, by = rows(10**7, 10**4, rng)
        taken, _ = seconds(lambda: cal.subgroup_calibration(y, p, by))
        print(f"10,000 subgroups of 1,000 rows: {taken:.1f} s")


if __name__ == "__main__":
    main()
