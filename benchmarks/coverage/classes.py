"""Does a report mark the miscalibrated class and no other, and do its intervals cover the true errors?

    python -m benchmarks.coverage.classes [--repetitions 400]

Rows are drawn from Dirichlet distributions (flat: 1, mixed: 0.3, sharp: 0.05) or from one with Zipf's base rates.
Labels are drawn from these probabilities (calibrated), or from others in which the first class is miscalibrated and the
rest of the row is rescaled: *overconfident* halves the log-odds of that class but keeps its mean, *too high* takes away
a third of its probability. True errors come from at least 300,000 rows in the 15 bins of `Report.per_class`. Kuiper's
test has Holm's correction.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.special import expit, logit

import calibrant as cal
from calibrant.reporting.class_table import class_rows
from calibrant.significance.cumulative_sums import kuiper_pvalue
from calibrant.significance.result import holm

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, share, table
from ..provenance import Kept

LEVEL, BINS, ROWS = 0.95, 15, (300, 1000, 5000, 20_000)
CLASSES, SCORES, MODELS = (10, 100), ("flat", "mixed", "sharp", "zipf"), ("calibrated", "overconfident", "too high")
#: Rows with one miscalibrated class.
WRONG = (("mixed", "overconfident"), ("mixed", "too high"), ("zipf", "overconfident"))
#: Rows from which the truth is found, and how many at a time.
POOL, CHUNK = {10: 1_000_000, 100: 300_000}, 50_000


def drawn(scores: str, k: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Probabilities of n rows and k classes; Zipf's k-th class is k times rarer than the first."""
    rates = 1 / np.arange(1, k + 1)
    same = {"flat": 1.0, "mixed": 0.3, "sharp": 0.05}
    p = np.maximum(
        rng.dirichlet(0.2 * k * rates / rates.sum() if scores == "zipf" else np.full(k, same[scores]), n), 1e-12
    )
    return p / p.sum(axis=1, keepdims=True)


def true_of(p: np.ndarray, model: str, shift: float) -> np.ndarray:
    """True probabilities: the first class is miscalibrated."""
    if model == "calibrated":
        return p
    first = p[:, 0] * (2 / 3) if model == "too high" else expit(0.5 * logit(p[:, 0]) + shift)
    q = p * ((1 - first) / (1 - p[:, 0]))[:, None]
    q[:, 0] = first
    return q


@cache
def truth(classes: int, scores: str, model: str) -> tuple[float, np.ndarray]:
    """Shift of the halved log-odds that keeps the mean, and the true binned error of each class."""
    if model == "calibrated":
        return 0.0, np.zeros(classes)
    many = drawn(scores, classes, POOL[classes], np.random.default_rng(classes))
    shift = 0.0
    if model == "overconfident":
        half, mean = 0.5 * logit(many[:, 0]), many[:, 0].mean()
        shift = brentq(lambda by: expit(half + by).mean() - mean, -20, 20)
    sums = np.zeros((classes, BINS))
    for part in np.split(many, range(CHUNK, len(many), CHUNK)):
        gap, home = true_of(part, model, shift) - part, np.minimum((part * BINS).astype(int), BINS - 1)
        sums += [np.bincount(home[:, j], gap[:, j], BINS) for j in range(classes)]
    return shift, np.abs(sums).sum(axis=1) / len(many)


def sample(classes: int, scores: str, model: str, n: int, seed: int) -> dict[str, float]:
    """What is marked, and which intervals cover: shares of the classes, where they are of several."""
    rng = np.random.default_rng([seed, n, classes, SCORES.index(scores), MODELS.index(model)])
    shift, true = truth(classes, scores, model)
    p = drawn(scores, classes, n, rng)
    above = rng.random((n, 1)) > np.cumsum(true_of(p, model, shift), axis=1)
    y = np.minimum(above.sum(axis=1), classes - 1)
    rows = sorted(class_rows(cal.Accumulator(labels=range(classes)).update(y, p), LEVEL), key=lambda row: row.label)
    marks = [row.significant for row in rows]
    covers = [row.interval.low <= t <= row.interval.high for row, t in zip(rows, true, strict=True)]
    if model == "calibrated":
        small = float(np.mean([row.pvalue <= 1 - LEVEL for row in rows]))
        return {"marked": float(any(marks)), "p at most 0.05": small, "covered": float(np.mean(covers))}
    out = {"marked": float(marks[0]), "only": float(marks[0] and sum(marks) == 1), "covered": float(covers[0])}
    out |= {
        "others covered": float(np.mean(covers[1:])),
        "error": float(true[0]),
        "others' error": float(true[1:].max()),
    }
    return out | ({"kuiper": float(kuiper(y, p))} if classes == CLASSES[0] else {})


