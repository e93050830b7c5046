"""Runs of scores where a band leaves the diagonal out, told by the rows there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.types import AnyArray
from ..measure.inference.bands import wilson_interval
from ..measure.result import ReliabilityCurve
from ..sums import BinMoments

#: Share of all rows, and number of rows, that a region has at least.
LEAST_SHARE, LEAST_ROWS = 0.01, 20


@dataclass(frozen=True)
class Region:
    """A run of scores where the band lies on one side of the diagonal, from ``low`` to ``high`` as they are printed.

    Everything else is of the rows with these scores; ``rows`` is their number, by Kish's formula if they are weighted.
    """

    low: float
    high: float
    stated: float
    observed: float
    share: float
    rows: float

    @property
    def gap(self) -> float:
        """Observed minus stated frequency."""
        return self.observed - self.stated

    @property
    def decimals(self) -> int:
        """Decimals that tell its ends apart: those that it is rounded to."""
        return _decimals(self.high - self.low)


def regions(curve: ReliabilityCurve, fine: BinMoments) -> list[Region]:
    """Runs of scores where the band excludes the diagonal, the one that matters most (share times gap) first.

    The curve says where; shares and frequencies are those of the samples there, not of the smoothed curve. Ends are
    rounded outwards. A region has :data:`LEAST_ROWS` rows at least, and :data:`LEAST_SHARE` of them.
    """
    # Where all nearby outcomes agree a resampled band has no width: the binomial interval guards against that.
    bottom, top = wilson_interval(curve.observed * curve.count, curve.count, curve.level or 0.95)
    above = np.fmin(curve.lower, bottom) > curve.scores
    below = np.fmax(curve.upper, top) < curve.scores
    half = float(curve.scores[1] - curve.scores[0]) / 2
    ends = float(curve.scores[0]), float(curve.scores[-1])
    found = []
    for side in (above, below):
        for start, stop in _runs(side):
            low, high = float(curve.scores[start]) - half, float(curve.scores[stop - 1]) + half
            region = _region(max(low, ends[0]), min(high, ends[1]), fine)
            if region is not None and (region.gap > 0) == (side is above):
                found.append(region)
    return sorted(
        (r for r in found if r.share >= LEAST_SHARE and r.rows >= LEAST_ROWS), key=lambda r: -abs(r.gap) * r.share
    )


def _region(low: float, high: float, fine: BinMoments) -> Region | None:
    """What the rows from one score to another say; None without any."""
    unit = 10.0 ** -_decimals(high - low)
    low, high = max(np.floor(low / unit + 1e-9) * unit, 0.0), min(np.ceil(high / unit - 1e-9) * unit, 1.0)
    edges, width = fine.edges.values, 1e-9
    inside = (edges[1:] > low - width) & (edges[:-1] < high + width)
    # Only whole cells count as rows of a region: what a cell holds beyond its ends is not known.
    whole = inside & (edges[:-1] >= low - width) & (edges[1:] <= high + width)
    weight, square = float(fine.weight[whole].sum()), float(fine.square[whole].sum())
    mass = float(fine.weight[inside].sum())
    if mass <= 0:
        return None
    rows = weight if fine.integral else weight**2 / square if square > 0 else 0.0
    return Region(
        float(low),
        float(high),
        float(fine.score[inside].sum()) / mass,
        float(fine.outcome[inside].sum()) / mass,
        mass / float(fine.weight.sum()),
        rows,
    )


def _decimals(width: float) -> int:
    """Two, or as many as give a range of this width two digits; five at most."""
    return int(np.clip(np.ceil(-np.log10(max(width, 1e-9))) + 1, 2, 5))


def _runs(mask: AnyArray) -> list[tuple[int, int]]:
    """Start and stop of every run of True."""
    padded = np.concatenate([[False], mask, [False]]).astype(np.int8)
    change = np.flatnonzero(np.diff(padded))
    return [(int(a), int(b)) for a, b in zip(change[::2], change[1::2], strict=True)]
