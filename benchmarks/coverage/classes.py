"""The class-wise table of a report where the truth is known: false alarms, coverage of its intervals, and power.

    python -m benchmarks.coverage.classes [--repetitions 400]

Rows are drawn from Dirichlet distributions (flat: 1, mixed: 0.3, sharp: 0.05) and from one with Zipf's base rates (the
k-th class k times rarer than the first). Labels are drawn from the stated probabilities ("calibrated"), or from others
in which one class is off and the rest of a row is scaled to add up to 1: "over-confident" halves the log odds of that
class about its mean, which is kept, so that the others stay calibrated but for what is printed; "too high" takes a
third of its probability away. Truths are those of a million rows (300,000 for a hundred classes), in the report's bins.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.reporting.class_table import class_rows
from calibrant.significance.cumulative_sums import kuiper_pvalue
from calibrant.significance.result import holm

from .. import arguments

LEVEL, ROWS = 0.95, (300, 1000, 5000, 20_000)


def law(name: str, k: int) -> np.ndarray:
    """Parameters of a Dirichlet distribution."""
    if name == "zipf":
        rates = 1 / np.arange(1, k + 1)
        return 0.2 * k * rates / rates.sum()
    return np.full(k, {"flat": 1.0, "mixed": 0.3, "sharp": 0.05}[name])


def drawn(shape: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    p = rng.dirichlet(shape, n)
    p = np.maximum(p, 1e-12)
    return p / p.sum(axis=1, keepdims=True)


def labels(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.minimum((rng.random((len(q), 1)) > np.cumsum(q, axis=1)).sum(axis=1), q.shape[1] - 1)


def truth(p: np.ndarray, kind: str, shift: float) -> np.ndarray:
    """True probabilities: the first class is off."""
    if kind == "calibrated":
        return p
    first = p[:, 0] * (2 / 3) if kind == "too high" else expit(0.5 * logit(p[:, 0]) + shift)
    q = p * ((1 - first) / (1 - p[:, 0]))[:, None]
    q[:, 0] = first
    return q


def shift_of(p: np.ndarray, kind: str) -> float:
    """Shift of the halved log odds that keeps the mean."""
    if kind != "over-confident":
        return 0.0
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        too_low = expit(0.5 * logit(p[:, 0]) + middle).mean() < p[:, 0].mean()
        low, high = (middle, high) if too_low else (low, middle)
    return low


def errors(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """True binned error of each class."""
    home = np.minimum((p * 15).astype(int), 14)
    found = [np.abs(np.bincount(home[:, j], q[:, j] - p[:, j], 15)).sum() / len(p) for j in range(p.shape[1])]
    return np.array(found)


def table(y: np.ndarray, p: np.ndarray) -> list:
    """Rows of the classes in their order."""
    sums = cal.Accumulator(labels=range(p.shape[1])).update(y, p)
    return sorted(class_rows(sums, LEVEL), key=lambda row: row.label)


def share(hits: np.ndarray) -> str:
    """A percentage with its standard error over samples; each is a mean over classes."""
    hits = np.asarray(hits, dtype=float)
    return f"{100 * hits.mean():.1f} ± {100 * hits.std(ddof=1) / np.sqrt(len(hits)):.1f}"


def calibrated(k: int, repetitions: int) -> None:
    print(
        "\n| classes | distribution | n | samples | any class marked, % | p ≤ 0.05, % of classes "
        "| 0 in the interval, % of classes |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|")
    every = []
    for name in ("flat", "mixed", "sharp", "zipf"):
        for n in ROWS:
            reps = repetitions if n * k < 200_000 else max(repetitions // 3, 10)
            found = []
            for i in range(reps):
                rng = np.random.default_rng([i, n, k])
                p = drawn(law(name, k), n, rng)
                rows = table(labels(p, rng), p)
                small = np.mean([row.pvalue <= 0.05 for row in rows])
                held = np.mean([row.interval.low == 0 for row in rows])
                found.append((any(row.significant for row in rows), small, held))
            marked, small, held = np.array(found, dtype=float).T
            every += marked.tolist()
            print(f"| {k} | {name} | {n:,} | {reps} | {share(marked)} | {share(small)} | {share(held)} |", flush=True)
    print(f"\nAll of these: any class marked in {share(every)} % of {len(every):,} samples.", flush=True)


def one_bad(k: int, repetitions: int) -> None:
    print(
        "\n| classes | distribution | first class | its true error | largest of the others | n | samples "
        "| it is marked, % | and only it, % | marked by Kuiper's, % | its interval covers, % "
        "| the others' intervals cover, % |"
    )
    print("|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, kind in (("mixed", "over-confident"), ("mixed", "too high"), ("zipf", "over-confident")):
        rng = np.random.default_rng(k)
        many = drawn(law(name, k), 1_000_000 if k < 50 else 300_000, rng)
        shift = shift_of(many, kind)
        true = errors(many, truth(many, kind, shift))
        del many
        for n in ROWS[1:]:
            reps = repetitions if n * k < 200_000 else max(repetitions // 3, 10)
            found = []
            for i in range(reps):
                rng = np.random.default_rng([i, n, k, 1])
                p = drawn(law(name, k), n, rng)
                y = labels(truth(p, kind, shift), rng)
                rows = table(y, p)
                marks = [row.significant for row in rows]
                cover = [row.interval.low <= t <= row.interval.high for row, t in zip(rows, true, strict=True)]
                found.append((marks[0], marks[0] and sum(marks) == 1, _kuiper(y, p), cover[0], np.mean(cover[1:])))
            shares = " | ".join(
                share(column) if k < 50 or j != 2 else "–" for j, column in enumerate(zip(*found, strict=True))
            )
            print(
                f"| {k} | {name} | {kind} | {true[0]:.4f} | {true[1:].max():.4f} | {n:,} | {reps} | {shares} |",
                flush=True,
            )


def _kuiper(y: np.ndarray, p: np.ndarray) -> bool:
    """Whether the first class is off by Kuiper's test of rows, by its limiting distribution, and Holm's correction."""
    if p.shape[1] >= 50:
        return False
    rng, ones = np.random.default_rng(0), np.ones(len(y))
    found = [kuiper_pvalue(p[:, j].copy(), y == j, ones, 0, rng) for j in range(p.shape[1])]
    return bool(holm(np.array(found))[0] <= 1 - LEVEL)


def main() -> None:
    options = arguments.parser(__doc__, repetitions=400).parse_args()
    print("### Calibrated rows")
    calibrated(10, options.repetitions)
    calibrated(100, options.repetitions // 2)
    print("\n### One class is off")
    one_bad(10, options.repetitions // 2)
    one_bad(100, options.repetitions // 4)


if __name__ == "__main__":
    main()
