"""Rules of comparisons that whole results hardly show: each is held by a formula of its own, or by a count."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant import comparison
from calibrant.comparison.models.result import _listed
from calibrant.comparison.models.squares import Squares, squares_covariance
from calibrant.comparison.models.units import IndependentUnits
from calibrant.comparison.segments.features import read_features
from calibrant.comparison.segments.search import Limits, Searched
from calibrant.comparison.subgroups.cells import coarse_cells
from calibrant.comparison.subgroups.heterogeneity import PooledMap, SubgroupTotals, _range_tails, heterogeneity
from calibrant.comparison.subgroups.statistics import outcomes_pmf, subgroup_pvalues

from .naive import in_groups
from .test_subgroups import CHEAP, cells_of

# Whether subgroups differ --------------------------------------------------------------------------------------------


def compared(y, p, codes):
    cells = cells_of(y, p, codes=codes)
    pooled = PooledMap.of(cells)
    return heterogeneity(cells, pooled, SubgroupTotals.of(cells, pooled), len(p), np.random.default_rng(0))


def test_a_subgroup_whose_outcomes_are_all_certain_counts_as_no_degree_of_freedom():
    """Its chances by the curve are 0 but for 1e-12: no outcome there can say that it differs."""
    rng = np.random.default_rng(0)
    p, codes = rng.random(600), np.arange(600) % 2
    y = (rng.random(600) < p**2 / (p**2 + (1 - p) ** 2)).astype(float)
    without = compared(y, p, codes)
    p, y, codes = np.append(p, np.zeros(8)), np.append(y, np.zeros(8)), np.append(codes, np.full(8, 2))
    found = compared(y, p, codes)
    assert found.df == without.df == 1
    assert found.statistic == pytest.approx(without.statistic, rel=1e-6)


def outcomes_of_subgroups(rates):
    """Subgroups of the same scores, 40 each, of which so many happened, at scores all over."""
    p, order = np.linspace(0.1, 0.5, 40), np.random.default_rng(0).permutation(40)
    y = np.concatenate([order < number for number in rates]).astype(float)
    return y, np.tile(p, len(rates)), np.repeat(np.arange(len(rates)), 40)


@pytest.mark.parametrize("rates", [(33, 5, 9, 11), (3, 5, 28, 30), (12, 12, 12, 30)])
def test_the_far_tail_of_subgroups_is_the_least_of_sums_of_each_and_of_all_up_to_it(rates):
    """By the whole law of each sum, two sides, times the number of sums."""
    y, p, codes = outcomes_of_subgroups(rates)
    cells = cells_of(y, p, codes=codes)
    pooled = PooledMap.of(cells)
    _, chance = pooled.at(cells.scores)
    which = [cells.subgroup == i for i in range(4)] + [cells.subgroup <= i for i in (1, 2)]
    tails = []
    for some in which:
        pmf, k = outcomes_pmf(chance[some]), int(cells.outcomes[some].sum())
        tails += [pmf[k:].sum(), pmf[: k + 1].sum()]
    want = 2 * len(which) * min(tails)
    assert 0 < want < 0.01
    assert _range_tails(cells, pooled) == pytest.approx(want, rel=0.03)


def test_no_tail_is_far_where_all_subgroups_have_what_the_curve_says():
    y, p, codes = outcomes_of_subgroups((12, 12, 12))
    cells = cells_of(y, p, codes=codes)
    assert _range_tails(cells, PooledMap.of(cells)) == 1.0


# Tests and sums of subgroups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["kuiper", "in-the-large"])
def test_all_signs_of_twelve_groups_are_listed_beside_a_larger_subgroup(test):
    """Rows that are not there do not count as a group: 2 of 2¹² signs reach outcomes of one sign, to the last digit."""
    few, more = 2 * np.repeat(np.arange(12), 3), 1 + 2 * np.repeat(np.arange(40), 2)
    codes = np.repeat([0, 1], [few.size, more.size])
    y = np.where(codes == 0, 1.0, np.arange(codes.size) % 2)
    cells = cells_of(y, np.full(codes.size, 0.5), codes=codes, groups=np.concatenate([few, more]))
    (table,) = cells.tables()
    assert (table.weights == 0).any()
    assert subgroup_pvalues(cells, test, 199, np.random.default_rng(0))[0] == 2 / 2**12


@pytest.mark.parametrize("in_a_unit", [5, 40])
def test_coarse_cells_are_equal_steps_of_the_log_odds(in_a_unit):
    coarse = coarse_cells(in_a_unit)
    middle = (np.arange(coarse.size) + 0.5) / coarse.size
    place = np.floor(np.log(middle / (1 - middle)) * in_a_unit)
    np.testing.assert_array_equal(coarse, np.unique(place, return_inverse=True)[1])


# Reports of subgroups ------------------------------------------------------------------------------------------------


def test_nothing_to_test_is_said_of_certain_scores_that_are_right_alone():
    """Not of certain ones that are wrong, and not where outcomes are just what the scores say (p = 1)."""
    p = np.array([0.0, 1.0] * 20 + [0.0] * 40 + [0.5] * 40)
    y = np.array([0, 1] * 20 + [1, 1] * 20 + [0, 1] * 20)
    found = cal.subgroup_calibration(y, p, np.repeat(["right", "wrong", "even"], 40), test="in-the-large", **CHEAP)
    told = {g.name: any("nothing to test" in text for text in g.warnings) for g in found.subgroups}
    assert {g.name: g.pvalue for g in found.subgroups} == {"right": 1.0, "wrong": 0.0, "even": 1.0}
    assert told == {"right": True, "wrong": False, "even": False}


def same_subgroups(n_copies):
    """The report of subgroups whose rows are the same."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y, by = (rng.random(200) < p).astype(int), np.repeat(np.arange(n_copies), 200)
    return cal.subgroup_calibration(np.tile(y, n_copies), np.tile(p, n_copies), by, **CHEAP)


