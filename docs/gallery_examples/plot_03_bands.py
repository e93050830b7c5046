"""
Three bands
===========

*Confidence* at each score, *simultaneous* over all scores at once, and *consistency*: where the curve of a calibrated
model would lie.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.beta(1, 2, 1500)
y = rng.random(1500) < p**1.2
fig, axes = plt.subplots(1, 3, figsize=(12, 4.8), sharey=True)
for ax, band in zip(axes, ("confidence", "simultaneous", "consistency"), strict=True):
    curve = cal.reliability_curve(y, p, estimator="isotonic", level=0.95, band=band)
    curve.plot(ax=ax)
    ax.set_title(band)
