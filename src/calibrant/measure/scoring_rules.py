"""Proper scoring rules, per observation. Lower is better, and honest forecasts minimise the expected score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..data.checks import check_choice, check_fraction, check_number
from ..data.docs import Documented
from ..data.predictions import Predictions
from ..data.types import AnyArray, FloatArray

SCALES = ("sum", "half")


class ScoringRule(Documented, ABC):
    """A proper scoring rule: the loss of predicting p if class k is observed.

    Subclasses define ``table(p)``, the loss of each row for each possible class, from which the rest follows:
    the loss for the observed class, the expected loss ``s(p, q) = Σ_k q_k loss(p, k)``, the entropy ``e(q) = s(q, q)``
    and the divergence ``d(p, q) = s(p, q) - e(q) ≥ 0``.

    See Also
    --------
    calibrant.scores.mean_score : Accepts user-defined rules.
    calibrant.decompose : Decomposes its mean.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> class Pseudospherical(cal.scores.ScoringRule):
    ...     def table(self, p):
    ...         return 1 - p**2 / (p**3).sum(axis=1, keepdims=True) ** (2 / 3)
    >>> round(cal.scores.mean_score([0, 1], [0.0, 1.0], Pseudospherical()), 3)
    0.0
    """

    #: Whether the rule is defined only for two classes.
    binary = False

    @abstractmethod
    def table(self, p: FloatArray) -> FloatArray:
        """Loss of probabilities (n, K) for each possible class, (n, K); may be infinite.

        Parameters
        ----------
        p : ndarray of shape (n, K)
            Predicted probabilities.
        """

    def losses(self, p: FloatArray, codes: AnyArray) -> FloatArray:
        """Loss of each row, (n,), for the observed classes.

        Parameters
        ----------
        p : ndarray of shape (n, K)
            Predicted probabilities.
        codes : ndarray of shape (n,)
            Indices of the observed classes.
        """
        self._check(p)
        return np.asarray(np.take_along_axis(self.table(p), codes[:, None].astype(np.intp), axis=1)[:, 0])

    def expected(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Expected loss of predicting p if the class probabilities are q, (n,); ``0 · ∞ = 0``.

        Parameters
        ----------
        p : ndarray of shape (n, K)
            Predicted probabilities.
        q : ndarray of shape (n, K)
            True class probabilities.
        """
        self._check(p)
        table = self.table(p)
        return np.asarray(np.multiply(table, q, out=np.zeros(table.shape), where=q > 0).sum(axis=1))

    def _check(self, p: FloatArray) -> None:
        if self.binary and p.shape[1] != 2:
            raise ValueError(f"{self!r} is defined for two classes; got {p.shape[1]}")


@dataclass(frozen=True)
class Brier(ScoringRule):
    """Quadratic score (Brier 1950): ``Σ_k (p_k - o_k)²``, range 0–2, or half of it.

    Parameters
    ----------
    scale : {"sum", "half"}, default "sum"
        ``"sum"``: Brier's original, 0–2. ``"half"``: 0–1; for two classes ``(p - o)²``, the usual form.

    See Also
    --------
    calibrant.brier_score : Its mean.
    calibrant.scores.Log : Infinite if the observed class has predicted probability 0.

    Examples
    --------
    >>> from calibrant.scores import Brier, mean_score
    >>> mean_score([0, 1], [0.25, 0.5], Brier("half")), mean_score([0, 1], [0.25, 0.5], Brier())
    (0.15625, 0.3125)
    """

    scale: str = "sum"

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, SCALES)

    def table(self, p: FloatArray) -> FloatArray:
        """See :class:`ScoringRule`."""
        out = (p**2).sum(axis=1, keepdims=True) - 2 * p + 1
        return np.asarray(out if self.scale == "sum" else out / 2)


