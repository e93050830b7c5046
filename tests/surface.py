"""The public surface: every name that a user can reach, and the module that it is in."""

from importlib import import_module
from types import ModuleType
from typing import Any

import calibrant as cal

#: Modules that need an extra are read by the tests that have it.
MODULES = (
    "adapters",
    "benchmark",
    "calibrators",
    "datasets",
    "decisions",
    "estimators",
    "exceptions",
    "llm",
    "notions",
    "plot",
    "results",
    "scores",
    "significance",
)


def names() -> dict[str, Any]:
    """Public names with what they stand for: those at the top, and those of every module."""
    found = {name: getattr(cal, name) for name in cal.__all__ if name not in MODULES and name != "torch"}
    for module in map(room, MODULES):
        found |= {name: getattr(module, name) for name in module.__all__}
    return found


def room(name: str) -> ModuleType:
    """A public module."""
    return import_module(f"calibrant.{name}")


NAMES = names()
