"""How often is a report wrong, and how often does it say anything, where the truth is known?

    python -m benchmarks.coverage.verdict [--repetitions 120]

Scores are Beta distributed, or rounded, with a map that gives the true frequency at each score. With several classes,
rows of probabilities are Dirichlet distributed, and labels are drawn from a function of them. True values for a class
or a confidence are means over 300,000 rows, in the report's 15 bins or in 400. Sentences are judged against the true
distribution. Those with a level may be wrong in 5 % of cases, others in 1 %. Every other report has a threshold of 0.3.
No constant of the verdict was chosen on these truths.
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
from matplotlib.figure import Figure
from scipy.special import expit, kl_div, logit, rel_entr, xlogy

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

SIZES, FEWER = (100, 1000, 10_000, 100_000), {100_000: 0.2}
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
    """How scores are drawn, and how often it happens at each; vectors with ``classes`` entries."""

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
    Truth("power 0.6, 4 classes", map=temperature(0.6), classes=4),
    Truth("calibrated, 20 classes", classes=20),
    Truth("power 0.8, 20 classes", map=temperature(0.8), classes=20),
    Truth("one class half as often, 3 classes", map=one_class(0.5), classes=3),
    Truth("one class half as often, 20 classes", map=one_class(0.5), classes=20),
    Truth("one class a tenth less often, 20 classes", map=one_class(0.9), classes=20),
    # Last, since a quick run repeats the last sample: its truth is found at once.
    Truth("0.3 too high on 0.70 to 0.75", map=band),
]
BY_NAME = {truth.name: truth for truth in TRUTHS}
#: Sentences by kind: how often each may be wrong in %, and the words.
SENTENCES = {
    "called": (5, "calibrated, called miscalibrated"),
    "error": (5, "off by … (… to …)"),
    "log_loss": (5, "lower log-loss by …"),
    "brier": (5, "lower Brier score by …"),
    "changed": (5, "decisions change"),
    "class off by": (5, "class … is off by …"),
    "class at most": (5, "class … by up to …"),
    "matters": (1, "enough to matter"),
    "small": (1, "too small to matter"),
    "scores": (1, "scores … are too high"),
    "whole": (1, "on the whole too high"),
    "largest": (1, "largest gap is named"),
    "named": (1, "class is named"),
}


def sample(truth: str, n: int, seed: int) -> dict[str, float]:
    """What a report says, and how many sentences of a kind are wrong."""
    one = BY_NAME[truth]
    y, p, options = one.sample(n, [seed, TRUTHS.index(one), n])
    r = cal.report(y, p, random_state=seed, threshold=THRESHOLD if seed % 2 else None, **options)
    out = {"miscalibrated": float(r.evidence.status == "miscalibrated")}
    out["truly matters"] = float(one.off_by >= one.known["tolerance"])
    if r.evidence.matters is not None:
        out["said to matter"] = float(r.evidence.matters)
    for kind, right in judged(r, one):
        out[kind] = out.get(kind, 0.0) + (not right)
        out[f"{kind}: said"] = out.get(f"{kind}: said", 0.0) + 1
    # Of most kinds there is one sentence, which need not be counted.
    return {name: value for name, value in out.items() if not name.endswith(": said") or value > 1}


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


def wrong(part: Kept, kind: str) -> np.ndarray:
    """Whether each sentence of a kind is wrong, of all reports."""
    if kind not in part.columns:
        return np.empty(0)
    count = part[kind]
    said = part[f"{kind}: said"] if f"{kind}: said" in part.columns else np.full(len(part), np.nan)
    held = count >= 0
    all_said = np.where(np.isnan(said), 1, said)[held].sum()
    return np.arange(all_said) < count[held].sum()


def _parts(kept: Kept) -> dict[str, Kept]:
    """All reports, and those of each size."""
    return {"all": kept} | {f"{n:,}": kept.where(n=n) for n in SIZES}


def _of(kept: Kept, names: list[str]) -> Kept:
    """Reports of some truths."""
    held = [i for i, name in enumerate(kept.columns["truth"]) if name in names]
    return Kept(kept.header, {name: [column[i] for i in held] for name, column in kept.columns.items()})


def _off(kept: Kept, enough: bool) -> Kept:
    """Reports of miscalibrated truths, whose error matters or is smaller."""
    names = [t.name for t in TRUTHS if t.map is not None]
    return _of(kept, [name for name in names if bool(kept.where(truth=name)["truly matters"][0]) == enough])


def answer(kept: Kept) -> str:
    above = [
        f"*{words}* ({100 * values.mean():.1f} %)"
        for kind, (allowed, words) in SENTENCES.items()
        if (values := wrong(kept, kind)).size and percent(values)[0] - 2 * percent(values)[1] > allowed
    ]
    single = [
        f"*{words}* in {n} rows ({100 * values.mean():.1f} %)"
        for kind, (allowed, words) in SENTENCES.items()
        for n, part in [*_parts(kept).items()][1:]
        if (values := wrong(part, kind)).size and percent(values)[0] - 3 * percent(values)[1] > allowed
    ]
    much, little = (
        ", ".join(f"{100 * _off(kept, enough).where(n=n)['miscalibrated'].mean():.0f}" for n in SIZES)
        for enough in (True, False)
    )
    said = ", ".join(f"{100 * (kept.where(n=n)['said to matter'] >= 0).mean():.0f}" for n in SIZES)
    return (
        f"{', '.join(above) or 'No sentence'} {'are' if len(above) > 1 else 'is'} wrong more often than allowed over "
        f"all sizes by more than two standard errors, and {', '.join(single) or 'none'} at a single size by more than "
        f"three. With 100, 1,000, 10,000 and 100,000 rows, reports call models miscalibrated in {much} % of cases if "
        f"the error matters, and in {little} % if it is smaller. They decide whether it matters (`matters`) in "
        f"{said} %."
    )


def picture(kept: Kept) -> Figure:
    lines = {"calibrated, all": _of(kept, [t.name for t in TRUTHS if t.map is None])}
    lines |= {t.name: kept.where(truth=t.name) for t in TRUTHS if t.map is not None}
    series = {f"{n:,} rows": [percent(part.where(n=n)["miscalibrated"]) for part in lines.values()] for n in SIZES[:3]}
    return dots([*lines], series, "called miscalibrated, % of reports", share=True)


def page(kept: Kept) -> Iterator[str]:
    seldom: list[np.ndarray] = []
    for t in TRUTHS:
        for n in SIZES:
            part = kept.where(truth=t.name, n=n)
            if "class off by" in part.columns and (part["class off by"] >= 0).mean() < 0.1:
                seldom.append(wrong(part, "class off by"))
    rare = np.concatenate(seldom) if seldom else np.empty(0)
    yield "The table gives the allowed and the observed percentage of wrong sentences, over all sizes and at the worst"
    yield "(*most*). Other sentences are never wrong. Where less than 10 % of reports say *class … is off by …*,"
    yield f"{int(rare.sum())} of {rare.size} such sentences {'is' if rare.sum() == 1 else 'are'} wrong."
    yield ""
    yield from table(("sentence", "allowed", "wrong", "most"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for kind, (allowed, words) in SENTENCES.items():
        every, *sizes = (wrong(part, kind) for part in _parts(kept).values())
        if every.any():
            most = max(100 * values.mean() for values in sizes if values.size)
            yield [words, str(allowed), share(every.astype(float)), f"{most:.1f}"]


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": BY_NAME, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=120,
    quick=2,
    portion=lambda truth, n: FEWER.get(n, 1.0),
)

if __name__ == "__main__":
    EXPERIMENT.main()
