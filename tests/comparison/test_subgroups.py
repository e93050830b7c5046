"""Subgroup reports: groups of any kind, intervals and tests against slower ways, corrections, size."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom, chi2, false_discovery_control, norm

import calibrant as cal
from calibrant.comparison.subgroups.build import SubgroupsOfRows
from calibrant.comparison.subgroups.heterogeneity import PooledMap, SubgroupTotals, heterogeneity
from calibrant.comparison.subgroups.membership import Subgroups, read_subgroups
from calibrant.comparison.subgroups.statistics import gap_intervals, outcomes_pmf, subgroup_pvalues
from calibrant.data.problem import Problem
from calibrant.significance.cumulative_sums import kuiper_pvalue, range_survival
from calibrant.significance.result import benjamini_hochberg, holm

CHEAP = {"estimator": cal.Binned(5), "n_resamples": 199}


def sample(n=600, seed=0, off="c"):
    """Three groups of which one is overstated."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    p = rng.random(n)
    return (rng.random(n) < np.where(group == off, p**2, p)).astype(int), p, group


def cells_of(y, p, w=None, *, integral=True, codes=None, groups=None):
    """Cells of subgroups, of one where no codes are given."""
    codes = np.zeros(len(p), dtype=int) if codes is None else np.asarray(codes)
    column = Subgroups("subgroup", codes, tuple(range(int(codes.max()) + 1)))
    problem = Problem(np.asarray(p, dtype=float), np.asarray(y), w, integral)
    return SubgroupsOfRows.of(problem, column, groups).cells


def gap_interval(y, p, w=None, *, integral=True, level=0.95):
    return tuple(gap_intervals(cells_of(y, p, w, integral=integral), level)[0])


def subgroup_pvalue(y, p, test, n_resamples, rng):
    return subgroup_pvalues(cells_of(y, p), test, n_resamples, rng)[0]


def compared(cells, rng, pooled=None):
    pooled = PooledMap.of(cells) if pooled is None else pooled
    return heterogeneity(cells, pooled, SubgroupTotals.of(cells, pooled), cells.scores.size, rng)


# Groups ----------------------------------------------------------------------------------------------------


def test_containers_of_groups():
    text = ["b", None, "a", "b"]
    for column in (text, np.array(text, dtype=object), pd.Series(text), pl.Series(text), pa.array(text)):
        (found,) = read_subgroups(column, 4)
        assert found.names == ("a", "b", "(missing)")
        assert found.codes.tolist() == [1, 2, 0, 1]
        assert found.values == ("a", "b", None)
    assert read_subgroups(pd.Series(text, name="sex"), 4)[0].name == "sex"
    assert read_subgroups(pl.Series("sex", text), 4)[0].name == "sex"
    for missing in (float("nan"), None, pd.NA, pd.NaT):
        (found,) = read_subgroups(pd.Series([1, missing, 0, 1], dtype=object), 4)
        assert found.names == ("0", "1", "(missing)")
    (found,) = read_subgroups(np.array([2.0, np.nan, 0.5, 2.0]), 4)
    assert found.names == ("0.5", "2", "(missing)")
    (found,) = read_subgroups(pd.Categorical(["x", "y", None, "x"]), 4)
    assert found.names == ("x", "y", "(missing)")
    assert read_subgroups(np.array([True, False, True, True]), 4)[0].names == ("False", "True")
    assert read_subgroups([1, "1", 1, "1"], 4)[0].names == ("1 (int)", "1 (str)")
    dates = pd.to_datetime(["2020-01-02", "2020-01-01", None, "2020-01-02"])
    assert read_subgroups(dates, 4)[0].codes.tolist() == [1, 0, 2, 1]


