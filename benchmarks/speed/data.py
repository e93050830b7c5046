"""Arrays that all libraries are given: float64 scores and int64 labels."""

from __future__ import annotations

import numpy as np


def binary(n: int) -> tuple[np.ndarray, np.ndarray]:
    """``n`` scores with the labels of a somewhat over-confident model, none on a bin edge."""
    rng = np.random.default_rng(n)
    p = rng.beta(0.7, 0.9, size=n)
    return (rng.random(n) < p + 0.1 * np.sin(2 * np.pi * p) * p * (1 - p) * 4).astype(np.int64), p


def multiclass(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """``n`` probability vectors of ``k`` classes, labels drawn from a flattened version of them."""
    rng = np.random.default_rng(k)
    logits = 2.5 * rng.standard_normal((n, k))
    stated = np.exp(logits - logits.max(axis=1, keepdims=True))
    true = stated**0.8
    stated /= stated.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(true / true.sum(axis=1, keepdims=True), axis=1)
    y = np.minimum((rng.random(n)[:, None] > cumulative).sum(axis=1), k - 1)
    return y.astype(np.int64), stated
