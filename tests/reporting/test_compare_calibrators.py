"""`compare_calibrators`: its numbers are those of the fits that it describes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t
from sklearn.model_selection import StratifiedKFold

import calibrant as cal
from calibrant.calibrators import (
    AutoCalibrator,
    HistogramBinning,
    Identity,
    IsotonicCalibrator,
    OneVsRest,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    named_calibrator,
    select_calibrator,
)
from calibrant.calibrators.candidates import candidates_for
from calibrant.calibrators.choosing import Choosing
from calibrant.calibrators.crossval import paired
from calibrant.calibrators.select import as_sample
from calibrant.results import Interval


def three(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, 3))
    p, q = (np.exp(f * z) / np.exp(f * z).sum(axis=1, keepdims=True) for f in (1, 2))
    return q, (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)


CANDIDATES = {"temperature": TemperatureScaling(), "isotonic": IsotonicCalibrator(clip=None)}


@pytest.mark.slow
def test_numbers_are_those_of_rows_that_were_left_out():
    p, y = three()
    found = cal.compare_calibrators(y, p, candidates=CANDIDATES, cv=4, random_state=3)
    for name, one in {
        "temperature": TemperatureScaling(),
        "isotonic": OneVsRest(IsotonicCalibrator(clip=None)),
    }.items():
        out = np.empty_like(p)
        for train, test in StratifiedKFold(4, shuffle=True, random_state=3).split(p, y):
            out[test] = one.fit(p[train], y[train]).predict_proba(p[test])
        own = np.maximum(out[np.arange(len(y)), y], 1e-6)
        row = found.row(name)
        assert row.log_loss == pytest.approx(-np.log(own).mean(), rel=1e-12)
        assert row.brier == pytest.approx(((out - np.eye(3)[y]) ** 2).sum(axis=1).mean(), rel=1e-12)
        right = out.argmax(axis=1) == y
        change = right.astype(float) - (p.argmax(axis=1) == y)
        assert row.accuracy == pytest.approx(right.mean(), rel=1e-12)
        assert row.accuracy_change == pytest.approx(change.mean(), abs=1e-15)
        assert row.accuracy_change_se == pytest.approx(change.std() / np.sqrt(len(y)), rel=1e-12)
        assert row.error.value == pytest.approx(cal.calibration_error(y, out, labels=[0, 1, 2]), rel=1e-12)
    assert found.before.headline.value == pytest.approx(cal.calibration_error(y, p), rel=1e-9)
    assert found.after.headline.value == found.row(found.shown).error.value


@pytest.mark.slow
def test_chooses_as_select_calibrator():
    p, y = three(seed=4)
    for scoring, rule in (("log-loss", "one-standard-error"), ("brier", "best"), ("log-loss", "average")):
        found = cal.compare_calibrators(y, p, goal=scoring, rule=rule, random_state=1)
        chosen = select_calibrator(p, y, goal=scoring, rule=rule, random_state=1)
        assert chosen.name == max(found.weights, key=found.weights.get)
        assert found.chosen == (chosen.name if len(found.weights) == 1 else "average")
        by_name = {row["name"]: row for row in chosen.table}
        for row in found.rows[: len(by_name)]:
            assert (row.log_loss if scoring == "log-loss" else row.brier) == by_name[row.name]["loss"]
            if rule == "average":
                assert found.weights.get(row.name, 0) == by_name[row.name]["weight"]
            else:
                assert (row.difference, row.se) == (by_name[row.name]["difference"], by_name[row.name]["se"])


@pytest.mark.slow
def test_weights_of_zero_are_rows_left_out():
    p, y = three()
    w = np.r_[np.ones(1200), np.zeros(300)]
    some, rest = (cal.compare_calibrators(*a, candidates=CANDIDATES, **k) for a, k in (
        ((y, p), {"sample_weight": w}), ((y[:1200], p[:1200]), {})))  # fmt: skip
    assert some.n_samples == rest.n_samples == 1200
    for a, b in zip(some.rows, rest.rows, strict=True):
        assert (a.log_loss, a.brier, a.accuracy, a.error.value) == (b.log_loss, b.brier, b.accuracy, b.error.value)


@pytest.mark.slow
def test_weights_weigh():
    p, y = three()
    w = np.where(np.arange(len(y)) % 3 == 0, 3.0, 1.0)
    found = cal.compare_calibrators(y, p, candidates=CANDIDATES, sample_weight=w)
    out = np.empty_like(p)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(p, y):
        out[test] = TemperatureScaling().fit(p[train], y[train], w[train]).predict_proba(p[test])
    assert found.row("temperature").log_loss == pytest.approx(
        np.average(-np.log(out[np.arange(len(y)), y]), weights=w), rel=1e-12
    )


@pytest.mark.slow
def test_what_is_calibrated_is_left_alone_and_the_best_of_the_others_shown():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    found = cal.compare_calibrators(rng.random(3000) < p, p)
    assert found.chosen == "identity"
    assert dict(found.weights) == {"identity": 1.0}
    assert not found.within_noise  # nothing is changed
    assert found.verdict.startswith("Leave the probabilities unchanged")
    assert found.shown != "identity"
    assert min((row for row in found.rows if row.name != "identity"), key=lambda r: r.difference).name == found.shown


@pytest.mark.slow
def test_readers():
    p, y = three()
    found = cal.compare_calibrators(y, p, candidates=CANDIDATES, title="A title")
    frame = found.to_frame("pandas")
    assert frame["name"].tolist() == ["temperature", "isotonic"]
    assert frame["chosen"].sum() == 1
    assert frame["error"].tolist() == [row.error.value for row in found.rows]
    text = str(found)
    assert text.startswith("A title\n")
    assert max(map(len, text.splitlines())) <= 100
    assert found.to_dict()["calibrators"][0]["error"]["value"] == found.rows[0].error.value
    with pytest.raises(ValueError, match="name must be one of 'temperature', 'isotonic'; got 'x'"):
        found.row("x")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"goal": "mse"}, "goal must be one of"),
        ({"rule": "any"}, "rule must be one of"),
        ({"cv": 1}, "cv must be an int >= 2"),
        ({"candidates": {}}, "candidates must be a mapping"),
        ({"candidates": {"a": 3}}, "candidates must be calibrators"),
        ({"notion": "canonical"}, "canonical"),
        ({"level": 1.5}, "level must lie"),
    ],
)
def test_bad_arguments(change, words):
    p, y = three(200)
    with pytest.raises((ValueError, TypeError), match=words):
        cal.compare_calibrators(y, p, **({"candidates": {"v": VectorScaling()}} | change))


@pytest.mark.slow
def test_margins_have_no_before():
    rng = np.random.default_rng(0)
    m = rng.normal(size=1000)
    found = cal.compare_calibrators(rng.random(1000) < 1 / (1 + np.exp(-m)), m, input="margin")
    assert found.before is None
    assert all(np.isnan(row.accuracy_change) for row in found.rows)
    assert found.to_dict()["before"] is None
    assert found.to_html().count('class="chart"') == 1


@pytest.mark.slow
@pytest.mark.parametrize("positive", ["no", "yes"])
def test_predictions_stand_for_scores_and_labels(positive):
    rng = np.random.default_rng(0)
    p, w = rng.random(400), rng.integers(0, 3, 400)
    y = np.where(rng.random(400) < p**2, positive, {"no": "yes", "yes": "no"}[positive])
    labels = ["no", "yes"] if positive == "yes" else ["yes", "no"]
    judged = cal.as_predictions(y, p, pos_label=positive, sample_weight=w)
    options = {"candidates": {"temperature": TemperatureScaling(), "isotonic": IsotonicCalibrator()}, "cv": 3}
    given = {"sample_weight": w, "labels": labels}
    one, other = (cal.compare_calibrators(*a, **options, **b) for a, b in (((judged,), {}), ((y, p), given)))
    for mine, theirs in zip(one.rows, other.rows, strict=True):
        assert (mine.name, mine.log_loss, mine.brier) == (theirs.name, theirs.log_loss, theirs.brier)
        assert mine.error.interval == theirs.error.interval
    assert one.classes == tuple(labels)
    chosen = select_calibrator(judged, **options)
    assert chosen.table[0]["loss"] == select_calibrator(p, y, **options, **given).table[0]["loss"]
    for argument in ({"y_prob": p}, {"sample_weight": w}, {"labels": labels}, {"input": "logit"}):
        with pytest.raises(TypeError, match=f"{next(iter(argument))} must not be given"):
            cal.compare_calibrators(judged, **options, **argument)


@pytest.mark.slow
def test_predictions_of_several_classes():
    p, y = three(300)
    one, other = (cal.compare_calibrators(*a, candidates=CANDIDATES) for a in ((cal.as_predictions(y, p),), (y, p)))
    assert [row.log_loss for row in one.rows] == [row.log_loss for row in other.rows]


def bent(n, seed=0):
    """Scores whose frequencies no temperature follows, and bins do."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < np.clip(p + 0.12 * np.sin(4 * np.pi * p), 0.02, 0.98)).astype(int)


