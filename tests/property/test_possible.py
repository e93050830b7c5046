"""Numbers that cannot be: above what K classes of a matrix can have, or a value outside of its own interval."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.norm import combine, combine_draws
from calibrant.measure.intervals import sums_paths

ESTIMATORS = (
    cal.EmpiricalBayes(),
    cal.EmpiricalBayes(prior="wide"),
    cal.Binned(),
    cal.Binned("sqrt", "quantile", debias=True),
    cal.estimators.ResidualKernel(),
    cal.estimators.ResidualKernel(space="score"),
    cal.estimators.Density(),
    cal.estimators.Smooth(),
    cal.estimators.Sweep(),
    cal.estimators.BetaKernel(),
    cal.estimators.Isotonic(),
)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@settings(max_examples=8, deadline=None)
@given(st.integers(2, 12), st.integers(1, 60), st.sampled_from([1, 2]), st.floats(0.02, 3), st.integers(0, 2**31))
def test_what_is_found_is_possible_and_a_value_lies_in_its_interval(estimator, k, n, norm, concentration, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, concentration), n)
    y = rng.integers(0, k, n)
    about = {"notion": "classwise", "labels": range(k), "estimator": estimator, "norm": norm}
    e = cal.estimate(y, p, n_resamples=20, **about)
    largest = (2 / k) ** (1 / norm) * (1 + 1e-12)
    assert e.value == pytest.approx(cal.calibration_error(y, p, **about), abs=1e-12, nan_ok=True)
    assert not e.value > largest
    if not np.isnan(e.interval.low):
        assert 0 <= e.interval.low <= e.interval.high <= largest
        if not np.isnan(e.value):
            assert e.interval.low <= max(e.value, 0) <= e.interval.high


@pytest.mark.parametrize("norm", [1, 2, float("inf")])
@pytest.mark.parametrize("estimator", ["binned", "density", "residual"])
def test_maximum_and_density_lie_in_their_intervals(estimator, norm):
    """Seen once: density 0.0526 in 0.0442–0.0517, MCE 0.5153 in 0.0000–0.5024."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p = rng.random(40)
        e = cal.estimate((rng.random(40) < p).astype(int), p, estimator=estimator, norm=norm)
        assert e.interval.low <= e.value <= e.interval.high


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 5), st.integers(1, 12), st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**31))
def test_cells_of_the_simplex_are_the_same_for_any_order_of_classes(k, steps, n, m, seed):
    """Of scores on cell edges too: once .524 in one order and .260 in the other."""
    rng = np.random.default_rng(seed)
    parts = rng.multinomial(steps * k, np.full(k, 1 / k), n)
    p, y, order = parts / parts.sum(axis=1, keepdims=True), rng.integers(0, k, n), rng.permutation(k)
    one, two = (
        cal.calibration_error(labels, q, notion="canonical", labels=range(k), estimator=cal.estimators.SimplexBinned(m))
        for labels, q in ((y, p), (np.argsort(order)[y], p[:, order]))
    )
    assert one == pytest.approx(two, abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(100, 300), (1000, 300), (3000, 300)])
@pytest.mark.slow
def test_many_classes_of_few_rows_are_no_independent_problems(k, n):
    """Intervals were [0, 0.047] of at most 0.02 for K = 100, and [0, 0.208] of at most 0.002 for K = 1000."""
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.ones(k), n)
    y = np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    e = cal.estimate(y, p, notion="classwise", labels=range(k))
    assert e.interval.low == 0
    assert e.value <= e.interval.high <= 2 / k
    assert e.value < 1.2 / k
    if k == 100:
        assert e.interval.high < 1.2 / k


