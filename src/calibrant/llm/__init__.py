"""Read results of LLM evaluations as `Predictions`: logs of lm-evaluation-harness and inspect_ai, and tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
