"""Second implementations: plain loops over samples, written from the definitions and sharing no code with the first.

Whole-number weights are spelled out as repeats, so a twin that agrees also proves that they equal repeats.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq


@dataclass
class Sample:
    """Scores (numbers, or vectors for the canonical notion), outcomes (0/1, or classes), weights and the domain."""

    scores: list
    outcomes: list
    weights: list
    domain: tuple[float, float] = (0.0, 1.0)
    share: float = 1.0
    whole: bool = True
    drawn: bool = False  # of vectors only the class that came counts

    @classmethod
    def of(cls, scores, outcomes, weights, domain=(0.0, 1.0), share=1.0, whole=None):
        weights = [1.0] * len(scores) if weights is None else [float(w) for w in weights]
        whole = all(w == math.floor(w) for w in weights) if whole is None else whole
        if whole:
            rows = [(s, o) for s, o, w in zip(scores, outcomes, weights, strict=True) for _ in range(int(w))]
            scores, outcomes, weights = [r[0] for r in rows], [r[1] for r in rows], [1.0] * len(rows)
        return cls(list(scores), list(outcomes), weights, domain, share, whole)

    @property
    def size(self) -> float:
        return sum(self.weights) ** 2 / sum(w * w for w in self.weights)


def samples(notion: str, y: list[int], P: list[list[float]], weights: list[float] | None) -> list[Sample]:
    """Reduce labels and probability rows to the samples that a notion looks at."""
    k = len(P[0])
    w = [1.0] * len(y) if weights is None else list(weights)
    whole = all(v == math.floor(v) for v in w)
    if notion == "canonical":
        return [Sample.of(P, y, w)]
    if notion == "drawn-class":
        return [replace(Sample.of(P, y, w), drawn=True)]
    if notion == "class-specific":
        return [Sample.of([p[1] for p in P], [int(v == 1) for v in y], w)]
    if notion == "classwise":
        return [Sample.of([p[c] for p in P], [int(v == c) for v in y], w, share=1 / k) for c in range(k)]
    top = [p.index(max(p)) for p in P]
    right = [int(t == v) for t, v in zip(top, y, strict=True)]
    if notion == "confidence":
        return [Sample.of([max(p) for p in P], right, w, (1 / k, 1.0))]
    out = []
    for c in range(k):
        rows = [i for i, t in enumerate(top) if t == c]
        mass = sum(w[i] for i in rows)
        if mass > 0:
            scores, outcomes = [max(P[i]) for i in rows], [right[i] for i in rows]
            out.append(Sample.of(scores, outcomes, [w[i] for i in rows], (1 / k, 1.0), mass / sum(w), whole))
    return out


def total(powers: list[float], shares: list[float], norm: float) -> float:
    """One error from several p-th powers."""
    known = [(p, s) for p, s in zip(powers, shares, strict=True) if not math.isnan(p)]
    if math.isinf(norm):
        return max(p for p, _ in known)
    mean = sum(p * s for p, s in known) / sum(s for _, s in known)
    return mean if norm == 1 else max(mean, 0.0) ** (1 / norm)


# ---- bins ------------------------------------------------------------------------------------------------------


def _quantile_edges(sample: Sample, n_bins: int, published: bool = False) -> list[float]:
    rows = sorted((s, w) for s, w in zip(sample.scores, sample.weights, strict=True) if w > 0)
    cuts = []
    if sample.whole:
        n = len(rows)
        for j in range(1, n_bins):
            left = j * (n // n_bins) if published else j * n // n_bins
            if left:
                below, above = rows[left - 1][0], rows[left][0]
                cuts.append((below + above) / 2 if below < above else below)
    else:
        mass = sum(w for _, w in rows)
        for j in range(1, n_bins):
            so_far, i = 0.0, 0
            while so_far + rows[i][1] < j * mass / n_bins - 1e-9:
                so_far += rows[i][1]
                i += 1
            cuts.append(rows[i][0])
    low, high = sample.domain
    distinct = sorted({s for s, _ in rows})
    if len(distinct) > 1:  # a tie at either end is cut off from the others
        ends = {distinct[0]: (distinct[0] + distinct[1]) / 2, distinct[-1]: (distinct[-2] + distinct[-1]) / 2}
        cuts = [ends.get(c, c) for c in cuts]
    return [low, *sorted({c for c in cuts if low < c < high}), high]


def _shares(score: float, edges: list[float], mapping: str) -> dict[int, float]:
    """Shares of a sample, by bin."""
    last = len(edges) - 2
    if mapping == "hard":
        for j in range(last + 1):
            if score <= edges[j + 1] + 1e-12:
                return {j: 1.0}
        return {last: 1.0}
    centres = [(a + b) / 2 for a, b in pairwise(edges)]
    if score <= centres[0]:
        return {0: 1.0}
    if score >= centres[-1]:
        return {last: 1.0}
    j = max(i for i, c in enumerate(centres) if c <= score)
    far = (score - centres[j]) / (centres[j + 1] - centres[j])
    return {j: 1 - far, j + 1: far} if mapping == "linear" else {j: far, j + 1: 1 - far}


def binned(n_bins, strategy="uniform", mapping="hard", debias=False, span="unit") -> Callable[[Sample, float], float]:
    """Twin of ``Binned``."""

    def power(sample: Sample, norm: float) -> float:
        if isinstance(n_bins, tuple):
            edges = list(n_bins)
        else:
            b = n_bins
            if b == "sqrt":
                b = max(1, math.floor(math.sqrt(sample.size) + 1e-9))
            elif b == "cbrt":
                b = max(1, math.floor(sample.size ** (1 / 3) + 1e-9))
            low, high = sample.domain if span == "domain" else (0.0, 1.0)
            uniform = [low + (high - low) * j / b for j in range(b + 1)]
            edges = uniform if strategy == "uniform" else _quantile_edges(sample, b, "published" in strategy)
        rows = defaultdict(list)
        for s, o, w in zip(sample.scores, sample.outcomes, sample.weights, strict=True):
            for j, share in _shares(s, edges, mapping).items():
                if w * share > 0:
                    rows[j].append((w * share, s, o))
        parts = []
        for members in rows.values():
            mass = sum(a for a, _, _ in members)
            mean_score = sum(a * s for a, s, _ in members) / mass
            mean_outcome = sum(a * o for a, _, o in members) / mass
            n = mass**2 / sum(a * a for a, _, _ in members)
            gap = abs(mean_outcome - mean_score)
            if debias:
                if n < 2 - 1e-9:
                    if debias == "kumar":
                        parts.append((mass, 0.0))
                    if debias == "ferro-fricker":
                        parts.append((mass, gap**2))
                    continue
                variance = mean_outcome * (1 - mean_outcome) / (n - 1)
                parts.append((mass, gap**2 - variance if norm == 2 else 2 * gap - _folded(gap, variance)))
            else:
                parts.append((mass, gap if math.isinf(norm) else gap**norm))
        if not parts:
            return math.nan
        if math.isinf(norm):
            return max(v for _, v in parts)
        return sum(m * v for m, v in parts) / sum(m for m, _ in parts)

    return power


def _folded(mean: float, variance: float) -> float:
    """Mean of |N(mean, variance)|."""
    if variance <= 0:
        return mean
    sd = math.sqrt(variance)
    return sd * math.sqrt(2 / math.pi) * math.exp(-(mean**2) / (2 * variance)) + mean * math.erf(
        mean / math.sqrt(2 * variance)
    )


# ---- densities -------------------------------------------------------------------------------------------------

_PROFILES = {
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "triweight": lambda u: np.where(np.abs(u) < 3, (1 - u * u / 9) * (1 - u * u / 9) * (1 - u * u / 9), 0.0),
    "epanechnikov": lambda u: np.where(np.abs(u) < math.sqrt(5), 1 - u**2 / 5, 0.0),
    "cosine": lambda u: np.where(
        np.abs(u) < math.pi / math.sqrt(math.pi**2 - 8), np.cos(u * math.sqrt(math.pi**2 - 8) / 2), 0.0
    ),
}


def reflected(nodes: np.ndarray, scores: list, weights: list, h: float, kernel: str, domain=(0.0, 1.0)) -> np.ndarray:
    """Direct sum of a kernel over every sample and its mirror images at both ends (not normalised)."""
    low, high = domain
    length = high - low
    out = np.zeros(len(nodes))
    for s, w in zip(scores, weights, strict=True):
        for m in range(-1, 2):
            out += w * _PROFILES[kernel]((nodes - (s + 2 * m * length)) / h)
            out += w * _PROFILES[kernel]((nodes - (2 * low - s + 2 * m * length)) / h)
    return out


def _bandwidth(rule, sample: Sample) -> float:
    if not isinstance(rule, str):
        return float(rule)
    n = sample.size
    mass = sum(sample.weights)
    mean = sum(w * s for s, w in zip(sample.scores, sample.weights, strict=True)) / mass
    spread = sum(w * (s - mean) ** 2 for s, w in zip(sample.scores, sample.weights, strict=True)) / mass
    sd = math.sqrt(spread * n / (n - 1))
    if rule == "scott":
        return sd * n**-0.2
    if rule == "isj":
        return _isj(sample)
    if rule == "folded":
        low, high = sample.domain
        middle = (low + high) / 2
        folded = [abs(s - middle) for s in sample.scores]
        mean = sum(w * s for s, w in zip(folded, sample.weights, strict=True)) / mass
        spread = sum(w * (s - mean) ** 2 for s, w in zip(folded, sample.weights, strict=True)) / mass
        return min(sd, 2 * math.sqrt(spread * n / (n - 1))) * n**-0.2
    rows = sorted((s, w * n / mass) for s, w in zip(sample.scores, sample.weights, strict=True) if w > 0)

    def order(i: float) -> float:
        so_far = 0.0
        for s, w in rows:
            so_far += w
            if so_far >= i + 0.5:
                return s
        return rows[-1][0]

    def quantile(q: float) -> float:
        at = (n - 1) * q
        i = math.floor(at)
        return order(i) + (at - i) * (order(min(i + 1, n - 1)) - order(i))

    return min(sd, (quantile(0.75) - quantile(0.25)) / 1.34898) * (3 * n / 4) ** -0.2


def _isj(sample: Sample) -> float:
    """Botev's algorithm on the cosine coefficients of the sample itself, without a grid."""
    low, high = sample.domain
    n, mass = sample.size, sum(sample.weights)
    x = (np.asarray(sample.scores) - low) / (high - low)
    k = np.arange(1, 2000)
    a2 = np.array([(np.asarray(sample.weights) @ np.cos(math.pi * j * x) / mass) ** 2 for j in k])

    def functional(stage: int, t: float) -> float:
        return 2 * math.pi ** (2 * stage) * float(np.sum(k ** (2.0 * stage) * a2 * np.exp(-(k**2) * math.pi**2 * t)))

    def excess(t: float) -> float:
        f = functional(7, t)
        for s in range(6, 1, -1):
            double_factorial = math.prod(range(1, 2 * s, 2))
            constant = (1 + 0.5 ** (s + 0.5)) / 3
            f = functional(s, (2 * constant * double_factorial / (n * math.sqrt(2 * math.pi) * f)) ** (2 / (3 + 2 * s)))
        return t - (2 * n * math.sqrt(math.pi) * f) ** -0.4

    lowest, t = (1 / 4096) ** 2, 0.1  # from above, since ties make further roots near 0
    while t > lowest:
        if excess(t / 1.3) <= 0 < excess(t):
            return math.sqrt(brentq(excess, t / 1.3, t)) * (high - low)
        t /= 1.3
    return _bandwidth("silverman", sample)  # no solution, with a warning


