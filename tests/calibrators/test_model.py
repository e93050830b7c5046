"""Whole models, the choice of a calibrator, and decisions."""

import numpy as np
import polars as pl
import pytest
import sklearn
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from calibrant import calibrators as c
from calibrant.decisions import decide, optimal_threshold, optimism_corrected, shift_prior

from .table import several, two


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)


def loss(p, y):
    return -np.log(p[np.arange(len(y)), y].clip(1e-12)).mean()


@pytest.mark.parametrize("settings", [{}, {"ensemble": False}, {"cv": "holdout"}, {"cv": StratifiedKFold(3)}], ids=str)
@pytest.mark.parametrize("calibrator", ["auto", c.BetaCalibration(), c.TemperatureScaling()], ids=str)
def test_repairs_naive_bayes(cancer, settings, calibrator):
    X, X_test, y, y_test = cancer
    model = c.CalibratedModel(GaussianNB(), calibrator, **settings).fit(X, y)
    assert loss(model.predict_proba(X_test), y_test) < 0.6 * loss(GaussianNB().fit(X, y).predict_proba(X_test), y_test)
    assert model.score(X_test, y_test) > 0.88
    assert len(model.pairs_) == {"{}": 5}.get(
        str(settings), 3 if "cv" in settings and settings["cv"] != "holdout" else 1
    )


def test_prefit_and_by_hand(cancer):
    X, X_test, y, _ = cancer
    model = GaussianNB().fit(X[:150], y[:150])
    fitted = c.CalibratedModel(model, c.PlattScaling(), cv="prefit").fit(X[150:], y[150:])
    by_hand = c.PlattScaling().fit(model.predict_proba(X[150:]), y[150:])
    np.testing.assert_array_equal(fitted.predict_proba(X_test), by_hand.predict_proba(model.predict_proba(X_test)))
    frozen = c.CalibratedModel(FrozenEstimator(model), c.PlattScaling(), cv="prefit").fit(X[150:], y[150:])
    np.testing.assert_array_equal(frozen.predict_proba(X_test), fitted.predict_proba(X_test))


class ByColumn(ClassifierMixin, BaseEstimator):
    """A classifier that asks a frame of Polars for a column, and for nothing else."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X["a"].to_numpy(), X["a"].to_numpy()])


@pytest.mark.parametrize("calibrator", ["platt", "segments"])
def test_a_frame_of_polars_is_not_warned_of(calibrator):
    """By us: scikit-learn before 1.9 asks it for rows and names by a protocol that Polars deprecates."""
    p, y, _ = two(300, 0, 0.5)
    X, weights = pl.DataFrame({"a": p, "b": p**2}), np.linspace(0.5, 1.5, 300)
    found = c.CalibratedModel(ByColumn(), calibrator, cv=3).fit(X, y, sample_weight=weights).predict_proba(X)
    assert found.shape == (300, 2)
    assert 0 <= optimism_corrected(ByColumn(), X, y, n_resamples=2).apparent["ici"] <= 1


def test_folds_by_hand(cancer):
    X, X_test, y, _ = cancer
    split = list(StratifiedKFold(4).split(X, y))
    each = []
    out = np.empty((len(y), 2))
    for train, test in split:
        model = GaussianNB().fit(X[train], y[train])
        out[test] = model.predict_proba(X[test])
        one = c.BetaCalibration().fit(model.predict_proba(X[test]), y[test])
        each.append(one.predict_proba(model.predict_proba(X_test)))
    fitted = c.CalibratedModel(GaussianNB(), c.BetaCalibration(), cv=4).fit(X, y)
    np.testing.assert_allclose(fitted.predict_proba(X_test), np.mean(each, axis=0), atol=1e-12)
    single = c.CalibratedModel(GaussianNB(), c.BetaCalibration(), cv=4, ensemble=False).fit(X, y)
    by_hand = c.BetaCalibration().fit(out, y).predict_proba(GaussianNB().fit(X, y).predict_proba(X_test))
    np.testing.assert_allclose(single.predict_proba(X_test), by_hand, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_folds_of_the_default_are_averaged_sharply(k):
    """Half of the mean, half of the geometric mean; one alone is as it is."""
    X, y = make_classification(400, 6, n_informative=5, n_redundant=0, n_classes=k, random_state=0)
    fitted = c.CalibratedModel(RandomForestClassifier(10, random_state=0), cv=4).fit(X, y)
    each = np.array([one.predict_proba(model.predict_proba(X)) for model, one in fitted.pairs_])
    sharp = np.exp(np.log(np.maximum(each, 1e-12)).mean(axis=0))
    sharp /= sharp.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X), (each.mean(axis=0) + sharp) / 2, atol=1e-12)
    held = c.CalibratedModel(RandomForestClassifier(10, random_state=0), cv="holdout").fit(X, y)
    ((model, one),) = held.pairs_
    np.testing.assert_array_equal(held.predict_proba(X), one.predict_proba(model.predict_proba(X)))


class Given(ClassifierMixin, BaseEstimator):
    """A model whose probabilities are its features."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        X = np.asarray(X)
        return np.column_stack([1 - X[:, 0], X[:, 0]]) if X.shape[1] == 1 else X


