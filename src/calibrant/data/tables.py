"""Tables from files (CSV, Parquet, NDJSON, Arrow), read whole or in pieces. Needs polars (extra ``cli``)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from .checks import check_choice
from .columns import some
from .dialect import FORMATS, as_said, explain, format_inside, format_of, is_blank, scanned
from .printing import without_middle
from .types import AnyArray
from .writing import scratch_file

#: Number of bytes copied at a time.
_PIECE = 1 << 18


class Headed:
    """A table with a name and columns.

    Parameters
    ----------
    name : str
    columns : list of str
    """

    def __init__(self, name: str, columns: list[str]) -> None:
        self.name = name
        self.columns = columns

    def find(self, pattern: str, role: str) -> list[str]:
        """Columns that match a name or a glob; ValueError lists available columns if none matches."""
        found = [pattern] if pattern in self.columns else [c for c in self.columns if fnmatchcase(c, pattern)]
        if not found:
            raise ValueError(
                f"{role}: no column {pattern!r} in {self.name}; its columns are {some(self.columns, most=12)}"
            )
        return found

    def find_one(self, pattern: str, role: str) -> str:
        """The only column that matches a name or a glob."""
        found = self.find(pattern, role)
        if len(found) != 1:
            raise ValueError(f"{role} {pattern!r} matches {len(found)} columns: {', '.join(found[:6])}")
        return found[0]


class ScannedTable(Headed):
    """Files read as one table, scanned lazily: ``frame`` is a lazy frame of polars.

    Parameters
    ----------
    name : str
    paths : sequence of Path
    file_format : str
        One of ``FORMATS``.
    values : sequence of mappings, optional
        For each file, columns with a constant value.
    """

    def __init__(
        self, name: str, paths: Sequence[Path], file_format: str, values: Sequence[Mapping[str, str]] = ()
    ) -> None:
        super().__init__(name, [])
        self.paths, self.file_format = paths, file_format
        self._values = values or [{} for _ in paths]
        self._said: dict[str, Any] = {}
        self._has_blank: bool | None = None
        try:
            self._scans = [scanned(path, file_format, str(path) if len(paths) > 1 else name) for path in paths]
            self._fields = self._scans[0].collect_schema().names()
            for path, scan in zip(paths[1:], self._scans[1:], strict=True):
                if file_format == "csv" and (other := scan.collect_schema().names()) != self._fields:
                    raise ValueError(
                        f"{paths[0]} and {path} have different columns: {some(self._fields)} and {some(other)}"
                    )
            self._combine()
        except Exception as error:
            self._explain(error)
            raise

    def _combine(self) -> None:
        """Combine all files into one table, with the known types of columns."""
        self.frame = self._all(self.parts())
        self._schema = self.frame.collect_schema()
        self.columns = self._schema.names()

    def _all(self, frames: Sequence[Any]) -> Any:
        import polars as pl

        return pl.concat(frames, how="vertical" if self.file_format == "csv" else "diagonal_relaxed")

    def _lines(self) -> list[Any]:
        """A lazy frame of the lines of each file, without blank ones."""
        return [scan.filter(~is_blank(self._fields)) if self._has_blank else scan for scan in self._scans]

    def parts(self) -> list[Any]:
        """A lazy frame for each file."""
        import polars as pl

        kinds = {c: int if all(v[c].isdecimal() for v in self._values) else str for c in self._values[0]}
        return [
            lines.with_columns(**{c: pl.lit(kind(values[c])) for c, kind in kinds.items()}, **self._said)
            for lines, values in zip(self._lines(), self._values, strict=True)
        ]

    def pieces(self, n_bytes: int) -> list[Any]:
        """Lazy frames of the rows of each file, several for a file of more than ``n_bytes``."""
        import polars as pl

        found = []
        for path, part in zip(self.paths, self.parts(), strict=True):
            several = -(-path.stat().st_size // n_bytes)
            rows = -(-part.select(pl.len()).collect(engine="streaming").item() // several) if several > 1 else 0
            found += [part.slice(i * rows, rows) for i in range(several)] if several > 1 else [part]
        return found

    def read_as(self, labels: Sequence[str | None] = (), numbers: Sequence[str | None] = ()) -> None:
        """Declare columns of labels and of numbers before rows are read: fields of CSV are text until then."""
        if self.file_format == "ndjson":  # values of two kinds are told before an engine meets them
            import polars as pl

            names = [c for c in dict.fromkeys([*labels, *numbers]) if c is not None]
            self.frame.select(pl.col(names).null_count()).collect(engine="streaming")
        text = {c for c in self._fields if c not in self._said}
        new = [c for c in dict.fromkeys(labels) if c is not None and c in text]
        real = [c for c in dict.fromkeys(numbers) if c is not None and c in text.difference(new)]
        if self.file_format == "csv" and (self._has_blank is None or new or real):
            said, has_blank = as_said(self._all(self._lines()), new, real, self._fields)
            self._said |= said
            self._has_blank = self._has_blank or has_blank
            self._combine()

    @property
    def schema(self) -> dict[str, Any]:
        """Type of each column."""
        return dict(self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._explain(error)
        finally:
            self.close()

    def close(self) -> None:
        """Release open resources."""

    def _explain(self, error: BaseException | None) -> None:
        """Raise ValueError that names the line that polars cannot read in a text file."""
        import polars as pl

        if error is None:
            return
        both = (error, error.__cause__)
        of_polars = any(isinstance(e, pl.exceptions.PolarsError) for e in both)
        # Polars does not name a damaged gzip file, and its error has no number.
        if of_polars or any(isinstance(e, OSError) and e.errno is None for e in both):
            for path in self.paths:
                explain(path, self.file_format, self.name if len(self.paths) == 1 else str(path), error)
        if of_polars:
            raise ValueError(f"{self.name} cannot be read: {' '.join(str(error).split())}") from error


class FileTable(ScannedTable):
    """A file of predictions.

    Parameters
    ----------
    path : str
        File, or ``"-"`` for standard input, which like a named pipe is copied to a temporary file, not held in memory.
    file_format : str, optional
        One of ``FORMATS``; inferred by default from the suffix, else from the first bytes.

    Attributes
    ----------
    groups : str or None
        Column of groups, if the file itself declares one.
    """

    groups: str | None = None

    def __init__(self, path: str, file_format: str | None = None) -> None:
        if file_format is not None:
            check_choice("format", file_format, FORMATS)
        with ExitStack() as self._spool:  # closed where the file cannot be read
            name = "standard input" if path == "-" else path
            given = self.path = Path(path)
            if path == "-":
                if sys.stdin is None or sys.stdin.closed:
                    raise ValueError("standard input is closed: give a file, or pipe one in")
                self._copy(cast(BufferedReader, sys.stdin.buffer))
            elif given.is_dir() or not given.exists():
                why = "is a directory: give a file" if given.is_dir() else "does not exist"
                raise ValueError(f"{without_middle(path, 300)} {why}")
            elif given.is_fifo():
                with given.open("rb") as pipe:
                    self._copy(pipe)
            elif os.fsencode(path) != path.encode(errors="replace"):  # Polars takes names in UTF-8 only
                self.path = self._spool.enter_context(scratch_file())
                self.path.symlink_to(given.absolute())
                file_format = file_format or format_of(given)
            self.n_bytes = self.path.stat().st_size
            super().__init__(name, [self.path], format_inside(self.path, name, file_format))
            self._spool = self._spool.pop_all()

    def _copy(self, pipe: BufferedReader) -> None:
        """Copy input that can be read only once to a temporary file."""
        # Polars lets the system take up a read again after Ctrl-C, so that a wait for rows would never end.
        if hasattr(signal, "siginterrupt"):
            signal.siginterrupt(signal.SIGINT, True)
        self.path = self._spool.enter_context(scratch_file())
        with self.path.open("wb") as file:
            # One read of the system at a time: Python looks for Ctrl-C between them, and not before all of a larger
            # piece has come.
            while piece := pipe.read1(_PIECE):
                file.write(piece)

    def close(self) -> None:
        """Remove the temporary copy of standard input."""
        self._spool.close()

    def check_numeric(self, column: str, purpose: str = "") -> None:
        """Raise an error for a column without numbers."""
        _check_numeric(column, self._schema[column], purpose)

    def distinct(self, column: str, *, shares: bool = False) -> list[Any]:
        """Sorted distinct labels of a column, whole floats as ints; ValueError if one is missing or invalid.

        With ``shares``, numbers between 0 and 1 are shares of the label 1, and the labels are 0 and 1.
        """
        import polars as pl

        kind = self._schema[column]
        if kind.is_nested() or kind.is_temporal() or kind in (pl.Object, pl.Decimal):
            raise ValueError(f"column {column!r} must hold labels (int, bool or text); it holds {kind}")
        values = self.frame.select(pl.col(column).unique()).collect(engine="streaming")[column]
        if kind.is_float():
            known = values.drop_nulls().drop_nans()
            if shares and known.is_between(0, 1).all() and not known.is_in([0.0, 1.0]).all():
                values = pl.Series([0.0, 1.0, None] if len(known) < len(values) else [0.0, 1.0])
            whole = values.is_null() | (values.is_finite() & (values == values.floor()))
            bad = [v for v in values.filter(~whole).to_list() if v == v]
            if bad:
                row = self.first_row(column, bad[0])
                raise ValueError(
                    f"column {column!r} must hold class labels; row {row} is {bad[0]} (are labels and probabilities "
                    "swapped?)"
                )
            values = values.fill_nan(None)
        if values.null_count():
            raise ValueError(
                f"column {column!r} of {self.name} has missing labels; the first is in row "
                f"{self.first_row(column, None)}"
            )
        return sorted(int(v) if isinstance(v, float) else v for v in values.to_list())

    def first_row(self, column: str, value: Any) -> int:
        """First row in which a column has a value; None stands for a missing value."""
        import polars as pl

        held = pl.col(column)
        if value is None:
            is_there = held.is_null() | held.is_nan() if self._schema[column].is_float() else held.is_null()
        else:
            is_there = held == value
        rows = self.frame.select(is_there.arg_true().first()).collect(engine="streaming")
        return int(rows.item())

    def n_rows(self) -> int:
        """Number of rows."""
        import polars as pl

        return int(self.frame.select(pl.len()).collect(engine="streaming").item())

    def batches(self, columns: Sequence[str] | None = None, size: int | None = None) -> Iterator[Any]:
        """Yield frames of ``size`` rows (None: all at once) in order, with some columns (None: all)."""
        chosen = self.frame if columns is None else self.frame.select(list(dict.fromkeys(columns)))
        yield from [chosen.collect()] if size is None else chosen.collect_batches(chunk_size=size)

    def sample(self, columns: Sequence[str], most: int, seed: int, size: int) -> tuple[Any, AnyArray]:
        """Some columns of at most ``most`` rows, a random sample if there are more; and their ascending row numbers.

        Every row has a random key, and rows with the smallest keys are kept: memory for twice as many rows.
        """
        import polars as pl

        rng = np.random.default_rng(seed)
        held: list[Any] = []
        keys, rows, seen = np.empty(0), np.empty(0, dtype=np.int64), 0
        for batch in self.batches(columns, size):
            new = rng.random(batch.height)
            # Once there are enough, most rows of a batch are above all keys that are held.
            within = np.flatnonzero(new < keys.max()) if keys.size >= most else np.arange(batch.height)
            held.append(batch[within])
            keys = np.concatenate([keys, new[within]])
            rows = np.concatenate([rows, seen + within])
            seen += batch.height
            if keys.size > 2 * most:
                kept = _smallest(keys, most)
                held, keys, rows = [pl.concat(held)[kept]], keys[kept], rows[kept]
        kept = _smallest(keys, most)
        return pl.concat(held)[kept], rows[kept]


def _smallest(keys: AnyArray, most: int) -> AnyArray:
    """Positions of the smallest keys, ascending."""
    if keys.size <= most:
        return np.arange(keys.size)
    return np.sort(np.argpartition(keys, most - 1)[:most])


def as_numbers(batch: Any, columns: Sequence[str]) -> Any:
    """Parse columns of text as numbers; ValueError names the first row that is not a number."""
    text = [name for name in columns if str(batch[name].dtype) == "String"]
    return batch.with_columns(**as_said(batch.lazy(), (), text)[0]) if text else batch


def score_columns(batch: Any, probs: Sequence[str]) -> Any:
    """Columns of probabilities."""
    for name in probs:
        _check_numeric(name, batch[name].dtype)
    return batch.select(probs)


def _check_numeric(column: str, kind: Any, purpose: str = "") -> None:
    if not (kind.is_numeric() or str(kind) == "Boolean"):
        raise ValueError(f"column {column!r} must hold numbers{purpose}; it holds {kind}")
