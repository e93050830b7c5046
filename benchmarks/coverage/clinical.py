"""Do intervals of `calibration_measures` cover the true measures?

    python -m benchmarks.coverage.clinical [--repetitions 150]

Scores are Beta distributed. The *first* true maps are the identity, recalibrations, a power and a wave. No choice in
the library was made on the *other* scores and maps. True measures are integrals over 200,000 quantiles of the scores.
True intercepts and slopes are those that fit the truth best. For comparison, the percentile bootstrap of rows uses 100
resamples, on the first 100 samples of 300 flat scores.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit
from scipy.stats import beta

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import mean, percent, share, table
from ..provenance import Kept
from .aims import shown, told

LEVEL = 95
Maps = dict[str, Callable[[np.ndarray], np.ndarray]]
SCORES = {"flat": (1.0, 1.0), "rare": (0.5, 6.0)}
MAPS: Maps = {
    "calibrated": lambda s: s,
    "overconfident": lambda s: expit(0.6 * logit(s)),
    "shifted": lambda s: expit(logit(s) + 0.5),
    "power": lambda s: s**1.5,
    "wave": lambda s: np.clip(s + 0.12 * np.sin(2 * np.pi * s), 0, 1),
}
OTHERS = {"U": (0.4, 0.5), "middle": (4.0, 3.0), "high": (8.0, 1.2)}
OTHER_MAPS: Maps = {
    "underconfident": lambda s: expit(1.5 * logit(s)),
    "asymmetric": lambda s: expit(0.6 * np.log(s) - 1.6 * np.log1p(-s) - 0.5),
    "bent": lambda s: expit(logit(s) + 0.15 * logit(s) ** 2 - 0.5),
    "kink": lambda s: np.where(s > 0.6, 0.6 + 0.4 * (s - 0.6), s),
    "ripple": lambda s: expit(logit(s) + 0.8 * np.sin(logit(s))),
}
ALL_SCORES, ALL_MAPS = SCORES | OTHERS, MAPS | OTHER_MAPS
SIZES, OTHER_SIZES = (100, 300, 1000, 2000), (300, 1000)
MEASURES = {
    "ici": "ICI",
    "e50": "E50",
    "eci": "ECI",
    "observed_expected": "O:E",
    "in_the_large": "in the large",
    "intercept": "intercept",
    "slope": "slope",
}
#: Measures, scores, rows, resamples and samples of the percentile bootstrap.
BOOTSTRAPPED, BOOTSTRAP_SCORES, BOOTSTRAP_SIZE, RESAMPLES, SAMPLES = ("ici", "e50", "eci"), "flat", 300, 100, 100


def rows(scores: str, name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and scores."""
    rng = np.random.default_rng([seed, [*ALL_SCORES].index(scores), [*ALL_MAPS].index(name), n])
    s = rng.beta(*ALL_SCORES[scores], n).clip(1e-6, 1 - 1e-6)
    return rng.random(n) < ALL_MAPS[name](s), s


@cache
def grid(scores: str) -> np.ndarray:
    return beta.ppf((np.arange(200_000) + 0.5) / 200_000, *ALL_SCORES[scores]).clip(1e-6, 1 - 1e-6)


@cache
def truths(scores: str, name: str) -> dict[str, float]:
    s = grid(scores)
    g, z = ALL_MAPS[name](s), logit(s)
    gap = np.abs(g - s)
    out = {"ici": gap.mean(), "e50": np.median(gap), "eci": 100 * (gap**2).mean()}
    out["observed_expected"] = g.mean() / s.mean()
    line = _fitted(np.stack([np.ones_like(z), z]), np.zeros_like(z), g)
    out |= {"intercept": line[0], "slope": line[1], "in_the_large": _fitted(np.ones((1, len(z))), z, g)[0]}
    return {name: float(value) for name, value in out.items()}


def _fitted(x: np.ndarray, offset: np.ndarray, g: np.ndarray) -> np.ndarray:
    theta = np.zeros(len(x))
    for _ in range(50):
        p = expit(theta @ x + offset)
        theta = theta + np.linalg.solve((x * (p * (1 - p))) @ x.T, x @ (g - p))
    return theta


