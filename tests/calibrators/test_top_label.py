"""`TopLabelCalibrator`: against rows written out, and the notion that it repairs."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import calibrators as c

from .table import several


def over_confident(n, seed):
    """Three classes; rows that predict the first are far too sure, those that predict the last too little."""
    p, _, _ = several(n, 3, seed)
    top = p.argmax(axis=1)
    q = p ** np.array([0.3, 1.0, 2.0])[top][:, None]
    q /= q.sum(axis=1, keepdims=True)
    return p, (np.random.default_rng(seed + 1).random((n, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, 2)


def test_top_label_error_falls():
    p, y = over_confident(6000, 0)
    new, labels = over_confident(6000, 10)
    repaired = c.TopLabelCalibrator().fit(p, y).predict_proba(new)
    common = c.TopLabelCalibrator(min_rows=1e9).fit(p, y).predict_proba(new)
    before, after, shared = (cal.calibration_error(labels, q, notion="top-label") for q in (new, repaired, common))
    assert before > 0.08
    assert after < before / 3
    assert after < shared / 2


@pytest.mark.parametrize("inside", [c.IsotonicCalibrator(), c.PlattScaling(), c.HistogramBinning(5)], ids=str)
def test_rows_written_out(inside):
    p, y = over_confident(300, 3)
    p[:3] = np.eye(3)
    w = np.random.default_rng(5).integers(1, 4, 300)
    top = np.array([max(range(3), key=row.__getitem__) for row in p])
    weights = [int(w[top == k].sum()) for k in range(3)]
    least = sorted(weights)[1]  # one class has too few
    fitted = c.TopLabelCalibrator(inside, least).fit(p, y, sample_weight=w)
    assert fitted.weights_.tolist() == weights
    got = fitted.predict_proba(p)
    for i, row in enumerate(p):
        k = top[i]
        fit = np.flatnonzero(top == k) if weights[k] >= least else np.arange(300)
        own = type(inside)(**inside.get_params()).set_params(labels=[0, 1])
        own.fit(p[fit].max(axis=1), (y[fit] == top[fit]).astype(int), sample_weight=w[fit])
        g = own.predict_proba(row[[k]])[0, 1]
        rest = 1 - row[k]
        want = [g if j == k else (1 - g) * (row[j] / rest if rest > 0 else 0.5) for j in range(3)]
        np.testing.assert_allclose(got[i], want, atol=1e-9)


def test_json_and_two_classes():
    p, y = over_confident(200, 7)
    fitted = c.TopLabelCalibrator().fit(p, y)
    np.testing.assert_array_equal(c.from_dict(c.to_dict(fitted)).predict_proba(p), fitted.predict_proba(p))
    s, y = p[:, 0], (y == 0).astype(int)
    one = c.TopLabelCalibrator().fit(s, y).predict_proba(s)
    both = np.column_stack([1 - s, s])
    np.testing.assert_allclose(one, c.TopLabelCalibrator().fit(both, y).predict_proba(both), atol=1e-9)


@pytest.mark.parametrize(
    ("calibrator", "error", "words"),
    [
        (c.TopLabelCalibrator(c.TemperatureScaling()), TypeError, "calibrator must be None or a binary calibrator"),
        (c.TopLabelCalibrator(min_rows=-1), ValueError, "min_rows must be a finite number >= 0; got -1"),
        (c.TopLabelCalibrator(min_rows="few"), TypeError, "min_rows must be a number >= 0; got 'few'"),
    ],
)
def test_bad_parameters(calibrator, error, words):
    with pytest.raises(error, match=words):
        calibrator.fit(*over_confident(50, 0))
