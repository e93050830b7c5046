"""Subgroups of rows that belong together: p-values and covariances against slower ways, false alarms."""

import numpy as np
import pytest
from scipy.stats import norm, t

import calibrant as cal
from calibrant.comparison.subgroups.heterogeneity import (
    GroupScores,
    PooledMap,
    SubgroupTotals,
    _ScoreTest,
    difference_variance,
)
from calibrant.comparison.subgroups.statistics import _flipped, _scaled, _statistic, subgroup_pvalues
from calibrant.significance.null import GroupSigns

from .test_subgroups import cells_of

CHEAP = {"estimator": cal.Binned(5), "n_resamples": 199}


def hospitals(n_groups=24, in_group=20, tau=1.0, seed=0, *, straddle=True):
    """Calibrated rows of hospitals that share what scores do not know; subgroups within hospitals or across them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(in_group // 2, in_group * 3 // 2 + 1, n_groups)
    group = np.repeat(np.arange(n_groups), sizes)
    known = rng.standard_normal(group.size)
    y = known + tau * rng.standard_normal(n_groups)[group] + rng.standard_normal(group.size) > 0
    by = rng.integers(3, size=group.size) if straddle else group % 3
    return y.astype(int), norm.cdf(known / np.sqrt(1 + tau**2)), group, by


@pytest.mark.parametrize("test", ["kuiper", "in-the-large"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pvalues_of_rows_in_groups_against_all_signs(test, weighted):
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(9), [4, 1, 3, 5, 2, 4, 4, 3, 6])
    p = np.round(rng.random(group.size), 1).clip(0.05, 0.95)
    y, w = (rng.random(group.size) < p**2).astype(int), rng.random(group.size) if weighted else None
    weight = np.ones(group.size) if w is None else w
    scale = np.sqrt((weight**2 @ (p * (1 - p))) / (weight**2 @ (y - p) ** 2))

    def statistic(residual):
        if test == "in-the-large":
            return abs(weight @ residual)
        at = [weight[p <= s] @ residual[p <= s] for s in np.unique(p)]
        return max(0, *at) - min(0, *at)

    signs = np.array(np.meshgrid(*[[-1, 1]] * 9)).reshape(9, -1)
    observed = statistic((y - p).astype(float)) * (1 - 1e-9)
    want = np.mean([statistic(scale * s[group] * (y - p)) >= observed for s in signs.T])
    cells = cells_of(y, p, w, integral=not weighted, groups=group)
    (got,) = subgroup_pvalues(cells, test, 9999, np.random.default_rng(0))
    assert got == pytest.approx(want, abs=4 * want / np.sqrt(500) + 1e-4)  # drawing ends with the 500th as large


@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_of_subgroups_that_share_groups(weighted):
    y, p, group, by = hospitals()
    w = np.random.default_rng(2).random(y.size) if weighted else np.ones(y.size)
    about = {"w": w if weighted else None, "integral": not weighted, "groups": group}
    cells = cells_of(y, p, codes=by, **about)
    totals = SubgroupTotals.of(cells, None)
    gap = np.array([np.average((y - p)[by == s], weights=w[by == s]) for s in range(3)])
    each = np.array(
        [
            [(w * (y - p - gap[s]))[(by == s) & (group == g)].sum() / w[by == s].sum() for s in range(3)]
            for g in range(24)
        ]
    )
    shared = each.T @ each * 24 / 23
    own = np.maximum(totals.gap_variance * cells.design, np.diag(shared))
    for i, j in ((0, 1), (2, 0)):
        wanted = own[i] + own[j] - 2 * shared[i, j]
        assert difference_variance(cells, totals, i, j) == pytest.approx(wanted, rel=1e-9)
    (design,) = cells_of(y, p, **about).design
    mean = np.average(y - p, weights=w)
    total = np.array([(w * (y - p - mean))[group == g].sum() for g in range(24)])
    n = y.size
    plain = (w**2 * (y - p - mean) ** 2).sum() * n / (n - 1)
    mass = np.bincount(group, w)
    few = (t.ppf(0.975, mass.sum() ** 2 / (mass**2).sum() - 1) / norm.ppf(0.975)) ** 2
    assert design == pytest.approx((total**2).sum() * 24 / 23 / plain * few, rel=1e-9)


def test_groups_widen_intervals_and_raise_pvalues():
    y, p, group, by = hospitals(tau=2.0)
    found, plain = (cal.subgroup_calibration(y, p, by, groups=g, **CHEAP) for g in (group, None))
    for one, other in zip(found.subgroups, plain.subgroups, strict=True):
        assert one.gap == pytest.approx(other.gap, rel=1e-12)  # of cells, which rows in groups are not added up in
        assert np.ptp(one.gap_interval) > 1.3 * np.ptp(other.gap_interval)
        assert one.gap_interval.low < one.gap < one.gap_interval.high
    assert "signs of 24 groups" in found.columns[0].heterogeneity.name
    names = np.array([f"hospital {g}" for g in 23 - group])
    assert cal.subgroup_calibration(y, p, by, groups=names, **CHEAP).to_dict() == found.to_dict()
    given = cal.as_predictions(y, p, groups=group)
    assert cal.subgroup_calibration(given, by=by, **CHEAP).to_dict() == found.to_dict()
    alone = cal.subgroup_calibration(y, p, by, groups=np.arange(y.size), **CHEAP)
    assert alone.to_dict() == plain.to_dict()


def test_repeated_rows_are_groups():
    rng = np.random.default_rng(8)
    p, by = rng.random(300), rng.integers(2, size=300)
    y = (rng.random(300) < p).astype(int)
    once = cal.subgroup_calibration(y, p, by, **CHEAP).columns[0]
    rows = np.repeat(np.arange(300), 20)
    many = cal.subgroup_calibration(y[rows], p[rows], by[rows], groups=rows, **CHEAP).columns[0]
    for one, other in zip(once.subgroups, many.subgroups, strict=True):
        assert np.ptp(other.gap_interval) == pytest.approx(np.ptp(one.gap_interval), rel=0.15)
        assert np.ptp(other.error_interval) == pytest.approx(np.ptp(one.error_interval), rel=0.4, abs=0.02)
    assert np.ptp(many.largest_difference.interval) == pytest.approx(np.ptp(once.largest_difference.interval), rel=0.1)


def test_subgroups_of_few_groups_say_so():
    y, p, group, _ = hospitals(n_groups=12)
    by = np.where(group == 0, "one", np.where(group < 4, "three", "eight"))
    groups = {g.name: g for g in cal.subgroup_calibration(y, p, by, groups=group, **CHEAP).subgroups}
    assert groups["one"].pvalue == 1
    assert any("with 1 group no p-value can be below 1" in text for text in groups["one"].warnings)
    assert any("with 3 groups no p-value can be below 0.25" in text for text in groups["three"].warnings)
    assert not any("groups" in text for text in groups["eight"].warnings)
    assert np.ptp(groups["one"].gap_interval) > 0.5


def test_wrong_groups_of_rows():
    y, p, group, by = hospitals()
    with pytest.raises(ValueError, match="groups must have one value per row"):
        cal.subgroup_calibration(y, p, by, groups=group[1:])
    with pytest.raises(ValueError, match="groups must name at least 2 groups"):
        cal.subgroup_calibration(y, p, by, groups=np.zeros(y.size))


@pytest.mark.slow
@pytest.mark.parametrize("straddle", [False, True])
def test_false_alarms_of_rows_in_groups(straddle):
    each, different, held = [], [], []
    for seed in range(120):
        y, p, group, by = hospitals(n_groups=45, in_group=10, seed=seed, straddle=straddle)
        found = cal.subgroup_calibration(y, p, by, groups=group, **CHEAP)
        each += [g.pvalue <= 0.05 for g in found.subgroups]
        held += [g.gap_interval.low <= 0 <= g.gap_interval.high for g in found.subgroups]
        different.append(found.columns[0].heterogeneity.pvalue <= 0.05)
    # Subgroups of one sample share hospitals: 120 samples, taken for 120 independent tests.
    assert np.mean(each) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert np.mean(different) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 120)


@pytest.mark.parametrize("digits", [1, 12], ids=["few scores", "scores of their own"])
@pytest.mark.parametrize("test", ["kuiper", "in-the-large"])
def test_signs_drawn_for_sums_are_those_of_rows(test, digits):
    """Draws, one by one, are what signs of single rows give."""
    rng = np.random.default_rng(1)
    code, group, p = np.sort(rng.integers(4, size=800)), rng.integers(7, size=800), rng.random(800).round(digits)
    cells = cells_of(rng.random(800) < p, p, rng.random(800), integral=False, codes=code, groups=group)
    (table,) = cells.tables()
    some = np.array([0, 2, 3])
    draw, _ = _flipped(table, table.groups, test)
    drawn = draw(50, some, np.random.default_rng(0))
    pairs = table.groups[some] + np.arange(3)[:, None] * 7
    of_all, place = np.unique(pairs, return_inverse=True)
    signs = 2.0 * np.random.default_rng(0).integers(2, size=(50, of_all.size)) - 1
    of_rows = signs[:, place.reshape(pairs.shape)] * _scaled(table)[some]
    np.testing.assert_allclose(drawn, _statistic(of_rows, table.last[some], test), rtol=0, atol=1e-9)


def test_scores_of_groups_are_sums_of_rows():
    """The test of a difference: statistics of signs of groups' sums, and of rows."""
    y, p, group, by = hospitals()
    order = np.argsort(by, kind="stable")
    cells = cells_of(y[order], p[order], codes=by[order], groups=group[order])
    pooled = PooledMap.of(cells)
    totals = SubgroupTotals.of(cells, pooled)
    test, scores = _ScoreTest(totals), GroupScores.of(cells, pooled)
    columns, chance = pooled.at(cells.scores)
    null, of_set = scores.drawn(cells.n_subgroups, test)
    signs = GroupSigns.of(cells.groups, (cells.outcomes - chance) ** 2, chance * (1 - chance), cells.weights)
    assert null.scale == pytest.approx(signs.scale)
    sets = np.random.default_rng(0).choice([-1.0, 1.0], (20, 24))
    residuals = sets[:, signs.group] * (cells.weights * (cells.outcomes - chance))
    want = test.statistic(np.add.reduceat(residuals, cells.starts[:-1], axis=1), residuals @ columns)
    np.testing.assert_allclose(of_set(sets), want, rtol=1e-9)
    assert of_set(np.ones((1, 24)))[0] == pytest.approx(test.statistic(totals.score, totals.score_all), rel=1e-9)
