"""Second implementations of the estimators that read the order of scores, and of smECE: plain loops."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from .naive import Sample, _quantile_edges, _shares


def _power(error: float, norm: float) -> float:
    return error if math.isinf(norm) else error**norm


def _aggregate(gaps: list[tuple[float, float]], norm: float) -> float:
    """``Σ w |gap|^p / Σ w``, or the largest gap, of (weight, gap) pairs."""
    if math.isinf(norm):
        return max(abs(g) for _, g in gaps)
    return sum(w * abs(g) ** norm for w, g in gaps) / sum(w for w, _ in gaps)


def smooth(h=None, nodes=801) -> Callable[[Sample, float], float]:
    """Twin of ``Smooth``: direct sums of the mirrored Gaussian on [0, 1], and the bandwidth by Brent's method."""
    t = np.linspace(0, 1, nodes)
    quadrature = np.full(nodes, 1 / (nodes - 1))
    quadrature[[0, -1]] /= 2

    def kernel(s: float, width: float) -> np.ndarray:
        out = np.zeros(nodes)
        for m in range(-3, 4):
            for image in (s, -s):
                out += np.exp(-(((t - image - 2 * m) / width) ** 2) / 2)
        return out / (width * math.sqrt(2 * math.pi))

    def smoothed(sample: Sample, width: float) -> tuple[np.ndarray, np.ndarray]:
        mass = sum(sample.weights)
        density, residual = np.zeros(nodes), np.zeros(nodes)
        for s, o, w in zip(sample.scores, sample.outcomes, sample.weights, strict=True):
            k = kernel(s, width) * (w / mass)
            density += k
            residual += k * (o - s)
        return density, residual

    def power(sample: Sample, norm: float) -> float:
        width = h
        if width is None:
            width = brentq(lambda x: quadrature @ np.abs(smoothed(sample, x)[1]) - x, 0.01, 1.0, xtol=1e-9)
        density, residual = smoothed(sample, width)
        there = density > 1e-12 * density.max()
        gap = np.where(there, residual / np.where(there, density, 1), 0)
        return float(quadrature @ (np.where(there, density, 0) * np.abs(gap) ** norm))

    return power


def sweep(strategy="quantile") -> Callable[[Sample, float], float]:
    """Twin of ``Sweep``: one number of bins after the other, each sample put into its bin."""

    def bins(sample: Sample, b: int) -> list[list[tuple[float, float, float]]]:
        edges = _quantile_edges(sample, b) if strategy == "quantile" else [j / b for j in range(b + 1)]
        rows = defaultdict(list)
        for s, o, w in zip(sample.scores, sample.outcomes, sample.weights, strict=True):
            if w > 0:
                (j,) = _shares(s, edges, "hard")
                rows[j].append((w, s, o))
        return [rows[j] for j in sorted(rows)]

    def power(sample: Sample, norm: float) -> float:
        best = bins(sample, 1)
        for b in range(2, sum(w > 0 for w in sample.weights) + 1):
            tried = bins(sample, b)
            means = [sum(w * o for w, _, o in members) / sum(w for w, _, _ in members) for members in tried]
            if any(means[j] < means[j - 1] - 1e-9 for j in range(1, len(means))):
                break
            best = tried
        gaps = []
        for members in best:
            mass = sum(w for w, _, _ in members)
            gaps.append((mass, sum(w * (o - s) for w, s, o in members) / mass))
        return _aggregate(gaps, norm)

    return power


def isotonic() -> Callable[[Sample, float], float]:
    """Twin of ``Isotonic``: pool adjacent violators, score by score."""

    def power(sample: Sample, norm: float) -> float:
        blocks: list[list] = []  # weight, positives, [(weight, score), …]
        for s in sorted({s for s, w in zip(sample.scores, sample.weights, strict=True) if w > 0}):
            rows = [
                (w, o)
                for t, o, w in zip(sample.scores, sample.outcomes, sample.weights, strict=True)
                if t == s and w > 0
            ]
            mass = sum(w for w, _ in rows)
            blocks.append([mass, sum(w * o for w, o in rows), [(mass, s)]])
            while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] >= blocks[-1][1] / blocks[-1][0]:
                mass, positives, members = blocks.pop()
                blocks[-1][0] += mass
                blocks[-1][1] += positives
                blocks[-1][2] += members
        return _aggregate([(w, p / mass - s) for mass, p, members in blocks for w, s in members], norm)

    return power


def cumulative(statistic="ks") -> Callable[[Sample, float], float]:
    """Twin of ``Cumulative``: the sum over all scores up to t, for every t."""

    def power(sample: Sample, norm: float) -> float:
        path = [0.0]
        for t in set(sample.scores):
            rows = zip(sample.scores, sample.outcomes, sample.weights, strict=True)
            path.append(sum(w * (o - s) for s, o, w in rows if s <= t) / sum(sample.weights))
        error = max(abs(c) for c in path) if statistic == "ks" else max(path) - min(path)
        return _power(error, norm)

    return power
