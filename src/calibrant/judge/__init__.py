"""Verdicts: tests of calibration, comparisons of models, groups side by side, and what decisions cost."""
