"""Laws of the public functions over arbitrary inputs."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import calibrant as cal
from calibrant import Binned
from calibrant.estimators import Density, ResidualKernel

quick = settings(deadline=None, derandomize=True, max_examples=40)
few = settings(deadline=None, derandomize=True, max_examples=15)
PARTS = [
    Binned(),
    Binned("sqrt", "quantile"),
    Binned(8, mapping="linear"),
    Binned(4, "quantile", "linear-as-printed"),
    Density(),
    Density(0.1, "epanechnikov"),
    ResidualKernel(),
    ResidualKernel(space="score"),
]
parts = st.sampled_from(PARTS)
dtypes = st.sampled_from([np.float16, np.float32, np.float64, bool, np.int8, ">f4"])
labels = st.sampled_from([np.int8, np.uint16, np.int64, bool, np.float64])


@st.composite
def binary(draw, smallest=1):
    n = draw(st.integers(smallest, 60))
    coarse = draw(st.booleans())  # many ties, and atoms at both ends
    values = st.integers(0, 5).map(lambda v: v / 5) if coarse else st.floats(0, 1)
    p = np.array(draw(st.lists(values, min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    return y, p


@st.composite
def multiclass(draw):
    n, k = draw(st.integers(1, 40)), draw(st.integers(2, 6))
    raw = draw(hnp.arrays(np.float64, (n, k), elements=st.floats(0, 1).map(lambda v: v + 1e-3)))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, k - 1)))
    return y, raw / raw.sum(axis=1, keepdims=True)


@quick
@given(binary(), parts, dtypes, labels)
def test_dtypes(sample, part, dtype, label_dtype):
    """Any dtype of scores and labels is read as the numbers that it holds."""
    y, p = sample
    p = p.astype(dtype)
    got = cal.calibration_error(y.astype(label_dtype), p, estimator=part)
    as_float = p.astype(np.float64)
    assert 0 <= got <= 1
    if isinstance(part, Binned) and part.mapping == "hard":
        low, high = (cal.calibration_error(y, as_float, estimator=part, norm=q) for q in (1, float("inf")))
        assert np.dtype(dtype).kind == "f" or got == pytest.approx(low)
        assert low <= high + 1e-12
    else:
        assert got == pytest.approx(cal.calibration_error(y, as_float, estimator=part), abs=1e-4)


@quick
@given(binary(), parts, st.data())
def test_weights_are_repeats(sample, part, data):
    y, p = sample
    w = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    w[0] += 1
    weighted = cal.calibration_error(y, p, estimator=part, sample_weight=w)
    repeated = cal.calibration_error(np.repeat(y, w), np.repeat(p, w), estimator=part)
    assert weighted == pytest.approx(repeated, abs=1e-9)


@quick
@given(binary())
def test_norms_are_ordered(sample):
    y, p = sample
    for part in (Binned(), Binned(5, "quantile"), Density()):
        errors = [cal.calibration_error(y, p, estimator=part, norm=q) for q in (1, 1.5, 2, 4)]
        assert all(a <= b + 1e-12 for a, b in pairwise(errors))
        if isinstance(part, Binned):
            assert errors[-1] <= cal.calibration_error(y, p, estimator=part, norm=float("inf")) + 1e-12


@quick
@given(binary(), st.integers(1, 30))
def test_finer_nested_bins_never_read_less(sample, n_bins):
    """The triangle inequality: cancelling within a bin can only lose."""
    y, p = sample
    coarse = cal.calibration_error(y, p, estimator=Binned(n_bins))
    fine = cal.calibration_error(y, p, estimator=Binned(3 * n_bins))
    assert coarse <= fine + 1e-12
    assert abs(y.mean() - p.mean()) <= coarse + 1e-12
    assert fine <= np.abs(y - p).mean() + 1e-12


@quick
@given(multiclass())
def test_notions_agree_with_their_parts(sample):
    y, P = sample
    k = P.shape[1]
    part = Binned(7)
    options = {"labels": range(k), "estimator": part}
    each = [cal.calibration_error(y, P, notion=cal.notions.ClassSpecific(c), **options) for c in range(k)]
    assert cal.calibration_error(y, P, notion="classwise", **options) == pytest.approx(np.mean(each))
    worst = cal.calibration_error(y, P, notion=cal.notions.Classwise("max"), **options)
    assert worst == pytest.approx(max(each))
    confidence = cal.calibration_error(y, P, notion="confidence", **options)
    assert confidence <= cal.calibration_error(y, P, notion="top-label", **options) + 1e-12
    top = P.argmax(axis=1)
    assert confidence == pytest.approx(cal.calibration_error(top == y, P.max(axis=1), estimator=part), abs=1e-9)
    # The canonical error of p = 1 bounds the sum over classes of any coarser look at the same cells.
    bias = sum(abs((y == c).mean() - P[:, c].mean()) for c in range(k))
    canonical = cal.calibration_error(
        y, P, notion="canonical", labels=range(k), estimator=cal.estimators.SimplexBinned()
    )
    assert bias <= canonical + 1e-9


@few
@given(binary(), parts, st.sampled_from([0.5, 0.9, 0.99]))
def test_intervals(sample, part, level):
    y, p = sample
    got = cal.estimate(y, p, estimator=part, level=level, n_resamples=30, random_state=1)
    assert got.value == pytest.approx(cal.calibration_error(y, p, estimator=part), abs=1e-12)
    assert 0 <= got.interval.low <= got.corrected <= got.interval.high <= 1
    assert float(got) == got.value
    again = cal.estimate(y, p, estimator=part, level=level, n_resamples=30, random_state=np.random.default_rng(1))
    assert again.interval == got.interval
    text = json.dumps(got.to_dict(), allow_nan=False)
    assert json.loads(text)["interval"] == [got.interval.low, got.interval.high]
    assert f"{got.value:.4f}" in str(got)


@few
@given(
    binary(), st.sampled_from([Binned(6), Binned(4, "quantile"), Density(), ResidualKernel(space="score")]), st.data()
)
def test_curve_at(sample, part, data):
    """At its own scores a curve gives its own values; elsewhere something in [0, 1] within its band, or NaN."""
    y, p = sample
    curve = cal.reliability_curve(y, p, estimator=part, level=0.8, n_resamples=30, random_state=0)
    known = ~np.isnan(curve.observed)
    assert known.any()
    own = curve.at(curve.scores[known])
    np.testing.assert_allclose(own.observed, curve.observed[known], atol=1e-9)
    np.testing.assert_allclose(own.lower, curve.lower[known], atol=1e-9)
    np.testing.assert_allclose(own.upper, curve.upper[known], atol=1e-9)
    x = np.array(data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=8)))
    point = curve.at(x)
    inside = ~np.isnan(point.observed)
    for values in point:
        assert values.shape == x.shape
        assert ((values[inside] >= 0) & (values[inside] <= 1)).all()
    assert (point.lower[inside] <= point.upper[inside] + 1e-12).all()
    # A score that was seen has a value.
    assert not np.isnan(curve.at(p).observed).any()
    assert json.dumps(curve.to_dict(), allow_nan=False)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
def test_curve_at_judges_its_scores(bad):
    curve = cal.reliability_curve([0, 1], [0.2, 0.8])
    with pytest.raises(ValueError, match=r"scores must lie in \[0, 1\]; got "):
        curve.at([0.5, bad])


def test_curve_at_an_edge():
    """0.3 is read in the bin that ends there, as it was counted."""
    p = np.array([0.3, 1 - 0.7, 0.35, 0.95, 1 - 0.95])
    curve = cal.reliability_curve([1, 1, 0, 0, 0], p, estimator=Binned(20))
    assert curve.at([0.3, 1 - 0.7, 0.3 + 1e-9]).observed.tolist() == [1, 1, 0]
    assert curve.at([0.05, 1 - 0.95]).observed.tolist() == [0, 0]
    assert np.isnan(curve.at(0.5).observed[0])


@pytest.mark.parametrize("seed", [66, 156, 308, 685, 755, *range(20)])
def test_pieces_merge_to_the_whole_where_ranks_fall_between_cells(seed):
    """Groups of equal mass have ranks that are cell edges: sums in another order put half a score elsewhere (3e-5)."""
    rng = np.random.default_rng(seed)
    groups, rows = int(rng.choice([3, 5, 6, 10, 12, 20, 24, 50, 100])), int(rng.integers(1, 80))
    p = rng.permutation(np.repeat(np.sort(rng.random(groups)), rows))
    y = (rng.random(p.size) < p).astype(int)
    w = np.full(p.size, rng.integers(1, 7) * 1000 + rng.integers(0, 2))
    cut = int(rng.integers(1, p.size))
    one, two = (cal.Accumulator().update(y[s], p[s], sample_weight=w[s]) for s in (slice(cut), slice(cut, None)))
    whole = cal.Accumulator().update(y, p, sample_weight=w)
    assert (one + two).estimate(n_resamples=2).value == pytest.approx(whole.estimate(n_resamples=2).value, abs=1e-12)
