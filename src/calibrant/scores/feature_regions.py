"""Regions of the feature space: given by the user, or found by small trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.convert import to_array
from ..data.dependence import read_groups
from ..data.types import AnyArray, FloatArray, IntArray

#: Of a tree: levels, rows of a leaf at least, and rows that are enough to find it.
DEPTH, LEAF, ENOUGH = 3, 10, 20_000


class Regions(ABC):
    """What puts every row into a region."""

    @abstractmethod
    def of(self, residual: FloatArray, weights: FloatArray, rows: AnyArray, rng: np.random.Generator) -> IntArray:
        """Region of every row of the sample, (n,), found on some rows from their residuals, (r, K)."""

    @abstractmethod
    def beside(self, told: FloatArray) -> Regions:
        """Regions that may also tell apart what was told, (n,)."""

    @abstractmethod
    def subset(self, rows: AnyArray) -> Regions:
        """Those of some rows."""


@dataclass(frozen=True, eq=False)
class Given(Regions):
    """Regions by their codes: whatever the residuals are."""

    codes: IntArray

    def of(self, residual: FloatArray, weights: FloatArray, rows: AnyArray, rng: np.random.Generator) -> IntArray:
        """As they are."""
        return self.codes

    def beside(self, told: FloatArray) -> Given:
        """What was told is no matter."""
        return self

    def subset(self, rows: AnyArray) -> Given:
        """See :class:`Regions`."""
        return Given(self.codes[rows])


@dataclass(frozen=True, eq=False)
class Grown(Regions):
    """Leaves of a regression tree of the residuals on columns of features; NaN is a value of its own."""

    columns: FloatArray

    def of(self, residual: FloatArray, weights: FloatArray, rows: AnyArray, rng: np.random.Generator) -> IntArray:
        """A new tree, of at most 20,000 of the rows."""
        from sklearn.tree import DecisionTreeRegressor

        some = np.arange(len(rows))
        if some.size > ENOUGH:
            some = np.sort(rng.choice(some.size, ENOUGH, replace=False))
        tree = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=int(rng.integers(2**31)))
        tree.fit(self.columns[rows[some]], residual[some], sample_weight=weights[some])
        return np.asarray(tree.apply(self.columns))

    def beside(self, told: FloatArray) -> Grown:
        """What was told is one more column, so that features may matter more where scores are high."""
        return Grown(np.column_stack([self.columns, told]).astype(np.float32))

    def subset(self, rows: AnyArray) -> Grown:
        """See :class:`Regions`."""
        return Grown(self.columns[rows])


def read_regions(features: Any, n: int) -> Regions:
    """Judge the ``features`` argument: a table of columns, or the code of a region for each row."""
    if hasattr(features, "columns") and not isinstance(features, np.ndarray):
        return _grown(_frame_columns(features), n)
    array, _ = to_array(features, "features")
    if array.ndim == 2:
        return _grown(list(array.T), n)
    if array.ndim == 1 and array.dtype.kind == "f" and (array != np.floor(array)).any():
        raise ValueError(
            "features must be a 2-D table of columns, or codes of regions in 1-D; got numbers that are no codes: pass "
            "features[:, None] if they are one feature"
        )
    codes = np.asarray(read_groups(array, n, "features"))
    return Given(np.unique(codes, return_inverse=True)[1].reshape(-1))


def _frame_columns(frame: Any) -> list[AnyArray]:
    """Columns of a data frame; what is missing is NaN or None."""
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True)
    return [np.asarray(column.to_numpy()) for column in native.iter_columns()]


def _grown(columns: list[AnyArray], n: int) -> Grown:
    if not columns or len(columns[0]) != n:
        shape = (len(columns[0]), len(columns)) if columns else "no columns"
        raise ValueError(f"features must have a row for each of {n} rows, and a column at least; got {shape}")
    table = np.column_stack([_numbers(c) for c in columns])
    with np.errstate(over="ignore"):
        table = table.astype(np.float32)
    if np.isinf(table).any():
        row = int(np.argmax(np.isinf(table).any(axis=1)))
        raise ValueError(f"features must be finite numbers below 3e38, categories, or missing; row {row} is infinite")
    return Grown(table)


def _numbers(column: AnyArray) -> FloatArray:
    """A column as numbers: dates as theirs, names as codes in their order."""
    if column.dtype.kind == "c":
        raise TypeError("features must be numbers or categories; got complex numbers")
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return np.unique(column.astype(str), return_inverse=True)[1].reshape(-1).astype(np.float64)
