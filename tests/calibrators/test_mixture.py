"""Averages of calibrators, and the weights that held-out rows earn them."""

import numpy as np
import pytest

from calibrant import calibrators as c
from calibrant.calibrators.crossval import folds_of

from ..versions import SKLEARN
from .table import several, two


@pytest.mark.parametrize("weights", [None, [1, 3], (0.0, 2.0), np.array([0.5, 0.5])])
def test_a_mixture_is_the_average(weights):
    p, y, _ = several(300, 3, 0, 0.6)
    w = np.random.default_rng(0).random(300)
    mixed = c.Mixture([c.TemperatureScaling(), c.VectorScaling()], weights).fit(p, y, sample_weight=w)
    a, b = (np.ones(2) if weights is None else np.asarray(weights)) / (2 if weights is None else sum(weights))
    parts = [one.fit(p, y, sample_weight=w).predict_proba(p) for one in (c.TemperatureScaling(), c.VectorScaling())]
    np.testing.assert_allclose(mixed.predict_proba(p), a * parts[0] + b * parts[1], atol=1e-12)


@pytest.mark.parametrize(
    ("calibrators", "weights", "error", "words"),
    [
        ([], None, TypeError, "calibrators must be a list"),
        ([1], None, TypeError, "calibrators must be a calibrator"),
        ([c.Identity()], [1, 2], ValueError, "weights must be 1 numbers"),
        ([c.Identity()], 1.0, ValueError, "weights must be 1 numbers"),
        ([c.Identity()], [-1.0], ValueError, "weights must be"),
        ([c.Identity()], ["a"], TypeError, "weights must be"),
        ([c.Identity(), c.Identity()], [0, 0], ValueError, "not all be 0"),
    ],
)
def test_bad_mixtures(calibrators, weights, error, words):
    with pytest.raises(error, match=words):
        c.Mixture(calibrators, weights).fit([0.2, 0.7], [0, 1])


def by_hand(candidates, p, y, goal):
    """Weights by the docstring, row by row and one by one the prior's rows; the first is the identity."""
    n, k = p.shape
    held = {}
    for name, one in candidates.items():
        held[name] = np.empty((n, k))
        for train, test in folds_of(y, 5, 0):
            held[name][test] = one.set_params(labels=list(range(k))).fit(p[train], y[train]).predict_proba(p[test])

    def loss(q, label, score):
        if score == "log-loss":
            return -np.log(max(q[label], 1e-6))
        return ((q - np.eye(k)[label]) ** 2).sum()

    changing = list(candidates)[1:]
    sums = [
        sum(loss(q, o, "log-loss") + 2 * loss(q, o, "brier") for q, o in zip(held[name], y, strict=True))
        for name in changing
    ]
    each = np.exp((min(sums) - np.array(sums)) / 10)
    each *= [np.exp(2.0) if k == 2 and name == "ensemble-temperature" else 1.0 for name in changing]
    each = np.where(each / each.sum() < 0.01, 0, each)
    each /= each.sum()
    mixed = sum(w * held[name] for w, name in zip(each, changing, strict=True))
    parts = []
    for score in ("log-loss", "brier"):
        gains, mass = [], []
        for i in range(n):
            for label in range(k):
                gains.append(loss(p[i], label, score) - loss(mixed[i], label, score))
                mass.append((label == y[i]) + 8 / n * p[i, label])
        mass = np.array(mass) / (n + 8)
        gains = np.array(gains)
        mean = mass @ gains
        variance = mass @ (gains - mean) ** 2 / (n + 8)
        rows = (mass @ gains**2) ** 2 / (mass @ gains**4) * (n + 8)
        factor = (0.5 if score == goal else 0.05) * (1 + 3 / rows)
        parts.append(max(0.0, 1 - factor * variance / mean**2) if mean > 0 else 0.0)
    part = min(parts)
    return {"identity": 1 - part} | {name: part * w for w, name in zip(each, changing, strict=True)}


@pytest.mark.parametrize("goal", ["log-loss", "brier"])
@pytest.mark.parametrize("power", [0.6, 0.85, 1.0])
@pytest.mark.parametrize("k", [2, 3])
def test_weights_are_those_of_the_docstring(goal, power, k):
    p, y, _ = several(250, k, 5, power)
    candidates = {
        "identity": c.Identity(),
        "temperature": c.TemperatureScaling(),
        "ensemble-temperature": c.EnsembleTemperatureScaling(),
        "vector": c.VectorScaling(),
    }
    want = by_hand(candidates, p, y, goal)
    fitted = c.AutoCalibrator(candidates, goal=goal).fit(p, y)
    assert {row["name"]: row["weight"] for row in fitted.table_} == pytest.approx(want, abs=1e-9)
    assert fitted.chosen_ == max(want, key=want.get)
    parts = {name: one.fit(p, y).predict_proba(p) for name, one in candidates.items()}
    np.testing.assert_allclose(fitted.predict_proba(p), sum(want[name] * q for name, q in parts.items()), atol=1e-9)


@pytest.mark.slow
def test_no_harm_where_scores_are_calibrated_and_rows_few():
    """The mean harm over samples of 100 calibrated rows is a fifth of that of the best single candidate."""
    harm = {"average": [], "best": []}
    for seed in range(25):
        s, y, truth = two(1100, seed)
        for rule, found in harm.items():
            q = c.AutoCalibrator(rule=rule).fit(s[:100], y[:100]).predict_proba(s[100:])[:, 1]
            t = truth[100:]
            found.append((t * np.log(t / q.clip(1e-6)) + (1 - t) * np.log((1 - t) / (1 - q).clip(1e-6))).mean())
    assert np.mean(harm["average"]) < 0.2 * np.mean(harm["best"])


def test_repairs_what_needs_repair():
    s, y, truth = two(6000, 1, 0.4)
    fitted = c.AutoCalibrator().fit(s[:1000], y[:1000])
    q, t = fitted.predict_proba(s[1000:])[:, 1], truth[1000:]
    assert np.abs(q - t).mean() < 0.3 * np.abs(s[1000:] - t).mean()
    assert isinstance(fitted.calibrator_, c.Mixture)
    assert "weight" in repr(fitted)
    assert "weight" in str(fitted)


def test_margins_are_averaged_and_not_left_alone():
    s, y, _ = two(400, 1, 0.4)
    fitted = c.AutoCalibrator(input="margin").fit(np.log(s / (1 - s)), y)
    assert sum(row["weight"] for row in fitted.table_) == pytest.approx(1)


def test_the_rules_of_before_choose_one():
    s, y, _ = two(600, 1, 0.5)
    fitted = c.AutoCalibrator(rule="one-standard-error").fit(s, y)
    chosen = c.select_calibrator(s, y, rule="one-standard-error")
    assert fitted.chosen_ == chosen.name
    assert "weight" not in fitted.table_[0]
    assert "weight" not in repr(fitted)
    again = c.from_dict(c.to_dict(fitted))
    np.testing.assert_array_equal(again.predict_proba(s), fitted.predict_proba(s))


def test_nested_judges_the_average_too():
    s, y, _ = two(300, 1, 0.5)
    found = c.select_calibrator(s, y, rule="average", cv=3, nested=True)
    assert 0 < found.nested_loss < np.log(2)


@pytest.mark.skipif(SKLEARN < (1, 9), reason="scikit-learn shows fitted numbers since 1.9")
def test_small_numbers_are_shown_in_a_notebook():
    s, y, _ = two(3000, 1, 0.5)
    fitted = c.TemperatureScaling().fit(s, y)
    fitted.temperature_ = 2.3e-5
    assert "2.3e-05" in fitted._repr_html_()
