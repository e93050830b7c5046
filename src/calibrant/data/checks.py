"""Checks of plain arguments, each written once: errors name the argument, what is allowed, and what was received."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def is_real(value: Any) -> bool:
    """Whether a value is a number, and no bool."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def is_whole(value: Any) -> bool:
    """Whether a value is of an integer type, and no bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_int(name: str, value: Any, least: int, most: int | None = None, *, instead: str = "") -> int:
    """Judge an argument that must be a whole number, ``least`` or more; ``instead`` says what else is allowed."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be {instead}an int >= {least}{limit}; got {value!r}")
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """Judge an argument that must be a finite number above 0."""
    if not is_real(value) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a number above 0; got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Judge an argument that must be one of some names."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}; got {value!r}")
    return value


def check_some(name: str, values: Any, allowed: Iterable[str]) -> None:
    """Judge an argument that must hold one or more of some names."""
    names = tuple(allowed)
    given = () if isinstance(values, str) or not isinstance(values, Iterable) else tuple(values)
    if not given or any(value not in names for value in given):
        raise ValueError(f"{name} must be some of {', '.join(map(repr, names))}; got {values!r}")


def check_bool(name: str, value: Any) -> bool:
    """Judge a flag."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def check_fraction(name: str, value: Any) -> float:
    """Judge an argument that must lie strictly between 0 and 1: a fraction, not a percentage."""
    if not is_real(value) or not 0 < float(value) < 1:
        hint = f" ({float(value) / 100:g}?)" if is_real(value) and 1 < value < 100 else ""
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}{hint}")
    return float(value)


def check_level(level: Any) -> float:
    """Judge the ``level`` argument."""
    return check_fraction("level", level)


def check_resamples(n_resamples: Any, least: int = 2) -> int:
    """Judge the ``n_resamples`` argument."""
    return check_int("n_resamples", n_resamples, least)


def check_norm(norm: Any) -> float:
    """Judge the ``norm`` argument: a number p ≥ 1, or inf."""
    if not is_real(norm) or not float(norm) >= 1:
        raise ValueError(f"norm must be a number >= 1 or inf; got {norm!r}")
    return float(norm)
