"""The test of periods where there are many courses: draws that end early or go on, and a tail beyond them."""

from itertools import product

import numpy as np
import pytest

import calibrant as cal
from calibrant.comparison.subgroups.heterogeneity import PooledMap, _most_draws, _range_tails
from calibrant.significance.null import GroupSigns, Null

from ..comparison.test_subgroups import cells_of


class Uniform(Null):
    """Draws of a uniform number."""

    how = "uniform numbers"

    def sets(self, n_draws, rng, size=0):
        yield rng.random(n_draws)


def test_drawing_ends_with_the_tenth():
    found, done = Uniform().sequential_pvalue(np.asarray, 0.999, (99, 100_000), np.random.default_rng(0))
    draws = np.random.default_rng(0).random(100_000)
    last = int(np.flatnonzero(draws >= 0.999)[9]) + 1
    assert (found, done) == (10 / last, last)


def test_drawing_does_not_go_on_where_many_reach():
    found, done = Uniform().sequential_pvalue(np.asarray, 0.5, (99, 100_000), np.random.default_rng(0))
    assert done == 99
    assert found == (1 + (np.random.default_rng(0).random(99) >= 0.5).sum()) / 100
    found, done = Uniform().sequential_pvalue(np.asarray, 2.0, (99, 5000), np.random.default_rng(0))
    assert (found, done) == (1 / 5001, 5000)


def test_pvalues_of_sequential_draws_are_those_of_a_test():
    rng = np.random.default_rng(1)
    found = [Uniform().sequential_pvalue(np.asarray, rng.random(), (99, 2000), rng)[0] for _ in range(4000)]
    for level in (0.002, 0.01, 0.05, 0.2):
        share = np.mean(np.array(found) <= level)
        assert share <= level + 3 * np.sqrt(level / 4000)
        assert share >= level / 2 - 3 * np.sqrt(level / 4000)


def test_draws_reach_below_what_is_to_be_possible():
    assert _most_draws(1.0, 100, tail=False) == 1999
    assert _most_draws(1e-4, 100, tail=False) == 200_000
    assert _most_draws(1e-4, 10_000_000, tail=False) == 20_000
    assert _most_draws(1e-4, 10_000_000, tail=True) == 1999


def sparse(seed, *, weighted=False, odd=False):
    """Twelve periods of 20 rows each of a rare outcome, and how far out their sums are."""
    rng = np.random.default_rng(seed)
    t, p = np.repeat(np.arange(12), 20), rng.beta(0.5, 12, 240)
    y = rng.random(240) < np.where(odd & (t == 3), 0.6, p)
    cells = cells_of(y.astype(int), p, rng.random(240) if weighted else None, integral=not weighted, codes=t)
    pooled = PooledMap.of(cells)
    return np.nan if pooled is None else _range_tails(cells, pooled)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_tails_are_no_smaller_than_those_of_a_test(weighted):
    found = np.array([sparse(seed, weighted=weighted) for seed in range(600)])
    for level in (0.2, 0.05, 0.01, 1e-3):
        assert np.mean(found <= level) <= level + 3 * np.sqrt(level / 600)


def test_a_period_that_is_far_out_has_a_small_tail():
    assert max(sparse(seed, odd=True) for seed in range(5)) < 2e-3


def odd_site(n_sites=40, rows=60):
    """Sites over three months, one of which has other outcomes in the second."""
    rng = np.random.default_rng(0)
    site, month = np.repeat(np.arange(n_sites), 3 * rows), np.tile(np.repeat(np.arange(3), rows), n_sites)
    p = rng.uniform(0.005, 0.1, site.size)
    y = rng.random(site.size) < np.where((site == 7) & (month == 1), 0.35, p)
    return y.astype(int), p, (np.datetime64("2026-01", "M") + month.astype("m8[M]")).astype("M8[D]"), site


@pytest.mark.parametrize("groups", [False, True])
def test_one_of_many_courses_can_be_rejected(groups):
    """1/2000, of 1999 draws, is not small enough among 120 tests."""
    y, p, month, site = odd_site()
    options = {"groups": np.arange(y.size) // 3 + 10_000 * site} if groups else {}
    found = cal.calibration_over_time(y, p, month, by=site, every="month", estimator=cal.Binned(5), **options)
    (one,) = (c for c in found.courses if c.adjusted["periods"] <= 0.05)
    assert one.course == "7"
    assert one.period_test.pvalue < 1 / 2000


def test_signs_that_are_listed_are_listed_once():
    groups = np.repeat(np.arange(6), 10)
    residuals = np.random.default_rng(2).normal(size=60) + 0.2
    signs = GroupSigns.of(groups, residuals**2, residuals**2, np.ones(60))
    sums = signs.sums(residuals)

    def statistic(some):
        return np.abs(some @ sums)

    observed = float(statistic(signs.observed)[0])
    found, done = signs.sequential_pvalue(statistic, observed, (99, 100_000), np.random.default_rng(0))
    naive = [abs(np.dot(one, sums)) >= observed - 1e-9 for one in product([-1, 1], repeat=6)]
    assert (found, done) == (pytest.approx(np.mean(naive)), 64)
