"""`RankMoments`: counts of samples and positives by rank instead of score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.types import FloatArray
from .resample import as_often, number_as_often

#: Cells of the rank axis; the bandwidth is above one cell up to n = 10⁷, and one cell beyond.
RANK_CELLS = 256


@dataclass(frozen=True, eq=False)
class RankMoments:
    """Counts on the nodes of the rank axis [0, 1], in units of the effective sample size.

    Attributes
    ----------
    count, positive, score : ndarray of shape (…, 257)
        Samples, positives and sums of scores.
    size : float, or ndarray of shape (…)
        Sample size.
    parts : ndarray of shape (…, 5) or None
        What design effects of parts of the residuals make of rows in groups; see :mod:`.shared`.
    """

    count: FloatArray
    positive: FloatArray
    score: FloatArray
    size: Any
    parts: FloatArray | None = None

    def __getitem__(self, index: Any) -> RankMoments:
        """Counts of one of many problems, or of some."""
        parts = None if self.parts is None else self.parts[index]
        return RankMoments(self.count[index], self.positive[index], self.score[index], self.size[index], parts)

    @property
    def ranked(self) -> RankMoments:
        """These."""
        return self

    @property
    def mean_score(self) -> FloatArray:
        """Mean score at each node; NaN where there is none."""
        nothing: FloatArray = np.full(self.count.shape, np.nan)
        return np.divide(self.score, self.count, out=nothing, where=self.count > 0)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of what is drawn anew: of the nodes."""
        return self.mean_score, self.count, self.positive

    def redrawn(self, count: FloatArray, positive: FloatArray) -> RankMoments:
        """Counts with other samples (R, 257) and positives (b R, 257) at these ranks and mean scores.

        Of many problems, as many samples of each, one problem after the other.
        """
        blocks = len(positive) // len(count)
        score = np.tile(count * as_often(np.nan_to_num(self.mean_score), count), (blocks, 1))
        size = np.tile(number_as_often(self.size, count), blocks)
        return RankMoments(np.tile(count, (blocks, 1)), positive, score, size)
