"""Tables from files (CSV, Parquet, NDJSON, Arrow), read whole or by pieces. Needs polars (extra ``cli``)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ._types import AnyArray

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


@dataclass(frozen=True)
class Piece:
    """Rows of a table: labels, probabilities, weights; and how many rows came before."""

    start: int
    y_true: Any
    y_prob: AnyArray
    weight: AnyArray | None


class Table:
    """A file of predictions, scanned lazily.

    Parameters
    ----------
    path : str
        File, or ``"-"`` for standard input, which is spooled to a temporary file and not held in memory.
    file_format : str, optional
        One of ``FORMATS``; by default told from the suffix, else from the first bytes.
    """

    def __init__(self, path: str, file_format: str | None = None) -> None:
        if file_format is not None and file_format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {file_format!r}")
        self._spool: tempfile.TemporaryDirectory[str] | None = None
        self.name = "standard input" if path == "-" else path
        if path == "-":
            self._spool = tempfile.TemporaryDirectory(prefix="calibrant-")
            self.path = Path(self._spool.name) / "stdin"
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
        self.file_format = file_format or _SUFFIXES.get(self.path.suffix.lower()) or _sniff(self.path)
        self._frame = self._scan()
        self.columns: list[str] = self._frame.collect_schema().names()

    def close(self) -> None:
        """Remove the temporary copy of standard input."""
        if self._spool is not None:
            self._spool.cleanup()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _scan(self) -> Any:
        import polars as pl

        if self.file_format == "csv":
            separator = "\t" if self.path.suffix.lower() == ".tsv" else ","
            return pl.scan_csv(self.path, separator=separator, infer_schema_length=self._typing_rows)
        if self.file_format == "parquet":
            return pl.scan_parquet(self.path)
        if self.file_format == "ndjson":
            return pl.scan_ndjson(self.path, infer_schema_length=self._typing_rows)
        with self.path.open("rb") as file:
            stream = file.read(6) != b"ARROW1"
        return pl.read_ipc_stream(self.path).lazy() if stream else pl.scan_ipc(self.path)

    @property
    def _typing_rows(self) -> int | None:
        """Rows that decide the column types: all of them (None), unless the file is large."""
        return None if self.n_bytes <= _TYPED_WHOLE_BYTES else 100_000

    def find(self, pattern: str, role: str) -> list[str]:
        """Columns named by a name or a glob; ValueError lists what there is."""
        if pattern in self.columns:
            return [pattern]
        found = [c for c in self.columns if fnmatchcase(c, pattern)]
        if not found:
            shown = ", ".join(self.columns[:12]) + (", …" if len(self.columns) > 12 else "")
            raise ValueError(f"{role}: no column {pattern!r} in {self.name}; its columns are {shown}")
        return found

    def distinct(self, column: str) -> list[Any]:
        """Sorted distinct values of a column; ValueError where one is missing."""
        import polars as pl

        values = self._frame.select(pl.col(column).unique()).collect(engine="streaming")[column]
        if values.null_count():
            raise ValueError(f"column {column!r} of {self.name} has missing labels")
        return sorted(values.to_list())

    def n_rows(self) -> int:
        """Number of rows."""
        import polars as pl

        return int(self._frame.select(pl.len()).collect(engine="streaming").item())

    def pieces(self, label: str, probs: Sequence[str], weight: str | None, size: int | None = None) -> Iterator[Piece]:
        """Rows by pieces of ``size`` (None: all at once). Only the columns asked for are read."""
        columns = list(dict.fromkeys([label, *probs, *([weight] if weight else [])]))
        selected = self._frame.select(columns)
        batches = [selected.collect()] if size is None else selected.collect_batches(chunk_size=size)
        start = 0
        for batch in batches:
            if batch.height:
                matrix = _matrix(batch, probs)
                weights = None if weight is None else batch[weight].to_numpy()
                yield Piece(start, batch[label], matrix, weights)
                start += batch.height


def _matrix(batch: Any, probs: Sequence[str]) -> AnyArray:
    """Columns of probabilities side by side; missing values become NaN, which validation names."""
    for name in probs:
        if not (batch[name].dtype.is_numeric() or str(batch[name].dtype) == "Boolean"):
            raise ValueError(f"column {name!r} must hold numbers; it holds {batch[name].dtype}")
    columns = [np.asarray(batch[name].to_numpy()) for name in probs]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _sniff(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(64)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    return "ndjson" if head.lstrip().startswith(b"{") else "csv"


def column_labels(columns: Sequence[str], patterns: Sequence[str], seen: Sequence[Any]) -> list[Any]:
    """Label of each probability column: its name, or its name without what all columns share.

    ``p_cat, p_dog`` (or the glob ``p_*``) speak of ``cat`` and ``dog``. Integer labels 0 … K-1 may also stand in
    column order. ValueError when no reading covers the labels seen.
    """
    stripped = list(columns)
    if len(patterns) == 1 and "*" in patterns[0]:
        before, after = patterns[0].split("*", 1)[0], patterns[0].rsplit("*", 1)[1]
        stripped = [c[len(before) : len(c) - len(after)] for c in columns]
    shared = _shared_start(columns)
    readings = [list(columns), stripped, [c[shared:] for c in columns]]
    by_text = {str(v): v for v in seen}
    for names in readings:
        if set(by_text) <= set(names) and all(names):
            integers = all(isinstance(v, int) and not isinstance(v, bool) for v in seen)
            return [by_text.get(n, int(n) if integers and n.lstrip("-").isdigit() else n) for n in names]
    k = len(columns)
    if all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v < k for v in seen):
        return list(range(k))
    unknown = [v for v in seen if str(v) not in stripped]
    raise ValueError(
        f"labels {unknown[:6]!r} match no probability column ({', '.join(columns[:6])}{', …' if k > 6 else ''}): "
        "name the columns in order with --labels a,b,c"
    )


def _shared_start(names: Sequence[str]) -> int:
    """How many first characters all names share."""
    for i, letters in enumerate(zip(*names, strict=False)):
        if len(set(letters)) > 1:
            return i
    return min(map(len, names))
