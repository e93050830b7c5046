"""False alarms of tests of rows in three to eight groups, where the scores are calibrated.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.few_groups [--repetitions 500] [--write FILE]

With G groups no p-value is below 2^(1 - G): up to five groups nothing can be shown at the 5 % level. Cases are those of
``groups.py``: hospitals of 50 rows with an effect that the model does not see, forecasts of events, and independent
rows of a rare outcome, of which a group may have seen none. A sample's seed is its number.
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
from .groups import TESTS, Rows, clusters, forecasts, share


def rare(rng: np.random.Generator, n_groups: int) -> Rows:
    """Fifty independent rows per group, of which 3 % come on average."""
    scores = rng.beta(1, 30, 50 * n_groups)
    return np.repeat(np.arange(n_groups), 50), scores, rng.random(scores.size) < scores


GROUPS = range(3, 9)
CASES: dict[str, Callable[[np.random.Generator, int], Rows]] = {
    "hospitals × 50 rows": lambda rng, g: clusters(rng, np.full(g, 50), 0.5),
    "events × 60 forecasts": forecasts,
    "rare outcomes, groups × 50 rows": rare,
}
ALL = TESTS | {
    "kernel": lambda p: cal.significance.kernel_test(p, n_resamples=199),
    "subgroup_calibration": lambda p: cal.subgroup_calibration(p, by=np.zeros(p.n_samples, int)).subgroups[0],
}


def main() -> None:
    options = arguments.parser(__doc__, repetitions=500, write=True).parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "# Tests of rows in few groups",
        "",
        f"Written by `python -m benchmarks.coverage.few_groups --repetitions {options.repetitions}`: share of",
        "calibrated samples, in per cent, that a test calls miscalibrated at 5 %, with its standard error. In",
        "brackets the least p-value, where it is below the bound 2^(1 - G) of so many groups.",
    ]
    for case, rows in CASES.items():
        lines += ["", f"## {case}", "", "| test | " + " | ".join(f"{g} groups" for g in GROUPS) + " |"]
        lines.append("|---|" + "--:|" * len(GROUPS))
        found: dict[tuple[str, int], list[float]] = {(name, g): [] for name in ALL for g in GROUPS}
        for g in GROUPS:
            for i in range(options.repetitions):
                group, scores, outcome = rows(np.random.default_rng([i, g]), g)
                coarse = np.round(scores * 10) / 10 * 0.98 + 0.01  # few scores, as Pearson's test needs
                again = np.random.default_rng([i, g, 1])
                tenths = cal.as_predictions(again.random(len(coarse)) < coarse, coarse, groups=group, labels=[0, 1])
                p = cal.as_predictions(outcome, scores, groups=group, labels=[0, 1])
                for name, test in ALL.items():
                    found[name, g].append(test(tenths if name == "Pearson" else p).pvalue)
        for name in ALL:
            cells = []
            for g in GROUPS:
                values = np.array(found[name, g])
                low = f" ({values.min():.3g})" if values.min() < 2.0 ** (1 - g) else ""
                cells.append(share(values <= 0.05) + low)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text) if options.write is None else write_text(options.write, text)


if __name__ == "__main__":
    main()
