"""`SimplexBinned`: canonical calibration error over cells of the probability simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.checks import check_choice
from ..data.problem import VectorProblem
from ..data.types import AnyArray, FloatArray
from ..data.weights import ones_or
from ..sums import resolve_n_bins
from ..sums.edges import EDGE_UNITS
from .base import SCALES, Estimator, TruthPath, check_n_bins
from .norm import vector_power

#: Numbers drawn for an interval in total, and held at once.
_DRAWN_NUMBERS, _BLOCK_NUMBERS = 4_000_000, 1_000_000


@dataclass(frozen=True)
class SimplexBinned(Estimator):
    r"""Canonical calibration error over cells of the simplex, with the probability of each class cut into equal parts.

    .. math:: \Big(\sum_j \frac{n_j}{n} \,\big\lVert \bar y_j - \bar q_j \big\rVert_p^p\Big)^{1/p}

    with the class frequencies and the mean probability vector of cell j; p = inf is the largest component gap. For the
    notion ``"drawn-class"``: ``(Σ_j n_j/n Σ_c ȳ_jc |ȳ_jc - q̄_jc|^p)^(1/p)``.

    Parameters
    ----------
    n_bins : int, "sqrt" or "cbrt", default 5
        Parts m per class probability. ``"sqrt"`` and ``"cbrt"`` choose m so that ``m^(K-1)`` is about √n or ∛n.
    center : {"cell", "row"}, default "cell"
        Vector with which the frequencies of a cell are compared: the mean vector of the cell; or each row's own vector,
        ``(1/n Σ_i ‖ȳ(cell of i) - q_i‖^p)^(1/p)``, as printed by Popordanoska et al., which adds the spread of vectors
        within a cell and is never smaller than the former (Jensen).

    See Also
    --------
    calibrant.estimators.DirichletKernel : Kernels instead of cells.
    calibrant.plot.SimplexDisplay : Draws the cells of three classes.

    Notes
    -----
    Cells lie between the planes ``q_k = j / m`` of all classes k: m equal bins for K = 2, m² equal triangles for K = 3,
    tetrahedra and octahedra for K = 4. They are the same for any order of the classes; a probability on a plane belongs
    to the side of 1/K, and to a separate cell if the plane is at 1/K. (The edgewise subdivision, whose simplices
    are all equal, cuts the octahedra further, in a way that depends on the order of the classes.) Range [0, 2^(1/p)].
    Bias: upward, and large if cells contain few samples, which is always the case for K > 5. Cost O(n K log n).

    References
    ----------
    Edelsbrunner & Grayson (2000), *Edgewise subdivision of a simplex*; Popordanoska et al. (2022) for the
    binned canonical error.

    Examples
    --------
    >>> import calibrant as cal
    >>> P = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    >>> round(cal.calibration_error([0, 1, 1], P, notion="canonical", estimator=cal.estimators.SimplexBinned(3)), 3)
    0.667
    """

    n_bins: int | str = 5
    center: str = "cell"
    _serves: ClassVar[frozenset[str]] = frozenset({"vector", "drawn"})

    def __post_init__(self) -> None:
        check_choice("center", self.center, ("cell", "row"))
        object.__setattr__(self, "n_bins", check_n_bins(self.n_bins, "an int >= 1, 'sqrt' or 'cbrt'"))

    def power(self, problem: VectorProblem, norm: float) -> float:
        """``errorᵖ`` of a vector problem."""
        return _Cut.of(self, problem).data(norm)

    def _path(self, problem: VectorProblem, norm: float, n_resamples: int, rng: np.random.Generator) -> TruthPath:
        """Estimates if the true gaps are multiples of the observed ones; see :mod:`..measure.intervals`.

        Samples are drawn in blocks, and fewer of them if each is large, which bounds memory.
        """
        cut = _Cut.of(self, problem)
        mean, gap = cut.mean, cut.observed - cut.mean
        size = cut.mass * (problem.effective_size / cut.mass.sum())
        n_draws = int(np.clip(_DRAWN_NUMBERS // cut.probs.size, 40, n_resamples))
        block = max(1, _BLOCK_NUMBERS // cut.probs.size)
        powers = np.empty((SCALES.size, n_draws))
        chances = [np.clip(mean + scale * gap, 0, 1) for scale in SCALES]
        for a in range(0, n_draws, block):
            rows = slice(a, min(a + block, n_draws))
            count = rng.poisson(size, size=(rows.stop - rows.start, size.size)).astype(np.float64)
            noise = rng.standard_normal((*count.shape, mean.shape[1]))
            noise /= np.sqrt(np.where(count > 0, count, 1.0))[..., None]
            for i, chance in enumerate(chances):
                spread = np.sqrt(chance)
                # Covariance diag(p) - p pᵀ, that of one categorical draw.
                shake = spread * noise - chance * (noise * spread).sum(axis=-1, keepdims=True)
                powers[i, rows] = cut.read(chance + shake, count, norm)
        # The variation within a cell is not known: the true value is that of its means.
        truths = np.array([vector_power(c - mean, cut.mass, norm, c if cut.drawn else None) for c in chances])
        return TruthPath(powers, truths, cut.data(norm))


@dataclass(frozen=True, eq=False)
class _Cut:
    """Non-empty cells, (m,), and the u vectors with which their frequencies are compared.

    Attributes
    ----------
    mass : ndarray of shape (m,)
    mean, observed : ndarray of shape (m, K)
        Mean probability vectors, and frequencies of classes.
    probs : ndarray of shape (u, K)
        The means, or the rows' own vectors; of ``weight`` (u,) in the cells ``home`` (u,).
    happened : ndarray of shape (u, K)
        Frequencies of classes among these.
    drawn : bool
    """

    mass: FloatArray
    mean: FloatArray
    observed: FloatArray
    probs: FloatArray
    weight: FloatArray
    home: AnyArray
    happened: FloatArray
    drawn: bool

    @classmethod
    def of(cls, how: SimplexBinned, problem: VectorProblem) -> _Cut:
        n, k = problem.probs.shape
        w = ones_or(problem.weights, n)
        probs, codes = problem.probs.astype(np.float64), problem.codes
        if not w.all():
            probs, codes, w = probs[w > 0], codes[w > 0], w[w > 0]
        cells = how.n_bins if isinstance(how.n_bins, int) else resolve_n_bins(how.n_bins, problem.effective_size)
        cuts = cells if isinstance(how.n_bins, int) else _cuts(cells, k)
        home = simplex_cells(probs, cuts, problem.eps)
        happened = (codes[:, None] == np.arange(k)).astype(np.float64)
        mass = np.bincount(home, w).astype(np.float64)
        mean, observed = (
            np.stack([np.bincount(home, w * column) for column in of.T], axis=1) / mass[:, None]
            for of in (probs, happened)
        )
        if how.center == "cell":
            return cls(mass, mean, observed, mean, mass, np.arange(len(mass)), observed, problem.drawn)
        return cls(mass, mean, observed, probs, w, home, happened, problem.drawn)

    def data(self, norm: float) -> float:
        """Estimate from the data."""
        gap = self.observed[self.home] - self.probs
        return float(vector_power(gap, self.weight, norm, self.happened if self.drawn else None))

    def read(self, frequency: FloatArray, count: FloatArray, norm: float) -> FloatArray:
        """Estimates from samples with other frequencies (…, m, K) and counts (…, m) of the cells."""
        weight = self.weight * (count / self.mass)[..., self.home]
        seen = frequency[..., self.home, :]
        return vector_power(seen - self.probs, weight, norm, np.clip(seen, 0, 1) if self.drawn else None)


def _cuts(cells: int, k: int) -> int:
    """Number of cuts per edge for about ``cells`` cells."""
    return max(1, int(round(float(cells) ** (1 / max(k - 1, 1)))))  # noqa: RUF046 (mypy sees Any)


def simplex_cells(probs: FloatArray, cuts: int, eps: float) -> AnyArray:
    """Cell number of each row between the planes ``p_c = j / cuts`` of all classes (numbers are dense).

    A probability on a plane belongs to the side of 1/K, and to a separate cell if the plane is at 1/K, so that classes
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
