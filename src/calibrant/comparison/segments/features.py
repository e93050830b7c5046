"""Columns of any kind as codes of few values, binned once; and conditions on them in words."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...data.checks import is_real
from ...data.columns import check_distinct
from ...data.printing import printable
from ...data.types import AnyArray, FloatArray, IntArray, Label
from ..subgroups.membership import Subgroups, check_column, named_columns, names_of, subgroups_of

#: Bins of numbers that are searched, and bins among which the ends of segments found are moved.
COARSE, FINE = 16, 64
#: Levels of a category that are distinguished: with one for the others and one for missing values, they fit a byte.
LEVELS = 200
#: Rows from which bins of numbers are made.
_SAMPLE = 100_000
#: Rows of either outcome, and rows per value, from which a feature with pure values is taken to leak the label.
_LEAK = 10
#: A text with at least this share of distinct values names its rows.
_NAMING = 0.95
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:|$)")
_EPOCH = np.datetime64(0, "us")


class Condition(NamedTuple):
    """Condition that one feature lies in a range of its codes, excluding the end."""

    feature: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Feature:
    """Coding of a column, of ``kind`` "number", "date", "duration" or "category".

    Attributes
    ----------
    cuts : ndarray of shape (m,)
        Numbers at which the codes 1, …, m begin; for a category, the codes themselves.
    values : tuple
        Values of codes: for a category, those distinguished, sorted; for numbers with few values, these; else empty.
    rare : int
        Number of values of a category that share the code after those.
    starts : ndarray
        Codes at which the bins that are searched begin.
    """

    name: str
    kind: str
    cuts: FloatArray
    values: tuple[Label, ...]
    rare: int
    starts: IntArray

    @property
    def ordered(self) -> bool:
        """Whether ranges of codes are conditions."""
        return self.kind != "category"

    @property
    def missing(self) -> int:
        """Code of missing values, the last."""
        return self.cuts.size + 1 if self.ordered else len(self.values) + (self.rare > 0)

    @cached_property
    def _places(self) -> dict[tuple[str, Any], int]:
        """Code of each value of a category."""
        return {_key(value): code for code, value in enumerate(self.values)}

    @property
    def candidates(self) -> list[tuple[int, int]]:
        """Ranges of codes that are searched."""
        miss = (self.missing, self.missing + 1)
        if not self.ordered:
            return [*((code, code + 1) for code in range(self.missing)), miss]
        ends = [*self.starts.tolist(), self.missing]
        return [*((a, b) for i, a in enumerate(ends) for b in ends[i + 1 :]), miss]

    def codes(self, column: Any, shown: str) -> AnyArray:
        """Codes (n,) of a column, uint8; unseen values get one that no condition includes."""
        return self.of_values(*read_values(column, shown, self.kind), shown)

    def of_values(self, kind: str, values: Any, shown: str) -> AnyArray:
        """Codes of values that were read."""
        if kind != self.kind:
            raise TypeError(f"{shown} must be of the same kind as in the search for segments ({self.kind}); got {kind}")
        if self.ordered:
            codes = np.searchsorted(self.cuts, values, side="right")
            codes[np.isnan(values)] = self.missing
            return np.asarray(codes, dtype=np.uint8)
        other = self.missing - 1 if self.rare else self.missing + 1
        table = [self._places.get(_key(v), other) if v is not None else self.missing for v in values.values]
        return np.asarray(np.array(table, dtype=np.uint8)[values.codes])

    def said(self, low: int, high: int) -> str:
        """A condition in words."""
        name = printable(self.name)
        if low == self.missing:
            return f"{name} is missing"
        if not self.ordered:
            if low == len(self.values):
                return f"{name} is one of the rare values ({self.rare:,})"
            return f"{name} is {printable(names_of(self.values)[low])}"
        if low == 0 and high == self.missing:
            return f"{name} is known"
        if self.values and high == low + 1:
            return f"{name} is {self._number(float(self.values[low]))}"
        if low == 0:
            return f"{name} < {self._number(self.cuts[high - 1])}"
        least = self._number(self.cuts[low - 1])
        return (
            f"{name} ≥ {least}" if high == self.missing else f"{least} ≤ {name} < {self._number(self.cuts[high - 1])}"
        )

    def _number(self, value: float) -> str:
        if self.kind == "date":
            return str((_EPOCH + np.timedelta64(round(value), "us")).astype("M8[s]")).removesuffix("T00:00:00")
        text = f"{value:.15g}"
        return f"{text} days" if self.kind == "duration" else text


@dataclass(frozen=True, eq=False)
class Features:
    """The features that are searched, codes (F, n) of all rows, and the features left out, with reasons."""

    each: tuple[Feature, ...]
    codes: AnyArray
    left_out: Mapping[str, str]
    notes: tuple[str, ...]

    def said(self, conditions: Sequence[Condition]) -> str:
        """Conditions in words."""
        return " and ".join(self.each[f].said(low, high) for f, low, high in conditions)

    def mask(self, conditions: Sequence[Condition], rows: Any = slice(None)) -> AnyArray:
        """Mask of the rows that meet all conditions."""
        return within(self.codes if isinstance(rows, slice) else self.codes[:, rows], conditions)


def within(codes: AnyArray, conditions: Sequence[Condition]) -> AnyArray:
    """Mask (n,) of the columns of codes (F, n) that meet all conditions."""
    out = np.ones(codes.shape[1], dtype=bool)
    for feature, low, high in conditions:
        of = codes[feature]
        # Bytes wrap around: one comparison says both.
        out &= (of - np.uint8(low)) < np.uint8(high - low)
    return out


def read_features(
    X: Any, n_rows: int, outcomes: Mapping[str, tuple[AnyArray, AnyArray]], argument: str = "X"
) -> Features:
    """Check the ``X`` argument, and code its columns; ``outcomes`` are rows and their outcomes, by class."""
    columns = named_columns(X, argument, "feature")
    if not columns:
        raise ValueError(f"{argument} must have at least one column; got none")
    check_distinct(argument, [name for name, _ in columns])
    each, codes, left, notes = [], [], {}, []
    for name, column in columns:
        shown = argument if len(columns) == 1 else f"{argument}[{name!r}]"
        kind, values = read_values(check_column(column, shown, n_rows), shown)
        feature = _categories(name, values) if isinstance(values, Subgroups) else _bins(name, kind, values)
        if isinstance(feature, str):
            left[name] = feature
            continue
        coded = feature.of_values(kind, values, shown)
        if leaks := [of for of, (rows, happened) in outcomes.items() if _leaks(coded[rows], happened)]:
            left[name] = f"it determines the outcome{' of ' + leaks[0] if leaks[0] else ''}: does it leak the label?"
            continue
        if feature.rare:
            notes.append(f"{printable(name)}: rare values are combined ({feature.rare:,})")
        each.append(feature)
        codes.append(coded)
    table = np.stack(codes) if codes else np.zeros((0, n_rows), dtype=np.uint8)
    return Features(tuple(each), table, left, tuple(notes))


def codes_of_rows(each: Sequence[Feature], wanted: Iterable[int], X: Any, argument: str = "X") -> AnyArray:
    """Codes (F, n) of new rows for the wanted features, whose names are unchanged; others are 0."""
    columns = dict(named_columns(X, argument, "feature"))
    lengths = {len(check_column(column, f"{argument}[{name!r}]")) for name, column in columns.items()}
    if len(lengths) != 1:
        raise ValueError(f"{argument} must have columns of equal length; got {sorted(lengths)}")
    codes = np.zeros((len(each), lengths.pop()), dtype=np.uint8)
    for at in wanted:
        if (name := each[at].name) not in columns:
            raise ValueError(f"{argument} must have the column {name!r}; got {list(columns)}")
        codes[at] = each[at].codes(columns[name], f"{argument}[{name!r}]")
    return codes


def read_values(column: Any, shown: str, wanted: str = "") -> tuple[str, Any]:
    """The kind of a column, and its values: float64 with NaN where missing, or the codes of its categories."""
    column = _plain(column, shown)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iufmM" and wanted != "category":
        return _as_floats(column)
    read = subgroups_of("", column, shown)
    known = [value for value in read.values if value is not None]
    if wanted == "category" or not known:
        return wanted or "category", np.full(read.codes.size, np.nan) if wanted not in ("", "category") else read
    of: Any = None
    if all(is_real(v) for v in known):
        of = np.array(known, dtype=np.float64)
    elif all(isinstance(v, dt.date) for v in known):
        of = np.array([_naive(v) for v in known], dtype="M8[us]")
    elif all(isinstance(v, dt.timedelta) for v in known):
        of = np.array(known, dtype="m8[us]")
    elif all(isinstance(v, str) and _DATE.match(v) for v in known):  # as files hold them
        with suppress(ValueError):
            of = np.array([_naive(dt.datetime.fromisoformat(v)) for v in known], dtype="M8[us]")
    if of is None:
        return "category", read
    kind, numbers = _as_floats(of)
    return kind, np.append(numbers, np.nan)[read.codes]


def _plain(column: Any, shown: str) -> Any:
    """Numbers and times of a data frame as a NumPy array; anything else unchanged."""
    if isinstance(column, np.ma.MaskedArray):
        masked: Any = column
        whole = column.dtype.kind in "iuf"
        return masked.astype(np.float64).filled(np.nan) if whole else masked.astype(object).filled(None)
    if isinstance(column, np.ndarray):
        return column
    import narwhals as nw

    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return np.asarray(column) if hasattr(column, "__array__") and not hasattr(column, "detach") else column
    if series.dtype.is_numeric():
        return series.cast(nw.Float64()).to_numpy().astype(np.float64)
    if series.dtype in (nw.Date, nw.Datetime, nw.Duration):
        values = series.to_numpy()
        return values if values.dtype.kind in "mM" else column
    return column


def _as_floats(values: AnyArray) -> tuple[str, FloatArray]:
    """Numbers unchanged, times in microseconds since 1970, durations in days; NaN where missing."""
    if values.dtype.kind in "iuf":
        return "number", values.astype(np.float64)
    gone = np.isnat(values)
    whole = values.astype(f"{values.dtype.kind}8[us]").view(np.int64).astype(np.float64)
    whole[gone] = np.nan
    return ("date", whole) if values.dtype.kind == "M" else ("duration", whole / 86_400e6)


def _naive(value: Any) -> Any:
    """A time without its zone, in UTC."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(dt.UTC).replace(tzinfo=None)


