"""`report`: numbers, table, verdict, text, dict, frame."""

import json
from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.printing import Audience
from calibrant.datasets import (
    load_breast_cancer_predictions,
    load_digits_predictions,
    load_even_digits_predictions,
    make_scores,
    true_map,
)


def near(value):
    """Equal up to the order of float64 additions."""
    return pytest.approx(value, rel=1e-12)


@pytest.fixture(scope="module")
def digits():
    return load_digits_predictions()


@pytest.fixture(scope="module")
def digits_report(digits):
    return cal.report(digits.y_true, digits.y_prob, labels=digits.labels)


def test_scores_equal_scikit_learn(digits, digits_report):
    from sklearn.metrics import accuracy_score

    onehot = np.eye(10)[digits.y_true]
    assert digits_report.accuracy == accuracy_score(digits.y_true, digits.y_prob.argmax(axis=1))
    assert digits_report.brier == pytest.approx(((digits.y_prob - onehot) ** 2).sum(axis=1).mean(), rel=1e-12)


def test_binary_scores_equal_scikit_learn():
    from sklearn.metrics import brier_score_loss, log_loss

    data = make_scores(2000, "wavy", random_state=0)
    w = np.random.default_rng(1).random(2000)
    r = cal.report(data.y_true, data.y_prob, sample_weight=w)
    assert r.brier == pytest.approx(brier_score_loss(data.y_true, data.y_prob, sample_weight=w), rel=1e-12)
    assert r.log_loss == pytest.approx(log_loss(data.y_true, data.y_prob, sample_weight=w), rel=1e-12)
    assert r.weighted


def test_headline_is_what_calibration_error_gives(digits, digits_report):
    assert digits_report.headline.value == near(cal.calibration_error(digits.y_true, digits.y_prob))
    e = digits_report.estimates["15 bins of equal mass"]
    assert e.value == near(cal.expected_calibration_error(digits.y_true, digits.y_prob, strategy="quantile"))
    e = digits_report.estimates["maximum over 15 bins of equal width (MCE)"]
    assert e.value == near(cal.expected_calibration_error(digits.y_true, digits.y_prob, norm=np.inf))


@pytest.mark.slow
def test_chosen_estimator_leads(digits):
    e = cal.Binned("sqrt", "quantile")
    r = cal.report(digits.y_true, digits.y_prob, estimator=e)
    assert r.headline.value == near(cal.calibration_error(digits.y_true, digits.y_prob, estimator=e))
    assert next(iter(r.estimates)) == "chosen: Binned(n_bins='sqrt', strategy='quantile')"


def test_classes_are_worst_first(digits_report):
    errors = [row.ece for row in digits_report.per_class]
    assert len(errors) == 10
    assert errors == sorted(errors, reverse=True)
    assert sum(row.count for row in digits_report.per_class) == digits_report.n_samples


def test_infinite_log_loss_is_reported_not_hidden(digits_report):
    assert np.isinf(digits_report.log_loss)
    assert "observed class had probability 0" in str(digits_report)
    assert digits_report.to_dict()["log_loss"] is None


def test_dict_is_json_and_text_is_narrow(digits_report):
    data = json.loads(json.dumps(digits_report.to_dict(), allow_nan=False))
    assert data["n_samples"] == digits_report.n_samples
    assert data["verdict"] == digits_report.verdict
    assert max(len(line) for line in str(digits_report).splitlines()) <= 100


@pytest.mark.slow
def test_same_input_same_report(digits, digits_report):
    assert cal.report(digits.y_true, digits.y_prob, labels=digits.labels).to_dict() == digits_report.to_dict()


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_frame(digits_report, backend):
    import narwhals as nw

    frame = nw.from_native(digits_report.to_frame(backend))
    assert frame["estimator"].to_list() == list(digits_report.estimates)
    assert frame["value"].to_list() == [e.value for e in digits_report.estimates.values()]
    with pytest.raises(ValueError, match="backend must be one of"):
        digits_report.to_frame("excel")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("overconfident", ("too low", "too high")),
        ("shifted", ("too high",)),
        ("calibrated", ("No evidence of miscalibration",)),
    ],
)
def test_verdict_says_what_is_true(kind, words):
    data = make_scores(20_000, kind, random_state=3)
    verdict = cal.report(data.y_true, data.y_prob).verdict
    for word in words:
        assert word in verdict
    if kind == "shifted":
        assert "too low" not in verdict


