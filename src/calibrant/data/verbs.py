"""What every function of labels and probabilities takes besides its own arguments: named once, for all of them."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypedDict, TypeVar

from .frame import library_of
from .predictions import Predictions
from .progress import working
from .result import came_in
from .types import RenamedWarning
from .validation import as_predictions

P = ParamSpec("P")
R = TypeVar("R")
#: A name of now, and what makes its value of the earlier one's.
Renamed: TypeAlias = str | tuple[str, Callable[[Any], Any]]


class InputOptions(TypedDict, total=False):
    """How labels and probabilities are interpreted; see :func:`calibrant.as_predictions`."""

    labels: Sequence[Any] | None
    pos_label: Any
    sample_weight: Any
    sum_tolerance: float | None
    from_logits: bool
    groups: Any
    group_average: str


_OPTIONS = {
    name: p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for name, p in inspect.signature(as_predictions).parameters.items()
    if name in InputOptions.__annotations__
}


def verb(
    renamed: Mapping[str, Renamed] | None = None, *, grouped: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose last argument is ``**inputs: Unpack[InputOptions]``.

    Its signature then names these options, as if it had written them out; an unknown keyword is a TypeError that names
    the function; a keyword that is spelled as in an earlier version (``renamed``: old to new, with what makes the new
    value of the old one where they differ) works, with a warning. Functions that say nothing of rows in groups
    (``grouped``) take none: they would answer as if all rows were independent.
    """
    old = dict(renamed or {})

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        reads = len(own) < len(signature.parameters)
        options = [p for p in _OPTIONS.values() if grouped or not p.name.startswith("group")] if reads else []
        every = [*own, *options]
        known = {p.name for p in every if p.kind is not p.POSITIONAL_ONLY}
        title = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if not known.issuperset(kwargs):
                kwargs.update(_as_now(title, kwargs, {p.name for p in own[: len(args)]}, known, old))
            if reads and not grouped:
                _refuse_groups(function, (*args, *kwargs.values()))
            with working(title):
                found = function(*args, **kwargs)
            return came_in(_library([kwargs.get("y_prob")], args[1:2], kwargs.values(), args), found)

        # inspect reads it from any function; the type of functions does not list it.
        called.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
        return called

    return decorate


def _library(*given: Iterable[Any]) -> str | None:
    """Library of the first frame or column among what is given; :class:`Predictions` know theirs."""
    for value in chain(*given):
        if isinstance(value, Predictions):
            found = value.library
        else:
            found = _library(value.values()) if isinstance(value, Mapping) else library_of(value)
        if found is not None:
            return found
    return None


def _refuse_groups(function: Callable[..., Any], given: Iterable[Any]) -> None:
    """ValueError for predictions in groups, of a function that takes rows as independent."""
    if any(isinstance(value, Predictions) and value.groups is not None for value in given):
        raise ValueError(
            f"{function.__qualname__.removesuffix('.__init__')}() takes all rows as independent, and these predictions "
            "have groups: pass predictions without groups if that is meant"
        )


def warn_renamed(text: str) -> None:
    """Warn of an earlier name, at the line outside this package that used it."""
    here = str(Path(__file__).parents[1]) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RenamedWarning, stacklevel=level + 1)


def _as_now(
    name: str, given: dict[str, Any], taken: set[str], known: set[str], old: Mapping[str, Renamed]
) -> dict[str, Any]:
    """Keywords of an earlier spelling by their names of now, taken out of those given; TypeError for unknown ones."""
    out = {}
    for key in [k for k in given if k not in known]:
        if key not in old:
            raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
        found = old[key]
        now, made = found if isinstance(found, tuple) else (found, None)
        if now in taken:
            raise TypeError(
                f"{name}() takes {now!r} first: {key!r} is its earlier name, and the order was another then"
            )
        if now in given:
            raise TypeError(f"{name}() got {key!r}, the earlier name of {now!r}, together with it")
        warn_renamed(f"{name}({key}=…) is now {name}({now}=…)")
        value = given.pop(key)
        out[now] = value if made is None else made(value)
    return out
