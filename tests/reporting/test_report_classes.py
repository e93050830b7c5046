"""The classes of a report: interval, test and mark of each, and the sentence that names those off."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.reporting.class_table import _quantiles, binned_intervals, class_rows, class_sentence
from calibrant.reporting.html import views_of
from calibrant.significance.report_test import range_tests
from calibrant.significance.saddlepoint import upper_tails
from calibrant.sums import BinMoments, uniform_edges

LEVEL = 0.95


def labelled(q, rng):
    return np.minimum((rng.random((len(q), 1)) > np.cumsum(q, axis=1)).sum(axis=1), q.shape[1] - 1)


def sample(n=2000, k=6, seed=0, bad=None):
    """Labels and probabilities; those of one class are half again as high as they should be."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), n)
    q = p.copy()
    if bad is not None:
        q[:, bad] *= 0.5
        q[:, np.arange(k) != bad] *= ((1 - q[:, bad]) / (1 - p[:, bad]))[:, None]
    return labelled(q, rng), p


def rows_of(y, p, labels=None, weight=None):
    labels = list(range(p.shape[1])) if labels is None else labels
    sums = cal.Accumulator(labels=labels).update(y, p, sample_weight=weight)
    return {row.label: row for row in class_rows(sums, LEVEL)}


def numbers(row):
    return (row.count, row.base_rate, row.mean_prob, row.ece, *row.interval, row.pvalue, row.adjusted)


# A second implementation, one class and one row at a time


def law_of_sum(chances):
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1 - p, p])
    return law


def naive_pvalue(hit, score):
    """Ranges of bins by running variance; the exact law of the sum of each, every row at its bin's mean score."""
    home = np.clip(np.ceil(score * 15).astype(int) - 1, 0, 14)
    mean = {b: score[home == b].mean() for b in set(home)}
    variance = {b: (home == b).sum() * mean[b] * (1 - mean[b]) for b in mean}
    total, running, place = sum(variance.values()), 0.0, {}
    for b in sorted(mean):
        place[b] = (running + variance[b] / 2) / total
        running += variance[b]
    best = 1.0
    for parts in (1, 2, 4):
        for j in range(parts):
            inside = [b for b in mean if min(int(place[b] * parts), parts - 1) == j]
            chances = np.concatenate([np.full((home == b).sum(), mean[b]) for b in inside] or [np.empty(0)])
            seen = int(sum(hit[home == b].sum() for b in inside))
            if abs(seen - chances.sum()) <= np.sqrt((chances * (1 - chances)).sum()):
                continue
            law = law_of_sum(chances)
            tail = law[seen:].sum() if seen > chances.sum() else law[: seen + 1].sum()
            best = min(best, 6 * parts * tail)
    return best


@pytest.mark.parametrize("bad", [None, 2])
def test_pvalues_are_those_of_exact_laws_class_by_class(bad):
    y, p = sample(700, 5, seed=4, bad=bad)
    found = rows_of(y, p)
    naive = {k: naive_pvalue(y == k, p[:, k]) for k in range(5)}
    for k, row in found.items():
        # Within some per cent: 1 where it is 1.
        assert row.pvalue == pytest.approx(naive[k], rel=0.03, abs=1e-12)
    order = sorted(naive, key=lambda k: naive[k])
    adjusted = np.maximum.accumulate([(5 - i) * found[k].pvalue for i, k in enumerate(order)])
    assert [found[k].adjusted for k in order] == pytest.approx(np.minimum(adjusted, 1))
    assert all(row.significant == (row.adjusted <= 1 - LEVEL) for row in found.values())


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_those_that_draws_give_class_by_class(seed):
    y, p = sample(3000, 4, seed=seed, bad=1)
    for k, row in rows_of(y, p).items():
        level = 1 - (1 - LEVEL) / 4 if row.significant else LEVEL
        draws = {"n_resamples": 1500 if level == LEVEL else 4000}
        drawn = cal.estimate(y == k, p[:, k], estimator=cal.Binned(15), level=level, labels=[False, True], **draws)
        assert row.ece == pytest.approx(drawn.value, rel=1e-12)
        spread = drawn.interval.high - drawn.interval.low
        assert row.interval == pytest.approx(drawn.interval, abs=0.12 * spread)
        assert (row.interval.low == 0) == (drawn.interval.low == 0) or drawn.interval.low < 0.1 * drawn.value


