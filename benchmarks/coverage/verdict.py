"""False alarms and misses of a report's verdict, and how often it is right about what matters.

    python -m benchmarks.coverage.verdict --store FILE [--repetitions 100] [--sizes 20,100] [--only TEXT] [--write FILE]

Every report is a line of the store: a run that was stopped goes on, and one with more repetitions adds them. Large
samples are drawn less often (a fifth as often for 10⁵ rows, a tenth for 10⁶). The page tells of all that is stored.

Scores are Beta distributed (or confidences of Dirichlet rows of 4 classes, the predicted class right with the chance
that the map says), the map is the true frequency at each score. The truth of ``matters`` is whether ``E |g(s) - s|`` is
at least the default of ``tolerance`` at the true base rate; true gains are means over 10⁶ scores of another seed. No
constant of the verdict was chosen on these truths.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit, rel_entr, xlogy

import calibrant as cal

from .. import arguments

SIZES = (20, 100, 1000, 10_000, 100_000, 1_000_000)
#: How many times fewer samples are drawn of a size.
FEWER = {100_000: 5, 1_000_000: 10}
POOL = 1_000_000
Map = Callable[[np.ndarray], np.ndarray]


def logistic(slope: float, shift: float = 0.0) -> Map:
    return lambda s: expit(slope * logit(np.clip(s, 1e-12, 1 - 1e-12)) + shift)


def wave(size: float) -> Map:
    return lambda s: np.clip(s + size * np.sin(3 * np.pi * s) * 4 * s * (1 - s), 0, 1)


@dataclass(frozen=True)
class Truth:
    """How scores are drawn, and how often it happens at each; ``classes`` for confidences of so many."""

    name: str
    shape: tuple[float, float] = (1, 1)
    map: Map | None = None
    ties: bool = False
    weights: bool = False
    classes: int = 0

    def scores(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Scores (n,), or rows of probabilities (n, classes)."""
        if self.classes:
            return rng.dirichlet(np.full(self.classes, 0.4), n)
        s = rng.beta(*self.shape, n)
        return np.round(s, 1) if self.ties else s

    def chance(self, scores: np.ndarray) -> np.ndarray:
        """How often it happens."""
        s = scores.max(axis=1) if self.classes else scores
        return s if self.map is None else self.map(s)

    def sample(self, n: int, seed: list[int]) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Labels, probabilities and options of a report."""
        rng = np.random.default_rng(seed)
        scores = self.scores(n, rng)
        happens = rng.random(n) < self.chance(scores)
        options = {"sample_weight": rng.exponential(size=n)} if self.weights else {}
        if not self.classes:
            return happens.astype(int), scores, {"labels": [0, 1], **options}
        winner = scores.argmax(axis=1)
        other = (winner + rng.integers(1, self.classes, n)) % self.classes
        return np.where(happens, winner, other), scores, {"labels": range(self.classes), **options}

    @cached_property
    def known(self) -> dict[str, float]:
        """Error, what matters, and gains of a perfect repair."""
        pool = self.scores(POOL, np.random.default_rng(99))
        g, s = self.chance(pool), pool.max(axis=1) if self.classes else pool
        rate = float(g.mean())
        bits = -float(xlogy(rate, rate) + xlogy(1 - rate, 1 - rate)) / np.log(2)
        return {
            "error": float(np.abs(g - s).mean()),
            "tolerance": 0.1 * float(np.sqrt(rate * (1 - rate) * bits)),
            "brier": float(((g - s) ** 2).mean()),
            "log_loss": float((rel_entr(g, s) + rel_entr(1 - g, 1 - s)).mean()),
        }


FLAT, U, MIDDLE, RARE = (1, 1), (0.4, 0.5), (4, 3), (0.5, 20)
TRUTHS = [
    Truth("calibrated, flat"),
    Truth("calibrated, U", U),
    Truth("calibrated, middle", MIDDLE),
    Truth("calibrated, rare", RARE),
    Truth("calibrated, tied", ties=True),
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
    Truth("slope 0.5, tied", map=logistic(0.5), ties=True),
    Truth("slope 0.5, weights", map=logistic(0.5), weights=True),
    Truth("slope 0.6, 4 classes", map=logistic(0.6), classes=4),
]


def found(truth: Truth, n: int, repetition: int) -> dict[str, Any]:
    """What a report says."""
    y, p, options = truth.sample(n, [7, TRUTHS.index(truth), n, repetition])
    r = cal.report(y, p, random_state=repetition, **options)
    return {
        "truth": truth.name,
        "n": n,
        "repetition": repetition,
        "status": r.evidence.status,
        "matters": r.evidence.matters,
        "error": list(r.headline.interval),
        "brier": list(r.gain.brier_interval),
        "log_loss": list(r.gain.log_loss_interval),
    }


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=100, only="truths", write=True)
    parser.add_argument("--store", type=Path, required=True, metavar="FILE", help="lines of results, added to")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.store.read_text().splitlines()] if options.store.exists() else []
    done = {(r["truth"], r["n"], r["repetition"]) for r in rows}
    sizes = [int(n) for n in options.sizes.split(",")]
    with options.store.open("a", encoding="utf-8") as file:
        for repetition in range(options.repetitions):
            for n in sizes:
                if repetition * FEWER.get(n, 1) >= options.repetitions:
                    continue
                for truth in TRUTHS:
                    if options.only in truth.name and (truth.name, n, repetition) not in done:
                        rows.append(found(truth, n, repetition))
                        file.write(json.dumps(rows[-1]) + "\n")
                        file.flush()
    text = "\n".join(page(rows)) + "\n"
    print(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")


def page(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The page, as lines."""
    yield "# False alarms and misses of a report's verdict\n"
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
    matter = {name for name, k in known.items() if k["error"] >= k["tolerance"]}
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
        yield line(f"interval of the {words} holds it", keep, lambda r, name=name: holds(r, known, name))
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


def is_wrong(r: dict[str, Any]) -> bool:
    return bool(r["status"] == "miscalibrated")


def holds(r: dict[str, Any], known: dict[str, dict[str, float]], name: str) -> bool:
    low, high = r[name]
    return bool(low <= known[r["truth"]][name] <= high)


def share(hits: list[bool]) -> str:
    """A share in % with its standard error, that of half a hit more where there is none or nothing else."""
    if not hits:
        return "-"
    n, p = len(hits), sum(hits) / len(hits)
    q = min(max(p, 0.5 / n), 1 - 0.5 / n)
    return f"{100 * p:.1f} ± {100 * np.sqrt(q * (1 - q) / n):.1f}"


if __name__ == "__main__":
    main()
