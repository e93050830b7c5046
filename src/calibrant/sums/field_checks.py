"""What serialised sums must be: each field judged by its meaning when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.types import AnyArray, FloatArray

#: Sums are off by rounding: of so much of the largest.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CheckedFields:
    """Fields of serialised sums; all methods raise ValueError, KeyError or TypeError for what is not there."""

    data: Mapping[str, Any]

    def numbers(self, field: str) -> FloatArray:
        """A list of finite numbers."""
        array: FloatArray = np.asarray(self.data[field], dtype=np.float64)
        self.need(array.ndim == 1 and bool(np.isfinite(array).all()), f"{field} must be a list of finite numbers")
        return array

    def number(self, field: str) -> float:
        """A finite number."""
        value = self.data[field]
        self.need(not isinstance(value, (bool, str)) and bool(np.isfinite(value)), f"{field} must be a finite number")
        return float(value)

    def whole(self, field: str) -> int:
        """A whole number, 0 or more."""
        value = self.data[field]
        self.need(isinstance(value, (int, np.integer)) and not isinstance(value, bool), f"{field} must be whole")
        self.need(0 <= value < 2**63, f"{field} must not be negative; got {value}")
        return int(value)

    def flag(self, field: str) -> bool:
        """True or False."""
        self.need(isinstance(self.data[field], bool), f"{field} must be true or false")
        return bool(self.data[field])

    @staticmethod
    def need(holds: bool, words: str) -> None:
        """See :func:`need`."""
        need(holds, words)


def need(holds: Any, words: str) -> None:
    """ValueError with these words unless it holds, everywhere."""
    if not np.all(holds):
        raise ValueError(words)


def need_within(field: str, part: FloatArray, whole: Any) -> None:
    """Each of some sums lies between 0 and another."""
    slack = _ROUNDING * max(1.0, float(np.abs(whole).max(initial=0.0)))
    need((part >= -slack) & (part <= whole + slack), f"{field} must not leave its range")


def need_shape(shape: tuple[int, ...], **fields: AnyArray) -> None:
    """Some sums have this shape."""
    for name, values in fields.items():
        need(np.shape(values) == shape, f"{name} must have the shape {shape}; got {np.shape(values)}")


@contextmanager
def judged(name: str, data: Any) -> Iterator[CheckedFields]:
    """Fields of serialised sums of a kind; whatever is wrong with them becomes a ValueError that says which."""
    if not isinstance(data, Mapping):
        raise ValueError(f"not a serialised {name}: {str(data)[:40]!r}")
    try:
        with np.errstate(all="ignore"):
            yield CheckedFields(data)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"not a serialised {name}: {error}") from error
