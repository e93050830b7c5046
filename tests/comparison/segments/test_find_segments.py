"""`find_segments`: what it finds, what it says, and what it refuses."""

import json
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cal
from calibrant.comparison.segments import confirm

mpl.use("Agg")


def data(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = {
        "age": rng.integers(18, 78, n),
        "region": rng.choice(["north", "south", "west"], n),
        "noise": rng.normal(size=n),
    }
    p = rng.uniform(0.05, 0.95, n)
    wrong = (X["region"] == "north") & (X["age"] >= 58)
    return (rng.random(n) < np.where(wrong, p**2.5, p)).astype(int), p, X, wrong


@pytest.mark.parametrize("way", ["simulate", "split"])
def test_the_planted_segment_is_found_and_said(way):
    y, p, X, wrong = data()
    found = cal.find_segments(y, p, X, confirm=way)
    (one,) = found.segments
    assert re.fullmatch(r"age ≥ 5\d and region is north", one.condition)
    mask = found.mask(0)
    assert (mask & wrong).sum() > 0.8 * (mask | wrong).sum()
    assert found.apply(pd.DataFrame(X)).tolist() == mask[:, None].tolist()
    low, high = one.gap_interval
    assert low <= np.mean(np.where(wrong, p**2.5 - p, 0)[mask]) <= high < 0
    assert one.gap == pytest.approx(one.base_rate - one.mean_probability)
    assert one.adjusted <= 0.01
    assert 0 < one.share <= 1
    frame = found.to_frame("pandas")
    assert list(frame.columns[:9]) == (
        ["condition", "n_samples", "mean_probability", "base_rate", "gap", "gap_low", "gap_high", "pvalue", "adjusted"]
    )
    assert len(frame) == 1
    json.dumps(found.to_dict(), allow_nan=False)
    assert one.condition in found.summary
    assert "less frequent" in found.summary
    assert "simulate" in repr(found) or "split" in repr(found)
    if way == "simulate":
        assert one.n_samples == mask.sum()
        assert one.gap == pytest.approx((y - p)[mask].mean())


def test_beyond_much_work_there_are_fewer_draws(monkeypatch):
    """99 in place of 199: the least p-value is 1/100, unless the level asks for a smaller one."""
    y, p, X, _ = data()
    (usual,) = cal.find_segments(y, p, X, confirm="simulate").segments
    monkeypatch.setattr(confirm, "_MOST_WORK", 1.0)
    (few,) = cal.find_segments(y, p, X, confirm="simulate").segments
    (strict,) = cal.find_segments(y, p, X, confirm="simulate", level=0.99).segments
    assert (usual.adjusted, few.adjusted, strict.adjusted) == (1 / 200, 1 / 100, 1 / 200)
    assert few.condition == strict.condition


def test_nothing_is_found_where_nothing_is():
    rng = np.random.default_rng(5)
    _y, p, X, _ = data()
    found = cal.find_segments(rng.random(p.size) < p, p, X)
    assert found.segments == ()
    assert len(found.tested) == 1
    assert len(found.to_frame("polars")) == 0
    assert "gap_low" in found.to_frame("polars").columns
    assert found.apply(X).shape == (p.size, 0)
    with pytest.raises(ValueError, match="no segment was found"):
        found.mask(0)
    with pytest.raises(ValueError, match="no segment was found"):
        found.plot(segment=0)
    assert "No segment" in found.summary


def test_a_map_that_is_wrong_alike_everywhere_is_not_a_segment():
    rng = np.random.default_rng(3)
    _y, p, X, _ = data()
    found = cal.find_segments(rng.random(p.size) < p**1.7, p, X)
    assert found.segments == ()


def test_a_second_segment_is_beyond_the_first():
    rng = np.random.default_rng(0)
    n = 20_000
    p, age, region = rng.uniform(0.1, 0.7, n), rng.integers(18, 78, n), rng.choice(["north", "south", "west"], n)
    north = region == "north"
    y = rng.random(n) < p + 0.1 * north + 0.15 * (north & (age >= 60))
    found = cal.find_segments(y, p, {"age": age, "region": region})
    assert len(found.segments) == 2
    first, second = found.segments
    assert second.beyond == (first.condition,)
    assert first.condition in second.summary
    shares = [one.share for one in found.segments]
    assert 0.5 < sum(shares) <= 1
    # About the first segment too, what is left is the gap beyond both.
    assert abs(second.gap_beyond) < abs(second.gap)


def test_scores_right_in_the_segment_and_wrong_elsewhere():
    rng = np.random.default_rng(0)
    n = 12_000
    p, x = rng.uniform(0.2, 0.8, n), rng.choice(["a", "b", "c"], n)
    y = rng.random(n) < np.where(x == "a", p, p - 0.12)
    one = cal.find_segments(y, p, {"x": x}).segments[0]
    low, high = one.gap_interval
    assert one.condition == "x is a"
    assert low <= 0 <= high
    assert one.gap_beyond > 0.05
    assert "the scores as given may be right there" in one.summary


def test_of_a_segment_and_all_other_rows_those_with_the_worse_scores_are_named():
    rng = np.random.default_rng(0)
    n = 6000
    p, x, age = rng.uniform(0.2, 0.8, n), rng.random(n) < 0.3, rng.integers(18, 78, n)
    y = rng.random(n) < np.where(x, p, p - 0.15)
    assert cal.find_segments(y, p, {"x": x}).segments[0].condition == "x is False"
    y = rng.random(n) < np.where(age < 60, p + 0.15, p)
    assert cal.find_segments(y, p, {"age": age}).segments[0].condition == "age < 60"


def test_frames_and_names_of_columns_say_the_same():
    y, p, X, _ = data(3000)
    wanted = cal.find_segments(y, p, X).to_dict()
    assert cal.find_segments(y, p, pl.DataFrame(X)).to_dict() == wanted
    frame = pd.DataFrame({"y": y, "p": p, **X})
    assert cal.find_segments(frame, label="y", prob="p", X=[*X]).to_dict() == wanted
    assert cal.find_segments(cal.as_predictions(y, p), X=X).to_dict() == wanted
    with pytest.raises(ValueError, match="X must be a column"):
        cal.find_segments(frame, label="y", prob="p", X=["height"])


def test_repeats_are_rows():
    y, p, X, _ = data(2500)
    w = np.random.default_rng(0).integers(0, 3, y.size)
    one = cal.find_segments(y, p, X, sample_weight=w, random_state=1)
    rows = np.repeat(np.arange(y.size), w)
    other = cal.find_segments(y[rows], p[rows], {k: v[rows] for k, v in X.items()}, random_state=1)
    # Bins of numbers are those of the rows given, not of repeats: categories agree exactly.
    assert one.segments[0].gap == pytest.approx(other.segments[0].gap, abs=0.03)


@pytest.mark.parametrize("notion", ["confidence", "classwise", "top-label"])
def test_several_classes(notion):
    rng = np.random.default_rng(0)
    n = 6000
    q = rng.dirichlet(np.ones(3), n)
    x = rng.random(n) < 0.4
    true = q.copy()
    true[x] = true[x] ** 2.5 * [2, 1, 1]
    true /= true.sum(axis=1, keepdims=True)
    k = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    found = cal.find_segments(k, q, {"x": x, "z": rng.normal(size=n)}, notion=notion)
    assert found.segments
    assert all("x is" in one.condition for one in found.segments)
    assert ("label" in found.to_frame("pandas").columns) == (notion != "confidence")
    assert str(found)
    assert found.plot()
    assert found.plot(segment=0)


def test_vectors_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="classwise"):
        cal.find_segments(
            rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50), {"x": np.arange(50)}, notion="canonical"
        )


