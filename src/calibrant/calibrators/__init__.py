"""Calibrators: scikit-learn classifiers that map a classifier's scores to probabilities that can be trusted."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
