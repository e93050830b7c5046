"""Intervals under named assumptions: theorems checked by counting all samples, hostile truths, bad input."""

from __future__ import annotations

from itertools import pairwise, product
from math import erf, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.validation import as_predictions
from calibrant.measure import bounds
from calibrant.measure.assumptions import BoundedVariation, NoAssumption, SameSign, SmoothMap, as_assumption
from calibrant.measure.bounds import RowsAlike, lower_bound, same_scores, upper_bound, upper_bound_of_rows
from calibrant.measure.question import Question

EVERY = ["none", "bins", "bins:4", "variation:0.3", "variation:2"]


def alike(scores, outcomes, **kwargs):
    asked = Question.of(as_predictions(outcomes, scores, **{"labels": [0, 1], **kwargs}), "auto", "auto", 1)
    return RowsAlike.of(asked)


def interval(y, p, assume, **kwargs):
    return cal.estimate(y, p, assume=assume, **{"labels": [0, 1], **kwargs}).interval


# --- what the theorems say, exactly: e-values are 1 at most on average over all samples there can be


def mean_over_samples(scores, mass, chance, n, value):
    """Mean of a value of (scores, outcomes), (n,), over all samples of a law of few scores."""
    every = [(s, o, m * (c if o else 1 - c)) for s, m, c in zip(scores, mass, chance, strict=True) for o in (0, 1)]
    total = 0.0
    for rows in product(every, repeat=n):
        probability = np.prod([row[2] for row in rows])
        if probability:
            total += probability * value(np.array([r[0] for r in rows]), np.array([r[1] for r in rows]))
    return total


LAWS = st.integers(0, 2**32 - 1).map(lambda seed: law(np.random.default_rng(seed)))


def law(rng):
    """Three scores, some at the ends or near each other, their masses, and how often it happens."""
    scores = rng.choice([0.0, 0.02, 0.3, 0.34, 0.5, 0.9, 0.97, 1.0], 3, replace=False)
    return np.sort(scores), rng.dirichlet(np.ones(3)), rng.choice([0.0, 0.1, 0.4, 0.5, 0.8, 1.0], 3)


def upper_e_value(pools, bet, theta, norm=1):
    def value(s, o):
        rows = alike(s, o)
        total = bounds._PoolSums.of(rows.parts[0], pools(rows.parts[0]), norm).total(bet)
        return exp(-total) / (1 + theta * np.expm1(-bet)) ** s.size

    return value


@settings(max_examples=15, deadline=None)
@given(LAWS, st.sampled_from([0.1, 0.5, 1.5]), st.sampled_from([1, 2]))
@example((np.array([0.3, 0.5, 0.9]), np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.5, 0.8])), 0.5, 1)
def test_the_upper_bound_for_every_truth(found, bet, norm):
    scores, mass, chance = found
    theta = mass @ np.abs(chance - scores) ** norm
    assert mean_over_samples(scores, mass, chance, 3, upper_e_value(same_scores, bet, theta, norm)) <= 1 + 1e-12


@settings(max_examples=15, deadline=None)
@given(LAWS, st.sampled_from([0.1, 0.5, 1.5]))
def test_the_upper_bound_where_gaps_keep_their_sign(found, bet):
    scores, mass, chance = found
    up = np.floor(4 * scores - 1e-9) % 2 == 0
    chance = np.where(up, np.maximum(chance, scores), np.minimum(chance, scores))
    value = upper_e_value(SameSign(4).pools, bet, mass @ np.abs(chance - scores))
    assert mean_over_samples(scores, mass, chance, 3, value) <= 1 + 1e-12


@settings(max_examples=15, deadline=None)
@given(LAWS, st.sampled_from([0.1, 0.5, 1.5]))
def test_the_upper_bound_of_gaps_of_bounded_variation(found, bet):
    scores, mass, chance = found
    gap = chance - scores
    value = upper_e_value(BoundedVariation(np.abs(np.diff(gap)).sum() + 1e-9).pools, bet, mass @ np.abs(gap))
    assert mean_over_samples(scores, mass, chance, 3, value) <= 1 + 1e-12


