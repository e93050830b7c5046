"""Reliability curves: observed frequency as a function of the score."""

from .reliability import reliability_curve

__all__ = ["reliability_curve"]
