"""Coverage and width of the intervals of `estimate(assume=…)` where the truth is known, hostile truths among them.

    python -m benchmarks.coverage.assumptions --store FOLDER [--repetitions 300] [--only TEXT] [--arena 5]

A cell (a truth and a size) is a file of the store: a run that was stopped goes on, and one with more repetitions adds
them. The page tells of all that is stored. `--arena N` reads N samples of each experiment of the arena's reporting half
too (`benchmarks/arena`), in cells of their own. No constant was chosen for coverage here: those of the assumptions are
theorems', those of the default were learnt on the arena's other half, on mixtures and on the tracks of the benchmark.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import json
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.benchmark.mixtures import ClassMixture, train, training_set
from calibrant.data.writing import write_json, write_text
from calibrant.measure.assumptions import as_assumption
from calibrant.measure.bounds import RowsAlike
from calibrant.measure.question import Question

from .. import arguments
from ..arena.halves import REPORTING
from ..arena.reading import draw, experiments
from ..arena.store import CACHE
from ..arena.truth import of_pool

SIZES = (30, 100, 1000, 5000)
POOL = 1_000_000
#: Samples of a network for one of another model: there are few.
OF_NETWORKS = 10
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


def assumed(truth: Any) -> list[str]:
    """Assumptions that a truth is read under: that of bins also where it fails, to show what it costs."""
    return ["smooth", "none", "bins:20", *([f"variation:{truth.variation:g}"] if truth.variation else [])]


def intervals(
    y: np.ndarray, p: np.ndarray, wanted: list[str], given: dict[str, Any], seed: int
) -> dict[str, list[float]]:
    """Intervals of `estimate` under each assumption; that of none is found once for all that narrow it."""
    found = {name: cal.estimate(y, p, assume=name, random_state=seed, **given) for name in ("smooth", "none")}
    ends = {name: [float(v) for v in one.interval] for name, one in found.items()}
    asked = Question.of(cal.as_predictions(y, p, labels=given["labels"]), given["notion"], "auto", 1)
    rows = RowsAlike.of(asked)
    for name in wanted:
        if name not in found:
            narrow = as_assumption(name).narrowed(found["none"].interval, rows, asked)
            ends[name] = [float(v) for v in narrow]
    return ends


def cell(truth: Any, n: int, repetitions: int, path: Path) -> None:
    """Intervals under each assumption of more samples, to a file."""
    kept = json.loads(path.read_text()) if path.exists() else {"name": truth.name, "n": n, "truth": truth.error}
    ends: dict[str, list[list[float]]] = kept.setdefault("intervals", {})
    for seed in range(len(ends.get("none", [])), repetitions):
        y, p = truth.sample(n, np.random.default_rng([n, seed, 7]))
        given = {"labels": [0, 1], "notion": "confidence" if p.ndim == 2 else "auto"}
        for assume, found in intervals(y, p, assumed(truth), given, seed).items():
            ends.setdefault(assume, []).append(found)
    write_json(path, kept)


def arena(folder: Path, samples: int, cache: Path) -> None:
    """Cells of the arena's reporting half: confidence, and class-wise of networks."""
    for one in experiments(REPORTING, cache=cache):
        wanted = [("confidence", n) for n in (100, 1000) if n <= one.largest]
        network = one.kind == "network" and one.pool
        wanted += [("classwise", min(3000, one.largest))] if network else []
        drawn = samples * (OF_NETWORKS if network else 1)
        for notion, n in wanted:
            path = folder / "arena" / f"{one.name}.{notion}.{n}.json"
            if path.exists() and len(json.loads(path.read_text())["intervals"]["none"]) >= drawn:
                continue
            ends: dict[str, list[list[float]]] = {}
            for seed in range(drawn):
                sample = draw(one, n, seed, notion=notion)
                given = {"labels": sample.labels, "notion": notion}
                for assume, found in intervals(sample.y_true, sample.y_prob, ["variation:1"], given, seed).items():
                    ends.setdefault(assume, []).append(found)
            truth = one.truths[notion]
            about = {"kind": one.kind, "model": one.model, "kin": one.kin, "pool": one.pool, "notion": notion, "n": n}
            kept = {"truth": truth.value, "standard_error": truth.standard_error, "intervals": ends}
            write_json(path, about | kept)


def share(held: np.ndarray) -> str:
    return f"{held.mean():.3f} ± {held.std() / np.sqrt(held.size):.3f}"