@settings(max_examples=4, deadline=None)
@given(LAWS)
def test_the_lower_bound_for_every_truth(found):
    scores, mass, chance = (v[:2] for v in found)
    mass = mass / mass.sum()
    theta = mass @ np.abs(chance - scores)

    def wealth(s, o):
        bet, x = bounds._bets_of(alike(s, o), np.arange(s.size))
        return np.prod(1 + np.minimum(bet, bounds._LARGEST / (1 + theta)) * (x - theta))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "_FIRST", 1)
        assert mean_over_samples(scores, mass, chance, 4, wealth) <= 1 + 1e-12


# --- second implementations, row by row


def naive_upper(s, o, pool, delta, moves=0.0):
    n, ends = len(s), []
    for variance, share in zip(bounds.VARIANCES, bounds.SHARES, strict=True):
        bet = sqrt(2 * log(1 / (bounds.USUAL * share)) / (n * variance))
        total, largest = 0.0, 0
        for code in set(pool):
            rows = [i for i in range(n) if pool[i] == code]
            up = sum(log(s[i] * exp(-bet * (1 - s[i])) + (1 - s[i]) * exp(bet * s[i])) for i in rows)
            down = sum(log(s[i] * exp(bet * (1 - s[i])) + (1 - s[i]) * exp(-bet * s[i])) for i in rows)
            together = bet * sqrt(2 / np.pi * sum(s[i] * (1 - s[i]) for i in rows)) + max(up, down)
            if len(rows) > 1 and together < bet * sum(2 * s[i] * (1 - s[i]) for i in rows):
                total += bet * abs(sum(o[i] - s[i] for i in rows)) + max(up, down)
                largest = max(largest, len(rows) if len({s[i] for i in rows}) > 1 else 0)
            else:
                total += bet * sum(abs(o[i] - s[i]) for i in rows)
        total += (exp(bet) - exp(-bet)) * moves / 4 * largest
        ends.append((1 - exp(-(total + log(1 / (delta * share))) / n)) / (1 - exp(-bet)))
    return min(*ends, 1.0)


@pytest.mark.parametrize("digits", [1, 2, 9])
def test_upper_bounds_have_a_twin(digits):
    rng = np.random.default_rng(digits)
    s = rng.random(60).round(digits)
    o = rng.integers(0, 2, 60)
    rows = alike(s, o)
    assert upper_bound(rows, same_scores, 1, 0.02) == pytest.approx(naive_upper(s, o, list(s), 0.02))
    bins = np.clip(np.ceil(s * 5 - 1e-12), 1, 5).astype(int).tolist()
    assert upper_bound(rows, SameSign(5).pools, 1, 0.01) == pytest.approx(naive_upper(s, o, bins, 0.01))
    moving = BoundedVariation(0.7).pools(rows.parts[0])
    want = naive_upper(s, o, moving.codes.tolist(), 0.01, 0.7)
    assert upper_bound(rows, BoundedVariation(0.7).pools, 1, 0.01) == pytest.approx(want)


