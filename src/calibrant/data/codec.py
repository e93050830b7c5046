"""Values as JSON and back, without evaluating anything: numbers, strings, arrays, and parts of the package by name.

Numbers, strings, booleans and null are JSON's own. Others are objects of one key: ``{"float": "inf"}`` (or ``"-inf"``,
``"nan"``), ``{"array": nested lists, "dtype": …}``, ``{"list": […]}``, ``{"mapping": {…}}``, and those of the parts
that a caller knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .types import AnyArray, FloatArray

_DTYPES = ("float64", "float32", "int64", "int32", "bool")
_AGAIN = "if another version of calibrant saved it, make it again"


@contextmanager
def reading_saved() -> Iterator[None]:
    """ValueErrors of what was saved end with what to do; those of a later version say so themselves."""
    try:
        yield
    except ValueError as error:
        if _AGAIN in str(error) or "upgrade it" in str(error):
            raise
        raise ValueError(f"{error}; {_AGAIN}") from error


@dataclass(frozen=True)
class Codec:
    """How values become JSON, and JSON values.

    Parameters
    ----------
    part : callable
        The object of a part of the package, None for what is no such part.
    made : callable
        A part, by its object and the name of what holds it; None for objects of another kind.
    """

    part: Callable[[Any], dict[str, Any] | None]
    made: Callable[[Mapping[str, Any], str], Any]

    def encode(self, value: Any, name: str) -> Any:
        """A value for JSON; TypeError, naming what holds it, for one that has no such form."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "UO":
                kind = "str" if value.dtype.kind == "U" else "object"
                return {"array": [self.encode(v, name) for v in value.tolist()], "dtype": kind}
            if value.dtype.name in _DTYPES:
                return {"array": _nested(value.tolist()), "dtype": value.dtype.name}
        if isinstance(value, (list, tuple, range)):
            return {"list": [self.encode(v, name) for v in value]}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {"mapping": {key: self.encode(v, name) for key, v in value.items()}}
        if (part := self.part(value)) is not None:
            return part
        raise TypeError(
            f"{name}={value!r} cannot be saved: only numbers, strings, arrays and parts of this package can"
        )

    def decode(self, value: Any, name: str) -> Any:
        """A value from JSON; ValueError, naming what holds it, for one that :meth:`encode` does not make."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} is damaged: {str(value)[:60]!r}")
        match dict(value):
            case {"float": ("inf" | "-inf" | "nan") as word}:
                return float(word)
            case {"array": list() as items, "dtype": ("object" | "str") as kind}:
                return np.asarray(
                    [self.decode(item, name) for item in items], dtype=object if kind == "object" else str
                )
            case {"array": items, "dtype": str() as dtype} if dtype in _DTYPES:
                return self._array(items, dtype, name)
            case {"list": list() as items}:
                return [self.decode(item, name) for item in items]
            case {"mapping": Mapping() as items}:
                return {str(key): self.decode(item, name) for key, item in items.items()}
        if (found := self.made(value, name)) is not None:
            return found
        raise ValueError(f"{name} is damaged: {str(value)[:60]!r}")

    def arguments(self, held: Mapping[str, Any]) -> dict[str, Any]:
        """Decoded values by their names."""
        return {str(key): self.decode(value, str(key)) for key, value in held.items()}

    def _array(self, items: Any, dtype: str, name: str) -> FloatArray:
        """Numbers of one kind in a rectangle."""

        def plain(v: Any) -> Any:
            if isinstance(v, list):
                return [plain(item) for item in v]
            if isinstance(v, Mapping):
                v = self.decode(v, name)
            if isinstance(v, (bool, int, float)) and isinstance(v, bool) == (dtype == "bool"):
                return v
            raise ValueError(f"{name} is damaged: {str(v)[:60]!r} in an array of {dtype}")

        try:
            array: AnyArray = np.asarray(plain(items))
            if array.size and (dtype[0] == "i") != (array.dtype.kind == "i") and dtype != "bool" and dtype[0] == "i":
                raise ValueError("fractions among whole numbers")
            return array.astype(dtype)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name} is damaged: {error}") from error


def _nested(values: Any) -> Any:
    """Lists of numbers with those that JSON lacks as objects."""
    if isinstance(values, list):
        return [_nested(v) for v in values]
    return values if not isinstance(values, float) or np.isfinite(values) else {"float": str(values)}
