"""`DirichletKernel`: canonical calibration error by Dirichlet kernels, as published, debiased or without leakage.

For one score the kernels are Beta kernels, between samples if they are few, and between grid nodes otherwise. A node
has many samples of either outcome, and each of them must be left out of its own estimate: everything is computed for
one sample per outcome and node, shape (2, m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..data.checks import check_bool, check_choice
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from .axis_counts import Angles, AxisCounts
from .base import EstimatorWithSE, PowerAndSE, check_bandwidth, check_eps
from .beta import OUTCOMES, Neighbours, log_kernel, log_likelihood, neighbours
from .norm import vector_power
from .simplex_kernel import LEAST, ORIENTATIONS, LeaveOneOutMeans, Simplex, around, log_densities

#: Cells of θ when a bandwidth is searched for.
_SEARCH_CELLS = 512
RULES = ("auto", "cv", "loo", "loo-as-published")
DEBIASES = (None, "ratio", "square", "cross")
#: Candidate bandwidths of a search, and those of the authors' code.
BANDWIDTHS: FloatArray = 2.0 ** (-np.arange(25) / 2)
PUBLISHED_BANDWIDTHS: FloatArray = np.concatenate([np.logspace(-5, -1, 15), np.linspace(0.2, 1, 5)])
#: The c of ``h = c · n^(-2/(K+3))`` for ``"auto"``: for averages of gaps, and of squares, which need less blur.
_AUTO, _AUTO_SQUARE = 1.5, 0.4
#: Number of rows at which a search evaluates densities or predictions.
_SEARCH_ROWS = 2048


class SampleRows(NamedTuple):
    """Probabilities and residuals (n, K) of samples, their weights, the sample size, and shares of the components."""

    probs: FloatArray
    residuals: FloatArray
    mass: FloatArray
    size: float
    share: FloatArray | None

    @classmethod
    def of(cls, sample: Simplex) -> SampleRows:
        """Rows of probability vectors."""
        share = sample.one_hot() if sample.drawn else None
        return cls(sample.probs, sample.residuals(), sample.mass, sample.size, share)


@dataclass(frozen=True)
class DirichletKernel(EstimatorWithSE):
    r"""Canonical calibration error from frequencies smoothed by Dirichlet kernels over the simplex.

    .. math:: \Big(\frac1n \sum_j \lVert \hat E_j - f_j \rVert_p^p\Big)^{1/p}, \qquad
        \hat E_j = \sum_{i \ne j} w_{ji}\, y_i, \qquad w_{ji} = \frac{k_{ji}}{\sum_{i \ne j} k_{ji}}

    for probability vectors f and one-hot outcomes y. ``"data"`` (as published): k is the density of
    Dirichlet(f_i / h + 1) at f_j. ``"query"``: that of Dirichlet(f_j / h + 1) at f_i, ``k ∝ exp(-KL(f_j ‖ f_i) / h)``.
    For two classes, and for notions with one score at a time (class-wise, confidence, …), these are Beta kernels.

    Parameters
    ----------
    bandwidth : float or {"auto", "cv", "loo", "loo-as-published"}, default "auto"
        The bandwidth h > 0. ``"auto"``: ``c · n^(-2/(K+3))``, c = 0.4 for unbiased squares and 1.5 otherwise. Searches
        select among ``2^(-k/2)``, k = 0 … 24: ``"cv"`` minimises the leave-one-out squared error of the outcomes;
        ``"loo"`` maximises the leave-one-out likelihood of the probability vectors, ``Σ_j log 1/(n-1)
        Σ_{i≠j} k_ji``; ``"loo-as-published"`` subtracts log h from each term, as the authors' code does, and therefore
        finds bandwidths that are far too small, among their candidates: 15 from 1e-5 to 0.1, in geometric progression,
        and 0.2, 0.4 … 1. Beyond 2048 rows a search uses 2048 of them.
    orientation : {"data", "query"}, default "data"
        The vector around which the kernel is centred; see above.
    debias : None, "ratio", "square" or "cross", default None
        None: the plug-in. ``"ratio"``: Ê minus the second-order bias of a ratio, ``m/(m-1) (Ê Σw² - Σw²y)``, m = n - 1.
        ``"square"`` (p = 2): for every component the unbiased square of the mean, ``(Ê² - Σw²y²) / (1 - Σw²)``.
        ``"cross"`` (p = 1 or 2): with the residual r = y - f, which does not enter its own estimate, and gaps
        ``d = Ê - f``: ``Σ_c sign(d_c) r_c``, or ``Σ_c (2 d_c r_c - d̂_c²)`` with the unbiased square. Whatever the
        blur, neither exceeds the true error in expectation, and the shortfall is of second order in the blur.
    residual : bool, default False
        Smooth ``y - f`` instead of y: ``Ê_j - f_j`` is then ``Σ w (y_i - f_i)``, whose mean is 0 for a
        calibrated model whatever the bandwidth. Otherwise the kernel also averages unequal f, and the difference leaks.
    eps : float, default 1e-6
        Probabilities are clipped to eps before their logarithm is taken; logarithms from logits are exact.

    See Also
    --------
    calibrant.estimators.SimplexBinned : Cells instead of kernels.
    calibrant.estimators.BetaKernel : One score at a time, at a cost independent of n.
    calibrant.torch.DirichletKernelLoss : The same as a loss.

    Notes
    -----
    Range [0, 2^(1/p)]; debiased powers are signed, and negative by chance (:func:`squared_calibration_error` returns
    them).
    For p = 1 the sum of signs is noisier near calibration than its standard error indicates.
    Bias of the plug-in: upward, and dominated by noise for K ≥ 4: a calibrated model of 8 classes gets 0.3 to
    1.2 at n = 2000. For the canonical notion ``estimator="auto"`` is therefore
    ``DirichletKernel(debias="cross", residual=True)`` for p = 1, the same with ``orientation="query"`` for p = 2, and
    with ``debias="ratio"`` for other p (docs/canonical.md compares the alternatives). p = inf: the largest gap. Notion
    ``"drawn-class"``: the component of each gap for the observed class. Neither supports ``"square"`` or ``"cross"``.
    NaN for a single sample.

    Vector problems are processed in row tiles: cost O(n² K), memory O(n K) and a few tiles of 4 MB, in as many threads
    as linear algebra may use (``OMP_NUM_THREADS``, ``threadpoolctl``), without affecting the result. One score at a
    time: exact up to 2048 samples, and beyond on a grid of 2049 nodes over ``θ``, ``score = sin² θ``; cost O(n + G²).

    References
    ----------
    Popordanoska, Sayer & Blaschko (2022), *A consistent and differentiable Lp canonical calibration error estimator*;
    Chen (1999), *Beta kernel estimators for density functions*; Ouimet & Tolosana-Delgado (2022) for Dirichlet kernels.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > P.cumsum(axis=1)).sum(axis=1)  # calibrated
    >>> plug_in = cal.estimators.DirichletKernel(0.01)
    >>> bool(cal.calibration_error(y, P, notion="canonical", estimator=plug_in) > 0.15)
    True
    >>> bool(abs(cal.squared_calibration_error(y, P, notion="canonical")) < 0.01)
    True
    """

    bandwidth: float | str = "auto"
    orientation: str = "data"
    debias: str | None = None
    residual: bool = False
    eps: float = 1e-6
    _serves: ClassVar[frozenset[str]] = frozenset({"scalar", "vector", "drawn"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth, RULES))
        check_choice("orientation", self.orientation, ORIENTATIONS)
        check_choice("debias", self.debias, DEBIASES)
        check_bool("residual", self.residual)
        object.__setattr__(self, "eps", check_eps(self.eps))

    def _square(self, problem: Any) -> float:
        """Signed square, for the values of ``debias`` that have one."""
        if self.debias not in ("square", "cross"):
            return super()._square(problem)
        return self.power(problem, 2)

    def _power_and_se(self, problem: Any, norm: float) -> PowerAndSE:
        """``errorᵖ``, and its standard error if it is an average of nearly independent terms."""
        self._check_norm(norm)
        if isinstance(problem, Problem):
            return self._of_scores(problem, norm)
        if problem.drawn and self.debias in ("square", "cross"):
            raise ValueError(f"debias={self.debias!r} sums over all classes and does not apply to a single class")
        sample = Simplex.of(problem, self.eps)
        values = self._values(sample)
        near = around(sample, values, self._h(sample, norm), self.orientation, self._second(values))
        return self._reduced(near, SampleRows.of(sample), norm)

    def _of_scores(self, problem: Problem, norm: float) -> PowerAndSE:
        """The same for one score at a time, treated as vectors with one component."""
        counts = Angles().of(problem).used
        if counts.scores.size == 0:
            return PowerAndSE.nothing()
        values = self._score_values(counts)
        second = self._second(values)
        near = self._around_scores(counts, values, self._width(counts, norm), second)
        squares = None if second is None else near.second.reshape(-1, 1)
        concentration = None if second is None else near.concentration.ravel()
        means = LeaveOneOutMeans(near.mean.reshape(-1, 1), squares, concentration, near.known.ravel())
        scores = np.broadcast_to(counts.scores, counts.mass.shape)
        columns = scores.reshape(-1, 1), (OUTCOMES - scores).reshape(-1, 1)
        return self._reduced(means, SampleRows(*columns, counts.mass.ravel(), float(counts.effective_size), None), norm)

    def _second(self, values: FloatArray) -> FloatArray | None:
        """Values whose sums with squared weights are needed for ``debias``."""
        return None if self.debias is None else values if self.debias == "ratio" else values**2

    def _reduced(self, near: LeaveOneOutMeans, rows: SampleRows, norm: float) -> PowerAndSE:
        """Power and standard error from the leave-one-out means of every sample."""
        mass = np.where(near.known, rows.mass, 0.0)
        if not mass.sum() > 0:
            return PowerAndSE.nothing()
        gap = near.mean if self.residual else near.mean - rows.probs
        if near.second is None or near.concentration is None:
            return PowerAndSE(float(vector_power(gap, mass, norm, rows.share)), float("nan"))
        s2 = near.concentration[:, None]
        if self.debias == "ratio":
            m = max(rows.size - 1, 2.0)
            gap = gap - m / (m - 1) * (near.mean * s2 - near.second)
            return PowerAndSE(float(vector_power(gap, mass, norm, rows.share)), float("nan"))
        if norm == 1:
            terms = (np.sign(gap) * rows.residuals).sum(axis=1)
            return PowerAndSE.of_terms(terms, terms, mass, rows.size)
        known = near.known & (1 - near.concentration > LEAST)
        square = np.divide(near.mean**2 - near.second, 1 - s2, out=np.zeros_like(gap), where=known[:, None])
        if not self.residual:
            square = square - 2 * near.mean * rows.probs + rows.probs**2
        # The efficient influence function of E d², whichever way it is estimated.
        influence = (2 * gap * rows.residuals - square).sum(axis=1)
        terms = influence if self.debias == "cross" else square.sum(axis=1)
        return PowerAndSE.of_terms(terms, influence, np.where(known, rows.mass, 0.0), rows.size)

    def _details(self, problem: Any, norm: float) -> dict[str, float]:
        """Contents of :attr:`Estimate.details` for a vector problem.

        ``bandwidth``; ``neighbours``: average effective number of samples around one, ``1 / Σw²``; ``degenerate``:
        fraction of the samples with a single dominant neighbour, which have no unbiased square. At the bandwidth for
        squares, with ``E|μ|²`` from ``2 Ê·y`` minus the unbiased square of Ê, μ = E[y | f], also: ``sharpness``, the
        variance of μ, and ``refinement``, ``E Σ_c μ_c (1 - μ_c)``, which adds up to the Brier score with the squared
        calibration error.
        """
        if isinstance(problem, Problem):
            return {}
        sample = Simplex.of(problem, self.eps)
        outcome, total = sample.one_hot(), float(sample.mass.sum())
        h = self._h(sample, norm)
        concentration, known, _ = self._squares(sample, outcome, h)
        mass = np.where(known, sample.mass, 0.0)
        out = {"bandwidth": h, "degenerate": 1 - float(mass.sum()) / total}
        if not mass.sum() > 0:
            return out | dict.fromkeys(("neighbours", "sharpness", "refinement"), float("nan"))
        out["neighbours"] = float(mass[known] @ (1 / concentration[known]) / mass.sum())
        narrow = auto(sample.size, outcome.shape[1], squares=True) if self.bandwidth == "auto" else h
        _, known, square = self._squares(sample, outcome, narrow)
        mass = np.where(known, sample.mass, 0.0)
        size = float(mass @ square / mass.sum()) if mass.sum() > 0 else float("nan")
        mean = outcome.T @ sample.mass / total
        return out | {"sharpness": size - float(mean @ mean), "refinement": 1 - size}

    def _squares(self, sample: Simplex, outcome: FloatArray, h: float) -> tuple[FloatArray, AnyArray, FloatArray]:
        """``Σw²``, whether there is an unbiased square, and ``|μ|²`` around every sample."""
        near = around(sample, outcome, h, self.orientation, outcome)
        if near.second is None or near.concentration is None:
            raise RuntimeError("the squares are missing")
        known = near.known & (1 - near.concentration > LEAST)
        rest = np.where(known, 1 - near.concentration, 1.0)
        square = 2 * (near.mean * outcome).sum(axis=1) - (near.mean**2 - near.second).sum(axis=1) / rest
        return near.concentration, known, square

    def _h(self, sample: Simplex, norm: float) -> float:
        """Bandwidth for a sample."""
        k = sample.probs.shape[1]
        if not isinstance(self.bandwidth, str):
            return self.bandwidth
        if self.bandwidth == "auto":
            squares = self.debias in ("square", "cross") and norm == 2
            return auto(sample.size, k, squares=squares)
        if self.bandwidth == "cv":
            return self._predicting(sample, _search_rows(sample))
        return self._likeliest(sample)

    @property
    def _tried(self) -> FloatArray:
        """Candidate bandwidths of the rule."""
        return PUBLISHED_BANDWIDTHS if self.bandwidth == "loo-as-published" else BANDWIDTHS

    def _likeliest(self, sample: Simplex) -> float:
        """Bandwidth with the largest leave-one-out likelihood of the probability vectors, as defined by the rule."""
        rows = _search_rows(sample)
        likelihood = log_densities(sample, self._tried, self.orientation, rows) @ sample.mass[rows]
        if self.bandwidth == "loo-as-published":
            likelihood = likelihood - np.log(self._tried) * sample.mass[rows].sum()
        return float(self._tried[int(np.argmax(likelihood))])

    def _width(self, counts: AxisCounts, norm: float) -> float:
        """Bandwidth for a sample of one score; searched on a coarser grid if samples are many."""
        if not isinstance(self.bandwidth, str):
            return self.bandwidth
        if self.bandwidth == "auto":
            squares = self.debias in ("square", "cross") and norm == 2
            return auto(float(counts.effective_size), 2, squares=squares)
        counts = counts.binned(_SEARCH_CELLS).used if counts.scores.size > _SEARCH_CELLS else counts
        values = self._score_values(counts)
        score = []
        for h in self._tried:
            near = self._around_scores(counts, values, float(h))
            if self.bandwidth == "cv":
                found = np.where(near.known, near.mean, 0.0 if self.residual else counts.scores)
                loss = (OUTCOMES - found - (counts.scores if self.residual else 0.0)) ** 2
                score.append(-float((counts.mass * loss).sum()))
                continue
            penalty = float(np.log(h)) * float(counts.total) if self.bandwidth == "loo-as-published" else 0.0
            score.append(log_likelihood(counts, near) - penalty)
        return float(self._tried[int(np.argmax(score))])

    def _score_values(self, counts: AxisCounts) -> FloatArray:
        """Smoothed values of one score at a time, (2, m)."""
        outcomes = np.broadcast_to(OUTCOMES, counts.mass.shape)
        return outcomes - counts.scores if self.residual else outcomes

    def _around_scores(
        self, counts: AxisCounts, values: FloatArray, h: float, second: FloatArray | None = None
    ) -> Neighbours:
        """Means around one sample per outcome and score, without that sample."""
        scores = counts.scores

        def log_kernels(points: IntArray) -> FloatArray:
            if self.orientation == "data":
                return log_kernel(scores, scores[points], h, self.eps)
            return np.ascontiguousarray(log_kernel(scores[points], scores, h, self.eps).T)

        return neighbours(counts, log_kernels, values, second)

    def _predicting(self, sample: Simplex, rows: AnyArray) -> float:
        """Bandwidth that predicts outcomes best; the widest one if tied."""
        loss = []
        outcome = sample.one_hot()
        for h in BANDWIDTHS:
            near = around(sample, self._values(sample), float(h), self.orientation, rows=rows)
            predicted = near.mean + sample.probs[rows] if self.residual else near.mean
            predicted[~near.known] = sample.probs[rows][~near.known]
            loss.append(float(sample.mass[rows] @ ((outcome[rows] - predicted) ** 2).sum(axis=1)))
        return float(BANDWIDTHS[int(np.argmin(loss))])

    def _values(self, sample: Simplex) -> FloatArray:
        """Smoothed values, (n, K)."""
        return sample.residuals() if self.residual else sample.one_hot()

    def _check_norm(self, norm: float) -> None:
        """Raise ValueError for a norm that ``debias`` does not support."""
        if self.debias == "square" and norm != 2:
            raise ValueError(f"debias='square' is defined for norm 2; got norm={norm:g}")
        if self.debias == "cross" and norm not in (1, 2):
            raise ValueError(f"debias='cross' is defined for norm 1 and 2; got norm={norm:g}")


def auto(n: float, k: int, *, squares: bool) -> float:
    """Bandwidth by rule, for n samples and K classes."""
    return float((_AUTO_SQUARE if squares else _AUTO) * max(n, 1.0) ** (-2 / (k + 3)))


def _search_rows(sample: Simplex) -> AnyArray:
    """Rows used by a search: all, or some evenly spaced in sorted order, independent of the given order."""
    n = sample.n_rows
    if n <= _SEARCH_ROWS:
        return np.arange(n)
    order = np.lexsort((sample.codes, *sample.probs.T[::-1]))
    return np.asarray(order[np.linspace(0, n - 1, _SEARCH_ROWS).astype(np.intp)])