def sample(scores: str, name: str, n: int, seed: int) -> dict[str, float]:
    """Whether each interval covers the truth, NaN where there is none; the ICI, and how wide its interval is."""
    (y, s), true = rows(scores, name, n, seed), truths(scores, name)
    found = cal.calibration_measures(y, s, labels=[False, True], random_state=seed)
    out = {"ICI": found.ici, "width": found.intervals["ici"].high - found.intervals["ici"].low}
    for one in MEASURES:
        low, high = found.intervals[one]
        out[f"{one}: covered"] = float("nan") if np.isnan(low) else float(low <= true[one] <= high)
    if scores == BOOTSTRAP_SCORES and n == BOOTSTRAP_SIZE and seed < SAMPLES:
        out |= _bootstrap(y, s, true, np.random.default_rng([seed, [*ALL_MAPS].index(name)]))
    return out


def _bootstrap(y: np.ndarray, s: np.ndarray, true: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
    drawn = np.empty((RESAMPLES, len(BOOTSTRAPPED)))
    for r in range(RESAMPLES):
        at = rng.integers(len(s), size=len(s))
        measures = cal.calibration_measures(y[at], s[at], labels=[False, True], level=None)
        drawn[r] = [getattr(measures, one) for one in BOOTSTRAPPED]
    ends = np.quantile(drawn, [0.025, 0.975], axis=0).T
    return {
        f"{one}: bootstrap": float(low <= true[one] <= high)
        for one, (low, high) in zip(BOOTSTRAPPED, ends, strict=True)
    }


def _some(scores: str, name: str, n: int) -> bool:
    first = scores in SCORES and name in MAPS
    return first or (scores in OTHERS and name in OTHER_MAPS and n in OTHER_SIZES)


def _name(case: dict[str, str | int]) -> str:
    return f"{case['scores']}, {case['name']}, {case['n']}"


def _cases(first: bool) -> list[dict[str, str | int]]:
    return [case for case in EXPERIMENT.every() if (case["scores"] in SCORES) is first]


def _covered(kept: Kept, one: str, first: bool, n: int | None = None) -> np.ndarray:
    parts = [kept.where(**c)[f"{one}: covered"] for c in _cases(first) if n in (None, c["n"])]
    return np.concatenate(parts) if parts else np.empty(0)


def answer(kept: Kept) -> str:
    overall = {name: percent(kept[f"{one}: covered"]) for one, name in MEASURES.items()}
    low, high = (pick(overall, key=lambda name: overall[name][0]) for pick in (min, max))
    cells = {
        f"{name}, {_name(case)} rows": percent(kept.where(**case)[f"{one}: covered"])
        for case in EXPERIMENT.every()
        for one, name in MEASURES.items()
    }
    flat = kept.where(scores=BOOTSTRAP_SCORES, name="calibrated", n=BOOTSTRAP_SIZE)
    return (
        f"95 % intervals cover the true measures in {shown(overall[low])} % ({low}) to {shown(overall[high])} % "
        f"({high}) of samples. Coverage is below {LEVEL} % by more than two standard errors in {told(cells, LEVEL)}. "
        f"Percentile bootstrap intervals cover a calibrated model's ICI of 0 in "
        f"{share(flat['ici: bootstrap'])} % of samples."
    )


def picture(kept: Kept) -> Figure:
    lines = [(one, first) for first in (True, False) for one in MEASURES]
    series = {f"{n:,} rows": [percent(_covered(kept, one, first, n)) for one, first in lines] for n in SIZES}
    names = [f"{MEASURES[one]}, {'first' if first else 'other'} truths" for one, first in lines]
    return dots(names, series, "covered, % of samples", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    flat = [kept.where(scores="flat", name="calibrated", n=n)["ICI"] for n in (SIZES[0], SIZES[-1])]
    yield "The table gives coverage in per cent: the lowest, where it occurs (scores, map, rows), and over all samples."
    yield f"The ICI of calibrated flat scores averages {mean(flat[0])} with {SIZES[0]} rows and {mean(flat[1])} with"
    yield f"{SIZES[-1]:,}."
    yield ""
    yield from table(("measure", "truths", "lowest at", "lowest", "all"), _rows(kept), texts=3)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for first in (True, False):
        for one, name in MEASURES.items():
            cells = {_name(case): kept.where(**case)[f"{one}: covered"] for case in _cases(first)}
            yield [name, "first" if first else "other", *_lowest(cells)]


def _lowest(cells: dict[str, np.ndarray]) -> list[str]:
    least = min(cells, key=lambda name: percent(cells[name])[0])
    return [least, *(f"{100 * np.nanmean(values):.1f}" for values in (cells[least], np.concatenate([*cells.values()])))]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": ALL_SCORES, "name": ALL_MAPS, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=150,
    quick=2,
    some=_some,
)

if __name__ == "__main__":
    EXPERIMENT.main()
