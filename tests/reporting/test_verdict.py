"""What a report's verdict rests on: one decision, regions of rows enough, what matters, and what repair would gain."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit, rel_entr

import calibrant as cal
from calibrant.reporting.evidence import settled
from calibrant.results import Interval


def sample(n, bend, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return (rng.random(n) < bend(s)).astype(int), s


def too_sharp(s):
    """The truth of a model whose log odds are twice too large."""
    return expit(logit(s) / 2)


@pytest.mark.parametrize(
    ("low", "value", "excess", "expected"),
    [
        (0.02, 0.05, 0.0, 0.0),  # not borne out by the test
        (0.0, 0.05, 0.0, 0.0),
        (0.02, 0.05, 0.001, 0.02),  # its own, which says more
        (0.0, 0.05, 0.01, 0.01),  # the test's
        (0.0, 0.005, 0.01, 0.005),  # an interval holds its value
        (0.0, -0.003, 0.01, 0.01),  # but for a signed one below 0
    ],
)
def test_the_test_decides_where_the_interval_starts(low, value, excess, expected):
    rng = np.random.default_rng(0)
    s = rng.random(100)
    estimate = cal.estimate((rng.random(100) < s).astype(int), s, random_state=0)
    given = replace(estimate, value=value, interval=Interval(low, 0.1), corrected=0.0)
    found = settled(given, excess)
    assert found.interval == (expected, 0.1)
    assert found.corrected == expected
    unknown = settled(replace(given, value=np.nan, interval=Interval(np.nan, np.nan)), excess)
    assert unknown.interval.low > 0 or not excess


@pytest.mark.slow
def test_what_exceeds_the_threshold_is_a_lower_limit_of_the_error():
    """In 19 samples of 20 or more, of a wrong model as of a right one; and it is above 0 where p says so."""
    from .test_evidence import test_of

    truth = float(np.abs(too_sharp(np.linspace(0.0005, 0.9995, 1000)) - np.linspace(0.0005, 0.9995, 1000)).mean())
    above = 0
    for seed in range(60):
        y, s = sample(150, too_sharp, seed)
        found = test_of(s, y, np.random.default_rng(seed))
        assert (found.excess > 0) == found.rejects == (found.result.pvalue <= 0.05 + 1e-12)
        above += found.excess > truth
    assert above <= 60 * 0.05 + 4 * np.sqrt(60 * 0.05 * 0.95)


@pytest.mark.slow
def test_a_bias_of_a_quarter_of_a_percent_is_real_and_too_small_to_matter():
    y, s = sample(2_000_000, lambda s: np.maximum(s - 0.0025, 0))
    r = cal.report(y, s)
    assert r.evidence.status == "miscalibrated"
    assert r.evidence.matters is False
    assert "real, too small to matter for most uses (below 0.050)" in r.verdict
    assert 0 < r.headline.interval.low < 0.0025 < r.headline.interval.high < 0.01
    mine = cal.report(y, s, tolerance=0.001)
    assert mine.evidence.matters is True
    assert "which is enough to matter (0.001 or more)" in mine.verdict
    assert "too small to matter" not in mine.verdict


@pytest.mark.slow
def test_what_matters_is_as_dear_at_any_base_rate():
    """At the base rate, 0.7 % of the log-loss of saying it; 1 % of the Brier score at most."""
    rng = np.random.default_rng(1)
    for rate in (0.5, 0.1, 0.02):
        found = cal.report((rng.random(40_000) < rate).astype(int), np.full(40_000, rate)).evidence
        e, entropy = found.tolerance, -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
        cost = float(rel_entr(rate, rate + e) + rel_entr(1 - rate, 1 - rate - e))
        assert cost / entropy == pytest.approx(0.0072, rel=0.25)
        assert e**2 <= 0.0101 * rate * (1 - rate)


@pytest.mark.slow
def test_classes_against_the_rest_matter_from_as_much_as_two_classes_do():
    rng = np.random.default_rng(2)
    s = rng.random(2000)
    y = (rng.random(2000) < s).astype(int)
    two = cal.report(y, np.column_stack([1 - s, s]), notion="classwise").evidence.tolerance
    assert two == pytest.approx(cal.report(y, s).evidence.tolerance)
    q = rng.dirichlet(np.ones(10), 5000)
    ten = np.minimum((rng.random((5000, 1)) > q.cumsum(axis=1)).sum(axis=1), 9)
    found = cal.report(ten, q, notion="classwise").evidence.tolerance
    assert found == pytest.approx(0.1 * 0.2 * np.sqrt(0.9 / 2), rel=0.01)


def test_gains_are_those_of_the_true_map():
    y, s = sample(50_000, too_sharp, 5)
    r = cal.report(y, s, threshold=0.2)
    at = (np.arange(100_000) + 0.5) / 100_000
    g = too_sharp(at)
    truths = {
        "brier": ((g - at) ** 2).mean(),
        "log_loss": (rel_entr(g, at) + rel_entr(1 - g, 1 - at)).mean(),
        "changed": ((g >= 0.2) != (at >= 0.2)).mean(),
    }
    for name, truth in truths.items():
        low, high = getattr(r.gain, f"{name}_interval")
        assert low < truth < high
        assert getattr(r.gain, name) == pytest.approx(truth, rel=0.15)
    assert high - low < 0.03
    assert f"{100 * r.gain.changed:.2g} % of decisions at the threshold 0.2 change after repair" in r.verdict


@pytest.mark.slow
def test_decisions_of_tied_scores_change_score_by_score():
    """0.3 and 0.7 should have said 0.5: of the thresholds the decision changes where one lies between."""
    rng = np.random.default_rng(7)
    s = rng.choice([0.1, 0.3, 0.7, 0.9], 20_000, p=[0.1, 0.2, 0.3, 0.4])
    y = (rng.random(20_000) < np.where(np.abs(s - 0.5) < 0.3, 0.5, s)).astype(int)
    for threshold, share in ((0.4, 0.2), (0.6, 0.3), (0.2, 0.0), (0.95, 0.0)):
        assert cal.report(y, s, threshold=threshold).gain.changed == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("notion", ["confidence", "classwise", "top-label"])
def test_the_gain_of_several_classes_is_that_of_the_whole_vector(notion):
    """Replace each class's probability by how often it happens there, scale, and see what new rows lose."""
    rng = np.random.default_rng(5)
    k = 4
    q = rng.dirichlet(np.full(k, 0.7), 200_000)
    p = q**1.6 / (q**1.6).sum(axis=1, keepdims=True)
    y = np.minimum((rng.random((len(q), 1)) > q.cumsum(axis=1)).sum(axis=1), k - 1)
    at = np.linspace(0, 1, 201)
    maps = [np.interp(p[:, j], *known_map(p[:, j], q[:, j], at)) for j in range(k)]
    new = np.stack(maps, axis=1) / np.sum(maps, axis=0)[:, None]
    gained = float((q * np.log(new / p)).sum(axis=1).mean())
    brier = float(((p - q) ** 2).sum(axis=1).mean() - ((new - q) ** 2).sum(axis=1).mean())
    gain = cal.report(y[:20_000], p[:20_000], labels=range(k), notion=notion).gain
    assert gain.log_loss == pytest.approx(gained, rel=0.15)
    assert gain.brier == pytest.approx(brier, rel=0.15)