@dataclass(frozen=True)
class RankedProbability(ScoringRule):
    """Ranked probability score of ordered classes (Epstein 1969): ``Σ_{k<K} (P(Y ≤ k) - [y ≤ k])²``, range 0 to K - 1.

    The sum of the K - 1 two-class Brier scores ``(p - o)²`` of cumulative probabilities, in column order. For two
    classes it is ``(p - o)²``.

    Parameters
    ----------
    scale : {"sum", "mean"}, default "sum"
        ``"mean"``: divided by K - 1, range 0–1.

    See Also
    --------
    calibrant.notions.Ordinal : The notion with the same problems.
    calibrant.decompose : Its decomposition, summed over these problems.

    Examples
    --------
    >>> from calibrant.scores import RankedProbability, mean_score
    >>> round(mean_score([0, 2], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], RankedProbability()), 3)
    0.195
    """

    scale: str = "sum"

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, ("sum", "mean"))

    def table(self, p: FloatArray) -> FloatArray:
        """See :class:`ScoringRule`."""
        k = p.shape[1]
        below = np.cumsum(p, axis=1)[:, :-1]
        # The loss of class c: squares of all P(Y > j) from c on, and of all P(Y <= j) before.
        after = np.cumsum(((1 - below) ** 2)[:, ::-1], axis=1)[:, ::-1]
        before = np.cumsum(below**2, axis=1)
        none = np.zeros((len(p), 1))
        found = np.hstack([after, none]) + np.hstack([none, before])
        return np.asarray(found if self.scale == "sum" else found / max(k - 1, 1))


@dataclass(frozen=True)
class Log(ScoringRule):
    """Logarithmic score (Good 1952), in nats: ``-log p_k``; infinite if the observed class has probability 0.

    See Also
    --------
    calibrant.log_loss : Its mean.
    calibrant.scores.Brier : A bounded score.

    Examples
    --------
    >>> from calibrant.scores import Log, mean_score
    >>> round(mean_score([0, 1], [0.25, 0.5], Log()), 4)
    0.4904
    """

    def table(self, p: FloatArray) -> FloatArray:
        """See :class:`ScoringRule`."""
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(p))


