"""Sums of batches of rows, computed in the engine's own workers if it has any."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from ..data.convert import values_of
from ..data.types import AnyArray, FloatArray, Label
from .frame_columns import FrameColumns, known
from .keys import weight_fits

#: Approximate number of values in a batch (some 16 MB), and its smallest number of rows.
_NUMBERS, _FEWEST = 1 << 21, 1 << 12


#: Errors of engines whose workers cannot import a package, or run another Python.
_NO_MODULE = re.compile(r"No module named '(\w+)|PYTHON_VERSION_MISMATCH")


#: Sums by the value of a column, or by pairs of values of two; key None without a column.
Sums: TypeAlias = dict[Label, Any]


@dataclass(frozen=True, eq=False)
class Batched:
    """Computes sums of the valid rows of batches, and the number of invalid rows.

    Attributes
    ----------
    start : callable
        Returns empty sums for a value of the column, such as an accumulator, with ``dropped`` and ``update(y, p, w)``,
        which also takes groups if there is a column of them.
    columns : Columns
        Without the frame, so that it can be sent to workers.
    """

    start: Callable[[Label], Any]
    columns: FrameColumns

    def __call__(self, batches: Iterable[Any]) -> Sums:
        """Sums of batches (frames in memory, of any library), by the value of a column if there is one."""
        total: Sums = {}
        for batch in batches:
            frame = nw.from_native(batch, eager_only=True)
            if not len(frame):  # such as a partition without rows
                continue
            if not self.columns.parts:
                self._add(total, None, frame)
                continue
            for values, some in frame.group_by(*self.columns.parts):
                first, *others = map(known, values)
                self._add(total, (first, *others) if others else first, some)
        return total

    def _add(self, sums: Sums, value: Label, frame: Any) -> None:
        total = sums[value] if value in sums else sums.setdefault(value, self.start(value))
        y, p, w = self.arrays(frame)
        groups = () if self.columns.groups is None else (values_of(frame[self.columns.groups]),)
        try:
            total.update(y, p, w, *groups)
        except (ValueError, TypeError):  # which leaves the sums unchanged: some rows are bad, or more is wrong
            good = self.good(y, p, w)
            if good.all():
                raise
            total.dropped += int(good.size - good.sum())
            if good.any():
                total.update(_plain(y[good]), p[good], None if w is None else w[good], *(g[good] for g in groups))

    def arrays(self, batch: Any) -> tuple[AnyArray, FloatArray, FloatArray | None]:
        """Labels, probabilities and weights of a batch; nulls are None or NaN."""
        c = self.columns
        probs = np.empty((len(batch), len(c.probs)), c.dtype, order="F")
        for k, name in enumerate(c.probs):
            probs[:, k] = _numbers(batch[name])
        weights = None if c.weight is None else _numbers(batch[c.weight]).astype(np.float64)
        if c.truths:
            return np.column_stack([_numbers(batch[name]) for name in c.truths]), probs, weights
        labels = batch[c.label]
        if labels.null_count():
            return np.array([known(v) for v in labels.to_list()], dtype=object), probs, weights
        return values_of(labels), probs, weights

    def good(self, y: AnyArray, p: FloatArray, w: FloatArray | None) -> AnyArray:
        """Mask of the valid rows, (n,)."""
        c = self.columns
        if c.truths:
            found = np.isin(y, (0, 1)).all(axis=1)
        else:
            found = np.isin(y, np.array(c.classes, dtype=y.dtype if y.dtype == object else None))
        found &= ((p >= -c.range_tolerance) & (p <= 1 + c.range_tolerance)).all(axis=1)
        if p.shape[1] > 1 and not c.truths:
            found &= np.abs(p.sum(axis=1, dtype=np.float64) - 1) <= c.sum_tolerance
        if w is not None:
            found &= weight_fits(w)
        return np.asarray(found)


def merged(one: Sums, other: Sums) -> Sums:
    """Sums of the rows of both arguments."""
    return {v: one[v] + other[v] if v in one and v in other else (one.get(v) or other[v]) for v in {**one, **other}}


def added(c: FrameColumns, start: Callable[[Label], Any]) -> Sums:
    """Sums of all rows of a frame, batch by batch, by the value of a column if there is one."""
    work = Batched(start, replace(c, frame=None))
    rows = max(_NUMBERS // len(c.names), _FEWEST)
    frame = c.frame.select(*c.names)
    kind, native = frame.implementation, frame.to_native()
    if kind.is_dask():
        with _workers("Dask", "install it where they run"):
            return _dask(native, work)
    if kind.is_pyspark() or kind.is_pyspark_connect():
        with _workers("Spark", "set PYSPARK_PYTHON, or spark.pyspark.python, to a Python like this one that has it"):
            return _spark(native, work)
    return work(_pieces(frame, native, rows))


@contextmanager
def _workers(engine: str, cure: str) -> Iterator[None]:
    """Raise ImportError with advice, not the engine's traceback, if workers lack this package or a dependency."""
    try:
        yield
    except Exception as error:
        if (missing := _NO_MODULE.search(str(error))) is None:
            raise
        lack = f"lack {missing[1]}" if missing[1] else "run another version of Python"
        raise ImportError(
            f"{engine}'s workers {lack}: calibrant's own code runs there for several columns of probabilities, and for "
            f"sums other than those of fixed bins and grids; {cure}"
        ) from None


def _pieces(frame: Any, native: Any, rows: int) -> Iterator[Any]:
    if not isinstance(frame, nw.LazyFrame):
        return (frame[a : a + rows].to_native() for a in range(0, len(frame), rows))
    if frame.implementation.is_polars():
        return iter(native.collect_batches(chunk_size=rows, maintain_order=False, engine="streaming"))
    if frame.implementation.is_duckdb():
        return _tables(native.to_arrow_reader(rows))
    return iter([frame.collect().to_native()])


def _tables(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    return (pa.Table.from_batches([batch]) for batch in batches)


def _one(work: Callable[[Iterable[Any]], Sums], part: Any) -> Sums:
    return work([part])


def _dask(native: Any, work: Batched) -> Sums:
    """Sums of all partitions, added pairwise in the workers."""
    from dask.delayed import delayed

    shared = delayed(work, traverse=False)  # one for all partitions
    parts = [delayed(_one)(shared, part) for part in native.to_delayed()]
    while len(parts) > 1:
        parts = [
            delayed(merged)(*parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)
        ]
    found: Sums = parts[0].compute()
    return found


def _spark(native: Any, work: Batched) -> Sums:
    """Sums of all partitions, sent as bytes, as are errors: raised in a worker they would end as errors of Java."""

    def partition(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        try:
            found: Any = work(_tables(batches))
        except (ValueError, TypeError) as error:
            found = error
        yield pa.RecordBatch.from_pydict({"sums": [pickle.dumps(found)]})

    def read(row: Any) -> Sums:
        # Bytes of our own workers, written above: nobody else's are read.
        found = pickle.loads(bytes(row["sums"]))
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]  # pickled above

    return reduce(merged, map(read, native.mapInArrow(partition, "sums binary").toLocalIterator()), Sums())


def _numbers(series: Any) -> FloatArray:
    """Numbers of a column; NaN for nulls."""
    kind = nw.Float32 if series.dtype == nw.Float32 else nw.Float64
    series = series.cast(kind)
    return np.asarray((series.fill_null(float("nan")) if series.null_count() else series).to_numpy())


def _plain(labels: AnyArray) -> AnyArray:
    """Labels without nulls, in an array of their own dtype."""
    return np.array(labels.tolist()) if labels.dtype == object else labels
