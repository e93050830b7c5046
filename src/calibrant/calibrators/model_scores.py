"""Scores of the models behind a calibrator: of several labels, and of folds that lack classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.types import AnyArray, FloatArray


def scores_of_labels(model: Any, X: Any, method: str) -> FloatArray:
    """Scores (n, L) of a model of several labels; some models give a table of two classes per label."""
    found = getattr(model, method)(X)
    if isinstance(found, list):
        found = np.column_stack([_of_one(p, c) for p, c in zip(found, model.classes_, strict=True)])
    return np.asarray(found, dtype=np.float64)


def _of_one(p: FloatArray, classes: AnyArray) -> FloatArray:
    """Probability of one label from a table of its classes, 0 and 1, or only one of them if all rows agreed."""
    return np.asarray(np.asarray(p)[:, np.asarray(classes) == 1].sum(axis=1))


def normalised(p: FloatArray, known: AnyArray) -> FloatArray:
    """Normalise rows to sum 1; rows of zeros become uniform over the known classes."""
    total = p.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, p / np.where(total > 0, total, 1), known / known.sum()))
