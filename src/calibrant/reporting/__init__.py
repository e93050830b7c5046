"""The report: numbers, table, verdict, text and HTML, from sums alone."""

from .build import report, report_from
from .report import Report

__all__ = ["Report", "report", "report_from"]
