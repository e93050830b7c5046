"""`SegmentCalibrator`: against a written-out likelihood, what it repairs and leaves alone, and how features come."""

import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit, log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline

import calibrant as cal
from calibrant import calibrators as c
from calibrant.calibrators import segment_offsets
from calibrant.calibrators.inputs import read_sample

from ..versions import READS_BY_PROTOCOL
from .table import several, two


def tenants(n, seed, k=2, size=1.2):
    """Rows whose logits of class 1 are moved in a segment, and a little in all; their features and the truth."""
    rng = np.random.default_rng(seed)
    age, region = rng.integers(18, 90, n), rng.choice(["north", "south", "west"], n)
    p = several(n, k, seed)[0]
    inside = (region == "north") & (age >= 50)
    q = np.exp(np.log(p) + np.eye(k)[1] * size * inside[:, None])
    q /= q.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return p, y, {"age": age, "region": region}, q


def loss(p, truth):
    return -(truth * np.log(p)).sum(axis=1).mean()


@pytest.mark.parametrize("k", [2, 3])
def test_offsets_are_the_mode_of_the_likelihood_that_is_written_out(k, monkeypatch):
    """With one spread: another optimiser, in the coordinates of all K classes."""
    monkeypatch.setattr(segment_offsets, "_SPREADS", np.array([0.7]))
    p, y, X, _ = tenants(400, 0, k)
    w = np.random.default_rng(1).integers(1, 4, 400)
    sample = read_sample(c.Identity(), p, y, w)
    inside = np.column_stack([X["age"] >= 50, X["region"] == "north", np.ones(400)]).astype(float)
    rows = segment_offsets.RepairRows(p, sample, np.zeros((0, 400)))
    found = segment_offsets.fit_offsets(rows, inside)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12)

    def objective(x):
        x = x.reshape(3, k)
        off = x - x.mean(axis=1, keepdims=True)  # the rest is held by its own penalty
        mean = (w[:, None] * np.eye(k)[y] * log_softmax(np.log(p) + inside @ off, axis=1)).sum()
        return (x**2).sum() / 0.7**2 / 2 - mean

    want = minimize(objective, np.zeros(3 * k), method="BFGS", options={"gtol": 1e-6}).x.reshape(3, k)
    np.testing.assert_allclose(found, want - want.mean(axis=1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_finds_and_repairs_a_segment(k, tmp_path):
    p, y, X, _ = tenants(6000, 1, k)
    new, _, there, truth = tenants(6000, 2, k)
    fitted = c.SegmentCalibrator(c.Identity()).fit(p, y, features=X)
    assert "region is north" in fitted.segments_[0]
    assert "age ≥" in fitted.segments_[0]
    assert fitted.weight_ > 0.9
    assert fitted.offsets_[0].argmax() == 1
    repaired = fitted.predict_proba(new, features=there)
    assert loss(repaired, truth) - loss(truth, truth) < 0.25 * (loss(new, truth) - loss(truth, truth))
    np.testing.assert_array_equal(fitted.predict(new, there), repaired.argmax(axis=1))
    c.save_calibrator(fitted, tmp_path / "one.json")
    again = c.load_calibrator(tmp_path / "one.json")
    np.testing.assert_array_equal(again.predict_proba(new, features=there), repaired)
    assert again.segments_ == fitted.segments_
    html = fitted._repr_mimebundle_()["text/html"]
    assert "age ≥" in html


def test_leaves_alone_what_has_no_segments():
    changed = []
    for seed in range(6):
        p, y, X, truth = tenants(3000, seed, size=0.0)
        fitted = c.SegmentCalibrator(c.Identity()).fit(p, y, features=X)
        changed.append(loss(fitted.predict_proba(p, features=X), truth) / loss(truth, truth) - 1)
    assert max(changed) < 0.001


def test_of_few_or_rare_rows_the_common_map_remains():
    s, y, _ = two(60, 3)
    fitted = c.SegmentCalibrator("platt").fit(s, y, features={"x": np.arange(60) % 7})
    assert (fitted.weight_, fitted.segments_) == (0.0, [])
    np.testing.assert_array_equal(fitted.predict_proba(s), c.PlattScaling().fit(s, y).predict_proba(s))
    rare = np.full(2000, 0.005)
    fitted = c.SegmentCalibrator(c.Identity()).fit(rare, np.arange(2000) < 10, features={"x": np.arange(2000) < 10})
    assert fitted.weight_ == 0


def test_weights_are_repeats_and_rows_without_weight_are_none():
    p, y, X, _ = tenants(2500, 4, size=2.0)
    w = np.random.default_rng(0).integers(0, 3, 2500)
    one = c.SegmentCalibrator(c.Identity()).fit(p, y, w, features=X)
    used = {name: column[w > 0] for name, column in X.items()}
    other = c.SegmentCalibrator(c.Identity()).fit(p[w > 0], y[w > 0], w[w > 0], features=used)
    np.testing.assert_allclose(
        one.predict_proba(p, features=X)[w > 0], other.predict_proba(p[w > 0], features=used), atol=0.02
    )


def test_the_same_features_of_any_kind():
    p, y, X, _ = tenants(3000, 5, size=2.0)
    frame = pd.DataFrame(X)
    want = c.SegmentCalibrator(c.Identity()).fit(p, y, features=X)
    assert want.weight_ > 0
    for features in (frame, frame.assign(region=frame.region.astype("category"))):
        one = c.SegmentCalibrator(c.Identity()).fit(p, y, features=features)
        assert one.segments_ == want.segments_
        np.testing.assert_array_equal(one.predict_proba(p, features=features), want.predict_proba(p, features=X))
    np.testing.assert_array_equal(
        want.predict_proba(p[:3], features={"region": ["nowhere", None, "west"], "age": [60, np.nan, 20]}),
        want.predict_proba(p[:3], features={"region": ["west"] * 3, "age": [20] * 3}),
    )


def test_within_a_model_features_are_its_own():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=4000), "b": rng.normal(size=4000), "site": rng.integers(0, 3, 4000)})
    y = (rng.random(4000) < expit(X.a + np.where(X.site == 2, 2, 0))).astype(int)
    model = c.CalibratedModel(LogisticRegression(), "segments", cv=3, ensemble=False).fit(X[["a", "b", "site"]], y)
    one = model.pairs_[0][1]
    assert isinstance(one, c.SegmentCalibrator)
    assert one.left_out_ == {}
    p = model.predict_proba(X)
    np.testing.assert_array_equal(p, one.predict_proba(model.pairs_[0][0].predict_proba(X), features=X))
    only = c.CalibratedModel(LogisticRegression(), c.SegmentCalibrator(features=["b"]), cv="holdout").fit(X, y)
    assert {kept["name"] for kept in only.pairs_[0][1].features_} <= {"b"}
    numbers = c.CalibratedModel(LogisticRegression(), c.SegmentCalibrator(features=2), cv=3).fit(X.to_numpy(), y)
    assert numbers.predict_proba(X.to_numpy().tolist()).shape == (4000, 2)
    folds = c.CalibratedModel(LogisticRegression(), "segments", cv=3).fit(X, y, groups=np.arange(4000) // 4)
    first = folds.pairs_[0][1]
    assert first.weight_ > 0  # one repair, of the rows of all folds
    assert all(one.rules_ is first.rules_ for _, one in folds.pairs_)
    commons = [np.clip(one.common_.predict_proba(inner.predict_proba(X)), 1e-12, 1) for inner, one in folds.pairs_]
    geometric = np.exp(np.mean(np.log(commons), axis=0))
    merged = np.mean(commons, axis=0) / 2 + geometric / geometric.sum(axis=1, keepdims=True) / 2
    np.testing.assert_allclose(folds.predict_proba(X), first._moved(merged, X))


@READS_BY_PROTOCOL
def test_features_of_a_model_in_any_container():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=3000), "site": rng.integers(0, 3, 3000)})
    y = (rng.random(3000) < expit(X.a + np.where(X.site == 2, 2, 0))).astype(int)
    want = c.CalibratedModel(LogisticRegression(), "segments", cv=3).fit(X, y).predict_proba(X)
    polars = pytest.importorskip("polars").from_pandas(X)
    for given in (polars, X.to_numpy(), X.to_numpy().tolist()):
        got = c.CalibratedModel(LogisticRegression(), "segments", cv=3).fit(given, y).predict_proba(given)
        np.testing.assert_allclose(got, want, atol=1e-9)
    repeated = c.CalibratedModel(LogisticRegression(), "segments", cv=ShuffleSplit(2, random_state=0)).fit(X, y)
    assert repeated.predict_proba(X).shape == (3000, 2)
    with pytest.raises(TypeError, match="X must be dense"):
        c.CalibratedModel(LogisticRegression(), "segments", cv=3).fit(csr_matrix(X.to_numpy()), y)