@dataclass(frozen=True)
class Spherical(ScoringRule):
    """Spherical score: ``1 - p_k / ‖p‖₂``, range 0–1.

    See Also
    --------
    calibrant.scores.Brier : Quadratic score.

    Examples
    --------
    >>> from calibrant.scores import Spherical, mean_score
    >>> round(mean_score([0, 1], [0.25, 0.5], Spherical()), 4)
    0.1721
    """

    def table(self, p: FloatArray) -> FloatArray:
        """See :class:`ScoringRule`."""
        return np.asarray(1 - p / np.sqrt((p**2).sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class BetaFamily(ScoringRule):
    r"""Binary scores that weight decision thresholds c by ``c^(α-1) (1-c)^(β-1)`` (Buja et al. 2005).

    .. math:: \ell(p, 1) = \int_p^1 c^{α-1} (1-c)^β\, dc, \qquad \ell(p, 0) = \int_0^p c^α (1-c)^{β-1}\, dc

    Parameters
    ----------
    alpha, beta : float > 0, default 1
        Exponents α and β. α = β = 1: half of ``(p - o)²``. Limit α = β = 0: the logarithmic score. ``α / (α + β)`` is
        roughly the threshold with the largest weight.

    See Also
    --------
    calibrant.scores.CostWeighted : A single threshold.
    calibrant.scores.Brier : Equal weight for all thresholds.

    Examples
    --------
    >>> from calibrant.scores import BetaFamily, mean_score
    >>> mean_score([0, 1], [0.25, 0.5], BetaFamily(1, 1))
    0.078125
    """

    alpha: float = 1.0
    beta: float = 1.0
    binary = True

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            check_number(name, value, least=1e-100, most=1e4)

    def table(self, p: FloatArray) -> FloatArray:
        """See :class:`ScoringRule`."""
        from scipy.special import beta, betainc, betaincc

        a, b, second = self.alpha, self.beta, p[:, 1]
        happens = beta(a, b + 1) * betaincc(a, b + 1, second)
        fails = beta(a + 1, b) * betainc(a + 1, b, second)
        return np.column_stack([fails, happens])


@dataclass(frozen=True)
class CostWeighted(ScoringRule):
    """Elementary binary score (Schervish 1989): the cost of acting where ``p > threshold``.

    Missing the second class costs ``1 - threshold``, a false alarm ``threshold``; at ``p = threshold`` half of the
    applicable cost is charged. Every proper binary score is a mixture of these.

    Parameters
    ----------
    threshold : float in (0, 1), default 0.5
        Decision threshold.

    See Also
    --------
    calibrant.scores.murphy_curve : Its mean at every threshold.
    calibrant.expected_cost : The cost of decisions.

    Examples
    --------
    >>> from calibrant.scores import CostWeighted, mean_score
    >>> mean_score([0, 1], [0.25, 0.5], CostWeighted(0.2))  # a false alarm of 0.2 in two rows
    0.1
    """

    threshold: float = 0.5
    binary = True

    def __post_init__(self) -> None:
        check_fraction("threshold", self.threshold)

    def table(self, p: FloatArray) -> FloatArray:
        """See :class:`ScoringRule`."""
        acts = 0.5 * (np.sign(p[:, 1] - self.threshold) + 1)
        return np.column_stack([self.threshold * acts, (1 - self.threshold) * (1 - acts)])


RULES: dict[str, ScoringRule] = {"brier": Brier(), "log-loss": Log(), "spherical": Spherical()}


def as_rule(score: str | ScoringRule, *, half: bool) -> ScoringRule:
    """Check a ``score`` argument; ``half``: whether ``"brier"`` of two classes is ``(p - o)²``, not the sum of both."""
    if isinstance(score, ScoringRule):
        return score
    check_choice("score", score, RULES, instead="a scoring rule or ")
    return Brier("half") if score == "brier" and half else RULES[score]


def brier_words(n_classes: int, *, several: bool = False) -> str:
    """Convention of displayed Brier scores, in words."""
    if several:
        return "(p-o)², the mean over labels"
    return "(p-o)², half the sum over both classes" if n_classes == 2 else "the sum over classes"


def matrix_of(p: Predictions) -> FloatArray:
    """Probabilities with one column per class, (n, K), float64."""
    if p.positive is None:
        return p.probs.astype(np.float64, copy=False)
    second = p.probs.astype(np.float64, copy=False)
    both = (1 - second, second) if p.positive == 1 else (second, 1 - second)
    return np.column_stack(both)


def score_rows(p: Predictions, score: str | ScoringRule) -> FloatArray:
    """Score of each row, (n,)."""
    if p.several:
        return _mean_of_labels(p, partial(score_rows, score=score))
    rule = as_rule(score, half=p.positive is not None)
    codes = p.codes
    if p.logs is not None and isinstance(rule, Log):
        return np.asarray(-np.take_along_axis(p.logs, codes[:, None].astype(np.intp), axis=1)[:, 0], dtype=np.float64)
    order = _binary_order(p, rule)
    return rule.losses(matrix_of(p) if order is None else matrix_of(p)[:, order], codes if order is None else 1 - codes)


def _binary_order(p: Predictions, rule: ScoringRule) -> list[int] | None:
    """Column order for an asymmetric binary rule: the class of a single column is its second."""
    return [1, 0] if rule.binary and p.positive == 0 else None


def brier_per_sample(predictions: Predictions) -> FloatArray:
    """Brier score of each row: ``(p - o)²`` for a 1-D ``y_prob``, ``Σ_k (p_k - o_k)²`` (range 0–2) for a matrix.

    For multilabel rows, the mean over labels of ``(p - o)²``.
    """
    p = predictions
    if p.several:
        return _mean_of_labels(p, brier_per_sample)
    if p.positive is not None:
        return np.asarray((p.probs.astype(np.float64) - (p.codes == p.positive)) ** 2)
    hit = _hit(p)
    squares = np.einsum("ij,ij->i", p.probs, p.probs, dtype=np.float64)
    return np.asarray(squares - 2 * hit + 1)


def log_loss_per_sample(predictions: Predictions) -> FloatArray:
    """Negative log of the predicted probability of the observed class; infinite if that is 0.

    For multilabel rows, the mean over labels.
    """
    if predictions.several:
        return _mean_of_labels(predictions, log_loss_per_sample)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(_hit(predictions)))


def accuracy_per_sample(predictions: Predictions) -> FloatArray:
    """Whether the most probable class was observed; for multilabel rows, the share of labels predicted correctly."""
    p = predictions
    if p.several:
        return _mean_of_labels(p, accuracy_per_sample)
    return np.asarray(p.predicted == p.codes, dtype=np.float64)


def _mean_of_labels(p: Predictions, score: Callable[[Predictions], FloatArray]) -> FloatArray:
    total = np.zeros(p.n_samples)
    for k in range(p.n_classes):
        total += score(p.one_label(k))
    return total / p.n_classes


def _hit(p: Predictions) -> FloatArray:
    """Predicted probability of the observed class."""
    if p.positive is not None:
        # |0 - s| = s and |1 - s|, without a choice a row.
        return np.asarray(np.abs((p.codes != p.positive) - p.probs.astype(np.float64)))
    return np.asarray(np.take_along_axis(p.probs, p.codes[:, None].astype(np.intp), axis=1)[:, 0], dtype=np.float64)
