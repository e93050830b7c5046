"""Tests with p-values: could what is seen come from a calibrated model?"""

from .adaptive_bins import adaptive_test
from .classical import cox_test, hosmer_lemeshow, pearson_test, spiegelhalter_test
from .cumulative_sums import cumulative_test
from .evalue import CalibrationMonitor, evalue_test
from .resampling import calibration_test
from .result import TestResult
from .skce import kernel_test

__all__ = [
    "CalibrationMonitor",
    "TestResult",
    "adaptive_test",
    "calibration_test",
    "cox_test",
    "cumulative_test",
    "evalue_test",
    "hosmer_lemeshow",
    "kernel_test",
    "pearson_test",
    "spiegelhalter_test",
]
