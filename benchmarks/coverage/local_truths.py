"""Is the default as accurate as the best rival where only a part of the scores is wrong?

    python -m benchmarks.coverage.local_truths [--repetitions 100]

The track "local" of the benchmark is what ranges of scores were developed on. These truths have other scores, places,
widths and gaps, and were fixed before any of them was read. Six rivals: 15 and √n bins, smoothing, isotonic regression,
debiased bins and a residual kernel; the best is chosen for each truth and size with the truth in hand. Intervals are at
95 %; those of three rivals (15 bins, debiased bins, `assume="bins"`) count where they cover in 90 % of the samples.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

Scores = Callable[[np.random.Generator, int], np.ndarray]
Map = Callable[[np.ndarray], np.ndarray]
LEVEL, SIZES, FEW = 0.95, (300, 1000, 5000, 20_000, 50_000), (300, 1000)


def beta(a: float, b: float) -> Scores:
    return lambda rng, n: rng.beta(a, b, n)


def heaps(scores: Scores, *heaps: tuple[float, float]) -> Scores:
    """Some rows, a share each, have one score."""

    def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
        s, u, low = scores(rng, n), rng.random(n), 0.0
        for at, part in heaps:
            s = np.where((u >= low) & (u < low + part), at, s)
            low += part
        return s

    return drawn


def wrong_on(*parts: tuple[float, float, float], base: Map = lambda s: s) -> Map:
    return lambda s: base(s) + sum(np.where((s >= low) & (s < high), gap, 0.0) for low, high, gap in parts)


def at(*values: tuple[float, float]) -> Map:
    """Right but at some values, where the frequency is another."""
    return lambda s: np.select([np.isclose(s, v) for v, _ in values], [f for _, f in values], s)


def twentieths(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.025 + 0.05 * rng.integers(20, size=n)


LOCAL: dict[str, tuple[Scores, Map]] = {
    "-.25 on .30-.34": (beta(1, 1), wrong_on((0.30, 0.34, -0.25))),
    "+.15 on .75-.80 of Beta(2, 1)": (beta(2, 1), wrong_on((0.75, 0.80, 0.15))),
    "-.1 on .15-.35 of Beta(1.5, 4)": (beta(1.5, 4), wrong_on((0.15, 0.35, -0.1))),
    "+.06 below .4 of Beta(3, 3)": (beta(3, 3), wrong_on((0.0, 0.4, 0.06))),
    "±.15 on .60-.72 of Beta(.7, .7)": (beta(0.7, 0.7), wrong_on((0.60, 0.66, 0.15), (0.66, 0.72, -0.15))),
    "three dips": (beta(1, 1), wrong_on((0.1, 0.14, 0.2), (0.5, 0.53, -0.3), (0.8, 0.86, -0.2))),
    "-.08 on .95-.99 of Beta(5, .8)": (beta(5, 0.8), wrong_on((0.95, 0.99, -0.08))),
    "8 % at .8, true .68": (heaps(beta(2, 2), (0.8, 0.08)), at((0.8, 0.68))),
    "heaps: .25 true .35, .75 true .70": (
        heaps(beta(1, 1), (0.25, 0.06), (0.75, 0.12)),
        at((0.25, 0.35), (0.75, 0.70)),
    ),
    "twentieths, two of them off by .2": (twentieths, at((0.725, 0.525), (0.775, 0.575))),
    "log odds × .8, and -.2 on .60-.66": (
        beta(1, 1),
        wrong_on((0.60, 0.66, -0.2), base=lambda s: expit(0.8 * logit(s))),
    ),
}
CALIBRATED: dict[str, tuple[Scores, Map]] = {
    "Beta(.5, .5)": (beta(0.5, 0.5), wrong_on()),
    "Beta(1, 60)": (beta(1, 60), wrong_on()),
    "log odds N(0, 2.5)": (lambda rng, n: expit(2.5 * rng.standard_normal(n)), wrong_on()),
    "twentieths": (twentieths, wrong_on()),
    "8 % at .8": (heaps(beta(2, 2), (0.8, 0.08)), wrong_on()),
}
E = cal.estimators
#: Numbers beside the default's.
NUMBERS = {
    "15 bins": cal.Binned(15),
    "√n bins": cal.Binned("sqrt"),
    "Smooth": E.Smooth(),
    "Isotonic": E.Isotonic(),
    "debiased bins": cal.Binned(15, debias=True),
    "residual kernel": E.ResidualKernel(debias=True),
}
#: Intervals beside the default's.
INTERVALS: dict[str, dict[str, Any]] = {
    "15 bins": {"estimator": cal.Binned(15)},
    "debiased bins": {"estimator": cal.Binned(15, debias=True)},
    "assume='bins'": {"assume": "bins"},
}
TRUTHS = LOCAL | CALIBRATED


@cache
def truth(name: str) -> float:
    """The true error, from four million scores."""
    scores, right = TRUTHS[name]
    s = scores(np.random.default_rng([*TRUTHS].index(name)), 4_000_000)
    return float(np.abs(right(s) - s).mean())


def sample(scores: str, n: int, seed: int) -> dict[str, float]:
    """Errors of the default and its rivals less the truth; which intervals cover, and their widths."""
    drawn, right = TRUTHS[scores]
    rng = np.random.default_rng([seed, [*TRUTHS].index(scores), n, 1])
    s = drawn(rng, n)
    y = (rng.random(n) < right(s)).astype(int)
    given: dict[str, Any] = {"labels": [0, 1], "pos_label": 1}
    own = cal.estimate(y, s, level=LEVEL, random_state=seed, **given)
    if scores in CALIBRATED:
        return {"above 0": float(own.interval.low > 0)}
    t = truth(scores)
    out = {"truth": t, "default": own.value - t, "corrected": own.corrected - t}
    out |= {name: cal.calibration_error(y, s, estimator=e, **given) - t for name, e in NUMBERS.items()}
    intervals = {"default": own.interval}
    for name, how in INTERVALS.items():
        about = {"level": LEVEL, "random_state": seed, "n_resamples": 200}
        intervals[name] = cal.estimate(y, s, **about, **given, **how).interval
    for name, (low, high) in intervals.items():
        out |= {f"{name}: covered": float(low <= t <= high), f"{name}: width": high - low}
    return {name: round(value, 6) for name, value in out.items()}


def log_ratio(own: np.ndarray, rival: np.ndarray) -> tuple[float, float]:
    """Logarithm of a root mean square over another's, of errors in the same samples, and its standard error."""
    a, b = own**2, rival**2
    spread = (a / a.mean() - b / b.mean()).std(ddof=1) if len(a) > 1 else np.nan
    return float(0.5 * np.log(a.mean() / b.mean())), float(0.5 * spread / np.sqrt(len(a)))


