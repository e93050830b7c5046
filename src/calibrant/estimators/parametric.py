"""`Parametric`: a map of the logit with two or three parameters, shrunk towards perfect calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..data.problem import Problem
from ..data.types import FloatArray
from ..sums import DistinctScores
from ..sums.field_checks import need, need_shape, need_within
from .base import CellEstimator, Cells
from .logitmap import FAMILIES, expit, gaps, logits_of
from .model_cells import FittedCells, check_eps, shared_counts
from .norm import mean_power

#: Grid cells over the clipped logits, and the number of samples up to which there is no grid.
LOGIT_CELLS = 512
#: Numbers fitted at a time.
_BLOCK = 1 << 16
#: Grid cells where samples are redrawn.
_REDRAWN_CELLS = 128


@dataclass(frozen=True, eq=False)
class LogitMoments:
    """Logits of scores while they are few; beyond :data:`LOGIT_CELLS` samples, linear-binned counts over the logit.

    Unlike a grid of scores it is fine where they are near 0 or 1 and logits differ most. Sharing a sample between its
    two nearest nodes keeps ``Σ o ℓ`` and ``Σ ℓ``, to which likelihoods of logit maps are sensitive in the first order.

    Attributes
    ----------
    logits : ndarray of shape (…, m)
        Of distinct scores, or of nodes.
    count, positive, squares : ndarray of shape (…, m)
        ``Σ w a``, ``Σ w a o`` and ``Σ w² a`` with the linear share ``a``; 0 behind a problem's last.
    step : ndarray of shape (…)
        Distance between nodes; 0 for distinct scores.
    edge : float
        Largest logit, to which scores are clipped.
    """

    logits: FloatArray
    count: FloatArray
    positive: FloatArray
    squares: FloatArray
    step: FloatArray
    edge: float
    domain: tuple[float, float]
    n_samples: Any
    integral: bool

    @classmethod
    def of(cls, problem: Problem, eps: float) -> LogitMoments:
        """Logits or counts of the samples of one problem, or of many. Cost O(n + G); of few rows O(n log n)."""
        if problem.weights is None and len(problem) and int(problem.counts.min()) > LOGIT_CELLS:
            return cls._of_many(problem, eps)
        runs = problem.sums(DistinctScores())
        values = (logits_of(runs.scores, eps), runs.weight, runs.outcome, runs.square)
        n = problem.counts if problem.shape else problem.n_samples
        logits, count, positive, squares = (v.reshape(*problem.shape, -1) for v in runs.table(*values))
        step = np.zeros(problem.shape)
        few = cls(logits, count, positive, squares, step, edge_of(eps), problem.domain, n, problem.counted)
        return few.with_grids(np.asarray(runs.totals if runs.integral else runs.n_rows).reshape(problem.shape))

    @classmethod
    def _of_many(cls, problem: Problem, eps: float) -> LogitMoments:
        """Counts on nodes, from rows in any order."""
        edge, p = edge_of(eps), problem
        position = (logits_of(p.scores.astype(np.float64), eps) + edge) * (LOGIT_CELLS / (2 * edge))
        cell = np.clip(position, 0, LOGIT_CELLS - 1).astype(np.intp)
        position = np.clip(position - cell, 0, 1)
        cell += p.row * (LOGIT_CELLS + 1)
        length, tables = len(p) * (LOGIT_CELLS + 1), list[FloatArray]()
        for values in (np.ones(p.n_samples), p.outcomes.astype(np.float64)):
            above = values * position
            table = np.bincount(cell, values - above, minlength=length).astype(np.float64)
            table[1:] += np.bincount(cell, above, minlength=length)[:-1]
            tables.append(table.reshape(*p.shape, LOGIT_CELLS + 1))
        nodes = np.broadcast_to(np.linspace(-edge, edge, LOGIT_CELLS + 1), tables[0].shape)
        step = np.full(p.shape, 2 * edge / LOGIT_CELLS)
        n = p.counts if p.shape else p.n_samples
        squares = p.variances(tables[0], tables[0])
        return cls(nodes, tables[0], tables[1], squares, step, edge, p.domain, n, p.counted)

    def check(self) -> None:
        """ValueError unless these can be the counts of rows."""
        shape = (*np.shape(self.n_samples), *self.logits.shape[-1:])
        need_shape(shape, logits=self.logits, count=self.count, positive=self.positive, squares=self.squares)
        need_shape(shape[:-1], step=self.step)
        need(np.abs(self.logits) <= self.edge * (1 + 1e-9), "logits must lie within the clipped range")
        need((self.step >= 0) & (self.step <= self.edge), "step must lie within the clipped range")
        need((self.count >= 0).all() and (self.squares >= 0).all(), "count and squares must not be negative")
        need_within("positive", self.positive, self.count)

    def with_grids(self, size: FloatArray) -> LogitMoments:
        """Counts on nodes for the problems of more than :data:`LOGIT_CELLS` samples."""
        many = size > LOGIT_CELLS
        if not many.any():
            return self
        grid = self.binned(LOGIT_CELLS)
        if many.all():
            return grid
        wide = max(self.logits.shape[-1], grid.logits.shape[-1])
        out = []
        for f in _FIELDS:
            table = np.zeros((*self.step.shape, wide))
            for some, values in ((~many, getattr(self, f)), (many, getattr(grid, f))):
                table[some, : values.shape[-1]] = values[some]
            out.append(table)
        tables: dict[str, Any] = dict(zip(_FIELDS, out, strict=True))
        return replace(self, **tables, step=np.where(many, grid.step, 0.0))

    def __getitem__(self, index: Any) -> LogitMoments:
        """Those of one of many problems, or of some."""
        some = {f: getattr(self, f)[index] for f in (*_FIELDS, "step", "n_samples")}
        return replace(self, **some)

    def __add__(self, other: LogitMoments) -> LogitMoments:
        if not isinstance(other, LogitMoments):
            return NotImplemented
        if (self.domain, self.edge) != (other.domain, other.edge):
            raise ValueError(
                f"LogitMoments of different domains or clip levels cannot merge: {self.domain} to {self.edge:.6g} and "
                f"{other.domain} to {other.edge:.6g}"
            )
        n, integral = self.n_samples + other.n_samples, self.integral and other.integral
        if self.step.any() or other.step.any():
            one, two = self.binned(LOGIT_CELLS), other.binned(LOGIT_CELLS)
            added: dict[str, Any] = {f: getattr(one, f) + getattr(two, f) for f in _FIELDS[1:]}
            return replace(one, n_samples=n, integral=integral, **added)
        sums: dict[str, Any] = {f: np.concatenate([getattr(self, f), getattr(other, f)], axis=-1) for f in _FIELDS}
        both = replace(self, n_samples=n, integral=integral, **sums)
        return both.with_grids(np.asarray(both.count.sum(axis=-1) if integral else (both.count > 0).sum(axis=-1)))

    def binned(self, cells: int) -> LogitMoments:
        """Counts on the nodes of a regular grid."""
        span = (-self.edge, self.edge)
        sums: dict[str, Any] = {f: shared_counts(self.logits, getattr(self, f), span, cells) for f in _FIELDS[1:]}
        nodes = np.broadcast_to(np.linspace(*span, cells + 1), sums["count"].shape)
        return replace(self, logits=nodes, step=np.full(self.step.shape, 2 * self.edge / cells), **sums)

    @property
    def unit(self) -> FloatArray:
        """Effective sample size a unit of weight, (…)."""
        total, squares = self.count.sum(axis=-1), self.squares.sum(axis=-1)
        if self.integral:
            return np.ones(total.shape)
        return np.asarray(np.divide(total, squares, out=np.ones(total.shape), where=squares > 0))

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of what is drawn anew, in units of the effective sample size."""
        unit = self.unit[..., None]
        return expit(self.logits), self.count * unit, self.positive * unit

    def redrawn(self, count: FloatArray, positive: FloatArray) -> LogitMoments:
        """Those of samples with other counts (R, m) and positives (b R, m) at the same logits."""
        count = np.tile(count, (len(positive) // len(count), 1))
        return replace(
            self,
            logits=np.broadcast_to(self.logits, count.shape),
            count=count,
            positive=np.clip(positive, 0, count),
            squares=count,
            step=np.full(len(count), self.step),
            n_samples=np.full(len(count), self.n_samples),
            integral=True,
        )


_FIELDS = ("logits", "count", "positive", "squares")


@dataclass(frozen=True)
class Logits:
    """Sums that an estimator may name: those over the logit, of scores clipped to [eps, 1 - eps]."""

    eps: float

    def of(self, problem: Problem) -> LogitMoments:
        """Sums of a problem's samples."""
        return LogitMoments.of(problem, self.eps)


def edge_of(eps: float) -> float:
    """Largest logit of scores clipped to [eps, 1 - eps]; rounding makes the two ends differ in their last digits."""
    low, high = logits_of(np.array([eps, 1 - eps]), eps)
    return float(max(-low, high))


@dataclass(frozen=True)
class Parametric(CellEstimator):
    r"""Calibration error of a parametric recalibration map, shrunk towards the identity.

    .. math:: \Big(\frac1n \sum_i |g(s_i) - s_i|^p\Big)^{1/p}, \qquad
        \operatorname{logit} g(s) = \ell + \sum_k \theta_k z_k(\ell), \quad \ell = \operatorname{logit} s

    with θ maximising ``Σ log-likelihood - shrinkage/2 · |θ|²``. The z are deviations from the identity, each
    orthogonal to those before it over the sample and of mean square 1, so that θ_k is the root mean square change of
    the logit along the k-th direction, and θ = 0 is perfect calibration.

    Parameters
    ----------
    family : {"logistic", "beta", "quadratic"}, default "logistic"
        ``a + b ℓ`` (Platt on logits); ``a + b log s - c log(1-s)`` (beta calibration, without its constraint
        b, c ≥ 0); ``a + b ℓ + c ℓ²``.
    shrinkage : float ≥ 0 or "auto", default "auto"
        Precision of the normal prior of each θ_k: ``4`` expects changes of the logit of about ½; 0 is maximum
        likelihood. ``"auto"``: the posterior mean of θ over prior standard deviations 0 (exactly calibrated), .1, .3,
        1, 3, weighted by the evidence of the data for each (Laplace's approximation).
    eps : float, default 1e-6
        Scores are clipped to [eps, 1 - eps] before their logit is taken, so exact 0 and 1 have one.

    Notes
    -----
    Range [0, 1]. Bias: little noise, since few parameters are fitted, and shrinkage downward at small n; what the
    family cannot follow (a wavy gap) is missed at every n, so it is not consistent outside its family. Samples are read
    as they are up to 512 (repeats counted), and beyond shared between the nodes of a grid of 512 steps of the logit:
    mergeable, and the error of that is about 1e-4 (p = inf reads the nodes). Its reliability curve is that of
    :class:`AdaptiveKernel`. Cost O(n + iterations · G).

    Newton's method halves steps until the penalised likelihood rises and ends when the decrement is below
    1e-9; :class:`ConvergenceWarning` otherwise.

    References
    ----------
    Platt (1999); Kull, Silva Filho & Flach (2017), *Beta calibration*; MacKay (1992), *Bayesian interpolation*, for the
    evidence.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < 1 / (1 + (1 / p - 1) ** 2)  # logit doubled: the truth is 0.0966
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.estimators.Parametric()) - 0.0966) < 0.02)
    True
    """

    _cells_are_atoms: ClassVar[bool] = True
    family: str = "logistic"
    shrinkage: float | str = "auto"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(map(repr, FAMILIES))}; got {self.family!r}")
        allowed = "shrinkage must be a finite number >= 0 or 'auto'"
        if isinstance(self.shrinkage, str):
            if self.shrinkage != "auto":
                raise ValueError(f"{allowed}; got {self.shrinkage!r}")
        elif isinstance(self.shrinkage, bool) or not isinstance(self.shrinkage, (int, float, np.number)):
            raise TypeError(f"{allowed}; got {self.shrinkage!r}")
        elif not (np.isfinite(self.shrinkage) and self.shrinkage >= 0):
            raise ValueError(f"{allowed}; got {self.shrinkage!r}")
        else:
            object.__setattr__(self, "shrinkage", float(self.shrinkage))
        object.__setattr__(self, "eps", check_eps(self.eps))

    def _needs(self, domain: tuple[float, float]) -> Logits:
        """Sums over the logit."""
        return Logits(self.eps)

    def read(self, sums: LogitMoments, norm: float) -> FloatArray:
        """``errorᵖ`` of the fitted map of every problem."""
        shape = sums.step.shape
        n = int(np.prod(shape))
        _, count, positive = (v.reshape(n, v.shape[-1]) for v in sums.atoms)
        logits, step = sums.logits.reshape(count.shape), sums.step.reshape(-1)
        out: FloatArray = np.full(len(count), np.nan)
        for width in np.unique(step):
            some = np.flatnonzero((step == width) & count.any(axis=-1))
            together = max(1, _BLOCK // max(count.shape[-1], 1))
            for a in range(0, some.size, together):
                rows = some[a : a + together]
                used = np.flatnonzero(count[rows].any(axis=0))
                held = slice(int(used[0]), int(used[-1]) + 1)
                x, mass, hits = logits[rows, held], count[rows, held], positive[rows, held]
                out[rows] = mean_power(gaps(x, mass, hits, self.family, self.shrinkage, float(width)), mass, norm)
        return out.reshape(shape)

    def _cells(self, sums: LogitMoments) -> Cells:
        """Nodes of a coarse grid of the logit as cells, and the gap of the fitted map."""
        scores, count, positive = (v[None] for v in sums.binned(_REDRAWN_CELLS).atoms)
        gap = gaps(logits_of(scores, self.eps), count, positive, self.family, self.shrinkage, self._coarse)[0]
        return FittedCells(scores[0], count[0], positive[0], None, np.ones(count.size), fitted=gap)

    def _held(self, sums: LogitMoments) -> tuple[Parametric, LogitMoments]:
        """Maps are fitted anew to every sample; what is drawn are the counts of a coarse grid."""
        return self, sums.binned(_REDRAWN_CELLS)

    @property
    def _coarse(self) -> float:
        return 2 * edge_of(self.eps) / _REDRAWN_CELLS
