"""The numbers: calibration errors with intervals, and reliability curves with bands."""
