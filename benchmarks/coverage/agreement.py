"""Do the value of the default and its `.corrected` say the same? Shares of samples in which they do not, and trials.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.agreement --store FILE [--repetitions 20] [--write FILE]

The value is the posterior mean under a prior of typical models, found without draws; `.corrected` is the median of
draws under a wide prior, with a share of exactly calibrated models. Trials: the median without that share; and the
value moved by what its map misses of the outcomes (one step, as draws are). Truths are those of `local_truths`,
`near_ends` and `assumptions`, none of which the default was made on.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import zlib
from functools import cache

import numpy as np
from scipy.special import erf

import calibrant as cal
from calibrant.benchmark.tracks import distributions
from calibrant.estimators import laplace
from calibrant.estimators.base import ErrorDraws
from calibrant.estimators.empirical_bayes import TYPICAL, expected_power, rank_cells
from calibrant.estimators.maps import FittedMaps
from calibrant.measure.posterior import credible
from calibrant.measure.question import Question

from .. import arguments
from ..store import found_of
from . import assumptions, local_truths, near_ends

SIZES, DRAWS, TENTH = (5000, 20_000), 800, 0.1
KINDS: dict[str, dict[str, tuple[local_truths.Scores, local_truths.Map]]] = {
    "wrong on a part of the scores": local_truths.LOCAL,
    "wrong near 0 and 1": {k: v for k, v in near_ends.TRUTHS.items() if "calibrated" not in k},
    "wrong elsewhere": {
        t.name: (lambda rng, n, t=t: t.scores(n, rng), t.chance)  # type: ignore[misc]
        for t in assumptions.TRUTHS
        if t.name != "calibrated"
    },
    "calibrated": local_truths.CALIBRATED | {k: v for k, v in near_ends.TRUTHS.items() if "calibrated" in k},
}
TRUTHS = {name: truth for kind in KINDS.values() for name, truth in kind.items()}
#: Numbers, by their words.
NUMBERS = ("the value", "`.corrected`", "the median without the share", "the value, moved")


@cache
def truth(name: str) -> float:
    scores, right = TRUTHS[name]
    s = scores(np.random.default_rng(zlib.crc32(name.encode())), 4_000_000)
    return float(np.abs(right(s) - s).mean())


def missed(maps: FittedMaps) -> np.ndarray:
    """What the maps of cells (R, m) miss of the outcomes in the direction of the gap, (R,)."""
    cells, weight = maps.cells, laplace.weights(maps.prior, maps.posteriors)
    n, total = cells.count.sum(axis=-1, keepdims=True), np.zeros(len(cells.count))
    for i, posterior in enumerate(maps.posteriors):
        gap, sd = laplace.gaps(cells, posterior)
        left = (cells.positive - cells.count * (cells.score + gap)) / n
        total += weight[:, i] * (left * erf(gap / sd / np.sqrt(2))).sum(axis=-1)
    return total if maps.local is None else maps.average(total, maps.local, missed(maps.local))


def found(name: str, n: int, repetitions: int) -> dict[str, list[list[float]]]:
    """Interval and numbers of samples side by side."""
    scores, right = TRUTHS[name]
    rng = np.random.default_rng([47, zlib.crc32(name.encode()), n])
    s = scores(rng, repetitions * n).reshape(repetitions, n)
    d, estimator = distributions("imbalance")[0], cal.EmpiricalBayes()
    (problem,) = d.problems(s, (rng.random(s.shape) < right(s)).astype(float), d.notions[0])
    sums = estimator.summarize(problem)
    drawn = estimator._draws(sums, 1, DRAWS, np.random.default_rng(n))
    question = Question("class-specific", 1.0, 0.95, (None,), (1.0,), "power", False, n, float(n))
    out = []
    for some, cells in rank_cells(sums, 1 << 14):
        values, moved = expected_power(cells, TYPICAL, 1), missed(FittedMaps.of(cells, TYPICAL))
        for value, more, i in zip(values, moved, some, strict=True):
            read = credible(ErrorDraws(drawn.powers[i : i + 1], drawn.log_odds[i : i + 1], drawn.corrected), question)
            median = max(float(np.median(drawn.powers[i])), 0.0)
            out.append([*map(float, read.interval), value, read.median, median, max(value + more, 0.0)])
    return {"samples": out}


def main() -> None:
    options = arguments.parser(__doc__, repetitions=20, only="truths", write=True, store=True).parse_args()
    asked = [(name, n, options.repetitions) for name in TRUTHS if options.only in name for n in SIZES]
    known = found_of(options.store, asked, found)
    lines = [
        "# Do the value and `.corrected` say the same?",
        "",
        f"Written by `python -m benchmarks.coverage.agreement --repetitions {options.repetitions}`. Samples in which",
        "two numbers differ by more than 10 % of the width of the 95 % interval, in %; where in its interval the value",
        "lies (5 %, median and 95 % of the samples, from 0, the lower end, to 1); and the RMSE of each number over",
        "that of the value, in the geometric mean over truths (of means, where they are calibrated).",
        "",
        "| truths | rows | value and `.corrected` | value and median without the share | moved and `.corrected` "
        "| place of the value | " + " | ".join(f"RMSE, {name}" for name in NUMBERS[1:]) + " |",
        "|---|--:|--:|--:|--:|---|" + "--:|" * (len(NUMBERS) - 1),
    ]
    for kind, truths in KINDS.items():
        for n in SIZES:
            keys = [(name, n, options.repetitions) for name in truths if options.only in name]
            if not keys:
                continue
            each = {key[0]: np.array(known[key]["samples"]) for key in keys}
            low, high, value, corrected, median, moved = np.concatenate(list(each.values())).T
            width = high - low
            apart = [
                f"{100 * np.mean(np.abs(a - b) > TENTH * width):.0f}"
                for a, b in ((value, corrected), (value, median), (moved, corrected))
            ]
            place = " / ".join(f"{q:.2f}" for q in np.quantile((value - low) / width, [0.05, 0.5, 0.95]))
            ratios = []
            for name, samples in each.items():
                errors = samples[:, 2:] - truth(name)
                size = np.sqrt(np.mean(errors**2, axis=0)) if truth(name) > 1e-9 else errors.mean(axis=0)
                ratios.append(np.maximum(size[1:], 1e-6) / size[0])
            means = np.exp(np.mean(np.log(ratios), axis=0))
            lines.append(
                f"| {kind} | {n:,} | {' | '.join(apart)} | {place} | " + " | ".join(f"{m:.2f}" for m in means) + " |"
            )
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
