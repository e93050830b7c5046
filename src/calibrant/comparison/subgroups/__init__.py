"""Calibration of subgroups: the same score should mean the same in each."""
