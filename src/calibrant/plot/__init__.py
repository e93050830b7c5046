"""Displays: figures of results with matplotlib (extra ``plot``), which only this part of calibrant imports."""

import lazy_loader

from ..data.libraries import needing

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = needing(_load, "drawing", "plot", "matplotlib")
