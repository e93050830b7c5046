"""Rows whose outcomes hang together in groups, calibrated for rows drawn at random, and tests of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal

#: Group, score and outcome of each row.
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def forecasts(rng: np.random.Generator, events: int) -> Rows:
    """Sixty forecasts of each event while it nears: a martingale that ends in the outcome."""
    path = rng.normal(size=(events, 61)).cumsum(axis=1)
    left = np.arange(60, 0, -1)
    scores = norm.cdf(path[:, :-1] / np.sqrt(left))
    return np.repeat(np.arange(events), 60), scores.ravel(), np.repeat(path[:, -1] > 0, 60)


def clusters(rng: np.random.Generator, sizes: np.ndarray, tau: float, same: bool = False) -> Rows:
    """What the model does not see moves the latent score of a whole group by a normal variable with sd tau."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    seen = rng.normal(size=len(sizes))[group] if same else rng.normal(size=len(group))
    unseen = tau * rng.normal(size=len(sizes))
    outcome = seen + unseen[group] + rng.normal(size=len(group)) > 0
    return group, norm.cdf(seen / np.sqrt(1 + tau**2)), outcome


def independent(rng: np.random.Generator, n: int, size: int) -> Rows:
    scores = rng.random(n)
    return np.arange(n) // size, scores, rng.random(n) < scores


CASES: dict[str, Callable[[np.random.Generator], Rows]] = {
    "40 events × 60": lambda rng: forecasts(rng, 40),
    "15 events × 60": lambda rng: forecasts(rng, 15),
    "60 clusters × 10": lambda rng: clusters(rng, np.full(60, 10), 1.0),
    "20 hospitals × 50": lambda rng: clusters(rng, np.full(20, 50), 0.5),
    "21 hospitals, 1 big": lambda rng: clusters(rng, np.array([1000] + [50] * 20), 0.5),
    "100 prompts × 8": lambda rng: clusters(rng, np.full(100, 8), 1.0, same=True),
    "500 single rows": lambda rng: independent(rng, 500, 1),
    "500 rows in tens": lambda rng: independent(rng, 500, 10),
    "300 rows in fives": lambda rng: independent(rng, 300, 5),
}
FEW = {"n_resamples": 199}
TESTS: dict[str, Callable[[Any], Any]] = {
    "calibration_test": lambda p: cal.calibration_test(p, **FEW),
    "Binned(10)": lambda p: cal.calibration_test(p, estimator=cal.Binned(10), **FEW),
    "Brier": lambda p: cal.calibration_test(p, estimator="brier", **FEW),
    "adaptive": lambda p: cal.significance.adaptive_test(p, **FEW),
    "cumulative": lambda p: cal.significance.cumulative_test(p, **FEW),
    "Hosmer–Lemeshow": lambda p: cal.significance.hosmer_lemeshow_test(p, df="external", **FEW),
    "Pearson": lambda p: cal.significance.pearson_test(p, **FEW),
    "Spiegelhalter": lambda p: cal.significance.spiegelhalter_test(p, **FEW),
    "Cox": lambda p: cal.significance.cox_test(p, **FEW),
}


def distorted(scores: np.ndarray, scale: float, shift: float) -> np.ndarray:
    return expit(scale * logit(scores.clip(1e-9, 1 - 1e-9)) + shift)


@cache
def many(rows: str) -> np.ndarray:
    """Calibrated scores of 400 samples."""
    rng = np.random.default_rng(0)
    return np.concatenate([CASES[rows](rng)[1] for _ in range(400)])


@cache
def truth(rows: str, scale: float, shift: float) -> float:
    """Mean distance of distorted from calibrated scores."""
    return float(np.abs(distorted(many(rows), scale, shift) - many(rows)).mean())
