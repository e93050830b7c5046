"""Estimators of the calibration error: values, each a frozen dataclass that validates itself.

Also what someone needs who writes another one: `CellEstimator` and the sums that it reads.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
