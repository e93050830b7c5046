"""The `band` of curves: which one is drawn, what it is about, and what is refused."""

import numpy as np
import pytest
from scipy.stats import beta

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.measure.bands import simultaneous_band, steps
from calibrant.measure.tied_scores import TiedScores

RNG = np.random.default_rng(0)
P = RNG.random(800)
Y = (RNG.random(800) < P**2).astype(int)
SMOOTH = ["density", "adaptive", "residual"]


@pytest.mark.parametrize("method", [*SMOOTH, "isotonic", "binned"])
@pytest.mark.parametrize("band", ["confidence", "consistency", "simultaneous"])
def test_every_curve_has_every_band(method, band):
    curve = cal.reliability_curve(Y, P, estimator=method, level=0.9, band=band, n_resamples=200, random_state=1)
    assert curve.band == band
    known = ~np.isnan(curve.lower)
    assert known.sum() > 10
    assert (curve.lower[known] <= curve.upper[known]).all()
    assert curve.to_dict()["band"] == band
    again = cal.reliability_curve(Y, P, estimator=method, level=0.9, band=band, n_resamples=200, random_state=1)
    assert np.array_equal(curve.lower, again.lower, equal_nan=True)
    wider = cal.reliability_curve(Y, P, estimator=method, level=0.99, band=band, n_resamples=200, random_state=1)
    assert np.nanmean(wider.upper - wider.lower) > np.nanmean(curve.upper - curve.lower)
    if band == "consistency":
        assert np.nanmean((curve.lower <= curve.scores) & (curve.scores <= curve.upper)) > 0.9  # smoothing bends ends
    elif band == "confidence":
        assert ((curve.lower <= curve.observed + 1e-9) & (curve.observed <= curve.upper + 1e-9))[known].mean() > 0.97
    else:
        at = np.linspace(0.1, 0.9, 9)
        found = curve.at(at)
        assert (found.lower <= at**2).all()
        assert (at**2 <= found.upper).all()


@pytest.mark.parametrize("method", [*SMOOTH, "isotonic", "binned"])
def test_a_calibrated_model_leaves_its_consistency_band_rarely(method):
    rng = np.random.default_rng(2)
    outside = []
    for _ in range(60):
        s = rng.random(300)
        y = (rng.random(300) < s).astype(int)
        curve = cal.reliability_curve(
            y, s, estimator=method, level=0.9, band="consistency", n_resamples=200, random_state=rng
        )
        found = curve.at(np.linspace(0.1, 0.9, 9))
        outside.append(np.mean((found.observed < found.lower) | (found.observed > found.upper)))
    assert 0.02 < np.mean(outside) < 0.18


def test_bins_have_two_more_intervals():
    exact = cal.reliability_curve(Y, P, estimator="binned", level=0.9, band="clopper-pearson")
    wilson = cal.reliability_curve(Y, P, estimator="binned", level=0.9, band="wilson")
    usual = cal.reliability_curve(Y, P, estimator="binned", level=0.9)
    assert np.array_equal(wilson.lower, usual.lower, equal_nan=True)
    assert (exact.upper - exact.lower > wilson.upper - wilson.lower).mean() > 0.9
    shared = cal.reliability_curve(Y, P, estimator="binned", level=0.9, band="simultaneous")
    one = cal.reliability_curve(Y, P, estimator="binned", level=1 - 0.1 / 15, band="clopper-pearson")
    assert shared.lower == pytest.approx(one.lower)


@pytest.mark.parametrize("method", ["isotonic", "density"])
def test_weights_that_are_repeats_change_no_band(method):
    w = np.arange(800) % 3
    options = {"estimator": method, "level": 0.9, "band": "simultaneous"}
    weighted = cal.reliability_curve(Y, P, sample_weight=w, **options)
    repeated = cal.reliability_curve(np.repeat(Y, w), np.repeat(P, w), **options)
    at = np.linspace(0.05, 0.95, 19)
    assert weighted.at(at).lower == pytest.approx(repeated.at(at).lower, abs=1e-9)
    assert weighted.at(at).upper == pytest.approx(repeated.at(at).upper, abs=1e-9)


