"""Decisions: clinical measures, decision curves, costs, thresholds, base rates, risk–coverage, optimism."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
