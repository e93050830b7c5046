"""The evidence behind a report's verdict: its test, what it could see, and what it may call fine."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.datasets import true_map
from calibrant.measure.question import Question
from calibrant.reporting.verdict import _rows
from calibrant.significance.report_test import Power, SumsTest, flatter, higher, lower, sharper
from calibrant.sums import BinMoments, GridMoments, uniform_edges

OPTIONS = {"notion": "class-specific", "average": "power", "dependent": False, "level": 0.95}


def sums_of(problems, shares, rng, **options):
    grids = [GridMoments.of(one) for one in problems]
    bins = [BinMoments.of(one, uniform_edges(15)) for one in problems]
    n = sum(one.n_samples for one in problems)
    about = OPTIONS | {"labels": tuple(range(len(shares))), "shares": tuple(shares), "n_samples": n, "size": float(n)}
    return SumsTest.of(grids, bins, Question(norm=1.0, **about | options), rng)


def test_of(s, y, rng):
    return sums_of([Problem(s, y)], [1.0], rng)


test_of.__test__ = False


def rejections(draw, repetitions, seed):
    rng = np.random.default_rng(seed)
    return np.mean([test_of(*draw(rng), rng).result.pvalue <= 0.05 for _ in range(repetitions)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "scores"),
    [
        (50, lambda rng, n: rng.random(n)),
        (500, lambda rng, n: rng.beta(0.5, 9.5, n)),
        (200, lambda rng, n: rng.integers(0, 11, n) / 10),
    ],
)
def test_calibrated_models_are_rejected_as_often_as_stated(n, scores):
    def draw(rng):
        s = scores(rng, n)
        return s, (rng.random(n) < s).astype(int)

    assert abs(rejections(draw, 200, n) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.slow
@pytest.mark.parametrize("family", [sharper, higher, flatter, lower])
def test_what_is_detectable_is_found_in_four_samples_of_five(family):
    """Truths of the very families that the power is computed for, at the error that it calls detectable."""
    rng = np.random.default_rng(1)
    s = rng.random(400)
    power = test_of(s, (rng.random(400) < s).astype(int), rng).power
    grid = np.linspace(0, 1, 2001)
    amounts = np.linspace(0, 1, 400)
    errors = np.array([np.abs(family(a)(grid) - grid).mean() for a in amounts])
    truth = family(float(np.interp(power.detectable, errors, amounts)))

    def draw(rng):
        return s, (rng.random(400) < truth(s)).astype(int)

    assert 0.72 < rejections(draw, 200, 2) < 0.99  # 0.8 of the family that is hardest to see


def test_rows_needed_follow_the_root_of_n():
    power = Power(detectable=0.1, n_samples=100)
    assert power.rows_for(0.05) == pytest.approx(400)
    assert power.rows_for(0.1) == pytest.approx(100)
    assert power.rows_for(5e-324) == np.inf  # more than floats hold
    rng = np.random.default_rng(3)
    found = []
    for n in (500, 8000):
        s = rng.random(n)
        found.append(test_of(s, (rng.random(n) < s).astype(int), rng).power.rows_for(0.05))
    assert 0.6 < found[1] / found[0] < 1.8


def test_the_test_agrees_with_the_one_that_draws_rows():
    rng = np.random.default_rng(4)
    pairs = []
    for factor in (1.0, 1.0, 1.2, 1.2, 1.4, 1.6):
        s = rng.random(300)
        y = (rng.random(300) < s**factor).astype(int)
        exact = cal.calibration_test(y, s, n_resamples=999, random_state=0).pvalue
        pairs.append((test_of(s, y, rng).result.pvalue, exact))
    ours, exact = np.array(pairs).T
    assert np.abs(ours - exact).max() < 0.08
    assert ours.max() > 0.2
    assert ours.min() < 0.01


@pytest.mark.slow
def test_two_classes_that_carry_all_noise_count_as_two():
    """Ten classes, of which rows are torn between the first two: their errors are the same."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(60):
        q = np.full((150, 10), 1e-6)
        q[:, 0] = rng.random(150)
        q[:, 1] = 1 - q[:, 0] - 8e-6
        q = np.clip(q, 1e-9, None)
        y = (rng.random(150) > q[:, 0]).astype(int)
        problems = [Problem(q[:, j], (y == j).astype(int)) for j in range(10)]
        found.append(sums_of(problems, [0.1] * 10, rng, dependent=True).result.pvalue <= 0.05)
    assert np.mean(found) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.slow
