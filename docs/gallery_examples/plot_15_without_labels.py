"""
What the model is worth today, without labels
=============================================

Accuracy of new rows from a labelled reference, with an interval; and what the labels then said.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.beta(1, 2, 3000)
y = rng.random(3000) < p**1.2
p_new = rng.beta(1.4, 2, 2000)
found = cal.expected_performance(p_new, reference=(y, p), metric=["accuracy", "brier"])
print(found)

# %%
# Labels came later.

y_new = rng.random(2000) < p_new**1.2
print(f"accuracy {np.mean((p_new >= 0.5) == y_new):.4f}, Brier score {np.mean((p_new - y_new) ** 2):.4f}")
found.plot()
