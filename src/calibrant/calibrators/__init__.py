"""Calibrators: scikit-learn classifiers that map a classifier's scores to calibrated probabilities."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