def kuiper(y: np.ndarray, p: np.ndarray) -> bool:
    """Whether Kuiper's test of the rows finds the first class miscalibrated."""
    rng, ones = np.random.default_rng(0), np.ones(len(y))
    found = [kuiper_pvalue(p[:, j].copy(), y == j, ones, 0, rng) for j in range(p.shape[1])]
    return bool(holm(np.array(found))[0] <= 1 - LEVEL)


def _parts(kept: Kept) -> Iterator[tuple[str, int, Kept]]:
    """What rows of the table are of: calibrated scores of all kinds together, and each kind of miscalibrated ones."""
    for k in CLASSES:
        for n in ROWS:
            yield f"{k}, calibrated", n, kept.where(classes=k, model="calibrated", n=n)
        for scores, model in WRONG:
            for n in ROWS[1:]:
                yield f"{k}, {scores} {model}", n, kept.where(classes=k, scores=scores, model=model, n=n)


def _covered(part: Kept) -> tuple[float, float]:
    """In per cent; for calibrated samples a mean over classes."""
    return estimate(100 * part["covered"]) if part["p at most 0.05"].min() >= 0 else percent(part["covered"])


def answer(kept: Kept) -> str:
    calm = kept.where(model="calibrated")
    alarms = {
        f"{k} classes, {scores}, {n:,} rows": calm.where(classes=k, scores=scores, n=n)["marked"]
        for k in CLASSES
        for scores in SCORES
        for n in ROWS
    }
    most = max(alarms, key=lambda case: alarms[case].mean())
    ten = kept.where(classes=CLASSES[0])
    parts = [*_parts(kept)]
    zero = [_covered(part)[0] for name, _, part in parts if "calibrated" in name]
    its = [_covered(part)[0] for name, _, part in parts if "calibrated" not in name]
    below = sum(value + 2 * error < 100 * LEVEL for value, error in (_covered(part) for *_, part in parts))
    return (
        f"With 10 classes, a report marks the miscalibrated one in {share(ten['marked'][ten['kuiper'] >= 0])} % of "
        f"samples, and Kuiper's test of the rows in {share(ten['kuiper'])} %. A class is marked in "
        f"{share(calm.where(classes=10)['marked'])} % of calibrated samples with 10 classes and "
        f"{share(calm.where(classes=100)['marked'])} % with 100, where 5 % is allowed. The highest rate is "
        f"{share(alarms[most])} % ({most}). 95 % intervals cover 0 for {min(zero):.1f} to {max(zero):.1f} % of "
        f"calibrated classes, and the error of the miscalibrated class in {min(its):.1f} to {max(its):.1f} % of "
        f"samples. Coverage is below 95 % by two standard errors in {below or 'none'} of {len(parts)} cases."
    )


def picture(kept: Kept) -> Figure:
    parts = {f"{name}, {n:,} rows": part for name, n, part in _parts(kept)}
    series = {
        "marked (5 % is allowed if calibrated)": [percent(part["marked"]) for part in parts.values()],
        "interval covers": [_covered(part) for part in parts.values()],
    }
    return dots([*parts], series, "% of samples, or of calibrated classes", 100 * LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    error = max(part["others' error"].max() for name, _, part in _parts(kept) if "calibrated" not in name)
    yield "The table gives how often the miscalibrated class (if calibrated, any class) is marked, in per cent, by"
    yield "number of rows. *Only* is how often no other class is marked, with 20,000 rows (others have errors up to"
    yield f"{error:.4f}). *Covered* is the lowest coverage of all sizes."
    yield ""
    sizes = [f"{n:,}" for n in ROWS[1:]]
    yield from table(("classes, model", *sizes, "only", "covered"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    lines: dict[str, list[tuple[int, Kept]]] = {}
    for name, n, part in _parts(kept):
        lines.setdefault(name, []).append((n, part))
    for name, parts in lines.items():
        marked = (f"{100 * part['marked'].mean():.1f}" for n, part in parts if n > ROWS[0])
        only = f"{100 * parts[-1][1]['only'].mean():.1f}".replace("nan", "")
        value, _ = min(_covered(part) for _, part in parts)
        yield [name, *marked, only, f"{value:.1f}"]


EXPERIMENT = Experiment(
    __spec__.name,
    {"classes": CLASSES, "scores": SCORES, "model": MODELS, "n": ROWS},
    sample,
    answer,
    page,
    picture,
    repetitions=400,
    quick=2,
    some=lambda classes, scores, model, n: model == "calibrated" or ((scores, model) in WRONG and n > ROWS[0]),
    portion=lambda classes, scores, model, n: 1.0 if classes == CLASSES[0] else 0.5,
)

if __name__ == "__main__":
    EXPERIMENT.main()
