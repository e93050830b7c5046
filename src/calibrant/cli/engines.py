"""Engines that read for a command: many files, partitioned folders, databases."""

from __future__ import annotations

import glob
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..data.dialect import FORMATS, format_inside, format_of, separator_of
from ..data.tables import Headed, ScannedTable
from .output import check_option

#: Approximate number of bytes in pieces of files that are read separately.
PIECE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Files:
    """Files of one format that are read as one table.

    Attributes
    ----------
    paths : tuple of str
        Absolute, sorted.
    root : str
        Folder above which no folder is a partition: the names of those below, such as ``day=2026-01-01``, are columns.
    kind : str
        One of ``FORMATS``.
    """

    paths: tuple[str, ...]
    root: str
    kind: str

    @classmethod
    def of(cls, path: str, kind: str | None) -> Files:
        """Files of a name, a pattern (``**`` crosses folders) or a folder; ValueError if there are none."""
        if kind is not None:
            check_option("--format", kind, FORMATS)
        if path == "-":
            raise ValueError("--engine cannot read standard input: leave out --engine")
        if Path(path).is_fifo():
            raise ValueError(f"--engine cannot read the pipe {path}: leave out --engine")
        named = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
        found = [file for one in named for file in _within(Path(one))]
        known = [f for f in found if kind or f == Path(path) or format_of(f) is not None]
        kinds = {format_inside(f, str(f), kind) for f in known or found}
        if not known:
            raise ValueError(f"{path} matches no file" + (f" in the formats {', '.join(FORMATS)}" if found else ""))
        if len(kinds) > 1:
            raise ValueError(f"{path} matches {' and '.join(sorted(kinds))} files: choose one with --format")
        if len({separator_of(f) for f in known}) > 1:
            raise ValueError(f"{path} matches both tab-separated and other files: read them separately")
        paths = tuple(sorted({str(f.resolve()) for f in known}))
        return cls(paths, str(_root(Path(path)).resolve()), kinds.pop())

    @property
    def partitions(self) -> list[dict[str, str]]:
        """Columns and their values in the names of folders, for each file."""
        inside = (Path(path).relative_to(self.root).parent.parts for path in self.paths)
        found = [
            {k: unquote(v) for k, equals, v in (part.partition("=") for part in parts) if equals} for parts in inside
        ]
        if any(one.keys() != found[0].keys() for one in found):
            raise ValueError(f"folders in {self.root} name different columns: read them separately")
        return found


def _root(path: Path) -> Path:
    """Folders before the first name that is a pattern or a partition."""
    whole = path.parent if path.is_file() else path
    return Path(*takewhile(lambda part: not (glob.has_magic(part) or "=" in part), whole.parts))


def _within(path: Path) -> list[Path]:
    """A file; or those of a folder and of folders in it, without hidden files and those that writers add."""
    if not path.is_dir():
        return [path]
    inside = (f for f in sorted(path.rglob("*")) if f.is_file())
    return [f for f in inside if not any(part.startswith((".", "_")) for part in f.relative_to(path).parts)]


@dataclass(frozen=True)
class Engine:
    """An engine: its name, its package, and how it opens files.

    Parameters
    ----------
    name, package : str
    module : str
        Module that is missing if it is not installed.
    session : callable
        A context manager that is open while frames are read.
    parquet : callable
        Frame of Parquet files, within a session.
    adopt : callable
        Frame of some columns of a table that Polars reads, within a session.
    """

    name: str
    package: str
    module: str
    session: Callable[[str | None], Any]
    parquet: Callable[[Any, Files], Any]
    adopt: Callable[[Any, ScannedTable, list[str]], Any]

    def check_installed(self) -> None:
        """ImportError naming the package to install."""
        if importlib.util.find_spec(self.module) is None:
            raise ImportError(f"--engine {self.name} is not installed: pip install {self.package}")


class Lazy(Headed):
    """A frame of an engine, or a table that Polars reads for it, with the names of its columns."""

    def __init__(self, name: str, engine: Engine, session: Any, read: Any) -> None:
        self._engine, self._session, self._read = engine, session, read
        self._schema = read.schema if isinstance(read, ScannedTable) else _schema(read)
        super().__init__(name, list(self._schema))

    def frame(self, labels: Sequence[str | None], numbers: Sequence[str | None]) -> Any:
        """The engine's frame, with the columns that are labels and those that are numbers."""
        names = [c for c in dict.fromkeys([*labels, *numbers]) if c is not None]
        if not isinstance(self._read, ScannedTable):
            return self._read
        self._read.read_as(labels, numbers)
        self._schema = _schema(self._read.frame)
        return self._engine.adopt(self._session, self._read, names)

    def example(self, column: str) -> Any:
        """A value of the type of a column: a number, a truth value, or text."""
        import narwhals.stable.v2 as nw

        kind = self._schema[column]
        return True if kind == nw.Boolean else 0 if kind.is_numeric() else ""


def _schema(frame: Any) -> dict[str, Any]:
    import narwhals.stable.v2 as nw

    return dict(nw.from_native(frame).lazy().collect_schema())


