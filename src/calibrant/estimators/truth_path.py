"""`Path`: what an estimator gives for samples drawn from truths between perfect calibration and the gaps found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.types import FloatArray

#: Multiples of the gaps found at which truths are simulated; between them quantiles are interpolated.
SCALES = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0])


@dataclass(frozen=True, eq=False)
class TruthPath:
    """Estimates and truths along :data:`SCALES`.

    Attributes
    ----------
    powers : ndarray of shape (S, R)
        ``errorᵖ`` estimated from R samples drawn at each scale, with common random numbers.
    truths : ndarray of shape (S,)
        True ``errorᵖ`` at each scale.
    observed : float
        ``errorᵖ`` estimated from the data, computed as for the draws.
    """

    powers: FloatArray
    truths: FloatArray
    observed: float
