"""Optimism by the bootstrap against a plain loop, and against fresh rows."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal

MODEL = LogisticRegression(C=100.0)
NAMES = ("ici", "e50", "e90", "emax", "eci", "observed_expected", "in_the_large", "intercept", "slope")


def rows(n=150, features=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    return X, (rng.random(n) < expit(X[:, 0] - 0.5)).astype(int)


@pytest.mark.slow
def test_a_plain_loop_finds_the_same():
    X, y = rows()
    found = cal.decisions.optimism_corrected(MODEL, X, y, n_resamples=12, random_state=3)

    def measured(model, X, y):
        m = cal.calibration_measures(y, model.predict_proba(X)[:, 1], level=None)
        return np.array([getattr(m, name) for name in NAMES])

    optimism = []
    for seed in np.random.default_rng(3).integers(2**63, size=12):
        drawn = np.random.default_rng(seed).integers(len(y), size=len(y))
        model = LogisticRegression(C=100.0).fit(X[drawn], y[drawn])
        optimism.append(measured(model, X[drawn], y[drawn]) - measured(model, X, y))
    apparent = measured(LogisticRegression(C=100.0).fit(X, y), X, y)
    mean = np.mean(optimism, axis=0)
    assert list(found.apparent) == list(NAMES)
    assert list(found.apparent.values()) == pytest.approx(apparent)
    assert list(found.optimism.values()) == pytest.approx(mean)
    assert list(found.corrected.values()) == pytest.approx(apparent - mean)
    slope = np.array(optimism)[:, -1]
    assert found.intervals["slope"] == pytest.approx(apparent[-1] - np.quantile(slope, [0.975, 0.025]))
    assert set(found.intervals) == {"observed_expected", "in_the_large", "intercept", "slope"}
    for name, (low, high) in found.intervals.items():
        assert low <= found.corrected[name] <= high


@pytest.mark.slow
def test_workers_change_nothing():
    X, y = rows(100, 3)
    one = cal.decisions.optimism_corrected(MODEL, X, y, n_resamples=6)
    assert cal.decisions.optimism_corrected(MODEL, X, y, n_resamples=6, n_jobs=2).to_dict() == one.to_dict()


def test_containers_and_classes_change_nothing():
    X, y = rows(100, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    scaled = make_pipeline(StandardScaler(), MODEL)
    named = cal.decisions.optimism_corrected(scaled, frame, pd.Series(np.where(y == 1, "ill", "well")), n_resamples=4)
    assert named.label == "well"
    ill = cal.decisions.optimism_corrected(
        scaled, frame, np.where(y == 1, "ill", "well"), pos_label="ill", n_resamples=4
    )
    assert ill.corrected["slope"] == pytest.approx(named.corrected["slope"])
    assert ill.corrected["in_the_large"] == pytest.approx(-named.corrected["in_the_large"], abs=1e-6)


def test_weights_are_carried():
    X, y = rows(120, 3)
    w = np.random.default_rng(0).integers(1, 4, 120).astype(float)
    found = cal.decisions.optimism_corrected(MODEL, X, y, sample_weight=w, n_resamples=4)
    p = LogisticRegression(C=100.0).fit(X, y, sample_weight=w).predict_proba(X)[:, 1]
    assert found.apparent["ici"] == cal.calibration_measures(y, p, sample_weight=w, level=None).ici
    assert found.apparent["ici"] != cal.decisions.optimism_corrected(MODEL, X, y, n_resamples=4).apparent["ici"]


@pytest.mark.slow
def test_what_is_separated_is_said():
    X, y = rows(60, 20)
    forest = RandomForestClassifier(20, random_state=0)
    found = cal.decisions.optimism_corrected(forest, X, y, n_resamples=5)
    assert np.isnan(found.corrected["slope"])
    assert np.isnan(found.intervals["slope"]).all()
    assert any("separates all rows" in text for text in found.warnings)
    assert np.isfinite(found.corrected["ici"])
    assert "warning:" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_rare_classes_are_drawn_until_they_come():
    X, _ = rows(40, 2)
    rare = np.zeros(40, dtype=int)
    rare[:2] = 1
    assert cal.decisions.optimism_corrected(MODEL, X, rare, n_resamples=10).n_resamples == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "logistic"}, "model must be a scikit-learn classifier"),
        ({"y": np.arange(150) % 3}, "y must hold two classes; got 3"),
        ({"y": np.arange(149) % 2}, "inconsistent numbers of samples"),
        ({"pos_label": "ill"}, "pos_label must be one of"),
        ({"sample_weight": 1.0 * (np.arange(150) == 3)}, "sample_weight must be positive in some row of each class"),
        ({"n_jobs": 0}, "n_jobs must be None or an int >= 1"),
        ({"n_resamples": 1}, "n_resamples must be an int >= 2"),
        ({"level": 95}, "level must lie"),
    ],
)
def test_arguments_are_judged(change, message):
    X, y = rows()
    given = {"model": MODEL, "X": X, "y": y} | change
    with pytest.raises((TypeError, ValueError), match=message):
        cal.decisions.optimism_corrected(given.pop("model"), given.pop("X"), given.pop("y"), **given)


@pytest.mark.slow
def test_corrected_slope_is_nearer_to_that_of_fresh_rows():
    fresh, outcomes = rows(20_000, 8, 10_000)
    gaps = []
    for seed in range(12):
        X, y = rows(120, 8, seed)
        found = cal.decisions.optimism_corrected(MODEL, X, y, n_resamples=25)
        truth = cal.calibration_measures(outcomes, MODEL.fit(X, y).predict_proba(fresh)[:, 1], level=None).slope
        gaps.append((found.apparent["slope"] - truth, found.corrected["slope"] - truth))
    apparent, corrected = np.mean(gaps, axis=0)
    assert apparent > 0.15
    assert abs(corrected) < 4 * np.std(gaps, axis=0)[1] / np.sqrt(12) + 0.05
    assert abs(corrected) < apparent / 2
