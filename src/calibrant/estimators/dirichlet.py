"""`DirichletKernel`: canonical calibration error by Dirichlet kernels, published, debiased and free of leaks.

On one score the kernels are Beta kernels, between samples while they are few, and between grid nodes beyond. A node
holds many samples of either outcome, and each of them must be left out of its own estimate: everything is found for one
sample of each outcome at each node, shape (2, m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray
from .base import EstimatorWithSE, PowerAndSE
from .beta import AngleCounts, log_kernel
from .model_cells import check_eps, check_width
from .norm import mean_power, vector_power
from .simplex_kernel import LEAST, ORIENTATIONS, LeaveOneOutMeans, Simplex, around, log_densities

#: On a grid a lone sample's share is excluded up to the grid's error: below this part of it there is no neighbour.
_LONE = 1e-3
_TILE = 1 << 19
#: Cells of θ where a bandwidth is sought.
_SEARCH_CELLS = 512
_OUTCOME = np.array([[0.0], [1.0]])


class _Around(NamedTuple):
    """Weighted means over the other samples, as :class:`.simplex_kernel.Around`, each (2, m)."""

    mean: FloatArray
    second: FloatArray
    concentration: FloatArray
    known: AnyArray
    log_sum: FloatArray


def power_and_se(estimator: DirichletKernel, problem: Problem, norm: float) -> PowerAndSE:
    """``errorᵖ`` of a problem, and its standard error for an average of terms."""
    counts = AngleCounts.of(problem).used
    size = float(counts.effective_size)
    if counts.scores.size == 0:
        return PowerAndSE.nothing()
    scores = counts.scores
    residual = _OUTCOME - scores
    values = _values(estimator, counts)
    second = values if estimator.debias == "ratio" else values**2
    near = _around(counts, values, second, estimator._width(counts, norm), estimator)
    gap = near.mean if estimator.residual else near.mean - scores
    mass = np.where(near.known, counts.mass, 0.0)
    s2 = near.concentration
    if estimator.debias is None or estimator.debias == "ratio":
        if estimator.debias == "ratio":
            m = max(size - 1, 2.0)
            gap = gap - m / (m - 1) * (near.mean * s2 - near.second)
        return PowerAndSE(float(mean_power(gap.ravel(), mass.ravel(), norm)), float("nan"))
    if norm == 1:
        terms = np.sign(gap) * residual
        return PowerAndSE.of_terms(terms, terms, mass, size)
    sure = near.known & (1 - s2 > LEAST)
    square = np.divide(near.mean**2 - near.second, 1 - s2, out=np.zeros_like(gap), where=sure)
    if not estimator.residual:
        square = square - 2 * near.mean * scores + scores**2
    influence = 2 * gap * residual - square
    terms = influence if estimator.debias == "cross" else square
    return PowerAndSE.of_terms(terms, influence, np.where(sure, counts.mass, 0.0), size)


def search(estimator: DirichletKernel, counts: AngleCounts, bandwidths: FloatArray) -> float:
    """The bandwidth of the estimator's rule, on a coarser grid where samples are many."""
    counts = counts.binned(_SEARCH_CELLS).used if counts.scores.size > _SEARCH_CELLS else counts
    values = _values(estimator, counts)
    score = []
    for h in bandwidths:
        near = _around(counts, values, values, float(h), estimator)
        if estimator.bandwidth == "cv":
            found = np.where(near.known, near.mean, 0.0 if estimator.residual else counts.scores)
            loss = (_OUTCOME - found - (counts.scores if estimator.residual else 0.0)) ** 2
            score.append(-float((counts.mass * loss).sum()))
            continue
        likelihood = float((counts.mass * np.where(counts.mass > 0, near.log_sum, 0.0)).sum())
        published = estimator.bandwidth == "loo-as-published"
        score.append(likelihood - (float(np.log(h)) * float(counts.total) if published else 0.0))
    return float(bandwidths[int(np.argmax(score))])


def _values(estimator: DirichletKernel, counts: AngleCounts) -> FloatArray:
    """What is smoothed: outcomes or residuals."""
    outcome = np.broadcast_to(_OUTCOME, counts.mass.shape)
    return np.asarray(outcome - counts.scores if estimator.residual else outcome)


