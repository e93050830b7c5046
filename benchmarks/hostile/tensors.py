"""Kinds of tensors: the metric, the losses and the scalers of :mod:`calibrant.torch`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from calibrant import torch as ours
from calibrant.torch import functional

from .drawing import Draw
from .endings import Case, EndedError, probabilities
from .memory import drawn_arguments, signature
from .rows import NOTHING, Rows

Kind = Callable[[Draw], Case]
#: What may be done to a tensor.
ODD: dict[str, Callable[[Any], Any]] = {
    "sparse": lambda t: t.to_sparse(),
    "meta": lambda t: t.to("meta"),
    "quantised": lambda t: torch.quantize_per_tensor(t.float(), 0.01, 0, torch.quint8),
    "complex": lambda t: t + 0j,
    "a gradient": lambda t: t.double().requires_grad_(),
    "not contiguous": lambda t: t.repeat_interleave(2, 0)[::2],
    "half": lambda t: t.half(),
    "bfloat16": lambda t: t.bfloat16(),
    "float": lambda t: t.float(),
    "whole": lambda t: t.long(),
    "uint8": lambda t: t.to(torch.uint8),
    "bool": lambda t: t.bool(),
    "a list": lambda t: t.tolist(),
    "an array": lambda t: t.numpy(),
    "expanded": lambda t: t[:1].expand(t.shape),
    "empty": lambda t: t[:0],
    "0-D": lambda t: t.reshape(-1)[0],
    "3-D": lambda t: t[..., None, None],
    "turned": lambda t: t.T,
    "short": lambda t: t[:-1],
    "a parameter": lambda t: torch.nn.Parameter(t.double()),
    "inference": lambda t: _inference(t),
    "nan": lambda t: torch.full_like(t.double(), torch.nan),
    "inf": lambda t: torch.full_like(t.double(), torch.inf),
    "-inf": lambda t: torch.full_like(t.double(), -torch.inf),
    "one hot": lambda t: torch.nn.functional.one_hot(t.long().clip(0)),
    "negative": lambda t: -t - 1,
    "too many": lambda t: t + 50,
    "ignored": lambda t: torch.full_like(t, -100),
}


def _inference(t: Any) -> Any:
    with torch.inference_mode():
        return t.clone()


def tensor(rows: Rows, what: str, values: Any, *axes: str) -> Any:
    """Values as a tensor, as an odd one, or as something else."""
    draw = rows.draw
    made = torch.as_tensor(np.array(values))
    if "nothing" in rows.wrong and draw.chance(0.3):
        return draw.named(f"{what} is", NOTHING)
    if any(axis in rows.wrong for axis in axes):
        return rows.tried(draw.named(f"{what} as", ODD), made)
    return made


def both(rows: Rows) -> tuple[Any, Any]:
    """Logits or probabilities (N, K), and class indices."""
    draw = rows.draw
    matrix = np.asarray(rows.matrix, dtype=draw.one((np.float64, np.float64, np.float32)))
    how = draw.one(("probabilities", "logits", "far apart"))
    draw.say("scores as", how)
    matrix = matrix if how == "probabilities" else (8 if how == "logits" else 1e30) * (matrix - 0.5)
    return tensor(rows, "scores", matrix, "p", "container p", "container"), tensor(
        rows, "target", rows.codes, "y", "container y"
    )


def loss_case(name: str, function: Any, draw: Draw) -> Case:
    """A loss and its gradient."""
    rows = Rows(draw)
    given = drawn_arguments(draw, rows, function, name, skip=("logits", "target", "notion"))
    logits, target = both(rows)

    def run() -> Any:
        if (
            isinstance(logits, torch.Tensor)
            and logits.is_floating_point()
            and logits.is_leaf
            and not logits.is_inference()
        ):
            logits.requires_grad_()
        found = function(logits, target, **given)
        if not torch.isfinite(found).all() and torch.isfinite(logits).all() and not _huge(given):
            raise EndedError("a loss that is not finite")
        if found.requires_grad:
            (slope,) = torch.autograd.grad(found.sum(), logits)
            if not torch.isfinite(slope).all() and torch.isfinite(logits).all() and not _huge(given):
                raise EndedError("a gradient that is not finite")
        return 0.0

    return Case(f"{name}({draw})", run, names=tuple(signature(function).parameters))


def _huge(given: dict[str, Any]) -> bool:
    """Whether an option is so large that a power of it is infinite."""
    return any(
        isinstance(v, (int, float)) and not isinstance(v, bool) and (abs(v) > 1e4 or 0 < abs(v) < 1e-4)
        for v in given.values()
    )


def metric_case(draw: Draw) -> Case:
    """Batches of the metric: the number of the core, and no trace of a batch that was refused."""
    rows = Rows(draw)
    skip = ("labels", "num_classes", "kwargs", "notion")
    given = drawn_arguments(draw, rows, ours.CalibrationError, "CalibrationError", skip=skip)
    notion = draw.one(("class-specific", "confidence", "classwise", "top-label"))
    draw.say("notion", notion)
    preds, target = both(rows)
    if notion == "class-specific" and draw.chance(0.8):
        preds = tensor(rows, "preds", np.asarray(rows.matrix, dtype=float)[:, -1], "p", "container p", "container")
        if not rows.binary:
            target = tensor(rows, "target", rows.codes == rows.k - 1, "y", "container y")

    def run() -> Any:
        metric = ours.CalibrationError(
            notion=notion, num_classes=None if notion == "class-specific" else rows.k, **given
        )
        before = metric.sums.clone()
        try:
            metric.update(preds, target)
        except (ValueError, TypeError):
            if not torch.equal(metric.sums, before):
                raise EndedError("a batch that was refused changed the metric") from None
            raise
        value = float(metric.compute())
        if np.isnan(value) and len(target):
            raise EndedError("NaN")
        return 0.0

    return Case(
        f"CalibrationError({draw})", run, names=("preds", *signature(ours.CalibrationError).parameters, "target")
    )


def scaler_case(name: str, kind: Any, draw: Draw) -> Case:
    """A scaler that is fitted and used."""
    rows = Rows(draw)
    logits, target = both(rows)
    weight = tensor(rows, "weight", draw.rng.random(rows.n), "weight") if draw.chance(0.3) else None
    shrinkage = draw.one(("auto", 0, 0.1, "x", -1, None, float("nan")))
    draw.say("shrinkage", shrinkage)

    def run() -> Any:
        made = kind(shrinkage=shrinkage) if name == "TemperatureScaler" else kind(rows.k, shrinkage=shrinkage)
        return made.fit(logits, target, weight).predict_proba(logits).detach()

    def holds(found: Any) -> str:
        near = max(1e-6, rows.k * torch.finfo(found.dtype).eps)  # rounding of half floats
        return probabilities(found.double().numpy(), near=near)

    names = ("logits", "target", "weight", "shrinkage", "n_classes")
    return Case(f"{name}({draw})", run, names=names, holds=holds)


def kinds() -> dict[str, Kind]:
    """Every kind of tensors."""
    public = {n: f for n, f in vars(functional).items() if inspect.isfunction(f) and not n.startswith("_")}
    losses = {
        n: f for n, f in public.items() if f.__module__ == functional.__name__ and "logits" in signature(f).parameters
    }
    found: dict[str, Kind] = {f"torch.{name}": partial(loss_case, name, function) for name, function in losses.items()}
    found["torch.CalibrationError"] = metric_case
    for name in ("TemperatureScaler", "VectorScaler"):
        found[f"torch.{name}"] = partial(scaler_case, name, getattr(ours, name))
    return found
