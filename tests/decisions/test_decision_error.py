"""The calibration error where decisions are made, against slower ways and known truths."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.datasets import make_scores, true_map
from calibrant.decisions.decision_error import _Density
from calibrant.scores import CostWeighted, mean_score


def truths(kind, low, high):
    """Error and regret of uniform scores, by midpoints of scores and of thresholds."""
    s = (np.arange(4000) + 0.5) / 4000
    g = true_map(s, kind)
    inside = (s >= low) & (s <= high)
    c = (low + (high - low) * (np.arange(500) + 0.5) / 500)[:, None]
    charged = (np.abs(g - c) * ((np.minimum(s, g) < c) & (c < np.maximum(s, g)))).mean()
    return np.abs(g - s)[inside].mean(), charged


@pytest.mark.parametrize("kind", ["overconfident", "shifted", "wavy"])
@pytest.mark.parametrize("region", [(0.05, 0.25), (0.4, 0.6)])
def test_known_truth(kind, region):
    data = make_scores(60_000, kind, random_state=2)
    error, regret = truths(kind, *region)
    found = cal.decisions.decision_calibration_error(data.y_true, data.y_prob, thresholds=region, random_state=0)
    assert found.error == pytest.approx(error, abs=0.006)
    assert found.regret == pytest.approx(regret, rel=0.2, abs=5e-5)
    assert found.share == pytest.approx(region[1] - region[0], abs=0.01)
    low, high = found.error_interval
    assert low - 0.004 <= error <= high + 0.004
    assert found.regret_interval.low <= found.regret <= found.regret_interval.high


def test_everywhere_it_is_the_default_error_and_half_the_brier_loss():
    data = make_scores(20_000, "shifted", random_state=3)
    found = cal.decisions.decision_calibration_error(data.y_true, data.y_prob, thresholds=(0, 1), random_state=0)
    assert found.error == pytest.approx(cal.calibration_error(data.y_true, data.y_prob), rel=0.02)
    squared = cal.calibration_error(data.y_true, data.y_prob, norm=2) ** 2
    assert found.regret == pytest.approx(squared / 2, rel=0.03)
    assert found.share == 1
    # A fifth of the scores say 0, and come true.
    wrong = np.arange(20_000) < 4000
    y, p = np.where(wrong, True, data.y_true), np.where(wrong, 0.0, data.y_prob)
    found = cal.decisions.decision_calibration_error(y, p, thresholds=(0, 1), random_state=0)
    assert found.error == pytest.approx(cal.calibration_error(y, p), rel=0.02)


def test_regret_is_the_miscalibration_of_elementary_scores():
    # Mean over thresholds of what CostWeighted charges the scores beyond what it charges the true probabilities.
    data = make_scores(200_000, "overconfident", random_state=4)
    right = true_map(data.y_prob, "overconfident")
    at = np.linspace(0.1, 0.3, 41)
    charged = [
        mean_score(data.y_true, data.y_prob, CostWeighted(c)) - mean_score(data.y_true, right, CostWeighted(c))
        for c in at
    ]
    density = _Density.of((0.1, 0.3))
    assert density.regret(data.y_prob, right).mean() == pytest.approx(np.mean(charged), rel=0.05)
    found = cal.decisions.decision_calibration_error(data.y_true, data.y_prob, thresholds=(0.1, 0.3), random_state=0)
    assert found.regret == pytest.approx(np.mean(charged), rel=0.05)


def test_densities():
    whole = _Density.of((0.2, 0.6))
    said, right = np.array([0.1, 0.1, 0.3, 0.5, 0.9, 0.7]), np.array([0.15, 0.4, 0.5, 0.3, 0.1, 0.9])
    c = 0.2 + 0.4 * (np.arange(200_000) + 0.5) / 200_000
    wanted = [(np.abs(g - c) * ((min(s, g) < c) & (c < max(s, g)))).mean() for s, g in zip(said, right, strict=True)]
    np.testing.assert_allclose(whole.regret(said, right), wanted, atol=1e-6)
    same = _Density.of(lambda c: np.where((c >= 0.2) & (c <= 0.6), 7.0, 0.0))
    np.testing.assert_allclose(same.regret(said, right), wanted, atol=2e-4)
    data = make_scores(3000, "shifted", random_state=5)
    one = cal.decisions.decision_calibration_error(data.y_true, data.y_prob, thresholds=(0.2, 0.6), random_state=0)
    other = cal.decisions.decision_calibration_error(
        data.y_true, data.y_prob, thresholds=lambda c: ((c >= 0.2) & (c <= 0.6)) * 7.0, random_state=0
    )
    assert other.error == pytest.approx(one.error, rel=1e-6)
    assert other.regret == pytest.approx(one.regret, rel=0.01)
    assert one.error_interval.high == pytest.approx(other.error_interval.high, rel=0.05)
    assert (one.thresholds, other.thresholds) == ((0.2, 0.6), None)
    # A density concentrated at low scores, where this map is off most: more than the plain mean.
    bent = cal.decisions.decision_calibration_error(
        data.y_true, data.y_prob, thresholds=lambda c: np.exp(-(((c - 0.5) / 0.1) ** 2)), random_state=0
    )
    assert bent.error > cal.calibration_error(data.y_true, data.y_prob)


def test_only_scores_that_turn_decisions_count():
    # Scores of 0.01 that should be 0.03: far off in proportion, but no threshold lies between.
    rng = np.random.default_rng(6)
    p = np.concatenate([np.full(20_000, 0.01), rng.uniform(0.3, 0.7, 20_000)])
    y = rng.random(40_000) < np.where(p < 0.1, 0.03, p)
    found = cal.decisions.decision_calibration_error(y, p, thresholds=(0.3, 0.7), random_state=0)
    assert found.share == pytest.approx(0.5)
    assert found.error_interval.low == found.regret_interval.low == 0
    assert found.regret < 3e-4
    assert found.pvalue > 0.01
    low = cal.decisions.decision_calibration_error(y, p, thresholds=(0.005, 0.05), random_state=0)
    assert low.error == pytest.approx(0.02, abs=0.004)
    # Of thresholds 0.005 to 0.05, those from 0.01 to 0.03 charge half of the rows 0.03 - c: an integral of 0.0002.
    assert low.regret == pytest.approx(0.5 * 0.0002 / 0.045, rel=0.3)
    none = cal.decisions.decision_calibration_error(y, p, thresholds=(0.1, 0.2), random_state=0)
    assert np.isnan(none.error)
    assert none.share == 0
    assert none.to_dict()["error"] is None


def test_few_rows_at_thresholds_are_not_mixed_with_others():
    # 15 rows at 0.1, all positive, and 15 at 0.9 are a 300th of all rows: one cell, were it not for the range's end.
    p = np.repeat([0.1, 0.9, 0.95], [15, 15, 9970])
    y = np.concatenate([np.ones(15), np.arange(15) < 13, np.arange(9970) < 0.95 * 9970]).astype(int)
    found = cal.decisions.decision_calibration_error(y, p, thresholds=(0.85, 0.92), random_state=0)
    assert found.share == pytest.approx(0.0015)
    assert found.error < 0.15


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_scores_on_an_end_of_the_range_lie_in_it_whatever_their_dtype(kind):
    rng = np.random.default_rng(1)
    s = rng.choice([0.1, 0.2, 0.25, 0.3, 0.6], 3000)
    y = rng.random(3000) < s
    whole = cal.decisions.decision_calibration_error(y, s, thresholds=(0.2, 0.3), random_state=0)
    assert whole.share == np.isin(s, [0.2, 0.25, 0.3]).mean()
    rounded = cal.decisions.decision_calibration_error(y, s.astype(kind), thresholds=(0.2, 0.3), random_state=0)
    assert rounded.share == whole.share
    assert rounded.error == pytest.approx(whole.error, rel=0.02)
    assert rounded.pvalue == pytest.approx(whole.pvalue, abs=0.02)
    # 1 - 0.99 is 9e-18 above 0.01; 0.0101 is no rounding error away.
    for score, share in ((1 - 0.99, 0.5), (0.0101, 0.0)):
        found = cal.decisions.decision_calibration_error(
            [0, 1] * 9, [0.9, score] * 9, thresholds=(0.0, 0.01), random_state=0
        )
        assert found.share == share
    # Half precision: a rounding error of 0.3 is 0.0002, more than a thousandth of the range; 0.3015 is further off.
    for score, low, share in ((0.3, 0.29, 0.5), (0.3015, 0.2, 0.0)):
        scores = np.array([0.9, score] * 9, dtype=np.float16)
        found = cal.decisions.decision_calibration_error([0, 1] * 9, scores, thresholds=(low, 0.3), random_state=0)
        assert found.share == share


def test_ranges_narrower_than_any_grid():
    # Scores of rare events, beside the range and in it, which should be twice as large.
    rng = np.random.default_rng(2)
    p = np.concatenate([np.full(400_000, 0.00105), rng.uniform(0.002, 0.003, 100_000)])
    w = np.concatenate([np.ones(p.size), [0.0]])
    y = np.concatenate([rng.random(p.size) < np.where(p < 0.0015, 2 * p, p), [True]])
    p = np.append(p, 0.00101)
    found = cal.decisions.decision_calibration_error(y, p, thresholds=(0.001, 0.0011), sample_weight=w, random_state=0)
    assert found.share == 0.8
    assert found.error == pytest.approx(0.00105, rel=0.15)
    assert found.error_interval.low < 0.00105 < found.error_interval.high
    # Thresholds of 0.00105 to 0.0011, half of the range, charge what should be 0.0021 about 0.001 each.
    assert found.regret == pytest.approx(0.8 * 0.5 * (0.0021 - 0.001075), rel=0.2)
    none = cal.decisions.decision_calibration_error(y, p, thresholds=(0.00102, 0.00103), random_state=0)
    assert np.isnan([none.error, *none.error_interval]).all()


@pytest.mark.slow
def test_intervals_of_calibrated_scores_start_at_zero():
    zero = 0
    for seed in range(40):
        data = make_scores(300, "calibrated", random_state=seed)
        found = cal.decisions.decision_calibration_error(
            data.y_true, data.y_prob, thresholds=(0.1, 0.4), n_resamples=60, random_state=seed
        )
        zero += found.error_interval.low == 0
    assert zero >= 35


def test_weights_labels_and_rows_order():
    data = make_scores(400, "shifted", random_state=7)
    w = np.random.default_rng(0).integers(1, 4, 400)
    options = {"thresholds": (0.2, 0.5), "random_state": 0}
    one = cal.decisions.decision_calibration_error(data.y_true, data.y_prob, sample_weight=w, **options)
    other = cal.decisions.decision_calibration_error(np.repeat(data.y_true, w), np.repeat(data.y_prob, w), **options)
    assert one.error == pytest.approx(other.error, rel=1e-9)
    assert one.regret == pytest.approx(other.regret, rel=1e-9)
    assert one.share == pytest.approx(other.share)
    names = np.where(data.y_true == 1, "ill", "well")
    same = cal.decisions.decision_calibration_error(names, data.y_prob, pos_label="ill", **options)
    plain = cal.decisions.decision_calibration_error(data.y_true, data.y_prob, **options)
    assert (same.error, same.label) == (plain.error, "ill")
    mirrored = cal.decisions.decision_calibration_error(
        names, 1 - data.y_prob, pos_label="well", thresholds=(0.5, 0.8), random_state=0
    )
    assert mirrored.error == pytest.approx(plain.error, rel=0.05)
    assert mirrored.regret == pytest.approx(plain.regret, rel=0.05)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"thresholds": (0.5, 0.5)}, ValueError, "0 <= low < high <= 1"),
        ({"thresholds": (-0.1, 0.5)}, ValueError, "0 <= low < high <= 1"),
        ({"thresholds": 0.5}, TypeError, "thresholds must be"),
        ({"thresholds": lambda c: -c}, ValueError, "finite weight >= 0"),
        ({"thresholds": lambda c: 0 * c}, ValueError, "above 0 somewhere"),
        ({"thresholds": lambda c: 1.0}, ValueError, "finite weight >= 0"),
        ({"estimator": cal.Binned(5)}, TypeError, "EmpiricalBayes"),
        ({"level": None}, ValueError, "level must lie"),
        ({"n_resamples": 1}, ValueError, "n_resamples must be"),
    ],
)
def test_arguments_of_the_error_are_judged(options, error, message):
    with pytest.raises(error, match=message):
        cal.decisions.decision_calibration_error(
            [0, 1, 1, 0], [0.2, 0.7, 0.4, 0.3], **({"thresholds": (0, 1)} | options)
        )


def test_text_and_two_classes_only():
    data = make_scores(300, "shifted", random_state=8)
    found = cal.decisions.decision_calibration_error(data.y_true, data.y_prob, thresholds=(0.2, 0.4), random_state=0)
    assert "thresholds 0.2 to 0.4" in str(found)
    assert "excess cost per row" in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["thresholds"] == [0.2, 0.4]
    with pytest.raises(ValueError, match="two classes; got 3"):
        cal.decisions.decision_calibration_error([0, 1, 2], np.eye(3), thresholds=(0, 1))


def test_intervals_of_unequal_groups_cover():
    """Twenty groups, one of which has half of the rows: as good as four equal ones."""
    rng = np.random.default_rng(6)
    group = np.repeat(np.arange(20), [190] + 19 * [10])
    covered = 0
    for _ in range(200):
        s = 0.5 + 0.2 * rng.uniform(-1, 1, group.size)
        y = (rng.random(20)[group] < s).astype(int)  # a group's outcomes hang together
        found = cal.expected_cost(y, s, {"fp": 1, "fn": 1}, groups=group, calibrator=None)
        covered += found.gap.interval.low <= 0 <= found.gap.interval.high
    assert covered >= 200 * (0.95 - 3 * np.sqrt(0.05 * 0.95 / 200))