def _bins(name: str, kind: str, values: FloatArray) -> Feature | str:
    """Bins of about equally many rows; equal values share one. A reason, if there is nothing to distinguish."""
    n = values.size
    some = values[:: -(-n // _SAMPLE)] if n > _SAMPLE else values
    known = np.sort(some[~np.isnan(some)])
    if not known.size:
        return "all values are missing"
    distinct, number = np.unique(known, return_counts=True)
    if distinct.size == 1 and known.size == some.size:
        return "it is constant"
    below = np.cumsum(number) - number  # rows with smaller values
    exact = distinct.size <= FINE
    wanted = np.arange(1, FINE) * (known.size / FINE)
    at = np.arange(1, distinct.size) if exact else np.unique(np.searchsorted(below, wanted))
    at = at[(at > 0) & (at < distinct.size)]
    cuts = np.array([_shortest(float(distinct[i - 1]), float(distinct[i]), kind) for i in at.tolist()])
    mass = np.concatenate([[0], below[at]])
    starts = np.arange(mass.size)
    if mass.size > COARSE:
        starts = np.unique(np.searchsorted(mass, np.arange(COARSE) * (known.size / COARSE)))
        starts = np.unique(np.append(0, starts[starts < mass.size]))
    values_of = tuple(distinct.tolist()) if exact and n <= _SAMPLE else ()
    return Feature(name, kind, cuts, values_of if kind == "number" else (), 0, starts)


def _shortest(low: float, high: float, kind: str) -> float:
    """The number with the fewest digits that is above ``low`` and at most ``high``."""
    if kind == "date" or not np.isfinite(low) or not np.isfinite(high):
        return high
    for digits in range(1, 17):
        short = float(f"{high:.{digits}g}")
        if low < short <= high:
            return short
    return high


def _categories(name: str, read: Subgroups) -> Feature | str:
    """A code for each value, or for each of the most frequent ones; or a reason to leave the feature out."""
    values, number = read.values, np.bincount(read.codes, minlength=len(read.values))
    known = [i for i, value in enumerate(values) if value is not None]
    if not known:
        return "all values are missing"
    if len(values) == 1:
        return "it is constant"
    if len(known) > max(LEVELS, _NAMING * number[known].sum()) or len(known) == number[known].sum() > FINE:
        return "it identifies single rows: nearly all values are different"
    kept = known
    if len(known) > LEVELS:
        kept = sorted(sorted(known, key=lambda i: (-int(number[i]), i))[:LEVELS])
    codes = np.arange(len(kept))
    cuts = codes.astype(np.float64)
    return Feature(name, "category", cuts, tuple(values[i] for i in kept), len(known) - len(kept), codes)


def _key(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value


def _leaks(codes: AnyArray, happened: AnyArray) -> bool:
    """Whether every value has only one outcome, with enough rows per value that this is not chance."""
    positive = np.bincount(codes, happened, 256)
    rows = np.bincount(codes, minlength=256)
    both = min(positive.sum(), rows.sum() - positive.sum()) >= _LEAK
    pure = (positive == 0) | (positive == rows)
    return bool(both and pure.all() and (rows > 0).sum() * _LEAK <= rows.sum())
