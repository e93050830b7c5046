"""Folds that depend on the sample alone: not on the order of its rows, nor on whether repeats are rows or weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import AnyArray, FloatArray, IntArray
from ..problem import Problem


@dataclass(frozen=True, eq=False)
class Parts:
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


def split(problem: Problem, n_folds: int, seed: int) -> Parts:
    """Deal a problem's samples out to folds.

    In ascending order of score, sample i (of repeats, where weights count them) goes to fold i modulo ``n_folds``.
    Samples on one score take their places in random order, so that which of them a fold gets says nothing about the
    others. With repeats that is a draw without replacement of how many positives a fold gets.
    """
    s, o, w = _sorted_rows(problem)
    start = np.flatnonzero(np.diff(s, prepend=np.nan) != 0) if s.size else np.empty(0, dtype=np.intp)
    scores = s[start]
    rng = np.random.default_rng(seed)
    if not problem.integral:
        group = np.cumsum(np.diff(s, prepend=np.nan) != 0) - 1
        dealt = np.lexsort((rng.random(s.size), group))
        fold = np.empty(s.size, dtype=np.intp)
        fold[dealt] = np.arange(s.size) % n_folds
        w = w * (w.sum() / (w @ w)) if w.size else w  # in units of the effective sample size
        slot = fold * scores.size + group
        size = n_folds * scores.size
        sums = [np.asarray(np.bincount(slot, v, minlength=size), dtype=np.float64) for v in (w, w * o)]
        return Parts(scores, sums[0].reshape(n_folds, -1), sums[1].reshape(n_folds, -1), False)
    count = np.add.reduceat(w, start) if s.size else w
    ones = np.add.reduceat(w * o, start) if s.size else w
    end = np.cumsum(count)
    first = np.arange(n_folds)[:, None]
    # Places i = fold (mod F) among [end - count, end).
    weight: FloatArray = np.floor((end + (n_folds - 1 - first)) / n_folds) - np.floor(
        (end - count + (n_folds - 1 - first)) / n_folds
    )
    if not np.all((o == 0) | (o == 1)):  # probabilities in place of outcomes: every fold gets its expected part
        return Parts(scores, weight, weight * (ones / count), True)
    good, bad = ones.astype(np.int64), (count - ones).astype(np.int64)
    several = np.flatnonzero((good > 0) & (bad > 0))
    positive: FloatArray = np.where(ones > 0, weight, 0.0)
    places = weight[:, several].astype(np.int64)
    positive[:, several] = dealt_to_folds(good[several], bad[several], places, rng)
    return Parts(scores, weight, positive, True)


def dealt_to_folds(good: IntArray, bad: IntArray, places: IntArray, rng: np.random.Generator) -> IntArray:
    """How many of each score's positives every fold draws, (F, m): without replacement, for ``places`` samples."""
    out = np.empty_like(places)
    for f, wanted in enumerate(places[:-1]):
        out[f] = rng.hypergeometric(good, bad, wanted)
        good, bad = good - out[f], bad - (wanted - out[f])
    out[-1:] = good  # the last fold gets the rest
    return out


def _sorted_rows(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores, outcomes and weights of the rows with weight, in an order that theirs does not change."""
    s = problem.scores.astype(np.float64)
    o = problem.outcomes.astype(np.float64)
    w = np.ones(s.size) if problem.weights is None else problem.weights.astype(np.float64)
    if problem.weights is not None:
        used = w > 0
        s, o, w = s[used], o[used], w[used]
    order = np.lexsort((o, s)) if problem.integral else np.lexsort((w, o, s))
    return s[order], o[order], w[order]