def test_verdict_says_what_is_left_and_what_it_would_cost():
    p, y = bent(4000)
    tried = {"identity": Identity(), "temperature": TemperatureScaling(), "bins": HistogramBinning(4)}
    found = cal.compare_calibrators(y, p, candidates=tried)
    one, other = found.row(found.chosen), found.row("bins")
    assert found.chosen != "bins"
    assert other.error.interval.low == 0 < one.error.interval.low
    words = found.verdict
    assert "bins reaches" in words
    assert 0.01 < other.error.interval.high < 0.1  # two digits of its half: three decimals
    assert f"{other.error.value:.3f} (0.000 to {other.error.interval.high:.3f})" in words
    assert f"for +{other.log_loss - one.log_loss:.4f} (standard error {other.cost_se:.4f}) log-loss" in words
    assert "evidence of miscalibration." in words if found.chosen == "identity" else "still miscalibrated" in words
    assert "(goal=)" in words
    assert words in found.to_dict()["verdict"]
    only = cal.compare_calibrators(y, p, candidates={"identity": Identity(), "temperature": TemperatureScaling()})
    assert "No other calibrator is significantly better calibrated" in only.verdict


def test_gains_have_a_noise_and_few_rows_are_said():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    found = cal.compare_calibrators(y, p, candidates={"platt": PlattScaling()})
    row = found.rows[0]
    before = -np.log(np.where(y == 1, p, 1 - p))
    out = np.empty(60)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(p, y):
        out[test] = PlattScaling().fit(p[train], y[train]).predict_proba(p[test])[np.arange(len(test)), y[test]]
    gain = before + np.log(out)
    assert row.gain == pytest.approx(gain.mean())
    assert row.gain_se == pytest.approx(gain.std() / np.sqrt(60))
    assert abs(row.gain) < 2 * row.gain_se
    assert "is within sampling noise" in found.verdict
    assert "With 60 rows the calibration error is uncertain" in found.verdict
    q, o = three()
    sure = cal.compare_calibrators(o, q, candidates=CANDIDATES)
    assert "The log-loss falls by" in sure.verdict
    assert (sure.row(sure.chosen).cost, sure.row(sure.chosen).cost_se) == (0, 0)


