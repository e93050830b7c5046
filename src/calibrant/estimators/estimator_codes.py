"""Estimators as JSON and back: by their names in :mod:`calibrant.estimators`, with the values of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..data.codec import Codec


def _kind(name: str) -> Any:
    """Value class of a public name; None for others."""
    from .. import estimators  # all names of this folder, loaded as they are asked for

    found = getattr(estimators, name) if name in dir(estimators) else None
    return found if isinstance(found, type) and is_dataclass(found) else None


def _part(value: Any) -> dict[str, Any] | None:
    kind = type(value)
    if _kind(kind.__name__) is not kind:
        return None
    held = {f.name: ESTIMATORS.encode(getattr(value, f.name), f.name) for f in fields(value) if f.init}
    return {"estimator": {"name": kind.__name__, "fields": held}}


def _made(value: Mapping[str, Any], name: str) -> Any:
    match dict(value):
        case {"estimator": {"name": str() as kind, "fields": Mapping() as held}} if (made := _kind(kind)) is not None:
            try:
                return made(**ESTIMATORS.arguments(held))
            except TypeError as error:
                raise ValueError(f"{name} is damaged: {error}") from error
    return None


#: Codes estimators, and what they hold.
ESTIMATORS = Codec(_part, _made)
