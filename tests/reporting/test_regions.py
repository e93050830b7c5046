"""Which scores a verdict names: ranges that are wrong, as wide as they are, and values that many rows share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.reporting.regions import CHANCE, LEAST_ROWS, regions
from calibrant.sums import BinMoments, uniform_edges

TENS = np.arange(11) / 10


def fine(s, y, weights=None):
    return BinMoments.of(Problem(s, y, weights, weights is None), uniform_edges(65536))


def happens(s, truth, rng):
    return (rng.random(len(s)) < truth(s)).astype(int)


def on_tens(n, rng):
    return rng.choice(TENS, n, p=np.array([1, 1, 1, 1, 1, 2, 2, 3, 5, 8, 6]) / 31)


@pytest.mark.parametrize("seed", range(5))
def test_scores_that_repeat_are_named_as_values(seed):
    rng = np.random.default_rng(seed)
    s = on_tens(2000, rng)
    r = cal.report(happens(s, lambda s: np.where(s > 0.85, s - 0.15, s), rng), s)
    assert "scores at 0.9 and 1.0 (4" in r.verdict
    assert "scores from" not in r.verdict


@pytest.mark.parametrize("n", [5000, 20_000, 100_000])
@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_range_is_named_as_it_is(n, seed):
    """0.70 to 0.75, where the band of a smooth curve leaves the diagonal from 0.61 to 0.80."""
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    (found,) = regions(fine(s, happens(s, lambda s: np.where((s > 0.7) & (s < 0.75), s - 0.3, s), rng)))
    assert (found.low, found.high) == pytest.approx((0.7, 0.75), abs=0.021 if n == 5000 else 0.005)


def test_a_pile_is_named_without_its_neighbours():
    rng = np.random.default_rng(1)
    s = np.where(rng.random(20_000) < 0.15, 0.5, rng.random(20_000))
    (found,) = regions(fine(s, happens(s, lambda s: np.where(s == 0.5, 0.62, s), rng)))
    assert found.values == (0.5,)
    assert found.share == pytest.approx(np.mean(s == 0.5))


@pytest.mark.parametrize("seed", range(5))
def test_values_wrong_on_both_sides_and_the_largest_first(seed):
    rng = np.random.default_rng(seed)
    s = on_tens(20_000, rng)
    y = happens(s, lambda s: 0.5 + 0.6 * (s - 0.5), rng)
    found = regions(fine(s, y))
    assert [r.gap < 0 for r in found] == [True, False]
    at = {v: abs((y - s)[s == v].sum()) for v in TENS}
    assert any(v == pytest.approx(max(at, key=at.get)) for v in found[0].values)
    assert list(found[0].values) == sorted(found[0].values)


def test_an_error_of_all_scores_is_one_range():
    rng = np.random.default_rng(0)
    s = rng.uniform(0.2, 0.8, 20_000)
    (found,) = regions(fine(s, happens(s, lambda s: s - 0.1, rng)))
    assert (found.low, found.high, found.share) == pytest.approx((0.2, 0.8, 1), abs=0.01)


def test_nothing_of_fewer_than_twenty_rows_is_named():
    """Far off as they are; one heavy row among light ones is one row."""
    rest = np.random.default_rng(0).random(1000) * 0.05

    def named(rows, weights=None):
        s = np.r_[np.full(rows, 0.93), rest]
        y = np.r_[np.zeros(rows), np.random.default_rng(1).random(1000) < rest]
        return [r for r in regions(fine(s, y, weights)) if r.stated > 0.5]

    assert not named(LEAST_ROWS - 1)
    (found,) = named(LEAST_ROWS)
    assert found.rows == LEAST_ROWS
    assert not named(100, np.r_[100.0, np.full(99, 0.001), np.full(1000, 1.0)])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60), st.booleans())
def test_what_is_said_of_a_region_is_so(rows, repeated):
    s = np.array([row[0] for row in rows] * (30 if repeated else 1))
    y = np.array([row[1] for row in rows] * (30 if repeated else 1), dtype=int)
    for found in regions(fine(s, y)):
        assert 0 <= found.low <= found.high <= 1
        assert found.rows >= LEAST_ROWS
        assert 0 < found.share <= 1
        # Rows within a cell of the histogram (1.5e-5) of an end may count or not.
        shares, sides = [], []
        for near in (-2e-5, 2e-5):
            if found.values:
                inside = np.abs(s[:, None] - np.array(found.values)).min(axis=1) < 2e-5
            else:
                inside = (s >= found.low - near) & (s <= found.high + near)
            shares.append(inside.mean())
            sides.append((y - s)[inside].sum() > 0)
        assert shares[0] - 1e-9 <= found.share <= shares[1] + 1e-9
        assert (found.gap > 0) in sides


@pytest.mark.slow
@pytest.mark.parametrize("scores", [lambda n, r: r.random(n), lambda n, r: r.beta(0.5, 20, n), on_tens])
def test_calibrated_scores_are_rarely_named(scores):
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(300):
        s = scores(2000, rng)
        found += bool(regions(fine(s, (rng.random(2000) < s).astype(int))))
    assert found / 300 <= CHANCE + 3 * np.sqrt(CHANCE / 300)
