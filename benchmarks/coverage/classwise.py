"""Do the default's class-wise intervals cover the truth for 10 to 1,000 classes?

    python -m benchmarks.coverage.classwise [--repetitions 100]

Intervals come from `estimate(..., notion="classwise")`. Rows are Dirichlet: *even* (all parameters 1), *sharp* (3 / K
but at least 0.05, so few classes have most of a row) or *uneven* (Zipf's, so some classes are up to a thousand times as
frequent as others). Labels are drawn from `p^(1/T)`, normalised. T = 1 is calibrated, T = 0.5 and 2 are not. The truth
is the mean over classes of `E |P(o_k = 1 | s_k) - s_k|`, from up to 2·10⁷ probabilities with other seeds in cells of
equal mass. No choice about intervals was made on these rows. There are half as many samples with 100 classes, and 15 %
as many with 1,000.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, share, table
from ..provenance import Kept

LEVEL, SIZES, TEMPERATURES = 0.95, (300, 3000), (0.5, 2.0, 1.0)
#: Kinds of rows, and classes with the share of the samples that each gets.
ROWS, CLASSES = ("even", "sharp", "uneven"), {10: 1.0, 100: 0.5, 1000: 0.15}
#: Probabilities from which a truth is found, cells of a symmetric one, and of each class.
POOL, CELLS, CELLS_A_CLASS = 20_000_000, 4000, 100


def parameters(rows: str, k: int) -> np.ndarray:
    if rows == "even":
        return np.ones(k)
    if rows == "sharp":
        return np.full(k, max(0.05, 3 / k))
    zipf = 1 / np.arange(1, k + 1)
    return zipf / zipf.mean()


def draw(rng: np.random.Generator, rows: str, k: int, n: int, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities said, and true ones."""
    gamma = rng.standard_gamma(parameters(rows, k), (n, k)) + 1e-12
    said = gamma / gamma.sum(axis=1, keepdims=True)
    true = said ** (1 / temperature)
    return said, true / true.sum(axis=1, keepdims=True)


@cache
def truth(rows: str, k: int, temperature: float) -> float:
    """K times the class-wise L1 error."""
    if temperature == 1:
        return 0.0
    said, true = draw(np.random.default_rng(99), rows, k, min(200_000, POOL // k), temperature)
    residual = true - said
    if rows != "uneven":  # all classes are one
        order = np.argsort(said, axis=None)[: said.size // CELLS * CELLS]
        return float(np.abs(residual.ravel()[order].reshape(CELLS, -1).mean(axis=1)).mean() * k)
    n = len(said) // CELLS_A_CLASS * CELLS_A_CLASS
    total = 0.0
    for scores, gap in zip(said.T, residual.T, strict=True):
        total += np.abs(gap[np.argsort(scores)[:n]].reshape(CELLS_A_CLASS, -1).mean(axis=1)).mean()
    return float(total)


def sample(rows: str, k: int, n: int, temperature: float, seed: int) -> dict[str, float]:
    """Value and interval, and the truth."""
    rng = np.random.default_rng([seed, ROWS.index(rows), k, n, TEMPERATURES.index(temperature)])
    said, chance = draw(rng, rows, k, n, temperature)
    y = np.minimum((chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    e = cal.estimate(y, said, level=LEVEL, notion="classwise", labels=range(k), random_state=seed)
    found = {"value": e.value, "low": e.interval.low, "high": e.interval.high}
    return {name: k * number for name, number in found.items()} | {"truth": truth(rows, k, temperature)}


def _covered(part: Kept) -> np.ndarray:
    return ((part["low"] <= part["truth"] + 1e-12) & (part["truth"] <= part["high"])).astype(float)


def _lines(kept: Kept) -> Iterator[tuple[list[str], Kept, Kept]]:
    """Rows, classes and size; samples that are calibrated, and those that are not."""
    for k in CLASSES:
        for n in SIZES:
            for rows in ROWS:
                part = kept.where(rows=rows, k=k, n=n)
                off = Kept(part.header, {name: [] for name in part.columns})
                for t in TEMPERATURES[:2]:
                    some = part.where(temperature=t)
                    off = Kept(part.header, {c: [*v, *some.columns[c]] for c, v in off.columns.items()})
                yield [rows, f"{k:,}", f"{n:,}"], part.where(temperature=1.0), off


def answer(kept: Kept) -> str:
    cells = [percent(_covered(kept.where(**case))) for case in EXPERIMENT.every()]
    below = sum(value + 2 * error < 100 * LEVEL for value, error in cells)
    every = sum(value == 100 for value, _ in cells)
    wide = {(k, n): np.mean(kept.where(k=k, n=n)["high"] - kept.where(k=k, n=n)["low"]) for k in CLASSES for n in SIZES}
    return (
        f"95 % intervals cover the truth in {share(_covered(kept))} % of samples. In {every} of {len(cells)} cases "
        f"they cover it in all samples. Coverage is below 95 % by more than two standard errors in {below or 'none'}. "
        f"For K times the error, which is at most 2, their mean width with 3,000 rows is {wide[10, 3000]:.2f} for 10 "
        f"classes, {wide[100, 3000]:.2f} for 100 and {wide[1000, 3000]:.2f} for 1,000. With 300 rows and 1,000 classes "
        f"it is {wide[1000, 300]:.2f}."
    )


def picture(kept: Kept) -> Figure:
    lines = {", ".join((about[0], f"{about[1]} classes", f"{about[2]} rows")): off for about, _, off in _lines(kept)}
    series = {
        name: [estimate(off[column] - off["truth"]) for off in lines.values()]
        for name, column in (("value", "value"), ("lower end", "low"), ("upper end", "high"))
    }
    return dots([*lines], series, "mean of K times the error, minus the truth (T = 0.5 and 2)", 0.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent and mean width, for calibrated samples and for others (T = 0.5, 2)."
    yield ""
    yield from table(("classes, rows", "calibrated", "width", "others", "width"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for k in CLASSES:
        for n in SIZES:
            some = kept.where(k=k, n=n)
            fine = some["temperature"] == 1
            yield [f"{k:,}, {n:,}", *(cell for held in (fine, ~fine) for cell in _cells(some, held))]


def _cells(some: Kept, held: np.ndarray) -> list[str]:
    return [share(_covered(some)[held]), f"{np.mean((some['high'] - some['low'])[held]):.3f}"]


EXPERIMENT = Experiment(
    __spec__.name,
    {"rows": ROWS, "k": [*CLASSES], "n": SIZES, "temperature": TEMPERATURES},
    sample,
    answer,
    page,
    picture,
    portion=lambda rows, k, n, temperature: CLASSES[k],
    quick=2,
)

if __name__ == "__main__":
    EXPERIMENT.main()
