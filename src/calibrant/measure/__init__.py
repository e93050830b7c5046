"""The numbers: calibration errors with intervals, reliability curves with bands, scores and their decompositions."""
