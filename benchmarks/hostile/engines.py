"""Kinds of engines: frames of DuckDB, Dask and Spark, whose columns are hostile; the answer is that of arrays."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import calibrant as cal

from .drawing import Draw
from .endings import Case, EndedError
from .memory import drawn_arguments, frame_columns, signature
from .rows import Rows

Kind = Callable[[Draw], Case]


@cache
def spark() -> Any:
    """One session for all cases."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "1g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def of_duckdb(table: Any) -> Any:
    import duckdb

    return duckdb.connect().from_arrow(table)


def of_dask(table: Any) -> Any:
    import dask.dataframe as dd

    if any(pa.types.is_nested(kind) or pa.types.is_binary(kind) for kind in table.schema.types):
        raise TypeError("Dask makes text of lists and bytes")
    return dd.from_pandas(table.to_pandas(), npartitions=2)


def of_spark(table: Any) -> Any:
    return spark().createDataFrame(table)


ENGINES = {"DuckDB": of_duckdb, "Dask": of_dask, "Spark": of_spark}


def table_of(columns: dict[str, Any]) -> Any:
    """Columns as Arrow's table; those that it does not hold are left out."""
    held = {}
    for name, values in columns.items():
        try:
            name.encode()
            held[name] = pa.array(np.asarray(values).tolist() if not isinstance(values, list) else values)
        except (Exception, pl.exceptions.PanicException):  # no column holds such values
            continue
    n = max(map(len, held.values()), default=0)
    return pa.table({name: values for name, values in held.items() if len(values) == n})


def engine_case(name: str, draw: Draw) -> Case:
    """Sums of a frame of an engine, and of the same rows in memory."""
    rows = Rows(draw)
    table = table_of(frame_columns(draw, rows))
    skip = (
        "frame",
        "label",
        "prob",
        "weight",
        "groups",
        "by",
        "time",
        "every",
        "labels",
        "pos_label",
        "n_cells",
        "estimators",
        "binned",
    )
    given = drawn_arguments(draw, rows, cal.from_frame, "from_frame", skip=skip)
    prob = [column for column in table.column_names if column.startswith("p") and column != "part"]
    given |= {"label": "y", "prob": prob[0] if len(prob) == 1 else prob}
    for option, column in (("weight", "w"), ("groups", "g"), ("by", "part")):
        if draw.chance(0.25):
            given[option] = column if draw.chance(0.9) else draw.one(["none such", "y", 1, None, ["part"], "p"])
            draw.say(option, given[option])
    if not rows.binary and draw.chance(0.7):
        given["labels"] = rows.labels()
    try:
        frame = ENGINES[name](table)
    except Exception:  # the engine holds no such columns
        table = table.select([c for c in table.column_names if c in ("y", "p")])
        try:
            frame = ENGINES[name](table)
        except Exception:
            frame = object()

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the engines themselves
            found = cal.from_frame(frame, **given)
            if isinstance(found, cal.Accumulator):
                value = found.calibration_error()
                try:
                    wanted = cal.from_frame(table, **given).calibration_error()
                except (ValueError, TypeError) as error:
                    raise EndedError(f"rows in memory are refused: {error}") from None
                if not np.isclose(value, wanted, rtol=1e-7, atol=1e-9, equal_nan=True):
                    raise EndedError(f"{value}, and {wanted} of rows in memory")
        return 0.0

    names = (*signature(cal.from_frame).parameters, *signature(cal.calibration_error).parameters)
    return Case(f"{name}: {draw}", run, [], names, longest=120)


def kinds() -> dict[str, Kind]:
    """Every engine that is installed."""
    found: dict[str, Kind] = {}
    for name, module in (("DuckDB", "duckdb"), ("Dask", "dask"), ("Spark", "pyspark")):
        try:
            __import__(module)
        except ImportError:
            continue
        found[name] = partial(engine_case, name)
    return found
