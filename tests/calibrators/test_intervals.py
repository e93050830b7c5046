"""`predict_interval`: against sums that are written out, its level, and files without what it needs."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.special import expit, logit, softmax
from scipy.stats import beta, norm
from sklearn.base import clone

from calibrant import calibrators as c

from .table import two

AT = np.array([0.02, 0.2, 0.5, 0.7, 0.99])
LAPLACE = [c.PlattScaling(), c.BetaCalibration(), c.BetaCalibration("am"), c.QuadraticLogit(), c.SplineCalibrator()]
EVERY = [*LAPLACE, c.TemperatureScaling(), c.IsotonicCalibrator(), c.RocHullCalibrator(centred=True)]


def columns(fitted, s):
    """What the coefficients of each map multiply, and a normal prior's precision."""
    z, one = logit(s), np.ones_like(s)
    if isinstance(fitted, c.PlattScaling):
        return np.column_stack([one, z]), 0
    if isinstance(fitted, c.QuadraticLogit):
        return np.column_stack([one, z, z**2]), 0
    if isinstance(fitted, c.BetaCalibration):
        both = [z] if fitted.parameters == "am" else [np.log(s), np.log(1 - s)]
        return np.column_stack([one, *both]), 0
    knots = fitted.knots_
    m = len(knots) - 4
    gaps = np.diff([knots[j + 1 : j + 4].mean() for j in range(m)])
    bends = np.array([(np.eye(m)[j + 2] - np.eye(m)[j + 1]) / gaps[j + 1] for j in range(m - 2)])
    bends -= np.array([(np.eye(m)[j + 1] - np.eye(m)[j]) / gaps[j] for j in range(m - 2)])
    return np.column_stack([BSpline(knots, e, 3)(z) for e in np.eye(m)]), fitted.alpha * bends.T @ bends


