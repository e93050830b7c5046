"""Coverage of intervals on the tracks of the known-truth benchmark, written to docs/coverage.md.

    python -m benchmarks.coverage.coverage_tracks --out RUN [--tracks beta,networks,imbalance,dirichlet,mixtures]
        [--sizes 200,1000,5000] [--repetitions 100] [--jobs 2] [--seed 0] [--level 0.95] [--docs docs]
        [--run MIXTURE_RUN --most 60]

Intervals of each sample: of `estimate(...)` (the default: a posterior with a spike at "calibrated"), of the debiased L2
error over 15 and over √n quantile bins (`Binned("sqrt", "quantile", debias=True)` with `norm=2`: test inversion), and,
to compare lengths, the percentile bootstrap of `Binned(15)`. The track "mixtures" are distributions of a run of
`calibrant benchmark` with kept predictions: nothing about intervals was chosen on them. A cell (distribution, notion,
size) is one file of RUN: a run that was stopped goes on. Posteriors of all repetitions are fitted together; of the
first ones `estimate` itself is called as well, and its upper end must agree within a factor of 2.5.
"""

import argparse
import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import calibrant as cal
from calibrant.benchmark.tracks import TrackDistribution, distributions
from calibrant.data.problem import Problem
from calibrant.data.writing import write_text
from calibrant.estimators.base import ErrorDraws
from calibrant.measure import posterior
from calibrant.measure.question import Question

from ..arguments import parser as new_parser
from .mixture_track import mixtures

DRAWS, CHECKED, CHUNK = 800, 2, 20
Pairs = list[tuple[float, float]]
NOTIONS = {
    "beta": ("class-specific",),
    "imbalance": ("class-specific",),
    "networks": ("class-specific", "confidence"),
    "dirichlet": ("confidence", "classwise"),
    "mixtures": ("confidence", "classwise"),
}


