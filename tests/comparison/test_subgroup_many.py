"""Many groups, tiny groups, and groups with odd names or values."""

import datetime
import decimal
import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.comparison.subgroups import build
from calibrant.comparison.subgroups.heterogeneity import PooledMap, SubgroupTotals
from calibrant.comparison.subgroups.membership import read_subgroups
from calibrant.comparison.subgroups.statistics import range_tail, subgroup_pvalues

from .test_subgroups import cells_of, slow_sorted

CHEAP = {"estimator": cal.Binned(5), "n_resamples": 199}


@pytest.mark.slow
def test_groups_far_off_are_found_among_many():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(120), 60)
    p = rng.random(group.size) * 0.8 + 0.1
    y = (rng.random(group.size) < p).astype(int)
    y[group == 7], y[group == 8] = 1, 0
    found = cal.subgroup_calibration(y, p, group, **CHEAP)
    assert [g.value for g in found.rejected] == [7, 8]
    # 199 draws tell a p-value of 1/200 at best, 120 times which is no rejection: the tail of the limit distribution
    # does. All outcomes alike have a chance of their own, which two reflections double twice.
    assert found.rejected[0].pvalue == pytest.approx(4 * np.prod(p[group == 7]), rel=1e-6)
    assert all(g.pvalue >= 1 / 200 for g in found.subgroups if g.value not in (7, 8))


class Counted(np.ndarray):
    """Codes of groups that count how many of them are compared, added and the like."""

    touched = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        Counted.touched += sum(one.size for one in inputs if isinstance(one, Counted))
        return getattr(ufunc, method)(*map(np.asarray, inputs), **options)


@pytest.mark.parametrize("groups", [4, 100])
@pytest.mark.slow
def test_rows_are_taken_once_a_column_whatever_the_number_of_groups(monkeypatch, groups):
    """No mask of all rows for each group: groups are slices of one order, and one pass makes all sums."""
    n, columns = 2000, 3
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    by = {f"column {i}": (np.arange(n) + i) % groups for i in range(columns)}
    mapped = []
    at = PooledMap.at
    monkeypatch.setattr(PooledMap, "at", lambda pooled, scores: mapped.append(scores.size) or at(pooled, scores))
    monkeypatch.setattr(
        build,
        "read_subgroups",
        lambda *given, **about: [replace(g, codes=g.codes.view(Counted)) for g in read_subgroups(*given, **about)],
    )
    monkeypatch.setattr(Counted, "touched", 0)
    # Many groups of few rows are compared by draws, which want the map once more a column.
    cal.subgroup_calibration(y, p, by, estimator=cal.Binned(5), test="in-the-large", n_resamples=2)
    assert columns * n * 0.9 <= sum(mapped) <= n * columns * 2
    assert Counted.touched <= 2 * n * columns  # neighbours are compared once: are rows in order already?


def test_drawing_ends_with_the_tenth_as_large_and_else_reaches_far():
    """All scores equal: the range is |Σ (o - s)|, whose tails are known."""
    s, wanted = np.full(12, 0.3), {}
    for hits in (5, 7, 9):
        far = abs(hits - 3.6)
        wanted[hits] = sum(
            np.prod(np.where(np.array(v), 0.3, 0.7))
            for v in itertools.product((0, 1), repeat=12)
            if abs(sum(v) - 3.6) >= far - 1e-9
        )
    for hits, exact in wanted.items():
        cells = cells_of(np.arange(12) < hits, s)
        got = [
            subgroup_pvalues(cells, "kuiper", 99, np.random.default_rng(seed), smallest=0.05 / 20)[0]
            for seed in range(60)
        ]
        # A tenth as large of h: the p-value's standard error is a third of it, and its mean hardly above.
        assert np.mean(got) == pytest.approx(exact, rel=0.25)
        assert min(got) >= 1 / 8001


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("many", [False, True])
def test_size_of_sequential_draws(alpha, many):
    rng = np.random.default_rng(4)
    repetitions, rows = 1500, 15
    codes = np.repeat(np.arange(30), rows)
    found = []
    while len(found) < repetitions:
        s = rng.random(codes.size)
        cells = cells_of(rng.random(codes.size) < s, s, codes=codes)
        found += subgroup_pvalues(cells, "kuiper", 199, rng, smallest=0.05 / 30, many=many).tolist()
    wrong = np.mean(np.array(found) <= alpha)
    assert wrong <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / repetitions)
    assert wrong >= alpha / 2


@pytest.mark.parametrize("rate", [None, 0.02])
def test_the_far_tail_is_that_of_draws(rate):
    """Four times the saddlepoint of the whole sum: between once and thrice what draws say, of rare outcomes too."""
    rng = np.random.default_rng(0)
    s = rng.random(300) if rate is None else rng.beta(1, 1 / rate, 300)
    order = np.sort(s)
    draws = np.array([slow_sorted((rng.random(300) < order).astype(float), order) for _ in range(20_000)])
    (table,) = cells_of(rng.random(300) < s, s).tables()
    for share in (1e-2, 1e-3):
        at = np.quantile(draws, 1 - share)
        assert share * 0.8 < range_tail(table, np.array([at]))[0] < 3 * share


