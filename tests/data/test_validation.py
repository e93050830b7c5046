"""Scores, weights, shapes and parameters: what is accepted, and what every refusal says."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import calibrant as cal
from calibrant import Binned, as_predictions
from calibrant.estimators import Density, ResidualKernel, SimplexBinned

Y = [0, 1, 1, 0]
P = [0.1, 0.9, 0.8, 0.2]
Y3 = [0, 1, 2]
P3 = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])


def refused(kind, text, y=Y, p=P, **kwargs):
    with pytest.raises(kind, match=re.escape(text)) as caught:
        as_predictions(y, p, **kwargs)
    return str(caught.value)


# ---- scores ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scores_must_be_finite(bad, dtype):
    refused(ValueError, f"y_prob must be finite; row 2 is {bad}", p=np.array([0.1, 0.2, bad, bad], dtype=dtype))
    rows = P3.astype(dtype)
    rows[1, 2] = bad
    refused(ValueError, f"y_prob must be finite; row 1, column 2 is {bad}", y=Y3, p=rows)


@pytest.mark.parametrize(
    ("scores", "text", "hint"),
    [
        ([0.1, 0.2, 1.01, 0.3], "row 2 is 1.01", None),
        ([10.0, 95.5, 3.0, 0.0], "row 0 is 10.0", "percentages; divide by 100"),
        ([0.2, 0.7, -3.1, 8.0], "row 2 is -3.1", "logits or margins (they range from -3.1 to 8)"),
        ([0, 1, 250, 3], "row 2 is 250.0", "scipy.special.expit"),
        ([0.1, 0.2, 1 + 1e-8, 0.3], "row 2 is 1.00000001", None),
        ([0.1, -1e-8, 0.2, 0.3], "row 1 is -1e-08", "logits"),
    ],
)
def test_scores_must_lie_in_the_unit_interval(scores, text, hint):
    message = refused(ValueError, f"y_prob must lie in [0, 1]; {text}", p=scores)
    assert hint in message if hint else "look like" not in message


def test_a_matrix_of_logits_is_told_so():
    message = refused(ValueError, "y_prob must lie in [0, 1]; row 0, column 0 is -2.0", y=Y3, p=np.log(P3) * 3 - 0.93)
    assert "softmax(z, axis=1)" in message


@pytest.mark.parametrize(
    ("dtype", "excess"), [(np.float64, 1e-10), (np.float32, 1e-7), (np.float32, 9e-7), (np.float16, 1e-3)]
)
def test_rounding_noise_is_moved_onto_the_end(dtype, excess):
    scores = np.array([1 + excess, -excess, 0.5, 0.25], dtype=dtype)
    assert scores[0] > 1
    assert scores[1] < 0
    probs = as_predictions(Y, scores).probs
    assert probs.tolist() == [1.0, 0.0, 0.5, 0.25]


def test_negative_zero_is_zero():
    assert cal.calibration_error([0, 1], [-0.0, 1.0], estimator=Binned()) == 0


@pytest.mark.parametrize(
    ("junk", "text"),
    [
        (["a", "b", "c", "d"], "got dtype <U1"),
        (["0.1", "0.2", "0.3", "0.4"], "got dtype <U3"),
        ([0.1, None, 0.2, 0.3], "row 1 is None (NoneType)"),
        ([0.1, 0.2, "x", 0.3], "row 2 is 'x' (str)"),
        (np.array([0.1, 0.2, {}, 0.3], dtype=object), "row 2 is {} (dict)"),
        (np.zeros(4, dtype="M8[s]"), "got dtype datetime64[s]"),
        (np.zeros(4, dtype=[("a", "f8")]), "got dtype [('a', '<f8')]"),
    ],
)
def test_scores_must_be_real_numbers(junk, text):
    assert text in refused(TypeError, "y_prob must hold real numbers", p=junk)


def test_scores_must_not_be_complex():
    """A ValueError, as scikit-learn's checks of estimators demand."""
    refused(ValueError, "y_prob must hold real numbers; got dtype complex128", p=np.array(P) * 1j)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((), "got 0-D, shape ()"),
        ((4, 2, 2), "got 3-D, shape (4, 2, 2)"),
    ],
)
def test_shape_of_scores(shape, text):
    refused(ValueError, f"y_prob must be 1-D (n,) or 2-D (n, K); {text}", p=np.full(shape, 0.5))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (4, 0)])
def test_empty_scores(shape):
    refused(ValueError, f"y_prob must not be empty; got shape {shape}", y=[], p=np.empty(shape))


