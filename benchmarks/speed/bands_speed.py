"""Consistency band of the CORP curve against scoringrules: CPU seconds of both, and whether they draw the same band.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.bands_speed [--rows 10000] [--draws 1000] [--rounds 5]

Needs `pip install scoringrules matplotlib`. Its `alpha` is what lies beyond *each* end of its band, and it resamples
the scores, too, where ours stay: its band is a little wider.
"""

import statistics
from time import process_time

import numpy as np

import calibrant as cal

from .. import arguments


def main() -> None:
    from scoringrules.visualization.reliability import _uncertainty_band, corp_reliability

    parser = arguments.parser(__doc__, rounds=5)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    np.random.seed(0)  # noqa: NPY002 - the peer draws from the global state
    p = rng.random(options.rows)
    y = (rng.random(options.rows) < p**1.3).astype(int)

    def peer() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x, _, cep = corp_reliability(y, p)
        return x, *_uncertainty_band(x, cep, options.draws, "consistency", 0.025)

    def ours() -> cal.results.ReliabilityCurve:
        return cal.reliability_curve(
            y, p, estimator="isotonic", level=0.95, band="consistency", n_resamples=options.draws, random_state=0
        )

    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(options.rounds):
        for who, run in (("ours", ours), ("peer", peer)):
            start = process_time()
            if who == "ours":
                curve = run()
            else:
                x, low, high = run()
            times[who].append(process_time() - start)
    at = curve.at(x)
    known = ~np.isnan(low)
    gap = max(float(np.abs(at.lower - low)[known].mean()), float(np.abs(at.upper - high)[known].mean()))
    widths = float((at.upper - at.lower)[known].mean()), float((high - low)[known].mean())
    assert gap < 0.01, gap
    a, b = (statistics.median(times[who]) for who in ("ours", "peer"))
    print(f"{options.draws} draws at {options.rows:,} rows: ours {a:.2f} s, scoringrules {b:.2f} s, ratio {a / b:.2f}")
    print(f"mean distance of the ends {gap:.4f}, mean widths {widths[0]:.4f} and {widths[1]:.4f}")


if __name__ == "__main__":
    main()
