"""The search of segments against one that looks at every segment row by row; codes against plain comparisons."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.comparison.segments.features import Condition, read_features, within
from calibrant.comparison.segments.offsets import OffsetModel, SegmentRows
from calibrant.comparison.segments.search import Limits, Searched, inflation_of
from calibrant.data.problem import Problem

NO_OUTCOMES = {"": (slice(None), np.zeros(0))}


def features_of(X, n):
    return read_features(X, n, {})


def naive(searched, residuals, terms):
    """Largest z²/2 of each length: a beam that looks at every row of every segment, one after the other."""
    v, total, least = searched.variance, searched.variance.sum(), searched.limits.variance
    every = [Condition(f, *c) for f, one in enumerate(searched.features) for c in one.candidates]

    def rows_of(some):
        rows = np.ones(v.size, dtype=bool)
        for c in some:
            rows &= (searched.codes[c.feature] >= c.low) & (searched.codes[c.feature] < c.high)
        return rows

    best, parents = {}, [()]
    for length in range(1, terms + 1):
        pool = {}
        for parent in parents:
            most = 0.95 * v[rows_of(parent)].sum()
            own = {}
            for c in every:
                rows = rows_of(some := tuple(sorted((*parent, c))))
                variance, score = v[rows].sum(), residuals[rows].sum()
                if c.feature in {one.feature for one in parent} or not least <= variance <= min(total - least, most):
                    continue
                rank = score**2 / (2 * variance * (1 - variance / total))
                if variance <= total / 2:
                    best[length] = max(best.get(length, 0.0), rank)
                place = (c.feature, score > 0)
                own[place] = max(own.get(place, (-1.0, ())), (rank, some))
            pool |= {some: rank for rank, some in own.values()}
        parents = sorted(pool, key=pool.get, reverse=True)[:10]
    return best


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_sums_of_codes_find_what_looking_at_every_row_finds(seed, terms, numbers):
    rng = np.random.default_rng(seed)
    n = 300
    X = {"a": rng.integers(0, 5, n).astype(str), "b": rng.integers(0, 2, n).astype(bool)}
    if numbers:
        X["c"] = rng.integers(0, 6, n)
    s = rng.uniform(0.1, 0.9, n)
    y = rng.random(n) < s
    of = features_of(X, n)
    model = OffsetModel.of(SegmentRows.of(Problem(s, y), np.arange(n), None))
    residuals = model.refitted(model.residuals)
    searched = Searched(of.each, of.codes, model.variance, np.ones(len(of.each)), Limits(terms, 2.0, 0))
    (found,) = searched.best(residuals[None])
    wanted = naive(searched, residuals, terms)
    assert [len(one.conditions) for one in found] == sorted(wanted)
    for one in found:
        # Ends of such numbers are all searched, so that moving them changes nothing.
        assert one.rank == pytest.approx(wanted[len(one.conditions)])


def test_many_rows_of_residuals_are_searched_as_each_alone():
    rng = np.random.default_rng(0)
    n = 800
    of = features_of({"a": rng.normal(size=n), "b": rng.choice(list("xyz"), n), "c": rng.normal(size=n)}, n)
    model = OffsetModel.of(SegmentRows.of(Problem(s := rng.random(n), rng.random(n) < s), np.arange(n), None))
    searched = Searched(of.each, of.codes, model.variance, np.ones(3), Limits(3, 5.0, 30))
    drawn = model.draws(6, rng)
    together = searched.best(drawn)
    assert together == [searched.best(one[None])[0] for one in drawn]
    for one in itertools.chain(*together):
        assert 30 <= within(of.codes, one.conditions).sum() <= n - 30


def test_the_score_statistic_is_that_of_a_logistic_regression():
    """Rao's statistic of an offset beside the curve's columns, by its definition."""
    rng = np.random.default_rng(1)
    n = 500
    s = rng.random(n)
    w = rng.integers(1, 4, n).astype(float)
    y, inside = rng.random(n) < s**1.3, rng.random(n) < 0.3
    model = OffsetModel.of(SegmentRows.of(Problem(s, y, w), np.arange(n), None))
    X = np.column_stack([model.columns, inside])
    v = w * model.chance * (1 - model.chance)
    score = X.T @ (w * (y - model.chance))
    wanted = score @ np.linalg.solve(X.T @ (v[:, None] * X), score)
    assert model.score(inside)[0] ** 2 == pytest.approx(wanted, rel=1e-6)
    assert np.abs(score[:-1]).max() < 1e-6
    larger = model.beyond(inside)
    assert np.sum((w * (y - larger.chance))[inside]) == pytest.approx(0, abs=1e-6)
    assert larger.score(inside)[0] == 0.0
    # Repeats are rows.
    rows = np.repeat(np.arange(n), w.astype(int))
    plain = OffsetModel.of(SegmentRows.of(Problem(s[rows], y[rows]), np.arange(rows.size), None))
    assert plain.score(inside[rows])[0] == pytest.approx(model.score(inside)[0], rel=1e-9)
    np.testing.assert_allclose(plain.gap(inside[rows]), model.gap(inside))


def test_draws_have_the_variance_that_is_stated():
    rng = np.random.default_rng(2)
    n = 400
    s, w = rng.random(n), rng.uniform(0.5, 2, n)
    inside = rng.random(n) < 0.4
    for weights in (None, w, np.ceil(w)):
        integral = weights is None or bool((weights == np.floor(weights)).all())
        rows = SegmentRows.of(Problem(s, rng.random(n) < s, weights, integral), np.arange(n), None)
        model = OffsetModel.of(rows)
        drawn = model.draws(4000, rng)
        part = inside - model.columns @ (model._inverse @ (model._bent.T @ inside))
        assert drawn[:, inside].sum(axis=1).var() == pytest.approx(part**2 @ model.variance, rel=0.12)
        np.testing.assert_allclose(drawn @ model.columns, 0, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False, width=32)), min_size=30, max_size=80)
)
def test_conditions_on_numbers_say_what_they_do(values):
    column = np.array([np.nan if v is None else v for v in values])
    known = column[~np.isnan(column)]
    of = features_of({"x": column}, len(values))
    if len(set(known.tolist())) < 2 and (known.size == column.size or known.size == 0):
        assert "x" in of.left_out
        return
    (one,) = of.each
    for low, high in one.candidates:
        rows = within(of.codes, [Condition(0, low, high)])
        if low == one.missing:
            assert (rows == np.isnan(column)).all()
            continue
        least = -np.inf if low == 0 else one.cuts[low - 1]
        most = np.inf if high == one.missing else one.cuts[high - 1]
        with np.errstate(invalid="ignore"):
            assert (rows == ((column >= least) & ((column < most) | (most == np.inf)))).all()
        assert one.said(low, high)
    again = one.codes(column, "x")
    assert (again == of.codes[0]).all()


def test_columns_of_every_kind_in_every_frame():
    n = 240
    rng = np.random.default_rng(0)
    day = np.datetime64("2026-01-01") + (np.arange(n) // 10).astype("m8[D]")
    columns = {
        "age": [None if i % 40 == 0 else int(v) for i, v in enumerate(rng.integers(18, 90, n))],
        "income": rng.lognormal(size=n).tolist(),
        "region": [None if i % 50 == 0 else "north" if i % 3 else "south" for i in range(n)],
        "smoker": (rng.random(n) < 0.5).tolist(),
        "day": day.tolist(),
        "one": [1] * n,
        "nothing": [None] * n,
        "name": [f"row {i}" for i in range(n)],
    }
    polars = pl.DataFrame(columns)
    made = [
        features_of(frame, n)
        for frame in (columns, polars, polars.to_pandas(), polars.to_arrow(), pd.DataFrame(columns))
    ]
    for of in made:
        assert [one.name for one in of.each] == ["age", "income", "region", "smoker", "day"]
        assert list(of.left_out) == ["one", "nothing", "name"]
        assert [one.kind for one in of.each] == ["number", "number", "category", "category", "date"]
        np.testing.assert_array_equal(of.codes, made[0].codes)
        said = {one.said(*c) for one in of.each for c in one.candidates}
        assert {"region is north", "smoker is True", "age is missing", "day < 2026-01-03", "region is missing"} <= said


def test_a_category_of_many_values_keeps_the_frequent_ones():
    rng = np.random.default_rng(0)
    n = 20_000
    city = np.array([f"c{v}" for v in rng.zipf(1.3, n).clip(max=10_000)])
    of = features_of({"city": city}, n)
    (one,) = of.each
    distinct, number = np.unique(city, return_counts=True)
    assert one.rare == distinct.size - 200
    assert "rare values" in of.notes[0]
    assert {*one.values} >= {*distinct[number > np.sort(number)[-200]]}
    assert one.said(*one.candidates[-2]) == f"city is one of the rare values ({one.rare:,})"
    # A value that was never seen is like the rare ones.
    assert one.codes(np.array(["c1", "elsewhere"]), "city").tolist() == [one.values.index("c1"), 200]


def test_features_that_leak_the_label_are_left_out():
    rng = np.random.default_rng(0)
    n = 600
    y = rng.random(n) < 0.3
    X = {"closed": np.where(y, "yes", "no"), "refund": y * rng.uniform(1, 2, n), "age": rng.integers(18, 90, n)}
    of = read_features(X, n, {"": (np.arange(n), y)})
    assert [one.name for one in of.each] == ["age"]
    assert all("leak" in why for why in of.left_out.values())


def test_groups_inflate_the_variance_of_features_that_are_theirs():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(200), 10)
    residuals = rng.normal(size=200)[groups] + rng.normal(size=2000)
    codes = np.stack([rng.integers(0, 2, 200)[groups], rng.integers(0, 2, 2000)]).astype(np.uint8)
    theirs, other = inflation_of(codes, residuals, groups)
    assert theirs > 1.4 * other > 1.4
    assert (inflation_of(codes, residuals, None) == 1).all()
