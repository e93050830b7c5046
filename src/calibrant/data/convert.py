"""Convert containers to NumPy arrays: lists, data frames, torch tensors, DLPack. Checks only the type."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .libraries import library_of
from .types import AnyArray

_FRAME_MODULES = (
    "pandas",
    "polars",
    "pyarrow",
    "modin",
    "cudf",
    "duckdb",
    "dask",
    "pyspark",
    "ibis",
    "sqlframe",
    "narwhals",
)


def to_array(value: Any, name: str) -> tuple[AnyArray, tuple[str, ...] | None]:
    """Convert ``value`` to a NumPy array; also return the column names of a data frame.

    NumPy arrays are returned unchanged (no copy). A single column of lists of equal length K is read as K columns.
    Columns numbered 0, 1, … have no names. Lazy frames are an error: they have no rows yet.
    """
    if isinstance(value, np.ndarray):
        return _spread(np.asarray(value) if not np.ma.isMaskedArray(value) else _unmask(value, name), name), None
    if value is None or isinstance(value, (str, bytes, dict, set, frozenset)):
        raise TypeError(
            f"{name} must be an array, a list, a data-frame column or frame, or a tensor; got {_kind(value)}"
        )
    module = type(value).__module__.split(".")[0]
    if module in _FRAME_MODULES:
        return _from_frame(value, name)
    if module == "scipy" and hasattr(value, "toarray"):
        raise TypeError(f"{name} must be dense; got a sparse {type(value).__name__}: pass {name}.toarray()")
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        return _from_tensor(value, name), None
    if hasattr(value, "__array__") or isinstance(value, (Sequence, int, float, np.generic)):
        return _from_sequence(value, name), None
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name), None
    raise TypeError(f"{name} must be an array, a list, a data-frame column or frame, or a tensor; got {_kind(value)}")


def check_same_order(**columns: Any) -> None:
    """ValueError if pandas columns have the same index in different orders: rows are matched by position."""
    indexed = [(name, v.index) for name, v in columns.items() if hasattr(getattr(v, "index", None), "equals")]
    for name, index in indexed[1:]:
        first, other = indexed[0]
        if len(index) != len(other) or index.equals(other):
            continue
        if _same_labels(index, other):
            raise ValueError(
                f"{first} and {name} have the same index in different orders, and rows are matched by position: pass "
                f"{name}.loc[{first}.index] if they belong together by index, or both with .to_numpy() if by position"
            )


def _same_labels(one: Any, two: Any) -> bool:
    try:
        return bool(one.is_unique and set(one) == set(two))
    except TypeError:  # labels that cannot be hashed
        return False


def models_of_frame(value: Any) -> Any:
    """Columns of a data frame in memory by name; any other value unchanged."""
    if library_of(value) is None or not hasattr(value, "columns"):
        return value
    import narwhals as nw

    frame = nw.from_native(value, eager_only=True)
    return {name: frame[name].to_native() for name in frame.columns}


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _unmask(value: Any, name: str) -> AnyArray:
    if np.ma.getmaskarray(value).any():
        row = int(np.argwhere(np.ma.getmaskarray(value))[0][0])
        raise ValueError(f"{name} must have no missing values; row {row} is masked")
    return np.asarray(value.data)


def _from_tensor(value: Any, name: str) -> AnyArray:
    """Convert a torch tensor, also on a GPU, requiring grad, or in a dtype that NumPy lacks (bfloat16)."""
    kind = "quantised" if getattr(value, "is_quantized", False) else str(getattr(value, "layout", "")).split(".")[-1]
    if kind.startswith(("sparse", "quantised")):
        method = "dequantize" if kind == "quantised" else "to_dense"
        raise TypeError(f"{name} must be a dense tensor; got a {kind} one: pass {name}.{method}()")
    if getattr(value, "is_meta", False):
        raise TypeError(f"{name} must hold numbers; got a tensor on the device 'meta', which has none")
    value = value.detach().cpu()
    if str(getattr(value, "dtype", "")).endswith("bfloat16"):
        value = value.float()
    return np.asarray(value)


def _from_sequence(value: Any, name: str) -> AnyArray:
    try:
        array = np.asarray(value)
    except Exception as error:  # of the object's own conversion, whatever it raises
        if not isinstance(value, Sequence):  # such as an array that lives on a GPU
            return _from_dlpack(value, name, error)
        raise ValueError(f"{name} must be a regular array; the rows differ in length or kind ({error})") from error
    if array.dtype.kind in "US" and not isinstance(value, np.generic) and isinstance(value, (list, tuple)):
        # NumPy turns [1, "a"] into strings: keep the mixture visible, so that it can be refused.
        flat = value if not value or not isinstance(value[0], (list, tuple)) else [v for row in value for v in row]
        if not all(isinstance(v, (str, bytes, np.str_)) for v in flat):
            return np.asarray(value, dtype=object)
    return array


def _from_dlpack(value: Any, name: str, cause: Exception | None = None) -> AnyArray:
    """Convert an array that supports DLPack, moved to the CPU if possible."""
    for options in ({}, {"device": "cpu"}):
        try:
            return np.from_dlpack(value, **options)  # type: ignore[arg-type]  # (NumPy types each keyword apart)
        except Exception as error:
            cause = cause or error
    raise TypeError(f"{name} must be readable by NumPy; {_kind(value)} is not: {cause}") from cause


def _from_frame(value: Any, name: str) -> tuple[AnyArray, tuple[str, ...] | None]:
    import narwhals as nw

    if "pyarrow" in sys.modules:
        import pyarrow as pa

        if isinstance(value, pa.Array):
            value = pa.chunked_array([value])
    try:
        native = nw.from_native(value, allow_series=True)
    except nw.exceptions.NarwhalsError as error:
        raise ValueError(f"{name} must have columns of different names: {' '.join(str(error).split())}") from error
    except TypeError as error:
        if hasattr(value, "__array__"):  # pandas.Categorical, pandas.Index and the like
            return np.asarray(value), None
        raise TypeError(f"{name}: {_kind(value)} is not a column or frame that can be read") from error
    if isinstance(native, nw.LazyFrame):
        raise TypeError(
            f"{name} is a lazy frame ({_kind(value)}): collect it first, or add it in chunks to a calibrant.Accumulator"
        )
    if isinstance(native, nw.Series):
        return _column(native, name), None
    try:
        columns = list(native.columns)
    except nw.exceptions.NarwhalsError as error:
        raise ValueError(f"{name} must have columns of different names: {' '.join(str(error).split())}") from error
    if not columns:
        raise ValueError(f"{name} must have at least one column; the frame has none")
    values = [_column(v, f"{name}[{c!r}]") for c, v in zip(native.columns, native.iter_columns(), strict=True)]
    if len(values) == 1 and values[0].ndim > 1:
        return values[0], None
    if lists := [c for c, v in zip(columns, values, strict=True) if v.ndim > 1]:
        raise TypeError(f"{name}[{lists[0]!r}] must hold one value per row; it holds lists: pass only this column")
    # The numbers 0, 1, … are what a frame calls columns that nobody named.
    unnamed = columns == list(range(len(columns))) and not any(isinstance(c, bool) for c in columns)
    return np.column_stack(values), None if unnamed else tuple(str(c) for c in columns)


def _column(series: Any, name: str) -> AnyArray:
    import narwhals as nw

    if series.null_count():
        row = int(np.argmax(series.is_null().to_numpy()))
        raise ValueError(f"{name} must have no missing values; row {row} is null")
    kind = series.dtype
    if isinstance(kind, (nw.List, nw.Array)):
        inner: Any = kind
        while isinstance(inner, (nw.List, nw.Array)):
            inner = inner.inner
        try:
            lists = series.to_list()
        except OverflowError as error:
            raise ValueError(f"{name} must hold times in the years 1 to 9999") from error
        return _rows(lists, name, np.float32 if inner == nw.Float32 else None)
    if kind.is_nested():
        raise TypeError(f"{name} must hold one value per row; it holds {kind}: pass a frame or a 2-D array")
    return _spread(values_of(series), name)


def values_of(series: Any) -> AnyArray:
    """Values of a column as an array; NumPy has no 128-bit integers."""
    return np.asarray(series.to_list() if "128" in str(series.dtype) else series.to_numpy())


def _spread(array: AnyArray, name: str) -> AnyArray:
    """Expand objects that are lists of equal length to columns; any other array is unchanged."""
    if array.dtype.kind != "O" or array.ndim != 1 or not array.size:
        return array
    return _rows(array.tolist(), name) if isinstance(array[0], (list, tuple, np.ndarray)) else array


def _rows(lists: list[Any], name: str, dtype: Any = None) -> AnyArray:
    """Array (n, K) of lists of equal length."""
    sizes = [len(one) if hasattr(one, "__len__") else -1 for one in lists]
    if other := next((row for row, size in enumerate(sizes) if size != sizes[0]), 0):
        length = "not a list" if sizes[other] < 0 else f"of length {sizes[other]}"
        raise ValueError(
            f"{name} must hold lists of one length; row 0 is of length {sizes[0]}, row {other} is {length}"
        )
    array = _from_sequence(lists, name)
    if array.dtype.kind == "O" and (missing := np.argwhere(np.equal(array, None))).size:  # type: ignore[call-overload]  # of an object array, and None
        raise ValueError(f"{name} must have no missing values; row {missing[0][0]} has a null in its list")
    return array if dtype is None else array.astype(dtype)
