"""Groups with subgroups and with periods of frames in memory; of engines in `test_engines`."""

from functools import partial

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.frames import sign_sums

from .cases import FOUR, matrix_rows
from .engines import IN_MEMORY, framed
from .grouped import WHAT, check_days, check_periods, check_subgroups, of_arrays, rows_in_groups, same_parts, same_tests


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_groups_in_periods_are_those_of_rows(engine):
    check_periods(partial(framed, engine=engine))


@pytest.mark.parametrize("weight", ["times", "share"])
def test_weighted_rows_of_groups_in_periods(weight):
    check_periods(pl.DataFrame.lazy, weight)


def test_of_many_groups_signs_are_drawn():
    check_periods(pl.DataFrame.lazy, n_groups=200, drawn=0.06)  # four standard errors of two of them


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_rows_of_a_day_are_a_group(engine):
    check_days(partial(framed, engine=engine))


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_groups_in_subgroups_are_those_of_rows(engine):
    check_subgroups(partial(framed, engine=engine))


def test_groups_widen_what_periods_say():
    rows = rows_in_groups()
    one, alone = (
        cal.from_frame(rows, label="y", prob="p", time="day", every="month", groups=g).over_time() for g in ("g", None)
    )
    assert np.ptp(one.gap_interval) > 2 * np.ptp(alone.gap_interval)
    assert one.change_test.statistic < alone.change_test.statistic / 2


def test_rows_of_groups_of_their_own_are_independent():
    rows = rows_in_groups().with_columns(g=pl.int_range(pl.len()))
    options = {"label": "y", "prob": "p", "time": "day", "every": "month"}
    found, wanted = (cal.from_frame(rows, **options, groups=g) for g in ("g", None))
    assert found.over_time().to_dict() == wanted.over_time().to_dict()
    assert all(one.groups.size == one.n_samples for one in found.values())


def test_confidences_of_groups_in_periods():
    """Several columns of probabilities, whose sums come from batches; few groups, whose signs are all listed."""
    rows = matrix_rows().with_columns(
        day=pl.lit(np.datetime64("2026-01-01")).dt.offset_by(pl.format("{}mo", pl.int_range(pl.len()) // 1000)),
        g=pl.int_range(pl.len()) * 7 % 11,
    )
    found = cal.from_frame(rows, label="y", prob=FOUR, groups="g", time="day", every="month").over_time()
    probs = rows.select(FOUR).to_numpy()
    wanted = cal.calibration_over_time(
        rows["y"], probs, rows["day"], every="month", groups=rows["g"], labels=[name[2:] for name in FOUR]
    )
    same_parts(found.periods, wanted.periods, 0.02, rtol=1e-5)
    same_tests(found.period_test, wanted.period_test, 0.02)


def test_subgroups_of_several_classes_keep_their_groups():
    rows = matrix_rows().with_columns(site=pl.int_range(pl.len()) % 2, g=pl.int_range(pl.len()) // 40)
    sums = cal.from_frame(rows, label="y", prob=FOUR, notion="classwise", by="site", groups="g")
    mine = rows.filter(pl.col("site") == 1)
    alone = cal.from_frame(mine, label="y", prob=FOUR, notion="classwise", groups="g")
    np.testing.assert_allclose(sums[1].estimate().interval, alone.estimate().interval, rtol=1e-9)


def test_rows_without_a_group_are_left_out():
    rows = rows_in_groups()
    lost = rows.with_columns(g=pl.when(pl.int_range(pl.len()) % 50 == 0).then(None).otherwise("g"))
    with pytest.raises(ValueError, match="60 bad rows of 3,000; in one of them 'g' is missing"):
        cal.from_frame(lost, **WHAT, time="day", every="month")
    found = cal.from_frame(lost, **WHAT, time="day", every="month", on_invalid="drop")
    assert (found.dropped, found.n_samples) == (60, 2940)
    kept = cal.from_frame(lost.drop_nulls("g"), **WHAT, time="day", every="month")
    assert found.over_time().to_dict() == kept.over_time().to_dict()


def test_a_period_without_weight_is_left_as_it_is():
    first = pl.col("day").dt.month() == 1
    rows = rows_in_groups().with_columns(times=pl.when(first).then(0).otherwise("times"))
    found = cal.from_frame(rows, **WHAT, weight="times", time="day", every="month").over_time()
    wanted = cal.calibration_over_time(rows["y"], rows["p"], rows["day"], every="month", **of_arrays(rows, "times"))
    assert np.isnan(found.periods[0].gap)
    same_parts(found.periods, wanted.periods, 1e-12)


def test_one_group_is_refused():
    rows = rows_in_groups().with_columns(g=pl.lit("one"))
    with pytest.raises(ValueError, match="at least 2 groups with weight; all rows of column 'g'"):
        cal.from_frame(rows, **WHAT, time="day", every="month")


def test_bundles_of_very_many_groups_say_much_the_same(monkeypatch):
    """Fewer bundles than groups and few ranges of scores: memory of a bounded size, in which p-values hardly change."""
    rows = rows_in_groups(n_groups=600, n=6000, seed=2)
    options = {"time": "day", "every": "month"}
    exact = cal.from_frame(rows, **WHAT, **options).over_time()
    monkeypatch.setattr(sign_sums, "_NUMBERS", 1)
    found = cal.from_frame(rows, **WHAT, **options)
    cells = found._columns[0].of_groups
    assert cells.groups.max() < 256
    assert cells.last.sum() == 5 * 32
    bundled = found.over_time()
    assert bundled.period_test.n_groups == 600
    np.testing.assert_allclose(
        [one.pvalue for one in bundled.periods], [one.pvalue for one in exact.periods], rtol=0.5, atol=0.1
    )
    np.testing.assert_allclose(bundled.period_test.pvalue, exact.period_test.pvalue, atol=0.1)
    for name in ("gap_interval", "error_interval"):
        ours, theirs = ([getattr(one, name) for one in each.periods] for each in (bundled, exact))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