def naive_lower(s, o, place, delta):
    """Least m at which the wealth of one order is below 1/δ, on a grid."""
    order = np.argsort(place)
    s, r, n = s[order], (o - s)[order], len(s)
    x, bets = [0.0] * n, [0.0] * n
    gains, fitted, edges, depth = [0.0], 0, [], 0
    seen, squares, start = 8, 0.8, 8
    while start < n:
        stop = min(n, max(start + 1, int(np.ceil(1.25 * start))))
        if start >= 2 * fitted:
            depth, fitted = int(min(8, np.log2(start / 3))), start
            edges = [sorted(s[:start])[k * start // 2**depth] for k in range(1, 2**depth)]
            gains += [gains[-1]] * (depth + 1 - len(gains))
        cells = [sum(e < v for e in edges) for v in s[:stop]]
        every = []
        for level in range(depth + 1):
            sides = {}
            for c in {cell >> (depth - level) for cell in cells}:
                inside = [i for i in range(start) if cells[i] >> (depth - level) == c]
                noise = max(sum(r[i] ** 2 for i in inside), sum(s[i] * (1 - s[i]) for i in inside))
                sides[c] = erf(sum(r[i] for i in inside) / sqrt(2 * noise)) if noise > 0 else 0.0
            every.append([sides[cells[i] >> (depth - level)] * r[i] for i in range(start, stop)])
        x[start:stop] = every[int(np.argmax(gains))]
        gains = [0.8 * g + sum(e) for g, e in zip(gains, every, strict=True)]
        bets[start:stop] = [sqrt(2 * log(40) * seen / (n * squares))] * (stop - start)
        seen, squares, start = seen + stop - start, squares + sum(v * v for v in x[start:stop]), stop
    for m in np.arange(0, 1, 1e-4):
        if sum(log(1 + min(b, 0.9 / (1 + m)) * (v - m)) for b, v in zip(bets[8:], x[8:], strict=True)) < log(1 / delta):
            return m
    return 1.0


def test_the_lower_bound_has_a_twin(monkeypatch):
    monkeypatch.setattr(bounds, "_ORDERS", 1)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        s = rng.random(150).round(seed + 1)
        o = (rng.random(150) < 1 - s).astype(int)
        got = lower_bound(alike(s, o), 0.025, np.random.default_rng(5))
        want = naive_lower(s, o, np.random.default_rng(5).permutation(150), 0.025)
        assert 0.02 < got == pytest.approx(want, abs=1.1e-4)


# --- hostile truths


def truths():
    square = lambda s: s + np.where(np.floor(24 * s) % 2 == 0, 0.1, -0.1)  # noqa: E731
    return {
        "calibrated": (lambda rng, n: rng.random(n), lambda s: s, 0.01, True),
        "waves": (lambda rng, n: rng.random(n), square, 4.8, False),
        "steps": (lambda rng, n: rng.random(n), lambda s: s + np.where(s < 0.5, 0.1, -0.1), 0.2, True),
        "atom inside": (
            lambda rng, n: np.where(rng.random(n) < 0.1, 0.99, rng.beta(5, 1, n)),
            lambda s: np.where(s == 0.99, 0.4, s),
            1.18,
            True,
        ),
        "rare": (lambda rng, n: rng.beta(0.5, 49.5, n), lambda s: 2 * s, 1.0, True),
        "rounded": (lambda rng, n: rng.random(n).round(2), lambda s: 0.5 + 0.6 * (s - 0.5), 0.4, True),
        "ten trees": (lambda rng, n: rng.integers(0, 11, n) / 10, lambda s: 0.1 + 0.8 * s, 0.2, True),
        "four answers": (lambda rng, n: rng.choice([0.7, 0.8, 0.9, 0.95], n), lambda s: s - 0.12, 0.01, True),
        "a rule": (lambda rng, n: rng.random(n), lambda s: (1000 * s % 1 < s) * 1.0, None, False),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", truths())
def test_hostile_truths_are_covered_and_intervals_nested(name):
    scores, chance, moves, one_sign = truths()[name]
    big = scores(np.random.default_rng(9), 200_000)
    error = np.abs(np.clip(chance(big), 0, 1) - big).mean()
    assumed = ["none", *(["bins:20"] if one_sign else []), *([f"variation:{moves}"] if moves else [])]
    missed = dict.fromkeys(assumed, 0)
    for seed in range(25):
        rng = np.random.default_rng([seed, 3])
        s = scores(rng, 200)
        y = (rng.random(200) < chance(s)).astype(int)
        widest = interval(y, s, "none", random_state=seed)
        # A Hoeffding term, a little wider: it is split among ends and bets.
        assert widest.high <= 1.1 * np.abs(y - s).mean() + 1.5 * sqrt(log(1 / 0.015) / (2 * 200))
        for assume in assumed:
            low, high = interval(y, s, assume, random_state=seed)
            assert widest.low == low <= high <= widest.high
            missed[assume] += not low <= error <= high
    assert max(missed.values()) <= 5  # more than 5 of 25 have a chance of 0.1 % at 5 % each


def test_bins_that_see_a_gap_are_told():
    rng = np.random.default_rng(0)
    s = rng.random(4000)
    y = (rng.random(4000) < np.where(np.floor(8 * s) % 2 == 0, np.minimum(s + 0.2, 1), np.maximum(s - 0.2, 0))).astype(
        int
    )
    found = cal.estimate(y, s, assume="none")
    assert 0.08 < found.interval.low < 0.2 < found.interval.high


def test_a_bound_that_cannot_be_had():
    """No row is off by chance, and every score by much: all assumptions but none and a large variation are wrong."""
    rng = np.random.default_rng(1)
    s = rng.random(2000)
    y = (s * 1000 % 1 < s).astype(int)
    assert interval(y, s, "none").high > 1 / 3
    assert interval(y, s, "variation:2000").high > 1 / 3
    assert interval(y, s, "bins").high < 0.1


# --- what all of them have in common


@pytest.mark.parametrize("assume", EVERY)
def test_higher_levels_are_wider(assume):
    rng = np.random.default_rng(2)
    s = rng.random(500)
    y = (rng.random(500) < s**2).astype(int)
    ends = [interval(y, s, assume, level=level) for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)]
    assert all(wide.low <= slim.low and slim.high <= wide.high for slim, wide in pairwise(ends))
    assert ends[0].low > ends[-1].low
    assert ends[0].high < ends[-1].high


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=60),
    st.sampled_from(EVERY),
    st.sampled_from([1, 1.5, 2, 4]),
)
def test_every_sample_has_an_interval_within_that_of_no_assumption(rows, assume, norm):
    s, y = np.array([r[0] for r in rows]), np.array([int(r[1]) for r in rows])
    found = cal.estimate(y, s, labels=[0, 1], assume=assume, norm=norm)
    widest = interval(y, s, "none", norm=norm)
    assert 0 <= widest.low == found.interval.low <= found.value <= found.interval.high <= widest.high <= 1
    own = cal.calibration_error(y, s, labels=[0, 1], norm=norm)
    assert found.value == min(max(own, found.interval.low), found.interval.high)
    assert found.calibrated is None


