"""Decomposition by a cross-fitted calibrator: naive folds, identities, intervals, weights, many classes."""

import json

import numpy as np
import pytest
from scipy.stats import t
from sklearn.model_selection import StratifiedKFold

import calibrant as cal
from calibrant.calibrators import BetaCalibration, Identity, TemperatureScaling, VectorScaling
from calibrant.calibrators.crossval import folds_of
from calibrant.comparison.models.units import IndependentUnits
from calibrant.scores.cross_fitted import limits

from .test_decomposition import binary, several

PARTS = ("total", "calibration", "refinement", "discrimination", "uncertainty", "grouping", "epistemic", "irreducible")


def naive(y, p, calibrator, score, w=None, cv=5):
    """Losses of each row: of scores, after the calibrator fitted to the other folds, of base rates."""
    k = p.shape[1]
    w = np.ones(len(y)) if w is None else w * w.sum() / (w @ w)  # relative weights add up to effective rows
    after = np.empty(p.shape)
    for train, test in StratifiedKFold(cv, shuffle=True, random_state=0).split(p, y):
        after[test] = calibrator.fit(p[train], y[train], w[train]).predict_proba(p[test])
    base = np.array([w[y == c].sum() for c in range(k)]) / w.sum()
    out = []
    for q in (p, after, np.tile(base, (len(y), 1))):
        hit = q[np.arange(len(y)), y]
        out.append(-np.log(hit) if score == "log-loss" else ((q - np.eye(k)[y]) ** 2).sum(axis=1))
    return out


@pytest.mark.parametrize("score", ["brier", "log-loss"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_naive_cross_validation(score, weighted):
    y, p = several(400)
    w = np.random.default_rng(1).random(400) if weighted else None
    d = cal.decompose(y, p, score=score, calibrator="temperature", sample_weight=w, level=0.9)
    total, after, base = naive(y, p, TemperatureScaling(labels=range(4)), score, w)
    share = np.full(400, 1 / 400) if w is None else w / w.sum()
    for part, rows in {
        "total": total,
        "calibration": total - after,
        "refinement": after,
        "discrimination": base - after,
        "uncertainty": base,
    }.items():
        mean = share @ rows
        se = np.sqrt(share**2 @ ((rows - mean) ** 2 / (1 - share)))
        reach = t.ppf(0.95, 1 / (share @ share) - 1) * se
        assert getattr(d, part) == pytest.approx(mean, abs=1e-12)
        assert d.intervals[part] == pytest.approx([mean - reach, mean + reach])
    assert d.estimator == "cross-fitted temperature"


@pytest.mark.parametrize("calibrator", ["beta", "isotonic", BetaCalibration(), TemperatureScaling()], ids=str)
@pytest.mark.parametrize("score", ["brier", "spherical", cal.scores.BetaFamily(2, 1)], ids=str)
def test_parts_add_up(calibrator, score):
    y, p = binary()
    d = cal.decompose(y, p, score=score, calibrator=calibrator, posterior=p**1.5)
    assert d.total == pytest.approx(d.calibration + d.refinement, abs=1e-15)
    assert d.total == pytest.approx(d.miscalibration - d.discrimination + d.uncertainty, abs=1e-14)
    assert d.refinement == pytest.approx(d.grouping + d.irreducible, abs=1e-14)
    assert d.within == 0
    for part in PARTS:
        assert d.intervals[part].low < getattr(d, part) < d.intervals[part].high
    assert d.total == pytest.approx(cal.decompose(y, p, score=score).total, abs=1e-12)
    assert d.uncertainty == pytest.approx(cal.decompose(y, p, score=score).uncertainty, abs=1e-12)


def test_leaving_scores_alone_leaves_no_calibration():
    y, p = several()
    d = cal.decompose(y, p, score="log-loss", calibrator=Identity())
    assert d.calibration == 0
    assert d.intervals["calibration"] == (0, 0)


def test_the_interval_of_the_skill_is_that_of_a_ratio():
    """By the jackknife, which knows no derivatives."""
    y, p = binary(300)
    d = cal.decompose(y, p, calibrator="platt")
    loss = (p - y) ** 2
    each = []
    for i in range(300):
        rest = np.delete(np.arange(300), i)
        rate = y[rest].mean()
        each.append(1 - loss[rest].mean() / (rate * (1 - rate)))
    se = np.std(each) * np.sqrt(299)
    low, high = d.intervals["skill"]
    assert (low + high) / 2 == pytest.approx(d.skill)
    assert (high - low) / 2 == pytest.approx(t.ppf(0.975, 299) * se, rel=0.02)


def test_what_is_positive_is_no_matter():
    y, p = binary(300)
    one = cal.decompose(y, p, calibrator="beta")
    names = np.array(["b", "a"])[y]
    other = cal.decompose(names, p, calibrator="beta", pos_label="a")
    assert other.refinement == pytest.approx(one.refinement, abs=1e-12)
    assert cal.decompose(cal.as_predictions(y, p), calibrator="beta").to_dict() == one.to_dict()


@pytest.mark.slow
def test_known_truth():
    """Log odds that temperature 2 sets right: what it repairs is the calibration loss."""
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(20_000, 3))
    q = np.exp(z / 2) / np.exp(z / 2).sum(axis=1, keepdims=True)
    p = q**2 / (q**2).sum(axis=1, keepdims=True)
    y = (rng.random((20_000, 1)) > q.cumsum(axis=1)).sum(axis=1)
    d = cal.decompose(y, p, score="log-loss", calibrator="temperature")
    truth = (q * np.log(q / p)).sum(axis=1).mean()
    low, high = d.intervals["calibration"]
    assert low < truth < high
    assert high - low < 0.15 * truth
    stiff = cal.decompose(y, np.column_stack([p[:, 1], p[:, 0], p[:, 2]]), score="log-loss", calibrator="temperature")
    able = cal.decompose(y, p, score="log-loss", calibrator=VectorScaling())
    assert stiff.refinement > d.refinement + 0.1  # names of two classes exchanged: no temperature puts that right
    assert able.refinement == pytest.approx(d.refinement, abs=1e-3)


def test_whole_weights_count_rows():
    rng = np.random.default_rng(0)
    values, w = rng.normal(size=50), rng.integers(1, 4, 50).astype(float)
    rows = np.repeat(np.arange(50), w.astype(int))

    def units(n, weight):
        return IndependentUnits.of(cal.as_predictions(np.arange(n) % 2, np.full(n, 0.5), sample_weight=weight))

    one = limits(units(50, w), {"a": values}, 0.95)
    other = limits(units(len(rows), None), {"a": values[rows]}, 0.95)
    assert one["a"] == pytest.approx(other["a"])
    two_sided, lower = limits(units(50, w), {"a": values}, 0.9), limits(units(50, w), {"a": values}, 0.95, sides=1)
    assert lower["a"].low == pytest.approx(two_sided["a"].low)
    assert lower["a"].high == np.inf


def test_rows_without_weight_do_not_count():
    y, p = several(300)
    w = (np.arange(300) % 3 > 0).astype(float)
    one = cal.decompose(y, p, score="log-loss", calibrator="temperature", sample_weight=w)
    other = cal.decompose(y[w > 0], p[w > 0], score="log-loss", calibrator="temperature")
    assert one.to_dict() == other.to_dict()
    assert one.n_samples == 200


def test_rare_classes_and_classes_that_nobody_saw():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(200, 0.05), 1000)
    y = (rng.random((1000, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, 199)
    d = cal.decompose(y, q, score="log-loss", calibrator="temperature", labels=range(200))
    assert np.isfinite([d.total, d.refinement, d.uncertainty]).all()
    each = cal.decompose(y, q, calibrator="identity", labels=range(200))
    assert each.total == pytest.approx(cal.brier_score(y, q, labels=range(200)))


def test_infinite_scores_are_reported():
    y, p = binary(200)
    y[0], p[0] = 1, 0.0
    d = cal.decompose(y, p, score="log-loss", calibrator="ensemble-temperature")
    assert d.total == d.calibration == np.inf
    assert np.isfinite(d.refinement)
    assert "calibration" not in d.intervals
    assert json.loads(json.dumps(d.to_dict(), allow_nan=False))["total"] is None


def test_the_number_of_folds_and_their_seed():
    y, p = several(300)

    def after(**o):
        return cal.decompose(y, p, score="log-loss", calibrator="vector", **o).refinement

    assert after() == after(cv=5, random_state=0)
    assert len({after(), after(cv=3), after(random_state=1)}) == 3
    assert after(random_state=np.random.default_rng(7)) == after(random_state=np.random.default_rng(7))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"calibrator": "sharpen"}, ValueError, "name of a calibrator must be one of .*'sharpen'"),
        ({"calibrator": TemperatureScaling}, TypeError, "calibrator must be a name or one of"),
        ({"calibrator": 3}, TypeError, "calibrator must be a name or one of"),
        ({"calibrator": "platt", "estimator": "binned"}, ValueError, "calibrator takes the place of estimator"),
        ({"calibrator": "platt", "n_resamples": 9}, ValueError, "calibrator takes the place of estimator"),
        ({"calibrator": "platt", "cv": 1}, ValueError, "cv must be an int >= 2"),
    ],
)
def test_bad_arguments(change, kind, words):
    with pytest.raises(kind, match=words):
        cal.decompose([0, 1, 1, 0], [0.2, 0.4, 0.8, 0.5], **change)


