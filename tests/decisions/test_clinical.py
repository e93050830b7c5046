"""Clinical measures and decision curves against their definitions."""

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal


def binary(n=500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return np.where(rng.random(n) < p**1.5, "ill", "well"), p


def test_measures_are_their_definitions():
    y, p = binary()
    w = np.random.default_rng(1).integers(1, 4, 500)
    m = cal.calibration_measures(y, p, pos_label="ill", sample_weight=w)
    curve = cal.reliability_curve(y, p, pos_label="ill", estimator="adaptive", level=None, sample_weight=w)
    gap = np.repeat(np.abs(curve.at(p).observed - p), w)
    assert m.ici == pytest.approx(gap.mean())
    assert m.e50 == pytest.approx(np.quantile(gap, 0.5, method="inverted_cdf"))
    assert m.e90 == pytest.approx(np.quantile(gap, 0.9, method="inverted_cdf"))
    assert m.emax == gap.max()
    assert m.observed_expected == pytest.approx((w * (y == "ill")).sum() / (w * p).sum())
    cox = cal.significance.cox_test(y, p, pos_label="ill", sample_weight=w)
    assert (m.slope, m.intercept) == (cox.details["slope"], cox.details["intercept"])
    assert m.e50 <= m.e90 <= m.emax
    assert m.to_dict()["ici"] == m.ici


def test_known_truth_and_other_classes():
    rng = np.random.default_rng(2)
    p = rng.random(50_000)
    y = rng.random(50_000) < 1 / (1 + (1 / p - 1) ** 0.5)  # log odds halved: slope 1/2, distance 0.0966 on average
    m = cal.calibration_measures(y, p)
    assert m.slope == pytest.approx(0.5, abs=5 * m.slope_se)
    assert m.intercept == pytest.approx(0, abs=5 * m.intercept_se)
    assert m.ici == pytest.approx(0.0966, abs=0.006)
    assert m.observed_expected == pytest.approx(1, abs=0.02)
    mirrored = cal.calibration_measures(y, 1 - p, pos_label=False)
    assert mirrored.ici == pytest.approx(m.ici, rel=1e-6)
    matrix = cal.calibration_measures(y, np.column_stack([1 - p, p]))
    assert matrix.slope == pytest.approx(m.slope)


def test_decision_curve_is_its_definition():
    y, p = binary(300)
    w = np.random.default_rng(1).random(300)
    at = np.array([0.1, 0.35, 0.5, 0.8])
    curve = cal.decision_curve(y, p, at, pos_label="ill", sample_weight=w)
    ill = y == "ill"
    want = [np.average((p >= c) & ill, weights=w) - c / (1 - c) * np.average((p >= c) & ~ill, weights=w) for c in at]
    assert curve.net_benefit == pytest.approx(want)
    always = [np.average(ill, weights=w) - c / (1 - c) * np.average(~ill, weights=w) for c in at]
    assert curve.treat_all == pytest.approx(always)
    assert curve.label == "ill"
    assert len(cal.decision_curve(y, p, pos_label="ill").thresholds) == 99
    assert (
        cal.decision_curve([0, 1], [0.5, 0.5], [0.5]).net_benefit[0] == 0
    )  # a probability at the threshold is acted on
    assert curve.to_dict()["label"] == "ill"


@pytest.mark.parametrize("function", [cal.calibration_measures, cal.decision_curve])
def test_two_classes_only(function):
    with pytest.raises(ValueError, match="two classes; got 3"):
        function([0, 1, 2], np.eye(3))
    if function is cal.decision_curve:
        with pytest.raises(ValueError, match="thresholds must be"):
            function([0, 1], [0.2, 0.4], [1.0])


def test_intervals_hold_their_values_and_say_what_they_are():
    y, p = binary(400)
    m = cal.calibration_measures(y, p, pos_label="ill")
    names = {"ici", "e50", "eci", "observed_expected", "in_the_large", "intercept", "slope"}
    assert set(m.intervals) == set(m.standard_errors) == names
    for name, (low, high) in m.intervals.items():
        assert low <= getattr(m, name) <= high
        assert m.standard_errors[name] > 0
    curve = cal.reliability_curve(y, p, pos_label="ill", estimator="adaptive", level=None)
    assert m.eci == pytest.approx(100 * ((curve.at(p).observed - p) ** 2).mean())
    assert "observed : expected" in str(m)
    assert f"({m.intervals['ici'].low:.4g} to {m.intervals['ici'].high:.4g})" in str(m)
    assert m.to_dict()["intervals"]["slope"] == list(m.intervals["slope"])
    again = cal.calibration_measures(y, p, pos_label="ill", random_state=0)
    assert again.intervals == m.intervals
    wider = cal.calibration_measures(y, p, pos_label="ill", level=0.99)
    for name, (low, high) in m.intervals.items():
        assert wider.intervals[name].low <= low
        assert wider.intervals[name].high >= high
    bare = cal.calibration_measures(y, p, pos_label="ill", level=None)
    assert (bare.intervals, bare.standard_errors, bare.level) == ({}, {}, None)
    assert bare.ici == m.ici


def test_intervals_of_ratio_and_intercepts_are_their_formulas():
    y, p = binary(400)
    o, z = (y == "ill").astype(float), np.log(p / (1 - p))
    m = cal.calibration_measures(y, p, pos_label="ill", level=0.9)
    reach = 1.6448536269514722  # of the normal law at 95 %
    ratio = o.sum() / p.sum()
    se = np.sqrt(((o - ratio * p) ** 2).sum()) / o.sum()
    assert m.intervals["observed_expected"] == pytest.approx([ratio * np.exp(-reach * se), ratio * np.exp(reach * se)])
    assert m.standard_errors["observed_expected"] == pytest.approx(ratio * se)
    chance = 1 / (1 + np.exp(-z - m.in_the_large))
    se = np.sqrt(((o - chance) ** 2).sum()) / (chance * (1 - chance)).sum()
    assert m.standard_errors["in_the_large"] == pytest.approx(se)
    assert m.intervals["slope"] == pytest.approx([m.slope - reach * m.slope_se, m.slope + reach * m.slope_se])
    assert m.standard_errors["intercept"] == m.intercept_se


def test_intervals_know_weights():
    y, p = binary(120)
    w = np.random.default_rng(3).integers(0, 4, 120)
    one = cal.calibration_measures(y, p, pos_label="ill", sample_weight=w)
    other = cal.calibration_measures(np.repeat(y, w), np.repeat(p, w), pos_label="ill")
    for name, interval in one.intervals.items():
        assert interval == pytest.approx(other.intervals[name], rel=1e-6, abs=1e-9)
        assert one.standard_errors[name] == pytest.approx(other.standard_errors[name], rel=1e-6)
    v = np.random.default_rng(4).random(120)
    few, many = (cal.calibration_measures(y, p, pos_label="ill", sample_weight=c * v) for c in (0.5, 30.5))
    for name, interval in few.intervals.items():
        assert interval == pytest.approx(many.intervals[name], rel=1e-6, abs=1e-9)


def test_intervals_without_an_event():
    p = np.linspace(0.01, 0.2, 50)
    m = cal.calibration_measures(np.zeros(50, dtype=int), p, labels=[0, 1])
    low, high = m.intervals["observed_expected"]
    assert (low, high) == pytest.approx((0, (1 - 0.025 ** (1 / 50)) * 50 / p.sum()))
    for name in ("in_the_large", "intercept", "slope"):
        assert np.isnan(m.intervals[name]).all()
    always = cal.calibration_measures(np.ones(50, dtype=int), np.full(50, 0.9), labels=[0, 1])
    assert always.intervals["observed_expected"].low == pytest.approx(0.025 ** (1 / 50) / 0.9)
    with pytest.raises(ValueError, match="level must lie"):
        cal.calibration_measures([0, 1], [0.2, 0.4], level=95)
    with pytest.raises(ValueError, match="n_resamples must be"):
        cal.calibration_measures([0, 1], [0.2, 0.4], n_resamples=1)


def test_intervals_of_distances_are_those_of_the_estimate():
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    y = rng.random(1500) < p**1.5
    m = cal.calibration_measures(y, p)
    same = cal.estimate(y, p, estimator=cal.EmpiricalBayes(), notion="class-specific").interval
    assert m.intervals["ici"] == pytest.approx(same, rel=0.1)  # the same posterior, other draws
    two = cal.estimate(y, p, estimator=cal.EmpiricalBayes(), norm=2).interval
    assert np.sqrt(np.array(m.intervals["eci"]) / 100) == pytest.approx(two, rel=0.1)
    calibrated = cal.calibration_measures(np.random.default_rng(2).random(1500) < p, p)
    assert [calibrated.intervals[name].low for name in ("ici", "e50", "eci")] == [0, 0, 0]


@pytest.mark.parametrize("shape", [(0.5, 6.0), (0.4, 0.5)])
def test_the_median_gap_is_covered_where_gaps_change_within_few_scores(shape):
    """Half the log odds, 100 rows: of 40 intervals at the level 0.9 at least 36 less three standard errors."""
    s = np.random.default_rng(0).beta(*shape, 100_000).clip(1e-6, 1 - 1e-6)
    truth = float(np.median(np.abs(expit(0.5 * logit(s)) - s)))
    covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.beta(*shape, 100).clip(1e-6, 1 - 1e-6)
        m = cal.calibration_measures(rng.random(100) < expit(0.5 * logit(p)), p, labels=[False, True], level=0.9)
        covered += m.intervals["e50"].low <= truth <= m.intervals["e50"].high
    assert covered >= 36 - 3 * np.sqrt(3.6)
