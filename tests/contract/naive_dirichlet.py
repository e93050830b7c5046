"""`DirichletKernel` a second time: SciPy's Dirichlet densities, one sample after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.stats import dirichlet as dirichlet_law

from .naive import Sample

EPS = 1e-6


def dirichlet(bandwidth="auto", orientation="data", debias=None, residual=False) -> Callable[[Sample, float], float]:
    """``errorᵖ`` from the definition."""

    def power(sample: Sample, norm: float) -> float:
        vector = not np.isscalar(sample.scores[0])
        f = np.array(sample.scores, dtype=float)
        if not vector:
            f = np.column_stack([1 - f, f])
        y = np.eye(f.shape[1])[np.array(sample.outcomes, dtype=int)]
        w = np.array(sample.weights, dtype=float)
        f, y, w = f[w > 0], y[w > 0], w[w > 0]
        n, k = f.shape
        h = bandwidth
        if h == "auto":
            h = (0.4 if norm == 2 and debias in ("square", "cross") else 1.5) * sample.size ** (-2 / (k + 3))
        terms, weights = [], []
        points = [tuple(row) for row in f.tolist()]
        for j in range(n):
            logs = np.array([_log_density(points[i], points[j], h, orientation) for i in range(n)])
            logs[j] = -math.inf
            if n == 1:
                continue
            a = w * np.exp(logs - logs.max())
            a = a / a.sum()
            s2 = a @ a
            row = []
            for c in [int(y[j].argmax())] if sample.drawn else range(k) if vector else [1]:
                values = y[:, c] - f[:, c] if residual else y[:, c]
                mean, r = a @ values, y[j, c] - f[j, c]
                gap = mean if residual else mean - f[j, c]
                if debias == "ratio":
                    m = sample.size - 1
                    gap -= m / (m - 1) * (mean * s2 - a**2 @ values)
                square = (mean**2 - a**2 @ values**2) / (1 - s2) if 1 - s2 > 1e-6 else 0.0
                if not residual:
                    square += f[j, c] ** 2 - 2 * mean * f[j, c]
                if debias == "square":
                    row.append(square)
                elif debias == "cross":
                    row.append(np.sign(gap) * r if norm == 1 else 2 * gap * r - square)
                else:
                    row.append(abs(gap))
            if debias in ("square", "cross") and norm == 2 and 1 - s2 <= 1e-6:
                continue
            terms.append(row)
            weights.append(w[j])
        if not terms:
            return math.nan
        terms, weights = np.array(terms), np.array(weights)
        if debias in ("square", "cross"):
            return float(weights @ terms.sum(axis=1) / weights.sum())
        if math.isinf(norm):
            return float(terms.max())
        return float(weights @ (terms**norm).sum(axis=1) / weights.sum())

    return power


@lru_cache(maxsize=1 << 15)  # repeated rows and other norms ask for the same pairs
def _log_density(data: tuple[float, ...], at: tuple[float, ...], h: float, orientation: str) -> float:
    """Log of the kernel of one sample at another, up to what cancels."""
    centre, point = map(np.array, (data, at) if orientation == "data" else (at, data))
    point = np.maximum(point, EPS)
    if len(point) == 2:
        point = np.clip(point, EPS, 1 - EPS)
    free = dirichlet_law.logpdf(point / point.sum(), centre / h + 1)
    # SciPy wants a point on the simplex; a clipped one is a little beside it.
    return float(free + (centre / h) @ (np.log(point) - np.log(point / point.sum())))
