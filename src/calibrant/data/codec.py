"""Convert values to JSON and back without executing anything: numbers, strings, arrays, and named classes.

Numbers, strings, booleans and null are JSON's own. Others are objects named by their first key: ``{"float": "inf"}``
(or ``"-inf"``, ``"nan"``), ``{"array": nested lists, "dtype": …}``, ``{"list": […]}``, ``{"mapping": {…}}``, and those
of named parts of the package, such as ``{"estimator": {"name": "Binned", "fields": {…}}}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import numpy as np

from . import __version__
from .checks import is_whole, received
from .types import AnyArray

_DTYPES = ("float64", "float32", "int64", "int32", "bool")
_AGAIN = "if another version of calibrant saved it, create it again"


@contextmanager
def reading_saved() -> Iterator[None]:
    """Add advice to ValueErrors about saved values, except for those of a later version."""
    try:
        yield
    except ValueError as error:
        if _AGAIN in str(error) or "upgrade it" in str(error):
            raise
        raise ValueError(f"{error}; {_AGAIN}") from error


def stamp(name: str, version: int) -> dict[str, Any]:
    """Header of a saved value, with its format and version."""
    return {"format": name, "version": version, "calibrant": __version__}


def check_stamp(data: Any, name: str, version: int, what: str) -> None:
    """ValueError unless data have the format, in this version or an earlier one."""
    if not isinstance(data, Mapping) or data.get("format") != name:
        raise ValueError(f"this is not a {what}: 'format' must be {name!r}")
    found: Any = data.get("version")
    if not is_whole(found) or found < 1:
        raise ValueError(f"the {what}'s version must be a whole number above 0; got {received(found)}")
    if found > version:
        raise ValueError(
            f"the {what} is in version {found} of the format, by calibrant {data.get('calibrant')!r}, and this is "
            f"calibrant {__version__}, which reads versions up to {version}: upgrade it"
        )


class Codec:
    """Converts values to JSON and back.

    Parameters
    ----------
    rooms : mapping of str to module
        Modules whose public dataclasses are saved by name, by the kind of these classes: ``estimator=estimators``.
    """

    def __init__(self, **rooms: ModuleType) -> None:
        self.rooms = rooms

    def find(self, kind: str, name: str) -> Any:
        """The public dataclass with a name; None if there is none."""
        found = getattr(self.rooms[kind], name) if kind in self.rooms and name in dir(self.rooms[kind]) else None
        return found if isinstance(found, type) and is_dataclass(found) else None

    def part(self, value: Any) -> dict[str, Any] | None:
        """JSON object of a part of the package; None for other values."""
        name = type(value).__name__
        for kind in self.rooms:
            if self.find(kind, name) is type(value):
                held = {f.name: self.encode(getattr(value, f.name), f.name) for f in fields(value) if f.init}
                return {kind: {"name": name, "fields": held}}
        return None

    def from_mapping(self, value: Mapping[str, Any], name: str) -> Any:
        """Part from its JSON object, with the name of its container for errors; None for other objects."""
        for kind, inner in value.items():
            match inner:
                case {"name": str() as found, "fields": Mapping() as held} if self.find(kind, found) is not None:
                    return self.call(self.find(kind, found), held, name)
        return None

    def call(self, kind: Any, arguments: Mapping[str, Any], name: str) -> Any:
        """Instance of a class from decoded arguments; ValueError for arguments that the class does not accept."""
        try:
            return kind(**{str(key): self.decode(value, str(key)) for key, value in arguments.items()})
        except TypeError as error:
            raise ValueError(f"{name} is damaged: {error}") from error

    def encode(self, value: Any, name: str) -> Any:
        """Convert a value for JSON; TypeError, naming its container, if that is not possible."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray) and (value.dtype.kind in "UO" or value.dtype.name in _DTYPES):
            kind = {"U": "str", "O": "object"}.get(value.dtype.kind, value.dtype.name)
            return {"array": self._nested(value.tolist(), name), "dtype": kind}
        if isinstance(value, (list, tuple, range)):
            return {"list": [self.encode(v, name) for v in value]}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {"mapping": {key: self.encode(v, name) for key, v in value.items()}}
        if (part := self.part(value)) is not None:
            return part
        raise TypeError(f"{name}={value!r} cannot be saved: only numbers, strings, arrays and objects of calibrant can")

    def _nested(self, values: Any, name: str) -> Any:
        return [self._nested(v, name) for v in values] if isinstance(values, list) else self.encode(values, name)

    def decode(self, value: Any, name: str) -> Any:
        """Convert a value from JSON; ValueError, naming its container, if :meth:`encode` cannot have made it."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        match value:
            case {"float": ("inf" | "-inf" | "nan") as word}:
                return float(word)
            case {"array": list() as items, "dtype": str() as dtype}:
                return self._array(items, dtype, name)
            case {"list": list() as items}:
                return [self.decode(item, name) for item in items]
            case {"mapping": Mapping() as items}:
                return {str(key): self.decode(item, name) for key, item in items.items()}
        found = self.from_mapping(value, name) if isinstance(value, Mapping) else None
        if found is None:
            raise ValueError(f"{name} is damaged: {str(value)[:60]!r}")
        return found

    def _array(self, items: list[Any], dtype: str, name: str) -> AnyArray:
        """Array of labels, or rectangular array of numbers of one type."""

        def plain(value: Any) -> Any:
            return [plain(v) for v in value] if isinstance(value, list) else self.decode(value, name)

        if dtype in ("object", "str"):
            return np.asarray([self.decode(item, name) for item in items], dtype=object if dtype == "object" else str)
        try:
            array = np.asarray(plain(items))
            if dtype not in _DTYPES or (
                array.size and array.dtype.kind not in {"i": "i", "b": "b"}.get(dtype[0], "if")
            ):
                raise ValueError(f"{str(items)[:60]!r} is not an array of {dtype}")
            return array.astype(dtype)
        except ValueError as error:
            raise ValueError(f"{name} is damaged: {error}") from error
