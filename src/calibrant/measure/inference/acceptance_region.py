"""How far from its middle an estimate may lie for a truth near a boundary: one-sided at it, two-sided away from it."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...data.types import FloatArray

_NODES = 129


def reach(distance: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    r"""How far estimates below and above their middle are accepted, for truths at a distance from the boundary.

    A calibration error cannot be below 0. Acceptance with equal tails everywhere would cover a calibrated model with
    probability ``(1 + level) / 2``; ordering estimates x of a truth t by the likelihood ratio
    ``f(x | t) / f(x | max(x, 0))`` covers every truth with probability ``level``. For a unit normal estimate this
    accepts ``t - a ≤ x ≤ t + c`` with ``Φ(c) - Φ(-a) = level`` and

    .. math:: a = \frac{t^2 + c^2}{2t} \text{ where } t < |c|, \qquad a = c \text{ elsewhere.}

    Parameters
    ----------
    distance : ndarray
        Distances t ≥ 0 in standard deviations.
    level : float

    Returns
    -------
    below, above : ndarray
        a (infinite at t = 0) and c, in standard deviations.

    References
    ----------
    Feldman & Cousins (1998), *Unified approach to the classical statistical analysis of small signals*.

    Examples
    --------
    >>> import numpy as np
    >>> below, above = reach(np.array([0.0, 0.5, 3.0]), 0.95)
    >>> below.round(2).tolist(), above.round(2).tolist()
    ([inf, 3.0, 1.96], [1.64, 1.66, 1.96])
    """
    nodes, table = _above(level)
    c = np.interp(distance, nodes, table)
    with np.errstate(divide="ignore"):
        tilted = (distance**2 + c**2) / (2 * distance)
    return np.where(distance < np.abs(c), tilted, c), c


@cache
def _above(level: float) -> tuple[FloatArray, FloatArray]:
    """The reach above, at distances from 0 to where tails are equal, by bisection."""
    from scipy.special import ndtr, ndtri

    widest = float(ndtri((1 + level) / 2))
    nodes = np.linspace(0, widest, _NODES)
    low, high = np.full(_NODES, float(ndtri(level))), np.full(_NODES, widest)
    for _ in range(60):
        c = (low + high) / 2
        with np.errstate(divide="ignore"):
            below = (nodes**2 + c**2) / (2 * nodes)
        enough = ndtr(c) - ndtr(-below) >= level
        low, high = np.where(enough, low, c), np.where(enough, c, high)
    return nodes, high
