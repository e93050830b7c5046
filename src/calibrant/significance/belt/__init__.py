"""The calibration belt: where, and in which direction, a model is off, with a test."""

from .belt import CalibrationBelt, calibration_belt

__all__ = ["CalibrationBelt", "calibration_belt"]
