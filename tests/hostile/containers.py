"""Containers of rows, by the argument that they are given for, and what reads them."""

from __future__ import annotations

import re
import tempfile
import warnings
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_array
from sklearn.exceptions import DataConversionWarning

import calibrant as cal
from calibrant import calibrators as c

from ..versions import NUMPY

try:
    import torch
except ImportError:
    torch = None

N = 120
_FOLDER = tempfile.TemporaryDirectory()
RNG = np.random.default_rng(7)
#: Multiples of 1/64: every dtype, Decimals among them, holds them exactly, and so do the cells of sums.
P = RNG.integers(1, 64, N) / 64
Y = (RNG.random(N) < P).astype(np.int64)
TEXT = np.array(["no", "yes"])[Y]
CUTS = np.sort(RNG.choice(63, (N, 2)) + 1, axis=1)
CUTS[:, 1] += CUTS[:, 0] == CUTS[:, 1]
MATRIX = np.column_stack([CUTS[:, 0], CUTS[:, 1] - CUTS[:, 0], 64 - CUTS[:, 1]]) / 64
CODES = (MATRIX.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1)
WEIGHTS = RNG.integers(1, 5, N) / 2
GROUPS = np.arange(N) // 4
PLAIN = {"labels": Y, "text": TEXT, "scores": P, "matrix": MATRIX, "weights": WEIGHTS, "groups": GROUPS}


@dataclass(frozen=True)
class Container:
    """How an argument is given: ``make`` takes its values; and whether it is read, or refused everywhere.

    ``alone`` is false where scores without labels show nothing wrong, or nothing that a fit to others could use;
    ``alike`` where calibrators refuse in words of their own.
    """

    make: Callable[[Any], Any]
    read: bool = True
    alone: bool = True
    alike: bool = True


def no(make: Callable[[Any], Any], **how: bool) -> Container:
    return Container(make, False, **how)


def on_disk(v: Any) -> Any:
    out = np.memmap(Path(_FOLDER.name) / f"{v.dtype}-{v.ndim}", dtype=v.dtype, shape=v.shape, mode="w+")
    out[:] = v
    return out