def beside_best(part: Kept, own: str = "default") -> tuple[float, float]:
    """:func:`log_ratio` beside the rival whose error is the smallest."""
    best = min(NUMBERS, key=lambda name: float((part[name] ** 2).mean()))
    return log_ratio(part[own], part[best])


def geometric(logs: list[tuple[float, float]]) -> tuple[float, float]:
    """Geometric mean of ratios and its standard error."""
    value, error = np.array(logs).T
    middle = float(np.exp(value.mean()))
    return middle, middle * float(np.sqrt((error**2).sum())) / len(logs)


def _parts(kept: Kept, sizes: tuple[int, ...], names: list[str]) -> dict[str, Kept]:
    return {f"{name}, {n:,} rows": kept.where(scores=name, n=n) for name in names for n in sizes}


def answer(kept: Kept) -> str:
    few, many = ([*_parts(kept, sizes, [*LOCAL]).values()] for sizes in (FEW, SIZES[len(FEW) :]))
    small, large = (geometric([beside_best(part) for part in parts]) for parts in (few, many))
    logs = {name: beside_best(part)[0] for name, part in _parts(kept, SIZES[len(FEW) :], [*LOCAL]).items()}
    worst = max(logs, key=logs.__getitem__)
    cover = [percent(part["default: covered"]) for part in few + many]
    below = sum(value + 2 * error < 100 * LEVEL for value, error in cover)
    covered = np.concatenate([part["default: covered"] for part in few + many])
    calm = np.concatenate([kept.where(scores=name)["above 0"] for name in CALIBRATED])
    return (
        f"From 5,000 rows on the root mean square error (RMSE) of the default is {large[0]:.2f} ± {large[1]:.2f} times "
        f"that of the best rival in the geometric mean, at most {np.exp(logs[worst]):.2f} times ({worst}); up to 1,000 "
        f"rows it is {small[0]:.2f} ± {small[1]:.2f} times. Intervals at 95 % cover in {share(covered)} % of samples, "
        f"in less than 95 % by more than two standard errors in {below} of {len(cover)} cases; of calibrated scores "
        f"they lie above 0 in {share(calm)} %."
    )


def picture(kept: Kept) -> Figure:
    series = {f"{n:,} rows": [geometric([beside_best(kept.where(scores=name, n=n))]) for name in LOCAL] for n in SIZES}
    return dots([*LOCAL], series, "RMSE of the default over that of the best rival", 1.0, log=True)


def _widths(kept: Kept) -> list[float]:
    """Mean width over that of the narrowest rival that covers in 90 % of samples, where there is one."""
    out = []
    for part in _parts(kept, SIZES, [*LOCAL]).values():
        valid = [part[f"{name}: width"].mean() for name in INTERVALS if part[f"{name}: covered"].mean() >= 0.9]
        out += [part["default: width"].mean() / min(valid)] if valid else []
    return out


def page(kept: Kept) -> Iterator[str]:
    widths = _widths(kept)
    wide, cases = np.exp(np.mean(np.log(widths))), len(LOCAL) * len(SIZES)
    yield "The mean value over the truth from 5,000 rows on; RMSE over that of the best rival, geometric means over"
    yield f"sizes; and coverage at all sizes, in per cent. Intervals are {wide:.2f} times as wide as the narrowest"
    yield f"rival's that counts (geometric mean of the {len(widths)} of {cases} cases in which one does)."
    yield ""
    yield from table(("scores", "value", "≤ 1,000 rows", "≥ 5,000", "covered"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name in LOCAL:
        few, many = ([*_parts(kept, sizes, [name]).values()] for sizes in (FEW, SIZES[len(FEW) :]))
        value = np.mean([1 + part["default"].mean() / part["truth"].mean() for part in many])
        ratios = (geometric([beside_best(part) for part in parts]) for parts in (few, many))
        covered = share(kept.where(scores=name)["default: covered"])
        yield [name, f"{value:.2f}", *(f"{r:.2f} ± {e:.2f}" for r, e in ratios), covered]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": TRUTHS, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    quick=2,
    at="docs/development/local_truths.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()
