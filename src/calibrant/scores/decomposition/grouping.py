"""The grouping loss that features show: what they tell of rows that a model told the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibrators import Calibrator
from ...calibrators.crossval import FLOOR, fit_quietly
from ...calibrators.inputs import CalibrationSample
from ...data.types import AnyArray, FloatArray, IntArray
from ...measure.scoring_rules import ScoringRule
from .level_sets import level_sets
from .regions import Regions

#: Of the boosting: steps at most, how long a step is, steps without gain, and what regions are shrunk by, in rows.
STEPS, LENGTH, PATIENCE, SHRINKAGE = 100, 0.2, 10, 1.0
#: One of so many rows says when to stop.
STOPPING = 5


@dataclass(frozen=True, eq=False)
class Grouping:
    """What the gain of features is read from: a sample, regions, a calibrator of its scores, and folds."""

    rule: ScoringRule
    sample: CalibrationSample
    weights: FloatArray  # in rows
    stated: FloatArray
    calibrator: Calibrator
    regions: Regions

    def gains(self, folds: list[tuple[AnyArray, AnyArray]], rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Loss of each row by what its level set tells less that by what features tell, (n,), by fits without it.

        Also the variance of that if what the level set tells were the truth: a rare label that features deny costs
        much, and a sample without it looks surer than it is.
        """
        out, variance = np.empty((2, len(self.weights)))
        cells = level_sets(self.stated[:, 1:] if self.stated.shape[1] == 2 else self.stated)
        for train, test in folds:
            fitted = fit_quietly(self.calibrator, self.sample.part(train))
            recalibrated = np.maximum(fitted._probabilities_of(self.sample.scores), FLOOR)
            recalibrated /= recalibrated.sum(axis=1, keepdims=True)
            found = self._boosted(recalibrated, train, rng)
            # Means over a level set need no labels, so all rows make them; those of the fold alone are judged.
            levelled = _levelled(found, recalibrated, cells, self.weights)[test]
            found = found[test]
            codes = self.sample.codes[test]
            gain = self.rule.table(levelled) - self.rule.table(found)
            out[test] = gain[np.arange(len(test)), codes]
            variance[test] = (levelled * (gain - (levelled * gain).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        return out, variance

    def _boosted(self, start: FloatArray, train: AnyArray, rng: np.random.Generator) -> FloatArray:
        """Probabilities that go by the features, (n, K): the start, multiplied region by region.

        Every step has regions of the residuals, and multiplies the probability of each class by a power of the number
        of times it was seen there over that expected. It ends where rows set aside gain no more.
        """
        codes, k = self.sample.codes, start.shape[1]
        last = start[:, 1] if k == 2 else start.max(axis=1)
        regions = self.regions.beside(np.log(last) - np.log1p(-np.minimum(last, 1 - FLOOR)))
        shuffled = rng.permutation(train)
        stop, rows = shuffled[: len(train) // STOPPING], np.sort(shuffled[len(train) // STOPPING :])
        if not stop.size:
            stop = rows
        weights, seen = self.weights[rows], codes[rows]
        now = best = start
        least, since = self._mean(now, stop), 0
        for _ in range(STEPS):
            residual = -now[rows]
            residual[np.arange(len(rows)), seen] += 1
            region = regions.of(residual[:, 1] if k == 2 else residual, weights, rows, rng)
            expected = _sums(region[rows], int(region.max()) + 1, weights[:, None] * now[rows])
            counted = np.bincount(region[rows] * k + seen, weights=weights, minlength=expected.size)
            step = ((counted.reshape(expected.shape) + SHRINKAGE) / (expected + SHRINKAGE)) ** LENGTH
            now = now * step[region]
            now /= now.sum(axis=1, keepdims=True)
            reached = self._mean(now, stop)
            best, least, since = (now, reached, 0) if reached < least else (best, least, since + 1)
            if since == PATIENCE:
                break
        return best

    def _mean(self, p: FloatArray, rows: AnyArray) -> float:
        return float(np.average(self.rule.losses(p[rows], self.sample.codes[rows]), weights=self.weights[rows]))


def _levelled(found: FloatArray, recalibrated: FloatArray, cells: IntArray, weights: FloatArray) -> FloatArray:
    """Recalibrated scores, scaled within level sets to the means of the features' probabilities."""
    number = int(cells.max()) + 1
    means = [_sums(cells, number, weights[:, None] * p) for p in (found, recalibrated)]
    scaled = recalibrated * (means[0] / np.where(means[1] > 0, means[1], 1.0))[cells]
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _sums(cell: IntArray, n_cells: int, values: FloatArray) -> FloatArray:
    """Sums of rows (n, K) within cells, (cells, K)."""
    from scipy.sparse import csr_array

    member: Any = csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(n_cells, len(cell)))
    return np.asarray(member @ values)