def three_classes(n=400, seed=4):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(3, 0.5), n)
    return (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), q**2 / (q**2).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("notion", ["confidence", "top-label", "classwise", "class-specific:1"])
@pytest.mark.parametrize("assume", EVERY)
def test_several_classes(notion, assume):
    y, q = three_classes(2000)
    found = cal.estimate(y, q, notion=notion, assume=assume)
    widest = cal.estimate(y, q, notion=notion, assume="none").interval
    assert 0 < found.interval.low == widest.low <= found.value <= found.interval.high <= widest.high
    assert (len(found.per_class) == 3) == (notion in ("top-label", "classwise"))


def test_classes_are_the_mean_of_their_rows():
    """Half the residuals of a row's classes are 1 - s of the class that came."""
    y, q = three_classes(100)
    asked = Question.of(as_predictions(y, q), "classwise", "auto", 1)
    rows = RowsAlike.of(asked)
    alone = alike(np.append(1 - q[np.arange(99), y[:99]], [1 - q[99, y[99]]]), np.zeros(100, int))
    assert rows.classes == 3
    assert upper_bound_of_rows(rows, 1, 0.1) == pytest.approx(2 / 3 * upper_bound_of_rows(alone, 1, 0.1))


def test_two_classes_are_one_problem():
    rng = np.random.default_rng(6)
    s = rng.random(300)
    y = (rng.random(300) < s**2).astype(int)
    for assume in EVERY:
        both = cal.estimate(y, np.column_stack([1 - s, s]), notion="classwise", assume=assume).interval
        assert both == pytest.approx(cal.estimate(1 - y, 1 - s, assume=assume).interval, abs=1e-6)


