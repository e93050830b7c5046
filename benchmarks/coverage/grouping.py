"""The lower bound of the grouping loss by `scores.grouping_loss`, where the posterior is known.

    python -m benchmarks.coverage.grouping [--repetitions 100] [--sizes 500 2000]

Scores know one part of the posterior's log odds, features know all of it, through five columns, three of them noise or
what scores know already. Truths are means over 300,000 rows. Three further columns say what the part by a calibrator
does: the share of 95 % intervals of `decompose(..., calibrator=...)` that cover the true calibration loss.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

import calibrant as cal
from calibrant.datasets import survey_distorted, survey_posterior, true_map

from .. import arguments

NODES, SHARES = np.polynomial.hermite_e.hermegauss(60)
SHARES = SHARES / SHARES.sum()


@dataclass
class Rows:
    """Features, stated probabilities, frequencies given those, and posterior; two columns of two classes."""

    features: np.ndarray
    stated: np.ndarray
    given: np.ndarray
    posterior: np.ndarray


def two(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p])


def wavy(rng: np.random.Generator, n: int) -> Rows:
    """Nothing is left to group by; calibration is far from any logistic map."""
    x = rng.normal(size=(n, 5))
    s = expit(x[:, 0])
    q = two(true_map(s, "wavy"))
    return Rows(x, two(s), q, q)


def survey(rng: np.random.Generator, n: int) -> Rows:
    """Nothing is left to group by, of three classes whose scores no temperature repairs."""
    x = np.where(rng.random((n, 1)) < 0.5, 64, -4) + 33 * rng.normal(size=(n, 1))
    q = survey_posterior(x[:, 0], 3)
    return Rows(x, survey_distorted(q), q, q)


def shift(size: float, rng: np.random.Generator, n: int) -> Rows:
    """A feature that scores lack moves the log odds."""
    x = rng.normal(size=(n, 5))
    given = expit(x[:, 0][:, None] + size * NODES) @ SHARES
    return Rows(x, two(expit(1.5 * x[:, 0])), two(given), two(expit(x[:, 0] + size * x[:, 1])))


def strong(rng: np.random.Generator, n: int) -> Rows:
    """By one standard deviation."""
    return shift(1.0, rng, n)


def weak(rng: np.random.Generator, n: int) -> Rows:
    """By 0.3."""
    return shift(0.3, rng, n)


def product(rng: np.random.Generator, n: int) -> Rows:
    """Two features matter by the sign of their product alone, which no tree sees at its first cut."""
    x = rng.normal(size=(n, 5))
    own = x[:, 0]
    q = expit(own + np.sign(x[:, 1] * x[:, 2]))
    return Rows(x, two(expit(own)), two((expit(own + 1) + expit(own - 1)) / 2), two(q))


def classes(rng: np.random.Generator, n: int) -> Rows:
    """Three classes, one of them moved by a feature that scores lack."""
    z, moved = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    lift = np.array([1.0, 0.0, 0.0])
    given = sum(w * softmax(z + h * lift, axis=1) for h, w in zip(NODES, SHARES, strict=True))
    return Rows(np.column_stack([z, moved]), softmax(1.5 * z, axis=1), given, softmax(z + moved * lift, axis=1))


CASES = {"none, wavy": wavy, "none, 3 classes": survey, "strong": strong, "weak": weak, "product": product}
CASES["strong, 3 classes"] = classes
CALIBRATOR = {"none, 3 classes": "vector", "strong, 3 classes": "temperature"}


def divergence(p: np.ndarray, q: np.ndarray, score: str) -> float:
    """Mean divergence of p from q."""
    if score == "brier":
        return float(((p - q) ** 2).sum(axis=1).mean())
    return float((q * np.log(np.where(q > 0, q / np.maximum(p, 1e-300), 1.0))).sum(axis=1).mean())


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000], help="rows of a sample")
    options = parser.parse_args()
    print("| case | score | n | truth | bound | of the truth | sd | se | limit above truth | limit above 0 |", end="")
    print(" calibrator | true loss | estimate | held |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|")
    large = {name: made(np.random.default_rng(0), 300_000) for name, made in CASES.items()}
    for n in options.sizes:
        for name, made in CASES.items():
            of = large[name]
            for score in ("brier", "log-loss"):
                true = divergence(of.given, of.posterior, score), divergence(of.stated, of.given, score)
                print(row(name, made, score, n, true, options.repetitions), flush=True)


def row(name: str, made: object, score: str, n: int, true: tuple[float, float], repetitions: int) -> str:
    """One line of the table."""
    truth, off = true
    calibrator = CALIBRATOR.get(name, "beta")
    found = np.empty((repetitions, 6))
    for r in range(repetitions):
        rng = np.random.default_rng([r, n])
        sample = made(rng, n)  # type: ignore[operator]
        k = sample.posterior.shape[1]
        y = (rng.random((n, 1)) > sample.posterior.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
        about = {"score": score, "labels": list(range(k)), "calibrator": calibrator}
        d = cal.decompose(y, sample.stated, **about)
        bound = cal.scores.grouping_loss(y, sample.stated, sample.features, **about)
        half = (bound.interval.high - bound.value) / 1.96
        low, high = d.intervals["calibration"]
        found[r] = bound.value, half, bound.lower > truth, bound.lower > 0, d.calibration, low <= off <= high
    mean, sd = found.mean(axis=0), found.std(axis=0, ddof=1)
    se = sd / np.sqrt(repetitions)
    share = [f"{100 * mean[i]:.0f} ± {100 * np.sqrt(mean[i] * (1 - mean[i]) / repetitions):.1f} %" for i in (2, 3, 5)]
    of = f"{100 * mean[0] / truth:.0f} %" if truth > 0 else ""
    return (
        f"| {name} | {score} | {n} | {truth:.4f} | {mean[0]:+.4f} ± {se[0]:.4f} | {of} | {sd[0]:.4f} | {mean[1]:.4f} "
        f"| {share[0]} | {share[1]} | {calibrator} | {off:.4f} | {mean[4]:.4f} ± {se[4]:.4f} | {share[2]} |"
    )


if __name__ == "__main__":
    main()