def test_ragged_rows():
    refused(ValueError, "y_prob must be a regular array; the rows differ", p=[[0.1, 0.9], [1.0], [0.5, 0.5], [1, 0]])


def test_lengths_must_agree():
    refused(ValueError, "y_true and y_prob must have the same number of rows; got 2 and 4", y=[0, 1])
    refused(ValueError, "sample_weight must have one value per row (4); got 3", sample_weight=[1, 2, 3])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (">f2", np.float32),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.longdouble, np.float64),
    ],
)
def test_float_dtypes(given, kept):
    predictions = as_predictions(Y, np.array(P, dtype=given))
    assert predictions.probs.dtype == kept
    assert predictions.probs.dtype.isnative
    unit = np.dtype(given) if np.dtype(given).itemsize < 8 else np.dtype(np.float64)
    assert predictions.eps == float(np.finfo(unit).eps)
    np.testing.assert_allclose(predictions.probs, P, atol=1e-3 if np.dtype(given).itemsize == 2 else 1e-7)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, bool, object])
def test_integer_and_bool_scores(dtype):
    assert as_predictions(Y, np.array([0, 1, 1, 0], dtype=dtype)).probs.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("number", [Fraction(3, 10), Decimal("0.3"), np.float32(0.25), 1, True])
def test_numbers_of_any_kind(number):
    assert as_predictions(Y, [number] * 4).probs.tolist() == [float(number)] * 4


def test_one_column_is_one_score():
    one = as_predictions(np.array(Y)[:, None], np.array(P)[:, None], sample_weight=np.ones((4, 1)))
    assert one.probs.shape == one.codes.shape == one.weights.shape == (4,)


def test_odd_memory_layouts():
    wide = np.zeros((3, 7))
    wide[:, ::2][:, :3] = P3
    expected = cal.calibration_error(Y3, P3, notion="classwise", estimator=Binned())
    reverse = P3[::-1][::-1]
    for rows in (np.asfortranarray(P3), wide[:, ::2][:, :3], reverse, P3.astype(">f8")):
        for notion in ("classwise", "confidence"):
            cal.calibration_error(Y3, rows, notion=notion)
        assert cal.calibration_error(Y3, rows, notion="classwise", estimator=Binned()) == expected
    strided = np.repeat(P, 2)[::2]
    assert cal.calibration_error(Y, strided) == cal.calibration_error(Y, P)


def test_inputs_are_never_changed():
    scores = np.array([1 + 1e-7, 0.0, 0.4, 1.0], dtype=np.float32)
    rows, y, w = P3.copy(), np.array(Y3), np.array([0.5, 1.0, 2.0])
    kept = [a.copy() for a in (scores, rows, y, w)]
    for notion in ("classwise", "confidence", "top-label", "canonical"):
        estimators = (
            [SimplexBinned()] if notion == "canonical" else [Binned(), Density(), Binned(3, "quantile", "linear")]
        )
        for estimator in estimators:
            cal.estimate(y, rows, notion=notion, estimator=estimator, sample_weight=w, n_resamples=5)
    cal.estimate([0, 1, 1, 0], scores, n_resamples=5)
    for array, copy in zip((scores, rows, y, w), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_read_only_inputs():
    arrays = [np.array(Y3), P3.copy(), np.array([0.5, 1.0, 2.0])]
    for a in arrays:
        a.flags.writeable = False
    for notion in ("classwise", "confidence", "top-label"):
        cal.calibration_error(arrays[0], arrays[1], notion=notion, sample_weight=arrays[2])


# ---- rows of probabilities -------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.1, 0.9])
def test_rows_must_sum_to_one(factor):
    rows = P3.copy()
    rows[1:] *= factor
    rows = np.minimum(rows, 1)
    message = refused(
        ValueError, f"rows of y_prob must sum to 1 within sum_tolerance=1e-05; row 1 sums to {factor}", Y3, rows
    )
    assert "(failing rows: 2 of 3)" in message
    assert as_predictions(Y3, rows, sum_tolerance=0.11).n_classes == 3


@pytest.mark.parametrize(("dtype", "inside", "outside"), [(np.float64, 9e-6, 1.2e-5), (np.float32, 9e-5, 1.2e-4)])
def test_the_tolerance_of_sums_follows_the_dtype(dtype, inside, outside):
    ok, bad = (np.array([[0.25 + e, 0.75], [0.5, 0.5]], dtype=dtype) for e in (inside, outside))
    as_predictions([0, 1], ok)
    refused(ValueError, "row 0 sums to 1.0001", [0, 1], bad) if dtype == np.float32 else refused(
        ValueError, "row 0 sums to 1.00001", [0, 1], bad
    )
    refused(ValueError, "sum_tolerance=0;", [0, 1], ok, sum_tolerance=0)


@pytest.mark.parametrize("tolerance", [-1, "x", float("nan"), True])
def test_sum_tolerance_is_judged(tolerance):
    refused(
        ValueError, f"sum_tolerance must be None or a number >= 0; got {tolerance!r}", Y3, P3, sum_tolerance=tolerance
    )


def test_sum_tolerance_may_be_a_numpy_number():
    assert as_predictions(Y3, P3 * 0.9, sum_tolerance=np.float32(0.2)).n_samples == 3


# ---- weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "kind", "text"),
    [
        ([1, -1, 1, 1], ValueError, "sample_weight must not be negative; row 1 is -1"),
        ([1, np.nan, 1, 1], ValueError, "sample_weight must be finite; row 1 is nan"),
        ([1, 1, np.inf, 1], ValueError, "sample_weight must be finite; row 2 is inf"),
        ([0, 0, 0, 0], ValueError, "sample_weight must not be all zero"),
        ([1e200] * 4, ValueError, "sample_weight must have squares within range; the largest is 1e+200"),
        ([1e-200] * 4, ValueError, "sample_weight must have squares within range; the largest is 1e-200"),
        (list("abcd"), TypeError, "sample_weight must hold real numbers; got dtype <U1"),
        ([1, None, 1, 1], TypeError, "sample_weight must hold real numbers; row 1 is None"),
        (np.ones((4, 2)), ValueError, "sample_weight must be 1-D; got shape (4, 2)"),
        (2.0, ValueError, "sample_weight must be 1-D; got a single value"),
        ("uniform", TypeError, "sample_weight must be an array"),
    ],
)
def test_weights_are_judged(weights, kind, text):
    refused(kind, text, sample_weight=weights)


