"""Rows in groups: design effects, sums of real outcomes, intervals and refusals."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

import calibrant as cal
from calibrant.data.dependence import design_effects, group_codes
from calibrant.data.problem import Problem
from calibrant.estimators import CellEstimator
from calibrant.sums.bins import BinMoments
from calibrant.sums.edges import uniform_edges
from calibrant.sums.grid import GridMoments

from ..contract.table import ROWS
from ..grouped import clustered, several

SEEDS = st.integers(0, 2**31)
SCALAR = [row for row in ROWS if row.serves("class-specific")]


# Design effects


def few(mass):
    """Student's quantile to the normal one, squared, for Kish's number of groups."""
    units = sum(mass) ** 2 / sum(m * m for m in mass)
    return (t.ppf(0.975, max(units - 1, 1)) / norm.ppf(0.975)) ** 2


def naive_effect(scores, outcomes, weights, groups, integral, domain):
    """The formula of the docstring, row by row."""
    n = len(scores)
    cells = [min(int(min(max((s - domain[0]) / (domain[1] - domain[0]), 0), 1) * 1024), 1023) for s in scores]
    ranks = [(sum(c < own for c in cells) + sum(c == own for c in cells) / 2) / n for own in cells]
    present = {g for g, w in zip(groups, weights, strict=True) if w > 0}
    rows = max(sum(weights) if integral else sum(w > 0 for w in weights), 1)
    if len(present) < 2:
        return float(rows)
    above = below = 0.0
    for k, part in ((0, 1), (1, 1 / 2), (2, 1 / 4)):
        values = [np.cos(k * np.pi * u) * (o - s) for u, o, s in zip(ranks, outcomes, scores, strict=True)]
        mean = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
        sums = dict.fromkeys(present, 0.0)
        for g, w, v in zip(groups, weights, values, strict=True):
            if w > 0:
                sums[g] += w * (v - mean)
            below += part * (w if integral else w * w) * (v - mean) ** 2 * (rows / (rows - 1) if rows > 1 else 1)
        above += part * len(present) / (len(present) - 1) * sum(x * x for x in sums.values())
    if not below > 0:
        return min(max(few([1] * 1), 1.0), float(rows))
    mass = [sum(w for g, w in zip(groups, weights, strict=True) if g == one) for one in present]
    return float(np.clip(above / below * few(mass), 1, rows))


@settings(max_examples=120, deadline=None)
@given(SEEDS, st.lists(st.integers(2, 25), min_size=1, max_size=4), st.integers(1, 6), st.sampled_from("nwr"))
def test_design_effects_are_those_of_the_formula(seed, sizes, n_groups, kind):
    rng = np.random.default_rng(seed)
    domain = (0.0, 1.0) if rng.random() < 0.5 else (0.9, 1.0)
    n = sum(sizes)
    scores = domain[0] + (domain[1] - domain[0]) * rng.random(n)
    if rng.random() < 0.5:
        scores = np.round(scores, 2).clip(*domain)  # equal scores
    outcomes, groups = rng.integers(0, 2, n), rng.integers(0, n_groups, n)
    if rng.random() < 0.3:
        groups[: sizes[0]] = groups[0]  # a problem of one group
    weights = {"n": None, "w": rng.integers(0, 4, n).astype(float), "r": rng.random(n)}[kind]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    if weights is not None:
        weights[starts[:-1]] += 1.0
    found = design_effects(
        Problem(scores, outcomes, weights, kind != "r", domain=domain, starts=starts), group_codes(groups)
    )
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        w = np.ones(b - a) if weights is None else weights[a:b]
        wanted = naive_effect(scores[a:b], outcomes[a:b], w, groups[a:b], kind != "r", domain)
        assert found[i] == pytest.approx(wanted, rel=1e-9)


def test_groups_may_be_called_anything_and_come_in_any_order():
    group, s, y = clustered()
    first = cal.estimate(y, s, groups=group)
    names = np.array([f"hospital {(7 * g) % 30}" for g in range(30)])[group]
    order = np.random.default_rng(1).permutation(len(s))
    for other in (names, 1e300 * (group + 1.0), group - 10**12, pd.Categorical(names), list(names)):
        assert cal.estimate(y, s, groups=other).interval == first.interval
    found = cal.estimate(y[order], s[order], groups=names[order])
    np.testing.assert_allclose([found.value, *found.interval], [first.value, *first.interval], rtol=1e-9)


@pytest.mark.parametrize("notion", [None, "confidence", "classwise", "top-label", "canonical"])
def test_groups_of_one_are_no_groups(notion):
    _, p, y = several() if notion else clustered()
    options = {"notion": notion} if notion else {}
    plain, found = (
        cal.estimate(y, p, groups=g, **options) for g in (None, np.random.default_rng(0).permutation(len(y)))
    )
    assert (found.value, found.interval) == (plain.value, plain.interval)
    assert cal.as_predictions(y, p, groups=np.arange(len(y))).groups is None
    w = np.random.default_rng(0).random(len(y))  # with weights they stay, with a design effect of Student's law alone
    asked = cal.notions.Confidence() if notion else cal.notions.ClassSpecific(1)
    design = asked.reduce(cal.as_predictions(y, p, sample_weight=w, groups=np.arange(len(y)))).design
    np.testing.assert_allclose(design, few(w), rtol=1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(2, 9))
def test_repeats_of_every_row_have_their_number_as_effect(seed, m):
    rng = np.random.default_rng(seed)
    s = rng.random(60)
    o = rng.random(60) < s
    found = design_effects(Problem(np.repeat(s, m), np.repeat(o, m)), np.repeat(np.arange(60), m))[0]
    # n / (n - 1) of the rows differs from that of the groups: that, and Student's law
    assert found == pytest.approx(m * few([m] * 60) * (60 / 59) / (60 * m / (60 * m - 1)), rel=1e-9)


def test_what_many_problems_count_is_what_each_does():
    group, p, y = several(k=4)
    together = cal.notions.Classwise().reduce(cal.as_predictions(y, p, groups=group)).design
    for k in range(4):
        one = cal.notions.ClassSpecific(k).reduce(cal.as_predictions(y, p, groups=group)).design
        np.testing.assert_allclose(together[k], one, rtol=1e-12)
    tops = cal.notions.TopLabel().reduce(cal.as_predictions(y, p, groups=group))
    for i, k in enumerate(np.unique(p.argmax(axis=1))):
        rows = p.argmax(axis=1) == k
        alone = design_effects(Problem(p[rows, k], y[rows] == k, domain=tops.domain), group_codes(group[rows]))
        np.testing.assert_allclose(tops.design[i], alone[0], rtol=1e-9)
    every = cal.notions.Canonical().reduce(cal.as_predictions(y, p, groups=group)).design
    assert every == pytest.approx(np.mean(together))


# Numbers and intervals


@pytest.mark.parametrize("row", SCALAR, ids=str)
def test_numbers_with_groups(row):
    group, s, y = clustered(20, 6)
    plain = cal.calibration_error(y, s, estimator=row.estimator)
    value = cal.calibration_error(y, s, groups=group, estimator=row.estimator)
    assert np.isfinite(value)
    if isinstance(row.estimator, cal.Binned) and not (row.estimator.debias or isinstance(row.estimator.n_bins, str)):
        assert value == pytest.approx(plain, abs=1e-12)  # frequencies are what they are
    if isinstance(row.estimator, CellEstimator):
        found = cal.estimate(y, s, groups=group, estimator=row.estimator, n_resamples=20)
        assert found.value == pytest.approx(value, abs=1e-12)
        assert np.isfinite(found.interval).all()
    else:
        with pytest.raises(TypeError, match=r"with groups.*single rows.*use.*EmpiricalBayes\(\)"):
            cal.estimate(y, s, groups=group, estimator=row.estimator, n_resamples=20)


@pytest.mark.parametrize(
    "estimator",
    [cal.estimators.SimplexBinned(), cal.estimators.SimplexBinned("cbrt"), cal.estimators.SimplexBinned(8, "row")],
)
def test_canonical_intervals_widen(estimator):
    group, q, y = several(100, 8)
    p = q**2 / (q**2).sum(axis=1, keepdims=True)
    about = {"notion": "canonical", "estimator": estimator, "random_state": 0}
    plain, found = cal.estimate(y, p, **about), cal.estimate(y, p, groups=group, **about)
    assert found.value == pytest.approx(
        cal.calibration_error(y, p, groups=group, notion="canonical", estimator=estimator)
    )
    assert np.isfinite(found.interval).all()
    assert found.interval.high - found.interval.low > plain.interval.high - plain.interval.low


@pytest.mark.parametrize("estimator", ["auto", cal.Binned(10), cal.Binned(10, "quantile"), cal.estimators.Density(0.1)])
def test_repeated_rows_tell_what_the_rows_once_do(estimator):
    rng = np.random.default_rng(0)
    s = rng.random(300)
    y = (rng.random(300) < s**1.5).astype(int)
    once = cal.estimate(y, s, estimator=estimator)
    for m in (2, 6):
        found = cal.estimate(
            *(np.repeat(v, m) for v in (y, s)), groups=np.repeat(np.arange(300), m), estimator=estimator
        )
        apart = cal.estimate(*(np.repeat(v, m) for v in (y, s)), estimator=estimator)
        width, wanted, narrow = (e.interval.high - e.interval.low for e in (found, once, apart))
        assert width == pytest.approx(wanted, rel=0.15)
        assert narrow < 0.85 * wanted
        assert found.value == pytest.approx(once.value, abs=0.015)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DependenceWarning")
def test_a_report_is_careful_of_events():
    rng = np.random.default_rng(3)
    path = rng.normal(size=(40, 61)).cumsum(axis=1)
    s, y = norm.cdf(path[:, :-1] / np.sqrt(np.arange(60, 0, -1))).ravel(), np.repeat(path[:, -1] > 0, 60).astype(int)
    events = np.repeat(np.arange(40), 60)
    assert cal.report(y, s).evidence.status == "miscalibrated"
    assert cal.report(y, s, groups=events).evidence.status != "miscalibrated"


def test_bands_widen():
    group, s, y = clustered(20, 30)
    for method in ("binned", "smooth"):
        plain, found = (cal.reliability_curve(y, s, groups=g, estimator=method, level=0.95) for g in (None, group))
        narrow, wide = (np.nanmean(c.upper - c.lower) for c in (plain, found))
        assert wide > 1.2 * narrow


# Sums of outcomes that are any numbers


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.lists(st.integers(1, 40), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_hard_sums_of_real_outcomes(seed, sizes, weighted, alone):
    rng = np.random.default_rng(seed)
    sizes = sizes[:1] if alone else sizes
    n, edges = sum(sizes), uniform_edges(7)
    scores, outcomes = rng.random(n), rng.normal(size=n)
    weights = rng.random(n) if weighted else None
    starts = np.concatenate([[0], np.cumsum(sizes)])
    found = BinMoments.of(Problem(scores, outcomes, weights, not weighted, starts=None if alone else starts), edges)
    w = np.ones(n) if weights is None else weights
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        wanted = np.zeros((4, 7))
        for j in range(a, b):
            cell = max(int(np.ceil(scores[j] * 7)) - 1, 0)
            wanted[:, cell] += w[j], w[j] * scores[j], w[j] * outcomes[j], w[j] ** 2
        for name, row in zip(("weight", "score", "outcome", "square"), wanted, strict=True):
            np.testing.assert_allclose(getattr(found, name).reshape(len(sizes), 7)[i], row, atol=1e-12, err_msg=name)


def test_hard_sums_of_many_real_outcomes_go_in_tiles():
    rng = np.random.default_rng(0)
    s, o = rng.random((2, 300_000))
    found = BinMoments.of(Problem(s, o), uniform_edges(4))
    np.testing.assert_allclose(found.outcome, np.bincount((s * 4).astype(int), o))


@pytest.mark.parametrize("sizes", [(5,), (3, 30, 1), (900, 20), (1500,), (1500, 40, 2000), (1023, 1024, 1025)])
@pytest.mark.parametrize("weighted", [False, True])
def test_grid_counts_of_real_outcomes(sizes, weighted):
    rng = np.random.default_rng(len(sizes))
    n = sum(sizes)
    scores, outcomes = rng.random(n), rng.normal(size=n)
    weights = rng.random(n) if weighted else None
    starts = np.concatenate([[0], np.cumsum(sizes)])
    about = {"starts": None if len(sizes) == 1 else starts}
    grid = GridMoments.of(Problem(scores, outcomes, weights, not weighted, **about))
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        one = GridMoments.of(
            Problem(scores[a:b], outcomes[a:b], None if weights is None else weights[a:b], not weighted)
        )
        w = np.ones(b - a) if weights is None else weights[a:b]
        cells = len(one.count) - 1
        count, positive = np.zeros((2, cells + 1))
        for s, o, v in zip(scores[a:b], outcomes[a:b], w, strict=True):
            left = int(s * cells)
            for node, part in ((left, 1 - (s * cells - left)), (left + 1, s * cells - left)):
                if node <= cells:
                    count[node] += v * part
                    positive[node] += v * o * part
        np.testing.assert_allclose(one.count, count, atol=1e-9)
        np.testing.assert_allclose(one.positive, positive, atol=1e-9)
        if len(sizes) > 1:
            np.testing.assert_allclose(grid[i].count, count, atol=1e-9)
            np.testing.assert_allclose(grid[i].positive, positive, atol=1e-9)


# What groups may be


def test_groups_that_are_none():
    group, s, y = clustered()
    for wrong, kind, said in (
        (group[:-1], ValueError, r"groups must have one value per row \(240\); got shape \(239,\)"),
        (np.column_stack([group, group]), ValueError, r"got shape \(240, 2\)"),
        (5, (ValueError, TypeError), "groups"),
        (np.where(group == 3, np.nan, group), ValueError, "groups must have no missing values; row 24 is NaN"),
        (np.array([None, *group[1:]], dtype=object), ValueError, "groups must have no missing values; row 0 is None"),
        (pd.Series([pd.NA, *group[1:]], dtype="Int64"), ValueError, "groups"),
        (pd.Series([None, *(f"a{g}" for g in group[1:])]), ValueError, "groups must.* missing.*row 0"),
        (
            pd.to_datetime(pd.Series([None, *(["2020-01-01", "2020-01-02"] * 120)[1:]])),
            ValueError,
            "groups must.* missing.*row 0",
        ),
        (np.zeros(240), ValueError, "at least 2 groups.*all rows belong to one"),
        ([[1], [2]] * 119 + [[1], [1, 2]], (ValueError, TypeError), "groups"),
        ([{"a": 1}] * 240, TypeError, "groups must hold hashable"),
    ):
        with pytest.raises(kind, match=said):
            cal.calibration_error(y, s, groups=wrong)
    with pytest.raises(ValueError, match="at least 2 groups with weight"):
        cal.calibration_error(y, s, groups=group, sample_weight=(group == 1).astype(float))


def test_groups_of_another_order_are_refused():
    group, s, y = clustered()
    truth, named = pd.Series(y, index=range(100, 340)), pd.Series(group, index=range(100, 340))
    assert cal.as_predictions(truth, s, groups=named).n_groups == 30
    with pytest.raises(ValueError, match="y_true and groups have the same index in different orders"):
        cal.as_predictions(truth, s, groups=named.sample(frac=1, random_state=0))


def test_predictions_have_their_groups():
    group, s, y = clustered()
    p = cal.as_predictions(y, s, groups=group)
    assert p.groups.tolist() == group.tolist()
    assert p.n_groups == 30
    assert cal.estimate(p).interval == cal.estimate(y, s, groups=group).interval
    assert p.subset(slice(0, 20)).groups.tolist() == group[:20].tolist()
    with pytest.raises(TypeError, match="groups"):
        cal.estimate(p, groups=group)
    mixed = np.array([0, "a", (1, 2), *group[3:]], dtype=object)
    mixed[2] = (1, 2)
    assert cal.as_predictions(y, s, groups=mixed).groups.tolist()[:3] == [0, 1, 2]


def test_macro_averages_are_means_of_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), rng.integers(1, 30, 12))
    s = rng.random(group.size)
    y = (rng.random(group.size) < s).astype(int)
    w = rng.random(group.size)
    for weights in (None, w):
        about = {"groups": group, "group_average": "macro", "sample_weight": weights}
        own = np.ones_like(w) if weights is None else weights
        brier = np.mean([np.average((y - s)[group == g] ** 2, weights=own[group == g]) for g in range(12)])
        assert cal.scores.brier_score(y, s, **about) == pytest.approx(2 * brier)
        found = 0.0
        for j in range(5):
            cell = np.ceil(s * 5) == j + 1
            gaps = [((own * (y - s))[cell & (group == g)]).sum() / own[group == g].sum() for g in range(12)]
            found += abs(np.mean(gaps))
        assert cal.calibration_error(y, s, estimator=cal.Binned(5), **about) == pytest.approx(found)
        micro = cal.scores.brier_score(y, s, groups=group, sample_weight=weights)
        assert micro == pytest.approx(2 * np.average((y - s) ** 2, weights=own))
        assert micro != pytest.approx(2 * brier)
    with pytest.raises(ValueError, match="group_average='macro' needs groups"):
        cal.calibration_error(y, s, group_average="macro")
    with pytest.raises(ValueError, match=r"group_average.*micro.*macro"):
        cal.calibration_error(y, s, groups=group, group_average="mean")


# Functions that take rows as independent

UNGROUPED = {
    "calibration_belt": lambda *a, **o: cal.significance.calibration_belt(*a, **o),
    "risk_coverage": lambda *a, **o: cal.decisions.risk_coverage(*a, **o),
    "confidence_direction": lambda *a, **o: cal.significance.confidence_direction(*a, **o),
    "murphy_curve": lambda *a, **o: cal.scores.murphy_curve(*a, **o),
    "decision_curve": lambda *a, **o: cal.decision_curve(*a, **o),
    "brier_curve": lambda *a, **o: cal.scores.brier_curve(*a, **o),
    "decision_calibration_error": lambda *a, **o: cal.decisions.decision_calibration_error(
        *a, thresholds=(0.2, 0.6), **o
    ),
}


@pytest.mark.parametrize("name", UNGROUPED)
def test_functions_without_groups_refuse_them(name):
    group, s, y = clustered()
    with pytest.raises(TypeError, match="groups"):
        UNGROUPED[name](y, s, groups=group)
    with pytest.raises(ValueError, match="treats all rows as independent, but these predictions have groups"):
        UNGROUPED[name](cal.as_predictions(y, s, groups=group))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        UNGROUPED[name](cal.as_predictions(y, s))
