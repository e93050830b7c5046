"""`Sweep`: the largest number of bins with non-decreasing observed frequencies (ECE_SWEEP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.checks import check_choice
from ..data.problem import Problem
from ..data.types import FloatArray, IntArray
from ..sums import BinMoments, DistinctScores, Edges, Runs
from .base import CellEstimator, Cells
from .binned import Binned
from .norm import mean_power

#: Sums of relative weights have rounding errors: bin frequencies this close then count as equal.
ROUNDING = 1e-9
#: Up to this many more bins than drops, all bins are checked, one number of bins after the other.
FEW = 32
#: Block size when many numbers of bins are tried together.
_BLOCK_NUMBERS = 1 << 16
_STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True)
class Sweep(CellEstimator):
    r"""Binned calibration error with the number of bins found by a monotonic sweep (ECE_SWEEP).

    .. math:: & \Big(\sum_{j=1}^{b^*} \frac{n_j}{n}\,\big|\bar o_j - \bar s_j\big|^p\Big)^{1/p}, \\
        & b^* = \max\{b : \bar o_1 \le \dots \le \bar o_{b'} \text{ for every } b' \le b\}

    Bins are added one at a time until the observed frequency of some bin is below that of the previous bin;
    the last number of bins before that is used.

    Parameters
    ----------
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins with equal numbers of samples (ECE_SWEEP^EM), or of equal width on [0, 1], without empty ones
        (ECE_SWEEP^EW).

    See Also
    --------
    calibrant.Binned : A fixed number of bins.
    calibrant.estimators.Isotonic : Bins chosen by the isotonic fit.

    Notes
    -----
    The bins for a given number are those of :class:`Binned`: cut j after the ``floor(j n / b)``-th smallest score,
    equal scores never split, right-closed. (The authors' code cuts after ``ceil(j n / b)`` samples and may split
    equal scores.) There are at most n bins (with relative weights: the number of rows with weight; frequencies within
    1e-9 then count as equal). Range [0, 1]. Bias: upward, from the noise of the bins, but their number adapts: many if
    frequencies increase steeply, few if they do not. Downward where the true frequency is not monotone in the score: a
    model that is always certain and always wrong has one bin and an error of 0.
    The interval of :func:`estimate` keeps the bins fixed. Cost: O(n log n) for the sort, and b* steps of
    O(min(b, d) log n), with d the number of decreases in frequency from one distinct score to the next.

    References
    ----------
    Roelofs, Cain, Shlens & Mozer (2022), *Mitigating bias in calibration error estimation*.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 0, 1, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8, 0.9]
    >>> cal.reliability_curve(y, p, estimator=cal.estimators.Sweep()).observed.tolist()
    [0.0, 0.5, 1.0, 1.0]
    >>> round(cal.calibration_error(y, p, estimator=cal.estimators.Sweep()), 3)
    0.183
    """

    _cells_on_scores: ClassVar[bool] = True
    strategy: str = "quantile"

    def __post_init__(self) -> None:
        check_choice("strategy", self.strategy, _STRATEGIES)

    def _needs(self, domain: tuple[float, float]) -> DistinctScores:
        """Sums per distinct score."""
        return DistinctScores()

    def _edges(self, problem: Problem) -> Edges:
        """Edges of the final bins of the sweep, for one problem: midpoints between adjacent distinct scores."""
        return self._binned(problem.sums(self._needs(problem.domain))).edges

    def _binned(self, runs: Runs) -> BinMoments:
        """Sums of the final bins of the sweep, for one problem."""
        low, high = runs.domain if self.strategy == "quantile" else (0.0, 1.0)
        last = _sweep(runs, self.strategy, runs.eps)
        inner = runs.middles[last[:-1]] if runs.size else np.empty(0)
        inside = (inner > low) & (inner < high)
        edges = Edges(np.concatenate([[low], inner[inside], [high]]), exact=True)
        start = np.concatenate([[0], last[:-1][inside] + 1]) if runs.size else last
        fields = (runs.weight, runs.weight * runs.scores, runs.outcome, runs.square)
        weight, score, outcome, square = (
            np.add.reduceat(v, start) if runs.size else np.zeros(edges.n_bins) for v in fields
        )
        n = int(np.sum(runs.n_samples))
        return BinMoments(edges, "hard", weight, score, outcome, square, weight, n, runs.integral and not runs.grouped)

    def read(self, sums: Runs, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem, one sweep each."""
        out: FloatArray = np.full(len(sums), np.nan)
        for i in range(len(sums)):
            found = self._binned(sums[i])
            out[i] = mean_power(found.gap, found.weight, norm)
        return out.reshape(sums.shape)

    def _shown(self, sums: Runs) -> BinMoments:
        """Sums of the bins found."""
        return self._binned(sums)

    def _cells(self, sums: Runs | BinMoments) -> Cells:
        """Bins of one problem as cells, counted in units of the effective sample size."""
        return Binned()._cells(sums if isinstance(sums, BinMoments) else self._binned(sums))

    def _held(self, sums: Runs) -> tuple[Binned, BinMoments]:
        """A binned estimator, and the sums of the bins found."""
        found = self._binned(sums)
        return Binned(), found


