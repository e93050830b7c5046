"""Averages over the other samples with Dirichlet kernels, in tiles that are recomputed in the backward pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

#: Weights of a tile; a backward pass keeps two tiles at once, three with squares.
TILE = 1 << 19
#: Logarithms of probabilities below this, such as those of logits of -inf, are raised to it: 0 · log 0 is 0.
LOWEST = -1e4
#: Powers of 2 are about twice as fast as those of e.
LOG2E = math.log2(math.e)
#: Logarithms (in base 2) of weights that are treated as 0: far below rounding, and squares of others are not subnormal
#: numbers, with which a CPU is several times slower.
LEAST = {torch.float32: -60.0, torch.float64: -500.0}


class NeighbourMeans(NamedTuple):
    """``Σ w v`` around every sample without itself; ``Σ w² v'`` and ``Σ w²`` if there are values v'."""

    mean: Tensor
    second: Tensor | None
    concentration: Tensor


def log_probabilities(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of softmax rows, finite, and the rows, in float32 at least."""
    if logits.dtype not in (torch.float32, torch.float64):
        logits = logits.float()
    logs = torch.log_softmax(logits, dim=1)
    return logs.clamp(min=LOWEST), logs.exp()


def around(
    logs: Tensor, probs: Tensor, values: Tensor, h: float, orientation: str, second: Tensor | None = None
) -> NeighbourMeans:
    """Average values (N, K) around every sample; memory O(N K) and a few tiles, in the backward pass too."""
    n = probs.shape[0]
    ones = probs.new_ones(n, 1)
    if orientation == "data":
        normaliser = torch.lgamma(probs / h + 1).sum(dim=1, keepdim=True)
        left, right = torch.cat([logs, ones], dim=1), torch.cat([probs / h, -normaliser], dim=1)
    else:
        left, right = probs / h, logs
    # A compiled graph takes no tensor twice.
    second = second.clone() if second is values else second
    # torch leaves apply() untyped
    mean, squares, concentration = _Averages.apply(left, right, values, second)  # type: ignore[no-untyped-call]  # torch's
    return NeighbourMeans(mean, squares, concentration)


class _Averages(torch.autograd.Function):
    """``softmax(left @ rightᵀ)`` without its diagonal, times values; and its squares, times other values.

    The weights are never stored: the backward pass recomputes each tile, already normalised, from the logarithms (in
    base 2) of the row sums. With ``r`` the row sums of weights times their slopes, which are ``mean · slope`` and need
    no weights, the slope of a logit is ``w (slope - r)``.
    """

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor, values: Tensor, second: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        n = left.shape[0]
        mean, concentration, log_sum = torch.empty_like(values), left.new_empty(n), left.new_empty(n, 1)
        squares = None if second is None else torch.empty_like(second)
        turned = values.T.contiguous()
        for rows, weights in _tiles(left * LOG2E, right):
            top = weights.amax(dim=1, keepdim=True)
            _powers(weights.sub_(top))
            total = weights.sum(dim=1, keepdim=True)
            torch.add(top, total.log2(), out=log_sum[rows])
            # Products of a few columns are faster turned, with the long side last.
            torch.div((turned @ weights.T).T, total, out=mean[rows])
            if squares is not None and second is not None:
                squares[rows] = (second.T @ weights.div_(total).square_().T).T
                torch.sum(weights, dim=1, out=concentration[rows])
        ctx.save_for_backward(left, right, values, second, mean, squares, concentration, log_sum)
        if second is None:
            ctx.mark_non_differentiable(concentration)
        return mean, squares, concentration

    @staticmethod
    def backward(
        ctx: Any, by_mean: Tensor, by_squares: Tensor | None, by_concentration: Tensor
    ) -> tuple[Tensor | None, ...]:
        left, right, values, second, mean, squares, concentration, log_sum = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _with_graph(ctx, by_mean, by_squares, by_concentration)
        n, m = values.shape
        to_left, to_right = torch.empty_like(left), right.new_zeros(right.shape[1], n)
        to_values = values.new_zeros(m, n) if ctx.needs_input_grad[2] else None
        to_second = values.new_zeros(m, n) if ctx.needs_input_grad[3] else None
        row_sum = (by_mean * mean).sum(dim=1, keepdim=True)
        if second is not None:
            row_sum += 2 * (by_squares * squares).sum(dim=1, keepdim=True)
            row_sum += 2 * (by_concentration * concentration)[:, None]
        # The part subtracted from whole rows is one more column of a product.
        ones = right.new_ones(right.shape[0], 1)
        by_row, by_value = torch.cat([by_mean, -row_sum], dim=1), torch.cat([values, ones], dim=1)
        turned = right.T.contiguous()
        memory: Tensor | None = None
        for rows, weights in _tiles(torch.cat([left * LOG2E, -log_sum], dim=1), torch.cat([right, ones], dim=1)):
            _powers(weights)
            memory = torch.empty_like(weights) if memory is None else memory
            if to_values is not None:
                to_values.addmm_(by_mean[rows].T, weights)
            slope = torch.mm(by_row[rows], by_value.T, out=memory[: len(weights)])
            if second is not None and by_squares is not None:
                slope.addcmul_(weights, by_squares[rows] @ second.T + by_concentration[rows, None], value=2)
                if to_second is not None:
                    to_second.addmm_(by_squares[rows].T, weights.square())
            slope.mul_(weights)
            to_left[rows] = (turned @ slope.T).T
            to_right.addmm_(left[rows].T, slope)
        return (
            to_left,
            to_right.T,
            None if to_values is None else to_values.T,
            None if to_second is None else to_second.T,
        )


def _with_graph(ctx: Any, *slopes: Any) -> tuple[Tensor | None, ...]:
    """The backward pass as a graph, for second derivatives: with all weights at once, O(N²) memory."""
    # Views, because one input may be computed from another.
    inputs: list[Any] = [None if t is None else t.view_as(t) for t in ctx.saved_tensors[:4]]
    left, right, values, second = inputs
    weights = torch.softmax((left @ right.T).fill_diagonal_(-torch.inf), dim=1)
    outputs = [weights @ values]
    if second is not None:
        outputs += [weights.square() @ second, weights.square().sum(dim=1)]
    wanted = [t for t, need in zip(inputs, ctx.needs_input_grad, strict=True) if need]
    found = iter(torch.autograd.grad(outputs, wanted, slopes[: len(outputs)], create_graph=True))
    return tuple(next(found) if need else None for need in ctx.needs_input_grad)


def _powers(logs: Tensor) -> Tensor:
    """Powers of 2, in place; where it saves time, negligible ones are set to 0."""
    return (torch.threshold_(logs, LEAST[logs.dtype], -torch.inf) if logs.is_cpu else logs).exp2_()


def _tiles(left: Tensor, right: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Rows and the logarithms of their weights, which the caller may overwrite; one tile's memory is reused for all."""
    n = left.shape[0]
    step = min(n, max(1, TILE // max(n, 1)))
    memory = left.new_empty(step, n)
    turned = right.T.contiguous()
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        weights = memory[: rows.stop - start]
        torch.mm(left[rows], turned, out=weights)
        weights.diagonal(start).fill_(-torch.inf)
        yield rows, weights
