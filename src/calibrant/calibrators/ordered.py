"""Maps of many classes that keep the order of each row's classes: one rising function for all logits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ..data.checks import check_int
from ..data.types import AnyArray, FloatArray
from .base import EPS, Calibrator, check_eps, check_not_negative, parameter
from .inputs import CalibrationSample, Scores
from .newton import Solution, minimise, part_of
from .saved_state import STEPS, Field, Numbers
from .spline import quantiles
from .temperature import softmax

#: Slopes are at least this: a flat piece would make classes equal.
_LEAST = 1e-3
#: Numbers worked on at a time.
_TILE = 1 << 18


@dataclass(eq=False, repr=False)
class OrderPreserving(Calibrator):
    r"""Order-preserving map: :math:`\operatorname{softmax}(g(z - \max z))` with one rising, piecewise linear g.

    Temperature scaling has one slope for all logits; here it differs with how far a class lies behind the first one, so
    that the second choice and the unlikely classes can be over-confident by different amounts. Classes keep their order
    in every row, all of it, and with it the accuracy and every top-k accuracy.

    .. math:: \min_\beta\; \text{mean log-loss} + \frac{1}{2 n} (\beta_1 - 1)^2
        + \frac{\alpha}{2 n} \sum_j (\beta_{j+1} - \beta_j)^2, \qquad \beta_j \ge 0.001

    with β the slopes of g: a normal prior that starts at the identity, and of whose changes α is the precision. Large α
    make temperature scaling of it.

    Parameters
    ----------
    n_knots : int, default 6
        At most; quantiles of the distances behind the first class, weighted by the classes' probabilities, so that
        pieces lie where probability does.
    alpha : float, default 10
        α ≥ 0.
    input, labels, eps
        As :class:`TemperatureScaling`.

    Attributes
    ----------
    knots_ : ndarray of shape (m + 1,)
        Distances behind the first class at which the slope changes, from 0 on, ascending; the last slope goes on.
    slopes_ : ndarray of shape (m + 1,)
        β, of the piece that begins at each knot.
    gradient_norm_ : float
        Largest violation of the conditions of the optimum.
    n_iter_ : int

    Notes
    -----
    This is the diagonal, order-invariant member of the family of Rahimi et al., which fit it by a network; with given
    knots the problem is convex and solved by Newton's method. It treats all classes alike: what differs between classes
    needs :class:`VectorScaling`. Differences of logits below the rounding of the softmax become ties. Cost O(n K m²) a
    step, some eight steps.

    References
    ----------
    Rahimi et al. (2020), *Intra order-preserving functions for calibration of multi-class neural networks*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import OrderPreserving
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1, 1], 5000)
    >>> y = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> q = OrderPreserving().fit(p**2 / (p**2).sum(axis=1, keepdims=True), y).predict_proba(p)
    >>> bool((q.argsort(axis=1) == p.argsort(axis=1)).all())
    True
    """

    n_knots: int = parameter(6, partial(check_int, least=0))
    alpha: float = parameter(10.0, check_not_negative)
    _: KW_ONLY
    eps: float = parameter(EPS, check_eps)

    _state: ClassVar[Mapping[str, Field]] = {
        "knots_": Numbers(("m",), 0, ascending=True),
        "slopes_": Numbers(("m",), _LEAST),
        **STEPS,
    }

    def _fit(self, sample: CalibrationSample) -> None:
        behind = _behind(sample.scores, self.eps)
        part = part_of(len(behind)) or slice(None)
        self.knots_ = _knots(behind[part], sample.weights[part], self.n_knots)
        loss = _OrderedLoss(behind, sample.codes, sample.weights, self.knots_, self.alpha)
        start: FloatArray = np.ones(len(self.knots_))
        if part != slice(None):
            some = _OrderedLoss(behind[part], sample.codes[part], sample.weights[part], self.knots_, self.alpha)
            start = _solved(some, start).x
        found = _solved(loss, start).warn("OrderPreserving")
        self.slopes_ = found.x
        self.gradient_norm_, self.n_iter_ = found.gradient_norm, found.n_iter

    def _probabilities(self, scores: Scores) -> FloatArray:
        behind = _behind(scores, self.eps)
        reach = np.concatenate([[0.0], np.cumsum(self.slopes_[:-1] * np.diff(self.knots_))])
        piece = np.searchsorted(self.knots_, behind, side="right") - 1
        return softmax(-(reach[piece] + self.slopes_[piece] * (behind - self.knots_[piece])))


def _behind(scores: Scores, eps: float) -> FloatArray:
    """How far each logit lies behind the largest of its row, (n, K), float64."""
    z = scores.logs(eps).astype(np.float64)
    return np.asarray(z.max(axis=1, keepdims=True) - z)


def _knots(behind: FloatArray, weights: FloatArray, n_knots: int) -> FloatArray:
    """0 and quantiles of the distances above it, weighted by the probabilities of their classes."""
    use = behind > 0
    if not use.any() or n_knots == 0:
        return np.zeros(1)
    mass = (softmax(-behind) * weights[:, None])[use]
    inner = quantiles(behind[use], mass, np.arange(1, n_knots + 1) / (n_knots + 1))
    return np.unique(np.concatenate([[0.0], inner]))


def _solved(loss: _OrderedLoss, start: FloatArray) -> Solution:
    return minimise(loss, start, np.full(len(start), _LEAST))


class _OrderedLoss:
    """Mean log-loss and penalty with derivatives in the slopes, in which logits are linear; tile by tile."""

    def __init__(
        self, behind: FloatArray, codes: AnyArray, weights: FloatArray, knots: FloatArray, alpha: float
    ) -> None:
        self.behind, self.codes, self.weights, self.knots = behind, codes, weights, knots
        self.total = float(weights.sum())
        m = len(knots)
        change = np.diff(np.eye(m), axis=0)
        self.precision = (np.diag(np.eye(m)[0]) + alpha * change.T @ change) / self.total

    def _tiles(self) -> Iterator[tuple[FloatArray, AnyArray, FloatArray]]:
        """How much of each piece lies before a logit (t, K, m), codes, and weights."""
        ends = np.append(self.knots[1:], np.inf)
        step = max(1, _TILE // (self.behind.shape[1] * len(self.knots)))
        for a in range(0, len(self.codes), step):
            rows = slice(a, a + step)
            inside = np.minimum(self.behind[rows, :, None], ends) - self.knots
            yield np.maximum(inside, 0.0, out=inside), self.codes[rows], self.weights[rows]

    def __call__(self, slopes: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        off = slopes - 1
        gradient: FloatArray = self.precision @ off
        value = 0.5 * float(off @ gradient)
        hessian: FloatArray | None = self.precision if curved else None
        for reach, codes, w in self._tiles():
            logits = -(reach @ slopes)
            e = np.exp(logits)  # the first class of a row has 0
            whole = e.sum(axis=1)
            p = e / whole[:, None]
            own = np.arange(len(codes)), codes
            mean = np.einsum("ik,ikm->im", p, reach)
            value += float(w @ (np.log(whole) - logits[own])) / self.total
            gradient = gradient + w @ (reach[own] - mean) / self.total
            if hessian is not None:
                flat = reach.reshape(-1, len(slopes))
                hessian = hessian + (flat * (p * w[:, None]).reshape(-1, 1)).T @ flat / self.total
                hessian = hessian - (mean * w[:, None]).T @ mean / self.total
        return value, gradient, hessian
