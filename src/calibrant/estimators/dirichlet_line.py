"""`DirichletKernel` on one score: Beta kernels between samples while they are few, and between grid nodes beyond.

A node holds many samples of either outcome, and each of them must be left out of its own estimate: everything is found
for one sample of each outcome at each node, shape (2, m).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray
from .base import PowerAndSE
from .beta import AngleCounts, log_kernel
from .norm import mean_power
from .simplex_kernel import LEAST

if TYPE_CHECKING:
    from .dirichlet import DirichletKernel

#: On a grid a lone sample's share is excluded up to the grid's error: below this part of it there is no neighbour.
_LONE = 1e-3
_TILE = 1 << 19
#: Cells of θ where a bandwidth is sought.
_SEARCH_CELLS = 512
_OUTCOME = np.array([[0.0], [1.0]])


class _Around(NamedTuple):
    """Weighted means over the other samples, as :class:`.simplex_kernel.Around`, each (2, m)."""

    mean: FloatArray
    second: FloatArray
    concentration: FloatArray
    known: AnyArray
    log_sum: FloatArray


def power_and_se(estimator: DirichletKernel, problem: Problem, norm: float) -> PowerAndSE:
    """``errorᵖ`` of a problem, and its standard error for an average of terms."""
    counts = AngleCounts.of(problem).used
    size = float(counts.effective_size)
    if counts.scores.size == 0:
        return PowerAndSE.nothing()
    scores = counts.scores
    residual = _OUTCOME - scores
    values = _values(estimator, counts)
    second = values if estimator.debias == "ratio" else values**2
    near = _around(counts, values, second, estimator._width(counts, norm), estimator)
    gap = near.mean if estimator.residual else near.mean - scores
    mass = np.where(near.known, counts.mass, 0.0)
    s2 = near.concentration
    if estimator.debias is None or estimator.debias == "ratio":
        if estimator.debias == "ratio":
            m = max(size - 1, 2.0)
            gap = gap - m / (m - 1) * (near.mean * s2 - near.second)
        return PowerAndSE(float(mean_power(gap.ravel(), mass.ravel(), norm)), float("nan"))
    if norm == 1:
        terms = np.sign(gap) * residual
        return PowerAndSE.of_terms(terms, terms, mass, size)
    sure = near.known & (1 - s2 > LEAST)
    square = np.divide(near.mean**2 - near.second, 1 - s2, out=np.zeros_like(gap), where=sure)
    if not estimator.residual:
        square = square - 2 * near.mean * scores + scores**2
    influence = 2 * gap * residual - square
    terms = influence if estimator.debias == "cross" else square
    return PowerAndSE.of_terms(terms, influence, np.where(sure, counts.mass, 0.0), size)


def search(estimator: DirichletKernel, counts: AngleCounts, bandwidths: FloatArray) -> float:
    """The bandwidth of the estimator's rule, on a coarser grid where samples are many."""
    counts = counts.binned(_SEARCH_CELLS).used if counts.scores.size > _SEARCH_CELLS else counts
    values = _values(estimator, counts)
    score = []
    for h in bandwidths:
        near = _around(counts, values, values, float(h), estimator)
        if estimator.bandwidth == "cv":
            found = np.where(near.known, near.mean, 0.0 if estimator.residual else counts.scores)
            loss = (_OUTCOME - found - (counts.scores if estimator.residual else 0.0)) ** 2
            score.append(-float((counts.mass * loss).sum()))
            continue
        likelihood = float((counts.mass * np.where(counts.mass > 0, near.log_sum, 0.0)).sum())
        published = estimator.bandwidth == "loo-as-published"
        score.append(likelihood - (float(np.log(h)) * float(counts.total) if published else 0.0))
    return float(bandwidths[int(np.argmax(score))])


def _values(estimator: DirichletKernel, counts: AngleCounts) -> FloatArray:
    """What is smoothed: outcomes or residuals."""
    outcome = np.broadcast_to(_OUTCOME, counts.mass.shape)
    return np.asarray(outcome - counts.scores if estimator.residual else outcome)


def _around(
    counts: AngleCounts, values: FloatArray, second: FloatArray, h: float, estimator: DirichletKernel
) -> _Around:
    """Means around one sample of each outcome at each score, without it."""
    scores, own = counts.scores, counts.own
    m = scores.size
    # A row of relative weight w adds w² to sums of squares, one of w repeats adds w.
    heavy, own_heavy = (counts.mass, own) if counts.integral else (counts.square, own**2)
    plain = np.stack([counts.mass.sum(axis=0), (counts.mass * values).sum(axis=0)])
    squared = np.stack([heavy.sum(axis=0), (heavy * second).sum(axis=0)])
    shape = (2, m)
    mean, sums_second, concentration = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    known, log_sum = np.zeros(shape, dtype=bool), np.full(shape, -np.inf)
    for start in range(0, m, max(1, _TILE // m)):
        here = slice(start, min(start + max(1, _TILE // m), m))
        points = np.arange(m)[here]
        columns = np.arange(points.size)
        if estimator.orientation == "data":
            log_k = log_kernel(scores, scores[here], h, estimator.eps)
        else:
            log_k = np.ascontiguousarray(log_kernel(scores[here], scores, h, estimator.eps).T)
        at_own = log_k[points, columns]
        # What else lies at the sample's own score.
        left = [_rest(all_of[here], of[:, here]) for all_of, of in zip(plain, (own, own * values), strict=True)]
        left_heavy = [
            _rest(all_of[here], of[:, here])
            for all_of, of in zip(squared, (own_heavy, own_heavy * second), strict=True)
        ]
        shared = (left[0] * (counts.mass[:, here] > 0)).max(axis=0) > 0
        log_k[points, columns] = np.where(shared, at_own, -np.inf)
        largest = log_k.max(axis=0)
        alone = ~np.isfinite(largest)
        largest = np.where(alone, 0.0, largest)
        log_k[points, columns] = -np.inf
        kernel = np.exp(log_k - largest)
        home = np.where(alone, 0.0, np.exp(np.minimum(at_own - largest, 300.0)))
        total = plain[0] @ kernel + home * left[0]
        least = _LONE * own[:, here] * home if counts.on_grid else np.zeros_like(total)
        there = (total > least) & (counts.mass[:, here] > 0)
        known[:, here] = there
        floor = np.maximum(total, np.maximum(least, np.finfo(float).tiny))
        log_sum[:, here] = np.log(floor) + largest
        np.divide(plain[1] @ kernel + home * left[1], total, out=mean[:, here], where=there)
        np.square(kernel, out=kernel)
        for out, all_of, of in zip((concentration, sums_second), squared, left_heavy, strict=True):
            np.divide(all_of @ kernel + home**2 * of, total**2, out=out[:, here], where=there)
    return _Around(mean, sums_second, concentration, known, log_sum)


def _rest(whole: FloatArray, part: FloatArray) -> FloatArray:
    """``whole - part``, 0 where only rounding is left."""
    rest = whole - part
    return np.where(np.abs(rest) <= 1e-12 * np.abs(whole), 0.0, rest)
