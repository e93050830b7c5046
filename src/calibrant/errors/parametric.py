"""`Parametric`: a map of the logit with two or three parameters, shrunk towards perfect calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import FloatArray
from ..density import GridMoments
from ..problem import Problem
from .base import CellEstimator, Cells
from .fitted import DrawnFromNodes, FittedCells, grid_of
from .logitmap import FAMILIES, expit, gaps, logits_of
from .norm import mean_power

#: Grid cells over the clipped logits.
LOGIT_CELLS = 512
#: The same where samples are redrawn.
_REDRAWN_CELLS = 128


@dataclass(frozen=True, eq=False)
class LogitMoments:
    """Linear-binned counts of the logits, and the domain of the scores.

    Unlike a grid of scores it is fine where they are near 0 or 1 and logits differ most. Sharing a sample between its
    two nearest nodes keeps ``Σ o ℓ`` and ``Σ ℓ``, to which likelihoods of logit maps are sensitive in the first order.
    """

    logits: GridMoments
    domain: tuple[float, float]

    @classmethod
    def of(cls, problem: Problem, eps: float) -> LogitMoments:
        """Counts of a problem's samples. Cost O(n + G)."""
        p = problem
        logits = logits_of(p.scores.astype(np.float64), eps)
        ends = logits_of(np.array([eps, 1 - eps]), eps)
        # 1 - eps is rounded, so the two ends differ in their last digits.
        edge = float(max(-ends[0], ends[1]))
        moved = Problem(logits, p.outcomes, p.weights, p.integral, (-edge, edge))
        return cls(GridMoments.of(moved, LOGIT_CELLS), p.domain)

    def __add__(self, other: LogitMoments) -> LogitMoments:
        if not isinstance(other, LogitMoments):
            return NotImplemented
        if self.domain != other.domain:
            raise ValueError(f"LogitMoments of different domains cannot merge: {self.domain} and {other.domain}")
        return LogitMoments(self.logits + other.logits, self.domain)

    @property
    def n_samples(self) -> int:
        """Rows."""
        return self.logits.n_samples

    def nodes(self, cells: int = LOGIT_CELLS) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logit, count and positives of the nodes in use, in units of the effective sample size."""
        grid = self.logits.coarsen(LOGIT_CELLS // cells)
        used = grid.count > 0
        scale = grid.effective_size / grid.total if grid.total > 0 else 0.0
        return grid.nodes[used], grid.count[used] * scale, grid.positive[used] * scale

    def grid(self) -> GridMoments:
        """Counts on the regular grid that curves are drawn from."""
        g = self.logits
        return grid_of(
            expit(g.nodes),
            g.count,
            g.positive,
            self.domain,
            total=g.total,
            squares=g.squares,
            n_samples=g.n_samples,
            integral=g.integral,
        )


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
    family cannot follow (a wavy gap) is missed at every n, so it is not consistent outside its family. Samples are
    first shared between the nodes of a grid of 512 steps of the logit: mergeable, and the error of that is about 1e-4
    (p = inf reads the nodes). Its reliability curve is that of :class:`AdaptiveKernel`. Cost O(n + iterations · G).

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
        if isinstance(self.eps, bool) or not isinstance(self.eps, (int, float, np.number)):
            raise TypeError(f"eps must be a number in (0, 0.1]; got {self.eps!r}")
        if not 0 < self.eps <= 0.1:
            raise ValueError(f"eps must lie in (0, 0.1]; got {self.eps!r}")
        object.__setattr__(self, "eps", float(self.eps))

    @property
    def drawn_as(self) -> CellEstimator:
        """Residuals over scores with a bandwidth that adapts."""
        return DrawnFromNodes()

    def summarize(self, problem: Problem) -> LogitMoments:
        """Sums over bins of the logit."""
        return LogitMoments.of(problem, self.eps)

    def power_of(self, summary: LogitMoments, norm: float) -> float:
        """``errorᵖ`` of the fitted map."""
        logits, count, positive = summary.nodes()
        return float(self._powers(logits, count[None], positive[None], norm)[0])

    def cells(self, summary: LogitMoments) -> Cells:
        """Nodes of a coarser grid of the logit as cells, and the gap of the fitted map."""
        logits, count, positive = summary.nodes(_REDRAWN_CELLS)
        gap = gaps(logits[None], count[None], positive[None], self.family, self.shrinkage)[0]
        return FittedCells(expit(logits), count, positive, None, np.ones(logits.size), fitted=gap)

    def resampled_power(self, cells: Cells, density: FloatArray, positive: FloatArray, norm: float) -> FloatArray:
        """``errorᵖ`` of maps fitted to resampled nodes."""
        return self._powers(logits_of(cells.scores, self.eps), density, np.clip(positive, 0, density), norm)

    def _powers(self, logits: FloatArray, count: FloatArray, positive: FloatArray, norm: float) -> FloatArray:
        """``errorᵖ`` for counts of shape (R, m) at logits of shape (m,)."""
        if logits.size == 0:
            return np.full(count.shape[0], np.nan)
        logits = np.broadcast_to(logits, count.shape)
        return mean_power(gaps(logits, count, positive, self.family, self.shrinkage), count, norm)