def test_several_columns():
    a, b = ["x", "y", "x"], [1, 1, None]
    for by in (
        {"a": a, "b": b},
        pd.DataFrame({"a": a, "b": b}),
        pl.DataFrame({"a": a, "b": b}),
        pa.table({"a": a, "b": b}),
    ):
        first, second = read_subgroups(by, 3)
        assert (first.name, second.name) == ("a", "b")
        assert first.names == ("x", "y")
        assert second.names == ("1", "(missing)")
    assert [g.name for g in read_subgroups([np.array(a), np.array([1, 1, 2])], 3)] == ["column 0", "column 1"]
    assert [g.name for g in read_subgroups(np.array([a, a]).T, 3)] == ["column 0", "column 1"]


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        (None, TypeError, "by must be a column"),
        ("region", TypeError, "by must be a column"),
        ({}, ValueError, "at least one column"),
        ([1, 2], ValueError, r"one value per row \(3\); got 2"),
        ({"a": [1, 2, 3], "b": [1]}, ValueError, r"by\['b'\] must have one value per row"),
        ([{1}, {2}, {3}], TypeError, "can name a subgroup"),
        (np.zeros((3, 1, 1)), ValueError, "must be 1-D"),
        (pl.LazyFrame({"a": [1, 2, 3]}), TypeError, "lazy"),
    ],
)
def test_groups_are_judged(by, error, message):
    with pytest.raises(error, match=message):
        read_subgroups(by, 3)


# Laws, intervals, tests ---------------------------------------------------------------------------------------------


def test_law_of_a_sum_of_outcomes():
    np.testing.assert_allclose(outcomes_pmf(np.full(37, 0.3)), binom.pmf(np.arange(38), 37, 0.3), rtol=1e-11)
    p = np.random.default_rng(0).random(12)
    wanted = np.zeros(13)
    for bits in range(2**12):
        o = (bits >> np.arange(12)) & 1
        wanted[o.sum()] += np.prod(np.where(o, p, 1 - p))
    np.testing.assert_allclose(outcomes_pmf(p), wanted, rtol=1e-11)
    both = np.stack([p[:11], np.append(p[:8], np.zeros(3))])
    np.testing.assert_allclose(outcomes_pmf(both)[0], outcomes_pmf(p[:11]), rtol=1e-12)
    np.testing.assert_allclose(outcomes_pmf(both)[1, :9], outcomes_pmf(p[:8]), rtol=1e-12)


def test_exact_interval_is_clopper_and_pearson_for_equal_scores():
    for hits in (0, 3, 20):
        low = 0.0 if hits == 0 else brentq(lambda q, k=hits: binom.sf(k - 1, 20, q) - 0.025, 1e-9, 1 - 1e-9)
        high = 1.0 if hits == 20 else brentq(lambda q, k=hits: binom.cdf(k, 20, q) - 0.025, 1e-9, 1 - 1e-9)
        found = gap_interval(np.arange(20) < hits, np.full(20, 0.3))
        assert found == pytest.approx((low - 0.3, high - 0.3), abs=1e-8)


def test_score_interval_is_wilsons_for_equal_scores():
    n, hits, z = 500, 40, norm.ppf(0.95)
    share = hits / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    found = gap_interval(np.arange(n) < hits, np.full(n, 0.1), level=0.9)
    assert found == pytest.approx((centre - half - 0.1, centre + half - 0.1), abs=1e-6)


def test_intervals_of_odd_groups():
    # An outcome that the scores call impossible: no odds explain it, and the interval still holds the gap.
    low, high = gap_interval([1, 0, 1], [0.0, 0.4, 0.6])
    assert low < 1 / 3 <= high
    assert np.isnan(gap_interval([1, 0], [1.0, 0.0])[0])
    y, p, _ = sample(60)
    w = np.random.default_rng(0).integers(0, 4, 60)
    one = gap_interval(y, p, w.astype(float))
    assert one == pytest.approx(gap_interval(np.repeat(y, w), np.repeat(p, w)))
    v = np.random.default_rng(1).random(60)
    half, whole = (gap_interval(y, p, c * v, integral=False) for c in (0.1, 7.0))
    assert half == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("n", [40, 400])
