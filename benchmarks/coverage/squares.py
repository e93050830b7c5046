"""Bias and spread of squared calibration errors over 15 and over √n quantile bins, where the truth is known.

    python -m benchmarks.coverage.squares [--repetitions 12]

Medians over the miscalibrated distributions of a track of: mean / truth - 1, and root mean square error / truth.
"""

import zlib

import numpy as np

import calibrant as cal
from calibrant.benchmark.tracks import distributions

from .. import arguments

BINS = {"15 bins": 15, "√n bins": "sqrt"}


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=12)
    repetitions = parser.parse_args().repetitions
    for n in (100, 1000, 5000):
        for track in ("beta", "imbalance", "networks"):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in BINS}
            for d in distributions(track):
                if d.calibrated or "class-specific" not in d.notions:
                    continue
                truth = d.truth("class-specific", 2).value ** 2
                scores, labels = d.sample(repetitions, n, np.random.default_rng([2, zlib.crc32(d.name.encode()), n]))
                for name, bins in BINS.items():
                    part = cal.Binned(bins, "quantile", debias="kumar")
                    squares = np.array(
                        [
                            cal.squared_calibration_error(y, s, pos_label=1, estimator=part)
                            for s, y in zip(scores, labels, strict=True)
                        ]
                    )
                    error = squares - truth
                    found[name].append((error.mean() / truth, np.sqrt((error**2).mean()) / truth))
            medians = {name: np.median(values, axis=0) for name, values in found.items()}
            text = "; ".join(f"{name} {bias:+.2f}, {spread:.2f}" for name, (bias, spread) in medians.items())
            print(f"{track:<10} n = {n:>5}: {text}", flush=True)


if __name__ == "__main__":
    main()
