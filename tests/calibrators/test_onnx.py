"""Calibrators as ONNX graphs, held against onnxruntime."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from calibrant import calibrators as c

from .table import ROWS, several, two

onnxruntime = pytest.importorskip("onnxruntime")
#: Where maps have their ends: scores that are exactly 0, 1 or on an edge, or beyond all that were seen.
ENDS = {"probability": [0, 1, 1e-300, 1e-13, 1 - 1e-13, 0.5, 0.25], "logit": [-800, 800, -40, 40, 0, 0.25, -0.5]}


def run(fitted, *given):
    session = onnxruntime.InferenceSession(c.to_onnx(fitted).SerializeToString())
    return session.run(
        ["label", "probabilities"], dict(zip((i.name for i in session.get_inputs()), given, strict=True))
    )


def scores_of(k, kind, columns):
    """Scores and labels to fit, and new scores with ends."""
    s, y, _ = two(400, 1, 0.6) if k == 2 else several(400, k, 1, 0.6)
    new = two(300, 2)[0] if k == 2 else several(300, k, 2)[0]
    ends = np.array(ENDS.get(kind, ENDS["logit"]), dtype=float)
    if k == 2 and kind != "probability":
        s, new = (np.log(p / (1 - p)) for p in (s, new))
    elif kind != "probability":
        s, new = np.log(s), np.log(new)
    if columns > 1:
        last = np.zeros((len(ends), k))
        last[:, 0], last[:, 1] = ends, 1 - ends if kind == "probability" else 0
        ends = last
    if k == 2 and columns == 2:
        s, new = (np.column_stack([1 - v if kind == "probability" else 0 * v, v]) for v in (s, new))
    return s, y, np.concatenate([new, s, ends])


@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
@pytest.mark.parametrize(
    ("row", "k", "columns"),
    [(row, 2, 2 if row.many else 1) for row in ROWS] + [(row, 4, 4) for row in ROWS if row.many],
    ids=lambda v: str(v)[:60],
)
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
def test_every_map(row, k, columns, kind):
    s, y, new = scores_of(k, kind, columns)
    fitted = clone(row.calibrator).set_params(input=kind)
    if kind == "margin" and isinstance(fitted, (c.Identity, c.EndSmoothing)):
        pytest.skip("margins have no identity")
    fitted.fit(s, y)
    label, p = run(fitted, new.reshape(len(new), -1))
    np.testing.assert_allclose(p, fitted.predict_proba(new), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(label, fitted.predict(new))


def test_rows_of_single_precision_differ_by_what_their_sums_do_from_1():
    """`EndSmoothing` divides rows with an end by their sum; its graph takes the sum of the scores for 1."""
    s, y, _ = several(400, 4, 1, 0.6)
    s = np.where(s < 0.05, 0, s)
    s = (s / s.sum(axis=1, keepdims=True)).astype(np.float32).astype(float)
    off = np.abs(s.sum(axis=1) - 1).max()
    for one in (c.EndSmoothing(), c.AutoCalibrator(), c.SegmentCalibrator(), c.TemperatureScaling()):
        one.fit(s, y)
        np.testing.assert_allclose(run(one, s)[1], one.predict_proba(s), rtol=0, atol=2 * off)


def test_labels_in_any_order_and_of_any_kind():
    p, y, _ = several(200, 3, 0, 0.5)
    for names in (["b", "a", "c"], [2, 0, 1], [5.0, -1.0, 2.0]):
        fitted = c.VectorScaling(labels=names).fit(p, np.array(names)[y])
        label, found = run(fitted, p)
        np.testing.assert_allclose(found, fitted.predict_proba(p), atol=1e-9)
        assert label.tolist() == fitted.predict(p).tolist()


def test_the_default_and_mixtures_of_folds():
    s, y, _ = two(500, 0, 0.5)
    fitted = c.AutoCalibrator().fit(s, y)
    np.testing.assert_allclose(run(fitted, s[:, None])[1], fitted.predict_proba(s), atol=1e-9)


def test_subgroups_are_an_input():
    s, y, _ = two(600, 0, 0.5)
    by = np.array(["north", "south", "1"])[np.arange(600) % 3]
    fitted = c.SubgroupCalibrator().fit(s, np.where(by == "south", 1 - y, y), by=by)
    new = np.array(["south", "north", "elsewhere", "1"] * 150)
    found = run(fitted, s[:, None], new[:, None].astype(object))[1]
    np.testing.assert_allclose(found, fitted.predict_proba(s, by=new), atol=1e-9)


@pytest.mark.parametrize(
    ("model", "calibrator", "settings"),
    [
        (LogisticRegression(), "auto", {}),
        (LogisticRegression(), "venn-abers", {"cv": 3}),
        (make_pipeline(StandardScaler(), GaussianNB()), c.BetaCalibration(), {"ensemble": False}),
        (make_pipeline(StandardScaler(), LinearSVC()), "platt", {"cv": 3}),
        (RandomForestClassifier(10, random_state=0), "spline", {"cv": "holdout"}),
        (GradientBoostingClassifier(n_estimators=5), "temperature", {"cv": 2}),
        (make_pipeline(StandardScaler(), LogisticRegression()), "beta", {"response": "decision_function"}),
    ],
    ids=lambda v: str(v)[:30],
)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_whole_models(model, calibrator, settings, k):
    """On new rows, whose scores are on no step: classifiers have single precision there, and so have features here."""
    pytest.importorskip("skl2onnx")
    X, y = make_classification(500, 6, n_informative=5, n_redundant=0, n_classes=k, random_state=0)
    X = X.astype(np.float32).astype(np.float64)
    fitted = c.CalibratedModel(model, calibrator, **settings).fit(X[:300], np.array(["x", "y", "z"])[y[:300]])
    label, p = run(fitted, X[300:])
    np.testing.assert_allclose(p, fitted.predict_proba(X[300:]), atol=1e-6)
    assert (label == fitted.predict(X[300:])).all()


@pytest.mark.filterwarnings("ignore")
def test_a_frozen_model():
    pytest.importorskip("skl2onnx")
    X, y = load_iris(return_X_y=True)
    frozen = FrozenEstimator(LogisticRegression(max_iter=500).fit(X, y))
    fitted = c.CalibratedModel(frozen, c.TemperatureScaling()).fit(X, y)
    rare = fitted.with_prior([0.9, 0.05, 0.05])
    for one in (fitted, rare):
        np.testing.assert_allclose(run(one, X)[1], one.predict_proba(X), atol=1e-6)
    scores = frozen.predict_proba(X)
    np.testing.assert_allclose(run(rare.calibrator_, scores)[1], rare.predict_proba(X), atol=1e-6)


def test_subgroups_within_a_model_are_refused():
    X, y = make_classification(300, 5, random_state=0)
    X[:, 0] = np.arange(300) % 2
    fitted = c.CalibratedModel(GaussianNB(), c.SubgroupCalibrator(by=0), cv="holdout").fit(X, y)
    with pytest.raises(ValueError, match="cannot read subgroups from a column of X"):
        c.to_onnx(fitted)


def test_what_is_no_calibrator_is_refused():
    with pytest.raises(TypeError, match="calibrator must be a calibrator or a CalibratedModel"):
        c.to_onnx(GaussianNB())

    class Own(c.BinaryCalibrator):
        def _fit(self, sample):
            pass

        def _map(self, scores):
            return scores.of_positive()

    with pytest.raises(TypeError, match="Own cannot be written as ONNX"):
        c.to_onnx(Own().fit([0.1, 0.9], [0, 1]))


def test_without_onnx_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ImportError, match=r'to_onnx needs onnx, which is not installed: pip install "calibrant\[onnx\]"'
    ):
        c.to_onnx(c.PlattScaling().fit([0.1, 0.9, 0.2], [0, 1, 1]))