def test_coverage_of_gaps(n):
    rng = np.random.default_rng(n)
    held, repetitions = 0, 300
    for _ in range(repetitions):
        p = rng.beta(1, 6, n)
        right = expit(0.4 + 0.8 * logit(p))
        low, high = gap_interval(rng.random(n) < right, p, level=0.9)
        held += low <= (right - p).mean() <= high
    assert held / repetitions > 0.9 - 3 * np.sqrt(0.09 / repetitions)
    assert n < 200 or held / repetitions < 0.9 + 3 * np.sqrt(0.09 / repetitions)


def test_gap_test_is_exact_or_normal():
    nine = np.arange(30) < 9, np.full(30, 0.15)
    wanted = min(1, 2 * min(binom.cdf(9, 30, 0.15), binom.sf(8, 30, 0.15)))
    rng = np.random.default_rng(0)
    assert subgroup_pvalue(*nine, "in-the-large", 99, rng) == pytest.approx(wanted)
    y, p, _ = sample(3000)
    z = (y - p).sum() / np.sqrt((p * (1 - p)).sum())
    assert subgroup_pvalue(y, p, "in-the-large", 99, rng) == pytest.approx(2 * norm.sf(abs(z)))
    assert subgroup_pvalue([1, 0] * 1500, [1.0, 0.0] * 1500, "in-the-large", 99, rng) == 1
    assert subgroup_pvalue([0, 0] * 1500, [1.0, 0.0] * 1500, "in-the-large", 99, rng) == 0


def slow_range(y, p, w):
    """Largest minus smallest running sum, looked at between distinct scores."""
    sums = [0.0] + [float((w * (y - p))[p <= s].sum()) for s in np.unique(p)]
    return max(sums) - min(sums)


def test_kuiper_by_draws():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(40), 1)
    y = (rng.random(40) < p**1.6).astype(float)
    w = rng.random(40)
    found = kuiper_pvalue(p, y, w, 4000, np.random.default_rng(1))
    observed = slow_range(y, p, w)
    draws = [slow_range((rng.random(40) < p).astype(float), p, w) for _ in range(1500)]
    share = np.mean(np.array(draws) >= observed - 1e-9)
    assert found == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 1500) + 1e-3)
    # Many rows: the law of a Brownian motion, and no draws.
    q = rng.random(20_000)
    o = (rng.random(20_000) < q).astype(float)
    ones = np.ones(20_000)
    spread = np.sqrt((q * (1 - q)).sum())
    limit = kuiper_pvalue(q, o, ones, 0, rng)
    assert limit == pytest.approx(range_survival(slow_sorted(o, q) / spread), rel=1e-9)
    assert kuiper_pvalue(q, o, ones, 400, rng) == pytest.approx(limit, abs=0.1)
    assert kuiper_pvalue(np.ones(3), np.ones(3), np.ones(3), 99, rng) == 1
    assert kuiper_pvalue(np.ones(3), np.zeros(3), np.ones(3), 99, rng) == 0


def test_order_of_tied_rows_is_no_matter():
    rng = np.random.default_rng(3)
    p = np.repeat([0.2, 0.5, 0.7], 20)
    y = (rng.random(60) < p).astype(float)
    orders = [np.lexsort((sign * y, p)) for sign in (1, -1)]
    for draws in (0, 300):
        first, second = (kuiper_pvalue(p[i], y[i], np.ones(60), draws, np.random.default_rng(0)) for i in orders)
        assert first == second


def slow_sorted(o, q):
    order = np.argsort(q)
    sums = np.concatenate([[0], np.cumsum((o - q)[order])])
    return sums.max() - sums.min()