def test_the_choice_is_fitted_as_it_was_compared():
    q, o = three()
    names = np.array(["b", "a", "c"])
    found = cal.compare_calibrators(names[o], q, candidates=CANDIDATES, labels=["b", "a", "c"])
    one = found.calibrator().fit(q, names[o])
    assert one.classes_.tolist() == ["b", "a", "c"]
    want = TemperatureScaling(labels=["b", "a", "c"]).fit(q, names[o])
    np.testing.assert_array_equal(one.predict_proba(q), want.predict_proba(q))
    assert type(found.calibrator("isotonic")).__name__ == "OneVsRest"
    with pytest.raises(ValueError, match="name must be one of 'temperature', 'isotonic'"):
        found.calibrator("beta")


def test_one_sentence_says_what_was_done():
    """A selection, an AutoCalibrator and a comparison say the same of a choice, and of an average that it is one."""
    rng = np.random.default_rng(2)
    p = rng.random(400)
    y = (rng.random(400) < 1 / (1 + (1 / p - 1) ** 0.6)).astype(int)
    compared = cal.compare_calibrators(y, p)
    for rule in ("average", "one-standard-error", "best"):
        sentence = select_calibrator(p, y, rule=rule, random_state=0).summary
        assert sentence.startswith("Use ")
        assert str(AutoCalibrator(rule=rule).fit(p, y)).startswith(sentence)
        assert cal.compare_calibrators(y, p, rule=rule).verdict.startswith(sentence)
    auto = AutoCalibrator().fit(p, y)
    weights = {row["name"]: row["weight"] for row in auto.table_ if row["weight"]}
    assert len(weights) > 2
    assert weights == pytest.approx(dict(compared.weights))
    most = max(weights, key=weights.get)
    assert compared.chosen == "average"
    assert select_calibrator(p, y).name == auto.chosen_ == most
    words = f"an average of {len(weights)}, "
    for text in (repr(auto), str(auto), auto._repr_mimebundle_()["text/html"], compared.verdict):
        assert words in text
        assert f"{most} (weight {weights[most]:.2f})" in text
        assert "chose " not in text
    for text in (str(auto), compared.verdict):
        assert f"the original scores keep {weights['identity']:.2f}" in text


