"""Checks of plain arguments; errors name the argument, the allowed values and the value received."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

#: Number of characters of a value that an error shows.
_LONGEST = 200


def received(value: Any) -> str:
    """Format a value for a message: the start of a long one, the type of a frame, an array or a list."""
    if type(value).__module__.startswith("polars"):  # of some nested values it has no text
        return type(value).__name__
    text = repr(value)
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]}… ({len(text):,} characters)" if isinstance(value, str) else type(value).__name__


def is_real(value: Any) -> bool:
    """Whether a value is a number and not a bool."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def is_auto(value: Any) -> bool:
    """Whether a value is the text "auto"; comparing frames and arrays would not give True or False."""
    return isinstance(value, str) and value == "auto"


def is_whole(value: Any) -> bool:
    """Whether a value is of an integer type and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_int(name: str, value: Any, least: int, most: int | None = None, *, instead: str = "") -> int:
    """Check an argument that must be a whole number, ``least`` or more; ``instead`` says what else is allowed."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be {instead}an int >= {least}{limit}; got {received(value)}")
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
    """Check an argument that must be a finite number within limits.

    The limits ``least`` and ``most`` are inclusive, ``above`` and ``below`` are exclusive.
    ``instead`` says what else is allowed, as ``"'auto' or "``.
    """
    # Infinities and NaN fail the second pair, whatever the limits. Plain comparisons can be traced by compilers.
    if not is_real(value) or not (least <= value <= most and above < value < below):
        limits = [
            f"{word} {limit:g}"
            for word, limit in ((">=", least), ("above", above), ("<=", most), ("below", below))
            if np.isfinite(limit)
        ]
        infinite = is_real(value) and abs(value) == np.inf
        finite = "" if limits and not infinite else "finite "
        wanted = " ".join([f"a {finite}number", " and ".join(limits)]).rstrip()
        raise ValueError(f"{name} must be {instead}{wanted}; got {received(value)}")
    return float(value)


def check_positive(name: str, value: Any, *, instead: str = "") -> float:
    """Check an argument that must be a finite number above 0."""
    return check_number(name, value, above=0, instead=instead)


def check_choice(name: str, value: Any, allowed: Iterable[T], *, instead: str = "") -> T:
    """Check an argument that must be one of some names, numbers or None; ``instead`` says what else is allowed."""
    choices = tuple(allowed)
    for choice in choices:
        if isinstance(value, type(choice)) and value == choice:
            return choice
    raise ValueError(f"{name} must be {instead}one of {', '.join(map(repr, choices))}; got {received(value)}")


def check_type(name: str, value: Any, kind: type | tuple[type, ...], wanted: str = "") -> Any:
    """Check an argument that must be of a type, which ``wanted`` describes."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise TypeError(f"{name} must be {wanted or ' or '.join(k.__name__ for k in kinds)}; got {received(value)}")
    return value


def check_list(name: str, values: Any, wanted: str) -> list[Any]:
    """Check an argument that must be a sequence but not a text; ``wanted`` describes its items."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"{name} must be {wanted}; got {received(values)}")
    return list(values)


def check_names(name: str, values: Any, kind: type | tuple[type, ...] = object, wanted: str = "") -> dict[str, Any]:
    """Check an argument that must map at least one name to values of a type; ``wanted`` is its plural."""
    if not isinstance(values, Mapping) or not values:
        raise TypeError(f"{name} must be a mapping of names to {wanted or 'values'}, not empty; got {received(values)}")
    for key, value in values.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"names of {name} must be strings, not empty; got {received(key)}")
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {wanted or 'values'}; {key!r} is {received(value)}")
    return dict(values)


def check_random_state(random_state: Any) -> np.random.Generator:
    """Check the ``random_state`` argument and return its generator."""
    legacy, whole = isinstance(random_state, np.random.RandomState), is_whole(random_state)
    known = random_state is None or legacy or isinstance(random_state, np.random.Generator)
    if not (known or (whole and random_state >= 0)):
        wanted = "random_state must be None, an int >= 0, or a Generator or RandomState of NumPy"
        raise (ValueError if whole else TypeError)(f"{wanted}; got {received(random_state)}")
    return np.random.default_rng(random_state._bit_generator if legacy else random_state)


def fold_seed(random_state: Any) -> Any:
    """Equivalent ``random_state`` for scikit-learn, which takes no Generator and no seed above 32 bits."""
    rng = check_random_state(random_state)
    large = is_whole(random_state) and random_state >= 2**32
    return int(rng.integers(2**32)) if large or isinstance(random_state, np.random.Generator) else random_state


def check_some(name: str, values: Any, allowed: Iterable[str]) -> None:
    """Check an argument that must contain one or more of some names."""
    names = tuple(allowed)
    given = () if isinstance(values, str) or not isinstance(values, Iterable) else tuple(values)
    if not given or any(value not in names for value in given):
        raise ValueError(f"{name} must be some of {', '.join(map(repr, names))}; got {received(values)}")


def check_bool(name: str, value: Any) -> bool:
    """Check a flag."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {received(value)}")
    return bool(value)


def check_fraction(name: str, value: Any) -> float:
    """Check an argument that must lie strictly between 0 and 1: a fraction, not a percentage."""
    if not is_real(value) or not 0 < float(value) < 1:
        hint = f" ({float(value) / 100:g}?)" if is_real(value) and 1 < value < 100 else ""
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {received(value)}{hint}")
    return float(value)


def check_level(level: Any) -> float:
    """Check the ``level`` argument."""
    return check_fraction("level", level)


def check_resamples(n_resamples: Any, least: int = 2) -> int:
    """Check the ``n_resamples`` argument."""
    return check_int("n_resamples", n_resamples, least)


def check_norm(norm: Any) -> float:
    """Check the ``norm`` argument: a number p ≥ 1, or inf."""
    if not is_real(norm) or not float(norm) >= 1:
        raise ValueError(f"norm must be a number >= 1 or inf; got {received(norm)}")
    return float(norm)


@contextmanager
def called(**names: str) -> Iterator[None]:
    """Rename arguments such as ``y_true`` in the errors of checks inside, except in quoted text."""
    try:
        yield
    except (ValueError, TypeError) as error:
        words = re.sub(r"(?<!['\"])\b\w+\b", lambda word: names.get(word[0], word[0]), str(error))
        raise (TypeError if isinstance(error, TypeError) else ValueError)(words) from error