def known_map(stated, truth, at):
    """Mean stated and true probabilities by ranges of the stated one."""
    home = np.clip(np.searchsorted(np.quantile(stated, at), stated) - 1, 0, len(at) - 2)
    count = np.bincount(home, minlength=len(at) - 1)
    return np.bincount(home, stated) / count, np.bincount(home, truth) / count


def test_a_calibrated_model_gains_nothing_for_sure():
    y, s = sample(20_000, lambda s: s)
    r = cal.report(y, s, threshold=0.3)
    assert r.gain.brier_interval.low == r.gain.log_loss_interval.low == r.gain.changed_interval.low == 0
    assert "of decisions at the threshold 0.3 would change after repair" in r.verdict
    assert "At most" in r.verdict
    assert "too small to matter for most uses (below 0.050)" in r.verdict


def test_an_infinite_log_loss_is_said_and_not_summed():
    rng = np.random.default_rng(6)
    s = np.round(rng.random(3000) * 1.2 - 0.1, 2).clip(0, 1)
    r = cal.report((rng.random(3000) < 0.3 + 0.4 * s).astype(int), s)
    assert np.isinf(r.log_loss)
    assert "make the log-loss finite: a probability of 0 was given to the observed class" in r.verdict
    assert "would make the log-loss finite" in str(r)
    assert np.isfinite(r.gain.log_loss)