def one_of(v: Any, value: Any, dtype: Any = object) -> Any:
    out = np.array(v, dtype=dtype)
    out[len(out) // 2] = value
    return out


def masked(v: Any) -> Any:
    out = np.ma.array(v)
    out[5] = np.ma.masked
    return out


def objects(rows: Any) -> Any:
    out = np.empty(len(rows), dtype=object)
    out[:] = list(rows)
    return out


def read_only(v: Any) -> Any:
    out = v.copy()
    out.flags.writeable = False
    return out


class ArrayOnly:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


#: Of any argument.
ANY = {
    "array": Container(np.array),
    "list": Container(lambda v: v.tolist()),
    "tuple": Container(lambda v: tuple(map(tuple, v.tolist())) if v.ndim > 1 else tuple(v.tolist())),
    "list of NumPy's": Container(list),
    "objects": Container(lambda v: v.astype(object)),
    "masked, none is": Container(np.ma.array),
    "memory map": Container(lambda v: on_disk(v)),
    "reversed view": Container(lambda v: v[::-1].copy()[::-1]),
    "Fortran order": Container(np.asfortranarray),
    "read-only": Container(read_only),
    "subclass": Container(lambda v: v.view(type("Sub", (np.ndarray,), {}))),
    "__array__": Container(ArrayOnly),
    "pandas frame": Container(lambda v: pd.DataFrame(v)),
    "polars frame": Container(lambda v: pl.DataFrame(v)),
    "pyarrow table": Container(lambda v: pl.DataFrame(v).to_arrow()),
    "masked": no(lambda v: masked(v)),
    "masked objects": no(lambda v: masked(v.astype(object))),
    "a number": no(lambda v: 1),
    "0-d": no(lambda v: np.array(v.flat[0])),
    "empty": no(lambda v: v[:0]),
    "empty list": no(lambda v: []),
    "short": no(lambda v: v[:-1], alone=False),
    "3-D": no(lambda v: v.reshape(N, -1, 1)),
    "a word": no(lambda v: "word"),
    "bytes": no(lambda v: b"word"),
    "mapping": no(lambda v: {"a": 1}),
    "set": no(lambda v: {1, 2}),
    "generator": no(lambda v: (x for x in v)),
    "object": no(lambda v: object()),
    "ragged": no(lambda v: [[1], [1, 2]] * (N // 2)),
    "ragged lists": no(lambda v: pl.Series([[0.5, 0.5], [1.0]] * (N // 2))),
    "lists with a null": no(lambda v: pl.Series([[0.5, 0.5], [1.0, None]] * (N // 2))),
    "list missing": no(lambda v: pl.Series([[0.5, 0.5], None] * (N // 2))),
    "struct": no(lambda v: pl.Series([{"a": 1, "b": 2}] * N)),
    "lazy frame": no(lambda v: pl.LazyFrame({"v": [1]})),
    "frame without columns": no(lambda v: pd.DataFrame(index=range(N))),
    "lists beside numbers": no(lambda v: pl.DataFrame({"a": [[0.5, 0.5]] * N, "b": [0.5] * N})),
    "a null": no(lambda v: pl.Series(one_of(v[..., 0] if v.ndim > 1 else v, None).tolist())),
    "None": no(lambda v: one_of(v, None)),
    "pandas.NA": no(lambda v: one_of(v, pd.NA)),
    "a NaN among objects": no(lambda v: one_of(v, np.nan)),
}  # fmt: skip
#: Of arguments with one value a row, in columns.
COLUMN = {
    "column": Container(lambda v: v[:, None]),
    "list column of one": Container(lambda v: pl.Series([[x] for x in v.tolist()])),
    "pandas": Container(pd.Series),
    "pandas, odd index": Container(lambda v: pd.Series(v, index=[9] * N)),
    "pandas objects": Container(lambda v: pd.Series(v).astype(object)),
    "pandas nullable": Container(lambda v: pd.Series(v).convert_dtypes()),
    "pandas arrow": Container(lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow")),
    "pandas array": Container(lambda v: pd.array(v)),
    "pandas index": Container(pd.Index),
    "polars": Container(lambda v: pl.Series(v.tolist())),
    "pyarrow": Container(lambda v: pa.array(v.tolist())),
    "pyarrow chunks": Container(lambda v: pa.chunked_array([v[:7].tolist(), v[7:].tolist()])),
    "pyarrow dictionary": Container(lambda v: pa.array(v.tolist()).dictionary_encode()),
    "pandas nullable, missing": no(lambda v: pd.Series(one_of(v, None)).convert_dtypes()),
    "pandas, missing": no(lambda v: pd.Series(one_of(v, None))),
    "pyarrow, missing": no(lambda v: pa.array(one_of(v, None).tolist())),
}
NUMBERS = {
    "other bytes": Container(lambda v: v.astype(v.dtype.newbyteorder(">"))),
    "array module": Container(lambda v: array(v.dtype.char, v.tolist())),
    "memoryview": Container(lambda v: memoryview(v.copy())),
    "float16": Container(lambda v: v.astype(np.float16)),
    "float32": Container(lambda v: v.astype(np.float32)),
    "longdouble": Container(lambda v: v.astype(np.longdouble)),
    "polars float32": Container(lambda v: pl.Series(v.astype(np.float32))),
    "a NaN": no(lambda v: one_of(v, np.nan, float)),
    "infinite": no(lambda v: one_of(v, np.inf, float)),
    "complex": no(lambda v: v + 0j),
    "dates": no(lambda v: np.array(["2020-01-01"] * N, dtype="datetime64[D]")),
    "sparse": no(lambda v: csr_array(v.reshape(N, -1))),
    "structured": no(lambda v: np.array([(1, 2)] * N, dtype=[("a", int), ("b", int)])),
}
TORCH = {} if torch is None else {
    "tensor": Container(lambda v: torch.tensor(v)),
    "tensor with a gradient": Container(lambda v: torch.tensor(v.astype(float), requires_grad=True)),
    "bfloat16": Container(lambda v: torch.tensor(v.astype(float)).to(torch.bfloat16)),
    "sparse tensor": no(lambda v: torch.tensor(v).to_sparse()),
    "meta tensor": no(lambda v: torch.tensor(v).to("meta")),
}  # fmt: skip
AS_TEXT = {
    "numbers as text": no(lambda v: v.astype(str)),
    "numbers as text objects": no(lambda v: v.astype(str).astype(object)),
    "numbers as text in polars": no(lambda v: pl.Series(v.ravel().astype(str)[:N])),
    "numbers as text in pandas": no(lambda v: pd.Series(v.ravel().astype(str)[:N])),
    "categories of text": no(lambda v: pd.Series(v.ravel().astype(str)[:N], dtype="category")),
}
INTEGERS = {
    f"{kind}": Container(lambda v, kind=kind: v.astype(kind))
    for kind in ("int8", "uint8", "int32", "uint64", "float64")
} | {
    "polars Int128": Container(lambda v: pl.Series(v).cast(pl.Int128)),
    "polars UInt128": Container(lambda v: pl.Series(v).cast(pl.UInt128)),
    "polars Int8": Container(lambda v: pl.Series(v).cast(pl.Int8)),
    "pandas categories": Container(lambda v: pd.Series(v, dtype="category")),
    "pandas.Categorical": Container(lambda v: pd.Categorical(v)),
    "pandas Int8": Container(lambda v: pd.Series(v, dtype="Int8")),
}
REAL = {
    "polars Decimal": Container(lambda v: pl.Series(v).cast(pl.Decimal(20, 10))),
    "pyarrow Decimal": Container(lambda v: pa.array(v.tolist()).cast(pa.decimal128(20, 10))),
}
LISTS = {
    "polars List": Container(lambda v: pl.Series(v.tolist())),
    "polars List of float32": Container(lambda v: pl.Series(v.tolist(), dtype=pl.List(pl.Float32))),
    "polars Array": Container(lambda v: pl.Series(v.tolist(), dtype=pl.Array(pl.Float64, 3))),
    "polars frame of lists": Container(lambda v: pl.DataFrame({"p": v.tolist()})),
    "pyarrow list": Container(lambda v: pa.array(v.tolist())),
    "pyarrow large list": Container(lambda v: pa.array(v.tolist(), pa.large_list(pa.float32()))),
    "pyarrow fixed-size list": Container(lambda v: pa.array(v.tolist(), pa.list_(pa.float64(), 3))),
    "pyarrow chunks of lists": Container(lambda v: pa.chunked_array([v[:7].tolist(), v[7:].tolist()])),
    "pyarrow table of lists": Container(lambda v: pa.table({"p": pa.array(v.tolist())})),
    "pandas arrow lists": Container(lambda v: pd.Series(v.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float64())))),
    "pandas lists": Container(lambda v: pd.Series(v.tolist())),
    "pandas arrays": Container(lambda v: pd.Series(list(v))),
    "pandas frame of arrays": Container(lambda v: pd.DataFrame({"p": list(v)})),
    "objects that are lists": Container(lambda v: objects(v.tolist())),
    "lists of lists": no(lambda v: pl.Series([[[x] for x in row] for row in v.tolist()])),
    "ragged objects": no(lambda v: objects([[0.5, 0.5], [1.0]] * (N // 2))),
    "a number among lists": no(lambda v: objects([[0.5, 0.5], 1.0] * (N // 2))),
}
WORDS = {
    "NumPy's bytes": Container(lambda v: v.astype("S")),
    "pandas string": Container(lambda v: pd.Series(v, dtype="string")),
    "pandas arrow string": Container(lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.string()))),
    "pandas categories": Container(lambda v: pd.Series(v, dtype="category")),
    "pandas.Categorical": Container(lambda v: pd.Categorical(v, categories=["yes", "other", "no"])),
    "polars Categorical": Container(lambda v: pl.Series(v, dtype=pl.Categorical)),
    "polars Enum": Container(lambda v: pl.Series(v, dtype=pl.Enum(["yes", "no"]))),
    "pyarrow large string": Container(lambda v: pa.array(v.tolist(), pa.large_string())),
    "lone surrogate": no(lambda v: np.array(["no\ud800", "yes"])[Y]),
    "lone surrogate in a list": no(lambda v: np.array(["no\ud800", "yes"])[Y].tolist()),
    "lone surrogate among objects": no(lambda v: np.array(["no\udfff", "yes"])[Y].astype(object)),
    "lone surrogate in pandas": no(lambda v: pd.Series(np.array(["no\ud800", "yes"])[Y].tolist(), dtype=object)),
    "text and numbers": no(lambda v: one_of(v, 1)),
}
if NUMPY >= (2, 0):  # new there
    WORDS["StringDType"] = Container(lambda v: np.array(v, dtype=np.dtypes.StringDType()))
TABLE: dict[str, dict[str, Container]] = {
    "labels": ANY | COLUMN | NUMBERS | TORCH | INTEGERS | {
        "Booleans": Container(lambda v: v.astype(bool)),
        "list of Booleans": Container(lambda v: v.astype(bool).tolist()),
        "polars Booleans": Container(lambda v: pl.Series(v.astype(bool))),
        "pandas Booleans": Container(lambda v: pd.Series(v.astype(bool), dtype="boolean")),
        "one-hot": Container(lambda v: np.eye(2, dtype=int)[v]),
        "one-hot lists": Container(lambda v: pl.Series(np.eye(2, dtype=int)[v].tolist())),
        "polars Decimal": no(lambda v: pl.Series(v).cast(pl.Decimal(20, 0))),
        "halves": no(lambda v: v + 0.5),
        "three labels": no(lambda v: np.arange(N) % 3, alike=False),
        "beyond floats": no(lambda v: v * 1e300),
        "two columns": no(lambda v: np.column_stack([v, v])),
    },
    "text": ANY | COLUMN | WORDS,
    "scores": ANY | COLUMN | NUMBERS | TORCH | AS_TEXT | REAL | {
        "percentages": no(lambda v: 100 * v),
        "below": no(lambda v: one_of(v, -1e-7, float)),
        "above": no(lambda v: one_of(v, 1 + 1e-7, float)),
        "above by rounding": Container(lambda v: v + 1e-17),
        "no columns": no(lambda v: np.empty((N, 0))),
        "columns that do not sum to 1": no(lambda v: np.column_stack([v, v]), alone=False),
    },
    "matrix": {k: v for k, v in (ANY | NUMBERS | TORCH | LISTS | AS_TEXT).items() if k != "array module"} | {
        "named frame": Container(lambda v: pd.DataFrame(v, columns=["p_0", "p_1", "p_2"])),
        "nullable frame": Container(lambda v: pd.DataFrame(v).convert_dtypes()),
        "arrow frame": Container(lambda v: pd.DataFrame(v).convert_dtypes(dtype_backend="pyarrow")),
        "frame with a null": no(lambda v: pl.DataFrame(v).with_columns(column_1=pl.lit(None, pl.Float64))),
        "names doubled": no(lambda v: pd.DataFrame(v, columns=["a", "b", "a"])),
        "no columns": no(lambda v: np.empty((N, 0))),
        "rows that do not sum to 1": no(lambda v: v / 2),
    },
    "weights": ANY | COLUMN | NUMBERS | TORCH | AS_TEXT | REAL | {
        "negative": no(lambda v: -v),
        "zeros": no(lambda v: 0 * v),
        "overflowing": no(lambda v: 1e300 * v),
        "two columns": no(lambda v: np.column_stack([v, v])),
    },
    "groups": ANY | COLUMN | INTEGERS | {
        "text": Container(lambda v: v.astype(str)),
        "bytes": Container(lambda v: v.astype("S")),
        "dates": Container(lambda v: np.datetime64("2020-01-01") + v.astype("m8[D]")),
        "polars Categorical": Container(lambda v: pl.Series(v.astype(str), dtype=pl.Categorical)),
        "a NaN": no(lambda v: one_of(v, np.nan, float)),
        "NaT": no(lambda v: one_of(v.astype("M8[D]"), np.datetime64("NaT", "D"), "M8[D]")),
        "one group": no(lambda v: 0 * v),
        "two columns": no(lambda v: np.column_stack([v, v])),
    },
}  # fmt: skip
CASES = [(role, name) for role, rows in TABLE.items() for name in rows]

#: What each argument is called, in measures and sums, in calibrators, and of frames.
CALLED = {
    "labels": ("y_true", "y", "label"),
    "text": ("y_true", "y", "label"),
    "scores": ("y_prob", "scores", "prob"),
    "matrix": ("y_prob", "scores", "prob"),
    "weights": ("sample_weight", "sample_weight", "weight"),
    "groups": ("groups", "groups", "groups"),
}
#: Columns of frames.
COLUMNS = {"labels": "y", "text": "y", "scores": "p", "matrix": "p", "weights": "w", "groups": "g"}
#: Few resamples: intervals tell how groups were read.
FEW = {"n_resamples": 20, "random_state": 0}


def arguments(role: str, value: Any) -> tuple[Any, Any, Any, Any]:
    """Labels, scores, weights and groups, of which one is the container; the others are arrays."""
    y = value if role in ("labels", "text") else CODES if role == "matrix" else Y
    p = value if role in ("scores", "matrix") else P
    return y, p, value if role == "weights" else None, value if role == "groups" else None


def positive(role: str, name: str) -> dict[str, Any]:
    if role != "text":
        return {}
    return {"pos_label": b"yes" if name == "NumPy's bytes" else "yes"}


def notion(role: str) -> dict[str, Any]:
    return {"notion": "classwise"} if role == "matrix" else {}


def measured(role: str, name: str, value: Any) -> Any:
    y, p, w, g = arguments(role, value)
    found = cal.estimate(y, p, sample_weight=w, groups=g, **positive(role, name), **notion(role), **FEW)
    return [found.value, *found.interval]


def accumulated(role: str, name: str, value: Any) -> Any:
    y, p, w, g = arguments(role, value)
    labels = {"labels": [0, 1, 2]} if role == "matrix" else {}
    found = cal.Accumulator(**positive(role, name), **notion(role), **labels).update(y, p, w, g).estimate(**FEW)
    return [found.value, *found.interval]


def one_calibrator(role: str) -> Any:
    if role == "groups":
        return c.AutoCalibrator({"none": c.Identity(), "platt": c.PlattScaling(), "bins": c.HistogramBinning()}, cv=3)
    return c.OneVsRest(c.PlattScaling()) if role == "matrix" else c.PlattScaling()


def fitted(role: str, name: str, value: Any) -> Any:
    y, p, w, g = arguments(role, value)
    one = one_calibrator(role)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1-D scores are taken as those of label", cal.exceptions.LabelWarning)
        one = one.fit(p, y, sample_weight=w) if g is None else one.fit(p, y, groups=g)
    return in_order(one, p)


def predicted(role: str, name: str, value: Any) -> Any:
    y, _, _, _ = arguments(role, None)
    with warnings.catch_warnings():
        # scikit-learn's, of names of columns that the fit did not have.
        warnings.filterwarnings("ignore", "X has feature names", UserWarning)
        return in_order(one_calibrator(role).fit(PLAIN[role], y), value)


def in_order(one: Any, scores: Any) -> Any:
    return one.predict_proba(scores)[:, np.argsort(one.classes_)]


def as_frame(role: str, value: Any) -> Any:
    """A frame of the container's library that has it as a column, or its columns; None where it is in no library."""
    if len_of(value) != N:
        return None
    rest = {name: v for name, v in {"y": CODES if role == "matrix" else Y, "p": P}.items() if name != COLUMNS[role]}
    library = type(value).__module__.split(".")[0]
    if library not in ("pandas", "polars", "pyarrow"):
        return None
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library]
    if isinstance(value, (pd.DataFrame, pl.DataFrame, pa.Table)):
        names = [f"p_{i}" for i in range(value.shape[1])] if role == "matrix" else [COLUMNS[role]]
        if len(set(value.columns if library != "pyarrow" else value.column_names)) != len(names):
            return None
        columns = value.columns if library == "pyarrow" else [value[c] for c in value.columns]
        return make(dict(zip(names, columns, strict=True)) | rest)
    value = value.reset_index(drop=True) if isinstance(value, pd.Series) else value
    return make({COLUMNS[role]: value} | rest)


def in_engine(frame: Any, engine: str, spark: Any) -> Any:
    """A frame in memory as one of an engine, in several pieces where it has some."""
    table = pa.Table.from_pandas(frame, preserve_index=False) if isinstance(frame, pd.DataFrame) else frame
    table = table.to_arrow() if isinstance(table, pl.DataFrame) else table
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().from_arrow(table)
    if engine == "dask":
        import dask
        import dask.dataframe as dd

        dask.config.set({"dataframe.convert-string": False})  # which would make text of lists

        return dd.from_pandas(frame if isinstance(frame, pd.DataFrame) else table.to_pandas(), npartitions=3)
    return spark.createDataFrame(table).repartition(3)


def len_of(value: Any) -> int:
    try:
        return len(value)
    except TypeError:
        return -1


def framed(role: str, name: str, frame: Any) -> Any:
    """What an engine says of a frame."""
    names = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    prob: Any = [c for c in names if c.startswith("p_")] if role == "matrix" else []
    options = positive(role, name) | notion(role)
    for one in ("weights", "groups"):
        if role == one:
            options[CALLED[role][2]] = COLUMNS[role]
    found = cal.from_frame(frame, label="y", prob=prob or "p", **options).estimate(**FEW)
    return [found.value, *found.interval]


#: What reads a container, and which of the names of its argument it uses.
READERS: dict[str, tuple[Callable[[str, str, Any], Any], int]] = {
    "measure": (measured, 0),
    "sums": (accumulated, 0),
    "calibrator": (fitted, 1),
    "fitted calibrator": (predicted, 1),
}


def outcome(read: Callable[[str, str, Any], Any], role: str, name: str, value: Any, leaks: Any = "error") -> Any:
    """Numbers, or the error, by type and words; any other exception and any warning is one too many."""
    with warnings.catch_warnings():
        warnings.simplefilter(leaks)
        # What scikit-learn's own checks demand for an array with one column.
        warnings.simplefilter("ignore", DataConversionWarning if isinstance(value, np.ndarray) else EncodingWarning)
        try:
            return np.asarray(read(role, name, value), dtype=np.float64)
        except (ValueError, TypeError) as error:
            return type(error), str(error)


@cache
def wanted(reader: str, role: str) -> Any:
    """Numbers that a reader gives of plain arrays."""
    return outcome(READERS[reader][0], role, "array", PLAIN[role])


def words(said: str, own: int) -> str:
    """A refusal in the words of measures."""
    if own == 1:
        said = re.sub(r"\by\b", "y_true", re.sub(r"\bscores\b", "y_prob", said))
    return re.sub(r"; for y_prob of another kind.*", "", said)
