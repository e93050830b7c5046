"""Curves of a report: each is computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..data.result import Result
from ..estimators import ResidualKernel
from ..measure.curve_from_sums import curve_from, curve_of_ties
from ..measure.result import ReliabilityCurve
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import ProblemSums
from ..measure.tied_scores import TiedScores
from ..sums import BinMoments
from .lazy_mapping import LazyMapping

#: Bands of a report, and runs of scores from which those of isotonic curves are found.
BANDS, MOST_TIES = ("confidence", "consistency", "simultaneous"), 1024
_SMOOTH = ResidualKernel()


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Result):
    """Reliability curves of one problem, by the name of their band: "confidence", "consistency", "simultaneous".

    Attributes
    ----------
    smooth, bins, isotonic : mapping of band to ReliabilityCurve
        Each is computed when it is first asked for. A band that there is not is absent; ``isotonic`` is empty where
        neither rows nor a fine histogram were kept.
    """

    smooth: Mapping[str, ReliabilityCurve]
    bins: Mapping[str, ReliabilityCurve]
    isotonic: Mapping[str, ReliabilityCurve] = field(default_factory=dict)


def curves_of(
    sums: ProblemSums,
    acc: Accumulator,
    level: float,
    seed: list[int],
    *,
    band: bool,
    fine: BinMoments | None,
) -> Curves:
    """Smooth, binned and isotonic curves of one problem, each made when it is asked for; the last from a histogram."""
    notion: Any = acc.notion
    kept = acc.binned
    ties = None if fine is None else TiedScores.of_moments(fine, MOST_TIES)

    def options(kind: int, name: str) -> dict[str, Any]:
        rng = np.random.default_rng([*seed, kind, BANDS.index(name)])
        return {"label": sums.label, "notion": notion.name, "band": name, "rng": rng}

    def smooth(name: str, at: float | None) -> ReliabilityCurve:
        draws = 1000 if name == "confidence" else 400
        return curve_from(_SMOOTH, sums.grid, level=at, n_resamples=draws, ties=ties, **options(0, name))

    def binned(name: str) -> ReliabilityCurve:
        return curve_from(kept, sums.bins, level=level, n_resamples=2, **options(1, name))

    def isotonic(name: str, ties: TiedScores) -> ReliabilityCurve:
        about: dict[str, Any] = {"domain": sums.domain, "n_samples": sums.grid.n_samples, "level": level}
        return curve_of_ties(ties, n_resamples=400, **about, **options(2, name))

    bins = LazyMapping({name: partial(binned, name) for name in BANDS})
    if not band:
        return Curves(LazyMapping({"confidence": partial(smooth, "confidence", None)}), bins)
    drawn = BANDS if ties is not None else BANDS[:2]
    return Curves(
        LazyMapping({name: partial(smooth, name, level) for name in drawn}),
        bins,
        LazyMapping({} if ties is None else {name: partial(isotonic, name, ties) for name in BANDS}),
    )
