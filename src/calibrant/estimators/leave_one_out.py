"""Bandwidths that predict outcomes best: the leave-one-out likelihood of what is observed, not of the scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..data.types import FloatArray
from .base import Cells

#: Standard deviations that are tried, as shares of the domain, widest first.
WIDTHS = tuple(float(w) for w in 2.0 ** (-np.arange(19) / 2))
#: Below this part of a sample's own weight there is no other sample around: a grid of six cells to a bandwidth knows
#: that weight to about 1 %.
_ALONE = 0.05


def choose(candidates: Sequence[float], make: Callable[[float], Cells]) -> float:
    """The candidate whose cells predict outcomes best; the first of equals."""
    likelihood = [log_likelihood(make(c)) for c in candidates]
    return candidates[int(np.argmax(likelihood))]


def log_likelihood(cells: Cells) -> float:
    """``Σ log P(o_i)`` with the frequency around sample i estimated from the other samples.

    A sample's own weight at its node, mirror images included, is the smoother's diagonal, and is taken out of both sums
    exactly (of relative weights, the mean weight). Frequencies are clipped to [1/(n+2), 1 - 1/(n+2)]. Where there is no
    other sample it is ½: the score would reward kernels so narrow that they say nothing. Below some hundred samples the
    likelihood hardly tells widths apart; repeated rows predict each other, and so pull it towards narrow kernels.
    """
    if cells.smoother is None:
        raise TypeError("a leave-one-out likelihood needs cells that are smoothed")
    n = float(cells.count.sum())
    score = np.nan_to_num(cells.scores)
    own = cells.smoother.diagonal
    others = cells.apply(cells.count) - own
    smooth = cells.apply(cells.outcome(cells.positive, cells.count))
    there = others > _ALONE * own
    least = 1 / (n + 2)

    def frequency(outcome: float) -> FloatArray:
        without = smooth - own * (outcome - score if cells.residual else outcome)
        found = np.divide(without, others, out=np.zeros_like(others), where=there)
        if cells.residual:
            found += score
        return np.clip(np.where(there, found, 0.5), least, 1 - least)

    negative = np.maximum(cells.count - cells.positive, 0.0)
    return float(cells.positive @ np.log(frequency(1.0)) + negative @ np.log1p(-frequency(0.0)))
