"""The grouping loss that features show: naive twins, the inequality behind it, known truth, what may be given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

import calibrant as cal
from calibrant.calibrators import QuadraticLogit
from calibrant.datasets import make_survey, survey_posterior, survey_restored
from calibrant.scores import grouping_loss
from calibrant.scores.grouping import _levelled, level_sets


def hidden(n=2000, seed=0, gain=1.0):
    """Scores that know the first feature, and posteriors that know the second: features, labels, S, C and Q."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    q = expit(x[:, 0] + gain * np.sign(x[:, 1]))
    c = (expit(x[:, 0] + gain) + expit(x[:, 0] - gain)) / 2
    return x, (rng.random(n) < q).astype(int), expit(1.5 * x[:, 0]), c, q


def loss(p, y, score):
    return -np.log(np.where(y == 1, p, 1 - p)) if score == "log-loss" else (p - y) ** 2


def naive_cells(told, rows, least=10):
    """Halved one by one."""
    width = np.ptp(told[rows], axis=0)
    if len(rows) < 2 * least or width.max() == 0:
        return [sorted(rows.tolist())]
    value = told[rows, width.argmax()]
    order = np.argsort(value, kind="stable")
    cuts = [i for i in range(1, len(rows)) if value[order[i]] != value[order[i - 1]]]
    cut = min(cuts, key=lambda i: (abs(2 * i - len(rows)), i))
    low, high = rows[order[:cut]], rows[order[cut:]]
    return naive_cells(told, low, least) + naive_cells(told, high, least)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(1, 4), st.sampled_from([None, 3, 0]), st.integers(0, 10**6))
def test_level_sets(n, k, digits, seed):
    told = np.random.default_rng(seed).random((n, k)) * (np.arange(k) + 1)
    told = told if digits is None else np.round(told, 0 if digits == 0 else 1)
    cell = level_sets(told)
    found = sorted(np.flatnonzero(cell == c).tolist() for c in np.unique(cell))
    assert found == sorted(naive_cells(told, np.arange(n)))
    _, first = np.unique(told, axis=0, return_inverse=True)
    assert all(len(set(cell[first.reshape(-1) == v])) == 1 for v in range(first.max() + 1))
    if digits is None and n >= 20:
        assert np.bincount(cell).min() >= 10
        assert np.bincount(cell).max() < 20


def naive_boosting(p, code, y, train, rng):
    """Regions one by one, two classes."""
    shuffled = rng.permutation(train)
    stop, rows = shuffled[: len(train) // 5], shuffled[len(train) // 5 :]
    now, best, least, since = p.copy(), p, loss(p[stop], y[stop], "log-loss").mean(), 0
    for _ in range(100):
        step = now.copy()
        for r in set(code.tolist()):
            mine = rows[code[rows] == r]
            one = ((y[mine].sum() + 1) / (now[mine].sum() + 1)) ** 0.2
            none = (((1 - y[mine]).sum() + 1) / ((1 - now[mine]).sum() + 1)) ** 0.2
            here = code == r
            step[here] = now[here] * one / (now[here] * one + (1 - now[here]) * none)
        now = step
        reached = loss(now[stop], y[stop], "log-loss").mean()
        best, least, since = (now, reached, 0) if reached < least else (best, least, since + 1)
        if since == 10:
            break
    return best


def test_a_naive_bound_by_regions():
    x, y, s, _, _ = hidden(400)
    code = (x[:, 1] > 0) + 2 * (x[:, 2] > 1)
    gains, noise, rng = np.empty(400), np.empty(400), np.random.default_rng(0)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(s, y):
        start = QuadraticLogit().fit(s[train], y[train]).predict_proba(s)[:, 1]
        q = naive_boosting(start, code, y, train, rng)
        for cell in naive_cells(s[:, None], np.arange(400)):
            rows = np.intersect1d(cell, test)
            one, none = q[cell].mean() / start[cell].mean(), (1 - q[cell]).mean() / (1 - start[cell]).mean()
            told = start[rows] * one / (start[rows] * one + (1 - start[rows]) * none)
            gains[rows] = loss(told, y[rows], "log-loss") - loss(q[rows], y[rows], "log-loss")
            each = [loss(told, label, "log-loss") - loss(q[rows], label, "log-loss") for label in (0, 1)]
            noise[rows] = told * (1 - told) * (each[1] - each[0]) ** 2  # of a gain that takes two values
    found = grouping_loss(y, s, code, score="log-loss")
    assert found.value == pytest.approx(gains.mean(), abs=1e-10)
    se = max(gains.std(ddof=1) / 20, np.sqrt(noise.mean()) / 20)
    from scipy.stats import t

    half = t.ppf(0.975, 399) * se
    assert found.interval == pytest.approx([gains.mean() - half, gains.mean() + half])
    assert found.lower == pytest.approx(gains.mean() - t.ppf(0.95, 399) * se)
    named = grouping_loss(y, s, np.array(["a", "b", "c", "d"])[code], score="log-loss")
    assert named.to_dict() == found.to_dict()


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 30), st.integers(2, 5), st.integers(0, 10**6), st.booleans())
def test_no_guess_gains_more_than_there_is(n, k, seed, weighted):
    """Of rows that were told the same: whatever the features' probabilities are, they gain at most the spread of Q."""
    rng = np.random.default_rng(seed)
    q, guess = rng.dirichlet(np.ones(k), (2, n))
    told = np.tile(rng.dirichlet(np.ones(k)), (n, 1))
    w = rng.random(n) + 0.01 if weighted else np.ones(n)
    cell = np.arange(n) // 7
    spoken = _levelled(guess, told, cell, w)
    mean = np.array([np.average(q[cell == c], axis=0, weights=w[cell == c]) for c in cell])
    gain = w @ ((spoken - q) ** 2 - (guess - q) ** 2).sum(axis=1)
    assert gain <= w @ ((mean - q) ** 2).sum(axis=1) + 1e-12
    gain = w @ (q * np.log(guess / spoken)).sum(axis=1)
    assert gain <= w @ (q * np.log(q / mean)).sum(axis=1) + 1e-9
    assert spoken.sum(axis=1) == pytest.approx(np.ones(n))


