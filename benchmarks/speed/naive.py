"""Slow, obvious twins of our own estimators, for the rows where no peer computes the same quantity."""

from __future__ import annotations

import numpy as np


def _kernel(at: np.ndarray, scores: np.ndarray, h: float) -> np.ndarray:
    """Gaussian kernel of every sample at every point, with mirror images beyond both ends of [0, 1]."""
    total = np.zeros((at.size, scores.size))
    for shift in range(-4, 5, 2):
        for image in (scores + shift, shift - scores):
            total += np.exp(-0.5 * ((at[:, None] - image[None, :]) / h) ** 2)
    return total


def silverman(p: np.ndarray) -> float:
    low, high = np.percentile(p, [25, 75])
    return float(min(p.std(ddof=1), (high - low) / 1.34898) * (0.75 * p.size) ** -0.2)


def density_ece(y: np.ndarray, p: np.ndarray) -> float:
    """``∫ f(s) |rel(s) - s| ds`` by a kernel matrix and the trapezoid rule."""
    grid = np.linspace(0, 1, 2001)
    k = _kernel(grid, p, silverman(p))
    f, hits = k.sum(axis=1), k @ y
    weights = np.ones(grid.size)
    weights[[0, -1]] = 0.5
    return float((weights * np.abs(hits - grid * f)).sum() / (weights * f).sum())


def curve_band(
    y: np.ndarray, p: np.ndarray, at: np.ndarray, level: float, n_resamples: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Curve and percentile band by resampling rows, the kernel matrix evaluated at ``at`` only."""
    rng = np.random.default_rng(0)
    k = _kernel(at, p, silverman(p))
    counts = rng.multinomial(p.size, np.full(p.size, 1 / p.size), size=n_resamples).astype(np.float64)
    draws = (counts * y) @ k.T / (counts @ k.T)
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return (k @ y) / k.sum(axis=1), lower, upper
