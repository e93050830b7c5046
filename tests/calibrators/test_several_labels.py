"""Calibrators of rows with several labels: one for each label, as if fitted to its column."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

import calibrant as cal
from calibrant.calibrators import (
    BetaCalibration,
    CalibratedModel,
    HistogramBinning,
    IsotonicCalibrator,
    OneVsRest,
    PlattScaling,
    from_dict,
    to_dict,
)

RNG = np.random.default_rng(0)
P = RNG.random((900, 4))
Y = (RNG.random(P.shape) < P ** np.array([0.5, 1, 1.5, 2])).astype(int)
X, TAGS = make_multilabel_classification(1500, 20, n_classes=4, random_state=0)
HALF = slice(0, 750), slice(750, None)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
@pytest.mark.parametrize("one", [BetaCalibration(), IsotonicCalibrator(), HistogramBinning(), PlattScaling()], ids=repr)
def test_each_label_is_calibrated_as_by_itself(one, kind, k):
    scores = P[:, :k] if kind == "probability" else np.log(P[:, :k] / (1 - P[:, :k]))
    if not isinstance(one, (IsotonicCalibrator, PlattScaling)) and kind != "probability":
        pytest.skip("of probabilities")
    y, w = Y[:, :k], RNG.integers(0, 3, len(P))
    fitted = OneVsRest(one, "none", input=kind).fit(scores, y, w)
    one.set_params(input=kind)
    each = [one.fit(scores[:, j], y[:, j], w).predict_proba(scores[:, j])[:, 1] for j in range(k)]
    found = fitted.predict_proba(scores)
    np.testing.assert_allclose(found, np.column_stack(each), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(scores), found > 0.5)
    again = from_dict(json.loads(json.dumps(to_dict(fitted))))
    np.testing.assert_array_equal(again.predict_proba(scores), found)


def test_labels_have_names_and_a_refit_forgets_them():
    names = ["a", "b", "c", "d"]
    fitted = OneVsRest("platt", "none", labels=names).fit(P, Y)
    assert fitted.classes_.tolist() == names
    simplex = P / P.sum(axis=1, keepdims=True)
    fitted.set_params(labels=None).fit(simplex, Y.argmax(axis=1))
    assert not hasattr(fitted, "several_")
    assert fitted.prior_.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "model",
    [
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        RandomForestClassifier(30, max_depth=6, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_model_of_several_labels_is_calibrated_label_by_label(model):
    train, test = HALF
    fitted = model.fit(X[train], TAGS[train])
    whole = CalibratedModel(fitted, "isotonic", cv="prefit").fit(X[test], TAGS[test])
    found = fitted.predict_proba(X[test])
    scores = np.column_stack([p[:, 1] for p in found]) if isinstance(found, list) else found
    each = [
        IsotonicCalibrator().fit(scores[:, k], TAGS[test][:, k]).predict_proba(scores[:, k])[:, 1] for k in range(4)
    ]
    np.testing.assert_allclose(whole.predict_proba(X[test]), np.column_stack(each), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(whole.predict(X[test]), whole.predict_proba(X[test]) > 0.5)
    assert whole.prior_ == pytest.approx(TAGS[test].mean(axis=0))
    with pytest.raises(ValueError, match="several labels"):
        whole.with_prior([0.5] * 4)


@pytest.mark.parametrize("options", [{"cv": 3}, {"cv": "holdout"}, {"cv": 3, "ensemble": False}], ids=repr)
@pytest.mark.parametrize("groups", [None, np.arange(750) // 5], ids=["rows", "groups"])
def test_folds_repair_a_forest(options, groups):
    train, test = HALF
    model = RandomForestClassifier(25, max_depth=4, random_state=0)
    about = {} if groups is None else {"groups": groups}
    repaired = CalibratedModel(model, **options).fit(X[train], TAGS[train], **about)
    p = repaired.predict_proba(X[test])
    assert p.shape == (750, 4)
    plain = np.column_stack([q[:, 1] for q in model.fit(X[train], TAGS[train]).predict_proba(X[test])])
    assert cal.brier_score(TAGS[test], p) < cal.brier_score(TAGS[test], plain) + 0.01
    np.testing.assert_allclose(repaired.calibrator_.predict_proba(plain).shape, p.shape)


def test_others_need_one_label_per_row():
    with pytest.raises(ValueError, match="one label"):
        OneVsRest("platt").fit(P, Y)
    with pytest.raises(TypeError, match="must be a binary calibrator"):
        CalibratedModel(MultiOutputClassifier(LogisticRegression()), cal.TemperatureScaling(), cv=3).fit(X, TAGS)
