"""Samples without spread, without one of the outcomes, or with atoms: every one has a defined answer."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant import Binned, calibration_error
from calibrant.data.problem import Problem
from calibrant.estimators import Density, ResidualKernel
from calibrant.sums import GridMoments, resolve_bandwidth

STEP = 1 / 4096
BINNED = [Binned(), Binned(5, "quantile"), Binned("sqrt"), Binned(mapping="linear"), Binned(4, "quantile", "linear")]
SMOOTH = [
    Density(),
    Density("scott"),
    Density(0.05),
    Density(kernel="triweight"),
    ResidualKernel(),
    ResidualKernel(space="score"),
]
ALL = [*BINNED, *SMOOTH]
everywhere = pytest.mark.parametrize("estimator", ALL, ids=repr)


def grid(p, o=None):
    p = np.asarray(p, dtype=float)
    return GridMoments.of(Problem(p, np.zeros(len(p), dtype=int) if o is None else np.asarray(o)))


def close(estimator) -> float:
    """How far a kernel's smear may move the answer: its mean distance, 0.8 of a bandwidth."""
    if isinstance(estimator, Density):
        return 0.041 if estimator.bandwidth == 0.05 else 2 * STEP
    return 2e-3 if isinstance(estimator, ResidualKernel) else 1e-12


@everywhere
@pytest.mark.parametrize(("score", "positives"), [(0.5, 50), (0.3, 30), (0.8, 20), (0.0, 25), (1.0, 60), (0.3, 0)])
def test_constant_scores(estimator, score, positives):
    """All that can be said is whether the mean is right."""
    y = np.arange(100) < positives
    got = calibration_error(y, np.full(100, score), estimator=estimator)
    assert got == pytest.approx(abs(positives / 100 - score), abs=close(estimator))


def test_constant_scores_have_the_bandwidth_of_a_grid_step():
    for rule in ("silverman", "scott"):
        assert resolve_bandwidth(rule, grid([0.3] * 50)) == STEP
    curve = cal.reliability_curve(np.arange(100) < 40, np.full(100, 0.5), level=0.9, random_state=0)
    assert curve.at(0.5).observed[0] == pytest.approx(0.4)
    assert 0.3 < curve.at(0.5).lower[0] < 0.4 < curve.at(0.5).upper[0] < 0.5
    assert np.isnan(curve.at([0.0, 0.4, 0.6, 1.0]).observed).all()


@everywhere
def test_most_scores_at_zero(estimator):
    """90 % at exactly 0 (so the interquartile range is 0) and never positive, the others wrong by 0.3."""
    y = np.r_[np.zeros(900), np.arange(100) < 50].astype(int)
    p = np.r_[np.zeros(900), np.full(100, 0.2)]
    got = calibration_error(y, p, estimator=estimator)
    if isinstance(estimator, Binned):
        if estimator.mapping == "hard":
            assert got == pytest.approx(0.1 * 0.3)
        else:
            assert got == pytest.approx(0.1 * 0.3, abs=1e-12)  # gaps of one sign: sharing moves none of them
    else:
        assert got == pytest.approx(0.03, abs=0.04 if estimator in (Density(0.05), Density("scott")) else 2e-3)


def test_most_scores_at_zero_have_the_bandwidth_of_a_grid_step():
    p = np.r_[np.zeros(900), np.linspace(0.1, 0.9, 100)]
    assert resolve_bandwidth("silverman", grid(p)) == STEP
    assert resolve_bandwidth("scott", grid(p)) > 0.01


@everywhere
def test_no_positives(estimator):
    """The observed frequency is 0 wherever there is data: the error is the mean score."""
    p = np.random.default_rng(0).random(500)
    got = calibration_error(np.zeros(500, dtype=int), p, estimator=estimator)
    assert got == pytest.approx(p.mean(), abs=2e-3)
    curve = cal.reliability_curve(np.zeros(500, dtype=int), p, estimator="density", level=0.9, random_state=0)
    assert np.nanmax(np.abs(curve.observed)) < 1e-9
    assert np.nanmax(np.abs(curve.upper)) < 1e-9


@everywhere
def test_no_negatives(estimator):
    p = np.random.default_rng(0).random(500)
    got = calibration_error(np.ones(500, dtype=int), p, estimator=estimator)
    assert got == pytest.approx(1 - p.mean(), abs=2e-3)
    curve = cal.reliability_curve(np.ones(500, dtype=int), p, estimator="density")
    np.testing.assert_allclose(curve.observed[~np.isnan(curve.observed)], 1)