def test_quantiles_of_sums_of_sizes():
    """One bin of a calibrated model is half normal, whose quantiles are known; sums of several, against draws."""
    from scipy.stats import halfnorm

    found = _quantiles(np.array([0.0]), np.array([2.0]), 0.025)
    assert found[1:] == pytest.approx(2 * halfnorm.ppf([0.5, 0.975]), rel=0.04)
    assert found[0] == pytest.approx(0, abs=0.08)
    rng = np.random.default_rng(0)
    for bins in (2, 5):
        mean, sd = rng.normal(size=bins), rng.random(bins) + 0.2
        drawn = np.abs(mean + sd * rng.standard_normal((200_000, bins))).sum(axis=1)
        known = np.quantile(drawn, [0.025, 0.5, 0.975])
        assert _quantiles(mean, sd, 0.025) == pytest.approx(known, abs=0.04 * (known[2] - known[0]))
    assert _quantiles(np.array([-3.0, 1.0]), np.zeros(2), 0.025) == pytest.approx(4.0)


def test_a_class_is_one_against_the_rest():
    y, p = sample(1500, 7, seed=2, bad=3)
    found = rows_of(y, p)
    for k in range(7):
        pair = np.stack([1 - p[:, k], p[:, k]], axis=1)
        alone = rows_of((y == k).astype(int), pair)[1]
        assert alone.pvalue == pytest.approx(found[k].pvalue, rel=1e-6)
        assert numbers(alone)[:4] == pytest.approx(numbers(found[k])[:4], rel=1e-6)
        if not found[k].significant:  # else it is one of seven that could have been named
            assert alone.interval == pytest.approx(found[k].interval, rel=1e-6)


def test_order_of_classes_does_not_matter():
    y, p = sample(1200, 6, seed=3, bad=0)
    order = np.array([3, 1, 5, 0, 2, 4])
    names = np.array(list("abcdef"))
    one, two = rows_of(names[y], p, list(names)), rows_of(names[y], p[:, order], list(names[order]))
    for name in names:
        assert numbers(one[name]) == pytest.approx(numbers(two[name]), rel=1e-9)


def test_weights_are_repeats():
    y, p = sample(600, 4, seed=5)
    w = np.random.default_rng(0).integers(0, 4, 600)
    one, two = rows_of(y, p, weight=w), rows_of(np.repeat(y, w), np.repeat(p, w, axis=0))
    for k in range(4):
        assert numbers(one[k]) == pytest.approx(numbers(two[k]), rel=1e-9)


def test_relative_weights_do_not_depend_on_their_unit():
    y, p = sample(600, 4, seed=5, bad=1)
    w = np.random.default_rng(0).random(600) + 0.5
    one, two = rows_of(y, p, weight=w), rows_of(y, p, weight=7.3 * w)
    for k in range(4):
        assert numbers(one[k])[1:] == pytest.approx(numbers(two[k])[1:], rel=1e-7)
    # All weights alike, and no whole numbers: as none at all.
    alike, plain = rows_of(y, p, weight=np.full(600, 0.37)), rows_of(y, p)
    for k in range(4):
        assert numbers(alike[k])[1:] == pytest.approx(numbers(plain[k])[1:], rel=1e-6)


