"""Coverage of `estimate(...).interval` where the truth is known: how often it holds the true L1 error.

    python benchmarks/coverage.py [--repetitions 300] [--level 0.95]

Scores are Beta(2, 3); the truth is exact by quadrature. Prints a table with the standard error of each coverage.
"""

import argparse

import numpy as np

import calibrant as cal
from calibrant.datasets import make_scores

ESTIMATORS = {
    "ResidualKernel()": cal.ResidualKernel(),
    "Binned(15)": cal.Binned(),
    "Binned(15, debias=True)": cal.Binned(debias=True),
    "Binned('sqrt', 'quantile')": cal.Binned("sqrt", "quantile"),
    "Density()": cal.Density(),
}
KINDS = ("calibrated", "overconfident", "shifted", "wavy")
SIZES = (100, 1000, 5000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--level", type=float, default=0.95)
    options = parser.parse_args()
    print(f"coverage in % at nominal {100 * options.level:g} %, {options.repetitions} repetitions; (mean length)")
    print(f"{'estimator':<28}{'n':>6}  " + "".join(f"{kind:>22}" for kind in KINDS))
    for name, estimator in ESTIMATORS.items():
        for n in SIZES:
            cells = []
            for kind in KINDS:
                hits, lengths = [], []
                for r in range(options.repetitions):
                    data = make_scores(n, kind, a=2, b=3, random_state=r)
                    e = cal.estimate(data.y_true, data.y_prob, estimator=estimator, level=options.level, random_state=r)
                    hits.append(e.interval.low <= data.truth <= e.interval.high)
                    lengths.append(e.interval.high - e.interval.low)
                share = float(np.mean(hits))
                error = np.sqrt(max(share * (1 - share), 0.25 / len(hits)) / len(hits))
                cells.append(f"{100 * share:.1f} ± {100 * error:.1f} ({np.mean(lengths):.3f})")
            print(f"{name:<28}{n:>6}  " + "".join(f"{c:>22}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
