"""The columns of the tables."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

import calibrant as cal

#: As published but for its bandwidth, which is the same for all methods.
PLUG_IN = cal.estimators.DirichletKernel()


def measures(logits: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy in percent, scores, and calibration errors of rows."""
    logs = log_softmax(logits.astype(np.float64), axis=1)
    p, own = np.exp(logs), logs[np.arange(len(y)), y]
    given = {"labels": list(range(p.shape[1]))}
    drawn = (np.random.default_rng(0).random((len(y), 1)) > p.cumsum(axis=1)).sum(axis=1).clip(max=p.shape[1] - 1)
    return {
        "accuracy": 100 * float((p.argmax(axis=1) == y).mean()),
        "log-loss": -float(own.mean()),
        "Brier": float(((p**2).sum(axis=1) - 2 * np.exp(own) + 1).mean()),
        "canonical plug-in": cal.calibration_error(y, p, notion="canonical", estimator=PLUG_IN, **given),
        "plug-in if calibrated": cal.calibration_error(drawn, p, notion="canonical", estimator=PLUG_IN, **given),
        "canonical debiased": cal.calibration_error(y, p, notion="canonical", **given),
        "canonical square": cal.squared_calibration_error(y, p, notion="canonical", **given),
        "class-wise": cal.calibration_error(y, p, notion="classwise", **given),
        "top-label": cal.calibration_error(y, p, notion="top-label", **given),
        "confidence": cal.calibration_error(y, p, notion="confidence", **given),
    }