@pytest.mark.parametrize("dtype", [np.int8, bool, np.float32, np.float16, object])
def test_weights_of_any_dtype(dtype):
    weights = as_predictions(Y, P, sample_weight=np.array([1, 0, 1, 1], dtype=dtype)).weights
    assert weights.dtype == np.float64
    assert weights.tolist() == [1, 0, 1, 1]


def test_sample_size_under_weights():
    assert as_predictions(Y, P).effective_size == 4
    assert as_predictions(Y, P, sample_weight=[2, 0, 3, 1]).effective_size == 6
    assert as_predictions(Y, P, sample_weight=[0.5, 0.5, 0.5, 0.5]).effective_size == 4
    assert as_predictions(Y, P, sample_weight=[0.5, 0.0, 0.5, 0.0]).effective_size == 2


# ---- the predictions -------------------------------------------------------------------------------------------


def test_confidence_and_ties():
    p = as_predictions([0, 1, 1], [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [1 / 3, 1 / 3, 1 / 3]], labels=[0, 1, 2])
    assert p.predicted.tolist() == [0, 1, 0]  # the first label wins
    assert p.confidence.tolist() == [0.4, 0.4, 1 / 3]
    for positive in (0, 1):
        one = as_predictions([0, 1, 1], [0.5, 0.2, 0.8], pos_label=positive)
        two = as_predictions([0, 1, 1], one.matrix)
        assert one.predicted.tolist() == two.predicted.tolist() == [0, 1 - positive, positive]
        assert one.confidence.tolist() == two.confidence.tolist()


def test_subset():
    p = as_predictions(Y3, P3, sample_weight=[1, 2, 3]).subset([2, 0])
    assert p.codes.tolist() == [2, 0]
    assert p.weights.tolist() == [3, 1]
    assert p.probs.tolist() == P3[[2, 0]].tolist()


