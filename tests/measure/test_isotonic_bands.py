"""Bands of isotonic curves and bins: against second implementations, published numbers and known truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, isotonic_regression
from scipy.stats import beta, binom, chi2

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.measure.bands import (
    LIMIT,
    LIMIT_LEVELS,
    binomial_consistency,
    clopper_pearson,
    isotonic_consistency_band,
    likelihood_ratio_band,
    runs,
    simultaneous_band,
    steps,
)
from calibrant.measure.tied_scores import FEW, MOST, OUTER, TiedScores
from calibrant.sums import BinMoments, uniform_edges


def sample(n, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return Problem(s, (rng.random(n) < s**power).astype(int)), rng


def test_clopper_pearson_is_made_of_beta_quantiles():
    k, n = np.array([0.0, 3, 10, 0]), np.array([10.0, 10, 10, 0])
    low, high = clopper_pearson(k, n, 0.95)
    assert low[:3] == pytest.approx([0, beta.ppf(0.025, 3, 8), beta.ppf(0.025, 10, 1)])
    assert high[:3] == pytest.approx([beta.ppf(0.975, 1, 10), beta.ppf(0.975, 4, 7), 1])
    assert np.isnan([low[3], high[3]]).all()


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 1 - 1e-6])
def test_binomial_consistency_is_made_of_binomial_quantiles(level):
    n = np.repeat([1.0, 2, 7, 50, 1000], 5)
    p = np.tile([0.0, 0.01, 0.3, 0.999, 1.0], 5)
    low, high = binomial_consistency(p, n, level)
    assert low * n == pytest.approx(binom.ppf((1 - level) / 2, n, p))
    assert high * n == pytest.approx(binom.ppf((1 + level) / 2, n, p))


def test_groups_add_up_and_know_their_ends():
    s = np.array([0.5, 0.1, 0.5, 0.9, 0.1, 0.1])
    o = np.array([1, 0, 0, 1, 1, 0])
    g = TiedScores.of(Problem(s, o))
    assert g.score.tolist() == [0.1, 0.5, 0.9]
    assert g.count.tolist() == g.trials.tolist() == [3, 2, 1]
    assert g.positive.tolist() == [1, 1, 1]


def test_whole_weights_are_repeats():
    rng = np.random.default_rng(3)
    s, o, w = rng.integers(0, 20, 60) / 20, rng.integers(0, 2, 60), rng.integers(0, 4, 60).astype(float)
    repeated = TiedScores.of(Problem(np.repeat(s, w.astype(int)), np.repeat(o, w.astype(int))))
    weighted = TiedScores.of(Problem(s, o, w, True))
    for name in ("low", "high", "score", "count", "positive", "trials"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name)), name


def test_relative_weights_keep_the_variance_of_outcomes():
    rng = np.random.default_rng(4)
    s, w = np.repeat([0.3, 0.7], 500), rng.gamma(2.0, size=1000)
    g = TiedScores.of(Problem(s, rng.integers(0, 2, 1000), w, False))
    assert g.count.sum() == pytest.approx(w.sum() ** 2 / (w**2).sum())  # Kish's effective size
    draws = g.drawn(g.score, 4000, rng)
    for k, p in enumerate((0.3, 0.7)):
        own = w[s == p] * g.count.sum() / w.sum()
        assert draws[:, k].mean() == pytest.approx(own.sum() * p, rel=0.01)
        assert draws[:, k].var() == pytest.approx((own**2).sum() * p * (1 - p), rel=0.15)


def test_many_scores_are_put_together_in_order():
    problem, _ = sample(MOST + 1)
    g, every = TiedScores.of(problem), TiedScores.of(problem, most=None)
    assert every.size == MOST + 1
    assert FEW <= g.size <= FEW + 2 * OUTER
    assert g.count.sum() == every.count.sum() == g.trials.sum()
    assert g.positive.sum() == every.positive.sum()
    assert (g.high[:-1] < g.low[1:]).all()
    assert ((g.low <= g.score) & (g.score <= g.high)).all()
    assert g.count.max() <= 2 * g.count.mean()


def test_groups_of_a_fine_histogram_are_those_of_rows():
    problem, _ = sample(100)
    rows = TiedScores.of(problem)
    fine = TiedScores.of_moments(BinMoments.of(problem, uniform_edges(65536)))
    assert fine.score == pytest.approx(rows.score)
    assert fine.positive == pytest.approx(rows.positive)
    assert ((fine.low <= fine.score) & (fine.score <= fine.high)).all()


def naive_simultaneous(ties, level):
    first, last = runs(ties.count)
    lower, upper = np.zeros(ties.size), np.ones(ties.size)
    tail = (1 - level) / 2 / len(first)
    for a, b in zip(first, last, strict=True):
        h, n = ties.positive[a : b + 1].sum(), ties.count[a : b + 1].sum()
        low = beta.ppf(tail, h, n - h + 1) if h > 0 else 0.0
        high = beta.isf(tail, h + 1, n - h) if h < n else 1.0
        for i in range(ties.size):
            if i >= b:
                lower[i] = max(lower[i], low)
            if i <= a:
                upper[i] = min(upper[i], high)
    return lower, upper


@pytest.mark.parametrize("n", [1, 2, 4, 7, 60])
def test_the_simultaneous_band_is_the_best_of_all_runs(n):
    problem, _ = sample(n, seed=n)
    ties = TiedScores.of(problem)
    found, naive = simultaneous_band(ties, 0.9), naive_simultaneous(ties, 0.9)
    assert found[0] == pytest.approx(naive[0], abs=1e-10)
    assert found[1] == pytest.approx(naive[1], abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(0, 10_000), st.integers(2, 60))
def test_a_simultaneous_band_rises_and_is_no_number_outside_its_range(n, seed, values):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, values, n) / (values - 1)
    ties = TiedScores.of(Problem(s, rng.integers(0, 2, n)))
    lower, upper = simultaneous_band(ties, 0.95)
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert ((lower >= 0) & (upper <= 1)).all()
    first, last = runs(ties.count)
    assert (first <= last).all()
    assert last.max() == ties.size - 1
    assert first.min() == 0
    assert len(set(zip(first.tolist(), last.tolist(), strict=True))) == len(first)


def test_between_groups_a_simultaneous_band_takes_what_both_sides_say():
    ties = TiedScores.of(Problem(np.array([0.2, 0.4, 0.8]), np.array([0, 1, 1])))
    lower, upper = np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7])
    at = np.array([0.1, 0.2, 0.3, 0.4, 0.79, 0.8, 0.9])
    low, high = steps(ties, lower, upper, at)
    assert low.tolist() == [0, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3]
    assert high.tolist() == [0.5, 0.5, 0.6, 0.6, 0.7, 0.7, 1]


def test_within_a_group_of_several_scores_its_neighbours_speak():
    """The bound of such a group holds at its outer ends only: an increasing curve may do anything in between."""
    ends = np.array([[0.1, 0.2], [0.4, 0.5]]).T
    ties = TiedScores(*ends, ends.mean(axis=0), np.ones(2), np.ones(2), np.ones(2))
    lower, upper = np.array([0.3, 0.4]), np.array([0.6, 0.7])
    low, high = steps(ties, lower, upper, np.array([0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.5]))
    assert low.tolist() == [0, 0, 0.3, 0.3, 0.3, 0.3, 0.4]
    assert high.tolist() == [0.6, 0.7, 0.7, 0.7, 0.7, 1, 1]


def naive_ratio(problem, j, theta):
    """Twice the log likelihood ratio by isotonic fits of both sides, bounded by theta."""
    order = np.argsort(problem.scores)
    o = problem.outcomes[order].astype(float)

    def log_likelihood(p):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(o == 1, np.log(p), np.log1p(-p)).sum()

    free = isotonic_regression(o).x
    before = np.minimum(isotonic_regression(o[:j]).x, theta) if j else np.empty(0)
    behind = np.maximum(isotonic_regression(o[j + 1 :]).x, theta) if j + 1 < o.size else np.empty(0)
    return 2 * (log_likelihood(free) - log_likelihood(np.concatenate([before, [theta], behind]))), free[j]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_likelihood_ratio_ends_solve_the_equation(level):
    problem, _ = sample(120, seed=5)
    lower, upper = likelihood_ratio_band(TiedScores.of(problem), level)
    limit = LIMIT[LIMIT_LEVELS.index(level)]
    for j in (30, 45, 60, 85):  # beyond the 120^(2/3) rows at either end
        _, fit = naive_ratio(problem, j, 0.5)
        for end, far in ((lower[j], 1e-9), (upper[j], 1 - 1e-9)):
            if naive_ratio(problem, j, far)[0] <= limit:
                assert end == pytest.approx(round(far), abs=1e-6)
            else:
                inside = min(max(fit, 1e-9), 1 - 1e-9)
                exact = brentq(lambda t, j=j: naive_ratio(problem, j, t)[0] - limit, *sorted((inside, far)))
                assert end == pytest.approx(exact, abs=2e-4)
                assert (end - exact) * (far - inside) >= -1e-9  # never too narrow


def test_near_both_ends_the_interval_reaches_as_far_as_exact_ones():
    problem, _ = sample(120, seed=5)
    order = np.argsort(problem.scores)
    o = problem.outcomes[order]
    reach = int(np.ceil(120 ** (2 / 3)))
    lower, upper = likelihood_ratio_band(TiedScores.of(problem), 0.9)
    for j in (0, 3, 10):
        k = o[j : j + reach].sum()
        assert upper[j] >= beta.ppf(0.95, k + 1, reach - k) - 1e-9
        h = o[: j + 1].sum()
        assert lower[j] <= (beta.ppf(0.05, h, j + 1 - h + 1) if h else 0) + 1e-9
    for j in (119, 116, 109):
        k = o[j - reach + 1 : j + 1].sum()
        assert lower[j] <= beta.ppf(0.05, k, reach - k + 1) + 1e-9


def test_the_outermost_rows_are_covered_too():
    rng = np.random.default_rng(10)
    held = np.zeros(4)
    for _ in range(250):
        s = np.sort(0.3 + 0.4 * rng.random(300))
        ties = TiedScores.of(Problem(s, (rng.random(300) < s).astype(int)))
        at = np.array([0, 8, 291, 299])
        lower, upper = likelihood_ratio_band(ties, 0.9, at)
        held += (lower[at] <= s[at]) & (s[at] <= upper[at])
    assert (held / 250 > 0.9 - 3 * np.sqrt(0.09 / 250)).all()


def test_one_score_of_many_samples_has_the_interval_of_a_proportion():
    s = np.repeat([0.2, 0.8], 200)
    o = np.concatenate([np.arange(200) < 50, np.arange(200) < 150]).astype(int)
    lower, upper = likelihood_ratio_band(TiedScores.of(Problem(s, o)), 0.95)

    def ratio(theta):
        return 2 * (binom.logpmf(50, 200, 0.25) - binom.logpmf(50, 200, theta)) - chi2.ppf(0.95, 1)

    assert lower[0] == pytest.approx(brentq(ratio, 0.05, 0.25), abs=1e-3)
    assert upper[0] == pytest.approx(brentq(ratio, 0.25, 0.6), abs=1e-3)


def test_the_limit_law_is_that_of_banerjee_and_wellner():
    # Banerjee & Wellner (2001), Table: 95 % quantile 2.2692, from simulation.
    assert LIMIT[LIMIT_LEVELS.index(0.95)] == pytest.approx(2.27, abs=0.03)
    assert np.all(np.diff(LIMIT) > 0)


def test_consistency_is_about_the_scores_and_not_the_outcomes():
    problem, _ = sample(400, power=3.0)
    ties = TiedScores.of(problem)
    one = isotonic_consistency_band(ties, 0.9, 300, np.random.default_rng(0))
    flipped = TiedScores.of(Problem(problem.scores, 1 - problem.outcomes))
    other = isotonic_consistency_band(flipped, 0.9, 300, np.random.default_rng(0))
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)
    naive = np.array(
        [
            isotonic_regression((np.random.default_rng([1, r]).random(400) < ties.score).astype(float)).x
            for r in range(2000)
        ]
    )
    low, high = np.quantile(naive, [0.05, 0.95], axis=0)
    assert np.abs(one[0] - low).mean() < 0.012
    assert np.abs(one[2] - high).mean() < 0.012


@pytest.mark.parametrize(("method", "band"), [("isotonic", "simultaneous"), ("binned", "simultaneous")])
def test_simultaneous_bands_hold_their_promise_for_few_rows(method, band):
    rng = np.random.default_rng(8)
    missed = 0
    for _ in range(300):
        s = rng.random(60)
        truth = 0.2 + 0.6 * (s > 0.5)
        curve = cal.reliability_curve(
            (rng.random(60) < truth).astype(int), s, labels=[0, 1], estimator=method, level=0.8, band=band
        )
        if method == "binned":
            home = np.digitize(s, curve.edges[1:-1], right=True)
            held = curve.count > 0
            mean = np.bincount(home, truth, minlength=held.size)[held] / curve.count[held]
            inside = (curve.lower[held] <= mean) & (mean <= curve.upper[held])
        else:
            at = curve.at(s)
            inside = (at.lower <= truth) & (truth <= at.upper)
        missed += not inside.all()
    assert missed / 300 <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 300)
    assert curve.band == band


def test_likelihood_ratio_bands_cover_at_one_score():
    rng = np.random.default_rng(9)
    held = 0
    for _ in range(400):
        s = np.append(rng.random(300), 0.5)
        o = (rng.random(301) < 0.2 + 0.6 * s).astype(int)
        ties = TiedScores.of(Problem(s, o))
        j = int(np.searchsorted(ties.score, 0.5))
        lower, upper = likelihood_ratio_band(ties, 0.9, np.array([j]))
        held += lower[j] <= 0.5 <= upper[j]
    assert abs(held / 400 - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 400)
