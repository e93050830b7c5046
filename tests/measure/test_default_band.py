"""The default curve and its band: one for curves and diagrams, what it covers, and values that many rows share."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid

import calibrant as cal
from calibrant.measure.bands import binomial_consistency, wilson_interval
from calibrant.measure.posterior_curve import heavy_values

LEVEL = 0.95


def piled(rng, n=2000, share=0.25):
    s = rng.random(n)
    s[rng.random(n) < share] = 0.5
    return (rng.random(n) < np.where(s == 0.5, 0.7, s)).astype(int), s


def test_curves_and_diagrams_have_one_default():
    display = cal.ReliabilityDisplay.from_predictions
    assert inspect.signature(cal.reliability_curve).parameters["estimator"].default == "auto"
    assert inspect.signature(display).parameters["curve"].default == "auto"
    rng = np.random.default_rng(0)
    y, s = piled(rng)
    curve = cal.reliability_curve(y, s, level=LEVEL)
    (shown,) = display(y, s).diagrams
    behind = cal.estimate(y, s).curve
    sums = cal.Accumulator().update(y[:700], s[:700]).update(y[700:], s[700:]).reliability_curve(level=LEVEL)
    for other in (shown.curve, behind, sums):
        assert other.estimator == curve.estimator == "EmpiricalBayes(prior='typical')"
        np.testing.assert_allclose(other.scores, curve.scores)
        np.testing.assert_allclose(other.observed, curve.observed, atol=1e-9)
        assert np.abs(other.upper - curve.upper).max() < 0.05  # of other draws
    np.testing.assert_allclose(sums.lower, curve.lower, atol=1e-9)


@pytest.mark.parametrize(
    ("scores", "truth", "least"),
    [
        (lambda rng: rng.beta(0.3, 0.3, 1000), lambda s: s, 0.93),
        (lambda rng: rng.integers(0, 11, 1000) / 10, lambda s: s**2, 0.90),
        (lambda rng: rng.random(1000), lambda s: 0.2 + 0.3 * (s > 0.35) + 0.3 * (s > 0.65), 0.90),
        (lambda rng: rng.random(1000), lambda s: 0.8 - 0.6 * s, 0.90),
    ],
    ids=["calibrated, U-shaped", "tens", "steps", "falling"],
)
def test_the_band_covers(scores, truth, least):
    """Share of rows over 30 samples, allowing three standard errors of what each sample's share varies by."""
    shares = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        s = scores(rng)
        y = (rng.random(s.size) < truth(s)).astype(int)
        _, lower, upper = cal.reliability_curve(y, s, labels=[0, 1], level=LEVEL, n_resamples=400).at(s)
        shares.append(np.mean((lower <= truth(s) + 1e-9) & (truth(s) <= upper + 1e-9)))
    assert np.mean(shares) >= least - 3 * np.std(shares) / np.sqrt(30)


def test_a_value_that_many_rows_share_has_its_own_interval():
    y, s = piled(np.random.default_rng(0))
    at = s == 0.5
    curve = cal.reliability_curve(y, s, level=LEVEL)
    observed, lower, upper = curve.at(0.5)
    assert observed[0] == pytest.approx(y[at].mean(), abs=0.01)  # a row or two lie within 1/4096 of it
    low, high = wilson_interval(np.array([y[at].sum()]), np.array([at.sum()]), LEVEL)
    assert (lower[0], upper[0]) == pytest.approx((low[0], high[0]), abs=0.01)
    beside = curve.at([0.495, 0.505])
    assert (beside.upper < 0.65).all()  # they say nothing of the values beside it
    stated = cal.reliability_curve(y, s, level=LEVEL, band="consistency").at(0.5)
    ends = binomial_consistency(np.array([0.5]), np.array([at.sum()]), LEVEL)
    assert (stated.lower[0], stated.upper[0]) == pytest.approx((ends[0][0], ends[1][0]), abs=0.01)


