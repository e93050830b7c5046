"""Which rows belong to which group: columns of any kind, with what is missing in a group of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._labels import _missing, _plain, _sort_key
from .._types import AnyArray, Label

MISSING, EMPTY = "(missing)", "(empty)"
#: Groups in a column beyond which it is no column of groups.
MOST_GROUPS = 200


@dataclass(frozen=True, eq=False)
class Groups:
    """One column of groups.

    Attributes
    ----------
    name : str
    codes : ndarray of shape (n,)
        Index of each row's group.
    values : tuple
        Of the groups, sorted; None last for rows without one.
    """

    name: str
    codes: AnyArray
    values: tuple[Label, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the groups, as text; those that would read alike with their kind."""
        texts = [MISSING if v is None else str(v) or EMPTY for v in self.values]
        return tuple(
            f"{t} ({type(v).__name__})" if texts.count(t) > 1 and v is not None and str(v) else t
            for t, v in zip(texts, self.values, strict=True)
        )


def read_groups(by: Any, n_rows: int) -> list[Groups]:
    """Judge the ``by`` argument."""
    columns = _columns(by)
    if not columns:
        raise ValueError("by must hold at least one column; got none")
    found = []
    for name, column in columns:
        shown = "by" if len(columns) == 1 else f"by[{name!r}]"
        values = _objects(column, shown)
        if len(values) != n_rows:
            raise ValueError(f"{shown} must have one value a row ({n_rows}); got {len(values)}")
        found.append(_grouped(name, values, shown))
    return found


def _columns(by: Any) -> list[tuple[str, Any]]:
    """Names and columns of a mapping, a frame, a matrix, a list of columns, or a single column."""
    if by is None or isinstance(by, (str, bytes)):
        raise TypeError(f"by must be a column, several of them, a mapping or a data frame; got {by!r}")
    if isinstance(by, Mapping):
        return [(str(name), column) for name, column in by.items()]
    frame = _frame_of(by)
    if frame is not None:
        return [(str(name), column) for name, column in zip(frame.columns, frame.iter_columns(), strict=True)]
    if isinstance(by, np.ndarray) and by.ndim == 2:
        return [(f"column {i}", by[:, i]) for i in range(by.shape[1])]
    if isinstance(by, (list, tuple)) and by and all(_is_column(v) for v in by):
        return [(str(getattr(v, "name", None) or f"column {i}"), v) for i, v in enumerate(by)]
    return [(str(getattr(by, "name", None) or "group"), by)]


def _is_column(value: Any) -> bool:
    return (
        not isinstance(value, (str, bytes))
        and (hasattr(value, "__len__") or hasattr(value, "__array__"))
        and (np.ndim(value) > 0 if not hasattr(value, "to_list") else True)
    )


def _frame_of(by: Any) -> Any:
    """A frame as narwhals reads it; None for anything else."""
    kind = type(by)  # asked of the class: a lazy frame would have to be read to tell its columns
    if isinstance(by, (np.ndarray, list, tuple)) or not (hasattr(kind, "columns") or hasattr(kind, "column_names")):
        return None
    import narwhals as nw

    frame = nw.from_native(by, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("by is a lazy frame: collect it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def _objects(column: Any, shown: str) -> AnyArray:
    """A column as an array; of objects where NumPy's own kinds could hide what is missing."""
    if isinstance(column, np.ndarray):
        # As a list, times finer than microseconds are whole numbers.
        fine = column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] in ("ns", "ps", "fs", "as")
        values: AnyArray = column.astype("M8[us]") if fine else column
    else:
        if isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
            raise TypeError(f"{shown} must be a column of values, one a row; got {column!r}")
        listed = next((getattr(column, f)() for f in ("to_list", "to_pylist", "tolist") if hasattr(column, f)), column)
        values = np.empty(len(listed), dtype=object)
        values[:] = listed
    if values.ndim != 1:
        raise ValueError(f"{shown} must be 1-D; got shape {values.shape}")
    return values


def _grouped(name: str, values: AnyArray, shown: str) -> Groups:
    if values.dtype.kind in "iubUS":
        distinct, codes = np.unique(values, return_inverse=True)
        groups = [_plain(v) for v in distinct[: MOST_GROUPS + 1]]
    else:
        places: dict[Any, int] = {}
        keys = [None if _missing(v) else _plain(v) for v in values.tolist()]
        try:
            first = np.array([places.setdefault((type(k).__name__, k), len(places)) for k in keys], dtype=np.intp)
            known = sorted((k for k in places if k[1] is not None), key=lambda k: _sort_key(k[1]))
        except TypeError as error:
            raise TypeError(f"{shown} must hold values that can name a group; {error}") from None
        order = [*known, *(k for k in places if k[1] is None)]
        rank = np.empty(len(places), dtype=np.intp)
        rank[[places[k] for k in order]] = np.arange(len(order))
        codes, groups = rank[first], [k[1] for k in order]
    if len(groups) > MOST_GROUPS:
        raise ValueError(
            f"{shown} has more than {MOST_GROUPS} different values: cut a number, such as an age, into ranges first"
        )
    return Groups(name, codes.reshape(-1), tuple(groups))
