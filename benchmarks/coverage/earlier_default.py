"""The default beside what it was before it had ranges, on the same samples: which truths are read worse?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.earlier_default --store FILE [--repetitions 40] [--write FILE]

Before, its map had no ranges of its own, and its slope always turned it about the mean of the log odds. Tracks are
those of the benchmark, on which both were developed, with other seeds; mixtures (models trained on 300 rows, truths of
100,000 labelled ones), the truths of ``assumptions`` and real models (pools of the arena's reporting half, where it is
built) played no part. Errors are compared in pairs.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
import zlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.benchmark.tracks import distributions
from calibrant.estimators import laplace, ranges
from calibrant.estimators.base import ErrorDraws
from calibrant.measure.posterior import credible
from calibrant.measure.question import Question

from .. import arguments
from ..arena.halves import REPORTING
from ..arena.reading import Experiment, draw, experiments
from ..arena.store import CACHE
from ..store import found_of
from .assumptions import MACHINES, TRUTHS
from .correction import Hostile, OfMixture

SIZES, DRAWS = (1000, 5000, 20_000), 800
NOTIONS = {
    "local": "class-specific",
    "beta": "class-specific",
    "imbalance": "class-specific",
    "networks": "confidence",
    "dirichlet": "confidence",
}


@dataclass(frozen=True)
class OfArena:
    """A real model, by its confidences: rows of its pool, or with labels drawn anew."""

    told: Experiment
    track = "real models"

    @property
    def name(self) -> str:
        return self.told.name

    def truth(self, notion: str, norm: float) -> Any:
        return self.told.truths[notion]

    def sample(self, n_sets: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        drawn = [draw(self.told, n, seed) for seed in range(n_sets)]
        return np.stack([one.y_prob for one in drawn]), np.stack([one.y_true for one in drawn])

    problems = OfMixture.problems


#: Folder of the arena, where it is built.
_ARENA = CACHE


@cache
def truths() -> dict[str, tuple[Any, str]]:
    """Truths by name, with the notion they are read under."""
    found: list[tuple[Any, str]] = []
    for track, notion in NOTIONS.items():
        found += [(d, notion) for d in distributions(track) if notion in d.notions]
    found += [(OfMixture(seed, m), "confidence") for seed in range(12) for m in ("logistic", "bayes", "svc", "forest")]
    found += [(Hostile(t), "confidence") for t in (*TRUTHS, *MACHINES) if not t.name.startswith("by a rule")]
    found += [(OfArena(one), "confidence") for one in experiments(REPORTING, cache=_ARENA)]
    return {f"{d.track}: {d.name}": (d, notion) for d, notion in found}


def read(problem: Any, n: int, seed: int) -> list[list[float]]:
    """Value and interval of every sample."""
    estimator = cal.EmpiricalBayes()
    sums = estimator.summarize(problem)
    values = np.atleast_1d(estimator.read(sums, 1))
    drawn = estimator._draws(sums, 1, DRAWS, np.random.default_rng(seed))
    question = Question("class-specific", 1.0, 0.95, (None,), (1.0,), "power", False, n, float(n))
    out = []
    for value, powers, odds in zip(values, drawn.powers, drawn.log_odds, strict=True):
        out.append([float(value), *credible(ErrorDraws(powers[None], odds[None], drawn.corrected), question).interval])
    return out


def found(name: str, n: int, repetitions: int) -> dict[str, Any]:
    d, notion = truths()[name]
    rng = np.random.default_rng([41, zlib.crc32(f"{name} {n}".encode())])
    (problem,) = d.problems(*d.sample(repetitions, n, rng), notion)
    now = ranges._ROWS, laplace._TURNED_AT_MEAN
    try:
        ranges._ROWS = laplace._TURNED_AT_MEAN = np.inf  # type: ignore[assignment]  # nothing is sought
        before = read(problem, n, n)
    finally:
        ranges._ROWS, laplace._TURNED_AT_MEAN = now
    return {"truth": max(d.truth(notion, 1).value, 0.0), "before": before, "now": read(problem, n, n)}


def main() -> None:
    global _ARENA
    parser = arguments.parser(__doc__, repetitions=40, only="truths", write=True, store=True)
    parser.add_argument("--cache", type=Path, default=CACHE, help="the arena, whose reporting half is read where it is")
    options = parser.parse_args()
    _ARENA = options.cache
    warnings.simplefilter("ignore")
    asked = [
        (name, n, options.repetitions)
        for name, (d, _) in truths().items()
        for n in SIZES
        if options.only in name and n <= (d.told.largest if isinstance(d, OfArena) else n)
    ]
    known = found_of(options.store, asked, found)
    grouped: dict[tuple[str, int], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for name, n, _ in asked:
        one = known[name, n, options.repetitions]
        track = name.partition(":")[0] + (", calibrated" if one["truth"] < 1e-9 else "")
        grouped[track, n].append((name, one))
    lines = [
        "# The default beside what it was",
        "",
        f"Written by `python -m benchmarks.coverage.earlier_default --repetitions {options.repetitions}`: the same",
        "samples read by a smooth map alone whose slope turns it about the mean of the log odds, and by the default",
        "now, with ranges. RMSE: the geometric mean of the ratio over truths (of means, where they are calibrated);",
        "coverage and width of the 95 % interval, before → now; cells (a truth and a size) in which the absolute error",
        "fell, or grew, by more than two standard errors of the paired difference. Real models are the pools of the",
        "arena's reporting half, in samples of a fifth of the pool at most; their truths have standard errors.",
        "",
        "| truths | rows | how many | RMSE ratio | coverage | width ratio | better | worse |",
        "|---|--:|--:|--:|---|--:|--:|--:|",
    ]
    worse: list[str] = []
    for (track, n), cells in grouped.items():
        ratios, widths, covers, counts = [], [], [], [0, 0]
        for name, one in cells:
            t, a, b = one["truth"], np.array(one["before"]), np.array(one["now"])
            errors = [np.abs(v[:, 0] - t) for v in (a, b)]
            of = np.mean if t < 1e-9 else (lambda e: np.sqrt(np.mean(e**2)))
            ratios.append(float(of(errors[1]) / of(errors[0])))
            widths.append(float(np.mean(b[:, 2] - b[:, 1]) / np.mean(a[:, 2] - a[:, 1])))
            covers.append([np.mean((v[:, 1] <= t + 1e-9) & (t <= v[:, 2] + 1e-9)) for v in (a, b)])
            change = errors[1] - errors[0]
            far = change.mean() / max(change.std(ddof=1) / np.sqrt(len(change)), 1e-300)
            counts[0] += bool(far < -2)
            counts[1] += bool(far > 2)
            if far > 2:
                worse.append(
                    f"| {name} | {n:,} | {t:.4f} | {ratios[-1]:.2f} | {covers[-1][0]:.2f} → {covers[-1][1]:.2f} |"
                )
        before, after = np.mean(covers, axis=0)
        lines.append(
            f"| {track} | {n:,} | {len(cells)} | "
            f"{np.exp(np.mean(np.log(ratios))):.2f} | {before:.3f} → {after:.3f} | "
            f"{np.exp(np.mean(np.log(widths))):.2f} | {counts[0]} | {counts[1]} |"
        )
    lines += ["", "Cells in which the error grew:", "", "| truth | rows | error | RMSE ratio | coverage |"]
    lines += ["|---|--:|--:|--:|---|", *worse]
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
