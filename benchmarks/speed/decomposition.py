"""CORP decomposition against model-diagnostics: CPU seconds of both, taking turns, and whether they say the same.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.decomposition [--rows 100000] [--rounds 9]

Needs `pip install model-diagnostics`.
"""

import statistics
from time import process_time

import numpy as np

import calibrant as cal

from .. import arguments


def main() -> None:
    from model_diagnostics.scoring import SquaredError, decompose

    parser = arguments.parser(__doc__, rounds=9)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    p = rng.random(options.rows)
    y = (rng.random(options.rows) < p**1.3).astype(float)
    both = {
        "ours": lambda: cal.decompose(y.astype(int), p),
        "peer": lambda: decompose(y, p, scoring_function=SquaredError()),
    }
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    found = {}
    for _ in range(options.rounds):
        for who, run in both.items():
            run()  # not timed: takes memory back that the other one gave away
            start = process_time()
            found[who] = run()
            times[who].append(process_time() - start)
    ours, peer = found["ours"], found["peer"]
    theirs = [float(peer[name][0]) for name in ("miscalibration", "discrimination", "uncertainty", "score")]
    gap = np.abs(np.array([ours.miscalibration, ours.discrimination, ours.uncertainty, ours.total]) - theirs).max()
    assert gap < 1e-12, gap
    a, b = (statistics.median(times[who]) for who in ("ours", "peer"))
    print(
        f"CORP of {options.rows:,} rows: ours {1e3 * a:.1f} ms, model-diagnostics {1e3 * b:.1f} ms, ratio {a / b:.2f}"
    )
    print(f"largest difference of a part: {gap:.1e}")


if __name__ == "__main__":
    main()