def test_weights_that_go_with_the_score_do_not_make_it_reject_more():
    """Heavy rows at middling scores are few, whatever the effective size of all rows says."""
    rng = np.random.default_rng(12)
    w = np.r_[np.full(100, 0.002), np.full(2000, 0.0004)]
    found = []
    for _ in range(150):
        s = np.r_[np.clip(0.5 + rng.normal(0, 0.02, 100), 0, 1), np.full(2000, 0.98)]
        y = (rng.random(2100) < s).astype(int)
        found.append(sums_of([Problem(s, y, w, False)], [1.0], rng).result.pvalue <= 0.05)
    assert np.mean(found) <= 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 150)


def test_a_level_beyond_the_draws_still_rejects_the_worst():
    rng = np.random.default_rng(13)
    p = rng.random(500)
    found = cal.report((rng.random(500) < 1 - p).astype(int), p, level=0.9999)
    assert found.evidence.status == "miscalibrated"


def test_rows_needed_are_rows_like_these():
    rng = np.random.default_rng(14)
    s = rng.random(200)
    y = (rng.random(200) < s).astype(int)
    plain = cal.report(y, s).evidence
    w = np.r_[np.ones(200), np.zeros(1800)]
    padded = cal.report(np.r_[y, rng.integers(0, 2, 1800)], np.r_[s, rng.random(1800)], sample_weight=w).evidence
    assert plain.status == padded.status == "undecided"
    assert padded.rows_needed == pytest.approx(10 * plain.rows_needed, rel=0.1)


def test_certain_scores_show_what_one_row_in_n_shows():
    p = np.random.default_rng(15).integers(0, 2, 200).astype(float)
    found = cal.report(p.astype(int), p).evidence
    assert found.detectable == pytest.approx(1 - 0.2 ** (1 / 200))
    assert found.status == "no evidence"
    assert found.rows_needed < 200


def test_two_rows_can_show_nothing():
    found = cal.report([0, 1], [0.2, 0.3])
    assert found.evidence.detectable == np.inf
    assert "2 rows are too few to show any error" in found.verdict
    assert found.to_dict()["evidence"]["detectable"] is None


@pytest.mark.slow
def test_the_worst_class_of_top_labels_is_the_worst_when_predicted():
    rng = np.random.default_rng(16)
    q = rng.dirichlet([4, 4, 1], 3000)
    top = q.argmax(axis=1)
    wrong = (top < 2) & (rng.random(3000) < 0.4)
    y = np.where(wrong, 2, np.minimum((rng.random((3000, 1)) > q.cumsum(axis=1)).sum(axis=1), 2))
    found = cal.report(y, q, notion="top-label")
    errors = found.headline.per_class
    assert f"worst for class {max(errors, key=errors.get)} " in found.verdict
    assert found.per_class[0].label == 2  # class by class it is another one
    assert found.evidence.test.n_samples == 3000


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4])
def test_classes_that_share_rows_do_not_make_it_reject_more(k):
    rng = np.random.default_rng(k)
    found = []
    for _ in range(80):
        q = rng.dirichlet(np.ones(k), 200)
        y = (rng.random((200, 1)) > q.cumsum(axis=1)).sum(axis=1)
        problems = [Problem(q[:, j], (y == j).astype(int)) for j in range(k)]
        found.append(sums_of(problems, [1 / k] * k, rng, dependent=True).result.pvalue <= 0.05)
    assert np.mean(found) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 80)


def verdicts(n, kind, repetitions, strength=1.0):
    rng = np.random.default_rng([n, *kind.encode()])
    out = []
    for _ in range(repetitions):
        s = rng.random(n)
        truth = s if kind == "calibrated" else s + strength * (true_map(s, kind) - s)
        out.append(cal.report((rng.random(n) < truth).astype(int), s, labels=[0, 1]))
    return out


@pytest.mark.slow
def test_fifty_calibrated_rows_are_not_called_miscalibrated():
    found = [r.evidence.status for r in verdicts(50, "calibrated", 30)]
    assert found.count("miscalibrated") <= 6  # 5 %, and four standard errors
    assert found.count("no evidence") == 0  # nor fine: they are too few
    assert found.count("undecided") >= 24


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overconfident", "shifted", "wavy"])
def test_a_hundred_miscalibrated_rows_are_not_called_fine(kind):
    for r in verdicts(100, kind, 10):
        assert r.evidence.status in ("miscalibrated", "undecided")
        if r.evidence.status == "undecided":
            assert r.verdict.startswith("Not enough data to tell: these 100 rows")
            assert "rows on. Next: collect more rows" in r.verdict


