"""Rules of numbers, intervals and curves that whole results hardly show: each against a formula of its own."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.estimators import Binned, CrossFit, Isotonic
from calibrant.estimators.base import SCALES, TruthPath
from calibrant.measure import tied_scores
from calibrant.measure.curve_from_sums import CurveSpec
from calibrant.measure.intervals import CountedDraws, invert, sums_paths
from calibrant.measure.question import Question
from calibrant.measure.scoring_rules import RankedProbability
from calibrant.measure.tied_scores import TiedScores

LEVEL = 0.9


def asked(shares, **about):
    given = {"notion": "classwise", "norm": 1, "average": "power", "dependent": False, "level": LEVEL, "size": 1e6}
    return Question(labels=tuple(range(len(shares))), shares=tuple(shares), n_samples=10**6, **given | about)


def paths(rng, shares, truth, draws, without=()):
    """Of each problem estimates whose mean is the truth plus a bias, at every scale."""
    out = []
    for i in range(len(shares)):
        centre = 0.02 + truth * SCALES
        powers = centre[:, None] + 0.05 * rng.standard_normal((SCALES.size, draws))
        if i in without:
            powers[:] = np.nan
        out.append(TruthPath(powers, truth * SCALES, 0.02 + truth))
    return out


@pytest.mark.parametrize("without", [(), (0, 7, 99)])
def test_the_interval_of_a_sum_over_many_problems_holds_the_truths_that_its_normal_law_allows(without):
    """Accepted are scales at which the sum observed lies within its two-sided normal quantiles, far from 0."""
    rng = np.random.default_rng(0)
    shares, truth, draws = rng.dirichlet(np.full(100, 5.0)), 0.3, 40
    some = paths(rng, shares, truth, draws, without)
    observed = float(shares @ [p.observed for p in some])
    used = np.array([i not in without for i in range(100)])
    weight = np.where(used, shares, 0.0) / shares[used].sum()
    powers = np.array([np.zeros((SCALES.size, draws)) if i in without else p.powers for i, p in enumerate(some)])
    centre = np.einsum("i,isr->s", weight, powers) / draws
    spread = np.sqrt(weight**2 @ powers.var(axis=2, ddof=1)) * np.sqrt(1 + 1 / draws)
    reach = norm.ppf((1 + LEVEL) / 2) * spread
    fine = np.linspace(0, SCALES[-1], 200_001)
    low, high = (np.interp(fine, SCALES, v) for v in (centre - reach, centre + reach))
    want = truth * fine[(low <= observed) & (observed <= high)][[0, -1]]
    interval, middle = invert(some, asked(shares), 1.0)
    assert tuple(interval) == pytest.approx(tuple(want), abs=2 * truth * SCALES[-1] / 600)
    assert middle == pytest.approx(truth * np.interp(observed, centre, SCALES), abs=2 * truth * SCALES[-1] / 600)


def test_the_summary_names_the_norm_unless_it_is_1():
    y, p = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4]
    assert cal.estimate(y, p).summary.startswith("Calibration error 0")
    assert cal.estimate(y, p, norm=2).summary.startswith("Calibration error, norm 2 0")


def test_a_curve_of_no_rows_has_a_band_of_as_many_points():
    spec = CurveSpec(None, "binary", LEVEL, np.random.default_rng(0), 99, "confidence")
    nothing = np.empty(0)
    curve = spec.isotonic(TiedScores(*[nothing] * 6), 1, (0.0, 1.0), 0)
    for band in (curve.lower, curve.upper):
        assert band.shape == curve.scores.shape
        assert np.isnan(band).all()
    assert curve.estimator == repr(Isotonic())


def test_a_calibrated_curve_lies_within_bands_of_consistency():
    """They hold what is found where every score is right: the score within, and narrow where rows are many."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.95, 4000)
    curve = cal.reliability_curve(rng.random(4000) < p, p, level=LEVEL, band="consistency", random_state=0)
    stated = np.linspace(0.1, 0.9, 9)
    at = curve.at(stated)
    assert (at.lower < stated).all()
    assert (stated < at.upper).all()
    assert (at.upper - at.lower < 0.1).all()


def test_bands_of_consistency_are_as_wide_as_curves_of_calibrated_outcomes_vary():
    rng = np.random.default_rng(2)
    p, stated = rng.uniform(0.05, 0.95, 1000), np.linspace(0.2, 0.8, 7)
    found = [cal.reliability_curve(rng.random(1000) < p, p, level=None).at(stated).observed for _ in range(60)]
    at = cal.reliability_curve(rng.random(1000) < p, p, level=LEVEL, band="consistency", random_state=0).at(stated)
    sd = (at.upper - at.lower) / (2 * norm.ppf((1 + LEVEL) / 2))
    assert sd.mean() == pytest.approx(np.std(found, axis=0).mean(), rel=0.25)


