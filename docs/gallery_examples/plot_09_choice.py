"""
"My calibrator made it worse"
=============================

All calibrators on rows that they were not fitted to, with the scores as they are among them.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(3)
p = rng.beta(2, 2, 300)
y = rng.random(300) < p  # calibrated: there is nothing to repair
found = cal.compare_calibrators(y, p)
print(found)

# %%
# The choice as one map, beside the scores' own reliability diagram: it leaves them alone.

cal.plot.CalibrationMapDisplay.from_calibrators({"AutoCalibrator": cal.AutoCalibrator().fit(p, y)}, y, p)
