"""Laws of bins: where a score belongs, how many samples a quantile bin holds, and what sums of pieces are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.sums import BinMoments, Edges, GridMoments, fixed_edges, quantile_edges, resolve_n_bins, uniform_edges

quick = settings(deadline=None, derandomize=True, max_examples=60)
DTYPES = [np.float16, np.float32, np.float64]
units = st.floats(0, 1, allow_subnormal=False)


def bin_of(edges: Edges, score, dtype) -> int:
    """Bin number, from 1, of a score as it arrives from a user; alone and within a long array."""
    predictions = cal.as_predictions([0], np.array([score], dtype=dtype))
    alone = edges.slots(predictions.probs, predictions.eps)[0]
    many = edges.slots(np.repeat(predictions.probs, 5000), predictions.eps)
    assert (many == alone).all()
    return int(max(alone, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_bins", [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 64, 100, 1000])
def test_scores_on_an_edge_belong_to_the_bin_on_its_left(dtype, n_bins):
    one = np.ones((), dtype=dtype)
    for j in range(1, n_bins + 1):
        typed = np.array(j / n_bins, dtype=dtype)
        computed = one - np.array((n_bins - j) / n_bins, dtype=dtype)
        assert bin_of(uniform_edges(n_bins), typed, dtype) == j
        assert bin_of(uniform_edges(n_bins), computed, dtype) == j
        if dtype != np.float16:
            explicit = fixed_edges([i / n_bins for i in range(n_bins + 1)])
            assert bin_of(explicit, typed, dtype) == j
            assert bin_of(explicit, computed, dtype) == j
    assert bin_of(uniform_edges(n_bins), 0.0, dtype) == 1


@pytest.mark.parametrize("n_bins", [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 500])
@pytest.mark.parametrize("dtype", DTYPES)
def test_three_tenths(n_bins, dtype):
    """0.3 belongs to the bin that ends there, typed or as 1 - 0.7, in every number of bins that has this edge."""
    for score in (dtype(0.3), dtype(1) - dtype(0.7), dtype(3) / dtype(10), dtype(0.1) * dtype(3)):
        assert bin_of(uniform_edges(n_bins), score, dtype) == n_bins * 3 // 10
    if n_bins <= 100:
        two = [[0.3, 0.7], [0.7, 0.3]]
        for k in (0, 1):
            curve = cal.reliability_curve(
                [0, 1], np.array(two, dtype=dtype), notion=cal.notions.ClassSpecific(k), estimator=cal.Binned(n_bins)
            )
            assert np.flatnonzero(curve.count).tolist() == [n_bins * 3 // 10 - 1, n_bins * 7 // 10 - 1]


@pytest.mark.parametrize("n_bins", [5, 10, 20])
def test_edges_of_a_domain(n_bins):
    for k in (2, 3, 7, 10):
        edges = uniform_edges(n_bins, (1 / k, 1.0))
        for j, value in enumerate(edges.values):
            assert bin_of(edges, value, np.float64) == max(j, 1)


@quick
@given(units, st.integers(1, 200), st.sampled_from(DTYPES))
def test_bins_are_right_closed(score, n_bins, dtype):
    score = float(dtype(score))
    slack = 2.5 * float(np.finfo(dtype).eps)
    j = bin_of(uniform_edges(n_bins), score, dtype)
    assert 1 <= j <= n_bins
    assert (j - 1) / n_bins - 1e-15 <= score <= j / n_bins + slack
    if score > 0:  # strictly to the right of its left edge, rounding errors aside
        assert score > (j - 1) / n_bins - 1e-15


@quick
@given(hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(1e-9, 1 - 1e-9), unique=True), units)
def test_a_table_of_edges_is_a_search(inner, score):
    edges = fixed_edges([0.0, *np.sort(inner), 1.0])
    j = bin_of(edges, score, np.float64)
    assert edges.values[j - 1] <= score or score == 0
    assert score <= edges.values[j] + 1e-12
    assert j == bin_of(Edges(edges.values, exact=True), score, np.float64) or min(abs(edges.values - score)) < 1e-12


@quick
@given(st.data(), st.integers(1, 40), st.sampled_from(DTYPES))
def test_quantile_bins_hold_equal_numbers(data, n_bins, dtype):
    """No ties, whatever the distance between scores: bins differ by at most one sample."""
    width = {np.float16: 16, np.float32: 32, np.float64: 64}[dtype]
    p = data.draw(
        hnp.arrays(
            dtype, st.integers(1, 120), elements=st.floats(0, 1, width=width, allow_subnormal=False), unique=True
        )
    )
    p = np.abs(p)
    p = np.unique(p)
    predictions = cal.as_predictions(np.zeros(len(p), dtype=int), p)
    problem = Problem(predictions.probs, predictions.codes, eps=predictions.eps)
    counts = BinMoments.of(problem, quantile_edges(predictions.probs, None, n_bins)).weight
    assert counts.sum() == len(p)
    if len(p) >= n_bins:
        assert len(counts) == n_bins
        assert counts.max() - counts.min() <= 1
    else:
        assert counts.max() == 1


@pytest.mark.parametrize("n", [20_001, 50_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quantile_bins_of_large_samples(n, dtype):
    """The selection that sorts only the cells which hold a cut."""
    for shape in (0.05, 1, 30):
        p = np.unique(np.random.default_rng(n).beta(shape, 1, n).astype(dtype))
        counts = BinMoments.of(Problem(p, np.zeros(p.size, dtype=int)), quantile_edges(p, None, 15)).weight
        assert counts.sum() == p.size
        assert counts.max() - counts.min() <= 1


def test_neighbouring_floats():
    """Between neighbours there is no number: the cut lies on the lower one."""
    for dtype in (np.float32, np.float64):
        a = dtype(0.5)
        p = np.array([a, np.nextafter(a, dtype(1)), np.nextafter(np.nextafter(a, dtype(1)), dtype(1))])
        for n_bins in (2, 3):
            moments = BinMoments.of(Problem(p, np.zeros(3, dtype=int)), quantile_edges(p, None, n_bins))
            assert sorted(moments.weight) == ([1, 2] if n_bins == 2 else [1, 1, 1])


@quick
@given(st.lists(st.integers(0, 12), min_size=1, max_size=150), st.integers(1, 30), st.booleans())
@example([4, 12, 12], 3, False)  # two cuts between the same scores, once an ulp apart
def test_equal_scores_never_part(values, n_bins, weighted):
    p = np.array(values) / 12
    w = np.arange(1, len(p) + 1) / 7 if weighted else None
    edges = quantile_edges(p, w, n_bins, integral=not weighted)
    assert edges.n_bins <= n_bins
    assert (np.diff(edges.values) > 0).all()
    slots = edges.slots(p, 2.2e-16)
    for value in np.unique(p):
        assert len(np.unique(np.maximum(slots[p == value], 1))) == 1


def test_long_arrays_fall_as_short_ones():
    """Long arrays go through a look-up table: the same bins, for scores on edges too."""
    p = np.random.default_rng(0).integers(0, 13, 6000) / 12
    spread = np.random.default_rng(1).random(6000)
    for edges in (
        quantile_edges(p, None, 5),
        fixed_edges([0, 1 / 12, 0.25, 7 / 12, 1]),
        quantile_edges(spread, None, 40),
    ):
        for scores in (p, p.astype(np.float32), spread):
            short = np.concatenate([edges.slots(part, 2.2e-16) for part in np.split(scores, 60)])
            np.testing.assert_array_equal(edges.slots(scores, 2.2e-16), short)


@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        ("sqrt", {1: 1, 3: 1, 4: 2, 8: 2, 9: 3, 99: 9, 100: 10, 10**8: 10**4, 0.5: 1}),
        ("cbrt", {1: 1, 7: 1, 8: 2, 26: 2, 27: 3, 999: 9, 1000: 10, 10**9: 10**3}),
        (7, {1: 7, 1000: 7}),
    ],
)
def test_numbers_of_bins(rule, sizes):
    assert {n: resolve_n_bins(rule, n) for n in sizes} == sizes


# ---- sums ------------------------------------------------------------------------------------------------------

samples = st.integers(1, 60).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, n, elements=units),
        hnp.arrays(np.int64, n, elements=st.integers(0, 1)),
        st.one_of(
            st.none(),
            hnp.arrays(np.float64, n, elements=st.floats(0.01, 5)),
            hnp.arrays(np.int64, n, elements=st.integers(1, 4)).map(lambda w: w.astype(float)),
        ),
    )
)
FIELDS = ("weight", "score", "outcome", "square", "repeat")


def problem_of(sample) -> Problem:
    p, o, w = sample
    return Problem(p, o, w, w is None or bool((w == np.floor(w)).all()))


@quick
@given(samples, st.sampled_from(["hard", "linear", "linear-as-printed"]), st.integers(1, 12), st.data())
def test_sums_of_pieces(sample, mapping, n_bins, data):
    problem = problem_of(sample)
    edges = uniform_edges(n_bins)
    whole = BinMoments.of(problem, edges, mapping)
    p, o, w = sample
    cut = data.draw(st.integers(0, len(p)))
    merged = BinMoments.empty(edges, mapping)
    for rows in (slice(0, cut), slice(cut, None)):
        if len(p[rows]):
            merged = merged + BinMoments.of(
                problem_of((p[rows], o[rows], None if w is None else w[rows])), edges, mapping
            )
    assert merged.n_samples == whole.n_samples == len(p)
    assert merged.integral == whole.integral
    for field in FIELDS:
        np.testing.assert_allclose(getattr(merged, field), getattr(whole, field), atol=1e-12)
    total = len(p) if w is None else w.sum()
    assert whole.weight.sum() == pytest.approx(total)
    assert whole.score.sum() == pytest.approx(float(p @ (np.ones(len(p)) if w is None else w)))
    assert (whole + whole).weight.sum() == pytest.approx(2 * total)


@quick
@given(samples, st.sampled_from(["hard", "linear", "linear-as-printed"]), st.sampled_from([3, "quantile", "fixed"]))
def test_bin_sums_survive_json(sample, mapping, kind):
    problem = problem_of(sample)
    edges = {
        3: uniform_edges(3),
        "quantile": quantile_edges(problem.scores, problem.weights, 4, integral=problem.integral),
        "fixed": fixed_edges([0, 0.3, 1]),
    }[kind]
    moments = BinMoments.of(problem, edges, mapping)
    back = BinMoments.from_dict(json.loads(json.dumps(moments.to_dict())))
    assert back.edges == moments.edges
    assert (back.edges.uniform, back.edges.exact) == (edges.uniform, edges.exact)
    assert (back.mapping, back.n_samples, back.integral) == (mapping, moments.n_samples, moments.integral)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(back, field), getattr(moments, field))
    assert (back + moments).n_samples == 2 * moments.n_samples


@quick
@given(samples)
def test_grid_counts_survive_json_and_keep_the_mean(sample):
    problem = problem_of(sample)
    grid = GridMoments.of(problem, cells=256)
    back = GridMoments.from_dict(json.loads(json.dumps(grid.to_dict())))
    for field in ("low", "high", "total", "squares", "n_samples", "integral", "effective_size"):
        assert getattr(back, field) == getattr(grid, field)
    np.testing.assert_array_equal(back.count, grid.count)
    np.testing.assert_array_equal(back.positive, grid.positive)
    p, o, w = sample
    w = np.ones(len(p)) if w is None else w
    for g in (grid, grid.on(64), grid.on(4)):
        assert g.count.sum() == pytest.approx(w.sum())
        assert g.positive.sum() == pytest.approx(w @ o)
        assert g.nodes @ g.count == pytest.approx(w @ p)
        assert g.nodes @ g.positive == pytest.approx(w @ (o * p))
        assert g.count.min() >= -1e-12
        assert (g.count - g.positive).min() >= -1e-12


@pytest.mark.parametrize("kind", [BinMoments, GridMoments])
def test_what_is_not_a_summary(kind):
    problem = Problem(np.array([0.2, 0.9]), np.array([0, 1]))
    good = (BinMoments.of(problem, uniform_edges(4)) if kind is BinMoments else GridMoments.of(problem)).to_dict()
    field = "weight" if kind is BinMoments else "count"
    for broken in (
        {},
        {k: v for k, v in good.items() if k != "n_samples"},
        good | {field: [1.0]},
        good | {field: "many"},
        good | {"n_samples": None},
    ):
        with pytest.raises(ValueError, match=f"not a serialised {kind.__name__}"):
            kind.from_dict(broken)


def test_sums_that_do_not_fit():
    problem = Problem(np.array([0.2, 0.9]), np.array([0, 1]))
    one = BinMoments.of(problem, uniform_edges(4))
    with pytest.raises(ValueError, match="BinMoments with different edges cannot be merged"):
        one + BinMoments.of(problem, uniform_edges(5))
    with pytest.raises(ValueError, match="BinMoments with different mapping cannot be merged: hard and linear"):
        one + BinMoments.of(problem, uniform_edges(4), "linear")
    moved = BinMoments.of(problem, fixed_edges([0, 0.2, 0.5, 0.75, 1]))
    with pytest.raises(ValueError, match=r"4 bins \[0.25 0.5  0.75\] and 4 bins \[0.2  0.5  0.75\]"):
        one + moved
    with pytest.raises(ValueError, match="mapping must be one of"):
        BinMoments.empty(uniform_edges(3), "soft")
    grid = GridMoments.of(problem)
    for other in (GridMoments.of(problem, 512), GridMoments.empty((0.5, 1.0))):
        with pytest.raises(ValueError, match=r"GridMoments with different (low|cells) cannot be merged"):
            grid + other
    assert (GridMoments.empty() + grid).n_samples == 2


@pytest.mark.parametrize(("n", "bins", "k"), [(59, 30, 1), (100, 15, 6), (50_007, 30, 1666), (20, 30, 0)])
def test_left_over_samples_as_published(n, bins, k):
    """floor(n / B) in every bin, and the others in the last: many rows, which are not sorted, among them."""
    p = np.random.default_rng(0).random(n)
    edges = quantile_edges(p, None, bins, leftovers="last")
    counts = BinMoments.of(Problem(p, np.zeros(n, dtype=int)), edges).weight
    assert counts.tolist() == ([k] * (bins - 1) + [n - k * (bins - 1)] if k else [n])
    s = np.sort(p)
    assert edges.values[1:-1] == pytest.approx([(s[j * k - 1] + s[j * k]) / 2 for j in range(1, bins)] if k else [])
    y = np.random.default_rng(1).integers(0, 2, n)
    again = cal.calibration_error(y, p, estimator=cal.Binned(edges.values))
    published = cal.Binned(bins, "quantile-as-published")
    assert cal.calibration_error(y, p, estimator=published) == pytest.approx(again, abs=1e-12)
