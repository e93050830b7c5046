"""`censoring_weights` against a Kaplan–Meier estimate by loops, numbers of scikit-survival, and its laws."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.exceptions import CensoringWarning

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.exceptions.CensoringWarning")

#: Weights and Brier scores of scikit-survival 0.28.0 for these rows: printed by `python -m benchmarks.censoring`.
TIME = [2, 3, 3, 3, 5, 6, 6, 8, 8, 9, 11, 12]
EVENT = [1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0]
RISK = np.linspace(0.05, 0.95, 12)
A, B, C = 1.125, 1.54285714286, 2.05714285714
THEIRS = {
    3: ([1, A, 0, A, A, A, A, A, A, A, A, A], 0.549075843664),
    7: ([1, A, 0, A, 0, B, 0, B, B, B, B, B], 0.636154208481),
    8: ([1, A, 0, A, 0, B, 0, 0, C, C, C, C], 0.634922508363),
}


@pytest.mark.parametrize("horizon", THEIRS)
def test_weights_and_brier_scores_are_scikit_survivals(horizon):
    weights, score = THEIRS[horizon]
    found = cal.censoring_weights(TIME, EVENT, horizon)
    np.testing.assert_allclose(found.sample_weight, weights, rtol=1e-11)
    ours = cal.brier_score(found.y_true, RISK, sample_weight=found.sample_weight, scale="half")
    assert ours * found.sample_weight.mean() == pytest.approx(score, rel=1e-11)


def uncensored(time, event, t, *, before=False):
    """Share not censored by t, row by row: events come before censorings at the same time."""
    share = 1.0
    for u in sorted(set(time)):
        if u > t or (before and u == t):
            break
        at_risk = sum(v > u or (v == u and not e) for v, e in zip(time, event, strict=True))
        gone = sum(v == u and not e for v, e in zip(time, event, strict=True))
        share *= 1 - gone / at_risk if gone else 1.0
    return share


def naive(time, event, horizon, reference, left_limit):
    """Labels and weights, row by row."""
    y, w = [], []
    for v, e in zip(time, event, strict=True):
        case = v <= horizon and bool(e)
        y.append(case)
        if case:
            w.append(1 / uncensored(*reference, v, before=left_limit))
        else:
            w.append(1 / uncensored(*reference, horizon) if v > horizon else 0.0)
    return y, w


FOLLOW_UP = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=25).filter(
    lambda rows: len({t for t, _ in rows}) > 1
)


@given(FOLLOW_UP, st.data(), st.booleans())
def test_they_are_those_of_loops(rows, data, left_limit):
    time, event = map(list, zip(*rows, strict=True))
    horizon = data.draw(st.integers(min(time), max(time) - 1)) + data.draw(st.sampled_from([0, 0.5]))
    other = data.draw(st.none() | FOLLOW_UP.map(lambda rows: tuple(map(list, zip(*rows, strict=True)))))
    if other is not None:
        other[0].append(max(time))
        other[1].append(False)
    found = cal.censoring_weights(time, event, horizon, reference=other, left_limit=left_limit)
    y, w = naive(time, event, horizon, other or (time, event), left_limit)
    assert found.y_true.tolist() == y
    np.testing.assert_allclose(found.sample_weight, w, rtol=1e-12)
    assert found.n_events == sum(y)
    assert found.n_censored == sum(not e and t <= horizon for t, e in rows) == (found.sample_weight == 0).sum()


@given(FOLLOW_UP, st.data())
def test_with_left_limits_the_weights_replace_the_censored_rows_exactly(rows, data):
    """They sum to n, and the weighted share of events is one minus the Kaplan–Meier estimate of survival."""
    time, event = map(np.array, zip(*rows, strict=True))
    horizon = data.draw(st.integers(min(time), max(time) - 1))
    y, w = cal.censoring_weights(time, event, horizon, left_limit=True)
    assert w.sum() == pytest.approx(len(rows), rel=1e-12)
    survival = 1.0
    for u in np.unique(time[time <= horizon]):
        survival *= 1 - (event & (time == u)).sum() / (time >= u).sum()
    assert (w * y).sum() / len(rows) == pytest.approx(1 - survival, abs=1e-12)


def test_without_ties_left_limits_change_nothing_and_without_censoring_all_weights_are_1():
    rng = np.random.default_rng(0)
    time, event = rng.random(50), rng.random(50) < 0.5
    one, two = (cal.censoring_weights(time, event, 0.6, left_limit=left) for left in (False, True))
    np.testing.assert_allclose(one.sample_weight, two.sample_weight, rtol=1e-12)
    assert one.sample_weight.max() > 1.1
    whole = cal.censoring_weights(time, np.ones(50), 0.6)
    assert set(whole.sample_weight) == {1.0}
    assert whole.effective_size == 50
    assert cal.as_predictions(whole.y_true, time, sample_weight=whole.sample_weight).effective_size == 50


def test_whole_weights_are_not_taken_for_repeats():
    """Half of the rows are censored at once: the others weigh 2, and are as many as they are."""
    found = cal.censoring_weights(np.repeat([1.0, 2.0, 3.0], [50, 25, 25]), np.repeat([0, 1, 0], [50, 25, 25]), 2)
    np.testing.assert_allclose(found.sample_weight, np.repeat([0.0, 2.0], 50), rtol=1e-12)
    p = cal.as_predictions(found.y_true, np.full(100, 0.5), sample_weight=found.sample_weight)
    assert p.effective_size == pytest.approx(50) == pytest.approx(found.effective_size)


def test_a_warning_says_what_ties_and_few_rows_without_the_event_do():
    rng = np.random.default_rng(2)
    died, left = rng.exponential(1, (2, 400))
    time, event = np.minimum(died, left), died <= left
    coarse, late = np.ceil(4 * time) / 4, np.ceil(4 * left) / 4
    tied = np.ceil(4 * died) / 4 <= late
    with pytest.warns(CensoringWarning, match=r"sum of all weights by \d+ %: pass left_limit=True") as said:
        found = cal.censoring_weights(coarse, tied, 0.5)
    assert said[0].filename == __file__
    assert found.warnings == tuple(str(one.message) for one in said)
    assert found.warnings[0] in " ".join(str(found).split())
    assert not cal.censoring_weights(coarse, tied, 0.5, left_limit=True).warnings
    assert not cal.censoring_weights(time, event, 0.3).warnings
    with pytest.warns(CensoringWarning, match=r"\d\.\d times the one that intervals assume, so intervals are too"):
        cal.censoring_weights(time, event, 2.0)


def test_rows_without_weight_change_nothing():
    rng = np.random.default_rng(1)
    risk = rng.random(300)
    died, left = rng.weibull(1.5, 300) / (risk + 0.1), rng.exponential(3, 300)
    y, w = cal.censoring_weights(np.minimum(died, left), died <= left, 1.0)
    known = w > 0
    assert 20 < (~known).sum() < 150
    whole, part = (risk, w), (risk[known], w[known])
    for function, numbers in {
        cal.estimate: lambda found: [found.value, *found.interval],
        cal.decompose: lambda found: [found.calibration, found.discrimination],
        cal.decision_curve: lambda found: found.net_benefit,
        cal.calibration_test: lambda found: [found.statistic, found.pvalue],
    }.items():
        one, two = (numbers(function(t, p, sample_weight=v)) for t, (p, v) in ((y, whole), (y[known], part)))
        np.testing.assert_allclose(one, two, rtol=1e-9, err_msg=function.__name__)


def test_pandas_columns_and_float32_times():
    found = cal.censoring_weights(pd.Series(TIME), pd.Series(EVENT).astype(bool), 7)
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["y_true"].tolist() == found.y_true.tolist()
    assert cal.censoring_weights(np.array([0.1, 0.3, 0.5], np.float32), [1, 1, 0], 0.3).n_events == 2
    y_true, sample_weight = found
    assert y_true is found.y_true
    assert sample_weight is found.sample_weight


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"horizon": 12}, ValueError, "horizon must be below the last follow-up, 12 in time"),
        ({"horizon": 1.5}, ValueError, "horizon must be at least the first time, 2; got 1.5"),
        ({"horizon": float("nan")}, ValueError, "horizon must be a finite number"),
        ({"reference": ([1, 7], [0, 0])}, ValueError, r"below the last follow-up, 7 in reference\[0\]"),
        ({"reference": (TIME, EVENT, 3)}, TypeError, r"reference must be a pair \(time, event\)"),
        ({"reference": (TIME, EVENT[1:])}, ValueError, r"reference\[1\] must have one value per row \(12\); got 11"),
        ({"event": TIME}, ValueError, "event must be 0 or False .*; row 0 is 2.*: are times and events swapped"),
        ({"event": EVENT[1:]}, ValueError, r"event must have one value per row \(12\); got 11"),
        ({"event": ["dead"] * 12}, TypeError, "event must hold real numbers"),
        ({"time": [*TIME[1:], -1]}, ValueError, "time must not be negative; row 11 is -1"),
        ({"time": [*TIME[1:], np.nan]}, ValueError, "time must be finite; row 11 is nan"),
        ({"time": [3] * 12}, ValueError, "horizon must be below the last follow-up, 3"),
        ({"left_limit": 1}, TypeError, "left_limit must be True or False"),
        ({"time": pd.Series(TIME, index=range(12)), "event": pd.Series(EVENT, index=range(11, -1, -1))}, ValueError,
         "time and event have the same index in different orders"),
    ],
)  # fmt: skip
def test_what_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        cal.censoring_weights(**({"time": TIME, "event": EVENT, "horizon": 7} | given))
