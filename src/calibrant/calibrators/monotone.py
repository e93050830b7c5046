"""Nonparametric monotone maps: isotonic regression, and the two isotonic fits of Venn-Abers predictors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_bool, check_choice, check_level, check_number
from ..data.fields import Field, Numbers
from ..data.types import FloatArray, IntArray
from ..data.weights import run_starts
from .base import PROBABILITIES, BinaryCalibrator, FittedWithScores, Later, needs_fitted, parameter
from .inputs import CalibrationSample, Scores, read_scores
from .score_sums import Streamed

#: Largest number of cells of neighbouring rows stored for intervals.
_CELLS = 500


def _check_clip(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_choice(name, value, ("auto",), instead="None, a number or ")
    elif value is not None:
        check_number(name, value, least=0, below=0.5, instead="'auto', None or ")


def kept_inside(values: FloatArray, sample: CalibrationSample) -> FloatArray:
    """Clip values to [c, 1 - c], where c is ``1 / (n + 2)`` for n rows."""
    least = 1 / (sample.effective_rows() + 2)
    return np.clip(values, least, 1 - least)


@dataclass(eq=False, repr=False)
class Knots(BinaryCalibrator):
    """A map through knots, ``scores_`` and ``values_``, with interpolation and clipping.

    Parameters
    ----------
    interpolation : {"linear", "step"}, default "linear"
        Values between observed scores: ``"linear"`` joins them by straight lines on the scale of the scores, as in
        scikit-learn; ``"step"`` uses the value of the next lower score. Beyond them: the end values.
    clip : float, None or "auto", default "auto"
        Values are clipped to [clip, 1 - clip]. ``"auto"``: ``1 / (n + 2)`` for n rows. None: the published map, which
        predicts exactly 0 or 1 on pieces with only one class, where the log-loss of the other class is infinite.
    """

    scores_: FloatArray = field(init=False)
    values_: FloatArray = field(init=False)
    _: KW_ONLY
    interpolation: str = parameter("linear", partial(check_choice, allowed=("linear", "step")))
    clip: float | str | None = parameter("auto", _check_clip)

    def _map(self, scores: Scores) -> FloatArray:
        s = scores.of_positive()
        if self.interpolation == "linear":
            p: FloatArray = np.interp(s, self.scores_, self.values_)
        else:
            p = self.values_[np.maximum(np.searchsorted(self.scores_, s, side="right") - 1, 0)]
        return p if self.clip is None or isinstance(self.clip, str) else np.clip(p, self.clip, 1 - self.clip)

    def _keep_map(self, scores: FloatArray, values: FloatArray, sample: CalibrationSample) -> None:
        """Set the knots of the map."""
        auto = isinstance(self.clip, str)
        self.scores_, self.values_ = scores, kept_inside(values, sample) if auto else values


@dataclass(eq=False, repr=False)
class IsotonicCalibrator(Streamed, Knots):
    r"""Isotonic regression: the non-decreasing map that minimises the squared error (and the log-loss).

    Parameters
    ----------
    centred : bool, default False
        Use centred isotonic regression: each flat piece becomes one point, at the mean of its scores, and lines join
        the points, so that the map is strictly increasing between the first and the last. Pieces at exactly 0 or 1 keep
        both ends, as in the source and in R's ``cir``.

    Attributes
    ----------
    scores_, values_ : ndarray of shape (m,)
        Knots of the map.
    cells_ : ndarray of shape (c, 4)
        Cells of neighbouring rows, for ``predict_interval``: first and last score, weight and positive weight.

    See Also
    --------
    calibrant.calibrators.NearIsotonic : Allows decreases that the data support.
    calibrant.calibrators.VennAbers : Two isotonic fits, with a validity guarantee.
    calibrant.calibrators.SplineCalibrator : A smooth increasing map.

    Notes
    -----
    Fits any increasing map; needs about a thousand samples or more, and changes ranks only by ties. Solved exactly by
    pooling adjacent violators; equal scores form one point. Cost: O(n log n).

    References
    ----------
    Zadrozny & Elkan (2002); Oron & Flournoy (2017), *Centered isotonic regression*.

    Examples
    --------
    >>> from calibrant.calibrators import IsotonicCalibrator
    >>> fitted = IsotonicCalibrator(clip=None).fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> fitted.predict_proba([0.1, 0.25, 0.4])[:, 1].tolist()
    [0.0, 0.5, 1.0]
    """

    _: KW_ONLY
    centred: bool = parameter(False, check_bool)

    _state: ClassVar[Mapping[str, Field]] = {
        "scores_": Numbers(("m",), ascending=True),
        "values_": Numbers(("m",), *PROBABILITIES, ascending=True),
        "cells_": Later(Numbers(("c", "4"))),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.centred and self.interpolation != "linear":
            raise ValueError("centred=True joins points by lines: it needs interpolation='linear'")

    def _fit(self, sample: CalibrationSample) -> None:
        s, weight, positive = points(sample.scores.of_positive(), sample.outcomes(), sample.weights)
        value, start = self._pools(weight, positive)
        self.cells_ = _cells_of(s, weight, positive, sample.effective_rows() / sample.total)
        first, last = start[:-1], start[1:] - 1
        if self.centred:
            # Flat pieces at 0 and 1 stay: no increasing map goes beyond these.
            inside = (value[first] > 0) & (value[first] < 1)
            s = s.copy()
            s[first[inside]] = (np.add.reduceat(weight * s, first) / np.add.reduceat(weight, first))[inside]
            last = last[~inside]
        keep = np.unique(np.concatenate([first, last]))
        self._keep_map(s[keep], value[keep], sample)

    @needs_fitted("cells_")
    def predict_interval(self, scores: Any, level: float = 0.95) -> FloatArray:
        r"""Compute an interval for the true probability of each row, (n, 2); conservative for increasing true maps.

        An increasing true map is, at s, at least its mean over any rows with lower scores, and at most that over rows
        with higher ones. These means are bounded by Clopper and Pearson's method, with half of the error on each side,
        from the nearest :math:`n^{2/3}` rows (valid for unequal probabilities too: Hoeffding 1956); the fitted map is
        always inside. If the true map is steep, the interval is wider than necessary. It is pointwise, not
        simultaneous. Not available for calibrators saved by earlier versions.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores, of the kind given by ``input``.
        level : float in (0, 1), default 0.95
            Level of the interval.
        """
        check_is_fitted(self)
        error = (1 - check_level(level)) / 2
        read = read_scores(self, scores, self.input)
        s, first, last = read.of_positive(), self.cells_[:, 0], self.cells_[:, 1]
        weight, positive = (np.concatenate([[0.0], np.cumsum(column)]) for column in self.cells_[:, 2:].T)
        rows = weight[-1] ** (2 / 3)
        below = np.searchsorted(last, s, side="right")  # cells wholly at or below
        above = np.searchsorted(first, s, side="left")  # the first wholly at or above
        a = np.maximum(np.searchsorted(weight, weight[below] - rows, side="right") - 1, 0)
        b = np.minimum(np.searchsorted(weight, weight[above] + rows, side="left"), len(first))
        low = _least(positive[below] - positive[a], weight[below] - weight[a], error)
        mass = weight[b] - weight[above]
        high = 1 - _least(mass - (positive[b] - positive[above]), mass, error)
        mapped = np.clip(self._map(read), 0, 1)
        return np.column_stack([np.minimum(mapped, low), np.maximum(mapped, high)])

    @staticmethod
    def _pools(weight: FloatArray, positive: FloatArray) -> tuple[FloatArray, IntArray]:
        """Value at each distinct score, the starts of the flat pieces and the end of the last one."""
        from scipy.optimize import isotonic_regression

        found = isotonic_regression(positive / weight, weights=weight)
        # Rounding leaves means of outcomes a last digit outside.
        return np.clip(found.x, 0.0, 1.0), found.blocks


class RocHullCalibrator(IsotonicCalibrator):
    r"""The map from the convex hull of the ROC curve, equal to isotonic regression.

    Each edge of the hull spans scores between which no threshold is optimal for any cost. The map is flat there, at the
    share of positives among them, ``slope · π / (slope · π + 1 - π)``, with the edge's slope and the base rate π.

    Attributes
    ----------
    scores_, values_ : ndarray of shape (m,)
        Knots of the map.

    See Also
    --------
    calibrant.calibrators.IsotonicCalibrator : The same map, by regression.

    Notes
    -----
    The two agree because, on the path of cumulative counts of negatives and positives, from low scores to high, the
    hull keeps the points at which slopes increase. Pooling adjacent violators merges two neighbouring pieces if the
    share of positives of the later one is not larger, that is, if its slope is not larger: in any order, these merges
    end in the same pieces, those of the largest convex minorant. Cost: O(n log n), with a Python step per distinct
    score; :class:`IsotonicCalibrator` is faster.

    References
    ----------
    Fawcett & Niculescu-Mizil (2007), *PAV and the ROC convex hull*; Silva Filho et al. (2023), §5.

    Examples
    --------
    >>> from calibrant.calibrators import RocHullCalibrator
    >>> fitted = RocHullCalibrator(clip=None).fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> fitted.predict_proba([0.1, 0.25, 0.4])[:, 1].tolist()
    [0.0, 0.5, 1.0]
    """

    @staticmethod
    def _pools(weight: FloatArray, positive: FloatArray) -> tuple[FloatArray, IntArray]:
        x, y = (np.concatenate([[0.0], np.cumsum(v)]).tolist() for v in (weight - positive, positive))
        hull = [0]
        for i in range(1, len(x)):
            while len(hull) > 1:
                a, b = hull[-2], hull[-1]
                if (x[b] - x[a]) * (y[i] - y[b]) > (y[b] - y[a]) * (x[i] - x[b]):  # a turn to the left
                    break
                hull.pop()
            hull.append(i)
        start = np.array(hull)
        happened, total = (np.add.reduceat(v, start[:-1]) for v in (positive, weight))
        return np.repeat(np.clip(happened / total, 0.0, 1.0), np.diff(start)), start


class VennAbers(BinaryCalibrator):
    r"""Inductive Venn-Abers predictor: an interval of probabilities, one end of which is calibrated.

    For a score s, p₀ and p₁ are the isotonic fits at s to the calibration rows and one additional row of score s with
    outcome 0 or 1. Under exchangeability the fit with the true outcome is perfectly calibrated, for every n.

    .. math:: P(1 \mid s) = \frac{p_1}{1 - p_0 + p_1}

    The result is invariant to increasing transforms of the scores.

    Attributes
    ----------
    scores_ : ndarray of shape (m,)
        Distinct scores, ascending.
    lower_ : ndarray of shape (2 m + 1,)
        p₀ below the first score, on it, between the first and the second, …, above the last.
    upper_ : ndarray of shape (2 m + 1,)
        p₁ at the same places.

    See Also
    --------
    calibrant.calibrators.IsotonicCalibrator : One isotonic fit.
    calibrant.calibrators.GaussianProcessCalibrator : A smooth map from a posterior.

    Notes
    -----
    Fits increasing maps; never predicts exactly 0 or 1, because of the additional row. ``predict_interval`` returns p₀
    and p₁: their difference measures the uncertainty of the fit, but has no confidence level. In
    :class:`CalibratedModel` folds are merged as in a cross Venn-Abers predictor, :math:`G(p_1) / (G(1 - p_0) +
    G(p_1))`, where G is the geometric mean over folds. All fits are computed together from the cumulative sums of
    outcomes, as slopes of convex hulls. Cost: O(n log n), and O(log n) per score.

    References
    ----------
    Vovk, Petej & Fedorova (2015), *Large-scale probabilistic predictors with and without guarantees of validity*;
    §4 on merging.

    Examples
    --------
    >>> from calibrant.calibrators import VennAbers
    >>> fitted = VennAbers().fit([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])
    >>> fitted.predict_interval([0.35]).round(3).tolist()
    [[0.5, 1.0]]
    """

    _state: ClassVar[Mapping[str, Field]] = {
        "scores_": Numbers(("m",), ascending=True),
        "lower_": Numbers(("2m+1",), *PROBABILITIES, ascending=True),
        "upper_": Numbers(("2m+1",), *PROBABILITIES, ascending=True),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        s, weight, positive = points(sample.scores.of_positive(), sample.outcomes(), sample.weights)
        self.scores_ = s
        self.upper_ = _with_one_more(weight, positive)
        self.lower_ = 1 - _with_one_more(weight[::-1], (weight - positive)[::-1])[::-1]

    def _check_fitted(self) -> None:
        if (self.lower_ > self.upper_ + 1e-9).any():
            raise ValueError("lower_ must not be above upper_")

    def predict_interval(self, scores: Any) -> FloatArray:
        """Compute p₀ and p₁ of each row, (n, 2): probabilities of the second class.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores, of the kind given by ``input``.
        """
        check_is_fitted(self)
        return self._ends(read_scores(self, scores, self.input))

    def _ends(self, scores: Scores) -> FloatArray:
        s = scores.of_positive()
        left = np.searchsorted(self.scores_, s, side="left")
        on = np.searchsorted(self.scores_, s, side="right") > left
        at = 2 * left + on  # even: between scores, odd: on one
        return np.column_stack([self.lower_[at], self.upper_[at]])

    @property
    def _merges(self) -> bool:
        """Whether calibrators fitted to folds are merged by a rule of their own: by geometric means."""
        return True

    _draws_interval: ClassVar[bool] = True

    @classmethod
    def _merged(cls, members: FittedWithScores, weights: FloatArray) -> FloatArray:
        """Probabilities (n, 2) from the geometric means of p₁ and of 1 - p₀."""
        ends = [one._ends(scores) for one, scores, _ in members]
        with np.errstate(divide="ignore"):  # an end may be 0: so is its geometric mean
            up = np.exp(sum(w * np.log(p[:, 1]) for w, p in zip(weights, ends, strict=True)))
            down = np.exp(sum(w * np.log1p(-p[:, 0]) for w, p in zip(weights, ends, strict=True)))
        return np.asarray(np.column_stack([down, up]) / (down + up)[:, None])

    def _map(self, scores: Scores) -> FloatArray:
        p0, p1 = self._ends(scores).T
        return np.asarray(p1 / (1 - p0 + p1))


def points(s: FloatArray, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distinct scores, ascending, with the weight and the positive weight on each."""
    order = np.argsort(s)
    s, o, w = s[order], outcomes[order], weights[order]
    start = run_starts(s)
    return s[start], np.add.reduceat(w, start), np.add.reduceat(w * o, start)