# ---- parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: Binned(0), ValueError, "n_bins must be an int >= 1, 'sqrt', 'cbrt' or edges; got 0"),
        (lambda: Binned(-3), ValueError, "got -3"),
        (lambda: Binned(10.5), TypeError, "n_bins must be an int >= 1, 'sqrt', 'cbrt' or edges; got 10.5"),
        (lambda: Binned(True), TypeError, "got True"),
        (lambda: Binned(None), TypeError, "got None"),
        (lambda: Binned("auto"), ValueError, "got 'auto'"),
        (lambda: Binned([0.5]), ValueError, "at least two finite, strictly increasing numbers; got [0.5]"),
        (lambda: Binned([0, 0.5, 0.5, 1]), ValueError, "strictly increasing"),
        (lambda: Binned([0, np.nan, 1]), ValueError, "finite"),
        (lambda: Binned([0.1, 0.5, 1]), ValueError, "n_bins as edges must cover [0, 1]; got 0.1"),
        (lambda: Binned([0, 0.5, 0.9]), ValueError, "must cover [0, 1]"),
        (lambda: Binned(["a", "b"]), TypeError, "n_bins as edges must be numbers; got ['a', 'b']"),
        (lambda: Binned(strategy="kmeans"), ValueError, "'quantile', 'quantile-as-published'; got 'kmeans'"),
        (
            lambda: Binned(mapping="soft"),
            ValueError,
            "mapping must be one of 'hard', 'linear', 'linear-as-printed'; got 'soft'",
        ),
        (lambda: Binned(span="all"), ValueError, "span must be one of 'unit', 'domain'; got 'all'"),
        (lambda: Binned(debias="yes"), ValueError, "one of 'brocker', 'kumar', 'ferro-fricker'; got 'yes'"),
        (lambda: Binned(debias=1), TypeError, "one of 'brocker', 'kumar', 'ferro-fricker'; got 1"),
        (lambda: Density("auto"), ValueError, "one of 'silverman', 'scott', 'isj', 'loo', a number in"),
        (lambda: Density(0), ValueError, "got 0"),
        (lambda: Density(-0.1), ValueError, "got -0.1"),
        (lambda: Density(float("nan")), ValueError, "got nan"),
        (lambda: Density(float("inf")), ValueError, "got inf"),
        (lambda: Density(True), TypeError, "got True"),
        (lambda: Density(None), TypeError, "got None"),
        (lambda: Density(kernel="box"), ValueError, "kernel must be one of 'gaussian', 'epanechnikov', 'triweight'"),
        (lambda: ResidualKernel(space="time"), ValueError, "space must be one of 'rank', 'score'; got 'time'"),
        (lambda: ResidualKernel("silverman"), ValueError, "got 'silverman'"),
        (lambda: ResidualKernel(lambda x, w: 0.1), ValueError, "a callable needs space='score'"),
        (lambda: SimplexBinned(0), ValueError, "n_bins must be an int >= 1, 'sqrt' or 'cbrt'; got 0"),
        (lambda: SimplexBinned("auto"), ValueError, "got 'auto'"),
        (lambda: SimplexBinned(2.5), TypeError, "got 2.5"),
        (lambda: SimplexBinned(True), TypeError, "got True"),
        (lambda: cal.notions.Classwise("sum"), ValueError, "average must be one of 'power', 'mean', 'max'; got 'sum'"),
        (lambda: cal.notions.TopLabel("sum"), ValueError, "average must be one of"),
    ],
)
def test_parts_judge_their_parameters(make, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        make()


def test_parts_are_values():
    assert Binned(np.int64(10)) == Binned(10)
    assert Binned(np.linspace(0, 1, 3)) == Binned((0, 0.5, 1)) == Binned([0, 0.5, 1])
    assert (
        len({Binned(), Binned(15), Density(), Density("silverman"), cal.notions.Confidence(), cal.notions.Confidence()})
        == 3
    )
    with pytest.raises(AttributeError):
        Binned().n_bins = 3


@pytest.mark.parametrize(
    ("kwargs", "kind", "text"),
    [
        ({"norm": 0.5}, ValueError, "norm must be a number >= 1 or inf; got 0.5"),
        ({"norm": float("nan")}, ValueError, "got nan"),
        ({"norm": "max"}, ValueError, "got 'max'"),
        ({"norm": True}, ValueError, "got True"),
        ({"norm": None}, ValueError, "got None"),
        (
            {"notion": "strong"},
            ValueError,
            "notion must be one of 'auto', 'class-specific', 'classwise', 'confidence', ",
        ),
        ({"notion": cal.notions.Confidence}, ValueError, "or a Notion object; got <class"),
        ({"notion": None}, ValueError, "got None"),
        (
            {"notion": cal.notions.ClassSpecific("zebra")},
            ValueError,
            "ClassSpecific('zebra') must name one of the labels [0, 1, 2]",
        ),
        ({"notion": "class-specific"}, ValueError, "needs a label when there are 3 classes"),
        (
            {"estimator": "best"},
            ValueError,
            "estimator must be 'auto', an estimator such as Binned(15), or a name",
        ),
        ({"estimator": Binned}, TypeError, "Binned()?"),
        ({"estimator": 15}, TypeError, "got 15"),
        ({"estimator": Density(lambda x, w: -1.0)}, ValueError, "must return a positive finite number; got -1.0"),
        (
            {"estimator": Binned(debias=True), "norm": 3},
            ValueError,
            "debias=True is defined for norm 1 and 2; got norm=3",
        ),
        (
            {"estimator": Binned(), "notion": "canonical"},
            ValueError,
            "estimator Binned does not support the notion 'canonical'",
        ),
        ({"estimator": SimplexBinned()}, ValueError, "SimplexBinned does not support the notion 'confidence'"),
    ],
)
def test_the_number_judges_its_parameters(kwargs, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        cal.calibration_error(Y3, P3, **kwargs)


@pytest.mark.parametrize("level", [0, 1, 95, 1.5, -0.5, float("nan"), "0.95", True])
def test_levels_are_fractions(level):
    for call in (cal.estimate, cal.reliability_curve):
        with pytest.raises(ValueError, match="level must lie strictly between 0 and 1; got") as caught:
            call(Y, P, level=level)
        assert ("(0.95?)" in str(caught.value)) == (level == 95)


def test_estimate_needs_a_level():
    with pytest.raises(ValueError, match="strictly between 0 and 1; got None"):
        cal.estimate(Y, P, level=None)


@pytest.mark.parametrize("n_resamples", [0, 1, -5, 10.5, "many", True])
def test_resamples_are_counted(n_resamples):
    for call in (cal.estimate, cal.reliability_curve):
        with pytest.raises(ValueError, match=re.escape(f"n_resamples must be an int >= 2; got {n_resamples!r}")):
            call(Y, P, n_resamples=n_resamples)


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        (
            {"estimator": "loess"},
            "estimator must be one of 'auto', 'density', ",
        ),
        ({"estimator": SimplexBinned()}, "estimator must be one of"),
        ({"notion": "canonical"}, "notion 'canonical' has no curve: its score is a vector"),
    ],
)
def test_curves_judge_their_parameters(kwargs, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        cal.reliability_curve(Y3, P3, **kwargs)


def test_scikit_learn_scorer():
    from sklearn.datasets import load_breast_cancer
    from sklearn.metrics import make_scorer
    from sklearn.naive_bayes import GaussianNB

    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X, y)
    expected = cal.expected_calibration_error(y, model.predict_proba(X)[:, 1])
    for function in (cal.expected_calibration_error, cal.calibration_error):
        score = make_scorer(function, response_method="predict_proba", greater_is_better=False)(model, X, y)
        assert -1 < score < 0
    assert -make_scorer(cal.expected_calibration_error, response_method="predict_proba", greater_is_better=False)(
        model, X, y
    ) == pytest.approx(expected)


