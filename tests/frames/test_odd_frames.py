"""Odd frames of every library: the number that arrays give, or a refusal that names the same thing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cal

from ..hostile.files import BASE, CODES, MANY, N, P, W, Y
from .engines import ENGINES, IN_MEMORY, framed

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROW = pl.int_range(N)
HEAVY = pl.col("w") > 1
ONE = {"label": "y_true", "prob": "y_prob"}
THREE = ["p_0", "p_1", "p_2"]
OF_THREE = {"label": "y_true", "prob": THREE}
MANY_ROWS = pl.DataFrame({"y_true": CODES} | {f"p_{k}": MANY[:, k] for k in range(3)})
BINS = cal.Binned(5)


def of_arrays(y, p, w=None):
    return cal.calibration_error(y, p, sample_weight=w, estimator=BINS)


#: Rows, options, and the number or words of the refusal.
CASES = {
    "Boolean weights": (BASE.with_columns(HEAVY), {**ONE, "weight": "w"}, of_arrays(Y, P, W > 1)),
    "Boolean weights, groups": (
        BASE.with_columns(HEAVY, g=ROW % 12), {**ONE, "weight": "w", "groups": "g"}, of_arrays(Y, P, W > 1)
    ),
    "Boolean scores": (BASE.with_columns(y_prob=pl.col("y_true") > 0), ONE, of_arrays(Y, Y)),
    "a Boolean score of three": (
        MANY_ROWS.with_columns(p_0=pl.lit(value=True), p_1=0.0, p_2=0.0), OF_THREE, of_arrays(CODES, np.eye(3)[[0] * N])
    ),
    "whole-number scores": (BASE.with_columns(y_prob="y_true"), ONE, of_arrays(Y, Y)),
    "float labels": (BASE.with_columns(pl.col("y_true").cast(pl.Float64)), ONE, of_arrays(Y, P)),
    "all sums off 1": (MANY_ROWS.with_columns(pl.col(THREE) * 0.9), OF_THREE, "sum to 1"),
    "one sum off 1": (
        MANY_ROWS.with_columns(p_1=pl.when(ROW == 7).then(pl.col("p_1") + 0.2).otherwise("p_1")), OF_THREE, "sum to 1"
    ),
    "NaN": (BASE.with_columns(y_prob=pl.when(ROW == 7).then(float("nan")).otherwise("y_prob")), ONE, "'y_prob' is"),
    "a missing score": (BASE.with_columns(y_prob=pl.when(ROW != 7).then("y_prob")), ONE, "'y_prob' is missing"),
    "a missing label": (BASE.with_columns(y_true=pl.when(ROW != 7).then("y_true")), ONE, "'y_true' is missing"),
    "huge weights": (BASE.with_columns(w=1e200), {**ONE, "weight": "w"}, "weight must have squares within range"),
    "tiny weights": (BASE.with_columns(w=1e-200), {**ONE, "weight": "w"}, "weight must have squares within range"),
    "no weights": (BASE.with_columns(w=0), {**ONE, "weight": "w"}, "weight must not be all zero"),
    "large weights": (BASE.with_columns(pl.col("w") * 1e30), {**ONE, "weight": "w"}, of_arrays(Y, P, W)),
    "dates as labels": (BASE.with_columns(y_true=pl.date(2026, 1, 1)), ONE, "label must hold labels"),
    "text as scores": (BASE.with_columns(pl.col("y_prob").cast(pl.String)), ONE, "prob must hold numbers"),
}  # fmt: skip


def check(name, frame_of):
    rows, options, wanted = CASES[name]
    if isinstance(wanted, str):
        with pytest.raises((ValueError, TypeError), match=wanted):
            cal.from_frame(frame_of(rows), **options)
        return
    found = cal.from_frame(frame_of(rows), **options)
    assert found.n_samples == N
    assert found.estimate(BINS, n_resamples=5).value == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("engine", IN_MEMORY)
@pytest.mark.parametrize("name", CASES)
def test_frames_in_memory(name, engine):
    check(name, lambda rows: framed(rows, engine))


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_half_floats(engine):
    """Which Arrow does not compare, and DuckDB does not read."""
    frame = framed(BASE.with_columns(pl.col("y_prob").cast(pl.Float16)), engine)
    found = cal.from_frame(frame, **ONE).estimate(BINS, n_resamples=5).value
    assert found == pytest.approx(of_arrays(Y, P.astype(np.float16)), abs=1e-9)


@pytest.mark.engines
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_frames_of_engines(name, engine, request):
    pytest.importorskip(engine)
    spark = request.getfixturevalue("spark") if engine == "pyspark" else None
    check(name, lambda rows: framed(rows, engine, spark))


@pytest.mark.engines
def test_not_a_number_beside_what_a_parquet_file_declares(tmp_path):
    """DuckDB takes 1 for the largest number of a file that declares it, and NaN for none."""
    duckdb = pytest.importorskip("duckdb")
    for role, options in (("y_prob", ONE), ("w", {**ONE, "weight": "w"})):
        rows = BASE.with_columns(pl.col("w").cast(pl.Float64))
        rows = rows.with_columns(pl.when(ROW == 7).then(float("nan")).otherwise(role).alias(role))
        rows.write_parquet(tmp_path / "rows.parquet")
        with duckdb.connect() as own:
            read = own.read_parquet(str(tmp_path / "rows.parquet"))
            with pytest.raises(ValueError, match=f"1 bad row of 60; in one of them '{role}' is"):
                cal.from_frame(read, **options)
            assert cal.from_frame(read, **options, on_invalid="drop").dropped == 1


def twice(library, spark=None):
    """Three columns, two of them with one name."""
    names = ["y_true", "y_prob", "y_prob"]
    pandas = BASE.to_pandas().set_axis(names, axis=1)
    if library == "pandas":
        return pandas
    if library == "pyarrow":
        return BASE.to_arrow().rename_columns(names)
    if library == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(pandas, npartitions=3)
    return spark.createDataFrame(BASE.to_arrow()).toDF(*names)


@pytest.mark.parametrize(
    "library", ["pandas", "pyarrow", *(pytest.param(n, marks=pytest.mark.engines) for n in ("dask", "pyspark"))]
)
def test_two_columns_of_one_name(library, request):
    pytest.importorskip(library)
    frame = twice(library, request.getfixturevalue("spark") if library == "pyspark" else None)
    with pytest.raises(ValueError, match=r"frame must have columns of different names: .*'y_prob'"):
        cal.from_frame(frame, **ONE)


@pytest.mark.engines
def test_names_that_spark_reads_something_into(spark):
    rows = BASE.rename({"y_true": "y.true"})
    with pytest.raises(ValueError, match=r"without dots and ` for Spark; got 'y\.true': rename it"):
        cal.from_frame(framed(rows, "pyspark", spark), label="y.true", prob="y_prob")
    rows = MANY_ROWS.rename({"p_0": "p_a", "p_1": "p_A", "p_2": "p_b"})
    with pytest.raises(ValueError, match="that Spark distinguishes; got 'p_a' and 'p_A': rename one"):
        cal.from_frame(framed(rows, "pyspark", spark), label="y_true", prob=["p_a", "p_A", "p_b"], labels=range(3))


def test_pandas_columns_of_python_objects():
    frame = pd.DataFrame({"y_true": Y, "y_prob": P, "w": [True] * (N - 1) + [None]})
    with pytest.raises(TypeError, match="weight must hold numbers; column 'w' holds Object"):
        cal.from_frame(frame, **ONE, weight="w")
