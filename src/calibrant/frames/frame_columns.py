"""`FrameColumns`: the columns of a frame that are read, and its labels, validated once before any row is read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..data.checks import called
from ..data.columns import check_distinct, check_one_column, check_roles, named_labels, named_order, only_count
from ..data.labels import check_label_list, encode_binary, is_missing, labels_in_order
from ..data.predictions import Predictions
from ..data.shares import ROUNDINGS, two_labels
from ..data.types import AnyArray, Label
from ..data.validation import RANGE_TOLERANCE, SUM_TOLERANCE

#: Largest number of columns of probabilities, and so of labels.
MOST_CLASSES = 1000


@dataclass(frozen=True, eq=False)
class FrameColumns:
    """Columns of a frame: their names, their types, and the label of each probability.

    Attributes
    ----------
    frame : narwhals frame
        Categorical labels are converted to text.
    label, weight, by, time, groups : str
        ``label`` is empty where rows have several labels; times are the beginnings of periods.
    truths : tuple of str
        Columns of 0 and 1, one per label, in the order of ``classes``; empty where each row has one label.
    probs : tuple of str
        Columns of probabilities, in the order of ``classes``.
    dtype : numpy.dtype
        Dtype of the scores, which sets the tolerances for rounding errors.
    kind : narwhals dtype
        Type of the labels.
    classes : tuple
        Labels; for one column whose labels depend on the rows, the possible ones: -1 or 0, and 1.
    positive : int or None
        Index of the class that a single column is the probability of.
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
    truths: tuple[str, ...] = ()
    time: str | None = None

    @classmethod
    def of(cls, frame: Any, roles: Mapping[str, Any], labels: Any, pos: Any) -> FrameColumns:
        """Validate the arguments against the frame's schema; reads rows only if labels must be looked up.

        ``roles`` maps each argument to the columns that it names.
        """
        read, schema = _read(frame)
        label, weight, by, time, groups = (roles[name] for name in ("label", "weight", "by", "time", "groups"))
        prob = roles["prob"]
        given = (prob,) if isinstance(prob, str) else prob
        probs = tuple(given) if isinstance(given, Sequence) else (given,)
        optional = {"weight": weight, "by": by, "time": time, "groups": groups}
        truths = tuple(label) if isinstance(label, (list, tuple)) else ()
        named = {"label": truths or (label,), "prob": probs, **{k: (v,) for k, v in optional.items() if v is not None}}
        if not probs:
            raise ValueError("prob must name at least one column; got none")
        if len(probs) > MOST_CLASSES:
            raise ValueError(f"prob must name at most {MOST_CLASSES} columns; got {len(probs)}")
        check_roles(named, schema)
        if truths:
            _check_pairs(truths, probs, pos, schema)
        for argument in ("prob", "weight"):
            for name in named.get(argument, ()):
                if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
                    raise TypeError(f"{argument} must hold numbers; column {name!r} holds {schema[name]}")
        for argument in ("by", "groups"):
            if argument in named and schema[roles[argument]].is_nested():
                kind = schema[roles[argument]]
                raise TypeError(f"{argument} must hold one value per row; column {roles[argument]!r} holds {kind}")
        _check_spark(read, [name for names in named.values() for name in names])
        read = _in_floats(read, schema, [*truths, *probs, *named.get("weight", ())])
        kind = nw.Float64() if truths else schema[label]
        if isinstance(kind, nw.Categorical | nw.Enum) or kind in (nw.Categorical, nw.Enum):
            read = _as_text(read, label)
        elif not (kind.is_integer() or kind.is_float() or kind in (nw.Boolean, nw.String)):
            raise TypeError(f"label must hold labels (int, bool or str); column {label!r} holds {kind}")
        if kind.is_float() and len(probs) <= 2:
            read, weight = without_shares(read, label, kind, weight, labels, pos)
        floats = [schema[p] for p in probs]
        kinds = {nw.Float16: np.float16, nw.Float32: np.float32}
        dtype = np.result_type(*(next((kinds[k] for k in kinds if f == k), np.float64) for f in floats))
        found = cls(
            read,
            "" if truths else label,
            probs,
            weight,
            by,
            dtype,
            kind,
            groups=groups,
            truths=truths,
            time=time,
            floats=all(f.is_float() for f in floats),
        )
        if truths:
            return found._of_labels(labels)
        with called(y_true=f"label (column {label!r})", y_prob="prob"):
            found = found._single(labels, pos) if len(probs) == 1 else found._several(labels, pos)
        text = kind == nw.String or kind in (nw.Categorical, nw.Enum)
        if any(isinstance(label, str) != text for label in found.classes):
            raise TypeError(
                f"labels {list(found.classes)!r} are of a different kind from column {label!r}, which holds {kind}"
            )
        return found

    def _single(self, labels: Any, pos: Any) -> FrameColumns:
        """Labels for one column of probabilities: given, implied, or looked up."""
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

    def _of_labels(self, labels: Any) -> FrameColumns:
        """Several labels: the given ones, else the names of their columns or of the columns of probabilities."""
        k = len(self.truths)
        if labels is None:
            labels = next((names for names in (self.truths, self.probs) if not only_count(names)), range(k))
        classes = check_label_list(labels, k)
        order = named_order(self.probs, classes)
        probs = self.probs if order is None else tuple(self.probs[i] for i in order)
        return replace(self, probs=probs, classes=classes)

    def with_labels(self, seen: AnyArray) -> FrameColumns:
        """The same columns, with the labels found in the rows (for a single column of probabilities)."""
        _, classes, positive = encode_binary(seen, None, 1)
        return replace(self, classes=classes, positive=positive, told=True)

    def looked_up(self) -> FrameColumns:
        """The same columns with known labels, which are looked up if necessary."""
        return self if self.told else self.with_labels(np.asarray(self.seen()))

    def seen(self) -> tuple[Label, ...]:
        """Sorted distinct labels of the frame, by one small query."""
        try:
            found = collected(self.frame.select(nw.col(self.label)).unique())[self.label].to_list()
        except TypeError as error:  # Dask takes lists for text
            raise TypeError(f"label must hold labels (int, bool or str); those of {self.label!r}: {error}") from error
        known = [v for v in found if not is_missing(v)]
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
        """Labels that rows may have, in the type of their column."""
        labels = self.classes if self.told else (-1, *self.classes)
        return tuple(map(bool, labels)) if self.kind == nw.Boolean else labels

    @property
    def scores(self) -> Any:
        """Type of the scores in an engine."""
        return nw.Float64 if self.dtype == np.float64 else nw.Float32

    @property
    def plain(self) -> bool:
        """Whether the scores and labels of a single column can be used without conversion."""
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
        """Names of all columns that are read."""
        return [
            *(self.truths or [self.label]),
            *self.probs,
            *(c for c in (self.weight, *self.parts, self.groups) if c is not None),
        ]

    @property
    def parts(self) -> tuple[str, ...]:
        """Columns to sum by: of subgroups, and of periods."""
        return tuple(c for c in (self.by, self.time) if c is not None)

    @cached_property
    def engine(self) -> str:
        """Engine of the frame: ``"polars"``, ``"duckdb"``, ``"pyspark"``, …"""
        return str(self.frame.implementation.value)

    @property
    def empty(self) -> Predictions:
        """Predictions with these labels and no rows, as input of a notion."""
        shape = (0,) if self.positive is not None else (0, len(self.probs))
        nothing: AnyArray = np.empty((0, len(self.truths)), bool) if self.truths else np.empty(0, np.intp)
        held = np.result_type(self.dtype, np.float32)
        return Predictions(np.empty(shape, held), nothing, None, self.classes, self.positive, self.eps)


