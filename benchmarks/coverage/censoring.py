"""Coverage of the weighted calibration error's interval where follow-up is censored, and the truth is known.

    python -m benchmarks.coverage.censoring [--repetitions 200] [--jobs 2] [--write benchmarks/coverage/censoring.md]

Scores p are drawn from a Beta distribution (even: 2, 2; rare: 1, 6; frequent: 6, 1), and q is the true probability of
the event by the horizon 1: p itself ("calibrated"), logit q = 0.6 logit p ("over-confident"), or logit q = logit p -
0.7 ("too high"). The time of the event is Weibull of shape 1.3, with P(T <= 1) = q. Censoring is exponential, does not
depend on the score, and its rate is such that the stated share of rows is censored before the event and the horizon.
`censoring_weights` gives labels and weights, `estimate` the interval; the true error is E|q - p|, by quadrature.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats
from scipy.optimize import brentq

import calibrant as cal
from calibrant.exceptions import CensoringWarning

from .. import arguments

SEED, SHAPE, SIZES, SHARES = 20, 1.3, (300, 1000, 3000), (0.0, 0.2, 0.5)
LAWS = {"even": (2, 2), "rare": (1, 6), "frequent": (6, 1)}
MAPS = {
    "calibrated": lambda p: p,
    "over-confident": lambda p: special.expit(0.6 * special.logit(p)),
    "too high": lambda p: special.expit(special.logit(p) - 0.7),
}
#: Midpoints at which means over scores, and over times of events, are taken.
POINTS = (np.arange(100_000) + 0.5) / 100_000


@dataclass(frozen=True)
class Cell:
    """A case: distribution of scores, map, share of rows censored by the horizon, rows; how weights are made."""

    law: str
    map: str
    share: float
    n: int
    periods: int = 0
    left_limit: bool = False
    dropped: bool = False

    @property
    def true_error(self) -> float:
        p = stats.beta.ppf(POINTS, *LAWS[self.law])
        return float(np.abs(MAPS[self.map](p) - p).mean())

    def rate(self) -> float:
        """Rate of the exponential censoring."""
        q = MAPS[self.map](stats.beta.ppf(POINTS, *LAWS[self.law]))
        until = np.minimum(event_times(q, np.random.default_rng(SEED).permutation(POINTS)), 1)
        found = brentq(lambda rate: 1 - np.exp(-rate * until).mean() - self.share, 0, 100) if self.share else 0.0
        return float(found)

    def sample(self, rate: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, times and events of rows; in whole periods of the horizon, if there are any."""
        p = rng.beta(*LAWS[self.law], self.n)
        died = event_times(MAPS[self.map](p), rng.random(self.n))
        left = rng.exponential(1 / rate, self.n) if rate else np.full(self.n, 1e9)
        if self.periods:
            died, left = (np.ceil(t * self.periods) / self.periods for t in (died, left))
        return p, np.minimum(died, left), died <= left

    def run(self, number: int, repetitions: int) -> dict[str, np.ndarray]:
        """Numbers of every sample."""
        rate, true, found = self.rate(), self.true_error, []
        for i in range(repetitions):
            p, time, event = self.sample(rate, np.random.default_rng([SEED, number, i]))
            made = weights_of(time, event, left_limit=self.left_limit)
            y, weight = made
            if self.dropped:
                known = weight > 0
                one = cal.estimate(y[known], p[known])
            else:
                one = cal.estimate(y, p, sample_weight=weight)
            held, low = one.interval.low <= true <= one.interval.high, one.interval.low > 0
            width = one.interval.high - one.interval.low
            found.append((held, low, one.value, one.corrected, width, made.effective_size, weight.mean()))
        names = ("held", "low", "value", "corrected", "width", "size", "mean weight")
        return dict(zip(names, np.array(found, dtype=float).T, strict=True))


def event_times(q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Weibull times whose probability to be at most 1 is q."""
    return (np.log(u) / np.log1p(-np.minimum(q, 1 - 1e-15))) ** (1 / SHAPE)


def weights_of(time: np.ndarray, event: np.ndarray, *, left_limit: bool = False) -> cal.results.CensoringWeights:
    """Labels and weights, without warnings of what is simulated here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)
        return cal.censoring_weights(time, event, 1.0, left_limit=left_limit)


def share(hits: np.ndarray) -> str:
    """A percentage with its standard error."""
    rate = hits.mean()
    return f"{100 * rate:.1f} ± {100 * np.sqrt(rate * (1 - rate) / hits.size):.1f}"