def density(rule, kernel="gaussian", nodes=801) -> Callable[[Sample, float], float]:
    """Twin of ``Density``: the definition, ``∫ f |π f₁ / f - s|^p ds``, by direct sums and the trapezoid rule."""

    def power(sample: Sample, norm: float) -> float:
        h = _bandwidth(rule, sample)
        x = np.linspace(*sample.domain, nodes)
        f = reflected(x, sample.scores, sample.weights, h, kernel, sample.domain)
        positive = [w * o for o, w in zip(sample.outcomes, sample.weights, strict=True)]
        f1 = reflected(x, sample.scores, positive, h, kernel, sample.domain)
        there = f > 1e-12 * f.max()
        rel = np.where(there, f1 / np.where(there, f, 1), 0)
        integrand = np.where(there, f * np.abs(rel - x) ** norm, 0)
        weight = np.ones(nodes)
        weight[0] = weight[-1] = 0.5
        return float(integrand @ weight / (f @ weight))

    return power


def residual(rule, kernel="gaussian", nodes=801) -> Callable[[Sample, float], float]:
    """Twin of ``ResidualKernel(space="score")``: one kernel over ``o - s``, by direct sums."""

    def power(sample: Sample, norm: float) -> float:
        return _smoothed_residuals(sample, sample.scores, _bandwidth(rule, sample), kernel, sample.domain, norm, nodes)

    return power


