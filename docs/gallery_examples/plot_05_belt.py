"""
For a clinical paper: belt, slope and calibration in the large
==============================================================

A risk that is too extreme, in 800 patients.
"""

import numpy as np
from scipy.special import expit

import calibrant as cal

rng = np.random.default_rng(1)
z = rng.normal(-1, 1.2, 800)
risk, died = expit(1.4 * z), rng.random(800) < expit(z)
cal.significance.calibration_belt(died, risk).plot()

# %%
# The numbers that TRIPOD asks for, with intervals.

print(cal.calibration_measures(died, risk))
