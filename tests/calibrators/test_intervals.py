"""`predict_interval`: against sums that are written out, its level, and files without what it needs."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.special import expit, logit
from scipy.stats import beta, norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from calibrant import calibrators as c

from .table import two

AT = np.array([0.02, 0.2, 0.5, 0.7, 0.99])
LAPLACE = [c.PlattScaling(), c.BetaCalibration(), c.BetaCalibration("am"), c.QuadraticLogit(), c.SplineCalibrator()]
EVERY = [*LAPLACE, c.IsotonicCalibrator(), c.RocHullCalibrator(centred=True)]


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
    for name in ("platt", "isotonic", "spline"):
        found = c.from_dict(written[name]["saved"])
        assert not hasattr(found, "predict_interval")
        assert np.isfinite(found.predict_proba(AT)).all()
        again = c.from_dict(c.to_dict(found))
        np.testing.assert_array_equal(again.predict_proba(AT), found.predict_proba(AT))
    assert hasattr(c.PlattScaling(), "predict_interval")


@pytest.mark.parametrize("one", [c.TemperatureScaling(), c.GaussianProcessCalibrator()], ids=str)
def test_intervals_that_would_not_cover_are_not_given(one):
    assert not hasattr(clone(one).fit(*two(100, 1)[:2]), "predict_interval")


def test_the_interval_of_an_average_written_out():
    """Members' intervals and how they differ; those without one count with the spline's."""
    s, y, _ = two(300, 1, 0.6)
    fitted = c.AutoCalibrator(["identity", "temperature", "platt", "isotonic"]).fit(s, y)
    held = fitted.calibrator_
    assert len(held.calibrators_) > 2
    spline, middle = c.SplineCalibrator().fit(s, y), fitted.predict_proba(AT)[:, 1]
    low = high = 0.0
    for one, weight in zip(held.calibrators_, held.weights_, strict=True):
        has = isinstance(one, (c.PlattScaling, c.IsotonicCalibrator))
        source = one if has else spline
        q, (a, b) = source.predict_proba(AT)[:, 1], source.predict_interval(AT, 0.9).T
        apart = norm.ppf(0.95) * (q - middle)
        low, high = low + weight * np.sqrt((q - a) ** 2 + apart**2), high + weight * np.sqrt((b - q) ** 2 + apart**2)
    want = np.clip(np.column_stack([middle - low, middle + high]), 0, 1)
    np.testing.assert_allclose(fitted.predict_interval(AT, 0.9), want)
    again = c.from_dict(json.loads(json.dumps(c.to_dict(fitted))))
    np.testing.assert_array_equal(again.predict_interval(AT, 0.9), fitted.predict_interval(AT, 0.9))


def test_averages_of_several_classes_and_of_groups_give_no_interval():
    s, y, _ = two(300, 1, 0.6)
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 150)
    assert not hasattr(c.AutoCalibrator().fit(p, np.arange(150) % 3), "predict_interval")
    assert not hasattr(
        c.AutoCalibrator(["identity", "platt"]).fit(s, y, groups=np.arange(300) // 5), "predict_interval"
    )
    folds = c.AutoCalibrator(["identity", "platt"])
    model = c.CalibratedModel(LogisticRegression(), folds, cv=3).fit(s[:, None], y)
    for _, one in model.pairs_:
        assert one.predict_interval(np.column_stack([1 - AT, AT])).shape == (5, 2)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.5, 1.0, 1.7])
def test_the_interval_of_an_average_covers(slope):
    at, inside = np.array([0.1, 0.5, 0.8]), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        s = rng.beta(0.8, 0.7, 200).clip(1e-9, 1 - 1e-9)
        y = (rng.random(200) < expit(slope * logit(s))).astype(int)
        low, high = c.AutoCalibrator(labels=[0, 1]).fit(s, y).predict_interval(at, 0.9).T
        truth = expit(slope * logit(at))
        inside.append((low <= truth) & (truth <= high))
    assert np.mean(inside, axis=0).min() > 0.9 - 3 * np.sqrt(0.09 / 40)
