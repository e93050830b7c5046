"""What a report says, sentence by sentence, where the truth is known.

    python -m benchmarks.coverage.verdict --store FILE [--repetitions 31] [--only TEXT] [--write FILE]

Every report is a line of the store: a run that was stopped goes on, and one with more repetitions adds them. Samples of
100,000 rows are drawn a fifth as often. The page tells of all that is stored.

Scores are Beta distributed, or rounded, and the map is the true frequency at each score; or rows of probabilities are
Dirichlet distributed, and labels are drawn from a function of them. What is true of a score is exact; what is true of a
class or of a confidence is a mean over 300,000 rows of another seed, in the 15 bins of the report or in 400 of equal
mass. A sentence is read from the text by a pattern, and judged by :func:`judged`. No constant of the verdict was chosen
on these truths.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, kl_div, logit, rel_entr, xlogy

import calibrant as cal

from .. import arguments
from ..store import found_of, share

SEED, SIZES = 8, (100, 1000, 10_000, 100_000)
#: How many times fewer samples are drawn of a size.
FEWER = {100_000: 5}
POOL, CELLS, THRESHOLD = 300_000, 400, 0.3
Map = Callable[[np.ndarray], np.ndarray]


def logistic(slope: float, shift: float = 0.0) -> Map:
    return lambda s: expit(slope * logit(np.clip(s, 1e-12, 1 - 1e-12)) + shift)


def wave(size: float) -> Map:
    return lambda s: np.clip(s + size * np.sin(3 * np.pi * s) * 4 * s * (1 - s), 0, 1)


def band(s: np.ndarray) -> np.ndarray:
    return np.where((s > 0.7) & (s < 0.75), s - 0.3, s)


def ends_of_tens(s: np.ndarray) -> np.ndarray:
    return np.where(s > 0.85, s - 0.15, s)


def one_class(factor: float) -> Map:
    """The first class comes less often than stated, the others more often in proportion."""

    def vector(p: np.ndarray) -> np.ndarray:
        q = p.copy()
        q[:, 0] *= factor
        q[:, 1:] *= ((1 - q[:, 0]) / (1 - p[:, 0]))[:, None]
        return q

    return vector


def temperature(power: float) -> Map:
    return lambda p: p**power / (p**power).sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Truth:
    """How scores are drawn, and how often it happens at each; vectors of so many ``classes``."""

    name: str
    shape: tuple[float, float] = (1, 1)
    map: Map | None = None
    decimals: int | None = None
    weights: bool = False
    classes: int = 0

    def scores(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Scores (n,), or rows of probabilities (n, classes)."""
        if self.classes:
            p = rng.dirichlet(np.full(self.classes, 0.5), n) + 1e-6
            return p / p.sum(axis=1, keepdims=True)
        s = rng.beta(*self.shape, n)
        return s if self.decimals is None else np.round(s, self.decimals)

    def chance(self, scores: np.ndarray) -> np.ndarray:
        """How often it happens, at every score or of every class."""
        return scores if self.map is None else self.map(scores)

    def sample(self, n: int, seed: list[int]) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Labels, probabilities and options of a report."""
        rng = np.random.default_rng(seed)
        scores = self.scores(n, rng)
        truth = self.chance(scores)
        if self.classes:
            y = np.minimum((rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1), self.classes - 1)
            return y, scores, {"labels": range(self.classes)}
        options = {"sample_weight": rng.exponential(size=n)} if self.weights else {}
        return (rng.random(n) < truth).astype(int), scores, {"labels": [0, 1], **options}

    @cached_property
    def pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores, or confidences, and how often it happens at them."""
        p = self.scores(POOL, np.random.default_rng(99))
        q = self.chance(p)
        return (p, q) if not self.classes else (p.max(axis=1), q[np.arange(POOL), p.argmax(axis=1)])

    @cached_property
    def known(self) -> dict[str, Any]:
        """Errors, what matters, gains of a perfect recalibration, and what is true of classes."""
        s, g = self.pool
        rate = float(g.mean())
        bits = -float(xlogy(rate, rate) + xlogy(1 - rate, 1 - rate)) / np.log(2)
        error = float(np.abs(g - s).mean()) if not self.classes else of_cells(s, g - s)
        found: dict[str, Any] = {
            "error": error if self.map is not None else 0.0,
            "tolerance": 0.1 * float(np.sqrt(rate * (1 - rate) * bits)),
            "changed": float(((g >= THRESHOLD) != (s >= THRESHOLD)).mean()),
        }
        if not self.classes:
            gains = {"brier": (g - s) ** 2, "log_loss": rel_entr(g, s) + rel_entr(1 - g, 1 - s)}
            return found | {name: float(v.mean()) for name, v in gains.items()} | {"classes": {}}
        p = self.scores(POOL, np.random.default_rng(99))
        q, classes, brier, log_loss = self.chance(p), {}, 0.0, 0.0
        for k in range(self.classes):
            bins = np.clip(np.ceil(15 * p[:, k]).astype(int) - 1, 0, 14)
            off = np.abs(np.bincount(bins, q[:, k] - p[:, k], 15)).sum() / POOL
            classes[str(k)] = float(off) if self.map is not None else 0.0
            stated, happens = means_of_cells(p[:, k], p[:, k]), means_of_cells(p[:, k], q[:, k])
            brier += float(((happens - stated) ** 2).mean())
            log_loss += float(kl_div(happens, stated).mean())
        confidence = np.array([means_of_cells(s, v) for v in (s, g)])
        found["changed"] = float(np.diff(confidence >= THRESHOLD, axis=0).mean())
        return found | {"brier": brier, "log_loss": log_loss, "classes": classes}

    @property
    def off_by(self) -> float:
        """Largest error: of the scores, or of a class."""
        return max([self.known["error"], *self.known["classes"].values()])


