"""What isotonic fits gain on their own rows: true gains by simulation, draws, smooth maps, latent correlations."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.comparison.models.parts import Column, Mean, latent_correlation, overfits, smooth_map
from calibrant.comparison.models.units import IndependentUnits
from calibrant.measure.scoring_rules import RULES, Brier

from .naive import in_groups

RULE = {"brier": Brier("half"), "log-loss": RULES["log-loss"]}


def gains(y, p, group=None, seed=0):
    given = cal.as_predictions(y, p)
    return overfits([given], RULE, IndependentUnits.of(in_groups(given, group)), seed)[:, 0].mean(axis=1)


@pytest.mark.parametrize("levels", [None, 5, 1])
def test_gains_are_the_miscalibration_that_calibrated_models_show(levels):
    """Miscalibration as `decompose` reads it, of models that have none, averages to the gain."""
    rng = np.random.default_rng(0)
    shown, told = [], []
    for seed in range(60):
        p = rng.random(500)
        y = (rng.random(500) < p).astype(int)
        s = p if levels is None else (np.floor(p * levels) + 0.5) / levels
        shown.append([cal.decompose(y, s, score=name).miscalibration for name in RULE])
        told.append(gains(y, s, seed=seed))
    shown, told = np.array(shown), np.array(told)
    off = shown.mean(axis=0) - told.mean(axis=0)
    assert (np.abs(off) < 4 * shown.std(axis=0) / np.sqrt(60)).all()
    if levels == 1:  # a constant gains the variance of a mean, and half of it over p(1 - p) by the log score
        np.testing.assert_allclose(told.mean(axis=0), [0.25 / 500, 0.5 / 500], rtol=0.05)
    if levels is None:  # a bootstrap of rows finds 0.0045
        assert told.mean(axis=0)[0] == pytest.approx(0.0083, rel=0.06)


@pytest.mark.slow
def test_steps_are_the_lower_reading_and_right_where_the_truth_is_flat():
    """Three levels behind 1000 fine scores: a smooth map gains more than the truth does."""
    rng = np.random.default_rng(8)
    shown, smooth, steps = [], [], []
    for seed in range(30):
        s = rng.random(1000)
        truth = np.array([0.1, 0.5, 0.9])[np.minimum((3 * s).astype(int), 2)]
        y = (rng.random(1000) < truth).astype(int)
        given = cal.as_predictions(y, s)
        units = IndependentUnits.of(given)
        fitted = np.mean((y - s) ** 2) - cal.decompose(y, s).miscalibration
        shown.append(np.mean((y - truth) ** 2) - fitted)
        for found, flat in ((smooth, False), (steps, True)):
            found.append(overfits([given], RULE, units, seed, steps=flat)[0].mean())
    assert np.mean(smooth) > np.mean(shown) + 4 * np.std(shown) / np.sqrt(30)
    assert np.mean(steps) < np.mean(smooth)
    assert abs(np.mean(steps) - np.mean(shown)) < abs(np.mean(smooth) - np.mean(shown))


def test_gains_of_groups_count_what_hangs_together():
    """Rows that repeat an outcome and a score: the gain is that of one row each."""
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    rows = np.repeat(np.arange(200), 4)
    once, grouped, apart = gains(y, p), gains(y[rows], p[rows], rows), gains(y[rows], p[rows])
    np.testing.assert_allclose(grouped, once, rtol=0.15)
    assert (apart < 0.6 * once).all()
    np.testing.assert_allclose(gains(y, p, np.arange(200)), once, rtol=0.15)  # groups of one row


def test_gains_depend_on_the_order_of_scores_alone():
    rng = np.random.default_rng(2)
    p = rng.random(300).round(2).clip(0.01, 0.99)
    y = (rng.random(300) < p).astype(int)
    np.testing.assert_array_equal(gains(y, p), gains(y, p**3))
    models = [cal.as_predictions(y, s) for s in (p, p, np.sqrt(p))]
    found = overfits(models, RULE, IndependentUnits.of(models[0]), 0)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    np.testing.assert_array_equal(found[:, 0], found[:, 2])


@pytest.mark.parametrize("in_group", [1, 3])
def test_whole_weights_repeat_rows(in_group):
    rng = np.random.default_rng(3)
    p = rng.random(150)
    group = np.arange(150) // in_group
    y = (rng.random(50 * 3 // in_group)[group] < p).astype(int)
    w = rng.integers(1, 4, 150)
    rows = np.repeat(np.arange(150), w)

    def column(index, weight):
        given = cal.as_predictions(y[index], p[index], sample_weight=weight)
        units = IndependentUnits.of(in_groups(given, group[index] if in_group > 1 else None))
        return Column.of(p[index], y[index] == 1, units, whole=True)

    one, other = column(np.arange(150), w), column(rows, None)
    np.testing.assert_allclose(one.weight, other.weight)
    np.testing.assert_allclose(one.map, other.map, rtol=1e-9)
    assert one.correlation == pytest.approx(other.correlation)
    assert (one.correlation > 0) == (in_group > 1)
    first, second = (np.array(list(c.draws(4000, np.random.default_rng(0)))) for c in (one, other))
    np.testing.assert_allclose(first.mean(axis=0), one.weight * one.map, atol=0.1)
    np.testing.assert_allclose(first.var(axis=0), second.var(axis=0), atol=0.15)


def test_weights_that_are_no_counts_scale_away():
    rng = np.random.default_rng(4)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    w = rng.random(200) + 0.3
    found = []
    for factor in (1, 1e-4):
        given = cal.as_predictions(y, p, sample_weight=w * factor)
        found.append(overfits([given], RULE, IndependentUnits.of(given), 0))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-12)


def test_smooth_maps_follow_the_truth_and_never_fall():
    rng = np.random.default_rng(5)
    p = np.sort(rng.beta(0.5, 0.8, 20_000))
    truth = p**2 / (p**2 + (1 - p) ** 2)
    q = smooth_map((rng.random(p.size) < truth).astype(float), np.ones(p.size), p.size)
    assert (np.diff(q) >= 0).all()
    assert np.abs(q - truth).mean() < 0.01
    falling = smooth_map(1.0 * (rng.random(p.size) < 1 - truth), np.ones(p.size), p.size)
    np.testing.assert_allclose(falling, falling[0])
    # One outcome alone, and outcomes that a threshold tells apart, leave it within (0, 1).
    for y in (np.zeros(50), np.ones(50), 1.0 * (np.arange(50) > 20)):
        q = smooth_map(y, np.ones(50), 50)
        assert ((q > 0) & (q < 1)).all()


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8, 0.95])
def test_latent_correlations_are_found_again(rho):
    rng = np.random.default_rng(6)
    group = np.repeat(np.arange(6000), 4)
    q = rng.uniform(0.05, 0.95, group.size)
    latent = np.sqrt(rho) * rng.standard_normal(6000)[group] + np.sqrt(1 - rho) * rng.standard_normal(group.size)
    y = latent < stats.norm.ppf(q)
    units = IndependentUnits.of(in_groups(cal.as_predictions(y, q), group))
    assert latent_correlation(q, y, units, whole=True) == pytest.approx(rho, abs=0.03)


def test_means_of_any_probability_are_scores():
    """Of statements that are no means of their cells too."""
    p, y = np.array([0.2, 0.5, 0.9]), np.array([0, 1, 1])
    for rule, loss in ((Brier("half"), cal.brier_score(y, p, scale="half")), (RULES["log-loss"], cal.log_loss(y, p))):
        assert Mean(rule, 2)(p, np.ones(3), y.astype(float)) == pytest.approx(loss)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounded", "five levels", "constant"])
def test_calibrated_models_of_fewer_scores_are_seldom_told_apart_by_miscalibration(kind):
    """A fine model and a coarse one, both calibrated: resampled rows missed the truth in 58 to 100 %."""
    rng = np.random.default_rng(7)
    found = {"brier_miscalibration": 0, "log-loss_miscalibration": 0, "brier_discrimination": 0}
    number, n = 40, 1000
    for _ in range(number):
        p = rng.random(n)
        y = rng.random(n) < p
        levels = {"rounded": 10, "five levels": 5, "constant": 1}[kind]
        models = {"fine": p, "coarse": (np.floor(p * levels) + 0.5) / levels}
        got = cal.compare_models(y, models, n_resamples=60, random_state=rng)
        for measure in found:
            truth = 1 / (12 * levels**2) if measure.endswith("discrimination") else 0.0
            low, high = got.difference(measure, "fine", "coarse").interval
            found[measure] += not low <= truth <= high
    assert max(found.values()) <= number * (0.05 + 4 * np.sqrt(0.05 * 0.95 / number)), found