def test_logits_keep_what_a_saturated_softmax_loses():
    """-1000 against 0: the probability is 0 in any precision, its logarithm is -1000."""
    logits = np.array([[0.0, -1000.0, 3.0], [-800.0, 40.0, 0.0]])
    got = as_predictions([2, 0], logits, labels=[0, 1, 2], from_logits=True)
    assert got.probs == pytest.approx(
        np.exp(logits - logits.max(axis=1, keepdims=True) - np.log([[1 + np.exp(-3)], [1]]))
    )
    assert got.logs[0, 1] == pytest.approx(-1003 - np.log1p(np.exp(-3)))
    assert got.logs[1] == pytest.approx([-840, 0, -40])
    assert got.subset([1]).logs[0, 0] == got.logs[1, 0]
    assert as_predictions([2, 0, 1], np.eye(3), labels=[0, 1, 2]).logs is None


def test_logits_of_one_column_are_log_odds():
    z = np.array([-2.0, 0.5, 60.0])
    for positive, order in ((1, [0, 1]), (0, [1, 0])):
        got = as_predictions([0, 1, 1], z, pos_label=positive, from_logits=True)
        assert got.probs == pytest.approx(1 / (1 + np.exp(-z)))
        assert got.logs[:, order] == pytest.approx(np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)]))


def test_logits_follow_the_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"b": [0.1, 2.0], "a": [1.0, -1.0]})
    got = as_predictions(["a", "b"], frame, labels=["a", "b"], from_logits=True)
    assert np.exp(got.logs) == pytest.approx(got.probs)
    assert got.probs[0, 0] > got.probs[0, 1]


def test_bad_logits():
    refused(
        ValueError,
        "y_prob must hold finite logits; row 1, column 0 is inf",
        [0, 1],
        [[1, 2], [np.inf, 0]],
        from_logits=True,
    )
    refused(ValueError, "y_prob must hold finite logits; row 0 is nan", [0, 1], [np.nan, 2], from_logits=True)
    refused(TypeError, "from_logits must be True or False; got 'yes'", [0, 1], [0.1, 0.2], from_logits="yes")
