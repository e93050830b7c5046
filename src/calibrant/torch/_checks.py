"""Checks of tensors, shared by losses and metric."""

from __future__ import annotations

import torch
from torch import Tensor

#: How far rows of probabilities may be from a sum of 1: some ten roundings, and as much as the core allows.
_SUM_TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 8e-2}


def check_pair(name: str, scores: Tensor, target: Tensor, shape: str, *, boolean: bool = False) -> None:
    """Judge kinds and shapes of scores, ``(N,)`` or ``(N, K)``, and of class indices (``boolean``: or truth values)."""
    for what, tensor in ((name, scores), ("target", target)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what} must be a torch.Tensor; got {type(tensor).__name__}")
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
            kind = "a meta tensor" if tensor.is_meta else f"{tensor.dtype}, {tensor.layout}"
            raise ValueError(f"{what} must be a dense tensor of numbers; got {kind}")
    if scores.ndim != (1 if shape == "(N,)" else 2) or not scores.is_floating_point():
        raise ValueError(f"{name} must be floats of shape {shape}; got {scores.dtype}, shape {tuple(scores.shape)}")
    whole = not (target.is_floating_point() or target.is_complex() or (target.dtype == torch.bool and not boolean))
    if target.shape != scores.shape[:1] or not whole:
        got = f"{target.dtype}, shape {tuple(target.shape)}"
        raise ValueError(f"target must be class indices of shape ({scores.shape[0]},); got {got}")


def check_probabilities(name: str, p: Tensor) -> None:
    """Judge values: in [0, 1], and of rows a sum of 1."""
    if not p.shape[0]:
        return
    if not (torch.isfinite(p).all() and p.min() >= 0 and p.max() <= 1):
        got = f"{p.min().item():g} to {p.max().item():g}"
        raise ValueError(f"{name} must lie in [0, 1]; got {got}: are these logits? pass from_logits=True")
    if p.ndim == 2:
        total = p.double().sum(dim=1)
        off = (total - 1).abs()
        if off.max() > _SUM_TOLERANCE.get(p.dtype, 1e-4):
            row = int(off.argmax())
            raise ValueError(f"rows of {name} must add up to 1; row {row} adds up to {total[row].item():.9g}")
