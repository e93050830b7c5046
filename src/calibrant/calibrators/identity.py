"""`Identity`: scores are left alone."""

from __future__ import annotations

import numpy as np

from ..data.types import FloatArray
from .base import EPS, Calibrator
from .inputs import CalibrationSample, Scores
from .temperature import softmax


class Identity(Calibrator):
    """Probabilities as they are, logits by their softmax; margins of a binary classifier have no probabilities.

    Parameters
    ----------
    input, labels
        As :class:`TemperatureScaling`.

    Notes
    -----
    Cost O(n K).

    Examples
    --------
    >>> from calibrant.calibrators import Identity
    >>> Identity().fit([0.2, 0.7], [0, 1]).predict_proba([0.7]).round(3).tolist()
    [[0.3, 0.7]]
    """

    def _check(self, sample: CalibrationSample) -> None:
        if sample.scores.kind == "margin":
            raise ValueError("margins are no probabilities, and cannot be left alone: use PlattScaling(input='margin')")

    def _fit(self, sample: CalibrationSample) -> None:
        """There is nothing to fit."""

    def _probabilities(self, scores: Scores) -> FloatArray:
        if scores.kind == "logit":
            return softmax(scores.logs(EPS).astype(np.float64))
        v = scores.values.astype(np.float64)
        return v if v.ndim == 2 else np.column_stack([1 - v, v])