@pytest.mark.parametrize("n_groups", [3, 4, 60])
def test_folds_keep_groups_together(n_groups):
    rng = np.random.default_rng(0)
    group = rng.integers(n_groups, size=600)
    codes = (rng.random(600) < 0.3).astype(int)
    folds = folds_of(codes, 5, 0, group)
    assert len(folds) == min(5, n_groups)
    assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(600))
    for train, test in folds:
        assert not set(group[train]) & set(group[test])
        assert abs(codes[test].mean() - codes.mean()) < 0.15


def test_groups_in_cross_fitted_parts():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(150), 6)
    p = rng.uniform(0.02, 0.98, 150)[group]
    y = np.repeat((rng.random(150) < p[::6] ** 1.5).astype(int), 6)
    rows, groups = (cal.decompose(y, p, groups=g, calibrator="beta") for g in (None, group))
    assert groups.total == rows.total
    assert np.ptp(groups.intervals["total"]) > 2 * np.ptp(rows.intervals["total"])
    loss = ((y - p) ** 2)[::6]
    half = t.ppf(0.975, 149) * loss.std(ddof=1) / np.sqrt(150)
    assert tuple(groups.intervals["total"]) == pytest.approx((loss.mean() - half, loss.mean() + half), rel=1e-9)


@pytest.mark.slow
def test_features_that_name_the_group_tell_nothing_of_other_groups():
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(80), 12)
    p = rng.uniform(0.3, 0.7, group.size)
    off = np.repeat(rng.choice([-0.25, 0.25], 80), 12)
    y = (rng.random(group.size) < p + off).astype(int)
    name = np.repeat(rng.random(80), 12)[:, None]  # says which group it is, and nothing else
    rows, groups = (cal.scores.grouping_loss(y, p, name, groups=g) for g in (None, group))
    assert rows.interval.low > 0.005
    assert groups.interval.low <= 0
    assert groups.value < 0.3 * rows.value
