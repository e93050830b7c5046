"""How long do errors and curves take compared with those of other libraries?

    pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
    pip install -r benchmarks/requirements.txt
    OMP_NUM_THREADS=1 python -m benchmarks.speed.estimation [--repetitions 15] [--only TEXT]

Calls run in one thread, in turns, on the same arrays. ECE has 15 bins. Answers agree to 1e-12, in float32
(torchmetrics) to 1e-6, and to 1e-4 in quantile bins, whose edges can differ by one rank. scikit-learn has no ECE, so
largest gaps are compared. Smooth errors and bands (95 %, 1,000 draws) have other definitions elsewhere. numpy is two
lines by hand. It and relplot check no rows, nor do we where rows were *checked* before. relplot's loop over classes is
ours and does not compete.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable
from functools import lru_cache

import numpy as np

import calibrant as cal

from . import peers, race
from .race import Peer, Work


def binary(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of a somewhat over-confident model, none on a bin edge."""
    rng = np.random.default_rng(n)
    p = rng.beta(0.7, 0.9, size=n)
    return (rng.random(n) < p + 0.1 * np.sin(2 * np.pi * p) * p * (1 - p) * 4).astype(np.int64), p


def multiclass(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Probability vectors, and labels that are drawn from a flattened version of them."""
    rng = np.random.default_rng(k)
    logits = 2.5 * rng.standard_normal((n, k))
    stated = np.exp(logits - logits.max(axis=1, keepdims=True))
    true = stated**0.8
    stated /= stated.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(true / true.sum(axis=1, keepdims=True), axis=1)
    y = np.minimum((rng.random(n)[:, None] > cumulative).sum(axis=1), k - 1)
    return y.astype(np.int64), stated


@lru_cache(maxsize=1)
def checked(n: int) -> cal.Predictions:
    """Rows that were checked before."""
    return cal.as_predictions(*binary(n))


def binned(strategy: str = "uniform", notion: str = "auto") -> Callable[..., float]:
    """A binned error of ours."""
    estimator = cal.Binned(peers.BINS, strategy)
    return lambda y, p: cal.calibration_error(y, p, notion=notion, estimator=estimator)


def density(y: np.ndarray, p: np.ndarray) -> float:
    return cal.calibration_error(y, p, estimator=cal.estimators.Density())


def band(y: np.ndarray, p: np.ndarray) -> cal.results.ReliabilityCurve:
    """Our curve with its band."""
    return cal.reliability_curve(y, p, level=0.95, n_resamples=1000, random_state=0)


def curves(ours: cal.results.ReliabilityCurve, theirs: tuple[np.ndarray, np.ndarray]) -> float:
    """The largest distance of two curves on (0.05, 0.95)."""
    at, rate = theirs
    inner = (at > 0.05) & (at < 0.95)
    return float(np.nanmax(np.abs(ours.at(at[inner]).observed - rate[inner])))


def uniform(n: int, quick: bool = True) -> Work:
    return Work(lambda: binary(n), binned(), peers.UNIFORM, quick=quick)


def of_checked(n: int) -> Work:
    ours, some = cal.Binned(peers.BINS), {name: peers.UNIFORM[name] for name in ("numpy", "relplot")}
    return Work(lambda: binary(n), lambda *_: cal.calibration_error(checked(n), estimator=ours), some)


def of_classes(notion: str, others: dict[str, Peer], wanted: float) -> Work:
    return Work(lambda: multiclass(100_000, 100), binned(notion=notion), others, wanted, quick=False)


def with_band(n: int, wanted: float) -> Work:
    def mean(curve: cal.results.ReliabilityCurve) -> float:
        return float(np.nanmean(curve.observed))

    return Work(lambda: binary(n), band, peers.BAND, wanted, curves, mean, quick=False)


WORKS = {
    "ECE, 10³ rows": uniform(1000),
    "ECE, 10⁵ rows": uniform(100_000),
    "ECE, 10⁶ rows": uniform(1_000_000),
    "ECE, 10⁷ rows": uniform(10_000_000, quick=False),
    "ECE, 10³ rows, checked": of_checked(1000),
    "ECE, 10⁵ rows, checked": of_checked(100_000),
    "ECE, 10⁶ rows, checked": of_checked(1_000_000),
    "ECE, quantile bins, 10⁶ rows": Work(lambda: binary(1_000_000), binned("quantile"), peers.QUANTILE, 0.6),
    "confidence ECE, 10⁵ × 100": of_classes("confidence", peers.CONFIDENCE, 1.0),
    "class-wise ECE, 10⁵ × 100": of_classes("classwise", peers.CLASSWISE, 0.2),
    "smooth ECE, 10⁶ rows": Work(lambda: binary(1_000_000), density, peers.DENSITY),
    "curve with band, 10⁴ rows": with_band(10_000, 0.5),
    "curve with band, 10⁵ rows": with_band(100_000, 0.05),
}
#: Peers whose call takes seconds.
SLOW = {
    ("ECE, 10⁷ rows", "uncertainty-calibration"),
    ("class-wise ECE, 10⁵ × 100", "uncertainty-calibration"),
    ("curve with band, 10⁵ rows", "relplot"),
}


def portion(work: str, peer: str) -> float:
    return 0.2 if (work, peer) in SLOW else 0.6 if WORKS[work].quick else 0.33


def sample(work: str, peer: str, seed: int) -> dict[str, float]:
    return race.turn(WORKS[work], peer, seed)


EXPERIMENT = race.experiment(__spec__.name, WORKS, sample, portion=portion)

if __name__ == "__main__":
    EXPERIMENT.main()
