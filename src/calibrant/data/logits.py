"""Probabilities from logits: of classes, and of independent labels."""

from __future__ import annotations

import numpy as np

from .types import FloatArray


def softmax(logits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities and their logarithms, float64; one column gives those of the other class and of this one."""
    logits = logits.astype(np.float64)
    both = logits if logits.ndim == 2 else np.column_stack([np.zeros_like(logits), logits])
    with np.errstate(over="ignore", under="ignore"):  # differences beyond what there is are certain
        shifted = both - both.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        probs = np.exp(logs)
    return (probs, logs) if logits.ndim == 2 else (np.ascontiguousarray(probs[:, 1]), logs)


def sigmoid(logits: FloatArray) -> FloatArray:
    """Elementwise probabilities from log odds, float64."""
    from scipy.special import expit

    return np.asarray(expit(logits.astype(np.float64)))
