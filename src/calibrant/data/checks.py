"""Checks of plain arguments, each written once: errors name the argument, the allowed values and the value received."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

#: Characters of a value that an error shows; of a longer one it shows the type.
_LONGEST = 200


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


def check_number(
    name: str,
    value: Any,
    *,
    least: float = -np.inf,
    above: float = -np.inf,
    most: float = np.inf,
    below: float = np.inf,
    instead: str = "",
) -> float:
    """Judge an argument that must be a finite number within limits.

    The limits ``least`` and ``most`` are allowed themselves, ``above`` and ``below`` are not.
    ``instead`` says what else is allowed, as ``"'auto' or "``.
    """
    # Infinities and NaN fail the second pair, whatever the limits. Plain comparisons can be traced by compilers.
    if not is_real(value) or not (least <= value <= most and above < value < below):
        limits = [
            f"{word} {limit:g}"
            for word, limit in ((">=", least), ("above", above), ("<=", most), ("below", below))
            if np.isfinite(limit)
        ]
        finite = "" if limits and not (is_real(value) and np.isinf(value)) else "finite "
        wanted = " ".join([f"a {finite}number", " and ".join(limits)]).rstrip()
        raise ValueError(f"{name} must be {instead}{wanted}; got {value!r}")
    return float(value)


def check_positive(name: str, value: Any, *, instead: str = "") -> float:
    """Judge an argument that must be a finite number above 0."""
    return check_number(name, value, above=0, instead=instead)


def check_choice(name: str, value: Any, allowed: Iterable[T], *, instead: str = "") -> T:
    """Judge an argument that must be one of some names, numbers or None; ``instead`` says what else is allowed."""
    choices = tuple(allowed)
    for choice in choices:
        if isinstance(value, type(choice)) and value == choice:
            return choice
    raise ValueError(f"{name} must be {instead}one of {', '.join(map(repr, choices))}; got {value!r}")


def check_type(name: str, value: Any, kind: type | tuple[type, ...], wanted: str = "") -> Any:
    """Judge an argument that must be of a type; ``wanted`` says so in words."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        received = repr(value)
        if len(received) > _LONGEST:  # of a frame or an array: its type says more
            received = type(value).__name__
        raise TypeError(f"{name} must be {wanted or ' or '.join(k.__name__ for k in kinds)}; got {received}")
    return value


def check_list(name: str, values: Any, wanted: str) -> list[Any]:
    """Judge an argument that must be a sequence, which a text is not; ``wanted`` says of what."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be {wanted}; got {values!r}")
    return list(values)


def check_names(name: str, values: Any, kind: type | tuple[type, ...] = object, wanted: str = "") -> dict[str, Any]:
    """Judge an argument that must map names to values of a type, one at least; ``wanted`` is the plural of it."""
    if not isinstance(values, Mapping) or not values:
        raise TypeError(f"{name} must be a mapping of names to {wanted or 'values'}, not empty; got {values!r}")
    for key, value in values.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"names of {name} must be strings, not empty; got {key!r}")
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {wanted or 'values'}; {key!r} is {value!r}")
    return dict(values)


def check_random_state(random_state: Any) -> np.random.Generator:
    """Judge the ``random_state`` argument: the generator that it names."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be None, an int >= 0 or a numpy Generator; got {random_state!r}"
        ) from None


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
