"""Assignment of rows to subgroups: columns of any kind, with missing values in their own subgroup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ...data.checks import received
from ...data.columns import check_distinct
from ...data.convert import to_array
from ...data.labels import _plain, _sort_key, is_missing
from ...data.types import AnyArray, Label
from .result import UNNAMED

#: Separates the values of an intersection, and the names of its columns.
_BOTH = " and "
MISSING, EMPTY = "(missing)", "(empty)"
#: Values up to which a column may have nearly as many values as rows.
_FEW_VALUES = 50
#: Rows read at a time.
_TILE = 1 << 16


@dataclass(frozen=True, eq=False)
class Subgroups:
    """One column of subgroups.

    Attributes
    ----------
    name : str
    codes : ndarray of shape (n,)
        Index of each row's subgroup.
    values : tuple
        Values of the subgroups, sorted; None last, for rows without one.
    """

    name: str
    codes: AnyArray
    values: tuple[Label, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the subgroups."""
        return names_of(self.values)


def names_of(values: Sequence[Label]) -> tuple[str, ...]:
    """Names of the values of subgroups; equal texts are followed by the type of the value."""
    texts = [MISSING if v is None else str(v) or EMPTY for v in values]
    number = Counter(texts)
    return tuple(
        f"{t} ({type(v).__name__})" if number[t] > 1 and v is not None and str(v) else t
        for t, v in zip(texts, values, strict=True)
    )


def read_subgroups(by: Any, n_rows: int, *, few: bool = False) -> list[Subgroups]:
    """Check and read the ``by`` argument; ``few`` refuses columns with nearly as many values as rows."""
    columns = named_columns(by)
    if not columns:
        raise ValueError("by must have at least one column; got none")
    found = []
    for name, column in columns:
        shown = "by" if len(columns) == 1 else f"by[{name!r}]"
        read = subgroups_of(name, check_column(column, shown, n_rows), shown)
        if few and len(read.values) > max(_FEW_VALUES, n_rows / 2):
            which = "it" if name == UNNAMED else f"column {name!r}"
            raise ValueError(
                f"by must have few values, of many rows each; {which} has {len(read.values):,} values in {n_rows:,} "
                "rows: cut numbers into ranges first, as with pandas.cut, or search them with find_segments"
            )
        found.append(read)
    return found


def intersections_of(columns: Sequence[Subgroups], most: int) -> list[Subgroups]:
    """Subgroups of rows that share the values of two columns, or of up to ``most``; only those with rows."""
    out = []
    for number in range(2, most + 1):
        for some in combinations(columns, number):
            codes, names = some[0].codes, some[0].names
            for one in some[1:]:
                used, codes = np.unique(codes * len(one.values) + one.codes, return_inverse=True)
                pairs = zip(*(v.tolist() for v in np.divmod(used, len(one.values))), strict=True)
                names = tuple(f"{names[i]}{_BOTH}{one.names[j]}" for i, j in pairs)
            out.append(Subgroups(_BOTH.join(one.name for one in some), codes, names))
    return out


def check_column(column: Any, shown: str, n_rows: int | None = None) -> Any:
    """Check a column: one value per row."""
    if isinstance(column, memoryview) or (not hasattr(column, "__getitem__") and hasattr(column, "__array__")):
        column, _ = to_array(column, shown)
    if isinstance(column, (str, bytes)) or not _has_length(column) or not hasattr(column, "__getitem__"):
        raise TypeError(f"{shown} must be a column with one value per row; got {received(column)}")
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise ValueError(f"{shown} must be 1-D; got shape {column.shape}")
    if n_rows is not None and len(column) != n_rows:
        raise ValueError(f"{shown} must have one value per row ({n_rows}); got {len(column)}")
    return column


def named_columns(by: Any, argument: str = "by", unnamed: str = UNNAMED) -> list[tuple[str, Any]]:
    """Names and columns of a mapping, a frame, a matrix, a list of columns, or a single column."""
    if by is None or isinstance(by, (str, bytes)):
        raise TypeError(f"{argument} must be a column, several of them, a mapping or a data frame; got {received(by)}")
    if hasattr(by, "detach"):
        by, _ = to_array(by, argument)
    if isinstance(by, Mapping):
        return [(str(name), column) for name, column in by.items()]
    frame = _frame_of(by, argument)
    if frame is not None:
        return [(str(name), column) for name, column in zip(frame.columns, frame.iter_columns(), strict=True)]
    if isinstance(by, np.ndarray) and by.ndim == 2:
        return [(f"column {i}", by[:, i]) for i in range(by.shape[1])]
    if isinstance(by, (list, tuple)) and by and all(_is_column(v) for v in by):
        return [(str(getattr(v, "name", None) or f"column {i}"), v) for i, v in enumerate(by)]
    return [(str(getattr(by, "name", None) or unnamed), by)]


