"""`CalibratedModel` in the place of scikit-learn's `CalibratedClassifierCV`."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import calibrators as c

#: The isotonic map of scikit-learn, whose pieces of one class are exactly 0 or 1.
PUBLISHED = c.IsotonicCalibrator(clip=None)


@pytest.fixture(scope="module")
def rows():
    """Features, labels and groups of five rows that share most of their features and their label."""
    X, y = make_classification(120, 6, random_state=0)
    groups = np.repeat(np.arange(120), 5)
    return X[groups] + 0.01 * np.random.default_rng(0).normal(size=(600, 6)), y[groups], groups


class Spy(GaussianNB):
    """Keeps the groups that it was fitted to, which are its last feature."""

    def fit(self, X, y, sample_weight=None):
        self.groups_ = set(np.unique(X[:, -1]).tolist())
        return super().fit(X[:, :-1], y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(X[:, :-1])


@pytest.mark.parametrize("routing", [False, True], ids=["plain", "routing"])
@pytest.mark.parametrize("cv", [3, "holdout", GroupKFold(3), StratifiedGroupKFold(3)], ids=str)
def test_groups_reach_the_folds(rows, cv, routing):
    X, y, groups = rows
    seen = []
    with sklearn.config_context(enable_metadata_routing=routing):
        model = c.CalibratedModel(Spy(), "platt", cv=cv).fit(np.column_stack([X, groups]), y, groups=groups)
    for one, _ in model.pairs_:
        held = set(groups.tolist()) - one.groups_
        assert held  # each group is all in or all out of each fold
        seen.append(held)
    assert sum(map(len, seen)) == (120 if cv != "holdout" else 30)


@pytest.mark.parametrize("cv", [GroupKFold(3), StratifiedGroupKFold(3)], ids=str)
def test_groups_and_weights_are_routed_within_scores(rows, cv):
    """As in scikit-learn: the same folds, models, and (isotonic) maps."""
    X, y, groups = rows
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    given = {"groups": groups, "sample_weight": weight}
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        ours = c.CalibratedModel(inner, PUBLISHED, cv=cv, response="decision_function")
        ours.set_fit_request(sample_weight=True)
        theirs = CalibratedClassifierCV(inner, method="isotonic", cv=cv).set_fit_request(sample_weight=True)
        brier = get_scorer("neg_brier_score").set_score_request(sample_weight=True)
        scores = [cross_val_score(one, X, y, cv=GroupKFold(3), scoring=brier, params=given) for one in (ours, theirs)]
        np.testing.assert_allclose(*scores, rtol=1e-10)


def test_a_splitter_of_its_own_has_what_it_requests(rows):
    X, y, _ = rows
    asked = {}

    class Splitter(KFold):
        __metadata_request__split = {"sample_weight": True}

        def split(self, X, y=None, groups=None, sample_weight=None):
            asked["weight"] = sample_weight
            return super().split(X, y)

        def get_metadata_routing(self):
            from sklearn.utils.metadata_routing import MetadataRequest

            request = MetadataRequest(owner="Splitter")
            request.split.add_request(param="sample_weight", alias=True)
            return request

    weight = np.arange(1.0, len(y) + 1)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        c.CalibratedModel(inner, "platt", cv=Splitter(3)).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(asked["weight"], weight)


@pytest.mark.parametrize("cv", [5, "holdout", StratifiedKFold(3)], ids=str)
def test_a_frozen_model_is_prefit(cv):
    """One calibrator on all rows, as in scikit-learn."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_new, y, _ = train_test_split(X, y, random_state=0)
    frozen = FrozenEstimator(make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:150], y[:150]))
    ours = c.CalibratedModel(frozen, PUBLISHED, cv=cv, response="decision_function").fit(X[150:], y[150:])
    theirs = CalibratedClassifierCV(frozen, method="isotonic").fit(X[150:], y[150:])
    np.testing.assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new), atol=1e-12)
    assert len(ours.pairs_) == 1
    with pytest.raises(ValueError, match="y must contain only classes of the fitted model"):
        c.CalibratedModel(frozen, "isotonic").fit(X[150:], y[150:] + 1)


