"""Fits where nothing is as a fit would like it: separated classes, equal scores, zeros, weights far apart."""

import numpy as np
import pytest
from sklearn.base import clone

import calibrant as cal
from calibrant import calibrators as c

from ..calibrators.test_saving import ALL

RNG = np.random.default_rng(0)
SOFT = RNG.dirichlet(np.full(3, 0.3), 60)
CODES = np.tile([0, 1, 2], 20)
SURE = np.eye(3)[CODES]
SAMPLES = {
    "separated": (0.98 * SURE + 0.02 / 3, CODES, None),
    "certain and right": (SURE, CODES, None),
    "certain and wrong": (np.roll(SURE, 1, axis=1), CODES, None),
    "equal scores": (np.full((60, 3), 1 / 3), CODES, None),
    "zeros": (np.column_stack([SOFT[:, :2] / SOFT[:, :2].sum(axis=1, keepdims=True), np.zeros(60)]), CODES, None),
    "a row a class": (SOFT[:3], CODES[:3], None),
    "uneven weights": (SOFT, CODES, np.where(np.arange(60) % 2, 1e12, 1e-12)),
    "one row carries all": (SOFT, CODES, np.where(np.arange(60) < 3, 1e9, 1.0)),
    "next to 0": (np.abs(np.column_stack([1 - 2e-300 * (1 + SOFT[:, 0]), *2 * [1e-300 * SOFT[:, 1]]])), CODES, None),
}
#: What says of itself that it did not converge, or that it had little to go by, said what it should.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")]


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("row", ALL, ids=str)
def test_probabilities_come_out_or_a_reason_why_not(row, sample):
    p, y, w = SAMPLES[sample]
    if not row.many:
        p, y = p[:, 1], (y == 1).astype(int)
    try:
        fitted = clone(row.calibrator).fit(p, y, sample_weight=w)
    except ValueError as error:
        reason = str(error)
    else:
        reason = ""
        found = fitted.predict_proba(p)
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        if getattr(fitted, "normalisation", "sum") != "none":
            np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
        again = c.from_dict(c.to_dict(fitted))
        np.testing.assert_array_equal(again.predict_proba(p), found)
    assert not reason or any(word in reason for word in ("row", "fold", "sample", "class"))


@pytest.mark.parametrize("k", [3, 100])
def test_a_calibrated_model_of_classes_seldom_seen(k):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4 * k, 5)), np.repeat(np.arange(k), 4)
    fitted = c.CalibratedModel(LogisticRegression(), c.TemperatureScaling(), cv=2).fit(x, y)
    found = fitted.predict_proba(x)
    assert found.shape == (4 * k, k)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    assert cal.calibration_error(y, found, notion="classwise") <= 2 / k
