"""Rows: labels, scores, weights and groups of every shape, in every container, with up to three things wrong."""

from __future__ import annotations

import array
import datetime as dt
import enum
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from .drawing import Draw

Maker = Callable[[Any], Any]
#: Sizes of a case: few rows find what many find, and sooner.
SIZES = (1, 2, 3, 4, 5, 7, 12, 12, 20, 20, 30, 30, 30, 45, 60)
Fruit = enum.Enum("Fruit", [f"f{i}" for i in range(9)])


def _words(first: list[Any]) -> Callable[[int], list[Any]]:
    return lambda k: [*first, *(f"c{i}" for i in range(k))][:k]


#: Names of K classes.
LABELS: dict[str, Callable[[int], list[Any]]] = {
    "0, 1, …": lambda k: list(range(k)),
    "0, 1, … again": lambda k: list(range(k)),
    "1, 2, …": lambda k: list(range(1, k + 1)),
    "words": _words(["no", "yes", "ähm"]),
    "bool": lambda k: [False, True] if k == 2 else list(range(k)),
    "floats": lambda k: [i + 0.5 for i in range(k)],
    "0.0, 1.0": lambda k: [float(i) for i in range(k)],
    "negative": lambda k: [-1, 1, *range(2, k)][:k],
    "digits as text": lambda k: [str(i) for i in range(k)],
    "page": _words(["<script>alert(1)</script>", "&amp;", "</svg>"]),
    "escapes": _words(["\x1b[31m", "\u202e\n", "\x00"]),
    "nothing and space": _words(["", " ", "\t"]),
    "long": _words(["x" * 5000, "x" * 5001]),
    "surrogates": _words(["\ud800", "a"]),
    "dollars": _words(["$x_1$", "$", "{}", "%s"]),
    "bytes": lambda k: [bytes([65 + i]) for i in range(k)],
    "dates": lambda k: [dt.date(2020, 1, 1 + i) for i in range(k)],
    "moments": lambda k: [np.datetime64("2020-01-01") + np.timedelta64(i, "D") for i in range(k)],
    "spans": lambda k: [np.timedelta64(i, "D") for i in range(k)],
    "pandas moments": lambda k: [pd.Timestamp(2020, 1, 1 + i, tz="UTC") for i in range(k)],
    "int and text": lambda k: [0, "0", 1, "1", 2, "2", 3, "3", 4][:k],
    "None among": lambda k: [None, *range(1, k)],
    "nan among": lambda k: [float("nan"), *range(1, k)],
    "NA among": lambda k: [pd.NA, *range(1, k)],
    "huge": lambda k: [2**62 + i for i in range(k)],
    "beyond 64 bits": lambda k: [2**70 + i for i in range(k)],
    "beyond floats": lambda k: [1e300 * i for i in range(k)],
    "True and 1": lambda k: [True, 1, 1.0, "True", 2, 3, 4, 5, 6][:k],
    "decimals": lambda k: [Decimal(i) for i in range(k)],
    "fractions": lambda k: [Fraction(i, 3) for i in range(k)],
    "members": lambda k: list(Fruit)[:k],
    "tuples": lambda k: [(i, i) for i in range(k)],
    "lists": lambda k: [[i] for i in range(k)],
    "complex": lambda k: [complex(i, 1) for i in range(k)],
    "functions": lambda k: [print, len, min, max, abs, sum, any, all, ord][:k],
}

Scores = Callable[[np.random.Generator, int, int], Any]


def _simplex(rng: np.random.Generator, n: int, k: int) -> Any:
    return rng.dirichlet(np.full(k, rng.choice([0.1, 1.0, 5.0])), n)


def _of_pairs(first: Callable[[np.random.Generator, int], Any]) -> Scores:
    """Scores of one class from a function; the others share the rest."""

    def made(rng: np.random.Generator, n: int, k: int) -> Any:
        p = first(rng, n)
        return np.column_stack([(1 - p) / (k - 1)] * (k - 1) + [p])

    return made


