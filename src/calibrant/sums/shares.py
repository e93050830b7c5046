"""How a sample is shared among bins: hard, linear, or linear as the paper prints it.

References
----------
Posocco & Bonnefoy (2021), *Estimating Expected Calibration Errors*, §4.3.
"""

from __future__ import annotations

import numpy as np

from ..data.types import AnyArray, FloatArray
from .edges import Edges

MAPPINGS = ("hard", "linear", "linear-as-printed")


def linear_shares(edges: Edges, scores: FloatArray, *, as_printed: bool) -> tuple[AnyArray, FloatArray]:
    """Lower bin of each sample and the share that goes to the bin above it.

    A sample between the centres ``c_i`` and ``c_{i+1}`` gives ``(s - c_i) / (c_{i+1} - c_i)`` to bin i + 1 and
    the rest to bin i: the nearer centre takes more. Below the first and above the last centre one bin takes
    all. ``as_printed`` exchanges the two shares, as the formula in the paper (and its authors' code) does.
    """
    centres = edges.centres
    if len(centres) == 1:
        return np.zeros(scores.size, dtype=np.intp), np.zeros(scores.size)
    if edges.uniform and not as_printed:
        position = np.clip((scores - centres[0]) / (centres[1] - centres[0]), 0, len(centres) - 1)
    else:  # as printed, shares jump at the centres: scores on one must be found there
        position = np.interp(scores, centres, np.arange(len(centres), dtype=np.float64))
    lower = np.minimum(position.astype(np.intp), len(centres) - 2)
    share = position - lower
    if as_printed:
        inside = (scores > centres[0]) & (scores < centres[-1])
        share = np.where(inside, 1 - share, share)
    return lower, share