@pytest.mark.slow
def test_verdict_of_a_confidence():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(5), 8000)
    y = np.minimum((rng.random((8000, 1)) > np.cumsum(q, axis=1)).sum(axis=1), 4)
    sharp = q**2 / (q**2).sum(axis=1, keepdims=True)
    assert "over-confident" in cal.report(y, sharp).verdict
    flat = q**0.5 / (q**0.5).sum(axis=1, keepdims=True)
    assert "under-confident" in cal.report(y, flat).verdict


def test_verdict_numbers_are_those_of_the_rows_named():
    """The sentence's frequencies are recomputed from the rows with scores in the range it names."""
    import re

    data = make_scores(20_000, "shifted", random_state=0)
    verdict = cal.report(data.y_true, data.y_prob).verdict
    low, high, share, stated, observed = map(
        float,
        re.search(
            r"from ([\d.]+) to ([\d.]+) \(([\d.]+) % of rows\).*?says ([\d.]+) %, it happens ([\d.]+) %", verdict
        ).groups(),
    )
    rows = (data.y_prob >= low) & (data.y_prob <= high)
    assert 100 * rows.mean() == pytest.approx(share, abs=0.51)
    assert 100 * data.y_true[rows].mean() == pytest.approx(observed, abs=0.51)
    assert 100 * data.y_prob[rows].mean() == pytest.approx(stated, abs=0.51)


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["classwise", "top-label"])
def test_notions_with_several_problems(digits, notion):
    r = cal.report(digits.y_true, digits.y_prob, notion=notion)
    assert r.curve is None
    assert r.headline.value == near(cal.calibration_error(digits.y_true, digits.y_prob, notion=notion))
    assert (f"class {r.per_class[0].label} " in r.summary) == (r.evidence.status == "miscalibrated")


@pytest.mark.slow
def test_tiny_and_degenerate_input_gives_a_report():
    for y, p in ([[1], [0.7]], [[0, 0], [0.5, 0.5]], [[1, 1, 1], [1.0, 1.0, 1.0]], [[0, 1], [0.0, 1.0]]):
        assert str(cal.report(y, p))


def test_wrong_parameters():
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1; got 95"):
        cal.report([0, 1], [0.2, 0.7], level=95)
    with pytest.raises(ValueError, match="estimator must be 'auto'"):
        cal.report([0, 1], [0.2, 0.7], estimator="best")
    with pytest.raises(TypeError, match="needs an estimator that reads sums"):
        cal.report([0, 1], [[0.2, 0.8], [0.3, 0.7]], estimator=cal.estimators.SimplexBinned())
    with pytest.raises(ValueError, match="canonical"):
        cal.report([0, 1], [[0.2, 0.8], [0.3, 0.7]], notion="canonical")


@pytest.mark.parametrize("kind", ["calibrated", "overconfident", "underconfident", "shifted", "wavy"])
def test_datasets_truth_by_monte_carlo(kind):
    data = make_scores(10, kind, a=2, b=5, random_state=0)
    s = np.random.default_rng(1).beta(2, 5, 400_000)
    gap = np.abs(true_map(s, kind) - s)
    assert data.truth == pytest.approx(gap.mean(), abs=4 * gap.std() / np.sqrt(len(s)) + 1e-9)


def test_datasets_reject_unknown_kinds():
    with pytest.raises(ValueError, match="kind must be one of"):
        make_scores(10, "perfect")


def test_bundled_predictions_are_held_out():
    data = load_breast_cancer_predictions()
    assert set(data.y_true) == {"benign", "malignant"}
    assert 0.85 < ((data.y_prob > 0.5) == (data.y_true == "malignant")).mean() < 1