def _read(frame: Any) -> tuple[Any, dict[str, Any]]:
    """The frame and its schema; ValueError if two columns have the same name."""
    try:
        read = as_frame(frame)
        if read.implementation.is_dask() or read.implementation.is_pyspark():  # which only fail where it is read
            check_distinct("a frame", list(nw.to_native(read).columns))
        return read, dict(read.collect_schema())
    except (nw.exceptions.DuplicateError, ValueError) as error:
        raise ValueError(f"frame must have columns of different names: {' '.join(str(error).split())}") from error


def without_shares(
    frame: Any, label: str, kind: Any, weight: str | None, labels: Any, pos: Any
) -> tuple[Any, str | None]:
    """Frame with one outcome per row, and its column of weights: shares are split as in :class:`SplitRows`.

    Rows whose labels are not shares are kept once, unchanged.
    """
    y, hit_other = nw.col(label), two_labels(labels, pos)
    between = ((y > 0) & (y < 1)).cast(nw.Int64)
    found = collected(frame.select(_calibrant_n=between).select(nw.col("_calibrant_n").sum()))["_calibrant_n"]
    if not found.to_list()[0] or any(isinstance(one, str) for one in hit_other):
        return frame, weight
    hit, other = (nw.lit(float(one), kind) for one in hit_other)
    valid, eps = (y >= 0) & (y <= 1), ROUNDINGS * float(np.finfo(np.float32 if kind == nw.Float32 else float).eps)
    w = nw.lit(1.0) if weight is None else nw.col(weight).cast(nw.Float64)
    part = w * y.cast(nw.Float64)
    counted = (w % 1 == 0) & ((part - part.round()).abs() <= eps * w)
    with_label = nw.when(counted).then(part.round()).otherwise(part)
    without = nw.when(counted).then(w - part.round()).otherwise(w * (1.0 - y.cast(nw.Float64)))
    column = "_calibrant_weight" if weight is None else weight
    ones = frame.filter(y.is_null() | (y != 0)).with_columns(
        **{label: nw.when(valid).then(hit).otherwise(y), column: nw.when(valid).then(with_label).otherwise(w)}
    )
    rest = frame.filter((y >= 0) & (y < 1)).with_columns(**{label: other, column: without})
    return nw.concat([ones, rest]), column