def test_features_are_routed_through_pipelines():
    p, y, X, _ = tenants(1500, 6, size=2.0)
    X = pd.DataFrame(X)
    with sklearn.config_context(enable_metadata_routing=True):
        one = c.SegmentCalibrator("temperature").set_fit_request(features=True)
        pipeline = Pipeline([("repair", one.set_predict_proba_request(features=True))]).fit(p, y, features=X)
        through = pipeline.predict_proba(p, features=X)
    plain = c.SegmentCalibrator("temperature").fit(p, y, features=X)
    np.testing.assert_array_equal(through, plain.predict_proba(p, features=X))


def test_without_features_it_is_the_common_map():
    p, y, X, _ = tenants(3000, 7, size=2.0)
    fitted = c.SegmentCalibrator("temperature").fit(p, y, features=X)
    assert fitted.weight_ > 0
    with pytest.warns(cal.exceptions.CalibrantWarning, match="pass features="):
        plain = fitted.predict_proba(p)
    np.testing.assert_array_equal(plain, fitted.common_.predict_proba(p))
    assert "svg" in fitted._repr_mimebundle_()["text/html"]  # without a warning
    with pytest.raises(ValueError, match="cannot read the features of a SegmentCalibrator"):
        c.to_onnx(fitted)


@pytest.mark.parametrize(
    ("calibrator", "features", "error", "words"),
    [
        (c.SegmentCalibrator(3), None, TypeError, "calibrator must be None or a calibrator"),
        (c.SegmentCalibrator(features=True), None, TypeError, "features must be names or numbers of columns"),
        (c.SegmentCalibrator(features=[]), None, TypeError, "features must be names or numbers of columns"),
        (c.SegmentCalibrator(learner="trees"), None, ValueError, "learner must be one of 'segments', 'boosting'"),
        (c.SegmentCalibrator(max_terms=5), None, ValueError, "max_terms must be an int >= 1 and <= 4"),
        (c.SegmentCalibrator(), {"x": [1, 2, 3]}, ValueError, r"features must have one value per row \(50\)"),
        (c.SegmentCalibrator(), {}, ValueError, "features must have at least one column"),
        (c.SegmentCalibrator(), "age", TypeError, "features must be a column, several of them"),
    ],
)
def test_bad_arguments(calibrator, features, error, words):
    s, y, _ = two(50)
    with pytest.raises(error, match=words):
        calibrator.fit(s, y, features=features)


