"""The adaptive test: a second implementation pair by pair, exactness under calibration, power, weights, hard cases."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest

import calibrant as cal
from calibrant.notions import Target, as_notion
from calibrant.significance.adaptive_bins import Scales, _apart, finest


def several(n, k=3, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    p = q**power
    return y, p / p.sum(axis=1, keepdims=True)


def naive(place, probs, hits, w):
    """T and its standardised value at every scale kept, pair by pair: {bins a side: (T, z)}.

    ``place`` (n, axes) in the unit cube, ``probs`` and ``hits`` (n, d).
    """
    n, axes = place.shape
    most = max(1, math.ceil(2 / axes * math.log2(n / math.sqrt(math.log(n)))))
    partitions = []
    for b in range(most + 1):
        m = 2**b
        edges = [j / m for j in range(1, m)]
        bins = [tuple(sum(v > e + 1e-14 for e in edges) for v in row) for row in place] if m <= 4096 else None
        if bins is None:
            break
        if partitions and len(set(partitions[-1][1])) == len(set(bins)):
            continue
        partitions.append((m, bins))
    found = {}
    r = hits - probs
    for m, bins in partitions:
        if 2 * len(set(bins)) > n:
            continue
        weight = {g: sum(w[i] for i in range(n) if bins[i] == g) for g in set(bins)}
        t = variance = mean = 0.0
        for i in range(n):
            g = bins[i]
            own = np.diag(probs[i]) - np.outer(probs[i], probs[i])
            own = own if probs.shape[1] > 1 else np.array([[probs[i, 0] * (1 - probs[i, 0])]])
            mean += w[i] ** 2 * np.trace(own) / weight[g]
            for j in range(n):
                if j == i or bins[j] != g:
                    continue
                other = np.diag(probs[j]) - np.outer(probs[j], probs[j])
                other = other if probs.shape[1] > 1 else np.array([[probs[j, 0] * (1 - probs[j, 0])]])
                t += w[i] * w[j] * (r[i] @ r[j]) / weight[g]
                variance += 2 * (w[i] * w[j] / weight[g]) ** 2 * (own * other).sum()
        t, mean, variance = t / w.sum(), mean / w.sum(), variance / w.sum() ** 2
        freedom = 2 * mean**2 / variance  # of the scaled χ² with the moments of T + mean
        z = (np.cbrt((t + mean) / mean) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
        found[m] = (t, z)
    return found


def simplex_place(p):
    """First coordinate: the share of the simplex's volume with a smaller p₁; the second within that slice."""
    a = 1 - (1 - p[:, 0]) ** 2
    return np.column_stack([a, p[:, 1] / (1 - p[:, 0])])