def test_folds_of_venn_abers_by_hand():
    """Vovk, Petej & Fedorova (2015): geometric means of p1 and of 1 - p0; each fold has four rows."""
    s, y = np.array([0.1, 0.2, 0.3, 0.4, 0.15, 0.25, 0.35, 0.45]), np.array([0, 0, 1, 1, 0, 1, 0, 1])
    folds = [(np.arange(4, 8), np.arange(4)), (np.arange(4), np.arange(4, 8))]
    fitted = c.CalibratedModel(Given(), c.VennAbers(), cv=folds).fit(s[:, None], y)
    # 0.28 between its neighbours. First fold 0 0 . 1 1: p0 = 0, p1 = 1. Second 0 1 . 0 1: with 0 the pool 1 0 0,
    # p0 = 1/3; with 1 the pool 1 1 0, p1 = 2/3.
    up, down = np.sqrt(1 * 2 / 3), np.sqrt(1 * 2 / 3)
    assert fitted.predict_proba([[0.28]])[0, 1] == pytest.approx(up / (up + down))
    # 0.5 above all: 0 0 1 1 . has p0 = 2/3, p1 = 1; 0 1 0 1 . has p0 = 1/2 (of the pool 1 0 1 0), p1 = 1.
    up, down = 1.0, np.sqrt(1 / 3 * 1 / 2)
    got = fitted.predict_proba([[0.5]])[0, 1]
    assert got == pytest.approx(up / (up + down))
    assert abs(got - np.mean([one.predict_proba([[0.5, 0.5]])[0, 1] for _, one in fitted.pairs_])) > 1e-3
    # The one calibrator of all folds, for scores of one model, follows the same rule.
    both = [[0.72, 0.28], [0.5, 0.5]]
    np.testing.assert_allclose(fitted.calibrator_.predict_proba(both), fitted.predict_proba([[0.28], [0.5]]))


@pytest.mark.parametrize("shared", [False, True])
def test_folds_of_venn_abers_of_several_classes(shared):
    p, y, _ = several(300, 3, 0, 0.5)
    fitted = c.CalibratedModel(Given(), c.OneVsRest(c.VennAbers(), shared=shared), cv=3).fit(p, y)
    each = np.empty((300, 3))
    for k in range(3):
        ends = [one.calibrators_[0 if shared else k].predict_interval(p[:, k]) for _, one in fitted.pairs_]
        up = np.prod([e[:, 1] for e in ends], axis=0) ** (1 / 3)
        down = np.prod([1 - e[:, 0] for e in ends], axis=0) ** (1 / 3)
        each[:, k] = up / (up + down)
    np.testing.assert_allclose(fitted.predict_proba(p), each / each.sum(axis=1, keepdims=True), atol=1e-8)
    binary = c.CalibratedModel(Given(), c.OneVsRest(c.VennAbers()), cv=3).fit(p[:, :1] / 2, (y == 0).astype(int))
    plain = c.CalibratedModel(Given(), c.VennAbers(), cv=3).fit(p[:, :1] / 2, (y == 0).astype(int))
    np.testing.assert_allclose(binary.predict_proba(p[:, :1]), plain.predict_proba(p[:, :1]))