@pytest.mark.slow
def test_many_rows_settle_it():
    (fine,) = verdicts(20_000, "calibrated", 1)
    assert fine.evidence.status == "no evidence"
    assert "Next: nothing to repair" in fine.verdict
    (wrong,) = verdicts(20_000, "overconfident", 1)
    assert wrong.verdict.startswith("Evidence of miscalibration (p ≤ 0.001): scores from ")
    assert "On average the probabilities are off by 0." in wrong.verdict
    assert (
        "which is enough to matter (0.050 or more). A perfect repair would lower the log-loss by 0.0" in wrong.verdict
    )
    assert "Next: run compare_calibrators(y_true, y_prob) to choose a calibrator" in wrong.verdict
    assert "evidence   miscalibrated: p ≤ 0.001" in str(wrong)


def test_rare_outcomes_need_smaller_errors():
    rng = np.random.default_rng(0)
    s = rng.beta(0.5, 49.5, 5000)
    found = cal.report((rng.random(5000) < s).astype(int), s).evidence
    entropy = -(0.01 * np.log2(0.01) + 0.99 * np.log2(0.99))
    assert found.tolerance == pytest.approx(0.1 * np.sqrt(0.01 * 0.99 * entropy), rel=0.2)


def test_streamed_and_loaded_rows_have_the_same_evidence():
    rng = np.random.default_rng(5)
    s = rng.random(3000)
    y = (rng.random(3000) < s**1.1).astype(int)
    loaded = cal.report(y, s).evidence
    pieces = cal.Accumulator()
    for part in np.array_split(np.arange(3000), 7):
        pieces.update(y[part], s[part])

    streamed = cal.report(pieces).evidence
    assert streamed.test.statistic == pytest.approx(loaded.test.statistic)
    assert streamed.test.pvalue == pytest.approx(loaded.test.pvalue, abs=0.02)
    assert streamed.status == loaded.status


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DependenceWarning")  # repeats follow each other
def test_whole_weights_are_repeats():
    rng = np.random.default_rng(6)
    s, w = rng.random(300), rng.integers(0, 4, 300)
    y = (rng.random(300) < s).astype(int)
    one, other = cal.report(y, s, sample_weight=w).evidence, cal.report(np.repeat(y, w), np.repeat(s, w)).evidence
    assert one.test.statistic == pytest.approx(other.test.statistic)
    assert one.detectable == pytest.approx(other.detectable, rel=0.05)


def test_evidence_is_plain_data():
    rng = np.random.default_rng(7)
    s = rng.random(200)
    data = cal.report((rng.random(200) < s).astype(int), s).to_dict()["evidence"]
    assert set(data) == {"status", "matters", "test", "pvalue", "detectable", "tolerance", "rows_needed"}
    assert 0 < data["test"]["pvalue"] <= 1


@pytest.mark.parametrize(
    ("n", "text"), [(7.2, "8"), (99, "99"), (123.4, "130"), (8765, "8,800"), (1e7, "10,000,000"), (np.inf, "very many")]
)
def test_rows_are_rounded_up_to_two_digits(n, text):
    assert _rows(n) == text


def test_certain_and_right_is_not_called_proven():
    r = cal.report([0, 0, 0, 1, 1], [0.0, 0.0, 0.0, 1.0, 1.0])
    assert r.evidence.status == "undecided"
    assert "Not enough data" in r.verdict


@pytest.mark.slow
def test_scores_near_one_half_cannot_be_far_too_sharp():
    """No factor of the log odds makes an error above 0.02 of them, so a shift says what is detectable."""
    rng = np.random.default_rng(8)
    s = 0.48 + 0.04 * rng.random(150)
    found = cal.report((rng.random(150) < s).astype(int), s).evidence
    assert 0.08 < found.detectable < 0.2
    assert found.rows_needed < 2000


@pytest.mark.parametrize(("factor", "words"), [(1.5, "too high"), (0.6, "too low")])
def test_without_a_region_that_stands_out_the_whole_is_named(monkeypatch, factor, words):
    import re

    from calibrant.reporting import verdict

    monkeypatch.setattr(verdict, "regions", lambda *_: [])
    rng = np.random.default_rng(9)
    s = rng.random(4000)
    y = (rng.random(4000) < s**factor).astype(int)
    said = r"[Nn]o range of scores stands out; on the whole they are ([\w ]+): the model says ([\d.]+) % on average, "
    seen = re.search(said + r"it happens ([\d.]+) % of the time", cal.report(y, s).verdict)
    assert seen[1] == words
    assert float(seen[2]) == pytest.approx(100 * s.mean(), abs=0.51)
    assert float(seen[3]) == pytest.approx(100 * y.mean(), abs=0.51)