CASES = {
    "class": (cal.notions.ClassSpecific(1), lambda p, y: [(p[:, [1]], p[:, [1]], (y == 1)[:, None], None)]),
    "confidence": (
        "confidence",
        lambda p, y: [((p.max(1)[:, None] - 1 / 3) * 1.5, p.max(1)[:, None], (y == p.argmax(1))[:, None], None)],
    ),
    "classwise": ("classwise", lambda p, y: [(p[:, [k]], p[:, [k]], (y == k)[:, None], None) for k in range(3)]),
    "top-label": (
        "top-label",
        lambda p, y: [
            ((p.max(1)[:, None] - 1 / 3) * 1.5, p.max(1)[:, None], (y == k)[:, None], p.argmax(1) == k)
            for k in range(3)
        ],
    ),
    "canonical": ("canonical", lambda p, y: [(simplex_place(p), p, np.eye(3)[y], None)]),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_pair_by_pair(name, weighted):
    y, p = several(45, power=1.4)
    p = np.round(p * 32) / 32  # ties, and scores on the edges of bins
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    keep = p.min(1) > 0
    y, p = y[keep], p[keep]
    w = np.random.default_rng(1).random(len(y)) + 0.1 if weighted else np.ones(len(y))
    notion, problems = CASES[name]
    found = cal.significance.adaptive_test(
        y, p, notion=notion, sample_weight=w if weighted else None, n_resamples=1, random_state=0
    )
    each = []
    predictions = cal.as_predictions(y, p)
    cut = [Scales.of(t, y, predictions.eps, w) for t in as_notion(notion, predictions).targets(predictions)]
    for k, (place, probs, hits, rows) in enumerate(problems(p, y)):
        rows = np.ones(len(y), dtype=bool) if rows is None else rows
        again = naive(place[rows], probs[rows], hits[rows].astype(float), w[rows])
        each += [(z, t, m, k) for m, (t, z) in again.items()]
        assert [level.a_side for level in cut[k].levels] == sorted(again, reverse=True)
        errors = cut[k].squared_errors(cut[k].outcomes(y[None]))
        by_size = [again[level.a_side] for level in cut[k].levels]
        assert errors[:, 0] == pytest.approx([t for t, _ in by_size], rel=1e-8)
        assert cut[k].standardised(errors)[:, 0] == pytest.approx([z for _, z in by_size], rel=1e-8)
    z, t, m, k = max(each)
    assert found.statistic == pytest.approx(z, rel=1e-8)
    assert found.details["squared_error"] == pytest.approx(t, rel=1e-8)
    assert found.details["bins_a_side"] == m
    assert found.details.get("class_index", k) == k
    if name in ("class", "confidence", "canonical"):
        assert found.details["n_scales"] == len(each)


@pytest.mark.parametrize("notion", ["classwise", "canonical", "confidence", "top-label"])
def test_draws_are_judged_as_the_labels_are(notion):
    """The p-value from draws made here, each tested alone."""
    y, p = several(60, power=1.8)
    found = cal.significance.adaptive_test(y, p, notion=notion, n_resamples=40, random_state=7)
    draws = (np.random.default_rng(7).random((40, 60))[:, :, None] > np.cumsum(p, axis=1)[None, :, :-1]).sum(axis=2)
    each = [
        cal.significance.adaptive_test(z, p, notion=notion, n_resamples=1, random_state=0, labels=[0, 1, 2]).statistic
        for z in draws
    ]
    assert found.pvalue == (np.sum(np.array(each) >= found.statistic - 1e-9) + 1) / 41


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["uniform", "sharp", "few values"])
def test_size(draw):
    """5 % of 400 calibrated samples are rejected, within four standard errors."""
    rng = np.random.default_rng(3)
    rejected = 0
    for _ in range(400):
        p = {
            "uniform": lambda: rng.random(150),
            "sharp": lambda: rng.beta(0.2, 0.2, 150),
            "few values": lambda: rng.choice([0.1, 0.3, 0.31, 0.9], 150),
        }[draw]()
        rejected += (
            cal.significance.adaptive_test(rng.random(150) < p, p, n_resamples=99, random_state=0).pvalue <= 0.05
        )
    assert abs(rejected - 20) <= 4 * np.sqrt(400 * 0.05 * 0.95)