def means_of_cells(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Means of values in cells of equal mass of the scores."""
    parts = np.array_split(values[np.argsort(scores, kind="stable")], CELLS)
    return np.array([part.mean() for part in parts])


def of_cells(scores: np.ndarray, gaps: np.ndarray) -> float:
    return float(np.abs(means_of_cells(scores, gaps)).mean())


FLAT, U, MIDDLE, RARE = (1, 1), (0.4, 0.5), (4, 3), (0.5, 20)
TRUTHS = [
    Truth("calibrated, flat"),
    Truth("calibrated, U", U),
    Truth("calibrated, middle", MIDDLE),
    Truth("calibrated, rare", RARE),
    Truth("calibrated, tied", decimals=1),
    Truth("calibrated, weights", weights=True),
    Truth("calibrated, 4 classes", classes=4),
    Truth("0.0025 too high, flat", map=lambda s: np.maximum(s - 0.0025, 0)),
    Truth("slope 0.9, flat", map=logistic(0.9)),
    Truth("slope 0.8, U", U, logistic(0.8)),
    Truth("wave of 0.03, flat", map=wave(0.03)),
    Truth("a tenth too high, rare", RARE, lambda s: 0.9 * s),
    Truth("slope 0.6, flat", map=logistic(0.6)),
    Truth("slope 0.4, U", U, logistic(0.4)),
    Truth("shift -0.7, middle", MIDDLE, logistic(1, -0.7)),
    Truth("wave of 0.15, flat", map=wave(0.15)),
    Truth("twice too high, rare", RARE, lambda s: s / 2),
    Truth("slope 0.5, tied", map=logistic(0.5), decimals=1),
    Truth("slope 0.5, weights", map=logistic(0.5), weights=True),
    Truth("calibrated, hundredths", decimals=2),
    Truth("slope 0.7, hundredths", map=logistic(0.7), decimals=2),
    Truth("tens, 0.9 and 1.0 too high", (3, 1.2), ends_of_tens, decimals=1),
    Truth("0.3 too high on 0.70 to 0.75", map=band),
    Truth("power 0.6, 4 classes", map=temperature(0.6), classes=4),
    Truth("calibrated, 20 classes", classes=20),
    Truth("power 0.8, 20 classes", map=temperature(0.8), classes=20),
    Truth("one class half as often, 3 classes", map=one_class(0.5), classes=3),
    Truth("one class half as often, 20 classes", map=one_class(0.5), classes=20),
    Truth("one class a tenth less often, 20 classes", map=one_class(0.9), classes=20),
]
#: Sentences, by what is read of them: how often each may be wrong in %, and the words.
SENTENCES = {
    "called": (5, "Evidence of miscalibration (of a calibrated sample)"),
    "error": (5, "the probabilities are off by … on average (95 % interval … to …), or by … at most"),
    "log_loss": (5, "would lower the log-loss by … (… to …), in the text of every report"),
    "brier": (5, "would lower … the Brier score by … (… to …), in the text of every report"),
    "changed": (5, "… % of decisions at the threshold change"),
    "class off by": (5, "class … is off by … (95 % interval … to …, adjusted for … classes)"),
    "class at most": (5, "The probabilities of class … may be off by up to …"),
    "matters": (1, "which is enough to matter (… or more)"),
    "small": (1, "too small to matter (below …)"),
    "scores": (1, "scores from … to … (at …, near …) are too high, too low, over-, under-confident"),
    "whole": (1, "on the whole they are too high (too low, over-, under-confident)"),
    "largest": (1, "… and of few values one with the largest gap times rows (to a tenth) is named"),
    "named": (1, "… of the … classes are miscalibrated: …"),
}


def found(name: str, n: int, repetition: int) -> dict[str, Any]:
    """What a report says, and whether that is so."""
    truth = next(t for t in TRUTHS if t.name == name)
    y, p, options = truth.sample(n, [SEED, TRUTHS.index(truth), n, repetition])
    threshold = THRESHOLD if repetition % 2 else None
    r = cal.report(y, p, random_state=repetition, threshold=threshold, **options)
    return {
        "status": r.evidence.status,
        "matters": r.evidence.matters,
        "error": list(r.headline.interval),
        "brier": list(r.gain.brier_interval),
        "log_loss": list(r.gain.log_loss_interval),
        "said": [[kind, bool(right)] for kind, right in judged(r, truth)],
    }


def judged(r: cal.results.Report, truth: Truth) -> Iterator[tuple[str, bool]]:
    """Sentences of a report by kind, and whether each is right."""
    known, words = truth.known, r.verdict
    if truth.map is None:
        yield "called", r.evidence.status != "miscalibrated"
    yield "error", within(known["error"], r.headline.interval)
    for name in ("log_loss", "brier"):
        if np.isfinite(known[name]):
            yield name, within(known[name], getattr(r.gain, f"{name}_interval"))
    if r.gain.changed_interval is not None:
        yield "changed", within(known["changed"], r.gain.changed_interval)
    if "which is enough to matter" in words:
        yield "matters", truth.off_by >= known["tolerance"]
    if "too small to matter" in words:
        yield "small", truth.off_by < known["tolerance"]
    rows = {str(row.label): row for row in r.per_class}
    for label in re.findall(r"class (\d+) is off by", words):
        yield "class off by", within(known["classes"][label], rows[label].interval)
    for label in re.findall(r"class (\d+) may be off by", words):
        yield "class at most", known["classes"][label] <= rows[label].interval.high
    for listed in re.findall(r"classes (?:is|are) miscalibrated: ([^.]*)\.", words):
        for label in re.findall(r"(\d+) \([\d,]+ rows\)", listed):
            yield "named", known["classes"][label] > 1e-9
    yield from of_scores(words, *truth.pool)


def of_scores(words: str, s: np.ndarray, g: np.ndarray) -> Iterator[tuple[str, bool]]:
    """What is said of ranges of scores and of values, and of all scores."""
    number, sides = r"([\d.]*\d)", "(too high|too low|over-confident|under-confident)"
    high = ("too high", "over-confident")
    where = rf"[Ss]cores (?:from {number} to {number}|near {number}|at ([\d., and]+)) \([\d.]+ % of rows\) are {sides}"
    named = np.zeros(len(s), dtype=bool)
    ranges = re.findall(where, words)
    for low, top, near, values, side in ranges:
        if values:
            inside = np.min([np.abs(s - float(v)) for v in re.findall(number, values)], axis=0) < 6e-4
        elif near:
            inside = np.abs(s - float(near)) <= 0.05 * min(float(near), 1 - float(near)) + 1e-3
        else:
            inside = (s >= float(low)) & (s <= float(top))
        named |= inside
        yield "scores", bool(inside.any()) and (float((g - s)[inside].mean()) < 0) == (side in high)
    for side in re.findall(rf"on the whole they are {sides}", words):
        yield "whole", (float((g - s).mean()) < 0) == (side in high)
    values, home = np.unique(s, return_inverse=True)
    if ranges and len(values) <= 32:
        off = np.abs(np.bincount(home, g - s))
        yield "largest", bool(named[off[home] >= 0.9 * off.max()].any())


def within(value: float, interval: Any) -> bool:
    return bool(interval[0] <= value <= interval[1])


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=31, only="truths", write=True, store=True)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options = parser.parse_args()
    asked = [
        (truth.name, n, repetition)
        for repetition in range(options.repetitions)
        for n in map(int, options.sizes.split(","))
        for truth in TRUTHS
        if options.only in truth.name and repetition * FEWER.get(n, 1) < options.repetitions
    ]
    every = found_of(options.store, asked, found)
    arguments.finish(options, page([{"truth": name, "n": n} | said for (name, n, _), said in every.items()]))


def page(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The page, as lines."""
    yield "# What a report says, where the truth is known\n"
    yield "Written by `python -m benchmarks.coverage.verdict`, which says what the truths are;"
    yield "% ± standard error. (Where a share is 0 or 100 % that is one of half a report.) `matters` is None"
    yield "where the rows cannot say. The log-loss of scores of 0 and 1, which one truth has, is infinite and left out."
    sizes = sorted({r["n"] for r in rows})
    head = "| | " + " | ".join(f"n = {n:,}" for n in sizes) + " |\n|---|" + "---:|" * len(sizes)

    def line(name: str, keep: Callable[[dict[str, Any]], bool], hit: Callable[[dict[str, Any]], bool]) -> str:
        return (
            f"| {name} | " + " | ".join(share([hit(r) for r in rows if r["n"] == n and keep(r)]) for n in sizes) + " |"
        )

    known = {t.name: t.known for t in TRUTHS}
    fine = {t.name for t in TRUTHS if t.map is None}
    matter = {t.name for t in TRUTHS if t.off_by >= known[t.name]["tolerance"]}
    yield "\n## Sentence by sentence\n"
    yield "Sentences that state a level may be wrong as often as it says, those that state none in 1 %."
    yield "Each is judged against what is true of the distribution, not of the sample.\n"
    yield "| sentence | may be wrong, % | said | wrong | wrong, % |\n|---|---:|---:|---:|---:|"
    for kind, (allowed, words) in SENTENCES.items():
        right = rights(kind, rows)
        yield f"| {words} | {allowed} | {len(right):,} | {right.count(False):,} | {share([not ok for ok in right])} |"
    yield "\n## The worst class\n"
    yield "In how many reports “class … is off by …” is said, and in how many of these it is wrong. The interval"
    yield "covers in 95 % of samples whichever class it is said of. Where few samples have a class that is"
    yield "significantly off, those that have one exaggerate it.\n"
    yield head
    for t in TRUTHS:
        off = [rights("class off by", [r for r in rows if (r["truth"], r["n"]) == (t.name, n)]) for n in sizes]
        if any(off):
            yield f"| {t.name} | " + " | ".join(f"{len(each):,}, {each.count(False):,}" for each in off) + " |"
    yield "\n## All truths together\n"
    yield head
    yield line("calibrated, called miscalibrated (5 % is the level)", lambda r: r["truth"] in fine, is_wrong)
    yield line("off by what matters, called miscalibrated", lambda r: r["truth"] in matter, is_wrong)
    yield line("off by less, called miscalibrated", lambda r: r["truth"] not in fine | matter, is_wrong)
    yield line("`matters` says something", lambda r: True, lambda r: r["matters"] is not None)
    yield line(
        "… and is right, of these",
        lambda r: r["matters"] is not None,
        lambda r: r["matters"] == (r["truth"] in matter),
    )
    for name, words in (("error", "error"), ("brier", "gain in Brier score"), ("log_loss", "gain in log-loss")):
        finite = {truth for truth, k in known.items() if np.isfinite(k[name])}
        keep = lambda r, finite=finite: r["truth"] in finite  # noqa: E731
        yield line(f"interval of the {words} covers it", keep, lambda r, name=name: covers(r, known, name))
    yield "\n## Called miscalibrated, truth by truth\n"
    yield "Error and what matters (the default of `tolerance`) are exact.\n"
    columns = " | ".join(f"n = {n:,}" for n in sizes)
    yield f"| truth | error | matters from | {columns} |\n|---|---:|---:|" + "---:|" * len(sizes)
    for t in TRUTHS:
        k = known[t.name]
        about = f"{t.name} | {k['error']:.4f} | {k['tolerance']:.4f}"
        yield line(about, lambda r, t=t: r["truth"] == t.name, is_wrong)
    yield "\n## `matters`, truth by truth: True / False / None\n"
    yield f"| truth | error | matters from | {columns} |\n|---|---:|---:|" + "---:|" * len(sizes)
    for t in TRUTHS:
        k = known[t.name]
        cells = []
        for n in sizes:
            said = [r["matters"] for r in rows if (r["truth"], r["n"]) == (t.name, n)]
            cells.append(" / ".join(f"{100 * said.count(v) / max(len(said), 1):.0f}" for v in (True, False, None)))
        yield f"| {t.name} | {k['error']:.4f} | {k['tolerance']:.4f} | " + " | ".join(cells) + " |"
    number = {n: sum(r["n"] == n for r in rows) for n in sizes}
    yield "\nReports: " + ", ".join(f"{number[n]:,} of {n:,} rows" for n in sizes) + "."


def rights(kind: str, rows: list[dict[str, Any]]) -> list[bool]:
    """Whether each sentence of a kind is right."""
    return [ok for r in rows for name, ok in r["said"] if name == kind]


def is_wrong(r: dict[str, Any]) -> bool:
    return bool(r["status"] == "miscalibrated")


def covers(r: dict[str, Any], known: dict[str, dict[str, float]], name: str) -> bool:
    return within(known[r["truth"]][name], r[name])


if __name__ == "__main__":
    main()
