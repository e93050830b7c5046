"""
Since when is it wrong?
=======================

Calibrated until 12 May 2026; from then on outcomes are rarer than stated.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
day = np.datetime64("2026-01-01") + np.arange(9000).astype("m8[D]") // 50
p = rng.random(9000)
y = rng.random(9000) < np.where(day < np.datetime64("2026-05-12"), p, 0.85 * p)
found = cal.calibration_over_time(y, p, day, every="week")
print(found.summary)
found.plot()
