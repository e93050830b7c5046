"""Rows with several labels: every verb gives what a loop over two-class calls gives, and others refuse them."""

import json
import re

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.notions import ClassSpecific, Multilabel
from calibrant.reporting.html import views_of

N, L = 600, 4
NAMES = ["cat", "dog", "fox", "owl"]


def drawn(seed=0, n=N, k=L):
    """Labels that depend on each other, of scores that are right for the first and not for the others."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(size=(n, k)) + rng.normal(size=(n, 1)))))
    happened = rng.random((n, 1)) < p ** (1 + np.arange(k) / 2)
    assert (happened.sum(axis=1) != 1).any()
    return happened, p


Y, P = drawn()
WEIGHTS = {
    "none": None,
    "whole": np.random.default_rng(1).integers(0, 4, N),
    "relative": np.random.default_rng(2).random(N),
}
ESTIMATORS = [
    cal.Binned(),
    cal.Binned(10, "quantile"),
    cal.Binned(15, debias=True),
    cal.EmpiricalBayes(),
    cal.estimators.Density(),
    cal.estimators.Isotonic(),
    cal.estimators.CrossFit(),
]


def loop(verb, y=Y, p=P, **options):
    """The naive second implementation: label by label."""
    return [verb(y[:, k], p[:, k], **options) for k in range(p.shape[1])]


def combined(errors, shares, norm):
    errors = np.asarray(errors)
    return errors.max() if np.isinf(norm) else (np.asarray(shares) @ np.maximum(errors, 0) ** norm) ** (1 / norm)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_the_error_is_that_of_two_class_calls(estimator, weights):
    w = WEIGHTS[weights]
    support = np.average(Y, axis=0, weights=w)
    for norm in (1, 2) if not isinstance(estimator, cal.estimators.CrossFit) else (1,):
        about = {"estimator": estimator, "norm": norm, "sample_weight": w}
        each = loop(cal.calibration_error, **about)
        found = cal.calibration_error(Y, P, notion="multilabel", **about)
        assert found == pytest.approx(combined(each, [1 / L] * L, norm) if norm > 1 else np.mean(each), abs=1e-12)
        found = cal.calibration_error(Y, P, notion=Multilabel("weighted"), **about)
        wanted = combined(each, support / support.sum(), norm) if norm > 1 else np.average(each, weights=support)
        assert found == pytest.approx(wanted, abs=1e-12)
        flat = cal.calibration_error(
            Y.T.reshape(-1),
            P.T.reshape(-1),
            estimator=estimator,
            norm=norm,
            sample_weight=None if w is None else np.tile(w, L),
            groups=np.tile(np.arange(N), L),
        )
        if not isinstance(estimator, cal.estimators.CrossFit):  # whose folds are of rows
            assert cal.calibration_error(Y, P, notion="multilabel:micro", **about) == pytest.approx(flat, abs=1e-12)


def per_label_numbers(y, p, labels, **options):
    """What verbs say of each label, by one call for all."""
    made = cal.report(y, p, notion="multilabel", **options)
    rows = {row.label: row for row in made.per_class}
    curves = cal.reliability_curve(y, p, notion="multilabel", estimator="binned", **options)
    sums = cal.Accumulator(notion="multilabel", labels=labels)
    w = options.get("sample_weight")
    for a in range(0, len(y), 200):
        sums.update(y[a : a + 200], p[a : a + 200], None if w is None else w[a : a + 200])
    kept = cal.Accumulator.from_bytes(sums.to_bytes()).estimate(cal.Binned()).per_class
    estimated = cal.estimate(y, p, notion="multilabel", estimator=cal.Binned(), **options).per_class
    for k in labels:
        yield [rows[k].ece, rows[k].base_rate, rows[k].mean_prob, kept[k], estimated[k], *curves[k].observed]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_each_label_is_a_two_class_problem_in_every_verb(weights):
    w = WEIGHTS[weights]
    options = {} if w is None else {"sample_weight": w}
    found = list(per_label_numbers(Y, P, range(L), **options))
    for k, numbers in enumerate(found):
        y, p = Y[:, k], P[:, k]
        error = cal.calibration_error(y, p, estimator=cal.Binned(), **options)
        curve = cal.reliability_curve(y, p, estimator="binned", **options)
        rate, stated = np.average(y, weights=w), np.average(p, weights=w)
        np.testing.assert_allclose(numbers, [error, rate, stated, error, error, *curve.observed], rtol=0, atol=1e-12)


@pytest.mark.parametrize("verb", [cal.brier_score, cal.log_loss, cal.scores.mean_score], ids=lambda v: v.__name__)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_scores_are_means_over_labels(verb, weights):
    options = {"sample_weight": WEIGHTS[weights]} | ({"score": "spherical"} if verb is cal.scores.mean_score else {})
    assert verb(Y, P, **options) == pytest.approx(np.mean(loop(verb, **options)), abs=1e-12)


def test_a_report_has_the_means_of_its_labels():
    whole, each = cal.report(Y, P), loop(cal.report)
    for name in ("accuracy", "brier", "log_loss"):
        assert getattr(whole, name) == pytest.approx(np.mean([getattr(r, name) for r in each]), abs=1e-12)
    assert whole.notion == "multilabel"
    assert "labels     4" in str(whole)
    assert "the mean over labels" in str(whole)
    assert {row.label for row in whole.per_class if row.significant} >= {3}
    assert "labels are miscalibrated" in whole.verdict
    json.dumps(whole.to_dict())


def words_of(y, p, **options):
    """All that is said of labels, or of classes."""
    made = cal.report(y, p, **options)
    curves = cal.reliability_curve(y, p, **options)
    curves = list(curves.values()) if isinstance(curves, dict) else [curves]
    drawn = cal.ReliabilityDisplay.from_predictions(y, p, **options)
    axes = [text for ax in np.ravel(drawn.figure_.axes) for text in (ax.get_title(), ax.get_xlabel())]
    return [
        *(str(made), made.summary, made.to_html().partition("<script")[0]),
        *([view["name"] for view in views_of(made)] + [view["x"] for view in views_of(made)]),
        *(row.summary for row in made.per_class),
        *(text for curve in curves for text in (curve.summary, str(curve))),
        *axes,
    ]


@pytest.mark.parametrize(("notion", "names"), [("multilabel:weighted", None), ("multilabel:micro", NAMES)])
def test_labels_are_called_labels(notion, names):
    y = Y if names is None else pl.DataFrame(Y, schema=names)
    said = words_of(y, P, notion=notion)
    assert not [text for text in said if re.search(r"\bclass(es)?\b(?![-=])", text, re.IGNORECASE) and "<" not in text]
    text = " ".join(said)
    wanted = "label 3" if names is None else "label owl"
    assert wanted in text
    assert wanted.capitalize() in text
    assert "Hamming loss" in said[0]
    assert "compare_calibrators" not in text  # which needs one label per row
    page = said[2]
    assert "Labels, worst first" in page
    assert "mean over labels" in page
    assert not re.search(r">[^<]*\bclass(es)?\b", page.partition("<body")[2], re.IGNORECASE)


def test_classes_are_called_classes():
    classes = np.random.default_rng(3).integers(0, L, N)
    said = words_of(classes, P / P.sum(axis=1, keepdims=True), notion="classwise")
    assert any("Class 3 is" in text for text in said)
    assert not [text for text in said if re.search(r"label \d", text)]


def test_the_accuracy_is_one_less_the_hamming_loss():
    from sklearn.metrics import hamming_loss

    for w in WEIGHTS.values():
        found = cal.report(Y, P, sample_weight=w).accuracy
        assert found == pytest.approx(1 - hamming_loss(Y, P > 0.5, sample_weight=w), abs=1e-12)


def test_pages_and_pictures_show_every_label():
    page = cal.report(Y, P).to_html()
    assert "4 labels" in page
    assert page.count("Label 3") >= 1
    drawn = cal.ReliabilityDisplay.from_predictions(Y, P, notion="multilabel")
    assert len([ax for ax in np.ravel(drawn.figure_.axes) if ax.get_title()]) >= L


def test_two_labels_are_two_questions():
    """Two classes mirror each other; two labels do not."""
    made = cal.report(Y[:, 2:], P[:, 2:])
    assert len(made.per_class) == 2
    assert "two classes" not in str(made)
    both = cal.estimate(Y[:, 2:], P[:, 2:], estimator=cal.Binned())
    assert both.value == pytest.approx(np.mean(list(both.per_class.values())), abs=1e-12)


def test_errors_of_labels_are_not_bounded_as_those_of_classes():
    """The classes of a row cannot all be wrong at once; labels can."""
    y, p = np.ones((100, 5)), np.full((100, 5), 1e-3)
    for found in (
        cal.calibration_error(y, p, estimator="binned"),
        cal.estimate(y, p, estimator="binned").value,
        cal.Accumulator().update(y, p).calibration_error(estimator="binned"),
    ):
        assert found == pytest.approx(0.999)
    assert cal.estimate(y, p, estimator="binned").interval.high > 0.99


def test_one_label_is_asked_by_name():
    frame = pl.DataFrame(Y.astype(int), schema=NAMES)
    for k, name in enumerate(NAMES):
        asked = {"notion": ClassSpecific(name), "random_state": 3}
        found = cal.calibration_test(frame, P, n_resamples=99, **asked)
        assert found.pvalue == cal.calibration_test(Y[:, k], P[:, k], n_resamples=99, random_state=3).pvalue
        one = cal.estimate(frame, P, **asked)
        assert one.value == pytest.approx(cal.estimate(Y[:, k], P[:, k], random_state=3).value, abs=1e-12)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]])
def test_labels_have_the_names_of_columns(order):
    truth = pl.DataFrame(Y, schema=NAMES)
    probs = pl.DataFrame(P[:, order], schema=[f"p_{NAMES[i]}" for i in order])
    wanted = cal.estimate(Y, P, labels=NAMES).per_class
    assert cal.estimate(truth, probs).per_class == pytest.approx(wanted, abs=1e-12)
    assert sorted(cal.estimate(Y.astype(int).tolist(), P).per_class) == list(range(L))


def test_only_rows_that_are_not_one_hot_are_taken_for_several_labels():
    hot, p = np.eye(3)[[0, 1, 2, 1, 0, 2, 2]], np.full((7, 3), 1 / 3)
    classes = cal.as_predictions(hot, p)
    assert not classes.several
    assert classes.codes.tolist() == [0, 1, 2, 1, 0, 2, 2]
    labels = cal.as_predictions(hot, p * 2, multilabel=True)
    assert labels.several
    assert labels.truth.dtype == bool
    # What the notion asks for need not be guessed.
    each = loop(cal.calibration_error, hot, p * 2, estimator=cal.Binned())
    assert cal.calibration_error(hot, p * 2, notion="multilabel", estimator="binned") == pytest.approx(np.mean(each))
    sums = cal.Accumulator(notion="multilabel").update(hot, p * 2)
    assert sums.calibration_error(estimator="binned") == pytest.approx(np.mean(each))
    assert cal.as_predictions(1 - hot, p * 2).several
    logits = np.log(P / (1 - P))
    np.testing.assert_allclose(cal.as_predictions(Y, logits, from_logits=True).probs, P, rtol=1e-12)


def test_groups_widen_the_intervals_of_labels():
    groups = np.arange(N) // 20
    each = loop(cal.estimate, groups=groups, estimator=cal.Binned())
    whole = cal.estimate(Y, P, groups=groups, estimator=cal.Binned())
    assert list(whole.per_class.values()) == pytest.approx([e.value for e in each], abs=1e-12)
    micro = Multilabel("micro").reduce(cal.as_predictions(Y, P))
    assert 1.2 < micro.designs[0] <= L  # labels of a row are alike here
    alone = Multilabel("micro").reduce(cal.as_predictions(*[v[:, :1].repeat(2, axis=1) for v in (Y, P)]))
    assert alone.designs[0] == pytest.approx(2, rel=0.02)  # a label and its copy are one


def test_e_values_of_labels_average():
    found = cal.significance.evalue_test(Y, P, notion="multilabel", order="given")
    each = loop(cal.significance.evalue_test, order="given")
    assert len(each) == L
    assert np.isfinite(found.statistic)


NEEDS_ONE_LABEL = {
    "canonical": lambda: cal.calibration_error(Y, P, notion="canonical"),
    "confidence": lambda: cal.calibration_error(Y, P, notion="confidence"),
    "top-label": lambda: cal.calibration_error(Y, P, notion="top-label"),
    "kernel_test": lambda: cal.significance.kernel_test(Y, P),
    "adaptive_test": lambda: cal.significance.adaptive_test(Y, P),
    "a score as statistic": lambda: cal.calibration_test(Y, P, estimator="brier"),
    "decompose": lambda: cal.decompose(Y, P),
    "compare_calibrators": lambda: cal.compare_calibrators(Y, P),
    "TemperatureScaling": lambda: cal.calibrators.TemperatureScaling().fit(P, Y),
}


@pytest.mark.parametrize("verb", NEEDS_ONE_LABEL)
def test_what_needs_one_label_per_row_says_so(verb):
    with pytest.raises(ValueError, match=r"one label"):
        NEEDS_ONE_LABEL[verb]()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((Y[:, 0], P[:, 0], {"notion": "multilabel"}), "y_true and y_prob must be 2-D"),
        ((Y[:, :3], P, {}), "y_true has 3 columns"),
        ((Y, P * 1.5, {}), "y_prob must lie in [0, 1]"),
        ((Y + 0.5, P, {}), "y_true must be 1-D"),
        ((Y, P, {"pos_label": 1}), "pos_label is for one label per row"),
        ((Y, P, {"labels": ["a", "b"]}), "labels must name one label per column"),
        ((Y, P, {"notion": "classwise"}), "use 'multilabel'"),
        ((Y, P, {"notion": "multilabel:most"}), "notion must be one of"),
        ((cal.as_predictions(Y[:, 0], P[:, 0]), None, {"notion": "multilabel"}), "needs y_true and y_prob of shape"),
    ],
)
def test_bad_rows_are_refused(given, text):
    y, p, options = given
    with pytest.raises(ValueError) as error:
        cal.calibration_error(y, p, **options)
    assert text in str(error.value)


def test_sums_of_labels_and_of_classes_do_not_mix():
    sums = cal.Accumulator().update(Y, P)
    hot = np.eye(L)[np.arange(N) % L]
    with pytest.raises(ValueError, match="must have equal notions"):
        sums + cal.Accumulator().update(hot, hot)
    one = ClassSpecific(1)
    with pytest.raises(ValueError, match=r"several labels.*got True and False"):
        cal.Accumulator(notion=one).update(Y, P) + cal.Accumulator(notion=one).update(hot, hot)
    again = sums.update(hot, P)  # settled: these are labels, too
    assert again.several
    assert again.n_samples == 2 * N


@pytest.mark.slow
def test_the_test_of_labels_that_are_copies_keeps_its_level():
    """Drawn one by one, copies of a label would seem to agree by chance far too rarely."""
    rejected, sims = 0, 150
    for seed in range(sims):
        rng = np.random.default_rng(seed)
        p = np.repeat(rng.random((200, 1)), 6, axis=1)
        y = np.repeat(rng.random((200, 1)) < p[:, :1], 6, axis=1)
        rejected += cal.calibration_test(y, p, n_resamples=199, random_state=seed).pvalue <= 0.05
    assert rejected / sims < 0.05 + 3 * np.sqrt(0.05 * 0.95 / sims)
