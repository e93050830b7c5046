"""Displays: pictures of results with matplotlib (extra ``plot``). The only part of calibrant that imports it."""

import lazy_loader

from ..data.libraries import needing

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = needing(_load, "drawing", "plot", "matplotlib")
