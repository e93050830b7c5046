"""What fitted attributes mean: the numbers that each may hold, and which sizes belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from ..data.fields import Field as Field
from ..data.fields import Names as Names
from ..data.fields import Number as Number
from ..data.fields import Numbers as Numbers
from ..data.fields import Plain as Plain
from ..data.fields import Several as Several
from ..data.fields import Sizes


@dataclass(frozen=True)
class Fitted(Field):
    """A fitted calibrator, of these classes or of those of one against the rest."""

    binary: bool = False

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Kind and number of classes."""
        one = isinstance(value, ClassifierMixin) and hasattr(value, "classes_")
        if not one or (self.binary and not hasattr(value, "_map")):
            raise ValueError(f"{name} must be a fitted calibrator{' of two classes' if self.binary else ''}")
        wanted = 2 if self.binary else sizes["K"]
        if len(value.classes_) != wanted:
            raise ValueError(f"{name} must be of {wanted} classes; it is of {len(value.classes_)}")


@dataclass(frozen=True)
class Later(Field):
    """What earlier versions did not save: None stands for it."""

    of: Field

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """None, or as the field."""
        if value is not None:
            self.of.check(name, value, sizes)


#: Of a fit by steps.
STEPS = {"gradient_norm_": Number(0), "n_iter_": Number(0, whole=True)}
PROBABILITIES = (0.0, 1.0)


def check_common(fitted: dict[str, Any], sizes: Sizes) -> None:
    """Check the attributes that every fitted calibrator has."""
    classes = fitted["classes_"]
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or not classes.size:
        raise ValueError("classes_ must be an array of labels")
    if len(set(classes.tolist())) != classes.size:
        raise ValueError("classes_ must be different labels")
    k = sizes["K"] = classes.size
    columns = fitted["n_features_in_"]
    Number(1, whole=True).check("n_features_in_", columns, sizes)
    if columns not in ((1, k) if k <= 2 else (k,)):
        raise ValueError(f"n_features_in_ must be that of {k} classes; got {columns}")
    order = fitted["order_"]
    if order is not None:
        Numbers(("K",), 0, k - 1).check("order_", order, sizes)
        if order.dtype.kind != "i" or sorted(order.tolist()) != list(range(k)):
            raise ValueError(f"order_ must hold each of 0 … {k - 1} once")
    names = fitted.get("feature_names_in_")
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (columns,)):
        raise ValueError(f"feature_names_in_ must be {columns} name(s)")
