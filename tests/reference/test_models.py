"""Fitted maps, cross-fitting, Beta kernels, debiased squares, bandwidths by outcomes: values, bias and edge cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.special
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

import calibrant as cal
from calibrant import Binned, calibration_error, squared_calibration_error
from calibrant.data.problem import Problem
from calibrant.estimators import (
    AdaptiveKernel,
    BetaKernel,
    CrossFit,
    Density,
    Parametric,
    ResidualKernel,
    axis_counts,
    parametric,
)
from calibrant.estimators.base import Cells
from calibrant.estimators.density import log_likelihood as leave_one_out_likelihood
from calibrant.sums import Smoother, logistic_fit


def expit(z):
    return 1 / (1 + np.exp(-z))


def logit(s):
    return np.log(s / (1 - s))


# ---- parametric maps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["logistic", "beta", "quadratic"])
@pytest.mark.parametrize("shrinkage", ["auto", 1.0, 0.0])
def test_a_map_of_the_family_is_found(family, shrinkage):
    rng = np.random.default_rng(0)
    s = rng.beta(1.5, 2, 40_000)
    change = {
        "logistic": 0.3 - 0.4 * logit(s),
        "beta": 0.3 + 0.4 * np.log(s) + 0.2 * np.log(1 - s),
        "quadratic": 0.3 - 0.2 * logit(s) ** 2,
    }[family]
    truth = expit(logit(s) + change)
    y = rng.random(s.size) < truth
    for norm in (1, 2):
        wanted = np.mean(np.abs(truth - s) ** norm) ** (1 / norm)
        got = calibration_error(y, s, estimator=Parametric(family, shrinkage), norm=norm)
        assert got == pytest.approx(wanted, abs=4 * 0.5 / np.sqrt(s.size))


def test_shrinkage_ends_at_perfect_calibration():
    rng = np.random.default_rng(1)
    s = rng.random(300)
    y = rng.random(300) < s**3
    errors = [calibration_error(y, s, estimator=Parametric(shrinkage=k)) for k in (0, 1, 10, 100, 1e4, 1e12)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-6 < 0.1 < errors[0]


def test_evidence_reads_calibrated_samples_as_nearly_perfect():
    """The prior at 0 takes most of the weight, so the noise of the parameters is not read as an error."""
    rng = np.random.default_rng(2)
    auto, free = [], []
    for _ in range(60):
        s = rng.random(200)
        y = rng.random(200) < s
        auto.append(calibration_error(y, s, estimator=Parametric()))
        free.append(calibration_error(y, s, estimator=Parametric(shrinkage=0)))
    assert np.mean(auto) < 0.5 * np.mean(free)


@pytest.mark.parametrize("shrinkage", ["auto", 0.0, 4.0])
def test_identity_map_reads_exactly_zero(shrinkage):
    y = np.array([0, 1] * 50)
    assert calibration_error(y, y.astype(float), estimator=Parametric(shrinkage=shrinkage)) < 1e-5
    assert calibration_error([0, 1] * 50, [0.5] * 100, estimator=Parametric(shrinkage=shrinkage)) < 1e-12


@pytest.mark.parametrize("n", [100, 2000])
def test_constant_scores_have_one_parameter(n):
    y = np.arange(n) < 0.3 * n
    for family in parametric.FAMILIES:
        got = calibration_error(y, np.full(n, 0.4131), estimator=Parametric(family, 0.0))
        assert got == pytest.approx(0.1131, abs=2e-4)


def test_separated_outcomes_have_a_limit_without_a_prior():
    s = np.linspace(0.1, 0.9, 50)
    got = calibration_error(s > 0.5, s, estimator=Parametric(shrinkage=0.0))
    assert got == pytest.approx(np.minimum(s, 1 - s).mean(), abs=1e-3)
    assert calibration_error(np.zeros(50), s, estimator=Parametric(shrinkage=0.0)) == pytest.approx(s.mean(), abs=1e-6)


def test_clip_level_decides_what_a_wrong_certainty_weighs():
    rng = np.random.default_rng(3)
    s = np.r_[np.zeros(20), rng.random(200)]
    y = np.r_[np.ones(20), rng.random(200) < s[20:]].astype(int)
    errors = [calibration_error(y, s, estimator=Parametric(eps=e)) for e in (1e-12, 1e-6, 1e-2)]
    assert np.ptp(errors) > 0.01
    with pytest.raises(ValueError, match="eps must lie in"):
        Parametric(eps=0.0)


def test_a_fit_that_did_not_converge_says_so(monkeypatch):
    monkeypatch.setattr(logistic_fit, "_ITERATIONS", 1)
    s = np.linspace(0.01, 0.99, 99)
    with pytest.warns(cal.exceptions.ConvergenceWarning, match="did not converge in 1 steps for 1 of 1 samples"):
        calibration_error(s > 0.5, s, estimator=Parametric(shrinkage=1.0))


def test_pieces_cross_from_rows_to_the_grid():
    rng = np.random.default_rng(4)
    s = rng.random(1000)
    y = (rng.random(1000) < s**2).astype(float)
    for estimator in (Parametric(), BetaKernel(0.02)):
        parts = [estimator.summarize(Problem(s[a:b], y[a:b])) for a, b in ((0, 400), (400, 800), (800, 1000))]
        whole = estimator.power(Problem(s, y), 1)
        assert estimator.read(parts[0] + parts[1] + parts[2], 1) == pytest.approx(whole, abs=1e-12)
        assert estimator.read(parts[2] + (parts[1] + parts[0]), 1) == pytest.approx(whole, abs=1e-12)
        with pytest.raises(TypeError):
            parts[0] + 1
    with pytest.raises(ValueError, match="AxisCounts with different axis cannot be merged"):
        Parametric().summarize(Problem(s, y)) + Parametric(eps=1e-3).summarize(Problem(s, y))


@pytest.mark.parametrize("estimator", [Parametric(), BetaKernel(), BetaKernel("loo")], ids=repr)
@pytest.mark.slow
def test_curves_and_intervals(estimator):
    rng = np.random.default_rng(5)
    s = rng.random(3000)
    y = rng.random(3000) < s**2  # the truth is 1/6
    curve = cal.reliability_curve(y, s, estimator=estimator, level=0.95, n_resamples=100, random_state=0)
    assert curve.at(0.5).lower[0] < 0.25 < curve.at(0.5).upper[0]
    e = cal.estimate(y, s, estimator=estimator, n_resamples=200, random_state=0)
    assert e.interval.low < 1 / 6 < e.interval.high < 0.22
    assert e.interval.low > 0.12
    calibrated = cal.estimate(rng.random(3000) < s, s, estimator=estimator, n_resamples=200, random_state=0)
    assert calibrated.interval.low == 0


# ---- cross-fitting ---------------------------------------------------------------------------------------------

REGRESSORS = ["isotonic", "logistic", "histogram"]


@pytest.mark.slow
@pytest.mark.parametrize("regressor", REGRESSORS)
@pytest.mark.parametrize("scores", ["distinct", "ties"])
def test_cross_fitting_is_unbiased_for_calibrated_models(regressor, scores):
    """Around 0, ties included: folds that shared out the outcomes of a tie evenly would read above it."""
    rng = np.random.default_rng(6)
    estimator = CrossFit(regressor)
    values = {1: [], 2: []}
    for _ in range(300):
        s = rng.random(60) if scores == "distinct" else rng.integers(1, 5, 60) / 5
        problem = Problem(s, (rng.random(60) < s).astype(float))
        for norm, into in values.items():
            into.append(estimator.power(problem, norm))
    mean, error = np.mean(values[1]), np.std(values[1]) / np.sqrt(300)
    assert abs(mean) < 4 * error
    assert np.mean(values[2]) < 4 * np.std(values[2]) / np.sqrt(300)


@pytest.mark.slow
@pytest.mark.parametrize("norm", [1, 2])
def test_cross_fitting_stays_below_the_truth(norm):
    rng = np.random.default_rng(7)
    truth = {1: 1 / 6, 2: 1 / 30}[norm]
    for n, near in ((60, 0.05), (2000, 0.01)):
        values = []
        for _ in range(200):
            s = rng.random(n)
            problem = Problem(s, (rng.random(n) < s**2).astype(float))
            values.append(CrossFit().power(problem, norm))
        error = np.std(values) / np.sqrt(len(values))
        assert truth - near - 4 * error < np.mean(values) < truth + 4 * error


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_repeats_with_ties_of_both_outcomes(regressor):
    """A row of weight 3 is three rows, though its repeats lie in different folds."""
    rng = np.random.default_rng(8)
    s = rng.integers(0, 8, 90) / 8
    o = (rng.random(90) < s).astype(float)
    w = rng.integers(0, 5, 90).astype(float)
    copies = np.repeat(np.arange(90), w.astype(int))
    estimator = CrossFit(regressor, 4, random_state=3)
    for norm in (1, 2):
        weighted = estimator.power(Problem(s, o, w), norm)
        assert weighted == pytest.approx(estimator.power(Problem(s[copies], o[copies]), norm), abs=1e-13)
        order = rng.permutation(90)
        assert estimator.power(Problem(s[order], o[order], w[order]), norm) == pytest.approx(weighted, abs=1e-13)
    other = CrossFit(regressor, 4, random_state=4).power(Problem(s, o, w), 1)
    assert other != estimator.power(Problem(s, o, w), 1)


@pytest.mark.parametrize(
    "regressor",
    [
        LogisticRegression(),
        KNeighborsRegressor(100),
        RandomForestRegressor(n_estimators=10, min_samples_leaf=50, random_state=0),
    ],
    ids=lambda r: type(r).__name__,
)
def test_any_scikit_learn_estimator(regressor):
    rng = np.random.default_rng(9)
    s = rng.random(2000)
    y = rng.random(2000) < s**2
    assert calibration_error(y, s, estimator=CrossFit(regressor)) == pytest.approx(1 / 6, abs=0.05)
    assert calibration_error(y, s, estimator=CrossFit(regressor), norm=2) == pytest.approx(30**-0.5, abs=0.05)
    assert not hasattr(regressor, "n_features_in_")  # a clone was fitted


def test_regressors_without_weights():
    rng = np.random.default_rng(10)
    s = rng.random(200)
    y = rng.random(200) < s**2
    w = rng.integers(0, 3, 200)
    estimator = CrossFit(KNeighborsRegressor(20))
    repeated = calibration_error(np.repeat(y, w), np.repeat(s, w), estimator=estimator)
    assert calibration_error(y, s, estimator=estimator, sample_weight=w) == pytest.approx(repeated, abs=1e-12)
    with pytest.raises(ValueError, match="does not take sample_weight"):
        calibration_error(y, s, estimator=estimator, sample_weight=rng.random(200))
    constant = CrossFit(LogisticRegression())  # which refuses a single class
    assert calibration_error(np.zeros(50, dtype=int), np.full(50, 0.2), estimator=constant) == pytest.approx(0.2)


def test_cross_fitting_has_two_norms_and_needs_two_samples():
    for norm in (3, np.inf):
        with pytest.raises(ValueError, match="CrossFit is defined for norm 1 and 2; got norm="):
            calibration_error([0, 1], [0.2, 0.7], estimator=CrossFit(), norm=norm)
    assert np.isnan(calibration_error([1], [0.7], estimator=CrossFit()))
    with pytest.raises(ValueError, match="regressor must be one of 'isotonic', 'logistic', 'histogram' or an unfitted"):
        CrossFit("spline")
    with pytest.raises(TypeError, match="regressor must be one of"):
        CrossFit(LogisticRegression)
    with pytest.raises(ValueError, match="cv must be an int >= 2; got 1"):
        CrossFit(cv=1)
    with pytest.raises(TypeError, match="random_state must be an int >= 0; got None"):
        CrossFit(random_state=None)


def test_cross_fitted_interval():
    rng = np.random.default_rng(11)
    s, u = rng.random(400), rng.random(400)
    wrong, right = (
        cal.estimate(u < chance, s, estimator=CrossFit("histogram"), n_resamples=30, random_state=0)
        for chance in (s**2, s)
    )
    assert right.interval.low == 0 < 0.05 < wrong.interval.low < wrong.interval.high < 0.25


# ---- Beta kernels ----------------------------------------------------------------------------------------------


def test_published_values_of_beta_kernels():
    """Marginal (a sum over classes) and confidence at h = 0.05, p = 1, as the published code reads them, to 1e-4."""
    with np.load(Path(__file__).parent / "dirichlet_K4_N500.npz") as data:
        f, y = data["f"], data["y"].astype(int)
    classwise = calibration_error(y, f, notion="classwise", estimator=BetaKernel(0.05))
    assert 4 * classwise == pytest.approx(0.242151056736799, abs=1e-4)
    confidence = calibration_error(y, f, notion="confidence", estimator=BetaKernel(0.05))
    assert confidence == pytest.approx(0.119968084184234, abs=1e-4)


@pytest.mark.parametrize("h", [3e-3, 0.01, 0.05])
@pytest.mark.parametrize("law", [(1, 1), (0.5, 2)])
def test_the_grid_of_angles_is_exact_enough(h, law):
    rng = np.random.default_rng(12)
    s = rng.beta(*law, 4000)
    o = (rng.random(4000) < s**1.5).astype(float)
    rows = axis_counts.AxisCounts(
        s, np.stack([1 - o, o]), np.stack([1 - o, o]), np.array(0), axis_counts.Angles(), (0.0, 1.0), 4000, True
    )
    counts = BetaKernel(h).summarize(Problem(s, o))
    assert counts.cells > 0
    assert rows.cells == 0
    assert BetaKernel(h).read(counts, 1) == pytest.approx(BetaKernel(h).read(rows, 1), abs=1e-6)


def test_beta_bandwidths():
    rng = np.random.default_rng(13)
    s = rng.beta(2, 2, 500)
    counts = BetaKernel().summarize(Problem(s, (rng.random(500) < s).astype(float)))
    assert BetaKernel()._h(counts) == pytest.approx(0.17 * 500**-0.4)
    assert 2e-3 < BetaKernel("loo")._h(counts) < 0.2
    for bad, kind in ((0, ValueError), ("silverman", ValueError), (True, TypeError), (np.inf, ValueError)):
        with pytest.raises(kind, match="bandwidth must be 'auto', 'loo' or a number in "):
            BetaKernel(bad)


def test_beta_kernels_leave_out_the_sample_itself():
    # Two samples: each is read with the other's outcome.
    assert calibration_error([0, 1], [0.4, 0.6], estimator=BetaKernel(0.1)) == pytest.approx((0.6 + 0.6) / 2)
    assert np.isnan(calibration_error([1], [0.3], estimator=BetaKernel()))
    # So far apart that densities underflow: still the other's outcome.
    assert calibration_error([0, 1], [0.001, 0.999], estimator=BetaKernel(1e-4)) == pytest.approx(0.999)


# ---- debiased squares ------------------------------------------------------------------------------------------


def test_named_debiasing_by_hand():
    """Bins (0, ½] with scores .1 .3 (outcomes 0 1) and .5 (1): gap .3667, n = 3; and (½, 1] with a single .9 (0)."""
    y, p = [0, 1, 1, 0], [0.1, 0.3, 0.5, 0.9]
    first = (2 / 3 - 0.3) ** 2 - (2 / 3) * (1 / 3) / 2
    wanted = {True: first, "brocker": first, "kumar": 3 * first / 4, "ferro-fricker": (3 * first + 0.9**2) / 4}
    for name, square in wanted.items():
        got = squared_calibration_error(y, p, estimator=Binned(2, debias=name))
        assert got == pytest.approx(square, abs=1e-14), name
        assert calibration_error(y, p, estimator=Binned(2, debias=name), norm=2) == pytest.approx(max(square, 0) ** 0.5)
    full = {n: squared_calibration_error(y, p, estimator=Binned(1, debias=n)) for n in wanted}
    assert len(set(full.values())) == 1  # every bin has two samples


def test_ferro_fricker_is_a_square():
    for norm, kind in ((1, "is defined for norm 2; got norm=1"), (3, "is defined for norm 1 and 2; got norm=3")):
        with pytest.raises(ValueError, match=kind):
            calibration_error([0, 1], [0.2, 0.7], estimator=Binned(debias="ferro-fricker"), norm=norm)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", ["auto", Binned(10, debias="kumar"), Binned(10, "quantile", debias="brocker")], ids=repr
)
def test_squares_are_unbiased(estimator):
    """Calibrated: 0 within four standard errors, and below 0 about half the time. Else: the square of the bins."""
    rng = np.random.default_rng(14)
    calibrated, wrong = [], []
    for _ in range(3000):
        s = rng.random(150)
        u = rng.random(150)
        calibrated.append(squared_calibration_error(u < s, s, estimator=estimator))
        wrong.append(squared_calibration_error(u < s**2, s, estimator=estimator))
    assert abs(np.mean(calibrated)) < 4 * np.std(calibrated) / np.sqrt(3000)
    assert 0.4 < np.mean(np.array(calibrated) < 0) < 0.75
    # Bins of equal width 1/m lose the variance of d = s² - s within them, ∫ d'² / 12 m² = 1/(36 m²).
    bins = 15 if estimator == "auto" else 10
    truth = 1 / 30 - 1 / (36 * bins**2)
    assert abs(np.mean(wrong) - truth) < 4 * np.std(wrong) / np.sqrt(3000)
    plain = [Binned(10).power(Problem(s, (rng.random(150) < s).astype(float)), 2) for s in rng.random((300, 150))]
    assert np.mean(plain) > 10 * abs(np.mean(calibrated))


def test_squares_combine_over_classes_without_a_cut():
    rng = np.random.default_rng(15)
    q = rng.dirichlet(np.ones(3), 300)
    y = np.minimum((rng.random((300, 1)) > np.cumsum(q, axis=1)).sum(axis=1), 2)
    alone = [squared_calibration_error(y, q, notion=cal.notions.ClassSpecific(k)) for k in range(3)]
    assert min(alone) < 0
    assert squared_calibration_error(y, q, notion="classwise") == pytest.approx(np.mean(alone), abs=1e-15)
    assert squared_calibration_error(y, q, notion=cal.notions.Classwise("max")) == max(alone)


@pytest.mark.parametrize("estimator", [Binned(), ResidualKernel(), Density(), Parametric(), BetaKernel()], ids=repr)
def test_what_has_no_unbiased_square_is_refused(estimator):
    with pytest.raises(
        ValueError, match=r"has no unbiased estimate of the squared error: use Binned\(..., debias=True\)"
    ):
        squared_calibration_error([0, 1], [0.2, 0.7], estimator=estimator)


def test_squares_judge_their_input():
    q = [[0.2, 0.8], [0.6, 0.4]]
    with pytest.raises(ValueError, match=r"SimplexBinned.* has no unbiased estimate of the squared error"):
        squared_calibration_error([0, 1], q, notion="canonical", estimator=cal.estimators.SimplexBinned())
    with pytest.raises(ValueError, match="estimator must be 'auto', an estimator"):
        squared_calibration_error([0, 1], q, estimator="best")
    assert squared_calibration_error([0, 1] * 30, [0.4, 0.6] * 30, estimator=CrossFit()) > 0.1


# ---- bandwidths by the outcomes, and noise taken off -----------------------------------------------------------


@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
@pytest.mark.parametrize(("cells", "width"), [(64, 0.7), (64, 30.0), (600, 12.0)])
def test_diagonal_and_squares_of_a_smoother(kernel, cells, width):
    smoother = Smoother(cells, width, kernel)
    weights = smoother.smooth(np.eye(cells + 1))
    np.testing.assert_allclose(smoother.diagonal, np.diagonal(weights), atol=1e-13)
    counts = np.random.default_rng(0).random(cells + 1)
    np.testing.assert_allclose(smoother.smooth_squares(counts), counts @ weights**2, atol=1e-12)


@pytest.mark.parametrize("residual", [True, False])
def test_likelihood_leaves_each_sample_out(residual):
    """Samples on nodes: a loop over samples that smooths the others anew."""
    rng = np.random.default_rng(16)
    at = rng.integers(0, 65, 60)
    o = (rng.random(60) < at / 64).astype(float)
    smoother = Smoother(64, 5.0)
    nodes = np.linspace(0, 1, 65)

    def counts(rows, values):
        return np.bincount(at[rows], values[rows], minlength=65)

    everything = np.arange(60)
    cells = Cells(
        nodes, counts(everything, np.ones(60)), counts(everything, o), smoother, smoother.quadrature, residual
    )
    expected = 0.0
    for i in range(60):
        others = everything != i
        value = o - nodes[at] if residual else o
        density = smoother.smooth(counts(others, np.ones(60)))[at[i]]
        chance = smoother.smooth(counts(others, value))[at[i]] / density + (nodes[at[i]] if residual else 0.0)
        chance = min(max(chance, 1 / 62), 61 / 62)
        expected += np.log(chance if o[i] else 1 - chance)
    assert leave_one_out_likelihood(cells) == pytest.approx(expected, abs=1e-9)


def test_bandwidth_follows_the_outcomes():
    """The scores are the same: only what happened tells a wide kernel from a narrow one."""
    rng = np.random.default_rng(17)
    s = rng.random(4000)
    wavy = s + 0.2 * np.sin(8 * np.pi * s) * 4 * s * (1 - s)
    for space in ("score", "rank"):
        estimator = ResidualKernel("loo", space)
        widths = []
        for chance in (s, wavy):
            cells = estimator._cells(estimator.summarize(Problem(s, (rng.random(4000) < chance).astype(float))))
            widths.append(cells.smoother.width / cells.smoother.cells)
        assert widths[0] > 0.3 > 0.1 > widths[1]


def test_likelihood_chooses_how_much_an_adaptive_kernel_wants():
    rng = np.random.default_rng(18)
    s = rng.random(3000)
    y = rng.random(3000) < s**2
    assert calibration_error(y, s, estimator=AdaptiveKernel("loo")) == pytest.approx(1 / 6, abs=0.03)
    with pytest.raises(ValueError, match="wanted must be 'loo' or a number above 0; got 'best'"):
        AdaptiveKernel("best")


@pytest.mark.parametrize("space", ["rank", "score"])
def test_debiased_residuals_read_less_noise(space):
    rng = np.random.default_rng(19)
    plain, debiased, truths = [], [], []
    for _ in range(200):
        s = rng.random(60)
        problem = Problem(s, (rng.random(60) < s).astype(float))
        plain.append(ResidualKernel(space=space).power(problem, 1))
        debiased.append(ResidualKernel(space=space, debias=True).power(problem, 1))
        truths.append(0.0)
    assert np.mean(debiased) < 0.7 * np.mean(plain)
    assert min(debiased) == 0.0
    s = np.linspace(0, 1, 60)
    certain = Problem(np.round(s), 1 - np.round(s))  # no variance to take off
    both = [ResidualKernel(space=space, debias=d).power(certain, 1) for d in (False, True)]
    assert both[0] == pytest.approx(both[1], abs=1e-12)
    with pytest.raises(TypeError, match="debias must be True or False; got 'kumar'"):
        ResidualKernel(debias="kumar")


def test_softplus_and_its_slope_without_overflow():
    z = np.array([-800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 750.0, 5000.0])
    growth, slope = logistic_fit.softplus_and_expit(z)
    assert growth == pytest.approx(np.logaddexp(0, z), rel=1e-15, abs=1e-15)
    assert slope == pytest.approx(scipy.special.expit(z), rel=1e-14)
