"""What `calibrant fix` and `compare` do and say: harm, coverage of gains, stability of the choice. Writes `gains.md`.

    python -m benchmarks.arena.gains --store FILE [--cache FOLDER] [--half reporting] [--splits 5] [--write FILE]

A sample is 100 to 5,000 rows of a data set × a model. What the choice gains is read on up to 10,000 rows of the same
model that played no part in it. Of one sample each of at least 1,000 rows, the choice is made again on ten resamples:
80 % of the rows, and as many rows drawn with replacement, whose copies folds keep together. Every sample is a line of
the store: a run that was stopped goes on. The choosing half is for development; the reporting half is read once, and so
is `--half rare`, of sources that neither has (`gains_rare.md`).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.calibrators.choosing import SURE, Choice, Choosing, mixture_of
from calibrant.calibrators.crossval import AVERAGE, SCORES, fit_quietly, losses_of
from calibrant.calibrators.inputs import CalibrationSample
from calibrant.calibrators.select import as_sample, candidates_for

from .. import arguments
from ..store import found_of, share
from .halves import HALVES, REPORTING
from .rare import RARE, rare
from .reading import Experiment, experiments
from .repair import FEWEST, LEAST, SIZES
from .store import CACHE

#: Rows that gains are read on, resamples of a sample, from how many rows on, and up to how many rows × classes.
MOST, TIMES, LARGE, AGAIN = 10_000, 10, 1000, 3000
RULE = Choosing(5, "log-loss", AVERAGE, 0, whole=True)
Z = 1.96


@cache
def every(half: str, where: Path) -> dict[str, Experiment]:
    """Experiments by name."""
    return {one.name: one for one in (rare(where) if half == RARE else experiments(half, cache=where))}


def found(where: Path, half: str, name: str, n: int, split: int) -> dict[str, Any]:
    """Of one sample: gains in it and on other rows, and how often the family that leads does in resamples."""
    one = every(half, where)[name]
    p = one.y_prob.astype(np.float64)
    p /= p.sum(axis=1, keepdims=True)
    order = np.random.default_rng([split, n]).permutation(len(p))
    used, judged = order[:n], order[n : n + MOST]

    def rows(which: np.ndarray, groups: np.ndarray | None = None) -> CalibrationSample:
        return as_sample(p[which], one.y_true[which], None, "probability", list(range(one.n_classes)), groups)

    sample = rows(used)
    tried = candidates_for(sample, None)
    choice = RULE.among(tried, sample)
    out: dict[str, Any] = {"kin": one.kin, "changes": choice.name != choice.identity}
    q = fit_quietly(mixture_of(tried, choice.weights), sample)._probabilities_of(rows(judged).scores)
    for score in SCORES:
        before = losses_of(p[judged], one.y_true[judged], score)
        new, gain = before - losses_of(q, one.y_true[judged], score), choice.gain(score)
        read = (float(before.mean()), float(new.mean()), float(new.std() / np.sqrt(len(new))))
        out[score] = [gain.value, gain.se, *gain.interval(0.95), *read]
    if split == 0 and LARGE <= n <= AGAIN / one.n_classes:
        out["leads"] = choice.leading(tried)
        out["again"] = {name: again(choice, rows, used, copies) for name, copies in (("part", False), ("drawn", True))}
    return out


def again(choice: Choice, rows: Any, used: np.ndarray, copies: bool) -> int:
    """In how many resamples the family that leads is that of the whole."""
    first, number = choice.leads(candidates_for(choice.sample, None)), 0
    for seed in range(TIMES):
        rng = np.random.default_rng([7, seed])
        if copies:
            drawn = rng.integers(0, len(used), len(used))
            sample = rows(used[drawn], drawn)
        else:
            sample = rows(used[rng.permutation(len(used))[: int(0.8 * len(used))]])
        tried = candidates_for(sample, None)
        number += RULE.among(tried, sample).leads(tried) == first
    return number


def covered(read: list[float]) -> bool:
    """Whether an interval covers what is gained, which the rows that it is read on know within an error."""
    _, _, low, high, _, new, error = read
    return bool(abs(new - (low + high) / 2) <= np.hypot((high - low) / 2, Z * error))


def old(read: list[float]) -> bool:
    """The same of two standard errors."""
    gain, se, *_, new, error = read
    return bool(abs(new - gain) <= Z * np.hypot(se, error))


def harm(read: dict[tuple[Any, ...], dict[str, Any]], *, safe: bool) -> Iterator[str]:
    """A row of a table for each score: means over samples of an experiment; ``safe``: nothing within noise."""
    for score in SCORES:
        each: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
        for (name, n, _), one in read.items():
            before, new = one[score][4:6]
            each.setdefault((name, n), []).append((before, new if one["log-loss"][2] > 0 or not safe else 0.0))
        gain = np.array([new / max(before, LEAST) for before, new in (np.mean(some, axis=0) for some in each.values())])
        cells = [f"{100 * np.mean(gain < -least):.1f}" for least in (0.001, 0.01)]
        name = "`calibrant fix`" if safe else "`AutoCalibrator`"
        yield f"| {name} | {score} | {' | '.join(cells)} | {-100 * gain.min():.1f} | {100 * gain.mean():.1f} |"


def page(read: dict[tuple[Any, ...], dict[str, Any]], half: str) -> Iterator[str]:
    """The page, as lines."""
    name = "gains_rare_intro.md" if half == RARE else "gains_intro.md"
    intro = Path(__file__).with_name(name).read_text(encoding="utf-8")
    changing = {key: one for key, one in read.items() if one["changes"]}
    of = {"experiments": len({key[:2] for key in read}), "kin": len({one["kin"] for one in read.values()})}
    yield intro.format(half=half, samples=f"{len(read):,}", changing=f"{len(changing):,}", sure=100 * SURE, **of)
    yield "## Harm\n"
    yield "| rule | score | harm > 0.1 %, % | harm > 1 %, % | worst, % | mean gain, % |"
    yield "|---|---|---:|---:|---:|---:|"
    for safe in (False, True):
        yield from harm(read, safe=safe)
    yield "\n## Coverage\n"
    for score in SCORES:
        yield f"| {score}: rows | samples | covers, % | ± 1.96 standard errors covers, % | within noise, % |"
        yield "|---|---:|---:|---:|---:|"
        for n in (*SIZES, 0):
            some = [one[score] for key, one in changing.items() if n in (0, key[1])]
            hits = ([covered(one) for one in some], [old(one) for one in some], [one[2] <= 0 <= one[3] for one in some])
            yield f"| {n or 'all'} | {len(some):,} | {' | '.join(map(share, hits))} |"
        yield ""
    twice = [one for one in read.values() if "again" in one]
    if not twice:
        return
    yield "## Stability\n"
    yield "| resamples | samples | the same family leads in 8 of 10, % | the text says open, % | either, % | both, % |"
    yield "|---|---:|---:|---:|---:|---:|"
    unsure = [one["leads"][1] < SURE for one in twice]
    for name, words in (("part", "80 % of the rows"), ("drawn", "with replacement, copies in one fold")):
        leads = [one["again"][name] >= 8 for one in twice]
        both = list(zip(leads, unsure, strict=True))
        cells = [leads, unsure, [a or b for a, b in both], [a and b for a, b in both]]
        yield f"| {words} | {len(twice)} | {' | '.join(map(share, cells))} |"


def main() -> None:
    parser = arguments.parser(__doc__, only="data set × model (DATA.MODEL)", write=True, store=True)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    parser.add_argument("--half", choices=(*HALVES, RARE), default=REPORTING, help="default %(default)s")
    parser.add_argument("--splits", type=int, default=5, help="samples an experiment and size (default %(default)s)")
    parser.add_argument("--part", default="0/1", help="a share of the experiments, for several processes (default all)")
    options = parser.parse_args()
    os.nice(10)
    at, parts = map(int, options.part.split("/"))
    warnings.simplefilter("ignore")  # scores of 0 and 1, classes without rows
    asked = [
        (name, n, split)
        for split in reversed(range(options.splits))  # those whose choice is made again last
        for i, (name, one) in enumerate(every(options.half, options.cache).items())
        for n in SIZES
        if i % parts == at and options.only in name and len(one.y_true) >= n + FEWEST
    ]
    read = found_of(options.store, asked, partial(found, options.cache, options.half))
    arguments.finish(options, page(read, options.half))


if __name__ == "__main__":
    main()
