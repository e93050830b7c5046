"""Warnings of this package: each class names a cause that a user can settle; all derive from `CalibrantWarning`."""

from __future__ import annotations

__all__ = [
    "BandwidthWarning",
    "CalibrantWarning",
    "ConvergenceWarning",
    "DependenceWarning",
    "LabelWarning",
    "ScoreWarning",
    "UndefinedErrorWarning",
]


def __dir__() -> list[str]:
    return list(__all__)


class CalibrantWarning(UserWarning):
    """Base class of every warning that calibrant emits."""


class LabelWarning(CalibrantWarning):
    """Labels can be matched to columns in two ways; the message says which was taken and how to settle it."""


class ScoreWarning(CalibrantWarning):
    """Scores can be read, but are probably not probabilities; the message names their likely kind."""


class UndefinedErrorWarning(CalibrantWarning):
    """An estimator gives no number for the rows it was given, and NaN is returned; the message says which."""


class BandwidthWarning(CalibrantWarning):
    """A bandwidth rule could not be applied as asked; the message names the rule used instead."""


class DependenceWarning(CalibrantWarning):
    """Rows that were taken as independent follow each other as if they were not; the message says how to settle it."""


class ConvergenceWarning(CalibrantWarning):
    """An iteration ended before it had converged; the message says how far it came."""
