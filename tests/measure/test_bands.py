"""Bands around curves: reproducible, silent where there is no data, and roughly of their level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid

import calibrant as cal
from calibrant import Binned
from calibrant.estimators import Density, ResidualKernel
from calibrant.measure.bands import quantiles, wilson_interval

SMOOTH = [Density(), Density(0.05, "triweight"), ResidualKernel(space="score"), ResidualKernel()]


def sample(rng, n=1500):
    p = rng.random(n)
    return (rng.random(n) < p**2).astype(int), p


@pytest.mark.parametrize(
    ("positive", "n", "level", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, table I, method 3
        (81, 263, 0.95, 0.2553, 0.3662),
        (15, 148, 0.95, 0.0624, 0.1605),
        (0, 20, 0.95, 0.0, 0.1611),
        (1, 29, 0.95, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_of_published_cases(positive, n, level, low, high):
    got = wilson_interval(np.array([positive]), np.array([n]), level)
    assert got[0][0] == pytest.approx(low, abs=5e-5)
    assert got[1][0] == pytest.approx(high, abs=5e-5)
    mirrored = wilson_interval(np.array([n - positive]), np.array([n]), level)
    assert mirrored[0][0] == pytest.approx(1 - high, abs=5e-5)


def test_wilson_interval_without_data():
    low, high = wilson_interval(np.array([0.0, 1.0]), np.array([0.0, 2.0]), 0.9)
    assert np.isnan([low[0], high[0]]).all()
    assert 0 < low[1] < 0.5 < high[1] < 1


def test_wilson_interval_equals_scipy():
    from scipy.stats import binomtest

    for k, n, level in ((3, 10, 0.9), (0, 5, 0.99), (7, 7, 0.5)):
        expected = binomtest(k, n).proportion_ci(level, method="wilson")
        got = wilson_interval(np.array([k]), np.array([n]), level)
        assert (got[0][0], got[1][0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_quantiles_leave_out_what_is_missing():
    rng = np.random.default_rng(0)
    draws = rng.random((101, 4))
    draws[::2, 1] = np.nan
    draws[:, 2] = np.nan
    draws[1:, 3] = np.nan
    for level in (0.5, 0.9):
        tail = (1 - level) / 2
        for got, q in zip(quantiles(draws, level), (tail, 0.5, 1 - tail), strict=True):
            assert got[0] == pytest.approx(np.quantile(draws[:, 0], q))
            assert got[1] == pytest.approx(np.nanquantile(draws[:, 1], q))
            assert np.isnan(got[2])
            assert got[3] == draws[0, 3]


@pytest.mark.parametrize("estimator", [*SMOOTH, Binned()], ids=repr)
def test_reproducible(estimator):
    y, p = sample(np.random.default_rng(0))
    one, same, other = (
        cal.reliability_curve(y, p, estimator=estimator, level=0.9, n_resamples=50, random_state=s) for s in (1, 1, 2)
    )
    for field in ("observed", "lower", "upper", "median"):
        np.testing.assert_array_equal(getattr(one, field), getattr(same, field))
    np.testing.assert_array_equal(one.observed, other.observed)
    if not isinstance(estimator, Binned):
        assert not np.array_equal(one.lower, other.lower, equal_nan=True)


@pytest.mark.parametrize("estimator", [*SMOOTH, Binned(), Binned(mapping="linear")], ids=repr)
def test_no_number_without_data(estimator):
    """Scores in [0, 0.2] and [0.8, 1] only: in between there is neither a curve nor a band."""
    rng = np.random.default_rng(0)
    p = np.r_[rng.uniform(0, 0.2, 300), rng.uniform(0.8, 1, 300)]
    y = (rng.random(600) < p).astype(int)
    if isinstance(estimator, ResidualKernel):
        estimator = ResidualKernel(0.02, "score")
    elif estimator == Density():
        estimator = Density(0.02)
    for level in (None, 0.9):
        curve = cal.reliability_curve(y, p, estimator=estimator, level=level, n_resamples=50, random_state=0)
        void = (curve.scores > 0.35) & (curve.scores < 0.65)
        assert np.isnan(curve.observed[void]).all()
        assert np.isnan(curve.at([0.45, 0.5, 0.55]).observed).all()
        known = ~np.isnan(curve.observed)
        assert known.any()
        for values in (curve.lower, curve.upper, curve.median):
            assert np.isnan(values[~known]).all()
            assert np.isnan(values[known]).all() == (level is None)
        assert not np.isnan(curve.at([0.1, 0.9]).observed).any()
        if level is not None:
            assert (curve.lower[known] <= curve.median[known]).all()
            assert (curve.median[known] <= curve.upper[known]).all()
            assert curve.lower[known].min() >= 0
            assert curve.upper[known].max() <= 1


def test_nothing_is_drawn_beyond_the_data():
    y, p = sample(np.random.default_rng(0), 400)
    curve = cal.reliability_curve(y, 0.4 + 0.2 * p, estimator=Density(), level=0.9, n_resamples=50, random_state=0)
    assert np.isnan(curve.at([0.0, 0.2, 0.8, 1.0]).observed).all()
    assert not np.isnan(curve.at([0.42, 0.5, 0.58]).lower).any()


@pytest.mark.parametrize("estimator", [*SMOOTH[:3], Binned(10)], ids=repr)
def test_bands_cover_pointwise(estimator):
    """The truth at nine scores, in 60 samples of 1500; smooth bands leave out their smoothing bias."""
    scores = np.array([0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85])
    hits = []
    for r in range(60):
        y, p = sample(np.random.default_rng(r))
        band = cal.reliability_curve(y, p, estimator=estimator, level=0.9, n_resamples=120, random_state=r).at(scores)
        hits.append((band.lower <= scores**2) & (scores**2 <= band.upper))
    # Scores near each other share their fate: about 60 · 4 independent trials, four standard errors.
    assert 0.9 - 4 * np.sqrt(0.09 / 240) <= np.mean(hits) <= 0.985


def test_the_band_of_densities_is_that_of_resampled_rows():
    """By a matrix of kernels and their mirror images, of 1000 resamples each."""
    rng, at, n = np.random.default_rng(2000), np.linspace(0.02, 0.98, 25), 2000
    p = rng.beta(0.7, 0.9, n)
    y = (rng.random(n) < p + 0.4 * np.sin(2 * np.pi * p) * p * (1 - p)).astype(int)
    low, high = np.percentile(p, [25, 75])
    h = min(p.std(ddof=1), (high - low) / 1.34898) * (0.75 * n) ** -0.2
    images = [image for shift in range(-4, 5, 2) for image in (shift + p, shift - p)]
    kernel = sum(np.exp(-0.5 * ((at[:, None] - image) / h) ** 2) for image in images)
    rows = rng.multinomial(n, np.full(n, 1 / n), 1000)
    ends = np.quantile((rows * y) @ kernel.T / (rows @ kernel.T), [0.025, 0.975], axis=0)
    curve = cal.reliability_curve(y, p, estimator="density", level=0.95, random_state=0).at(at)
    np.testing.assert_allclose(curve.observed, kernel @ y / kernel.sum(axis=1), rtol=0, atol=2e-4)
    np.testing.assert_allclose([curve.lower, curve.upper], ends, rtol=0, atol=0.01)


def test_the_band_narrows_with_data():
    y, p = sample(np.random.default_rng(0), 16_000)
    widths = []
    for n in (1000, 16_000):
        point = cal.reliability_curve(y[:n], p[:n], estimator=Density(0.05), level=0.9, random_state=0).at(
            [0.3, 0.5, 0.7]
        )
        widths.append(np.mean(point.upper - point.lower))
    assert widths[1] == pytest.approx(widths[0] / 4, rel=0.2)


def test_curves_of_all_classes():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 500)
    y = np.array(["x", "y", "z"])[rng.integers(0, 3, 500)]
    curves = cal.reliability_curve(y, P, level=0.9, n_resamples=20, random_state=0, notion="classwise")
    assert list(curves) == ["x", "y", "z"]
    for k, (label, curve) in enumerate(curves.items()):
        alone = cal.reliability_curve(y, P, notion=cal.notions.ClassSpecific(label))
        np.testing.assert_array_equal(curve.observed, alone.observed)
        assert (curve.label, curve.notion, curve.n_samples) == (label, "classwise", 500)
        assert trapezoid(curve.density, curve.scores) == pytest.approx(1, abs=0.02)
        assert P[:, k].mean() == pytest.approx(trapezoid(curve.scores * curve.density, curve.scores), abs=0.02)
    confidence = cal.reliability_curve(y, P)
    assert confidence.label is None
    assert confidence.scores[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("estimator", [Density(), Binned()], ids=repr)
def test_weights_of_curves(estimator):
    y, p = sample(np.random.default_rng(0), 200)
    w = np.random.default_rng(1).integers(0, 4, 200)
    weighted = cal.reliability_curve(y, p, estimator=estimator, level=0.9, random_state=0, sample_weight=w)
    repeated = cal.reliability_curve(np.repeat(y, w), np.repeat(p, w), estimator=estimator, level=0.9, random_state=0)
    for field in ("scores", "observed", "lower", "upper", "density", "count"):
        np.testing.assert_allclose(getattr(weighted, field), getattr(repeated, field), atol=1e-9)
