"""Second implementations of estimators that fit a model: the definitions, by general-purpose optimisers and loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.stats import beta as beta_law

from .naive import Sample, reflected

EPS = 1e-6


def _norm(pairs: list[tuple[float, float]], norm: float) -> float:
    """Mean p-th power of (weight, gap) pairs, or their maximum."""
    if not pairs:
        return math.nan
    if math.isinf(norm):
        return max(abs(g) for _, g in pairs)
    return sum(w * abs(g) ** norm for w, g in pairs) / sum(w for w, _ in pairs)


# ---- parametric maps -------------------------------------------------------------------------------------------


def _logit(s: float) -> float:
    s = min(max(s, EPS), 1 - EPS)
    return math.log(s / (1 - s))


def _features(s: float, family: str) -> list[float]:
    x = _logit(s)
    clipped = 1 / (1 + math.exp(-x))
    last = {"logistic": [], "quadratic": [x * x], "beta": [math.log(clipped) + math.log(1 - clipped)]}
    return [1.0, x, *last[family]]


def parametric(family: str = "logistic", shrinkage="auto") -> Callable[[Sample, float], float]:
    """Twin of ``Parametric``: every sample in the likelihood, a QR basis, a trust-region optimiser."""

    def power(sample: Sample, norm: float) -> float:
        change = logit_change(sample, family, shrinkage)
        gaps = []
        for s, w, d in zip(sample.scores, sample.weights, change, strict=True):
            x = _logit(s)
            gaps.append((w, 1 / (1 + math.exp(-x - d)) - 1 / (1 + math.exp(-x))))
        return _norm(gaps, norm)

    return power


def logit_change(sample: Sample, family: str, shrinkage) -> np.ndarray:
    """Change of the logit at every sample."""
    mass = sum(sample.weights)
    share = np.array(sample.weights) / mass
    count = share * sample.size
    o = np.array(sample.outcomes, dtype=float)
    x = np.array([_logit(s) for s in sample.scores])
    raw = np.array([_features(s, family) for s in sample.scores])
    q, r = np.linalg.qr(np.sqrt(share)[:, None] * raw)
    live = np.abs(np.diag(r)) > 1e-9 * np.linalg.norm(np.sqrt(share)[:, None] * raw, axis=0)
    z = (q / np.sqrt(share)[:, None])[:, live]

    def loss(theta, precision):
        eta = x + z @ theta
        return float(count @ (np.logaddexp(0, eta) - o * eta) + precision / 2 * theta @ theta)

    def slope(theta, precision):
        eta = x + z @ theta
        return z.T @ (count * (1 / (1 + np.exp(-eta)) - o)) + precision * theta

    def curvature(theta, precision):
        g = 1 / (1 + np.exp(-x - z @ theta))
        return z.T @ (z * (count * g * (1 - g))[:, None]) + precision * np.eye(z.shape[1])

    def best(precision):
        found = minimize(
            loss,
            np.zeros(z.shape[1]),
            (precision,),
            "trust-exact",
            slope,
            curvature,
            options={"gtol": 1e-9, "maxiter": 1000},
        )
        return found.x

    if shrinkage != "auto":
        return z @ best(float(shrinkage))
    thetas, evidence = [np.zeros(z.shape[1])], [-loss(np.zeros(z.shape[1]), 0.0)]
    for sd in (0.1, 0.3, 1.0, 3.0):
        theta = best(sd**-2)
        _, log_det = np.linalg.slogdet(curvature(theta, sd**-2))
        thetas.append(theta)
        evidence.append(-loss(theta, sd**-2) - z.shape[1] * math.log(sd) - log_det / 2)
    weight = np.exp(np.array(evidence) - max(evidence))
    return z @ (weight @ np.array(thetas) / weight.sum())


# ---- cross-fitting ---------------------------------------------------------------------------------------------


def crossfit(regressor: str = "isotonic", cv: int = 5) -> Callable[[Sample, float], float]:
    """Twin of ``CrossFit`` where equal scores have equal outcomes, so that chance deals out nothing."""

    def power(sample: Sample, norm: float) -> float:
        mass = sum(sample.weights)
        rows = sorted(zip(sample.scores, sample.outcomes, sample.weights, strict=True))
        rows = [(s, o, w * sample.size / mass) for s, o, w in rows if w > 0]
        out, total = 0.0, 0.0
        for fold in range(cv):
            held = [r for i, r in enumerate(rows) if i % cv == fold]
            rest = [r for i, r in enumerate(rows) if i % cv != fold]
            if not rest:
                continue
            for s, o, w in held:
                delta = _MAPS[regressor](rest, s) - s
                out += w * (o - s) * ((delta > 0) - (delta < 0)) if norm == 1 else w * (2 * delta * (o - s) - delta**2)
                total += w
        return out / total if total else math.nan

    return power


def _isotonic_at(rows: list, at: float) -> float:
    blocks: list[list] = []  # mean, weight, first score, last score
    for s, o, w in _merged(rows):
        blocks.append([o, w, [s]])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            m, v, scores = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + m * v) / (last[1] + v)
            last[1] += v
            last[2] += scores
    points = [(s, m) for m, _, scores in blocks for s in scores]
    if at <= points[0][0]:
        return points[0][1]
    for (a, fa), (b, fb) in pairwise(points):
        if at <= b:
            return fa + (fb - fa) * (at - a) / (b - a)
    return points[-1][1]


def _merged(rows: list) -> list:
    """One row a score: mean outcome and weight."""
    out: dict[float, list[float]] = {}
    for s, o, w in rows:
        entry = out.setdefault(s, [0.0, 0.0])
        entry[0] += w * o
        entry[1] += w
    return [(s, k / w, w) for s, (k, w) in sorted(out.items())]


def _logistic_at(rows: list, at: float) -> float:
    sample = Sample([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])
    key = (tuple(sample.scores), tuple(sample.outcomes), tuple(sample.weights))
    if key not in _LINES:
        # Weights are counts already here: the effective size of what is left of them is their sum.
        scaled = _Counted(sample.scores, sample.outcomes, sample.weights)
        change = logit_change(scaled, "logistic", 1.0)
        x = [_logit(s) for s in sample.scores]
        low, high = x.index(min(x)), x.index(max(x))
        slope = (change[high] - change[low]) / (x[high] - x[low]) if x[high] > x[low] else 0.0
        _LINES[key] = (slope, change[low] - slope * x[low])
    slope, level = _LINES[key]
    return 1 / (1 + math.exp(-(_logit(at) * (1 + slope) + level)))


_LINES: dict = {}


class _Counted(Sample):
    """A sample whose weights are counts."""

    @property
    def size(self) -> float:
        return sum(self.weights)


def _histogram_at(rows: list, at: float) -> float:
    merged = _merged(rows)
    total = sum(w for _, _, w in merged)
    bins = max(1, math.floor(total ** (1 / 3) + 1e-9))
    members: dict[int, list] = {}
    so_far = 0.0
    for s, o, w in merged:
        members.setdefault(min(int((so_far + w / 2) * bins / total), bins - 1), []).append((s, o, w))
        so_far += w
    groups = [members[j] for j in sorted(members)]
    for here, after in pairwise(groups):
        if at <= (here[-1][0] + after[0][0]) / 2:
            return sum(o * w for _, o, w in here) / sum(w for _, _, w in here)
    return sum(o * w for _, o, w in groups[-1]) / sum(w for _, _, w in groups[-1])


_MAPS = {"isotonic": _isotonic_at, "logistic": _logistic_at, "histogram": _histogram_at}


# ---- Beta kernels ----------------------------------------------------------------------------------------------


def beta_kernel(bandwidth="auto", form="first") -> Callable[[Sample, float], float]:
    """Twin of ``BetaKernel``: a loop over samples and SciPy's Beta densities."""

    def power(sample: Sample, norm: float) -> float:
        s = np.array(sample.scores, dtype=float)
        o = np.array(sample.outcomes, dtype=float)
        w = np.array(sample.weights)
        s, o, w = s[w > 0], o[w > 0], w[w > 0]
        h = bandwidth
        if h == "auto":
            h = 0.17 * sample.size**-0.4
        if h == "loo":
            h = _likeliest(tuple(s), tuple(w), form)
        gaps = []
        for j, k in _log_kernels(s, h, form):
            others = w * np.exp(k - k.max())
            if others.sum() > 0:
                gaps.append((w[j], others @ o / others.sum() - s[j]))
        return _norm(gaps, norm)

    return power


