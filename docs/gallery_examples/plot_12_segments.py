"""
A segment that nobody named
===========================

The search looks at conditions on all features; intervals and p-values allow for it.
"""

import numpy as np
import pandas as pd

import calibrant as cal

rng = np.random.default_rng(2)
n = 8000
X = pd.DataFrame(
    {
        "region": rng.choice(["north", "south", "east"], n),
        "age": rng.integers(18, 90, n),
        "income": rng.lognormal(10, 0.5, n).round(),
    }
)
p = rng.beta(2, 3, n)
wrong = (X["region"] == "north") & (X["age"] >= 60)
y = rng.random(n) < np.where(wrong, np.minimum(p + 0.15, 1), p)
found = cal.find_segments(y, p, X)
print(found)
found.plot()
