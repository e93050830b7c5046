"""A map for each predicted class, on the probability of that class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import clone

from ..data.types import FloatArray, IntArray
from .base import EPS, BinaryCalibrator, Calibrator, check_calibrator, check_not_negative, parameter
from .inputs import CalibrationSample, Scores
from .logistic import PlattScaling
from .saved_state import Field, Fitted, Numbers, Several


@dataclass(eq=False, repr=False)
class TopLabelCalibrator(Calibrator):
    r"""A map for each predicted class, from its confidence to how often it is right: repairs ``notion="top-label"``.

    Rows whose first class is c have one map :math:`g_c`, fitted to their confidence and whether c came. The first class
    then has :math:`g_c(\max_k p_k)`, and the others share the rest in the ratios of before.

    Parameters
    ----------
    calibrator : binary calibrator, optional
        Fitted once a predicted class; by default ``PlattScaling()``. ``HistogramBinning()`` is the published one.
    min_rows : float >= 0, default 50
        A class that fewer rows (of weight 1) predict has the map that is fitted to the confidence of all rows.
    input, labels
        As :class:`TemperatureScaling`; margins are read as logits.

    Attributes
    ----------
    calibrators_ : list of K fitted calibrators
        That of all rows where a class has too few.
    weights_ : ndarray of shape (K,)
        Weight of the rows that predict each class.

    Notes
    -----
    Nothing but the first class is repaired: the others keep their ratios, right or wrong, so that a log-loss may stay
    above that of :class:`OneVsRest`. The first class is the first of equals. Where its repaired probability falls
    below another's, that other becomes the first: such rows then count with another class, and their new confidence
    was fitted to nothing. Where all others had 0, they share equally. Cost O(n K), and twice that of the binary
    calibrator.

    References
    ----------
    Gupta & Ramdas (2022), *Top-label calibration and multiclass-to-binary reductions*.

    Examples
    --------
    >>> from calibrant.calibrators import IsotonicCalibrator, TopLabelCalibrator
    >>> p = [[0.8, 0.15, 0.05]] * 4 + [[0.3, 0.6, 0.1]] * 4
    >>> fitted = TopLabelCalibrator(IsotonicCalibrator(), min_rows=4).fit(p, [0, 0, 1, 2, 1, 1, 1, 0])
    >>> fitted.predict_proba(p)[[0, 4]].round(4).tolist()
    [[0.5, 0.375, 0.125], [0.1875, 0.75, 0.0625]]
    """

    calibrator: BinaryCalibrator | None = parameter(None, partial(check_calibrator, binary=True, optional=True))
    min_rows: float = parameter(50, check_not_negative)

    _state: ClassVar[Mapping[str, Field]] = {
        "calibrators_": Several(Fitted(binary=True), "K"),
        "weights_": Numbers(("K",), 0),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        log_p, top = _first(sample.scores)
        confidence = _confidence(log_p, top)
        right = (sample.codes == top).astype(np.int64)
        self.weights_ = np.bincount(top, sample.weights, sample.n_classes)
        one = PlattScaling() if self.calibrator is None else clone(self.calibrator)
        one.set_params(input="probability", labels=[0, 1])
        common = clone(one).fit(confidence, right, sample_weight=sample.weights)
        self.calibrators_ = []
        for c, weight in enumerate(self.weights_):
            rows = top == c
            enough = weight > 0 and weight >= self.min_rows
            self.calibrators_.append(
                clone(one).fit(confidence[rows], right[rows], sample_weight=sample.weights[rows]) if enough else common
            )

    def _probabilities(self, scores: Scores) -> FloatArray:
        log_p, top = _first(scores)
        confidence, repaired = _confidence(log_p, top), np.empty(len(top))
        for c in np.unique(top):
            rows = top == c
            repaired[rows] = self.calibrators_[c].predict_proba(confidence[rows])[:, 1]
        each = np.arange(len(top))
        log_p[each, top] = -np.inf
        out = softmax(log_p, axis=1) * (1 - repaired)[:, None]
        out[each, top] = repaired
        return np.asarray(out)


def _first(scores: Scores) -> tuple[FloatArray, IntArray]:
    """Logarithms of probabilities, (n, K), and the first class of each row."""
    log_p = np.array(scores.log_probabilities(EPS))
    return log_p, np.asarray(log_p.argmax(axis=1))


def _confidence(log_p: FloatArray, top: IntArray) -> FloatArray:
    return np.asarray(np.exp(log_p[np.arange(len(top)), top]).clip(0, 1))
