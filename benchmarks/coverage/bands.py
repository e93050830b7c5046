"""Do bands of reliability curves cover what they should?

    python -m benchmarks.coverage.bands [--repetitions 200]

Bands come from `reliability_curve(y, p, estimator=…, level=0.95, band=…)` with 100, 1,000 and 10,000 rows. *Confidence*
bands (in bins *wilson* and *clopper-pearson*) show where the true frequency at a score is. *Consistency* bands show
where the curve would be if the model were calibrated (judged on calibrated models). *Simultaneous* bands cover the
truth at all scores at once; without bins they assume that it does not fall. Pointwise bands are judged at 50 scores or
in bins, weighted by rows, and simultaneous ones at all rows. Scores are uniform, one of 11 values, or rare (Beta(0.5,
9.5)). The truth is calibrated, smooth (overconfident, wavy) or has *jumps* (steps, overconfident at the 11 values).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.datasets import true_map

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept
from .aims import shown, told

LEVEL, SIZES = 95, (100, 1000, 10_000)
#: Scores at which pointwise bands are judged, and resamples of a band.
PLACES, RESAMPLES = 50, 400
#: An end of 0.3 and a truth of 0.3 may differ by rounding.
NEAR = 1e-9


class Case(NamedTuple):
    """How scores are drawn, and the true probability at a score."""

    scores: Callable[[np.random.Generator, int], np.ndarray]
    truth: Callable[[np.ndarray], np.ndarray]


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n)


def eleven(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 11, n) / 10


def rare(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(0.5, 9.5, n)


def same(s: np.ndarray) -> np.ndarray:
    return s


def overconfident(s: np.ndarray) -> np.ndarray:
    return true_map(s, "overconfident")


def stepped(s: np.ndarray) -> np.ndarray:
    return 0.2 + 0.3 * (s > 0.35) + 0.3 * (s > 0.65)


def wavy(s: np.ndarray) -> np.ndarray:
    return true_map(s, "wavy")


CASES = {
    "calibrated": Case(uniform, same),
    "calibrated, 11 scores": Case(eleven, same),
    "calibrated, 5 % positive": Case(rare, same),
    "overconfident": Case(uniform, overconfident),
    "overconfident, 11 scores": Case(eleven, overconfident),
    "steps": Case(uniform, stepped),
    "wavy": Case(uniform, wavy),
}
#: Similar truths.
GROUPS = {
    "calibrated": [name for name, case in CASES.items() if case.truth is same],
    "smooth": ["overconfident", "wavy"],
    "jumps": ["steps", "overconfident, 11 scores"],
}
#: Curves with the bands that each of them can have, and the truths that they are for.
KINDS = {
    "confidence": [
        *((method, "confidence") for method in ("auto", "density", "residual", "adaptive", "isotonic")),
        ("binned", "wilson"),
        ("binned", "clopper-pearson"),
    ],
    "consistency": [
        (method, "consistency") for method in ("auto", "density", "residual", "adaptive", "isotonic", "binned")
    ],
    "simultaneous": [("isotonic", "simultaneous"), ("binned", "simultaneous")],
}
TRUTHS = {
    "confidence": list(CASES),
    "consistency": GROUPS["calibrated"],
    "simultaneous": [name for name in CASES if name != "wavy"],
}
BANDS = [one for of in KINDS.values() for one in of]


def in_bins(curve: cal.results.ReliabilityCurve, s: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean of values over the rows of each bin."""
    home = np.clip(np.searchsorted(curve.edges, s, side="left") - 1, 0, len(curve.observed) - 1)
    count = np.bincount(home, minlength=len(curve.observed))
    total = np.bincount(home, values, minlength=len(curve.observed))
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def sample(truth: str, n: int, seed: int) -> dict[str, float]:
    """What each curve's band covers (a share, or 0 or 1 for a simultaneous one) and its mean width."""
    rng = np.random.default_rng([seed, [*CASES].index(truth), n])
    s = CASES[truth].scores(rng, n)
    y = (rng.random(n) < CASES[truth].truth(s)).astype(int)
    out = {}
    for kind, of in KINDS.items():
        for method, band in of if truth in TRUTHS[kind] else ():
            covered, width = judged(y, s, CASES[truth].truth, method, band, seed)
            # Rounded, so that the data file is small.
            out |= {f"{method}, {band}": round(covered, 5), f"{method}, {band}: width": round(width, 5)}
    return out


