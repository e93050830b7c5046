"""Rows in place of labels and scores: as columns of a frame, as Predictions, as an Accumulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import calibrant as cal

from .drawing import Draw

#: Parameters that hold rows, or that say which columns of a frame do.
OF_ROWS = ("y_true", "y_prob", "y_probs", "sample_weight", "groups", "labels", "pos_label", "label", "prob", "weight")


def in_a_frame(draw: Draw, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Labels, scores and weights as columns of a frame; as they are where they do not fit into one."""
    y, p, weight = (given.get(key) for key in ("y_true", "y_prob", "sample_weight"))
    try:
        p = np.asarray(p)
        columns = {"y": list(y), **({"p": p} if p.ndim == 1 else {f"p_{i}": p[:, i] for i in range(p.shape[1])})}
        if weight is not None:
            columns["w"] = list(weight)
        frame = draw.one([pd.DataFrame, pl.DataFrame, pa.table])(columns)
    except (Exception, pl.exceptions.PanicException):  # rows of different lengths, and values that no column holds
        return [given.pop("y_true"), *([given.pop("y_prob")] if "y_prob" in given else [])], given
    draw.say("as", f"a frame of {type(frame).__module__.split('.')[0]}")
    rest = {key: value for key, value in given.items() if key not in ("y_true", "y_prob", "sample_weight")}
    names = [name for name in columns if name.startswith("p")]
    rest |= {"label": "y", "prob": draw.one([names[0] if len(names) == 1 else names, "p_*", "q", [], names])}
    return [frame], rest | ({"weight": "w"} if weight is not None else {})


def as_predictions(draw: Draw, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The rows as :class:`Predictions`, where they can be."""
    inputs = ("y_true", "y_prob", "sample_weight", "groups", "labels", "pos_label", "sum_tolerance", "from_logits")
    try:
        made = cal.as_predictions(**{key: given[key] for key in (*inputs, "group_average") if key in given})
    except (Exception, pl.exceptions.PanicException):
        return [given.pop("y_true"), given.pop("y_prob")], given
    draw.say("as", "Predictions")
    drop = set(inputs if draw.chance(0.9) else inputs[:2]) | {"group_average"}
    return [made], {key: value for key, value in given.items() if key not in drop}


def as_sums(draw: Draw, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The rows as an :class:`Accumulator`, where they can be."""
    try:
        made = cal.Accumulator().update(given["y_true"], given["y_prob"])
    except (Exception, pl.exceptions.PanicException):
        return [given.pop("y_true"), given.pop("y_prob")], given
    draw.say("as", "an Accumulator")
    return [made], {key: value for key, value in given.items() if key not in OF_ROWS}