def test_the_first_picture_of_the_demo_tells_a_story():
    """Every tenth of the scores has rows enough to be seen, and the error is far from 0."""
    data = load_even_digits_predictions()
    assert len(data.y_true) == 1797
    assert np.histogram(data.y_prob, 10, (0, 1))[0].min() >= 20
    found = cal.report(data.y_true, data.y_prob, pos_label="even")
    assert found.evidence.status == "miscalibrated"
    assert found.headline.interval.low > 0.05


def test_weights_that_sum_to_n_are_still_weights():
    w = np.tile([0.5, 1.5], 10)
    r = cal.report(np.tile([0, 0, 1, 1], 5), np.linspace(0.1, 0.9, 20), sample_weight=w)
    assert r.weighted
    assert "(weighted)" in str(r)


def test_figure_of_the_readme(digits):
    """The README quotes this estimate."""
    e = cal.estimate(digits.y_true, digits.y_prob, random_state=0)
    assert (round(e.value, 3), round(e.interval.low, 2), round(e.interval.high, 2)) == (0.159, 0.14, 0.18)


def test_verdict_of_the_docs(digits_report):
    """docs/report.md quotes this one."""
    from pathlib import Path

    page = Path(__file__).parents[2] / "docs" / "report.md"
    quoted = " ".join(line[2:] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("> "))
    assert quoted == replace(digits_report, audience=Audience.COMMAND).verdict


@pytest.mark.slow
def test_rows_that_make_the_log_loss_infinite_are_named():
    y, p = [1, 0, 1, 1, 0, 1], [0.0, 0.2, 0.7, 0.0, 1.0, 0.0]
    found = cal.report(y, p)
    assert found.zero_probability_rows == (0, 3, 4, 5)
    assert "observed class had probability 0 in rows 0, 3, 4 and 1 more (numbered from 0)" in str(found)
    assert "had probability 0 in rows 0, 3, 4 and 1 more" in found.to_html()
    weighted = cal.report(y, p, sample_weight=[0, 1, 1, 0, 0, 1])
    assert weighted.zero_probability_rows == (5,)
    assert "had probability 0 in row 5 (numbered from 0)" in str(weighted)
    three = cal.report([0, 1, 2], [[0.5, 0.5, 0], [0, 1, 0], [1, 0, 0]])
    assert three.zero_probability_rows == (2,)
    streamed = cal.Accumulator().update(y, p).report()
    assert streamed.zero_probability_rows == ()
    assert "observed class had probability 0" in str(streamed)


def test_numbers_have_the_digits_that_their_interval_allows():
    from calibrant.data.printing import known

    assert [known(0.18064, s) for s in (0.3, 0.02, 0.002, 0.0002)] == ["0.18", "0.181", "0.1806", "0.18064"]
    assert known(0.0004, 0.2) == "<0.01"
    assert (known(0.0, 0.2), known(0.1, 0.0), known(0.1, float("nan"))) == ("0.00", "0.1000", "0.1000")


@pytest.mark.slow
def test_the_summary_is_the_verdict_in_one_sentence():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    off = cal.report(rng.random(3000) < p**2, p)
    assert off.summary.startswith("Not calibrated: where the model says ")
    assert off.summary[len("Not calibrated: ") : -1] in off.verdict
    fine = cal.report(rng.random(60_000) < (p := rng.random(60_000)), p)
    high = fine.headline.interval.high
    assert fine.summary == f"No sign of miscalibration: the probabilities are off by {high:.2g} on average at most."
    few = cal.report([0, 1, 1], [0.4, 0.5, 0.6])
    assert few.summary.startswith("Not enough data to tell: ")
    assert off.to_dict()["summary"] == off.summary


def test_sums_with_groups_say_so():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    s = rng.random(600)
    y = (rng.random(600) < np.clip(s + 0.2 * rng.normal(size=60)[group], 0, 1)).astype(int)
    half = group < 30
    parts = [cal.Accumulator().update(y[some], s[some], groups=group[some]) for some in (half, ~half)]
    found = cal.report(parts[0] + parts[1])
    assert found.n_groups == 60
    assert "Rows within each of 60 groups may depend on each other" in " ".join(str(found).split())
    assert "independent: if" not in str(found)
    assert cal.report(cal.Accumulator().update(y, s)).n_groups is None
