"""Calibration of subgroups: the same probability should mean the same in each."""