def _has_length(column: Any) -> bool:
    try:
        return len(column) >= 0
    except TypeError:  # of a sparse matrix too, which has one that it does not tell
        return False


def _is_column(value: Any) -> bool:
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__len__") or hasattr(value, "__array__")):
        return False
    try:
        return hasattr(value, "to_list") or np.ndim(value) > 0
    except Exception:  # of the object's own conversion, whatever it raises: the refusal is that of a column
        return True


def _frame_of(by: Any, argument: str) -> Any:
    """A narwhals frame of a data frame; None for anything else."""
    kind = type(by)  # asked of the class: a lazy frame would have to be read to tell its columns
    if isinstance(by, (np.ndarray, list, tuple)) or not (hasattr(kind, "columns") or hasattr(kind, "column_names")):
        return None
    import narwhals as nw

    if hasattr(by, "iloc"):  # pandas, which allows it
        check_distinct(argument, list(map(str, by.columns)))
    frame = nw.from_native(by, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"{argument} is a lazy frame: collect it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def _tiles(column: Any, shown: str) -> Iterator[AnyArray]:
    """A column as arrays of some rows each; of objects where NumPy's own types could hide missing values."""
    if hasattr(column, "detach"):
        column, _ = to_array(column, shown)
    if isinstance(column, np.ndarray):
        # As a list, times finer than microseconds are whole numbers.
        fine = column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] in ("ns", "ps", "fs", "as")
        for start in range(0, len(column), _TILE):
            values: AnyArray = column[start : start + _TILE]
            yield values.astype("M8[us]") if fine else values if values.dtype.kind in "iubUSfmM" else values.astype("O")
        return
    by_place = getattr(column, "iloc", column)  # a Series may be indexed by anything
    for start in range(0, len(column), _TILE):
        some = by_place[start : start + _TILE]
        listed = next((getattr(some, f)() for f in ("tolist", "to_list", "to_pylist") if hasattr(some, f)), some)
        values = np.empty(len(listed), dtype=object)
        values[:] = listed
        if values.ndim != 1:
            raise ValueError(f"{shown} must be 1-D; got shape {values.shape}")
        yield values


class _Seen:
    """Subgroups seen so far, numbered in order of appearance."""

    def __init__(self, shown: str) -> None:
        self.places: dict[Any, int] = {}
        self._shown = shown
        self._known: AnyArray | None = None

    def codes(self, values: AnyArray) -> AnyArray:
        """Number of each value's subgroup."""
        if values.dtype.kind == "O":
            return self._of_objects(values)
        # Looked up among sorted values that were met: rows are not sorted, and few are looked at one by one.
        if self._known is not None:
            at = np.minimum(np.searchsorted(self._known, values), self._known.size - 1)
            new = values[self._known[at] != values]
        else:
            at, new = None, values
        if new.size:
            self._known = np.unique(new if self._known is None else np.concatenate([self._known, np.unique(new)]))
            at = np.searchsorted(self._known, values)
            self._numbers = np.array([self._number(v) for v in self._known.tolist()])
        return np.asarray(self._numbers[at])

    def _of_objects(self, values: AnyArray) -> AnyArray:
        listed = values.tolist()
        try:
            keys = list(zip(map(type, listed), listed, strict=True))
            numbers = {key: self._number(key[1]) for key in set(keys)}
        except TypeError as error:
            raise TypeError(f"{self._shown} must hold values that can name a subgroup; {error}") from None
        return np.fromiter(map(numbers.__getitem__, keys), np.intp, len(keys))

    def _number(self, value: Any) -> int:
        key = None if is_missing(value) else _plain(value)
        return self.places.setdefault((type(key).__name__, key), len(self.places))


def subgroups_of(name: str, column: Any, shown: str) -> Subgroups:
    """The subgroups of a column."""
    seen = _Seen(shown)
    codes = np.concatenate([seen.codes(values) for values in _tiles(column, shown)])
    try:
        known = sorted((k for k in seen.places if k[1] is not None), key=lambda k: _sort_key(k[1]))
    except TypeError as error:
        raise TypeError(f"{shown} must hold values that can name a subgroup; {error}") from None
    order = [*known, *(k for k in seen.places if k[1] is None)]
    rank = np.empty(len(order), dtype=np.intp)
    rank[[seen.places[k] for k in order]] = np.arange(len(order))
    return Subgroups(name, rank[codes], tuple(k[1] for k in order))
