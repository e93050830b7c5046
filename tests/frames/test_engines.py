"""Engines say what arrays say: DuckDB, Dask and Spark, as they are."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal

from .cases import CASES, FOUR, binary_rows, matrix_rows
from .engines import ENGINES, framed, same
from .grouped import check_days, check_periods, check_subgroups
from .sampled import check_drawn
from .several_labels import check_labels
from .test_from_frame import WHAT, check, refused

pytestmark = [
    pytest.mark.engines,
    # Of the engines themselves: what they will want, and files that they leave to the garbage collector.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(params=ENGINES)
def frame_of(request):
    pytest.importorskip(request.param)
    spark = request.getfixturevalue("spark") if request.param == "pyspark" else None
    return partial(framed, engine=request.param, spark=spark)


@pytest.mark.parametrize("name", list(CASES))
def test_an_engine_says_what_arrays_say(name, frame_of):
    check(name, frame_of)


def test_several_labels_of_an_engine(frame_of):
    check_labels(frame_of, notions=("auto", "multilabel:micro"))


def test_bad_rows_of_an_engine_are_refused(frame_of):
    refused(frame_of)


@pytest.mark.parametrize("notion", ["auto", "confidence"])
def test_groups_of_an_engine(frame_of, notion):
    rows = binary_rows(edges=False).with_columns(
        part=pl.when(pl.int_range(pl.len()) % 9 == 0).then(None).otherwise("part")
    )
    found = cal.from_frame(frame_of(rows), **WHAT, by="part", notion=notion)
    wanted = cal.from_frame(rows, **WHAT, by="part", notion=notion)
    assert list(found) == list(wanted) == ["a", "b", "c", None]
    for value, sums in found.items():
        same(sums, wanted[value])


@pytest.mark.parametrize("every", ["week", "month"])
def test_periods_of_an_engine(every, frame_of):
    rng = np.random.default_rng(0)
    p = rng.random(600)
    day = np.datetime64("2026-01-01", "us") + np.arange(600).astype("m8[D]") // 4
    y = (rng.random(600) < p).astype(int)
    options = {"label": "y", "prob": "p", "time": "day", "every": every}
    found = cal.from_frame(frame_of(pl.DataFrame({"y": y, "p": p, "day": day})), **options).over_time()
    wanted = cal.calibration_over_time(y, p, day, every=every)
    for name in ("name", "n_samples"):
        assert [getattr(one, name) for one in found.periods] == [getattr(one, name) for one in wanted.periods]
    np.testing.assert_allclose([one.error for one in found.periods], [one.error for one in wanted.periods], rtol=1e-6)


def test_groups_in_periods_and_subgroups_of_an_engine(frame_of):
    check_periods(frame_of)
    check_subgroups(frame_of)
    check_days(frame_of)


def test_an_infinite_loss_of_an_engine(frame_of):
    rows = pl.DataFrame({"y": [1, 0, 1], "p": [0.0, 0.5, 1.0]})
    found = cal.from_frame(frame_of(rows), **WHAT)
    assert found.totals.log_loss == np.inf
    assert found.totals.brier == 1.25


def test_a_relation_of_ones_own_connection(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    rows = matrix_rows(np.float32)
    rows.write_parquet(tmp_path / "rows.parquet")
    with duckdb.connect() as own:
        read = own.read_parquet(str(tmp_path / "*.parquet"))
        for notion in ("confidence", "classwise"):
            found = cal.from_frame(read, label="y", prob=FOUR, notion=notion)
            same(found, cal.from_frame(rows, label="y", prob=FOUR, notion=notion))
        query = own.sql(f"SELECT y = 'cat' AS y, p_cat AS p FROM '{tmp_path}/*.parquet'")
        found = cal.from_frame(query, **WHAT)
        same(found, cal.Accumulator().update(rows["y"].to_numpy() == "cat", rows["p_cat"].to_numpy()))
        decimals = own.sql("SELECT range % 2 AS y, 0.25::DECIMAL(4, 2) AS p FROM range(8)")
        assert cal.from_frame(decimals, **WHAT).totals.brier == pytest.approx(4 * 0.25**2 + 4 * 0.75**2)


def test_partitions_without_rows():
    dd = pytest.importorskip("dask.dataframe")
    rows = binary_rows(edges=False).sort("p").to_pandas()
    frame = dd.from_pandas(rows, npartitions=3)
    found = cal.from_frame(frame[frame.p > 0.9], **WHAT)
    assert found.source == "batches of rows, dask"
    same(found, cal.from_frame(rows[rows.p > 0.9], **WHAT))
    by_subgroup = cal.from_frame(frame[frame.p > 0.9].assign(day=1), by="day", **WHAT)[1]
    assert by_subgroup.source == "one aggregation, dask"
    same(by_subgroup, found)


@pytest.mark.slow
@pytest.mark.parametrize("prob", ["p_cat", FOUR])
def test_a_worker_of_dask_that_is_killed_half_way(prob, tmp_path):
    pytest.importorskip("distributed")
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    rows = pl.concat([matrix_rows(seed=i) for i in range(8)])
    rows = rows.with_columns(hit=(pl.col("y") == "cat").cast(pl.Int8))
    for i in range(8):
        rows[i * 4000 : (i + 1) * 4000].write_parquet(tmp_path / f"{i}.parquet")
    label = "hit" if isinstance(prob, str) else "y"
    started = tmp_path / "started"
    started.mkdir()

    def slowly(part):
        (started / f"{os.getpid()}-{time.time_ns()}").touch()
        time.sleep(0.4)
        return part

    def kill(worker):
        while len(list(started.iterdir())) < 3:
            time.sleep(0.02)
        os.kill(worker, signal.SIGKILL)

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = list(client.run(os.getpid).values())
        frame = dd.read_parquet(str(tmp_path / "*.parquet")).map_partitions(slowly)
        killer = threading.Thread(target=kill, args=(workers[0],))
        killer.start()
        found = cal.from_frame(frame, label=label, prob=prob, labels=None if isinstance(prob, str) else rows_labels())
        killer.join()
        assert workers[0] not in client.run(os.getpid).values()
    same(found, cal.from_frame(rows, label=label, prob=prob))


def rows_labels():
    return [name.removeprefix("p_") for name in FOUR]


@pytest.mark.slow
def test_spark_connect():
    """In a process of its own: a session of the other kind may be running in this one."""
    pytest.importorskip("pyspark.sql.connect.session", reason="pyspark[connect] is not there", exc_type=ImportError)
    script = """
import calibrant as cal
from pyspark.sql import SparkSession
from tests.frames.cases import FOUR, binary_rows, matrix_rows
from tests.frames.engines import same
session = SparkSession.builder.remote("local[1]").getOrCreate()
for rows, options in ((binary_rows(edges=False), {"prob": "p"}), (matrix_rows(), {"prob": FOUR})):
    found = cal.from_frame(session.createDataFrame(rows.to_arrow()), label="y", **options)
    same(found, cal.from_frame(rows, label="y", **options))
print("the same", found.source)
session.stop()
"""
    places = [str(Path(__file__).parents[2]), str(Path(cal.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert "the same batches of rows, pyspark[connect]" in done.stdout, done.stderr[-3000:]


def test_rows_that_an_engine_draws(frame_of):
    check_drawn(frame_of)
