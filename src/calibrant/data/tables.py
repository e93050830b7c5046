"""Tables from files (CSV, Parquet, NDJSON, Arrow), read whole or by pieces. Needs polars (extra ``cli``)."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from .checks import check_choice
from .columns import some
from .types import AnyArray
from .writing import scratch_file

FORMATS = ("csv", "parquet", "ndjson", "arrow")
_TYPED_WHOLE_BYTES = 64 * 2**20
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def format_of(path: Path) -> str | None:
    """Format that a file's name tells; None where it tells none."""
    return _SUFFIXES.get(path.suffix.lower())


#: First bytes of files that are not read here: their kind, and how to convert them.
_OTHER_KINDS = (
    (b"PK\x03\x04", "an Excel workbook or a zip archive", "save the sheet as CSV, or unzip the archive"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "save the sheet as CSV"),
    (rb"BZh[1-9]1AY&SY", "compressed with bzip2", "bunzip2 -k {name}"),
    (b"\xfd7zXZ\x00", "compressed with xz", "unxz -k {name}"),
    (rb"\xff\xfe|\xfe\xff", "encoded as UTF-16", "iconv -f UTF-16 -t UTF-8 {name} > utf8.csv"),
)


def format_inside(path: Path, name: str, chosen: str | None = None) -> str:
    """Format of a file: the chosen one, else by its name, else by its first bytes.

    ValueError, with what to do, for a file that cannot be read in it: other kinds are recognised by their first bytes.
    """
    with path.open("rb") as file:
        head = file.read(64)
    for start, kind, convert in _OTHER_KINDS:
        if re.match(start, head):
            typed = quote(name) if Path(name) == path else "FILE"
            raise ValueError(f"{name} is {kind}: convert it first ({convert.format(name=typed)})")
    found = chosen or format_of(path)
    if found is None and head.startswith(b"PAR1"):
        found = "parquet"
    elif found is None and head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        found = "arrow"
    elif found is None:
        found = "ndjson" if head.lstrip().startswith((b"{", b"[")) else "csv"
    if found == "ndjson" and head.lstrip().startswith(b"["):
        raise ValueError(f"{name} is a JSON array: write NDJSON, one object per line")
    return found


def check_separated(name: str, columns: Sequence[str]) -> None:
    """ValueError for a CSV file whose only column looks like several that something else separates."""
    separator = next((c for c in ";\t|" if c in columns[0]), None) if len(columns) == 1 else None
    if separator is not None:
        raise ValueError(
            f"{name} has one column, {columns[0]!r}: is it separated by {separator!r}? "
            "Separate by commas, or by tabs in a file called .tsv"
        )


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
        """Columns named by a name or a glob; ValueError lists what there is."""
        found = [pattern] if pattern in self.columns else [c for c in self.columns if fnmatchcase(c, pattern)]
        if not found:
            raise ValueError(
                f"{role}: no column {pattern!r} in {self.name}; its columns are {some(self.columns, most=12)}"
            )
        return found

    def find_one(self, pattern: str, role: str) -> str:
        """The only column that a name or a glob names."""
        found = self.find(pattern, role)
        if len(found) != 1:
            raise ValueError(f"{role} {pattern!r} matches {len(found)} columns: {', '.join(found[:6])}")
        return found[0]


