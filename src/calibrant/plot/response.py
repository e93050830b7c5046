"""From a fitted classifier to the predictions a display takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.types import Label
from ..notions import ClassSpecific, Notion


def response_of(estimator: Any, X: Any, notion: str | Notion, pos_label: Label) -> tuple[Any, list[Label], Label]:
    """Probabilities, labels and positive label of a classifier, as scikit-learn's displays choose them.

    A binary classifier gives the probability of ``pos_label`` (default ``classes_[1]``) where one class is
    asked for, and everything else the matrix.
    """
    predict = getattr(estimator, "predict_proba", None)
    classes = getattr(estimator, "classes_", None)
    if predict is None or classes is None:
        missing = "predict_proba" if predict is None else "classes_ (is it fitted?)"
        raise TypeError(f"estimator must be a fitted classifier with predict_proba; {estimator!r} has no {missing}")
    labels = [c.item() if isinstance(c, np.generic) else c for c in classes]
    if pos_label is not None and pos_label not in labels:
        raise ValueError(f"pos_label must be one of the estimator's classes {labels!r}; got {pos_label!r}")
    matrix = np.asarray(predict(X))
    one_class = notion in ("auto", "class-specific", ClassSpecific())
    if len(labels) == 2 and one_class:
        positive = labels[1] if pos_label is None else pos_label
        return matrix[:, labels.index(positive)], labels, positive
    if pos_label is not None:
        raise ValueError(
            f"pos_label is for one class of a binary classifier (got notion={str(notion)!r}, {len(labels)} classes): "
            "use notion=ClassSpecific(label)"
        )
    return matrix, labels, None


def each_model(y_true: Any, y_prob: Any, name: str) -> dict[Any, tuple[Any, Any]]:
    """Rows of one model, or of several by their names: what a verb takes first."""
    if y_prob is None and isinstance(y_true, Mapping):
        return {key: (predictions, None) for key, predictions in y_true.items()}
    several = y_prob if isinstance(y_prob, Mapping) else {name: y_prob}
    return {key: (y_true, probs) for key, probs in several.items()}
