"""Coverage of the intervals of `compare_models` where the true differences are known.

    python -m benchmarks.coverage.model_comparison_coverage [--repetitions 200] [--resamples 300] [--sizes
    200,1000,5000]
        [--jobs 1] [--only "calibration error"] [--write docs/comparing_models.md]

Two normal features, P(y = 1) = expit(a x1 + b x2). Each model sees one of them: its calibrated probability is E(y | x),
by quadrature, and what it states is a map of that, so all errors, scores and parts are integrals over x. In further
cases one model states a uniform P(y = 1) itself, and the other its mean over equal cells: both are calibrated, and
differ in how many scores they have; or both state the same probability, too high and too low, so that their errors
move against each other. Grouped rows come in fives that share half of the variance of each feature and more than half
of that of the outcome's latent normal.
Prints, for each case and size, the share of 95 % intervals that cover the true difference; where that is 0, the rest is
how often a difference is found that is not there. With --write, also puts the table into a page between its markers.
"""

import warnings
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from scipy import special  # workers do not find ufuncs that this file names itself
from scipy.optimize import brentq
from scipy.stats import norm

import calibrant as cal
from calibrant.data.writing import write_text

from .. import arguments
from ..speed import one_thread  # noqa: F401

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
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
IN_GROUP = 5


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


def cases() -> dict[str, Case | Coarse]:
    def gap(by: float) -> float:
        return Case(1.5, 1.2, sharper(1.6), shifted(by)).truth["squared_calibration_error"]

    return {
        "both calibrated": Case(1.5, 0.8, same, same),
        "too sharp; shifted, the same squared error": Case(1.5, 1.2, sharper(1.6), shifted(brentq(gap, 0.01, 2))),
        "calibrated; too sharp": Case(1.2, 1.2, same, sharper(1.6)),
        "calibrated; too high near 0": Case(1.2, 1.2, same, lambda p: p + 0.2 * (1 - p) ** 4),
        "too high; too low": Case(1.5, 0.8, shifted(0.4), shifted(-0.4), shared=True),
        "calibrated; the same, a little too high": Case(1.5, 0.8, same, lambda p: p + 0.3 * p * (1 - p), shared=True),
        "too sharp; too flat": Case(1.2, 1.2, sharper(1.8), sharper(0.5)),
        "both calibrated, one of 10 scores": Coarse(10),
        "both calibrated, one of 5 scores": Coarse(5),
        "both calibrated, one of 1 score": Coarse(1),
    }


def held(
    case: Case | Coarse, n: int, grouped: bool, repetitions: int, resamples: int, measures: list[str]
) -> dict[str, float]:
    """Share of intervals that cover the true difference, by measure."""
    hits = dict.fromkeys(measures, 0)
    scores = [score for score in ("brier", "log-loss") if any(m.startswith(score) for m in measures)]
    for repetition in range(repetitions):
        rng = np.random.default_rng([n, grouped, repetition])
        y, stated, group = case.draw(n, rng, grouped)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
            found = cal.compare_models(y, stated, groups=group, scores=scores, n_resamples=resamples, random_state=rng)
        for measure in measures:
            low, high = found.difference(measure, "first", "second").interval
            hits[measure] += low <= case.truth[measure] <= high
    return {m: h / repetitions for m, h in hits.items()}


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=200, jobs=1, write=True)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--sizes", default="200,1000,5000")
    parser.add_argument("--cases", default="", help="Only those whose names hold this.")
    parser.add_argument("--only", default="", help="Only measures whose names hold this.")
    options = parser.parse_args()
    measures = [m for m in MEASURES if options.only in MEASURES[m]]
    lines = [
        f"| the two models | n | rows | {' | '.join(MEASURES[m] for m in measures)} |",
        f"|---|---:|---|{'---:|' * len(measures)}",
    ]
    print("\n".join(lines), flush=True)
    rows = [
        (name, case, n, grouped)
        for n in map(int, options.sizes.split(","))
        for name, case in cases().items()
        if options.cases in name
        for grouped in (False, True)
    ]
    found = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(held)(case, n, grouped, options.repetitions, options.resamples, measures)
        for _, case, n, grouped in rows
    )
    for (name, case, n, grouped), shares in zip(rows, found, strict=True):
        bold = {m: "**" if abs(case.truth[m]) < 1e-9 else "" for m in measures}
        cells = " | ".join(f"{bold[m]}{100 * shares[m]:.0f}{bold[m]}" for m in measures)
        lines.append(f"| {name} | {n} | {'in fives' if grouped else 'independent'} | {cells} |")
        print(lines[-1], flush=True)
    error = 100 * np.sqrt(0.95 * 0.05 / options.repetitions)
    lines += ["", f"{options.repetitions} repetitions a row of the table: ± {error:.1f} where 95 is true."]
    if options.write is not None:
        page = options.write.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        table = "\n".join(lines)
        write_text(options.write, f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
