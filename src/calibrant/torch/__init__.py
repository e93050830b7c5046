"""PyTorch: differentiable calibration errors as training losses, on logits and on any device (extra ``torch``)."""

from . import functional
from .losses import BrierLoss, DirichletKernelLoss, FocalLoss, MMCELoss, SoftBinnedECELoss

__all__ = ["BrierLoss", "DirichletKernelLoss", "FocalLoss", "MMCELoss", "SoftBinnedECELoss", "functional"]