def test_few_positives_do_not_let_draws_run_away():
    """A normal law of the log odds puts mass where the number of positives would be impossible."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 300, 400)
    e = cal.estimate((rng.random(400) < p).astype(int), p)
    assert e.interval.high < 0.02  # 0.3 % are positive; was 0.026


def test_as_few_rows_as_none_says_what_may_be_unseen():
    """All of n certain scores right: the exact 97.5 % bound of a share that is not in the sample."""
    for n in (20, 200, 2000):
        p = (np.arange(n) % 2).astype(float)
        assert cal.estimate(p.astype(int), p).interval.high >= 1 - 0.025 ** (1 / n) - 1e-15


@pytest.mark.parametrize(
    "estimator", [cal.Binned(), cal.Binned(5, "quantile"), cal.estimators.ResidualKernel(), cal.estimators.Density()]
)
@pytest.mark.slow
def test_counts_drawn_anew_read_what_labels_drawn_anew_do(estimator):
    """Readings of a calibrated model, averaged over a hundred rare classes, against labels drawn row by row."""
    rng = np.random.default_rng(3)
    k, n = 100, 2000
    p = rng.dirichlet(np.full(k, 0.3), n)

    def labels():
        return np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)

    read = np.array([cal.calibration_error(labels(), p, notion="classwise", estimator=estimator) for _ in range(30)])
    reduction = cal.notions.Classwise().reduce(cal.as_predictions(labels(), p))
    sums = estimator.summarize(reduction[:])
    paths = sums_paths(estimator, sums, 1, 30, [np.random.default_rng(i) for i in range(k)], counts=True)
    drawn = np.mean([path.powers[0] for path in paths], axis=0)
    assert drawn.mean() == pytest.approx(read.mean(), rel=0.04)


def test_problems_side_by_side_have_the_paths_of_each_alone():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(5), 300)
    reduction = cal.notions.Classwise().reduce(cal.as_predictions(rng.integers(0, 5, 300), p))
    for estimator in (
        *ESTIMATORS[2:10],
        cal.Binned(4, mapping="linear"),
        cal.estimators.Parametric(),
        cal.estimators.AdaptiveKernel(),
    ):
        sums = estimator.summarize(reduction[:])
        for counts in (False, True):
            noise = [[np.random.default_rng(i) for i in range(5)] for _ in range(2)]
            together = sums_paths(estimator, sums, 1, 6, noise[0], counts=counts)
            for i, path in enumerate(together):
                alone = sums_paths(
                    estimator, estimator.summarize(reduction[i : i + 1]), 1, 6, noise[1][i : i + 1], counts=counts
                )[0]
                np.testing.assert_allclose(path.powers, alone.powers, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(path.truths, alone.truths, rtol=1e-9, atol=1e-9)
                assert path.observed == pytest.approx(alone.observed, rel=1e-9)


def test_errors_of_the_classes_of_a_matrix_are_capped_together():
    """Estimates of each class alone may add up to more than there can be: 2 / K, for p = 2 the root of that."""
    shares = [0.1] * 10
    for norm, bound in ((1, 0.2), (2, 0.2**0.5), (float("inf"), 1.0)):
        power = 0.9 if norm in (1, float("inf")) else 0.9**2
        apart = 0.9
        for draws in (False, True):
            powers = np.full((10, 3), power) if draws else np.full(10, power)
            f = combine_draws if draws else combine
            assert f(powers, shares, norm, "power", True) == pytest.approx(min(bound, apart))
            assert f(powers, shares, norm, "power") == pytest.approx(apart)
            assert f(powers, shares, norm, "max", True) == pytest.approx(apart)


def test_classes_without_a_number_are_left_out():
    nan = float("nan")
    for average, expected in (("power", 0.25), ("mean", 0.25), ("max", 0.4)):
        assert combine([0.4, nan, 0.2], [0.2, 0.2, 0.6], 1, average) == pytest.approx(expected)
        assert np.isnan(combine([nan, nan], [0.5, 0.5], 1, average))
        draws = combine_draws(np.array([[0.4, nan], [nan, nan], [0.2, nan]]), [0.2, 0.2, 0.6], 1, average)
        assert draws == pytest.approx([expected, nan], nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(1, 40), st.integers(1, 6), st.sampled_from([1, 2]), st.integers(0, 2**31))
def test_the_drawn_class_errs_at_most_half_as_much_as_all_together(k, n, m, norm, seed):
    """Gaps of a vector add up to 0, so that none is above half of their sum; and rows differ by more than means do."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    y = rng.integers(0, k, n)
    about = {"labels": range(k), "norm": norm}
    for center in ("cell", "row"):
        part = {**about, "estimator": cal.estimators.SimplexBinned(m, center)}
        drawn = cal.calibration_error(y, p, notion="drawn-class", **part)
        every = cal.calibration_error(y, p, notion=cal.notions.Canonical(), **part)
        assert drawn <= every * (0.5 if norm == 1 else (1 - 1 / k) ** 0.5) + 1e-12
        e = cal.estimate(y, p, notion=cal.notions.DrawnClass(), n_resamples=20, **part)
        assert e.value == pytest.approx(drawn, abs=1e-12)
        assert 0 <= e.interval.low <= e.value <= e.interval.high <= 1
    means, rows = (
        cal.calibration_error(y, p, notion="canonical", estimator=cal.estimators.SimplexBinned(m, c), **about)
        for c in ("cell", "row")
    )
    assert means <= rows + 1e-12


def test_of_two_classes_the_drawn_class_is_either():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p**1.5).astype(int)
    one = cal.calibration_error(
        y, np.column_stack([1 - p, p]), notion="drawn-class", estimator=cal.estimators.SimplexBinned(7)
    )
    assert one == pytest.approx(cal.calibration_error(y, p, estimator=cal.Binned(7)), abs=1e-12)