def with_impossible(n=1000, wrong=3):
    """Calibrated rows, but for a few whose outcome had probability 0."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    p[:wrong], y[:wrong] = 1.0, 0
    return y, p


@pytest.mark.parametrize("streamed", [False, True])
def test_what_had_probability_0_and_happened_rules_calibration_out(streamed):
    y, p = with_impossible()
    before = cal.report(y[3:], p[3:])
    assert before.evidence.status != "miscalibrated"
    rows = (cal.Accumulator().update(y, p),) if streamed else (y, p)
    found = cal.report(*rows)
    assert found.evidence.status == "miscalibrated"
    assert found.evidence.pvalue == 0
    assert found.headline.interval.low == 0  # the size of the error is not decided by it
    assert "an outcome was observed that had probability 0" in found.verdict.lower()
    assert "no evidence" not in found.verdict.lower()
    assert "nothing to repair" not in found.verdict
    test = cal.calibration_test(*rows)
    assert any("cannot occur in a draw" in text for text in test.warnings)
    assert test.summary.startswith("An outcome with predicted probability 0 rules out the null hypothesis")


@pytest.mark.parametrize("notion", ["classwise", "confidence", "canonical"])
def test_an_impossible_outcome_is_the_notions_own(notion):
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 300)
    y = (q.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    q[0], y[0] = (0.0, 0.4, 0.6), 0
    sure = cal.calibration_test(y, q, notion=notion, n_resamples=99)
    assert bool(sure.warnings) == (notion != "confidence")  # which says that class 2 has 0.6
    q[0] = 0.0, 0.0, 1.0
    assert cal.calibration_test(y, q, notion=notion, n_resamples=99).warnings
    weights = np.ones(300)
    weights[0] = 0
    assert not cal.calibration_test(y, q, notion=notion, n_resamples=99, sample_weight=weights).warnings


def test_a_small_error_with_an_impossible_outcome_names_the_ends():
    y, p = with_impossible(20_000, 2)
    found = cal.report(y, p)
    assert found.evidence.matters is False
    assert found.advice == "Next: keep probabilities away from 0 and 1 by EndSmoothing(), fitted on other rows."
    assert "impossible" not in str(found.evidence)
    assert "observed class had probability 0 in rows 0, 1" in str(found).replace("\n           ", " ")


def test_the_gain_of_one_map_per_class_is_called_so():
    """Log odds twice too large: one temperature gains more than 30 maps, one per class."""
    rng = np.random.default_rng(0)
    z = 4 * rng.normal(size=(6000, 30))
    true = np.exp(z - z.max(axis=1, keepdims=True))
    true /= true.sum(axis=1, keepdims=True)
    stated = true**2 / (true**2).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) > rng.random((6000, 1))).argmax(axis=1)
    found = cal.report(y, stated)
    whole = cal.log_loss(y, stated) - cal.log_loss(y, true)
    assert found.gain.log_loss_interval.high < whole
    assert found.gain.by_class
    assert "A perfect repair of each class by itself would lower" in found.verdict
    two = cal.report(y == 0, stated[:, 0])
    assert not two.gain.by_class
    assert "each class" not in two.verdict


def test_changed_decisions_are_told_where_repair_moves_them():
    """Trained with balanced classes: hardly a row lies below the threshold, and most belong there."""
    rng = np.random.default_rng(0)
    right = rng.beta(2, 60, 200_000)
    stated = 1 / (1 + np.exp(-4) * (1 / right - 1))
    at, n = 1 / 40, 6000
    truth = float(((stated >= at) != (right >= at)).mean())
    assert 0 < (stated[:n] < at).sum() < 10
    y = rng.random(n) < right[:n]
    gain = cal.report(y, stated[:n], labels=[False, True], threshold=at).gain
    assert gain.changed_interval.low <= truth <= gain.changed_interval.high
    assert gain.changed_interval.high - gain.changed_interval.low < 0.5
    none = cal.report(rng.random(n) < stated[:n], stated[:n], labels=[False, True], threshold=at).gain
    assert none.changed is None  # repair leaves as few there