def rank_residual(h=None, kernel="gaussian", nodes=2001) -> Callable[[Sample, float], float]:
    """Twin of ``ResidualKernel()``: the same over mean ranks."""

    def power(sample: Sample, norm: float) -> float:
        mass = sum(sample.weights)
        rank = {}
        so_far = 0.0
        for s in sorted(set(sample.scores)):
            here = sum(w for t, w in zip(sample.scores, sample.weights, strict=True) if t == s)
            rank[s] = (so_far + here / 2) / mass
            so_far += here
        width = 0.5 * 0.9 * 0.289 * sample.size**-0.2 if h is None else h
        ranks = [rank[s] for s in sample.scores]
        return _smoothed_residuals(sample, ranks, width, kernel, (0.0, 1.0), norm, nodes)

    return power


def adaptive(nodes=801) -> Callable[[Sample, float], float]:
    """Twin of ``AdaptiveKernel()``: every sample with the narrowest of eight kernels under which enough speak."""

    def power(sample: Sample, norm: float) -> float:
        low, high = sample.domain
        mass = sum(sample.weights)
        step = (high - low) / 256
        narrowest = min(max(_bandwidth("folded", sample), step / 2), 0.1 * (high - low))
        widths = np.geomspace(narrowest, 0.1 * (high - low), 8)
        wanted = min(60.0, sample.size / 6)
        weights = [w * sample.size / mass for w in sample.weights]
        at = np.asarray(sample.scores)
        speak = [reflected(at, sample.scores, weights, h, "gaussian", sample.domain) for h in widths]
        x = np.linspace(low, high, nodes)
        f, d = np.zeros(nodes), np.zeros(nodes)
        for i, (s, o, w) in enumerate(zip(sample.scores, sample.outcomes, weights, strict=True)):
            enough = [h for h, here in zip(widths, speak, strict=True) if here[i] >= wanted]
            h = min(enough, default=widths[-1])
            kernel = reflected(x, [s], [1 / h], h, "gaussian", sample.domain)
            f += w * kernel
            d += w * (o - s) * kernel
        there = f > 1e-12 * f.max()
        weight = np.where(there, f, 0.0)
        weight[[0, -1]] /= 2
        return float(weight @ np.abs(np.where(there, d / np.where(there, f, 1), 0)) ** norm / weight.sum())

    return power


