"""Engines that read for a command: many files, partitioned folders, databases."""

from __future__ import annotations

import glob
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from ..data.tables import FORMATS, Headed, check_separated, format_inside, format_of
from .output import check_option


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
        """Files of a name, a pattern (``**`` crosses folders) or a folder; ValueError where there is none."""
        if kind is not None:
            check_option("--format", kind, FORMATS)
        if path == "-":
            raise ValueError("--engine cannot read standard input: leave out --engine")
        named = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
        found = [file for one in named for file in _within(Path(one))]
        known = [f for f in found if kind or f == Path(path) or format_of(f) is not None]
        kinds = {format_inside(f, str(f), kind) for f in known or found}
        if not known:
            raise ValueError(f"{path} matches no file" + (f" of {', '.join(FORMATS)}" if found else ""))
        if len(kinds) > 1:
            raise ValueError(f"{path} matches {' and '.join(sorted(kinds))} files: choose one with --format")
        suffixes = {f.suffix.lower() for f in known}
        if ".tsv" in suffixes and len(suffixes) > 1:
            raise ValueError(f"{path} matches both tab-separated and other files: read them separately")
        paths = tuple(sorted({str(f.resolve()) for f in known}))
        return cls(paths, str(_root(Path(path)).resolve()), kinds.pop())

    @property
    def separator(self) -> str:
        """Separator of CSV fields."""
        return "\t" if self.paths[0].lower().endswith(".tsv") else ","


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
        Whose absence says that it is not installed.
    session : callable
        A context manager that is open while frames are read.
    scan : callable
        Frame of files, within a session.
    """

    name: str
    package: str
    module: str
    session: Callable[[str | None], Any]
    scan: Callable[[Any, Files], Any]

    def check_installed(self) -> None:
        """ImportError naming the package to install."""
        if importlib.util.find_spec(self.module) is None:
            raise ImportError(f"--engine {self.name} is not installed: pip install {self.package}")


class Lazy(Headed):
    """A frame of an engine, with the names of its columns."""

    def __init__(self, name: str, frame: Any) -> None:
        import narwhals.stable.v2 as nw

        self.frame = frame
        self.schema = dict(nw.from_native(frame).lazy().collect_schema())
        super().__init__(name, list(self.schema))

    def example(self, column: str) -> Any:
        """A value of the kind that a column holds: a number, a truth value, or text."""
        import narwhals.stable.v2 as nw

        kind = self.schema[column]
        return True if kind == nw.Boolean else 0 if kind.is_numeric() else ""


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
        with warnings.catch_warnings(), chosen.session(database) as session:
            for begins in _NO_MATTER:
                warnings.filterwarnings("ignore", message=begins)
            frame = session.sql(sql) if files is None else chosen.scan(session, files)
            lazy = Lazy("the query" if files is None else str(path), frame)
            if files is not None and files.kind == "csv":
                check_separated(lazy.name, lazy.columns)
            yield lazy
    except Exception as error:
        if type(error).__module__.partition(".")[0].lstrip("_") not in _THEIRS:
            raise
        message = str(error).strip().partition("\n\n")[0]
        raise ValueError(f"{'--sql' if files is None else f'--engine {engine}'}: {message}") from error


#: Packages whose errors concern the files or the query.
_THEIRS = ("duckdb", "pyspark", "py4j", "dask", "pyarrow", "fsspec")


#: Warnings about other versions of packages, which who types a command does not choose.
_NO_MATTER = ("Dask support is moving out of Narwhals", "PySpark does not yet fully support pandas")


@contextmanager
def _none(database: str | None) -> Iterator[None]:
    yield None


def _polars(_: Any, files: Files) -> Any:
    import polars as pl

    paths = [glob.escape(p) for p in files.paths]
    if files.kind == "parquet":
        return pl.scan_parquet(paths, hive_partitioning=True)
    if files.kind == "arrow":
        return pl.scan_ipc(paths, hive_partitioning=True)
    if files.kind == "ndjson":
        return pl.scan_ndjson(paths, infer_schema_length=100_000)
    return pl.scan_csv(paths, separator=files.separator, infer_schema_length=100_000)


@contextmanager
def _duckdb_session(database: str | None) -> Iterator[Any]:
    import duckdb

    connection = duckdb.connect(database, read_only=True) if database is not None else duckdb.connect()
    try:
        yield connection
    finally:
        connection.close()


def _duckdb(connection: Any, files: Files) -> Any:
    paths: Any = [glob.escape(p) for p in files.paths]
    if files.kind == "parquet":
        return connection.read_parquet(paths, hive_partitioning=True)
    if files.kind == "csv":
        return connection.read_csv(paths, delimiter=files.separator, hive_partitioning=True)
    if files.kind == "ndjson":
        return connection.read_json(paths, format="newline_delimited", hive_partitioning=True)
    raise ValueError("--engine duckdb reads csv, parquet and ndjson, not arrow: use --engine polars")


def _dask(_: Any, files: Files) -> Any:
    import dask.dataframe as dd

    if files.kind == "parquet":
        import pyarrow.dataset as ds

        schema = ds.dataset(list(files.paths), partitioning="hive", partition_base_dir=files.root).schema
        partitions = [n for n in schema.names if n not in ds.dataset(list(files.paths)).schema.names]
        options = {"dataset": {"partitioning": "hive", "partition_base_dir": files.root}} if partitions else {}
        return dd.read_parquet(list(files.paths), **options)
    if files.kind == "csv":
        return dd.read_csv(list(files.paths), sep=files.separator)
    if files.kind == "ndjson":
        return dd.read_json(list(files.paths), lines=True)
    raise ValueError("--engine dask reads csv, parquet and ndjson, not arrow: use --engine polars")


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
    reader = session.read.option("basePath", files.root)
    if files.kind == "parquet":
        return reader.parquet(*files.paths)
    if files.kind == "csv":
        return reader.option("sep", files.separator).csv(list(files.paths), header=True, inferSchema=True)
    if files.kind == "ndjson":
        return reader.json(list(files.paths))
    raise ValueError("--engine spark reads csv, parquet and ndjson, not arrow: use --engine polars")


ENGINES = {
    one.name: one
    for one in (
        Engine("polars", "polars", "polars", _none, _polars),
        Engine("duckdb", "duckdb", "duckdb", _duckdb_session, _duckdb),
        Engine("dask", '"dask[dataframe]"', "dask", _none, _dask),
        Engine("spark", "pyspark", "pyspark", _spark_session, _spark),
    )
}