def test_many_rows_have_the_bands_of_their_groups():
    rng = np.random.default_rng(3)
    p = rng.random(60_000)
    y = (rng.random(60_000) < p**2).astype(int)
    at = np.linspace(0.05, 0.95, 19)
    for band in ("confidence", "consistency", "simultaneous"):
        found = cal.reliability_curve(
            y, p, estimator="isotonic", level=0.9, band=band, n_resamples=100, random_state=0
        ).at(at)
        middle = at if band == "consistency" else at**2
        assert (found.lower - 0.02 <= middle).all()
        assert (middle <= found.upper + 0.02).all()
        assert np.mean(found.upper - found.lower) < 0.12


def test_the_simultaneous_band_of_many_rows_is_never_drawn_between_groups():
    rng = np.random.default_rng(3)
    p = rng.random(30_000)
    y = (rng.random(30_000) < p**2).astype(int)
    curve = cal.reliability_curve(y, p, estimator="isotonic", level=0.9, band="simultaneous")
    ties = TiedScores.of(Problem(p, y))
    lower, upper = simultaneous_band(ties, 0.9)
    assert ties.size < 3000
    assert ties.low[:64].tolist() == np.sort(p)[:64].tolist()  # the outermost rows stay by themselves
    assert set(curve.lower) <= {0.0, *lower}
    assert set(curve.upper) <= {1.0, *upper}
    assert np.array_equal(curve.lower, steps(ties, lower, upper, np.sort(p))[0])


def test_between_two_scores_a_simultaneous_band_knows_what_they_know():
    rng = np.random.default_rng(5)
    s = rng.choice([0.2, 0.8], 2000)
    y = (rng.random(2000) < np.where(s > 0.5, 0.7, 0.3)).astype(int)
    curve = cal.reliability_curve(y, s, estimator="isotonic", level=0.95, band="simultaneous")
    found = curve.at([0.1, 0.2, 0.4, 0.8, 0.9])
    assert found.lower.tolist() == [0.0, curve.lower[0], curve.lower[0], curve.lower[1], curve.lower[1]]
    assert found.upper.tolist() == [curve.upper[0], curve.upper[0], curve.upper[1], curve.upper[1], 1.0]
    x, low, high = curve.band_corners()
    assert x.tolist() == [0.2, 0.2, 0.8, 0.8]
    assert low.tolist() == [curve.lower[0]] * 3 + [curve.lower[1]]
    assert high.tolist() == [curve.upper[0], *[curve.upper[1]] * 3]


def test_classes_have_bands_of_their_own():
    rng = np.random.default_rng(4)
    q = rng.dirichlet([1, 1, 1], 400)
    y = (rng.random((400, 1)) > q.cumsum(axis=1)).sum(axis=1)
    curves = cal.reliability_curve(y, q, estimator="isotonic", level=0.9, band="simultaneous", notion="classwise")
    assert sorted(curves) == [0, 1, 2]
    assert all(curve.band == "simultaneous" for curve in curves.values())


def test_without_a_level_there_is_no_band():
    curve = cal.reliability_curve(Y, P, estimator="isotonic")
    assert curve.band is None
    assert np.isnan(curve.lower).all()


@pytest.mark.parametrize(
    ("method", "band"), [("density", "wilson"), ("isotonic", "clopper-pearson"), ("binned", "bayes"), ("density", None)]
)
def test_a_band_that_there_is_not_is_refused(method, band):
    with pytest.raises(ValueError, match="band must be one of 'confidence', 'consistency', 'simultaneous'"):
        cal.reliability_curve(Y, P, estimator=method, level=0.9, band=band)


def test_two_rows_say_what_one_in_two_says():
    curve = cal.reliability_curve([0, 1], [0.2, 0.4], estimator="isotonic", level=0.9, band="simultaneous")
    low, high = beta.ppf([0.05, 0.95], [1, 2], [2, 1])
    assert curve.lower == pytest.approx([0, low])
    assert curve.upper == pytest.approx([high, 1])


def test_a_row_without_weight_changes_nothing():
    w = np.ones(800)
    w[::7] = 0
    for band in ("confidence", "simultaneous"):
        one = cal.reliability_curve(Y, P, estimator="isotonic", level=0.9, band=band, sample_weight=w)
        other = cal.reliability_curve(Y[w > 0], P[w > 0], estimator="isotonic", level=0.9, band=band)
        assert one.lower == pytest.approx(other.lower)
        assert one.upper == pytest.approx(other.upper)
