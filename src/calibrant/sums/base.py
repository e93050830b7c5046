"""`Sums`: base class of sums over rows. Their fields declare how they merge, are indexed, checked and saved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import and_
from typing import Any, NamedTuple, Self, get_type_hints

import numpy as np

from ..data.fields import Field, Numbers, Plain, reading
from ..data.types import AnyArray, FloatArray


@dataclass(frozen=True)
class Declared:
    """Declaration of how a field of sums merges and is checked: ``Annotated[FloatArray, summed("m")]``.

    Attributes
    ----------
    merge : callable or None
        Function that merges the field of two sums; None if their class does so.
    kind : Field or None
        Check of the field; None for fields that identify the sums, which must agree and are not saved.
    each : bool
        Whether it has one entry per problem.
    """

    merge: Callable[[Any, Any], Any] | None = None
    kind: Field | None = None
    each: bool = False


def _numbers(shape: tuple[str, ...], about: Mapping[str, Any]) -> Numbers:
    """Finite numbers of a shape, with further restrictions in ``about``."""
    return Numbers(shape, **{"low": -np.inf, "high": np.inf, "empty": True, **about})


def summed(*axes: str, **about: Any) -> Declared:
    """Additive numbers per problem; ``axes`` are those after that of the problems."""
    return Declared(_added, _numbers(("R", *axes), about), each=True)


def located(*axes: str, **about: Any) -> Declared:
    """Numbers per problem that give the positions of others."""
    return Declared(None, _numbers(("R", *axes), about), each=True)


def flat(*shape: str, **about: Any) -> Declared:
    """Numbers of all problems, concatenated."""
    return Declared(None, _numbers(shape, about))


def common(merge: Callable[[Any, Any], Any] = and_, kind: Field | None = None) -> Declared:
    """A value shared by all problems, by default a bool."""
    return Declared(merge, kind or Plain(bool))


def _added(one: Any, two: Any) -> Any:
    """Sum of both, either of which may be None."""
    return two if one is None else one if two is None else one + two


_NAME = Declared()


_DECLARED: dict[type, dict[str, tuple[Declared, Any]]] = {}


def _declarations(kind: type) -> dict[str, tuple[Declared, Any]]:
    """Declared fields of a class of sums, and their defaults; other fields identify the sums."""
    if kind not in _DECLARED:
        declared = {}
        for name, hint in get_type_hints(kind, include_extras=True).items():
            declared[name] = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Declared)), _NAME)
        _DECLARED[kind] = {f.name: (declared[f.name], f.default) for f in fields(kind) if f.init}
    return _DECLARED[kind]


@dataclass(frozen=True, eq=False)
class Sums:
    """Base class of sums. Leading axes (…) are problems side by side: none for one problem, (R,) for many."""

    @property
    def shape(self) -> tuple[int, ...]:
        """() for one problem, (R,) for many."""
        return np.shape(self.n_samples)  # type: ignore[attr-defined]  # a field of each

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> Self:
        """Sums of one or some of many problems; ``None`` adds a leading axis."""
        return replace(self, **self._fields_at(index))

    def _fields_at(self, index: Any) -> dict[str, Any]:
        """Fields that differ between problems, for one or some of them."""
        each = [name for name, (how, _) in _declarations(type(self)).items() if how.each]
        return {name: _at(getattr(self, name), index) for name in each}

    @staticmethod
    def together(sums: Sequence[Any]) -> Any:
        """Combine several sums of the same kind into one with all problems side by side."""
        each = {
            name: np.concatenate([getattr(one, name) for one in sums])
            for name, (how, _) in _declarations(type(sums[0])).items()
            if how.each and getattr(sums[0], name) is not None
        }
        return replace(sums[0], integral=all(one.integral for one in sums), **each)

    @property
    def rows(self) -> Self:
        """The same with one leading axis."""
        return self if self.shape else self._row  # itself is not cached: big arrays in a cycle wait for the collector

    @cached_property
    def _row(self) -> Self:
        return self[None]

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        return replace(self, **self._merged(other))

    def _merged(self, other: Self, but: Collection[str] = ()) -> dict[str, Any]:
        """Merged fields, ``but`` some; ValueError if identifying fields differ."""
        declared = _declarations(type(self))
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in declared if name not in but}
        for name, (one, two) in pairs.items():
            if declared[name][0].kind is None and one != two:
                raise ValueError(f"{type(self).__name__} with different {name} cannot be merged: {one} and {two}")
        merging = ((name, declared[name][0].merge, pair) for name, pair in pairs.items())
        return {name: merge(*pair) for name, merge, pair in merging if merge is not None}

    def check(self) -> None:
        """Raise ValueError unless these are possible sums of rows."""
        sizes: dict[str, int] = {}
        for name, (how, default) in _declarations(type(self)).items():
            value = getattr(self.rows if how.each else self, name)
            if how.kind is not None and not (value is None and default is None):
                how.kind.check(name, value, sizes)

    def to_arrays(self) -> dict[str, AnyArray]:
        """All fields except those that identify the sums, for saving."""
        saved = [name for name, (how, _) in _declarations(type(self)).items() if how.kind is not None]
        return {name: np.asarray(getattr(self, name)) for name in saved if getattr(self, name) is not None}

    def with_arrays(self, arrays: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_arrays`, with the same identifying fields; ValueError for impossible sums."""
        known = {name: about for name, about in _declarations(type(self)).items() if about[0].kind is not None}
        if unknown := sorted(set(arrays) - set(known)):
            raise ValueError(f"unknown fields: {unknown}")
        values: dict[str, Any] = {}
        for name, (_, default) in known.items():
            value = np.asarray(arrays[name]) if default is not None or name in arrays else None
            values[name] = value.item() if value is not None and value.ndim == 0 else value
        found = replace(self, **values)
        found.check()
        return found

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain lists and numbers, for JSON."""
        return {name: value.tolist() for name, value in self.to_arrays().items()}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Inverse of :meth:`to_dict`; raises ValueError if a field is missing or invalid."""
        with reading(cls.__name__, data):
            return cls._named(data := dict(data)).with_arrays(data)

    @classmethod
    def _named(cls, data: dict[str, Any]) -> Self:
        """Sums without rows, from the identifying fields, which are removed from ``data`` (see :meth:`to_dict`)."""
        raise ValueError(f"{cls.__name__} cannot be restored by from_dict")


