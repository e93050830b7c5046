"""Coverage of the intervals of `calibration_measures` and `confidence_direction`, where the truth is known.

    python -m benchmarks.coverage.clinical [--repetitions 300] [--part measures|others|bootstrap|direction]

Scores are Beta distributed; true maps are the identity, recalibrations, a power and a wave. Truths are integrals on
200,000 quantiles of the scores; those of intercepts and slope are the coefficients that fit them best. On *others*
nothing was chosen.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

import calibrant as cal

from .. import arguments

SCORES = {"flat": (1.0, 1.0), "rare": (0.5, 6.0)}
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "overconfident": lambda s: expit(0.6 * logit(s)),
    "shifted": lambda s: expit(logit(s) + 0.5),
    "power": lambda s: s**1.5,
    "wave": lambda s: np.clip(s + 0.12 * np.sin(2 * np.pi * s), 0, 1),
}
OTHERS = {"U": (0.4, 0.5), "middle": (4.0, 3.0), "high": (8.0, 1.2)}
OTHER_MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "underconfident": lambda s: expit(1.5 * logit(s)),
    "asymmetric": lambda s: expit(0.6 * np.log(s) - 1.6 * np.log1p(-s) - 0.5),
    "bent": lambda s: expit(logit(s) + 0.15 * logit(s) ** 2 - 0.5),
    "kink": lambda s: np.where(s > 0.6, 0.6 + 0.4 * (s - 0.6), s),
    "ripple": lambda s: expit(logit(s) + 0.8 * np.sin(logit(s))),
}
SIZES = (100, 300, 1000, 2000)
NAMES = ("ici", "e50", "eci", "observed_expected", "in_the_large", "intercept", "slope")
RESAMPLES = 100


def scores_of(shape: tuple[float, float], n: int, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng([seed, n])
    return rng.beta(*shape, n).clip(1e-6, 1 - 1e-6), rng


def grid(shape: tuple[float, float]) -> np.ndarray:
    return beta.ppf((np.arange(200_000) + 0.5) / 200_000, *shape).clip(1e-6, 1 - 1e-6)


def truths(s: np.ndarray, g: np.ndarray) -> dict[str, float]:
    gap, z = np.abs(g - s), logit(s)
    out = {"ici": gap.mean(), "e50": np.median(gap), "eci": 100 * (gap**2).mean()}
    out["observed_expected"] = g.mean() / s.mean()
    line = fitted(np.stack([np.ones_like(z), z]), np.zeros_like(z), g)
    out |= {"intercept": line[0], "slope": line[1], "in_the_large": fitted(np.ones((1, len(z))), z, g)[0]}
    return {name: float(value) for name, value in out.items()}


def fitted(x: np.ndarray, offset: np.ndarray, g: np.ndarray) -> np.ndarray:
    theta = np.zeros(len(x))
    for _ in range(50):
        p = expit(theta @ x + offset)
        theta = theta + np.linalg.solve((x * (p * (1 - p))) @ x.T, x @ (g - p))
    return theta


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--part", choices=("measures", "others", "bootstrap", "direction"), default="measures")
    options = parser.parse_args()
    {"measures": measures, "others": others, "bootstrap": bootstrap, "direction": direction}[options.part](
        options.repetitions
    )


def others(repetitions: int) -> None:
    """Scores and maps that played no part."""
    measures(repetitions, OTHERS, OTHER_MAPS, SIZES[1:3])


def measures(
    repetitions: int,
    laws: Mapping[str, tuple[float, float]] = SCORES,
    maps: Mapping[str, Callable[[np.ndarray], np.ndarray]] = MAPS,
    sizes: tuple[int, ...] = SIZES,
) -> None:
    print("| scores | map | n | " + " | ".join(NAMES) + " | ICI: truth | mean of values | mean width |")
    print("|---|---|--:|" + "--:|" * (len(NAMES) + 3))
    total: dict[int, list[np.ndarray]] = {n: [] for n in sizes}
    for law, shape in laws.items():
        at = grid(shape)
        for name, true in maps.items():
            truth = truths(at, true(at))
            for n in sizes:
                held = np.full((repetitions, len(NAMES)), np.nan)
                value, width = np.empty(repetitions), np.empty(repetitions)
                for i in range(repetitions):
                    s, rng = scores_of(shape, n, i)
                    m = cal.calibration_measures(rng.random(n) < true(s), s, labels=[False, True], random_state=i)
                    for j, one in enumerate(NAMES):
                        low, high = m.intervals[one]
                        if not np.isnan(low):
                            held[i, j] = low <= truth[one] <= high
                    value[i], width[i] = m.ici, m.intervals["ici"].high - m.intervals["ici"].low
                share = 100 * np.nanmean(held, axis=0)
                total[n].append(share)
                cells = " | ".join(f"{v:.1f}" for v in share)
                shown = f"{truth['ici']:.4f} | {value.mean():.4f} | {width.mean():.4f}"
                print(f"| {law} | {name} | {n} | {cells} | {shown} |", flush=True)
    for n, rows in total.items():
        print(f"| all | mean | {n} | " + " | ".join(f"{v:.1f}" for v in np.mean(rows, axis=0)) + " | | | |")


def bootstrap(repetitions: int) -> None:
    """The percentile bootstrap of rows, for comparison."""
    print("| map | n | " + " | ".join(NAMES[:3]) + " |\n|---|--:|--:|--:|--:|")
    at, n = grid(SCORES["flat"]), 300
    for name, true in MAPS.items():
        truth = truths(at, true(at))
        held = np.zeros((repetitions, 3))
        for i in range(repetitions):
            s, rng = scores_of(SCORES["flat"], n, i)
            y = rng.random(n) < true(s)
            drawn = np.empty((RESAMPLES, 3))
            for r in range(RESAMPLES):
                rows = rng.integers(n, size=n)
                m = cal.calibration_measures(y[rows], s[rows], labels=[False, True], level=None)
                drawn[r] = [getattr(m, one) for one in NAMES[:3]]
            low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
            wanted = np.array([truth[one] for one in NAMES[:3]])
            held[i] = (low <= wanted) & (wanted <= high)
        print(f"| {name} | {n} | " + " | ".join(f"{v:.1f}" for v in 100 * held.mean(axis=0)) + " |", flush=True)


def direction(repetitions: int) -> None:
    """Truths by the maps found: the parts that these maps and folds have in expectation; and the full parts."""
    print(
        "| scores | map | n | over: true part | mean | holds own, % | low end above truth, % | under: true part | mean "
        "| holds own, % | low end above truth, % |\n|---|---|--:|" + "--:|" * 8
    )
    fit = cal.estimators.CrossFit()
    for law, shape in SCORES.items():
        at = grid(shape)
        for name, true in MAPS.items():
            gap = true(at) - at
            full = np.array([np.maximum(-gap, 0).mean(), np.maximum(gap, 0).mean()])
            for n in (100, 300, 1000):
                values, own, above = np.empty((repetitions, 2)), np.empty((repetitions, 2)), np.empty((repetitions, 2))
                for i in range(repetitions):
                    s, rng = scores_of(shape, n, i)
                    y = rng.random(n) < true(s)
                    found = cal.significance.confidence_direction(y, s, labels=[False, True], estimator=fit)
                    problem = cal.notions.ClassSpecific(True).reduce(cal.as_predictions(y, s, labels=[False, True]))
                    # The maps of the folds at their own rows, where the true gap is known.
                    mine = np.zeros(2)
                    for fold in fit._folds(problem):
                        d = true(fold.scores) - fold.scores
                        mine += [-(d * fold.weight)[fold.delta < 0].sum(), (d * fold.weight)[fold.delta > 0].sum()]
                    for j, part in enumerate(("over", "under")):
                        low, high = found.intervals[part]
                        values[i, j] = getattr(found, part)
                        own[i, j] = low <= mine[j] / n <= high
                        above[i, j] = low > full[j]
                cells = " | ".join(
                    f"{full[j]:.4f} | {values[:, j].mean():+.4f} | {100 * own[:, j].mean():.1f} | "
                    f"{100 * above[:, j].mean():.1f}"
                    for j in range(2)
                )
                print(f"| {law} | {name} | {n} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
