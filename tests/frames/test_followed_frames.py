"""Subgroups that are followed over the periods of a frame: what arrays say of them."""

from functools import partial

import numpy as np
import polars as pl
import pytest

import calibrant as cal

from .cases import FOUR, matrix_rows
from .engines import ENGINES, IN_MEMORY, framed
from .followed import WHAT, check_followed, followed_rows


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_each_subgroup_is_followed_as_in_arrays(engine):
    check_followed(partial(framed, engine=engine))


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_by_engines(engine, request):
    pytest.importorskip({"dask": "dask.dataframe"}.get(engine, engine))
    spark = request.getfixturevalue("spark") if engine == "pyspark" else None
    check_followed(partial(framed, engine=engine, spark=spark))


def test_with_weights():
    check_followed(pl.DataFrame.lazy, weight="w")


def test_rows_in_groups():
    check_followed(pl.DataFrame.lazy, groups="g")


def test_each_one_has_its_sums():
    rows = followed_rows()
    sums = cal.from_frame(rows, **WHAT, by="site")
    assert sums.n_samples == len(rows)
    assert str(sums).startswith("Sums of 3,600 rows by month and subgroup; over_time() tests them for changes.")
    march = rows.filter((pl.col("site") == "late") & (pl.col("day").dt.month() == 3))
    (key,) = [key for key in sums if key[0] == "late" and key[1].month == 3]
    np.testing.assert_allclose(
        sums[key].estimate(cal.Binned(5)).value, cal.estimate(march["y"], march["p"], estimator=cal.Binned(5)).value
    )
    assert len(sums) == 6 + 6 + 4


def test_several_columns_are_followed_side_by_side():
    rows = followed_rows()
    sums = cal.from_frame(rows.lazy(), **WHAT, by=["site", "version"])
    found = sums.over_time()
    names = ["site=late", "site=north", "site=west", "version=1", "version=2"]
    assert [one.course for one in found.courses] == names
    assert sums.n_samples == len(rows)
    wanted = cal.calibration_over_time(
        rows["y"], rows["p"], rows["day"], by=rows.select("site", "version"), every="month"
    )
    assert [one.course for one in wanted.courses] == names
    assert found.by == wanted.by == "site, version"
    for one, other in zip(found.courses, wanted.courses, strict=True):
        np.testing.assert_allclose([p.gap for p in one.periods], [p.gap for p in other.periods], atol=1e-12)


def test_missing_values_are_a_subgroup():
    rows = followed_rows().with_columns(site=pl.when(pl.col("site") == "late").then(None).otherwise("site"))
    found = cal.from_frame(rows, **WHAT, by="site", groups="g").over_time()
    assert [one.course for one in found.courses] == ["north", "west", "(missing)"]
    assert found.courses[2].n_samples == rows["site"].null_count()


def test_several_columns_of_probabilities():
    """Whose sums come from batches, by pairs of values."""
    rows = matrix_rows().with_columns(
        day=pl.lit(np.datetime64("2026-01-01")).dt.offset_by(pl.format("{}mo", pl.int_range(pl.len()) // 1000)),
        site=pl.int_range(pl.len()) % 2,
    )
    options = {"label": "y", "prob": FOUR, "time": "day", "every": "month"}
    found = cal.from_frame(rows, **options, by="site").over_time()
    for site, one in enumerate(found.courses):
        alone = cal.from_frame(rows.filter(pl.col("site") == site), **options).over_time()
        assert one.course == str(site)
        np.testing.assert_allclose([p.error for p in one.periods], [p.error for p in alone.periods], atol=1e-9)


def test_bad_rows_are_left_out_of_their_subgroup():
    rows = followed_rows().with_columns(p=pl.when(pl.int_range(pl.len()) % 9 == 0).then(2.0).otherwise("p"))
    with pytest.raises(ValueError, match="400 bad rows of 3,600"):
        cal.from_frame(rows, **WHAT, by="site")
    found = cal.from_frame(rows, **WHAT, by="site", on_invalid="drop")
    kept = cal.from_frame(rows.filter(pl.col("p") <= 1), **WHAT, by="site")
    assert (found.dropped, found.n_samples) == (400, 3200)
    assert found.over_time().to_dict() == kept.over_time().to_dict()
