"""`Density`: the calibration error as a ratio of two reflected kernel densities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_choice
from ..data.types import FloatArray
from ..sums import KERNELS, BandwidthRule, GridMoments, Smoother, resolve_bandwidth
from ..sums.bandwidth import RULES, one_by_one
from ..sums.base import number_as_often
from ..sums.smoothing import Smoothers, by_cells, peak_of, smoothed, spectrum, trapezoid
from .base import Cells, GridEstimator, ResampleInputs, check_bandwidth, supported
from .norm import mean_power

#: Grid cells per bandwidth: coarse grids are still this fine, which keeps discretisation far below noise.
CELLS_PER_BANDWIDTH = 6.0
COARSEST = 128
#: Number of bandwidths beyond which every kernel is 0 in double precision.
_REACH = 9.0
#: Samples below this size are read on the full grid.
_SMALL = 8
#: Candidate standard deviations, as fractions of the domain, widest first.
WIDTHS = tuple(float(w) for w in 2.0 ** (-np.arange(19) / 2))
#: Below this fraction of a sample's own weight there is no other sample nearby: a grid with six cells per bandwidth
#: gives that weight to about 1 %.
_ALONE = 0.05


@dataclass(frozen=True)
class Density(GridEstimator):
    r"""Density-based calibration error ECE_d.

    .. math:: \Big(\int f(s)\, |rel(s) - s|^p \,ds\Big)^{1/p}, \qquad rel(s) = \pi\, f(s \mid o=1) / f(s)

    with kernel densities of all scores and of the positives' scores, with the same bandwidth, mirrored at the ends
    of the domain so that no mass is lost.

    Parameters
    ----------
    bandwidth : {"silverman", "scott", "isj", "loo"}, float or callable, default "silverman"
        Standard deviation of the kernel in score units, or a rule that finds it from the scores. ``"loo"`` uses the
        outcomes: it selects the width, among ``2^(-k/2)`` of the domain, k = 0 … 18, with the largest leave-one-out
        likelihood of the outcomes (:func:`.log_likelihood`). A callable gets ``(scores, weights)``: the grid nodes in
        use and the counts on them. Rules are applied per problem (class).
        A bandwidth below the grid step 1/4096 (of the domain) is raised to it.
    kernel : {"gaussian", "triweight", "epanechnikov", "cosine"}, default "gaussian"
        Shape of the kernel.

    See Also
    --------
    calibrant.estimators.ResidualKernel : Smooths residuals, without the leakage bias of a ratio.
    calibrant.estimators.Smooth : Finds its bandwidth as a fixed point.

    Notes
    -----
    Range [0, 1]. Bias: upward for small n (noise), about n^(-2/5) with Silverman's rule; upward near the ends of
    the domain and where the density of scores is steep, since the kernel averages the outcomes of unequal scores
    (of order bandwidth²); downward where it averages over gaps of opposite signs. p = inf is the largest gap among
    scores with an effective kernel sample size of at least 0.5. The rules give bandwidth 0 if all scores are equal, and
    Silverman's also if most samples share one value (interquartile range 0); it is raised to one grid step. Without
    positives the observed frequency is 0 wherever there is data. Where the density of the scores changes within a
    bandwidth (piles of scores at 0 and 1) the ratio leaks: the error of a calibrated model exceeds 0 by more than
    noise, and the interval of :func:`estimate` does not correct this; :class:`ResidualKernel` does not leak.
    Cost: O(n + G log G), G = 4096; memory O(G).

    References
    ----------
    Posocco & Bonnefoy (2021), *Estimating Expected Calibration Errors*, §4.4.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # true error: ∫|p² - p| dp = 1/6
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.estimators.Density()) - 1 / 6) < 0.01)
    True
    """

    _cells_are_atoms: ClassVar[bool] = True
    _cells_on_scores: ClassVar[bool] = True
    bandwidth: BandwidthRule = "silverman"
    kernel: str = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, (*RULES, "loo"), function=True))
        check_choice("kernel", self.kernel, KERNELS)

    def read(self, sums: GridMoments, norm: float) -> FloatArray:
        """``errorᵖ`` from grid counts, on the coarsest grid with six cells per bandwidth; p = inf on the full grid."""
        return self._read_with(sums, self._widths(sums), norm)

    def _read_with(self, sums: GridMoments, widths: FloatArray, norm: float) -> FloatArray:
        """:meth:`read` with given bandwidths, (…)."""
        g, h = sums.rows, np.reshape(widths, -1)
        out: FloatArray = np.empty(len(g))
        # Blocks are the same counts again and again, and lie on the grid that is wanted.
        alike = len(g) // g.blocks if g.blocks > 1 else None
        wanted = cells_wanted(g, h, norm) if alike is None else np.full(len(g), float(g.cells))
        known: tuple[FloatArray, FloatArray] | None = None
        for cells, some in by_cells(wanted, COARSEST, g.cells, alike):
            part = g[some].on(cells)
            if known is None or alike is None:
                width = narrowed(h[some], g.step, part.step) / part.step
                # One row of a table for all where they are of one problem.
                width = width[:1] if float(np.ptp(width)) == 0 else width
                transform = spectrum(cells, width, self.kernel)
                known = transform, smoothed(part.count, transform)
            transform, density = known
            positive = smoothed(part.positive, transform)
            if norm == 1:  # the density cancels
                np.clip(positive, 0, np.maximum(density, 0.0), out=positive)
                positive -= part.nodes * density
                out[some] = np.abs(positive, out=positive) @ trapezoid(cells)
                continue
            scale, peak = np.asarray(part.unit)[:, None], peak_of(transform)[:, None]
            present = supported(density * scale, peak, norm)
            observed = np.divide(positive, density, out=np.zeros_like(density), where=present)
            gap = np.clip(observed, 0, 1) - part.nodes
            out[some] = mean_power(gap, np.where(present, density * trapezoid(cells), 0.0), norm)
        if norm == 1:
            total = g.count.sum(axis=-1)
            out = np.divide(out, total, out=np.full(out.shape, np.nan), where=total > 0)
        return out.reshape(sums.shape)

    def _cells(self, sums: GridMoments) -> Cells:
        """Cells of a coarse grid with at least six cells per bandwidth, with their smoother."""
        return kernel_cells(sums, float(self._widths(sums)), self.kernel)

    def _held_together(self, sums: GridMoments, problems: int, most: int) -> Iterator[ResampleInputs]:
        """Estimators with the bandwidths found, and the counts on the grids used for them."""
        h = np.reshape(self._widths(sums), -1)
        for cells, some in by_cells(CELLS_PER_BANDWIDTH * (sums.high - sums.low) / h, COARSEST, sums.cells):
            grid = sums[some].on(cells)
            widths = narrowed(h[some], sums.step, grid.step)
            sizes = grid.shortest(_REACH * widths / grid.step, COARSEST)
            for size in np.unique(sizes).tolist():
                alike = np.flatnonzero(sizes == size)
                step = max(1, most // size)
                for a in range(0, len(alike), step):
                    rows = alike[a : a + step]
                    yield ResampleInputs(some[rows], _Widths(self, widths[rows]), grid[rows].cropped(size))

    def _widths(self, sums: GridMoments) -> FloatArray:
        """Bandwidth of each problem, (…)."""
        if self.bandwidth == "loo":
            return one_by_one(sums, lambda one: loo_width(one, self.kernel, residual=False))
        return resolve_bandwidth(self.bandwidth, sums)


@dataclass(frozen=True, eq=False)
class _Widths:
    """Estimator for samples of some problems, each with the bandwidth found in its data."""

    estimator: Density
    widths: FloatArray

    _cells_are_atoms: ClassVar[bool] = True

    def _cells(self, sums: GridMoments) -> Cells:
        """Nodes of the grid as cells."""
        scores, count, positive = sums.atoms
        # Each problem has a kernel of its own; they are asked for what smooths, and for nothing else.
        smoothers: Any = Smoothers(
            spectrum(sums.cells, np.maximum(self.widths / sums.step, 0.5), self.estimator.kernel)
        )
        return Cells(scores, count, positive, smoothers, trapezoid(sums.cells))

    def read(self, sums: GridMoments, norm: float) -> FloatArray:
        """``errorᵖ`` of blocks of samples, equally many per problem, one problem after the other."""
        each = number_as_often(self.widths, np.empty(len(sums) // sums.blocks))
        return self.estimator._read_with(sums, np.tile(each, sums.blocks), norm)


def cells_wanted(grid: GridMoments, h: FloatArray, norm: float) -> FloatArray:
    """Number of cells that resolves each bandwidth; all cells for a maximum and for small samples."""
    wanted = CELLS_PER_BANDWIDTH * (grid.high - grid.low) / h
    whole = np.isinf(norm) | (np.asarray(grid.effective_size) < _SMALL)
    return np.where(whole, float(grid.cells), wanted)


def narrowed(h: Any, fine: float, coarse: float) -> Any:
    """Bandwidth on a coarse grid, reduced because sharing samples between nodes spreads them by √(1/6) steps."""
    return np.sqrt(h**2 - (coarse**2 - fine**2) / 6)


def on_cells(sums: GridMoments, h: float) -> GridMoments:
    """Counts of one problem on the coarsest grid with at least six cells per bandwidth."""
    wanted = CELLS_PER_BANDWIDTH * (sums.high - sums.low) / h
    size = min(COARSEST, sums.cells)
    while size < min(wanted, sums.cells):
        size *= 2
    return sums.on(size)


def loo_width(sums: GridMoments, kernel: str, *, residual: bool) -> float:
    """Bandwidth over scores with the largest leave-one-out likelihood of the outcomes."""
    # Among equals the widest that does no harm: a wide kernel over residuals has less noise, one over outcomes leaks.
    widths = [w * (sums.high - sums.low) for w in (WIDTHS if residual else WIDTHS[::-1])]
    return choose(widths, lambda h: kernel_cells(sums, h, kernel, residual=residual))


def kernel_cells(sums: GridMoments, h: float, kernel: str, *, residual: bool = False) -> Cells:
    """Grid nodes as cells, on the coarsest grid with at least six cells per bandwidth."""
    grid = on_cells(sums, h)
    h = h if residual else float(narrowed(h, sums.step, grid.step))
    smoother = Smoother(grid.cells, max(h / grid.step, 0.5), kernel)
    scores, count, positive = grid.atoms
    return Cells(scores, count, positive, smoother, smoother.quadrature, residual)


def residual_power(
    density: FloatArray, residual: FloatArray, noise: FloatArray | None, peak: float | FloatArray, norm: float
) -> FloatArray:
    """Mean p-th power of smoothed residuals over smoothed counts, (R,), minus ``noise`` (over squared counts)."""
    weight = density * trapezoid(density.shape[-1] - 1)
    present = supported(density, peak, norm)
    gap = np.divide(residual, density, out=np.zeros_like(residual), where=present)
    if noise is not None:
        variance = np.divide(noise, density**2, out=np.zeros_like(density), where=present)
        gap = np.sqrt(np.maximum(gap**2 - variance, 0.0))
    return mean_power(gap, np.where(present, weight, 0.0), norm)


def choose(candidates: Sequence[float], make: Callable[[float], Cells]) -> float:
    """The candidate whose cells predict outcomes best; the first one if tied."""
    likelihood = [log_likelihood(make(c)) for c in candidates]
    return candidates[int(np.argmax(likelihood))]


def log_likelihood(cells: Cells) -> float:
    """``Σ log P(o_i)`` with the frequency around sample i estimated from the other samples.

    A sample's own weight at its node, mirror images included, is the smoother's diagonal, and is subtracted exactly
    from both sums (for relative weights, the mean weight). Frequencies are clipped to [1/(n+2), 1 - 1/(n+2)]. Without
    another sample the frequency is ½; otherwise uninformatively narrow kernels would be rewarded. Below about a hundred
    samples the likelihood hardly distinguishes widths; repeated rows predict each other and so favour narrow kernels.
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
