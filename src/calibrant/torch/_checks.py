"""Checks of tensors, shared by losses and metric."""

from __future__ import annotations

import torch
from torch import Tensor

#: How far rows of probabilities may be from a sum of 1: about ten rounding errors, and as much as the core allows.
_SUM_TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 8e-2}


def check_dense(name: str, tensor: Tensor) -> None:
    """Check that a tensor is dense, with real numbers."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta or tensor.is_complex():
        kind = "a meta tensor" if tensor.is_meta else f"{tensor.dtype}, {tensor.layout}"
        raise ValueError(f"{name} must be a dense tensor of real numbers; got {kind}")


def check_pair(name: str, scores: Tensor, target: Tensor, shape: str, *, boolean: bool = False) -> None:
    """Check types and shapes of scores, ``(N, …)`` or ``(N, K, …)``, and of class indices (or truth values)."""
    for what, tensor in ((name, scores), ("target", target)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what} must be a torch.Tensor; got {type(tensor).__name__}")
        check_dense(what, tensor)
    if name == "logits":
        check_classes(scores)
    single = shape == "(N, …)"
    if scores.ndim < (1 if single else 2) or not scores.is_floating_point():
        raise ValueError(f"{name} must be floats of shape {shape}; got {scores.dtype}, shape {tuple(scores.shape)}")
    wanted = scores.shape if single else scores.shape[:1] + scores.shape[2:]
    whole = not (target.is_floating_point() or target.is_complex() or (target.dtype == torch.bool and not boolean))
    if target.shape != wanted or not whole:
        got = f"{target.dtype}, shape {tuple(target.shape)}"
        raise ValueError(f"target must be class indices of shape {tuple(wanted)}; got {got}")


def check_classes(logits: Tensor, k: int | None = None) -> None:
    """Check that dimension 1 of logits has the classes: at least two, or k."""
    traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]  # torch's
    # In a trace sizes are tensors, and a check of them would be a warning.
    if logits.ndim < 2 or (not traced and (logits.shape[1] < 2 if k is None else logits.shape[1] != k)):
        wanted, least = ("K", ", K >= 2") if k is None else (k, "")
        one = logits.ndim < 2 or logits.shape[1] == 1
        raise ValueError(
            f"logits must be floats of shape (N, {wanted}) or (N, {wanted}, d1, …){least}; got {logits.dtype}, shape "
            f"{tuple(logits.shape)}"
            + (": one logit z a row, of shape (N,), is torch.stack([torch.zeros_like(z), z], 1)" if one else "")
        )


def flattened(scores: Tensor) -> Tensor:
    """Rows (n, K) of scores whose classes are in dimension 1."""
    return scores if scores.ndim == 2 else scores.movedim(1, -1).reshape(-1, scores.shape[1])


def rows_that_count(target: Tensor, k: int, ignore_index: int | None) -> Tensor:
    """Which rows of class indices (n,) are not ignored; ValueError if such a row has none of the classes."""
    valid = torch.ones_like(target, dtype=torch.bool) if ignore_index is None else target != ignore_index
    wrong = valid & ~((target >= 0) & (target < k))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        instead = "" if ignore_index is None else f" or be ignore_index={ignore_index}"
        raise ValueError(f"target must lie in 0 … {k - 1}{instead}; got {int(target[row])} at row {row}")
    return valid


def check_probabilities(name: str, p: Tensor) -> None:
    """Check that values are in [0, 1] and that rows sum to 1."""
    if not p.shape[0]:
        return
    if not (torch.isfinite(p).all() and p.min() >= 0 and p.max() <= 1):
        got = f"{p.min().item():g} to {p.max().item():g}"
        raise ValueError(f"{name} must lie in [0, 1]; got {got}: are these logits? pass from_logits=True")
    if p.ndim == 2:
        total = p.to(torch.promote_types(p.dtype, torch.float32)).sum(dim=1)  # no float64: some devices have none
        off = (total - 1).abs()
        if off.max() > _SUM_TOLERANCE.get(p.dtype, 1e-4):
            row = int(off.argmax())
            raise ValueError(f"rows of {name} must sum to 1; row {row} sums to {total[row].item():.9g}")
