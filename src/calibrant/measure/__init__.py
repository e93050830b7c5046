"""Calibration errors with intervals, and reliability curves with bands."""