def page(repetitions: int, jobs: int) -> Iterator[str]:
    main = [Cell(law, m, s, n) for law in LAWS for m in MAPS for s in SHARES for n in SIZES]
    tied = [
        Cell("even", m, s, 1000, periods, left)
        for m in ("calibrated", "too high")
        for s in (0.2, 0.5)
        for periods in (12, 4)
        for left in (False, True)
    ]
    without = [Cell("even", m, s, 1000, dropped=True) for m in MAPS for s in (0.2, 0.5)]
    cells = [*main, *tied, *without]
    done = Parallel(n_jobs=jobs)(delayed(cell.run)(i, repetitions) for i, cell in enumerate(cells))
    results = dict(zip(cells, done, strict=True))
    yield from INTRO.format(repetitions=repetitions, seed=SEED).splitlines()
    yield REMARKS
    yield "\n## All cells by the share that is censored\n"
    yield "| censored, % | coverage, % | of n = 300 | of n = 1,000 | of n = 3,000 | calibrated: low end above 0, % |"
    yield "|--:|--:|--:|--:|--:|--:|"
    for s in SHARES:
        these = {cell: found for cell, found in results.items() if cell in main and cell.share == s}
        parts = [np.concatenate([found["held"] for cell, found in these.items() if cell.n == n]) for n in SIZES]
        false = np.concatenate([found["low"] for cell, found in these.items() if cell.map == "calibrated"])
        columns = [np.concatenate(parts), *parts, false]
        yield f"| {100 * s:g} | " + " | ".join(map(share, columns)) + " |"
    yield "\n## Every cell\n"
    head = "scores | map | true error | n | censored, % | effective size | coverage, % | low end above 0, %"
    yield f"| {head} | value | corrected | width |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for cell in main:
        found = results[cell]
        yield (
            f"| {cell.law} | {cell.map} | {cell.true_error:.4f} | {cell.n:,} | {100 * cell.share:g} "
            f"| {found['size'].mean():,.0f} | {share(found['held'])} | {share(found['low'])} "
            f"| {found['value'].mean():.4f} | {found['corrected'].mean():.4f} | {found['width'].mean():.4f} |"
        )
    yield "\n## Times in whole periods\n"
    yield TIES.lstrip()
    yield "| map | true error | censored, % | periods | weight of events | mean weight | coverage, % | value |"
    yield "|---|--:|--:|--:|---|--:|--:|--:|"
    for cell in tied:
        found = results[cell]
        which = "1/G(T−)" if cell.left_limit else "1/G(T)"
        yield (
            f"| {cell.map} | {cell.true_error:.4f} | {100 * cell.share:g} | {cell.periods} | {which} "
            f"| {found['mean weight'].mean():.3f} | {share(found['held'])} | {found['value'].mean():.4f} |"
        )
    yield "\n## Censored rows left out, without weights\n"
    yield "| map | true error | censored, % | coverage, % | value | value with weights |\n|---|--:|--:|--:|--:|--:|"
    for cell in without:
        found, weighted = results[cell], results[Cell(cell.law, cell.map, cell.share, cell.n)]
        yield (
            f"| {cell.map} | {cell.true_error:.4f} | {100 * cell.share:g} | {share(found['held'])} "
            f"| {found['value'].mean():.4f} | {weighted['value'].mean():.4f} |"
        )
    yield from unlike([cell for cell in main if cell.share and cell.n == 1000], repetitions)


def unlike(cells: list[Cell], repetitions: int) -> Iterator[str]:
    """How weights depend on outcomes."""
    yield "\n## Weights and outcomes\n"
    yield UNLIKE.lstrip()
    yield "| scores | map | censored, % | event rate | mean weight with the event | without | variance ratio |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for cell in cells:
        rate, found = cell.rate(), []
        for i in range(repetitions):
            _, time, event = cell.sample(rate, np.random.default_rng([SEED, i]))
            y, weight = weights_of(time, event)
            mean, squares = np.average(y, weights=weight), weight**2
            ratio = squares @ (y - mean) ** 2 / (mean * (1 - mean) * squares.sum())
            found.append((mean, weight[y].mean(), weight[~y & (weight > 0)].mean(), ratio))
        columns = " | ".join(f"{value:.2f}" for value in np.mean(found, axis=0))
        yield f"| {cell.law} | {cell.map} | {100 * cell.share:g} | {columns} |"


INTRO = """# Calibration error with censored follow-up: coverage

Written by `benchmarks/coverage/censoring.py` (seed {seed}, {repetitions} samples a cell, ± one standard error): labels
and weights of `censoring_weights`, 95 % intervals of `estimate(…, sample_weight=…)`. Scores are Beta distributed (even:
mean 0.5; rare: 1/7; frequent: 6/7), times of the event Weibull, and exponential censoring does not depend on the score.
*Censored* is the share of rows that are censored before the event and the horizon; with 0 all weights are 1. *Width* is
the mean width of the intervals."""
REMARKS = """
- Weighted intervals cover about as often as those of rows without censoring, but for two cases.
- **Calibrated scores, frequent events, half of the rows censored**: 90.5 %, 81.5 % and 71.5 %, less with more rows. Few
  rows without the event are followed to the horizon, and their weights are more than three times those of events.
  Intervals count rows by Kish's effective size, as if weights did not depend on the outcome, and take the variance for
  half of what it is (last table). `censoring_weights` warns where the ratio is above 1.6. Where events are rare it is
  below 1, and intervals are wider than they need be.
- **Times in whole periods**: scikit-survival's weights bias the value, and in the worst case intervals cover 36.5 %;
  with `left_limit=True` they cover 94.5 % or more. `censoring_weights` warns where the weights differ by more than 2 %.
- Without weights, rows that were censored left out, intervals cover 0 to 34.5 % where half of the rows are censored."""
UNLIKE = """
Variance of the weighted event rate over what intervals take it for: `Σ w² (y - m)² / (m (1 - m) Σ w²)`, m being the
rate. Means over the samples of 1,000 rows.
"""
TIES = """
1,000 rows with even scores, whose times of event and censoring are rounded up to a period, of which the horizon has 12
or 4: events and censorings share times. More rows are censored by the horizon than before. scikit-survival's weights of
events, 1/G(T), are the default; 1/G(T−) is `left_limit=True`.
"""


def main() -> None:
    options = arguments.parser(__doc__, repetitions=200, jobs=2, write=True).parse_args()
    arguments.finish(options, page(options.repetitions, options.jobs))


if __name__ == "__main__":
    main()