def cells(weights: FloatArray, most: int) -> IntArray:
    """First points of at most ``most`` cells of nearly equal weight; all points if they are fewer."""
    if len(weights) <= most:
        return np.arange(len(weights))
    middle = np.cumsum(weights) - weights / 2
    cell = np.floor(middle / float(weights.sum()) * most)
    return run_starts(cell)


def _cells_of(s: FloatArray, weight: FloatArray, positive: FloatArray, scale: float) -> FloatArray:
    """Cells of neighbouring points, (c, 4), with weights in effective rows."""
    start = cells(weight, _CELLS)
    last = np.append(start[1:], len(s)) - 1
    sums = [scale * np.add.reduceat(column, start) for column in (weight, positive)]
    return np.column_stack([s[start], s[last], *sums])


def _least(happened: FloatArray, rows: FloatArray, error: float) -> FloatArray:
    """Clopper and Pearson's lower bound of a probability; 0 without events."""
    up, down = np.maximum(happened, 1e-9), np.maximum(rows - happened, 0.0) + 1
    return np.where(happened > 0, betaincinv(up, down, error), 0.0)


def _with_one_more(weight: FloatArray, positive: FloatArray) -> FloatArray:
    r"""Isotonic fit at each place to the points and an additional one there, of weight 1 and outcome 1, (2 m + 1,).

    With cumulative weights W and positives Y, p₁ is ``max_{a ≤ left} min_{b ≥ right}`` of
    ``(Y_b - Y_a + 1) / (W_b - W_a + 1)``: the slope of the common tangent below the points before, moved to
    ``(W_a - 1, Y_a - 1)``, and those after. On a point, a runs over the points before it, and b begins with it.

    Slopes increase from place to place, so both ends of the tangent only move right; points enter the left hull at its
    end, and leave the right hull at its beginning.
    """
    m = weight.size
    w = [0.0, *np.cumsum(weight).tolist()]
    y = [0.0, *np.cumsum(positive).tolist()]
    after = _next_corners(w, y)
    out = [0.0] * (2 * m + 1)
    hull: list[int] = []
    front = b = 0
    for place in range(2 * m + 1):
        i = place // 2
        if place % 2 == 0:
            wi, yi = w[i], y[i]
            while len(hull) > 1:
                p, q = hull[-2], hull[-1]
                if (w[q] - w[p]) * (yi - y[p]) > (wi - w[p]) * (y[q] - y[p]):
                    break
                hull.pop()
            hull.append(i)
            front = min(front, len(hull) - 1)
        b = max(b, i + place % 2)
        while True:
            x, v = w[hull[front]], y[hull[front]]
            # Differences first: beside large weights the one more would be lost, and with it the divisor.
            slope = (y[b] - v + 1) / (w[b] - x + 1)
            while b < m:
                c = after[b]
                lower = (y[c] - v + 1) / (w[c] - x + 1)
                if lower > slope:
                    break
                b, slope = c, lower
            if front + 1 == len(hull):
                break
            p, q = hull[front], hull[front + 1]
            if y[q] - y[p] >= slope * (w[q] - w[p]):
                break
            front += 1
        out[place] = slope
    return np.minimum(out, 1.0)


def _next_corners(w: list[float], y: list[float]) -> list[int]:
    """For each point, the next corner of the lower hull of the points from it on."""
    m = len(w) - 1
    following = [m] * (m + 1)
    stack = [m]
    for i in range(m - 1, -1, -1):
        wi, yi = w[i], y[i]
        while len(stack) > 1:
            p, q = stack[-1], stack[-2]
            if (w[p] - wi) * (y[q] - yi) > (w[q] - wi) * (y[p] - yi):
                break
            stack.pop()
        following[i] = stack[-1]
        stack.append(i)
    return following
