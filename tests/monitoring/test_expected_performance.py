"""`expected_performance`: metrics of scikit-learn, expectations by enumeration, shifts, periods, refusals."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, ks_2samp
from sklearn import metrics as sk

import calibrant as cal
from calibrant.measure.drawn_curve import DrawnCurves
from calibrant.monitoring.performance_metrics import METRICS, DecidedRows, one_hot
from calibrant.notions import ClassSpecific, only_problem

FEW = {"n_resamples": 20}
ALL = ["accuracy", "log-loss", "brier", "precision", "recall", "f1", "roc-auc"]


def rows(seed, n, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(2)  # with ties
    return (rng.random(n) < p**power).astype(int), p


def classes(seed, n):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(3), n)
    return (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), q


def by_name(found):
    return {m.name: m for m in found.metrics}


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_the_metrics_of_labels_are_those_of_scikit_learn(seed, weighted):
    y, p = rows(seed, 60)
    w = np.random.default_rng(seed).random(60) + 0.1 if weighted else None
    reference = cal.as_predictions(y, p, sample_weight=w)
    found = by_name(cal.expected_performance(p[:30], reference=reference, metric=ALL, **FEW))
    said, about = (p >= 0.5).astype(int), {"sample_weight": w}
    wanted = {
        "accuracy": sk.accuracy_score(y, said, **about),
        "precision": sk.precision_score(y, said, **about),
        "recall": sk.recall_score(y, said, **about),
        "f1": sk.f1_score(y, said, **about),
        "brier": sk.brier_score_loss(y, p, **about),
        "roc-auc": sk.roc_auc_score(y, p, **about),
    }
    for name, value in wanted.items():
        assert found[name].reference == pytest.approx(value, abs=1e-12), name
    assert found["log-loss"].reference == pytest.approx(cal.log_loss(y, p, sample_weight=w), abs=1e-12)


def test_of_several_classes_they_are_means_over_classes():
    y, q = classes(1, 300)
    found = by_name(cal.expected_performance(q, reference=(y, q), metric=ALL, **FEW))
    said = q.argmax(axis=1)
    wanted = {
        "accuracy": sk.accuracy_score(y, said),
        "precision": sk.precision_score(y, said, average="macro"),
        "recall": sk.recall_score(y, said, average="macro"),
        "f1": sk.f1_score(y, said, average="macro"),
        "brier": cal.brier_score(y, q),
        "log-loss": sk.log_loss(y, q),
        "roc-auc": sk.roc_auc_score(y, q, multi_class="ovr"),
    }
    for name, value in wanted.items():
        assert found[name].reference == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("name", METRICS)
def test_soft_outcomes_give_the_expectation_by_enumeration(name):
    rng = np.random.default_rng(4)
    k, n = 2, 7
    p = rng.dirichlet(np.ones(k), n)
    q = rng.dirichlet(np.ones(k), n)
    known = DecidedRows(p, (p[:, 1] >= 0.5).astype(int), np.ones(n), (1,), np.array([[0.0, 1], [4, 0.5]]), True)
    read = METRICS[name].of(known)
    chances, values = [], []
    for codes in itertools.product(range(k), repeat=n):
        chances.append(np.prod(q[np.arange(n), codes]))
        values.append(read(one_hot(np.array(codes), k))[0])
    chances, values = np.array(chances), np.array(values)
    expected = np.nansum(chances * values)
    # Ratios are those of expectations: near the expectation, and equal where the metric is a mean.
    exact = name in ("accuracy", "cost", "log-loss", "brier", "precision")
    assert read(q[None])[0] == pytest.approx(expected, abs=1e-12 if exact else 0.12)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_curves_are_read_as_lines_between_their_points(seed):
    y, p = rows(seed, 200)
    p[:40] = 0.25  # stands apart
    curves = DrawnCurves.of(only_problem(ClassSpecific(), cal.as_predictions(y, p)), 5, np.random.default_rng(0))
    at = np.random.default_rng(seed).random(30)
    at[:3] = 0.25
    found = curves.read(at).of(slice(1, 4))
    for i, draw in enumerate((1, 2, 3)):
        for j, score in enumerate(at):
            near = np.abs(curves.heavy - score)
            if near.size and near.min() <= curves.step:
                wanted = curves.frequencies[draw, near.argmin()]
            else:
                wanted = np.clip(score + np.interp(score, curves.scores, curves.gaps[draw]), 0, 1)
            assert found[i, j] == pytest.approx(wanted, abs=1e-12)
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize(("value", "beside"), [(0.25, 0.26), (0.0, 0.05), (1.0, 0.95)])
def test_a_value_that_stands_apart_has_its_own_frequency(value, beside):
    rng = np.random.default_rng(0)
    p = np.where(rng.random(4000) < 0.3, value, 0.02 + 0.96 * rng.random(4000))
    y = rng.random(4000) < np.where(p == value, 0.6, p)
    curves = DrawnCurves.of(only_problem(ClassSpecific(), cal.as_predictions(y, p)), 200, np.random.default_rng(0))
    assert curves.read(np.array([value])).mean()[0] == pytest.approx(y[p == value].mean(), abs=0.01)
    assert curves.read(np.array([beside])).mean()[0] == pytest.approx(beside, abs=0.15)


def test_sure_confidences_of_a_reference_are_read():
    """A forest's: most of its rows have all trees for one class."""
    rng = np.random.default_rng(0)
    sure = rng.random((2000, 1)) < 0.5
    p = np.where(sure, np.eye(3)[rng.integers(0, 3, 2000)], rng.dirichlet(np.ones(3), 2000))
    y = (rng.random((2000, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    y = np.where(sure[:, 0] & (rng.random(2000) < 0.1), (y + 1) % 3, y)
    found = by_name(cal.expected_performance(p[1000:], reference=(y[:1000], p[:1000]), metric=["accuracy"], **FEW))
    assert found["accuracy"].value == pytest.approx((y[1000:] == p[1000:].argmax(axis=1)).mean(), abs=0.04)


def test_without_labels_the_diagonal_is_taken():
    p = np.random.default_rng(0).random(500)
    calibrator = cal.calibrators.Identity().fit(*rows(0, 100)[::-1])
    found = by_name(cal.expected_performance(p, calibrator=calibrator, metric=["accuracy", "brier"], **FEW))
    assert found["accuracy"].value == pytest.approx(np.maximum(p, 1 - p).mean(), abs=1e-12)
    assert found["brier"].value == pytest.approx((p * (1 - p)).mean(), abs=1e-12)
    assert np.isnan(found["accuracy"].reference)


def test_a_calibrator_comes_first_for_both_samples():
    y, p = rows(3, 3000, 2.0)
    new = rows(4, 500)[1]
    calibrator = cal.calibrators.BetaCalibration().fit(p, y)
    one = cal.expected_performance(new, reference=(y, p), calibrator=calibrator, **FEW)
    mapped = [calibrator.predict_proba(v)[:, 1] for v in (p, new)]
    other = cal.expected_performance(mapped[1], reference=(y, mapped[0]), **FEW)
    assert one.to_dict() == other.to_dict()
    same = cal.expected_performance(new, reference=cal.as_predictions(y, p), calibrator=calibrator, **FEW)
    assert same.value == pytest.approx(one.value, abs=1e-12)


@pytest.mark.parametrize(("shift", "prior"), [("none", None), ("covariate", None), ("label", "estimate")])
def test_intervals_cover_what_labels_say(shift, prior):
    inside = []
    for seed in range(15 if prior is None else 6):  # an estimated prior is fitted again in each resample
        rng = np.random.default_rng(seed)
        y, p = rows(seed, 1500, 1.5)
        labels, new = rows(1000 + seed, 8000, 1.5)
        weight = {"none": np.ones(8000), "covariate": 0.1 + new, "label": np.where(labels == 1, 0.3, 1.0)}[shift]
        some = rng.choice(8000, 800, replace=False, p=weight / weight.sum())
        labels, new = labels[some], new[some]
        with warnings.catch_warnings():  # "em" is a little off where temperatures do not calibrate all scores
            warnings.simplefilter("ignore", cal.exceptions.PriorShiftWarning)
            found = cal.expected_performance(new, reference=(y, p), prior=prior, metric=ALL, n_resamples=200)
        true = cal.expected_performance(new[:9], reference=(labels, new), metric=ALL, n_resamples=2)
        inside.append(
            [m.interval.low <= t.reference <= m.interval.high for m, t in zip(found.metrics, true.metrics, strict=True)]
        )
    assert np.mean(inside) > 0.87  # 95 % of 105 or 42, which depend on each other


def test_known_base_rates_move_the_curve():
    y, p = rows(5, 4000)
    new = rows(6, 1000)[1]
    same, at_old = (
        cal.expected_performance(new, reference=(y, p), prior=prior, metric=ALL, **FEW) for prior in (None, y.mean())
    )
    assert [m.value for m in at_old.metrics] == pytest.approx([m.value for m in same.metrics], abs=1e-12)
    rarer = by_name(cal.expected_performance(new, reference=(y, p), prior=0.05, metric=ALL, **FEW))
    by_classes = by_name(cal.expected_performance(new, reference=(y, p), prior=[0.95, 0.05], metric=ALL, **FEW))
    assert rarer["precision"].value == pytest.approx(by_classes["precision"].value, abs=1e-12)
    assert rarer["precision"].value < by_name(same)["precision"].value - 0.2


def test_the_other_class_of_one_column_is_the_same_model():
    y, p = rows(7, 1000, 1.3)
    new = rows(8, 300)[1]
    one = by_name(cal.expected_performance(new, reference=(y, p), prior=0.3, metric=ALL, **FEW))
    zero = cal.as_predictions(y, 1 - p, pos_label=0)
    other = by_name(
        cal.expected_performance(1 - new, reference=zero, prior=0.7, metric=ALL, threshold=0.5 + 1e-9, **FEW)
    )
    for name in ("accuracy", "brier", "log-loss", "roc-auc"):
        assert other[name].value == pytest.approx(one[name].value, abs=0.01), name


def test_costs_decide():
    y, p = rows(9, 2000)
    new = rows(10, 500)[1]
    found = cal.expected_performance(new, reference=(y, p), metric="cost", costs={"fp": 1, "fn": 4}, **FEW)
    wanted = cal.expected_cost(y, p, {"fp": 1, "fn": 4}, calibrator=None).realised.value
    assert found.metrics[0].reference == pytest.approx(wanted, abs=1e-12)
    at_fifth = cal.expected_performance(new, reference=(y, p), threshold=0.2, **FEW)
    with_costs = cal.expected_performance(new, reference=(y, p), costs={"fp": 1, "fn": 4}, **FEW)
    assert with_costs.value == pytest.approx(at_fifth.value, abs=0.02)  # scores of exactly 0.2 cost the same


def test_each_period_is_what_its_rows_give():
    y, p = rows(11, 2000)
    new = rows(12, 600)[1]
    day = np.datetime64("2026-01-01") + (np.random.default_rng(0).permutation(600) // 8).astype("m8[D]")
    found = cal.expected_performance(new, reference=(y, p), time=day, every="month", **FEW)
    assert [one.name for one in found.periods] == ["2026-01", "2026-02", "2026-03"]
    for one in found.periods:
        inside = (day >= np.datetime64(one.start)) & (day <= np.datetime64(one.end))
        alone = cal.expected_performance(new[inside], reference=(y, p), **FEW)
        assert one.n_samples == inside.sum()
        assert [m.value for m in one.metrics] == pytest.approx([m.value for m in alone.metrics], abs=1e-12)
    frame = found.to_frame("pandas")
    assert len(frame) == 4 * len(ALL)
    assert set(frame.period) == {"2026-01", "2026-02", "2026-03", "all"}


def test_whole_weights_are_repeats():
    y, p = rows(13, 800)
    new = rows(14, 200)[1]
    w = np.random.default_rng(0).integers(0, 4, 200)
    one = cal.expected_performance(new, reference=(y, p), sample_weight=w, n_resamples=2000)
    other = cal.expected_performance(np.repeat(new, w), reference=(y, p), n_resamples=2000)
    for a, b in zip(one.metrics, other.metrics, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-9)
        assert a.interval.high - a.interval.low == pytest.approx(b.interval.high - b.interval.low, rel=0.12), a.name


def test_many_rows_are_drawn_in_part_and_said_of_all():
    y, p = rows(15, 3000)
    new = rows(16, 120_000)[1]
    found = cal.expected_performance(new, reference=(y, p), metric="accuracy", n_resamples=100)
    few = cal.expected_performance(new[:2000], reference=(y, p), metric="accuracy", n_resamples=100)
    width, wide = (f.interval.high - f.interval.low for f in (found, few))
    outcomes = 2 * 1.96 * np.sqrt(np.mean(new * (1 - new)))
    curve = width**2 - outcomes**2 / 120_000  # the same for few rows, beside that of their outcomes
    assert wide**2 == pytest.approx(curve + outcomes**2 / 2000, rel=0.25)
    assert width < 0.8 * wide


def test_rows_of_a_group_that_agree_make_the_interval_wider():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(200), 10)
    p = np.clip(rng.random(200)[group], 0.01, 0.99)
    y = (rng.random(200)[group] < p).astype(int)  # all rows of a group alike
    reference = cal.as_predictions(y, p, groups=group)
    one, other = (cal.expected_performance(p, reference=reference, groups=g, metric="accuracy") for g in (group, None))
    widths = [f.interval.high - f.interval.low for f in (one, other)]
    assert widths[0] > 1.3 * widths[1]


def test_shifts_are_those_of_scipy():
    rng = np.random.default_rng(0)
    y, p = rows(17, 400)
    new = rng.beta(2, 1, 300)
    old = {"age": rng.normal(50, 9, 400), "kind": rng.choice(["a", "b", "c"], 400), "same": rng.random(400)}
    now = {"age": rng.normal(55, 9, 300), "kind": rng.choice(["a", "b", "d"], 300), "same": rng.random(300)}
    found = cal.expected_performance(new, reference=(y, p), features=(pd.DataFrame(old), pd.DataFrame(now)), **FEW)
    said = {one.name: one for one in found.shifts}
    for name, a, b in (("score", p, new), ("age", old["age"], now["age"]), ("same", old["same"], now["same"])):
        wanted = ks_2samp(a, b, method="asymp")
        assert said[name].statistic == pytest.approx(wanted.statistic, abs=1e-12)
        assert said[name].pvalue == pytest.approx(wanted.pvalue, rel=0.1, abs=1e-6)
        assert said[name].outside == pytest.approx(((b < a.min()) | (b > a.max())).mean(), abs=1e-12)
    table = pd.crosstab(np.repeat([0, 1], [400, 300]), np.concatenate([old["kind"], now["kind"]])).to_numpy()
    assert said["kind"].pvalue == pytest.approx(chi2_contingency(table).pvalue, rel=1e-9)
    assert said["kind"].outside == pytest.approx((now["kind"] == "d").mean(), abs=1e-12)
    assert {one.name for one in found.shifted} == {"score", "age", "kind"}
    assert "extrapolated" in found.summary
    assert "kind" in found.summary


def test_the_shift_of_scores_is_found_at_its_level():
    seen = []
    for seed in range(200):
        y, p = rows(seed, 300)
        new = rows(5000 + seed, 200)[1]
        found = cal.expected_performance(new, reference=(y, p), metric="accuracy", n_resamples=2)
        seen.append(found.shifts[0].pvalue <= 0.05)
    assert np.mean(seen) < 0.09


def test_a_shift_of_more_than_base_rates_is_said():
    y, p = rows(18, 3000)
    new = np.clip(np.random.default_rng(0).normal(0.5, 0.03, 1000), 0, 1)
    with pytest.warns(cal.exceptions.PriorShiftWarning, match="More than base rates"):
        found = cal.expected_performance(new, reference=(y, p), prior="estimate", n_resamples=50)
    assert found.prior is not None
    assert "More than base rates" in found.summary


def test_what_is_not_defined_has_no_number():
    y, p = rows(19, 500)
    found = by_name(cal.expected_performance(np.full(50, 0.1), reference=(y, p), **FEW))
    assert np.isnan(found["precision"].value)
    assert np.isnan(found["precision"].interval.low)
    assert found["accuracy"].value == found["accuracy"].value
    first = cal.expected_performance(np.full(50, 0.1), reference=(y, p), metric="precision", **FEW)
    assert first.summary == "Precision is not defined for these rows."


Y, PROBS = rows(20, 60)
CALIBRATOR = cal.calibrators.PlattScaling().fit(PROBS, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a reference"),
        ({"reference": PROBS}, "reference must be Predictions or a pair"),
        ({"reference": (Y[:9], PROBS)}, "9"),
        ({"reference": (Y, PROBS), "metric": "auc"}, "metric must be"),
        ({"reference": (Y, PROBS), "metric": []}, "at least one"),
        ({"reference": (Y, PROBS), "metric": "cost"}, "needs costs"),
        ({"reference": (Y, PROBS), "threshold": 1.5}, "threshold"),
        ({"reference": (Y, PROBS), "threshold": 0.4, "costs": {"fp": 1, "fn": 1}}, "threshold and costs"),
        ({"reference": (Y, PROBS), "costs": [[0, 1, 2], [1, 0, 2]]}, "column for each"),
        ({"reference": (Y, PROBS), "prior": "em"}, "prior must be"),
        ({"reference": (Y, PROBS), "prior": 1.2}, "prior must lie"),
        ({"calibrator": CALIBRATOR, "prior": 0.4}, "prior needs a reference"),
        ({"calibrator": CALIBRATOR, "groups": np.arange(60)}, "groups need a reference"),
        ({"reference": (Y, PROBS), "groups": np.arange(60)}, "groups need a reference"),
        ({"calibrator": "platt"}, "calibrator must be"),
        ({"reference": (Y, PROBS), "features": PROBS}, "features must be a pair"),
        ({"reference": (Y, PROBS), "features": ({"a": PROBS}, {"b": PROBS})}, "same columns"),
        ({"reference": (Y, PROBS), "features": ({"a": PROBS[:3]}, {"a": PROBS})}, r"features\[0\]"),
        ({"reference": (Y, PROBS), "time": np.arange(59)}, "time must have one value per row"),
        ({"reference": (Y, PROBS), "level": 2}, "level"),
        ({"reference": (Y, np.column_stack([1 - PROBS, PROBS]))}, "p_new must be 2-D"),
        ({"reference": (np.where(Y == 1, "x", "y"), PROBS), "calibrator": CALIBRATOR}, "y_true|labels|classes"),
    ],
)
def test_bad_input_gets_a_clear_error(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cal.expected_performance(PROBS, **options, **FEW)


def test_a_class_without_rows_is_refused_where_base_rates_are_moved():
    reference = cal.as_predictions(np.zeros(50, dtype=int), np.linspace(0.1, 0.9, 50), labels=[0, 1])
    assert cal.expected_performance(PROBS, reference=reference, **FEW).value > 0
    with pytest.raises(ValueError, match="rows of every class"):
        cal.expected_performance(PROBS, reference=reference, prior="estimate", **FEW)
