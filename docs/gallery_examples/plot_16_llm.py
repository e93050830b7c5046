"""
Stated confidences, repeated prompts
====================================

A model answers each of 120 questions ten times and says how sure it is. Answers to one question are alike: intervals
allow for it.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
question = np.repeat(np.arange(120), 10)
hard = rng.normal(0, 1, 120)[question]
stated = np.clip(np.round(0.75 + 0.1 * rng.normal(size=1200) - 0.05 * hard, 1), 0.05, 0.95)
right = rng.random(1200) < np.clip(stated - 0.15 - 0.15 * hard, 0.02, 0.98)
print("each answer by itself:", cal.estimate(right, stated))
print("questions as groups:  ", cal.estimate(right, stated, groups=question))
cal.report(right, stated, groups=question).plot()
