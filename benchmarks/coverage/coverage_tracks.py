"""Do intervals of the default cover the true error on the benchmark's distributions?

    python -m benchmarks.coverage.coverage_tracks [--repetitions 16]

Samples of 200, 1,000 and 5,000 rows come from the tracks of the known-truth benchmark and from the first 24 mixtures in
its order of work. No choice about intervals was made on the mixtures. Their models are Gaussian naive Bayes, random
forests, logistic regressions and support vector machines (svc). *√n bins* (in the picture) and *15 bins* are intervals
for the L2 error by test inversion, with debiased quantile bins. *Bootstrap* takes percentiles of the plain error of 15
bins. How much of the default's correction counts, and when an interval starts at 0, were chosen on the tracks with
other seeds.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.benchmark.tracks import TrackDistribution, distributions
from calibrant.data.problem import Problem

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept
from .mixture_track import MixtureDistribution, mixtures

LEVEL, SIZES, RESAMPLES = 0.95, (200, 1000, 5000), 200
#: Notions of each track. The last is cheap: a quick run repeats its last sample.
NOTIONS = {
    "beta": ("class-specific",),
    "imbalance": ("class-specific",),
    "dirichlet": ("confidence", "classwise"),
    "mixtures": ("confidence", "classwise"),
    "networks": ("confidence", "class-specific"),
}
TRACKS: dict[str, dict[str, TrackDistribution | MixtureDistribution]] = {
    track: {d.name: d for d in (mixtures(24) if track == "mixtures" else distributions(track))} for track in NOTIONS
}
MODELS = ("bayes", "forest", "logistic", "svc")
#: Methods: the norm of the error that each is of, and its options.
METHODS: dict[str, tuple[int, dict[str, Any]]] = {
    "default": (1, {}),
    "√n bins": (2, {"norm": 2, "estimator": cal.Binned("sqrt", "quantile", debias=True)}),
    "15 bins": (2, {"norm": 2, "estimator": cal.Binned(15, "quantile", debias=True)}),
    "bootstrap": (1, {}),
}


@cache
def truth(track: str, distribution: str, notion: str, norm: int) -> float:
    """The true error; 0 of a calibrated distribution."""
    value = TRACKS[track][distribution].truth(notion, norm).value
    return value if value > 1e-9 else 0.0


def bootstrap(problems: tuple[Problem, ...], rng: np.random.Generator) -> tuple[float, float]:
    """Percentiles of the error over 15 bins of equal width, rows drawn with Poisson weights."""
    parts = []
    for sample in problems:
        bins = np.clip(np.ceil(sample.scores * 15).astype(int) - 1, 0, 14)
        parts.append(np.zeros((sample.n_samples, 15)))
        parts[-1][np.arange(sample.n_samples), bins] = sample.outcomes - sample.scores
    weight = rng.poisson(1.0, (RESAMPLES, len(parts[0]))).astype(np.float64)
    total = np.abs(weight @ np.concatenate(parts, axis=1)).sum(axis=1) / weight.sum(axis=1) / len(parts)
    low, high = np.quantile(total, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def sample(track: str, distribution: str, notion: str, n: int, seed: int) -> dict[str, float]:
    """On which side of each interval the truth lies (-1 below, 1 above), widths of L1 errors, and the true one."""
    d = TRACKS[track][distribution]
    rng = np.random.default_rng([seed, [*NOTIONS].index(track), [*TRACKS[track]].index(distribution), n])
    scores, labels = d.sample(1, n, rng)
    about: dict[str, Any] = {"pos_label": 1}
    if scores.ndim == 3:
        about = {"notion": notion, "labels": range(scores.shape[2])}
    out = {"truth": round(truth(track, distribution, notion, 1), 6)}
    for method, (norm, given) in METHODS.items():
        if method == "bootstrap":
            low, high = bootstrap(tuple(p[0] for p in d.problems(scores, labels, notion)), rng)
        else:
            about |= {"level": LEVEL, "random_state": seed}
            low, high = cal.estimate(labels[0], scores[0], **about, **given).interval
        true = truth(track, distribution, notion, norm)
        out[method] = float(true > high + 1e-12) - float(true < low - 1e-12)
        if norm == 1:
            out[f"{method}: width"] = round(high - low, 6)
    return out


def _where(kept: Kept, held: np.ndarray) -> Kept:
    return Kept(kept.header, {name: [column[i] for i in np.flatnonzero(held)] for name, column in kept.columns.items()})


def _covered(part: Kept, method: str) -> tuple[float, float, float]:
    """Coverage in per cent, its standard error over distributions (at least that of a share), and the lowest of one."""
    shares, names = 100.0 * (part[method] == 0), np.array(part.columns["distribution"])
    by = np.array([shares[names == name].mean() for name in part.distinct("distribution")])
    return estimate(by)[0], max(estimate(by)[1], percent(shares / 100)[1]), float(by.min())


def _groups(kept: Kept) -> Iterator[tuple[str, str, Kept]]:
    """What lines of the table are of: scores and notion, whether there is an error, and the samples."""
    for track, notions in NOTIONS.items():
        for notion in notions:
            part = kept.where(track=track, notion=notion)
            short = notion.replace("class-specific", "one class")
            if track == "mixtures":
                models = np.array([name.rsplit("-", 1)[-1] for name in part.columns["distribution"]])
                yield from ((f"{model}, {short}", "> 0", _where(part, models == model)) for model in MODELS)
                continue
            for error, held in (("0", part["truth"] == 0), ("> 0", part["truth"] > 0)):
                yield track if len(notions) == 1 else f"{track}, {short}", error, _where(part, held)


def _parts(kept: Kept) -> dict[str, Kept]:
    """Calibrated distributions of tracks, others, and mixtures."""
    mixed = np.array([track == "mixtures" for track in kept.columns["track"]])
    zero = kept["truth"] == 0
    parts = {"calibrated": zero & ~mixed, "miscalibrated": ~zero & ~mixed, "mixtures": mixed}
    return {name: _where(kept, held) for name, held in parts.items()}


def answer(kept: Kept) -> str:
    calm, off, mixed = (_covered(part, "default") for part in _parts(kept).values())
    lines = {f"{name} (error {error})": _covered(part, "default") for name, error, part in _groups(kept)}
    below = {name: value for name, (value, se, _) in lines.items() if value + 2 * se < 100 * LEVEL}
    where = "; ".join(f"{name}, {value:.1f} %" for name, value in below.items()) or "no kind of scores"
    usual = _covered(_parts(kept)["miscalibrated"], "bootstrap")
    by: dict[str, list[bool]] = {}
    for *about, hit in zip(kept.columns["distribution"], kept.columns["notion"], kept["default"] == 0, strict=True):
        by.setdefault(", ".join(about), []).append(hit)
    worst = min(by, key=lambda name: np.mean(by[name]))
    return (
        f"On the tracks, the default's 95 % intervals cover the true error in {calm[0]:.1f} ± {calm[1]:.1f} % of "
        f"samples of calibrated distributions and in {off[0]:.1f} ± {off[1]:.1f} % of other samples (percentile "
        f"bootstrap: {usual[0]:.1f} ± {usual[1]:.1f} %). On mixtures the default covers it "
        f"in {mixed[0]:.1f} ± {mixed[1]:.1f} %. Its coverage is below 95 % by more than two standard errors on "
        f"{where}. On the worst distribution ({worst}) it is {100 * np.mean(by[worst]):.0f} %."
    )


def picture(kept: Kept) -> Figure:
    parts = _parts(kept)
    parts["mixtures, svc"] = _where(
        parts["mixtures"], np.array([name.endswith("svc") for name in parts["mixtures"].columns["distribution"]])
    )
    lines = {f"{name}, {n:,} rows": part.where(n=n) for name, part in parts.items() for n in SIZES}
    series = {method: [_covered(part, method)[:2] for part in lines.values()] for method in METHODS}
    return dots([*lines], series, "samples whose interval covers, %", 100 * LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent over all sizes where the error is not 0, with its standard error over"
    yield "distributions. *Lowest* is coverage on the worst distribution."
    yield ""
    head = ("scores", "default", "lowest", *[*METHODS][2:])
    yield from table(head, _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name, error, part in _groups(kept):
        if error != "0":
            (value, se, least), _, *others = (_covered(part, method) for method in METHODS)
            yield [name, f"{value:.1f} ± {se:.1f}", f"{least:.0f}", *(f"{one:.1f}" for one, *_ in others)]


EXPERIMENT = Experiment(
    __spec__.name,
    {
        "track": [*NOTIONS],
        "distribution": [name for track in TRACKS.values() for name in track],
        "notion": ("confidence", "classwise", "class-specific"),
        "n": SIZES,
    },
    sample,
    answer,
    page,
    picture,
    repetitions=16,
    quick=2,
    figures={"covered": lambda kept, part: f"{_covered(_parts(kept)[part], 'default')[0]:.1f}"},
    some=lambda track, distribution, notion, n: (
        distribution in TRACKS[track] and notion in NOTIONS[track] and notion in TRACKS[track][distribution].notions
    ),
)

if __name__ == "__main__":
    EXPERIMENT.main()