@everywhere
@pytest.mark.parametrize(("zeros", "ones", "error"), [(0, 100, 0.0), (20, 80, 0.2), (100, 0, 1.0), (50, 50, 0.5)])
def test_atoms_at_both_ends(estimator, zeros, ones, error):
    """Scores of exactly 0 and 1; outcomes positive ``zeros`` % of the time at 0 and ``ones`` % at 1."""
    p = np.repeat([0.0, 1.0], 100)
    y = np.r_[np.arange(100) < zeros, np.arange(100) < ones].astype(int)
    got = calibration_error(y, p, estimator=estimator)
    if isinstance(estimator, Density) and estimator.bandwidth != 0.05:
        # The rules take the distance between the atoms for their scale, and the ratio of densities leaks.
        assert got == pytest.approx(error, abs=0.16)
    elif isinstance(estimator, ResidualKernel) and estimator.space == "rank":
        assert got == pytest.approx(error, abs=0.06)
    else:
        assert got == pytest.approx(error, abs=close(estimator))


@everywhere
@pytest.mark.parametrize(("y", "score"), [(1, 0.3), (0, 0.3), (1, 1.0), (0, 0.0), (1, 0.0)])
def test_one_sample(estimator, y, score):
    got = calibration_error([y], [score], estimator=estimator)
    assert got == pytest.approx(abs(y - score), abs=close(estimator))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_fewer_samples_than_bins(n):
    rng = np.random.default_rng(n)
    p, y = rng.random(n), rng.integers(0, 2, n)
    for strategy in ("uniform", "quantile"):
        # Every sample is alone in its bin.
        assert calibration_error(y, p, estimator=Binned(10_000, strategy)) == pytest.approx(np.abs(y - p).mean())
    assert calibration_error(y, p, estimator=Binned("sqrt")) <= np.abs(y - p).mean()


def test_quantile_bins_cut_atoms_off():
    """A tie of the smallest or largest score is a bin of its own, however the ranks fall."""
    p = np.r_[np.zeros(50), np.linspace(0.2, 0.8, 19), np.ones(131)]
    for n_bins in (4, 5, 15):
        edges = Binned(n_bins, "quantile")._edges(Problem(p, np.zeros(200)))
        assert np.histogram(p, edges.values)[0].sum() == 200
        assert edges.values[1] == pytest.approx(0.1)
        assert edges.values[-2] == pytest.approx(0.9)


@pytest.mark.parametrize("notion", ["classwise", "confidence", "top-label"])
def test_classes_that_never_come(notion):
    P = np.tile([0.6, 0.4, 0.0], (50, 1))
    y = np.r_[np.zeros(30), np.ones(20)].astype(int)
    for estimator in ALL:
        got = calibration_error(y, P, notion=notion, estimator=estimator, labels=[0, 1, 2])
        assert got == pytest.approx(0, abs=close(estimator))
    assert set(cal.reliability_curve(y, P, notion="top-label", labels=[0, 1, 2])) == {0}


def test_intervals_of_degenerate_samples():
    for y, p in (([1], [0.3]), ([0, 0], [0.0, 0.0]), ([0] * 50, [0.0] * 50), ([1] * 5, [0.2] * 5)):
        for estimator in (Binned(), Density(), ResidualKernel()):
            got = cal.estimate(y, p, estimator=estimator, n_resamples=50, random_state=0)
            assert 0 <= got.interval.low <= got.interval.high <= 1
    # No deviation among n certain predictions: the exact binomial bound.
    got = cal.estimate([0] * 50, [0.0] * 50, estimator=Binned(), n_resamples=50, random_state=0)
    assert got.interval == (0.0, pytest.approx(1 - 0.025 ** (1 / 50)))
    # A single bin of one sample says nothing about a debiased error.
    alone = cal.estimate([1], [0.3], estimator=Binned(debias=True), n_resamples=50, random_state=0)
    assert np.isnan([alone.value, *alone.interval, alone.corrected]).all()


def test_isj_without_a_solution_says_so():
    with pytest.warns(
        cal.exceptions.BandwidthWarning, match=r"bandwidth='isj' has no solution .* Silverman's rule is used"
    ):
        value = calibration_error([0, 1], [0.2, 0.8], estimator=Density("isj"))
    assert value == pytest.approx(calibration_error([0, 1], [0.2, 0.8], estimator=Density("silverman")))


def test_isj_finds_two_narrow_modes():
    rng = np.random.default_rng(1)
    p = np.clip(np.r_[rng.normal(0.2, 0.02, 1000), rng.normal(0.8, 0.02, 1000)], 0, 1)
    alone = resolve_bandwidth("silverman", grid(rng.normal(0.5, 0.02, 1000)))
    assert resolve_bandwidth("isj", grid(p)) == pytest.approx(alone, rel=0.35)
    assert resolve_bandwidth("silverman", grid(p)) > 5 * alone