def test_the_largest_difference_of_equal_gaps_is_that_of_two_subgroups():
    for n_copies in (2, 3):
        largest = same_subgroups(n_copies).columns[0].largest_difference
        assert largest.first != largest.second
        assert largest.value == 0
        assert largest.interval.low == -largest.interval.high < 0


def test_each_subgroup_has_noise_of_its_own():
    """Resamples that all were of the same numbers would let intervals of like subgroups err together."""
    one, other = same_subgroups(2).subgroups
    assert one.error == other.error
    assert one.error_interval != other.error_interval


def test_subgroups_that_are_miscalibrated_and_no_others_are_marked():
    rng = np.random.default_rng(0)
    p, by = rng.random(900), np.repeat(["good", "off", "too"], 300)
    y = (rng.random(900) < np.where(by == "off", p**3, p)).astype(int)
    found = cal.subgroup_calibration(y, p, by, **CHEAP)
    assert [g.name for g in found.rejected] == ["off"]
    (section,) = found._sections()
    assert list(section.marked) == [False, True, False]


def test_parts_of_a_report_are_shown_in_one_short_line():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    found = cal.subgroup_calibration((rng.random(300) < p).astype(int), p, np.arange(300) % 3, **CHEAP)
    (column,) = found.columns
    for one in (found, column, column.largest_difference, column.heterogeneity, *column.subgroups):
        assert repr(one).startswith(type(one).__name__ + "(")
        assert len(repr(one)) <= 200
        assert "\n" not in repr(one)


# The search of segments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_unit_of_residuals_does_not_change_which_segments_are_found(seed):
    """Ranks go with its square: no size of a sum is small by itself, and either sign is made longer."""
    rng = np.random.default_rng(seed)
    n = 400
    columns = {"a": rng.integers(0, 5, n).astype(str), "b": rng.choice(list("xyz"), n), "c": rng.normal(size=n)}
    of = read_features(columns, n, {})
    searched = Searched(of.each, of.codes, np.full(n, 0.25), np.ones(3), Limits(3, 4.0, 0))
    residuals = rng.normal(size=n)
    residuals -= residuals.mean()
    (found,) = searched.best(residuals[None])
    for unit in (2.0**-10, 2.0**10):  # of which no float is rounded, so that ties stay ties
        (same,) = searched.best(unit * residuals[None])
        assert [one.conditions for one in same] == [one.conditions for one in found]
        assert [one.rank for one in same] == pytest.approx([unit**2 * one.rank for one in found])


def test_numbers_of_few_values_are_said_by_their_value():
    (feature,) = read_features({"x": np.tile([1, 2, 5], 30)}, 90, {}).each
    assert [feature.said(code, code + 1) for code in range(3)] == ["x is 1", "x is 2", "x is 5"]
    assert [feature.said(0, 2), feature.said(1, 3)] == ["x < 5", "x ≥ 2"]


@pytest.mark.parametrize("each", [9, 10])
def test_pure_values_leak_the_label_from_ten_rows_a_value_on(each):
    value = np.repeat(np.arange(20), each)
    of = read_features({"x": [f"v{i}" for i in value]}, value.size, {"": (slice(None), value % 2.0)})
    assert ("x" in of.left_out) == (each == 10)