@pytest.mark.parametrize("integral", [True, False])
def test_relative_weights_raise_no_more_alarms(integral):
    """2000 calibrated problems side by side; weights count by the effective size."""
    rng = np.random.default_rng(1)
    n, r = 300, 2000
    s = rng.beta(0.3, 2, (r, n))
    w = None if integral else np.tile(rng.random(n) + 0.1, (r, 1)).reshape(-1)
    flat = Problem(s.reshape(-1), (rng.random((r, n)) < s).reshape(-1), w, integral, starts=np.arange(r + 1) * n)
    p, _ = range_tests(BinMoments.of(flat, uniform_edges(15)))
    for size in (0.05, 0.005):
        assert (p <= size).mean() <= size + 3 * np.sqrt(size / r)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.floats(0.001, 0.999)), min_size=1, max_size=5),
    st.floats(0.3, 6),
    st.data(),
)
def test_tails_of_sums_are_exact_to_some_per_cent(bins, far, data):
    n, p = np.array([b[0] for b in bins], dtype=float), np.array([b[1] for b in bins])
    law = law_of_sum(np.repeat(p, n.astype(int)))
    count = int(np.ceil(n @ p + max(far * np.sqrt(n @ (p * (1 - p))), 1e-6)))
    if count > n.sum():
        assert upper_tails(n[None], p[None], np.array([float(count)]))[0] == 0
        return
    exact = law[count:].sum()
    if exact > 1e-13:
        found = upper_tails(n[None], p[None], np.array([float(count)]))[0]
        assert exact * 0.85 <= found <= exact * 1.3 or abs(found - exact) < 0.02