@pytest.mark.parametrize("way", ["simulate", "split"])
def test_groups_stay_together(way):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(300), 10)
    p = rng.uniform(0.2, 0.8, 3000)
    y = rng.random(3000) < np.clip(p + 0.15 * rng.normal(size=300)[groups], 0, 1)
    site = rng.integers(0, 4, 300)[groups].astype(str)
    found = cal.find_segments(y, p, {"site": site, "z": rng.normal(size=3000)}, groups=groups, confirm=way)
    assert found.segments == ()
    halves = confirm._half(
        [confirm.SegmentRows(np.arange(3000), p, y * 1.0, np.ones(3000), np.ones(3000), True, groups)], rng
    )
    assert np.isin(np.bincount(groups, halves), (0, 10)).all()
    assert abs(halves.mean() - 0.5) < 0.02


def test_a_sample_of_rows():
    y, p, X, wrong = data()
    found = cal.find_segments(y, p, X, max_rows=4000)
    assert any("4,000 rows" in text for text in found.warnings)
    assert found.segments
    assert found.mask(0).size == y.size
    assert found.tested[0].n_samples < wrong.sum() * 1.2


def test_the_fewest_rows_of_a_segment():
    y, p, X, _ = data(3000)
    found = cal.find_segments(y, p, X, min_rows=900)
    assert all(one.n_samples >= 900 for one in found.tested)


