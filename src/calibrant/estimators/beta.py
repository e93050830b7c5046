"""`BetaKernel`: frequencies from Beta kernels, whose support is that of probabilities, at the cost of a grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from ..data.checks import check_choice
from ..data.types import AnyArray, FloatArray, IntArray
from ..sums.grid import share_out
from ..sums.logistic_fit import BELOW_ONE
from .axis_counts import Angles, AxisCounts, placed
from .base import CellEstimator, Cells, FittedCells, check_bandwidth, check_eps
from .norm import mean_power

#: Cells of the grid and candidate bandwidths when a bandwidth is searched for.
_LOO_CELLS = 512
_LOO_BANDWIDTHS = 2.0 ** (-np.arange(25) / 2)
#: ``h = AUTO · n^(-2/5)``; see :class:`BetaKernel`.
AUTO = 0.17
#: On a grid a sample's own share is excluded up to the grid's error: below this fraction of it there is no neighbour.
_LONE = 1e-3
_TILE = 1 << 19
#: Samples below this size are evaluated over all pairs.
_SMALL = 16
#: Steps of the arcsine grid per standard deviation of a kernel.
_STEPS = 20.0
#: If the weight of the others relative to a sample's own share is below this, the difference has lost digits.
_FAR = 1e-3
#: Kernels below this fraction of the largest at a node are negligible there.
_ROUNDING = 1e-18
OUTCOMES = np.array([[0.0], [1.0]])
#: Block size in numbers, and columns of kernels that are multiplied together.
_CACHED, _COLUMNS = 1 << 15, 128


def log_kernel(data: FloatArray, at: FloatArray, h: float, eps: float, form: str = "first") -> FloatArray:
    """Logarithm of the Beta density of each data score at each point, shape (data, points)."""
    from scipy.special import betaln

    at = np.clip(at, eps, min(1 - eps, BELOW_ONE))
    below, above = data / h, (1 - data) / h  # exponents of t and 1 - t: the parameters less 1
    if form == "second":
        below = np.where(data < 2 * h, _boundary(data, h), below) - 1
        above = np.where(data > 1 - 2 * h, _boundary(1 - data, h), above) - 1
    left = np.stack([below, above, -betaln(below + 1, above + 1)], axis=1)
    return np.asarray(left @ np.stack([np.log(at), np.log1p(-at), np.ones_like(at)]))


def _boundary(x: FloatArray, h: float) -> FloatArray:
    """Chen's ρ(x) for x < 2h: from 1 at the boundary to 2 = x / h at 2h."""
    return np.asarray(2 * h * h + 2.5 - np.sqrt(np.maximum(4 * h**4 + 6 * h * h + 2.25 - x * x - x / h, 0)))