def _around(
    counts: AngleCounts, values: FloatArray, second: FloatArray, h: float, estimator: DirichletKernel
) -> _Around:
    """Means around one sample of each outcome at each score, without it."""
    scores, own = counts.scores, counts.own
    m = scores.size
    # A row of relative weight w adds w² to sums of squares, one of w repeats adds w.
    heavy, own_heavy = (counts.mass, own) if counts.integral else (counts.square, own**2)
    plain = np.stack([counts.mass.sum(axis=0), (counts.mass * values).sum(axis=0)])
    squared = np.stack([heavy.sum(axis=0), (heavy * second).sum(axis=0)])
    shape = (2, m)
    mean, sums_second, concentration = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    known, log_sum = np.zeros(shape, dtype=bool), np.full(shape, -np.inf)
    for start in range(0, m, max(1, _TILE // m)):
        here = slice(start, min(start + max(1, _TILE // m), m))
        points = np.arange(m)[here]
        columns = np.arange(points.size)
        if estimator.orientation == "data":
            log_k = log_kernel(scores, scores[here], h, estimator.eps)
        else:
            log_k = np.ascontiguousarray(log_kernel(scores[here], scores, h, estimator.eps).T)
        at_own = log_k[points, columns]
        # What else lies at the sample's own score.
        left = [_rest(all_of[here], of[:, here]) for all_of, of in zip(plain, (own, own * values), strict=True)]
        left_heavy = [
            _rest(all_of[here], of[:, here])
            for all_of, of in zip(squared, (own_heavy, own_heavy * second), strict=True)
        ]
        shared = (left[0] * (counts.mass[:, here] > 0)).max(axis=0) > 0
        log_k[points, columns] = np.where(shared, at_own, -np.inf)
        largest = log_k.max(axis=0)
        alone = ~np.isfinite(largest)
        largest = np.where(alone, 0.0, largest)
        log_k[points, columns] = -np.inf
        kernel = np.exp(log_k - largest)
        home = np.where(alone, 0.0, np.exp(np.minimum(at_own - largest, 300.0)))
        total = plain[0] @ kernel + home * left[0]
        least = _LONE * own[:, here] * home if counts.on_grid else np.zeros_like(total)
        there = (total > least) & (counts.mass[:, here] > 0)
        known[:, here] = there
        floor = np.maximum(total, np.maximum(least, np.finfo(float).tiny))
        log_sum[:, here] = np.log(floor) + largest
        np.divide(plain[1] @ kernel + home * left[1], total, out=mean[:, here], where=there)
        np.square(kernel, out=kernel)
        for out, all_of, of in zip((concentration, sums_second), squared, left_heavy, strict=True):
            np.divide(all_of @ kernel + home**2 * of, total**2, out=out[:, here], where=there)
    return _Around(mean, sums_second, concentration, known, log_sum)


def _rest(whole: FloatArray, part: FloatArray) -> FloatArray:
    """``whole - part``, 0 where only rounding is left."""
    rest = whole - part
    return np.where(np.abs(rest) <= 1e-12 * np.abs(whole), 0.0, rest)


RULES = ("auto", "cv", "loo", "loo-as-published")
DEBIASES = (None, "ratio", "square", "cross")
#: Bandwidths that a search tries, and those of the authors' code.
BANDWIDTHS: FloatArray = 2.0 ** (-np.arange(25) / 2)
PUBLISHED_BANDWIDTHS: FloatArray = np.concatenate([np.logspace(-5, -1, 15), np.linspace(0.2, 1, 5)])
#: ``h = c · n^(-2/(K+3))`` for ``"auto"``: where gaps are averaged, and where squares are, which want less blur.
_AUTO, _AUTO_SQUARE = 1.5, 0.4
#: Rows at which a search reads densities or predictions.
_SEARCH_ROWS = 2048


@dataclass(frozen=True)
class DirichletKernel(EstimatorWithSE):
    r"""Canonical calibration error from frequencies smoothed by Dirichlet kernels over the simplex.

    .. math:: \Big(\frac1n \sum_j \lVert \hat E_j - f_j \rVert_p^p\Big)^{1/p}, \qquad
        \hat E_j = \sum_{i \ne j} w_{ji}\, y_i, \qquad w_{ji} = \frac{k_{ji}}{\sum_{i \ne j} k_{ji}}

    for probability vectors f and one-hot outcomes y. ``"data"`` (as published): k is the density of
    Dirichlet(f_i / h + 1) at f_j. ``"query"``: that of Dirichlet(f_j / h + 1) at f_i, ``k ∝ exp(-KL(f_j ‖ f_i) / h)``.
    For two classes, and for one score at a time (class-wise, confidence, …), these are Beta kernels.

    Parameters
    ----------
    bandwidth : float or {"auto", "cv", "loo", "loo-as-published"}, default "auto"
        h > 0. ``"auto"``: ``c · n^(-2/(K+3))``, c = 0.4 for squares without bias and 1.5 else. Searches take the best
        of ``2^(-k/2)``, k = 0 … 24: ``"cv"`` predicts every outcome from the others with the least squared error;
        ``"loo"`` has the largest leave-one-out likelihood of the probability vectors,
        ``Σ_j log 1/(n-1) Σ_{i≠j} k_ji``; ``"loo-as-published"`` subtracts log h from each term, as the authors' code
        does, and so finds bandwidths that are far too small, among theirs: 15 from 1e-5 to 0.1, each 1.9 times the one
        before, and 0.2, 0.4 … 1. Beyond 2048 rows a search reads 2048 of them.
    orientation : {"data", "query"}, default "data"
    debias : None, "ratio", "square" or "cross", default None
        None: the plug-in. ``"ratio"``: Ê less the second-order bias of a ratio, ``m/(m-1) (Ê Σw² - Σw²y)``, m = n - 1.
        ``"square"`` (p = 2): for every component the unbiased square of the mean, ``(Ê² - Σw²y²) / (1 - Σw²)``.
        ``"cross"`` (p = 1 or 2): with the residual r = y - f, which does not enter its own estimate, and gaps
        ``d = Ê - f``: ``Σ_c sign(d_c) r_c``, or ``Σ_c (2 d_c r_c - d̂_c²)`` with the unbiased square. Whatever the
        blur, neither exceeds the truth in expectation, and what is missed is of the second order in it.
    residual : bool, default False
        Smooth ``y - f`` instead of y: ``Ê_j - f_j`` is then ``Σ w (y_i - f_i)``, of which the mean is 0 for a
        calibrated model whatever the bandwidth. Otherwise the kernel also averages unequal f, and the difference leaks.
    eps : float, default 1e-6
        Probabilities are clipped to eps before their logarithm is taken; those of logits are exact.

    Notes
    -----
    Range [0, 2^(1/p)]; debiased powers are signed, and below 0 by chance (:func:`squared_calibration_error` shows
    them).
    For p = 1 the sum of signs is noisier near calibration than its standard error says.
    Bias of the plug-in: upward, and dominated by noise as soon as K ≥ 4: a calibrated model of 8 classes gets 0.3 to
    1.2 at n = 2000. For the canonical notion ``estimator="auto"`` is therefore
    ``DirichletKernel(debias="cross", residual=True)`` for p = 1, the same with ``orientation="query"`` for p = 2, and
    with ``debias="ratio"`` for other p (docs/canonical.md has what was tried). p = inf: the largest gap. Notion
    ``"drawn-class"``: of each gap the component of the observed class. Both without ``"square"`` and ``"cross"``. NaN
    for a single sample.

    Vector problems are read in row tiles: cost O(n² K), memory O(n K) and a few tiles of 4 MB, in as many threads as
    linear algebra may use (``OMP_NUM_THREADS``, ``threadpoolctl``), which change no digit. One score at a time:
    exact up to 2048 samples, and beyond on a grid of 2049 nodes over ``θ``, ``score = sin² θ``; cost O(n + G²).

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
        object.__setattr__(self, "bandwidth", check_width(self.bandwidth, RULES))
        if self.orientation not in ORIENTATIONS:
            raise ValueError(f"orientation must be 'data' or 'query'; got {self.orientation!r}")
        if self.debias not in DEBIASES:
            raise ValueError(f"debias must be None, 'ratio', 'square' or 'cross'; got {self.debias!r}")
        if not isinstance(self.residual, (bool, np.bool_)):
            raise TypeError(f"residual must be True or False; got {self.residual!r}")
        object.__setattr__(self, "eps", check_eps(self.eps))

    def _square(self, problem: Any) -> float:
        """Signed square, for the debiases that have one."""
        if self.debias not in ("square", "cross"):
            return super()._square(problem)
        return self.power(problem, 2)

    def _power_and_se(self, problem: Any, norm: float) -> PowerAndSE:
        """``errorᵖ``, and its standard error where it is an average of nearly independent terms."""
        self._check_norm(norm)
        if isinstance(problem, Problem):
            return power_and_se(self, problem, norm)
        if problem.drawn and self.debias in ("square", "cross"):
            raise ValueError(f"debias={self.debias!r} adds up all classes, and is not for one class alone")
        sample = Simplex.of(problem, self.eps)
        values = self._values(sample)
        second = None if self.debias is None else values if self.debias == "ratio" else values**2
        near = around(sample, values, self._h(sample, norm), self.orientation, second)
        return self._reduced(near, sample, norm)

    def _reduced(self, near: LeaveOneOutMeans, sample: Simplex, norm: float) -> PowerAndSE:
        """Power and standard error from the neighbourhood of every sample."""
        gap = near.mean if self.residual else near.mean - sample.probs
        if near.second is None or near.concentration is None:
            return _plug_in(gap, near.known, sample, norm)
        s2 = near.concentration[:, None]
        if self.debias == "ratio":
            m = max(sample.size - 1, 2.0)
            return _plug_in(gap - m / (m - 1) * (near.mean * s2 - near.second), near.known, sample, norm)
        cross = sample.residuals()
        if norm == 1:
            terms = (np.sign(gap) * cross).sum(axis=1)
            return PowerAndSE.of_terms(terms, terms, np.where(near.known, sample.mass, 0.0), sample.size)
        known = near.known & (1 - near.concentration > LEAST)
        square = np.divide(near.mean**2 - near.second, 1 - s2, out=np.zeros_like(gap), where=known[:, None])
        if not self.residual:
            square = square - 2 * near.mean * sample.probs + sample.probs**2
        # The efficient influence function of E d², whichever way it is estimated.
        influence = (2 * gap * cross - square).sum(axis=1)
        terms = influence if self.debias == "cross" else square.sum(axis=1)
        return PowerAndSE.of_terms(terms, influence, np.where(known, sample.mass, 0.0), sample.size)

    def _details(self, problem: Any, norm: float) -> dict[str, float]:
        """What :attr:`Estimate.details` holds, of a vector problem.

        ``bandwidth``; ``neighbours``: effective number of samples around one, ``1 / Σw²``, on average; ``degenerate``:
        part of the samples around which one outweighs all others, so that they have no unbiased square. And at the
        bandwidth for squares, with ``E|μ|²`` from ``2 Ê·y`` less the unbiased square of Ê, μ = E[y | f]: ``sharpness``,
        the variance of μ, and ``refinement``, ``E Σ_c μ_c (1 - μ_c)``, which makes the Brier score together with the
        squared calibration error.
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
        """``Σw²``, where there is an unbiased square, and ``|μ|²`` around every sample."""
        near = around(sample, outcome, h, self.orientation, outcome)
        if near.second is None or near.concentration is None:
            raise RuntimeError("squares were asked for")
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
        """Bandwidths that the rule chooses from."""
        return PUBLISHED_BANDWIDTHS if self.bandwidth == "loo-as-published" else BANDWIDTHS

    def _likeliest(self, sample: Simplex) -> float:
        """Bandwidth of the largest leave-one-out likelihood of the probability vectors, as the rule reads it."""
        rows = _search_rows(sample)
        likelihood = log_densities(sample, self._tried, self.orientation, rows) @ sample.mass[rows]
        if self.bandwidth == "loo-as-published":
            likelihood = likelihood - np.log(self._tried) * sample.mass[rows].sum()
        return float(self._tried[int(np.argmax(likelihood))])

    def _width(self, counts: AngleCounts, norm: float) -> float:
        """Bandwidth for a sample of one score."""
        if not isinstance(self.bandwidth, str):
            return self.bandwidth
        if self.bandwidth == "auto":
            squares = self.debias in ("square", "cross") and norm == 2
            return auto(float(counts.effective_size), 2, squares=squares)
        return search(self, counts, self._tried)

    def _predicting(self, sample: Simplex, rows: AnyArray) -> float:
        """Bandwidth that predicts outcomes best; of equals the widest."""
        loss = []
        outcome = sample.one_hot()
        for h in BANDWIDTHS:
            near = around(sample, self._values(sample), float(h), self.orientation, rows=rows)
            predicted = near.mean + sample.probs[rows] if self.residual else near.mean
            predicted[~near.known] = sample.probs[rows][~near.known]
            loss.append(float(sample.mass[rows] @ ((outcome[rows] - predicted) ** 2).sum(axis=1)))
        return float(BANDWIDTHS[int(np.argmin(loss))])

    def _values(self, sample: Simplex) -> FloatArray:
        """What is smoothed, (n, K)."""
        return sample.residuals() if self.residual else sample.one_hot()

    def _check_norm(self, norm: float) -> None:
        """Raise ValueError for a norm that the debias does not serve."""
        if self.debias == "square" and norm != 2:
            raise ValueError(f"debias='square' is for norm 2; got norm={norm:g}")
        if self.debias == "cross" and norm not in (1, 2):
            raise ValueError(f"debias='cross' is for norm 1 and 2; got norm={norm:g}")


def auto(n: float, k: int, *, squares: bool) -> float:
    """Bandwidth by rule, for n samples and K classes."""
    return float((_AUTO_SQUARE if squares else _AUTO) * max(n, 1.0) ** (-2 / (k + 3)))


def _plug_in(gap: FloatArray, known: AnyArray, sample: Simplex, norm: float) -> PowerAndSE:
    mass = np.where(known, sample.mass, 0.0)
    if not mass.sum() > 0:
        return PowerAndSE.nothing()
    share = sample.one_hot() if sample.drawn else None
    return PowerAndSE(float(vector_power(gap, mass, norm, share)), float("nan"))


def _search_rows(sample: Simplex) -> AnyArray:
    """Rows that a search reads: all, or some spread evenly over their order, which does not depend on that given."""
    n = sample.n_rows
    if n <= _SEARCH_ROWS:
        return np.arange(n)
    order = np.lexsort((sample.codes, *sample.probs.T[::-1]))
    return np.asarray(order[np.linspace(0, n - 1, _SEARCH_ROWS).astype(np.intp)])
