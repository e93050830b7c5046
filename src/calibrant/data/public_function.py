"""Arguments shared by all functions of labels and probabilities, defined once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, ParamSpec, TypedDict, TypeVar, cast

from .checks import check_random_state
from .columns import FRAME_OPTIONS, from_columns
from .docs import document
from .libraries import library_of, name_of
from .predictions import Predictions
from .progress import working
from .result import Tabular, with_origin
from .validation import as_predictions

P = ParamSpec("P")
R = TypeVar("R")


class ColumnOptions(TypedDict, total=False):
    """Columns of a data frame that replaces labels and scores."""

    label: str | None
    prob: Any
    weight: str | None


class InputOptions(ColumnOptions, total=False):
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


#: Options by the annotation of the last argument.
_TAKEN = {f"Unpack[{kind.__name__}]": tuple(kind.__annotations__) for kind in (ColumnOptions, InputOptions)}


class SumsOfRows(Tabular):
    """Base class of :class:`calibrant.Accumulator`, which replaces rows that are no longer available."""


def public_function(
    *, grouped: bool = False, sums: bool | tuple[str, ...] = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose last argument is ``**inputs: Unpack[InputOptions]``, or ``Unpack[ColumnOptions]``.

    Its signature then lists these options explicitly, and its docstring describes them; an unknown keyword is a
    TypeError that names the function. A data frame is passed first, in place of the first two arguments: labels and
    scores, or scores and ``y``. Functions that do not support rows in groups (``grouped``) reject them, as they would
    treat all rows as independent. ``sums``: whether an Accumulator, whose rows were interpreted when they were added,
    may replace the rows; a tuple names the other arguments that are allowed with it.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = {p.annotation for p in signature.parameters.values()} & _TAKEN.keys()
        wanted = {name for kind in more for name in _TAKEN[kind] if grouped or not name.startswith("group")}
        options = [p for name, p in _OPTIONS.items() if name in wanted]
        every = [*own, *options]
        known = {p.name for p in every if p.kind is not p.POSITIONAL_ONLY}
        title = function.__qualname__.removesuffix(".__init__")
        names = [p.name for p in own]
        first_two = [*(name for name in names if name not in ("self", "cls")), "", ""][:2]
        frame = first_two[0]
        truth, scores = first_two[::-1] if first_two[1] == "y" else first_two
        seed_at = names.index("random_state") if "random_state" in names else None
        of_sums = set(names if isinstance(sums, bool) else sums) - {"y_true"}

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if not known.issuperset(kwargs):
                unknown = next(name for name in kwargs if name not in known)
                raise TypeError(f"{title}() got an unexpected keyword argument {unknown!r}")
            if seed_at is not None:
                check_random_state(kwargs.get("random_state", args[seed_at] if len(args) > seed_at else None))
            if not grouped:
                _refuse_groups(function, (*args, *kwargs.values()))
            if not FRAME_OPTIONS.isdisjoint(kwargs):
                named = dict(zip(names, args, strict=False)) | dict(kwargs)
                if not isinstance(named.get(frame), SumsOfRows):  # these say below what they take
                    args, kwargs = cast(Any, ((), from_columns(named, truth, scores, frame)))
            if "notion" in names and asks_for_labels(kwargs.get("notion")):
                args, kwargs = cast(Any, _with_labels(dict(zip(names, args, strict=False)) | dict(kwargs), wanted))
            with working(title):
                first = args[0] if args else kwargs.get("y_true")
                if isinstance(first, SumsOfRows):
                    if not sums:
                        raise TypeError(f"{title}() needs the rows; an Accumulator keeps only their sums")
                    given = _beside_sums(title, dict(zip(names, args, strict=False)) | dict(kwargs), of_sums)
                    found = cast(Any, function)(first, **given)
                    return cast(R, with_origin(first._library, found, first._data_name))
                found = function(*args, **kwargs)
            if not isinstance(found, (Tabular, dict)):  # a number has no table
                return found
            given_scores = [kwargs.get("y_prob"), *args[1:2]]
            name = next(filter(None, map(name_of, given_scores)), "")
            return cast(R, with_origin(_library(given_scores, kwargs.values(), args), found, name))

        # inspect reads it from any function; the type of functions does not list it.
        cast(Any, called).__signature__ = signature.replace(parameters=every)
        return document(called, instead={"y_true": "rows"} if sums else None)

    return decorate


def asks_for_labels(notion: Any) -> bool:
    """Whether a notion, or its name, is for rows that may have several labels."""
    return bool(getattr(notion, "several", False)) or str(notion).partition(":")[0] == "multilabel"


def _with_labels(given: dict[str, Any], options: Set[str]) -> tuple[tuple[()], dict[str, Any]]:
    """Arguments with rows validated as having several labels, whatever they look like."""
    y_true, y_prob = given.get("y_true"), given.get("y_prob")
    if isinstance(y_true, (SumsOfRows, Predictions)) or isinstance(y_prob, Mapping) or "y_prob" not in given:
        return (), given
    about = {name: given.pop(name) for name in options & given.keys()}
    return (), {**given, "y_true": as_predictions(y_true, y_prob, multilabel=True, **about), "y_prob": None}


#: Arguments that are fixed by the added rows, and their defaults.
_SETTLED = {"y_prob": None, "notion": "auto"} | {name: p.default for name, p in _OPTIONS.items()}


def _beside_sums(title: str, given: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    """Arguments passed with an Accumulator; TypeError for those that its rows fix, and those that need rows."""
    out = {}
    for name, value in given.items():
        if name in _SETTLED:
            if value is not _SETTLED[name] and not (isinstance(value, str) and value == _SETTLED[name]):
                raise TypeError(f"{title}() of an Accumulator does not take {name!r}: its rows determine it")
        elif name in known:
            out[name] = value
        elif name != "y_true":
            raise TypeError(f"{title}() of an Accumulator does not take {name!r}: that needs the rows")
    return out


def _library(*given: Iterable[Any]) -> str | None:
    """Library of the first frame, column or :class:`Predictions` among the arguments."""
    for value in chain(*given):
        if isinstance(value, Predictions):
            found = value.library
        else:
            found = _library(value.values()) if isinstance(value, Mapping) else library_of(value)
        if found is not None:
            return found
    return None


def _refuse_groups(function: Callable[..., Any], given: Iterable[Any]) -> None:
    """ValueError for predictions in groups in a function that treats rows as independent."""
    if any(isinstance(value, Predictions) and value.groups is not None for value in given):
        raise ValueError(
            f"{function.__qualname__.removesuffix('.__init__')}() treats all rows as independent, but these "
            "predictions have groups: pass predictions without groups to ignore them"
        )
