"""Rules of numbers, intervals and curves that whole results hardly show: each against a formula of its own."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.estimators import Isotonic
from calibrant.estimators.base import SCALES, TruthPath
from calibrant.measure.curve_from_sums import CurveSpec
from calibrant.measure.intervals import invert
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
