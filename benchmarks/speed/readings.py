"""What the known-truth experiment costs with the estimators that ship: microseconds a sample, and hours for all of it.

    python -m benchmarks.speed.readings [--samples 200] [--only NAME]

Every estimate from many samples is compared with `calibration_error` of the first of them.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

import calibrant as cal
from calibrant.benchmark import OURS, PAPER_CURVES, Config
from calibrant.benchmark.read import estimates_of, samples
from calibrant.data.problem import TILE

from .. import arguments


def main() -> None:
    parser = arguments.parser(__doc__, only="estimators")
    parser.add_argument("--samples", type=int, default=200, help="samples read together")
    options = parser.parse_args()
    config = Config("corrected")
    sizes = [30, 100, 1000, 5000]
    entries = {k: e for k, e in (dict(PAPER_CURVES) | OURS).items() if not options.only or options.only in k}
    seconds = {name: [] for name in entries}
    for n in sizes:
        for name, value in readings(entries, n, options.samples).items():
            seconds[name].append(value)
    problems = sum(d.classes + 1 for d in config.distributions) * config.sets
    print("| estimator | " + " | ".join(f"n = {n}" for n in sizes) + " | whole experiment, minutes |")
    print("|---|" + "---|" * (len(sizes) + 1))
    total = 0.0
    for name, values in seconds.items():
        # Between the sizes measured, cost is a line on the log scale.
        cost = np.interp(np.log(config.sizes), np.log(sizes), np.log(np.maximum(values, 1e-7)))
        total += (minutes := np.exp(cost).sum() * problems / 60)
        print(f"| {name} | " + " | ".join(f"{1e6 * v:.0f}" for v in values) + f" | {minutes:.1f} |")
    print(f"\nestimates of the whole experiment: {total / 60:.2f} h of one processor")


def readings(entries, n: int, n_samples: int) -> dict[str, float]:
    """Seconds of processor time a sample. Estimators share sums, as in the experiment: the first to need them pays."""
    rng = np.random.default_rng(n)
    scores = rng.beta(0.5, 1.0, (n_samples, n)).astype(np.float32)
    outcomes = rng.random(scores.shape) < scores**1.2
    together = max(1, TILE // n)
    parts = [slice(a, a + together) for a in range(0, n_samples, together)]
    out = dict.fromkeys(entries, 0.0)
    with threadpool_limits(1):
        warm = samples(scores[:2], outcomes[:2], (0.0, 1.0))
        for entry in entries.values():
            first = estimates_of(entry, [warm])[0]
            alone = cal.calibration_error(outcomes[0], scores[0], estimator=entry.estimator, norm=entry.norm)
            assert np.isclose(first, alone, rtol=0, atol=1e-12, equal_nan=True), entry
        for part in parts:
            problems = [samples(scores[part], outcomes[part], (0.0, 1.0))]
            for name, entry in entries.items():
                start = time.process_time()
                estimates_of(entry, problems)
                out[name] += (time.process_time() - start) / n_samples
    return out


if __name__ == "__main__":
    main()
