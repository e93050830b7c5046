"""PyTorch: differentiable calibration errors as losses, a streaming metric, and scalers (extra ``torch``).

Losses take logits, work under autocast, and are traced whole by ``torch.compile(..., fullgraph=True)``.
"""

from typing import Any

from . import functional
from .losses import (
    BrierLoss,
    BrierSharpnessLoss,
    ConfidencePenaltyLoss,
    DCALoss,
    DirichletKernelLoss,
    FocalLoss,
    MMCELoss,
    SoftBinnedECELoss,
)
from .scaling import TemperatureScaler, VectorScaler

__all__ = [
    "BrierLoss",
    "BrierSharpnessLoss",
    "CalibrationError",
    "ConfidencePenaltyLoss",
    "DCALoss",
    "DirichletKernelLoss",
    "FocalLoss",
    "MMCELoss",
    "SoftBinnedECELoss",
    "TemperatureScaler",
    "VectorScaler",
    "functional",
]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    """Import the metric when it is asked for: losses do not need torchmetrics."""
    if name != "CalibrationError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .metrics import CalibrationError
    except ModuleNotFoundError as error:
        if error.name != "torchmetrics":
            raise
        raise ImportError(
            "calibrant.torch.CalibrationError needs torchmetrics: pip install 'calibrant[torch]'"
        ) from error
    return CalibrationError
