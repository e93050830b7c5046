"""Engines' own queries on rows in Parquet files, and `from_frame` with each, timed in this process."""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"POLARS_MAX_THREADS": "1", "PYSPARK_PYTHON": sys.executable}

import numpy as np

import calibrant as cal

from ..process import peak

Row = tuple[Any, ...]


class Engine:
    """How an engine reads files, and its own queries."""

    def __init__(self, folder: str) -> None:
        self.folder, self.files = folder, f"{folder}/*.parquet"

    def frame(self) -> Any:
        """What `from_frame` is given."""
        raise NotImplementedError

    def sums(self) -> Row:
        """Of labels and scores, and the number of rows."""
        raise NotImplementedError

    def grouped(self, p: str) -> Any:
        """Rows and scores by label and cell of the score: 10,000 times the label, and the cell."""
        raise NotImplementedError

    def rows(self, grouped: Any) -> list[Row]:
        """Key, rows and scores."""
        return list(grouped)

    def close(self) -> None:
        """End what it has started."""


class Polars(Engine):
    def frame(self) -> Any:
        import polars as pl

        return pl.scan_parquet(self.files)

    def sums(self) -> Row:
        import polars as pl

        y, p = pl.col("y").cast(pl.Int64).sum(), pl.col("p").cast(pl.Float64).sum()
        return tuple(self.frame().select(y, p, pl.len().alias("n")).collect(engine="streaming").row(0))

    def grouped(self, p: str) -> Any:
        import polars as pl

        key = (pl.col(p) * 8192).cast(pl.Int32) + pl.col("y") * pl.lit(10_000, pl.Int32)
        total = pl.col(p).cast(pl.Float64).sum()
        return self.frame().group_by(key.alias("k")).agg(pl.len(), total).collect(engine="streaming")

    def rows(self, grouped: Any) -> list[Row]:
        return list(grouped.rows())


class DuckDB(Engine):
    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        import duckdb

        duckdb.sql("SET threads = 1")

    def frame(self) -> Any:
        import duckdb

        return duckdb.read_parquet(self.files)

    def sums(self) -> Row:
        import duckdb

        return tuple(duckdb.sql(f"SELECT sum(y), sum(p::DOUBLE), count(*) FROM '{self.files}'").fetchall()[0])

    def grouped(self, p: str) -> Any:
        import duckdb

        key = f"CAST(floor({p} * 8192) AS INTEGER) + y * 10000"
        return duckdb.sql(f"SELECT {key} k, count(*), sum({p}::DOUBLE) FROM '{self.files}' GROUP BY k").fetchall()


class Dask(Engine):
    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        import dask

        dask.config.set(scheduler="synchronous")

    def frame(self) -> Any:
        import dask.dataframe as dd

        return dd.read_parquet(self.files)

    def sums(self) -> Row:
        import dask

        f = self.frame()
        return tuple(dask.compute(f.y.astype("int64").sum(), f.p.astype("float64").sum(), f.y.size))

    def grouped(self, p: str) -> Any:
        f = self.frame()
        f = f.assign(k=(f[p] * 8192).astype("int32") + f.y.astype("int32") * 10_000, x=f[p].astype("float64"))
        return f.groupby("k").x.agg(["size", "sum"]).compute()

    def rows(self, grouped: Any) -> list[Row]:
        return list(grouped.itertuples())


class PySpark(Engine):
    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        session = session.config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "1g")
        self.session = session.getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")

    def frame(self) -> Any:
        return self.session.read.parquet(self.folder)

    def sums(self) -> Row:
        from pyspark.sql import functions as f

        return tuple(self.frame().select(f.sum("y"), f.sum(f.col("p").cast("double")), f.count("*")).first())

    def grouped(self, p: str) -> Any:
        from pyspark.sql import functions as f

        key = (f.floor(f.col(p) * 8192) + f.col("y") * 10_000).cast("int").alias("k")
        return self.frame().groupBy(key).agg(f.count("*"), f.sum(f.col(p).cast("double"))).collect()

    def close(self) -> None:
        java = self.session.sparkContext._gateway.proc
        self.session.stop()
        java.stdin.close()
        java.wait()  # so that its time is counted


ENGINES: dict[str, type[Engine]] = {"polars": Polars, "duckdb": DuckDB, "dask": Dask, "pyspark": PySpark}


def spent() -> float:
    """CPU seconds of this process and all that it started, such as Java."""
    import psutil

    me = psutil.Process()
    times = [one.cpu_times() for one in (me, *me.children(recursive=True))]
    return float(sum(t.user + t.system + t.children_user + t.children_system for t in times))


def measured(engine: str, names: list[str], folders: dict[str, int], seed: int) -> dict[str, float]:
    """CPU seconds of an engine's calls on the last folder, peak memory in MiB, and the calibration error.

    In each folder, the fastest of its turns counts; columns of scores have these names.
    """
    said: dict[str, Any] = {}
    best: dict[str, float] = {}
    clock = spent if engine == "pyspark" else time.process_time
    for folder, turns in folders.items():
        one = ENGINES[engine](folder)
        calls = calls_of(one, names)
        best = dict.fromkeys(calls, float("inf"))
        for what in sorted(calls, reverse=bool(seed % 2)) * turns:
            start = clock()
            said[what] = calls[what]()
            best[what] = min(best[what], clock() - start)
    memory = peak()
    check(said["ours"].required_totals(), said.get("sums"), [one.rows(grouped) for grouped in said["grouped"]])
    one.close()
    return {**best, "memory": memory, "error": float(said["ours"].calibration_error())}


def calls_of(one: Engine, names: list[str]) -> dict[str, Callable[[], Any]]:
    """What is timed."""
    if len(names) > 1:
        grouped = {"grouped": lambda: [one.grouped(p) for p in names]}
        return grouped | {"ours": lambda: cal.from_frame(one.frame(), label="y", prob=names, labels=range(len(names)))}
    calls: dict[str, Callable[[], Any]] = {"sums": one.sums, "grouped": lambda: [one.grouped("p")]}
    return calls | {"ours": lambda: cal.from_frame(one.frame(), label="y", prob="p")}


def check(ours: Any, sums: Row | None, grouped: list[list[Row]]) -> None:
    """RuntimeError where `from_frame` finds other rows, labels or scores than the engine."""
    first = 1 if len(grouped) == 1 else 0
    found: list[Row] = [] if sums is None else [(first, *map(float, sums))]
    for k, rows in enumerate(grouped, first):
        key, n, p = np.array(rows, dtype=float).T
        found.append((k, float(n[key // 10_000 == k].sum()), float(p.sum()), float(n.sum())))
    for k, *theirs in found:
        mine = (ours.class_weight[k], ours.prob_sum[k], ours.n_samples)
        if not np.allclose(mine, theirs, rtol=1e-9, atol=0):
            raise RuntimeError(f"from_frame finds labels, scores and rows {mine}, the engine {theirs}")
