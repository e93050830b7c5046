"""`Accumulator.calibration_test` beside `calibration_test`: false alarms where models are calibrated, and power.

    python -m benchmarks.coverage.sums_tests [--repetitions 400]

The same samples, tested from sums (outcomes drawn in cells) and from rows (labels drawn row by row), at 5 %, with 99
draws each. The standard error of a share s is sqrt(s (1 - s) / repetitions).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np
from scipy.special import expit, logit, softmax

import calibrant as cal

from .. import arguments

SHAPES = {"flat": (1, 1), "rare": (0.5, 6)}
ESTIMATORS = {
    "auto": "auto",
    "15 bins": cal.Binned(),
    "density": cal.estimators.Density(),
}
ALPHA, DRAWS = 0.05, 99


def two_classes(shape: tuple[float, float], n: int, factor: float, rng: np.random.Generator):
    s = rng.beta(*shape, n).clip(1e-9, 1 - 1e-9)
    return rng.random(n) < expit(factor * logit(s)), s


def three_classes(n: int, factor: float, rng: np.random.Generator):
    z = rng.normal(0, 1.2, (n, 3))
    drawn = softmax(factor * z, axis=1).cumsum(axis=1)
    return np.minimum((rng.random((n, 1)) > drawn).sum(axis=1), 2), softmax(z, axis=1)


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    options = parser.parse_args()
    cases = {
        f"{name}, n = {n}": ("auto", lambda rng, f, shape=shape, n=n: two_classes(shape, n, f, rng))
        for name, shape in SHAPES.items()
        for n in (100, 1000)
    }
    for notion in ("confidence", "classwise"):
        cases[f"3 classes, {notion}, n = 500"] = (notion, lambda rng, f: three_classes(500, f, rng))
    print("| scores | estimator | calibrated: sums | rows | overconfident: sums | rows |")
    print("|---|---|---:|---:|---:|---:|")
    for name, (notion, draw) in cases.items():
        found = np.zeros((len(ESTIMATORS), 4))
        for i in range(options.repetitions):
            for j, factor in enumerate((1.0, 0.8)):
                y, p = draw(np.random.default_rng([i, j]), factor)
                labels = [0, 1] if p.ndim == 1 else [0, 1, 2]
                sums = cal.Accumulator(notion=notion, labels=labels).update(y.astype(int), p)
                for k, estimator in enumerate(ESTIMATORS.values()):
                    about = {"estimator": estimator, "n_resamples": DRAWS, "random_state": i}
                    rows = cal.calibration_test(y.astype(int), p, notion=notion, labels=labels, **about)
                    found[k, 2 * j] += sums.calibration_test(**about).pvalue <= ALPHA
                    found[k, 2 * j + 1] += rows.pvalue <= ALPHA
        for estimator, row in zip(ESTIMATORS, found / options.repetitions, strict=True):
            print(f"| {name} | {estimator} | " + " | ".join(f"{share:.3f}" for share in row) + " |", flush=True)


if __name__ == "__main__":
    main()