def _smoothed_residuals(sample, position, h, kernel, domain, norm, nodes) -> float:
    x = np.linspace(*domain, nodes)
    f = reflected(x, position, sample.weights, h, kernel, domain)
    rows = zip(sample.outcomes, sample.scores, sample.weights, strict=True)
    d = reflected(x, position, [w * (o - s) for o, s, w in rows], h, kernel, domain)
    there = f > 1e-12 * f.max()
    weight = np.where(there, f, 0.0)
    weight[[0, -1]] /= 2
    return float(weight @ np.abs(np.where(there, d / np.where(there, f, 1), 0)) ** norm / weight.sum())


# ---- the simplex -----------------------------------------------------------------------------------------------


def _part(p: float, m: int, k: int) -> float:
    """Part of [0, 1] that a probability lies in; on an edge the one nearer to 1/K, or the edge if it is there."""
    x = m * p
    edge = round(x)
    if abs(x - edge) > 1e-12:
        return math.floor(x)
    if edge in (0, m):
        return min(edge, m - 1)
    if edge * k == m:
        return edge - 0.5
    return edge if edge * k < m else edge - 1


def simplex(cuts, center="cell") -> Callable[[Sample, float], float]:
    """Twin of ``SimplexBinned``: the part of each probability, one row at a time."""

    def power(sample: Sample, norm: float) -> float:
        k = len(sample.scores[0])
        m = cuts
        if cuts in ("sqrt", "cbrt"):
            whole = math.floor(sample.size ** (1 / 2 if cuts == "sqrt" else 1 / 3) + 1e-9)
            m = max(1, round(max(1, whole) ** (1 / (k - 1))))
        cells = defaultdict(list)
        for p, o, w in zip(sample.scores, sample.outcomes, sample.weights, strict=True):
            cells[tuple(_part(v, m, k) for v in p)].append((p, o, w))
        mass, out, worst = 0.0, 0.0, 0.0
        for members in cells.values():
            n = sum(w for _, _, w in members)
            if n == 0:
                continue
            seen = [sum(w * (o == c) for _, o, w in members) / n for c in range(k)]
            mean = [sum(w * p[c] for p, _, w in members) / n for c in range(k)]
            mass += n
            for p, o, w in members:
                other = p if center == "row" else mean
                classes = [o] if sample.drawn else range(k)
                gaps = [abs(seen[c] - other[c]) for c in classes] if w else [0.0]
                worst = max(worst, *gaps)
                out += 0 if math.isinf(norm) else w * sum(g**norm for g in gaps)
        return worst if math.isinf(norm) else out / mass

    return power