def test_bad_features_of_new_rows():
    p, y, X, _ = tenants(3000, 7, size=2.0)
    fitted = c.SegmentCalibrator("temperature").fit(p, y, features=X)
    for features, words in (
        ({"age": X["age"]}, "features must have the column 'region'"),
        ({name: column[:5] for name, column in X.items()}, r"one row per score \(3000\); got 5"),
        ({"age": X["age"], "region": [1, 2]}, "columns of equal length"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted.predict_proba(p, features=features)


def test_damaged_files_are_refused():
    p, y, X, _ = tenants(3000, 7, size=2.0)
    saved = c.to_dict(c.SegmentCalibrator("temperature").fit(p, y, features=X))
    kept = saved["fitted"]["features_"]["list"][0]["mapping"]
    for name, value, words in (
        ("rules_", {"list": []}, "does not fit"),
        (
            "rules_",
            {"list": [{"array": [[9, 0, 1]], "dtype": "int64"}] * len(saved["fitted"]["rules_"]["list"])},
            "name",
        ),
        ("features_", {"list": [{"mapping": kept | {"kind": "colour"}}]}, "kind of features_"),
        ("features_", {"list": [{"mapping": {"name": "age"}}]}, "features_ need name, kind"),
        ("booster_", "tree", "trees are not saved"),
        ("weight_", 2.0, "weight_ must be from 0 to 1"),
        ("left_out_", {"mapping": {"a": 1}}, "left_out_ must give reasons as text"),
    ):
        with pytest.raises(ValueError, match=words):
            c.from_dict(saved | {"fitted": saved["fitted"] | {name: value}})


def test_boosting_needs_lightgbm(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr("calibrant.calibrators.boosted.find_spec", lambda name: None)
    s, y, _ = two(100)
    with pytest.raises(ImportError, match=r'pip install "calibrant\[boost\]"'):
        c.SegmentCalibrator(learner="boosting").fit(s, y)


@pytest.mark.parametrize("k", [2, 3])
def test_boosting_repairs(k):
    pytest.importorskip("lightgbm")
    p, y, X, _ = tenants(6000, 1, k)
    new, _, there, truth = tenants(6000, 2, k)
    X["region"] = X["region"].astype(object)
    X["region"][::50] = None
    fitted = c.SegmentCalibrator(c.Identity(), learner="boosting").fit(p, y, features=X)
    repaired = fitted.predict_proba(new, features=there)
    assert fitted.weight_ > 0.8
    assert loss(repaired, truth) - loss(truth, truth) < 0.5 * (loss(new, truth) - loss(truth, truth))
    again = c.SegmentCalibrator(c.Identity(), learner="boosting").fit(p, y, features=X)
    np.testing.assert_array_equal(again.predict_proba(new, features=there), repaired)
    with pytest.raises(TypeError, match=r"booster_=.* cannot be saved"):
        c.to_dict(fitted)


def test_a_part_of_the_repair_is_a_part_of_the_way():
    p, y, X, _ = tenants(4000, 3)
    fitted = c.SegmentCalibrator().fit(p, y, features=X)
    common = fitted.common_.predict_proba(p)
    fitted.weight_ = 1.0
    whole = fitted.predict_proba(p, features=X)
    assert np.abs(whole - common).max() > 0.1
    fitted.weight_ = 0.25
    np.testing.assert_allclose(fitted.predict_proba(p, features=X), 0.75 * common + 0.25 * whole, atol=1e-12)
