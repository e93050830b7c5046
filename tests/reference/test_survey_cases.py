"""The survey's synthetic cases: posteriors, errors and maps, as computed independently with mpmath."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.datasets import make_survey, survey_distorted, survey_posterior, survey_restored, survey_true_map

# x: P(class 1 | x).
TWO = {
    -200: 6.297004415532006e-06, -100: 0.012272581411374384, -50: 0.254665266571148, -20: 0.48284362064559183,
    -4: 0.5188637493116482, 0: 0.5242259489983515, 10: 0.5393327237053183, 50: 0.7519152931120442,
    200: 0.9999951739101864,
}  # fmt: skip
THREE = {
    -100: (0.012272581411374384, 0.9877274185886257, 1.1991404436219353e-270),
    -8: (0.4323803703313519, 0.41074630867750894, 0.15687332099113924),
    0: (0.048335960068871295, 0.04386847994640786, 0.9077955599847208),
    8: (0.45333576199991543, 0.3927808006995067, 0.1538834373005779),
}
# Scores and P(class 1 | score), mean absolute and squared gaps, log-loss.
CASES = {
    "underconfident": (
        {0.05: 2.6690085190034034e-09, 0.3: 0.03563259034727444, 0.5: 0.5242259489983515, 0.7: 0.9546078877966031},
        0.11216029817015952, 0.02198124674020587, 0.5740573463182194,
    ),
    "overconfident": (
        {0.05: 0.17087373350813706, 0.3: 0.4929160256658894, 0.7: 0.5553850845026095, 0.95: 0.8221473390858017},
        0.12062700301244533, 0.021263407241584025, 0.5736912321393886,
    ),
}  # fmt: skip


def test_posteriors():
    np.testing.assert_allclose(survey_posterior(list(TWO))[:, 1], list(TWO.values()), rtol=1e-12)
    np.testing.assert_allclose(survey_posterior(list(THREE), 3), list(THREE.values()), rtol=1e-12, atol=1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_maps_and_truth(case):
    points, error, _, _ = CASES[case]
    np.testing.assert_allclose(survey_true_map(list(points), case), list(points.values()), rtol=1e-9)
    assert make_survey(10, case, random_state=0).truth == pytest.approx(error, abs=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_samples_follow_the_law(case):
    data = make_survey(200_000, case, random_state=1)
    _, error, square, log_loss = CASES[case]
    assert data.y_true.mean() == pytest.approx(0.5, abs=0.006)
    # Standard errors of 200 000 rows are near 0.001; the estimators' own bias is below.
    assert cal.calibration_error(data.y_true, data.y_prob) == pytest.approx(error, abs=0.004)
    assert cal.squared_calibration_error(data.y_true, data.y_prob) == pytest.approx(square, abs=0.0015)
    losses = -np.log(np.where(data.y_true == 1, data.y_prob, 1 - data.y_prob))
    assert losses.mean() == pytest.approx(log_loss, abs=0.005)


def test_three_classes():
    data = make_survey(60_000, "three-class", random_state=1)
    assert data.labels == (0, 1, 2)
    np.testing.assert_allclose(np.bincount(data.y_true) / 60_000, 1 / 3, atol=0.008)
    np.testing.assert_allclose(data.y_prob.sum(axis=1), 1)
    error = cal.estimate(data.y_true, data.y_prob, notion="classwise", random_state=0)
    assert error.interval.low > 0.05
    repaired = survey_restored(data.y_prob)
    np.testing.assert_allclose(survey_distorted(repaired), data.y_prob, rtol=1e-9)
    error = cal.estimate(data.y_true, repaired, notion="classwise", random_state=0)
    assert error.interval.low < 0.003
    assert error.value < 0.006


def test_a_network_is_over_confident_and_can_be_repaired():
    data, new = (make_survey(6000, "network", random_state=seed) for seed in (1, 2))
    assert data.labels == (0, 1, 2)
    np.testing.assert_allclose(np.bincount(data.y_true) / 6000, 1 / 3, atol=0.02)
    np.testing.assert_allclose(data.y_prob.sum(axis=1), 1)
    again = make_survey(6000, "network", random_state=1)
    np.testing.assert_array_equal(again.y_prob, data.y_prob)
    assert (data.y_prob.argmax(axis=1) == data.y_true).mean() > 0.65
    assert cal.calibrators.TemperatureScaling().fit(data.y_prob, data.y_true).temperature_ > 1.2
    before = cal.estimate(new.y_true, new.y_prob, notion="classwise", random_state=0)
    one_by_one = cal.calibrators.OneVsRest(cal.calibrators.IsotonicCalibrator())
    repaired = one_by_one.fit(data.y_prob, data.y_true).predict_proba(new.y_prob)
    after = cal.estimate(new.y_true, repaired, notion="classwise", random_state=0)
    assert before.interval.low > 0.02
    assert after.value < 0.6 * before.value


def test_bad_names():
    with pytest.raises(ValueError, match="case must be one of"):
        make_survey(10, "four-class")
    with pytest.raises(ValueError, match="case must be one of"):
        survey_true_map([0.5], "three-class")