#: Scores, (n, K): rows of the simplex.
SCORES: dict[str, Scores] = {
    "any": _simplex,
    "any again": _simplex,
    "two values": _of_pairs(lambda rng, n: rng.choice([0.2, 0.7], n)),
    "all equal": _of_pairs(lambda rng, n: np.full(n, 0.3)),
    "even": lambda rng, n, k: np.full((n, k), 1 / k),
    "hard": lambda rng, n, k: np.eye(k)[rng.integers(0, k, n)],
    "all 0": _of_pairs(lambda rng, n: np.zeros(n)),
    "all 1": _of_pairs(lambda rng, n: np.ones(n)),
    "0, 1 and between": _of_pairs(lambda rng, n: rng.choice([0.0, 0.5, 1.0, rng.random()], n)),
    "tiny": _of_pairs(lambda rng, n: rng.random(n) * 1e-300),
    "denormal": _of_pairs(lambda rng, n: rng.integers(0, 4, n) * 5e-324),
    "nearly 1": _of_pairs(lambda rng, n: 1 - rng.random(n) * 3e-16),
    "tenths": _of_pairs(lambda rng, n: rng.integers(0, 11, n) / 10),
    "beside edges": _of_pairs(lambda rng, n: np.nextafter(rng.integers(0, 16, n) / 15, rng.choice([0, 1], n))),
    "one apart": _of_pairs(lambda rng, n: np.r_[np.full(n - 1, 0.25), 0.75]),
    "rising": _of_pairs(lambda rng, n: np.linspace(0, 1, n)),
    "clusters": _of_pairs(lambda rng, n: (rng.choice([0.2, 0.8], n) + rng.normal(0, 1e-9, n)).clip(0, 1)),
    "float32": lambda rng, n, k: _simplex(rng, n, k).astype(np.float32),
    "float16": lambda rng, n, k: _simplex(rng, n, k).astype(np.float16),
}


def _at(value: Any, dtype: Any = None) -> Callable[[np.random.Generator, Any], Any]:
    """One place, or all, becomes a value."""

    def made(rng: np.random.Generator, a: Any) -> Any:
        out = np.array(a, dtype=object if dtype is None else dtype)
        flat = out.reshape(-1)
        if flat.size:
            flat[rng.integers(flat.size) if rng.random() < 0.8 else slice(None)] = value
        return flat.reshape(out.shape)

    return made


#: What is done to an array of numbers: many are still numbers.
DAMAGE: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "nan": _at(np.nan, float),
    "inf": _at(np.inf, float),
    "-inf": _at(-np.inf, float),
    "below": _at(-1e-7, float),
    "barely below": _at(-1e-12, float),
    "above": _at(1.0000001, float),
    "barely above": _at(1 + 1e-12, float),
    "-0.0": _at(-0.0, float),
    "1e308": _at(1e308, float),
    "-1": _at(-1, float),
    "0": _at(0, float),
    "None": _at(None),
    "text": _at("0.5"),
    "empty text": _at(""),
    "NA": _at(pd.NA),
    "NaT": _at(np.datetime64("NaT")),
    "2**70": _at(2**70),
    "an object": _at(object()),
    "a list": lambda rng, a: [[v] if i else v for i, v in enumerate(np.asarray(a).tolist())],
    "percentages": lambda rng, a: 100 * np.asarray(a),
    "logits": lambda rng, a: 40 * (np.asarray(a) - 0.5),
    "enormous": lambda rng, a: 1e308 * (2 * np.asarray(a) - 1),
    "doubled": lambda rng, a: 2 * np.asarray(a),
    "tiny": lambda rng, a: 1e-310 * np.asarray(a),
    "bool": lambda rng, a: np.asarray(a) > 0.5,
    "whole": lambda rng, a: np.asarray(a).round().astype(int),
    "complex": lambda rng, a: np.asarray(a) + 0j,
    "as text": lambda rng, a: np.asarray(a).astype(str),
    "as bytes": lambda rng, a: np.asarray(a).astype("S8"),
    "dates": lambda rng, a: np.asarray(a).round().astype("datetime64[D]"),
    "long double": lambda rng, a: np.asarray(a).astype(np.longdouble),
    "short": lambda rng, a: a[:-1],
    "longer": lambda rng, a: np.concatenate([a, a[:1]]),
    "empty": lambda rng, a: a[:0],
    "one": lambda rng, a: a[:1],
    "3-D": lambda rng, a: np.asarray(a)[..., None, None],
    "a column more": lambda rng, a: np.column_stack([a, np.asarray(a).reshape(len(a), -1)[:, :1]]),
    "no columns": lambda rng, a: np.empty((len(a), 0)),
    "one column of many": lambda rng, a: np.asarray(a).reshape(len(a), -1)[:, :1],
    "turned": lambda rng, a: np.asarray(a).T,
    "0-D": lambda rng, a: np.asarray(a).reshape(-1)[0] if np.size(a) else np.array(0.5),
}