def _sweep(runs: Runs, strategy: str, eps: float) -> IntArray:
    """Last run of each bin, for the largest number of bins up to which frequencies do not decrease."""
    if not runs.size:
        return np.empty(0, dtype=np.intp)
    slack = 0.0 if runs.integral else ROUNDING
    most = int(runs.weight_sums[-1]) if runs.integral else int(runs.n_rows.sum())
    # A bin's frequency falls below its neighbour's only where a run's does.
    drops = np.flatnonzero(np.diff(runs.mean) < 0)
    if not drops.size:
        return _ends(runs, strategy, eps, most)
    best = np.array([runs.size - 1])
    b = 2
    while b <= min(most, drops.size + FEW):
        ends = _ends(runs, strategy, eps, b)
        if _falls(runs, ends, slack):
            return best
        best = ends
        b += 1
    # More bins than drops: only the bins around drops matter, and many numbers of bins are tried at once.
    step = max(1, _BLOCK_NUMBERS // drops.size)
    while b <= most:
        falls = _falls_at(runs, drops, strategy, eps, np.arange(b, min(b + step, most + 1)), slack)
        if falls.any():
            return _ends(runs, strategy, eps, b + int(falls.argmax()) - 1)
        b += step
    return _ends(runs, strategy, eps, most)


def _ends(runs: Runs, strategy: str, eps: float, b: int) -> IntArray:
    """Last run of each of ``b`` bins, without empty ones."""
    last = runs.size - 1
    if b > runs.size:
        _, ends = _bin_of(runs, np.arange(runs.size), strategy, eps, np.array(b))
        return np.unique(ends)
    j = np.arange(1, b)
    if strategy == "uniform":
        ends = np.searchsorted(runs.scores, _limit(j, eps, b)) - 1
        ends = ends[ends >= 0]
    else:
        ends = _run_of_cut(runs, j, np.array(b))
    return np.unique(np.append(ends, last))


def _limit(j: IntArray, eps: float, b: int | IntArray) -> FloatArray:
    """Upper edge j of ``b`` uniform bins, raised by the rounding error that a score on it may have (see `Edges`)."""
    return np.asarray((j + np.minimum(2.0 * eps * b, 0.5)) / b)


def _run_of_cut(runs: Runs, j: IntArray, b: IntArray) -> IntArray:
    """Run after which cut ``j`` of ``b`` quantile bins lies; cuts within a run lie after it.

    The last run is separated from the others if a cut falls within it.
    """
    total = runs.weight_sums[-1]
    target = (j * int(total) // b).astype(np.float64) if runs.integral else j * (total / b) - 1e-12 * total
    return np.minimum(np.searchsorted(runs.weight_sums[1:], target), max(runs.size - 2, 0))


def _bin_of(runs: Runs, run: IntArray, strategy: str, eps: float, b: IntArray) -> tuple[IntArray, IntArray]:
    """First and last run of the bin that contains ``run``, among ``b`` bins."""
    last = runs.size - 1
    if strategy == "uniform":
        j = np.clip(np.floor(runs.scores[run] * b + (1 - np.minimum(2.0 * eps * b, 0.5))), 1, b).astype(np.int64)
        start = np.where(j > 1, np.searchsorted(runs.scores, _limit(j - 1, eps, b)), 0)
        end = np.where(j < b, np.searchsorted(runs.scores, _limit(j, eps, b)) - 1, last)
    else:
        # The first cut behind the samples before the run.
        before, total = runs.weight_sums[run], runs.weight_sums[-1]
        if runs.integral:
            j = -(-(before.astype(np.int64) + 1) * b // int(total))
        else:
            j = np.floor((before + 1e-12 * total) * b / total).astype(np.int64) + 1
        start = np.where(j > 1, _run_of_cut(runs, np.maximum(j - 1, 1), b) + 1, 0)
        end = np.where((j < b) & (run < last), _run_of_cut(runs, np.minimum(j, b - 1), b), last)
    return np.minimum(start, run), np.maximum(end, run)


def _mean(runs: Runs, start: IntArray, end: IntArray) -> FloatArray:
    """Mean outcome of runs ``start`` to ``end``, both included."""
    weight = runs.weight_sums[end + 1] - runs.weight_sums[start]
    outcome = runs.outcome_sums[end + 1] - runs.outcome_sums[start]
    # Runs whose weights the others round away have no mean.
    return np.asarray(np.divide(outcome, weight, out=np.full(np.shape(weight), np.nan), where=weight > 0))


def _falls(runs: Runs, ends: IntArray, slack: float) -> bool:
    """Whether the mean outcome of a bin lies below that of the bin before it."""
    mean = _mean(runs, np.concatenate([[0], ends[:-1] + 1]), ends)
    return bool((np.diff(mean) < -slack).any())


def _falls_at(
    runs: Runs, drops: IntArray, strategy: str, eps: float, bins: IntArray, slack: float
) -> NDArray[np.bool_]:
    """:func:`_falls` for every number of ``bins``, from the three bins around each run followed by a decrease."""
    b = bins[:, None]
    start, end = _bin_of(runs, np.broadcast_to(drops, (bins.size, drops.size)), strategy, eps, b)
    mean = _mean(runs, start, end)
    left, before = _bin_of(runs, np.maximum(start - 1, 0), strategy, eps, b)
    behind, right = _bin_of(runs, np.minimum(end + 1, runs.size - 1), strategy, eps, b)
    falls = (start > 0) & (mean < _mean(runs, left, before) - slack)
    falls |= (end < runs.size - 1) & (_mean(runs, behind, right) < mean - slack)
    return np.asarray(falls.any(axis=1))
