"""Calibrators beside each other where the truth is known: what each costs on new rows, above the truth's own score.

    python -m benchmarks.coverage.calibrator_truths [--repetitions 60]

Scores of two classes are Beta(0.8, 0.7) distributed, those of five are softmaxes of normal logits; outcomes are drawn
from a known map of them. A calibrator is fitted to n rows. Its expected log-loss and Brier score on new rows exceed
those of the truth by a mean Kullback-Leibler divergence and a mean squared difference, which are averaged over fixed
scores: no outcome is drawn for them. Probabilities count as 0.001 at least in the log-loss, for maps that say 0 and 1.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import expit, logit, softmax, xlogy
from scipy.stats import beta

from calibrant import calibrators as c

from .. import arguments

LEAST = 1e-3
TWO = {
    "calibrated": lambda s: s,
    "over-confident": lambda s: expit(0.5 * logit(s)),
    "asymmetric": lambda s: s**2,
    "wave": lambda s: expit(logit(s) + np.sin(2 * logit(s))),
    "a fall": lambda s: np.where((s > 0.4) & (s < 0.6), 0.2, s),
}
FIVE = {
    "calibrated": lambda z: z,
    "over-confident": lambda z: 0.5 * z,
    "near the top only": lambda z: _bent(z),
    "one class": lambda z: z + np.array([1.0, 0, 0, 0, 0]),
}
OF_TWO = {
    "as they are": c.Identity(),
    "TemperatureScaling": c.TemperatureScaling(),
    "PlattScaling": c.PlattScaling(),
    "BetaCalibration": c.BetaCalibration(),
    "SplineCalibrator": c.SplineCalibrator(),
    "GaussianProcessCalibrator": c.GaussianProcessCalibrator(),
    "IsotonicCalibrator": c.IsotonicCalibrator(),
    "NearIsotonic": c.NearIsotonic(),
    "NearIsotonic(10)": c.NearIsotonic(10.0),
    "HistogramBinning(15)": c.HistogramBinning(15),
    'HistogramBinning(15, "i-max")': c.HistogramBinning(15, "i-max"),
}
SHARED = c.OneVsRest(c.IsotonicCalibrator(), shared=True)
OF_FIVE = {
    "as they are": c.Identity(),
    "TemperatureScaling": c.TemperatureScaling(),
    "EnsembleTemperatureScaling": c.EnsembleTemperatureScaling(),
    "OrderPreserving": c.OrderPreserving(),
    "VectorScaling": c.VectorScaling(),
    "isotonic, one against the rest": c.OneVsRest(c.IsotonicCalibrator()),
    "isotonic, shared": SHARED,
    "composed: ensemble temperature, then shared isotonic": c.Composed([c.EnsembleTemperatureScaling(), SHARED]),
    "i-max, shared": c.OneVsRest(c.HistogramBinning(15, "i-max"), shared=True),
}
Truth = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    options = arguments.parser(__doc__, repetitions=60).parse_args()
    warnings.simplefilter("ignore")
    at = beta.ppf((np.arange(4000) + 0.5) / 4000, 0.8, 0.7).clip(1e-9, 1 - 1e-9)
    for n in (100, 1000):
        cases = {
            name: [(at, _two(true(at)), *_drawn_two(true, n, i)) for i in range(options.repetitions)]
            for name, true in TWO.items()
        }
        _table(f"Two classes, n = {n}", cases, OF_TWO)
    z = np.random.default_rng(0).normal(0, 2, (4000, 5))
    for n in (100, 1000):
        cases = {
            name: [
                (softmax(z, axis=1), softmax(true(z), axis=1), *_drawn_five(true, n, i))
                for i in range(options.repetitions)
            ]
            for name, true in FIVE.items()
        }
        _table(f"Five classes, n = {n}", cases, OF_FIVE)


def _bent(z: np.ndarray) -> np.ndarray:
    """Classes within 1.5 of the first are far less different than they seem; what lies further is as it seems."""
    behind = z.max(axis=1, keepdims=True) - z
    return -np.where(behind < 1.5, 0.3 * behind, behind - 1.05)


def _two(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p])


def _drawn_two(true: Truth, n: int, i: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([i, n])
    s = rng.beta(0.8, 0.7, n).clip(1e-9, 1 - 1e-9)
    y = (rng.random(n) < true(s)).astype(int)
    return s, y


def _drawn_five(true: Truth, n: int, i: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([i, n, 5])
    z = rng.normal(0, 2, (n, 5))
    y = (rng.random((n, 1)) > softmax(true(z), axis=1).cumsum(axis=1)).sum(axis=1).clip(0, 4)
    return softmax(z, axis=1), y


def _table(title: str, cases: Mapping[str, list], calibrators: Mapping[str, c.Calibrator]) -> None:
    """Thousandths of log-loss / of Brier score above the truth's, each with its standard error."""
    print(f"\n## {title}\n\n| calibrator | {' | '.join(cases)} |\n|---|{'---:|' * len(cases)}")
    for name, one in calibrators.items():
        cells = []
        for samples in cases.values():
            costs = np.array([_costs(one, *sample) for sample in samples]) * 1000
            error = costs.std(axis=0, ddof=1) / np.sqrt(len(costs))
            cells.append(" / ".join(f"{m:.2f} ± {e:.2f}" for m, e in zip(costs.mean(axis=0), error, strict=True)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _costs(one: c.Calibrator, at: np.ndarray, truth: np.ndarray, s: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """What log-loss and Brier score (over all classes) of new rows exceed those of the truth by."""
    p = one.set_params(labels=list(range(truth.shape[1]))).fit(s, y).predict_proba(at)
    q = np.maximum(p, LEAST)
    divergence = (xlogy(truth, truth) - xlogy(truth, q / q.sum(axis=1, keepdims=True))).sum(axis=1).mean()
    return float(divergence), float(((p - truth) ** 2).sum(axis=1).mean())


if __name__ == "__main__":
    main()
