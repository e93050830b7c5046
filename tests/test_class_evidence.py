"""A class that is off is evidence: it decides the status, and the verdict names it."""

import numpy as np
import pytest
from scipy.special import rel_entr

import calibrant as cal

ROWS, CLASSES = 6000, 20


def one_class_off(seed=0, n=ROWS, k=CLASSES, stated=0.112, occurs=0.049):
    """Labels, stated and true probabilities: one class is stated too high, but the most probable one is right."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k - 1), n)
    first = stated * rng.uniform(0.8, 1.2, n)
    p = np.column_stack([first, (1 - first)[:, None] * p])
    truth = p.copy()
    truth[:, 0] *= occurs / stated
    rest = np.ones((n, k), dtype=bool)
    rest[:, 0] = False
    rest[np.arange(n), p.argmax(axis=1)] = False
    freed = p.sum(axis=1) - truth.sum(axis=1)
    share = np.where(rest, p, 0.0)
    truth += freed[:, None] * share / share.sum(axis=1, keepdims=True)
    y = np.minimum((rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1), k - 1)
    return y, p, truth


def test_a_broken_class_is_no_green_light():
    y, p, truth = one_class_off()
    r = cal.report(y, p)
    assert r.per_class[0].label == 0
    assert r.per_class[0].significant
    assert r.evidence.test.pvalue > 0.05  # the confidence is calibrated
    assert r.evidence.status == "miscalibrated"
    assert r.evidence.matters is True
    for words in (r.summary, r.findings[0]):
        assert "class 0" in words
        assert "11.2 %" in words
    page = r.to_html()
    assert "Looks calibrated" not in page
    assert "No evidence" not in page + str(r)
    gain = float(rel_entr(truth, p).sum(axis=1).mean())
    assert r.gain.log_loss == pytest.approx(gain, rel=0.25)


def test_green_needs_every_class_within_the_tolerance():
    """4,000 calibrated rows settle the confidence; what a class may be off by, they do not settle for a small bar."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(5, 0.5), 4000)
    y = np.minimum((rng.random((4000, 1)) > p.cumsum(axis=1)).sum(axis=1), 4)
    wide, narrow = (cal.report(y, p, tolerance=bar) for bar in (0.1, 0.02))
    assert wide.evidence.status == "no evidence"
    assert max(row.interval.high for row in wide.per_class) < 0.1
    assert max(row.interval.high for row in narrow.per_class) > 0.02 > 0
    assert narrow.evidence.status == "undecided"
    assert narrow.evidence.matters is None