def test_without_a_threshold_no_decision_is_counted():
    r = cal.report(*sample(500, too_sharp))
    assert (r.gain.threshold, r.gain.changed, r.gain.changed_interval) == (None, None, None)
    assert "decisions" not in r.verdict
    assert json.loads(json.dumps(r.to_dict()))["gain"]["brier"] == r.gain.brier


@pytest.mark.parametrize("name", ["tolerance", "threshold"])
def test_bars_are_fractions(name):
    for wrong in (0, 1, -0.1, 5, "0.1", True):
        with pytest.raises(ValueError, match=f"{name} must lie strictly between 0 and 1; got"):
            cal.report([0, 1], [0.2, 0.7], **{name: wrong})


def test_the_verdict_goes_from_what_is_real_to_what_is_next():
    parts = cal.report(*sample(5000, too_sharp), threshold=0.1).verdict_parts
    starts = ("Evidence of miscalibration", "On average the", "A perfect repair", None, "Next: ")
    assert len(parts) == len(starts)
    assert all(start is None or part.startswith(start) for part, start in zip(parts, starts, strict=True))


def test_decisions_are_counted_only_where_rows_lie_on_both_sides():
    """Of 5000 rows some dozen lie above 0.2: fewer than the map tells apart."""
    rng = np.random.default_rng(0)
    s = rng.beta(0.5, 20, 5000)
    y = rng.random(5000) < 0.6 * s
    assert 0 < (s >= 0.2).sum() < 20
    r = cal.report(y, s, labels=[False, True], threshold=0.2)
    assert (r.gain.threshold, r.gain.changed, r.gain.changed_interval) == (0.2, None, None)
    assert "Too few rows lie on one side of the threshold 0.2 to say how many decisions change." in r.verdict
    beyond = cal.report(y, s, labels=[False, True], threshold=0.9).gain  # no row there, and none that would be
    assert beyond.changed == 0


@pytest.mark.parametrize(("shape", "threshold"), [((8, 1.2), 0.95), ((0.5, 20), 0.05)])
def test_changed_decisions_near_the_ends_are_covered(shape, threshold):
    """Log odds times 0.6, 300 rows: the value was a quarter to a third too low, and intervals ended below the truth."""
    pool = np.random.default_rng(99).beta(*shape, 200_000).clip(1e-9, 1 - 1e-9)
    truth = ((pool >= threshold) != (expit(0.6 * logit(pool)) >= threshold)).mean()
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        s = rng.beta(*shape, 300).clip(1e-9, 1 - 1e-9)
        y = rng.random(300) < expit(0.6 * logit(s))
        gain = cal.report(y, s, labels=[False, True], threshold=threshold).gain
        found.append((gain.changed, gain.changed_interval.low <= truth <= gain.changed_interval.high))
    value, covered = np.mean(found, axis=0)
    assert value == pytest.approx(truth, rel=0.25)
    assert covered > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 20)


def outcomes_of_moved_base_rate(before, now, n, seed=1):  # of seed 0 a slope is significant, as of 5 % of seeds
    """Scores that are right where the base rate is one, and outcomes where it is another."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < now
    z = rng.normal(2.0 * y - 1, np.sqrt(2)) + np.log(before / (1 - before))
    return y, 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(("before", "now", "way"), [(0.34, 0.027, "high"), (0.1, 0.4, "low")])
def test_one_odds_ratio_is_said_as_a_moved_base_rate(before, now, way):
    y, p = outcomes_of_moved_base_rate(before, now, 20_000)
    found = cal.report(y, p)
    said = re.search(
        rf"As far as these rows can tell, scores are too {way} everywhere by one odds ratio, as if the base rate had "
        r"moved from (\S+) % to (\S+) %: shift_prior",
        found.verdict,
    )
    old, new = (float(v) / 100 for v in said.groups())
    assert old == pytest.approx(before, rel=0.1)
    assert new == pytest.approx(found.base_rates[True], rel=0.03)
    assert "one odds ratio" in found.to_html()
    assert cal.report(y, cal.shift_prior(p, old, new)).evidence.status != "miscalibrated"


@pytest.mark.parametrize("n", [300, 20_000])
@pytest.mark.parametrize("truth", [lambda p: p, lambda p: p**1.5, lambda p: p**2 / (p**2 + (1 - p) ** 2)])
def test_other_errors_are_not_said_to_be_one_odds_ratio(truth, n):
    rng = np.random.default_rng(n)
    p = rng.uniform(0.02, 0.98, n)
    found = cal.report(rng.random(n) < truth(p), p)
    assert "odds ratio" not in found.verdict
