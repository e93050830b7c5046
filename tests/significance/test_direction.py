"""Over- and underconfidence against a loop over rows."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.estimators.crossfit import dealt_to_folds, isotonic_map


def binary(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def several(n=300, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet([1.0, 1.0, 1.0], n)
    sharp = q**2 / (q**2).sum(axis=1, keepdims=True)
    return (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), sharp


def test_parts_are_sums_over_rows():
    y, p = binary()
    order = np.argsort(p)
    y, p = y[order], p[order]
    fold = np.arange(len(p)) % 5
    terms = np.zeros((2, len(p)))
    for i in range(len(p)):
        others = fold != fold[i]
        g = isotonic_map(p[others], np.ones(others.sum()), y[others].astype(float), p[i : i + 1])[0]
        if g < p[i]:
            terms[0, i] = p[i] - y[i]
        elif g > p[i]:
            terms[1, i] = y[i] - p[i]
    found = cal.significance.confidence_direction(y, p)
    assert (found.over, found.under) == pytest.approx(terms.mean(axis=1))
    every = np.vstack([terms, terms.sum(axis=0)])
    se = every.std(axis=1, ddof=1) / np.sqrt(len(p))
    assert list(found.standard_errors.values()) == pytest.approx(se)
    z = 1.959963984540054
    assert found.intervals["over"] == pytest.approx((found.over - z * se[0], found.over + z * se[0]))


@pytest.mark.parametrize("notion", ["class-specific", "confidence", "classwise", "top-label"])
@pytest.mark.parametrize("regressor", ["isotonic", "logistic"])
def test_parts_add_up_to_the_cross_fitted_error(notion, regressor):
    y, q = binary() if notion == "class-specific" else several()
    fit = cal.estimators.CrossFit(regressor)
    found = cal.significance.confidence_direction(y, q, notion=notion, estimator=fit)
    assert found.over + found.under == found.error
    assert found.error == pytest.approx(cal.calibration_error(y, q, notion=notion, estimator=fit), abs=1e-12)
    assert set(found.per_class) == (set() if notion in ("class-specific", "confidence") else {0, 1, 2})
    for low, high in found.intervals.values():
        assert -1 <= low < high <= 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=3, max_size=25))
def test_weights_are_repeats(rows):
    p = np.array([s / 4 for s, _, _ in rows])
    y, w = np.array([int(o) for _, o, _ in rows]), np.array([v for _, _, v in rows])
    if not w.any():
        return
    one = cal.significance.confidence_direction(y, p, sample_weight=w, labels=[0, 1])
    other = cal.significance.confidence_direction(np.repeat(y, w), np.repeat(p, w), labels=[0, 1])
    assert [one.over, one.under] == pytest.approx([other.over, other.under], nan_ok=True)
    assert one.intervals["error"] == pytest.approx(other.intervals["error"], nan_ok=True)


def test_a_sharp_model_is_overconfident_and_a_flat_one_under():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.5, 1, 5000)
    q = np.column_stack([1 - p, p])
    y = (rng.random(5000) < 0.5 + (p - 0.5) / 2).astype(int)
    sharp = cal.significance.confidence_direction(y, q, notion="confidence")
    assert sharp.intervals["over"].low > 0
    assert abs(sharp.over - 0.125) < 0.03
    flat = cal.significance.confidence_direction((rng.random(5000) < 0.5 + p / 2).astype(int), q, notion="confidence")
    assert flat.intervals["under"].low > 0
    assert flat.intervals["over"].low <= 0


def test_arguments_text_and_json():
    y, q = several()
    with pytest.raises(TypeError, match="estimator must be 'auto' or CrossFit"):
        cal.significance.confidence_direction(y, q, estimator="binned")
    with pytest.raises(ValueError, match="no parts that add up"):
        cal.significance.confidence_direction(y, q, notion=cal.notions.Classwise("max"))
    with pytest.raises((TypeError, ValueError), match="canonical"):
        cal.significance.confidence_direction(y, q, notion="canonical")
    with pytest.raises(ValueError, match="level must lie"):
        cal.significance.confidence_direction(y, q, level=95)
    found = cal.significance.confidence_direction(y, q, notion="classwise")
    assert "stated too high" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["over"] == found.over
    assert len(found.to_frame("pandas")) == 4
    alone = cal.significance.confidence_direction([1], [0.4], labels=[0, 1])
    assert np.isnan(alone.error)
    certain = cal.significance.confidence_direction([0, 1] * 20, [0.0, 1.0] * 20)
    assert certain.intervals["error"] == pytest.approx((-(1 - 0.025 ** (1 / 40)), 1 - 0.025 ** (1 / 40)))


@pytest.mark.parametrize(("good", "bad"), [(6 * 10**8, 6 * 10**8), (3, 2 * 10**9), (2 * 10**9, 3), (900_000, 10**9)])
def test_counts_beyond_the_library_are_dealt_with_the_same_moments(good, bad):
    total, folds, draws = good + bad, 5, 20_000
    places = np.full((folds, draws), total // folds)
    places[: total % folds] += 1
    dealt = dealt_to_folds(np.full(draws, good), np.full(draws, bad), places, np.random.default_rng(0))
    np.testing.assert_array_equal(dealt.sum(axis=0), good)
    assert (dealt >= 0).all()
    assert (dealt <= places).all()
    for fold, first in zip(dealt, places[:, 0], strict=True):
        spread = np.sqrt(first * (good / total) * (bad / total) * (total - first) / (total - 1))  # the hypergeometric's
        assert abs(fold.mean() - first * good / total) < 4.5 * spread / np.sqrt(draws)
        assert fold.std() == pytest.approx(spread, rel=0.03)


def test_weights_of_billions_cross_fit():
    s = np.tile([0.2, 0.5, 0.8], 20)
    y = np.random.default_rng(0).random(60) < s
    values = [cal.significance.confidence_direction(y, s, sample_weight=np.full(60, w)).error for w in (1.0, 2.0**30)]
    assert np.isfinite(values).all()
