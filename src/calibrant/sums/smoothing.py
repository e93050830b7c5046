"""Kernel smoothing with exact reflection at both ends of the domain, as a cosine transform or a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np

from ..data.types import AnyArray, FloatArray

#: Up to this many cells a matrix product beats two cosine transforms.
_MATRIX_CELLS = 256
_TILE = 1 << 18
#: Steps from which a sampled Gaussian's transform is known in closed form, and from which it needs no images.
_SAMPLED, _ONE_IMAGE = 0.5, 3.0
#: Grid nodes smoothed at a time.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Kernel:
    """A kernel: its (unnormalised) profile at ``u`` standard deviations, and its half-width in these units."""

    profile: Callable[[FloatArray], FloatArray]
    support: float


def _polynomial(power: int) -> Kernel:
    """``(1 - (u/a)²)^power`` on [-a, a]; its variance is ``a² / (2 power + 3)``, so ``a = √(2 power + 3)``."""
    a = float(np.sqrt(2 * power + 3))
    return Kernel(lambda u: np.clip(1 - (u / a) ** 2, 0, None) ** power, a)


def _cosine() -> Kernel:
    """``cos(π u / 2a)`` on [-a, a]; its variance is ``a² (1 - 8/π²)``."""
    a = float(1 / np.sqrt(1 - 8 / np.pi**2))
    return Kernel(lambda u: np.where(np.abs(u) < a, np.cos(np.pi / 2 * np.clip(u / a, -1, 1)), 0.0), a)


#: Kernel names and their kernels. The bandwidth is the kernel's standard deviation, for every kernel.
KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        # exp(-u²/2) is below 1e-16 of its peak beyond 8.6 standard deviations.
        "gaussian": Kernel(lambda u: np.exp(-0.5 * u * u), 8.6),
        "epanechnikov": _polynomial(1),
        "triweight": _polynomial(3),
        "cosine": _cosine(),
    }
)


@dataclass(frozen=True)
class Smoother:
    """Smoother of counts on ``cells + 1`` nodes by a kernel whose standard deviation is ``width`` grid steps.

    The counts are mirrored repeatedly at both ends and convolved with the kernel. An even
    periodic sequence is diagonalised by the DCT-I, so ``smooth`` is two transforms and a product, whatever
    the kernel and the width: O(G log G). ``quadrature`` are the trapezoid weights that integrate the result;
    ``quadrature @ smooth(c)`` equals ``c.sum()``: no mass is lost through the ends.
    """

    cells: int
    width: float
    kernel: str = "gaussian"

    @cached_property
    def _periodised(self) -> FloatArray:
        """Kernel at distances 0 … G steps, summed over its images at multiples of the period 2G."""
        kernel = KERNELS[self.kernel]
        g = self.cells
        distance = np.arange(g + 1, dtype=np.float64)
        images = int(np.ceil(kernel.support * self.width / (2 * g))) + 1
        total = np.zeros(g + 1)
        for m in range(-images, images + 1):
            total += kernel.profile((distance + 2 * g * m) / self.width)
        mass = total[0] + total[-1] + 2 * total[1:-1].sum()
        return np.asarray(total / mass)

    @property
    def peak(self) -> float:
        """Weight of a sample at its own node."""
        return float(self._periodised[0])

    def __call__(self, counts: FloatArray) -> FloatArray:
        """:meth:`smooth` by the faster of two methods: a matrix on small grids, else the transform."""
        return counts @ self.matrix if self.cells <= _MATRIX_CELLS else self.smooth(counts)

    @cached_property
    def _spectrum(self) -> FloatArray:
        from scipy.fft import dct

        return np.asarray(dct(self._periodised, type=1))

    @cached_property
    def quadrature(self) -> FloatArray:
        """Trapezoid weights: 1 inside, ½ at the two ends."""
        weights = np.ones(self.cells + 1)
        weights[0] = weights[-1] = 0.5
        return weights

    def smooth(self, counts: FloatArray) -> FloatArray:
        """Smoothed counts per node (last axis), such that ``quadrature @ result`` is the total count."""
        from scipy.fft import dct, idct

        mirrored = counts.astype(np.float64)
        mirrored[..., 0] *= 2  # a sample on the end meets its mirror image there
        mirrored[..., -1] *= 2
        return np.asarray(idct(dct(mirrored, type=1, axis=-1) * self._spectrum, type=1, axis=-1))

    @property
    def diagonal(self) -> FloatArray:
        """Weight of a sample at its own node, including its mirror images, for every node."""
        twice = 2 * np.arange(self.cells + 1)
        image = self._periodised[np.minimum(twice, 2 * self.cells - twice)]
        return np.asarray(self._periodised[0] + image)

    def smooth_squares(self, counts: FloatArray) -> FloatArray:
        """Sums of counts (1-D) with the squares of the weights of :meth:`smooth`. Cost O(G²).

        The weight of a sample near an end is the sum of those of the kernel and of its image, so its square is not
        smoothing by a squared kernel.
        """
        g = self.cells
        j = np.arange(g + 1)
        out: FloatArray = np.zeros(g + 1)
        rows = max(1, _TILE // (g + 1))
        for start in range(0, g + 1, rows):
            i = j[start : start + rows, None]
            total = i + j
            weight = self._periodised[np.abs(i - j)] + self._periodised[np.minimum(total, 2 * g - total)]
            out += counts[start : start + rows] @ weight**2
        return out

    @cached_property
    def matrix(self) -> FloatArray:
        """Smoothing as a dense matrix M, ``smooth(c) = c @ M``, for small grids and many vectors."""
        g = self.cells
        i = np.arange(g + 1)
        near = self._periodised[np.abs(i[:, None] - i[None, :])]
        total = i[:, None] + i[None, :]
        mirror = self._periodised[np.where(total > g, 2 * g - total, total)]
        matrix: FloatArray = near + mirror
        return matrix

    @cached_property
    def squares(self) -> FloatArray:
        """Squared entries of the matrix."""
        return self.matrix**2


def smoothed(counts: FloatArray, transform: FloatArray) -> FloatArray:
    """Counts (…, R, G + 1) smoothed with one kernel per problem, as :meth:`Smoother.smooth` does for one.

    ``transform`` is the kernels' :func:`spectrum`, (R, G + 1).
    """
    from scipy.fft import dct, idct

    mirrored = np.array(counts, dtype=np.float64)
    mirrored[..., [0, -1]] *= 2  # a sample on the end meets its mirror image there
    values = dct(mirrored, type=1, axis=-1, overwrite_x=True)
    values *= transform
    return np.asarray(idct(values, type=1, axis=-1, overwrite_x=True))


@dataclass(frozen=True, eq=False)
class Smoothers:
    """Smoother of counts (…, R, G + 1), with one kernel per problem, given by transforms (R, G + 1)."""

    transform: FloatArray

    def __call__(self, counts: FloatArray) -> FloatArray:
        """Smoothed counts."""
        return smoothed(counts, self.transform)

    @cached_property
    def peak(self) -> FloatArray:
        """Weight of a sample at its own node, (R, 1)."""
        return peak_of(self.transform)[:, None]


def spectrum(cells: int, width: FloatArray, kernel: str) -> FloatArray:
    """Transform (R, G + 1) of kernels with sum 1 and standard deviations ``width`` (R,) in grid steps."""
    from scipy.fft import dct

    w = width[:, None]
    narrowest = float(width.min(initial=np.inf))
    if kernel == "gaussian" and narrowest >= _SAMPLED:
        # Sampling adds the images at multiples of 2π: the four nearest are all that double precision holds.
        angle = np.pi / cells * np.arange(cells + 1)
        out: FloatArray = np.exp(-0.5 * (w * angle) ** 2)
        if narrowest < _ONE_IMAGE:
            for turn in np.pi * np.array([-4, -2, 2, 4]):
                out += np.exp(-0.5 * (w * (angle + turn)) ** 2)
            out /= out[:, :1]
        return out
    profile, support = KERNELS[kernel].profile, KERNELS[kernel].support
    distance = np.arange(cells + 1.0)
    total = profile(distance / w)
    reach = support * float(width.max(initial=0.0))
    for turn in range(2 * cells, int(reach + cells) + 2 * cells, 2 * cells):
        if turn - cells <= reach:
            total = total + profile((turn - distance) / w) + profile((turn + distance) / w)
    out = dct(total, type=1, axis=-1)
    return np.asarray(out / out[:, :1])


def by_cells(wanted: FloatArray, least: int, most: int, together: int | None = None) -> Iterator[tuple[int, AnyArray]]:
    """Group problems by the smallest ``least`` times a power of two, up to ``most``, of at least ``wanted`` cells.

    Groups have ``together`` problems, or as many as fit into the cache.
    """
    cells = np.full(wanted.shape, min(least, most))
    while (short := (cells < wanted) & (cells < most)).any():
        cells[short] *= 2
    for size in np.unique(cells).tolist():
        some = np.flatnonzero(cells == size)
        step = together or max(1, _BLOCK // size)
        for a in range(0, len(some), step):
            yield size, some[a : a + step]


def peak_of(transform: FloatArray) -> FloatArray:
    """Weight of a sample at its own node under kernels with transforms (R, G + 1): the inverse transform at 0."""
    cells = transform.shape[-1] - 1
    return np.asarray((2 * transform.sum(axis=-1) - transform[:, 0] - transform[:, -1]) / (2 * cells))


@lru_cache(maxsize=16)
def trapezoid(cells: int) -> FloatArray:
    """Weights that integrate over a grid: 1 inside, ½ at the two ends."""
    return Smoother(cells, 1.0).quadrature
