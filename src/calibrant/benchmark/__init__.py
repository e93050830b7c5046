"""The known-truth benchmark: errors of estimators on score distributions whose calibration error is known."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
