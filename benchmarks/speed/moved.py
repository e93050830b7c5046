"""How far the values of every estimator lie from those of another version of this library.

    PYTHONPATH=OTHER/src python -m benchmarks.speed.moved --write other.json
    python -m benchmarks.speed.moved --against other.json

60 seeded samples of 1 to 5000 rows (uniform, skewed, tied, float32, with whole-number and relative weights), each
read in the norms 1, 2, 3 and inf.
"""

import json
import math
import warnings
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.data.writing import write_text

from .. import arguments

ESTIMATORS = [
    cal.Binned(),
    cal.Binned(15, "quantile"),
    cal.Binned(15, mapping="linear"),
    cal.Binned("sqrt", "quantile", "linear"),
    cal.Binned(15, "quantile", "linear-as-printed"),
    cal.Binned("sqrt", "quantile", debias=True),
    cal.Binned((0, 0.1, 0.35, 0.6, 0.9, 1.0)),
    cal.estimators.Parametric(),
    cal.estimators.Parametric("beta"),
    cal.estimators.CrossFit(),
    cal.estimators.CrossFit("logistic"),
    cal.estimators.BetaKernel(),
    cal.estimators.BetaKernel(0.05),
    cal.estimators.BetaKernel("loo"),
    cal.estimators.Density(),
    cal.estimators.Density("isj"),
    cal.estimators.Density(0.05, "triweight"),
    cal.estimators.Density("loo"),
    cal.estimators.ResidualKernel(),
    cal.estimators.ResidualKernel(space="score"),
    cal.estimators.ResidualKernel("loo", "score"),
    cal.estimators.ResidualKernel(0.1, debias=True),
    cal.estimators.AdaptiveKernel(),
    cal.estimators.Smooth(),
    cal.estimators.Smooth(0.05),
    cal.estimators.Sweep(),
    cal.estimators.Isotonic(),
    cal.estimators.Cumulative(),
    cal.EmpiricalBayes(),
    cal.EmpiricalBayes("wide"),
]


def samples():
    rng = np.random.default_rng(5)
    for n in (1, 2, 5, 7, 8, 30, 120, 257, 1000, 5000):
        p = rng.random(n)
        y = (rng.random(n) < p**1.4).astype(int)
        q = rng.beta(0.3, 0.5, n)
        t = rng.integers(0, 11, n) / 10
        yield f"{n} uniform", p, y, None
        yield f"{n} skewed", q, (rng.random(n) < q).astype(int), None
        yield f"{n} tied", t, (rng.random(n) < t).astype(int), None
        yield f"{n} float32", p.astype(np.float32), y, None
        yield f"{n} whole weights", p, y, rng.integers(0, 4, n) + (np.arange(n) == 0)
        yield f"{n} relative weights", p, y, rng.random(n) + 0.05


def readings() -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for name, p, y, w in samples():
        for estimator in ESTIMATORS:
            if "loo" in repr(estimator) and p.size > 300:
                continue
            for norm in (1, 2, 3, math.inf):
                try:
                    value = cal.calibration_error(y, p, estimator=estimator, norm=norm, sample_weight=w, labels=[0, 1])
                except ValueError as error:
                    if "defined for norm" not in str(error):
                        raise
                    continue
                finite = "p = inf" if norm == math.inf else "n < 8" if p.size < 8 else "n >= 8, p finite"
                out.setdefault(f"{estimator!r}, {finite}", {})[f"{name}, p = {norm:g}"] = value
    return out


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the values of this version")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with values that were written")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = readings()
    if options.write:
        write_text(options.write, json.dumps(found))
    if options.against:
        before = json.loads(options.against.read_text())
        for name, values in found.items():
            pairs = [(abs(v - before[name][k]), k) for k, v in values.items() if not math.isnan(v)]
            nans = sum(math.isnan(v) != math.isnan(before[name][k]) for k, v in values.items())
            most, where = max(pairs, default=(0.0, ""))
            if most > 1e-11 or nans:
                print(f"{name}: {most:.2g} ({where}){f', {nans} NaN differ' if nans else ''}")
        print("all others: within 1e-11")


if __name__ == "__main__":
    main()
