"""Do intervals of `estimate(assume=…)` cover the error of hostile truths, and how wide are they?

    python -m benchmarks.coverage.assumptions [--repetitions 200]

All are 95 % intervals, for norm 1. V in `"variation:V"` is the truth's own total variation, rounded up
([theorems](../../docs/assumptions.md)). No choice in the library was made on these truths. Most have uniform scores:
calibrated, a line of slope 0.6 (also with rounded scores), 12 waves of ±.10, steps of ±.10, and a rule (the score's
digits after the third decide the outcome). *Atom*: 3 % of rows score .99, and 40 % of these are positive. *Rare*:
scores average 1 %, and positives are 1.6 times as frequent. Ten trees and four verbalised confidences repeat scores.
The network's log-odds are too large by a factor of 1/0.6. `"bins:20"` assumes that the gap keeps its sign within bins.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.benchmark.mixtures import ClassMixture, train, training_set
from calibrant.measure.assumptions import as_assumption
from calibrant.measure.bounds import RowsAlike
from calibrant.measure.question import Question

from ..arena.truth import of_pool
from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept

SIZES = (30, 100, 1000, 5000)
POOL = 1_000_000
Draw = Callable[[int, np.random.Generator], np.ndarray]
Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Truth:
    """Scores, and how often it happens at each; the gap's total variation, and whether it keeps its sign in bins:20."""

    name: str
    scores: Draw
    chance: Map
    variation: float | None
    one_sign: bool

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        s = self.scores(n, rng)
        return (rng.random(n) < self.chance(s)).astype(int), s

    @cached_property
    def error(self) -> float:
        s = self.scores(POOL, np.random.default_rng(99))
        return float(np.abs(self.chance(s) - s).mean())


