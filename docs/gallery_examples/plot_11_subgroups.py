"""
Subgroups that you name
========================

A gap for each region, with intervals; p-values are corrected for their number.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p, region = rng.random(6000), rng.choice(["north", "south", "west", "east"], 6000)
y = rng.random(6000) < np.where(region == "west", p**1.4, p)
found = cal.subgroup_calibration(y, p, region)
print(found)
found.plot()
