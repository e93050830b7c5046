"""
Is the model worth acting on?
=============================

Net benefit at each threshold, against acting always and never.
"""

import numpy as np
from scipy.special import expit

import calibrant as cal

rng = np.random.default_rng(1)
z = rng.normal(-1, 1.2, 800)
risk, died = expit(1.4 * z), rng.random(800) < expit(z)
cal.decision_curve(died, risk).plot()

# %%
# What decisions cost, and what repaired probabilities would save.

print(cal.expected_cost(died, risk, {"fp": 1, "fn": 5}))