def test_whole_weights_are_repeats():
    rng = np.random.default_rng(7)
    s = rng.random(200).round(2)
    y = (rng.random(200) < s**2).astype(int)
    w = rng.integers(0, 4, 200)
    for assume in EVERY:
        repeated = interval(np.repeat(y, w), np.repeat(s, w), assume)
        assert interval(y, s, assume, sample_weight=w) == pytest.approx(repeated, abs=1e-12)


def test_results_say_what_is_assumed_and_not_seen():
    y, s = np.array([0, 1] * 50), np.linspace(0, 1, 100)
    found = {assume: cal.estimate(y, s, assume=assume) for assume in ("smooth", "none", "bins", "variation:.5")}
    assert [one.assume for one in found.values()] == ["smooth", "none", "bins:15", "variation:0.5"]
    assert str(found["smooth"]) == str(cal.estimate(y, s))
    assert "assume='none'" in str(found["none"])
    assert all(one.to_dict()["unseen"] == one.unseen != "" for one in found.values())
    assert found["none"].unseen in str(found["none"])
    assert found["none"].curve.level == 0.95
    assert as_assumption(SameSign(3)) == as_assumption("bins:3") == SameSign(3)
    assert isinstance(as_assumption("smooth"), SmoothMap)
    assert cal.estimate(y, s, assume=NoAssumption()).interval == found["none"].interval


def test_the_order_of_rows_is_drawn():
    rng = np.random.default_rng(8)
    s = rng.random(1000)
    y = (rng.random(1000) < s**2).astype(int)
    first, again, other = (interval(y, s, "none", random_state=seed) for seed in (0, 0, 1))
    assert first == again
    assert first.low != other.low
    assert first.high == other.high


# --- what is refused


@pytest.mark.parametrize(
    "assume",
    ["nothing", "none:1", "bins:0", "bins:a", "bins:", "variation", "variation:", "variation:0", "variation:-1", ""],
)
def test_unknown_assumptions(assume):
    with pytest.raises(ValueError, match=r"assume"):
        cal.estimate([0, 1], [0.2, 0.7], assume=assume)


@pytest.mark.parametrize("assume", ["variation:nan", "variation:inf"])
def test_variation_that_is_no_number(assume):
    with pytest.raises(ValueError, match=r"V of assume='variation:V' must be a (finite )?number above 0"):
        cal.estimate([0, 1], [0.2, 0.7], assume=assume)


def test_assumptions_of_another_type():
    with pytest.raises(TypeError, match=r"assume must be 'smooth', 'none'.*got 15"):
        cal.estimate([0, 1], [0.2, 0.7], assume=15)


@pytest.mark.parametrize("assume", EVERY)
def test_what_the_theorems_do_not_say(assume):
    y, q = three_classes(40)
    name = str(as_assumption(assume))
    with pytest.raises(ValueError, match=rf"assume='{name}' gives no interval for rows in groups"):
        cal.estimate(y, q, assume=assume, groups=np.arange(40) // 2)
    with pytest.raises(ValueError, match="for sample_weight other than whole numbers"):
        cal.estimate(y, q, assume=assume, sample_weight=np.linspace(0.1, 2, 40))
    with pytest.raises(ValueError, match="for norm=inf"):
        cal.estimate(y, q, assume=assume, norm=np.inf)
    with pytest.raises(ValueError, match="for average='max'"):
        cal.estimate(y, q, assume=assume, notion=cal.notions.Classwise("max"))
    for notion in ("canonical", "drawn-class"):
        with pytest.raises(TypeError, match=f"for the notion '{notion}'"):
            cal.estimate(y, q, assume=assume, notion=notion)
    with pytest.raises(TypeError, match="needs single rows, which are not kept"):
        cal.Accumulator().update(y, q).estimate(assume=assume)


def test_sums_take_the_assumption_that_needs_no_rows():
    y, q = three_classes(40)
    kept = cal.Accumulator().update(y, q)
    assert kept.estimate(assume="smooth").interval == kept.estimate().interval
    with pytest.raises(ValueError, match="assume must be"):
        kept.estimate(assume="nothing")
