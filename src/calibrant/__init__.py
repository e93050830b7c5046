"""calibrant: tells whether a classifier's probabilities can be trusted, shows it, tests it and repairs it.

Names are listed once, in ``__init__.pyi``, and loaded when they are first used, so ``import calibrant`` costs less than
``import numpy``.
"""

import os

import lazy_loader

from .data.version import __version__ as __version__

__getattr__, __dir__, _listed = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted({*_listed, "__version__"} - set(os.listdir(os.path.dirname(__file__))))