def coverage(cells: Iterable[dict[str, Any]]) -> str:
    """A row for each truth and size, a group of columns for each assumption."""
    known = {truth.name: truth for truth in (*TRUTHS, *MACHINES)}
    rows = ["| truth | error | n | samples | smooth | wide | none | wide | low | above 0 | bins:20 | wide | V "]
    rows[0] += "| variation:V | wide |"
    rows += ["|---" + "|---:" * 14 + "|"]
    for one in sorted(cells, key=lambda c: (list(known).index(c["name"]), c["n"])):
        truth, ends = known[one["name"]], {k: np.array(v) for k, v in one["intervals"].items()}
        read = {name: told(each, one["truth"]) for name, each in ends.items()}
        low = ends["none"][:, 0]
        bins = read["bins:20"] if truth.one_sign else f"*{read['bins:20'].replace(' | ', '* | *')}*"
        moving = f"{truth.variation:g} | {read[f'variation:{truth.variation:g}']}" if truth.variation else "| | "
        rows.append(
            f"| {one['name']} | {one['truth']:.4f} | {one['n']} | {len(low)} | {read['smooth']} | {read['none']} "
            f"| {low.mean():.3f} | {(low > 0).mean():.2f} | {bins} | {moving} |"
        )
    return "\n".join(rows)


def told(ends: np.ndarray, truth: float) -> str:
    """Share of intervals that cover the truth, with its standard error, and their mean width."""
    low, high = ends.T
    return f"{share((low <= truth + 1e-12) & (truth <= high + 1e-12))} | {(high - low).mean():.3f}"


def stretch(cells: Iterable[dict[str, Any]]) -> str:
    """How many times as wide about its middle the default's interval would have to be to hold 93 % of truths."""
    rows = ["| truth | n | held | width | times as wide | width then |", "|---|---:|---:|---:|---:|---:|"]
    for one in sorted(cells, key=lambda c: (c["name"], c["n"])):
        low, high = np.array(one["intervals"]["smooth"]).T
        held = ((low <= one["truth"]) & (one["truth"] <= high)).mean()
        if held >= 0.93:
            continue
        middle, half = (low + high) / 2, (high - low) / 2
        factor = float(np.quantile(np.abs(one["truth"] - middle) / half, 0.93))
        width = (high - low).mean()
        rows.append(f"| {one['name']} | {one['n']} | {held:.3f} | {width:.3f} | {factor:.2f} | {factor * width:.3f} |")
    return "\n".join(rows)


def arena_table(cells: list[dict[str, Any]]) -> str:
    """Coverage over experiments, within two standard errors of the truth."""
    rows = ["| experiments | notion | n | how many | assume | covered | width | above 0 |"]
    rows += ["|---|---|---:|---:|---|---:|---:|---:|"]
    kinds: dict[str, Callable[[dict[str, Any]], bool]] = {
        "tabular, pools": lambda c: c["kind"] == "tabular" and c["pool"],
        "tabular, drawn anew": lambda c: c["kind"] == "tabular" and not c["pool"],
        "network, pools": lambda c: c["kind"] == "network",
        "forests and extra trees": lambda c: c["model"] in ("forest", "extra-trees"),
        "support vector machines": lambda c: c["model"] in ("svc", "linear-svc"),
    }
    for name, among in kinds.items():
        for notion, n in sorted({(c["notion"], c["n"]) for c in cells if among(c)}, key=str):
            here = [c for c in cells if among(c) and (c["notion"], c["n"]) == (notion, n)]
            for assume in here[0]["intervals"]:
                each = []
                for c in here:
                    low, high = np.array(c["intervals"][assume]).T
                    slack, value = 2 * c["standard_error"], max(c["truth"], 0.0)
                    held = (low - slack <= value) & (value <= high + slack)
                    each.append([held.mean(), (high - low).mean(), (low > 0).mean()])
                held, width, above = np.array(each).mean(axis=0)
                error = np.array(each)[:, 0].std() / np.sqrt(len(each))
                rows.append(
                    f"| {name} | {notion} | {n} | {len(here)} | {assume} | {held:.3f} ± {error:.3f} | {width:.3f} "
                    f"| {above:.2f} |"
                )
    return "\n".join(rows)


@cache
def stored(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def page(folder: Path) -> str:
    """`assumptions.md`."""
    cells, real = stored(folder), stored(folder / "arena")
    intro = Path(__file__).with_name("assumptions_intro.md").read_text(encoding="utf-8")
    samples = min((len(one["intervals"]["none"]) for one in real), default=0)
    return intro.format(
        coverage=coverage(cells),
        stretch=stretch(cells),
        samples=samples,
        arena=arena_table(real) if real else "Not run.",
    )


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=300, only="truth", write=True)
    parser.add_argument("--store", type=Path, required=True, help="folder that keeps the samples drawn")
    parser.add_argument("--arena", type=int, default=0, metavar="N", help="samples of each experiment of the arena")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", cal.exceptions.CalibrantWarning
        )  # scores of 0 and 1, samples that are all right
        for repetitions in sorted({min(50, options.repetitions), options.repetitions}):
            for n in SIZES:
                for number, truth in enumerate((*TRUTHS, *MACHINES)):
                    if options.only in truth.name:
                        cell(truth, n, repetitions, options.store / f"{number:02d}-{n}.json")
        if options.arena:
            arena(options.store, options.arena, options.cache)
    text = page(options.store)
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()