@lru_cache(maxsize=64)  # the same for every norm
def _likeliest(scores: tuple[float, ...], weights: tuple[float, ...], form: str) -> float:
    """Bandwidth under which the scores are likeliest."""
    s, w = np.array(scores), np.array(weights)
    candidates = [2 ** (-k / 2) for k in range(25)]
    return candidates[int(np.argmax([_likelihood(s, w, c, form) for c in candidates]))]


def _likelihood(s: np.ndarray, w: np.ndarray, h: float, form: str) -> float:
    """Leave-one-out log-likelihood of the scores."""
    return sum(w[j] * (k.max() + math.log(w @ np.exp(k - k.max()))) for j, k in _log_kernels(s, h, form))


def _rho(x: float, b: float) -> float:
    """Chen (1999), the parameter near an end."""
    return 2 * b**2 + 2.5 - math.sqrt(4 * b**4 + 6 * b**2 + 2.25 - x**2 - x / b)


def _log_kernels(s: np.ndarray, h: float, form: str):
    """For every sample, the logarithms of the kernels of the other samples there."""
    for j in range(len(s)):
        at = min(max(s[j], EPS), 1 - EPS)
        first, second = s / h + 1, (1 - s) / h + 1
        if form == "second":
            first = [_rho(v, h) if v < 2 * h else v / h for v in s]
            second = [_rho(1 - v, h) if v > 1 - 2 * h else (1 - v) / h for v in s]
        k = beta_law.logpdf(at, first, second)
        k[j] = -np.inf
        yield j, k


