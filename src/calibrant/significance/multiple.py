"""P-values corrected for their number, each rule written once."""

from __future__ import annotations

import numpy as np

from ..data.types import FloatArray


def holm(pvalues: FloatArray) -> FloatArray:
    """Holm's step-down correction: rejects any true hypothesis with probability at most α. NaN stays, uncounted."""
    out: FloatArray = np.full(pvalues.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    steps = (order.size - np.arange(order.size)) * pvalues[order]
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out


def benjamini_hochberg(pvalues: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's step-up correction, of the share of rejections that are false. NaN stays, uncounted."""
    from scipy.stats import false_discovery_control

    out: FloatArray = np.full(pvalues.shape, np.nan)
    known = ~np.isnan(pvalues)
    if known.any():
        out[known] = false_discovery_control(pvalues[known])
    return out
