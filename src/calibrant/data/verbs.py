"""What every function of labels and probabilities takes besides its own arguments: named once, for all of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, ParamSpec, TypedDict, TypeVar

from .frame import library_of
from .predictions import Predictions
from .progress import working
from .result import came_in
from .validation import as_predictions

P = ParamSpec("P")
R = TypeVar("R")


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


def verb(*, grouped: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose last argument is ``**inputs: Unpack[InputOptions]``.

    Its signature then names these options, as if it had written them out; an unknown keyword is a TypeError that names
    the function. Functions that say nothing of rows in groups (``grouped``) take none: they would answer as if all rows
    were independent.
    """

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
            for unknown in kwargs.keys() - known:
                raise TypeError(f"{title}() got an unexpected keyword argument {unknown!r}")
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
