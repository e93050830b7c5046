"""Edges of bins that keep the most information about the outcome."""

from __future__ import annotations

import numpy as np

from ..data.types import FloatArray, IntArray
from ..sums import Edges
from .monotone import cells, points

#: Distinct scores between which edges are sought; more are gathered in so many cells of equal weight.
MOST_POINTS = 1024
_EPS = 1e-12


def informative_edges(values: FloatArray, weights: FloatArray, n_bins: int) -> Edges:
    """At most ``n_bins`` bins of probabilities with the largest mutual information between bin and outcome.

    Outcomes happen with the probabilities themselves, as in I-Max: edges need no labels. The optimum is exact, by
    dynamic programming over distinct scores, where the published alternation may stop at a local one. An edge lies
    where its two bins' means are equally far by Kullback-Leibler divergence, that alternation's own formula.
    """
    score, weight, _ = points(values, np.zeros_like(values), weights)
    first = cells(weight, MOST_POINTS)
    w, v = (np.add.reduceat(x, first) for x in (weight, weight * score))
    starts = _partition(w, v, min(n_bins, len(first)))
    mean = np.clip(np.add.reduceat(v, starts) / np.add.reduceat(w, starts), _EPS, 1 - _EPS)
    # The scores on either side of each edge.
    left, right = score[first[starts[1:]] - 1], score[first[starts[1:]]]
    up, down = np.diff(np.log(mean)), -np.diff(np.log1p(-mean))
    edge = down / np.maximum(up + down, _EPS)
    edge = np.where((edge > left) & (edge < right), edge, (left + right) / 2)
    return Edges(np.concatenate([[0.0], edge, [1.0]]), exact=True)


def _partition(weight: FloatArray, happens: FloatArray, n_bins: int) -> IntArray:
    """First points of the bins of least entropy of the outcome given the bin, times the weight."""
    from scipy.special import xlogy

    m = len(weight)
    w, v = (np.concatenate([[0.0], np.cumsum(x)]) for x in (weight, happens))
    w = np.maximum(w - w[:, None], 0.0)
    v = np.clip(v - v[:, None], 0.0, w)
    # Of the bin from point i up to point j.
    cost = xlogy(w, w) - xlogy(v, v) - xlogy(w - v, w - v)
    cost[np.tril_indices(m + 1)] = np.inf
    best, before = cost[0], []
    for _ in range(n_bins - 1):
        through = best[:, None] + cost
        before.append(through.argmin(axis=0))
        best = through.min(axis=0)
    out, end = [0], m
    for last in reversed(before):
        end = int(last[end])
        out.insert(1, end)
    return np.array(out)
