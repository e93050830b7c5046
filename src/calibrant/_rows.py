"""What rows with weights are asked for everywhere: small pure functions, each written once."""

from __future__ import annotations

import numpy as np

from ._types import FloatArray


def ones_or(weights: FloatArray | None, n_rows: int) -> FloatArray:
    """Weights as float64; one each where there are none."""
    return np.ones(n_rows) if weights is None else weights.astype(np.float64, copy=False)