class FileTable(Headed):
    """A file of predictions, scanned lazily: ``frame`` is a lazy frame of polars.

    Parameters
    ----------
    path : str
        File, or ``"-"`` for standard input, which is spooled to a temporary file and not held in memory.
    file_format : str, optional
        One of ``FORMATS``; inferred by default from the suffix, else from the first bytes.
    as_text : bool, default False
        Leave columns of CSV as the text they are, to write them as they were read.
    """

    def __init__(self, path: str, file_format: str | None = None, *, as_text: bool = False) -> None:
        if file_format is not None:
            check_choice("format", file_format, FORMATS)
        self._spool = ExitStack()
        super().__init__("standard input" if path == "-" else path, [])
        if path == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise ValueError("standard input is closed: give a file, or pipe one in")
            self.path = self._spool.enter_context(scratch_file())
            # Polars lets the system take up a read again after Ctrl-C, so that a wait for rows would never end.
            if hasattr(signal, "siginterrupt"):
                signal.siginterrupt(signal.SIGINT, True)
            with self.path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        else:
            self.path = Path(path)
            if self.path.is_dir():
                raise ValueError(f"{path} is a directory: give a file")
            if not self.path.exists():
                raise ValueError(f"{path} does not exist")
        self.n_bytes = self.path.stat().st_size
        if self.n_bytes == 0:
            raise ValueError(f"{self.name} is empty")
        self.file_format = format_inside(self.path, self.name, file_format)
        self._as_text = as_text
        try:
            self.frame = self._scan()
            self._schema = self.frame.collect_schema()
        except Exception as error:
            self._explain(error)
            raise
        self.columns = self._schema.names()
        if self.file_format == "csv":
            check_separated(self.name, self.columns)

    def close(self) -> None:
        """Remove the temporary copy of standard input."""
        self._spool.close()

    def __enter__(self) -> FileTable:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._explain(error)
        finally:
            self.close()

    def _explain(self, error: BaseException | None) -> None:
        """Raise ValueError with the first line that is not JSON, where that is why polars cannot read the file."""
        import polars as pl

        if not isinstance(error, pl.exceptions.PolarsError) or self.file_format != "ndjson":
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    found = json.loads(line) if line.strip() else {}
                except ValueError as wrong:
                    raise ValueError(f"{self.name}: line {number} is not JSON: {wrong}") from error
                if not isinstance(found, dict):
                    raise ValueError(
                        f"{self.name}: line {number} is not a JSON object that names each value"
                    ) from error

    def _scan(self) -> Any:
        import polars as pl

        path = escape(str(self.path))  # a name is a name, not a pattern
        if self.file_format == "csv":
            if self._as_text:
                return pl.scan_csv(path, separator=self.separator, infer_schema=False)
            return pl.scan_csv(path, separator=self.separator, infer_schema_length=self._typing_rows)
        if self.file_format == "parquet":
            return pl.scan_parquet(path, hive_partitioning=False)
        if self.file_format == "ndjson":
            return pl.scan_ndjson(path, infer_schema_length=self._typing_rows)
        with self.path.open("rb") as file:
            streamed = not file.read(6).startswith(b"ARROW1")
        return pl.read_ipc_stream(self.path).lazy() if streamed else pl.scan_ipc(path, hive_partitioning=False)

    @property
    def separator(self) -> str:
        """Separator of CSV fields."""
        return "\t" if self.path.suffix.lower() == ".tsv" else ","

    @property
    def _typing_rows(self) -> int | None:
        """Rows that decide the column types: all of them (None), unless the file is large."""
        return None if self.n_bytes <= _TYPED_WHOLE_BYTES else 100_000

    def find(self, pattern: str, role: str) -> list[str]:
        """Columns named by a name or a glob; ValueError lists what there is, or says that a name is there twice."""
        found = super().find(pattern, role)
        for name in found if self.file_format == "csv" else ():
            first = re.sub(r"_duplicated_\d+$", "", name)  # what polars calls the second column of a name
            if first in self.columns and f"{first}_duplicated_0" in self.columns:
                raise ValueError(f"{role}: {self.name} has several columns called {first!r}")
        return found

    def check_numeric(self, column: str, purpose: str = "") -> None:
        """Refuse a column that holds no numbers."""
        import polars as pl

        if self._schema[column] == pl.String:
            as_numbers(self.frame.select(column).collect(), [column])  # says which row holds none
        _check_numeric(column, self._schema[column], purpose)

    def distinct(self, column: str) -> list[Any]:
        """Sorted distinct labels of a column, whole floats as ints; ValueError where one is missing or no label."""
        import polars as pl

        kind = self._schema[column]
        if kind.is_nested() or kind.is_temporal() or kind in (pl.Object, pl.Decimal):
            raise ValueError(f"column {column!r} holds {kind}: labels are int, bool or text")
        values = self.frame.select(pl.col(column).unique()).collect(engine="streaming")[column]
        if kind.is_float():
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
        """First row where a column holds a value; None stands for a missing one."""
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
        """Frames of ``size`` rows (None: all at once), in order, of some columns (None: all)."""
        chosen = self.frame if columns is None else self.frame.select(list(dict.fromkeys(columns)))
        yield from [chosen.collect()] if size is None else chosen.collect_batches(chunk_size=size)

    def sample(self, columns: Sequence[str], most: int, seed: int, size: int) -> tuple[Any, AnyArray]:
        """Some columns of at most ``most`` rows, drawn at random if there are more; and their numbers, ascending.

        Every row has a random key, and those with the smallest are kept: memory for twice as many.
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

    @property
    def schema(self) -> dict[str, Any]:
        """Kind of each column."""
        return dict(self._schema)


def _smallest(keys: AnyArray, most: int) -> AnyArray:
    """Places of the smallest keys, ascending."""
    if keys.size <= most:
        return np.arange(keys.size)
    return np.sort(np.argpartition(keys, most - 1)[:most])


def as_numbers(batch: Any, columns: Sequence[str]) -> Any:
    """Columns of text as the numbers they say; ValueError names the first row that says none."""
    import polars as pl

    for name in columns:
        if batch[name].dtype != pl.String:
            continue
        numbers = batch[name].str.strip_chars().cast(pl.Float64, strict=False)
        wrong = (numbers.is_null() & batch[name].is_not_null()).arg_true()
        if len(wrong):
            raise ValueError(f"column {name!r} must hold numbers; row {wrong[0]} is {batch[name][wrong[0]]!r}")
        batch = batch.with_columns(numbers.alias(name))
    return batch


def score_columns(batch: Any, probs: Sequence[str]) -> Any:
    """Columns of probabilities."""
    import polars as pl

    for name in probs:
        if batch[name].dtype == pl.String:
            as_numbers(batch, [name])  # says which row holds none
        _check_numeric(name, batch[name].dtype)
    return batch.select(probs)


def _check_numeric(column: str, kind: Any, purpose: str = "") -> None:
    if not (kind.is_numeric() or str(kind) == "Boolean"):
        raise ValueError(f"column {column!r} must hold numbers{purpose}; it holds {kind}")
