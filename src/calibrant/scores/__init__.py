"""Proper scores, their decompositions, Murphy and Brier curves, and ranks of models over data sets."""

from typing import Any

from ..measure import scores


def __getattr__(name: str) -> Any:
    """What this module had when it was a name of :mod:`calibrant.measure.scores`."""
    return getattr(scores, name)
