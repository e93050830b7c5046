"""L1 calibration errors of several models: what noise adds to a sum of absolute gaps, taken off again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.predictions import Predictions
from ...data.types import FloatArray
from ...notions import Notion
from .residual_bins import BinnedResiduals
from .units import IndependentUnits

#: Bins of all problems of a model together.
MOST_BINS = 4096
#: Numbers worked on at a time.
_TOGETHER = 1 << 15
#: Multiples of the gaps found at which estimates are worked out.
_SCALES = np.concatenate([np.linspace(0, 1, 21), [1.1, 1.25]])


@dataclass(frozen=True, eq=False)
class Gaps:
    r"""Gaps of one model over bins of equal counts, whose noise any resample of units shows.

    Attributes
    ----------
    gap : ndarray of shape (B,)
        Mean residual of each bin.
    share : ndarray of shape (B,)
        Of the weight.
    influence : sparse array of shape (B, G)
        What each gap owes to one copy of each unit.
    """

    gap: FloatArray
    share: FloatArray
    influence: Any

    @classmethod
    def of(cls, p: Predictions, notion: Notion, units: IndependentUnits) -> Gaps:
        """Of predictions whose rows all have weight; 2 ∛n bins, for noise must be small beside gaps."""
        found = BinnedResiduals.of(p, notion, units, lambda n: 2 * np.cbrt(n) + 1e-9, MOST_BINS)
        residual, whole = found.sums(found.residual), found.sums(found.mass)
        held = np.where(whole > 0, whole, np.inf)
        gap = residual / held
        influence = found.sparse((found.residual - gap[found.bin_of] * found.mass) / held[found.bin_of])
        return cls(gap, found.scale * whole, influence)

    def corrected(self, noise: FloatArray) -> tuple[float, FloatArray]:
        """The L1 error without what noise adds, and the same of samples around it, from noise of gaps (B, R).

        The gaps times λ are taken for the truth, where λ is such that a sample around it gives as much, on average, as
        the data do; the corrected error is λ times the estimate. An estimate below that of calibrated models gives a
        negative λ, as far below 0 as an estimate that is as far above gives it above: so noise has no bias near 0.
        """
        read = float(self.share @ np.abs(self.gap))
        means = np.zeros(_SCALES.size)
        for some in self._tiles(noise):
            for i, c in enumerate(_SCALES):
                off = noise[some] + c * self.gap[some, None]
                means[i] += float((self.share[some] @ np.abs(off, out=off)).mean())
        means = np.maximum.accumulate(means) + 1e-12 * max(read, 1e-12) * np.arange(_SCALES.size)

        def scale_of(value: FloatArray) -> FloatArray:
            far = np.abs(value - means[0])
            beyond = np.maximum(far - (means[-1] - means[0]), 0.0)
            inside = np.interp(means[0] + far, means, _SCALES)
            return np.asarray(np.sign(value - means[0]) * (inside + (beyond / read if read > 0 else 0.0)))

        own = float(scale_of(np.array(read)))
        drawn = np.zeros(noise.shape[1])
        for some in self._tiles(noise):
            drawn += self.share[some] @ np.abs(max(own, 0.0) * self.gap[some, None] + noise[some])
        return own * read, scale_of(drawn) * read

    @staticmethod
    def _tiles(noise: FloatArray) -> Iterator[slice]:
        """Bins whose noise stays in the cache."""
        rows = max(1, _TOGETHER // noise.shape[1])
        return (slice(a, a + rows) for a in range(0, len(noise), rows))