@pytest.mark.parametrize("one", LAPLACE, ids=str)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_information_written_out(one, level):
    s, y, _ = two(300, 1, 0.7)
    w = np.random.default_rng(0).integers(1, 4, 300)
    fitted = clone(one).fit(s, y, w)
    at = np.quantile(s, [0.05, 0.3, 0.8])
    x, prior = columns(fitted, s)
    p = fitted.predict_proba(s)[:, 1]
    information = sum((w.sum() + 8) / w.sum() * w[i] * p[i] * (1 - p[i]) * np.outer(x[i], x[i]) for i in range(len(s)))
    spread = np.linalg.inv(information + prior)
    new = columns(fitted, at)[0]
    half = norm.ppf(0.5 + level / 2) * np.sqrt([v @ spread @ v for v in new])
    middle = logit(fitted.predict_proba(at)[:, 1])
    want = expit(np.column_stack([middle - half, middle + half]))
    np.testing.assert_allclose(fitted.predict_interval(at, level), want, rtol=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("tied", [False, True])
def test_the_windows_of_isotonic_intervals_by_hand(level, tied):
    s, y, _ = two(200, 2, 0.6)
    s = np.round(s, 2) if tied else s
    fitted = c.IsotonicCalibrator().fit(s, y)
    at = np.concatenate([[0.0, 1.0], np.random.default_rng(0).random(20), s[:20]])
    error = (1 - level) / 2
    distinct = np.unique(s)
    for v, got, said in zip(at, fitted.predict_interval(at, level), fitted.predict_proba(at)[:, 1], strict=True):
        ends = []
        for side in (distinct[distinct <= v][::-1], distinct[distinct >= v]):
            rows = np.zeros(200, dtype=bool)
            for d in side:  # whole scores, until there are enough
                if rows.sum() < 200 ** (2 / 3):
                    rows |= s == d
            ends.append((rows.sum(), y[rows].sum()))
        (n, k), (m, j) = ends
        low = beta.ppf(error, k, n - k + 1) if k else 0.0
        high = beta.ppf(1 - error, j + 1, m - j) if j < m else 1.0
        np.testing.assert_allclose(got, [min(low, said), max(high, said)], atol=1e-9)


@pytest.mark.parametrize("one", EVERY, ids=str)
def test_what_holds_of_all(one):
    s, y, _ = two(300, 3, 0.6)
    w = np.random.default_rng(0).integers(1, 4, 300)
    fitted = clone(one).fit(s, y, w)
    interval, p = fitted.predict_interval(AT), fitted.predict_proba(AT)[:, 1]
    assert interval.shape == (5, 2)
    assert (interval[:, 0] <= p + 1e-12).all()
    assert (p <= interval[:, 1] + 1e-12).all()
    wider = fitted.predict_interval(AT, 0.99)
    assert (np.diff(wider) >= np.diff(interval)).all()
    repeated = clone(one).fit(np.repeat(s, w), np.repeat(y, w))
    np.testing.assert_allclose(repeated.predict_interval(AT), interval, atol=1e-5)
    narrow = clone(one).fit(np.tile(s, 9), np.tile(y, 9)).predict_interval(AT)
    assert np.diff(narrow).mean() < 0.8 * np.diff(interval).mean()
    again = c.from_dict(json.loads(json.dumps(c.to_dict(fitted))))
    np.testing.assert_array_equal(again.predict_interval(AT), interval)
    with pytest.raises(ValueError, match="level"):
        fitted.predict_interval(AT, 1.5)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("kind", ["probability", "logit"])
def test_every_temperature_of_the_interval(level, kind):
    """Three classes: the least and largest probability at any of 4001 inverse temperatures."""
    rng = np.random.default_rng(3)
    z = rng.normal(0, 2, (80, 3))
    p = softmax(z, axis=1)
    y = (rng.random((80, 1)) > softmax(0.4 * z, axis=1).cumsum(axis=1)).sum(axis=1)
    w = rng.integers(1, 4, 80)
    fitted = c.TemperatureScaling(input=kind).fit(p if kind == "probability" else z, y, w)
    found = 1 / fitted.temperature_
    said = softmax(found * z, axis=1)
    spread = sum(v * (q @ x**2 - (q @ x) ** 2) for v, q, x in zip(w, said, z, strict=True))
    sd = np.sqrt(w.sum() / ((w.sum() + 8) * spread))
    assert np.sqrt(fitted.variance_) == pytest.approx(sd, rel=1e-9)
    half = norm.ppf(0.5 + level / 2) * sd
    at = rng.normal(0, 2, (30, 3))
    each = [softmax(b * at, axis=1) for b in np.linspace(max(found - half, 0), found + half, 4001)]
    low, high = np.min(each, axis=0), np.max(each, axis=0)
    got = fitted.predict_interval(softmax(at, axis=1) if kind == "probability" else at, level)
    assert got.shape == (30, 3, 2)
    np.testing.assert_allclose(got[..., 0], low, atol=1e-9)
    assert (np.abs(got[..., 1] - high) <= 0.005 * (high - low) + 1e-9).all()
    # Some of them are largest between the ends.
    assert (high > np.maximum(each[0], each[-1]) + 1e-6).any()


def test_scores_that_say_nothing_leave_the_temperature_open():
    """Equal probabilities at the fit have no information: any temperature may be."""
    fitted = c.TemperatureScaling().fit(np.full((20, 3), 1 / 3), [0, 1, 2, 0] * 5)
    assert fitted.variance_ == np.inf
    np.testing.assert_allclose(
        fitted.predict_interval([[0.5, 0.3, 0.2]])[0, [0, 2]], [[1 / 3, 1], [0, 1 / 3]], atol=1e-9
    )
    again = c.from_dict(c.to_dict(fitted))
    np.testing.assert_array_equal(again.predict_interval([[0.5, 0.3, 0.2]]), fitted.predict_interval([[0.5, 0.3, 0.2]]))


@pytest.mark.parametrize("one", [c.PlattScaling(smoothing=False, shrinkage=0), c.IsotonicCalibrator()], ids=str)
def test_relative_weights_count_as_effective_rows(one):
    s, y, _ = two(300, 3, 0.6)
    w = np.random.default_rng(0).random(300) + 0.1
    each = [clone(one).fit(s, y, scale * w).predict_interval(AT) for scale in (0.01, 1.0, 7.3)]
    np.testing.assert_allclose(each[0], each[1], atol=1e-7)
    np.testing.assert_allclose(each[2], each[1], atol=1e-7)


def test_where_rows_say_nothing_anything_may_be():
    """All scores are equal: the map there is known to a normal width, and elsewhere not at all."""
    fitted = c.PlattScaling(smoothing=False, shrinkage=0).fit([0.4] * 100, [0, 1, 1, 1] * 25)
    low, high = fitted.predict_interval([0.4])[0]
    half = norm.ppf(0.975) / np.sqrt(100 * 0.75 * 0.25)
    np.testing.assert_allclose([logit(low), logit(high)], np.log(3) + np.array([-half, half]), rtol=1e-3)
    np.testing.assert_allclose(fitted.predict_interval([0.9]), [[0, 1]], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("one", EVERY, ids=str)
def test_the_level_is_kept_inside_the_family(one):
    """The truth is calibrated; 150 samples of 200 rows, at three scores each."""
    at = np.array([0.1, 0.5, 0.8])
    inside = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        s = rng.beta(0.8, 0.7, 200).clip(1e-9, 1 - 1e-9)
        low, high = clone(one).set_params(labels=[0, 1]).fit(s, rng.random(200) < s).predict_interval(at, 0.9).T
        inside.append((low <= at) & (at <= high))
    share = np.mean(inside, axis=0)
    assert share.min() > 0.9 - 3 * np.sqrt(0.09 / 150)


def test_files_of_earlier_versions_have_no_interval():
    written = json.loads((Path(__file__).parent / "saved_by_version_1.json").read_text(encoding="utf-8"))
    for name in ("platt", "isotonic", "spline", "temperature"):
        found = c.from_dict(written[name]["saved"])
        assert not hasattr(found, "predict_interval")
        at = AT if len(found.classes_) == 2 else np.column_stack([AT, (1 - AT) / 2, (1 - AT) / 2])
        assert np.isfinite(found.predict_proba(at)).all()
        again = c.from_dict(c.to_dict(found))
        np.testing.assert_array_equal(again.predict_proba(at), found.predict_proba(at))
    assert hasattr(c.PlattScaling(), "predict_interval")
