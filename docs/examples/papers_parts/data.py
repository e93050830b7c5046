"""Rows that the checks compute with, and the tables that the papers print."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from evidence_parts.pages import kept

TRAINING = Path(__file__).resolve().parents[2] / "training"
THIRD = 1 / 3
#: Table 3 of the survey: thirty vectors in tenths, ten rows of each class in turn.
_TENTHS = [
    (10, 0, 0), (9, 1, 0), (8, 1, 1), (7, 1, 2), (6, 3, 1), (4, 1, 5), (10 / 3,) * 3, (10 / 3,) * 3,
    (2, 4, 4), (1, 5, 4),
    (8, 2, 0), (7, 0, 3), (5, 2, 3), (4, 4, 2), (4, 2, 4), (3, 4, 3), (2, 3, 5), (1, 6, 3), (1, 3, 6), (0, 2, 8),
    (8, 2, 0), (8, 1, 1), (8, 0, 2), (6, 0, 4), (3, 0, 7), (2, 6, 2), (2, 4, 4), (0, 4, 6), (0, 3, 7), (0, 3, 7),
]  # fmt: skip
TABLE_3 = np.array(_TENTHS) / 10
LABELS_3 = np.repeat([1, 2, 3], 10)
#: Table 1 of the survey: centre of a bin of forecasts, days, days with rain.
RAIN = [
    (0.15, 22, 4), (0.25, 31, 7), (0.35, 18, 6), (0.45, 15, 8), (0.55, 13, 8), (0.65, 15, 11), (0.75, 7, 6),
    (0.85, 1, 1), (0.95, 1, 1),
]  # fmt: skip


@cache
def binary(n: int = 400, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident scores and their outcomes."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 1.6, n)
    y = (rng.random(n) < 0.15 + 0.6 * p).astype(int)
    return y, p


@cache
def vectors(n: int = 300, k: int = 3, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from vectors that are uniform on the simplex, and these vectors sharpened."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    sharp = truth ** (1 / 0.6)
    return y, sharp / sharp.sum(axis=1, keepdims=True)


def onehot(y: np.ndarray, k: int) -> np.ndarray:
    """Rows of a unit matrix."""
    return np.eye(k)[y]


def against_cross_entropy(method: str, measure: str) -> tuple[int, int]:
    """In how many of nine settings a method was better and worse than cross-entropy."""
    return _counts(method, "XE", measure)


def beside(rival: str, measure: str) -> tuple[int, int]:
    """In how many of nine settings KDE-XE was better and worse than a rival."""
    return _counts("KDE-XE", rival, measure)


def _counts(method: str, rival: str, measure: str) -> tuple[int, int]:
    one = kept(TRAINING / "counts.csv").filter(method=method, rival=rival, measure=measure).row(0, named=True)
    return one["better"], one["worse"]


def seconds_of(method: str) -> float:
    """Median CPU seconds of a training of the wide network."""
    rows = kept(TRAINING / "settings.csv").filter(method=method, measure="CPU seconds")
    if not rows.height:
        raise ValueError(f"settings.csv has no seconds of {method}")
    return float(rows["mean"][0])
