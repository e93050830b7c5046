"""Bandwidth rules. A bandwidth is the standard deviation of the kernel, in score units.

Every rule sees the sample as a weighted one: the grid's nodes and the counts on them. So it costs O(G) whatever
the number of rows, works on merged grids, and is the same in memory and out of core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from .._types import BandwidthWarning, FloatArray
from .grid import GridMoments

BandwidthRule: TypeAlias = str | float | Callable[[FloatArray, FloatArray], float]
RULES = ("silverman", "scott", "isj")


def resolve_bandwidth(rule: BandwidthRule, grid: GridMoments) -> float:
    """Bandwidth for the sample on ``grid``, never below one grid step (the resolution of the counts)."""
    if callable(rule):
        used = grid.count > 0
        h = float(rule(grid.nodes[used], grid.count[used]))
        if not (np.isfinite(h) and h > 0):
            raise ValueError(f"bandwidth rule {rule!r} must return a positive finite number; got {h!r}")
    elif isinstance(rule, str):
        h = {"silverman": silverman, "scott": scott, "isj": isj}[rule](grid)
    else:
        h = float(rule)
    return max(h, grid.step)


def silverman(grid: GridMoments) -> float:
    """``min(sd, IQR / 1.34898) · (3n/4)^(-1/5)``; 0 for a sample without spread.

    Source: Silverman (1986), §3.4.2, with the constant of Posocco & Bonnefoy's code.
    """
    n = grid.effective_size
    return 0.0 if n <= 0 else min(_sd(grid), _iqr(grid) / 1.34898) * (0.75 * n) ** -0.2


def scott(grid: GridMoments) -> float:
    """``sd · n^(-1/5)``. Source: Scott (1992), with SciPy's constant."""
    n = grid.effective_size
    return 0.0 if n <= 0 else _sd(grid) * n**-0.2


def folded_scott(grid: GridMoments) -> float:
    """``min(sd, 2 sd of folded scores) · n^(-1/5)``; folded at the middle of the domain is ``min(s - low, high - s)``.

    Scores of classifiers pile up at the two ends. Between two piles the standard deviation measures their
    distance, which says nothing about the scale on which frequencies vary; folded, the piles coincide. For
    uniform scores both terms are equal and this is Scott's rule.
    """
    n = grid.effective_size
    folded = _sd(grid, np.minimum(grid.nodes - grid.low, grid.high - grid.nodes))
    return 0.0 if n <= 0 else min(_sd(grid), 2 * folded) * n**-0.2


def isj(grid: GridMoments) -> float:
    """Improved Sheather–Jones: the fixed point of the plug-in equation, solved on the cosine coefficients.

    The mirrored grid counts have cosine coefficients a_k; with l stages of
    ``t_s = (2 c_s / (n ‖f^(s+1)‖²))^{2/(3+2s)}`` the bandwidth is the root of ``t = ξ γ^[l](t)``. Where no root
    exists (tiny or degenerate samples) Silverman's rule is used and a :class:`BandwidthWarning` says so.

    Source: Botev, Grotowski & Kroese (2010), *Kernel density estimation via diffusion*, algorithm 1.
    """
    from scipy.fft import dct
    from scipy.optimize import brentq

    n = grid.effective_size
    g = grid.cells
    share = grid.count / max(grid.count.sum(), np.finfo(float).tiny)
    mirrored = share.copy()
    mirrored[0] *= 2
    mirrored[-1] *= 2
    squared = (dct(mirrored, type=1)[1:g] / 2) ** 2
    frequency = np.arange(1, g, dtype=np.float64) ** 2

    def norm(stage: int, t: float) -> float:
        """Squared norm of the derivative of order ``stage`` of the density smoothed by time t."""
        return float(2 * np.pi ** (2 * stage) * np.sum(frequency**stage * squared * np.exp(-frequency * np.pi**2 * t)))

    def gamma(t: float) -> float:
        f = norm(7, t)
        for s in range(6, 1, -1):
            if f <= 0:
                return -1.0
            odd = np.prod(np.arange(1, 2 * s, 2))
            c = (1 + 0.5 ** (s + 0.5)) / 3
            f = norm(s, (2 * c * odd / (n * np.sqrt(2 * np.pi) * f)) ** (2 / (3 + 2 * s)))
        return float(t - (2 * n * np.sqrt(np.pi) * f) ** -0.4) if f > 0 else -1.0

    # Ties make further roots near 0, where the estimate sees single scores: the largest root is the density's scale.
    times = np.geomspace((1.0 / g) ** 2, 0.1, 25)
    signs = np.array([gamma(t) > 0 for t in times])
    rises = np.flatnonzero(~signs[:-1] & signs[1:])
    if rises.size:
        root = float(brentq(gamma, times[rises[-1]], times[rises[-1] + 1]))
    else:
        h = silverman(grid)
        warnings.warn(
            f"bandwidth='isj' has no solution for this sample (n = {n:.4g}, {int((grid.count > 0).sum())} grid nodes "
            f"in use); Silverman's rule is used instead ({max(h, grid.step):.4g})",
            BandwidthWarning,
            stacklevel=2,
        )
        return h
    return float(np.sqrt(root)) * (grid.high - grid.low)


def _sd(grid: GridMoments, values: FloatArray | None = None) -> float:
    """Standard deviation, with n - 1, of the nodes or of values on them; 0 for one sample."""
    n = grid.effective_size
    if n <= 1 or grid.count.sum() <= 0:
        return 0.0
    x = grid.nodes if values is None else values
    mean = np.average(x, weights=grid.count)
    variance = np.average((x - mean) ** 2, weights=grid.count)
    return float(np.sqrt(variance * n / (n - 1)))


def _iqr(grid: GridMoments) -> float:
    """Interquartile range of the grid sample (quantiles of type 7, to within a grid step)."""
    total = grid.count.sum()
    n = grid.effective_size
    if n <= 1 or total <= 0:
        return 0.0
    cumulative = np.cumsum(grid.count) * (n / total)

    def order_statistic(i: float) -> float:
        """The i-th smallest (0-based): where the cumulative count passes i + ½."""
        return float(grid.nodes[min(int(np.searchsorted(cumulative, i + 0.5)), grid.cells)])

    def quantile(q: float) -> float:
        position = (n - 1) * q
        below = float(np.floor(position))
        low, high = order_statistic(below), order_statistic(min(below + 1, n - 1))
        return low + (position - below) * (high - low)

    return quantile(0.75) - quantile(0.25)