def test_draws_reach_below_what_is_asked_whatever_they_cost():
    cells = cells_of(np.ones(2500), np.linspace(0.3, 0.7, 2500))
    for number, least in ((10, 1 / 4001), (40, 1 / 1601 / 10)):
        (pvalue,) = subgroup_pvalues(cells, "kuiper", 99, np.random.default_rng(0), smallest=0.05 / number)
        assert least <= pvalue <= 0.05 / number


def test_more_than_two_hundred_subgroups():
    rng = np.random.default_rng(1)
    n = 6000
    by, p = rng.integers(0, 1000, n), rng.random(n)
    y = (rng.random(n) < p).astype(int)
    found = cal.subgroup_calibration(y, p, by, estimator=cal.Binned(2), min_size=1, n_resamples=99)
    assert len(found.subgroups) == np.unique(by).size > 900
    assert [g.n_samples for g in found.subgroups] == np.bincount(by)[np.unique(by)].tolist()
    column = found.columns[0]
    assert column.heterogeneity.df == len(found.subgroups) - 1
    assert 0.001 < column.heterogeneity.pvalue < 0.999
    assert column.largest_difference.interval.low < column.largest_difference.value
    assert not found.rejected


def test_difference_of_single_rows_has_an_interval():
    found = cal.subgroup_calibration([0, 1], [0.4, 0.6], ["a", "b"], **CHEAP).columns[0].largest_difference
    assert found.value == pytest.approx(0.8)
    # Tukey of two means is the normal quantile; each row's outcome has variance 0.24 by its score.
    reach = 1.959964 * np.sqrt(0.48)
    assert found.interval == pytest.approx((0.8 - reach, 0.8 + reach), abs=1e-5)
    w = np.array([2.0, 3.0])
    (variance,) = SubgroupTotals.of(cells_of([1, 1], [0.2, 0.2], w), None).gap_variance
    assert variance == pytest.approx(5 * 0.16 / 25)


@pytest.mark.parametrize(
    ("values", "names", "held"),
    [
        (
            [datetime.date(2020, 1, 1), datetime.date(2021, 2, 3)],
            ["2020-01-01", "2021-02-03"],
            ["2020-01-01", "2021-02-03"],
        ),
        (
            [pd.Timestamp("2020-01-01 12:00"), pd.NaT],
            ["2020-01-01 12:00:00", "(missing)"],
            ["2020-01-01T12:00:00", None],
        ),
        (
            np.array(["2020-01-01", "NaT"], "M8[ns]"),
            ["2020-01-01 00:00:00", "(missing)"],
            ["2020-01-01T00:00:00", None],
        ),
        (np.array(["2020-01-01", "2021-02-03"], "M8[D]"), ["2020-01-01", "2021-02-03"], ["2020-01-01", "2021-02-03"]),
        ([b"a", b"b"], ["b'a'", "b'b'"], ["b'a'", "b'b'"]),
        ([decimal.Decimal("1.5"), decimal.Decimal(2)], ["1.5", "2"], ["1.5", "2"]),
        ([False, True], ["False", "True"], [False, True]),
        (["", "a"], ["(empty)", "a"], ["", "a"]),
        (["", "(empty)"], ["(empty)", "(empty) (str)"], ["", "(empty)"]),
    ],
)
def test_values_of_any_kind_have_names_and_go_into_json(values, names, held):
    column = np.resize(values, 12) if isinstance(values, np.ndarray) else list(values) * 6
    found = cal.subgroup_calibration([0, 1] * 6, np.linspace(0.1, 0.9, 12), column, **CHEAP)
    assert [g.name for g in found.subgroups] == names
    groups = json.loads(json.dumps(found.to_dict(), allow_nan=False))["columns"][0]["subgroups"]
    assert [g["value"] for g in groups] == held
    assert all(f" {name} " in str(found) for name in names)


class Unreadable:
    """An array whose values cannot be had."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("on another device")


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (5, "by must be a column with one value per row; got 5"),
        (Unreadable(), "by must be readable by NumPy; .*Unreadable is not: on another device"),
        ([Unreadable()] * 3, r"by\['column 0'\] must be readable by NumPy"),
        ({"a": None}, "by must be a column with one value per row; got None"),
        ({"a": [1, 2, 1], "b": 7}, r"by\['b'\] must be a column with one value per row; got 7"),
        ({"a": "xyx"}, "by must be a column with one value per row; got 'xyx'"),
        ([1j, 2j, 1j], "by must hold values that can name a subgroup"),
    ],
)
def test_what_is_no_column_is_told(by, message):
    with pytest.raises(TypeError, match=message):
        read_subgroups(by, 3)
