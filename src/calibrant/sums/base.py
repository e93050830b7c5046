"""`Sums`: what sums over rows of every kind share. Their fields say how they merge, are indexed, checked and saved."""

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
    """How a field of sums merges, and what it must be: ``Annotated[FloatArray, summed("m")]``.

    Attributes
    ----------
    merge : callable or None
        Merged value of the field of two sums; None where their class says so.
    kind : Field or None
        What it must be; None for what names the sums, which must agree and is not saved.
    each : bool
        Whether it has an entry for each of many problems.
    """

    merge: Callable[[Any, Any], Any] | None = None
    kind: Field | None = None
    each: bool = False


def _numbers(shape: tuple[str, ...], about: Mapping[str, Any]) -> Numbers:
    """Numbers of a shape; ``about`` says more of them than that they are finite."""
    return Numbers(shape, **{"low": -np.inf, "high": np.inf, "empty": True, **about})


def summed(*axes: str, **about: Any) -> Declared:
    """Numbers of each problem that add; ``axes`` are those behind that of the problems."""
    return Declared(_added, _numbers(("R", *axes), about), each=True)


def located(*axes: str, **about: Any) -> Declared:
    """Numbers of each problem that say where others lie."""
    return Declared(None, _numbers(("R", *axes), about), each=True)


def flat(*shape: str, **about: Any) -> Declared:
    """Numbers of which those of one problem follow those of another."""
    return Declared(None, _numbers(shape, about))


def common(merge: Callable[[Any, Any], Any] = and_, kind: Field | None = None) -> Declared:
    """A value that all problems share: a truth value, where nothing else is said."""
    return Declared(merge, kind or Plain(bool))


def _added(one: Any, two: Any) -> Any:
    """Sums of both, of which either may have none."""
    return two if one is None else one if two is None else one + two


_NAME = Declared()


_DECLARED: dict[type, dict[str, tuple[Declared, Any]]] = {}


def _declarations(kind: type) -> dict[str, tuple[Declared, Any]]:
    """Declared fields of a class of sums, and their defaults; other fields name the sums."""
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
        """Sums of one of many problems, or of some; ``None`` adds a leading axis."""
        return replace(self, **self._fields_at(index))

    def _fields_at(self, index: Any) -> dict[str, Any]:
        """The fields that differ from problem to problem, of one of them or of some."""
        each = [name for name, (how, _) in _declarations(type(self)).items() if how.each]
        return {name: _at(getattr(self, name), index) for name in each}

    @staticmethod
    def together(sums: Sequence[Any]) -> Any:
        """Sums of several lots of problems of one kind, side by side."""
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
        """Merged fields, ``but`` some; ValueError for sums of other names."""
        declared = _declarations(type(self))
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in declared if name not in but}
        for name, (one, two) in pairs.items():
            if declared[name][0].kind is None and one != two:
                raise ValueError(f"{type(self).__name__} of different {name} cannot merge: {one} and {two}")
        merging = ((name, declared[name][0].merge, pair) for name, pair in pairs.items())
        return {name: merge(*pair) for name, merge, pair in merging if merge is not None}

    def check(self) -> None:
        """ValueError unless these can be the sums of rows."""
        sizes: dict[str, int] = {}
        for name, (how, default) in _declarations(type(self)).items():
            value = getattr(self.rows if how.each else self, name)
            if how.kind is not None and not (value is None and default is None):
                how.kind.check(name, value, sizes)

    def to_arrays(self) -> dict[str, AnyArray]:
        """All but what names the sums, for saving."""
        saved = [name for name, (how, _) in _declarations(type(self)).items() if how.kind is not None]
        return {name: np.asarray(getattr(self, name)) for name in saved if getattr(self, name) is not None}

    def with_arrays(self, arrays: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_arrays`, for sums of the same name; ValueError where these cannot be those of rows."""
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
        """Plain lists and numbers, for JSON."""
        return {name: value.tolist() for name, value in self.to_arrays().items()}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Inverse of :meth:`to_dict`; raises ValueError when a field is missing or is not what it means."""
        with reading(cls.__name__, data):
            return cls._named(data := dict(data)).with_arrays(data)

    @classmethod
    def _named(cls, data: dict[str, Any]) -> Self:
        """Sums of no rows, with the name that is taken out of :meth:`to_dict`."""
        raise ValueError(f"{cls.__name__} have no name of their own")


def _at(values: Any, index: Any) -> Any:
    """Values of one of many problems, or of some."""
    return None if values is None else np.asarray(values)[index]


def as_often(values: AnyArray, rows: AnyArray) -> AnyArray:
    """Values of one problem (m,), or of each of many (r, m), for all their ``rows``, one problem after another.

    ``rows`` (R, …) are r equal runs of resamples, and the result is (R, m).
    """
    each = values.reshape(-1, values.shape[-1])
    return np.repeat(each, len(rows) // len(each), axis=0)


def number_as_often(values: AnyArray | float, rows: AnyArray) -> AnyArray:
    """:func:`as_often` for a number of each problem, (R,)."""
    each = np.reshape(values, -1)
    return np.repeat(each, len(rows) // len(each))


class Shared(NamedTuple):
    """Variances of sums of residuals of rows in groups, in units of what the effective sample size says.

    ``parts`` of sums are, of each problem, five sums of weights (of squares of relative ones) times the design effects
    of :func:`calibrant.data.dependence.design_parts`: the mean, those of the constant and of two cosines, and of
    rougher ones. They add as the weights do.

    Attributes
    ----------
    rough : ndarray of shape (R,)
        Of sums in which what groups share cancels.
    smooth : ndarray of shape (R, 3)
        What is added to that in sums of the constant, ``cos πu`` and ``cos 2πu`` of the rank u.
    """

    rough: FloatArray
    smooth: FloatArray

    @classmethod
    def of(cls, sums: Any) -> Shared | None:
        """Design effects of the problems of sums; None where rows are independent, or their sums do not know."""
        parts = getattr(sums, "parts", None)
        if parts is None:
            return None
        known = np.atleast_2d(parts)
        effects = known[:, 1:] / np.where(known[:, :1] > 0, known[:, :1], 1.0)
        rough = np.where(known[:, 0] > 0, effects[:, -1], 1.0)
        return cls(rough, np.maximum(effects[:, :-1] - rough[:, None], 0.0))
