"""CPU time of the default where ranges of scores are sought, beside the same default without: value, and estimate.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.ranges_cost [--rounds 9] [--write benchmarks/speed/ranges_cost.md]

The least of some calls in turns, in one process.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.estimators import ranges

from .. import arguments
from .timing import cpu_seconds

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MAPS: dict[str, Any] = {
    "calibrated": lambda s: s,
    "log odds × .8": lambda s: expit(0.8 * logit(s)),
    "s^1.2": lambda s: s**1.2,
    "waves of ±.05": lambda s: np.clip(s + 0.05 * np.sin(12 * s), 0, 1),
    "-.3 on .70-.75": lambda s: s - 0.3 * ((s > 0.7) & (s < 0.75)),
}


def main() -> None:
    options = arguments.parser(__doc__, rounds=9, write=True).parse_args()
    rng = np.random.default_rng(0)
    s = rng.random(SIZES[-1])
    lines = [
        "# What ranges of scores cost",
        "",
        f"Written by `python -m benchmarks.speed.ranges_cost --rounds {options.rounds}`: CPU milliseconds without",
        "ranges and with, and their ratio. Where scores look calibrated, nothing is sought.",
        "",
        "| truth | rows | value | with ranges | ratio | estimate | with ranges | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    rows, given = ranges._ROWS, {"labels": [False, True], "pos_label": True}
    for name, right in MAPS.items():
        y = rng.random(s.size) < right(s)
        for n in SIZES:
            least = np.full((2, 2), np.inf)  # without and with ranges; value and estimate
            for _ in range(options.rounds):
                for i, sought in enumerate((np.inf, rows)):
                    ranges._ROWS = sought
                    for j, asked in enumerate((cal.calibration_error, cal.estimate)):
                        least[i, j] = min(least[i, j], 1e3 * cpu_seconds(partial(asked, y[:n], s[:n], **given)))
            cells = (f"{least[0, j]:.1f} | {least[1, j]:.1f} | {least[1, j] / least[0, j]:.2f}" for j in range(2))
            lines.append(f"| {name} | {n:,} | " + " | ".join(cells) + " |")
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
