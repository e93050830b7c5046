"""`compare_models`: what goes in, what comes out, and that it is what it says."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import calibrant as cal
from calibrant.comparison.models import parts
from calibrant.comparison.models.compare import adjusted_pvalues
from calibrant.comparison.models.result import higher_is_better

from .test_measures import two

FAST = {"n_resamples": 60, "random_state": 0}
BINARY = (
    "calibration_error",
    "squared_calibration_error",
    "brier",
    "brier_miscalibration",
    "brier_discrimination",
    "log-loss",
    "log-loss_miscalibration",
    "log-loss_discrimination",
    "accuracy",
)


def three_classes(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1, 2, 3], n)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    q = p**2 / (p**2).sum(axis=1, keepdims=True)
    return y, p, q


def test_values_are_those_of_each_model_alone():
    y, a, b, _ = two()
    w = np.random.default_rng(1).integers(0, 3, 300)
    found = cal.compare_models(y, {"a": a, "b": b}, sample_weight=w, **FAST)
    assert found.measures == BINARY
    for model, p in zip(found.models, (a, b), strict=True):
        m = model.measures
        assert m["calibration_error"] == pytest.approx(cal.calibration_error(y, p, sample_weight=w))
        assert m["squared_calibration_error"] == pytest.approx(cal.squared_calibration_error(y, p, sample_weight=w))
        assert m["brier"] == pytest.approx(cal.brier_score(y, p, scale="half", sample_weight=w))
        assert m["log-loss"] == pytest.approx(cal.log_loss(y, p, sample_weight=w))
        assert m["accuracy"] == pytest.approx(np.average((p > 0.5) == y, weights=w))
        for score in ("brier", "log-loss"):
            parts = cal.decompose(y, p, score=score, sample_weight=w)
            assert m[f"{score}_miscalibration"] == pytest.approx(parts.miscalibration)
            assert m[f"{score}_discrimination"] == pytest.approx(parts.discrimination)
    for d in found.differences:
        assert d.value == pytest.approx(found.models[0].measures[d.measure] - found.models[1].measures[d.measure])
    assert found.n_samples == 300  # rows of weight 0 too, as elsewhere
    assert (w == 0).any()


@pytest.mark.parametrize(
    ("notion", "name"),
    [
        ("auto", "confidence"),
        ("classwise", "classwise"),
        ("top-label", "top-label"),
        (cal.notions.ClassSpecific(1), "class-specific:1"),
    ],
)
def test_several_classes(notion, name):
    y, p, q = three_classes()
    found = cal.compare_models(y, {"p": p, "q": q}, notion=notion, estimator=cal.Binned(5), **FAST)
    assert "log-loss_miscalibration" not in found.measures  # CORP has no parts of it for three classes
    m = found.models[1].measures
    assert m["calibration_error"] == pytest.approx(cal.calibration_error(y, q, notion=notion, estimator=cal.Binned(5)))
    assert m["squared_calibration_error"] == pytest.approx(cal.squared_calibration_error(y, q, notion=notion))
    assert m["brier_miscalibration"] == pytest.approx(cal.decompose(y, q).miscalibration)
    assert found.difference("log-loss", "p", "q").better == "p"
    assert "5" in found.estimator
    assert found.notion == name


@pytest.mark.slow
def test_groups_leave_scores_and_widen_intervals():
    y, a, b, group = two(n=1000, in_group=5)
    rows, groups = (cal.compare_models(y, {"a": a, "b": b}, groups=g, **FAST) for g in (None, group))
    for one, other, p in zip(rows.models, groups.models, (a, b), strict=True):
        errors = {
            "calibration_error": cal.calibration_error,
            "squared_calibration_error": cal.squared_calibration_error,
        }
        found = {name: error(y, p, groups=group) for name, error in errors.items()}
        assert other.measures == pytest.approx(one.measures | found, rel=1e-12)
    assert groups.n_groups == 200
    assert rows.n_groups is None
    names = np.array([f"game {g}" for g in group])
    for given in (names.tolist(), pd.Series(names), pl.Series(names), group.astype(float), pd.Categorical(names)):
        same = cal.compare_models(y, {"a": a, "b": b}, groups=given, **FAST)
        assert same.to_dict() == groups.to_dict()
    # The same rows five times over: as one group each they say no more than once.
    y, a, b, _ = two(n=200)
    index = np.repeat(np.arange(200), 5)
    once = cal.compare_models(y, {"a": a, "b": b}, **FAST)
    again = cal.compare_models(y[index], {"a": a[index], "b": b[index]}, groups=index, **FAST)
    for measure in ("brier", "log-loss", "accuracy"):
        d, e = once.difference(measure, "a", "b"), again.difference(measure, "a", "b")
        assert (e.value, e.se, e.pvalue) == pytest.approx((d.value, d.se, d.pvalue))


def test_every_interval_is_its_pvalue():
    y, a, b, group = two(n=400, in_group=4)
    found = cal.compare_models(y, {"a": a, "b": b, "c": a**1.2}, groups=group, level=0.9, adjust="none", **FAST)
    for d in found.differences:
        assert (d.pvalue < 0.1) == (not d.interval.low <= 0 <= d.interval.high)
        assert d.pvalue == d.adjusted
        t = stats.t.isf(0.05, 99)
        assert np.ptp(d.interval) == pytest.approx(2 * t * d.se)
        side = d.corrected - d.interval.low if d.corrected > 0 else d.interval.high - d.corrected
        if d.measure != "calibration_error":
            assert side == pytest.approx(t * d.se)
        if d.se > 0:  # c orders rows as a does: its discrimination is the same
            assert d.pvalue == pytest.approx(2 * stats.t.sf(t * abs(d.corrected) / side, 99))
        if d.better is not None:
            first = d.better == d.model
            assert first == ((d.corrected > 0) == higher_is_better(d.measure))
    assert {d.better for d in found.differences} > {None}


def test_reference_and_orientation():
    y, a, b, _ = two()
    models = {"a": a, "b": b, "c": (a + b) / 2}
    every, against = (cal.compare_models(y, models, reference=r, **FAST) for r in (None, "b"))
    assert [(d.model, d.other) for d in every.of("brier")] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [(d.model, d.other) for d in against.of("brier")] == [("a", "b"), ("c", "b")]
    d, e = every.difference("log-loss", "b", "c"), every.difference("log-loss", "c", "b")
    assert (d.value, d.corrected, d.pvalue, d.better) == (-e.value, -e.corrected, e.pvalue, e.better)
    assert d.interval == (-e.interval.high, -e.interval.low)
    assert against.difference("log-loss", "c", "b").value == pytest.approx(e.value)
    with pytest.raises(ValueError, match="were not compared"):
        against.difference("log-loss", "a", "c")
    with pytest.raises(ValueError, match="measure must be one of"):
        every.of("auc")


def test_adjustments():
    p = np.array([0.01, 0.04, np.nan, 0.03, 0.5])
    # Holm by hand: 4·0.01, 3·0.03, max(2·0.04, 0.09), 0.5
    np.testing.assert_allclose(adjusted_pvalues(p, "holm"), [0.04, 0.09, np.nan, 0.09, 0.5])
    np.testing.assert_allclose(adjusted_pvalues(p, "bonferroni"), [0.04, 0.16, np.nan, 0.12, 1])
    np.testing.assert_array_equal(adjusted_pvalues(p, "none"), p)
    y, a, b, _ = two()
    found = cal.compare_models(y, {"a": a, "b": b, "c": np.sqrt(a)}, **FAST)
    for measure in found.measures:
        ds = found.of(measure)
        np.testing.assert_allclose([d.adjusted for d in ds], adjusted_pvalues(np.array([d.pvalue for d in ds]), "holm"))


def test_models_that_say_the_same_do_not_differ():
    y, a, _, _ = two()
    found = cal.compare_models(y, {"a": a, "again": a.copy()}, **FAST)
    for d in found.differences:
        assert (d.value, d.corrected, d.pvalue, d.better) == (0, 0, 1, None)


def test_a_score_of_infinity_has_no_interval():
    y, a, b, _ = two()
    a = np.where(np.arange(300) == 7, 1.0 - y[7], a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cal.compare_models(y, {"a": a, "b": b}, **FAST)
    d = found.difference("log-loss", "a", "b")
    assert d.value == np.inf
    assert np.isnan([d.corrected, d.se, d.pvalue, d.adjusted, *d.interval]).all()
    assert d.better is None
    assert np.isfinite(found.difference("log-loss_discrimination", "a", "b").interval).all()
    assert "a score is infinite" in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["models"][0]["log-loss"] is None


def test_labels_by_name_in_any_order():
    y, p, q = three_classes()
    names = np.array(["cat", "dog", "owl"])
    want = cal.compare_models(names[y], {"p": p, "q": q}, **FAST)
    frame = pl.DataFrame(q[:, [2, 0, 1]], schema=["owl", "cat", "dog"])
    for models in ({"p": p, "q": frame}, {"p": pl.DataFrame(p, schema=list(names)), "q": frame}):
        assert cal.compare_models(names[y], models, **FAST).to_dict() == want.to_dict()
    other_way = cal.compare_models(names[y], {"q": frame, "p": p}, **FAST)
    assert other_way.models[0].measures == pytest.approx(want.models[1].measures)
    y, a, b, _ = two()
    said = np.where(y == 1, "yes", "no")
    for label, flip in (("yes", False), ("no", True)):
        models = {"a": 1 - a if flip else a, "b": 1 - b if flip else b}
        found = cal.compare_models(said, models, pos_label=label, **FAST)
        assert found.models[0].measures["log-loss_discrimination"] == pytest.approx(
            cal.decompose(y, a, score="log-loss").discrimination
        )


def test_few_groups_warn():
    y, a, b, group = two(in_group=30)
    with pytest.warns(cal.exceptions.CalibrantWarning, match="10 groups are few"):
        found = cal.compare_models(y, {"a": a, "b": b}, groups=group, **FAST)
    assert found.warnings[0] in str(found)
    w = np.where(group == 0, 1e4, 1.0)
    _, *_, group = two(in_group=5)
    w = np.where(group == 0, 1e4, 1.0)
    with pytest.warns(cal.exceptions.CalibrantWarning, match=r"60 groups, worth 1\.0 equal ones, are few"):
        cal.compare_models(y, {"a": a, "b": b}, groups=group, sample_weight=w, **FAST)


def test_text_dict_and_frame():
    y, a, b, _ = two(n=2000)
    found = cal.compare_models(y, {"a": a, "b": b}, **FAST)
    text = str(found)
    assert text.splitlines()[:2] == [found.summary, "2 models on the same 2,000 rows"]
    assert "Brier score: miscalibration (lower is better)" in text
    assert "accuracy (higher is better)" in text
    frame = found.to_frame("polars")
    assert frame.height == 9
    assert frame["measure"].to_list() == list(BINARY)
    d = found.difference("brier", "a", "b")
    row = frame.filter(pl.col("measure") == "brier").row(0, named=True)
    assert (row["low"], row["high"], row["adjusted"]) == (d.interval.low, d.interval.high, d.adjusted)
    assert (row["better"] in text) if row["better"] else True
    out = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert out["differences"][2]["interval"] == [d.interval.low, d.interval.high]
    many = cal.compare_models(y, {f"m{i}": np.clip(a + i / 100, 0, 1) for i in range(8)}, scores=(), **FAST)
    assert many.measures == ("calibration_error", "squared_calibration_error", "accuracy")
    assert "of 28 pairs do not differ" in str(many)


def test_repeatable():
    y, a, b, _ = two()
    one, other = (cal.compare_models(y, {"a": a, "b": b}, n_resamples=50, random_state=3).to_dict() for _ in range(2))
    assert one == other
    assert cal.compare_models(y, {"a": a, "b": b}, n_resamples=50, random_state=4).to_dict() != one


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y_probs": {"a": [0.2] * 6}}, ValueError, "at least two models"),
        (
            {"y_probs": [[0.2] * 6, [0.3] * 6]},
            TypeError,
            "y_probs must map names to probabilities, or be a data frame with one column per model; got list",
        ),
        ({"y_probs": {"a": [0.2] * 6, "b": [0.2] * 5}}, ValueError, "model 'b': y_true and y_prob"),
        ({"y_probs": {"a": [0.2] * 6, "b": [1.2] * 6}}, ValueError, "model 'b'"),
        ({"y_probs": {"a": [0.2] * 6, "b": [[0.2, 0.8]] * 6}}, ValueError, "probabilities of the same shape"),
        ({"groups": [1, 2, 3]}, ValueError, r"groups must have one value per row \(6\)"),
        ({"groups": [1, 2, 3, np.nan, 4, 5]}, ValueError, "row 3 is NaN"),
        ({"groups": np.array(["a", "b", None, "c", "d", "e"], dtype=object)}, ValueError, "row 2 is None"),
        ({"groups": [1] * 6}, ValueError, "groups must name at least 2 groups"),
        ({"reference": "c"}, ValueError, "reference must be one of 'a', 'b'; got 'c'"),
        ({"adjust": "fdr"}, ValueError, "adjust must be one of"),
        ({"level": 1.0}, ValueError, "level must lie strictly between 0 and 1"),
        ({"level": None}, ValueError, "level must lie strictly between 0 and 1; got None"),
        ({"n_resamples": 1}, ValueError, "n_resamples must be an int >= 2"),
        ({"scores": "brier"}, TypeError, "scores must be a sequence"),
        ({"scores": ("bries",)}, ValueError, "score must be a scoring rule or one of"),
        ({"notion": "canonical"}, ValueError, "cannot be compared by the notion 'canonical'"),
        ({"notion": cal.notions.Classwise("max")}, ValueError, "a maximum over classes has no standard error"),
        ({"scores": None}, TypeError, "scores must be a sequence, such as .*; got None"),
        ({"scores": 5}, TypeError, "scores must be a sequence, such as .*; got 5"),
        ({"scores": (["brier"],)}, TypeError, "scores must be names or scoring rules; got"),
        ({"groups": [{"a": 1}] * 6}, TypeError, "groups must hold hashable values"),
        ({"random_state": "x"}, TypeError, "random_state must be None, an int .*; got 'x'"),
        ({"random_state": -1}, ValueError, "random_state must be None, an int .*; got -1"),
        ({"estimator": "ece"}, ValueError, "estimator must be"),
    ],
)
def test_bad_input_is_refused(change, error, message):
    given = {"y_true": [0, 1, 0, 1, 1, 0], "y_probs": {"a": [0.2, 0.3, 0.4, 0.6, 0.7, 0.8], "b": [0.5] * 6}} | change
    with pytest.raises(error, match=message):
        cal.compare_models(given.pop("y_true"), given.pop("y_probs"), **given)


def test_classes_must_agree():
    y, p, q = three_classes()
    names = np.array(["cat", "dog", "owl"])[y]
    frames = {"p": pl.DataFrame(p, schema=["cat", "dog", "owl"]), "q": pl.DataFrame(q, schema=["cat", "dog", "owl"])}
    four = pl.DataFrame(np.c_[q, np.zeros(len(q))], schema=["cat", "dog", "owl", "emu"])
    with pytest.raises(ValueError, match="must have the same classes"):
        cal.compare_models(names, frames | {"r": four}, **FAST)


def test_predictions_stand_for_labels_and_probabilities():
    y, p, q = three_classes()
    w = np.arange(300) % 3
    names = np.array(["cat", "dog", "owl"])
    want = cal.compare_models(names[y], {"p": p, "q": q}, sample_weight=w, **FAST).to_dict()
    judged = {"p": cal.as_predictions(names[y], p, sample_weight=w)}
    # Classes of the second model come in another order.
    judged["q"] = cal.as_predictions(names[y], q[:, [2, 0, 1]], labels=["owl", "cat", "dog"], sample_weight=w)
    assert cal.compare_models(judged, **FAST).to_dict() == want
    assert cal.compare_models(None, judged, **FAST).to_dict() == want


def test_logits_follow_the_order_of_classes():
    y, p, q = three_classes()
    logits = {"p": cal.as_predictions(y, np.log(p), from_logits=True)}
    logits["q"] = cal.as_predictions(y, np.log(q[:, [2, 0, 1]]), labels=[2, 0, 1], from_logits=True)
    found, want = cal.compare_models(logits, **FAST), cal.compare_models(y, {"p": p, "q": q}, **FAST)
    for one, other in zip(found.models, want.models, strict=True):
        assert one.measures == pytest.approx(other.measures, abs=1e-9)


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        ({"y": slice(None, -1)}, ValueError, "'a' and 'b' differ in their number of rows"),
        ({"flip": True}, ValueError, "'a' and 'b' differ in their labels"),
        ({"sample_weight": np.arange(6)}, ValueError, "'a' and 'b' differ in their sample_weight"),
        ({"pos_label": "no", "labels": ["no", "yes"]}, ValueError, "'a' and 'b' differ in their pos_label"),
        ({"names": ["no", "maybe"]}, ValueError, "must have the same classes"),
    ],
)
def test_predictions_must_be_of_the_same_rows(other, error, message):
    y, s = np.array([0, 1, 0, 1, 1, 0]), np.array([0.2, 0.3, 0.4, 0.6, 0.7, 0.8])
    rows = other.pop("y", slice(None))
    names = np.array(other.pop("names", ["no", "yes"]))
    truth = names[1 - y if other.pop("flip", False) else y]
    one = cal.as_predictions(np.array(["no", "yes"])[y], s, pos_label="yes")
    two = cal.as_predictions(truth[rows], s[rows], **({"pos_label": names[1]} | other))
    with pytest.raises(error, match=message):
        cal.compare_models({"a": one, "b": two}, **FAST)


def test_arrays_and_predictions_are_not_mixed():
    y, a, b, _ = two()
    judged = cal.as_predictions(y, a)
    for given, message in (
        ((y, {"a": judged, "b": judged}), "y_true must not be given"),
        ((y, {"a": judged, "b": b}), "all be Predictions or all be arrays; 'b' is an array"),
        ((None, {"a": a, "b": b}), "y_true must be given"),
        ((y,), "or be a data frame with one column per model; got NoneType"),
    ):
        with pytest.raises(TypeError, match=message):
            cal.compare_models(*given, **FAST)


@pytest.mark.parametrize("notion", ["auto", "classwise"])
def test_isotonic_fits_do_not_grow_with_resamples_and_absent_classes(monkeypatch, notion):
    """Fits of all classes and resamples are laid end to end: calls go with the cells, not with their number."""
    calls, cells = [], []
    fit = parts.isotonic_means

    def counted(positive, weight, level=0.0):
        calls.append(1)
        cells.append(len(weight))
        return fit(positive, weight, level)

    monkeypatch.setattr(parts, "isotonic_means", counted)
    rng = np.random.default_rng(0)
    n, k = 30, 200
    probs = {name: rng.dirichlet(np.full(k, 0.3), n) for name in "ab"}
    y = rng.integers(0, 12, n)  # few of the classes come
    options = {"labels": range(k), "notion": notion, "estimator": cal.Binned(3), "random_state": 0}
    cal.compare_models(y, probs, n_resamples=100, **options)
    came, models = len(np.unique(y)), 2
    # Resamples of each model, once all rows, and 100 draws of two maps of each class, which take five fits themselves.
    assert sum(cells) <= models * came * n * (100 + 1 + 200)
    assert len(calls) <= models * (2 + sum(cells) // parts._TOGETHER + 5 * came)


def test_a_summary_says_what_scores_say_otherwise():
    """A constant base rate is calibrated, and useless: the sentence may not end with the calibration."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    y = rng.random(2000) < 1 / (1 + np.exp(-2 * z))
    sharp, base = 1 / (1 + np.exp(-4 * z)), np.full(2000, y.mean())
    found = cal.compare_models(y, {"base": base, "sharp": sharp}, n_resamples=100)
    calibrated = "base is better calibrated than sharp (calibration error, 2,000 rows)."
    assert found.summary == f"{calibrated} By the Brier score, sharp is better than base."
    alone = cal.compare_models(y, {"base": base, "sharp": sharp}, scores=[], n_resamples=100)
    assert alone.summary == calibrated
    flat = 1 / (1 + np.exp(-z))
    agree = cal.compare_models(y, {"good": 1 / (1 + np.exp(-2 * z)), "flat": flat}, n_resamples=100)
    assert agree.summary == "good is better calibrated than flat (calibration error, 2,000 rows)."
