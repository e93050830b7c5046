"""Clinical measures and decision curves against their definitions."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t as student

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


def test_decision_curves_count_thresholds_and_leave_rounding_errors_out():
    rng = np.random.default_rng(0)
    p, y = np.clip(0.3 + 0.1 * rng.normal(size=200), 0.01, 0.99), rng.random(200) < 0.3  # of no use
    better = worse = 0
    for percent in range(1, 100):  # in whole numbers: 100 times the gain of acting, in hits and false alarms
        acted = p >= percent / 100
        hits, alarms = ((acted & side).sum() for side in (y, ~y))
        gain = (100 - percent) * hits - percent * alarms - max((100 - percent) * y.sum() - percent * (~y).sum(), 0)
        better, worse = better + (gain > 0), worse + (gain < 0)
    curve = cal.decision_curve(y, p)
    assert f" at {better} of 99 decision thresholds (0.07 to 0.27); it is worse at {worse} and equal" in curve.summary
    assert "no interval: in 200 rows small gains and losses may be chance" in curve.summary
    idle = curve.thresholds > p.max()
    assert (curve.net_benefit[idle] == 0).all()
    first = cal.decision_curve(y, p, [0.005])
    assert first.net_benefit[0] == first.treat_all[0]
    assert " at 0 of 1 decision threshold; it is worse at 0 and equal at 1." in first.summary
    beats = cal.scores.murphy_curve(y, p)
    gains = beats.base_rate - beats.scores
    assert f"{(gains > 1e-9).sum()} of 501 decision thresholds (" in beats.summary
    assert f"it is worse at {(gains < -1e-9).sum()} and equal" in beats.summary


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


def test_intervals_know_groups():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(60), 5)
    z, shared = rng.normal(size=300), rng.normal(size=60)[group]
    p, o = expit(z), (rng.random(300) < expit(z + shared)).astype(float)
    m = cal.calibration_measures(o, p, groups=group)

    def spread(each):  # of sums over groups
        return np.sqrt(60 / 59 * sum(each[group == g].sum(axis=0) ** 2 for g in range(60)))

    reach, ratio = student.ppf(0.975, 59), o.sum() / p.sum()
    se = spread(o - ratio * p) / o.sum()
    assert m.intervals["observed_expected"] == pytest.approx([ratio * np.exp(-reach * se), ratio * np.exp(reach * se)])
    chance = expit(z + m.in_the_large)
    assert m.standard_errors["in_the_large"] == pytest.approx(spread(o - chance) / (chance * (1 - chance)).sum())
    x, chance = np.column_stack([np.ones(300), z]), expit(m.intercept + m.slope * z)
    bread = np.linalg.inv(x.T @ (x * (chance * (1 - chance))[:, None]))
    for name, se in zip(("intercept", "slope"), spread((o - chance)[:, None] * x @ bread), strict=True):
        value = getattr(m, name)
        assert m.intervals[name] == pytest.approx([value - reach * se, value + reach * se])
    same = cal.estimate(o, p, estimator=cal.EmpiricalBayes(), notion="class-specific", groups=group).interval
    assert m.intervals["ici"] == pytest.approx(same, rel=0.05)
    assert m.intervals["ici"].high > cal.calibration_measures(o, p).intervals["ici"].high + 0.005
    assert "300 rows in 60 groups" in str(m)
    assert m.to_dict()["n_groups"] == 60
    once = cal.calibration_measures(cal.as_predictions(o, p, groups=group))
    assert once.intervals == m.intervals
    weight = np.where(group < 50, 1.0, 0.0)  # groups without weight do not count
    some = cal.calibration_measures(o, p, groups=group, sample_weight=weight)
    other = cal.calibration_measures(o[group < 50], p[group < 50], groups=group[group < 50])
    for name in ("observed_expected", "in_the_large", "intercept", "slope"):
        assert some.intervals[name] == pytest.approx(other.intervals[name], rel=1e-6)


def test_scores_of_0_and_1_are_said_to_decide_the_slope():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(92) < 0.25, 1.0, rng.random(92) * 0.9 + 0.05)
    y = rng.random(92) < 0.1 + 0.7 * p
    m = cal.calibration_measures(y, p)
    said = "probabilities of 0 or 1 are moved inwards by 1e-12 and strongly influence slope and intercept"
    assert m.to_dict()["warnings"] == [said]
    assert f"Warning: {said}." in " ".join(str(m).split())
    assert not cal.calibration_measures(y, p.clip(0.01, 0.99)).warnings
    equal = cal.calibration_measures(y, np.full(92, 0.5))  # no slope: nothing is said of it
    assert "neither too extreme nor too moderate" in equal.summary
    assert "all scores are equal" in equal.summary


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


@pytest.mark.parametrize("perfect", [False, True])
def test_groups_give_no_interval_where_there_is_no_estimate(perfect):
    """Groups' sums of residuals vanish with the residuals, so their standard errors look small."""
    p = np.random.default_rng(0).random(400)
    y = (p > 0.5).astype(int) if perfect else np.ones(400, dtype=int)
    group = np.repeat(np.arange(40), 10)
    found = cal.calibration_measures(y, p, groups=group, labels=[0, 1])
    assert np.isnan(found.intervals["slope"]).all()
    assert np.isnan(found.intervals["intercept"]).all()
    assert "have no finite estimate" in str(found)
    assert "not extreme enough" not in found.summary
    assert "too extreme (" not in found.summary