def test_features_that_cannot_be_searched_are_said():
    y, p, _X, _ = data(1000)
    given = {"one": np.ones(1000), "id": [f"i{i}" for i in range(1000)], "label": np.where(y == 1, "a", "b")}
    found = cal.find_segments(y, p, given)
    assert [*found.left_out] == ["one", "id", "label"]
    assert found.tested == ()
    assert found.features == ()
    assert "left out: one (it is constant)" in str(found)
    assert found.plot()
    assert found.to_html()


def test_outcomes_that_are_all_alike_cannot_be_tested():
    p, x = np.linspace(0.1, 0.9, 200), np.arange(200) % 2
    for y in (np.zeros(200, int), (p > 0.5).astype(int)):
        for way in ("simulate", "split"):
            found = cal.find_segments(y, p, {"x": x}, confirm=way)
            assert found.tested == ()
            assert "nothing could be tested" in found.warnings[0]


def test_new_rows_with_values_that_were_not_there():
    y, p, X, _ = data()
    found = cal.find_segments(y, p, X)
    new = {"age": [60, None, 20], "region": ["north", "north", "mars"]}
    assert found.apply(new).tolist() == [[True], [False], [False]]
    with pytest.raises(ValueError, match="column 'region'"):
        found.apply({"age": [60]})
    with pytest.raises(TypeError, match="kind"):
        found.apply({"age": ["old"], "region": ["north"]})
    with pytest.raises(ValueError, match="equal length"):
        found.apply({"age": [60], "region": ["north", "south"]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_terms": 0}, "max_terms"),
        ({"max_terms": 5}, "max_terms"),
        ({"min_rows": 0}, "min_rows"),
        ({"confirm": "both"}, "confirm"),
        ({"level": 95}, "level"),
        ({"max_rows": 0}, "max_rows"),
    ],
)
def test_bad_options(options, message):
    y, p, X, _ = data(100)
    with pytest.raises(ValueError, match=message):
        cal.find_segments(y, p, X, **options)


@pytest.mark.parametrize(
    ("X", "error"),
    [
        (None, TypeError),
        ("age", TypeError),
        ({}, ValueError),
        ({"x": np.arange(99)}, ValueError),
        ({"x": [[1]] * 100}, (TypeError, ValueError)),
        ({"x": 3}, TypeError),
        (np.zeros((100, 2, 2)), (TypeError, ValueError)),
        (pl.LazyFrame({"x": range(100)}), TypeError),
    ],
)
def test_bad_features(X, error):
    y, p, *_ = data(100)
    with pytest.raises(error, match="X"):
        cal.find_segments(y, p, X)


@pytest.mark.parametrize(
    "X",
    [
        {"x": np.array([np.inf, -np.inf, 1e308, -1e308] * 50)},
        {"x": ["\x1b[31m", "<script>", "", None] * 50},
        {"<b>\n": np.arange(200) % 3},
        {"x": [1, "1", True, 1.5] * 50},
        {"x": np.ma.masked_less(np.arange(200) % 5, 1)},
        np.arange(400).reshape(200, 2),
        {"x": np.arange(200).astype("M8[s]")},
        {"x": np.arange(200).astype("m8[h]")},
        {"x": pd.Series(pd.date_range("2026-01-01", periods=200, tz="Europe/Berlin"))},
        {"x": pd.Categorical(["a", "b"] * 100)},
    ],
)
def test_odd_features_are_searched_or_said(X):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    found = cal.find_segments(rng.random(200) < p, p, X)
    assert len(found.features) + len(found.left_out) in (1, 2)
    assert str(found).isprintable() or "\n" in str(found)
    assert "<script>" not in found.to_html().replace("<script>\n", "")
    assert found.plot()
    found.apply(X)


def test_draws_do_not_repeat_the_stream_that_made_the_rows():
    rng = np.random.default_rng(0)
    x = rng.random(3000) < 0.5  # the first numbers that a generator of this seed gives
    p = rng.uniform(0.2, 0.8, 3000)
    y = rng.random(3000) < np.where(x, p + 0.15, p)
    assert cal.find_segments(y, p, {"x": x}, random_state=0).tested[0].adjusted == 0.005
