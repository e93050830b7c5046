"""The calibration belt: its law, its likelihood, its edges, each against a second and slower way."""

import json
import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import chi2

import calibrant as cal
from calibrant.significance import logit_polynomial
from calibrant.significance.belt import _ranges, quantile, survival
from calibrant.significance.logit_polynomial import LogitSums

K = chi2.ppf(0.95, 1)


def sample(n=400, seed=0, power=0.7, shift=0.2):
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-0.5, 1.5, n))
    return (rng.random(n) < expit(shift + power * logit(p))).astype(int), p


def curved(n=600, seed=1):
    """Log odds with a parabola that a sample of this size shows."""
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(0, 1.5, n))
    z = logit(p)
    return (rng.random(n) < expit(0.3 + z - 0.35 * z**2)).astype(int), p


def log_likelihood(beta, y, p):
    eta = np.polynomial.polynomial.polyval(logit(p), beta)
    return float((y * eta - np.logaddexp(0, eta)).sum())


def fitted(degree, y, p):
    """Largest log-likelihood by a general optimiser on raw powers, standardised."""
    z = logit(p)
    x = np.vander((z - z.mean()) / z.std(), degree + 1, increasing=True)

    def loss(beta):
        return -(y * (x @ beta) - np.logaddexp(0, x @ beta)).sum()

    def slope(beta):
        return -x.T @ (y - expit(x @ beta))

    return -minimize(loss, np.zeros(degree + 1), jac=slope, method="BFGS", options={"gtol": 1e-9}).fun


# The law of the statistic -------------------------------------------------------------------------------------------


def test_law_of_degrees_one_and_two_is_the_published_one():
    # Nattino, Finazzi & Bertolini (2014), external validation, as distribution functions (also in givitiR's manual):
    # m = 1: chi-squared with 2 df. m = 2: (F1(t) - (1 - q) - sqrt(2/pi) exp(-t/2) (sqrt t - sqrt k)) / q above k.
    for t in (0.5, 3.0, 9.0, 30.0):
        assert survival(t, 1, 0.95) == pytest.approx(chi2.sf(t, 2), rel=1e-12)
    for t in (4.0, 9.0, 15.0, 30.0):
        below = chi2.cdf(t, 1) - 0.95 - np.sqrt(2 / np.pi) * np.exp(-t / 2) * (np.sqrt(t) - np.sqrt(K))
        assert survival(t, 2, 0.95) == pytest.approx(1 - below / 0.05, abs=1e-12)
    assert survival(K - 1e-9, 2, 0.95) == 1.0
    assert survival(-1.0, 1, 0.95) == 1.0


@pytest.mark.parametrize(
    ("degree", "t", "wanted"),
    [  # pycaleva 0.8.2, 1 - cdf_m(t, degree, True, 0.95), which transcribes givitiR's formulas
        (1, 5.0, 0.08208499862389884),
        (2, 9.0, 0.23836719980418375),
        (2, 15.0, 0.019034435995396448),
        (3, 14.0, 0.3278657651516903),
        (3, 22.0, 0.017138161530590335),
        (4, 20.0, 0.31041110277201434),
        (4, 30.0, 0.009937795516398507),
    ],
)
def test_law_of_another_library(degree, t, wanted):
    assert survival(t, degree, 0.95) == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize(
    ("degree", "t", "wanted"),
    [  # pycaleva 0.8.2, 1 - cdf_m(t, degree, False, 0.95), which transcribes givitiR's formulas
        (2, 5.0, 0.02534731867746831),
        (3, 7.0, 0.3241889991653233),
        (3, 12.0, 0.03203505879186774),
        (4, 12.0, 0.4349248399226552),
        (4, 20.0, 0.019186690970822484),
    ],
)
def test_law_of_rows_of_the_fit_of_another_library(degree, t, wanted):
    assert survival(t, degree, 0.95, 2) == pytest.approx(wanted, rel=1e-7)  # its quadrature ends there