class Lying:
    """Says that it has more rows than it has."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values) + 5

    def __getitem__(self, i: int) -> Any:
        return self.values[i]


class Failing:
    """Cannot be turned into an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("no array today")

    def __len__(self) -> int:
        return 3


class Wrapped:
    """An array of another library, as far as NumPy can tell."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)


class Sub(np.ndarray):
    """A subclass that does nothing."""


def _strided(a: Any) -> Any:
    return np.repeat(np.asarray(a), 2, axis=0)[::2]


def _read_only(a: Any) -> Any:
    out = np.array(a)
    out.flags.writeable = False
    return out


def _unsorted(a: Any) -> Any:
    made = pd.Series if np.ndim(a) == 1 else pd.DataFrame
    return made(a, index=np.arange(len(a))[::-1] * 7)


def _structured(a: Any) -> Any:
    return np.array([(v,) for v in np.asarray(a).ravel()], dtype=[("a", float)])


def _frame(a: Any) -> dict[str, Any]:
    columns = np.asarray(a).reshape(len(a), -1)
    return {f"c{i}": columns[:, i] for i in range(columns.shape[1])}


#: Containers that should be read, or refused: what they hold is what the array holds.
CONTAINERS: dict[str, Maker] = {
    "list": lambda a: np.asarray(a).tolist(),
    "tuple": lambda a: tuple(np.asarray(a).tolist()),
    "object": lambda a: np.asarray(a).astype(object),
    "strided": _strided,
    "backwards": lambda a: np.asarray(a)[::-1].copy()[::-1],
    "read-only": _read_only,
    "Fortran": lambda a: np.asfortranarray(a),
    "other bytes": lambda a: np.asarray(a).astype(np.asarray(a).dtype.newbyteorder()),
    "subclass": lambda a: np.asarray(a).view(Sub),
    "masked": lambda a: np.ma.array(a, mask=np.arange(np.size(a)).reshape(np.shape(a)) % 5 == 1),
    "masked, no mask": lambda a: np.ma.array(a),
    "matrix": lambda a: np.asmatrix(a),
    "column": lambda a: np.asarray(a).reshape(-1, 1),
    "row": lambda a: np.asarray(a).reshape(1, -1),
    "memoryview": lambda a: memoryview(np.ascontiguousarray(a)),
    "array.array": lambda a: array.array("d", np.asarray(a, dtype=float).ravel()),
    "bytes": lambda a: np.ascontiguousarray(a).tobytes(),
    "range": lambda a: range(len(a)),
    "iterator": lambda a: iter(np.asarray(a).tolist()),
    "set": lambda a: set(np.asarray(a).ravel().tolist()),
    "mapping": lambda a: dict(enumerate(np.asarray(a).tolist())),
    "mapping of columns": _frame,
    "one mapping a row": lambda a: [{"p": v} for v in np.asarray(a).tolist()],
    "structured": _structured,
    "wrapped": Wrapped,
    "failing": lambda a: Failing(),
    "lying": lambda a: Lying(np.asarray(a).tolist()),
    "sparse": lambda a: sparse.csr_array(np.atleast_2d(np.asarray(a, dtype=float))),
    "pandas": lambda a: pd.Series(a) if np.ndim(a) == 1 else pd.DataFrame(a),
    "pandas, unsorted": _unsorted,
    "pandas, an index of one": lambda a: pd.Series(a, index=[0] * len(a)),
    "pandas, one column": lambda a: pd.DataFrame({"a": a}),
    "pandas, doubled names": lambda a: pd.DataFrame(np.asarray(a).reshape(len(a), -1)).rename(columns=lambda c: "a"),
    "pandas categories": lambda a: pd.Series(pd.Categorical(np.asarray(a).tolist())),
    "pandas categories, one more": lambda a: pd.Series(a).astype("category").cat.add_categories(["more"]),
    "pandas nullable": lambda a: pd.Series(a).convert_dtypes(),
    "pandas arrow": lambda a: pd.Series(a).convert_dtypes(dtype_backend="pyarrow"),
    "pandas sparse": lambda a: pd.Series(pd.arrays.SparseArray(a)),
    "pandas index": lambda a: pd.Index(a),
    "pandas multi-index": lambda a: pd.MultiIndex.from_arrays([a, a]),
    "pandas intervals": lambda a: pd.cut(pd.Series(a), 3),
    "polars": lambda a: pl.Series(np.asarray(a)) if np.ndim(a) == 1 else pl.DataFrame(_frame(a)),
    "polars of Python": lambda a: pl.Series(np.asarray(a).tolist(), strict=False),
    "polars, one column": lambda a: pl.DataFrame({"a": np.asarray(a)}),
    "polars lazy": lambda a: pl.DataFrame(_frame(a)).lazy(),
    "polars list": lambda a: pl.Series([np.atleast_1d(v).tolist() for v in np.asarray(a)]),
    "polars array": lambda a: pl.Series(np.asarray(a).reshape(len(a), -1)),
    "polars ragged": lambda a: pl.Series([[0.5] * (1 + i % 2) for i in range(len(a))]),
    "polars struct": lambda a: pl.DataFrame(_frame(a)).to_struct("s"),
    "polars categories": lambda a: pl.Series(np.asarray(a).astype(str)).cast(pl.Categorical),
    "polars decimal": lambda a: pl.Series(np.asarray(a, dtype=float)).cast(pl.Decimal(20, 9)),
    "polars Int128": lambda a: pl.Series(np.asarray(a)).cast(pl.Int128),
    "polars with null": lambda a: pl.Series([None, *np.asarray(a).tolist()[1:]], strict=False),
    "polars chunks": lambda a: pl.concat([pl.Series(np.asarray(a)[:1]), pl.Series(np.asarray(a)[1:])], rechunk=False),
    "polars binary": lambda a: pl.Series([str(v).encode() for v in np.asarray(a).tolist()]),
    "pyarrow": lambda a: pa.array(np.asarray(a)) if np.ndim(a) == 1 else pa.table(_frame(a)),
    "pyarrow chunks": lambda a: pa.chunked_array([np.asarray(a)[:1], np.asarray(a)[1:]]),
    "pyarrow dictionary": lambda a: pa.array(np.asarray(a)).dictionary_encode(),
    "pyarrow list": lambda a: pa.array([np.atleast_1d(v).tolist() for v in np.asarray(a)]),
    "pyarrow fixed list": lambda a: pa.FixedSizeListArray.from_arrays(
        np.asarray(a).ravel(), int(np.prod(np.shape(a)[1:]))
    ),
    "pyarrow with null": lambda a: pa.array([None, *np.asarray(a).tolist()[1:]]),
    "pyarrow table": lambda a: pa.table(_frame(a)),
    "one-hot": lambda a: np.eye(int(np.max(a)) + 1)[np.asarray(a).astype(int)],
}
try:
    import torch
except ImportError:
    pass
else:
    CONTAINERS |= {
        "tensor": lambda a: torch.as_tensor(np.array(a)),
        "tensor with a gradient": lambda a: torch.as_tensor(np.asarray(a, dtype=float)).requires_grad_(),
        "tensor of half": lambda a: torch.as_tensor(np.asarray(a, dtype=float)).bfloat16(),
        "sparse tensor": lambda a: torch.as_tensor(np.array(a)).to_sparse(),
        "tensor without data": lambda a: torch.as_tensor(np.array(a)).to("meta"),
    }
#: What is no array at all.
NOTHING: dict[str, Any] = {
    "None": None,
    "a number": 0.5,
    "a word": "p",
    "empty text": "",
    "nan": float("nan"),
    "an empty list": [],
    "an empty mapping": {},
    "an object": object(),
    "a type": int,
    "a function": len,
    "a module": np,
    "Ellipsis": ...,
    "NA": pd.NA,
    "2**70": 2**70,
    "0-D": np.array(0.5),
    "nested": [[[[0.5]]]],
    "ragged": [[0.1], [0.1, 0.2], []],
    "a frame without rows": pd.DataFrame({"a": []}),
    "a frame without columns": pl.DataFrame(),
    "a lone surrogate": "\ud800",
}
WEIGHTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "ones": lambda rng, n: np.ones(n),
    "any": lambda rng, n: rng.random(n),
    "whole": lambda rng, n: rng.integers(0, 4, n),
    "zero but one": lambda rng, n: np.eye(n)[rng.integers(n)],
    "tiny": lambda rng, n: np.full(n, 1e-150),
    "one tiny": lambda rng, n: np.r_[1e-300, np.ones(n - 1)],
    "huge": lambda rng, n: np.full(n, 1e150),
    "uneven": lambda rng, n: np.where(np.arange(n) % 2, 1e15, 1e-15),
    "billions": lambda rng, n: np.full(n, 10**9),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "zeros": lambda rng, n: np.zeros(n),
    "overflowing": lambda rng, n: np.full(n, 1e308),
    "denormal": lambda rng, n: np.full(n, 5e-324),
}
GROUPS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "few": lambda rng, n: rng.integers(0, 4, n),
    "many": lambda rng, n: rng.integers(0, n, n),
    "one": lambda rng, n: np.zeros(n, dtype=int),
    "each its own": lambda rng, n: np.arange(n),
    "one, and a row": lambda rng, n: np.eye(n, dtype=int)[0],
    "text": lambda rng, n: np.array(["a", "", "\x1b[0m", "\u202e"])[rng.integers(0, 4, n)],
    "mixed": lambda rng, n: np.array([1, "1", None, 2.5], dtype=object)[rng.integers(0, 4, n)],
    "huge": lambda rng, n: 1e307 * rng.integers(1, 9, n),
    "dates": lambda rng, n: np.datetime64("2020-01-01") + rng.integers(0, 5, n).astype("m8[D]"),
}
TIMES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "days": lambda rng, n: np.datetime64("2026-01-01") + (np.arange(n) // 3).astype("m8[D]"),
    "unsorted": lambda rng, n: np.datetime64("2026-01-01T00:00:00") + rng.integers(0, 10**8, n).astype("m8[s]"),
    "numbers": lambda rng, n: rng.integers(-5, 9, n),
    "fractions": lambda rng, n: rng.normal(size=n) * 1e6,
    "one": lambda rng, n: np.full(n, 7),
    "texts": lambda rng, n: [f"2026-0{i}-01T12:00" for i in rng.integers(1, 10, n)],
    "zones": lambda rng, n: [
        dt.datetime(2026, 3, 1 + int(i), tzinfo=(dt.UTC, None)[i // 26]) for i in rng.integers(0, 28, n)
    ],
    "a zone": lambda rng, n: pd.date_range("2026-03-28", periods=n, freq="7h", tz="Europe/Berlin"),
    "missing": lambda rng, n: np.array(["NaT", "2026-01-01"], "M8[s]")[rng.integers(0, 2, n)],
    "ends of time": lambda rng, n: np.array(["0001-01-01", "9999-12-31"], "M8[s]")[rng.integers(0, 2, n)],
    "beyond": lambda rng, n: np.array([-(2**62), 2**62]).view("M8[s]")[rng.integers(0, 2, n)],
    "nanoseconds": lambda rng, n: rng.integers(0, 2**62, n).view("M8[ns]"),
    "huge": lambda rng, n: 1e307 * rng.integers(1, 9, n),
    "mixed": lambda rng, n: np.array([1, "1", None, 2.5], dtype=object)[rng.integers(0, 4, n)],
    "spans": lambda rng, n: rng.integers(0, 9, n).astype("m8[s]"),
}
AXES = (
    "y",
    "p",
    "weight",
    "groups",
    "labels",
    "container y",
    "container p",
    "container",
    "nothing",
    "option",
    "option",
)


class Rows:
    """Labels, scores, weights and groups of one case, and what was done to them."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        rng = draw.rng
        wrong = draw.one((0, 0, 0, 1, 1, 1, 1, 2, 3))
        self.wrong = [AXES[i] for i in rng.integers(0, len(AXES), wrong)]
        self.n = draw.one(SIZES)
        self.k = draw.one((2, 2, 2, 2, 3, 3, 5, 9))
        self.binary = self.k == 2 and draw.chance(0.75)
        draw.say("rows", f"{self.n} × {self.k}{' binary' if self.binary else ''}")
        self.classes = draw.named("labels", LABELS)(self.k) if draw.chance(0.35) else list(range(self.k))
        self.matrix = draw.named("scores", SCORES)(rng, self.n, self.k)
        self.codes = self._codes()
        self.extra = {"labels", "pos_label"} if "labels" in self.wrong else set()

    def _codes(self) -> Any:
        rng, how = self.draw.rng, self.draw.whole(0, 10)
        if how < 6:  # from the scores
            cumulative = np.cumsum(np.asarray(self.matrix, dtype=float), axis=1)
            return (cumulative < rng.random((self.n, 1))).sum(axis=1).clip(0, self.k - 1)
        if how < 8:
            return rng.integers(0, self.k, self.n)
        if how == 8:
            self.draw.say("y", "one class")
            return np.full(self.n, rng.integers(self.k))
        self.draw.say("y", "the likeliest class")
        return np.argmax(self.matrix, axis=1)

    def held(self, what: str, value: Any, *axes: str) -> Any:
        """Values in the array or container, damaged or not, that were drawn for them."""
        draw = self.draw
        if "nothing" in self.wrong and draw.chance(0.3):
            return draw.named(f"{what} is", NOTHING)
        if what in self.wrong:
            made = draw.named(f"{what} is", DAMAGE)
            value = self.tried(made, draw.rng, value)
        if any(axis in self.wrong for axis in axes) or draw.chance(0.12):
            value = self.tried(draw.named(f"{what} as", CONTAINERS), value)
        return value

    def tried(self, made: Callable[..., Any], *given: Any) -> Any:
        """What is made of the last argument; itself where there is no such thing."""
        try:
            return made(*given)
        except (Exception, pl.exceptions.PanicException):  # the container does not hold such values
            self.draw.say("which", "it cannot be")
            return given[-1]

    def y_true(self) -> Any:
        values = [self.classes[c] for c in self.codes.tolist()]
        try:
            named = np.array(values)
            if named.shape != (self.n,) or named.dtype.kind == "O" or (named.dtype.kind == "U" and self._mixed(values)):
                raise ValueError
        except (ValueError, TypeError, OverflowError, UnicodeError):
            named = np.empty(self.n, dtype=object)
            named[:] = values
        return self.held("y", named, "container y", "container")

    @staticmethod
    def _mixed(values: list[Any]) -> bool:
        return any(not isinstance(v, str) for v in values)

    def y_prob(self, what: str = "p") -> Any:
        scores = self.matrix[:, -1] if self.binary else self.matrix
        return self.held(what, scores, "container p", "container")

    def weight(self) -> Any:
        return self.held("weight", self.draw.named("weight", WEIGHTS)(self.draw.rng, self.n), "container")

    def groups(self) -> Any:
        return self.held("groups", self.draw.named("groups", GROUPS)(self.draw.rng, self.n), "container")

    def labels(self) -> Any:
        if "labels" not in self.wrong:
            return self.classes
        made = {
            "turned": self.classes[::-1],
            "one less": self.classes[:-1],
            "one more": [*self.classes, "more"],
            "twice": self.classes * 2,
            "others": [f"other {i}" for i in range(self.k)],
            "an array": np.array(range(self.k)),
            "a word": "abc"[: self.k],
            "a number": self.k,
            "a mapping": {c: i for i, c in enumerate("abcdefghi"[: self.k])},
            "none": [],
            "nested": [[0, 1]],
            "nan": [float("nan")] * self.k,
            "unhashable": [{}] * self.k,
            "a frame": pd.DataFrame({"a": [0, 1]}),
            "a range": range(1, self.k + 1),
            "a generator": (c for c in self.classes),
            "very many": list(range(1000)),
        }
        return self.draw.named("labels are", made)

    def pos_label(self) -> Any:
        if "labels" not in self.wrong:
            return self.classes[-1]
        return self.draw.named("pos_label", {"other": "other", "first": self.classes[0], **NOTHING})
