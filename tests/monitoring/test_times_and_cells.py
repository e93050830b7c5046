"""Times of rows, of which days are kept once each, and sums of very many rows in cells of scores and blocks of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.comparison.subgroups import cells
from calibrant.comparison.subgroups.cells import SubgroupCells
from calibrant.data.printing import time_texts
from calibrant.data.problem import Problem
from calibrant.monitoring import courses
from calibrant.monitoring.changes import cut
from calibrant.monitoring.courses import Fine
from calibrant.monitoring.periods import Periods, Times, compact


@given(st.lists(st.integers(-40, 40), min_size=1, max_size=400), st.sampled_from([1, 50, 10**7]), st.booleans())
def test_compact_numbers_are_those_of_unique(values, factor, in_order):
    numbers = np.array(sorted(values) if in_order else values) * factor
    found, places = compact(numbers)
    np.testing.assert_array_equal(found, np.unique(numbers))
    np.testing.assert_array_equal(found[places], numbers)


@given(
    st.lists(st.integers(0, 900), min_size=1, max_size=300),
    st.sampled_from([1, 40]),  # rows of a day beside each other, which are kept as runs
    st.randoms(use_true_random=False),
)
def test_days_are_the_same_as_days_and_as_datetimes(values, run, random):
    days = np.datetime64("2025-03-01") + np.repeat(np.array(values, dtype="m8[D]"), run)
    some = np.array(random.sample(range(days.size), max(1, days.size // 2)))
    one, other = Times.read(days, days.size), Times.read(days.astype("M8[ns]"), days.size)
    each = np.array([int(d.astype("M8[us]").astype(int)) for d in days])
    for times in (one, other):
        assert run == 1 or times.runs is not None
        assert set(times.some(7).tolist()) <= set(each.tolist())
        assert times.some(days.size).tolist() == each.tolist()
        assert times.size == days.size
        np.testing.assert_array_equal(times.values, each)
        np.testing.assert_array_equal(np.unique(each), times.distinct)
        part = times.where(some)
        np.testing.assert_array_equal(part.values, each[some])
        np.testing.assert_array_equal(part.distinct, np.unique(each[some]))
    months = Periods.of(one, "month", lambda: 1)
    assert [months.names[code] for code in months.codes] == [str(d.astype("M8[M]")) for d in days]
    part = Periods.of(one.where(some), "month", lambda: 1)
    assert [part.names[code] for code in part.codes] == [str(d.astype("M8[M]")) for d in days[some]]


def test_no_rows_and_times_within_days_are_kept_as_they_are():
    assert Times.read(np.empty(0, "M8[D]"), 0).size == 0
    hours = np.datetime64("2025-03-01T01") + np.arange(5).astype("m8[h]")
    times = Times.read(hours, 5)
    assert times.places is None
    assert times.where(np.array([3, 1])).values.tolist() == times.values[[3, 1]].tolist()


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("weights", ["none", "repeats", "weights"])
@pytest.mark.parametrize("kind", [np.int64, bool, np.float64])
def test_sums_in_cells_and_blocks_are_those_of_rows(monkeypatch, in_order, weights, kind):
    monkeypatch.setattr(courses, "_MANY_ROWS", 700)
    monkeypatch.setattr(courses, "_TILE", 64)
    rng = np.random.default_rng(5)
    n = 2_000
    when = np.sort(rng.integers(0, 300, n)) if in_order else rng.integers(0, 300, n)
    s, o = rng.random(n), rng.random(n) if kind is np.float64 else rng.integers(0, 2, n).astype(kind)
    w = {"none": None, "repeats": rng.integers(1, 4, n).astype(float), "weights": rng.random(n)}[weights]
    problem = Problem(s, o, w, weights != "weights")
    times = Times.read(when, n)
    blocks = cut(times, 20)
    fine = Fine.of(problem, times, blocks)
    score, outcome, count, squares = fine.rows
    assert len(score) < n
    weight = np.ones(n) if w is None else w
    assert (squares is None) == (weights != "weights")
    for block in range(blocks[1][0].size):
        mine, cells = blocks[0] == block, fine.code == block
        assert count[cells].sum() == pytest.approx(weight[mine].sum())
        assert (count * score)[cells].sum() == pytest.approx((weight * s)[mine].sum())
        assert (count * outcome)[cells].sum() == pytest.approx((weight * o)[mine].sum())
        if squares is not None:
            assert squares[cells].sum() == pytest.approx((weight**2)[mine].sum())
    # Of one cell all scores are near each other.
    logit = np.log(score / (1 - score))
    assert (np.diff(np.sort(logit[fine.code == 0])) > 0).all()


@pytest.mark.parametrize("together", [1, 3, 64])
@pytest.mark.parametrize("weights", ["none", "weights"])
def test_cells_of_many_subgroups_are_those_of_each(monkeypatch, together, weights):
    monkeypatch.setattr(cells, "_TOGETHER", together)
    rng = np.random.default_rng(8)
    sizes = np.array([300, 1, 120, 40])
    n = int(sizes.sum())
    s, o = np.sort(rng.random(n)), rng.integers(0, 2, n)
    w = None if weights == "none" else rng.random(n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    problem = Problem(s, o, w, w is None, starts=starts)
    fine = SubgroupCells._together([SubgroupCells._of_part(part) for part in problem.tiles(200)])
    coarse = fine.coarser(0, 4)
    assert coarse.scores.size < fine.scores.size
    weight = np.ones(n) if w is None else w
    for found in (fine, coarse):
        assert found.n_subgroups == sizes.size
        for name, each in {
            "weights": weight, "times": weight if w is None else weight**2, "scores": s * weight, "outcomes": o * weight
        }.items():  # fmt: skip
            factor = 1.0 if name in ("weights", "times") else found.weights
            np.testing.assert_allclose(
                np.add.reduceat(getattr(found, name) * factor, found.starts[:-1]), np.add.reduceat(each, starts[:-1])
            )
        for start, stop in zip(found.starts, found.starts[1:], strict=False):
            assert (np.diff(found.scores[start:stop]) > 0).all()
    squares = np.add.reduceat(weight * (o - s) ** 2, starts[:-1]) / np.add.reduceat(weight, starts[:-1])
    np.testing.assert_allclose(fine.brier(), squares, atol=1e-4)


def test_offsets_far_apart_are_of_two_zones():
    times = ["2024-01-02T02:00:00+09:00"] * 20 + ["2024-01-01T22:00:00-05:00"] * 20
    with pytest.raises(ValueError, match="row 20 is 5 hours behind UTC, row 0 9 hours ahead of UTC"):
        cal.calibration_over_time([0, 1] * 20, [0.5] * 40, times, every="day")
    summer = ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]
    assert np.diff(Times.read(summer, 2).instants) == 3_600_000_000


@pytest.mark.parametrize(
    ("times", "texts"),
    [
        ([0.3], ["0.3"]),
        ([0.4, 0.6], ["0.4", "0.6"]),
        ([0.0, 1e300], ["0.0", "1e+300"]),
        ([-0.001, 13.13, 76.6], ["0", "13", "77"]),
    ],
)
def test_numbers_as_times_stay_near_themselves(times, texts):
    assert time_texts(times) == texts
