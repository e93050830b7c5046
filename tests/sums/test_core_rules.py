"""Rules of the core that whole results hardly show: each is held by a formula of its own, or by a count."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant import calibrators as c
from calibrant.calibrators.choosing import Choosing
from calibrant.calibrators.crossval import HeldOutEvidence, _harms, folds_of
from calibrant.calibrators.select import as_sample
from calibrant.comparison.subgroups.build import SubgroupsOfRows
from calibrant.comparison.subgroups.membership import Subgroups
from calibrant.comparison.subgroups.statistics import subgroup_pvalues
from calibrant.data.problem import Problem
from calibrant.estimators import Binned
from calibrant.estimators.base import ErrorDraws
from calibrant.measure.posterior import _of_worst, credible
from calibrant.measure.question import Question
from calibrant.sums import GridMoments

RNG = np.random.default_rng(0)


# Subgroups


def pvalue(problem, groups, test, n_resamples, seed, smallest=1.0):
    """That of one subgroup of all rows."""
    whole = Subgroups("all", np.zeros(problem.n_samples, dtype=np.intp), ("all",))
    cells = SubgroupsOfRows.of(problem, whole, groups).cells
    (found,) = subgroup_pvalues(cells, test, n_resamples, np.random.default_rng(seed), smallest)
    return float(found)


@pytest.mark.parametrize("test", ["kuiper", "in-the-large"])
@pytest.mark.parametrize(("smallest", "draws"), [(1.0, 199), (0.001, 20_000)])
def test_what_no_draw_reaches_has_one_over_the_draws(test, smallest, draws):
    """Residuals of one sign in twenty groups: of 2²⁰ signs two reach them, and no p-value is 0."""
    group = np.repeat(np.arange(20), 5)
    found = pvalue(Problem(np.linspace(0.2, 0.4, 100), np.ones(100)), group, test, 199, 1, smallest)
    assert found == pytest.approx(1 / (1 + draws), rel=0.15 if draws > 199 else 1e-12)


def test_p_values_of_groups_count_the_observed_sample():
    """(1 + k) / (1 + n), k the draws that reach it: of 14 groups, 12 of one sign, some 1.3 % of all signs do."""
    y = np.repeat([1.0, 0.0], [36, 6])
    found = pvalue(Problem(np.full(42, 0.5), y), np.repeat(np.arange(14), 3), "in-the-large", 999, 3)
    reached = found * 1000 - 1
    assert reached == pytest.approx(round(reached), abs=1e-9)
    assert 1 <= round(reached) < 50


def test_p_values_of_few_groups_are_shares_of_all_signs():
    """Of eight groups of one sign 2 in 2⁸ signs reach what was observed."""
    found = pvalue(Problem(np.full(24, 0.5), np.ones(24)), np.repeat(np.arange(8), 3), "in-the-large", 999, 3)
    assert found == 2 / 2**8


def test_the_normal_test_of_a_gap_has_the_variance_of_weighted_sums():
    rng = np.random.default_rng(5)
    p, w = rng.beta(2, 3, 3000), rng.exponential(size=3000)
    y = (rng.random(3000) < p).astype(float)
    z = w @ (y - p) / np.sqrt(w**2 @ (p * (1 - p)))
    for scale in (1.0, 7.3):
        found = pvalue(Problem(p, y, scale * w, integral=False), None, "in-the-large", 99, 5)
        # Rows of a cell 1/4096 wide count as of its mean score.
        assert found == pytest.approx(2 * norm.sf(abs(z)), rel=1e-5)


# Credible intervals


def asked(problems, **about):
    given = {"notion": "classwise", "norm": 1, "average": "power", "dependent": True, "level": 0.9, "size": 1e6}
    return Question(
        labels=tuple(range(problems)),
        shares=(1 / problems,) * problems,
        n_samples=10**6,
        exclusive=True,
        **given | about,
    )


def test_errors_of_classes_correlate_by_three_tenths():
    """The spread of the mean of K one-vs-rest errors is √(1 + 0.3 (K - 1)) times that of independent ones."""
    powers = np.tile(0.2 + np.linspace(-0.04, 0.04, 4001), (5, 1))
    for row in powers[1:]:
        RNG.shuffle(row)
    draws = ErrorDraws(powers, np.full(5, 9.0), corrected=True)
    mean = powers.mean(axis=0)
    low, high = np.quantile(np.median(mean) + np.sqrt(1 + 0.3 * 4) * (mean - np.median(mean)), [0.05, 0.95])
    assert credible(draws, asked(5)).interval == pytest.approx((low, high), abs=1e-9)
    alone = credible(draws, asked(5, dependent=False)).interval
    assert alone == pytest.approx(tuple(np.quantile(mean, [0.05, 0.95])), abs=1e-9)


def test_the_worst_of_several_shares_the_tail():
    """Of R normal posteriors the largest lower end at a level of its own: the tail over R."""
    z = norm.ppf((np.arange(20_001) + 0.5) / 20_001)
    errors = np.stack([0.30 + 0.02 * z, 0.28 + 0.01 * z, 0.10 + 0.05 * z])
    want = max(m + norm.ppf(0.05 / 3) * s for m, s in ((0.30, 0.02), (0.28, 0.01), (0.10, 0.05)))
    assert _of_worst(errors, 0.05) == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("calibrated", [0.12, 0.3, 0.45])
def test_the_median_allows_for_the_chance_of_exact_calibration(calibrated):
    """A spike at 0 of mass q: half of everything lies below the (½ - q) / (1 - q) quantile of the draws."""
    values = np.linspace(0.1, 0.3, 10_001)
    odds = np.log((1 - calibrated) / calibrated * 0.1 / 0.9)
    draws = ErrorDraws(values[None], np.array([odds]), corrected=True)
    found = credible(draws, asked(1, dependent=False))
    assert found.calibrated == pytest.approx(calibrated)
    assert found.median == pytest.approx(0.1 + 0.2 * (0.5 - calibrated) / (1 - calibrated), abs=1e-4)


# Choosing a calibrator


@pytest.mark.parametrize(("factor", "harms"), [(0.5, False), (1.5, True), (2.5, True)])
@pytest.mark.parametrize("score", ["log-loss", "brier"])
def test_a_candidate_harms_that_worsens_a_score_by_more_than_one_standard_error(factor, harms, score):
    plain, sample = np.zeros(400), as_sample(np.full(400, 0.5), np.tile([0, 1], 200), None, "probability", None)
    noise = np.tile([-1.0, 1.0], 200)  # its mean is 0, and the standard error of that 1 / 20
    worse = noise + factor / 20
    both = {"log-loss": plain, "brier": plain}
    found = {"alone": HeldOutEvidence(both, plain), "one": HeldOutEvidence(both | {score: worse}, plain)}
    assert _harms(found, "one", "alone", sample) is harms


def test_a_nested_choice_is_made_without_the_rows_it_is_judged_by(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p**1.5).astype(int)
    seen, among = [], Choosing.among
    monkeypatch.setattr(
        Choosing,
        "among",
        lambda self, tried, sample: (seen.append(sample.scores.values), among(self, tried, sample))[1],
    )
    tried = {"identity": c.Identity(), "platt": c.PlattScaling()}
    found = c.select_calibrator(p, y, candidates=tried, nested=True, cv=4)
    assert np.isfinite(found.nested_loss)
    whole, *inner = seen
    np.testing.assert_array_equal(whole, p)
    assert len(inner) == 4
    for scores, (train, _) in zip(inner, folds_of(y, 4, 0), strict=True):
        np.testing.assert_array_equal(scores, p[train])


# Sums


def weighted(weights, integral):
    rng = np.random.default_rng(len(weights))
    return Problem(rng.random(len(weights)), rng.integers(0, 2, len(weights)), np.asarray(weights, float), integral)


@pytest.mark.parametrize("order", [1, -1])
def test_repeats_and_relative_weights_together_are_relative(order):
    repeats, relative = weighted([1, 2, 3, 1], True), weighted([0.5, 1.7, 0.1], False)
    one, two = [GridMoments.of(p) for p in (repeats, relative)][::order]
    both = one + two
    assert not both.integral
    w = np.concatenate([repeats.weights, relative.weights])
    assert both.effective_size == pytest.approx(w.sum() ** 2 / (w**2).sum())


@pytest.mark.parametrize("integral", [True, False])
def test_a_design_effect_multiplies_what_variances_count(integral):
    """Of repeats their number, of relative weights the sum of their squares."""
    w = np.array([1.0, 2.0, 4.0]) if integral else np.array([0.3, 1.1, 2.7])
    plain = weighted(w, integral)
    found = GridMoments.of(replace(plain, design=2.5, effects=np.full((1, 5), 2.5)))
    assert found.squares == pytest.approx(2.5 * (w.sum() if integral else w @ w))


@pytest.mark.parametrize("factor", [1.001, 50.0])
def test_squares_beyond_the_square_of_the_total_are_refused(factor):
    sums = GridMoments.of(weighted([0.5, 1.7, 0.1], False)).to_dict()
    GridMoments.from_dict(sums)
    with pytest.raises(ValueError, match="squares"):
        GridMoments.from_dict(sums | {"squares": factor * sums["total"] ** 2})


# Bins


@pytest.mark.parametrize("rule", ["sqrt", "cbrt"])
def test_a_number_of_bins_by_rule_spans_the_domain(rule):
    n, domain = 125, (0.25, 1.0)
    scores = np.random.default_rng(0).uniform(*domain, n)
    many = {"sqrt": 11, "cbrt": 5}[rule]
    one = Problem(scores, np.zeros(n), domain=domain)
    spans = {"domain": domain, "unit": (0.0, 1.0)}
    for span, ends in spans.items():
        edges = Binned(rule, span=span).summarize(one).edges.values
        np.testing.assert_allclose(edges, np.linspace(*ends, many + 1), atol=1e-12)
    # Problems of several sizes, each with a number of bins of its own.
    starts = np.array([0, 25, 125])
    several = Problem(scores, np.zeros(n), domain=domain, label=(0, 1), share=(0.5, 0.5), starts=starts)
    both = Binned(rule, span="domain").summarize(several).edges.values
    for row, size in zip(both, (25, 100), strict=True):
        bins = int(np.floor(round(size ** (1 / 2 if rule == "sqrt" else 1 / 3), 9)))
        np.testing.assert_allclose(row[: bins + 1], np.linspace(*domain, bins + 1), atol=1e-12)


def test_the_confidence_is_binned_from_one_over_k():
    q = np.random.default_rng(1).dirichlet(np.ones(4), 400)
    y = (np.random.default_rng(2).random((400, 1)) > q.cumsum(axis=1)).sum(axis=1)
    top, right = q.max(axis=1), q.argmax(axis=1) == y
    edges = np.linspace(0.25, 1, 21)
    place = np.clip(np.searchsorted(edges, top, side="left") - 1, 0, 19)
    want = np.abs(np.bincount(place, right - top, 20)).sum() / 400
    found = cal.calibration_error(y, q, notion="confidence", estimator=Binned("sqrt", span="domain"))
    assert found == pytest.approx(want, rel=1e-9)