def test_standardised_errors_are_nearly_normal_at_every_scale():
    """Mean 0, sd 1 and 5 % above 1.645, whatever the number of bins: no scale drowns the others."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 0.9, 400)
    scales = Scales.of(Target(p, 1), np.zeros(400), 2.2e-16)
    sets = (rng.random((4000, 400)) < p).astype(np.int64)
    errors = scales.squared_errors(scales.outcomes(sets))
    sd = np.array([level.sd for level in scales.levels])
    assert errors.mean(axis=1) / sd == pytest.approx(0, abs=4 / np.sqrt(4000))
    assert errors.std(axis=1) / sd == pytest.approx(1, abs=0.08)
    z = scales.standardised(errors)
    assert (z > 1.645).mean(axis=1) == pytest.approx(0.05, abs=0.02)
    assert len(z) >= 6


def test_finds_gaps_of_any_width():
    rng = np.random.default_rng(0)
    sides = {}
    for name, gap in (
        ("shift", lambda s: 0.0 * s + 0.08),
        ("waves", lambda s: 0.25 * np.sin(24 * np.pi * s) * (s > 0.2) * (s < 0.8)),
    ):
        found = []
        for i in range(20):
            p = rng.random(800)
            y = rng.random(800) < np.clip(p + gap(p), 0, 1)
            found.append(cal.significance.adaptive_test(y, p, n_resamples=99, random_state=i))
        assert sum(one.pvalue <= 0.05 for one in found) >= 18
        sides[name] = np.median([one.details["bins_a_side"] for one in found])
    assert sides["shift"] <= 4
    assert sides["waves"] >= 16


@pytest.mark.parametrize("notion", ["confidence", "classwise", "top-label", "canonical"])
def test_several_classes(notion):
    options = {"notion": notion, "n_resamples": 99, "random_state": 0}
    assert cal.significance.adaptive_test(*several(500, power=2.0), **options).pvalue == 0.01
    assert cal.significance.adaptive_test(*several(500, seed=5), **options).pvalue > 0.05


def test_canonical_sees_what_classes_hide():
    """Each class calibrated for itself, the pairs of classes not: labels depend on which of two vectors is stated."""
    vectors = np.array(list(itertools.permutations([0.1, 0.3, 0.6])))
    sign = np.array([np.sign(np.linalg.det(np.eye(3)[np.argsort(v)])) for v in vectors])
    by_value = np.where(vectors == 0.3, 0.16, -0.08)  # up for vectors of one parity, down for the others
    p = np.tile(vectors, (300, 1))
    truth = p + np.tile(sign[:, None] * by_value, (300, 1))
    for k in range(3):
        for value in (0.1, 0.3, 0.6):
            assert truth[p[:, k] == value, k].mean() == pytest.approx(value)
    rng = np.random.default_rng(0)
    rejected = {"canonical": 0, "classwise": 0}
    for i in range(20):
        y = (rng.random((len(p), 1)) > truth.cumsum(axis=1)).sum(axis=1)
        for notion in rejected:
            rejected[notion] += (
                cal.significance.adaptive_test(y, p, notion=notion, n_resamples=99, random_state=i).pvalue <= 0.05
            )
    assert rejected["canonical"] >= 18
    assert rejected["classwise"] <= 5


def test_cells_of_the_simplex_have_equal_volume():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 40_000)
    scales = Scales.of(Target(p, None), np.zeros(40_000), 2.2e-16, n_scales=3)
    assert [level.a_side for level in scales.levels] == [4, 2, 1]
    assert scales.levels[0].weight.size == 64
    assert scales.levels[0].weight == pytest.approx(625, abs=5 * 25)


def test_bins_are_right_closed():
    """Scores on edges: 0.5 with those below, a confidence of 2/3 (the middle of [1/3, 1]) as well."""
    p = np.repeat([0.25, 0.5, 0.6, 1.0 - 1e-9], 10)
    scales = Scales.of(Target(p, 1), np.zeros(40), 2.2e-16, n_scales=3)
    assert [level.weight.tolist() for level in scales.levels] == [[10, 10, 10, 10], [20, 20], [40]]
    middle = 1 / 3 + (1 - 1 / 3) / 2
    c = np.repeat([0.4, middle, np.nextafter(middle, 1), 0.8], 5)
    scales = Scales.of(Target(c, 1, domain=(1 / 3, 1.0)), np.zeros(20), 2.2e-16, n_scales=2)
    assert [level.weight.tolist() for level in scales.levels] == [[15, 5], [20]]


def test_scales():
    """The paper's B for one score and for vectors, and as far as float32 goes."""
    assert finest(500, 1, 2.2e-16) == math.ceil(2 * math.log2(500 / math.sqrt(math.log(500))))
    assert finest(500, 2, 2.2e-16) == math.ceil(math.log2(500 / math.sqrt(math.log(500))))
    assert finest(10**6, 1, float(np.finfo(np.float32).eps)) == 20
    assert finest(2, 1, 2.2e-16) == 1
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    for k in (1, 2, 4):
        assert cal.significance.adaptive_test(y, p, n_scales=k, n_resamples=9, random_state=0).details["n_scales"] == k
    one = cal.significance.adaptive_test(y, p, n_scales=1, n_resamples=9, random_state=0)
    r = y - p
    assert one.details["squared_error"] == pytest.approx((r.sum() ** 2 - r @ r) / 300**2)


