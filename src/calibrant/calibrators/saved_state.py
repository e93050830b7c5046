"""What fitted attributes mean: the numbers that each may hold, and which sizes belong together."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

#: A size in a shape: "K", "B+1", "2m+1", or a number.
_SIZE = re.compile(r"(\d*)([A-Za-z])(?:\+(\d+))?|(\d+)")
_ROUNDING = 1e-9
#: Beyond this a product with a log odds overflows; no fit gets anywhere near.
_LARGEST = 1e150
Sizes = dict[str, int]


class Field(ABC):
    """What a fitted attribute must be."""

    @abstractmethod
    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise ValueError saying what is wrong; ``sizes`` are those known, and those that this one tells are added."""


@dataclass(frozen=True)
class Number(Field):
    """A number between two others; one of the words may be infinite or NaN."""

    low: float = -_LARGEST
    high: float = _LARGEST
    whole: bool = False
    infinite: bool = False
    nan: bool = False

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """Kind, then range."""
        kinds = (int, np.integer) if self.whole else (int, float, np.number)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ValueError(f"{name} must be a {'whole ' if self.whole else ''}number; got {str(value)[:40]!r}")
        if self.nan and value != value:
            return
        if not self.low <= value <= self.high and not (self.infinite and value == np.inf):
            raise ValueError(f"{name} must be {_range(self.low, self.high)}; got {value!r}")


@dataclass(frozen=True)
class Numbers(Field):
    """An array of finite numbers between two others."""

    shape: tuple[str, ...]
    low: float = -_LARGEST
    high: float = _LARGEST
    ascending: bool = False
    #: What they add up to.
    total: float | None = None

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """Shape, range, order, sum."""
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fi" or value.ndim != len(self.shape):
            raise ValueError(f"{name} must be an array of numbers of {len(self.shape)} dimension(s)")
        for size, wanted in zip(value.shape, self.shape, strict=True):
            _fit_size(name, size, wanted, sizes)
        if not np.isfinite(value).all():
            raise ValueError(f"{name} must hold finite numbers")
        if value.size and not (value.min() >= self.low - _ROUNDING and value.max() <= self.high + _ROUNDING):
            raise ValueError(f"{name} must hold numbers {_range(self.low, self.high)}")
        if self.ascending and (np.diff(value) < -_ROUNDING).any():
            raise ValueError(f"{name} must not descend")
        if self.total is not None and abs(value.sum() - self.total) > 1e-6:
            raise ValueError(f"{name} must add up to {self.total:g}; got {value.sum():g}")


@dataclass(frozen=True)
class Names(Field):
    """An array of different strings, ascending."""

    shape: tuple[str]

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """Kind, size, order."""
        if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind != "U":
            raise ValueError(f"{name} must be an array of strings")
        if (value[1:] <= value[:-1]).any():
            raise ValueError(f"{name} must be different strings, ascending")
        _fit_size(name, value.size, *self.shape, sizes)


@dataclass(frozen=True)
class Several(Field):
    """A list of M values, each with sizes of its own."""

    of: Field
    count: str = "M"

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """Number, then each."""
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list")
        _fit_size(name, len(value), self.count, sizes)
        for i, one in enumerate(value):
            self.of.judge(f"{name}[{i}]", one, dict(sizes))


@dataclass(frozen=True)
class Fitted(Field):
    """A fitted calibrator, of these classes or of those of one against the rest."""

    binary: bool = False

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
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

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """None, or as the field."""
        if value is not None:
            self.of.judge(name, value, sizes)


@dataclass(frozen=True)
class Word(Field):
    """A string."""

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """Its kind."""
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a string; got {str(value)[:40]!r}")


@dataclass(frozen=True)
class MappingField(Field):
    """A mapping from names."""

    def judge(self, name: str, value: Any, sizes: Sizes) -> None:
        """Its kind."""
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be a mapping; got {str(value)[:40]!r}")


#: Of a fit by steps.
STEPS = {"gradient_norm_": Number(0), "n_iter_": Number(0, whole=True)}
PROBABILITIES = (0.0, 1.0)


def judge_common(fitted: dict[str, Any], sizes: Sizes) -> None:
    """Judge the attributes that every fitted calibrator has."""
    classes = fitted["classes_"]
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or not classes.size:
        raise ValueError("classes_ must be an array of labels")
    if len(set(classes.tolist())) != classes.size:
        raise ValueError("classes_ must be different labels")
    k = sizes["K"] = classes.size
    columns = fitted["n_features_in_"]
    Number(1, whole=True).judge("n_features_in_", columns, sizes)
    if columns not in ((1, k) if k <= 2 else (k,)):
        raise ValueError(f"n_features_in_ must be that of {k} classes; got {columns}")
    order = fitted["order_"]
    if order is not None:
        Numbers(("K",), 0, k - 1).judge("order_", order, sizes)
        if order.dtype.kind != "i" or sorted(order.tolist()) != list(range(k)):
            raise ValueError(f"order_ must hold each of 0 … {k - 1} once")
    names = fitted.get("feature_names_in_")
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (columns,)):
        raise ValueError(f"feature_names_in_ must be {columns} name(s)")


def _fit_size(name: str, size: int, wanted: str, sizes: Sizes) -> None:
    found = _SIZE.fullmatch(wanted)
    if found is None:
        raise TypeError(f"{wanted!r} is no size")
    factor, symbol, more, number = found.groups()
    if symbol is None:
        fits = size == int(number)
    else:
        count, rest = divmod(size - int(more or 0), int(factor or 1))
        fits = rest == 0 and count >= 1 and sizes.setdefault(symbol, count) == count
    if not fits:
        raise ValueError(f"{name} has {size} entries, which does not fit the others")


def _range(low: float, high: float) -> str:
    if high == _LARGEST:
        return "finite, and no larger than a fit can make them" if low == -_LARGEST else f"finite, and at least {low:g}"
    return f"from {low:g} to {high:g}"