@pytest.mark.slow
@pytest.mark.parametrize("score", ["brier", "log-loss"])
@pytest.mark.parametrize("calibrator", ["auto", "beta"])
def test_known_truth(score, calibrator):
    x, y, s, c, q = hidden(2500)
    found = grouping_loss(y, s, x, score=score, calibrator=calibrator)
    truth = (
        ((q - c) ** 2).mean() if score == "brier" else (q * np.log(q / c) + (1 - q) * np.log((1 - q) / (1 - c))).mean()
    )
    se = (found.interval.high - found.value) / 1.96
    assert 0.6 * truth < found.value < truth + 2 * se
    assert 0 < found.lower < truth
    assert found.calibrator == ("quadratic" if calibrator == "auto" else "beta")


@pytest.mark.slow
@pytest.mark.parametrize("score", ["brier", "log-loss"])
def test_scores_that_are_a_function_of_the_posterior(score):
    """The survey's three classes, from one feature: nothing is left to group by, however wrong the scores are."""
    found = make_survey(3000, "three-class", random_state=0)
    q = survey_restored(found.y_prob)
    x = np.column_stack([np.log(q + 1e-9), np.random.default_rng(0).normal(size=3000)])
    bound = grouping_loss(found.y_true, found.y_prob, x, score=score, calibrator="temperature")
    assert -0.02 < bound.value < 1e-3
    assert bound.lower < 0
    assert cal.decompose(found.y_true, found.y_prob, score=score, calibrator="temperature").calibration > 0.01


@pytest.mark.slow
def test_features_of_three_classes():
    rng = np.random.default_rng(0)
    x = rng.normal(scale=30, size=(1500, 2))
    q = survey_posterior(x[:, 0], 3)
    side = np.where(x[:, 1] > 0, 2.0, 0.5)
    q = q * np.column_stack([side, np.ones(1500), 1 / side])
    q /= q.sum(axis=1, keepdims=True)
    y = np.array(["a", "b", "c"])[(rng.random((1500, 1)) > q.cumsum(axis=1)).sum(axis=1)]
    s = survey_posterior(x[:, 0], 3)
    found = grouping_loss(y, s, x)
    assert 0.02 < found.lower < found.value
    assert grouping_loss(y, s[:, ::-1], x, labels=["c", "b", "a"]).lower > 0.02


def test_a_second_models_scores_are_features():
    x, y, s, _, q = hidden()
    assert grouping_loss(y, s, np.clip(q + 0.05 * x[:, 2], 0, 1)[:, None]).lower > 0


@pytest.mark.slow
def test_tables_of_every_kind():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x, y, s, _, _ = hidden(120)
    x[::7, 1] = np.nan
    town = np.array(["bonn", "aachen", "celle"])[(x[:, 2] > 0).astype(int) + (x[:, 3] > 0)]
    code = np.unique(town, return_inverse=True)[1]
    want = grouping_loss(y, s, np.column_stack([x, code])).to_dict()
    frame = pandas.DataFrame(x).rename(columns=str).assign(town=town)
    assert grouping_loss(y, s, frame).to_dict() == want
    assert grouping_loss(y, s, frame.astype({"town": "category"})).to_dict() == want
    columns = {f"x{i}": [None if np.isnan(v) else v for v in x[:, i]] for i in range(4)} | {"town": town}
    assert grouping_loss(y, s, polars.DataFrame(columns)).to_dict() == want
    assert grouping_loss(y, s, np.column_stack([x.astype(object), town])).to_dict() == want
    days = np.datetime64("2020-01-01", "D") + code.astype("m8[D]")
    assert grouping_loss(y, s, pandas.DataFrame(x).assign(day=days).rename(columns=str)).to_dict() == want