def test_kuiper_of_repeats_draws_every_repeat():
    rng = np.random.default_rng(2)
    p = rng.random(30)
    y, w = (rng.random(30) < p).astype(float), np.full(30, 9.0)
    repeated = kuiper_pvalue(np.repeat(p, 9), np.repeat(y, 9), np.ones(270), 2000, rng)
    assert kuiper_pvalue(p, y, w, 2000, rng, repeats=True) == pytest.approx(repeated, abs=0.06)
    assert kuiper_pvalue(p, y, w, 2000, rng) > repeated + 0.2  # one outcome of weight 9 says less


def test_corrections():
    p = np.array([0.01, 0.04, 0.03, np.nan, 0.005])
    # Holm: 4 · 0.005, 3 · 0.01, 2 · 0.03, then not below the one before.
    assert holm(p)[[4, 0, 2, 1]] == pytest.approx([0.02, 0.03, 0.06, 0.06])
    known = ~np.isnan(p)
    assert benjamini_hochberg(p)[known] == pytest.approx(false_discovery_control(p[known]))
    for corrected in (holm(p), benjamini_hochberg(p)):
        assert np.isnan(corrected[3])
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]
    assert holm(np.full(3, np.nan)).size == 3


def test_heterogeneity_is_the_score_test():
    y, p, group = sample(2000, 3)
    codes = np.searchsorted(["a", "b", "c"], group)
    cells = cells_of(y, p, codes=codes)
    pooled = PooledMap.of(cells)
    found = compared(cells, np.random.default_rng(0))
    columns, chance = pooled.at(p)
    # The information matrix of curve and two intercepts, whole, and its Schur complement.
    x = np.column_stack([columns, codes == 1, codes == 2]).astype(float)
    whole = (x * (chance * (1 - chance))[:, None]).T @ x
    d = columns.shape[1]
    inner = np.linalg.inv(whole)[d:, d:]
    score = x[:, d:].T @ (y - chance)
    assert found.statistic == pytest.approx(score @ inner @ score, rel=1e-6)
    assert found.df == 2
    assert found.pvalue == pytest.approx(chi2.sf(found.statistic, 2))
    assert found.pvalue < 1e-4
    assert abs(columns.T @ (y - chance)).max() < 1e-4  # of cells of scores
    few = compared(cells_of(y[:60], p[:60], codes=codes[:60]), np.random.default_rng(0), pooled)
    assert "1,999 draws" in few.name
    single = compared(cells_of(y, p), np.random.default_rng(0))
    assert np.isnan(single.pvalue)
    assert "one subgroup" in single.warnings[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [90, 1500])
def test_size_of_heterogeneity_with_other_mixes_of_scores(n):
    rng = np.random.default_rng(n)
    rejected, repetitions = 0, 120
    for _ in range(repetitions):
        codes = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        p = np.where(codes == 0, rng.beta(1, 3, n), rng.random(n))
        y = rng.random(n) < expit(0.5 + 0.6 * logit(p))  # off, but for all groups alike
        found = compared(cells_of(y, p, codes=codes), rng)
        rejected += found.pvalue <= 0.1
    assert rejected / repetitions < 0.1 + 3 * np.sqrt(0.09 / repetitions)


# The report ----------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_each_group_by_itself():
    y, p, group = sample()
    w = np.random.default_rng(1).random(600)
    found = cal.subgroup_calibration(y, p, group, sample_weight=w, estimator=cal.Binned(5))
    assert [g.name for g in found.subgroups] == ["a", "b", "c"]
    for g in found.subgroups:
        mine = group == g.name
        assert g.n_samples == mine.sum()
        assert g.base_rate == pytest.approx(np.average(y[mine], weights=w[mine]))
        assert g.mean_probability == pytest.approx(np.average(p[mine], weights=w[mine]))
        assert g.gap == pytest.approx(g.base_rate - g.mean_probability)
        assert g.gap_interval == pytest.approx(gap_interval(y[mine], p[mine], w[mine], integral=False))
        one = cal.estimate(y[mine], p[mine], sample_weight=w[mine], estimator=cal.Binned(5), random_state=1)
        assert g.error == pytest.approx(one.value)
        assert g.error_interval == pytest.approx(one.interval, abs=0.03)
    pvalues = np.array([g.pvalue for g in found.subgroups])
    assert [g.holm for g in found.subgroups] == pytest.approx(holm(pvalues))
    assert [g.bh for g in found.subgroups] == pytest.approx(false_discovery_control(pvalues))
    assert [g.adjusted for g in found.subgroups] == [g.holm for g in found.subgroups]


