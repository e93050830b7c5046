"""`SimplexBinned`: canonical calibration error over cells of the probability simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.problem import VectorProblem
from ..data.types import AnyArray, FloatArray
from ..data.weights import ones_or
from ..sums import resolve_n_bins
from ..sums.edges import EDGE_UNITS
from .base import Estimator
from .norm import vector_power
from .path import SCALES, Path

#: Numbers drawn for an interval in all, and held at once.
_DRAWN_NUMBERS, _BLOCK_NUMBERS = 4_000_000, 1_000_000


@dataclass(frozen=True)
class SimplexBinned(Estimator):
    r"""Canonical calibration error with every class' probability cut into equal parts.

    .. math:: \Big(\sum_j \frac{n_j}{n} \,\big\lVert \bar y_j - \bar q_j \big\rVert_p^p\Big)^{1/p}

    with the class frequencies and the mean probability vector of cell j; p = inf is the largest component gap.

    Parameters
    ----------
    n_bins : int, "sqrt" or "cbrt", default 5
        Parts m of every class' probability. ``"sqrt"`` and ``"cbrt"`` choose m so that ``m^(K-1)`` is about √n or ∛n.

    Notes
    -----
    Cells lie between the planes ``q_k = j / m`` of all classes k: m equal bins for K = 2, m² equal triangles for K = 3,
    tetrahedra and octahedra for K = 4. They are the same for any order of the classes; a probability on a plane belongs
    to the side of 1/K, and to a cell of its own where the plane is at 1/K. (The edgewise subdivision, whose simplices
    are all equal, cuts the octahedra further, in a way that depends on the order of the classes.) Range [0, 2^(1/p)].
    Bias: upward and large as soon as cells hold few samples, which for K > 5 is always. Cost O(n K log n).

    References
    ----------
    Edelsbrunner & Grayson (2000), *Edgewise subdivision of a simplex*; Popordanoska et al. (2022) for the
    binned canonical error.

    Examples
    --------
    >>> import calibrant as cal
    >>> P = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    >>> round(cal.calibration_error([0, 1, 1], P, notion="canonical", estimator=cal.SimplexBinned(3)), 3)
    0.667
    """

    n_bins: int | str = 5
    serves: ClassVar[frozenset[str]] = frozenset({"vector"})

    def __post_init__(self) -> None:
        b = self.n_bins
        if (isinstance(b, str) and b not in ("sqrt", "cbrt")) or isinstance(b, bool):
            raise ValueError(f"n_bins must be an int >= 1, 'sqrt' or 'cbrt'; got {b!r}")
        if not isinstance(b, (str, int, np.integer)):
            raise TypeError(f"n_bins must be an int >= 1, 'sqrt' or 'cbrt'; got {b!r}")
        if not isinstance(b, str):
            if b < 1:
                raise ValueError(f"n_bins must be an int >= 1, 'sqrt' or 'cbrt'; got {b!r}")
            object.__setattr__(self, "n_bins", int(b))

    def power(self, problem: VectorProblem, norm: float) -> float:
        """``errorᵖ`` of a vector problem."""
        mass, _, gap = self._cells(problem)
        return float(vector_power(gap, mass, norm))

    def path(self, problem: VectorProblem, norm: float, n_resamples: int, rng: np.random.Generator) -> Path:
        """What the estimator reads when the true gaps are a multiple of those found; see :mod:`..inference.intervals`.

        Draws come in blocks, and there are fewer of them when there are many cells: memory is bounded.
        """
        mass, mean, gap = self._cells(problem)
        size = mass * (problem.effective_size / mass.sum())
        n_draws = int(np.clip(_DRAWN_NUMBERS // mean.size, 40, n_resamples))
        block = max(1, _BLOCK_NUMBERS // mean.size)
        powers = np.empty((SCALES.size, n_draws))
        for a in range(0, n_draws, block):
            rows = slice(a, min(a + block, n_draws))
            count = rng.poisson(size, size=(rows.stop - rows.start, size.size)).astype(np.float64)
            noise = rng.standard_normal((*count.shape, mean.shape[1]))
            noise /= np.sqrt(np.where(count > 0, count, 1.0))[..., None]
            for i, scale in enumerate(SCALES):
                chance = np.clip(mean + scale * gap, 0, 1)
                spread = np.sqrt(chance)
                # Covariance diag(p) - p pᵀ, that of one categorical draw.
                shake = spread * noise - chance * (noise * spread).sum(axis=-1, keepdims=True)
                powers[i, rows] = vector_power(chance - mean + shake, count, norm)
        truths = np.array([vector_power(np.clip(mean + t * gap, 0, 1) - mean, mass, norm) for t in SCALES])
        return Path(powers, truths, float(vector_power(gap, mass, norm)))

    def _cells(self, problem: VectorProblem) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mass, mean probability vector and gap vector of each cell that holds samples."""
        n, k = problem.probs.shape
        w = ones_or(problem.weights, n)
        cuts = (
            self.n_bins
            if isinstance(self.n_bins, int)
            else _cuts(resolve_n_bins(self.n_bins, problem.effective_size), k)
        )
        cell = simplex_cells(problem.probs, cuts, problem.eps)
        m = int(cell.max()) + 1
        mass = np.bincount(cell, w, minlength=m).astype(np.float64)
        mean, observed = np.empty((m, k)), np.empty((m, k))
        for c in range(k):
            mean[:, c] = np.bincount(cell, w * problem.probs[:, c], minlength=m)
            observed[:, c] = np.bincount(cell, w * (problem.codes == c), minlength=m)
        used = mass > 0
        mass, mean, observed = mass[used], mean[used], observed[used]
        return mass, mean / mass[:, None], (observed - mean) / mass[:, None]


def _cuts(cells: int, k: int) -> int:
    """Cuts an edge that make about ``cells`` cells."""
    return max(1, int(round(float(cells) ** (1 / max(k - 1, 1)))))  # noqa: RUF046 (mypy sees Any)


def simplex_cells(probs: FloatArray, cuts: int, eps: float) -> AnyArray:
    """Cell number of each row between the planes ``p_c = j / cuts`` of all classes (numbers are dense).

    A probability on a plane belongs to the side of 1/K, and to a cell of its own where the plane is at 1/K: so classes
    are treated alike.
    """
    k = probs.shape[1]
    position = probs.astype(np.float64) * cuts
    nearest = np.rint(position)
    on_plane = np.abs(position - nearest) <= min(EDGE_UNITS * eps * cuts, 0.5)
    # In half steps: between the planes j and j + 1 is 2j + 1, and on j, where that is 1/K, is 2j.
    inward = 2 * nearest + np.sign(cuts - nearest * k)
    level = np.clip(np.where(on_plane, inward, 2 * np.floor(position) + 1), 1, 2 * cuts - 1)
    _, cell = np.unique(level.astype(np.int32), axis=0, return_inverse=True)
    return np.asarray(cell).reshape(-1)
