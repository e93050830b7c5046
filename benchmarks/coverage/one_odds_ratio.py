"""How often a report says that the scores are off by one odds ratio, where they are and where they are not.

    python -m benchmarks.coverage.one_odds_ratio [--repetitions 100] [--write FILE]

Scores are Beta(1, 2). A report says so only where its test of calibration rejects too, which is not asked here.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.reporting.odds_ratio import MovedBaseRate

from .. import arguments
from ..store import share

TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one odds ratio: log odds - 0.7": lambda p: expit(logit(p) - 0.7),
    "calibrated": lambda p: p,
    "p^1.5": lambda p: p**1.5,
    "log odds times 0.6": lambda p: expit(0.6 * logit(p)),
    "log odds times 0.6, less 0.7": lambda p: expit(0.6 * logit(p) - 0.7),
    "p - 0.15 from 0.5 to 0.7": lambda p: p - 0.15 * ((p > 0.5) & (p < 0.7)),
    "p - 0.1": lambda p: np.clip(p - 0.1, 0.001, 1),
}
ROWS = (500, 2000, 10_000)


def said(n: int, truth: Callable[[np.ndarray], np.ndarray], repetition: int) -> bool:
    """Whether it is said of a sample."""
    rng = np.random.default_rng([n, repetition])
    p = rng.beta(1, 2, n).clip(0.005, 0.995)
    y = rng.random(n) < truth(p)
    problems = cal.Accumulator().update(y, p).problems
    return MovedBaseRate.of(next(iter(problems.values())).grid, float(y.mean()), float(n)) is not None


def page(repetitions: int) -> Iterator[str]:
    """The page, as lines."""
    yield "# One odds ratio: how often a report says so"
    yield ""
    yield f"Written by `python -m benchmarks.coverage.one_odds_ratio --repetitions {repetitions}`: share of samples, in"
    yield "%, with its standard error. It should be 95 in the first row, where there are rows enough, and 0 elsewhere."
    yield ""
    yield f"| truth | {' | '.join(f'{n:,} rows' for n in ROWS)} |"
    yield "|---|" + "--:|" * len(ROWS)
    for name, truth in TRUTHS.items():
        shares = [share([said(n, truth, i) for i in range(repetitions)]) for n in ROWS]
        yield f"| {name} | {' | '.join(shares)} |"


def main() -> None:
    options = arguments.parser(__doc__, repetitions=100, write=True).parse_args()
    arguments.finish(options, page(options.repetitions))


if __name__ == "__main__":
    main()