def test_columns_share_one_correction():
    y, p, group = sample()
    other = np.random.default_rng(1).integers(0, 2, 600)
    both = cal.subgroup_calibration(y, p, {"g": group, "h": other}, adjust="bh", **CHEAP)
    assert [c.name for c in both.columns] == ["g", "h"]
    assert len(both.subgroups) == 5
    pvalues = np.array([g.pvalue for g in both.subgroups])
    assert [g.holm for g in both.subgroups] == pytest.approx(holm(pvalues))
    assert [g.adjusted for g in both.subgroups] == pytest.approx(benjamini_hochberg(pvalues))
    plain = cal.subgroup_calibration(y, p, group, adjust="none", **CHEAP)
    assert [g.adjusted for g in plain.subgroups] == [g.pvalue for g in plain.subgroups]


def test_off_group_and_difference_are_found():
    y, p, group = sample(3000)
    found = cal.subgroup_calibration(y, p, group, **CHEAP)
    assert [g.name for g in found.rejected] == ["c"]
    (column,) = found.columns
    assert column.heterogeneity.pvalue < 1e-6
    largest = column.largest_difference
    assert largest.second == "c"
    gaps = {g.name: g.gap for g in found.subgroups}
    assert largest.value == pytest.approx(max(gaps.values()) - min(gaps.values()))
    assert largest.interval.low < 1 / 6 < largest.interval.high
    assert largest.interval.low > 0
    # Tukey's quantile for three means, infinite degrees of freedom: 3.314 (tables), over the root of 2.
    variances = {}
    for g in found.subgroups:
        r = (y - p)[group == g.name]
        variances[g.name] = r.var() / r.size
    reach = 3.314 / np.sqrt(2) * np.sqrt(variances[largest.first] + variances[largest.second])
    assert largest.interval.high - largest.value == pytest.approx(
        reach, rel=0.06
    )  # the common curve says a little more


def test_a_column_of_single_rows_is_refused_by_name_and_few_notes_are_printed():
    y, p, group = sample(400)
    age = np.random.default_rng(1).normal(50, 10, 400)
    said = r"column 'age' has 400 values in 400 rows: cut numbers into ranges first, as with pandas.cut, or .*find_segm"
    with pytest.raises(ValueError, match=said):
        cal.subgroup_calibration(y, p, {"group": group, "age": age}, **CHEAP)
    with pytest.raises(ValueError, match=r"by must have few values, of many rows each; it has 400 values in 400 rows"):
        cal.subgroup_calibration(y, p, age, **CHEAP)
    with pytest.raises(ValueError, match="column 'age' has 400 values"):
        cal.calibration_over_time(y, p, np.arange(400), by={"age": age})
    many = np.arange(400) // 2 % 199  # of two rows or more each
    found = cal.subgroup_calibration(y, p, many, **CHEAP)
    assert len(found.subgroups) == 199
    notes = [line for line in str(found).split("\n") if "note" in line]
    assert notes[0] == "  note: 0: 4 rows, fewer than 50: results are imprecise"
    assert len(notes) == 6
    assert notes[-1] == "  note: 194 more notes on other subgroups are in to_frame()"
    assert all("fewer than 50" in text for text in found.to_frame()["warnings"])
    assert found._repr_html_().count("fewer than 50") <= 10  # in the note, and as text
    assert "note: x: 1 row, fewer than 50" in str(cal.subgroup_calibration([1, 0], [0.4, 0.5], ["x", "y"], **CHEAP))


