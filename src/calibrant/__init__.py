"""calibrant: tells whether a classifier's probabilities can be trusted, shows it, tests it and repairs it.

Names are listed once, in ``__init__.pyi``, and loaded when they are first used, so ``import calibrant`` costs less than
``import numpy``.
"""

import lazy_loader

from .data.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
