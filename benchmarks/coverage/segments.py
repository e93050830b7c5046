"""Does `find_segments` report segments that are none, does it find those that are, and do its intervals cover?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.segments [--repetitions 1000] [--jobs 2]

Features: numbers (normal, lognormal, whole), categories of four values, a truth value, with 5 % missing in one. Scores
are those of a logistic model of some of them. *Calibrated* samples have 4,000 rows and outcomes drawn from the scores:
with 5, 50 or 500 features, with rare outcomes (2 %), with a map that is wrong alike everywhere (log-odds of outcomes
are 0.6 times those of the scores, less 0.3), and with rows in 400 groups of 10 that share a normal effect with standard
deviation 0.7 on the log-odds, and features of which half are constant within a group. *Planted* segments, with 8
features, have one to three conditions on numbers, a share of the rows, and a gap in the frequency. Coverage is that of
the true gaps of all segments tested in a sample at once, reported or not. What takes long has fewer samples. Seeds are
not those of samples that were looked at while the search was made.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

from ..experiment import Experiment, title
from ..markdown import share, table
from ..provenance import Kept

N = 4_000
CALIBRATED = ("5 features", "50 features", "500 features", "rare", "wrong map", "dependent")
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
#: Bands of how much the planted segment's z on all rows exceeds what the search needs.
BANDS = {"less than none": (-np.inf, 0), "0 to 2": (0, 2), "2 to 4": (2, 4), "more than 4": (4, np.inf)}


def portion(truth: str, way: str) -> float:
    """Share of the repetitions that a case gets."""
    if truth in PLANTED:
        many = {5_000: 0.02, 20_000: 0.02, 100_000: 0.005, 1_000_000: 0.002}[PLANTED[truth][0]]
        return many if way == "simulate" else 2 * many
    return {"50 features": 0.05, "500 features": 0.005}.get(truth, 0.2) if way == "simulate" else 1.0


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
    rng = np.random.default_rng([seed, 1000 + CALIBRATED.index(case)])
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


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    calm = {way: np.concatenate([kept.where(truth=s, way=way)["reported"] for s in CALIBRATED]) for way in WAYS}
    covered = {way: kept.where(way=way)["covered"] for way in WAYS}
    told = {way: _banded(kept, way, "2 to 4") for way in WAYS}
    yield f"Of models that are calibrated in every segment {share(calm['simulate'])} % of the samples report one by"
    yield f"simulation and {share(calm['split'])} % by split, where at most 5 % may. All intervals cover in"
    yield f"{share(covered['simulate'])} and {share(covered['split'])} % of all samples. Where the z of the planted"
    yield f"rows exceeds what the search needs by 2 to 4, simulation finds it in {share(told['simulate'][0])} %, with a"
    yield f"median overlap (Jaccard) of {np.nanmedian(told['simulate'][1]):.2f}."
    yield ""
    yield "## Models that are calibrated in every segment"
    yield ""
    yield "Samples in which anything is reported, and in which all intervals cover, in per cent with standard errors."
    yield ""
    yield from table(("samples", "way", "runs", "reports", "coverage", "seconds"), _calibrated(kept), texts=2)
    yield ""
    yield "## Planted segments"
    yield ""
    yield "By how much the planted segment's z on all rows, as if it were known, exceeds what is needed after the"
    yield "search of all rows (half of them by split): samples in which anything is reported, the median overlap of the"
    yield "best segment with the planted rows, and samples in which all intervals cover."
    yield ""
    yield from table(("z less needed", "way", "runs", "power", "overlap", "coverage"), _bands(kept), texts=2)
    yield ""
    yield "By size, share, number of conditions and gap, by simulation. *oracle*: samples in which z exceeds what is"
    yield "needed."
    yield ""
    yield from table(("planted", "runs", "power", "oracle", "overlap", "seconds"), _planted(kept))


def _calibrated(kept: Kept) -> Iterator[list[str]]:
    for name in CALIBRATED:
        for way in WAYS:
            some = kept.where(truth=name, way=way)
            told = share(some["reported"]), share(some["covered"])
            yield [name, way, f"{len(some):,}", *told, f"{np.median(some['seconds']):.1f}"]


def _banded(kept: Kept, way: str, band: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reports, overlaps and coverage of planted samples of a band."""
    low, high = BANDS[band]
    every = [kept.where(truth=name, way=way) for name in PLANTED]
    beyond = np.concatenate([one["z"] - one["needed"] for one in every])
    some = (beyond > low) & (beyond <= high)
    return tuple(np.concatenate([one[n] for one in every])[some] for n in ("reported", "overlap", "covered"))  # type: ignore[return-value]


def _bands(kept: Kept) -> Iterator[list[str]]:
    for way in WAYS:
        for band in BANDS:
            told, overlap, covered = _banded(kept, way, band)
            if told.size:
                yield [band, way, str(told.size), share(told), _median(overlap), share(covered)]


def _median(values: np.ndarray) -> str:
    return f"{np.nanmedian(values):.2f}" if np.isfinite(values).any() else ""


def _planted(kept: Kept) -> Iterator[list[str]]:
    for name in PLANTED:
        some = kept.where(truth=name, way="simulate")
        oracle = share((some["z"] > some["needed"]).astype(float))
        seconds = f"{np.median(some['seconds']):.1f}"
        yield [name, str(len(some)), share(some["reported"]), oracle, _median(some["overlap"]), seconds]


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": [*CALIBRATED, *PLANTED], "way": WAYS},
    sample,
    page,
    repetitions=1000,
    quick=1,
    timed=("seconds",),
    portion=portion,
)

if __name__ == "__main__":
    EXPERIMENT.main()