def test_margins_of_a_model_without_probabilities(cancer):
    X, X_test, y, y_test = cancer
    names = np.array(["bad", "good"])
    svc = make_pipeline(StandardScaler(), LinearSVC())
    model = c.CalibratedModel(svc, c.PlattScaling()).fit(X, names[y])
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.pairs_[0][1].input == "margin"
    assert loss(model.predict_proba(X_test), y_test) < 0.15
    assert set(model.predict(X_test)) == {"bad", "good"}
    automatic = c.CalibratedModel(svc).fit(X, y)
    assert "identity" not in {row["name"] for row in automatic.pairs_[0][1].table_}
    several_classes = c.CalibratedModel(make_pipeline(StandardScaler(), LinearSVC()), c.IsotonicCalibrator())
    X, y = load_iris(return_X_y=True)
    p = several_classes.fit(X, y).predict_proba(X)
    assert isinstance(several_classes.pairs_[0][1], c.OneVsRest)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_within_pipelines_and_searches(cancer):
    X, X_test, y, y_test = cancer
    pipeline = make_pipeline(StandardScaler(), c.CalibratedModel(GaussianNB(), c.PlattScaling(), cv=3))
    assert pipeline.fit(X, y).score(X_test, y_test) > 0.9
    grid = {"calibrator": [c.PlattScaling(), c.IsotonicCalibrator()], "estimator__var_smoothing": [1e-9, 1e-3]}
    search = GridSearchCV(c.CalibratedModel(GaussianNB(), c.PlattScaling(), cv=3), grid, scoring="neg_log_loss", cv=3)
    assert np.isfinite(search.fit(X, y).best_score_)
    assert "calibrator" in search.best_params_


def test_weights_reach_both(cancer):
    X, X_test, y, _ = cancer
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    plain = c.CalibratedModel(GaussianNB(), c.PlattScaling(), cv=3).fit(X, y)
    weighted = c.CalibratedModel(GaussianNB(), c.PlattScaling(), cv=3).fit(X, y, sample_weight=w)
    train, test = next(iter(StratifiedKFold(3).split(X, y)))
    model = GaussianNB().fit(X[train], y[train], sample_weight=w[train])
    one = c.PlattScaling().fit(model.predict_proba(X[test]), y[test], sample_weight=w[test])
    assert weighted.pairs_[0][1].coef_ == pytest.approx(one.coef_)
    assert weighted.pairs_[0][1].coef_ != plain.pairs_[0][1].coef_
    with sklearn.config_context(enable_metadata_routing=True):
        asks = GaussianNB().set_fit_request(sample_weight=True)
        routed = c.CalibratedModel(asks, c.PlattScaling(), cv=3).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(routed.predict_proba(X_test), weighted.predict_proba(X_test))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"calibrator": 3}, TypeError, "calibrator must be 'auto', 'segments', a calibrator"),
        ({"cv": "five"}, ValueError, "cv must be an int, a splitter"),
        ({"response": "logits"}, ValueError, "response must be one of"),
        ({"ensemble": 1}, TypeError, "ensemble must be"),
    ],
)
def test_bad_settings(settings, error, words):
    with pytest.raises(error, match=words):
        c.CalibratedModel(GaussianNB(), **settings).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.filterwarnings(
    "ignore::calibrant.exceptions.ConvergenceWarning", "ignore::UserWarning", "ignore::FutureWarning"
)
@pytest.mark.parametrize(
    "model",
    [
        c.CalibratedModel(LogisticRegression(C=1), c.PlattScaling(), cv=2),
        pytest.param(
            c.CalibratedModel(LogisticRegression(C=1), c.TemperatureScaling(), cv=2, ensemble=False),
            marks=pytest.mark.slow,
        ),
        pytest.param(c.CalibratedModel(LinearSVC(), c.OneVsRest(c.PlattScaling()), cv=2), marks=pytest.mark.slow),
    ],
    ids=["probabilities", "one-calibrator", "margins"],
)
def test_scikit_learn_checks(model):
    """All of scikit-learn's checks of a classifier, but for those named."""
    reasons = {
        # Folds are rows: repeating them makes other folds (so says scikit-learn of its own).
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        # One row cannot be two folds, and one class no classes: said in our words.
        "check_classifiers_one_label_sample_weights",
        "check_fit2d_1sample",
    }
    found = check_estimator(model, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in found if r["status"] == "failed"}
    assert not set(failed) - reasons, failed
    assert sum(r["status"] == "passed" for r in found) > 50


