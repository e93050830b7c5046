"""Intervals where outcomes cannot deviate further, where draws are many, and where no scale explains the data."""

import numpy as np
import pytest

import calibrant as cal

ESTIMATORS = [cal.estimators.ResidualKernel(), cal.Binned(), cal.Binned(debias=True), cal.estimators.AdaptiveKernel()]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("wrong", [0, 1])
def test_a_model_that_is_always_right(estimator, wrong):
    """The error is mean(1 - p), and no interval can reach far beyond it."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.6, 0.95, 1000)
    y = np.ones(1000, dtype=int)
    y[:wrong] = 0
    truth = float((1 - p).mean())
    e = cal.estimate(y, p, estimator=estimator, random_state=0)
    assert e.interval.low <= e.corrected <= e.interval.high
    assert e.interval.high < truth + 0.03
    assert e.interval.low > truth - 0.03
    assert e.corrected == pytest.approx(truth, abs=0.01)


def test_constant_scores_that_never_happen():
    e = cal.estimate([0] * 50, [0.3] * 50, random_state=0)
    assert e.value == pytest.approx(0.3, abs=0.1)  # drawn towards what is typical
    assert 0.15 < e.interval.low < 0.3 < e.interval.high < 0.32


def test_value_and_simulation_use_one_grid():
    """Scores far below a coarse grid's step: the reading must be that of the grid that is simulated."""
    p = np.random.default_rng(1).beta(1, 5000, 100_000)
    y = (np.random.default_rng(2).random(100_000) < 0.5 * p).astype(int)
    e = cal.estimate(y, p, estimator=cal.estimators.Density(), random_state=0)
    assert e.interval.low <= 1.1e-4 <= e.interval.high


@pytest.mark.parametrize("norm", [32, 33, 300, 1000])
def test_large_norms_approach_the_maximum(norm):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    top = cal.calibration_error(y, p, estimator=cal.Binned(), norm=np.inf)
    got = cal.calibration_error(y, p, estimator=cal.Binned(), norm=norm)
    assert 0.85 * top < got <= top
    q = np.c_[1 - p, p]
    both = cal.calibration_error(y, q, estimator=cal.Binned(), norm=norm, notion="classwise")
    assert both == pytest.approx(got, rel=1e-9)
    simplex = cal.calibration_error(y, q, estimator=cal.estimators.SimplexBinned(15), norm=norm, notion="canonical")
    # K = 2: the same bins, and both components carry the same gap.
    assert simplex == pytest.approx(got * 2 ** (1 / norm), rel=1e-9)
    e = cal.estimate(y, p, estimator=cal.Binned(), norm=norm, random_state=0)
    assert 0 <= e.interval.low <= e.interval.high <= 1


def test_canonical_interval_of_many_cells_is_bounded_in_memory():
    import tracemalloc

    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(10), 5000)
    y = np.minimum((rng.random((5000, 1)) > np.cumsum(q, axis=1)).sum(axis=1), 9)
    tracemalloc.start()
    e = cal.estimate(y, q, notion="canonical", random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert e.interval.low <= e.interval.high


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
def test_bandwidth_of_any_number_type(kind):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    for make in (
        cal.estimators.ResidualKernel,
        lambda h: cal.estimators.ResidualKernel(h, "score"),
        cal.estimators.Density,
    ):
        assert make(kind(0.25)) == make(0.25)
        assert cal.calibration_error(y, p, estimator=make(kind(0.25))) == cal.calibration_error(
            y, p, estimator=make(0.25)
        )
