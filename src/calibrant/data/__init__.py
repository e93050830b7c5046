"""User input, judged once: containers and files to `Predictions`; notions of calibration; the problems they pose."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """The modules that are public by themselves."""
    if name in ("datasets", "notions"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
