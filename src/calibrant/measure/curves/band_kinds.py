"""Which band a curve gets: what it is called, and what it is for bins and for smooth curves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.types import FloatArray
from ...estimators.base import Cells
from ..inference.bands import binomial_consistency, bootstrap_band, clopper_pearson, consistency_band, wilson_interval
from ..inference.isotonic_bands import simultaneous_band, steps
from ..inference.tied_scores import TiedScores

#: Names of bands; the last two are confidence intervals of bins.
BANDS = ("confidence", "consistency", "simultaneous", "wilson", "clopper-pearson")


class Band(NamedTuple):
    """Lower end, middle and upper end at each score of a curve."""

    lower: FloatArray
    median: FloatArray
    upper: FloatArray

    @classmethod
    def none(cls, size: int) -> Band:
        """NaN everywhere."""
        return cls(*(np.full(size, np.nan) for _ in range(3)))


def check_band(band: str, *, binned: bool) -> str:
    """Judge the ``band`` argument, and whether the curve can have it."""
    allowed = BANDS if binned else BANDS[:3]
    if not isinstance(band, str) or band not in allowed:
        more = " for a curve without bins" if band in BANDS else ""
        raise ValueError(f"band must be one of {', '.join(map(repr, allowed))}{more}; got {band!r}")
    return band


def binned_band(band: str, scores: FloatArray, observed: FloatArray, size: FloatArray, level: float) -> Band:
    """Band of bins: binomial, so without resampling."""
    if band == "consistency":
        lower, upper = binomial_consistency(scores, size, level)
        return Band(lower, scores, upper)
    if band == "simultaneous":
        used = max(int((size > 0).sum()), 1)
        lower, upper = clopper_pearson(observed * size, size, 1 - (1 - level) / used)
    elif band == "clopper-pearson":
        lower, upper = clopper_pearson(observed * size, size, level)
    else:
        lower, upper = wilson_interval(observed * size, size, level)
    return Band(lower, observed, upper)


def smooth_band(
    band: str, cells: Cells, ties: TiedScores | None, level: float, n_resamples: int, rng: np.random.Generator
) -> Band:
    """Band of a smooth curve; the simultaneous one is of the increasing curves that the rows allow."""
    if band == "consistency":
        return Band(*consistency_band(cells, level, n_resamples, rng))
    if band == "confidence":
        return Band(*bootstrap_band(cells, level, n_resamples, rng))
    if ties is None or not ties.size:
        return Band.none(cells.scores.size)
    lower, upper = steps(ties, *simultaneous_band(ties, level), cells.scores)
    return Band(lower, np.full(lower.shape, np.nan), upper)
