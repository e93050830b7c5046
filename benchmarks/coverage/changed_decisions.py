"""Coverage of `report(…, threshold=…).gain.changed_interval`, the share of decisions that a repair changes.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.changed_decisions [--repetitions 30] [--write FILE]

Thresholds near the ends of the scores, where few rows tell. Nothing was chosen on these scores and maps.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

from .. import arguments

SCORES = {"Beta(2, 1)": (2.0, 1.0), "Beta(5, 0.8)": (5.0, 0.8), "Beta(0.7, 6)": (0.7, 6.0)}
THRESHOLDS = {"Beta(2, 1)": (0.9, 0.98), "Beta(5, 0.8)": (0.9, 0.98), "Beta(0.7, 6)": (0.05, 0.3)}
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "slope 0.5": lambda s: expit(0.5 * logit(s)),
    "asymmetric": lambda s: expit(0.7 * np.log(s) - 1.2 * np.log1p(-s) - 0.3),
}
SIZES = (300, 1000)
HEAD = """
# Decisions that a repair changes

Written by `python -m benchmarks.coverage.changed_decisions --repetitions REPETITIONS --write
benchmarks/coverage/changed_decisions.md`: how often the 95 % interval of `report(…, threshold=…).gain.changed` covers
the true share of decisions on the other side of the threshold once probabilities are right, in percent, with standard
errors; the true share, and the mean of the values. Where fewer rows lie on one side of a threshold than the map tells
apart, the report gives no number: *given* is the percentage of samples in which it does.
"""


def main() -> None:
    options = arguments.parser(__doc__, repetitions=30, write=True).parse_args()
    lines = [HEAD.strip().replace("REPETITIONS", str(options.repetitions)) + "\n"]
    lines += [
        "| scores | map | threshold | n | true share | mean value | given | covers |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    every = []
    for law, shape in SCORES.items():
        pool = np.random.default_rng(99).beta(*shape, 1_000_000).clip(1e-9, 1 - 1e-9)
        for name, true in MAPS.items():
            for threshold in THRESHOLDS[law]:
                truth = float(((pool >= threshold) != (true(pool) >= threshold)).mean())
                for n in SIZES:
                    found = [_found(shape, true, threshold, n, i) for i in range(options.repetitions)]
                    given = np.array([one for one in found if one is not None])
                    share = 100 * len(given) / len(found)
                    covers = [] if not len(given) else (given[:, 0] <= truth) & (truth <= given[:, 1])
                    every += list(covers)
                    cell = "" if not len(given) else f"{given[:, 2].mean():.4f}"
                    row = f"{law} | {name} | {threshold:g} | {n:,} | {truth:.4f} | {cell} | {share:.0f}"
                    lines.append(f"| {row} | {_percent(covers)} |")
                    print(lines[-1], flush=True)
    lines.append(f"\nAll intervals that were given: {_percent(every)} % of {len(every):,}.")
    arguments.finish(options, lines)


def _found(
    shape: tuple[float, float], true: Callable[[np.ndarray], np.ndarray], threshold: float, n: int, i: int
) -> tuple[float, float, float] | None:
    """Ends and value of one sample."""
    rng = np.random.default_rng([i, n])
    s = rng.beta(*shape, n).clip(1e-9, 1 - 1e-9)
    y = rng.random(n) < true(s)
    gain = cal.report(y, s, labels=[False, True], threshold=threshold, random_state=i).gain
    return None if gain.changed is None else (*gain.changed_interval, gain.changed)


def _percent(hits: object) -> str:
    share = np.asarray(hits, dtype=float)
    if not share.size:
        return ""
    least = 0.5 / share.size
    p = np.clip(share.mean(), least, 1 - least)
    return f"{100 * share.mean():.1f} ± {100 * np.sqrt(p * (1 - p) / share.size):.1f}"


if __name__ == "__main__":
    main()
