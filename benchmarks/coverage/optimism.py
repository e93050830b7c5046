"""Bootstrap-corrected calibration of overfitted models against what they do on fresh rows.

    python -m benchmarks.coverage.optimism [--repetitions 100]

Logistic regressions of some features of which one matters, on few rows; the truth of each fitted model is measured on
20,000 fresh rows.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import calibrant as cal

from .. import arguments

RESAMPLES = 50
SIGNED = ("slope", "intercept", "in_the_large", "observed_expected")


def rows(n: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, features, seed])
    X = rng.normal(size=(n, features))
    return X, (rng.random(n) < expit(X[:, 0] - 0.5)).astype(int)


def main() -> None:
    repetitions = arguments.parser(__doc__, repetitions=100).parse_args().repetitions
    print("| rows | features | measure | fresh | apparent | corrected | corrected - fresh | interval holds, % |")
    print("|--:|--:|---|--:|--:|--:|--:|--:|")
    for n, features in ((120, 4), (120, 10)):
        fresh, outcomes = rows(20_000, features, 10**6)
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in (*SIGNED, "ici", "eci")}
        for i in range(repetitions):
            X, y = rows(n, features, i)
            model = LogisticRegression(C=100.0)
            corrected = cal.decisions.optimism_corrected(model, X, y, n_resamples=RESAMPLES)
            truth = cal.calibration_measures(outcomes, model.fit(X, y).predict_proba(fresh)[:, 1], level=None)
            for name, each in found.items():
                low, high = corrected.intervals.get(name, (np.nan, np.nan))
                true = getattr(truth, name)
                held = float(low <= true <= high) if low == low else np.nan
                each.append((true, corrected.apparent[name], corrected.corrected[name], held))
        for name, each in found.items():
            table = np.array(each)
            true, apparent, better, held = table.mean(axis=0)
            off = table[:, 2] - table[:, 0]
            shown = "" if np.isnan(held) else f"{100 * held:.1f}"
            se = off.std(ddof=1) / np.sqrt(repetitions)
            print(
                f"| {n} | {features} | {name} | {true:.3f} | {apparent:.3f} | {better:.3f} "
                f"| {off.mean():+.3f} ± {se:.3f} | {shown} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
