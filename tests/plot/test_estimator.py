"""`from_estimator` chooses scores and labels as scikit-learn's displays do."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import calibrant as cal

Display = cal.ReliabilityDisplay


def fitted(k=2, names=None):
    X, y = make_classification(300, n_informative=4, n_classes=k, random_state=0)
    if names is not None:
        y = np.array(names)[y]
    return LogisticRegression(max_iter=500).fit(X[:150], y[:150]), X[150:], y[150:]


def same(a, b):
    assert a.estimate.value == b.estimate.value
    assert a.estimate.interval == b.estimate.interval
    assert len(a.diagrams) == len(b.diagrams)
    for x, z in zip(a.diagrams, b.diagrams, strict=True):
        assert x.label == z.label
        np.testing.assert_array_equal(x.curve.observed, z.curve.observed)
        np.testing.assert_array_equal(x.bins.count, z.bins.count)


@pytest.mark.parametrize("pos_label", [None, "no", "yes"])
def test_binary_with_string_labels(pos_label):
    model, X, y = fitted(names=["no", "yes"])
    column = 0 if pos_label == "no" else 1
    a = Display.from_estimator(model, X, y, pos_label=pos_label, random_state=0, n_resamples=30)
    b = Display.from_predictions(
        y, model.predict_proba(X)[:, column], pos_label=pos_label or "yes", random_state=0, n_resamples=30
    )
    same(a, b)
    assert a.name == "LogisticRegression"
    assert a.ax_.get_xlabel() == f"Predicted probability of {pos_label or 'yes'}"


@pytest.mark.parametrize("notion", ["auto", "classwise", "confidence", "top-label", cal.notions.ClassSpecific("c")])
def test_multiclass(notion):
    model, X, y = fitted(3, ["a", "b", "c"])
    a = Display.from_estimator(model, X, y, notion=notion, random_state=0, n_resamples=30, name="m")
    b = Display.from_predictions(y, model.predict_proba(X), notion=notion, random_state=0, n_resamples=30)
    same(a, b)
    assert a.name == "m"


def test_classes_missing_from_the_test_data():
    model, X, y = fitted(3, ["a", "b", "c"])
    rows = y != "b"
    shown = Display.from_estimator(model, X[rows], y[rows], notion="classwise", n_resamples=30)
    assert set(shown.classes) == {"a", "b", "c"}


def test_bad_estimators():
    model, X, y = fitted(names=["no", "yes"])
    with pytest.raises(ValueError, match="pos_label must be one of"):
        Display.from_estimator(model, X, y, pos_label="maybe")
    with pytest.raises(ValueError, match="pos_label is for one class"):
        Display.from_estimator(model, X, y, pos_label="yes", notion="classwise")
    with pytest.raises(TypeError, match="predict_proba"):
        Display.from_estimator(LinearSVC().fit(X, y), X, y)
    with pytest.raises(TypeError, match="fitted"):
        Display.from_estimator(LogisticRegression(), X, y)
