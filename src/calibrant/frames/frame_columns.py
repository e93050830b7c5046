"""`FrameColumns`: which columns of a frame are read, and what its labels are. Judged once, before any row is read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..data.columns import check_one_column, check_roles, named_labels, named_order
from ..data.labels import _missing, check_label_list, encode_binary, labels_in_order
from ..data.predictions import Predictions
from ..data.types import AnyArray, Label
from ..data.validation import RANGE_TOLERANCE, SUM_TOLERANCE

#: Columns of probabilities, and so labels, at most.
MOST_CLASSES = 1000


@dataclass(frozen=True, eq=False)
class FrameColumns:
    """Columns of a frame: their names, their types, and the label of each probability.

    Attributes
    ----------
    frame : narwhals frame
        With labels of categories as text.
    label, weight, by, groups : str
    probs : tuple of str
        Columns of probabilities, in the order of ``classes``.
    dtype : numpy.dtype
        Tolerance for rounding errors of the scores.
    kind : narwhals dtype
        Of the labels.
    classes : tuple
        Labels; for one column whose labels the rows determine, the possible ones: -1 or 0, and 1.
    positive : int or None
        Place of the class that a single column is the probability of.
    told : bool
        Whether the labels are known before the rows are read.
    floats : bool
        Whether the scores are floats already.
    """

    frame: Any
    label: str
    probs: tuple[str, ...]
    weight: str | None
    by: str | None
    dtype: np.dtype[Any]
    kind: Any
    classes: tuple[Label, ...] = ()
    positive: int | None = None
    told: bool = True
    floats: bool = True
    groups: str | None = None

    @classmethod
    def of(cls, frame: Any, roles: Mapping[str, Any], labels: Any, pos: Any) -> FrameColumns:
        """Judge the arguments against the frame's schema; reads rows only where labels must be looked up.

        ``roles`` are the names of columns by the argument that names them.
        """
        read = as_frame(frame)
        schema = dict(read.collect_schema())
        label, weight, by, groups = (roles[name] for name in ("label", "weight", "by", "groups"))
        prob = roles["prob"]
        given = (prob,) if isinstance(prob, str) else prob
        probs = tuple(given) if isinstance(given, Sequence) else (given,)
        optional = {"weight": weight, "by": by, "groups": groups}
        named = {"label": (label,), "prob": probs, **{k: (v,) for k, v in optional.items() if v is not None}}
        if not probs:
            raise ValueError("prob must name at least one column; got none")
        if len(probs) > MOST_CLASSES:
            raise ValueError(f"prob must name at most {MOST_CLASSES} columns; got {len(probs)}")
        check_roles(named, schema)
        for argument in ("prob", "weight"):
            for name in named.get(argument, ()):
                if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
                    raise TypeError(f"{argument} must hold numbers; column {name!r} holds {schema[name]}")
        kind = schema[label]
        if isinstance(kind, nw.Categorical | nw.Enum) or kind in (nw.Categorical, nw.Enum):
            read = read.with_columns(nw.col(label).cast(nw.String))
        elif not (kind.is_integer() or kind.is_float() or kind in (nw.Boolean, nw.String)):
            raise TypeError(f"label must hold labels (int, bool or str); column {label!r} holds {kind}")
        floats = [schema[p] for p in probs]
        dtype = np.dtype(np.float32 if all(f == nw.Float32 for f in floats) else np.float64)
        found = cls(
            read,
            label,
            probs,
            weight,
            by,
            dtype,
            kind,
            groups=groups,
            floats=all(f in (nw.Float32, nw.Float64) for f in floats),
        )
        found = found._single(labels, pos) if len(probs) == 1 else found._several(labels, pos)
        text = kind == nw.String or kind in (nw.Categorical, nw.Enum)
        if any(isinstance(label, str) != text for label in found.classes):
            raise TypeError(
                f"labels {list(found.classes)!r} are of another kind than column {label!r}, which holds {kind}"
            )
        return found

    def _single(self, labels: Any, pos: Any) -> FrameColumns:
        """One column: labels that were given, that go without saying, or that are looked up."""
        kind = self.kind
        plain = kind.is_integer() or kind.is_float() or kind == nw.Boolean
        if labels is None and plain and (pos is None or pos in (1, True)):
            bools = kind == nw.Boolean
            found = replace(self, classes=(False, True) if bools else (0, 1), positive=1, told=bool(bools))
        else:
            seen = np.asarray(check_label_list(labels, 2) if labels is not None else self.seen())
            _, classes, positive = encode_binary(seen, labels, pos)
            found = replace(self, classes=classes, positive=positive)
        check_one_column(self.probs[0], found.classes, found.classes[1 if found.positive is None else found.positive])
        return found

    def _several(self, labels: Any, pos: Any) -> FrameColumns:
        k = len(self.probs)
        if pos is not None:
            raise ValueError(
                f"pos_label is for a single column of probabilities; prob names {k} (got pos_label={pos!r}): use "
                "notion=ClassSpecific(label), or name one column"
            )
        if labels is not None:
            classes = check_label_list(labels, k)
            order = named_order(self.probs, classes)
            probs = self.probs if order is None else tuple(self.probs[i] for i in order)
            return replace(self, probs=probs, classes=classes)
        seen = self.seen()
        named = named_labels(self.probs, seen, None)
        return replace(self, classes=tuple(labels_in_order(seen, k) if named is None else named))

    def with_labels(self, seen: AnyArray) -> FrameColumns:
        """These, for a single column, with the labels that the rows have."""
        _, classes, positive = encode_binary(seen, None, 1)
        return replace(self, classes=classes, positive=positive, told=True)

    def looked_up(self) -> FrameColumns:
        """These with known labels: looked up where they are not."""
        return self if self.told else self.with_labels(np.asarray(self.seen()))

    def seen(self) -> tuple[Label, ...]:
        """Distinct labels of the frame, sorted: one small query."""
        found = collected(self.frame.select(nw.col(self.label)).unique())[self.label].to_list()
        known = [v for v in found if not _missing(v)]
        if not known:
            raise ValueError(f"label must hold labels; column {self.label!r} has none")
        if len(known) > MOST_CLASSES:
            raise ValueError(
                f"label must hold at most {MOST_CLASSES} labels; column {self.label!r} has {len(known)}: wrong column?"
            )
        whole = [int(v) if isinstance(v, float) and v == v // 1 else v for v in known]
        return tuple(sorted(whole))

    @property
    def possible(self) -> tuple[Label, ...]:
        """Labels that rows may have, in the kind of their column."""
        labels = self.classes if self.told else (-1, *self.classes)
        return tuple(map(bool, labels)) if self.kind == nw.Boolean else labels

    @property
    def scores(self) -> Any:
        """Type of the scores in an engine."""
        return nw.Float32 if self.dtype == np.float32 else nw.Float64

    @property
    def plain(self) -> bool:
        """Whether a single column's scores and labels are numbers that may be worked with as they are."""
        whole = self.kind == nw.Boolean or self.kind.is_integer()
        return whole and set(self.classes) == {0, 1} and self.positive == 1 and self.floats

    @property
    def eps(self) -> float:
        """Rounding unit of the scores."""
        return float(np.finfo(self.dtype).eps)

    @property
    def range_tolerance(self) -> float:
        """How far outside [0, 1] a score may lie."""
        return RANGE_TOLERANCE[self.dtype]

    @property
    def sum_tolerance(self) -> float:
        """How far from 1 the probabilities of a row may sum."""
        return SUM_TOLERANCE[self.dtype]

    @property
    def names(self) -> list[str]:
        """All that are read."""
        return [self.label, *self.probs, *(c for c in (self.weight, self.by, self.groups) if c is not None)]

    @cached_property
    def engine(self) -> str:
        """Engine of the frame: ``"polars"``, ``"duckdb"``, ``"pyspark"``, …"""
        return str(self.frame.implementation.value)

    @property
    def empty(self) -> Predictions:
        """Predictions of these labels without rows, which a notion reads."""
        shape = (0,) if self.positive is not None else (0, len(self.probs))
        nothing: AnyArray = np.empty(0, np.intp)
        return Predictions(np.empty(shape, self.dtype), nothing, None, self.classes, self.positive, self.eps)


def as_frame(frame: Any) -> Any:
    """A frame that narwhals can read; TypeError for anything else."""
    try:
        with warnings.catch_warnings():
            # Warning of a package that is to take Dask over one day.
            warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
            return nw.from_native(frame)
    except TypeError:
        kind = f"{type(frame).__module__.split('.')[0]}.{type(frame).__name__}"
        raise TypeError(
            f"frame must be a frame of Polars, DuckDB, pandas, pyarrow, Dask, PySpark or another library that narwhals "
            f"reads; got {kind}"
        ) from None


def known(value: Any) -> Any:
    """A value of a column; None for one that is missing, however that is written."""
    return None if _missing(value) else value


def collected(frame: Any) -> Any:
    """A small result of a query in memory."""
    if not isinstance(frame, nw.LazyFrame):
        return frame
    how: dict[str, Any] = {"engine": "streaming"} if frame.implementation.is_polars() else {}
    return frame.collect(**how)