@pytest.mark.slow
def test_the_choice_leaves_calibrated_models_alone():
    chosen = [c.select_calibrator(*two(1500, seed)[:2]).name for seed in range(12)]
    assert chosen.count("identity") >= 10
    assert c.select_calibrator(*several(2000, 3)[:2]).name == "identity"


def test_the_choice_finds_what_is_wrong():
    s, y, _ = two(4000, 0, 0.5)
    assert c.select_calibrator(s, y).name in ("temperature", "ensemble-temperature")
    shifted = expit(logit(s) + 1.5)
    assert c.select_calibrator(shifted, y).name == "platt"
    wavy = (s + 0.25 * np.sin(4 * np.pi * s) / 2).clip(0, 1)
    labels = (np.random.default_rng(0).random(4000) < wavy).astype(int)
    assert c.select_calibrator(s, labels).name in ("spline", "isotonic")


def test_the_table_of_a_choice():
    s, y, _ = two(900, 1, 0.6)
    candidates = {"none": c.Identity(), "platt": c.PlattScaling(), "isotonic": c.IsotonicCalibrator()}
    found = c.select_calibrator(s, y, candidates=candidates, cv=3, nested=True)
    assert [row["name"] for row in found.table] == list(candidates)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(s, y))
    by_hand = {}
    for name, one in candidates.items():
        rows = np.empty(len(y))
        for train, test in folds:
            p = clone(one).fit(s[train], y[train]).predict_proba(s[test])
            rows[test] = -np.log(p[np.arange(len(test)), y[test]].clip(1e-6))
        by_hand[name] = rows
    best = min(by_hand, key=lambda name: by_hand[name].mean())
    for row in found.table:
        gap = by_hand[row["name"]] - by_hand[best]
        assert row["loss"] == pytest.approx(by_hand[row["name"]].mean())
        assert row["se"] == pytest.approx(gap.std() / np.sqrt(len(y)))
        assert row["chosen"] == (row["name"] == found.name)
    least = min(row["loss"] for row in found.table)
    assert least - 0.02 < found.nested_loss < least + 0.05
    assert np.isnan(c.select_calibrator(s, y, candidates=candidates, cv=3).nested_loss)
    sharpest = c.select_calibrator(s, y, candidates=candidates, cv=3, rule="best")
    assert sharpest.name == best
    brier = c.select_calibrator(s, y, candidates=candidates, cv=3, goal="brier")
    assert 0 < brier.table[0]["loss"] < 1