def test_weights():
    """A weight is one unit of its size, which draws one label: equal ones are none, and their scale says nothing."""
    y, p = several(120, power=1.5)
    rng = np.random.default_rng(0)
    weights = rng.random(120) * (rng.random(120) < 0.8)
    options = {"n_resamples": 50, "random_state": 1}
    used = weights > 0
    for notion in ("confidence", "classwise", "top-label", "canonical"):
        one = cal.significance.adaptive_test(y, p, notion=notion, sample_weight=weights, **options)
        other = cal.significance.adaptive_test(
            y[used], p[used], notion=notion, sample_weight=7.3 * weights[used], **options
        )
        assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
        assert one.pvalue == other.pvalue
        plain = cal.significance.adaptive_test(y, p, notion=notion, **options)
        heavy = cal.significance.adaptive_test(y, p, notion=notion, sample_weight=np.full(120, 10**9), **options)
        assert heavy.statistic == pytest.approx(plain.statistic, rel=1e-9)
        assert heavy.pvalue == plain.pvalue


def test_order_and_names_do_not_matter():
    y, p = several(150, power=1.5)
    shuffle = np.random.default_rng(0).permutation(150)
    names = np.array(["b", "a", "c"])
    for notion in ("confidence", "classwise", "top-label", "canonical"):
        one = cal.significance.adaptive_test(y, p, notion=notion, n_resamples=5, random_state=0)
        other = cal.significance.adaptive_test(y[shuffle], p[shuffle], notion=notion, n_resamples=5, random_state=0)
        assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
        named = cal.significance.adaptive_test(
            names[y], p, notion=notion, labels=["b", "a", "c"], n_resamples=5, random_state=0
        )
        assert named.pvalue == one.pvalue
    two = np.column_stack([1 - p[:, 0], p[:, 0]])
    assert cal.significance.adaptive_test(y == 0, p[:, 0], n_resamples=9, random_state=0).statistic == pytest.approx(
        cal.significance.adaptive_test(
            y == 0, two, notion=cal.notions.ClassSpecific(True), n_resamples=9, random_state=0
        ).statistic
    )
    low = cal.significance.adaptive_test(y == 0, p[:, 0].astype(np.float32), n_resamples=9, random_state=0)
    assert low.details["n_scales"] >= 3


def test_impossible_outcomes():
    p = np.array([0.0, 0.0, 0.3, 0.6, 1.0])
    found = cal.significance.adaptive_test([0, 1, 1, 1, 1], p, n_resamples=19, random_state=0)
    assert found.statistic == np.inf
    assert found.pvalue == 0.05
    assert any("cannot occur in a draw: 1" in text for text in found.warnings)
    assert found.to_dict()["statistic"] is None
    fine = cal.significance.adaptive_test([0, 0, 1, 1, 1], p, n_resamples=19, random_state=0)
    assert np.isfinite(fine.statistic)
    assert fine.warnings == ()
    y, q = several(30)
    q[0] = [0, 0.5, 0.5]
    y[0] = 0
    for notion in ("canonical", "classwise", cal.notions.ClassSpecific(0)):
        assert cal.significance.adaptive_test(y, q, notion=notion, n_resamples=4, random_state=0).pvalue == 0.2


