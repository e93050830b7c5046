"""Coverage of `estimate(...).interval` where the truth is known: how often it covers the true L1 error.

    python -m benchmarks.coverage.interval_coverage [--repetitions 300] [--level 0.95] [--sizes 100,1000,5000]
        [--estimators …]
    python -m benchmarks.coverage.interval_coverage --classes 10 --level 0.9 --sizes 1000 --estimators 0,1

Binary: Beta(2, 3) scores, the truth by quadrature. With --classes K: class-wise error of scores uniform on the simplex,
of whose labels 60 % are redrawn from a fair die, so that the gap of class k is 0.6 (1/K - p_k) and the truth is
0.6 E|1/K - p_k|, with p_k ~ Beta(1, K - 1). Prints a table with the standard error of each coverage.
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import beta

import calibrant as cal
from calibrant.datasets import make_scores

from .. import arguments

ESTIMATORS = (
    cal.estimators.ResidualKernel(),
    cal.Binned(),
    cal.Binned(debias=True),
    cal.Binned("sqrt", "quantile"),
    cal.estimators.Density(),
)
NAMES = ("ResidualKernel()", "Binned(15)", "Binned(15, debias=True)", "Binned('sqrt', 'quantile')", "Density()")
KINDS = ("calibrated", "overconfident", "shifted", "wavy")
REDRAWN = 0.6
Case = Callable[[int, int], tuple[np.ndarray, np.ndarray, float]]


def binary(kind: str) -> Case:
    def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
        data = make_scores(n, kind, a=2, b=3, random_state=seed)
        return data.y_true, data.y_prob, data.truth

    return draw


def classwise(k: int, redrawn: float) -> Case:
    # E|1/K - p| = 2 E max(1/K - p, 0) = 2 ∫ F over [0, 1/K]
    grid = np.linspace(0, 1 / k, 20_001)
    truth = redrawn * 2 * float(np.trapezoid(beta.cdf(grid, 1, k - 1), grid))

    def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(k), n)
        y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
        return np.where(rng.random(n) < redrawn, rng.integers(0, k, n), y), p, truth

    return draw


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=300)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--sizes", default="100,1000,5000")
    parser.add_argument("--estimators", default="0,1,2,3,4")
    parser.add_argument("--classes", type=int, default=0)
    options = parser.parse_args()
    k = options.classes
    cases = {name: binary(name) for name in KINDS}
    about: dict = {}
    if k:
        cases = {"calibrated": classwise(k, 0.0), "miscalibrated": classwise(k, REDRAWN)}
        about = {"notion": "classwise", "labels": range(k)}
    print(f"coverage in % at nominal {100 * options.level:g} %, {options.repetitions} repetitions; (mean length)")
    print(f"{'estimator':<28}{'n':>6}  " + "".join(f"{kind:>22}" for kind in cases))
    for i in map(int, options.estimators.split(",")):
        for n in map(int, options.sizes.split(",")):
            row = []
            for draw in cases.values():
                hits, lengths = [], []
                for r in range(options.repetitions):
                    y, p, truth = draw(n, r)
                    e = cal.estimate(
                        y, p, estimator=ESTIMATORS[i], level=options.level, random_state=10**6 + r, **about
                    )
                    hits.append(e.interval.low <= truth <= e.interval.high)
                    lengths.append(e.interval.high - e.interval.low)
                share = float(np.mean(hits))
                error = np.sqrt(max(share * (1 - share), 0.25 / len(hits)) / len(hits))
                row.append(f"{100 * share:.1f} ± {100 * error:.1f} ({np.mean(lengths):.3f})")
            print(f"{NAMES[i]:<28}{n:>6}  " + "".join(f"{c:>22}" for c in row), flush=True)


if __name__ == "__main__":
    main()
