"""Processor time and peak memory of the calls that work on many problems side by side.

    python -m benchmarks.speed.costs [--only TEXT]

Run it with another version's `src` first on PYTHONPATH to compare.
"""

import resource
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import calibrant as cal

from .. import arguments


def drawn(n: int, k: int, seed: int = 0):
    """Labels and over-confident probabilities of k classes."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, k))
    stated, true = (np.exp(z / t) / np.exp(z / t).sum(axis=1, keepdims=True) for t in (1.0, 1.3))
    y = (rng.random((n, 1)) > np.cumsum(true, axis=1)).sum(axis=1).clip(0, k - 1)
    return y, stated


def calls():
    """Name, and what makes the arrays and calls."""
    for k in (100, 1000):
        labels = range(k)
        for name, options in (
            ("classwise", {"notion": "classwise"}),
            ("classwise, Binned()", {"notion": "classwise", "estimator": cal.Binned()}),
            ("top-label", {"notion": "top-label"}),
        ):
            yield (
                f"calibration_error {name}, 10⁴ × {k}",
                lambda k=k, o=options, c=labels: (
                    drawn(10**4, k),
                    lambda y, p: cal.calibration_error(y, p, labels=c, **o),
                ),
            )
        yield (
            f"estimate classwise, 10⁴ × {k}",
            lambda k=k, c=labels: (
                drawn(10**4, k),
                lambda y, p: cal.estimate(y, p, notion="classwise", labels=c, random_state=0),
            ),
        )
    yield "report, 1000 rows of two classes", lambda: (drawn(1000, 2), lambda y, p: cal.report(y, p[:, 1]))
    yield "report, 10⁴ × 10", lambda: (drawn(10**4, 10), cal.report)
    yield (
        "report classwise, 2·10⁴ × 1000",
        lambda: (
            drawn(2 * 10**4, 1000),
            lambda y, p: cal.report(y, p, notion="classwise", labels=range(1000)),
        ),
    )


def main() -> None:
    parser = arguments.parser(__doc__, only="calls")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        y, p = drawn(500, 3)
        cal.report(y, p)  # what is loaded on first use is not counted
        for name, make in calls():
            if options.only not in name:
                continue
            arrays, call = make()
            start = time.process_time()
            call(*arrays)
            seconds = time.process_time() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(f"{name}: {seconds:.3f} s of one processor, {peak:.2f} GB resident at most so far", flush=True)


if __name__ == "__main__":
    main()
