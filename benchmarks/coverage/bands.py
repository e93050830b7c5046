"""What the bands of reliability curves cover, by simulation; writes docs/bands.md.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.bands [--repetitions 300] [--jobs 2] [--write docs/bands.md]
    OMP_NUM_THREADS=1 python -m benchmarks.coverage.bands --limit

`--limit` simulates the limiting distribution of the likelihood ratio of a monotone function at one point; its quantiles
are in `calibrant.measure.bands`.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import isotonic_regression

import calibrant as cal
from calibrant.data.writing import write_text
from calibrant.datasets import true_map
from calibrant.measure.bands import LIMIT, LIMIT_LEVELS

from .. import arguments

LEVEL = 0.95
SIZES = (100, 1000, 10_000)
#: Scores at which pointwise bands are judged: evenly many rows apart.
PLACES = 50


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
CALIBRATED = [name for name, case in CASES.items() if case.truth is same]
#: Curves, and the bands that each of them can have.
POINTWISE = [
    ("auto", "confidence"),
    ("density", "confidence"),
    ("residual", "confidence"),
    ("adaptive", "confidence"),
    ("isotonic", "confidence"),
    ("binned", "wilson"),
    ("binned", "clopper-pearson"),
]
CONSISTENCY = [(method, "consistency") for method in ("auto", "density", "residual", "adaptive", "isotonic", "binned")]
SIMULTANEOUS = [("isotonic", "simultaneous"), ("binned", "simultaneous")]


def in_bins(curve: cal.results.ReliabilityCurve, s: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean of values over the rows of each bin."""
    home = np.clip(np.searchsorted(curve.edges, s, side="left") - 1, 0, len(curve.observed) - 1)
    count = np.bincount(home, minlength=len(curve.observed))
    total = np.bincount(home, values, minlength=len(curve.observed))
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def once(case: Case, n: int, method: str, band: str, rng: np.random.Generator) -> tuple[float, float]:
    """Share of places (or, of a simultaneous band, whether all of them) where the band holds, and its mean width."""
    s = case.scores(rng, n)
    y = (rng.random(n) < case.truth(s)).astype(int)
    curve = cal.reliability_curve(
        y, s, labels=[0, 1], estimator=method, level=LEVEL, band=band, n_resamples=400, random_state=rng
    )
    if method == "binned":
        held = curve.count > 0
        lower, upper, observed = curve.lower[held], curve.upper[held], curve.observed[held]
        truth = in_bins(curve, s, case.truth(s))[held]
        weight = curve.count[held]
    else:
        places = (np.arange(PLACES) + 0.5) / PLACES
        at = np.sort(s) if band == "simultaneous" else np.quantile(s, places, method="nearest")
        observed, lower, upper = curve.at(at)
        truth, weight = case.truth(at), np.ones(at.size)
    target = observed if band == "consistency" else truth
    known = ~np.isnan(lower)
    near = 1e-9  # an end of 0.3 and a truth of 0.3 that differ by rounding
    inside = (lower[known] <= target[known] + near) & (target[known] <= upper[known] + near)
    if band == "simultaneous":
        return float(inside.all()), float(np.average(upper[known] - lower[known], weights=weight[known]))
    return (
        float(np.average(inside, weights=weight[known])),
        float(np.average(upper[known] - lower[known], weights=weight[known])),
    )


def cell(name: str, n: int, method: str, band: str, repetitions: int) -> tuple[float, float, float]:
    """Coverage, its standard error, and mean width."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([n, *f"{name}{method}{band}".encode()])
    found = np.array([once(CASES[name], n, method, band, rng) for _ in range(repetitions)])
    return float(found[:, 0].mean()), float(found[:, 0].std(ddof=1) / np.sqrt(repetitions)), float(found[:, 1].mean())


def limit(repetitions: int, n: int = 10_000, slope: float = 10.0) -> np.ndarray:
    """Quantiles of twice the log likelihood ratio of a value at one point of a rising line in normal noise."""
    rng = np.random.default_rng(0)
    line = (np.arange(n) - n // 2) / n * slope
    middle = n // 2
    found = np.empty(repetitions)
    for r in range(repetitions):
        y = line + rng.standard_normal(n)
        free = isotonic_regression(y).x
        before, behind = isotonic_regression(y[:middle]).x, isotonic_regression(y[middle + 1 :]).x
        bound = np.concatenate([np.minimum(before, 0), [0.0], np.maximum(behind, 0)])
        found[r] = ((y - bound) ** 2).sum() - ((y - free) ** 2).sum()
    return np.quantile(found, LIMIT_LEVELS)


PAGE = """# Bands of reliability curves: what they cover

Written by `OMP_NUM_THREADS=1 python -m benchmarks.coverage.bands --repetitions {repetitions} --write
docs/bands.md`. All bands
are of level 95 %; entries are percent ± their standard error over {repetitions} samples, and in brackets the mean width
of the band. Pointwise bands are judged at {places} scores, evenly many rows apart, or at all bins, weighted by rows.

`reliability_curve(y, p, estimator=..., level=0.95, band=...)`, `ReliabilityDisplay.from_predictions(..., band=...)` and
the page of a report draw them. They answer three questions:

- **confidence**: where is the true frequency at this score? It lies around the curve.
- **consistency**: where would this curve be if the model were calibrated? It lies around the diagonal; a curve that
  leaves it at a score chosen beforehand is evidence against calibration there.
- **simultaneous**: where is the truth at all scores at once? A band that leaves the diagonal out anywhere is evidence
  against calibration, with a guarantee for every n. Of curves without bins it covers all truths that do not fall.
"""


def table(title: str, rows: list[tuple[str, str]], names: list[str], n: int, found: dict) -> str:
    lines = [f"## {title}, N = {n:,}".replace(",000", " 000"), "", "| curve | band | " + " | ".join(names) + " |"]
    lines += ["|---|---|" + "---|" * len(names)]
    for method, band in rows:
        entries = []
        for name in names:
            share, se, width = found[name, n, method, band]
            entries.append(f"{100 * share:.1f} ± {100 * se:.1f} ({width:.3f})")
        lines.append(f"| {method} | {band} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


SECTIONS = [
    ("Confidence bands cover the truth", POINTWISE, list(CASES)),
    ("Consistency bands cover the curve of a calibrated model", CONSISTENCY, CALIBRATED),
    ("Simultaneous bands cover the truth everywhere", SIMULTANEOUS, [name for name in CASES if name != "wavy"]),
]
REMARKS = Path(__file__).with_name("bands_remarks.md")


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=300, jobs=1, write=True)
    parser.add_argument("--limit", action="store_true")
    options = parser.parse_args()
    if options.limit:
        for level, value, kept in zip(LIMIT_LEVELS, limit(max(options.repetitions, 40_000)), LIMIT, strict=True):
            print(f"{level:<6} {value:.3f} (in the code {kept:.3f})")
        return
    cells = [
        (name, n, method, band) for _, rows, names in SECTIONS for n in SIZES for method, band in rows for name in names
    ]
    values = Parallel(n_jobs=options.jobs, verbose=5)(delayed(cell)(*one, options.repetitions) for one in cells)
    found = dict(zip(cells, values, strict=True))
    parts = [PAGE.format(repetitions=options.repetitions, places=PLACES)]
    parts += [table(title, rows, names, n, found) for title, rows, names in SECTIONS for n in SIZES]
    text = "\n".join([parts[0], "\n\n".join(parts[1:]), "", REMARKS.read_text(encoding="utf-8")])
    if options.write:
        write_text(options.write, text)
    print(text)


if __name__ == "__main__":
    main()
