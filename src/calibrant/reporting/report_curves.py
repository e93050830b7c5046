"""Curves of a report, each computed on first access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..data.result import LazyMapping, Result
from ..estimators import CellEstimator, EmpiricalBayes
from ..measure.curve_from_sums import CurveSpec
from ..measure.result import ReliabilityCurve
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import ProblemSums
from ..measure.tied_scores import TiedScores
from ..sums import BinMoments

#: Bands of a report, and runs of scores from which those of isotonic curves are found.
BANDS, MOST_TIES = ("confidence", "consistency", "simultaneous"), 1024
_SMOOTH = EmpiricalBayes()


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Result):
    """Reliability curves of one problem, by the name of their band: "confidence", "consistency", "simultaneous".

    Attributes
    ----------
    smooth, bins, isotonic : mapping of band to ReliabilityCurve
        The smooth, the binned and the isotonic curve, each computed on first access. Unavailable bands are absent;
        ``isotonic`` is empty if neither rows nor a fine histogram were kept.

    See Also
    --------
    calibrant.report : Computes them, in ``curves``.
    calibrant.reliability_curve : One curve.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> sorted(cal.report(rng.random(500) < p, p).curves.smooth)
    ['confidence', 'consistency', 'simultaneous']
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the report draws it."

    smooth: Mapping[str, ReliabilityCurve]
    bins: Mapping[str, ReliabilityCurve]
    isotonic: Mapping[str, ReliabilityCurve] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """Bands of the curves."""
        return f"Reliability curves with {len(self.bins)} bands: {', '.join(self.bins)}."


def curves_of(
    sums: ProblemSums,
    acc: Accumulator,
    level: float,
    seed: list[int],
    *,
    band: bool,
    fine: BinMoments | None,
) -> Curves:
    """Smooth, binned and isotonic curves of one problem, each computed on first access; the last from a histogram."""
    ties = None if fine is None else TiedScores.of_moments(fine, MOST_TIES)
    notion: Any = acc.notion

    def spec(kind: int, reader: CellEstimator | None, at: float | None, n_resamples: int, name: str) -> CurveSpec:
        rng = np.random.default_rng([*seed, kind, BANDS.index(name)])
        return CurveSpec(reader, notion.name, at, rng, n_resamples, name)

    def smooth(name: str, at: float | None) -> ReliabilityCurve:
        return spec(0, _SMOOTH, at, 1000 if name == "confidence" else 400, name).of_sums(sums.grid, sums.label, ties)

    def binned(name: str) -> ReliabilityCurve:
        return spec(1, acc.binned, level, 2, name).of_sums(sums.bins, sums.label)

    def isotonic(name: str, ties: TiedScores) -> ReliabilityCurve:
        return spec(2, None, level, 400, name).isotonic(ties, sums.label, sums.domain, sums.grid.n_samples)

    bins = LazyMapping({name: partial(binned, name) for name in BANDS})
    if not band:
        return Curves(LazyMapping({"confidence": partial(smooth, "confidence", None)}), bins)
    drawn = BANDS if ties is not None else BANDS[:2]
    return Curves(
        LazyMapping({name: partial(smooth, name, level) for name in drawn}),
        bins,
        LazyMapping({} if ties is None else {name: partial(isotonic, name, ties) for name in BANDS}),
    )
