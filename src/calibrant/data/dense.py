"""Pixels and tokens: arrays of labels (N, d1, …) and scores (N, K, d1, …) as rows, one per place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .checks import check_int
from .convert import to_array
from .types import AnyArray

#: Value of ``groups`` for which each index of the first axis, an image or a text, is a group.
FIRST_AXIS = "first-axis"


def rows_of_places(
    y_true: Any, y_prob: Any, sample_weight: Any, groups: Any, multilabel: bool | None
) -> tuple[Any, Any, Any, Any]:
    """Labels, scores, weights and groups with one value per place; unchanged if scores already have rows."""
    by_image = isinstance(groups, str) and groups == FIRST_AXIS
    if _depth(y_prob) < 3 or _depth(y_true) < 2:
        if by_image:
            raise ValueError(
                "groups='first-axis' needs y_prob (N, K, d1, …): rows of y_prob (n,) or (n, K) have no more axes"
            )
        return y_true, y_prob, sample_weight, groups
    truth, scores = to_array(y_true, "y_true")[0], to_array(y_prob, "y_prob")[0]
    shape = truth.shape
    if scores.shape == shape and multilabel:
        truth, scores = (np.moveaxis(v, 1, -1).reshape(-1, v.shape[1]) for v in (truth, scores))
        shape = shape[:1] + shape[2:]
    elif scores.shape == shape:
        _refuse_one_hot(truth)
        truth, scores = truth.reshape(-1), scores.reshape(-1)
    elif scores.shape[:1] + scores.shape[2:] == shape:
        truth, scores = truth.reshape(-1), np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])
    else:
        last = scores.shape[:-1] == shape
        hint = ": are classes on the last axis? Pass np.moveaxis(y_prob, -1, 1)" if last else ""
        raise ValueError(
            f"y_true must have the shape of y_prob without axis 1, {scores.shape[:1] + scores.shape[2:]}, or for two "
            f"classes that of y_prob, {scores.shape}; got {shape}{hint}"
        )
    if by_image:
        groups = np.arange(shape[0])
    weight, together = (
        _of_places(v, name, shape) for v, name in ((sample_weight, "sample_weight"), (groups, "groups"))
    )
    return truth, scores, weight, together


def without_ignored(ignore_index: Any, truth: AnyArray, *others: AnyArray | None) -> tuple[Any, ...]:
    """Labels and other values of the rows with another label; ValueError if there are none."""
    ignore_index = check_int("ignore_index", ignore_index, -(2**63))
    if truth.dtype.kind not in "iubf":
        raise TypeError(f"ignore_index needs labels that are numbers; y_true has dtype {truth.dtype}")
    if truth.ndim > 1:
        raise ValueError("ignore_index needs one label per row; y_true has rows with several labels")
    kept = np.asarray(truth != ignore_index)
    if not kept.any():
        raise ValueError(f"y_true must have labels besides ignore_index={ignore_index}; all rows ({kept.size}) have it")
    return tuple(None if values is None else values[kept] for values in (truth, *others))


def _of_places(values: Any, name: str, shape: tuple[int, ...]) -> AnyArray | None:
    """One value per place, from values per place or per index of the first axis."""
    if values is None:
        return None
    array = to_array(values, name)[0]
    if array.shape == shape:
        return array.reshape(-1)
    if array.shape == shape[:1]:
        return np.repeat(array, int(np.prod(shape[1:])))
    raise ValueError(
        f"{name} must have the shape of y_true, {shape}, or one value per image, ({shape[0]},); got {array.shape}"
    )


def _refuse_one_hot(truth: AnyArray) -> None:
    """ValueError for one-hot labels: labels in the shape of scores are those of two classes."""
    if truth.ndim > 2 and truth.shape[1] > 1 and truth.dtype.kind in "iubf" and (truth.sum(axis=1) == 1).all():
        raise ValueError(
            "y_true has the shape of y_prob, so each element would be a two-class problem, but it has exactly one 1 "
            "along axis 1: pass y_true.argmax(axis=1), the class of each element, or multilabel=True"
        )


def _depth(value: Any) -> int:
    """Number of dimensions of an array, a tensor, or lists in lists."""
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) if isinstance(shape, Sequence) else 1
    return 1 + (_depth(value[0]) if len(value) else 0) if isinstance(value, (list, tuple)) else 0
