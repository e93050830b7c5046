"""The numbers: calibration errors with intervals, reliability curves with bands, and scores."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """The module that is public by itself."""
    if name == "scores":
        return import_module(".scores", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
