"""Rules of numbers, intervals and curves that whole results hardly show: each against a formula of its own."""

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.estimators import Isotonic
from calibrant.estimators.base import SCALES, TruthPath
from calibrant.measure.curve_from_sums import CurveSpec
from calibrant.measure.intervals import invert
from calibrant.measure.question import Question
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
