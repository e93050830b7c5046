"""
The parts of a proper score
===========================

The Brier score and the log-loss as calibration, refinement and uncertainty.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(3000)
y = rng.random(3000) < p**1.5
for score in ("brier", "log-loss"):
    print(cal.decompose(y, p, score=score), end="\n\n")

# %%
# Murphy's diagram: the score at each threshold, and what repair would save.

cal.plot.MurphyDisplay.from_predictions(y, p)
