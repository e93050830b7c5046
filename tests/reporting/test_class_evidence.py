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


def test_footers_are_true_of_the_tables_above_them():
    """A class whose interval starts above 0 is no contradiction where its p is not significant: the footer says why."""
    y, p, _ = one_class_off(seed=3)
    r = cal.report(y, p)
    fine = [row for row in r.per_class if not row.significant and row.interval.low > 0]
    assert fine
    text = " ".join(str(r).split())
    assert "without that adjustment: one can start above 0 where p is not significant" in text
    assert "Intervals of the calibration error are 95 %" in text
    assert "they start at 0 unless the test of all rows rejects" in text
    assert all(e.interval.low == 0 for e in r.estimates.values()) == (r.evidence.test.pvalue > 0.04)


def test_two_classes_have_the_p_value_of_the_report():
    """Whatever the table says of them: each is the other's mirror."""
    rng = np.random.default_rng(4)
    for power in (1.0, 1.3):
        s = rng.random(1000)
        y = (rng.random(1000) < s**power).astype(int)
        pair = np.column_stack([1 - s, s])
        two, one = cal.report(y, pair, notion="class-specific:1"), cal.report(y, s)
        assert two.evidence.pvalue == one.evidence.pvalue == two.evidence.test.pvalue
        assert two.evidence.status == one.evidence.status
        assert {row.adjusted for row in two.per_class} == {two.evidence.pvalue}
        assert {row.significant for row in two.per_class} == {two.evidence.status == "miscalibrated"}
