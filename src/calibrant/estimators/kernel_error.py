"""`KernelCalibrationError`: the kernel calibration error (SKCE), called MMCE for confidences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_choice, check_int
from ..data.problem import Problem, VectorProblem
from ..data.types import FloatArray, IntArray
from ..data.weights import ones_or
from .base import EstimatorWithSE, PowerAndSE, check_bandwidth
from .norm import root, to_power

KERNELS = ("laplace", "gaussian")
DISTANCES = ("total-variation", "euclidean")
STATISTICS = ("unbiased", "biased", "linear")
#: Kernel values held at a time, and number of rows used for the median distance.
_TILE = 1 << 19
_MEDIAN_ROWS = 1000
#: Residuals of resampled outcomes held at a time.
_SETS = 1 << 22


@dataclass(frozen=True, eq=False)
class _Sample:
    """Scores as points (n, K), residuals and weights of the rows with weight; ``rows``: their indices."""

    rows: IntArray
    points: FloatArray
    residuals: FloatArray
    weights: FloatArray
    integral: bool
    size: float

    @classmethod
    def of(cls, problem: Problem | VectorProblem) -> _Sample:
        if isinstance(problem, VectorProblem):
            points = problem.probs.astype(np.float64)
            happened = (problem.codes[:, None] == np.arange(points.shape[1])).astype(np.float64)
        else:
            points = problem.scores.astype(np.float64)[:, None]
            happened = problem.outcomes.astype(np.float64)[:, None]
        weights = ones_or(problem.weights, len(points))
        rows = np.flatnonzero(weights > 0)
        residuals = happened[rows] - points[rows]
        return cls(rows, points[rows], residuals, weights[rows], problem.integral, problem.effective_size)

    @cached_property
    def alone(self) -> FloatArray:
        """Weights of the pairs of a sample with itself: once per repeat, or the square of a relative weight."""
        return self.weights if self.integral else self.weights**2

    @cached_property
    def pairs(self) -> float:
        """Weight of all pairs of different samples."""
        return float(self.weights.sum()) ** 2 - float(self.alone.sum())


@dataclass(frozen=True)
class KernelCalibrationError(EstimatorWithSE):
    r"""Kernel calibration error (KCE): the largest mean product of residuals with a function from a kernel's unit ball.

    .. math:: \mathrm{SKCE} = E\, \kappa(f, f')\, (y - f)^\top (y' - f'), \qquad \mathrm{KCE} = \sqrt{\mathrm{SKCE}}

    for independent pairs (f, y), (f', y') of probability vectors and one-hot outcomes, that is with the matrix-valued
    kernel ``κ ⊗ identity``. It is 0 for calibrated models only, but it is not an L_p error: its size depends on the
    kernel. For one score at a time f is the score and y the 0/1 outcome.

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}, default "laplace"
        ``κ = exp(-d/ν)`` or ``exp(-d²/(2ν²))``.
    bandwidth : "median" or float, default "median"
        The bandwidth ν > 0. ``"median"``: the median distance between two samples (beyond 1000, of 1000 evenly spaced
        in sorted order).
    distance : {"total-variation", "euclidean"}, default "total-variation"
        ``½ Σ_c |f_c - f'_c|`` or ``√Σ_c (f_c - f'_c)²``; for one score at a time ``|s - s'|`` in either case.
    statistic : {"unbiased", "biased", "linear"}, default "unbiased"
        Estimator of SKCE: the mean over all pairs of different samples; over all pairs, including each sample with
        itself; or over consecutive blocks of ``block`` samples, which depends on their order and costs O(n · block).
    block : int ≥ 2, default 2
        Samples per block for ``"linear"``.

    See Also
    --------
    calibrant.significance.kernel_test : The test based on this statistic.
    calibrant.estimators.DirichletKernel : An L_p error of probability vectors.

    Notes
    -----
    ``KernelCalibrationError(bandwidth=0.4, statistic="biased")`` with the notion ``"confidence"`` is MMCE. ``norm``
    only affects how classes are combined. Range [0, √2] for vectors and [0, 1] for one score; ``"unbiased"``
    and ``"linear"`` squares are signed, and negative about half the time for a calibrated model: the error is then 0
    (:func:`squared_calibration_error` returns the square). Whole-number weights are repeats, except for ``"linear"``,
    where a row remains one sample with a larger weight. NaN without a pair. Intervals are normal, with the first- and
    second-order terms of the U-statistic's variance. Cost O(n² K), memory O(n K).

    References
    ----------
    Widmann, Lindsten & Zachariah (2019), *Calibration tests in multi-class classification: a unifying framework*;
    Kumar, Sarawagi & Jain (2018) for MMCE.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], 500)
    >>> y = (rng.random((500, 1)) > P.cumsum(axis=1)).sum(axis=1)  # calibrated
    >>> kce = cal.estimators.KernelCalibrationError()
    >>> bool(abs(cal.squared_calibration_error(y, P, notion="canonical", estimator=kce)) < 0.002)
    True
    """

    kernel: str = "laplace"
    bandwidth: float | str = "median"
    distance: str = "total-variation"
    statistic: str = "unbiased"
    block: int = 2
    _serves: ClassVar[frozenset[str]] = frozenset({"scalar", "vector"})

    def __post_init__(self) -> None:
        for name, allowed in (("kernel", KERNELS), ("distance", DISTANCES), ("statistic", STATISTICS)):
            check_choice(name, getattr(self, name), allowed)
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, ("median",)))
        check_int("block", self.block, 2)

    def _inner(self, norm: float) -> float:
        """2: the estimate is a square."""
        return 2.0

    def power(self, problem: Any, norm: float) -> float:
        """The error to the p-th power."""
        return to_power(root(self._square(problem), 2), norm)

    def _square(self, problem: Any) -> float:
        """SKCE."""
        return self._power_and_se(problem, 2).power

    def _power_and_se(self, problem: Any, norm: float) -> PowerAndSE:
        """SKCE and its standard error."""
        sample = _Sample.of(problem)
        if len(sample.weights) == 0:
            return PowerAndSE.nothing()
        width = self._width(sample)
        return self._in_blocks(sample, width) if self.statistic == "linear" else self._in_pairs(sample, width)

    def _details(self, problem: Any, norm: float) -> dict[str, float]:
        """``bandwidth``."""
        return {"bandwidth": self._width(_Sample.of(problem))}

    def _resampled(
        self,
        problem: Problem | VectorProblem,
        outcomes: Callable[[int], FloatArray],
        n_sets: int,
        groups: IntArray | None = None,
    ) -> FloatArray:
        """Unbiased SKCE of several sets of outcomes, (n_sets,), with kernels computed once per tile.

        ``outcomes(r)`` gives the r-th set as an array (n, K), of 0 and 1 for one score at a time (K = 1). With
        ``groups`` only pairs from different groups count, divided by the number of all pairs. Cost O(n² K n_sets).
        """
        sample = _Sample.of(problem)
        rows, width = sample.rows, self._width(sample)
        groups = None if groups is None else groups[rows]
        out = np.empty(n_sets)
        n, k = sample.points.shape
        together = max(1, _SETS // sample.points.size)
        for start in range(0, n_sets, together):
            number = min(together, n_sets - start)
            residuals = np.stack([outcomes(start + r)[rows] - sample.points for r in range(number)], axis=2)
            total = np.zeros(k * number)
            if groups is None:
                total -= np.einsum("i,ijr->jr", sample.alone, residuals**2).ravel()
            flat = (residuals * sample.weights[:, None, None]).reshape(n, k * number)
            for tile, kernel in self._tiles(sample, width):
                if groups is not None:
                    kernel[groups[tile, None] == groups] = 0.0
                total += np.einsum("ij,ij->j", kernel @ flat, flat[tile])
            out[start : start + number] = total.reshape(k, number).sum(axis=0)
        return out / sample.pairs if sample.pairs > 0 else np.full(n_sets, np.nan)

    def _in_pairs(self, sample: _Sample, width: float) -> PowerAndSE:
        """Mean over all pairs, with or without those of a sample with itself, and its standard error."""
        w, total = sample.weights, float(sample.weights.sum())
        own = (sample.residuals**2).sum(axis=1)
        sums, squares = np.empty(len(w)), 0.0
        turned = np.ascontiguousarray(sample.residuals.T)
        for rows, values in self._tiles(sample, width):
            values *= sample.residuals[rows] @ turned
            sums[rows] = values @ w
            np.square(values, out=values)
            squares += float(w[rows] @ (values @ w))
        whole, same = float(w @ sums), float(sample.alone @ own)
        if self.statistic == "biased":
            value = whole / total**2
        elif sample.pairs > 0:
            value = (whole - same) / sample.pairs
        else:
            return PowerAndSE.nothing()
        # The projection of the U-statistic on single samples; its own noise is taken off.
        mean = (sums - own * (1.0 if sample.integral else w)) / total
        first = float(w @ (mean - w @ mean / total) ** 2) / total
        second = max(squares - float(sample.alone @ own**2), 0.0) / total**2
        n = max(sample.size, 1.0)
        return PowerAndSE(value, float(np.sqrt(max(4 * first / n - 2 * second / n**2, second / n**2))))

    def _in_blocks(self, sample: _Sample, width: float) -> PowerAndSE:
        """Mean over the pairs within blocks of consecutive samples; an incomplete block is omitted."""
        blocks = len(sample.weights) // self.block
        if blocks == 0:
            return PowerAndSE.nothing()
        used = blocks * self.block
        x, r = (v[:used].reshape(blocks, self.block, -1) for v in (sample.points, sample.residuals))
        w = sample.weights[:used].reshape(blocks, self.block)
        sums, weight = np.zeros(blocks), np.zeros(blocks)
        for i in range(self.block):
            for j in range(i + 1, self.block):
                pair = w[:, i] * w[:, j]
                kernel = self._kernel(self._distances(x[:, i, None], x[:, j, None])[:, 0, 0], width)
                sums += pair * kernel * (r[:, i] * r[:, j]).sum(axis=1)
                weight += pair
        value = float(sums.sum() / weight.sum())
        if blocks == 1:
            return PowerAndSE(value, float("nan"))
        spread = float(((sums - value * weight) ** 2).sum()) / float(weight.sum()) ** 2
        return PowerAndSE(value, float(np.sqrt(spread * blocks / (blocks - 1))))

    def _tiles(self, sample: _Sample, width: float) -> Iterator[tuple[slice, FloatArray]]:
        """Tiles of rows, with ``κ(f_i, f_j)`` between these and all samples."""
        n = len(sample.weights)
        step = max(1, _TILE // sample.points.size)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self._kernel(self._distances(sample.points[rows], sample.points), width)

    def _distances(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Distances (…, m, n) of points (…, m, K) and (…, n, K)."""
        if a.shape[-1] == 1:
            return np.abs(a - np.swapaxes(b, -1, -2))
        apart = a[..., :, None, :] - b[..., None, :, :]
        if self.distance == "total-variation":
            return np.asarray(0.5 * np.abs(apart).sum(axis=-1))
        return np.asarray(np.sqrt((apart**2).sum(axis=-1)))

    def _kernel(self, distance: FloatArray, width: float) -> FloatArray:
        scaled = distance / width
        return np.asarray(np.exp(-scaled) if self.kernel == "laplace" else np.exp(-0.5 * scaled**2))

    def _width(self, sample: _Sample) -> float:
        """Bandwidth; 1 if all samples are the same point."""
        if not isinstance(self.bandwidth, str):
            return self.bandwidth
        points, weights = sample.points, sample.weights
        n = len(weights)
        if n > _MEDIAN_ROWS:
            order = np.lexsort(points.T[::-1])
            rows = order[np.linspace(0, n - 1, _MEDIAN_ROWS).astype(np.intp)]
            points, weights = points[rows], weights[rows]
        distances = self._distances(points, points)
        if len(weights) > 1 and (weights == weights[0]).all() and not (sample.integral and weights[0] != 1):
            # Every pair counts the same, and a row makes none with itself: no sorting.
            apart = distances[np.triu(np.ones(distances.shape, dtype=bool), 1)]
            half = (apart.size - 1) // 2
            middle = np.partition(apart, half)[half]
            return float(middle) if middle > 0 else 1.0
        pair = np.outer(weights, weights)
        pair[np.diag_indices_from(pair)] = weights * np.maximum(weights - 1, 0) if sample.integral else 0.0
        order = np.argsort(distances, axis=None)
        running = np.cumsum(pair.ravel()[order])
        if not running[-1] > 0:
            return 1.0
        middle = distances.ravel()[order[int(np.searchsorted(running, running[-1] / 2))]]
        return float(middle) if middle > 0 else 1.0