# Comparisons of models -----------------------------------------------------------------------------------------------


def test_names_are_listed_with_an_and_before_the_last():
    assert [_listed(list(names)) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]


def test_titles_of_folded_tables_say_how_many_pairs_differ():
    """The first table is open, and what it holds can be seen; of the others only the title is."""
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    models = {"right": p, "alike": p**1.02, "wrong": 1 - p}
    found = cal.compare_models(y, models, scores=["brier"], estimator=cal.Binned(5), n_resamples=20)
    _, first, *others = found._sections()
    assert first.name == "Differences of the calibration error"
    for measure, section in zip(found.measures[1:], others, strict=True):
        apart = sum(d.better is not None for d in found.of(measure))
        (said,) = re.findall(r" \((.*) of 3 pairs differs?\)$", section.name)
        assert said == (str(apart) if apart else "none")


def test_one_unit_with_weight_is_too_few_and_the_message_says_of_what():
    y, models = [1, 0, 1, 0], {"one": [0.2, 0.3, 0.5, 0.7], "other": [0.3, 0.1, 0.9, 0.6]}
    with pytest.raises(ValueError, match="at least two independent rows with weight; got 1"):
        cal.compare_models(y, models, sample_weight=[1, 0, 0, 0])
    with pytest.raises(ValueError, match="at least 2 groups with weight"):
        cal.compare_models(y, models, sample_weight=[1, 1, 0, 0], groups=[0, 0, 1, 1])


@pytest.mark.parametrize("groups", [None, np.arange(400) // 100])
def test_pairs_of_units_are_held_only_where_these_are_fewer_than_bins(groups):
    """A table of all pairs of rows would not fit the memory."""
    rng = np.random.default_rng(0)
    p = cal.as_predictions(rng.integers(0, 2, 400), rng.random(400))
    units = IndependentUnits.of(in_groups(p, groups))
    found = Squares.of(p, cal.notions.ClassSpecific(1), units)
    squares_covariance([found], units)
    assert ("of_pairs" in vars(found)) == (groups is not None)


# All of them ---------------------------------------------------------------------------------------------------------


def test_what_comparisons_hold_cannot_be_changed():
    """Results are what was found, and sums that are kept would not follow a change of what they are of."""
    modules = [
        importlib.import_module(one.name)
        for one in pkgutil.walk_packages(comparison.__path__, f"{comparison.__name__}.")
    ]
    found = {c for m in modules for c in vars(m).values() if isinstance(c, type) and c.__module__ == m.__name__}
    held = [c for c in found if dataclasses.is_dataclass(c) and not inspect.isabstract(c)]
    assert len(held) > 10
    for c in held:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(object.__new__(c), dataclasses.fields(c)[0].name, None)


# Mistakes that mutants led to -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [600, 700])
def test_segments_and_their_complements_have_the_rows_that_are_asked_for(rows):
    """Also where the ends of a condition are moved between the bins that were searched."""
    rng = np.random.default_rng(0)
    x = rng.random(4000)
    p = np.where((x < 0.86) & (rng.random(4000) < 0.9), 0.001, 0.5)
    y = rng.random(4000) < np.where(x < 0.86, p, 0.7)
    found = cal.find_segments(y, p, {"x": x}, min_rows=rows, confirm="simulate")
    assert found.tested
    for one in found.tested:
        assert rows <= one.n_samples <= 4000 - rows


def test_models_of_other_groups_are_refused_whatever_groups_are_called():
    rng = np.random.default_rng(0)
    p = rng.random(160)
    y, groups = rng.random(160) < p, np.arange(160) // 4

    def compared(one, other):
        given = {"a": cal.as_predictions(y, p, groups=one), "b": cal.as_predictions(y, p**2, groups=other)}
        return cal.compare_models(given, n_resamples=20)

    assert compared(groups, 99 - groups).n_groups == 40  # the same rows belong together
    for other in (None, groups // 2, np.roll(groups, 1)):
        for pair in ((groups, other), (other, groups)):
            with pytest.raises(ValueError, match="differ in their groups"):
                compared(*pair)


def test_certain_scores_whose_mistakes_cancel_are_not_said_to_be_right():
    p, y = np.repeat([0.0, 1.0], 40), np.repeat([0, 1, 1, 0], [20, 20, 20, 20])
    found = cal.subgroup_calibration(y, p, np.zeros(80, dtype=int), test="in-the-large", **CHEAP)
    assert not any("all are correct" in text for one in found.subgroups for text in one.warnings)
