"""
What calibrators make of the same scores
========================================

Under-confident scores with a known truth: four maps beside it.
"""

import numpy as np

import calibrant as cal
from calibrant.calibrators import BetaCalibration, IsotonicCalibrator, PlattScaling, SplineCalibrator

rng = np.random.default_rng(0)
p = rng.random(1000)
truth = np.clip(p + 0.15 * np.sin(2 * np.pi * p), 0, 1)
y = rng.random(1000) < truth
fitted = {
    "Platt": PlattScaling().fit(p, y),
    "beta": BetaCalibration().fit(p, y),
    "spline": SplineCalibrator().fit(p, y),
    "isotonic": IsotonicCalibrator().fit(p, y),
}
cal.plot.CalibrationMapDisplay.from_calibrators(fitted, y, p)
