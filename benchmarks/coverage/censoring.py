"""Do intervals of the weighted calibration error cover the truth where follow-up is censored?

    python -m benchmarks.coverage.censoring [--repetitions 200]

Scores p are Beta distributed (*even*: 2, 2; *rare*: 1, 6; *frequent*: 6, 1). The true probability q of the event by the
horizon 1 is p itself (*calibrated*), or logit q is 0.6 logit p (*over-confident*) or logit p - 0.7 (*too high*). The
time of the event is Weibull with shape 1.3 and P(T <= 1) = q. Censoring is exponential. `estimate` gives the 95 %
interval of E|q - p|, with weights or with censored rows *left out*. *Periods* round times up to a twelfth or a fourth
of the horizon. The default is 1/G(T), scikit-survival's event weights; `left_limit=True` gives 1/G(T-). *Ratio* is the
variance of the weighted event rate m divided by what intervals assume, Σ w² (y - m)² / (m (1 - m) Σ w²).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import itertools
import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy import special, stats
from scipy.optimize import brentq

import calibrant as cal
from calibrant.data.censoring import _UNLIKE as WARNED
from calibrant.exceptions import CensoringWarning

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

SEED, SHAPE, LEVEL = 20, 1.3, 95
SIZES, SHARES, PERIODS = (300, 1000, 3000), (0.0, 0.2, 0.5), (0, 12, 4)
SCORES = {"even": (2, 2), "rare": (1, 6), "frequent": (6, 1)}
MAPS = {
    "calibrated": lambda p: p,
    "over-confident": lambda p: special.expit(0.6 * special.logit(p)),
    "too high": lambda p: special.expit(special.logit(p) - 0.7),
}
#: Maps and size where times are in whole periods.
TIED, SIZE = ("calibrated", "too high"), 1000
DEFAULT, LEFT, DROPPED = "1/G(T)", "1/G(T-)", "left out"
#: Midpoints at which means over scores, and over times of events, are taken.
POINTS = (np.arange(100_000) + 0.5) / 100_000
NAMES = ("scores", "truth", "censored", "n")
CELLS = [*itertools.product(SCORES, MAPS, SHARES, SIZES)]


@cache
def true_error(scores: str, truth: str) -> float:
    """The true calibration error."""
    p = stats.beta.ppf(POINTS, *SCORES[scores])
    return float(np.abs(MAPS[truth](p) - p).mean())


@cache
def rate(scores: str, truth: str, censored: float) -> float:
    """Rate of the exponential censoring."""
    if not censored:
        return 0.0
    q = MAPS[truth](stats.beta.ppf(POINTS, *SCORES[scores]))
    until = np.minimum(event_times(q, np.random.default_rng(SEED).permutation(POINTS)), 1)
    return float(brentq(lambda rate: 1 - np.exp(-rate * until).mean() - censored, 0, 100))


def event_times(q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Weibull times whose probability to be at most 1 is q."""
    return (np.log(u) / np.log1p(-np.minimum(q, 1 - 1e-15))) ** (1 / SHAPE)


def some(scores: str, truth: str, censored: float, n: int, periods: int) -> bool:
    """Whether it is a case: whole periods go with even scores and one size."""
    return not periods or (scores == "even" and truth in TIED and censored > 0 and n == SIZE)


def sample(scores: str, truth: str, censored: float, n: int, periods: int, seed: int) -> dict[str, float]:
    """Whether the interval covers, whether it excludes 0, and its width, by weights; and the variance ratio."""
    at = ([*SCORES].index(scores), [*MAPS].index(truth), SHARES.index(censored), SIZES.index(n), PERIODS.index(periods))
    rng = np.random.default_rng([SEED, seed, *at])
    p = rng.beta(*SCORES[scores], n)
    died = event_times(MAPS[truth](p), rng.random(n))
    left = rng.exponential(1 / rate(scores, truth, censored), n) if censored else np.full(n, 1e9)
    if periods:
        died, left = (np.ceil(t * periods) / periods for t in (died, left))
    time, event = np.minimum(died, left), died <= left
    y, weight = weights_of(time, event)
    mean, squares = np.average(y, weights=weight), weight**2
    ratio = squares @ (y - mean) ** 2 / (mean * (1 - mean) * squares.sum())
    true = true_error(scores, truth)
    out = {"ratio": float(ratio), "size": float(weight.sum() ** 2 / squares.sum())}
    out |= _judged(DEFAULT, true, p, y, weight)
    if periods:
        out |= _judged(LEFT, true, p, *weights_of(time, event, left_limit=True))
    elif (scores, n) == ("even", SIZE) and censored:
        known = weight > 0
        out |= _judged(DROPPED, true, p[known], y[known], None)
    return out


def weights_of(time: np.ndarray, event: np.ndarray, *, left_limit: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Labels and weights, without warnings of what is simulated here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)
        y, weight = cal.censoring_weights(time, event, 1.0, left_limit=left_limit)
    return y, weight