# ---- kernels over the scores, by outcomes ----------------------------------------------------------------------


def left_out(*, residual: bool, kernel: str = "gaussian") -> Callable[[Sample, float], float]:
    """Twin of ``Density("loo")`` and ``ResidualKernel("loo", "score")``: predictions of each sample from the others."""

    @lru_cache(maxsize=64)  # the same for every norm
    def width(scores: tuple, outcomes: tuple, weights: tuple, domain: tuple[float, float]) -> float:
        sample = Sample(list(scores), list(outcomes), list(weights), domain)
        order = range(19) if residual else range(18, -1, -1)
        widths = [(domain[1] - domain[0]) * 2 ** (-k / 2) for k in order]
        return widths[int(np.argmax([_outcome_likelihood(sample, h, kernel, residual) for h in widths]))]

    def power(sample: Sample, norm: float) -> float:
        h = width(tuple(sample.scores), tuple(sample.outcomes), tuple(sample.weights), sample.domain)
        return kernel_power(h, residual=residual, kernel=kernel)(sample, norm)

    return power


def _outcome_likelihood(sample: Sample, h: float, kernel: str, residual: bool) -> float:
    n, mass = sample.size, sum(sample.weights)
    s = np.array(sample.scores, dtype=float)
    o = np.array(sample.outcomes, dtype=float)
    w = np.array(sample.weights) * n / mass
    value = o - s if residual else o
    out = 0.0
    of_each = np.array([reflected(s, [x], [1.0], h, kernel, sample.domain) for x in s])
    for j in range(len(s)):
        near = of_each[:, j]
        others = near @ w - near[j]
        chance = 0.5
        if others > 0.05 * near[j]:
            chance = (near @ (w * value) - near[j] * value[j]) / others + (s[j] if residual else 0.0)
        chance = min(max(chance, 1 / (n + 2)), 1 - 1 / (n + 2))
        out += w[j] * math.log(chance if o[j] else 1 - chance)
    return out


def kernel_power(h: float, *, residual: bool, kernel: str = "gaussian", debias: bool = False, nodes: int = 801):
    """Error of smoothed residuals, or of smoothed outcomes, over the scores; the residuals' noise taken off."""

    def power(sample: Sample, norm: float) -> float:
        return _smooth_power(sample, sample.scores, h, residual, kernel, debias, sample.domain, nodes, norm)

    return power


def rank_debiased(h: float, nodes: int = 2001) -> Callable[[Sample, float], float]:
    """Twin of ``ResidualKernel(h, debias=True)``."""

    def power(sample: Sample, norm: float) -> float:
        mass = sum(sample.weights)
        pairs = list(zip(sample.scores, sample.weights, strict=True))
        ranks = [sum(w * ((t < s) + (t == s) / 2) for t, w in pairs) / mass for s in sample.scores]
        return _smooth_power(sample, ranks, h, True, "gaussian", True, (0.0, 1.0), nodes, norm)

    return power


def _smooth_power(sample, position, h, residual, kernel, debias, domain, nodes, norm) -> float:
    x = np.linspace(*domain, nodes)
    units = [w * sample.size / sum(sample.weights) for w in sample.weights]
    density, total, noise = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    for at, s, o, w in zip(position, sample.scores, sample.outcomes, units, strict=True):
        k = reflected(x, [at], [1.0], h, kernel, domain)
        density += w * k
        total += w * k * (o - s if residual else o)
        noise += w * k**2 * s * (1 - s)
    there = density > 1e-12 * density.max()
    safe = np.where(there, density, 1.0)
    gap = total / safe - (0.0 if residual else x)
    size = np.sqrt(np.maximum(gap**2 - noise / safe**2, 0.0)) if debias else np.abs(gap)
    weight = np.where(there, density, 0.0)
    weight[[0, -1]] /= 2
    return float(weight @ size**norm / weight.sum())
