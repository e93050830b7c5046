"""`murphy_curve`: the cost of acting on probabilities at every threshold, of which all proper scores are mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import numpy as np

from ..data.predictions import Predictions
from ..data.result import Picture, Table
from ..data.types import FloatArray, Label
from ..data.validation import as_predictions
from ..data.verbs import Reading, verb
from ..data.weights import ones_or
from .scores import matrix_of

_THRESHOLDS = 501


@dataclass(frozen=True, eq=False, repr=False)
class MurphyCurve(Picture, Table):
    """Mean elementary score at each decision threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
        Within (0, 1).
    scores : ndarray of shape (m,)
        Of acting where the probability is above the threshold c: ``(1 - c) P(o = 1, p ≤ c) + c P(o = 0, p > c)``.
    base_rate : ndarray of shape (m,)
        Of acting always or never, whichever the base rate says: what a forecast must beat to be of use at c.
    label : object
        The class that is acted upon.
    n_samples : int
    """

    display: ClassVar[str] = "MurphyDisplay"

    thresholds: FloatArray
    scores: FloatArray
    base_rate: FloatArray
    label: Label
    n_samples: int

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.thresholds, "score": self.scores, "base_rate": self.base_rate}


@verb()
def murphy_curve(
    y_true: Any,
    y_prob: Any = None,
    thresholds: Any = None,
    **reading: Unpack[Reading],
) -> MurphyCurve:
    r"""Murphy diagram of binary probabilities (Ehm, Gneiting, Jordan & Krüger 2016).

    .. math:: S(c) = (1-c)\, P(o = 1,\ p \le c) + c\, P(o = 0,\ p > c)

    A forecast whose curve is nowhere above another's is better by every proper score; where curves cross, who is better
    depends on the costs. The mean of ``(p - o)²`` is twice the area below the curve.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`; two classes.
    thresholds : array-like, optional
        Default: 501 evenly spaced within (0, 1). Where a probability equals a threshold, half of it is acted upon.

    Raises
    ------
    ValueError
        For more than two classes, or thresholds outside (0, 1).

    Notes
    -----
    Cost O(n log n + m log n).

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.murphy_curve([0, 1, 1], [0.2, 0.4, 0.9], [0.5])
    >>> round(float(curve.scores[0]), 4)  # one of three is missed, at a cost of one half
    0.1667
    """
    p = as_predictions(y_true, y_prob, **reading)
    rows = BinaryRows.of(p)
    at = np.arange(1, _THRESHOLDS + 1) / (_THRESHOLDS + 1) if thresholds is None else check_thresholds(thresholds)
    below, upto = rows.before(at, "left"), rows.before(at, "right")
    missed = (below.happened + upto.happened) / 2
    alarms = (1 - rows.base_rate) - (below.others + upto.others) / 2
    return MurphyCurve(
        thresholds=at,
        scores=(1 - at) * missed + at * alarms,
        base_rate=np.minimum((1 - at) * rows.base_rate, at * (1 - rows.base_rate)),
        label=rows.label,
        n_samples=p.n_samples,
    )


class Shares(NamedTuple):
    """Shares of the weight with scores below some thresholds: of rows where the class happened, and of the others."""

    happened: FloatArray
    others: FloatArray


@dataclass(frozen=True, eq=False)
class BinaryRows:
    """The class acted upon, its probabilities, whether it happened, and weights: what decisions are judged by."""

    label: Label
    scores: FloatArray
    happened: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, p: Predictions) -> BinaryRows:
        """Of predictions of two classes; ValueError for more."""
        if p.n_classes != 2:
            raise ValueError(f"this is of two classes; got {p.n_classes}: judge them one against the rest")
        k = 1 if p.positive is None else p.positive
        weights = ones_or(p.weights, p.n_samples)
        return cls(p.classes[k], matrix_of(p)[:, k], (p.codes == k).astype(np.float64), weights)

    @cached_property
    def base_rate(self) -> float:
        """Share of the weight where the class happened."""
        return float(self.weights @ self.happened / self.weights.sum())

    @cached_property
    def _running(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        order = np.argsort(self.scores, kind="stable")
        share = self.weights / self.weights.sum()
        each = (share * self.happened, share * (1 - self.happened))
        happened, others = (np.concatenate([[0.0], np.cumsum(v[order])]) for v in each)
        return self.scores[order], happened, others

    def before(self, at: FloatArray, side: Literal["left", "right"]) -> Shares:
        """Shares with scores below thresholds ("left"), or not above them ("right")."""
        scores, happened, others = self._running
        place = np.searchsorted(scores, at, side=side)
        return Shares(happened[place], others[place])


def check_thresholds(thresholds: Any) -> FloatArray:
    """Judge decision thresholds."""
    at = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if at.ndim != 1 or at.size == 0 or not ((at > 0) & (at < 1)).all():
        raise ValueError(f"thresholds must be numbers strictly between 0 and 1; got {thresholds!r}")
    return at
