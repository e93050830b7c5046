"""Sums of any kind as plain numbers and arrays by the names of their fields, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray
from .bins import Bins
from .field_checks import judged, need

#: What the sums themselves find in rows, and not those who name them.
_FOUND = ("eps", "n_samples")


def pack(sums: Any, put: Callable[[AnyArray], int]) -> dict[str, Any]:
    """Fields of sums; of arrays the number under which they were put away. What names the sums is left out."""
    held = {f.name: getattr(sums, f.name) for f in fields(sums) if f.init}
    return {
        name: {"array": put(value)} if isinstance(value, np.ndarray) else value
        for name, value in held.items()
        if value is None or isinstance(value, (np.ndarray, bool, int, float))
    }


def unpack(needs: Any, domain: tuple[float, float], problems: int, data: Any, arrays: Mapping[int, AnyArray]) -> Any:
    """Sums that are named so, of so many problems side by side; ValueError where the fields cannot be theirs."""
    name = type(needs).__name__
    with judged(f"value of {name}", data) as held:
        given = {f: _value(v, arrays) for f, v in held.data.items()}
        if isinstance(needs, Bins):  # as many numbers as bins, before anything is made of that size
            need(np.shape(given["weight"]) == (problems, needs.edges.n_bins), "weight must have one number a bin")
        nothing = Problem(
            np.empty(0),
            np.empty(0),
            domain=domain,
            label=(None,) * problems,
            share=(1 / problems,) * problems,
            starts=np.zeros(problems + 1, dtype=np.intp),
        )
        like = needs.of(nothing)
        wanted = {f.name: f for f in fields(like) if f.init}
        need(set(given) <= set(wanted), f"unknown fields: {sorted(set(given) - set(wanted))}")
        out = {}
        for f in wanted:
            known = getattr(like, f)
            if known is None and wanted[f].default is None and isinstance(given.get(f), np.ndarray):
                known = np.empty(0)  # what sums of no rows do not have, such as what groups of rows share
            if isinstance(known, (np.ndarray, bool, int, float)):
                out[f] = _judged(f, given[f], known, none=wanted[f].default is None)
        found = replace(like, **out)
        found.check()
        for f, value in out.items():  # what follows from others, such as the size of a grid
            need(isinstance(value, np.ndarray) or f in _FOUND or getattr(found, f) == value, f"{f} must be {value}")
    return found


def _judged(field: str, value: Any, known: Any, *, none: bool) -> Any:
    """A field's value, of the kind that it has in sums of no rows."""
    if isinstance(known, np.ndarray):
        if value is None and none:
            return value
        kinds = {"b": "b", "i": "iu", "f": "fiub"}[known.dtype.kind]
        need(isinstance(value, np.ndarray) and value.dtype.kind in kinds, f"{field} must be an array of numbers")
        need(np.isfinite(value), f"{field} must be finite numbers")
    elif isinstance(known, bool):
        need(isinstance(value, bool), f"{field} must be true or false")
    else:
        need(type(value) is type(known), f"{field} must be a number")
        need(field in _FOUND or value == known, f"{field} must be {known}; got {value}")
    return value


def _value(value: Any, arrays: Mapping[int, AnyArray]) -> Any:
    """A plain value, or the array of a number."""
    if isinstance(value, Mapping):
        need(set(value) == {"array"} and type(value["array"]) is int, f"{str(value)[:40]!r} is no array")
        return arrays[value["array"]]
    need(value is None or isinstance(value, (bool, int, float)), f"{str(value)[:40]!r} is no number")
    return value
