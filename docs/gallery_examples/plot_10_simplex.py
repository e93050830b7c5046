"""
Three classes on a simplex
==========================

Where a Dirichlet map moves the probabilities of three classes.
"""

import numpy as np

import calibrant as cal
from calibrant.calibrators import DirichletCalibration

rng = np.random.default_rng(0)
truth = rng.dirichlet([1.2, 1.0, 0.8], 3000)
y = (truth.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
sharp = truth**2 * [1.0, 0.8, 1.3]
sharp /= sharp.sum(axis=1, keepdims=True)
fitted = DirichletCalibration().fit(sharp, y)
cal.plot.SimplexMapDisplay.from_calibrator(fitted, scores=sharp)

# %%
# What is stated, what happens, and the difference, over the simplex.

cal.plot.SimplexDisplay.from_predictions(y, sharp, kind="histogram", show="error")
