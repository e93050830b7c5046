"""Folds that depend on the sample alone: not on the order of its rows, nor on whether repeats are rows or weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from ..data.weights import ones_or
from . import DistinctScores, Runs


@dataclass(frozen=True, eq=False)
class FoldParts:
    """Weights and positives of each distinct score, fold by fold.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Distinct scores, ascending.
    weight, positive : ndarray of shape (F, m)
        ``Σ w`` and ``Σ w o`` of the samples of each fold on each score, in units of the effective sample size.
    whole : bool
        Whether weights count repeats.
    """

    scores: FloatArray
    weight: FloatArray
    positive: FloatArray
    whole: bool

    def without(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """Weights and positives of all folds but one."""
        others = np.arange(self.weight.shape[0]) != fold
        return self.weight[others].sum(axis=0), self.positive[others].sum(axis=0)

    def known(self) -> AnyArray:
        """Folds whose complement is not empty, shape (F,)."""
        mass = self.weight.sum(axis=1)
        return np.asarray([np.delete(mass, f).sum() > 0 for f in range(mass.size)])


def split(problem: Problem, n_folds: int, seed: int) -> FoldParts:
    """Deal a problem's samples out to folds.

    In ascending order of score, sample i (of repeats, where weights count them) goes to fold i modulo ``n_folds``.
    Samples on one score take their places in random order, so that which of them a fold gets says nothing about the
    others. With repeats that is a draw without replacement of how many positives a fold gets.
    """
    if problem.integral:
        runs = problem.sums(DistinctScores())
        whole = (problem.outcomes == 0) | (problem.outcomes == 1)
        if whole.all():
            return FoldParts(runs.scores, *dealt(runs, n_folds, seed), True)
        # Probabilities in place of outcomes: every fold gets its expected part.
        weight = _places(runs, n_folds)
        return FoldParts(runs.scores, weight, weight * runs.mean, True)
    s, o, w = _sorted_rows(problem)
    new = np.diff(s, prepend=np.nan) != 0
    run = np.cumsum(new) - 1
    order = np.lexsort((np.random.default_rng(seed).random(s.size), run))
    fold = np.empty(s.size, dtype=np.intp)
    fold[order] = np.arange(s.size) % n_folds
    w = w * (w.sum() / (w @ w)) if w.size else w  # in units of the effective sample size
    scores = s[new]
    slot = fold * scores.size + run
    sums = [np.bincount(slot, v, minlength=n_folds * scores.size).astype(np.float64) for v in (w, w * o)]
    return FoldParts(scores, sums[0].reshape(n_folds, -1), sums[1].reshape(n_folds, -1), False)


def _places(runs: Runs, n_folds: int) -> FloatArray:
    """How many samples on each distinct score every fold gets, (F, m)."""
    end = np.concatenate([np.cumsum(w) for w in np.split(runs.weight, runs.bounds[1:-1])])
    last = n_folds - 1 - np.arange(n_folds)[:, None]
    # Places i = fold (mod F) among [end - weight, end).
    return np.asarray(np.floor((end + last) / n_folds) - np.floor((end - runs.weight + last) / n_folds))


def dealt(runs: Runs, n_folds: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Rows and positives of every distinct score that each fold gets, (F, m) each: :func:`split` for many problems."""
    weight = _places(runs, n_folds)
    positive = np.where(runs.outcome > 0, weight, 0.0)
    mixed = np.flatnonzero((runs.outcome > 0) & (runs.outcome < runs.weight))
    good, bad = (v[mixed].astype(np.int64) for v in (runs.outcome, runs.weight - runs.outcome))
    ends = np.searchsorted(runs.row[mixed], np.arange(len(runs) + 1))
    for a, b in pairwise(ends.tolist()):
        if a < b:  # each problem's draws are those of its own seed, whatever its neighbours are
            places = weight[:, mixed[a:b]].astype(np.int64)
            positive[:, mixed[a:b]] = dealt_to_folds(good[a:b], bad[a:b], places, np.random.default_rng(seed))
    return weight, positive


def dealt_to_folds(good: IntArray, bad: IntArray, places: IntArray, rng: np.random.Generator) -> IntArray:
    """How many of each score's positives every fold draws, (F, m): without replacement, for ``places`` samples."""
    out = np.empty_like(places)
    for f, wanted in enumerate(places[:-1]):
        out[f] = _without_replacement(good, bad, wanted, rng)
        good, bad = good - out[f], bad - (wanted - out[f])
    out[-1:] = good  # the last fold gets the rest
    return out


def _without_replacement(good: IntArray, bad: IntArray, wanted: IntArray, rng: np.random.Generator) -> IntArray:
    """How many of ``wanted`` draws are good, for counts of any size: NumPy's generator ends at 10⁹.

    Of more, each of the rarer kind is among the drawn with chance ``wanted / all`` nearly independently (a relative
    error of variance below ``rarer / all``), and where even the rarer are many the normal distribution serves.
    """
    total = good + bad
    many = total >= 10**9
    if not many.any():
        return rng.hypergeometric(good, bad, wanted)
    out = np.empty_like(good)
    out[~many] = rng.hypergeometric(good[~many], bad[~many], wanted[~many])
    g, b, k = good[many], bad[many], wanted[many]
    n = (g + b).astype(np.float64)
    rare, chance = np.minimum(g, b), k / n
    scale = np.sqrt(rare * chance * (1 - chance) * (1 - rare / n))
    near = np.rint(rare * chance + scale * rng.standard_normal(rare.size)).astype(np.int64)
    drawn = np.where(rare < 10**6, rng.binomial(rare, chance), near)
    out[many] = np.clip(np.where(g <= b, drawn, k - drawn), np.maximum(0, k - b), np.minimum(g, k))
    return out


def _sorted_rows(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores, outcomes and weights of the rows with weight, in an order that theirs does not change."""
    p = problem.ordered
    w = ones_or(p.weights, p.n_samples)
    order = np.lexsort((w, p.outcomes, p.scores))
    return p.scores[order], p.outcomes[order], w[order]