def test_heavy_values_stand_apart():
    def found(scores):
        place = np.bincount(np.round(scores * 4096).astype(int), minlength=4097).astype(float)
        return heavy_values(place).tolist()

    rng = np.random.default_rng(0)
    uniform = rng.random(5000)
    assert found(uniform) == []
    assert found(rng.integers(0, 11, 5000) / 10) == []
    assert found(np.r_[uniform, np.full(200, 0.25)]) == [1024]
    assert found(np.r_[uniform, np.full(2000, 0.25), np.full(3000, 0.75), np.zeros(100)]) == [0, 1024, 3072]
    assert found(np.full(20, 1.0)) == [4096]
    assert found(np.full(5, 1.0)) == []


def test_no_number_far_from_all_rows():
    rng = np.random.default_rng(0)
    s = np.r_[rng.uniform(0.2, 0.3, 300), rng.uniform(0.7, 0.8, 300)]
    curve = cal.reliability_curve((rng.random(600) < s).astype(int), s, level=LEVEL)
    assert np.isnan(curve.at([0.0, 0.05, 0.35, 0.5, 0.65, 0.95, 1.0]).observed).all()
    assert not np.isnan(curve.at([0.19, 0.21, 0.25, 0.29, 0.71, 0.75, 0.79, 0.81]).observed).any()


def test_the_band_of_rows_in_groups_covers():
    """A hundred groups of twenty rows with one score and one outcome: as many rows as groups."""
    shares = {"alone": [], "together": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        group, score = np.repeat(np.arange(100), 20), rng.random(100)
        y, s = (rng.random(100) < score).astype(int)[group], score[group]
        for name, groups in (("alone", None), ("together", group)):
            _, lower, upper = cal.reliability_curve(y, s, level=LEVEL, groups=groups, n_resamples=200).at(s)
            shares[name].append(np.mean((lower <= s) & (s <= upper)))
    assert np.mean(shares["together"]) > 0.9
    assert np.mean(shares["alone"]) < 0.7


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_kind_of_outcome(outcome):
    """Prior and rows agree that the frequency is near the end, and the band reaches it."""
    s = np.random.default_rng(0).random(500)
    curve = cal.reliability_curve(np.full(500, outcome), s, labels=[0, 1], level=LEVEL)
    assert np.nanmax(np.abs(curve.observed - outcome)) < 0.02
    assert np.nanmax(curve.upper - curve.lower) < 0.2


def test_the_number_of_points_does_not_grow_with_the_rows():
    rng = np.random.default_rng(0)
    sizes = []
    for n in (20_000, 300_000):
        s = rng.random(n)
        sizes.append(cal.reliability_curve((rng.random(n) < s).astype(int), s).scores.size)
    assert sizes[0] == pytest.approx(sizes[1], abs=4)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1e-9, 0.1, 0.3, 0.5, 0.500001, 0.9, 1.0]) | st.floats(0, 1), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from(["confidence", "consistency", "simultaneous"]),
    st.integers(1, 30),
)
def test_any_scores(rows, band, times):
    s, y = (np.tile(np.array(v, dtype=float), times) for v in zip(*rows, strict=True))
    curve = cal.reliability_curve(y.astype(int), s, labels=[0, 1], level=LEVEL, band=band, n_resamples=20)
    assert (np.diff(curve.scores) > 0).all()
    assert (curve.scores[0], curve.scores[-1]) == (0, 1)
    assert trapezoid(curve.density, curve.scores) == pytest.approx(1)
    observed, lower, upper = curve.at(s)
    assert not np.isnan(observed).any()
    assert (lower >= 0).all()
    assert (upper <= 1).all()
    assert band == "simultaneous" or (lower <= upper).all()  # that one crosses where no increasing curve fits
    if band == "confidence":
        assert (lower <= observed + 1e-12).all()
        assert (observed <= upper + 1e-12).all()
    if times > 1:
        weighted = cal.reliability_curve(
            np.array([v for _, v in rows], dtype=int),
            [v for v, _ in rows],
            labels=[0, 1],
            sample_weight=np.full(len(rows), times),
        )
        np.testing.assert_allclose(weighted.at(s).observed, observed, atol=1e-6)


def test_the_consistency_of_a_score_next_to_0():
    curve = cal.reliability_curve([0] * 8, [8e-140] * 8, labels=[0, 1], level=LEVEL, band="consistency")
    assert (curve.at([8e-140]).lower, curve.at([8e-140]).upper) == (0, 0)
