"""Scores of exactly 0 and 1: by hand, and as what `AutoCalibrator` keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant import calibrators as c


def naive(p, y, w, new, a):
    """Row by row."""
    k = p.shape[1]
    least = min(float(v) for v in p.ravel() if v > 1e-12)
    ends = []
    for label in range(k):
        n = wrong = 0.0
        for row, own, weight in zip(p, y, w, strict=True):
            if row[label] <= 1e-12:
                n += weight
                wrong += weight * (own == label)
        ends.append(min((wrong + a) / (n + 1), least))
    out = []
    for row in new:
        moved = [ends[j] if v <= 1e-12 else v for j, v in enumerate(row)]
        out.append([v / (1 + sum(e for e, r in zip(ends, row, strict=True) if r <= 1e-12)) for v in moved])
    return np.array(out)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 12), st.sampled_from([1e-3, 0.5]))
@settings(max_examples=60, deadline=None)
def test_by_hand(seed, k, votes, a):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 40))
    p = rng.multinomial(votes, rng.dirichlet(np.full(k, 0.3)), n) / votes
    y, w = rng.integers(0, k, n), rng.integers(1, 4, n).astype(float)
    new = rng.multinomial(votes, np.full(k, 1 / k), 20) / votes
    fitted = c.EndSmoothing(prior_errors=a, labels=list(range(k))).fit(p, y, w)
    np.testing.assert_allclose(fitted.predict_proba(new), naive(p, y, w, new, a), atol=1e-12)
    kept = (new > 0).all(axis=1)
    np.testing.assert_array_equal(fitted.predict_proba(new)[kept], new[kept])


def test_auto_keeps_smoothed_ends_where_scores_without_them_stay():
    """Votes that are right but for one row in a hundred of the surest."""
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.5, 0.0, 1.0)
    y = (p > 0.5) ^ (rng.random(2000) < 0.01)
    auto = c.AutoCalibrator().fit(p, y)
    assert "end-smoothing" in [row["name"] for row in auto.table_]
    low, high = auto.predict_proba([0.0, 1.0])[:, 1]
    assert 1e-4 < low < 0.05
    assert 0.95 < high < 1 - 1e-4
    inside = np.clip(p, 0.01, 0.99)
    assert "end-smoothing" not in [row["name"] for row in c.AutoCalibrator().fit(inside, y).table_]


def test_a_comparison_says_what_happens_to_ends():
    rng = np.random.default_rng(1)
    p = np.where(rng.random(3000) < 0.3, np.round(rng.random(3000)), np.round(0.1 + 0.8 * rng.random(3000), 2))
    y = rng.random(3000) < np.clip(p, 0.04, 0.96)
    found = cal.compare_calibrators(y, p)
    assert found.rows[1].name == "end-smoothing"
    assert found.row("end-smoothing").gain_interval.low > 0
    assert "0 and 1" in found.verdict
    only = cal.compare_calibrators(y, p, candidates=["identity", "end-smoothing"])
    assert only.chosen == "end-smoothing"
    assert only.verdict.startswith("Leave all probabilities but those of exactly 0 and 1 unchanged")


def test_margins_are_refused():
    with pytest.raises(ValueError, match="margins are not probabilities"):
        c.EndSmoothing(input="margin").fit([-1.0, 2.0], [0, 1])
