"""calibrant: tells whether a classifier's probabilities can be trusted, shows it, tests it and repairs it.

Names are listed once, in ``__init__.pyi``, and loaded when they are first used, so ``import calibrant`` costs less than
``import numpy``.
"""

import os
from importlib import import_module
from typing import Any

import lazy_loader

from .data import moved as _moved
from .data.version import __version__ as __version__

_load, __dir__, _listed = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted({*_listed, "__version__"} - set(os.listdir(os.path.dirname(__file__))))
_moved.install()


def __getattr__(name: str) -> Any:
    """Load a public name, or a module that has moved, on first use."""
    if name in _moved.MOVED:
        return import_module(f".{name}", __name__)
    if name in _listed:
        return _load(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
