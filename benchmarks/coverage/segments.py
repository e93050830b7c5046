"""How often `find_segments` reports segments that are none, which it finds, and whether its intervals cover.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.segments --store FILE [--repetitions 200] [--write FILE]

Features: numbers (normal, lognormal, whole), categories of four values, a truth value, with 5 % missing in one. Scores
are those of a logistic model of some of them. *Calibrated* samples have 4,000 rows and outcomes drawn from the scores:
with 5, 50 or 500 features, with rare outcomes (2 %), with a map that is wrong alike everywhere (log-odds of outcomes
are 0.6 times those of the scores, less 0.3), and with rows in 400 groups of 10 that share a normal effect with standard
deviation 0.7 on the log-odds, and features of which half are constant within a group. *Planted* segments, with 8
features, have one to three conditions on numbers, a share of the rows, and a gap in the frequency. A sample's seed is
its number. A coverage is that of the true gaps of all segments tested in a sample at once, reported or not.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

from .. import arguments
from ..store import lines_of

N = 4_000
CALIBRATED = ("5 features", "50 features", "500 features", "rare", "wrong map", "dependent")
#: Rows, share, conditions, gap; `simulate` only up to so many rows.
PLANTED = [
    (n, share, terms, gap)
    for n, share, gap in (
        (5_000, 0.05, 0.2),
        (5_000, 0.2, 0.1),
        (20_000, 0.02, 0.2),
        (20_000, 0.05, 0.1),
        (20_000, 0.05, 0.2),
        (20_000, 0.2, 0.05),
    )
    for terms in (1, 2, 3)
]
WAYS = ("simulate", "split")
#: Repetitions of cases that take long, as a share of all.
RARER = {("500 features", "simulate"): 0.1, ("50 features", "simulate"): 0.5}


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
    rng = np.random.default_rng([seed, CALIBRATED.index(case)])
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


def planted(case: tuple[int, float, int, float], seed: int) -> tuple[Any, ...]:
    """The same, and which rows are planted."""
    n, share, terms, gap = case
    # Cases of the page have the numbers that they had; others are told apart by what they are.
    place = PLANTED.index(case) if case in PLANTED else 1000 + int(n * share * 10 + 1000 * gap) + terms
    rng = np.random.default_rng([seed, 100 + place])
    X = {f"x{i}": rng.normal(size=n) for i in range(8)}
    each = share ** (1 / terms)
    inside = np.ones(n, dtype=bool)
    for i in range(terms):
        start = rng.random() * (1 - each)
        low, high = (start, start + each) if i % 2 == 0 else (0.0, each)
        inside &= (X[f"x{i}"] >= np.quantile(X[f"x{i}"], low)) & (X[f"x{i}"] <= np.quantile(X[f"x{i}"], high))
    s = 0.1 + 0.7 * rng.beta(2, 2, n)
    chance = s + gap * inside
    return (rng.random(n) < chance).astype(int), s, chance, X, None, inside


def outcome(case: Any, way: str, seed: int) -> list[float]:
    """Segments reported; whether all intervals cover; planted: z of the oracle, that needed, and overlap; seconds."""
    made = calibrated(case, seed) if isinstance(case, str) else planted(case, seed)
    y, s, chance, X, groups = made[:5]
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.find_segments(y, s, X, groups=groups, confirm=way, random_state=seed)
    taken = time.perf_counter() - began
    covered = True
    for one, bits in zip(found.tested, found._masks, strict=True):
        rows = np.unpackbits(bits, count=len(y)).astype(bool)
        low, high = one.gap_interval
        covered &= bool(low <= (chance - s)[rows].mean() <= high)
    out = [len(found.segments), float(covered)]
    if not isinstance(case, str):
        inside = made[5]
        share = inside.mean()
        z = (y - s)[inside].sum() / np.sqrt((s * (1 - s))[inside].sum() * (1 - share))
        overlap = [(found.mask(i) & inside).sum() / (found.mask(i) | inside).sum() for i in range(len(found.segments))]
        needed = found.tested[0].critical if found.tested else np.nan
        out += [float(z), float(needed), float(max(overlap, default=0.0))]
    return [*out, taken]


def main() -> None:
    options = arguments.parser(__doc__, repetitions=200, write=True, store=True).parse_args()
    cases: list[Any] = [*CALIBRATED, *PLANTED]
    with lines_of(options.store) as (done, add):
        known = {(str(row[0]), row[1], row[2]) for row in done}
        for seed in range(options.repetitions):
            for case in cases:
                for way in WAYS:
                    most = options.repetitions * (RARER.get((case, way), 1.0) if isinstance(case, str) else 0.15)
                    name = case if isinstance(case, str) else list(case)
                    if seed < most and (str(name), way, seed) not in known:
                        done.append([name, way, seed, *outcome(case, way, seed)])
                        add(done[-1])
    if options.write is not None:
        write(options.write, done, options.repetitions)


def _share(values: np.ndarray) -> str:
    """Per cent with its standard error, that of one more of either kind where all agree."""
    n, k = len(values), float(values.sum())
    p = (k + 1) / (n + 2)
    return f"{100 * k / n:.1f} ± {100 * np.sqrt(p * (1 - p) / n):.1f}"


def write(path: Path, done: list[Any], repetitions: int) -> None:
    """The page."""

    def rows(name: Any, way: str) -> np.ndarray:
        return np.array([row[3:] for row in done if row[0] == name and row[1] == way and row[2] < repetitions], float)

    lines = [
        "# Segments: false reports, power, and intervals",
        "",
        f"Written by `python -m benchmarks.coverage.segments --store FILE --repetitions {repetitions} --write FILE`.",
        "",
        *(__doc__ or "").split("\n\n")[2].splitlines(),
        "",
        "## Models that are calibrated in every segment",
        "",
        "Samples in which anything is reported, and in which all intervals cover, in per cent ± standard error. Both",
        "promises are 5 % and 95 %.",
        "",
        "| samples | way | runs | reports | coverage | seconds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for case in CALIBRATED:
        for way in WAYS:
            if len(r := rows(case, way)):
                shares = f"{_share(r[:, 0] > 0)} | {_share(r[:, 1])}"
                lines.append(f"| {case} | {way} | {len(r)} | {shares} | {np.median(r[:, -1]):.1f} |")
    lines += [
        "",
        "## Planted segments",
        "",
        "*z*: median of the planted segment's z on all rows, as if it were known; *needed*: median of what |z| must",
        "exceed after the search. *power*: samples in which anything is reported; *oracle*: samples in which z exceeds",
        "what is needed. *overlap*: median Jaccard overlap of the best segment with the planted rows, of samples with",
        "reports.",
        "",
        "| rows | share | conditions | gap | way | runs | z | needed | power | oracle | overlap | coverage | seconds |",
        "|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in PLANTED:
        for way in WAYS:
            if not len(r := rows(list(case), way)):
                continue
            seen, z, needed = r[:, 0] > 0, r[:, 2], r[:, 3]
            cells = [
                f"{np.median(z):.1f}",
                f"{np.nanmedian(needed):.1f}",
                _share(seen),
                _share(z > needed),
                f"{np.median(r[seen, 4]):.2f}" if seen.any() else "–",
                _share(r[:, 1]),
                f"{np.median(r[:, -1]):.1f}",
            ]
            lines.append("| " + " | ".join([*map(str, case), way, str(len(r)), *cells]) + " |")
    both = np.concatenate([r for c in PLANTED if len(r := rows(list(c), "simulate"))] or [np.zeros((0, 6))])
    if len(both):
        lines += ["", "Of all these samples, by how much z exceeds what is needed (`simulate`):", ""]
        lines += ["| z - needed | runs | power | overlap |", "|---|---:|---:|---:|"]
        for low, high in ((-np.inf, 0), (0, 2), (2, 4), (4, np.inf)):
            some = both[(both[:, 2] - both[:, 3] > low) & (both[:, 2] - both[:, 3] <= high)]
            if len(some):
                overlap = some[some[:, 0] > 0, 4]
                said = f"{np.median(overlap):.2f}" if overlap.size else "–"
                name = f"{low:g} to {high:g}" if np.isfinite([low, high]).all() else f"> {low:g}" if low > 0 else "< 0"
                lines.append(f"| {name} | {len(some)} | {_share(some[:, 0] > 0)} | {said} |")
    arguments.finish(type("Options", (), {"write": path})(), lines)


if __name__ == "__main__":
    main()
