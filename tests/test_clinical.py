"""Clinical measures and decision curves against their definitions."""

import numpy as np
import pytest

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
    cox = cal.cox_test(y, p, pos_label="ill", sample_weight=w)
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
