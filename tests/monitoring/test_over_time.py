"""Calibration over time: periods, tests and change points, against naive second computations."""

import datetime as dt
import itertools
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.printing import time_texts
from calibrant.monitoring.changes import _tail, _unskewed, cut
from calibrant.monitoring.periods import CALENDAR, Periods, Times

FEW = {"estimator": cal.Binned(5)}


def stream(n=6000, seed=0, broken=3600, times=0.8):
    """Calibrated rows, in order, with outcomes ``times`` as frequent from one on."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < np.where(np.arange(n) < broken, p, times * p)).astype(int)
    return y, p, np.datetime64("2026-01-01") + (np.arange(n) // 40).astype("m8[D]")


def test_periods_are_those_of_rows_by_themselves():
    y, p, day = stream()
    found = cal.calibration_over_time(y, p, day, every="month", **FEW)
    month = day.astype("M8[M]")
    assert [one.name for one in found.periods] == np.unique(month).astype(str).tolist()
    apart = cal.subgroup_calibration(y, p, month.astype(str), **FEW)
    for one, group in zip(found.periods, apart.subgroups, strict=True):
        rows = month.astype(str) == one.name
        assert one.n_samples == rows.sum()
        assert (one.start, one.end) == (day[rows].min().item(), day[rows].max().item())
        np.testing.assert_allclose(one.gap, (y[rows] - p[rows]).mean())
        np.testing.assert_allclose(one.brier, np.mean((y[rows] - p[rows]) ** 2), atol=1e-5)
        np.testing.assert_allclose(one.error, cal.calibration_error(y[rows], p[rows], **FEW))
        np.testing.assert_allclose(one.gap_interval, group.gap_interval)
    np.testing.assert_allclose(found.gap, (y - p).mean())
    np.testing.assert_allclose(found.period_test.pvalue, apart.columns[0].heterogeneity.pvalue)


def test_a_change_is_found_when_it_was():
    y, p, day = stream()
    found = cal.calibration_over_time(y, p, day, every="month", **FEW)
    (change,) = found.changes
    assert change.interval.low <= day[3600].item() <= change.interval.high
    assert change.before_interval.low < 0 < change.before_interval.high
    before, after = (day < np.datetime64(change.time)), (day >= np.datetime64(change.time))
    np.testing.assert_allclose([change.before, change.after], [(y - p)[before].mean(), (y - p)[after].mean()])
    assert change.after_interval.high < 0
    low, high = (f"{-v:.3f}" for v in change.after_interval)
    assert (
        f"too high by {high} to {low} since between {change.interval.low} and {change.interval.high}" in found.summary
    )


def test_pvalues_are_adjusted_for_three_tests():
    found = cal.calibration_over_time(*stream(2000, broken=2000), **FEW)
    p = sorted([found.change_test.pvalue, found.trend_test.pvalue, found.period_test.pvalue])
    holm = np.minimum(np.maximum.accumulate([3 * p[0], 2 * p[1], p[2]]), 1)
    np.testing.assert_allclose(sorted(found.adjusted.values()), holm)
    assert holm[0] > p[0]


def test_two_changes_are_found_in_order():
    rng = np.random.default_rng(5)
    p, t = rng.random(12_000), np.arange(12_000)
    y = rng.random(12_000) < np.where((t >= 4000) & (t < 8000), 0.75 * p, p)
    first, second = cal.calibration_over_time(y, p, t, **FEW).changes
    assert first.interval.low <= 4000 <= first.interval.high
    assert second.interval.low <= 8000 <= second.interval.high
    assert first.after == second.before


def test_another_mix_of_scores_is_no_change():
    """A map that is wrong alike at all times, while scores rise."""
    rng = np.random.default_rng(2)
    p = rng.beta(1 + 4 * np.linspace(0, 1, 8000), 2)
    found = cal.calibration_over_time(rng.random(8000) < p**1.5, p, np.arange(8000), **FEW)
    assert not found.changes
    assert "No change was found" in found.summary
    assert max(one.gap for one in found.periods) < 0


def test_a_slope_is_told_from_a_step():
    rng = np.random.default_rng(3)
    p = rng.random(20_000)
    odds = np.log(p / (1 - p)) - np.linspace(0, 0.6, 20_000)
    found = cal.calibration_over_time(rng.random(20_000) < 1 / (1 + np.exp(-odds)), p, np.arange(20_000), **FEW)
    assert found.trend_test.statistic < -5


def test_order_and_kind_of_times_make_no_difference():
    y, p, day = stream()
    wanted = cal.calibration_over_time(y, p, day, every="month", **FEW)
    turned = np.random.default_rng(1).permutation(len(y))
    stamps = pd.Series(pd.to_datetime(day))
    kinds = {
        "in another order": (turned, day[turned]),
        "pandas": (slice(None), stamps),
        "a zone": (slice(None), stamps.dt.tz_localize("Asia/Tokyo")),
        "polars": (slice(None), pl.Series(day).cast(pl.Date)),
        "datetimes": (slice(None), list(stamps)),
        "texts": (slice(None), day.astype(str).tolist()),
    }
    for name, (rows, time) in kinds.items():
        found = cal.calibration_over_time(y[rows], p[rows], time, every="month", **FEW)
        assert found.summary == wanted.summary, name
        np.testing.assert_allclose([one.gap for one in found.periods], [one.gap for one in wanted.periods])
    frame = pd.DataFrame({"y": y, "p": p, "day": day})
    assert (
        cal.calibration_over_time(frame, label="y", prob="p", time="day", every="month", **FEW).summary
        == wanted.summary
    )


@pytest.mark.parametrize("made", [pd.DataFrame, lambda columns: pl.DataFrame(columns).lazy()], ids=["pandas", "polars"])
@pytest.mark.parametrize("every", ["week", "month", "quarter"])
def test_frames_say_what_rows_say(made, every):
    y, p, day = stream()
    rows = cal.calibration_over_time(y, p, day, every=every)
    frame = made({"y": y, "p": p, "day": day.astype("M8[ms]")})
    found = cal.from_frame(frame, label="y", prob="p", time="day", every=every).over_time()
    assert [one.name for one in found.periods] == [one.name for one in rows.periods]
    for name in ("n_samples", "gap", "error", "brier", "pvalue"):
        np.testing.assert_allclose(
            [getattr(one, name) for one in found.periods], [getattr(one, name) for one in rows.periods], rtol=1e-6
        )
    (change,) = found.changes
    assert change.interval.low <= day[3600].item() <= change.interval.high


def test_weights_that_count_are_rows_repeated():
    y, p, day = stream(1500)
    w = np.random.default_rng(4).integers(1, 4, 1500)
    one = cal.calibration_over_time(y, p, day, every=300, sample_weight=w, **FEW)
    two = cal.calibration_over_time(np.repeat(y, w), np.repeat(p, w), np.repeat(day, w), every="month", **FEW)
    np.testing.assert_allclose(one.gap, two.gap)
    np.testing.assert_allclose(one.gap_interval, two.gap_interval)
    np.testing.assert_allclose(one.trend_test.statistic, two.trend_test.statistic, rtol=1e-3)


def test_confidences_and_classes():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 3000)
    k = (q.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    found = cal.calibration_over_time(k, q, np.arange(3000), **FEW)
    assert found.label is None
    assert found.summary.startswith("Confidences are")
    one = cal.calibration_over_time(k, q, np.arange(3000), notion=cal.notions.ClassSpecific(2), **FEW)
    np.testing.assert_allclose(one.gap, (k == 2).mean() - q[:, 2].mean())


def test_groups_widen_intervals():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(300), 10)
    p = np.clip(np.repeat(rng.random(300), 10), 0.05, 0.95)
    y = np.repeat(rng.random(300) < p[::10], 10).astype(int)
    plain, grouped = (
        cal.calibration_over_time(y, p, np.arange(3000), every=1000, groups=g, **FEW) for g in (None, group)
    )
    assert np.ptp(grouped.gap_interval) > 2 * np.ptp(plain.gap_interval)
    assert grouped.change_test.pvalue > plain.change_test.pvalue


def same_course(one, alone):
    """Of one course what is not drawn is what its rows by themselves say."""
    assert (one.n_samples, one.every, one.label) == (alone.n_samples, alone.every, alone.label)
    assert [(p.name, p.start, p.end, p.n_samples) for p in one.periods] == [
        (p.name, p.start, p.end, p.n_samples) for p in alone.periods
    ]
    for name in ("gap", "gap_interval", "error", "brier", "base_rate", "mean_probability"):
        np.testing.assert_allclose(
            [getattr(p, name) for p in one.periods], [getattr(p, name) for p in alone.periods], atol=1e-12, err_msg=name
        )
    np.testing.assert_allclose([one.gap, *one.gap_interval], [alone.gap, *alone.gap_interval])
    for name in ("change_test", "trend_test", "period_test"):
        np.testing.assert_allclose(getattr(one, name).statistic, getattr(alone, name).statistic, rtol=1e-9)
    assert one.change_test.pvalue == pytest.approx(alone.change_test.pvalue, abs=0.06)
    assert one.period_test.pvalue == pytest.approx(alone.period_test.pvalue, abs=0.06)


def naive_holm(pvalues):
    out, largest = dict(pvalues), 0.0
    for rank, name in enumerate(sorted(pvalues, key=pvalues.get)):
        largest = out[name] = min(max(largest, (len(pvalues) - rank) * pvalues[name]), 1.0)
    return out


def adjusted_for_all(found):
    """p-values of the tests, and of periods, are adjusted over all courses."""
    tests = {"change": "change_test", "trend": "trend_test", "periods": "period_test"}
    raw = {(c.course, name): getattr(c, test).pvalue for c in found.courses for name, test in tests.items()}
    wanted = naive_holm(raw)
    for one in found.courses:
        for name, p in one.adjusted.items():
            assert p == pytest.approx(wanted[one.course, name])
    wanted = naive_holm({(c.course, p.name): p.pvalue for c in found.courses for p in c.periods})
    for one in found.courses:
        for p in one.periods:
            assert p.adjusted == pytest.approx(wanted[one.course, p.name])


@pytest.mark.parametrize("more", ["", "weights", "groups"])
def test_each_subgroup_is_what_its_rows_say(more):
    y, p, day = stream(4500, broken=2700)
    rng = np.random.default_rng(7)
    site = np.array(["a", "b", "c"])[np.where(np.arange(4500) < 600, 0, rng.integers(3, size=4500))]
    options = {
        "": {}, "weights": {"sample_weight": rng.integers(0, 3, 4500)}, "groups": {"groups": np.arange(4500) // 3}
    }[more]  # fmt: skip
    found = cal.calibration_over_time(y, p, day, by=site, every="month", **FEW, **options)
    assert [one.course for one in found.courses] == ["a", "b", "c"]
    for one in found.courses:
        mine = site == one.course
        own = {name: values[mine] for name, values in options.items()}
        same_course(one, cal.calibration_over_time(y[mine], p[mine], day[mine], every="month", **FEW, **own))
    adjusted_for_all(found)


def test_each_class_is_what_it_is_by_itself():
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.ones(4), 3000)
    k = (q.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    day = np.datetime64("2026-01-01") + (np.arange(3000) // 20).astype("m8[D]")
    found = cal.calibration_over_time(k, q, day, notion="classwise", every="month", **FEW)
    assert [one.label for one in found.courses] == [0, 1, 2, 3]
    for one in found.courses:
        alone = cal.notions.ClassSpecific(one.label)
        same_course(one, cal.calibration_over_time(k, q, day, notion=alone, every="month", **FEW))
    adjusted_for_all(found)
    assert all((one in found.changed) == (min(one.adjusted.values()) <= 0.05) for one in found.courses)


def test_no_change_of_any_course_is_said():
    y, p, day = stream(2000, broken=2000)
    found = cal.calibration_over_time(y, p, day, by=np.arange(2000) % 4, every="month", **FEW)
    assert not found.changed
    least = min(p for one in found.courses for p in one.adjusted.values())
    assert found.summary == f"No change was found in any of the 4 subgroups (p = {least:.3f}, adjusted for all)."
    assert "p-values are adjusted for 12 tests (Holm)" in str(found)


def test_the_course_that_changed_is_named():
    rng = np.random.default_rng(1)
    n = 6000
    p, site = rng.random(n), rng.choice(["north", "south", "west"], n)
    day = np.datetime64("2026-01-01") + (np.arange(n) // 40).astype("m8[D]")
    y = rng.random(n) < np.where((site == "west") & (np.arange(n) >= 3600), 0.7 * p, p)
    frame = pd.DataFrame({"y": y.astype(int), "p": p, "day": day, "site": site})
    found = cal.calibration_over_time(frame, label="y", prob="p", time="day", by="site", every="month", **FEW)
    assert found.by == "site"
    assert found.course == "west"
    assert [one.course for one in found.changed] == ["west"]
    (change,) = found.changes
    assert change.interval.low <= day[3600].item() <= change.interval.high
    assert found.summary.startswith("1 of the 3 subgroups changed, most significantly site west: Probabilities ")
    table = found.to_frame()
    assert table["site"].tolist() == np.repeat(["north", "south", "west"], 5).tolist()
    assert "* west " in str(found)
    assert "Periods of site west" in found.to_html()
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="course must be one of 'north', 'south', 'west'; got 'east'"):
        found.plot(course="east")
    assert "site north" in found.plot(course="north").axes_[0].get_title(loc="left")
    assert "site west" in found.plot().axes_[0].get_title(loc="left")


@pytest.mark.slow
def test_a_thousand_classes_are_followed():
    """The one that drifts is found, among 3,000 tests, although draws alone could not say so."""
    rng = np.random.default_rng(2)
    n, k = 6000, 1000
    q = np.full((n, k), 0.5 / (k - 1))
    q[:, 7] = 0.5
    y = np.where(rng.random(n) < np.where(np.arange(n) < 3000, 0.5, 0.35), 7, (rng.integers(k - 1, size=n) + 8) % k)
    day = np.datetime64("2025-01-01") + (np.arange(n) * 365 // n).astype("m8[D]")
    found = cal.calibration_over_time(y, q, day, notion="classwise", every="quarter", labels=range(k), **FEW)
    assert len(found.courses) == k
    assert len(found.courses[0].periods) == 4
    assert found.label == 7
    assert [one.label for one in found.changed] == [7]
    assert found.change_test.pvalue < 1e-9
    (change,) = found.changes
    assert change.interval.low <= day[3000].item() <= change.interval.high


def test_what_cannot_be_followed_is_refused():
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.ones(3), 60)
    for options, words in (
        ({"notion": "classwise", "by": np.arange(60) % 2}, "notion 'classwise' with by cannot be followed over time"),
        ({"notion": "canonical"}, "notion 'canonical' cannot be followed over time: take one class"),
        ({"by": np.arange(59)}, r"by must have one value per row \(60\); got 59"),
    ):
        with pytest.raises(ValueError, match=words):
            cal.calibration_over_time(np.arange(60) % 3, q, GOOD, **options)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from(["day", "month", 40]))
def test_courses_have_all_rows(seed, n_sites, every):
    """Rows of courses and of their periods add up, whatever periods a course leaves out."""
    rng = np.random.default_rng(seed)
    site, p = rng.integers(n_sites, size=200), rng.random(200)
    day = np.datetime64("2026-01-30") + (rng.integers(0, 5, 200) * (1 + 20 * (site == 0))).astype("m8[D]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.calibration_over_time(rng.random(200) < p, p, day, by=site, every=every, labels=[0, 1], **FEW)
    assert sum(one.n_samples for one in found.courses) == 200
    for one in found.courses:
        assert sum(period.n_samples for period in one.periods) == one.n_samples
        assert one.n_samples == (site.astype(str) == one.course).sum()
        rows = day[site.astype(str) == one.course]
        assert (one.periods[0].start, one.periods[-1].end) == (rows.min().item(), rows.max().item())


def test_the_tail_of_a_search_is_that_of_draws():
    """Bound by correlations against draws of the walk itself, at several heights."""
    rng = np.random.default_rng(0)
    n, draws = 200, 40_000
    steps = rng.standard_normal((draws, n))
    walk = np.cumsum(steps, axis=1)[:, :-1] - steps.sum(axis=1, keepdims=True) * np.arange(1, n) / n
    k = np.arange(1, n)
    spread = k * (n - k) / n
    largest = np.abs(walk / np.sqrt(spread))[:, 9:-9].max(axis=1)
    i, j = k[9:-10], k[10:-9]
    near = i * (n - j) / n / np.sqrt(spread[9:-10] * spread[10:-9])
    for height in (3.0, 3.5, 4.0):
        share = (largest >= height).mean()
        error = np.sqrt(share / draws)
        assert share - 3 * error < _tail(height, near) < 2.2 * share + 3 * error


def test_skewed_sums_become_normal():
    """Tails of Poisson sums, which normal ones miss by far."""
    mean, count = 12.0, np.array([25, 30, 34])
    z = _unskewed(count - 0.5 - mean, mean, mean)
    exact = scipy.stats.poisson.sf(count - 1, mean)
    assert (exact < scipy.stats.norm.sf(z)).all()
    assert (scipy.stats.norm.sf(z) < 2.1 * exact).all()
    assert (scipy.stats.norm.sf((count - 0.5 - mean) / mean**0.5) < 0.5 * exact).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), min_size=1, max_size=60),
    st.sampled_from([*CALENDAR, 1, 7, 100]),
)
def test_periods_part_rows(times, every):
    """Each row is in one period, periods are in order, and calendar ones are what datetime says."""
    found = Periods.of(Times.read(times, len(times)), every, 10)
    assert set(found.codes) == set(range(len(found.names)))
    ends = [
        (min(rows), max(rows))
        for rows in ([t for t, c in zip(times, found.codes, strict=False) if c == i] for i in set(found.codes))
    ]
    assert all(one[1] < two[0] for one, two in itertools.pairwise(ends))
    keys = {
        "hour": lambda t: (t.date(), t.hour), "day": dt.datetime.date, "week": lambda t: t.isocalendar()[:2],
        "month": lambda t: (t.year, t.month), "quarter": lambda t: (t.year, (t.month - 1) // 3),
        "year": lambda t: t.year,
    }  # fmt: skip
    if every in keys:
        assert len({keys[every](t) for t in times}) == len(found.names)
        assert all(
            (keys[every](a) == keys[every](b)) == (i == j)
            for a, i in zip(times, found.codes, strict=False)
            for b, j in zip(times, found.codes, strict=False)
        )
    else:
        assert all(size >= every for size in np.bincount(found.codes)) or len(found.names) == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-5, 50), min_size=1, max_size=300), st.integers(1, 20))
def test_blocks_are_in_order_and_keep_times_together(values, most):
    code, (first, last) = cut(Times(np.array(values), None, dated=False), most)
    assert set(code) == set(range(first.size))
    assert (first[1:] > last[:-1]).all()
    assert all(first[c] <= v <= last[c] for v, c in zip(values, code, strict=True))


Y, P = np.tile([0, 1, 1, 0, 1], 12), np.tile([0.2, 0.7, 0.6, 0.65, 0.3], 12)
GOOD = [dt.datetime(2026, 1, 1 + i % 28) for i in range(60)]
HOSTILE = {
    "missing": ([None, *GOOD[1:]], ValueError, "time must have no missing values; row 0 is None"),
    "NaT": (np.array(["NaT"] * 60, "M8[D]"), ValueError, "time must have no missing values; row 0 is NaT"),
    "null": (pl.Series([None, *GOOD[1:]]), ValueError, "time must have no missing values; row 0 is null"),
    "zones": (
        [GOOD[0].replace(tzinfo=dt.UTC), *GOOD[1:]], ValueError,
        "time must be in one time zone; row 0 is in UTC, row 1 in none: convert them first",
    ),
    "no date": (["x"] * 60, ValueError, "texts such as 2026-05-09; row 0 is 'x'"),
    "short": (GOOD[1:], ValueError, r"time must have one value per row \(60\); got shape \(59,\)"),
    "a word": ("day", TypeError, "time must be a column with one time per row; got 'day'"),
    "none": (None, TypeError, "time must be a column with one time per row; got None"),
    "mixed": ([1, *GOOD[1:]], TypeError, "time must hold dates, datetimes or numbers"),
    "bools": ([True] * 60, TypeError, "time must hold dates, datetimes or numbers"),
    "spans": (np.arange(60).astype("m8[s]"), TypeError, "time must hold dates, datetimes or numbers"),
}  # fmt: skip


@pytest.mark.parametrize(("time", "kind", "words"), HOSTILE.values(), ids=HOSTILE)
def test_bad_times_are_refused(time, kind, words):
    with pytest.raises(kind, match=words):
        cal.calibration_over_time(Y, P, time)


@pytest.mark.parametrize(
    ("every", "time", "kind", "words"),
    [
        ("fortnight", GOOD, ValueError, "every must be a number of rows, or one of 'auto', 'hour', 'day'"),
        (0, GOOD, ValueError, "every must be the name of a period, or an int >= 1; got 0"),
        ("month", range(60), ValueError, "every='month' needs dates, and time holds numbers"),
    ],
)
def test_bad_periods_are_refused(every, time, kind, words):
    with pytest.raises(kind, match=words):
        cal.calibration_over_time(Y, P, time, every=every)


def test_frames_refuse_what_is_no_time():
    frame = pd.DataFrame({"y": Y, "p": P, "day": GOOD, "site": "a"})
    for options, kind, words in (
        ({"time": "p", "every": "day"}, TypeError, "time must hold dates or datetimes; column 'p' holds Float64"),
        ({"time": "none", "every": "day"}, ValueError, r"time must be a column of the frame \(.*\); got 'none'"),
        ({"time": "day"}, ValueError, "every must be one of"),
        ({"time": "day", "every": "day", "by": "day"}, ValueError, "day"),
    ):
        with pytest.raises(kind, match=words):
            cal.from_frame(frame, label="y", prob="p", **options)
    with pytest.raises(ValueError, match=r"over_time\(\) needs periods: pass time= and every= to from_frame"):
        cal.from_frame(frame, label="y", prob="p", by="site").over_time()


def test_what_cannot_be_tested_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.calibration_over_time(np.zeros(60, int), P, GOOD, labels=[0, 1], **FEW)
    assert np.isnan(found.change_test.pvalue)
    assert not found.changes
    assert "cannot be tested" in found.summary
    gap = [dt.date(2026, 1, 1)] * 30 + [dt.date(2026, 5, 1)] * 30
    found = cal.calibration_over_time(Y, P, gap, every="month", **FEW)
    assert found.warnings == ("3 months have no rows: 2026-02, 2026-03, 2026-04",)
    one = cal.calibration_over_time(Y, P, np.zeros(60), **FEW)
    assert len(one.periods) == 1
    assert np.isnan(one.trend_test.pvalue)
    json.dumps(one.to_dict(), allow_nan=False)


def test_auto_takes_periods_with_enough_rows():
    y, p, day = stream(20_000)
    found = cal.calibration_over_time(y, p, day, **FEW)
    assert found.every == "month" or found.every == "week"
    counts = [one.n_samples for one in found.periods]
    assert np.median([np.ptp(one.gap_interval) / 2 for one in found.periods]) < 0.05
    assert len(counts) <= 60
    few = cal.calibration_over_time(y[:1000], p[:1000], np.arange(1000), **FEW)
    assert isinstance(few.every, int)


@pytest.mark.slow
def test_tests_reject_as_often_as_they_say():
    """Of calibrated and of wrong maps that stay as they are, at most as many samples as 0.05 allows seem to change."""
    rejected = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.6, 3, 1500)
        y = rng.random(1500) < p ** (1 if seed % 2 else 1.3)
        found = cal.calibration_over_time(y, p, np.arange(1500), every=300, **FEW)
        rejected += min(found.adjusted.values()) <= 0.05
    assert rejected <= 9  # of 80: 4 expected at most, and two and a half standard errors


def test_times_that_are_fractions_are_short_and_sizes_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    p, time = rng.random(478), rng.random(478) * 100
    y = rng.random(478) < np.where(time < 50, p, p**3)
    found = cal.calibration_over_time(y, p, time, every=60)
    ends = [round(v, 1) for one in found.periods for v in (one.start, one.end)]
    assert ends == sorted(set(ends))  # all apart
    names = [one.name for one in found.periods]
    assert names == [f"{a:.1f} to {b:.1f}" for a, b in zip(ends[::2], ends[1::2], strict=True)]
    low, high = found.changes[0].interval
    assert f"between {low:.1f} and {high:.1f}" in found.summary
    assert "478 rows, 7 periods of 60 to 118 rows" in str(found)
    alone = cal.calibration_over_time(y[time < 50], p[time < 50], time[time < 50], every=1000)
    n = (time < 50).sum()
    assert f"1 period of {n} rows" in str(alone)
    assert " over 1 period. " in alone.summary
    assert "adjusted for 1 period (Holm)" in str(alone)
    courses = cal.calibration_over_time(y, p, np.zeros(478), every=60, by=["a"] * 478)
    assert " any of the 1 " not in courses.summary


@pytest.mark.parametrize(
    ("times", "more", "texts"),
    [
        ([0.1 + 0.2, 0.5], 0, ["0.3", "0.5"]),
        ([-0.2, 1700000000.4], 0, ["0", "1,700,000,000"]),
        ([2.0, 2.0], 1, ["2.0", "2.0"]),
        ([12.6, 14.4], 1, ["12.6", "14.4"]),
        ([2016, 2017], 1, ["2,016", "2,017"]),
        ([1e-20, 2e-20], 0, ["1e-20", "2e-20"]),
        ([dt.date(2026, 5, 9)], 1, ["2026-05-09"]),
    ],
)
def test_texts_of_times(times, more, texts):
    assert time_texts(times, more) == texts


def test_of_very_many_changes_the_last_are_told():
    rng = np.random.default_rng(0)
    p, day = rng.uniform(0.2, 0.8, 20_000), np.arange(20_000) // 100
    y = rng.random(20_000) < p + 0.19 * np.where(day // 20 % 2, 1, -1)
    found = cal.calibration_over_time(y, p, day, every=2_000)
    assert len(found.changes) >= 8
    text = str(found)
    assert text.count("Changed between") + text.count("Changed at") == 5
    assert f"{len(found.changes) - 5} earlier changes: see .changes" in text
    assert found.changes[-1].between in " ".join(text.split())
