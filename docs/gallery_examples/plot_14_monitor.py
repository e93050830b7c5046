"""
A monitor that may be looked at every day
=========================================

For a calibrated model the e-value reaches 20 within 100,000 rows in at most one of twenty streams, however often you
look.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
day = np.datetime64("2026-01-01") + np.arange(9000).astype("m8[D]") // 50
p = rng.random(9000)
y = rng.random(9000) < np.where(day < np.datetime64("2026-05-12"), p, 0.85 * p)
monitor = cal.CalibrationMonitor()
for one in np.unique(day):
    rows = day == one
    monitor.update(y[rows], p[rows], time=day[rows])
print(monitor.status)
monitor.plot()
