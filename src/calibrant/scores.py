"""Proper scoring rules, per observation. Lower is better."""

from __future__ import annotations

import numpy as np

from ._types import FloatArray
from .predictions import Predictions

_TILE = 1 << 15


def brier_per_sample(predictions: Predictions) -> FloatArray:
    """Brier score of each row: ``(p - o)²`` for a 1-D ``y_prob``, ``Σ_k (p_k - o_k)²`` (range 0–2) for a matrix."""
    p = predictions
    if p.positive is not None:
        return np.asarray((p.probs.astype(np.float64) - (p.codes == p.positive)) ** 2)
    hit = _hit(p)
    squares = np.einsum("ij,ij->i", p.probs, p.probs, dtype=np.float64)
    return np.asarray(squares - 2 * hit + 1)


def log_loss_per_sample(predictions: Predictions) -> FloatArray:
    """Negative log of the probability given to what happened; infinite where that was 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(_hit(predictions)))


def _hit(p: Predictions) -> FloatArray:
    """Probability given to the observed class."""
    if p.positive is not None:
        scores = p.probs.astype(np.float64)
        return np.where(p.codes == p.positive, scores, 1 - scores)
    return np.asarray(np.take_along_axis(p.probs, p.codes[:, None].astype(np.intp), axis=1)[:, 0], dtype=np.float64)