def _at(values: Any, index: Any) -> Any:
    """Values of one or some of many problems."""
    return None if values is None else np.asarray(values)[index]


def as_often(values: AnyArray, rows: AnyArray) -> AnyArray:
    """Repeat values of one problem (m,), or of many (r, m), for all their ``rows``, one problem after another.

    ``rows`` (R, …) are r equally long runs of resamples, and the result is (R, m).
    """
    each = values.reshape(-1, values.shape[-1])
    return np.repeat(each, len(rows) // len(each), axis=0)


def number_as_often(values: AnyArray | float, rows: AnyArray) -> AnyArray:
    """:func:`as_often` for one number per problem, (R,)."""
    each = np.reshape(values, -1)
    return np.repeat(each, len(rows) // len(each))


class Shared(NamedTuple):
    """Variances of sums of residuals of rows in groups, relative to those implied by the effective sample size.

    ``parts`` of sums are five sums per problem of weights (of squares of relative weights) times the design effects
    of :func:`calibrant.data.dependence.design_parts`: the mean, those of the constant and of two cosines, and of
    rougher functions. They are additive, as weights are.

    Attributes
    ----------
    rough : ndarray of shape (R,)
        Design effect of sums in which shared group effects cancel.
    smooth : ndarray of shape (R, 3)
        Increase over ``rough`` for sums with the constant, ``cos πu`` and ``cos 2πu`` of the rank u.
    """

    rough: FloatArray
    smooth: FloatArray

    @classmethod
    def of(cls, sums: Any) -> Shared | None:
        """Design effects of the problems of sums; None if rows are independent or the sums have no ``parts``."""
        parts = getattr(sums, "parts", None)
        if parts is None:
            return None
        known = np.atleast_2d(parts)
        effects = known[:, 1:] / np.where(known[:, :1] > 0, known[:, :1], 1.0)
        rough = np.where(known[:, 0] > 0, effects[:, -1], 1.0)
        return cls(rough, np.maximum(effects[:, :-1] - rough[:, None], 0.0))
