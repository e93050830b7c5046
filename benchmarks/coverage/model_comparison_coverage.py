"""Do 95 % intervals of `compare_models` cover the true differences of two models?

    python -m benchmarks.coverage.model_comparison_coverage [--repetitions 100]

Two normal features give P(y = 1) = expit(a x1 + b x2). Each model sees one of them. Its calibrated probability is E(y |
x), by quadrature. It states a map of that, so truths are integrals over x. The models of *sharp; shifted alike* have
the same squared error. With 10, 5 or 1 scores, one model states a uniform P(y = 1) itself and the other its mean over
that many equal cells. In *too high; too low* and *calibrated; too high* both see the same feature. Rows in *fives*
share half of the variance of each feature and 60 % of that of the outcome's latent normal; rows *apart* are
independent. Intervals use 300 resamples.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy import special
from scipy.optimize import brentq
from scipy.stats import norm

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept

Map = Callable[[np.ndarray], np.ndarray]
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
GRID = np.linspace(-8, 8, 20_001)
DENSITY = norm.pdf(GRID) / norm.pdf(GRID).sum()
MEASURES = {
    "calibration_error": "calibration error",
    "squared_calibration_error": "squared error",
    "brier": "Brier",
    "brier_miscalibration": "Brier: miscal.",
    "brier_discrimination": "Brier: discr.",
    "log-loss": "log-loss",
    "log-loss_miscalibration": "log: miscal.",
    "log-loss_discrimination": "log: discr.",
    "accuracy": "accuracy",
}
#: Measures that a column of the page sums up.
SUMMED = {
    "errors": ("calibration_error", "squared_calibration_error", "brier_miscalibration", "log-loss_miscalibration"),
    "scores": ("brier", "log-loss"),
    "discr.": ("brier_discrimination", "log-loss_discrimination"),
    "accuracy": ("accuracy",),
}
IN_GROUP, RESAMPLES = 5, 300


def same(p: np.ndarray) -> np.ndarray:
    return p


def sharper(factor: float) -> Map:
    return lambda p: special.expit(factor * special.logit(p))


def shifted(by: float) -> Map:
    return lambda p: special.expit(special.logit(p) + by)


def seen(x: np.ndarray, own: float, other: float) -> np.ndarray:
    """E expit(own x + other z) over a standard normal z."""
    return special.expit(own * x[:, None] + other * NODES) @ (WEIGHTS / WEIGHTS.sum())


def true_measures(own: float, other: float, stated: Map) -> dict[str, float]:
    """All measures of a model that sees one feature and states a map of the calibrated probability."""
    p = seen(GRID, own, other)
    s = stated(p)

    def mean(values: np.ndarray) -> float:
        return float(DENSITY @ values)

    def entropy(q: np.ndarray | float) -> np.ndarray:
        return -(q * np.log(q) + (1 - q) * np.log(1 - q))

    base = mean(p)
    square, divergence = mean((s - p) ** 2), mean(p * np.log(p / s) + (1 - p) * np.log((1 - p) / (1 - s)))
    return {
        "calibration_error": mean(np.abs(s - p)),
        "squared_calibration_error": square,
        "brier": square + mean(p * (1 - p)),
        "brier_miscalibration": square,
        "brier_discrimination": base * (1 - base) - mean(p * (1 - p)),
        "log-loss": divergence + mean(entropy(p)),
        "log-loss_miscalibration": divergence,
        "log-loss_discrimination": float(entropy(base)) - mean(entropy(p)),
        "accuracy": mean(np.where(s > 0.5, p, 1 - p)),
    }


def uniforms(n: int, number: int, rng: np.random.Generator, grouped: bool) -> tuple:
    """Groups, normal features, and the uniform that outcomes are drawn by."""
    if not grouped:
        return None, rng.standard_normal((number, n)), rng.random(n)
    group = np.arange(n) // IN_GROUP
    shared = rng.standard_normal((number + 1, group[-1] + 1))[:, group]
    x = np.sqrt(0.5) * shared[:-1] + np.sqrt(0.5) * rng.standard_normal((number, n))
    return group, x, special.ndtr(np.sqrt(0.6) * shared[-1] + np.sqrt(0.4) * rng.standard_normal(n))


class Coarse:
    """A model that states a uniform P(y = 1), and one that states its mean over so many equal cells."""

    def __init__(self, levels: int) -> None:
        self.levels = levels
        p = (np.arange(60_000) + 0.5) / 60_000
        fine, coarse = (self._measures(p, s) for s in (p, self._cells(p)))
        self.truth = {m: fine[m] - coarse[m] for m in MEASURES}

    def _cells(self, p: np.ndarray) -> np.ndarray:
        return (np.floor(p * self.levels) + 0.5) / self.levels

    @staticmethod
    def _measures(p: np.ndarray, s: np.ndarray) -> dict[str, float]:
        brier, log = float(np.mean(s * (1 - s))), -float(np.mean(s * np.log(s) + (1 - s) * np.log(1 - s)))
        return dict.fromkeys(MEASURES, 0.0) | {
            "brier": brier,
            "brier_discrimination": 0.25 - brier,
            "log-loss": log,
            "log-loss_discrimination": float(np.log(2)) - log,
            "accuracy": float(np.mean(np.where(s > 0.5, p, 1 - p))),
        }

    def draw(self, n: int, rng: np.random.Generator, grouped: bool) -> tuple:
        group, (x,), u = uniforms(n, 1, rng, grouped)
        p = np.clip(special.ndtr(x), 1e-12, 1 - 1e-12)
        return (u < p).astype(int), {"first": p, "second": self._cells(p)}, group


class Case:
    """Two models that see a feature each, or both the first."""

    def __init__(self, a: float, b: float, first: Map, second: Map, *, shared: bool = False) -> None:
        self.a, self.b, self.first, self.second, self.shared = a, b, first, second, shared
        one, other = true_measures(a, b, first), true_measures(*((a, b) if shared else (b, a)), second)
        self.truth = {m: one[m] - other[m] for m in MEASURES}

    def draw(self, n: int, rng: np.random.Generator, grouped: bool) -> tuple:
        group, (x1, x2), u = uniforms(n, 2, rng, grouped)
        y = u < special.expit(self.a * x1 + self.b * x2)
        one = seen(x1, self.a, self.b)
        stated = {
            "first": self.first(one),
            "second": self.second(one if self.shared else seen(x2, self.b, self.a)),
        }
        return y.astype(int), stated, group


def same_square() -> Case:
    """Two wrong models of the same squared error."""

    def gap(by: float) -> float:
        return Case(1.5, 1.2, sharper(1.6), shifted(by)).truth["squared_calibration_error"]

    return Case(1.5, 1.2, sharper(1.6), shifted(brentq(gap, 0.01, 2)))


MODELS: dict[str, Callable[[], Case | Coarse]] = {
    "both calibrated": lambda: Case(1.5, 0.8, same, same),
    "sharp; shifted alike": same_square,
    "calibrated; too sharp": lambda: Case(1.2, 1.2, same, sharper(1.6)),
    "calibrated; high at 0": lambda: Case(1.2, 1.2, same, lambda p: p + 0.2 * (1 - p) ** 4),
    "too high; too low": lambda: Case(1.5, 0.8, shifted(0.4), shifted(-0.4), shared=True),
    "calibrated; too high": lambda: Case(1.5, 0.8, same, lambda p: p + 0.3 * p * (1 - p), shared=True),
    "too sharp; too flat": lambda: Case(1.2, 1.2, sharper(1.8), sharper(0.5)),
    "calibrated; 10 scores": lambda: Coarse(10),
    "calibrated; 5 scores": lambda: Coarse(5),
    "calibrated; 1 score": lambda: Coarse(1),
}
SIZES, ROWS = (200, 1_000, 5_000), ("apart", "fives")
LEVEL = 95
#: A true difference that is none.
NONE = 1e-9


@cache
def made(models: str) -> Case | Coarse:
    return MODELS[models]()


def sample(models: str, n: int, rows: str, seed: int) -> dict[str, float]:
    """Which intervals cover."""
    rng = np.random.default_rng([seed, [*MODELS].index(models), n, ROWS.index(rows)])
    case = made(models)
    y, stated, group = case.draw(n, rng, rows == "fives")
    found = cal.compare_models(
        y, stated, groups=group, scores=["brier", "log-loss"], n_resamples=RESAMPLES, random_state=rng
    )
    intervals = {m: found.difference(m, "first", "second").interval for m in MEASURES}
    return {m: float(low <= case.truth[m] <= high) for m, (low, high) in intervals.items()}


def cells(kept: Kept) -> dict[tuple[str, str, str, str], np.ndarray]:
    """What covers, of models, size, rows and measure."""
    parts = {tuple(map(str, case.values())): kept.where(**case) for case in EXPERIMENT.every()}
    return {(*case, m): part[m] for case, part in parts.items() for m in MEASURES}  # type: ignore[misc]


def answer(kept: Kept) -> str:
    every = cells(kept)
    shares = {case: percent(hits) for case, hits in every.items()}
    missed = [case for case, (value, error) in shares.items() if value + 2 * error < LEVEL]
    models, n, rows, measure = min(shares, key=lambda case: shares[case][0])
    value, error = shares[models, n, rows, measure]
    none = [1 - hits.mean() for case, hits in every.items() if abs(made(case[0]).truth[case[3]]) < NONE]
    average = np.mean([value for value, _ in shares.values()])
    sizes = ", ".join(f"{sum(case[1] == str(n) for case in missed)} with {n:,} rows" for n in SIZES)
    return (
        f"The intervals cover the true difference in {average:.1f} % of samples. Coverage is below 95 % by "
        f"more than two standard errors in {len(missed)} of {len(shares)} cases ({sizes}). The lowest is {value:.1f} ± "
        f"{error:.1f} % ({models}, {int(n):,} rows, {rows}, {MEASURES[measure]}). Where there is no difference, "
        f"{100 * np.mean(none):.1f} % of intervals exclude 0 (5 % is the aim)."
    )


def pooled(parts: Iterable[Kept], measures: Iterable[str]) -> tuple[float, float]:
    """Share in per cent that covers, of several cases and measures, and its standard error over samples."""
    measures = [*measures]
    hits = np.concatenate([np.mean([part[m] for m in measures], axis=0) for part in parts])
    value, error = estimate(hits)
    return percent(hits) if error == 0 else (100 * value, 100 * error)


def picture(kept: Kept) -> Figure:
    series = {f"{n:,} rows": [pooled([kept.where(n=n)], [m]) for m in MEASURES] for n in SIZES}
    return dots([*MEASURES.values()], series, "95 % intervals that cover the true difference, %", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent over all sizes for calibration errors (with the miscalibration of both"
    yield "scores), the scores, their discrimination and the accuracy."
    yield ""
    yield from table(("the two models", *SUMMED), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for models in MODELS:
        each = (pooled([kept.where(models=models)], measures) for measures in SUMMED.values())
        yield [models, *(f"{value:.1f}" for value, _ in each)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"models": MODELS, "n": SIZES, "rows": ROWS},
    sample,
    answer,
    page,
    picture,
    repetitions=100,
)

if __name__ == "__main__":
    EXPERIMENT.main()
