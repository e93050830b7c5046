"""`EmpiricalBayes` a second time: rows instead of a grid, SciPy's general optimiser instead of Newton's method."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from .naive import Sample

# amplitude, decay, probability: of a class, and of a confidence
PRIOR = [(0.08, 1.0, 0.02), (0.35, 0.4, 0.33), (0.65, 1.0, 0.35), (1.2, 1.5, 0.22)]
PRIOR += [(2.5, 1.5, 0.06), (8.0, 1.5, 0.02)]
OF_CONFIDENCES = [(0.08, 1.0, 0.03), (0.3, 0.5, 0.29), (0.65, 1.0, 0.32), (0.65, 2.5, 0.08)]
OF_CONFIDENCES += [(1.2, 1.5, 0.20), (2.5, 1.5, 0.06), (8.0, 1.5, 0.02)]


def empirical_bayes(sample: Sample, norm: float) -> float:
    """``errorᵖ`` from the model's definition."""
    n = sample.size
    terms = max(min(math.ceil(2 * n ** (1 / 3)), 32), math.ceil(2 * n**0.25) + 2)
    m = 4 * terms
    scale = n / sum(sample.weights)
    rows = sorted(zip(sample.scores, sample.outcomes, sample.weights, strict=True))
    # Rank of a score: the weight below it, and half of the weight at it.
    cells: dict[int, list[tuple[float, float, float, float]]] = {}
    for s, o, w in rows:
        below = sum(v for t, _, v in rows if t < s)
        equal = sum(v for t, _, v in rows if t == s)
        u = (below + equal / 2) * scale / n
        cells.setdefault(min(int(u * m), m - 1), []).append((w * scale, s, o, u))
    c = np.array([sum(r[0] for r in rows) for rows in cells.values()])
    s, o, u = (np.array([sum(r[0] * r[i] for r in rows) for rows in cells.values()]) / c for i in (1, 2, 3))
    soft = 0.5 / (n + 2)
    p = soft + (1 - 2 * soft) * s
    logit = np.log(p / (1 - p))
    centred = logit - np.average(logit, weights=c)
    spread = math.sqrt(np.average(centred**2, weights=c))
    z = centred / spread if spread > 1e-9 else 0 * centred
    low, high = sample.domain
    ends = [np.array([sum(r[0] for r in rows if r[1] == e) for rows in cells.values()]) / c for e in (low, high)]
    columns = [np.cos(math.pi * k * u) for k in range(terms)] + [z, *ends]
    X = np.stack(columns, axis=1)
    logs, values = [], []
    intercept, steep = (0.3, 0.4) if low > 0 else (0.25, 0.3)
    for tau, decay, weight in OF_CONFIDENCES if low > 0 else PRIOR:
        smooth = [intercept] + [(1 + k) ** -decay for k in range(1, terms)] + [steep]
        sd = np.array([tau * size for size in smooth] + [4.0, 4.0])
        precision = 1 / sd**2

        def loss(theta: np.ndarray, precision: np.ndarray = precision) -> float:
            eta = logit + X @ theta
            return float(-(c * (o * eta - np.logaddexp(0, eta))).sum() + 0.5 * (precision * theta**2).sum())

        def slope(theta: np.ndarray, precision: np.ndarray = precision) -> np.ndarray:
            q = 1 / (1 + np.exp(-(logit + X @ theta)))
            return -X.T @ (c * (o - q)) + precision * theta

        found = minimize(loss, np.zeros(len(sd)), jac=slope, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
        eta = logit + X @ found.x
        q = 1 / (1 + np.exp(-eta))
        hessian = (X.T * (c * q * (1 - q))) @ X + np.diag(precision)
        _, determinant = np.linalg.slogdet(hessian)
        logs.append(math.log(weight) - found.fun + 0.5 * (np.log(precision).sum() - determinant))
        variance = np.einsum("jk,kl,jl->j", X, np.linalg.inv(hessian), X)
        values.append(_moment(q - p, q * (1 - q) * np.sqrt(variance), c / c.sum(), norm))
    posterior = np.exp(np.array(logs) - max(logs))
    return float(posterior @ np.array(values) / posterior.sum())


def _moment(mean: np.ndarray, sd: np.ndarray, share: np.ndarray, norm: float) -> float:
    """Absolute moments of normal gaps, by summing over a fine grid; the largest mean size for the maximum."""
    z = np.linspace(-9, 9, 8001)
    law = np.exp(-(z**2) / 2)
    law /= law.sum()
    power = 1.0 if math.isinf(norm) else norm
    sizes = [float(law @ np.abs(a + b * z) ** power) for a, b in zip(mean, sd, strict=True)]
    return max(sizes) if math.isinf(norm) else float(share @ np.array(sizes))