def _judged(name: str, true: float, p: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> dict[str, float]:
    one = cal.estimate(y, p, sample_weight=weight)
    low, high = one.interval
    return {
        f"{name}: covered": float(low <= true <= high),
        f"{name}: above 0": float(low > 0),
        f"{name}: value": one.value,
        f"{name}: width": high - low,
    }


def _covered(kept: Kept, of: str = DEFAULT, **case: object) -> np.ndarray:
    """Whether intervals cover, in all samples of some cases."""
    return kept.where(**case)[f"{of}: covered"]


def answer(kept: Kept) -> str:
    whole = kept.where(periods=0)
    said = [share(_covered(whole, censored=censored)) for censored in SHARES]
    cells = {case: whole.where(**dict(zip(NAMES, case, strict=True))) for case in CELLS}
    covered = {case: percent(one[f"{DEFAULT}: covered"]) for case, one in cells.items()}
    missed = [case for case, (value, error) in covered.items() if value + 2 * error < LEVEL]
    least = min(CELLS, key=lambda case: covered[case][0])
    warned = [case for case, one in cells.items() if one["ratio"].mean() > WARNED]
    there = [covered[case][0] for case in warned]
    many = f"{len(there)} case{'s' * (len(there) != 1)}"
    first = f"in {many}, with coverage of {min(there):.1f} to {max(there):.1f} %" if there else "in no case"
    elsewhere = min(value for case, (value, _) in covered.items() if case not in warned)
    tied = [kept.where(truth=truth, censored=c, periods=m) for truth in TIED for c in SHARES[1:] for m in PERIODS[1:]]
    low = [min(100 * one[f"{of}: covered"].mean() for one in tied) for of in (DEFAULT, LEFT)]
    half = whole.where(scores="even", n=SIZE, censored=SHARES[-1])
    without = min(100 * _covered(half, DROPPED, truth=truth).mean() for truth in MAPS)
    return (
        f"Weighted intervals cover the truth in {said[0]} % of samples without censoring, {said[1]} % with 20 % and "
        f"{said[2]} % with half of the rows censored. Coverage is below {LEVEL} % by two standard errors in "
        f"{len(missed) or 'none'} of {len(CELLS)} cases (lowest: {covered[least][0]:.1f} %, {_named(least)}). The mean "
        f"variance ratio exceeds {WARNED:g}, above which `censoring_weights` warns, {first}. Elsewhere coverage is "
        f"at least {elsewhere:.1f} %. With times in whole periods, the lowest is {low[0]:.1f} % with "
        f"scikit-survival's weights and {low[1]:.1f} % with `left_limit=True`. With the "
        f"censored half left out, it is {without:.1f} %."
    )


def _named(case: tuple[str, str, float, int]) -> str:
    scores, truth, censored, n = case
    return f"{scores} scores, {truth}, {100 * censored:g} % censored, {n:,} rows"


def picture(kept: Kept) -> Figure:
    half = kept.where(censored=SHARES[-1])
    lines = {f"{s}, {m}": (DEFAULT, {"scores": s, "truth": m, "periods": 0}) for s in SCORES for m in MAPS}
    lines |= {
        f"even, {m}, {k} periods, {of}": (of, {"truth": m, "periods": k})
        for m in TIED
        for k in PERIODS[1:]
        for of in (DEFAULT, LEFT)
    }
    lines |= {f"even, {m}, {DROPPED}": (DROPPED, {"scores": "even", "truth": m, "periods": 0}) for m in MAPS}
    series = {}
    for n in SIZES:
        some = half.where(n=n)
        alone = [(of == DEFAULT and not case["periods"]) or n == SIZE for of, case in lines.values()]
        series[f"{n:,} rows"] = [
            percent(_covered(some, of, **case)) if there else (np.nan, np.nan)
            for (of, case), there in zip(lines.values(), alone, strict=True)
        ]
    return dots([*lines], series, "coverage where half of the rows are censored, %", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent over all maps and sizes, by the share of rows censored, and the mean"
    yield "ratio where half are."
    yield ""
    yield from table(("scores", *(f"{100 * censored:g} %" for censored in SHARES), "ratio"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    whole = kept.where(periods=0)
    for scores in SCORES:
        yield _line(scores, whole.where(scores=scores))
    yield _line("frequent, calibrated", whole.where(scores="frequent", truth="calibrated"))
    for periods in PERIODS[1:]:
        for of in (DEFAULT, LEFT):
            yield _line(f"{periods} periods, {of}", kept.where(periods=periods), of)
    yield _line(f"even, {DROPPED}", whole.where(scores="even", n=SIZE), DROPPED)


def _line(name: str, some: Kept, of: str = DEFAULT) -> list[str]:
    there = some.distinct("censored")
    cells = [f"{percent(_covered(some, of, censored=c))[0]:.1f}" if str(c) in there else "" for c in SHARES]
    return [name, *(cell.replace("nan", "") for cell in cells), _ratio(some) if of == DEFAULT else ""]


def _ratio(some: Kept) -> str:
    return f"{some.where(censored=SHARES[-1])['ratio'].mean():.2f}"


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": SCORES, "truth": MAPS, "censored": SHARES, "n": SIZES, "periods": PERIODS},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
    some=some,
)

if __name__ == "__main__":
    EXPERIMENT.main()