def test_n_resamples_are_those_of_the_comparison_of_subgroups_too():
    y, p, group = sample(300)
    for about, how in (({"groups": np.arange(300) // 3}, "the signs of 100 groups"), ({}, "outcomes")):
        by = group if about else np.arange(300) % 40  # with little information in each
        for n in (99, 499):
            found = cal.subgroup_calibration(y, p, by, estimator=cal.Binned(5), n_resamples=n, **about)
            assert f"{n} draws of {how}" in found.columns[0].heterogeneity.name


def test_small_missing_and_weightless_groups_are_told():
    y, p, group = sample(400)
    named = group.astype(object)
    named[:7] = None
    named[7:9] = "tiny"
    named[9:12] = "out"
    w = np.ones(400)
    w[9:12] = 0
    found = cal.subgroup_calibration(y, p, named, sample_weight=w, **CHEAP)
    by_name = {g.name: g for g in found.subgroups}
    assert list(by_name) == ["a", "b", "c", "out", "tiny", "(missing)"]
    assert by_name["(missing)"].value is None
    assert "7 rows, fewer than 50" in by_name["(missing)"].warnings[0]
    assert by_name["tiny"].pvalue <= 1
    assert by_name["out"].warnings == ("all rows have weight 0",)
    assert np.isnan(by_name["out"].holm)
    assert found.columns[0].heterogeneity.df == 4
    assert found.columns[0].largest_difference.first in ("a", "b", "c")
    assert "note: tiny: 2 rows" in str(found)
    lone = cal.subgroup_calibration([1, 0, 1], [0.4, 0.5, 0.6], ["x", "y", "z"], **CHEAP)
    assert all(g.gap_interval.low <= g.gap <= g.gap_interval.high for g in lone.subgroups)
    sure = cal.subgroup_calibration([1, 1, 0, 1], [1.0, 1.0, 0.3, 0.4], ["s", "s", "t", "t"], **CHEAP)
    assert "nothing to test" in " ".join(sure.subgroups[0].warnings)
    same = cal.subgroup_calibration([1, 1, 1], [0.4, 0.5, 0.6], ["x", "y", "y"], **CHEAP)
    assert "no test" in same.columns[0].heterogeneity.warnings[0]
    assert "groups compared: no test" in str(same)


def test_notions():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 500)
    names = np.array(["cat", "dog", "owl"])
    y = names[(rng.random((500, 1)) > q.cumsum(axis=1)).sum(axis=1)]
    group = rng.integers(0, 2, 500)
    sure = cal.subgroup_calibration(y, q, group, **CHEAP)
    assert (sure.notion, sure.label) == ("confidence", None)
    mine = group == 0
    assert sure.subgroups[0].base_rate == pytest.approx((names[q[mine].argmax(axis=1)] == y[mine]).mean())
    dogs = cal.subgroup_calibration(y, q, group, notion=cal.notions.ClassSpecific("dog"), **CHEAP)
    assert dogs.subgroups[1].base_rate == pytest.approx((y[~mine] == "dog").mean())
    assert dogs.label == "dog"
    assert "Calibration of class dog by subgroup" in str(dogs)
    ill = cal.subgroup_calibration(np.where(y == "dog", "ill", "well"), q[:, 1], group, pos_label="ill", **CHEAP)
    assert ill.subgroups[1].gap == pytest.approx(dogs.subgroups[1].gap)
    with pytest.raises(ValueError, match="several problems"):
        cal.subgroup_calibration(y, q, group, notion="classwise")


def test_family_wise_error_of_calibrated_groups():
    rng = np.random.default_rng(0)
    wrong, repetitions = {"kuiper": 0, "in-the-large": 0}, 200
    for _ in range(repetitions):
        group = rng.choice(6, 240, p=np.array([10, 6, 4, 2, 1, 1]) / 24)
        p = rng.beta(0.7, 2, 240)
        y = (rng.random(240) < p).astype(int)
        for test in wrong:
            codes = np.unique(group, return_inverse=True)[1]
            pvalues = subgroup_pvalues(cells_of(y, p, codes=codes), test, 199, rng)
            wrong[test] += bool((holm(pvalues) <= 0.1).any())
    for count in wrong.values():
        assert count / repetitions < 0.1 + 3 * np.sqrt(0.09 / repetitions)


def test_same_seed_same_report_and_json_frame_text():
    y, p, group = sample(300)
    one, other = (cal.subgroup_calibration(y, p, group, **CHEAP) for _ in range(2))
    assert one.to_dict() == other.to_dict()
    held = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert held["columns"][0]["subgroups"][2]["gap"] == one.subgroups[2].gap
    for backend in ("polars", "pandas", "pyarrow"):
        frame = one.to_frame(backend)
        assert len(frame) == 3
    frame = one.to_frame("pandas")
    assert frame["gap_low"].tolist() == [g.gap_interval.low for g in one.subgroups]
    text = str(one)
    assert "largest difference of gaps" in text
    assert "correction: Holm" in text
    lines = [line for line in text.splitlines() if line.startswith(("* c", "  c"))]
    assert f"{one.subgroups[2].gap:+.3f} (" in lines[0]  # digits that an interval of ± 0.08 allows
    assert len({len(line) for line in text.splitlines() if "to" in line and ")" in line and "(" in line[40:60]}) <= 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"test": "z"}, ValueError, "test must be one of 'kuiper', 'in-the-large'"),
        ({"test": np.array(["kuiper"])}, ValueError, "test must be one of"),
        ({"adjust": "bonferroni"}, ValueError, "adjust must be one of"),
        ({"adjust": ["holm"]}, ValueError, "adjust must be one of"),
        ({"level": None}, ValueError, "level must lie"),
        ({"min_size": -1}, ValueError, "min_size must be"),
        ({"n_resamples": 1}, ValueError, "n_resamples must be"),
        ({"estimator": "best"}, ValueError, "estimator must be"),
    ],
)
def test_arguments_are_judged(options, error, message):
    with pytest.raises(error, match=message):
        cal.subgroup_calibration([0, 1, 1], [0.2, 0.7, 0.4], ["a", "b", "a"], **options)


