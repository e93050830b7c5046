"""What can be read but is probably not meant is warned of or refused, naming the cure; what is meant is not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal


def sample(n=200, k=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), n)
    return (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1), p


@pytest.mark.parametrize("kind", [float, int, bool, np.float32])
@pytest.mark.parametrize("columns", [1, 3])
def test_predicted_labels_are_no_probabilities(kind, columns):
    y, p = sample()
    hard = (p == p.max(axis=1, keepdims=True)).astype(kind)
    y, hard = (y == 1, hard[:, 1]) if columns == 1 else (y, hard)
    with pytest.warns(cal.exceptions.ScoreWarning, match=r"every score in y_prob is 0 or 1.*predict_proba"):
        cal.calibration_error(y, hard)


def test_one_soft_score_is_enough():
    p = np.tile([0.0, 1.0], 200_000)
    p[-1] = 0.999
    with warnings.catch_warnings():
        warnings.simplefilter("error", cal.exceptions.ScoreWarning)
        cal.calibration_error(p > 0.5, p)
        cal.calibration_error([0, 1, 1], [0.0, 1.0, 1.0])  # three rows may well be certain


@pytest.mark.parametrize("given", ["y_prob", "sample_weight"])
@pytest.mark.parametrize("frame", [False, True])
def test_one_index_in_two_orders_is_refused(given, frame):
    y, p = sample()
    truth = pd.Series(y, index=[f"row {i}" for i in range(len(y))])
    probs = pd.DataFrame(p, index=truth.index) if frame else pd.Series(p[:, 1], index=truth.index)
    truth = truth if frame else truth == 1
    weight = pd.Series(np.ones(len(y)), index=truth.index)
    about = {"y_prob": probs, "sample_weight": weight}
    wanted = cal.calibration_error(truth, **about)
    about[given] = about[given].sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=rf"y_true and {given} have the same index in different orders.*\.loc\["):
        cal.calibration_error(truth, **about)
    about[given] = about[given].loc[truth.index]
    assert cal.calibration_error(truth, **about) == wanted


def test_rows_of_another_index_are_matched_by_position():
    y, p = sample()
    part = pd.Series(y == 1).sample(frac=0.5, random_state=0)
    assert cal.calibration_error(part, pd.Series(p[part.index, 1])) == cal.calibration_error(
        part.to_numpy(), p[part.index, 1]
    )


def test_columns_in_another_order_than_the_sorted_labels():
    """A matrix whose columns are low, mid, high was silently read as high, low, mid."""
    y, p = sample(400)
    names = np.array(["low", "mid", "high"])[y]
    with pytest.warns(cal.exceptions.LabelWarning, match=r"with labels=\['low', 'mid', 'high'\] in \d+ %"):
        wrong = cal.calibration_error(names, p)
    right = cal.calibration_error(names, p, labels=["low", "mid", "high"])
    assert right < wrong / 3
    assert cal.calibration_error(names, pd.DataFrame(p, columns=["low", "mid", "high"])) == right


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.integers(8, 400), st.floats(0.05, 5), st.integers(0, 2**31), st.booleans())
def test_columns_in_order_are_never_doubted(k, n, concentration, seed, related):
    """Nor those of a model that knows nothing, however many orders there are to choose from."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, concentration), n)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1) if related else rng.integers(0, k, n)
    y[:k] = np.arange(k)[: len(y)]
    names = np.array([f"class {i:02d}" for i in range(k)])
    if len(np.unique(y)) < k:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", cal.exceptions.LabelWarning)
        cal.as_predictions(names[y], p)


@pytest.mark.parametrize(
    ("only", "classes"), [("foo", ("foo", "not foo")), (7, (0, 7)), (1, (0, 1)), (True, (False, True))]
)
def test_one_label_and_the_probabilities_of_it(only, classes):
    """As scikit-learn: all rows are positive."""
    found = cal.as_predictions([only] * 5, [0.9, 0.8, 0.7, 0.9, 1.0], pos_label=only)
    assert found.classes == classes
    assert found.classes[found.positive] == only
    both_classes = 2 * 0.03
    assert cal.scores.brier_score([only] * 5, [0.9, 0.8, 0.7, 0.9, 1.0], pos_label=only) == pytest.approx(both_classes)


def test_no_number_is_said():
    """NaN once came without a word."""
    with pytest.warns(
        cal.exceptions.UndefinedErrorWarning, match=r"Binned\(.*\) gives no number for 1 row .*needs more rows"
    ):
        assert np.isnan(cal.calibration_error([1], [0.7], estimator=cal.Binned(debias=True)))
    with pytest.warns(cal.exceptions.UndefinedErrorWarning):
        cal.estimate([1], [0.7], estimator=cal.Binned(debias=True))
