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
from calibrant.comparison.subgroups.membership import read_subgroups
from calibrant.comparison.subgroups.rows import ProblemRows
from calibrant.comparison.subgroups.statistics import subgroup_pvalue
from calibrant.comparison.subgroups.subgroup_sums import PooledMap, SubgroupSums
from calibrant.data.predictions import Predictions
from calibrant.significance import kuiper
from calibrant.significance.kuiper import kuiper_pvalue

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
    # 199 draws tell a p-value of 1/200 at best, 120 times which is no rejection: 20 · 120 / 0.05 draws do.
    assert found.rejected[0].pvalue == pytest.approx(1 / 48_001)
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
    taken, mapped = [], []
    subset, at = Predictions.subset, PooledMap.at
    monkeypatch.setattr(Predictions, "subset", lambda p, rows: taken.append(len(rows)) or subset(p, rows))
    monkeypatch.setattr(PooledMap, "at", lambda pooled, scores: mapped.append(scores.size) or at(pooled, scores))
    monkeypatch.setattr(
        build,
        "read_subgroups",
        lambda *given: [replace(g, codes=g.codes.view(Counted)) for g in read_subgroups(*given)],
    )
    monkeypatch.setattr(Counted, "touched", 0)
    # Many groups of few rows are compared by draws, which want the map once more a column.
    cal.subgroup_calibration(y, p, by, estimator=cal.Binned(5), test="in-the-large", n_resamples=2)
    assert len(taken) == columns * groups
    assert sum(taken) == columns * n
    assert n <= sum(mapped) <= n * (1 + columns)
    assert Counted.touched == 0


@pytest.mark.slow
def test_more_draws_only_where_none_was_as_large(monkeypatch):
    monkeypatch.setattr(kuiper, "_TOGETHER", 24 * 12)
    s, n = np.full(12, 0.3), 99
    w = np.ones(12)
    # All scores equal: the range is |Σ (o - s)|; all twelve positive has chance 0.3^12, nine of twelve or more 0.0017.
    o = np.arange(12) < 9
    far = abs(9 - 3.6)
    exact = sum(
        np.prod(np.where(np.array(v), 0.3, 0.7))
        for v in itertools.product((0, 1), repeat=12)
        if abs(sum(v) - 3.6) >= far - 1e-9
    )
    got = [
        kuiper_pvalue(s, o, w, n, np.random.default_rng(seed), repeats=True, most_draws=20_000) for seed in range(60)
    ]
    plain = [kuiper_pvalue(s, o, w, n, np.random.default_rng(seed), repeats=True) for seed in range(60)]
    reached = np.array(plain) > 1 / (n + 1)
    assert 0 < reached.sum() < 30
    np.testing.assert_array_equal(np.array(got)[reached], np.array(plain)[reached])
    np.testing.assert_allclose(np.array(got)[~reached], exact, rtol=0.8)
    assert np.mean(np.array(got)[~reached]) == pytest.approx(exact, rel=0.1)
    # Missed by two draws by chance, five of twelve stay at a third, which two draws can say.
    for seed in range(40):
        few = kuiper_pvalue(s, np.arange(12) < 5, w, 2, np.random.default_rng(seed), repeats=True)
        more = kuiper_pvalue(s, np.arange(12) < 5, w, 2, np.random.default_rng(seed), repeats=True, most_draws=8)
        assert more == few or more < few == 1 / 3


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_size_with_more_draws(alpha):
    rng = np.random.default_rng(4)
    s = rng.random(15)
    w = np.ones(15)
    repetitions = 1500
    wrong = sum(
        kuiper_pvalue(s, rng.random(15) < s, w, 9, rng, repeats=True, most_draws=299) <= alpha
        for _ in range(repetitions)
    )
    assert wrong / repetitions <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / repetitions)
    assert wrong / repetitions >= alpha / 2


def test_draws_reach_below_what_is_asked_whatever_they_cost():
    rows = 2500
    s = np.full(rows, 0.5)
    group = ProblemRows(s, np.ones(rows), np.ones(rows), np.ones(rows), True)
    pvalue = subgroup_pvalue(group, "kuiper", 99, np.random.default_rng(0), smallest=0.05 / 10)
    assert pvalue == pytest.approx(1 / 4001)
    dear = subgroup_pvalue(group, "kuiper", 99, np.random.default_rng(0), smallest=0.05 / 300)
    assert dear == pytest.approx(1 / 12_001)


def test_difference_of_single_rows_has_an_interval():
    found = cal.subgroup_calibration([0, 1], [0.4, 0.6], ["a", "b"], **CHEAP).columns[0].largest_difference
    assert found.value == pytest.approx(0.8)
    # Tukey of two means is the normal quantile; each row's outcome has variance 0.24 by its score.
    reach = 1.959964 * np.sqrt(0.48)
    assert found.interval == pytest.approx((0.8 - reach, 0.8 + reach), abs=1e-5)
    w = np.array([2.0, 3.0])
    rows = ProblemRows(np.array([0.2, 0.2]), np.ones(2), w, w, True)
    (variance,) = SubgroupSums.of(rows, [(np.zeros(2, dtype=int), 1)], None)[0].gap_variance
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


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (5, "by must be a column of values, one a row; got 5"),
        ({"a": None}, "by must be a column of values, one a row; got None"),
        ({"a": [1, 2, 1], "b": 7}, r"by\['b'\] must be a column of values, one a row; got 7"),
        ({"a": "xyx"}, "by must be a column of values, one a row; got 'xyx'"),
        ([1j, 2j, 1j], "by must hold values that can name a subgroup"),
    ],
)
def test_what_is_no_column_is_told(by, message):
    with pytest.raises(TypeError, match=message):
        read_subgroups(by, 3)