def test_intersections_are_subgroups_of_pairs_with_one_correction_for_all():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    by = {
        "sex": rng.choice(["f", "m"], 3000),
        "region": rng.choice(["north", None], 3000),
        "old": rng.random(3000) < 0.5,
    }
    y = rng.random(3000) < np.where((by["sex"] == "f") & (by["region"] == "north"), p**2, p)
    both = cal.subgroup_calibration(y, p, by, intersections=2, **CHEAP)
    assert [c.name for c in both.columns] == ["sex", "region", "old", "sex and region", "sex and old", "region and old"]
    pair = both.columns[3]
    assert [one.name for one in pair.subgroups] == ["f and north", "f and (missing)", "m and north", "m and (missing)"]
    wanted = (by["sex"] == "f") & (by["region"] == "north")
    assert pair.subgroups[0].gap == pytest.approx((y - p)[wanted].mean())
    np.testing.assert_allclose(
        [one.adjusted for one in both.subgroups], holm(np.array([one.pvalue for one in both.subgroups]))
    )
    assert pair.subgroups[0] in both.rejected
    one = cal.subgroup_calibration(y, p, by, intersections=9, **CHEAP)
    assert one.columns[-1].name == "sex and region and old"
    assert len(cal.subgroup_calibration(y, p, by["sex"], intersections=2, **CHEAP).columns) == 1
    with pytest.raises(ValueError, match="intersections"):
        cal.subgroup_calibration(y, p, by, intersections=0, **CHEAP)