@pytest.mark.slow
def test_rows_without_weight_do_not_count():
    x, y, s, _, _ = hidden(600)
    w = (np.arange(600) % 3 > 0).astype(float)
    for features in (x, (x[:, 1] > 0).astype(int)):
        one = grouping_loss(y, s, features, sample_weight=w)
        other = grouping_loss(y[w > 0], s[w > 0], features[w > 0])
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert one.interval == pytest.approx(other.interval)


def test_the_scale_of_relative_weights_is_no_matter():
    x, y, s, _, _ = hidden(600)
    w = np.random.default_rng(0).random(600) + 0.1
    one, other = (grouping_loss(y, s, x[:, 1] > 0, sample_weight=w * scale) for scale in (1.0, 7.3))
    assert one.value == pytest.approx(other.value, abs=1e-12)
    assert one.value != grouping_loss(y, s, x[:, 1] > 0).value


def test_what_is_shown():
    x, y, s, _, _ = hidden(400)
    found = grouping_loss(y, s, x[:, 1] > 0)
    assert f"above {found.lower:.4f} at 95 %" in str(found)
    assert found.to_dict()["lower"] == found.lower


@pytest.mark.slow
def test_the_seed():
    x, y, s, _, _ = hidden(400)
    found = [grouping_loss(y, s, x, random_state=seed).value for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


X, Y, S = (v[:40] for v in hidden(40)[:3])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"features": X[:, 0]}, ValueError, r"codes of regions in 1-D.*features\[:, None\]"),
        ({"features": X[:39]}, ValueError, "one row per label .40. and at least one column"),
        ({"features": np.arange(39)}, ValueError, r"features must have one value per row \(40\)"),
        ({"features": X[:, :0]}, ValueError, "features must have one row per label"),
        ({"features": X * np.inf}, ValueError, "features must be finite"),
        ({"features": X * 1e300}, ValueError, "features must be finite numbers below"),
        ({"features": X + 0j}, TypeError, "features must be numbers or categories"),
        ({"features": [None] * 40}, ValueError, "features must have no missing values; row 0"),
        (
            {"features": X, "score": "spherical"},
            ValueError,
            r"score must be one of Brier\(scale='sum'\), .*, Log\(\); got Spherical",
        ),
        ({}, TypeError, "features must be given"),
        ({"features": X, "cv": 0}, ValueError, "cv must be"),
    ],
)
def test_bad_arguments(change, kind, words):
    with pytest.raises(kind, match=words):
        grouping_loss(Y, S, **change)


def test_weights_count_in_every_region():
    """One step, by hand: rows of weight 3 are three rows."""
    from calibrant.calibrators import Identity
    from calibrant.calibrators.inputs import CalibrationSample
    from calibrant.scores import cross_fitted
    from calibrant.scores import grouping as module
    from calibrant.scores.grouping import Regions

    _, y, s, _, _ = hidden(60)
    w = np.random.default_rng(1).integers(1, 4, 60).astype(float)
    told, code, train = np.column_stack([1 - s, s]), np.arange(60) % 3, np.arange(50)
    sample = CalibrationSample.of(cal.as_predictions(y, s, sample_weight=w))
    fits = cross_fitted.CrossFitted(sample, told, None, Identity(), "identity", [])
    one = module.FeatureGains(cal.scores.Log(), fits, w, Regions(np.empty((60, 0)), code))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STEPS", 1)
        patch.setattr(module.FeatureGains, "_mean", lambda self, p, rows: -float(p is not told))
        found = one._boosted(told, train, np.random.default_rng(0))[:, 1]
    rows = np.random.default_rng(0).permutation(train)[10:]
    for r in range(3):
        mine, here = rows[code[rows] == r], code == r
        up = ((w[mine] @ y[mine] + 1) / (w[mine] @ s[mine] + 1)) ** 0.2
        down = ((w[mine] @ (1 - y[mine]) + 1) / (w[mine] @ (1 - s[mine]) + 1)) ** 0.2
        assert found[here] == pytest.approx(s[here] * up / (s[here] * up + (1 - s[here]) * down))