def credible(problems: tuple[Problem, ...], level: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Posterior intervals of every sample of some problems, one a class."""
    estimator, k, n = cal.EmpiricalBayes(), len(problems), int(problems[0].counts[0])
    drawn = [estimator._draws(estimator.summarize(p), 1, DRAWS, rng) for p in problems]
    about = {"labels": (None,) * k, "shares": (1 / k,) * k, "average": "power", "dependent": k > 1}
    question = Question("classwise", 1.0, level, n_samples=n, size=float(n), **about)
    out = []
    for r in range(len(problems[0])):
        powers, odds = np.stack([d.powers[r] for d in drawn]), np.array([d.log_odds[r] for d in drawn])
        out.append(tuple(posterior.credible(ErrorDraws(powers, odds), question).interval))
    return out


def bootstrap(problems: tuple[Problem, ...], r: int, level: float, rng: np.random.Generator) -> tuple[float, float]:
    """Percentile bootstrap of the error over 15 bins of equal width, rows drawn with Poisson weights."""
    samples = [p[r] for p in problems]
    n = samples[0].n_samples
    total = np.zeros(200)
    for sample in samples:
        # Each class is resampled by itself.
        weight = rng.poisson(1.0, (200, n)).astype(np.float64)
        bins = np.clip(np.ceil(sample.scores * 15).astype(int) - 1, 0, 14)
        table = np.zeros((n, 15))
        table[np.arange(n), bins] = sample.outcomes - sample.scores
        total += np.abs(weight @ table).sum(axis=1) / weight.sum(axis=1) / len(samples)
    low, high = np.quantile(total, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def arguments(d: TrackDistribution, scores: np.ndarray, labels: np.ndarray, notion: str) -> tuple[tuple, dict]:
    """What `estimate` takes for one sample."""
    if scores.ndim == 1:
        if notion == "confidence" and len(d.notions) > 1:
            return (labels, np.column_stack([1 - scores, scores])), {"notion": notion, "labels": [0, 1]}
        return (labels, scores), {"pos_label": 1}
    return (labels, scores), {"notion": notion, "labels": range(scores.shape[1])}


def by_posterior(
    d: TrackDistribution, notion: str, n: int, options: argparse.Namespace, rng: np.random.Generator
) -> Pairs:
    """Intervals of `estimate(...)`, many at once."""
    found: Pairs = []
    for scores, labels in samples(d, n, options, rng):
        intervals = credible(d.problems(scores, labels, notion), options.level, rng)
        for r in range(CHECKED if not found else 0):
            given, about = arguments(d, scores[r], labels[r], notion)
            own = cal.estimate(*given, level=options.level, random_state=rng, **about).interval
            # Tails of 800 draws are noisy, and where scores lie within a cell of the public grid cells differ.
            assert 1 / 2.5 < (own.high + 0.005) / (intervals[r][1] + 0.005) < 2.5, (d.name, own, intervals[r])
        found += intervals
    return found


def by_inversion(
    d: TrackDistribution,
    notion: str,
    n: int,
    options: argparse.Namespace,
    rng: np.random.Generator,
    estimator: cal.Binned,
) -> Pairs:
    """Intervals of a debiased L2 error."""
    found: Pairs = []
    for scores, labels in samples(d, n, options, rng):
        for r in range(len(scores)):
            given, about = arguments(d, scores[r], labels[r], notion)
            about |= {"level": options.level, "random_state": rng}
            found.append(tuple(cal.estimate(*given, estimator=estimator, norm=2, **about).interval))
    return found


def by_bootstrap(
    d: TrackDistribution, notion: str, n: int, options: argparse.Namespace, rng: np.random.Generator
) -> Pairs:
    """Percentile intervals of 15 bins."""
    found: Pairs = []
    for scores, labels in samples(d, n, options, rng):
        problems = d.problems(scores, labels, notion)
        found += [bootstrap(problems, r, options.level, rng) for r in range(len(scores))]
    return found


#: What a method is called, which error it is about, and what finds its intervals.
METHODS: dict[str, tuple[int, Callable[..., Pairs]]] = {
    "posterior": (1, by_posterior),
    "debiased L2, 15 bins": (2, partial(by_inversion, estimator=cal.Binned(15, "quantile", debias=True))),
    "debiased L2, √n bins": (2, partial(by_inversion, estimator=cal.Binned("sqrt", "quantile", debias=True))),
    "percentile bootstrap": (1, by_bootstrap),
}


def samples(
    d: TrackDistribution, n: int, options: argparse.Namespace, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Evaluation sets, a few at a time."""
    for start in range(0, options.repetitions, CHUNK):
        yield d.sample(min(CHUNK, options.repetitions - start), n, rng)


def cell(d: TrackDistribution, notion: str, n: int, options: argparse.Namespace) -> dict:
    """Hits, lengths and sides of the misses of every method in one cell."""
    name = f"{d.track}-{d.name}-{notion}-{n}"
    path = Path(options.out) / f"{name}.json"
    if path.exists():
        out: dict = json.loads(path.read_text())
    else:
        truths = {str(p): d.truth(notion, p).value for p in (1, 2)}
        out = {"track": d.track, "name": d.name, "notion": notion, "n": n, "truths": truths, "methods": {}}
        out |= {"calibrated": d.calibrated or truths["1"] < 1e-9, "repetitions": options.repetitions}
    lacking = [method for method in METHODS if method not in out["methods"]]
    for method in lacking:
        norm, find = METHODS[method]
        rng = np.random.default_rng([options.seed, zlib.crc32(name.encode()), zlib.crc32(method.encode())])
        low, high = np.array(find(d, notion, n, options, rng)).T
        truth = out["truths"][str(norm)]
        out["methods"][method] = {
            "below": int((truth < low - 1e-12).sum()),
            "above": int((truth > high + 1e-12).sum()),
            "length": float((high - low).mean()),
        }
    if lacking:
        write_text(path, json.dumps(out))
    return out


def kind(c: dict) -> str:
    """Track of a cell; of a mixture also the model."""
    return f"mixtures, {c['name'].rsplit('-', 1)[-1]}" if c["track"] == "mixtures" else c["track"]


def table(cells: list[dict], options: argparse.Namespace) -> str:
    """Markdown: coverage by track, size and whether the model is calibrated, with the spread over distributions."""
    grouped: dict[tuple[str, str, bool, int], list[dict]] = {}
    for c in cells:
        about = (c["notion"], not c["calibrated"], c["n"])
        grouped.setdefault((kind(c), *about), []).append(c)
    totals: list = []
    for some, name in ((False, "**all tracks**"), (True, "**all mixtures**")):
        chosen = [c for c in cells if (c["track"] == "mixtures") == some]
        for wrong, n in sorted({(not c["calibrated"], c["n"]) for c in chosen}):
            alike = [c for c in chosen if (not c["calibrated"], c["n"]) == (wrong, n)]
            totals.append(((name, "", wrong, n), alike))
    return f"## In short\n\n{_lines(totals)}\n\n## All\n\n{_lines(sorted(grouped.items()))}"


def _lines(groups: list) -> str:
    lines = [
        "| track | notion | model | n | distributions | method | coverage % | lowest | truth below | above | length |",
        "|---|---|---|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    for (track, notion, wrong, n), chosen in groups:
        for method in METHODS:
            m = [c["methods"][method] for c in chosen]
            reps = np.array([c["repetitions"] for c in chosen])
            below, above = np.array([x["below"] for x in m]) / reps, np.array([x["above"] for x in m]) / reps
            share = 1 - below - above
            # Distributions differ in coverage: their spread is in the standard error of the mean.
            error = 100 * share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else float("nan")
            lines.append(
                f"| {track} | {notion} | {'miscalibrated' if wrong else 'calibrated'} | {n} | {len(chosen)} | {method} "
                f"| {100 * share.mean():.1f} ± {error:.1f} | {100 * share.min():.0f} | {100 * below.mean():.1f} "
                f"| {100 * above.mean():.1f} | {np.mean([x['length'] for x in m]):.3f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = new_parser(__doc__, repetitions=100, jobs=2)
    parser.add_argument("--out", required=True)
    parser.add_argument("--tracks", default="beta,networks,imbalance,dirichlet")
    parser.add_argument("--sizes", default="200,1000,5000")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--names", default="")
    parser.add_argument("--run", default="", help="run with kept predictions, for the track 'mixtures'")
    parser.add_argument("--most", type=int, default=60, help="distributions of the track 'mixtures'")
    parser.add_argument("--docs")
    options = parser.parse_args()
    Path(options.out).mkdir(parents=True, exist_ok=True)
    work = [
        (d, notion, n)
        for track in options.tracks.split(",")
        for d in (mixtures(options.run, options.most) if track == "mixtures" else distributions(track))
        for notion in NOTIONS[track]
        for n in map(int, options.sizes.split(","))
        if notion in d.notions and all(part in d.name for part in options.names.split(","))
    ]
    cells = list(Parallel(n_jobs=options.jobs)(delayed(cell)(*w, options) for w in work))
    text = table(cells, options)
    print(text)
    if options.docs:
        intro = (Path(__file__).parent / "coverage_intro.md").read_text()
        about = f"Level {options.level:g}, {options.repetitions} repetitions a cell, seed {options.seed}.\n\n"
        write_text(Path(options.docs) / "coverage.md", intro + "\n" + about + text + "\n")


if __name__ == "__main__":
    main()
