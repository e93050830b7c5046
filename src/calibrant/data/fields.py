"""Types of saved fields: numbers of a type and range, and arrays of consistent sizes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import received
from .types import FloatArray

#: A size in a shape: "K", "B+1", "2m+1", or a number.
_SIZE = re.compile(r"(\d*)([A-Za-z])(?:\+(\d+))?|(\d+)")
_ROUNDING = 1e-9
#: Beyond this, a product with a log odds overflows; no fit comes close.
LARGEST = 1e150
Sizes = dict[str, int]


class Field(ABC):
    """Type of a saved field."""

    @abstractmethod
    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise ValueError if the value is wrong; sizes that it determines are added to the known ``sizes``."""


@dataclass(frozen=True)
class Number(Field):
    """A number in a range; ``infinite`` and ``nan`` also allow these values."""

    low: float = -LARGEST
    high: float = LARGEST
    whole: bool = False
    infinite: bool = False
    nan: bool = False

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Kind, then range."""
        kinds = (int, np.integer) if self.whole else (int, float, np.number)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ValueError(f"{name} must be a {'whole ' if self.whole else ''}number; got {str(value)[:40]!r}")
        if self.nan and value != value:
            return
        if not self.low <= value <= self.high and not (self.infinite and value == np.inf):
            raise ValueError(f"{name} must be {_range(self.low, self.high)}; got {received(value)}")


@dataclass(frozen=True)
class Numbers(Field):
    """An array of numbers in a range, finite unless infinite ones are allowed."""

    shape: tuple[str, ...]
    low: float = -LARGEST
    high: float = LARGEST
    ascending: bool = False
    #: Their sum.
    total: float | None = None
    #: Allowed kinds of NumPy dtypes, by their letters.
    kinds: str = "fi"
    infinite: bool = False
    #: Whether a size may be 0.
    empty: bool = False

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Shape, range, order, sum."""
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds or value.ndim != len(self.shape):
            whole = "" if "f" in self.kinds else "whole "
            raise ValueError(f"{name} must be a {len(self.shape)}-D array of {whole}numbers")
        for size, wanted in zip(value.shape, self.shape, strict=True):
            _fit_size(name, size, wanted, sizes, least=0 if self.empty else 1)
        if np.isnan(value).any() or not (self.infinite or np.isfinite(value).all()):
            raise ValueError(f"{name} must hold finite numbers")
        if value.size and not (value.min() >= self.low - _ROUNDING and value.max() <= self.high + _ROUNDING):
            raise ValueError(f"numbers of {name} must be {_range(self.low, self.high)}")
        if self.ascending and (np.diff(value) < -_ROUNDING).any():
            raise ValueError(f"{name} must be in ascending order")
        if self.total is not None and abs(value.sum() - self.total) > 1e-6:
            raise ValueError(f"{name} must add up to {self.total:g}; got {value.sum():g}")


@dataclass(frozen=True)
class Names(Field):
    """An array of different strings, ascending."""

    shape: tuple[str]

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Kind, size, order."""
        if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind != "U":
            raise ValueError(f"{name} must be an array of strings")
        if (value[1:] <= value[:-1]).any():
            raise ValueError(f"{name} must be distinct strings in ascending order")
        _fit_size(name, value.size, *self.shape, sizes)


@dataclass(frozen=True)
class Several(Field):
    """A list of M values, each with its own sizes."""

    of: Field
    count: str = "M"
    #: Whether the list may be empty.
    empty: bool = False

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Number, then each."""
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list")
        _fit_size(name, len(value), self.count, sizes, least=0 if self.empty else 1)
        for i, one in enumerate(value):
            self.of.check(f"{name}[{i}]", one, dict(sizes))


@dataclass(frozen=True)
class Plain(Field):
    """A value of one of Python's types, such as ``str``, ``bool`` or ``dict``."""

    kind: type

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Its type."""
        if type(value) is not self.kind:
            raise ValueError(f"{name} must be a {self.kind.__name__}; got {str(value)[:40]!r}")


def _fit_size(name: str, size: int, wanted: str, sizes: Sizes, *, least: int = 1) -> None:
    found = _SIZE.fullmatch(wanted)
    if found is None:
        raise TypeError(f"{wanted!r} is not a size")
    factor, symbol, more, number = found.groups()
    if symbol is None:
        fits = size == int(number)
    else:
        count, rest = divmod(size - int(more or 0), int(factor or 1))
        fits = rest == 0 and count >= least and sizes.setdefault(symbol, count) == count
    if not fits:
        raise ValueError(f"{name} has size {size}, which does not fit the other fields")


def _range(low: float, high: float) -> str:
    if high >= LARGEST:
        return f"finite, and {'no larger than a fit can produce' if low <= -LARGEST else f'at least {low:g}'}"
    return f"from {low:g} to {high:g}"


def need(holds: Any, words: str) -> None:
    """ValueError with these words unless the condition is true everywhere."""
    if not np.all(holds):
        raise ValueError(words)


def need_within(name: str, part: FloatArray, whole: Any) -> None:
    """ValueError unless each sum lies between 0 and another one, up to rounding."""
    slack = _ROUNDING * max(1.0, float(np.abs(whole).max(initial=0.0)))
    need((part >= -slack) & (part <= whole + slack), f"{name} must lie within its range")


@contextmanager
def reading(name: str, data: Any) -> Iterator[Mapping[str, Any]]:
    """Fields of a saved value of a kind; any error in them becomes a ValueError that names the value."""
    if not isinstance(data, Mapping):
        raise ValueError(f"not a serialised {name}: {str(data)[:40]!r}")
    try:
        with np.errstate(all="ignore"):
            yield data
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        if str(error).startswith("not a serialised"):  # the part that is wrong says so
            raise
        raise ValueError(f"not a serialised {name}: {error}") from error
