"""Laws that every calibrator obeys; :mod:`.table` names them all."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

import calibrant as cal
from calibrant import calibrators

from ..versions import SKLEARN
from .table import BINARY, MANY, ROWS, several, two


def fresh(row, **parameters):
    return clone(row.calibrator).set_params(**parameters)


def data(row, n=400, seed=0, power=0.6):
    return several(n, 3, seed, power) if row.many else two(n, seed, power)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_probabilities(row):
    s, y, _ = data(row)
    fitted = fresh(row).fit(s, y)
    p = fitted.predict_proba(s)
    assert p.shape == (400, 3 if row.many else 2)
    assert p.dtype == np.float64
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert fitted.classes_.tolist() == sorted(set(y.tolist()))
    np.testing.assert_array_equal(fitted.predict(s), fitted.classes_[p.argmax(axis=1)])
    assert fitted.score(s, y) == np.mean(fitted.predict(s) == y)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_calibrated_model_is_left_alone(row):
    """20 000 rows of a calibrated model: the map is the identity, up to noise and steps."""
    s, y, truth = several(20_000, 3) if row.many else two(20_000)
    p = fresh(row).fit(s, y).predict_proba(s)
    gap = np.abs(p - truth) if row.many else np.abs(p[:, 1] - truth)
    assert np.quantile(gap, 0.98) < row.error


@pytest.mark.parametrize("row", [row for row in ROWS if not row.coarse], ids=str)
def test_repairs_an_overconfident_model(row):
    """Log-loss on fresh rows falls, nearly to that of the truth."""
    make = (lambda n, seed: several(n, 3, seed, 0.5)) if row.many else (lambda n, seed: two(n, seed, 0.5))
    s, y, _ = make(8000, 1)
    new, labels, truth = make(8000, 2)
    p = fresh(row).fit(s, y).predict_proba(new).clip(1e-6)
    rows = np.arange(len(labels))

    def loss(q):
        q = q if row.many else np.column_stack([1 - q, q]) if q.ndim == 1 else q
        return -np.log(q[rows, labels].clip(1e-6)).mean()

    assert loss(p) < loss(truth) + 0.35 * (loss(new) - loss(truth))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_order_of_rows_does_not_matter(row):
    s, y, _ = data(row)
    order = np.random.default_rng(3).permutation(len(y))
    one, other = fresh(row).fit(s, y), fresh(row).fit(s[order], y[order])
    np.testing.assert_allclose(one.predict_proba(s), other.predict_proba(s), atol=2e-6)


@pytest.mark.parametrize("row", [row for row in ROWS if row.repeats], ids=str)
def test_weights_are_repeats(row):
    s, y, _ = data(row, 200)
    w = np.random.default_rng(1).integers(0, 4, 200)
    weighted = fresh(row).fit(s, y, sample_weight=w).predict_proba(s)
    repeated = fresh(row).fit(np.repeat(s, w, axis=0), np.repeat(y, w)).predict_proba(s)
    np.testing.assert_allclose(weighted, repeated, atol=2e-6)


@pytest.mark.parametrize("row", MANY, ids=str)
def test_names_of_classes_do_not_matter(row):
    """Columns in another order give the same, in that order."""
    s, y, _ = data(row)
    order = np.array([2, 0, 1])
    one = fresh(row).fit(s, y).predict_proba(s)
    other = fresh(row).fit(s[:, order], np.argsort(order)[y]).predict_proba(s[:, order])
    np.testing.assert_allclose(one[:, order], other, atol=1e-6)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_any_labels(row):
    s, y, _ = data(row)
    names = np.array(["ant", "bee", "cat"])
    fitted = fresh(row).set_params(labels=None if row.many else ["ant", "bee"]).fit(s, names[y])
    assert fitted.classes_.tolist() == names[: 3 if row.many else 2].tolist()
    assert set(fitted.predict(s)) <= set(names)
    np.testing.assert_array_equal(fitted.predict_proba(s), fresh(row).fit(s, y).predict_proba(s))


@pytest.mark.parametrize("row", BINARY, ids=str)
def test_two_columns_are_one(row):
    s, y, _ = two(300, power=0.7)
    both = np.column_stack([1 - s, s])
    one, two_columns = fresh(row).fit(s, y), fresh(row).fit(both, y)
    np.testing.assert_allclose(one.predict_proba(s), two_columns.predict_proba(both), atol=1e-6)
    column = fresh(row).fit(s[:, None], y)
    np.testing.assert_array_equal(one.predict_proba(s), column.predict_proba(s[:, None]))


@pytest.mark.parametrize("row", [row for row in BINARY if row.rises], ids=str)
def test_maps_that_rise(row):
    s, y, _ = two(500, power=0.5)
    p = fresh(row).fit(s, y).predict_proba(np.linspace(0, 1, 1001))[:, 1]
    assert (np.diff(p) >= -1e-12).all()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_logits_are_probabilities(row):
    """The same map from logits as from the probabilities that they stand for."""
    s, y, _ = data(row, power=0.8)
    s = s.clip(1e-6, 1 - 1e-6) if s.ndim == 1 else (s + 1e-6) / (s + 1e-6).sum(axis=1, keepdims=True)
    logits = np.log(s) if row.many else np.log(s) - np.log1p(-s)
    one = fresh(row).fit(s, y).predict_proba(s)
    other = fresh(row, input="logit").fit(logits, y).predict_proba(logits)
    tolerance = 0.05 if isinstance(row.calibrator, calibrators.IsotonicCalibrator) else 1e-6  # lines in another scale
    np.testing.assert_allclose(one, other, atol=tolerance)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_exact_zeros_and_ones_are_finite(row):
    s, y, _ = data(row, 200)
    s = s.copy()
    if row.many:
        s[::5] = np.eye(3)[y[::5]]
        s[1::10] = np.eye(3)[(y[1::10] + 1) % 3]
    else:
        s[::5] = y[::5]
        s[1::10] = 1 - y[1::10]
    p = fresh(row).fit(s, y).predict_proba(s)
    assert np.isfinite(p).all()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_float32(row):
    s, y, _ = data(row)
    one = fresh(row).fit(s, y).predict_proba(s)
    other = fresh(row).fit(s.astype(np.float32), y).predict_proba(s.astype(np.float32))
    assert np.quantile(np.abs(one - other), 0.95) < 2e-3


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_clone_and_pickle(row):
    s, y, _ = data(row)
    fitted = fresh(row).fit(s, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(s), fitted.predict_proba(s))
    assert not [name for name in vars(clone(fitted)) if name.endswith("_")]
    assert repr(clone(fitted)) == repr(row.calibrator)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_frames(row):
    """Columns named by class are read by name, and must come again in the same order."""
    s, y, _ = data(row)
    names = np.array(["ant", "bee", "cat"] if row.many else ["ant", "bee"])
    both = s if row.many else np.column_stack([1 - s, s])
    frame = pd.DataFrame(both, columns=names)
    back = frame[names[::-1]]
    fitted = fresh(row).fit(back, names[y])
    assert fitted.feature_names_in_.tolist() == names[::-1].tolist()
    straight = fresh(row).fit(frame, names[y]).predict_proba(frame)
    got = fitted.predict_proba(back)
    position = [fitted.classes_.tolist().index(name) for name in names]
    # The mirror image of right-closed bins are left-closed ones.
    binned = isinstance(row.calibrator, (calibrators.BayesianBinning, calibrators.HistogramBinning))
    np.testing.assert_allclose(got[:, position], straight, atol=0.4 if row.coarse else 0.02 if binned else 1e-6)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict_proba(frame)


def test_output_as_frames():
    s, y, _ = several(100, 3)
    fitted = calibrators.TemperatureScaling().set_output(transform="pandas").fit(s, y)
    out = fitted.transform(s)
    assert out.columns.tolist() == ["probability_0", "probability_1", "probability_2"]
    np.testing.assert_array_equal(out.to_numpy(), fitted.predict_proba(s))


def test_weights_are_routed():
    """With routing, weights go through a pipeline to the calibrator that asks for them."""
    s, y, _ = two(200)
    w = np.random.default_rng(0).random(200)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline([("repair", calibrators.PlattScaling().set_fit_request(sample_weight=True))])
        through = pipeline.fit(s, y, sample_weight=w).predict_proba(s)
    np.testing.assert_array_equal(through, calibrators.PlattScaling().fit(s, y, sample_weight=w).predict_proba(s))


#: Checks of scikit-learn that cannot hold, and why.
ONE_D = "the check takes the tag for 1-D features, and then indexes them as 2-D"
OWN = "the check wants 1-D features refused, which are what these calibrators take"
ONE_FEATURE = "the check expects an accuracy that a single one of its features does not have"
COLUMNS = "the check's features are not a column a class: scores must be"
LABEL = "a monotone map of scores cannot predict the only label seen against them"
SEPARATED = "classes are separated by the check's scores: there is no finite optimum"


FOLDS = "the check sets cv to splits, but cv is a number of folds here"
NO_SUMS = "the check goes on from fit, which keeps no sums: partial_fit says that it must be first"


def expected(row):
    """Names of checks that fail, with reasons."""
    streams = {"check_fit_score_takes_y": NO_SUMS} if hasattr(row.calibrator, "partial_fit") else {}
    if row.many:
        streams |= dict.fromkeys(["check_n_features_in_after_fitting"] if streams else [], COLUMNS)
        out = dict.fromkeys(
            (
                "check_estimators_overwrite_params",
                "check_estimators_fit_returns_self",
                "check_readonly_memmap_input",
                "check_classifiers_classes",
                "check_classifiers_train",
                "check_estimators_unfitted",
                "check_supervised_y_2d",
                "check_estimators_partial_fit_n_features",
            ),
            COLUMNS,
        )
        out |= dict.fromkeys(("check_classifiers_one_label", "check_classifiers_one_label_sample_weights"), LABEL)
        return out | streams | {"check_sample_weight_equivalence_on_dense_data": SEPARATED}
    out = dict.fromkeys(
        (
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_dtype_object",
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
            "check_estimator_sparse_tag",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1feature",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_n_features_in_after_fitting",
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_estimators_partial_fit_n_features",
        ),
        ONE_D,
    )
    out |= {"check_fit1d": OWN, "check_classifiers_train": ONE_FEATURE}
    if SKLEARN < (1, 7) and hasattr(row.calibrator, "cv"):  # later ones ask whether sparse scores are taken
        out |= {"check_sample_weight_equivalence_on_sparse_data": FOLDS}
    return out | streams | {"check_sample_weight_equivalence_on_dense_data": COLUMNS}


def checked(calibrator, wanted):
    """Run scikit-learn's checks: none fails but those that are named; returns how many passed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        found = check_estimator(calibrator, on_fail=None, on_skip=None)
    failed = {r["check_name"] for r in found if r["status"] == "failed"}
    assert failed <= set(wanted), {r["check_name"]: r["exception"] for r in found if r["check_name"] in failed}
    return sum(r["status"] == "passed" for r in found)