def _check_pairs(truths: Sequence[str], probs: Sequence[str], pos: Any, schema: Mapping[str, Any]) -> None:
    """Check the columns of several labels: they hold numbers, with one column of probabilities each."""
    if pos is not None:
        raise ValueError(f"pos_label is for one label per row; label names {len(truths)} columns (got {pos!r})")
    if len(truths) != len(probs) or len(truths) < 2:
        raise ValueError(
            f"label and prob must name equally many columns, at least 2, for several labels; got {len(truths)} and "
            f"{len(probs)}: for one label per row pass label as a str"
        )
    for name in truths:
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise TypeError(
                f"label must hold 0 or 1 in each of several columns; column {name!r} holds {schema[name]}: for one "
                "label per row pass label as a str"
            )


def _check_spark(frame: Any, names: Sequence[str]) -> None:
    """ValueError for names that Spark interprets, or cannot distinguish from another."""
    kind = frame.implementation
    if not (kind.is_pyspark() or kind.is_pyspark_connect()):
        return
    native = nw.to_native(frame)
    cased = native.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    for name in names:
        if "." in name or "`" in name:
            raise ValueError(f"frame must have column names without dots and ` for Spark; got {name!r}: rename it")
        alike = [] if cased else [c for c in native.columns if c != name and c.casefold() == name.casefold()]
        if alike:
            raise ValueError(
                f"frame must have column names that Spark distinguishes; got {name!r} and {alike[0]!r}: rename one"
            )


def _as_text(frame: Any, label: str) -> Any:
    """The frame with categories as text; TypeError for other categories, such as intervals."""
    try:
        return frame.with_columns(nw.col(label).cast(nw.String))
    except Exception as error:  # of the library of the frame, whatever it raises
        raise TypeError(f"label must hold labels (int, bool or str); column {label!r} has other categories") from error


def _in_floats(frame: Any, schema: dict[str, Any], columns: Sequence[str]) -> Any:
    """Convert truth values, decimals and half floats to floats, which all engines compare and multiply.

    DuckDB trusts the largest value that a Parquet file declares, as if there were no NaN, unless it cannot tell where a
    number comes from.
    """
    odd = [c for c in columns if not (schema[c].is_float() or schema[c].is_integer())]
    found = [nw.col(c).cast(nw.Float64) for c in odd]
    found += [nw.col(c).cast(nw.Float32) for c in columns if schema[c] == nw.Float16]  # which Arrow does not compare
    if frame.implementation.is_duckdb():
        found += [nw.when(~nw.col(c).is_null()).then(nw.col(c)).alias(c) for c in columns if schema[c].is_float()]
    return frame.with_columns(*found) if found else frame


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
            f"supports; got {kind}"
        ) from None


def known(value: Any) -> Any:
    """A value of a column; None for a missing value of any kind."""
    return None if is_missing(value) else value


def collected(frame: Any) -> Any:
    """Collect a small query result into memory."""
    if not isinstance(frame, nw.LazyFrame):
        return frame
    how: dict[str, Any] = {"engine": "streaming"} if frame.implementation.is_polars() else {}
    return frame.collect(**how)