def test_a_line_ends_where_the_curve_only_repeats_itself():
    """Beyond the mean of the rows at an end a map with values that many rows share is flat: no line is drawn there."""
    scores = np.linspace(0, 1, 11)
    flat = np.clip(scores, 0.3, 0.7)
    count = np.array([0.0, *np.ones(9), 0.0])
    rng = np.random.default_rng(3)
    curve = cal.reliability_curve(rng.random(99) < 0.5, rng.random(99), level=None)
    nothing = np.full(11, np.nan)
    about = {"scores": scores, "observed": flat, "lower": nothing, "upper": nothing, "median": nothing}
    curve = replace(curve, **about, density=count, count=count, edges=None, shared=np.zeros(11, dtype=bool))
    np.testing.assert_allclose(curve.line.scores, scores[3:8])
    np.testing.assert_allclose(replace(curve, shared=None).line.scores, scores[1:10])
    rising = replace(curve, observed=np.clip(scores, 0.3, 1.0))
    np.testing.assert_allclose(rising.line.scores, scores[3:10])
    shared = scores == 0.5
    np.testing.assert_allclose(replace(curve, shared=shared).line.scores, scores[3:8][~shared[3:8]])


@pytest.mark.parametrize("classes", [2, 4])
def test_the_mean_ranked_probability_score_is_that_of_each_threshold(classes):
    p = np.random.default_rng(4).dirichlet(np.ones(classes), 5)
    found = RankedProbability("mean").table(p)
    for row, one in zip(found, p, strict=True):
        for c in range(classes):
            gaps = [(one[: j + 1].sum() - (c <= j)) ** 2 for j in range(classes - 1)]
            assert row[c] == pytest.approx(np.mean(gaps))


def test_only_nodes_with_rows_are_those_of_a_value_that_many_rows_share():
    """A score on a node has no rows on the next one."""
    rng = np.random.default_rng(5)
    p = np.concatenate([np.full(400, 0.5), rng.uniform(0.05, 0.4, 800), rng.uniform(0.6, 0.95, 800)])
    curve = cal.reliability_curve(rng.random(2000) < p, p, level=None)
    assert curve.scores[curve.shared].tolist() == [0.5]


@pytest.mark.parametrize("levels", [(0.95, 0.999), (0.999, 0.9995), (0.9995, 0.99999)])
def test_isotonic_bands_grow_with_the_level_beyond_the_tabled_ones(levels):
    rng = np.random.default_rng(6)
    p = rng.random(300)
    y = rng.random(300) < p
    inner, outer = (
        cal.reliability_curve(y, p, estimator=Isotonic(), level=level, random_state=0).at([0.3, 0.5])
        for level in levels
    )
    assert (outer.lower < inner.lower).all()
    assert (inner.upper < outer.upper).all()


def test_runs_are_merged_with_those_whose_middle_lies_in_the_same_share_of_all(monkeypatch):
    monkeypatch.setattr(tied_scores, "FEW", 40)
    rng = np.random.default_rng(7)
    score, count = np.sort(rng.random(900)), rng.exponential(size=900)
    few, outer = 40, tied_scores.OUTER
    running, part = 0.0, []
    for one in count:
        part.append(min(int((running + one / 2) / count.sum() * few), few - 1))
        running += one
    inside = range(outer, 900 - outer)
    begins = [*range(outer), *(i for i in inside if part[i] != part[i - 1]), *range(900 - outer, 900)]
    found = TiedScores(score, score, score, count, count / 2, np.ones(900)).merged(899)
    assert found.low.tolist() == score[np.unique(begins)].tolist()


def test_outcomes_of_few_positives_are_drawn_as_counts():
    """One positive is expected: in a third of samples there is none, and the error is the score itself."""
    rows = Problem(np.full(100, 0.01), np.arange(100) < 1.0)
    sums = Binned(1).summarize(rows)[None]
    seeds = [np.random.default_rng(0)]
    (counted,) = sums_paths(Binned(1), sums, 1, 400, seeds, counts=True)
    assert np.mean(np.isclose(counted.powers[0], 0.01)) == pytest.approx(np.exp(-1), abs=0.1)
    (normal,) = sums_paths(Binned(1), sums, 1, 400, seeds)
    assert not np.isclose(normal.powers[0], 0.01, rtol=1e-9, atol=0).any()


def test_drawn_counts_are_poisson_and_hold_their_positives():
    count = np.array([[30.0, 5.0]])
    chances = np.array([[[0.2, 0.9]], [[0.5, 0.9]], [[0.9, 0.1]]])
    draws = CountedDraws.of(None, count, chances, 4000, [np.random.default_rng(8)])
    total, se = draws.count[0], np.sqrt(count[0] / 4000)
    assert (np.abs(total.mean(axis=0) - count[0]) < 5 * se).all()
    for truth, chance in enumerate(chances[:, 0]):
        positive = draws.positive(truth)[0]
        assert (positive <= total).all()
        assert (np.abs(positive.mean(axis=0) - count[0] * chance) < 5 * se).all()


def test_an_assumption_serves_estimators_without_cells_that_have_no_curve_to_show():
    rng = np.random.default_rng(9)
    p = rng.random(200)
    y = rng.random(200) < p
    for estimator, drawn in ((CrossFit(), False), (Binned(5), True)):
        found = cal.estimate(y, p, estimator=estimator, assume="bins:5", n_resamples=20)
        assert (found.curve is not None) is drawn
        assert found.interval.low <= found.value <= found.interval.high
