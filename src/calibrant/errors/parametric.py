"""`Parametric`: a map of the logit with two or three parameters, shrunk towards perfect calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._types import FloatArray
from ..density import GridMoments
from ..problem import Problem
from .base import CellEstimator, Cells
from .fitted import DrawnFromNodes, FittedCells, check_eps, grid_of, shared_counts
from .logitmap import FAMILIES, expit, gaps, logits_of
from .norm import mean_power

#: Grid cells over the clipped logits, and the number of samples up to which there is no grid.
LOGIT_CELLS = 512
#: Grid cells where samples are redrawn.
_REDRAWN_CELLS = 128


@dataclass(frozen=True, eq=False)
class LogitMoments:
    """Logits of rows while they are few; beyond :data:`LOGIT_CELLS` samples, linear-binned counts over the logit.

    Unlike a grid of scores it is fine where they are near 0 or 1 and logits differ most. Sharing a sample between its
    two nearest nodes keeps ``Σ o ℓ`` and ``Σ ℓ``, to which likelihoods of logit maps are sensitive in the first order.

    Attributes
    ----------
    logits : ndarray of shape (m,)
        Of rows, or of the nodes in use.
    count, positive, squares : ndarray of shape (m,)
        ``Σ w a``, ``Σ w a o`` and ``Σ w² a`` with the linear share ``a``.
    edge : float
        Largest logit, to which scores are clipped.
    cells : int
        Of the grid; 0 for rows.
    """

    logits: FloatArray
    count: FloatArray
    positive: FloatArray
    squares: FloatArray
    edge: float
    cells: int
    domain: tuple[float, float]
    n_samples: int
    integral: bool

    @classmethod
    def of(cls, problem: Problem, eps: float) -> LogitMoments:
        """Logits or counts of a problem's samples. Cost O(n + G)."""
        s = problem.scores.astype(np.float64)
        o = problem.outcomes.astype(np.float64)
        w = np.ones(s.size) if problem.weights is None else problem.weights.astype(np.float64)
        if problem.weights is not None:
            used = w > 0
            s, o, w = s[used], o[used], w[used]
        rows = cls(
            logits_of(s, eps), w, w * o, w * w, edge_of(eps), 0, problem.domain, problem.n_samples, problem.integral
        )
        return rows.binned(LOGIT_CELLS) if rows.many else rows

    def __add__(self, other: LogitMoments) -> LogitMoments:
        if not isinstance(other, LogitMoments):
            return NotImplemented
        if (self.domain, self.edge) != (other.domain, other.edge):
            raise ValueError(
                f"LogitMoments of different domains or clip levels cannot merge: {self.domain} to {self.edge:.6g} and "
                f"{other.domain} to {other.edge:.6g}"
            )
        both = LogitMoments(
            np.concatenate([self.logits, other.logits]),
            np.concatenate([self.count, other.count]),
            np.concatenate([self.positive, other.positive]),
            np.concatenate([self.squares, other.squares]),
            self.edge,
            0,
            self.domain,
            self.n_samples + other.n_samples,
            self.integral and other.integral,
        )
        return both.binned(LOGIT_CELLS) if self.cells or other.cells or both.many else both

    @property
    def many(self) -> bool:
        """Whether there are more samples (repeats counted) than a grid has cells."""
        return bool((self.count.sum() if self.integral else self.count.size) > LOGIT_CELLS)

    @property
    def step(self) -> float:
        """Distance between nodes; 0 for rows."""
        return 2 * self.edge / self.cells if self.cells else 0.0

    def binned(self, cells: int) -> LogitMoments:
        """Counts on the nodes in use of a regular grid."""
        span = (-self.edge, self.edge)
        count, positive, squares = (
            shared_counts(self.logits, v, span, cells) for v in (self.count, self.positive, self.squares)
        )
        used = count > 0
        nodes = np.linspace(*span, cells + 1)[used]
        return replace(
            self, logits=nodes, count=count[used], positive=positive[used], squares=squares[used], cells=cells
        )

    def units(self) -> tuple[FloatArray, FloatArray]:
        """Counts and positives in units of the effective sample size."""
        total, squares = float(self.count.sum()), float(self.squares.sum())
        scale = 1.0 if self.integral or squares == 0 else total / squares
        return self.count * scale, self.positive * scale

    def grid(self) -> GridMoments:
        """Counts on the regular grid that curves are drawn from."""
        return grid_of(
            expit(self.logits),
            self.count,
            self.positive,
            self.domain,
            total=float(self.count.sum()),
            squares=float(self.squares.sum()),
            n_samples=self.n_samples,
            integral=self.integral,
        )


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
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.Parametric()) - 0.0966) < 0.02)
    True
    """

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

    @property
    def drawn_as(self) -> CellEstimator:
        """Residuals over scores with a bandwidth that adapts."""
        return DrawnFromNodes()

    def summarize(self, problem: Problem) -> LogitMoments:
        """Sums over bins of the logit."""
        return LogitMoments.of(problem, self.eps)

    def power_of(self, summary: LogitMoments, norm: float) -> float:
        """``errorᵖ`` of the fitted map."""
        count, positive = summary.units()
        return float(self._powers(summary.logits, count[None], positive[None], summary.step, norm)[0])

    def cells(self, summary: LogitMoments) -> Cells:
        """Nodes of a coarse grid of the logit as cells, and the gap of the fitted map."""
        coarse = summary.binned(_REDRAWN_CELLS)
        count, positive = coarse.units()
        shape = (coarse.logits[None], count[None], positive[None])
        gap = gaps(*shape, self.family, self.shrinkage, coarse.step)[0]
        return FittedCells(expit(coarse.logits), count, positive, None, np.ones(count.size), fitted=gap)

    def resampled_power(self, cells: Cells, density: FloatArray, positive: FloatArray, norm: float) -> FloatArray:
        """``errorᵖ`` of maps fitted to resampled nodes."""
        logits, step = logits_of(cells.scores, self.eps), 2 * edge_of(self.eps) / _REDRAWN_CELLS
        return self._powers(logits, density, np.clip(positive, 0, density), step, norm)

    def _powers(
        self, logits: FloatArray, count: FloatArray, positive: FloatArray, step: float, norm: float
    ) -> FloatArray:
        """``errorᵖ`` for counts of shape (R, m) at logits of shape (m,)."""
        if logits.size == 0:
            return np.full(count.shape[0], np.nan)
        logits = np.broadcast_to(logits, count.shape)
        return mean_power(gaps(logits, count, positive, self.family, self.shrinkage, step), count, norm)