def test_a_frozen_model_may_know_more_classes_than_the_rows():
    X, y = load_iris(return_X_y=True)
    frozen = FrozenEstimator(LogisticRegression(max_iter=500).fit(X, y))
    model = c.CalibratedModel(frozen, c.TemperatureScaling()).fit(X[:100], y[:100])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (150, 3)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_a_class_that_a_fold_lacks_is_passed_over(ensemble, method):
    """Folds by site; class 3 is at one site only: the models of the other site never saw it."""
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, n_classes=4, random_state=0)
    site = np.where(y == 3, 0, np.arange(300) % 3)
    folds = list(GroupKFold(3).split(X, y, site))
    assert any(3 not in y[train] for train, _ in folds)
    assert any(3 not in y[test] for _, test in folds)
    sigmoid = c.OneVsRest(c.PlattScaling(shrinkage=0))
    model = c.CalibratedModel(
        LogisticRegression(),
        sigmoid if method == "sigmoid" else c.OneVsRest(PUBLISHED),
        cv=folds,
        ensemble=ensemble,
        response="decision_function",
    )
    p = model.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    if ensemble:
        theirs = CalibratedClassifierCV(LogisticRegression(), method=method, cv=folds).fit(X, y)
        np.testing.assert_allclose(p, theirs.predict_proba(X), atol=1e-9 if method == "isotonic" else 1e-3)
        for (one, _), pair in zip(model.pairs_, theirs.calibrated_classifiers_, strict=True):
            assert one.classes_.tolist() == pair.estimator.classes_.tolist()


@pytest.mark.parametrize("calibrator", ["auto", "temperature", "vector", "isotonic", "venn-abers"])
@pytest.mark.parametrize("model", [GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())], ids=["p", "z"])
def test_any_calibrator_passes_a_class_over(calibrator, model):
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, n_classes=4, random_state=0)
    site = np.where(y == 3, 0, np.arange(300) % 3)
    response = "auto" if isinstance(model, GaussianNB) else "decision_function"
    fitted = c.CalibratedModel(model, calibrator, cv=GroupKFold(3), response=response).fit(X, y, groups=site)
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert fitted.score(X, y) > 0.5
    lacking = [one for one, _ in fitted.pairs_ if 3 not in one.classes_]
    assert len(lacking) == 1
    assert p[:, 3].max() <= 2 / 3 + 1e-12


def test_a_fold_of_nothing_but_an_unknown_class_is_refused():
    X, y = np.arange(12.0)[:, None], np.array([0] * 6 + [1] * 5 + [2])
    with pytest.raises(ValueError, match="cv must give every fold rows of classes that are in other folds"):
        c.CalibratedModel(GaussianNB(), c.TemperatureScaling(), cv=[(np.arange(11), [11])]).fit(X, y)


def test_the_default_is_scikit_learns():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = c.CalibratedModel(calibrator=PUBLISHED, cv=None).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(ours, CalibratedClassifierCV(method="isotonic").fit(X, y).predict_proba(X), atol=1e-12)
    weight = np.arange(1.0, len(y) + 1)
    with sklearn.config_context(enable_metadata_routing=True):
        assert c.CalibratedModel().fit(X, y, sample_weight=weight).score(X, y) > 0.9


@pytest.mark.slow
def test_jobs_make_no_difference():
    X, y = load_breast_cancer(return_X_y=True)
    one, two = (c.CalibratedModel(GaussianNB(), "beta", n_jobs=n).fit(X, y).predict_proba(X) for n in (None, 2))
    np.testing.assert_array_equal(one, two)
    with pytest.raises(TypeError, match="n_jobs must be an int"):
        c.CalibratedModel(GaussianNB(), n_jobs=1.5).fit(X, y)


class Named(BaseEstimator):
    """Fails unless its features have names."""

    def fit(self, X, y):
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        assert list(X.columns) == ["a", "b", "c"]
        return self.inner_.predict_proba(X)


def test_frames_in_and_out():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = pd.DataFrame(rng.normal(size=(200, 3)) + y[:, None], columns=list("abc"), index=np.arange(200) + 7)
    labels = np.array(["no", "yes"])[y]
    whole = make_pipeline(StandardScaler(), c.CalibratedModel(Named(), "platt")).set_output(transform="pandas")
    out = whole.fit(X, labels).transform(X)
    assert list(out.columns) == ["probability_no", "probability_yes"]
    assert list(out.index) == list(X.index)
    np.testing.assert_array_equal(out.to_numpy(), whole.predict_proba(X))
    alone = clone(c.CalibratedModel(GaussianNB(), "platt")).set_output(transform="polars").fit(X, labels)
    assert alone.transform(X).columns == ["probability_no", "probability_yes"]


def test_labels_that_scikit_learn_has_encoded_are_named_in_the_error():
    """cross_val_predict passes 0 and 1 in place of names, which columns are named after."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = np.where(rng.random(200) < p, "stayed", "churned")
    frame = pd.DataFrame({"churned": 1 - p, "stayed": p})
    with pytest.raises(ValueError, match="or values without names if scikit-learn has encoded the labels"):
        cross_val_predict(c.TemperatureScaling(), frame, y, cv=3, method="predict_proba")
    found = cross_val_predict(c.TemperatureScaling(), frame.to_numpy(), y, cv=3, method="predict_proba")
    assert found.shape == (200, 2)
    with pytest.raises(ValueError) as caught:
        c.TemperatureScaling().fit(frame, np.where(y == "stayed", "left", "churned"))
    assert "encoded" not in str(caught.value)
