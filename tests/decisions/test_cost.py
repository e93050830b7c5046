"""Expected cost, against hand-made numbers and slower ways."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.model_selection import KFold

import calibrant as cal
from calibrant.calibrators import BetaCalibration, IsotonicCalibrator, PlattScaling, TemperatureScaling
from calibrant.datasets import make_scores, true_map
from calibrant.decisions import decide

from ..grouped import clustered

COSTS = [[0, 1, 0.3], [5, 0, 0.3]]


def test_four_rows_by_hand():
    # Probabilities of "ill", the second class; expected costs of leave, treat, ask: 5p, 1 - p, 0.3.
    # 0.04: leave (0.2); 0.5: ask (0.3); 0.9: treat (0.1); 0.75: treat (0.25).
    y, p = ["well", "ill", "ill", "well"], [0.04, 0.5, 0.9, 0.75]
    found = cal.expected_cost(y, p, COSTS, decisions=["leave", "treat", "ask"], labels=["well", "ill"], pos_label="ill",
                              calibrator=None)  # fmt: skip
    assert found.shares == {"leave": 0.25, "treat": 0.5, "ask": 0.25}
    each = np.array([0, 0.3, 0, 1])
    assert found.realised.value == pytest.approx(each.mean())
    assert found.realised.se == pytest.approx(each.std(ddof=1) / 2)
    assert found.realised.interval == pytest.approx(each.mean() + student.ppf([0.025, 0.975], 3) * each.std(ddof=1) / 2)
    said = np.array([0.2, 0.3, 0.1, 0.25])
    assert found.stated.value == pytest.approx(said.mean())
    assert found.gap.value == pytest.approx((each - said).mean())
    assert found.gap.se == pytest.approx((each - said).std(ddof=1) / 2)
    # Variance of what is charged if probabilities are true: 25 p (1-p), 0, p (1-p), p (1-p).
    spread = np.sqrt(25 * 0.04 * 0.96 + 0.9 * 0.1 + 0.75 * 0.25)
    assert found.gap_pvalue == pytest.approx(2 * norm.sf(abs((each - said).sum()) / spread))
    assert (found.constant_decision, found.constant.value) == ("ask", pytest.approx(0.3))
    assert found.saving.value == pytest.approx(0.3 - each.mean())
    assert found.saving.se == pytest.approx((0.3 - each).std(ddof=1) / 2)
    assert found.clairvoyant.value == 0
    assert (found.recalibrated, found.excess, found.calibrator) == (None, None, None)
    assert found.classes == ("well", "ill")


def test_decisions_are_those_of_decide_whatever_the_shape():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 300)
    y = np.array(["a", "b", "c"])[(rng.random((300, 1)) > q.cumsum(axis=1)).sum(axis=1)]
    table = rng.random((3, 4))
    found = cal.expected_cost(y, q, table, calibrator=None)
    taken = decide(q, table)
    code = np.searchsorted(["a", "b", "c"], y)
    assert found.realised.value == pytest.approx(table[code, taken].mean())
    assert list(found.shares) == [0, 1, 2, 3]
    assert list(found.shares.values()) == pytest.approx(np.bincount(taken, minlength=4) / 300)
    assert found.clairvoyant.value == pytest.approx(table[code].min(axis=1).mean())
    assert found.constant.value == pytest.approx(table[code].mean(axis=0).min())
    order = [2, 0, 1]
    moved = cal.expected_cost(y, q[:, order], table[order], labels=["c", "a", "b"], calibrator=None)
    assert moved.realised.value == pytest.approx(found.realised.value)
    assert moved.gap_pvalue == pytest.approx(found.gap_pvalue)


def test_one_column_two_columns_and_either_class():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    one = cal.expected_cost(y, p, COSTS)
    both = cal.expected_cost(y, np.column_stack([1 - p, p]), COSTS)
    other = cal.expected_cost(y, 1 - p, COSTS, pos_label=0)  # rows of costs stay in the order of labels
    for name in ("realised", "stated", "excess", "saving"):
        assert getattr(both, name).value == pytest.approx(getattr(one, name).value)
        assert getattr(other, name).value == pytest.approx(getattr(one, name).value)


def test_weights_are_repeats_and_scale_is_no_matter():
    rng = np.random.default_rng(2)
    p = rng.random(150)
    y = (rng.random(150) < p**1.5).astype(int)
    w = rng.integers(0, 4, 150)
    one = cal.expected_cost(y, p, COSTS, sample_weight=w, calibrator=None)
    other = cal.expected_cost(np.repeat(y, w), np.repeat(p, w), COSTS, calibrator=None)
    for name in ("realised", "stated", "gap", "constant", "saving", "clairvoyant"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a.value, a.se) == pytest.approx((b.value, b.se))
    assert one.gap_pvalue == pytest.approx(other.gap_pvalue)
    v = rng.random(150)
    half, whole = (cal.expected_cost(y, p, COSTS, sample_weight=c * v, calibrator=None) for c in (0.5, 30.0))
    assert half.gap_pvalue == pytest.approx(whole.gap_pvalue)
    assert half.realised.se == pytest.approx(whole.realised.se)


def test_recalibration_is_cross_fitted():
    data = make_scores(400, "overconfident", random_state=0)
    found = cal.expected_cost(data.y_true, data.y_prob, COSTS, calibrator=PlattScaling(), cv=4, random_state=3)
    table, after = np.array(COSTS), np.empty(400)
    for train, test in KFold(4, shuffle=True, random_state=3).split(data.y_prob):
        q = PlattScaling().fit(data.y_prob[train], data.y_true[train]).predict_proba(data.y_prob[test])
        after[test] = table[data.y_true[test], (q @ table).argmin(axis=1)]
    assert found.recalibrated.value == pytest.approx(after.mean())
    before = table[data.y_true, decide(data.y_prob, table)]
    assert found.excess.value == pytest.approx((before - after).mean())
    assert found.excess.se == pytest.approx((before - after).std(ddof=1) / 20)
    assert found.calibrator == "PlattScaling()"
    assert cal.expected_cost(data.y_true, data.y_prob, COSTS).calibrator == "BetaCalibration()"


# Thresholds of two decisions ---------------------------------------------------------------------------------------


def test_costs_by_name_are_the_table_and_the_threshold_their_ratio():
    rng = np.random.default_rng(3)
    p = rng.random(500)
    y = np.where(rng.random(500) < p**2, "ill", "well")
    named = {"fp": 10, "fn": 200, "tp": 1}
    one = cal.expected_cost(y, p, named, pos_label="ill")
    other = cal.expected_cost(y, p, [[1, 200], [10, 0]], pos_label="ill")  # rows and decisions: ill, well
    assert one.to_dict() == other.to_dict()
    assert one.threshold == pytest.approx(10 / (10 + 200 - 1))
    assert one.label == "ill"
    assert cal.expected_cost(y, p, {"fp": 10, "fn": 200}, pos_label="ill").threshold == 10 / 210
    assert cal.expected_cost(y == "ill", np.column_stack([1 - p, p]), {"fp": 1, "fn": 4}).threshold == 0.2
    turned = cal.expected_cost(y, 1 - p, {"fp": 200, "fn": 10, "tn": 1}, pos_label="well")
    assert turned.realised.value == pytest.approx(one.realised.value)
    assert turned.threshold == pytest.approx(1 - one.threshold)
    for costs, words in (
        ({"fp": 1}, "must have the names 'fp' and 'fn'"),
        ({"fp": 1, "fn": 2, "x": 0}, "got .*'x'"),
        ({"fp": np.nan, "fn": 2}, "fp"),
    ):
        with pytest.raises(ValueError, match=words):
            cal.expected_cost(y, p, costs, pos_label="ill")
    with pytest.raises(ValueError, match="are for two classes; got 3"):
        cal.expected_cost([0, 1, 2], np.full((3, 3), 1 / 3), {"fp": 1, "fn": 2})


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.01, 100), st.floats(0.01, 100), st.booleans(), st.booleans())
def test_costs_of_thresholds_by_hand(seed, fp, fn, gridded, weighted):
    rng = np.random.default_rng(seed)
    p = rng.random(80)
    p = np.round(p, 1) if gridded else p
    y = (rng.random(80) < p**1.5).astype(int)
    w = rng.integers(1, 4, 80) if weighted else np.ones(80)
    found = cal.expected_cost(y, p, {"fp": fp, "fn": fn}, sample_weight=w, calibrator=None)

    def cost(threshold, outcome):
        act = p >= threshold
        return np.average(np.where(act, fp * (1 - outcome), fn * outcome), weights=w)

    assert found.threshold == pytest.approx(fp / (fp + fn))
    assert found.realised.value == pytest.approx(cost(found.threshold, y))
    assert found.realised.total == pytest.approx(cost(found.threshold, y) * w.sum())
    assert found.at_half.value == pytest.approx(cost(0.5, y))
    assert found.half_excess.value == pytest.approx(cost(0.5, y) - cost(found.threshold, y))
    for at in rng.integers(0, len(found.thresholds), 20):
        assert found.costs[at] == pytest.approx(cost(found.thresholds[at], y))
        assert found.stated_costs[at] == pytest.approx(cost(found.thresholds[at], p))
    # If the probabilities are right, no threshold costs less.
    assert found.stated_costs.min() == pytest.approx(cost(found.threshold, p))


def test_the_threshold_after_recalibration_is_where_the_truth_says():
    rng = np.random.default_rng(1)
    p = rng.random(60_000)
    y = (rng.random(60_000) < p**2).astype(int)
    found = cal.expected_cost(y, p, {"fp": 1, "fn": 4})
    assert found.recalibrated_threshold == pytest.approx(np.sqrt(0.2), abs=0.02)
    at = np.searchsorted(found.thresholds, found.recalibrated_threshold)
    assert found.costs[at] == pytest.approx(found.recalibrated.value, abs=0.003)
    turned = cal.expected_cost(1 - y, 1 - p, {"fp": 4, "fn": 1}, pos_label=1)
    assert turned.recalibrated_threshold == pytest.approx(1 - np.sqrt(0.2), abs=0.02)
    never = cal.expected_cost((rng.random(500) < 0.01).astype(int), rng.uniform(0.3, 0.9, 500), {"fp": 10, "fn": 1})
    assert never.recalibrated_threshold == np.inf
    assert never.to_dict()["recalibrated_threshold"] is None
    assert "never acting" in str(never)


def test_without_a_threshold_there_is_no_curve():
    y, p = [0, 1, 1, 0], [0.2, 0.7, 0.4, 0.3]
    for costs in (COSTS, [[0, 1], [1, 2]], [[1, 1], [1, 1]]):  # three decisions; one is always dearer; none is
        found = cal.expected_cost(y, p, costs, cv=2)
        assert (found.threshold, found.at_half, found.recalibrated_threshold) == (None, None, None)
        assert found.thresholds.size == 0
        assert "at 0.5 or more" not in found.summary
        with pytest.raises(ValueError, match="two classes and two decisions"):
            found.plot()


def test_costs_of_groups():
    group, s, y = clustered(40, 8)
    plain, found = (cal.expected_cost(y, s, {"fp": 1, "fn": 3}, groups=g, cv=4, random_state=2) for g in (None, group))
    table = np.array([[0, 1], [3, 0]])
    each = table[y, (s >= 0.25).astype(int)]
    sums = np.bincount(group, each - each.mean()) / len(y)
    assert found.realised.se == pytest.approx(np.sqrt(40 / 39 * (sums**2).sum()))
    assert found.realised.se > 1.1 * plain.realised.se
    assert found.gap_pvalue == pytest.approx(2 * student.sf(abs(found.gap.value / found.gap.se), 39))
    after = np.empty(len(y))
    for train, test in KFold(4, shuffle=True, random_state=2).split(np.arange(40)):
        fit, held = np.isin(group, train), np.isin(group, test)
        q = BetaCalibration().fit(s[fit], y[fit]).predict_proba(s[held])[:, 1]
        after[held] = table[y[held], (q >= 0.25).astype(int)]
    assert found.recalibrated.value == pytest.approx(after.mean())
    assert "320 rows in 40 groups" in str(found)
    few = cal.expected_cost(y, s, {"fp": 1, "fn": 3}, groups=group // 14)
    assert few.gap_pvalue >= 2.0**-2


def test_the_picture_shows_what_the_numbers_say():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    data = make_scores(2000, "overconfident", random_state=0)
    found = cal.expected_cost(data.y_true, data.y_prob, {"fp": 2, "fn": 3})
    ax = found.plot().ax_
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(text.startswith("at 0.4 or more: ") for text in texts)
    assert any(text.startswith("recalibrated, at ") for text in texts)
    assert ax.get_xscale() == "linear"
    np.testing.assert_array_equal(ax.get_lines()[1].get_xdata(), found.thresholds)
    rare = cal.expected_cost(data.y_true, data.y_prob, {"fp": 1, "fn": 999}).plot().ax_
    assert rare.get_xscale() == "logit"
    assert rare.get_xlim()[0] < 0.001
    plt.close("all")


@pytest.mark.slow
def test_no_optimism_where_there_is_nothing_to_repair():
    # Labels are noise: an isotonic fit to the rows themselves would seem to save, one to other rows cannot.
    rng = np.random.default_rng(4)
    saved, flattered = [], []
    for seed in range(100):
        p = np.full(80, 0.5) + 1e-3 * rng.standard_normal(80)
        y = rng.integers(0, 2, 80)
        saved.append(
            cal.expected_cost(y, p, [[0, 1], [1, 0]], calibrator=IsotonicCalibrator(), random_state=seed).excess.value
        )
        flattered.append(0.5 - (IsotonicCalibrator().fit(p, y).predict(p) != y).mean())
    assert abs(np.mean(saved)) < 3 * np.std(saved) / 10 < 0.03
    assert np.mean(flattered) > 0.06


def test_known_costs_and_many_classes():
    data = make_scores(40_000, "shifted", random_state=1)
    grid = (np.arange(100_000) + 0.5) / 100_000
    right = true_map(grid, "shifted")
    table = np.array(COSTS)
    real, said = (np.column_stack([1 - g, g]) @ table for g in (right, grid))
    taken = said.argmin(axis=1)
    found = cal.expected_cost(data.y_true, data.y_prob, COSTS)
    wanted = {
        "realised": real[np.arange(grid.size), taken].mean(),
        "stated": said.min(axis=1).mean(),
        "recalibrated": real.min(axis=1).mean(),
    }
    for name, value in wanted.items():
        assert getattr(found, name).value == pytest.approx(value, abs=4 * getattr(found, name).se + 1e-4)
    assert found.gap_pvalue < 1e-6
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 3))
    true, sharp = (np.exp(f * z) / np.exp(f * z).sum(axis=1, keepdims=True) for f in (1, 3))
    y = (rng.random((3000, 1)) > true.cumsum(axis=1)).sum(axis=1)
    asks = np.column_stack([1 - np.eye(3), np.full(3, 0.4)])
    many = cal.expected_cost(y, sharp, asks, calibrator=TemperatureScaling())
    assert many.excess.interval.low > 0
    assert cal.expected_cost(y, sharp, asks).excess.value == pytest.approx(many.excess.value, abs=0.02)


def test_size_of_the_gap_test():
    rng = np.random.default_rng(5)
    rejected = 0
    for _ in range(400):
        p = rng.beta(0.5, 2, 100)
        rejected += cal.expected_cost(rng.random(100) < p, p, COSTS, calibrator=None).gap_pvalue <= 0.1
    assert rejected / 400 == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 400))


def test_text_json_and_oddities():
    found = cal.expected_cost([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.3], COSTS, decisions=["leave", "treat", "ask"], cv=2)
    text = str(found)
    for part in (
        "decided by the probabilities",
        "always ask",
        "ask 100.0 %",
        "BetaCalibration(), cross-fitted",
        "per row",
    ):
        assert part in text
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["excess"]["value"] == found.excess.value
    single = cal.expected_cost([1], [0.9], [[0, 1], [1, 0]], calibrator=None)
    assert np.isnan(single.realised.se)
    assert single.to_dict()["realised"]["se"] is None
    assert float(single.realised) == 0
    sure = cal.expected_cost([1, 0], [1.0, 0.0], [[0, 1], [1, 0]], calibrator=None)
    assert np.isnan(sure.gap_pvalue)
    assert list(sure.shares) == [0, 1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"costs": [[0, 1]]}, ValueError, "a row for each of 2 classes"),
        ({"costs": [[0, np.inf], [1, 0]]}, ValueError, "costs must be finite"),
        ({"costs": "x"}, TypeError, "costs must be numbers"),
        ({"costs": [[0, 1], [1]]}, TypeError, "costs must be numbers"),
        ({"decisions": 5}, TypeError, "decisions must be 3 different names"),
        ({"decisions": [["a"], ["b"], ["c"]]}, TypeError, "decisions must be 3 different names"),
        ({"decisions": "abc"}, ValueError, "decisions must be 3 different names"),
        ({"random_state": "0"}, TypeError, "random_state must be"),
        ({"random_state": -1}, ValueError, "random_state must be None, an int >= 0"),
        ({"decisions": ["a", "b"]}, ValueError, "3 different names"),
        ({"decisions": ["a", "b", "b"]}, ValueError, "3 different names"),
        ({"calibrator": 5}, TypeError, "calibrator must be 'auto'"),
        ({"cv": 1}, ValueError, "cv must be"),
        ({"level": 95}, ValueError, "level must lie"),
        ({"level": None}, ValueError, "level must lie"),
    ],
)
def test_arguments_are_judged(options, error, message):
    with pytest.raises(error, match=message):
        cal.expected_cost([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.3], **({"costs": COSTS} | options))


def test_calibrators_have_names():
    data = make_scores(60, "shifted", random_state=1)
    named, auto = (cal.expected_cost(data.y_true, data.y_prob, COSTS, calibrator=c) for c in ("beta", "auto"))
    assert named.to_dict() == auto.to_dict()


def test_folds_are_drawn_by_seed_or_generator():
    data = make_scores(60, "shifted", random_state=1)

    def value(random_state):
        return cal.expected_cost(data.y_true, data.y_prob, COSTS, random_state=random_state).recalibrated.value

    generator = np.random.default_rng(0)
    drawn = [value(generator) for _ in range(8)]
    generator = np.random.default_rng(0)
    assert drawn == [value(generator) for _ in range(8)]
    assert len(set(drawn)) > 1
    assert value(3) == value(np.int64(3))
    assert value(2**40) == value(2**40)
    assert np.isfinite(value(None))
