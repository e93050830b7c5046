"""Averages over the other samples with Dirichlet kernels, in tiles that are computed again in the backward pass."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

#: Weights of a tile; a backward pass holds a few tiles at once.
TILE = 1 << 20


class Around(NamedTuple):
    """``Σ w v``, ``Σ w² v'`` (None unless asked for) and ``Σ w²`` around every sample without itself."""

    mean: Tensor
    second: Tensor | None
    concentration: Tensor


def log_probabilities(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of softmax rows and the rows, in float32 at least."""
    if logits.dtype not in (torch.float32, torch.float64):
        logits = logits.float()
    logs = torch.log_softmax(logits, dim=1)
    return logs, logs.exp()


def around(
    logs: Tensor, probs: Tensor, values: Tensor, h: float, orientation: str, second: Tensor | None = None
) -> Around:
    """Average values (N, K) around every sample; memory O(N K) and a few tiles, in the backward pass too."""
    n = probs.shape[0]
    ones = probs.new_ones(n, 1)
    if orientation == "data":
        normaliser = torch.lgamma(probs / h + 1).sum(dim=1, keepdim=True)
        left, right = torch.cat([logs, ones], dim=1), torch.cat([probs / h, -normaliser], dim=1)
    else:
        left, right = probs / h, logs
    step = max(1, TILE // max(n, 1))
    parts = []
    for start in range(0, n, step):
        stop = min(start + step, n)
        if torch.is_grad_enabled() and n > step:
            parts.append(checkpoint(_tile, left[start:stop], right, values, second, start, use_reentrant=False))
        else:
            parts.append(_tile(left[start:stop], right, values, second, start))
    mean = torch.cat([p[0] for p in parts])
    squares = None if second is None else torch.cat([p[1] for p in parts])
    return Around(mean, squares, torch.cat([p[2] for p in parts]))


def _tile(
    left: Tensor, right: Tensor, values: Tensor, second: Tensor | None, start: int
) -> tuple[Tensor, Tensor | None, Tensor]:
    scores = left @ right.T
    own = torch.arange(left.shape[0], device=left.device)
    scores = scores.index_put((own, own + start), scores.new_full((), -torch.inf))
    weights = torch.softmax(scores, dim=1)
    squares = weights.square()
    return weights @ values, None if second is None else squares @ second, squares.sum(dim=1)
