"""The report (numbers, table, verdict, text and HTML, from sums only) and the comparison of calibrators."""

from .assemble import report
from .comparison import CalibratorComparison, ComparedCalibrator
from .report import Report

# `compare_calibrators` is in `.compare`, which needs scikit-learn: a report does not.
__all__ = ["CalibratorComparison", "ComparedCalibrator", "Report", "report"]
