"""PyTorch: differentiable calibration errors as losses, a streaming metric, and scalers (extra ``torch``).

Losses take logits, work under autocast, and are traced whole by ``torch.compile(..., fullgraph=True)``. The metric also
needs torchmetrics.
"""

import lazy_loader

from ..data.libraries import needing

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = needing(_load, "calibrant.torch", "torch", "torch", "torchmetrics")