def test_a_tail_far_out_of_one_rare_outcome_among_many():
    """Where the tilt is steep and its search once stopped short: 7.8e-7, five times too much."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, p = rng.integers(1, 60, 8).astype(float), rng.beta(0.3, 1, 8).clip(1e-8, 1 - 1e-8)
        law = law_of_sum(np.repeat(p, n.astype(int)))
        count = int(np.ceil(n @ p + rng.uniform(2, 8) * np.sqrt(n @ (p * (1 - p)))))
        exact = law[count:].sum() if count <= n.sum() else 0.0
        if exact > 1e-12:
            found = upper_tails(n[None], p[None], np.array([float(count)]))[0]
            assert exact * 0.85 <= found <= exact * 1.25
            of_halves = upper_tails(n[None], p[None], np.array([count / 2 - 0.25]), np.full((1, 8), 0.5))[0]
            assert found * 0.6 <= of_halves <= found * 2  # the same sum without its lattice, half a step lower


def test_tail_of_the_largest_count_is_a_product():
    n, p = np.array([[3.0, 2.0, 4.0]]), np.array([[0.2, 0.7, 0.0]])
    assert upper_tails(n, p, np.array([5.0]))[0] == pytest.approx(0.2**3 * 0.7**2)
    assert upper_tails(n, p, np.array([6.0]))[0] == 0  # of a probability of 0


@pytest.mark.slow
def test_one_bad_class_is_marked_and_only_it():
    rng = np.random.default_rng(1)
    shares, stated = rng.dirichlet(np.full(9, 0.5), 8000), rng.choice([0.05, 0.25], 8000)
    # Class 4 comes as often whatever is said of it; the others hardly notice, as on the whole it is right.
    p = np.insert(shares * (1 - stated)[:, None], 4, stated, axis=1)
    y = labelled(np.insert(shares * 0.85, 4, 0.15, axis=1), rng)
    r = cal.report(y, p)
    assert [row.label for row in r.per_class if row.significant] == [4]
    (bad,) = (row for row in r.per_class if row.significant)
    assert bad.interval.low <= 0.1 <= bad.interval.high
    assert f"1 of the 10 classes is miscalibrated: 4 ({bad.count:,.0f} rows)." in r.verdict
    assert "* 4 " in str(r)
    assert str(r).count("\n* ") == 2  # the class, and the note that says what the mark is


def test_calibrated_classes_do_not_stand_out():
    y, p = sample(5000, 8, seed=6)
    r = cal.report(y, p)
    assert not any(row.significant for row in r.per_class)
    assert "None of the 8 classes is significantly miscalibrated." in r.verdict


@pytest.mark.slow
def test_two_classes_and_one_column_say_nothing_of_classes():
    y, p = sample(3000, 2, seed=0, bad=0)
    two = cal.report(y, p)
    assert "classes" not in two.verdict
    assert len(two.per_class) == 2
    assert two.per_class[0].pvalue == pytest.approx(two.per_class[1].pvalue, rel=1e-9)
    assert "classes" not in cal.report(y, p[:, 1]).verdict


def test_absent_rare_and_certain_classes():
    rng = np.random.default_rng(0)
    n = 4000
    p = np.column_stack([rng.dirichlet([1, 1, 1], n) * 0.999, np.full(n, 0.001), np.zeros(n)])
    q = p / p.sum(axis=1, keepdims=True)
    y = labelled(q * [1, 1, 1, 0, 0] / (q * [1, 1, 1, 0, 0]).sum(axis=1, keepdims=True), rng)
    found = rows_of(y, p)
    assert found[3].count == 0  # four are expected
    assert not found[3].significant
    assert found[3].interval.low <= found[3].ece <= found[3].interval.high
    never = found[4]  # said to be impossible, and it never came
    assert np.isnan([never.pvalue, never.adjusted]).all()
    assert not never.significant
    assert never.interval.low == 0
    assert never.interval.high == pytest.approx(1 - 0.025 ** (1 / n))
    y[:30] = 4  # and now it does
    assert rows_of(y, p)[4].pvalue == 0
    assert rows_of(y, p)[4].significant


def test_sentence_names_a_few():
    y, p = sample(400, 3)
    (row, *_) = rows_of(y, p).values()
    off = [replace(row, label=f"c{i}", count=100.0 + i, significant=True) for i in range(17)]
    fine = [replace(row, label=f"f{i}", significant=False) for i in range(83)]
    assert class_sentence(off + fine) == (
        "17 of the 100 classes are miscalibrated: c0 (100 rows), c1 (101 rows), c2 (102 rows), c3 (103 rows), "
        "c4 (104 rows) and 12 more."
    )
    two = class_sentence(off[:2] + fine)
    assert two == "2 of the 85 classes are miscalibrated: c0 (100 rows) and c1 (101 rows)."
    assert class_sentence(off[:1] + fine) == "1 of the 84 classes is miscalibrated: c0 (100 rows)."
    assert class_sentence(off[:3]).startswith("All 3 classes are miscalibrated: c0 ")
    # Weights that are relative: rows are those of the effective size. A class that never came is named too.
    assert "c0 (200 rows)" in class_sentence(off[:1] + fine, unit=2.0)
    assert "c0 (0 rows)" in class_sentence([replace(off[0], count=0.0), *fine])
    assert class_sentence([replace(row, pvalue=float("nan"), significant=False)] * 3) == ""


@pytest.mark.slow
def test_dict_json_and_frame_carry_the_fields():
    y, p = sample(2000, 5, seed=1, bad=2)
    names = np.array(["cat", "dog", "ferret", "<b>", "e"])
    r = cal.report(names[y], p, labels=list(names))
    held = json.loads(json.dumps(r.to_dict(), allow_nan=False))["per_class"]
    assert [row["label"] for row in held] == [row.label for row in r.per_class]
    assert [row["significant"] for row in held] == [row.significant for row in r.per_class]
    for row, kept in zip(r.per_class, held, strict=True):
        assert kept["interval"] == list(row.interval)
        assert (kept["pvalue"], kept["adjusted"]) == (row.pvalue, row.adjusted)
    frame = r.classes_frame("polars")
    assert frame["label"].to_list() == [row.label for row in r.per_class]
    assert frame["low"].to_list() == [row.interval.low for row in r.per_class]
    assert frame["significant"].to_list() == [row.significant for row in r.per_class]
    assert cal.report(y == 0, p[:, 0], labels=[False, True]).classes_frame("polars").height == 0


@pytest.mark.slow
def test_page_marks_the_classes_that_are_off():
    y, p = sample(2000, 5, seed=1, bad=2)
    names = np.array(["cat", "dog", "ferret", "<b>", "e"])
    r = cal.report(names[y], p, labels=list(names))
    page = r.to_html()
    assert page.count('<b class="mark"') == sum(row.significant for row in r.per_class) > 0
    assert "<td>&lt;b&gt;" in page


def test_pieces_give_what_all_rows_give():
    y, p = sample(900, 11, seed=9, bad=3)
    whole = cal.Accumulator(labels=range(11)).update(y, p)
    pieces = cal.Accumulator(labels=range(11)).update(y[:400], p[:400]) + cal.Accumulator(labels=range(11)).update(
        y[400:], p[400:]
    )
    for one, two in zip(class_rows(whole, LEVEL), class_rows(pieces, LEVEL), strict=True):
        assert numbers(one) == pytest.approx(numbers(two), rel=1e-9)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """500 problems side by side, calibrated and over-confident ones, in the bins' own truth."""
    rng = np.random.default_rng(2)
    r, n = 500, 2000
    s = rng.random((r, n))
    for power in (1.0, 1.5):
        hits = rng.random((r, n)) < s**power
        flat = Problem(s.reshape(-1), hits.reshape(-1), None, True, starts=np.arange(r + 1) * n)
        low, high = binned_intervals(BinMoments.of(flat, uniform_edges(15)), LEVEL)
        truth = 0.0 if power == 1 else 1 / 2 - 1 / 2.5
        covered = ((low <= truth) & (truth <= high)).mean()
        # Three standard errors of a simulated share, and 0.02 for what the method approximates.
        assert abs(covered - LEVEL) <= 3 * np.sqrt(LEVEL * (1 - LEVEL) / r) + 0.02


