"""Does `find_segments` report false segments, does it find real ones, and do its intervals cover?

    python -m benchmarks.coverage.segments [--repetitions 1000]

Features are numbers, categories and Booleans. Scores come from a logistic model. Samples without a segment have 4,000
rows. In some, outcomes are *rare* (2 %), a *wrong map* miscalibrates all rows equally (log-odds are 0.6 times the
scores', minus 0.3), or rows are *dependent* (groups of 10 share a normal effect, sd 0.7 on the log-odds). *8 normal*
has 5,000 rows with normal features. Other samples add a segment of one to three conditions; *z beyond* is its z minus
the search's limit. Intervals cover all tested gaps simultaneously. The search was designed on other seeds.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept
from .aims import misses

N = 4_000
CALIBRATED = ("5 features", "50 features", "500 features", "rare", "wrong map", "dependent", "8 normal features")
#: Rows, share, conditions and gap of planted segments, by what they are called.
PLANTED = {
    f"{n:,} rows, {of:.0%}, {terms} condition{'s' if terms > 1 else ''}, {gap}": (n, of, terms, gap)
    for n, of, gap in (
        (5_000, 0.05, 0.2),
        (5_000, 0.2, 0.1),
        (20_000, 0.02, 0.2),
        (20_000, 0.05, 0.1),
        (20_000, 0.05, 0.2),
        (20_000, 0.2, 0.05),
        (100_000, 0.01, 0.1),
        (1_000_000, 0.01, 0.05),
    )
    for terms in (1, 2, 3)
}
WAYS = ("simulate", "split")
WORDS = {"simulate": "simulation", "split": "split"}
#: Bands of how much the planted segment's z on all rows exceeds what the search needs.
BANDS = {"z short": (-np.inf, 0), "z beyond 0-2": (0, 2), "z beyond 2-4": (2, 4), "z beyond 4+": (4, np.inf)}
#: Aims: false reports at most and coverage at least, in per cent; power (in per cent) and overlap at least, by band.
REPORTS, COVERAGE, FOUND = 5, 95, {"z beyond 2-4": (80, 0.6), "z beyond 4+": (80, 0.8)}


def portion(truth: str, way: str) -> float:
    """Share of the repetitions that a case gets."""
    if truth in PLANTED:
        many = {5_000: 0.01, 20_000: 0.01, 100_000: 0.01, 1_000_000: 0.004}[PLANTED[truth][0]]
        return many if way == "simulate" else 4 * many
    return {"50 features": 0.3, "500 features": 0.08}.get(truth, 0.4) if way == "simulate" else 1.0


def features(n: int, number: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Columns of several kinds, in turn."""
    out: dict[str, np.ndarray] = {}
    for i in range(number):
        kind = i % 5
        values: Any = (
            (lambda: rng.normal(size=n)),
            (lambda: rng.lognormal(size=n)),
            (lambda: rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1])),
            (lambda: rng.integers(18, 90, n).astype(float)),
            (lambda: rng.random(n) < 0.3),
        )[kind]()
        if i == 3:
            values[rng.random(n) < 0.05] = np.nan
        out[f"x{i}"] = values
    return out


