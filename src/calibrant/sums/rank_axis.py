"""`RankMoments`: counts of samples and positives by rank instead of score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ..data.types import FloatArray
from .base import Sums, as_often, number_as_often, summed

#: Cells of the rank axis; the bandwidth is above one cell up to n = 10⁷, and one cell beyond.
RANK_CELLS = 256


@dataclass(frozen=True, eq=False)
class RankMoments(Sums):
    """Counts on the nodes of the rank axis [0, 1], in units of the effective sample size.

    Attributes
    ----------
    count, positive, score : ndarray of shape (…, 257)
        Samples, positives and sums of scores.
    size : float, or ndarray of shape (…)
        Sample size.
    parts : ndarray of shape (…, 5) or None
        Design effects of parts of the residuals, for rows in groups; see :class:`.base.Shared`.
    """

    count: Annotated[FloatArray, summed("m")]
    positive: Annotated[FloatArray, summed("m")]
    score: Annotated[FloatArray, summed("m")]
    size: Annotated[Any, summed()]
    parts: Annotated[FloatArray | None, summed("5")] = None

    @property
    def shape(self) -> tuple[int, ...]:
        """() for one problem, (R,) for many."""
        return self.count.shape[:-1]

    @property
    def ranked(self) -> RankMoments:
        """The counts themselves."""
        return self

    @property
    def mean_score(self) -> FloatArray:
        """Mean score at each node; NaN for empty nodes."""
        nothing: FloatArray = np.full(self.count.shape, np.nan)
        return np.divide(self.score, self.count, out=nothing, where=self.count > 0)

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of the resampled units: of the nodes."""
        return self.mean_score, self.count, self.positive

    def resampled(self, count: FloatArray, positive: FloatArray) -> RankMoments:
        """Counts with other samples (R, 257) and positives (b R, 257) at these ranks and mean scores.

        Many problems have equally many samples each, one problem after the other.
        """
        blocks = len(positive) // len(count)
        score = np.tile(count * as_often(np.nan_to_num(self.mean_score), count), (blocks, 1))
        size = np.tile(number_as_often(self.size, count), blocks)
        return RankMoments(np.tile(count, (blocks, 1)), positive, score, size)
