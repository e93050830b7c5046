"""What groups of rows have in common: smooth sums of residuals vary more than rough ones."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.data.dependence import design_effects, design_parts, group_codes
from calibrant.estimators import laplace
from calibrant.estimators.empirical_bayes import WIDE, EmpiricalBayes, rank_cells
from calibrant.estimators.laplace_draws import draw_gaps
from calibrant.measure.intervals import NormalDraws
from calibrant.sums import BinMoments, Bins, DistinctScores, Grid, GridMoments, QuantileBins, uniform_edges
from calibrant.sums.base import Shared

from ..grouped import clustered, several

SUMS = {"bins": Bins(uniform_edges(50)), "grid": Grid(), "quantiles": QuantileBins(50), "scores": DistinctScores()}
KINDS = {name: need.of for name, need in SUMS.items()} | {"ranks": lambda problem: GridMoments.of(problem).ranked}
ONES = [(1.0,), (0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0)]


def reduced(group, p, y, **options):
    given = cal.as_predictions(y, p, groups=group, **options)
    return cal.notions.as_notion("auto", given).reduce(given)


def test_parts_are_design_effects_of_cosines_alone():
    group, p, y = several(20, 9)
    problems = reduced(group, p, y)
    found = design_parts(problems[0:3], np.tile(group_codes(group), 3)[: problems[0:3].n_samples])
    np.testing.assert_allclose(found[:, 0], problems.designs, rtol=1e-12)
    np.testing.assert_allclose(found, problems.effects, rtol=1e-12)
    for column, parts in enumerate(ONES, start=1):
        for k in range(len(problems)):
            alone = design_effects(problems[k], group_codes(group), parts)
            np.testing.assert_allclose(found[k, column], alone[0], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sums_drawn_anew_vary_as_groups_do(kind):
    """Sums of drawn residuals times cosines of the rank vary by the design effect of each, in units of the mean one."""
    group, s, y = clustered(40, 25, tau=0.7)
    (problem,) = reduced(group, s, y)
    base = KINDS[kind](problem)
    scores, count, _ = (np.atleast_2d(v) for v in base.atoms)
    assert count.sum() == pytest.approx(1000 / problem.designs[0], rel=1e-6)
    chances = np.nan_to_num(scores)[None]
    drawn = NormalDraws.of(base, count, chances, 4000, [np.random.default_rng(0)])
    residual = (drawn.positive(0) - drawn.count * chances[0][:, None])[0]  # (R, m)
    rank = (np.cumsum(count) - count[0] / 2) / count.sum()
    variance = (count * chances[0] * (1 - chances[0]))[0]
    mean, *smooth, rough = problem.effects[0] / problem.designs[0]
    assert mean == 1
    assert smooth[0] > 3 * rough  # else nothing is seen
    for k, wanted in enumerate([max(d, rough) for d in smooth] + [rough]):
        wave = np.cos([0, 1, 2, 5][k] * np.pi * rank)
        found = (residual @ wave).var() / (variance * wave**2).sum()
        # five standard errors; waves are nearly but not quite orthogonal
        assert found == pytest.approx(wanted, rel=5 * np.sqrt(2 / 4000), abs=0.12 * smooth[0]), k


def test_parts_add_and_are_serialised():
    group, s, y = clustered(40, 10)
    half = group < 20
    (one,), (two,) = (reduced(group[h], s[h], y[h]) for h in (half, ~half))
    for need, kind in ((SUMS["bins"], BinMoments), (SUMS["grid"], GridMoments)):
        both = need.of(one) + need.of(two)
        np.testing.assert_allclose(both.parts, 200 * (one.effects + two.effects)[0])
        again = kind.from_dict(json.loads(json.dumps(both.to_dict())))
        np.testing.assert_array_equal(again.parts, both.parts)
        (plain,) = reduced(None, s, y)
        assert "parts" not in need.of(plain).to_dict()
        assert Shared.of(need.of(plain)) is None
        with pytest.raises(ValueError, match="parts has size 2"):
            kind.from_dict(both.to_dict() | {"parts": [1.0, 2.0]})
    runs = SUMS["scores"].of(one) + SUMS["scores"].of(two)
    np.testing.assert_allclose(runs.parts, 200 * (one.effects + two.effects)[0])
    weighted = reduced(group, s, y, sample_weight=np.linspace(1, 2, 400))[0]
    np.testing.assert_allclose(weighted.parts, (np.linspace(1, 2, 400) ** 2).sum() * weighted.effects[0])


def cells_of(s, y, shared):
    (problem,) = reduced(None, s, y)
    ((_, cells),) = rank_cells(Grid().of(problem), 1 << 14)
    return cells if shared is None else replace(cells, shared=np.array([shared]))


def test_what_groups_share_is_no_evidence_and_widens():
    rng = np.random.default_rng(0)
    s = rng.random(2000)
    y = (rng.random(2000) < expit(logit(s) + 0.3)).astype(int)
    odds, mean, sd = [], [], []
    for shared in (None, [0.0, 0, 0], [5.0, 0, 0], [50.0, 0, 0], [0, 50.0, 0]):
        cells = cells_of(s, y, shared)
        drawn = draw_gaps(cells, WIDE, laplace.fit(cells, WIDE), 4000, np.random.default_rng(1))
        gap = drawn.gap[0].mean(axis=-1)
        odds.append(float(drawn.log_odds[0]))
        mean.append(gap.mean())
        sd.append(gap.std())
    assert odds[1] == pytest.approx(odds[0], abs=1e-3)
    assert odds[0] > odds[2] > odds[3] > -3
    assert odds[4] > odds[3] + 3  # another part of the residuals than the one that is off
    assert sd[1] == pytest.approx(sd[0], rel=0.1)
    assert sd[0] < sd[2] < sd[3]
    # An offset of 50 times the variance that rows have: sd of the logit sqrt(50 / Σ s (1 - s)) = 0.39, drawn to 0
    assert abs(mean[3]) < mean[2] < mean[0]


def test_draws_of_the_default_are_of_rows_that_say_what_is_rough():
    rng = np.random.default_rng(0)
    s = rng.random(4000)
    (problem,) = reduced(None, s, (rng.random(4000) < expit(logit(s) - 0.7)).astype(int))
    sums = Grid().of(replace(problem, design=4.0))  # a thousand rows
    sd = []
    for parts in (None, [1.0, 1, 1, 1, 1], [4.0, 1, 1, 1, 1], [1.0, 4, 1, 1, 1]):
        some = replace(sums, parts=None if parts is None else np.array(parts))
        drawn = EmpiricalBayes()._draws(some, 1.0, 2000, np.random.default_rng(0))
        sd.append(drawn.powers.std())
    assert sd[1] == pytest.approx(sd[0], rel=0.1)
    assert sd[2] == pytest.approx(sd[0] / 2, rel=0.15)  # as if of four thousand
    assert sd[3] == pytest.approx(sd[0] * 2, rel=0.25)  # a shift varies as 250 do


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["auto", "density"])
def test_intervals_cover_shifts_of_hospitals(estimator):
    held = []
    for seed in range(80):
        group, s, y = clustered(20, 50, seed=seed, tau=0.5)
        stated = expit(logit(s) + 0.5)
        low, high = cal.estimate(y, stated, groups=group, estimator=estimator).interval
        held.append(low <= np.abs(stated - s).mean() <= high)
    assert np.mean(held) >= 0.86  # 95 % less four standard errors of 2.4


def drawn_of(problem, shared=None, draws=4000):
    """Cells of a problem, and draws of its maps."""
    ((_, cells),) = rank_cells(EmpiricalBayes().summarize(problem), 1)
    cells = cells if shared is None else replace(cells, shared=np.array([shared]))
    return cells, draw_gaps(cells, WIDE, laplace.fit(cells, WIDE), draws, np.random.default_rng(0))


def test_what_maps_miss_is_outcomes_less_maps():
    """A cell's mean over draws, against its own sums: outcomes and shares are drawn apart from the maps."""
    _, s, y = clustered()
    cells, drawn = drawn_of(cal.notions.as_notion("auto", p := cal.as_predictions(y, s)).reduce(p))
    n = cells.count.sum()
    share, outcomes = cells.count[0] / n, cells.positive[0] / n
    expected = n / (n + 25) * (outcomes - share * (cells.score[0] + drawn.gap[0].mean(axis=0)))
    np.testing.assert_allclose(drawn.missed[0].mean(axis=0), expected, atol=5 * drawn.missed[0].std() / np.sqrt(4000))
    assert np.abs(expected).max() > 20 * drawn.missed[0].std() / np.sqrt(4000)  # else nothing is seen


def test_what_groups_share_is_not_missed():
    """Rows of all groups come more often than stated: that is in the map that rows are held against, but no gap."""
    rng = np.random.default_rng(3)
    s = rng.beta(2, 2, 2000)
    y = rng.random(2000) < expit(logit(s) + 0.6)
    problem = cal.notions.as_notion("auto", p := cal.as_predictions(y, s)).reduce(p)
    _, drawn = drawn_of(problem, shared=np.array([200.0, 50.0, 50.0]))
    left = (y - s).mean() - (drawn.share * drawn.gap).sum(axis=-1).mean()
    assert left > 0.02  # much of the shift is laid to the groups
    assert abs(drawn.missed.sum(axis=-1).mean()) < 0.2 * left