#: Separated data have no optimum, and absent classes make for a warning: the checks make both on purpose.
SEPARATES = pytest.mark.filterwarnings(
    "ignore::calibrant.exceptions.ConvergenceWarning", "ignore::calibrant.exceptions.LabelWarning"
)


#: The checks' features are margins.
NO_MARGINS = (calibrators.Identity, calibrators.EndSmoothing)


@SEPARATES
@pytest.mark.parametrize("row", [r for r in ROWS if type(r.calibrator) not in NO_MARGINS], ids=str)
def test_scikit_learn_checks(row):
    assert checked(fresh(row, input="margin"), expected(row)) >= (50 if row.many else 45)


@pytest.mark.slow
@SEPARATES
@pytest.mark.parametrize("row", BINARY, ids=str)
def test_scikit_learn_checks_of_two_dimensions(row):
    """Those that a binary calibrator cannot be given it passes behind `OneVsRest`, class by class."""
    many = calibrators.OneVsRest(fresh(row), input="margin")
    assert checked(many, expected(next(r for r in MANY))) >= 50


@pytest.mark.parametrize("row", BINARY, ids=str)
def test_what_checks_of_two_dimensions_would_say(row):
    """The invariants that scikit-learn's checks could not index, on 1-D scores."""
    s, y, _ = data(row)
    one = fresh(row)
    parameters = {k: repr(v) for k, v in one.get_params().items()}
    one.fit(s, y)
    assert {k: repr(v) for k, v in one.get_params().items()} == parameters
    before = {k: repr(v) for k, v in vars(one).items()}
    p = one.predict_proba(s)
    one.predict(s)
    one.transform(s)
    assert {k: repr(v) for k, v in vars(one).items()} == before
    assert one.n_features_in_ == 1
    order = np.random.default_rng(0).permutation(len(s))
    np.testing.assert_allclose(one.predict_proba(s[order]), p[order], atol=1e-12)
    np.testing.assert_allclose(np.vstack([one.predict_proba(s[i : i + 1]) for i in range(5)]), p[:5], atol=1e-12)
    for same in (s.astype(object), list(s), s[:, None], np.asfortranarray(s[:, None]), s[::-1][::-1]):
        np.testing.assert_allclose(one.predict_proba(same), p, atol=1e-12)
        np.testing.assert_allclose(fresh(row).fit(same, y).predict_proba(s), p, atol=1e-9)
    np.testing.assert_array_equal(one.fit_transform(s, y), one.transform(s))
    with pytest.raises(ValueError, match=r"2 features, but|columns"):
        one.predict_proba(np.column_stack([1 - s, s]))
    with pytest.raises(ValueError, match=r"y cannot be None|requires y"):
        fresh(row).fit(s, None)


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [
        ([0.1, np.nan, 0.3, 0.4], [0, 1, 0, 1], "scores must be finite; row 1"),
        ([0.1, 1.5, 0.3, 0.4], [0, 1, 0, 1], r"scores must lie in \[0, 1\]; row 1"),
        ([[0.1, 0.5]] * 4, [0, 1, 0, 1], "sum to 1 within .*; row 0"),
        ([[0.1, 0.2, 0.3, 0.2, 0.2]] * 4, ["a", "b", "a", "b"], "scores has 5 columns"),
        ([0.1, 0.2], [0, 1, 0, 1], "y and scores must have the same number of rows"),
        ([0.1, 0.2, 0.3], [1.5, 0.1, 0.2], "y must hold class labels, or shares in .*; row 0 is 1.5"),
        ([0.1, 0.2, 0.3], ["a", "a", "a"], r"one class only \('a'\)"),
    ],
)
def test_bad_scores(row, scores, labels, words):
    with pytest.raises(ValueError, match=words):
        fresh(row).fit(scores, labels)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_bad_arguments(row):
    s, y, _ = data(row, 50)
    with pytest.raises(ValueError, match="input must be one of"):
        fresh(row, input="score").fit(s, y)
    with pytest.raises(ValueError, match=r"all zero|Sample weights must contain at least one non-zero"):
        fresh(row).fit(s, y, sample_weight=np.zeros(50))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        fresh(row).fit(s, y, sample_weight=-np.ones(50))
    with pytest.raises(ValueError, match="scores must be finite numbers within ± 1e"):
        fresh(row, input="logit").fit(1e101 * np.asarray(s), y)
    fitted = fresh(row).fit(s, y)
    wrong = np.full((2, 4), 0.25)
    with pytest.raises(ValueError, match=r"features|columns"):
        fitted.predict_proba(wrong)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        fresh(row).predict_proba(s)


