"""Intervals of rows in groups beside those of as many independent rows as say the same.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.groups_intervals [--repetitions 100] [--write FILE]

The number of independent rows is n / d with the true design effect d of the mean residual: its variance over samples
over that of independent rows. What intervals of these miss too is not of the groups.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Callable

import numpy as np

import calibrant as cal
from calibrant.data.writing import write_text

from .. import arguments
from .groups import CASES, Rows, clusters, distorted, share

#: On these ways to make intervals were compared, with other seeds.
CHOSEN_ON: dict[str, Callable[[np.random.Generator], Rows]] = {
    "60 clusters × 10, sd 0.7": lambda rng: clusters(rng, np.full(60, 10), 0.7),
    "20 hospitals × 50, sd 0.7": lambda rng: clusters(rng, np.full(20, 50), 0.7),
}
REPORTED = {
    name: CASES[name]
    for name in ("40 events × 60 forecasts", "60 clusters × 10", "20 hospitals × 50", "21 hospitals, one with half")
}
ESTIMATORS = {
    "default": "auto",
    "Density": cal.estimators.Density(),
    "Binned(10, quantile)": cal.Binned(10, "quantile"),
}
TRUTHS = {"chosen on": [(1.0, 0.3), (1.0, 0.7), (0.7, 0.0)], "reported": [(1.0, 0.0), (1.0, 0.5), (1.5, 0.0)]}


def intervals(group: np.ndarray | None, stated: np.ndarray, outcome: np.ndarray) -> list[tuple[float, float]]:
    p = cal.as_predictions(outcome, stated, groups=group, labels=[0, 1])
    found = (cal.estimate(p, estimator=e).interval for e in ESTIMATORS.values())
    return [(low, high) for low, high in found]


def line(kind: str, name: str, at: tuple[float, float], repetitions: int) -> str:
    """A row of the table."""
    draw = (CHOSEN_ON if kind == "chosen on" else REPORTED)[name]
    seeds = [[i, 11, list(TRUTHS).index(kind)] for i in range(repetitions)]
    samples = [draw(np.random.default_rng(seed)) for seed in seeds]
    every = np.concatenate([draw(np.random.default_rng([i, 12]))[1] for i in range(400)])
    true = float(np.abs(distorted(every, *at) - every).mean())
    residuals = np.array([(o - s).mean() for _, s, o in (draw(np.random.default_rng([i, 13])) for i in range(400))])
    n = len(samples[0][0])
    effect = float((residuals**2).mean() * n / (every * (1 - every)).mean())
    alone = max(round(n / effect), 20)
    found = []
    for i, (group, s, o) in enumerate(samples):
        rng = np.random.default_rng([i, 14])
        few = rng.choice(every, alone)
        both = intervals(group, distorted(s, *at), o), intervals(None, distorted(few, *at), rng.random(alone) < few)
        found.append(both)
    low, high = np.moveaxis(np.array(found), -1, 0)  # (repetitions, groups or rows, estimators)
    held = (low <= true + 1e-12) & (true <= high + 1e-12)
    cells = [
        f"{share(held[:, j, e])}, {(high - low)[:, j, e].mean():.3f}" for e in range(len(ESTIMATORS)) for j in (0, 1)
    ]
    return f"| {name} | {at[0]:g}, {at[1]:g} | {true:.3f} | {n} | {alone} | " + " | ".join(cells) + " |"


def main() -> None:
    options = arguments.parser(__doc__, repetitions=100, write=True).parse_args()
    warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
    lines = [
        "# Intervals of rows in groups, and of as many independent rows as say the same",
        "",
        f"Written by `python -m benchmarks.coverage.groups_intervals`: {options.repetitions} samples a line. Share of "
        "95 % intervals that cover the truth, in per cent with its standard error, and their mean width: of n rows in "
        "groups, and of n / d independent rows of the same truth, d being the true design effect of the mean residual. "
        "Ways to make intervals were compared on the second table's cases, and in first trials on those of the first, "
        "with other seeds than these.",
    ]
    for kind, cases in (("reported", REPORTED), ("chosen on", CHOSEN_ON)):
        title = {"reported": "Cases of groups.md", "chosen on": "Cases on which ways were compared"}[kind]
        names = [f"{e}: {of}" for e in ESTIMATORS for of in ("groups", "rows")]
        lines += [
            "",
            f"## {title}",
            "",
            "| case | logit scale, shift | truth | n | n / d | " + " | ".join(names) + " |",
        ]
        lines.append("|---|---|---:|---:|---:|" + "---:|" * len(names))
        for name in cases:
            lines += [line(kind, name, at, options.repetitions) for at in TRUTHS[kind]]
    text = "\n".join(lines) + "\n"
    print(text) if options.write is None else write_text(options.write, text)


if __name__ == "__main__":
    main()