@pytest.mark.parametrize(
    ("y", "p"), [([1], [0.4]), ([0, 1], [0.2, 0.2]), ([0, 1, 1], [0.0, 1.0, 1.0]), ([0, 1] * 20, [0.5] * 40)]
)
def test_few_rows(y, p):
    found = cal.significance.adaptive_test(y, p, n_resamples=9, random_state=0)
    assert 0.1 <= found.pvalue <= 1
    assert np.isfinite(found.statistic)
    if len(set(p)) == len(p) or set(p) <= {0.0, 1.0}:
        assert found.pvalue == 1
        assert any("nothing to test" in text for text in found.warnings)
        assert found.details == {"n_scales": 0.0}


def test_certain_rows_beside_others():
    """Rows at 0 and 1 share no uncertain pair at fine scales; coarser ones stay linked to them."""
    rng = np.random.default_rng(0)
    p = np.concatenate([np.zeros(50), np.ones(50), rng.random(20)])
    y = (rng.random(120) < p).astype(int)
    found = cal.significance.adaptive_test(y, p, n_resamples=99, random_state=0)
    r = y - p
    t = (r.sum() ** 2 - r @ r) / 120**2
    alone = cal.significance.adaptive_test(y, p, n_scales=1, n_resamples=99, random_state=0)
    assert alone.details["squared_error"] == pytest.approx(t)
    assert found.details["n_scales"] > 1


def test_same_seed_same_result():
    y, p = several(80)
    one, other = (
        cal.significance.adaptive_test(y, p, notion="classwise", n_resamples=30, random_state=4) for _ in range(2)
    )
    assert one == other
    assert "adaptive test" in str(one)
    generator = np.random.default_rng(4)
    assert cal.significance.adaptive_test(y, p, notion="classwise", n_resamples=30, random_state=generator) == one