@dataclass(frozen=True)
class BetaKernel(CellEstimator):
    r"""Calibration error from frequencies smoothed by Beta kernels, with each sample's own share left out.

    .. math:: & \Big(\frac1n \sum_j |\hat E_j - s_j|^p\Big)^{1/p}, \\
        & \hat E_j = \frac{\sum_{i \ne j} k_i(s_j)\, o_i}{\sum_{i \ne j} k_i(s_j)}, \\
        & k_i = \text{density of } \mathrm{Beta}\Big(\frac{s_i}{h} + 1, \frac{1 - s_i}{h} + 1\Big)

    These are the marginal and confidence versions of Popordanoska et al.'s estimator (their sum over classes is K
    times the class-wise error here), with the parameters at the data point as in their code. Posocco & Bonnefoy call
    Beta kernels "computationally prohibitive for now". Here the cost does not grow with n: over θ, ``score = sin² θ``,
    all kernels are equally wide, so linear-binned counts on a grid of θ give the sums (within 1e-4).

    Parameters
    ----------
    bandwidth : "auto", "loo" or float, default "auto"
        The bandwidth h; the kernel's standard deviation is about ``√(h s (1-s))`` in score and ``√h / 2`` in θ.
        ``"auto"``: ``0.17 · n^(-2/5)``, which is half of Silverman's ``0.9 · sd · n^(-1/5)`` for θ uniform on [0, π/2]
        (sd 0.4535): ``4 (0.5 · 0.9 · 0.4535)² = 0.1666``; halved as for :class:`ResidualKernel` over ranks, since
        each sample's own outcome is left out anyway and a wide kernel blurs. ``"loo"``: the h among ``2^(-k/2)``, k = 0
        … 24, with the largest leave-one-out likelihood of the scores, ``Σ_j log (1/(n-1)) Σ_{i≠j} k_i(s_j)``. Repeated
        scores pull it towards 0.
    eps : float, default 1e-6
        Kernels are evaluated at scores clipped to [eps, 1 - eps]: at exactly 0 and 1 those of other scores vanish.
    form : {"first", "second"}, default "first"
        Chen's kernels. ``"first"``: the kernel above, whose mean is shifted towards 1/2 by ``h (1 - 2s) / (1 + 2h)``.
        ``"second"``, the form given by Posocco & Bonnefoy: ``Beta(s/h, (1-s)/h)`` with mean s for 2h ≤ s ≤ 1 - 2h;
        below 2h the first parameter, and above 1 - 2h the second, is
        ``ρ(x) = 2h² + 2.5 - √(4h⁴ + 6h² + 2.25 - x² - x/h)`` at distance x from that end. Its error is 5 to 10 % larger
        with 100 samples, and smaller with 1,000 and rare positives (``benchmarks/coverage/beta_forms.md``).

    See Also
    --------
    calibrant.estimators.DirichletKernel : The same over probability vectors.
    calibrant.estimators.ResidualKernel : Residuals instead of frequencies.

    Notes
    -----
    Range [0, 1]. Bias: upward, from noise, more than for a plug-in because a sample does not pull its own estimate; the
    kernels also average outcomes of unequal scores, which leaks (of order h) where the density of the scores changes,
    as for :class:`Density`. The leave-one-out sums are computed on a grid of θ, within 1e-4 of the sums over all pairs;
    the latter are used below 16 samples, for p = inf, for ``"loo"`` and at isolated scores. Beyond 2048 samples
    (counting repeats) the samples themselves are replaced by counts on a grid, and those without a neighbour are
    omitted. NaN for a single sample. Its reliability curve is that of :class:`AdaptiveKernel`. Cost O(n + G²), about
    0.1 s for any n; ten times that for ``"loo"``.

    References
    ----------
    Popordanoska, Sayer & Blaschko (2022), *A consistent and differentiable Lp canonical calibration error estimator*;
    Chen (1999), *Beta kernel estimators for density functions*; Posocco & Bonnefoy (2021), §6.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # true error: ∫|p² - p| dp = 1/6
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.estimators.BetaKernel()) - 1 / 6) < 0.01)
    True
    """

    _cells_are_atoms: ClassVar[bool] = True
    bandwidth: str | float = "auto"
    eps: float = 1e-6
    form: str = "first"

    def __post_init__(self) -> None:
        check_choice("form", self.form, ("first", "second"))
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, ("auto", "loo")))
        object.__setattr__(self, "eps", check_eps(self.eps))

    def _needs(self, domain: tuple[float, float]) -> Angles:
        """Sums over θ."""
        return Angles()

    def _h(self, sums: AxisCounts) -> FloatArray:
        """Bandwidth of every problem, (…)."""
        if self.bandwidth == "auto":
            return np.asarray(AUTO * np.maximum(sums.effective_size, 1.0) ** -0.4)
        if self.bandwidth == "loo":
            shape = np.shape(sums.cells)
            return np.array([self._likeliest(sums[i] if shape else sums) for i in np.ndindex(shape)]).reshape(shape)
        return np.full(np.shape(sums.cells), self.bandwidth)

    def _likeliest(self, sums: AxisCounts) -> float:
        counts = sums.used
        if not counts.scores.size:
            return float(_LOO_BANDWIDTHS[0])
        counts = counts.binned(_LOO_CELLS).used if counts.scores.size > _LOO_CELLS else counts
        # The lone samples of a grid count with what a grid can tell.
        likelihood = [log_likelihood(counts, self._around(counts, float(h))) for h in _LOO_BANDWIDTHS]
        return float(_LOO_BANDWIDTHS[int(np.argmax(likelihood))])

    def read(self, sums: AxisCounts, norm: float) -> FloatArray:
        """``errorᵖ`` of the smoothed frequencies: on the grid of θ, or over all pairs for a maximum or few samples."""
        shape = np.shape(sums.cells)
        rows = sums if shape else sums[None]
        widths, size = self._h(rows), rows.effective_size
        out: FloatArray = np.full(widths.shape, np.nan)
        # Pair by pair also where the bandwidth was sought so: that cost twenty-five times as much.
        alone = (size > 0) & (np.isinf(norm) | (size < _SMALL) | (self.bandwidth == "loo"))
        for h in np.unique(widths[(size > 0) & ~alone]).tolist():
            kernel = kernels_of(h, _cells_of(h), self.eps, self.form)
            some = np.flatnonzero((widths == h) & (size > 0) & ~alone)
            together = max(1, _CACHED // max(rows.scores.shape[-1], len(kernel.matrix)))
            for a in range(0, some.size, together):
                here = some[a : a + together]
                gaps, weights, lone = _from_grid(kernel, rows[here])
                for i in np.flatnonzero(lone.any(axis=-1)).tolist():  # few scores have no other near them
                    at = np.flatnonzero(lone[i])
                    gaps[:, i, at], weights[:, i, at] = self._pairs(rows[here[i]], h, at)
                out[here] = mean_power(np.concatenate(gaps, axis=-1), np.concatenate(weights, axis=-1), norm)
        for i in np.flatnonzero(alone).tolist():
            one = rows[i].used
            gap, weight = self._pairs(one, float(widths[i]), np.arange(one.scores.size))
            out[i] = mean_power(gap.ravel(), weight.ravel(), norm)
        return out.reshape(shape)

    def _held(self, sums: AxisCounts) -> tuple[BetaKernel, AxisCounts]:
        """The estimator with the bandwidth found, and the counts on a coarse grid."""
        h = float(self._h(sums))
        return replace(self, bandwidth=h), sums.binned(_coarse_cells(h))

    def _pairs(self, counts: AxisCounts, h: float, at: IntArray) -> tuple[FloatArray, FloatArray]:
        """Gaps around the samples at some scores, and their weights if there is another sample, (2, m)."""
        near = self._around(counts, h, at)
        gap = np.where(near.known, np.clip(near.mean, 0, 1) - counts.scores[at], 0.0)
        return gap, np.where(near.known, counts.mass[:, at], 0.0)

    def _around(self, counts: AxisCounts, h: float, at: IntArray | None = None) -> Neighbours:
        """Frequency of the outcome around each sample without it."""

        def log_kernels(points: IntArray) -> FloatArray:
            return log_kernel(counts.scores, counts.scores[points], h, self.eps, self.form)

        return neighbours(counts, log_kernels, np.broadcast_to(OUTCOMES, counts.mass.shape), at=at)

    def _cells(self, sums: AxisCounts) -> Cells:
        """Nodes of a coarse grid of θ, with at least three steps per standard deviation of a kernel."""
        h = float(self._h(sums))
        scores, count, positive = sums.binned(_coarse_cells(h)).atoms
        kernel = np.exp(log_kernel(scores, scores, h, self.eps, self.form))
        around = count @ kernel
        frequency = np.divide(positive @ kernel, around, out=np.zeros_like(around), where=around > 0)
        gap = np.where(around > 0, np.clip(frequency, 0, 1) - scores, 0.0)
        return FittedCells(scores, count, positive, None, np.ones(count.size), fitted=gap)


def _coarse_cells(h: float) -> int:
    """Number of cells for at least three steps per standard deviation of a kernel: enough for curves and draws."""
    return _cells_of(h, 3 * np.pi)


def _cells_of(h: float, steps: float = _STEPS * np.pi) -> int:
    size = 64
    while size < min(steps / np.sqrt(h), Angles.cells):
        size *= 2
    return size


class Neighbours(NamedTuple):
    """Weighted means around one sample per outcome and score, without that sample, (2, m); weights sum to 1.

    Attributes
    ----------
    mean : ndarray of shape (2, m)
        ``Σ w v`` of the values v.
    known : ndarray of shape (2, m)
        Whether there is any other sample.
    log_sum : ndarray of shape (2, m)
        Logarithm of the sum of the kernels.
    second, concentration : ndarray of shape (2, m)
        ``Σ w² v'`` of other values v', and ``Σ w²``; 0 if not requested.
    """

    mean: FloatArray
    known: AnyArray
    log_sum: FloatArray
    second: FloatArray
    concentration: FloatArray


def neighbours(
    counts: AxisCounts,
    log_kernels: Callable[[IntArray], FloatArray],
    values: FloatArray,
    second: FloatArray | None = None,
    at: IntArray | None = None,
) -> Neighbours:
    """Means of values (2, m) around the samples at each score, or at some of them, over all pairs.

    ``log_kernels`` gives those of all scores at some of them, one column each. The largest kernel of a point is
    factored out, so that far neighbours do not underflow.
    """
    mass, own = counts.mass, counts.own
    every = np.arange(counts.scores.size) if at is None else at
    m = every.size
    mean, log_sum, squared, concentration = (
        np.zeros((2, m)),
        np.full((2, m), -np.inf),
        np.zeros((2, m)),
        np.zeros((2, m)),
    )
    known = np.zeros((2, m), dtype=bool)
    plain = mass, mass * values
    # A row of relative weight w adds w² to sums of squares, one of w repeats adds w.
    heavy, own_heavy = (mass, own) if counts.integral else (counts.square, own**2)
    step = max(1, _TILE // max(counts.scores.size, 1))
    for a in range(0, m, step):
        here = slice(a, min(a + step, m))
        points = every[here]
        columns = np.arange(points.size)
        log_k = log_kernels(points)
        at_own = log_k[points, columns]
        # The other samples at the sample's own score.
        rest, value_rest = (
            _remainder(whole[:, points].sum(axis=0), part[:, points])
            for whole, part in zip(plain, (own, own * values), strict=True)
        )
        shared = (rest * (mass[:, points] > 0)).max(axis=0) > 0
        log_k[~mass.any(axis=0)] = -np.inf
        log_k[points, columns] = np.where(shared, at_own, -np.inf)
        largest = log_k.max(axis=0)
        alone = ~np.isfinite(largest)
        largest = np.where(alone, 0.0, largest)
        log_k[points, columns] = -np.inf
        kernel = np.exp(log_k - largest)
        home = np.where(alone, 0.0, np.exp(np.minimum(at_own - largest, 300.0)))
        total = plain[0].sum(axis=0) @ kernel + home * rest
        least = _LONE * own[:, points] * home if counts.cells > 0 else np.zeros_like(total)
        there = (total > least) & (mass[:, points] > 0)
        known[:, here] = there
        log_sum[:, here] = np.log(np.maximum(total, np.maximum(least, np.finfo(float).tiny))) + largest
        np.divide(plain[1].sum(axis=0) @ kernel + home * value_rest, total, out=mean[:, here], where=there)
        if second is None:
            continue
        np.square(kernel, out=kernel)
        for out, factor in ((concentration, np.ones_like(second)), (squared, second)):
            whole, part = (heavy * factor).sum(axis=0), (own_heavy * factor)[:, points]
            found = whole @ kernel + home**2 * _remainder(whole[points], part)
            np.divide(found, total**2, out=out[:, here], where=there)
    return Neighbours(mean, known, log_sum, squared, concentration)


def log_likelihood(counts: AxisCounts, around: Neighbours) -> float:
    """Leave-one-out log-likelihood of the scores."""
    return float((counts.mass * np.where(counts.mass > 0, around.log_sum, 0.0)).sum())


def _remainder(whole: FloatArray, part: FloatArray) -> FloatArray:
    """``whole - part``; 0 if only rounding errors remain."""
    rest = whole - part
    return np.where(np.abs(rest) <= 1e-12 * np.abs(whole), 0.0, rest)


def _from_grid(kernel: Kernels, sums: AxisCounts) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Gaps and weights (2, R, m) of both outcomes by kernels of one width, and which scores (R, m) are isolated.

    A sample's own share is computed on the same grid, so it is left out exactly.
    """
    size = len(kernel.matrix)
    cell, share = placed(sums.axis.places(sums.scores), (sums.axis.low, sums.axis.high), size - 1)
    keep = 1 - share
    total, positive = sums.mass.sum(axis=-2), sums.mass[:, 1]
    around, ones = (kernel.spread(share_out(cell, share, v, size - 1)).reshape(-1) for v in (total, positive))
    itself = keep**2 * kernel.own[cell] + share**2 * kernel.own[cell + 1] + share * keep * kernel.beside[cell]
    cell = cell + size * np.arange(len(cell))[:, None]
    all_near, ones_near = (v[cell] * keep + v[cell + 1] * share for v in (around, ones))
    gaps, weights = np.empty((2, *share.shape)), np.empty((2, *share.shape))
    lone = np.zeros(share.shape, dtype=bool)
    for outcome in (0, 1):
        own = itself * sums.own[:, outcome]
        density = all_near - own
        there = density > np.where(sums.cells > 0, _LONE, _FAR)[:, None] * own
        found = np.divide(ones_near - own * outcome, density, out=np.zeros_like(density), where=there)
        gaps[outcome] = np.clip(found, 0, 1) - sums.scores
        held = sums.mass[:, outcome] > 0
        lone |= (sums.cells == 0)[:, None] & held & ~there
        weights[outcome] = np.where(there, sums.mass[:, outcome], 0.0)
    return gaps, weights, lone


@dataclass(frozen=True, eq=False)
class Kernels:
    """Kernels between all nodes, and the narrow band of nodes that reach each block of them."""

    matrix: FloatArray
    blocks: tuple[tuple[slice, slice], ...]
    own: FloatArray
    beside: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> Kernels:
        """Find the band: outside it, kernels are below rounding relative to the largest of their column."""
        reached = matrix >= _ROUNDING * matrix.max(axis=0)
        blocks = []
        for start in range(0, len(matrix), _COLUMNS):
            columns = slice(start, min(start + _COLUMNS, len(matrix)))
            rows = np.flatnonzero(reached[:, columns].any(axis=1))
            blocks.append((slice(int(rows[0]), int(rows[-1]) + 1), columns))
        return cls(matrix, tuple(blocks), matrix.diagonal().copy(), matrix.diagonal(1) + matrix.diagonal(-1))

    def spread(self, counts: FloatArray) -> FloatArray:
        """``counts @ matrix``."""
        out = np.empty(counts.shape)
        for rows, columns in self.blocks:
            out[:, columns] = counts[:, rows] @ self.matrix[rows, columns]
        return out


@lru_cache(maxsize=8)
def kernels_of(h: float, cells: int, eps: float, form: str = "first") -> Kernels:
    """Kernels of a width at the nodes of a grid of θ."""
    nodes = Angles().nodes(cells)
    return Kernels.of(np.exp(log_kernel(nodes, nodes, h, eps, form)))