def flat(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random(n)


def waves(s: np.ndarray) -> np.ndarray:
    return np.clip(s + 0.1 * np.sin(24 * np.pi * s), 0, 1)


def steps(s: np.ndarray) -> np.ndarray:
    return np.clip(s + np.where(np.floor(4 * s) % 2 == 0, 0.1, -0.1), 0, 1)


def steep(slope: float) -> Map:
    return lambda s: expit(slope * logit(np.clip(s, 1e-9, 1 - 1e-9)))


def atom_inside(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(n) < 0.03, 0.99, rng.beta(5, 1, n))


def ten_trees(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.binomial(10, rng.beta(0.6, 0.6, n)) / 10


VERBAL, SHARES, RIGHT = np.array([0.7, 0.8, 0.9, 0.95]), [0.1, 0.3, 0.4, 0.2], np.array([0.62, 0.68, 0.81, 0.93])


def verbalised(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(VERBAL, n, p=SHARES)


def trees_right(s: np.ndarray) -> np.ndarray:
    return expit(1.5 * logit(np.clip(s, 0.05, 0.95)))


def moves(chance: Map, at: np.ndarray | None = None) -> float:
    """Total variation of the gap over some scores, rounded up."""
    s = np.linspace(0, 1, 200_001) if at is None else at
    return float(np.ceil(100 * np.abs(np.diff(chance(s) - s)).sum()) / 100)


def rare_map(s: np.ndarray) -> np.ndarray:
    return np.minimum(1.6 * s, 1.0)


TRUTHS = (
    Truth("calibrated", flat, lambda s: s, 0.01, True),
    Truth("a line, slope 0.6", flat, lambda s: 0.5 + 0.6 * (s - 0.5), 0.4, True),
    Truth("12 waves of ±.10", flat, waves, moves(waves), False),
    Truth("steps of ±.10", flat, steps, moves(steps), True),
    Truth("an atom inside: 3 % at .99, right 40 %", atom_inside, lambda s: np.where(s == 0.99, 0.4, s), 1.18, True),
    Truth("1 % positives, 1.6 times as many", lambda n, rng: rng.beta(0.5, 49.5, n), rare_map, moves(rare_map), True),
    Truth(
        "rounded to .01, slope 0.6", lambda n, rng: rng.random(n).round(2), lambda s: 0.5 + 0.6 * (s - 0.5), 0.4, True
    ),
    Truth("ten trees", ten_trees, trees_right, moves(trees_right, np.arange(11) / 10), True),
    Truth("four verbalised confidences", verbalised, lambda s: np.interp(s, VERBAL, RIGHT), 0.14, True),
    Truth("confident network", lambda n, rng: rng.beta(6, 0.5, n), steep(0.6), moves(steep(0.6)), True),
    Truth("by a rule, not by chance", flat, lambda s: (s * 1000 % 1 < s).astype(float), None, False),
)


@dataclass(frozen=True)
class SupportVectorMachine:
    """A support vector machine on two features of normal mixtures; its truth is that of 200,000 labelled rows."""

    seed: int
    variation: None = None
    one_sign: bool = False
    name: ClassVar[str] = "a support vector machine on two features"

    @cached_property
    def _model(self) -> tuple[ClassMixture, Any]:
        rng = np.random.default_rng([22, self.seed])
        mixture = ClassMixture.draw(2, 2, rng, low=-1.0)
        return mixture, train("svc", *training_set(mixture, 300, rng), random_state=self.seed)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        mixture, predict = self._model
        x, y = mixture.sample(n, rng)
        return y.astype(int), np.asarray(predict(x))

    @cached_property
    def error(self) -> float:
        y, p = self.sample(200_000, np.random.default_rng(98))
        return of_pool(p, y)["confidence"].value


MACHINES = (SupportVectorMachine(1),)


#: Every truth by what a table calls it.
NAMES = (
    "calibrated",
    "line",
    "waves",
    "steps",
    "atom",
    "rare",
    "rounded line",
    "ten trees",
    "verbalised",
    "network",
    "rule",
    "SVM",
)
BY_NAME: dict[str, Any] = dict(zip(NAMES, (*TRUTHS, *MACHINES), strict=True))
LEVEL = 95
ASSUMED = ("smooth", "none", "bins:20", "variation:V")


def intervals(
    y: np.ndarray, p: np.ndarray, wanted: list[str], given: dict[str, Any], seed: int
) -> dict[str, tuple[float, float]]:
    """Intervals of `estimate`: the default's, that of no assumption, and those that narrow it."""
    found = {name: cal.estimate(y, p, assume=name, random_state=seed, **given) for name in ("smooth", "none")}
    ends = {name: (float(one.interval.low), float(one.interval.high)) for name, one in found.items()}
    asked = Question.of(cal.as_predictions(y, p, labels=given["labels"]), given["notion"], "auto", 1)
    rows = RowsAlike.of(asked)
    for name in wanted:
        low, high = as_assumption(name).narrowed(found["none"].interval, rows, asked)
        ends[name] = float(low), float(high)
    return ends


def sample(truth: str, rows: int, seed: int) -> dict[str, float]:
    """Whether each interval covers the error, its width, and how far the default's would have to reach."""
    one, error = BY_NAME[truth], BY_NAME[truth].error
    y, p = one.sample(rows, np.random.default_rng([seed, 7, NAMES.index(truth), rows]))
    given = {"labels": [0, 1], "notion": "confidence" if p.ndim == 2 else "auto"}
    moving = f"variation:{one.variation:g}" if one.variation else ""
    found = intervals(y, p, ["bins:20", *([moving] if moving else [])], given, seed)
    out: dict[str, float] = {}
    for name, (low, high) in found.items():
        told = "variation:V" if name == moving else name
        out |= {f"{told}: covered": float(low <= error + 1e-12 and error <= high + 1e-12), f"{told}: width": high - low}
    low, high = found["smooth"]
    out["reach"] = float(abs(error - (low + high) / 2) / ((high - low) / 2)) if high > low else np.nan
    return out | {"above 0": float(found["none"][0] > 0)}


def answer(kept: Kept) -> str:
    least = {}
    for name in ASSUMED:
        cells = {(t, n): _covered(kept, t, n, name) for t in NAMES for n in SIZES}
        held = {key: v for key, v in cells.items() if not np.isnan(v).all()}
        if name == "bins:20":
            held = {key: v for key, v in held.items() if BY_NAME[key[0]].one_sign}
        least[name] = f"{min(percent(v)[0] for v in held.values()):.1f} %"
    default = {(t, n): _covered(kept, t, n, "smooth") for t in NAMES for n in SIZES}
    less = {key: v for key, v in default.items() if percent(v)[0] + 2 * percent(v)[1] < LEVEL}
    missed: dict[str, list[tuple[int, float]]] = {}
    for (t, n), values in less.items():
        missed.setdefault(t, []).append((n, percent(values)[0]))
    told = [
        f"{t} ({', '.join(f'{n:,}' for n, _ in some)} rows: "
        f"{' to '.join(dict.fromkeys(f'{f(v for _, v in some):.1f}' for f in (min, max)))} %)"
        for t, some in missed.items()
    ]
    how = f": {', '.join(told)}" if told else ""
    wider = [_width(kept, t, 1000, "none")[0] / _width(kept, t, 1000, "smooth")[0] for t in NAMES]
    return (
        f"For every truth and size, intervals cover the error in at least {least['none']} of samples with `none`, "
        f"{least['variation:V']} with `variation:V` and {least['bins:20']} with `bins:20` where its assumption holds. "
        f"The default's coverage is below {LEVEL} % by more than two standard errors in {len(less) or 'none'} of "
        f"{len(default)} cases{how}. With 1,000 rows, intervals with `none` are {min(wider):.1f} to {max(wider):.1f} "
        f"times as wide as the default's."
    )


def picture(kept: Kept) -> Figure:
    series = {name: [_width(kept, t, 1000, name) for t in NAMES] for name in ASSUMED}
    figure = dots(NAMES, series, "mean width of intervals from 1,000 rows", log=True)
    figure.axes[0].minorticks_off()
    figure.axes[0].set_xticks(ticks := [0.01, 0.02, 0.05, 0.1, 0.2, 0.4], [f"{one:g}" for one in ticks])
    return figure


def page(kept: Kept) -> Iterator[str]:
    cells = {t: [percent(_covered(kept, t, n, "smooth"))[0] for n in SIZES] for t in NAMES}
    low = [t for t in NAMES if min(cells[t]) < LEVEL]
    least = min(min(cells[t]) for t in NAMES if t not in low)
    yield f"The table gives coverage in per cent, by number of rows: for the default (at least {least:.1f} % for truths"
    yield "not listed), and for `bins:20` where its assumption may fail."
    yield ""
    yield from table(("truth", *(f"{n:,}" for n in SIZES)), _rows(kept, low))
    above = {t: 100 * kept.where(truth=t, rows=SIZES[-1])["above 0"].mean() for t in NAMES}
    seldom = ", ".join(f"{t} ({value:.0f} %)" for t, value in above.items() if value < 100)
    yield ""
    yield f"With {SIZES[-1]:,} rows the lower end of `none` is above 0 in all samples of every truth"
    yield f"except {seldom}." if seldom else "without exception."


def _rows(kept: Kept, low: list[str]) -> Iterator[list[str]]:
    cases = [(t, "smooth", t) for t in low]
    cases += [(t, "bins:20", f"{t}, `bins:20`") for t in NAMES if not BY_NAME[t].one_sign]
    for truth, name, shown in cases:
        yield [shown, *(f"{percent(_covered(kept, truth, n, name))[0]:.1f}" for n in SIZES)]


def _covered(kept: Kept, truth: str, n: int, name: str) -> np.ndarray:
    return kept.where(truth=truth, rows=n)[f"{name}: covered"]


def _width(kept: Kept, truth: str, n: int, name: str) -> tuple[float, float]:
    return estimate(kept.where(truth=truth, rows=n)[f"{name}: width"])


EXPERIMENT = Experiment(__spec__.name, {"truth": NAMES, "rows": SIZES}, sample, answer, page, picture, repetitions=200)

if __name__ == "__main__":
    EXPERIMENT.main()
