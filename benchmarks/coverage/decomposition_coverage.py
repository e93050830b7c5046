"""How often `decompose(..., n_resamples=...)` covers the true parts: scores uniform, outcomes of probability s^power.

    python -m benchmarks.coverage.decomposition_coverage [--repetitions 300] [--resamples 300]

Prints, for each power (1 is calibrated) and sample size, the share of 95 % intervals that cover each true part, with
its standard error, and the mean error of the estimate.
"""

import numpy as np

import calibrant as cal

from .. import arguments

PARTS = ("total", "calibration", "refinement", "discrimination", "uncertainty")


def truth(power: float) -> dict[str, float]:
    """Brier's parts by integrals of powers."""
    calibration = 1 / (2 * power + 1) - 2 / (power + 2) + 1 / 3
    refinement = 1 / (power + 1) - 1 / (2 * power + 1)
    base = 1 / (power + 1)
    uncertainty = base * (1 - base)
    return {
        "total": calibration + refinement,
        "calibration": calibration,
        "refinement": refinement,
        "discrimination": uncertainty - refinement,
        "uncertainty": uncertainty,
    }


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=300)
    parser.add_argument("--resamples", type=int, default=300)
    options = parser.parse_args()
    print(f"{'method':<8}{'power':>6}{'n':>7}  " + "".join(f"{part:>26}" for part in PARTS))
    for method in ("corp", "binned"):
        for power in (1.0, 1.5, 3.0):
            true = truth(power)
            for n in (200, 1000):
                rng = np.random.default_rng(0)
                held, off = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0.0)
                for _ in range(options.repetitions):
                    p = rng.random(n)
                    found = cal.decompose(
                        rng.random(n) < p**power, p, estimator=method, n_resamples=options.resamples, random_state=rng
                    )
                    for part in PARTS:
                        low, high = found.intervals[part]
                        held[part] += low <= true[part] <= high
                        off[part] += (getattr(found, part) - true[part]) / options.repetitions
                cells = []
                for part in PARTS:
                    share = held[part] / options.repetitions
                    se = np.sqrt(share * (1 - share) / options.repetitions)
                    cells.append(f"{100 * share:9.1f} ± {100 * se:.1f} ({off[part]:+.4f})")
                print(f"{method:<8}{power:>6}{n:>7}  " + "".join(f"{cell:>26}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
