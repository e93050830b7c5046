"""Subgroups and periods of rows in groups: what a frame says of them, and what arrays say."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import calibrant as cal

WHAT = {"label": "y", "prob": "p", "groups": "g"}
#: Of a period or a subgroup.
NUMBERS = ("n_samples", "base_rate", "mean_probability", "gap", "gap_interval", "error", "error_interval")


def rows_in_groups(n_groups: int = 8, n: int = 3000, seed: int = 0) -> pl.DataFrame:
    """Five months; each group has rows in all of them, and its outcomes are more or less frequent than predicted."""
    rng = np.random.default_rng(seed)
    g, p = rng.integers(n_groups, size=n), rng.beta(2, 3, n)
    chance = 1 / (1 + np.exp(-np.log(p / (1 - p)) - rng.normal(0, 0.6, n_groups)[g]))
    month = np.datetime64("2026-01", "M") + (np.arange(n) * 5 // n).astype("m8[M]")
    return pl.DataFrame(
        {
            "y": (rng.random(n) < chance).astype(int),
            "p": p,
            "day": month.astype("M8[us]"),
            "site": rng.choice(["north", "south"], n),
            "g": np.array([f"patient {i}" for i in g]),
            "times": rng.integers(1, 4, n),
            "share": rng.random(n),
        }
    )


def of_arrays(rows: pl.DataFrame, weight: str | None = None) -> dict[str, Any]:
    """Arguments of a function of rows."""
    w = None if weight is None else rows[weight].to_numpy()
    return {"groups": rows["g"].to_numpy(), "sample_weight": w}


def same_tests(one: Any, other: Any, drawn: float) -> None:
    """Tests of the same statistic, and p-values that are equal but for draws."""
    np.testing.assert_allclose(one.statistic, other.statistic, rtol=1e-5, atol=1e-6)
    assert one.n_groups == other.n_groups
    assert abs(one.pvalue - other.pvalue) <= drawn, (one.pvalue, other.pvalue)


def same_parts(found: Any, wanted: Any, drawn: float, rtol: float = 1e-9) -> None:
    """Periods, or subgroups."""
    assert [one.name for one in found] == [one.name for one in wanted]
    for name in NUMBERS:
        ours, theirs = ([getattr(one, name) for one in parts] for parts in (found, wanted))
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol, err_msg=name)
    np.testing.assert_allclose([one.pvalue for one in found], [one.pvalue for one in wanted], rtol=0, atol=drawn)
    assert [one.warnings for one in found] == [one.warnings for one in wanted]


def check_periods(frame_of: Any, weight: str | None = None, n_groups: int = 8, drawn: float = 1e-12) -> None:
    """Periods of a frame: all numbers of the arrays' rows, whose times are the beginnings of periods."""
    rows = rows_in_groups(n_groups)
    found = cal.from_frame(frame_of(rows), **WHAT, time="day", every="month", weight=weight).over_time()
    wanted = cal.calibration_over_time(rows["y"], rows["p"], rows["day"], every="month", **of_arrays(rows, weight))
    rtol = 1e-9 if weight != "share" else 1e-3  # as cells of relative weights are rows of one weight
    same_parts(found.periods, wanted.periods, drawn, rtol)
    same_tests(found.period_test, wanted.period_test, drawn)
    same_tests(found.change_test, wanted.change_test, 1e-12)
    np.testing.assert_allclose(found.trend_test.pvalue, wanted.trend_test.pvalue, atol=0.02)  # ends of the last month
    ours, theirs = ([one.gap, *one.gap_interval] for one in (found, wanted))
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-7)


def check_days(frame_of: Any) -> None:
    """Rows of one day are dependent: one column has the times and the groups."""
    days = np.datetime64("2026-01-01", "us") + (np.arange(3000) // 20).astype("m8[D]")
    rows = rows_in_groups().with_columns(day=days)
    found = cal.from_frame(frame_of(rows), label="y", prob="p", groups="day", time="day", every="month").over_time()
    wanted = cal.calibration_over_time(rows["y"], rows["p"], days, every="month", groups=days)
    same_parts(found.periods, wanted.periods, 0.06)
    same_tests(found.period_test, wanted.period_test, 0.06)


def check_subgroups(frame_of: Any) -> None:
    """Subgroups of a frame, the report on them and each one's sums."""
    rows = rows_in_groups()
    sums = cal.from_frame(frame_of(rows), **WHAT, by="site")
    found = sums.subgroups()
    wanted = cal.subgroup_calibration(rows["y"], rows["p"], rows["site"], **of_arrays(rows))
    same_parts(found.subgroups, wanted.subgroups, 1e-12)
    (ours,), (theirs,) = found.columns, wanted.columns
    same_tests(ours.heterogeneity, theirs.heterogeneity, 1e-12)
    np.testing.assert_allclose(ours.largest_difference.interval, theirs.largest_difference.interval, rtol=1e-6)
    for name, one in sums.items():
        mine = rows.filter(pl.col("site") == name)
        alone = cal.Accumulator().update(mine["y"], mine["p"], None, mine["g"])
        np.testing.assert_array_equal(one.groups, alone.groups)
        np.testing.assert_allclose(one.estimate().interval, alone.estimate().interval, rtol=1e-9)
        assert one.totals.effective_size < mine.height / 2