def test_the_choice_is_an_estimator():
    s, y, _ = several(1200, 3, 0, 0.5)
    fitted = c.AutoCalibrator().fit(s, y)
    np.testing.assert_array_equal(fitted.predict_proba(s), fitted.calibrator_.predict_proba(s))
    assert fitted.chosen_ in c.default_candidates(3)
    assert loss(fitted.predict_proba(s), y) < loss(s, y)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"cv": 1}, ValueError, "cv must be an int >= 2"),
        ({"goal": "ece"}, ValueError, "goal must be one of"),
        ({"rule": "worst"}, ValueError, "rule must be one of"),
        ({"candidates": {}}, TypeError, "candidates must be a mapping"),
        ({"candidates": {"a": 1}}, TypeError, "'a' is 1"),
    ],
)
def test_bad_choices(arguments, error, words):
    s, y, _ = two(40)
    with pytest.raises(error, match=words):
        c.select_calibrator(s, y, **arguments)


def test_margins_cannot_be_left_alone():
    with pytest.raises(ValueError, match="margins are not probabilities"):
        c.Identity(input="margin").fit([1.0, 2.0], [0, 1])


def test_thresholds_and_decisions():
    assert optimal_threshold(1, 1) == 0.5
    assert optimal_threshold(0, 1) == 0.0
    rng = np.random.default_rng(0)
    p = rng.random(200)
    costs = np.array([[0.0, 3.0], [1.0, 0.0]])  # a false positive costs 3, a false negative 1
    np.testing.assert_array_equal(decide(p, costs), (p > optimal_threshold(3, 1)).astype(int))
    # The threshold for unshifted probabilities decides as the plain one does for shifted ones.
    t = optimal_threshold(3, 1, prior_shift=(0.4, 0.05))
    np.testing.assert_array_equal(p >= t, shift_prior(p, 0.4, 0.05) >= optimal_threshold(3, 1))
    P = rng.dirichlet([1, 1, 1], 50)
    old, new = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.25, 0.25])
    shifted = shift_prior(P, old, new)
    np.testing.assert_allclose(shift_prior(shifted, new, old), P)
    by_hand = P * new / old
    np.testing.assert_allclose(shifted, by_hand / by_hand.sum(axis=1, keepdims=True))


def test_a_shifted_prior_by_simulation():
    """Rows of the positive class are thinned out: shifted probabilities are calibrated again."""
    s, y, _ = two(400_000, 0)
    keep = (y == 0) | (np.random.default_rng(1).random(len(y)) < 0.2)
    rate, thinned = y.mean(), y[keep].mean()
    p = shift_prior(s[keep], rate, thinned)
    for low in (0.1, 0.4, 0.7):
        here = (p > low) & (p <= low + 0.2)
        assert abs(p[here].mean() - y[keep][here].mean()) < 5 * 0.5 / np.sqrt(here.sum())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: optimal_threshold(-1, 1), "cost_fp"),
        (lambda: optimal_threshold(0, 0), "both be 0"),
        (lambda: optimal_threshold(1, 1, prior_shift=(0, 0.5)), "base rates"),
        (lambda: shift_prior([0.5], 0.5, 1.0), "new must lie strictly between 0 and 1"),
        (lambda: shift_prior([[0.5, 0.5]], [0.5, 0.5], [0.9, 0.2]), "2 base rates above 0 that sum to 1"),
        (lambda: shift_prior([1.5], 0.5, 0.1), "y_prob must lie in .0, 1.; row 0 is 1.5"),
        (lambda: decide([[0.5, 0.6]], [[0, 1], [1, 0]]), "sum to 1"),
        (lambda: decide([[0.5, 0.5]], [[0, 1]]), "a row for each of 2 classes"),
    ],
)
def test_bad_decisions(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_heavier_models():
    X, y = load_breast_cancer(return_X_y=True)
    model = c.CalibratedModel(RandomForestClassifier(20, random_state=0), cv="holdout").fit(X, y)
    assert model.n_features_in_ == 30
    assert np.isfinite(loss(model.predict_proba(X), y))
    sgd = c.CalibratedModel(make_pipeline(StandardScaler(), SGDClassifier(random_state=0)), c.SplineCalibrator(), cv=3)
    assert sgd.fit(X, y).score(X, y) > 0.9
