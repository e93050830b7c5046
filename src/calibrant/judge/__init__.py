"""Verdicts: tests of calibration, parts of scores, comparisons of models, groups side by side, what decisions cost."""
