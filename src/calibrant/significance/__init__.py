"""Tests with p-values: could what is seen come from a calibrated model?"""

from .adaptive import adaptive_test
from .classical import cox_test, hosmer_lemeshow, spiegelhalter_test
from .cumulative import cumulative_test
from .evalue import CalibrationMonitor, evalue_test
from .kernel import kernel_test
from .resampling import calibration_test
from .result import TestResult

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
    "spiegelhalter_test",
]
