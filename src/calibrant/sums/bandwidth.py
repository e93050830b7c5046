"""Bandwidth rules. A bandwidth is the standard deviation of the kernel, in score units.

Every rule treats the sample as a weighted one: the grid's nodes and the counts on them. It thus costs O(G) whatever
the number of rows, works on merged grids, and is the same in memory and out of core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..data.checks import received
from ..data.types import FloatArray
from ..exceptions import BandwidthWarning
from .grid import GridMoments

BandwidthRule: TypeAlias = str | float | Callable[[FloatArray, FloatArray], float]
RULES = ("silverman", "scott", "isj")


def resolve_bandwidth(rule: BandwidthRule, grid: GridMoments) -> FloatArray:
    """Bandwidth of each problem on ``grid``, (…), never below one grid step (the resolution of the counts)."""
    if isinstance(rule, str):
        h = {"silverman": silverman, "scott": scott, "folded": folded_scott, "isj": isj}[rule](grid)
    elif callable(rule):
        h = one_by_one(grid, lambda one: _called(rule, one))
    else:
        h = np.full(grid.shape, float(rule))
    return np.asarray(np.maximum(h, grid.step))


def one_by_one(grid: GridMoments, rule: Callable[[GridMoments], float]) -> FloatArray:
    """Bandwidth of each problem by a rule, (…), one at a time: for rules that search."""
    return np.array([rule(grid.rows[i]) for i in range(len(grid.rows))]).reshape(grid.shape)


def _called(rule: Callable[[FloatArray, FloatArray], float], grid: GridMoments) -> float:
    used = grid.count > 0
    try:
        h = float(rule(grid.nodes[used], grid.count[used]))
    except (TypeError, ValueError) as error:
        raise TypeError(f"bandwidth must be a rule that returns a number for scores and weights: {error}") from error
    if not (np.isfinite(h) and h > 0):
        raise ValueError(f"bandwidth rule {rule!r} must return a positive finite number; got {received(h)}")
    return h


def silverman(grid: GridMoments) -> FloatArray:
    """``min(sd, IQR / 1.34898) · (3n/4)^(-1/5)``; 0 for a sample without spread.

    Source: Silverman (1986), §3.4.2, with the constant of Posocco & Bonnefoy's code.
    """
    return np.asarray(np.minimum(_sd(grid), _iqr(grid) / 1.34898) * _power(0.75 * np.asarray(grid.effective_size)))


def scott(grid: GridMoments) -> FloatArray:
    """``sd · n^(-1/5)``. Source: Scott (1992), with SciPy's constant."""
    return np.asarray(_sd(grid) * _power(grid.effective_size))


def folded_scott(grid: GridMoments) -> FloatArray:
    """``min(sd, 2 sd of folded scores) · n^(-1/5)``, folded at the middle of the domain: ``min(s - low, high - s)``.

    Scores of classifiers pile up at the two ends. With two piles the standard deviation measures their
    distance, which is unrelated to the scale on which frequencies vary; when folded, the piles coincide. For
    uniform scores both terms are equal and this is Scott's rule.
    """
    folded = _sd(grid, np.minimum(grid.nodes - grid.low, grid.high - grid.nodes))
    return np.asarray(np.minimum(_sd(grid), 2 * folded) * _power(grid.effective_size))


def _power(n: Any) -> FloatArray:
    """``n^(-1/5)``; 0 for an empty sample."""
    n = np.asarray(n, dtype=np.float64)
    return np.where(n > 0, np.where(n > 0, n, 1.0) ** -0.2, 0.0)


def isj(grid: GridMoments) -> FloatArray:
    """Improved Sheather–Jones: the fixed point of the plug-in equation, solved on the cosine coefficients.

    The mirrored grid counts have cosine coefficients a_k; with l stages of
    ``t_s = (2 c_s / (n ‖f^(s+1)‖²))^{2/(3+2s)}`` the bandwidth is the root of ``t = ξ γ^[l](t)``. If no root
    exists (tiny or degenerate samples) Silverman's rule is used, with a :class:`BandwidthWarning`.

    Source: Botev, Grotowski & Kroese (2010), *Kernel density estimation via diffusion*, algorithm 1.
    """
    return one_by_one(grid, _isj)


def _isj(grid: GridMoments) -> float:
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
        h = float(silverman(grid))
        warnings.warn(
            f"bandwidth='isj' has no solution for this sample (n = {n:.4g}, {int((grid.count > 0).sum())} grid nodes "
            f"in use); Silverman's rule is used instead ({max(h, grid.step):.4g})",
            BandwidthWarning,
            stacklevel=4,
        )
        return h
    return float(np.sqrt(root)) * (grid.high - grid.low)


def _sd(grid: GridMoments, values: FloatArray | None = None) -> FloatArray:
    """Standard deviation, with n - 1, of the nodes or of values on them, (…); 0 for one sample."""
    n, total = np.asarray(grid.effective_size), grid.count.sum(axis=-1)
    x = grid.nodes if values is None else values
    known = (n > 1) & (total > 0)
    mass, count = np.where(known, total, 1.0), np.where(known[..., None], grid.count, 0.0)
    mean = (count * x).sum(axis=-1) / mass
    variance = (count * (x - mean[..., None]) ** 2).sum(axis=-1) / mass
    return np.where(known, np.sqrt(variance * n / np.where(known, n - 1, 1.0)), 0.0)


def _iqr(grid: GridMoments) -> FloatArray:
    """Interquartile range of the grid sample (quantiles of type 7, to within a grid step), (…)."""
    g = grid.rows
    n = np.asarray(g.effective_size)
    total = np.asarray(g.total)
    known = (n > 1) & (total > 0)
    cumulative = np.cumsum(g.count, axis=-1) * (n / np.where(known, total, 1.0))[:, None]
    nodes = np.broadcast_to(g.nodes, g.count.shape)

    def order_statistic(i: FloatArray) -> FloatArray:
        """The i-th smallest (0-based): where the cumulative count passes i + ½."""
        at = np.minimum((cumulative < (i + 0.5)[:, None]).sum(axis=-1), g.count.shape[-1] - 1)
        return np.asarray(np.take_along_axis(nodes, at[:, None], -1)[:, 0])

    def quantile(q: float) -> FloatArray:
        position = np.maximum(n - 1, 0.0) * q
        below = np.floor(position)
        low, high = order_statistic(below), order_statistic(np.minimum(below + 1, np.maximum(n - 1, 0.0)))
        return np.asarray(low + (position - below) * (high - low))

    return np.asarray(np.where(known, quantile(0.75) - quantile(0.25), 0.0).reshape(grid.shape))