def calibrated(case: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any], Any]:
    """Outcomes, scores, chances, features and groups."""
    place = 1000 + CALIBRATED.index(case)
    if case == "8 normal features":
        return planted((5_000, 0.2, 2, 0.0), place, seed)[:5]
    rng = np.random.default_rng([seed, place])
    number = int(case.split()[0]) if case[0].isdigit() else 10
    X, groups = features(N, number, rng), None
    signal = 0.8 * X["x0"] + 0.6 * (X["x2"] == "north") - 0.5 * X["x4"]
    s = expit(signal - (4.4 if case == "rare" else 0.0) + 0.3 * rng.normal(size=N))
    chance = s
    if case == "wrong map":
        chance = expit(0.6 * logit(s) - 0.3)
    elif case == "dependent":
        groups = np.repeat(np.arange(N // 10), 10)
        X = {name: (v[groups * 10] if i % 2 else v) for i, (name, v) in enumerate(X.items())}
        signal = 0.8 * X["x0"] + 0.6 * (X["x2"] == "north") - 0.5 * X["x4"]
        # A score is the mean over the effects that a group may have.
        at, weight = np.polynomial.hermite_e.hermegauss(20)
        s = chance = expit(signal[:, None] + 0.7 * at) @ (weight / weight.sum())
        effect = 0.7 * rng.normal(size=N // 10)[groups]
        return (rng.random(N) < expit(signal + effect)).astype(int), s, chance, X, groups
    return (rng.random(N) < chance).astype(int), s, chance, X, groups


def planted(shape: tuple[int, float, int, float], place: int, seed: int) -> tuple[Any, ...]:
    """The same of a segment's shape, and which rows are planted; ``place`` tells apart what is drawn."""
    n, of, terms, gap = shape
    rng = np.random.default_rng([seed, place])
    X = {f"x{i}": rng.normal(size=n) for i in range(8)}
    each = of ** (1 / terms)
    inside = np.ones(n, dtype=bool)
    for i in range(terms):
        start = rng.random() * (1 - each)
        low, high = (start, start + each) if i % 2 == 0 else (0.0, each)
        inside &= (X[f"x{i}"] >= np.quantile(X[f"x{i}"], low)) & (X[f"x{i}"] <= np.quantile(X[f"x{i}"], high))
    s = 0.1 + 0.7 * rng.beta(2, 2, n)
    chance = s + gap * inside
    return (rng.random(n) < chance).astype(int), s, chance, X, None, inside


def sample(truth: str, way: str, seed: int) -> dict[str, float]:
    """Segments reported; whether all intervals cover; planted: z of the oracle, that needed, and overlap; seconds."""
    made = (
        planted(PLANTED[truth], 2000 + [*PLANTED].index(truth), seed) if truth in PLANTED else calibrated(truth, seed)
    )
    y, s, chance, X, groups, *inside = made
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.find_segments(y, s, X, groups=groups, confirm=way, random_state=seed)
    out = {"seconds": time.process_time() - began, "reported": float(len(found.segments) > 0)}
    covered = True
    for one, bits in zip(found.tested, found._masks, strict=True):
        rows = np.unpackbits(bits, count=len(y)).astype(bool)
        low, high = one.gap_interval
        covered &= bool(low <= (chance - s)[rows].mean() <= high)
    out["covered"] = float(covered)
    for rows in inside:
        z = (y - s)[rows].sum() / np.sqrt((s * (1 - s))[rows].sum() * (1 - rows.mean()))
        each = [(found.mask(i) & rows).sum() / (found.mask(i) | rows).sum() for i in range(len(found.segments))]
        needed = found.tested[0].critical if found.tested else np.nan
        out |= {"z": float(z), "needed": float(needed), "overlap": float(max(each, default=np.nan))}
    return out


def answer(kept: Kept) -> str:
    calm = {(name, way): kept.where(truth=name, way=way)["reported"] for name in CALIBRATED for way in WAYS}
    pooled = [share(np.concatenate([calm[name, way] for name in CALIBRATED])) for way in WAYS]
    more = [case for case, values in calm.items() if misses(percent(values), REPORTS, above=True)]
    less = [case for case, values in _covered(kept).items() if misses(percent(values), COVERAGE)]
    found = []
    for band, (least, near) in FOUND.items():
        told = [_band(kept, way, band, least, near) for way in WAYS]
        low, high = BANDS[band]
        by = f"by {low} to {high}" if np.isfinite(high) else f"by more than {low}"
        where = "it exceeds it" if found else "its z exceeds the limit"
        found.append(f"in {told[0]} and {told[1]} where {where} {by} (aims: {least} %, {near})")
    covered = [share(kept.where(way=way)["covered"]) for way in WAYS]
    return (
        f"Simulation reports a segment in {pooled[0]} % of samples without one, and a split in {pooled[1]} % (aim: "
        f"{REPORTS} %, {_missed(more)}). They report a planted segment {', and '.join(found)}. All intervals cover in "
        f"{covered[0]} and {covered[1]} % of samples (aim: {COVERAGE} %, {_missed(less)})."
    )


def _band(kept: Kept, way: str, band: str, least: float, near: float) -> str:
    reported, overlap, _ = _banded(kept, way, band)
    lost = [
        "missed" if misses(pair, aim) else "" for pair, aim in ((percent(reported), least), (_middle(overlap), near))
    ]
    said = " ".join(one for one in (f"overlap {_middle(overlap)[0]:.2f}", lost[1] if not lost[0] else "") if one)
    return f"{share(reported)} % ({'both ' if all(lost) else ''}{f'{lost[0]}, ' if lost[0] else ''}{said})"


def _missed(cases: list[tuple[str, str]]) -> str:
    """Cases by way."""
    names = {way: [name for name, one in cases if one == way] for way in WAYS}
    told = [f"by {WORDS[way]} for {', '.join(some)}" for way, some in names.items() if some]
    return f"missed by more than two standard errors {'; '.join(told)}" if told else "met in every case"


def picture(kept: Kept) -> Figure:
    names = {name: [name] for name in CALIBRATED}
    for n, of, _, gap in PLANTED.values():
        names[f"{100 * of:.0f} % of {n:,} rows, {gap}"] = [
            k for k, v in PLANTED.items() if v[:2] + v[3:] == (n, of, gap)
        ]
    series = {
        way: [
            percent(np.concatenate([kept.where(truth=one, way=way)["reported"] for one in some]))
            for some in names.values()
        ]
        for way in WAYS
    }
    figure = dots([*names], series, "samples with a reported segment, %", share=True)
    figure.axes[0].plot(
        [REPORTS] * 2, [-0.5, len(CALIBRATED) - 0.5], color="0.4", linestyle="--", linewidth=1, zorder=1
    )
    return figure


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives, by simulation and split, the percentage of samples that report segments, the median Jaccard"
    yield "overlap with the planted rows, and the percentage in which all intervals cover. **Bold** misses the aim."
    yield ""
    yield from table(("samples", "found", "split", "overlap", "split", "covered", "split"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name in CALIBRATED:
        parts = [kept.where(truth=name, way=way) for way in WAYS]
        found = [_cell(part["reported"], REPORTS, above=True) for part in parts]
        yield [
            name.replace("normal features", "normal"),
            *found,
            "",
            "",
            *(_cell(part["covered"], COVERAGE) for part in parts),
        ]
    for band in [*BANDS][1:]:
        least, near = FOUND.get(band, (0, 0.0))
        reported, overlap, held = zip(*(_banded(kept, way, band) for way in WAYS), strict=True)
        middles = [_middle(values) for values in overlap]
        told = [_bold(f"{pair[0]:.2f}".replace("nan", ""), misses(pair, near)) for pair in middles]
        yield [band, *(_cell(v, least) for v in reported), *told, *(_cell(v, COVERAGE) for v in held)]


def _cell(hits: np.ndarray, aim: float, above: bool = False) -> str:
    value, error = percent(hits)
    text = f"{value:.1f} ± {error:.1f}" if error > 5 else f"{value:.1f}"
    return _bold(text, misses((value, error), aim, above)) if value == value else ""


def _bold(text: str, missed: bool) -> str:
    return f"**{text}**" if missed else text


def _covered(kept: Kept) -> dict[tuple[str, str], np.ndarray]:
    """In which samples all intervals cover, by what they are and way."""
    out = {(name, way): kept.where(truth=name, way=way)["covered"] for name in CALIBRATED for way in WAYS}
    return out | {(band, way): _banded(kept, way, band)[2] for band in BANDS for way in WAYS}


def _banded(kept: Kept, way: str, band: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reports, overlaps and coverage of planted samples of a band."""
    low, high = BANDS[band]
    every = [kept.where(truth=name, way=way) for name in PLANTED]
    beyond = np.concatenate([one["z"] - one["needed"] for one in every])
    some = (beyond > low) & (beyond <= high)
    return tuple(np.concatenate([one[n] for one in every])[some] for n in ("reported", "overlap", "covered"))  # type: ignore[return-value]


def _middle(values: np.ndarray) -> tuple[float, float]:
    """A median and its standard error over resampled values; NaN where there is none."""
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    drawn = np.random.default_rng(0).choice(values, (400, values.size))
    return float(np.median(values)), float(np.median(drawn, axis=1).std())


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": [*CALIBRATED, *PLANTED], "way": WAYS},
    sample,
    answer,
    page,
    picture,
    repetitions=1000,
    quick=1,
    timed=("seconds",),
    portion=portion,
)

if __name__ == "__main__":
    EXPERIMENT.main()
