"""The same rows as frames of every engine, and a comparison of what they say with what arrays say."""

from __future__ import annotations

import numpy as np
import polars as pl

import calibrant as cal
from calibrant.sums import Grid

IN_MEMORY = ("polars", "polars lazy", "pandas", "pyarrow")
ENGINES = ("duckdb", "dask", "pyspark")
NEAR = {"rtol": 1e-12, "atol": 1e-12}


def framed(rows: pl.DataFrame, engine: str, spark=None):
    """The rows as a frame of an engine, in several pieces where it has some."""
    if engine == "polars":
        return rows
    if engine == "polars lazy":
        return rows.lazy()
    if engine == "pandas":
        return rows.to_pandas()
    if engine == "pyarrow":
        return rows.to_arrow()
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().from_arrow(rows.to_arrow())  # a connection of one's own
    if engine == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(rows.to_pandas(), npartitions=3)
    return spark.createDataFrame(rows.to_arrow()).repartition(3)


def same(found: cal.Accumulator, wanted: cal.Accumulator, rows_of_cells: bool = False) -> None:
    """Whether sums and what is read from them agree; `rows_of_cells` compares what is read from the finest cells."""
    assert (found.classes, found.positive, str(found.notion)) == (wanted.classes, wanted.positive, str(wanted.notion))
    for name in wanted.totals.__dataclass_fields__:
        np.testing.assert_allclose(
            getattr(found.totals, name), getattr(wanted.totals, name), **NEAR, err_msg=f"totals.{name}"
        )
    np.testing.assert_array_equal(found.groups, wanted.groups)
    for which in ("problem_sums", "by_class"):
        ours, theirs = getattr(found, which), getattr(wanted, which)
        assert (ours is None) == (theirs is None)
        if ours is None:
            continue
        assert (ours.labels, ours.domain) == (theirs.labels, theirs.domain)
        for one, other in zip(ours.parts, theirs.parts, strict=True):
            for need, sums in other.items():
                if need == theirs.histogram and not rows_of_cells:
                    continue
                fields = ("count", "positive", "total", "squares", "n_samples", "integral")
                if need != Grid():
                    fields = ("weight", "score", "outcome", "square", "repeat", "n_samples", "integral")
                for name in (*fields, *(("parts",) if sums.parts is not None else ())):
                    a, b = (getattr(s.dense if need == Grid() else s, name) for s in (one[need], sums))
                    # Offsets within a cell are found from scores, whose rounding is that much larger.
                    near = {"rtol": 1e-12, "atol": 1e-9} if name in ("count", "positive") else NEAR
                    np.testing.assert_allclose(a, b, **near, err_msg=f"{which}: {need} {name}")
    for estimator in (cal.Binned(), cal.EmpiricalBayes(), cal.estimators.Density(), *wanted.estimators):
        a, b = found.estimate(estimator, n_resamples=20), wanted.estimate(estimator, n_resamples=20)
        np.testing.assert_allclose((a.value, *a.interval), (b.value, *b.interval), rtol=1e-7, atol=1e-12)
        assert abs(a.value - b.value) < 1e-12