@contextmanager
def opened(engine: str, path: str | None, kind: str | None, sql: str | None, database: str | None) -> Iterator[Lazy]:
    """A frame of files, or of a query."""
    chosen = ENGINES[check_option("--engine", engine, ENGINES)]
    if sql is not None and engine != "duckdb":
        raise ValueError(f"--sql is for --engine duckdb; got {engine}")
    if database is not None and not Path(database).is_file():
        raise ValueError(f"--database {database} does not exist")
    files = None if path is None else Files.of(path, kind)
    chosen.check_installed()
    try:
        with warnings.catch_warnings(), chosen.session(database) as session, ExitStack() as stack:
            for begins in _NO_MATTER:
                warnings.filterwarnings("ignore", message=begins)
            read: Any
            if files is None:
                read = session.sql(sql)
            elif files.kind == "parquet":
                read = chosen.parquet(session, files)
            else:
                table = ScannedTable(str(path), [Path(p) for p in files.paths], files.kind, files.partitions)
                read = stack.enter_context(table)
            yield Lazy("the query" if files is None else str(path), chosen, session, read)
    except Exception as error:
        if type(error).__module__.partition(".")[0].lstrip("_") not in _THEIRS:
            raise
        message = str(error).strip().partition("\n\n")[0]
        raise ValueError(f"{'--sql' if files is None else f'--engine {engine}'}: {message}") from error


#: Packages whose errors concern the files or the query.
_THEIRS = ("duckdb", "pyspark", "py4j", "dask", "pyarrow", "fsspec")


#: Warnings about other versions of packages, which users of the command do not choose.
_NO_MATTER = ("Dask support is moving out of Narwhals", "PySpark does not yet fully support pandas")


@contextmanager
def _none(database: str | None) -> Iterator[None]:
    yield None


def _polars(_: Any, files: Files) -> Any:
    import polars as pl

    paths = [glob.escape(p) for p in files.paths]
    return pl.scan_parquet(paths, hive_partitioning=True, try_parse_hive_dates=False)


def _adopted_by_polars(_: Any, table: ScannedTable, columns: list[str]) -> Any:
    return table.frame.select(columns)


@contextmanager
def _duckdb_session(database: str | None) -> Iterator[Any]:
    import duckdb

    connection = duckdb.connect(database, read_only=True) if database is not None else duckdb.connect()
    try:
        yield connection
    finally:
        connection.close()


def _duckdb(connection: Any, files: Files) -> Any:
    return connection.read_parquet([glob.escape(p) for p in files.paths], hive_partitioning=True)


class _Stream:
    """Rows of a frame of Polars, batch by batch, as often as requested."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        batches = (one for rows in self._frame.collect_batches() for one in rows.to_arrow().to_batches())
        schema = self._frame.head(0).collect().to_arrow().schema
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)


def _adopted_by_duckdb(connection: Any, table: ScannedTable, columns: list[str]) -> Any:
    for i, name in enumerate(columns):
        if alike := [c for c in columns[:i] if c.casefold() == name.casefold()]:
            raise ValueError(f"--engine duckdb does not distinguish columns {alike[0]!r} and {name!r}: rename one")
    return connection.from_arrow(_Stream(table.frame.select(columns)))


def _dask(_: Any, files: Files) -> Any:
    import dask.dataframe as dd
    import pyarrow.dataset as ds

    schema = ds.dataset(list(files.paths), partitioning="hive", partition_base_dir=files.root).schema
    partitions = [n for n in schema.names if n not in ds.dataset(list(files.paths)).schema.names]
    options = {"dataset": {"partitioning": "hive", "partition_base_dir": files.root}} if partitions else {}
    return dd.read_parquet(list(files.paths), **options)


def _as_pandas(piece: Any) -> Any:
    return piece.collect(engine="streaming").to_pandas(use_pyarrow_extension_array=True)


def _adopted_by_dask(_: Any, table: ScannedTable, columns: list[str]) -> Any:
    import dask.dataframe as dd

    pieces = [piece.select(columns) for piece in table.pieces(PIECE_BYTES)]
    return dd.from_map(_as_pandas, pieces, meta=_as_pandas(pieces[0].head(0)))


@contextmanager
def _spark_session(database: str | None) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    if not {"SPARK_REMOTE", "SPARK_CONF_DIR", "MASTER"} & os.environ.keys():
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of workers here: this one, with this library
    running = SparkSession.getActiveSession()
    builder: Any = SparkSession.builder
    options = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in options.items():
        builder = builder.config(name, value)
    session = running or builder.appName("calibrant").getOrCreate()
    try:
        yield session
    finally:
        if running is None:
            session.stop()


def _spark(session: Any, files: Files) -> Any:
    return session.read.option("basePath", files.root).parquet(*files.paths)


def _adopted_by_spark(session: Any, table: ScannedTable, columns: list[str]) -> Any:
    """Each piece is read in a worker, by Polars, too."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    pieces = [piece.select(columns) for piece in table.pieces(PIECE_BYTES)]
    plans = [piece.serialize() for piece in pieces]
    plain = {pa.large_string(): pa.string(), pa.string_view(): pa.string()}
    schema = pa.schema([f.with_type(plain.get(f.type, f.type)) for f in pieces[0].head(0).collect().to_arrow().schema])

    def read(batches: Any) -> Iterator[Any]:
        from io import BytesIO

        import polars as pl

        for number in (n for batch in batches for n in batch.column(0).to_pylist()):
            for rows in pl.LazyFrame.deserialize(BytesIO(plans[number])).collect_batches():
                yield from rows.to_arrow().cast(schema).to_batches()

    return session.range(0, len(plans), 1, len(plans)).mapInArrow(read, from_arrow_schema(schema))


ENGINES = {
    one.name: one
    for one in (
        Engine("polars", "polars", "polars", _none, _polars, _adopted_by_polars),
        Engine("duckdb", "duckdb", "duckdb", _duckdb_session, _duckdb, _adopted_by_duckdb),
        Engine("dask", '"dask[dataframe]"', "dask", _none, _dask, _adopted_by_dask),
        Engine("spark", "pyspark", "pyspark", _spark_session, _spark, _adopted_by_spark),
    )
}
