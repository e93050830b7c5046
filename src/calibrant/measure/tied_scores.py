"""`TiedScores`: samples in order of their scores, with equal or neighbouring scores pooled, for step curves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray
from ..sums import BinMoments

#: With more distinct scores than this, bands are computed from runs of neighbours: an isotonic fit pools far more.
MOST = 20_000
#: Number of runs then used, and number of scores at either end that are not merged: fits are steep there.
FEW, OUTER = 2048, 64


@dataclass(frozen=True, eq=False)
class TiedScores:
    """Sums over runs of tied or neighbouring scores, ascending.

    Attributes
    ----------
    low, high, score : ndarray of shape (m,)
        Lowest, highest and mean score of each run.
    count, positive : ndarray of shape (m,)
        Samples and positives, in units of the effective sample size.
    trials : ndarray of shape (m,)
        Whole numbers: draws with the variance of the run's outcomes are binomial with this many trials, times
        ``count / trials``.
    """

    low: FloatArray
    high: FloatArray
    score: FloatArray
    count: FloatArray
    positive: FloatArray
    trials: FloatArray

    @classmethod
    def of(cls, problem: Problem, most: int | None = MOST) -> TiedScores:
        """Runs of equal scores, or of neighbouring scores if there are more than ``most``; cost O(n log n)."""
        scores, outcomes, weights = problem.scores, problem.outcomes, problem.weights
        if weights is not None and not weights.all():
            used = weights > 0
            scores, outcomes, weights = scores[used], outcomes[used], weights[used]
        order = np.argsort(scores)  # the order of equal scores does not matter: they are summed
        s, o = scores[order].astype(np.float64), outcomes[order].astype(np.float64)
        start = np.flatnonzero(np.concatenate([[s.size > 0], s[1:] != s[:-1]]))
        if not start.size:
            nothing = np.empty(0)
            return cls(nothing, nothing, nothing, nothing, nothing, nothing)
        at = s[start]
        if weights is None:
            count = np.diff(start, append=s.size).astype(np.float64)
            positive = o if start.size == s.size else np.add.reduceat(o, start)
            scale = problem.effective_size / s.size
            return cls(at, at, at, count * scale, positive * scale, count * scale)._in_trials(most)
        w = weights[order].astype(np.float64)
        weight = np.add.reduceat(w, start)
        # Whole-number weights are repeats, each of them a trial; of others, what a mean's variance says.
        trials = weight**2 / problem.variances(np.add.reduceat(w * w, start), weight)
        scale = problem.effective_size / float(weight.sum())
        positive = np.add.reduceat(w * o, start) * scale
        return cls(at, at, at, weight * scale, positive, trials)._in_trials(most)

    @classmethod
    def of_moments(cls, fine: BinMoments, most: int | None = MOST) -> TiedScores:
        """Runs from the hard bins of a fine histogram, if rows were not kept."""
        used = np.flatnonzero(fine.weight > 0)
        weight, total = fine.weight[used], float(fine.weight.sum())
        size = total if fine.integral else total**2 / float(fine.square.sum())
        scale = size / total if total > 0 else 0.0
        edges = fine.edges.values
        found = cls(
            edges[used],
            edges[used + 1],
            fine.score[used] / weight,
            weight * scale,
            fine.outcome[used] * scale,
            fine.effective_size[used],
        )
        return found._in_trials(most)

    def _in_trials(self, most: int | None) -> TiedScores:
        """These runs with whole numbers of trials, merged if there are more than ``most``."""
        found = self if self.fewer else replace(self, trials=np.maximum(np.round(self.trials), 1.0))
        return found if most is None else found.merged(most)

    @property
    def size(self) -> int:
        """Number of runs m."""
        return self.score.size

    @property
    def fewer(self) -> bool:
        """Whether rows are so strongly correlated that there are fewer trials than runs of scores."""
        return bool(self.trials.sum() < self.size * (1 - 1e-9))

    def merged(self, most: int) -> TiedScores:
        """These runs if there are at most ``most``; otherwise about :data:`FEW` runs of neighbours with equal counts.

        The number of runs never exceeds that of trials: a run has at least one.
        """
        outer = OUTER
        if self.fewer:
            most, outer = min(most, max(int(self.trials.sum()), 1)), 0
        if self.size <= most:
            return self
        few = min(FEW, most)
        running = np.cumsum(self.count)
        part = np.minimum((running - self.count / 2) * (few / running[-1]), few - 1).astype(np.intp)
        begins = np.concatenate([[True], part[1:] != part[:-1]])
        begins[:outer] = begins[self.size - outer :] = True
        start = np.flatnonzero(begins)
        count = np.add.reduceat(self.count, start)
        return TiedScores(
            self.low[start],
            self.high[np.append(start[1:], self.size) - 1],
            np.add.reduceat(self.score * self.count, start) / count,
            count,
            np.add.reduceat(self.positive, start),
            np.add.reduceat(self.trials, start),
        )

    def drawn(self, chance: FloatArray, n_draws: int, rng: np.random.Generator) -> AnyArray:
        """Draws of positives for given outcome probabilities, (n_draws, m), in the units of ``count``."""
        trials = np.maximum(np.round(self.trials), 1.0)
        if (trials == 1).all():
            # Single rows: comparing is an order of magnitude faster than a binomial distribution.
            hits = (rng.random((n_draws, self.size)) < chance).astype(np.float64)
        else:
            hits = rng.binomial(trials.astype(np.int64), np.clip(chance, 0, 1), size=(n_draws, self.size)).astype(
                np.float64
            )
        unit = self.count / trials
        return hits if (unit == 1).all() else hits * unit