def test_published_pvalue_of_rows_of_the_fit():
    # givitiR's vignette, section 4: SAPS II refitted to its 1,000 patients, degree 2, statistic 1.4941, p = 0.2215862.
    assert survival(1.4941, 2, 0.95, 2) == pytest.approx(0.2215862, abs=1e-5)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_law_of_draws_of_rows_of_the_fit(degree):
    rng = np.random.default_rng(degree)
    size = 200_000
    x = rng.chisquare(1, size) + chi2.isf(0.05 * rng.random((degree - 2, size)), 1).sum(axis=0)
    for level in (0.2, 0.8, 0.95):
        t = quantile(level, degree, 0.95, 2)
        assert survival(t, degree, 0.95, 2) == pytest.approx(1 - level, rel=1e-9)
        assert (x <= t).mean() == pytest.approx(level, abs=5 * np.sqrt(level * (1 - level) / size))


def refitted(n=400, seed=0, bend=0.0):
    """Outcomes, and the probabilities of a logistic regression on one feature that was fitted to them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.3, n)
    y = (rng.random(n) < expit(-0.4 + x + bend * x**2)).astype(int)
    design = np.column_stack([np.ones(n), x])
    theta = np.zeros(2)
    for _ in range(40):
        p = expit(design @ theta)
        theta += np.linalg.solve((design.T * (p * (1 - p))) @ design, design.T @ (y - p))
    return y, expit(design @ theta)


def test_rows_of_the_fit_start_at_degree_two():
    y, p = refitted()
    belt = cal.significance.calibration_belt(y, p, devel="internal")
    assert (belt.devel, belt.degree, belt.warnings) == ("internal", 2, ())
    assert belt.statistic == pytest.approx(2 * (fitted(2, y, p) - log_likelihood([0, 1], y, p)), rel=1e-5)
    assert belt.pvalue == pytest.approx(chi2.sf(belt.statistic, 1))
    assert "rows of the fit" in str(belt)
    assert belt.to_dict()["devel"] == "internal"
    line = cal.significance.calibration_belt(y, p, max_degree=1)  # which such a fit makes the diagonal itself
    assert line.statistic == pytest.approx(0, abs=1e-7)
    assert line.pvalue == pytest.approx(1, abs=1e-6)
    bent = cal.significance.calibration_belt(*refitted(bend=-0.4), devel="internal")
    assert bent.pvalue < 0.001
    assert bent.below[0.95]


def test_belt_of_rows_of_the_fit_leaves_the_diagonal_only_where_the_test_rejects():
    left = rejected = 0
    for seed in range(30):
        belt = cal.significance.calibration_belt(
            *refitted(200, seed, -0.15), levels=(0.8, 0.95), n_points=41, devel="internal"
        )
        for level in belt.levels:
            off = bool(belt.above[level] or belt.below[level])
            assert not off or belt.pvalue <= 1 - level
            left += off
            rejected += belt.pvalue <= 1 - level
    assert left > 0.7 * rejected > 10


@pytest.mark.slow
def test_size_on_rows_of_the_fit():
    p = [
        cal.significance.calibration_belt(*refitted(300, seed), n_points=2, levels=0.8, devel="internal").pvalue
        for seed in range(500)
    ]
    for level in (0.05, 0.2, 0.5):
        assert (np.array(p) <= level).mean() == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 500))


def test_rows_that_no_such_model_was_fitted_to():
    warned = cal.significance.calibration_belt(*sample(), devel="internal").warnings
    assert any("devel='internal' does not apply" in text for text in warned)
    with pytest.raises(ValueError, match="three different scores"):
        cal.significance.calibration_belt([0, 1, 0, 1], [0.3, 0.3, 0.6, 0.6], devel="internal")
    with pytest.raises(ValueError, match="separated by polynomials of degree 2"):
        cal.significance.calibration_belt([0, 0, 1, 1, 0, 0], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9], devel="internal")


def convolved(t, degree, selection):
    """Survival by convolution with one more truncated chi-squared, integrated adaptively."""
    k, q = chi2.ppf(selection, 1), 1 - selection
    if degree == 1:
        return chi2.sf(t, 2)
    top = t - (degree - 2) * k
    if top <= k:
        return 1.0
    inner = quad(
        lambda x: chi2.pdf(x, 1) / q * convolved(t - x, degree - 1, selection), k, top, epsabs=1e-9, epsrel=1e-9
    )[0]
    return inner + chi2.sf(top, 1) / q


@pytest.mark.parametrize(("t", "degree"), [(6.0, 2), (20.0, 2), (9.0, 3), (22.0, 3), (45.0, 3)])
@pytest.mark.parametrize("selection", [0.9, 0.95])
def test_law_is_its_convolution(t, degree, selection):
    assert survival(t, degree, selection) == pytest.approx(convolved(t, degree, selection), rel=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_law_of_draws(degree):
    rng = np.random.default_rng(degree)
    size = 200_000
    x = rng.chisquare(2, size) + chi2.isf(0.05 * rng.random((degree - 1, size)), 1).sum(axis=0)
    for level in (0.2, 0.8, 0.95):
        t = quantile(level, degree, 0.95)
        assert survival(t, degree, 0.95) == pytest.approx(1 - level, rel=1e-9)
        assert (x <= t).mean() == pytest.approx(level, abs=5 * np.sqrt(level * (1 - level) / size))


# The likelihood ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [sample(), curved(), sample(90, 5)], ids=["line", "parabola", "few"])
def test_statistic_degree_and_coefficients_are_those_of_a_general_optimiser(data):
    y, p = data
    peaks = {degree: fitted(degree, y, p) for degree in (1, 2, 3, 4)}
    degree = 1
    while degree < 4 and 2 * (peaks[degree + 1] - peaks[degree]) > K:
        degree += 1
    plain = log_likelihood([0, 1], y, p)
    belt = cal.significance.calibration_belt(y, p)
    assert belt.degree == degree
    assert belt.statistic == pytest.approx(2 * (peaks[degree] - plain), rel=1e-6)
    assert belt.pvalue == survival(belt.statistic, degree, 0.95)
    assert log_likelihood(belt.coefficients, y, p) == pytest.approx(peaks[degree], rel=1e-9)
    np.testing.assert_allclose(
        belt.fitted, expit(np.polynomial.polynomial.polyval(logit(belt.scores), belt.coefficients)), rtol=1e-8
    )
    assert cal.significance.calibration_belt(y, p, max_degree=1).degree == 1


def test_statistic_of_another_library():
    # pycaleva 0.8.2, CalibrationBelt(y, p, outsample=True).stats(), on the same rows. (With curved() it stops at
    # degree 1, since it takes the likelihood ratio with the wrong sign.)
    belt = cal.significance.calibration_belt(*sample())
    assert belt.statistic == pytest.approx(15.501044040731244, rel=1e-11)
    assert belt.pvalue == pytest.approx(0.00043051774287672373, rel=1e-11)


def test_degree_is_chosen_by_the_likelihood_ratio():
    rng = np.random.default_rng(8)
    p = expit(rng.normal(0, 1.5, 300))
    y = (rng.random(300) < expit(0.1 + logit(p) - 0.12 * logit(p) ** 2)).astype(int)
    ratio = 2 * (fitted(2, y, p) - fitted(1, y, p))
    assert K < ratio < 2 * K
    assert cal.significance.calibration_belt(y, p).degree == 2
    for selection in (chi2.cdf(0.99 * ratio, 1), chi2.cdf(1.01 * ratio, 1)):
        degree = cal.significance.calibration_belt(y, p, selection=selection, max_degree=2).degree
        assert degree == (2 if selection < chi2.cdf(ratio, 1) else 1)


def test_a_parabola_is_found():
    assert cal.significance.calibration_belt(*curved()).degree >= 2


@pytest.mark.parametrize("data", [sample(), curved(), sample(60, 5)], ids=["line", "parabola", "few"])
def test_edges_are_extremes_over_the_region(data):
    y, p = data
    belt = cal.significance.calibration_belt(y, p, levels=(0.6, 0.95), n_points=21)
    z = logit(p)
    m, s = z.mean(), z.std()
    x = np.vander((z - m) / s, belt.degree + 1, increasing=True)
    hit = x.T @ y

    def ll(beta):
        return float(hit @ beta - np.logaddexp(0, x @ beta).sum())

    best = np.linalg.lstsq(x, np.polynomial.polynomial.polyval(z, belt.coefficients), rcond=None)[0]
    peak = ll(best)
    for i, level in enumerate(belt.levels):
        k = quantile(level, belt.degree, 0.95)
        region = {
            "type": "ineq",
            "fun": lambda b, k=k: ll(b) - peak + k / 2,
            "jac": lambda b: hit - x.T @ expit(x @ b),
        }
        for j in (0, 6, 13, -1):
            at = np.vander([(logit(belt.scores[j]) - m) / s], belt.degree + 1, increasing=True)[0]
            for sign, edge in ((1, belt.lower[i, j]), (-1, belt.upper[i, j])):
                found = minimize(
                    lambda b, sign=sign, at=at: sign * (at @ b),
                    best,
                    jac=lambda b, sign=sign, at=at: sign * at,
                    constraints=[region],
                    method="SLSQP",
                    options={"ftol": 1e-10, "maxiter": 500},
                )
                assert ll(found.x) >= peak - k / 2 - 1e-5
                assert logit(edge) == pytest.approx(at @ found.x, abs=2e-4 * (1 + abs(at @ found.x)))


def test_nodes_stand_for_many_scores(monkeypatch):
    y, p = sample(20_000, 3)
    few = cal.significance.calibration_belt(y, p, n_points=31)
    assert LogitSums.of(logit(p), y, np.ones(len(y)), 4).nodes.size <= logit_polynomial.MOST_NODES
    monkeypatch.setattr(logit_polynomial, "MOST_NODES", 10**6)
    every = cal.significance.calibration_belt(y, p, n_points=31)
    assert few.statistic == pytest.approx(every.statistic, abs=1e-5)
    np.testing.assert_allclose(few.lower, every.lower, atol=1e-7)
    np.testing.assert_allclose(few.upper, every.upper, atol=1e-7)
    np.testing.assert_allclose(few.coefficients, every.coefficients, atol=1e-6)


def test_weights_are_repeats_and_scale_is_no_matter():
    y, p = sample(150)
    w = np.random.default_rng(1).integers(0, 4, 150)
    one = cal.significance.calibration_belt(y, p, sample_weight=w)
    other = cal.significance.calibration_belt(np.repeat(y, w), np.repeat(p, w))
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
    np.testing.assert_allclose(one.lower, other.lower, rtol=1e-6)
    v = np.random.default_rng(2).random(150)
    half, whole = (cal.significance.calibration_belt(y, p, sample_weight=c * v) for c in (0.5, 30.0))
    assert half.statistic == pytest.approx(whole.statistic, rel=1e-9)
    # Kish's effective size is below the number of rows: the same curve, a wider belt.
    assert half.statistic < cal.significance.calibration_belt(y, p, sample_weight=np.rint(1e6 * v)).statistic


def test_classes_mirror_and_confidence():
    y, p = sample()
    names = np.where(y == 1, "ill", "well")
    one = cal.significance.calibration_belt(names, p, pos_label="ill")
    other = cal.significance.calibration_belt(names, 1 - p, pos_label="well")
    np.testing.assert_allclose(one.lower, 1 - other.upper[:, ::-1], atol=1e-8)
    assert (one.label, other.label) == ("ill", "well")
    both = np.column_stack([p, 1 - p])  # of ill, of well
    same = cal.significance.calibration_belt(names, both, notion=cal.notions.ClassSpecific("ill"))
    np.testing.assert_allclose(same.upper, one.upper, rtol=1e-12)
    sure = cal.significance.calibration_belt(names, both)
    assert sure.notion == "confidence"
    assert sure.label is None
    assert sure.scores[0] >= 0.5
    with pytest.raises(ValueError, match="several problems"):
        cal.significance.calibration_belt(names, both, notion="classwise")


# The test and the belt belong together ------------------------------------------------------------------------------


def test_belt_leaves_the_diagonal_only_where_the_test_rejects():
    left = rejected = 0
    for seed in range(60):
        y, p = sample(120, seed, power=1.0, shift=0.35)
        belt = cal.significance.calibration_belt(y, p, levels=(0.5, 0.8, 0.95), n_points=61)
        for level in belt.levels:
            off = bool(belt.above[level] or belt.below[level])
            assert not off or belt.pvalue <= 1 - level
            left += off
            rejected += belt.pvalue <= 1 - level
    assert left > 0.9 * rejected > 30


@pytest.mark.slow
def test_size_and_simultaneous_coverage():
    rng = np.random.default_rng(0)
    n, repetitions = 200, 400
    rejected = held = 0
    for _ in range(repetitions):
        p = expit(rng.normal(-1, 1.3, n))
        right = expit(0.3 + 0.8 * logit(p))
        calibrated = cal.significance.calibration_belt((rng.random(n) < p).astype(int), p, levels=0.8, n_points=2)
        rejected += calibrated.pvalue <= 0.1
        belt = cal.significance.calibration_belt((rng.random(n) < right).astype(int), p, levels=0.8, n_points=9)
        curve = expit(0.3 + 0.8 * logit(belt.scores))
        held += bool(((belt.lower[0] <= curve) & (curve <= belt.upper[0])).all())
    assert rejected / repetitions == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / repetitions))
    assert held / repetitions == pytest.approx(0.81, abs=4 * np.sqrt(0.16 / repetitions))


def test_belts_nest_and_hold_the_curve():
    belt = cal.significance.calibration_belt(*curved(), levels=(0.95, 0.5, 0.8))
    assert belt.levels == (0.5, 0.8, 0.95)
    assert (np.diff(belt.lower, axis=0) <= 0).all()
    assert (np.diff(belt.upper, axis=0) >= 0).all()
    assert (belt.lower[0] < belt.fitted).all()
    assert (belt.fitted < belt.upper[0]).all()


# Ends and oddities --------------------------------------------------------------------------------------------------


def test_ranges_are_where_the_belt_is_off():
    z = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    (first, second) = _ranges(z, np.array([1.0, -1.0, -1.0, 3.0, 1.0]))
    assert first == pytest.approx(expit([-2.0, -1.5]))
    assert second == pytest.approx(expit([0.25, 2.0]))
    assert _ranges(z, np.full(5, -1.0)) == ()
    assert _ranges(z, np.ones(5))[0] == pytest.approx(expit([-2.0, 2.0]))
    assert _ranges(z, np.array([-1.0, np.nan, 1.0, np.nan, -1.0]))[0] == pytest.approx([0.5, 0.5])
    belt = cal.significance.calibration_belt(*sample(2000, power=0.5))
    for level, lower, upper in zip(belt.levels, belt.lower, belt.upper, strict=True):
        for ranges, off in ((belt.above[level], lower > belt.scores), (belt.below[level], upper < belt.scores)):
            inside = np.zeros(len(off), dtype=bool)
            for low, high in ranges:
                inside |= (belt.scores >= low * (1 - 1e-12)) & (belt.scores <= high * (1 + 1e-12))
            np.testing.assert_array_equal(inside, off)


def test_zeros_and_ones_are_clipped_and_said():
    y, p = sample(300)
    p[:4] = [0, 0, 1, 1]
    y[:4] = [0, 0, 1, 1]
    belt = cal.significance.calibration_belt(y, p, clip=1e-3)
    assert "4 scores" in belt.warnings[0]
    assert belt.scores[0] == pytest.approx(1e-3)
    same = cal.significance.calibration_belt(y, np.clip(p, 1e-3, 1 - 1e-3), clip=1e-3)
    assert same.warnings == ()
    np.testing.assert_array_equal(same.upper, belt.upper)
    assert "warning: 4 scores" in str(belt)


def test_few_distinct_scores_and_no_finite_curve():
    rng = np.random.default_rng(0)
    p = rng.choice([0.2, 0.7], 200)
    y = (rng.random(200) < p**2).astype(int)
    belt = cal.significance.calibration_belt(y, p)
    assert belt.degree == 1
    assert belt.fitted[[0, -1]] == pytest.approx([y[p == 0.2].mean(), y[p == 0.7].mean()])
    with pytest.raises(ValueError, match="all are equal"):
        cal.significance.calibration_belt([0, 1, 1], [0.3, 0.3, 0.3])
    with pytest.raises(ValueError, match="separated by the scores"):
        cal.significance.calibration_belt([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8])
    with pytest.raises(ValueError, match="separated by the scores"):
        cal.significance.calibration_belt([1, 1, 1], [0.1, 0.2, 0.7])
    # A parabola separates these, a line does not.
    ended = cal.significance.calibration_belt([0, 0, 1, 1, 0, 0], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9])
    assert ended.degree == 1
    assert "degree 2" in ended.warnings[0]


@pytest.mark.parametrize("devel", ["external", "internal"])
@pytest.mark.parametrize("weighted", [False, True])
def test_half_a_percent_of_positives_has_a_belt_or_is_told_what_to_do(devel, weighted):
    """A row that weighs little may be all that keeps a side of the likelihood region finite."""
    refused = unknown = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([100, 300, 1000]))
        p = rng.choice([0.004, 0.005, 0.006], n) if seed % 2 else rng.beta(0.5, 100, n).round(2)
        weight = rng.exponential(size=n) if weighted else None
        y = rng.random(n) < 0.005
        try:
            belt = cal.significance.calibration_belt(y, p, labels=[False, True], sample_weight=weight, devel=devel)
        except ValueError as error:
            assert re.search(r"use more rows, or reliability_curve and calibration_test", str(error))  # noqa: PT017
            refused += 1
        else:
            lost = bool(np.isnan(belt.lower).any() or np.isnan(belt.upper).any())
            unknown += lost
            assert lost == any("use more rows" in text for text in belt.warnings)
    assert refused > 5
    assert unknown + refused < 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": ()}, "levels must be"),
        ({"levels": (0.9, 0.9)}, "levels must be"),
        ({"levels": "0.9"}, "levels must be"),
        ({"levels": None}, "levels must be"),
        ({"levels": (0.9, [0.8])}, "levels: level must lie"),
        ({"selection": 95}, "selection must lie"),
        ({"levels": (95,)}, "level must lie strictly"),
        ({"max_degree": 0}, "max_degree must be an int >= 1 and <= 4"),
        ({"max_degree": 5}, "max_degree must be"),
        ({"max_degree": 1, "devel": "internal"}, "max_degree must be an int >= 2"),
        ({"devel": "both"}, "devel must be one of 'external', 'internal'"),
        ({"selection": None}, "selection must lie"),
        ({"n_points": 1}, "n_points must be"),
        ({"clip": 0.0}, "clip must be"),
        ({"clip": True}, "clip must be"),
    ],
)
def test_arguments_are_judged(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cal.significance.calibration_belt(*sample(50), **options)


def test_text_and_json():
    belt = cal.significance.calibration_belt(*sample(2000, power=0.5), n_points=11)
    text = str(belt)
    assert "degree 1" in text
    assert "95 % belt: above the diagonal at scores of" in text
    assert "below the diagonal" in text
    held = json.loads(json.dumps(belt.to_dict(), allow_nan=False))
    assert held["belts"][1]["level"] == 0.95
    assert held["belts"][0]["lower"] == belt.lower[0].tolist()
    assert held["degree"] == 1
    assert cal.significance.calibration_belt(*sample(60, 4, 1.0, 0.0)).where(0.95) == "covers the diagonal"
    assert len(belt.scores) in (11, 12)
    assert (np.diff(belt.scores) >= 0).all()


def test_levels_of_any_kind():
    y, p = sample()
    wanted = cal.significance.calibration_belt(y, p, levels=(0.9,), n_points=5)
    for levels in (0.9, np.array(0.9), np.array([0.9]), np.float64(0.9), iter([0.9])):
        got = cal.significance.calibration_belt(y, p, levels=levels, n_points=5)
        assert got.levels == (0.9,)
        np.testing.assert_array_equal(got.lower, wanted.lower)
