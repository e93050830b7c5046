"""Risk and coverage against their definitions, row by row and order by order."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import calibrant as cal


def in_one_order(wrong):
    """AURC and AUGRC of errors in the order in which rows are accepted, O(n²)."""
    n = len(wrong)
    aurc = sum(sum(wrong[:k]) / k for k in range(1, n + 1)) / n
    # Trapezoids of the generalised risk between coverages 0, 1/n, …, 1.
    risk = [sum(wrong[:k]) / n for k in range(n + 1)]
    return aurc, sum((a + b) / 2 for a, b in itertools.pairwise(risk)) / n


def sample(n=200, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet([1.0, 1.0, 1.0], n)
    y = (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    if decimals is not None:
        q = q.round(decimals) + 1e-3
        q /= q.sum(axis=1, keepdims=True)
    return y, q


def test_areas_are_their_definitions():
    y, q = sample()
    found = cal.decisions.risk_coverage(y, q)
    order = np.argsort(-q.max(axis=1))
    wrong = (q.argmax(axis=1) != y)[order]
    assert (found.aurc, found.augrc) == pytest.approx(in_one_order(wrong), rel=1e-12)
    best = in_one_order(np.sort(wrong))
    assert found.excess_aurc == pytest.approx(found.aurc - best[0], rel=1e-10)
    assert found.excess_augrc == pytest.approx(found.augrc - best[1], rel=1e-2)  # one half of r², to 1 / n
    n = len(y)
    assert found.coverage == pytest.approx(np.arange(1, n + 1) / n)
    assert found.risk == pytest.approx(np.cumsum(wrong) / np.arange(1, n + 1))
    assert found.generalised_risk == pytest.approx(np.cumsum(wrong) / n)
    assert found.risk[-1] == pytest.approx(found.error_rate) == wrong.mean()
    assert (np.diff(found.thresholds) < 0).all()


def test_published_relation_to_auroc():
    # Traub et al. (2024), eq. 8: AUGRC = (1 - AUROC) · acc · (1 - acc) + (1 - acc)² / 2.
    for decimals in (None, 1):
        y, q = sample(500, 1, decimals)
        right = q.argmax(axis=1) == y
        acc, auroc = right.mean(), roc_auc_score(right, q.max(axis=1))
        found = cal.decisions.risk_coverage(y, q)
        assert found.augrc == pytest.approx((1 - auroc) * acc * (1 - acc) + (1 - acc) ** 2 / 2, rel=1e-12)
        assert found.excess_augrc == pytest.approx((1 - auroc) * acc * (1 - acc), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_ties_are_the_mean_over_all_orders(rows):
    confidence = np.array([c for c, _ in rows], dtype=float)
    wrong = np.array([w for _, w in rows])
    found = cal.decisions.risk_coverage(
        wrong.astype(int), np.full(len(rows), 0.2), confidence=confidence, labels=[0, 1]
    )
    orders = [
        in_one_order(wrong[list(order)])
        for order in itertools.permutations(range(len(rows)))
        if (np.diff(confidence[list(order)]) <= 0).all()
    ]
    assert (found.aurc, found.augrc) == pytest.approx(np.mean(orders, axis=0), abs=1e-12)
    for name, (low, high) in found.intervals.items():
        value = getattr(found, name)
        assert np.isnan(low) or low <= value + 1e-12 <= high + 2e-12


def test_weights_are_repeats_and_scale_is_no_matter():
    y, q = sample(80, 2, 1)
    w = np.random.default_rng(0).integers(0, 4, 80)
    one, other = (
        cal.decisions.risk_coverage(y, q, sample_weight=w),
        cal.decisions.risk_coverage(np.repeat(y, w), np.repeat(q, w, axis=0)),
    )
    for name, (low, high) in one.intervals.items():
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-10)
        assert (low, high) == pytest.approx(other.intervals[name], rel=1e-9)
    np.testing.assert_allclose(one.risk, other.risk)
    v = np.random.default_rng(1).random(80)
    half, whole = (cal.decisions.risk_coverage(y, q, sample_weight=c * v) for c in (0.5, 20.5))
    assert half.aurc == pytest.approx(whole.aurc, rel=1e-9)
    assert half.intervals["augrc"] == pytest.approx(whole.intervals["augrc"], rel=1e-9)


def test_standard_errors_are_those_of_leaving_rows_out():
    y, q = sample(400, 3, 2)
    found = cal.decisions.risk_coverage(y, q)
    out = [cal.decisions.risk_coverage(np.delete(y, i), np.delete(q, i, axis=0)) for i in range(len(y))]
    for name, se in found.standard_errors.items():
        each = np.array([getattr(one, name) for one in out])
        jackknife = np.sqrt((len(y) - 1) * each.var())
        assert se == pytest.approx(jackknife, rel=0.03)


def test_a_confidence_of_ones_own():
    y, q = sample(100, 4)
    mine = np.log(q.max(axis=1))  # any increasing function orders alike
    assert cal.decisions.risk_coverage(y, q, confidence=mine).aurc == cal.decisions.risk_coverage(y, q).aurc
    by_margin = np.sort(q, axis=1)
    other = cal.decisions.risk_coverage(y, q, confidence=by_margin[:, -1] - by_margin[:, -2])
    assert other.error_rate == cal.decisions.risk_coverage(y, q).error_rate
    for bad, message in (
        (mine[:-1], "a number for each of 100 rows"),
        (np.where(np.arange(100) == 3, np.nan, mine), "finite; got nan in row 3"),
        (np.array(["a"] * 100), "must hold numbers"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            cal.decisions.risk_coverage(y, q, confidence=bad)
    with pytest.raises(ValueError, match="level must lie"):
        cal.decisions.risk_coverage(y, q, level=95)


def test_no_error_no_right_row_and_a_perfect_order():
    p = np.linspace(0.6, 0.99, 50)
    none = cal.decisions.risk_coverage(np.ones(50, dtype=int), p, labels=[0, 1])
    unseen = 1 - 0.025 ** (1 / 50)
    assert (none.aurc, none.augrc, none.error_rate) == (0, 0, 0)
    assert none.intervals["error_rate"] == pytest.approx((0, unseen))
    assert none.intervals["augrc"] == pytest.approx((0, unseen - unseen**2 / 2))  # all that is unseen is surest
    assert none.intervals["aurc"].high == pytest.approx(unseen - unseen * np.log(unseen))
    every = cal.decisions.risk_coverage(np.zeros(50, dtype=int), p, labels=[0, 1])
    assert (every.aurc, every.excess_aurc) == pytest.approx((1, 0))
    assert every.intervals["error_rate"] == pytest.approx((1 - unseen, 1))
    assert 0 < every.intervals["aurc"].low < every.intervals["aurc"].high == 1
    best = cal.decisions.risk_coverage((np.arange(50) >= 20).astype(int), p, labels=[0, 1])
    assert best.excess_aurc == pytest.approx(0, abs=1e-12)
    assert 0 < best.intervals["excess_augrc"].high < 0.1


def test_text_and_json():
    y, q = sample()
    found = cal.decisions.risk_coverage(y, q)
    assert "AUGRC" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["aurc"] == found.aurc
    assert list(found.to_frame("pandas").columns) == ["threshold", "coverage", "risk", "generalised_risk"]


@pytest.mark.slow
def test_intervals_hold_the_truth():
    y, q = sample(1_000_000, 9)
    truth, names = cal.decisions.risk_coverage(y, q), ("aurc", "augrc", "excess_aurc", "excess_augrc", "error_rate")
    held = np.zeros((300, len(names)))
    for i in range(300):
        found = cal.decisions.risk_coverage(*sample(300, 100 + i))
        for j, name in enumerate(names):
            held[i, j] = found.intervals[name].low <= getattr(truth, name) <= found.intervals[name].high
    assert held.mean(axis=0) == pytest.approx(np.full(len(names), 0.95), abs=4 * np.sqrt(0.95 * 0.05 / 300))
