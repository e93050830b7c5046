"""Arguments and names that users of scikit-learn, MLflow and skops type already."""

import pickle
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

import calibrant as cal
from calibrant.adapters import scorers


def rows(n=500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("n_bins", [None, 3, 5, 10])
def test_the_curve_is_that_of_calibration_display(n_bins):
    y, p = rows()
    given = {"strategy": "uniform"} if n_bins is None else {"n_bins": n_bins}
    curve = cal.ReliabilityDisplay.from_predictions(y, p, **given).diagrams[0].curve
    observed, scores = calibration_curve(y, p, n_bins=n_bins or 5)
    np.testing.assert_allclose(curve.observed, observed, atol=1e-12)
    np.testing.assert_allclose(curve.scores, scores, atol=1e-12)
    plt.close("all")


def test_bins_of_equal_mass_differ_by_a_row_at_most():
    y, p = rows()
    curve = cal.ReliabilityDisplay.from_predictions(y, p, n_bins=7, strategy="quantile").diagrams[0].curve
    assert np.ptp(curve.count) <= 1
    _, theirs = calibration_curve(y, p, n_bins=7, strategy="quantile")
    np.testing.assert_allclose(curve.scores, theirs, atol=0.01)
    plt.close("all")


@pytest.mark.parametrize("shown", [True, False])
def test_the_diagonal_may_be_left_out(shown):
    y, p = rows()
    model = LogisticRegression().fit(p[:, None], y)
    display = cal.ReliabilityDisplay.from_estimator(model, p[:, None], y, n_bins=5, ref_line=shown, name="mine")
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()] if display.figure_.legends else []
    texts += [text.get_text() for text in display.ax_.get_legend().get_texts()] if display.ax_.get_legend() else []
    assert any("mine" in text for text in texts)
    assert ("perfect calibration" in texts) == shown
    plt.close("all")


def test_what_contradicts_is_refused():
    y, p = rows(50)
    with pytest.raises(ValueError, match="n_bins and strategy must not be given together with curve"):
        cal.ReliabilityDisplay.from_predictions(y, p, n_bins=5, curve="isotonic")
    with pytest.raises(TypeError, match="ref_line must be True or False"):
        cal.ReliabilityDisplay.from_predictions(y, p, ref_line="no")
    with pytest.raises(ValueError, match="strategy"):
        cal.ReliabilityDisplay.from_predictions(y, p, strategy="kmeans")
    plt.close("all")


def test_scalars_are_what_a_store_of_metrics_takes():
    rng = np.random.default_rng(0)
    labels = ["a b", "a/b", "ü", "a_b"]
    p = rng.dirichlet(np.ones(4), 400)
    y = np.array(labels)[rng.integers(0, 4, 400)]
    report = cal.report(y, p, labels=labels)
    found = report.scalars()
    assert all(type(v) is float and np.isfinite(v) for v in found.values())
    assert all(re.fullmatch(r"[A-Za-z0-9_./-]+", name) for name in found)  # MLflow's rule, without spaces
    assert found["calibration_error"] == report.headline.value
    assert found["calibration_error_low"] == report.headline.interval.low
    errors = [v for name, v in found.items() if name.startswith("class/") and name.endswith("/calibration_error")]
    assert sorted(errors) == sorted(row.ece for row in report.per_class)  # none takes the place of another
    lost = cal.report([0, 1] * 20, [1.0, 0.0] * 20)
    assert "log_loss" not in lost.scalars()


def test_scorers():
    y, p = rows()
    X, given = p[:, None], scorers()
    search = GridSearchCV(LogisticRegression(), {"C": [1e-3, 1.0]}, scoring=given, refit="neg_calibration_error")
    search.fit(X, y)
    functions = (cal.calibration_error, cal.expected_calibration_error, cal.squared_calibration_error)
    for name, function in zip(given, functions, strict=True):
        scores = []
        for train, test in StratifiedKFold(5).split(X, y):
            q = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
            scores.append(-function(y[test], q[:, 1]))
        assert search.cv_results_[f"mean_test_{name}"][1] == pytest.approx(np.mean(scores), abs=1e-12)


def test_a_calibrated_model_is_saved_by_skops():
    io = pytest.importorskip("skops.io")
    y, p = rows()
    X = np.column_stack([p, p**2])
    model = cal.CalibratedModel(LogisticRegression(), calibrator="beta").fit(X, y)
    data = io.dumps(model)
    untrusted = io.get_untrusted_types(data=data)
    assert all(name.startswith(("calibrant.", "numpy.")) for name in untrusted)
    again = io.loads(data, trusted=untrusted)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_scorers_of_named_labels():
    y, p = rows()
    X, named = p[:, None], np.array(["stayed", "churned"])[y]
    for options in ({}, {"pos_label": "churned"}, {"pos_label": "stayed"}):
        one = scorers(**options)["neg_calibration_error"]
        found = cross_val_score(LogisticRegression(), X, named, scoring=one, error_score="raise")
        positive = options.get("pos_label", "stayed")
        want = cross_val_score(
            LogisticRegression(), X, (named == positive).astype(int), scoring=scorers()["neg_calibration_error"]
        )
        np.testing.assert_allclose(found, want, atol=1e-9)
    again = pickle.loads(pickle.dumps(scorers()))
    assert again.keys() == scorers().keys()


def test_a_scorer_of_a_fold_with_one_label():
    y, p = rows()
    X, named = p[:, None], np.array(["no", "yes"])[y]
    fitted = LogisticRegression().fit(X, named)
    one = scorers(labels=["no", "yes"])["neg_calibration_error"]
    found = one(fitted, X[y == 1], named[y == 1])
    assert found == pytest.approx(
        -cal.calibration_error(y[y == 1], fitted.predict_proba(X[y == 1])[:, 1], labels=[0, 1])
    )