def test_the_average_is_that_of_held_out_rows_and_comes_back_unfitted():
    rng = np.random.default_rng(2)
    p = rng.random(400)
    y = (rng.random(400) < 1 / (1 + (1 / p - 1) ** 0.6)).astype(int)
    found = cal.compare_calibrators(y, p)
    out = np.zeros(400)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(p, y):
        for name, weight in found.weights.items():
            fit = named_calibrator(name, 2).set_params(labels=[0, 1]).fit(p[train], y[train])
            out[test] += weight * fit.predict_proba(p[test])[:, 1]
    row = found.row("average")
    assert row is found.rows[-1] is found.row(found.chosen)
    assert row.brier == pytest.approx(np.mean((out - y) ** 2), rel=1e-12)
    assert row.log_loss == pytest.approx(-np.mean(np.log(np.where(y == 1, out, 1 - out))), rel=1e-12)
    gains = (p - y) ** 2 - (out - y) ** 2
    assert row.other_gain == pytest.approx(gains.mean())
    apart = gains - gains.mean()
    df = 2 / ((apart**4).sum() / (apart @ apart) ** 2 - 1 / 400)
    half = t.ppf(0.975, df) * np.sqrt(apart @ apart) / 400
    assert row.other_gain_interval == pytest.approx((gains.mean() - half, gains.mean() + half))
    sample = as_sample(p, y, None, "probability", None)
    choice = Choosing(5, "log-loss", "average", 0, whole=True).among(candidates_for(sample, None), sample)
    assert choice.gain("log-loss").interval(0.95) == pytest.approx(row.gain_interval)
    one = found.calibrator()
    assert not hasattr(one, "classes_")
    np.testing.assert_allclose(one.fit(p, y).predict_proba(p), AutoCalibrator().fit(p, y).predict_proba(p), atol=1e-12)
    assert type(found.calibrator("platt")).__name__ == "PlattScaling"
    with pytest.raises(ValueError, match="candidates must not be called 'average'"):
        cal.compare_calibrators(y, p, candidates={"average": PlattScaling()})


def gained(gain, low, high, other, other_low, other_high):
    """A comparison whose choice gains so much by either score."""
    p, y = bent(300)
    found = cal.compare_calibrators(y, p, candidates={"platt": PlattScaling()}, cv=2)
    ends = {"gain_interval": Interval(low, high), "other_gain_interval": Interval(other_low, other_high)}
    return replace(found, rows=(replace(found.rows[0], gain=gain, other_gain=other, **ends),))


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0.2, 0.1, 0.3, 0.02, 0.01, 0.03), "The log-loss falls by 0.20 (95 % interval 0.10 to 0.30)."),
        (
            (0.2, 0.1, 0.3, -0.02, -0.03, -0.01),
            "The log-loss falls by 0.20 (95 % interval 0.10 to 0.30), but the Brier score rises by 0.020 (0.010 to "
            "0.030).",
        ),
        (
            (0.2, -0.1, 0.5, 0.02, 0.01, 0.03),
            "The change of the log-loss, −0.20 (95 % interval −0.50 to +0.10), is within sampling noise, but the Brier "
            "score falls by 0.020 (0.010 to 0.030).",
        ),
        (
            (-0.2, -0.3, -0.1, 0.01, -0.01, 0.03),
            "The log-loss rises by 0.20 (95 % interval 0.10 to 0.30), but the change of the Brier score, −0.010 "
            "(−0.030 to +0.010), is within sampling noise.",
        ),
    ],
)
def test_both_scores_are_in_words_where_they_disagree(numbers, words):
    assert words in gained(*numbers).verdict


def test_the_verdict_says_that_the_kind_of_calibrator_is_open():
    """Where resamples of the held-out rows lead to others; not where they all lead to the same."""
    p, y = bent(4000)
    clear = cal.compare_calibrators(y, p)
    assert clear.leading[1] >= 0.9
    assert " open" not in clear.verdict
    shared = cal.compare_calibrators(y[:1200], p[:1200])
    family, share = shared.leading
    assert share < 0.9
    assert f"open: {family} leads in {100 * share:.0f} % of resamples" in shared.verdict
    assert cal.compare_calibrators(y[:1200], p[:1200], rule="best").leading is None


def test_degrees_of_freedom_are_few_where_few_rows_make_the_difference():
    sample = as_sample(np.full(1000, 0.5), np.tile([0, 1], 500), None, "probability", None)
    even, few = np.tile([0.0, 0.1], 500), np.r_[np.full(4, 5.0), np.zeros(996)]
    assert paired(even, np.zeros(1000), sample).df == pytest.approx(999)
    assert paired(few, np.zeros(1000), sample).df < 10
    assert paired(np.zeros(1000), np.zeros(1000), sample).interval(0.95) == (0, 0)
