"""Size and power of the belt's test on the rows that a logistic regression was fitted to.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.belt_internal [--repetitions 1000] [--write docs/clinical.md]

Writes a section of docs/clinical.md. Features are normal and independent; the log odds are linear in them, or bent by
the square of their sum.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import calibrant as cal

from .. import arguments
from ..section import write_section

FEATURES = (1, 3, 10)
SIZES = (200, 500, 2000)
TRUTHS = {"logistic": 0.0, "bent": -0.15}
NOTE = """
Written by `benchmarks/coverage/belt_internal.py`: {repetitions} samples a row, standard error of a share at most
{se:.1f} points, {small:.1f} at 5 %. A logistic regression without penalty is fitted to the rows that are then tested.
*Internal* and *external* are the shares with p ≤ 0.05 by either null distribution, for “logistic” the
size, wanted 5, else the power.

{table}

- `devel="external"` on the rows of the fit rejects no logistic model and finds fewer bent ones: it waits for an
  intercept and a slope that cannot move there.
- `devel="internal"` has the right size for one to ten features, within the error of the simulation.
"""


def shares(features: int, bend: float, n: int, repetitions: int) -> np.ndarray:
    rng = np.random.default_rng([features, n, int(-100 * bend)])
    found = []
    while len(found) < repetitions:
        x = rng.standard_normal((n, features))
        line = 1.3 * x.sum(axis=1) / np.sqrt(features)
        y = (rng.random(n) < expit(-0.4 + line + bend * line**2)).astype(int)
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8).fit(x, y)
        p = model.predict_proba(x)[:, 1]
        each = [
            cal.significance.calibration_belt(y, p, levels=0.8, n_points=2, devel=d).pvalue
            for d in ("internal", "external")
        ]
        found.append([v <= 0.05 for v in each])
    return np.mean(found, axis=0)


def main() -> None:
    options = arguments.parser(__doc__, repetitions=1000, write=True).parse_args()
    lines = ["| features | truth | n | internal, % | external, % |", "|--:|---|--:|--:|--:|"]
    for features in FEATURES:
        for truth, bend in TRUTHS.items():
            for n in SIZES:
                internal, external = 100 * shares(features, bend, n, options.repetitions)
                lines.append(f"| {features} | {truth} | {n} | {internal:.1f} | {external:.1f} |")
                print(lines[-1], flush=True)
    se, small = (100 * np.sqrt(q * (1 - q) / options.repetitions) for q in (0.5, 0.05))
    text = NOTE.format(repetitions=options.repetitions, se=se, small=small, table="\n".join(lines))
    if options.write is not None:
        write_section(options.write, "Calibration belt, rows of the fit", text)


if __name__ == "__main__":
    main()
