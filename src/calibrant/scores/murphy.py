"""`murphy_curve`, `brier_curve`: the loss of decisions at every threshold, of which proper scores are mixtures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import numpy as np
from scipy.integrate import trapezoid

from ..data.checks import received
from ..data.predictions import Predictions
from ..data.printing import number_of
from ..data.public_function import InputOptions, public_function
from ..data.result import Curve
from ..data.types import FloatArray, Label
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..estimators.isotonic import RowsByScore
from ..measure.scoring_rules import matrix_of

_THRESHOLDS = 501
#: Largest difference of mean elementary scores that is attributed to rounding.
_ROUNDING = 1e-12


def better_at(thresholds: FloatArray, gain: FloatArray, said: str, n_samples: int) -> str:
    """Sentences on the thresholds at which something is better and worse, by its gain in mean elementary score.

    Gains within the rounding errors of sums are ties.
    """
    better, worse = thresholds[gain > _ROUNDING], int((gain < -_ROUNDING).sum())
    ends = dict.fromkeys(f"{end:.3g}" for end in (better.min(), better.max())) if better.size else ()
    where = f" ({' to '.join(ends)})" if ends else ""
    return (
        f"{said} at {better.size} of {number_of(thresholds.size, 'decision threshold')}{where}; it is worse at {worse} "
        f"and equal at {thresholds.size - better.size - worse}. There is no interval: in {number_of(n_samples, 'row')} "
        "small gains and losses may be chance."
    )


@dataclass(frozen=True, eq=False, repr=False)
class MurphyCurve(Curve):
    """Mean elementary score at each decision threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
        Within (0, 1).
    scores : ndarray of shape (m,)
        Score of acting if the probability is above the threshold c: ``(1 - c) P(o = 1, p ≤ c) + c P(o = 0, p > c)``.
    base_rate : ndarray of shape (m,)
        Score of always or never acting, whichever the base rate favours: a forecast that is useful at c is below it.
    label : object
        The class that is acted upon.

    See Also
    --------
    calibrant.scores.murphy_curve : Computes it.
    calibrant.results.BrierCurve : Twice this curve, computed exactly.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.scores.murphy_curve([0, 1, 1], [0.2, 0.4, 0.9], [0.3, 0.5])
    >>> curve.scores.round(3).tolist(), curve.base_rate.round(3).tolist()
    ([0.0, 0.167], [0.1, 0.167])
    """

    display: ClassVar[str] = "MurphyDisplay"

    thresholds: FloatArray
    scores: FloatArray
    base_rate: FloatArray
    label: Label
    n_samples: int

    @property
    def summary(self) -> str:
        """Thresholds at which the forecast beats the base rate."""
        return better_at(
            self.thresholds, self.base_rate - self.scores, "The forecast beats the base rate", self.n_samples
        )

    def _columns(self) -> dict[str, Any]:
        return {"threshold": self.thresholds, "score": self.scores, "base_rate": self.base_rate}


@dataclass(frozen=True, eq=False, repr=False)
class BrierCurve(MurphyCurve):
    """Expected loss at each cost proportion: twice a :class:`MurphyCurve`, exact, so that its area is the Brier score.

    The curve is linear between ``thresholds``; at a jump the threshold occurs twice, once for each side.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
        Cost proportions c from 0 to 1.
    scores : ndarray of shape (m,)
        Expected loss of acting if the probability is above c.
    base_rate : ndarray of shape (m,)
        Expected loss of acting always or never, whichever the base rate favours.
    recalibrated : ndarray of shape (m,)
        Expected loss of acting if the isotonic recalibration of the same rows is above c: the smallest loss possible
        with any threshold on the scores.

    See Also
    --------
    calibrant.scores.brier_curve : Computes it.
    calibrant.results.MurphyCurve : Half of it, at given thresholds.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.scores.brier_curve([0, 1, 1], [0.2, 0.4, 0.9])
    >>> round(curve.brier_score, 4)
    0.1367
    """

    display: ClassVar[str] = "BrierCurveDisplay"

    recalibrated: FloatArray

    @property
    def summary(self) -> str:
        """The mean loss, and the part that better thresholds would save."""
        found = f"the best thresholds would save {self.calibration:.4f}"
        return f"The expected loss averages {self.brier_score:.4f} over cost proportions (the Brier score); {found}."

    @property
    def brier_score(self) -> float:
        """Area below the curve: the mean of ``(p - o)²``, 0–1."""
        return float(trapezoid(self.scores, self.thresholds))

    @property
    def refinement(self) -> float:
        """Area below the recalibrated curve: the Brier score with the best thresholds."""
        return float(trapezoid(self.recalibrated, self.thresholds))

    @property
    def calibration(self) -> float:
        """Area between the two: the loss due to miscalibration (the calibration part of CORP), at least 0."""
        return max(self.brier_score - self.refinement, 0.0)

    def _shown(self) -> Iterable[tuple[str, Any]]:
        parts = ("brier_score", "refinement", "calibration")
        return [*((name, getattr(self, name)) for name in parts), *super()._shown()]

    def _columns(self) -> dict[str, Any]:
        return {**super()._columns(), "recalibrated": self.recalibrated}


@public_function()
def murphy_curve(
    y_true: Any,
    y_prob: Any = None,
    thresholds: Any = None,
    **inputs: Unpack[InputOptions],
) -> MurphyCurve:
    r"""Murphy diagram of binary probabilities (Ehm, Gneiting, Jordan & Krüger 2016).

    .. math:: S(c) = (1-c)\, P(o = 1,\ p \le c) + c\, P(o = 0,\ p > c)

    A forecast whose curve is nowhere above another's is at least as good by every proper score; if curves cross, the
    better one depends on the costs. The mean of ``(p - o)²`` is twice the area below the curve.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, 2)
        Predicted probability of ``pos_label``, or one column for each of the two classes.
    thresholds : array-like, optional
        Thresholds within (0, 1); default 501 evenly spaced ones. Rows with a probability equal to a threshold count
        half as acted upon.

    Returns
    -------
    MurphyCurve
        ``.thresholds`` and ``.scores``; ``.plot()`` draws them.

    Raises
    ------
    ValueError
        For more than two classes, or thresholds outside (0, 1).

    See Also
    --------
    calibrant.scores.brier_curve : Twice this curve, computed exactly, with the recalibrated one.
    calibrant.plot.MurphyDisplay : Plots several models.

    Notes
    -----
    Cost O(n log n + m log n).

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.scores.murphy_curve([0, 1, 1], [0.2, 0.4, 0.9], [0.5])
    >>> round(float(curve.scores[0]), 4)  # one of three is missed, at a cost of one half
    0.1667
    """
    p = as_predictions(y_true, y_prob, **inputs)
    rows = BinaryRows.of(p)
    at = np.arange(1, _THRESHOLDS + 1) / (_THRESHOLDS + 1) if thresholds is None else check_thresholds(thresholds)
    return MurphyCurve(
        thresholds=at,
        scores=(rows.losses(at, "left") + rows.losses(at, "right")) / 2,
        base_rate=rows.without_scores(at),
        label=rows.label,
        n_samples=p.n_samples,
    )


@public_function()
def brier_curve(
    y_true: Any,
    y_prob: Any = None,
    **inputs: Unpack[InputOptions],
) -> BrierCurve:
    r"""Brier curve: expected loss over the cost proportion c, where c is the threshold (Hernández-Orallo et al. 2011).

    .. math:: & B(c) = 2\,\{(1-c)\, \pi_1 F_1(c) + c\, \pi_0 (1 - F_0(c))\}, \\
        & \int_0^1 B(c)\, dc = \overline{(p - o)^2}

    A miss costs 2 (1 - c) and a false alarm 2 c; F₁ and F₀ are the shares of positives and of negatives with
    probabilities up to c, and π₁ and π₀ the class proportions. So the curve shows at which costs the Brier score
    arises, and its distance to the recalibrated curve where thresholds are miscalibrated.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, 2)
        Predicted probability of ``pos_label``, or one column for each of the two classes.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights, not all 0. With weights that give both classes the same total, it is the curve over skews
        of the same paper.

    Returns
    -------
    BrierCurve
        ``.thresholds``, ``.scores`` and ``.recalibrated``; ``.plot()`` draws them.

    Raises
    ------
    ValueError
        For more than two classes.

    See Also
    --------
    calibrant.scores.murphy_curve : The mean elementary score at thresholds of your choice.
    calibrant.brier_score : The area below the curve.
    calibrant.plot.BrierCurveDisplay : Plots several models.

    Notes
    -----
    Twice the Murphy curve (:func:`murphy_curve`), computed exactly: linear between the distinct probabilities, at which
    it jumps. The recalibrated curve has no jumps: it is the lower envelope of the cost lines, the cost curve of the ROC
    convex hull (Drummond & Holte 2006), computed on the same rows and so optimistic. Range 0–2 at each c, 0–1 in area.
    Cost O(n log n).

    References
    ----------
    Hernández-Orallo, Flach & Ferri (2011), *Brier curves: a new cost-based visualisation of classifier performance*.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.scores.brier_curve([0, 1, 1], [0.2, 0.4, 0.9])
    >>> round(curve.brier_score, 4), round(cal.brier_score([0, 1, 1], [0.2, 0.4, 0.9], scale="half"), 4)
    (0.1367, 0.1367)
    >>> curve.refinement  # some threshold between 0.2 and 0.4 tells the classes apart
    0.0
    """
    p = as_predictions(y_true, y_prob, **inputs)
    rows = BinaryRows.of(p)
    better = rows.recalibrated()
    inner = np.unique(np.concatenate([rows.scores, better.scores, [rows.base_rate]]))
    inner = inner[(inner > 0) & (inner < 1)]
    at = np.concatenate([[0.0], np.repeat(inner, 2), [1.0]])
    return BrierCurve(
        thresholds=at,
        scores=2 * rows.at_jumps(at),
        base_rate=2 * rows.without_scores(at),
        label=rows.label,
        n_samples=p.n_samples,
        recalibrated=2 * better.at_jumps(at),
    )


class Shares(NamedTuple):
    """Shares of the weight with scores below some thresholds: of rows where the class happened, and of the others."""

    happened: FloatArray
    others: FloatArray


@dataclass(frozen=True, eq=False)
class BinaryRows:
    """The class acted upon, its probabilities, whether it happened, and weights."""

    label: Label
    scores: FloatArray
    happened: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, p: Predictions) -> BinaryRows:
        """Rows of predictions of two classes; ValueError for more."""
        if p.n_classes != 2:
            raise ValueError(f"this needs two classes; got {p.n_classes}: evaluate each against the rest")
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

    def losses(self, at: FloatArray, side: Literal["left", "right"]) -> FloatArray:
        """Mean elementary score at thresholds; rows on a threshold are acted upon ("left"), or not ("right")."""
        below = self.before(at, side)
        return np.asarray((1 - at) * below.happened + at * (self._running[2][-1] - below.others))

    def at_jumps(self, at: FloatArray) -> FloatArray:
        """Mean elementary score at 0, then on the left and on the right of each threshold, then at 1."""
        out = self.losses(at, "right")
        out[1::2] = self.losses(at[1::2], "left")
        return out

    def without_scores(self, at: FloatArray) -> FloatArray:
        """Mean elementary score of acting always or never, whichever the base rate favours."""
        return np.asarray(np.minimum((1 - at) * self.base_rate, at * (1 - self.base_rate)))

    def recalibrated(self) -> BinaryRows:
        """The same rows with isotonic recalibration of their probabilities."""
        return replace(self, scores=RowsByScore.of(self.scores).fit(self.happened, self.weights))


def check_thresholds(thresholds: Any) -> FloatArray:
    """Check decision thresholds."""
    try:
        at = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        at = np.empty(0)
    if at.ndim != 1 or at.size == 0 or not ((at > 0) & (at < 1)).all():
        raise ValueError(f"thresholds must be numbers strictly between 0 and 1; got {received(thresholds)}")
    return at