def test_binary_calibrators_say_what_serves_many_classes():
    s, y, _ = several(60, 3)
    with pytest.raises(ValueError, match=r"use OneVsRest\(PlattScaling\(...\)\)"):
        calibrators.PlattScaling().fit(s, y)
    with pytest.raises(ValueError, match="3 classes"):
        calibrators.PlattScaling().fit(s[:, 0], y)


def test_absent_classes_need_labels():
    s, y, _ = several(60, 4)
    y = y % 3
    with pytest.raises(ValueError, match=r"labels=\[...\]"):
        calibrators.TemperatureScaling().fit(s, np.array(["a", "b", "c"])[y])
    fitted = calibrators.TemperatureScaling(labels=["a", "b", "c", "d"]).fit(s, np.array(["a", "b", "c"])[y])
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    assert calibrators.TemperatureScaling().fit(s, y).classes_.tolist() == [0, 1, 2, 3]


def test_is_reached_from_the_package():
    assert cal.calibrators.PlattScaling is calibrators.PlattScaling
    assert "calibrators" in dir(cal)


def test_the_table_is_complete():
    """But for what is no map of its own: test_model.py has these."""
    others = {"AutoCalibrator", "BinaryCalibrator", "CalibratedModel", "Calibrator", "Selection"}
    named = {type(row.calibrator).__name__ for row in ROWS}
    assert named == {name for name in calibrators.__all__ if name[0].isupper()} - others
