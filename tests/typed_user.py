"""What a user's type checker says of an installed calibrant: results have their types, and a wrong call is seen.

mypy --strict --python-executable PYTHON_WITH_THE_WHEEL tests/typed_user.py
"""

from typing import assert_type

import numpy as np

import calibrant as cal
from calibrant.calibrators import BetaCalibration, TemperatureScaling
from calibrant.plot import ReliabilityDisplay
from calibrant.results import CalibrationOverTime, Change, Estimate, Interval, Report

rng = np.random.default_rng(0)
p = rng.random(500)
y = rng.random(500) < p

assert_type(cal.calibration_error(y, p), float)
found = cal.estimate(y, p, estimator=cal.Binned(15))
assert_type(found, Estimate)
assert_type(found.value, float)
assert_type(found.interval, Interval)
assert_type(found.interval.low, float)
report = cal.report(y, p)
assert_type(report, Report)
assert_type(report.verdict, str)
over_time = cal.calibration_over_time(y, p, np.arange(500), every=100)
assert_type(over_time, CalibrationOverTime)
assert_type(over_time.changes, tuple[Change, ...])
assert_type(ReliabilityDisplay.from_predictions(y, p), ReliabilityDisplay)
assert_type(cal.ReliabilityDisplay.from_predictions(y, p), ReliabilityDisplay)
assert_type(BetaCalibration().fit(p, y), BetaCalibration)
assert_type(cal.TemperatureScaling().fit(p, y), TemperatureScaling)
cal.estimate(y, p, levle=0.9)  # type: ignore[call-arg]
cal.no_such_name  # type: ignore[attr-defined]  # noqa: B018
