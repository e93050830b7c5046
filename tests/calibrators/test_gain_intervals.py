"""Intervals of gains where a mistake is dear and rare: rows without one say little about it."""

import numpy as np
import pytest
from scipy.stats import chi2

from calibrant.calibrators.crossval import HeldOutEvidence
from calibrant.calibrators.select import as_sample

LIKELY = {"log-loss": lambda p, k: -np.log(np.maximum(p[k], 1e-6)), "brier": lambda p, k: p @ p - 2 * p[k] + 1}


def gain(before, after, y, score, groups=None, w=None):
    sample = as_sample(before, y, w, "probability", list(range(before.shape[1])), groups=groups)
    return HeldOutEvidence.of(after, sample).gain_over(HeldOutEvidence.of(before, sample), score, sample)


@pytest.mark.parametrize("score", ["log-loss", "brier"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_the_upper_end_allows_for_mistakes_that_no_row_shows(score, grouped, wrong):
    rng = np.random.default_rng(wrong)
    n, k = 60, 3
    before = np.eye(k)[rng.integers(0, k, n)]
    before[40:] = rng.dirichlet(np.ones(k), 20)
    after = 0.9 * before + 0.1 * rng.dirichlet(np.ones(k), n)
    y = before.argmax(axis=1)
    y[:wrong] = (y[:wrong] + 1) % k
    y[-3:] = 0, 1, 2
    w, groups = rng.uniform(0.5, 2, n), rng.integers(0, 30, n) if grouped else None
    found = gain(before, after, y, score, groups, w)
    # Naively: what a mistake gains in each sure row, by how likely each other class is after the repair.
    top, loss = before.argmax(axis=1), LIKELY[score]
    each = np.zeros(40)
    for i in range(40):
        others = [c for c in range(k) if c != top[i]]
        gains = [loss(before[i], c) - loss(after[i], c) for c in others]
        each[i] = np.average(gains, weights=after[i, others])
    share = w / w.sum()
    held = share[:40] if groups is None else np.array([share[:40][groups[:40] == g].sum() for g in range(30)])
    by_mistake = (share[:40] @ each) * (held @ held) / share[:40].sum() ** 2
    mistakes = wrong if groups is None else len(set(groups[:wrong]))
    upper = chi2.ppf(0.975, 2 * (mistakes + 1)) / 2 - mistakes
    assert found.by_mistake == pytest.approx(max(0, by_mistake))
    interval, student = found.interval(0.95), found._replace(by_mistake=0.0).interval(0.95)
    assert interval.low == student.low
    assert interval.high == pytest.approx(max(student.high, found.value + upper * max(0, by_mistake)))


def test_gains_of_smoothing_sure_scores_are_covered_where_mistakes_are_rare():
    """400 samples of 200 sure rows, of which 0.4 % are wrong; Student's intervals cover in half of them."""
    rng = np.random.default_rng(7)
    n, rate, q = 200, 0.004, 0.01
    truth = rate * (np.log(q) - np.log(1e-6)) + (1 - rate) * np.log(1 - q)
    covered = {"student": 0, "ours": 0}
    for _ in range(400):
        first = rng.integers(0, 2, n)
        before = np.eye(2)[first]
        after = np.where(before == 1, 1 - q, q)
        found = gain(before, after, np.where(rng.random(n) < rate, 1 - first, first), "log-loss")
        for name, one in (("ours", found), ("student", found._replace(by_mistake=0.0))):
            low, high = one.interval(0.95)
            covered[name] += low <= truth <= high
    assert covered["student"] < 300
    assert covered["ours"] > 380