def test_the_worst_class_is_off_by_what_is_said():
    """All twenty are off alike, and the one that looks worst is told of: its interval covers all the same."""
    k, n, samples = 20, 6000, 60
    rng = np.random.default_rng(5)

    def drawn(n):
        p = rng.dirichlet(np.full(k, 0.5), n)
        return p, p**0.75 / (p**0.75).sum(axis=1, keepdims=True)

    p, q = drawn(100_000)
    home = np.minimum((15 * p).astype(int), 14)
    truth = np.mean([np.abs(np.bincount(home[:, j], q[:, j] - p[:, j], 15)).sum() / len(p) for j in range(k)])
    said = covered = 0
    for _ in range(samples):
        p, q = drawn(n)
        worst = class_rows(cal.Accumulator(labels=range(k)).update(labelled(q, rng), p), LEVEL)[0]
        if worst.significant:
            said += 1
            covered += worst.interval.low <= truth <= worst.interval.high
    assert said >= samples / 2
    assert covered / said >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / said)


def test_intervals_of_marked_classes_start_above_0_and_are_the_wider_ones():
    """Of few rows the bins alone allow 0, which the test excludes."""
    found = [row for seed in range(12) for row in rows_of(*sample(250, 6, seed=seed, bad=0)).values()]
    marked = [row for row in found if row.significant]
    assert len(marked) > 3
    assert all(0 < row.interval.low <= row.ece <= row.interval.high for row in marked)
    y, p = sample(4000, 6, bad=0)
    sums = cal.Accumulator(labels=range(6)).update(y, p)
    row = next(row for row in class_rows(sums, LEVEL) if row.label == 0)
    low, high = binned_intervals(sums.class_sums[0].bins, 1 - (1 - LEVEL) / 6)
    assert row.significant
    assert tuple(row.interval) == pytest.approx((low[0], high[0]))


def test_pages_and_pictures_begin_with_the_class_that_was_found():
    """Confidences are fine, and one class of eight is stated too high."""
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.ones(8), 6000)
    true = q.copy()
    true[:, 5] *= 0.6
    true /= true.sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) > rng.random((6000, 1))).argmax(axis=1)
    r = cal.report(y, q)
    assert [row.label for row in r.per_class if row.significant] == [5]
    assert r.headline.interval.low == 0
    first, second = views_of(r)[:2]
    assert first["name"].startswith("Class 5 ")
    assert second["name"] == "Confidence (all classes)"
    assert r.plot().ax_.get_xlabel() == "Predicted probability of class 5"
    wrong = cal.report(y, q**2 / (q**2).sum(axis=1, keepdims=True))
    assert wrong.headline.interval.low > 0
    assert views_of(wrong)[0]["name"] == "Confidence (all classes)"
    assert wrong.plot().ax_.get_xlabel().startswith("Confidence")


def test_a_direction_needs_a_gap_of_the_mean():
    """Over-confident in the same way everywhere: no class is too high or too low on the whole."""
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.ones(3), 3000)
    stated = true**3 / (true**3).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    rows = cal.report(y, stated).per_class
    assert all(row.significant for row in rows)
    assert {row.direction for row in rows} == {"both"}
    lifted = 0.6 * true + 0.4 * np.array([1, 0, 0])
    found = {row.label: row.direction for row in cal.report(y, lifted).per_class}
    assert found == {0: "too high", 1: "too low", 2: "too low"}