def judged(
    y: np.ndarray, s: np.ndarray, true: Callable[[np.ndarray], np.ndarray], method: str, band: str, seed: int
) -> tuple[float, float]:
    """The share of places that a band covers (for a simultaneous band, whether it covers all); its mean width."""
    curve = cal.reliability_curve(
        y, s, labels=[0, 1], estimator=method, level=LEVEL / 100, band=band, n_resamples=RESAMPLES, random_state=seed
    )
    if method == "binned":
        held = curve.count > 0
        lower, upper, observed = curve.lower[held], curve.upper[held], curve.observed[held]
        truth, weight = in_bins(curve, s, true(s))[held], curve.count[held]
    else:
        places = (np.arange(PLACES) + 0.5) / PLACES
        at = np.sort(s) if band == "simultaneous" else np.quantile(s, places, method="nearest")
        observed, lower, upper = curve.at(at)
        truth, weight = true(at), np.ones(at.size)
    target = observed if band == "consistency" else truth
    known = ~np.isnan(lower)
    inside = (lower[known] <= target[known] + NEAR) & (target[known] <= upper[known] + NEAR)
    covered = inside.all() if band == "simultaneous" else np.average(inside, weights=weight[known])
    return float(covered), float(np.average(upper[known] - lower[known], weights=weight[known]))


def _cells(kept: Kept, method: str, band: str, truths: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Coverage of a band, for those of some truths that it is for, and all sizes."""
    found = {}
    for truth in truths:
        for n in SIZES:
            values = kept.where(truth=truth, n=n)[f"{method}, {band}"]
            pair = percent(values) if band == "simultaneous" else estimate(100 * values)
            found[f"{method}, {band}, {truth}, {n:,} rows"] = pair
    return {name: pair for name, pair in found.items() if pair[0] == pair[0]}


def _pooled(cells: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Mean of cells, with its standard error; NaN of none."""
    if not cells:
        return float("nan"), float("nan")
    value, error = np.array([*cells.values()]).T
    return float(value.mean()), float(np.sqrt((error**2).sum()) / len(error))


def answer(kept: Kept) -> str:
    overall = [f"{shown(_pooled(_cells(kept, 'auto', 'confidence', of)))} % ({name})" for name, of in GROUPS.items()]
    every = {
        kind: {name: pair for one in of for name, pair in _cells(kept, *one, TRUTHS[kind]).items()}
        for kind, of in KINDS.items()
    }
    default = f"{', '.join(overall[:-1])} and {overall[-1]}".replace(" (", " of rows (", 1)
    missed = {kind: told(cells, LEVEL) for kind, cells in every.items()}
    return (
        f"The default curve's confidence band covers the truth at {default}. Confidence bands cover less than "
        f"{LEVEL} %, by two standard errors, in {missed['confidence']}. Consistency bands do so in "
        f"{missed['consistency']}. Simultaneous bands do so in {missed['simultaneous']}."
    )


def picture(kept: Kept) -> Figure:
    series = {name: [_pooled(_cells(kept, *one, of)) for one in BANDS] for name, of in GROUPS.items()}
    return dots(
        [", ".join(one) for one in BANDS], series, "coverage, % of rows (simultaneous: % of samples)", LEVEL, share=True
    )


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives mean coverage in per cent over sizes and truths, the lowest coverage (*low*), and the mean"
    yield "width for calibrated uniform scores with 1,000 rows."
    yield ""
    yield from table(("curve", "band", *GROUPS, "low", "width"), _rows(kept), texts=2)


#: Consistency bands that keep the level, as the picture shows.
HELD = (("density", "consistency"), ("residual", "consistency"))


def _rows(kept: Kept) -> Iterator[list[str]]:
    uniform_scores = kept.where(truth="calibrated", n=SIZES[1])
    for method, band in (one for one in BANDS if one[0] != "adaptive" and one not in HELD):
        pairs = [_pooled(_cells(kept, method, band, of)) for of in GROUPS.values()]
        lowest = min(value for value, _ in _cells(kept, method, band, list(CASES)).values())
        width = uniform_scores[f"{method}, {band}: width"].mean()
        yield [
            method,
            band,
            *(f"{value:.1f}".replace("nan", "") for value, _ in pairs),
            f"{lowest:.0f}",
            f"{width:.3f}",
        ]


EXPERIMENT = Experiment(
    __spec__.name, {"truth": CASES, "n": SIZES}, sample, answer, page, picture, repetitions=200, quick=2
)

if __name__ == "__main__":
    EXPERIMENT.main()