def test_blocks_of_draws():
    """More draws than are held at once: the same p-value as those of the blocks together."""
    from calibrant.significance import null

    y, p = several(50, power=1.3)
    whole = cal.significance.adaptive_test(y, p, notion="classwise", n_resamples=64, random_state=0)
    kept, null._LABELS = null._LABELS, 50 * 7
    try:
        parts = cal.significance.adaptive_test(y, p, notion="classwise", n_resamples=64, random_state=0)
    finally:
        null._LABELS = kept
    assert parts.pvalue == whole.pvalue


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_resamples": 0}, "n_resamples must be an int >= 1; got 0"),
        ({"n_resamples": True}, "n_resamples must be"),
        ({"n_scales": 0}, "n_scales must be 'auto' or an int >= 1; got 0"),
        ({"n_scales": 2.5}, "n_scales must be"),
        ({"n_scales": np.array([1, 2])}, "n_scales must be"),
        ({"notion": "all"}, "notion must be one of"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        cal.significance.adaptive_test([0, 1], [0.2, 0.3], **options)


def test_pairs_are_counted_once_a_bin():
    """Every partition of four rows, by hand: T of two bins is the mean of both bins' pair products."""
    for y in itertools.product([0, 1], repeat=4):
        p = np.array([0.2, 0.3, 0.6, 0.9])
        r = np.array(y) - p
        found = cal.significance.adaptive_test(
            y, p, n_scales=2, n_resamples=1, random_state=0, labels=[0, 1], pos_label=1
        )
        scales = {1: 2 * sum(r[i] * r[j] for i, j in itertools.combinations(range(4), 2)) / 16}
        scales[2] = (2 * r[0] * r[1] / 2 + 2 * r[2] * r[3] / 2) / 4
        assert found.details["squared_error"] == pytest.approx(scales[found.details["bins_a_side"]])


# Many rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [(0.0, 1.0), (0.2, 1.0)])
def test_cells_of_many_rows_are_read_as_the_rows_are(domain):
    rng = np.random.default_rng(0)
    p = domain[0] + (domain[1] - domain[0]) * np.round(rng.beta(0.3, 0.5, 300_000), 6)
    y = (rng.random(p.size) < np.clip(p + 0.01, 0, 1)).astype(np.int64)
    y[(p == 0) | (p == 1)] = p[(p == 0) | (p == 1)]
    target = Target(p, 1, domain=domain)
    rows, cells = Scales.of(target, y, 2.2e-16), Scales.of_cells(target, y, 2.2e-16)
    assert rows.count.sum() == cells.count.sum() == p.size
    assert cells.count.size < 2**15
    assert [v.a_side for v in cells.levels] == [v.a_side for v in rows.levels]
    for one, other in zip(cells.levels, rows.levels, strict=True):
        assert one.weight.tolist() == other.weight.tolist()
        assert (one.mean, one.sd) == pytest.approx((other.mean, other.sd), rel=1e-9)
    # Squares of bins' residuals are exact, those of rows with themselves as far as a cell's width.
    sd = np.array([level.sd for level in rows.levels])[:, None]
    difference = cells.squared_errors(cells.happened) - rows.squared_errors(rows.happened)
    assert np.abs(difference / sd).max() < 1e-3
    assert rows.largest(rows.happened) > 5


def test_draws_of_cells_have_the_law_of_the_rows():
    """Mean, variance and how often standardised errors are above 1.645, at every scale."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.2, 2, 270_000)
    cells = Scales.of_cells(Target(p, 1), np.zeros(p.size), 2.2e-16)
    errors = np.concatenate([cells.squared_errors(sets) for sets in cells.drawn(400, rng)], axis=1)
    sd = np.array([level.sd for level in cells.levels])
    assert errors.shape == (len(sd), 400)
    assert errors.mean(axis=1) / sd == pytest.approx(0, abs=4 / np.sqrt(400))
    assert errors.std(axis=1) / sd == pytest.approx(1, abs=0.2)
    assert (cells.standardised(errors) > 1.645).mean(axis=1) == pytest.approx(0.05, abs=0.045)


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["auto", "confidence", "top-label", "classwise"])
def test_many_rows(notion):
    """Of every notion: calibrated rows pass, and narrow waves that no 30 bins would see are found."""
    rng = np.random.default_rng(4)
    k = 2 if notion == "auto" else 3
    q = rng.dirichlet(np.ones(k), 600_000)
    y = (rng.random((len(q), 1)) > q.cumsum(axis=1)).sum(axis=1)
    options = {"n_resamples": 19, "random_state": 0, "notion": notion}
    fine = cal.significance.adaptive_test(y, q, **options)
    assert fine.pvalue > 0.05
    assert fine.details["n_scales"] <= (18 if notion == "top-label" else 16)  # of a class there are fewer
    wave = 0.05 * np.sign(np.sin(200 * np.pi * q.max(axis=1)))
    moved = (rng.random(len(q)) < np.abs(wave)) * np.sign(wave)
    top = q.argmax(axis=1)
    y = np.where(moved > 0, top, np.where(moved < 0, (top + 1) % k, y))
    assert cal.significance.adaptive_test(y, q, **options).pvalue == 0.05


def test_outcomes_that_share_rows_are_drawn_together():
    y, p = several(50)
    predictions = cal.as_predictions(y, p)
    for notion, apart in (("confidence", True), ("top-label", True), ("classwise", False), ("canonical", False)):
        assert _apart(list(as_notion(notion, predictions).targets(predictions)), 50) is apart


def test_memory_is_that_of_the_rows():
    """Forty bytes a row beside the input at most, and a statistic that no row is missing from."""
    peaks = []
    for n in (10**6, 3 * 10**6):
        rng = np.random.default_rng(0)
        p = rng.random(n)
        y = (rng.random(n) < p).astype(np.int64)
        tracemalloc.start()
        found = cal.significance.adaptive_test(y, p, n_resamples=3, random_state=0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.n_samples == n
    assert (peaks[1] - peaks[0]) / (2 * 10**6) < 40
