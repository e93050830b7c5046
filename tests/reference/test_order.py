"""smECE, ECE_SWEEP, CORP and cumulative differences: published definitions by hand, other packages' numbers, laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant import Binned, calibration_error
from calibrant.data.problem import Problem
from calibrant.estimators import Cumulative, Isotonic, Smooth, Sweep

INF = float("inf")
ALL = [Smooth(), Smooth(0.1), Sweep(), Sweep("uniform"), Isotonic(), Cumulative(), Cumulative("kuiper")]
everywhere = pytest.mark.parametrize("estimator", ALL, ids=repr)


def sample(seed, n):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.9, n)
    y = (rng.random(n) < p + 0.3 * p * (1 - p) * np.cos(6 * p) * 2).astype(int)
    return y, p


def between(seed, n):
    """The same with ten distinct scores, none of them at an end."""
    y, p = sample(seed, n)
    return y, (np.floor(p * 9.999) + 0.5) / 10


def tied(seed, n):
    y, p = sample(seed, n)
    return y, np.round(p, 1)


# ---- Smooth: relplot 1.0.3 (the authors' package) on Python 3.11, NumPy 2.4 --------------------------------------


@pytest.mark.parametrize(
    ("seed", "n", "value"),
    [
        (1, 50, 0.08370944345489587),
        (2, 500, 0.04966818108574076),
        (3, 5000, 0.053692508223975144),
        (4, 50000, 0.05142702280728769),
    ],
)
def test_smece_agrees_with_relplot(seed, n, value):
    """``relplot.smECE(p, y)``: stops its search for the bandwidth at 0.001 and sums over 200 points."""
    y, p = sample(seed, n)
    assert calibration_error(y, p, estimator=Smooth()) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize(
    ("seed", "n", "sigma", "value"),
    [
        (1, 50, 0.02, 0.16263915236750748),
        (1, 50, 0.1, 0.0871071651151523),
        (2, 500, 0.02, 0.05913417608417784),
        (2, 500, 0.1, 0.03451135152395337),
        (3, 5000, 0.02, 0.05296011777444659),
        (3, 5000, 0.1, 0.045725361599531465),
    ],
)
def test_smece_at_a_bandwidth_agrees_with_relplot(seed, n, sigma, value):
    """``relplot.metrics.smECE_sigma`` with ``config.smECE_mesh_pts = 20001``, scores away from the ends.

    (What falls on an end node is not mirrored there, so scores next to 0 and 1 count half.)
    """
    y, p = between(seed, n)
    assert calibration_error(y, p, estimator=Smooth(sigma)) == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.4, 3.0])
def test_smece_of_two_opposite_atoms_at_the_ends(sigma):
    """Half the mass has residual 1 at score 0, half -1 at score 1: a cosine series has the integral in closed form."""
    odd = np.arange(1, 400, 2)
    exact = 4 * float(np.sum(np.sin(np.pi * odd / 2) / (np.pi * odd) * np.exp(-((np.pi * odd * sigma) ** 2) / 2)))
    assert calibration_error([1, 0], [0.0, 1.0], estimator=Smooth(sigma)) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(("seed", "n"), [(1, 50), (2, 500), (3, 5000)])
@pytest.mark.parametrize("make", [sample, tied])
def test_smece_is_a_fixed_point_and_falls_with_the_bandwidth(make, seed, n):
    y, p = make(seed, n)
    value = calibration_error(y, p, estimator=Smooth())
    assert calibration_error(y, p, estimator=Smooth(value)) == pytest.approx(value, abs=5e-6)
    around = [calibration_error(y, p, estimator=Smooth(value * f)) for f in (0.5, 0.9, 1.1, 2)]
    assert around[0] > around[1] > value > around[2] > around[3]
    assert abs(y.mean() - p.mean()) <= around[3]


def test_smece_of_few_doubts():
    """All but four of 4000 are certain and right: the fixed point is a few grid steps."""
    p, y = np.repeat([0.0, 1.0], 2000), np.repeat([0, 1], 2000)
    p[:4], y[:4] = [0.3, 0.3006, 0.6, 0.6004], [0, 1, 0, 1]
    value = calibration_error(y, p, estimator=Smooth())
    assert 1e-4 < value < 2e-3
    assert calibration_error(y, p, estimator=Smooth(value)) == pytest.approx(value, abs=1e-9)


def test_smece_of_gaps_of_one_sign_is_their_mean():
    p = np.linspace(0.3, 0.9, 50)
    assert calibration_error(np.ones(50), p, estimator=Smooth()) == pytest.approx(0.4, abs=1e-12)


def test_smece_below_the_grid_step():
    """Residuals of 1e-5 only: no bandwidth that small touches a neighbour, and the value is that of unsmoothed ones."""
    value = calibration_error([0, 1], [1e-5, 1 - 1e-5], estimator=Smooth())
    assert 0 < value <= 2.5e-5


def test_smece_of_a_confidence_is_mirrored_at_zero():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1], 400)
    y = rng.integers(0, 2, 400)
    top = P.max(axis=1)
    right = P.argmax(axis=1) == y
    for estimator in (Smooth(), Smooth(0.3)):
        confidence = calibration_error(y, P, notion="confidence", estimator=estimator)
        assert confidence == pytest.approx(calibration_error(right, top, estimator=estimator), abs=1e-5)


# ---- Sweep ---------------------------------------------------------------------------------------------------------


def authors_sweep(y, p, norm):
    """ECE_SWEEP^EM as its authors cut bins, ``floor(i b / n)``: ours where b divides n at every step that matters."""
    n, order = len(p), np.argsort(p)
    y, p = y[order], p[order]
    best = np.zeros(n, dtype=int)
    for b in range(2, n):
        bins = np.arange(n) * b // n
        if (np.diff(np.bincount(bins, y) / np.bincount(bins)) < 0).any():
            break
        best = bins
    m = np.bincount(best)
    return float((m / n @ np.abs(np.bincount(best, y - p) / m) ** norm) ** (1 / norm))


@pytest.mark.parametrize("norm", [1, 2])
def test_sweep_of_the_authors(norm):
    """Equal where cuts fall alike; everywhere else the bins differ by a sample, and the values by little."""
    y, p = sample(4, 48)
    assert calibration_error(y, p, estimator=Sweep(), norm=norm) == pytest.approx(authors_sweep(y, p, norm), abs=1e-12)
    for seed in range(5):
        y, p = sample(seed, 20_000)
        ours = calibration_error(y, p, estimator=Sweep(), norm=norm)
        assert ours == pytest.approx(authors_sweep(y, p, norm), abs=2e-3)


@pytest.mark.parametrize("make", [sample, tied, between])
@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("n", [40, 300, pytest.param(3000, marks=pytest.mark.slow)])
def test_sweep_is_binned_with_the_number_it_finds(make, strategy, n):
    y, p = make(n, n)
    value = calibration_error(y, p, estimator=Sweep(strategy))

    def means(b):
        return cal.reliability_curve(y, p, estimator=Binned(b, strategy)).observed

    def rises(b):
        seen = means(b)
        return bool((np.diff(seen[~np.isnan(seen)]) >= 0).all())

    b = 1
    while b < n and rises(b + 1):
        b += 1
    assert value == pytest.approx(calibration_error(y, p, estimator=Binned(b, strategy)), abs=1e-12)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("seed", range(6))
def test_sweep_with_few_drops(strategy, seed):
    """Nearly separated samples stand hundreds of bins; then only the bins around drops are looked at."""
    rng = np.random.default_rng(seed)
    n = 600
    p = rng.random(n) if seed % 2 else np.round(rng.random(n), 2)
    y = (p > 0.5).astype(int)
    near = np.argsort(np.abs(p - 0.5))[: 2 + seed]
    y[near] = rng.random(near.size) < 0.5
    b = 1
    while b < n:
        seen = cal.reliability_curve(y, p, estimator=Binned(b + 1, strategy)).observed
        if (np.diff(seen[~np.isnan(seen)]) < 0).any():
            break
        b += 1
    expected = calibration_error(y, p, estimator=Binned(b, strategy))
    assert b > 45  # beyond the numbers of bins that are looked at in full
    assert calibration_error(y, p, estimator=Sweep(strategy)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("lone", [-5, 2, 3, 4, 5, 6, 7])
def test_sweep_with_one_drop(lone):
    """A lone 1 among the zeros, or a lone 0 among the ones: one drop, seen from the bin behind it or before it."""
    y = np.repeat([0, 1], 300)
    y[300 + lone] ^= 1
    p = (np.arange(600) + 0.5) / 600
    b = 1
    while (np.diff(cal.reliability_curve(y, p, estimator=Binned(b + 1, "quantile")).observed) >= 0).all():
        b += 1
    assert b > 45
    expected = calibration_error(y, p, estimator=Binned(b, "quantile"))
    assert calibration_error(y, p, estimator=Sweep()) == pytest.approx(expected, abs=1e-12)


def test_sweep_cuts_the_largest_score_off():
    """The middle lies within the tie at 0.9: two bins are the others and the tie; with three, 1/3 is followed by 0."""
    p = np.array([0.3, 0.35, 0.4, 0.45, *[0.9] * 6])
    y = np.array([1, 0, 0, 0, *[1] * 6])
    assert calibration_error(y, p, estimator=Sweep()) == pytest.approx(0.4 * 0.125 + 0.6 * 0.1, abs=1e-12)


def test_sweep_of_separated_samples_has_a_bin_for_each_score():
    p = np.array([0.1, 0.2, 0.2, 0.6, 0.9])
    y = np.array([0, 0, 0, 1, 1])
    edges = Sweep()._edges(Problem(p, y)).values
    np.testing.assert_allclose(edges, [0, 0.15, 0.4, 0.75, 1])
    # Counts of a billion are no more work.
    w = np.array([10**9, 1, 2, 3, 10**9])
    assert Sweep()._edges(Problem(p, y, w.astype(float), True)).n_bins == 4
    assert calibration_error(y, p, estimator=Sweep("uniform"), sample_weight=w) == pytest.approx(0.1, abs=1e-8)


# ---- Isotonic: model-diagnostics 1.5.0 -------------------------------------------------------------------------

CORP = [
    (sample, 1, 50, False, 0.03380523610427824, 0.10471100316458246, 0.12780999004231944, 0.2692382138787872),
    (sample, 1, 50, True, 0.0428572443007007, 0.11986830651259078, 0.14481453525029514, 0.2840015093002591),
    (sample, 2, 500, False, 0.011273792684186629, 0.05443418126257633, 0.07498368303804553, 0.21646088917005452),
    (sample, 3, 5000, True, 0.007584748827167226, 0.05827309725149936, 0.07738805450589142, 0.1841369927596605),
    (tied, 1, 50, False, 0.02901212121212124, 0.11218181818181817, 0.13250500276433247, 0.2181818181818182),
    (tied, 2, 500, True, 0.0062169402062339785, 0.047670484895246, 0.07084673751574357, 0.1869565217391304),
    (tied, 3, 5000, False, 0.005694422952850109, 0.05885999999999999, 0.07546140041670367, 0.15227817745803357),
]


@pytest.mark.parametrize(("make", "seed", "n", "weighted", "miscalibration", "l1", "l2", "largest"), CORP)
def test_isotonic_agrees_with_model_diagnostics(make, seed, n, weighted, miscalibration, l1, l2, largest):
    """``decompose(…, SquaredError())["miscalibration"]``, and gaps of its ``IsotonicRegression(functional="mean")``."""
    y, p = make(seed, n)
    w = np.random.default_rng(seed + 100).integers(1, 4, n) if weighted else None
    for norm, value in ((1, l1), (2, l2), (INF, largest)):
        assert calibration_error(y, p, estimator=Isotonic(), norm=norm, sample_weight=w) == pytest.approx(
            value, abs=1e-12
        )
    fit = cal.reliability_curve(y, p, estimator="isotonic", sample_weight=w).at(p).observed
    score, recalibrated = (np.average((q - y) ** 2, weights=w) for q in (p, fit))
    assert score - recalibrated == pytest.approx(miscalibration, abs=1e-12)
    assert score - recalibrated >= l2**2


@pytest.mark.parametrize("make", [sample, tied])
def test_isotonic_agrees_with_scikit_learn(make):
    y, p = make(9, 700)
    w = np.random.default_rng(0).random(700)
    fit = IsotonicRegression().fit(p, y, sample_weight=w).predict(p)
    for norm in (1, 2, 3):
        expected = np.average(np.abs(fit - p) ** norm, weights=w) ** (1 / norm)
        assert calibration_error(y, p, estimator=Isotonic(), norm=norm, sample_weight=w) == pytest.approx(expected)
    for method in ("isotonic", "corp", Isotonic()):
        curve = cal.reliability_curve(y, p, estimator=method, sample_weight=w)
        np.testing.assert_allclose(curve.at(p).observed, fit, atol=1e-12)


def test_isotonic_curve():
    y, p = tied(5, 300)
    curve = cal.reliability_curve(y, p, estimator="isotonic")
    np.testing.assert_array_equal(curve.scores, np.unique(p))
    assert (np.diff(curve.observed) >= 0).all()
    np.testing.assert_array_equal(curve.count, [np.sum(p == s) for s in curve.scores])
    assert (curve.density @ np.diff(curve.edges)) == pytest.approx(1)
    assert curve.at([0.34, 0.36]).observed.tolist() == [curve.at(0.3).observed[0], curve.at(0.4).observed[0]]
    assert np.isnan(curve.lower).all()
    assert cal.calibration_error(y, p, estimator=Isotonic()) == pytest.approx(
        np.average(np.abs(curve.lce), weights=curve.count)
    )
    per_class = cal.reliability_curve(y, p, estimator="isotonic", notion="classwise")
    np.testing.assert_array_equal(per_class[1].observed, curve.observed)
    banded = cal.reliability_curve(y, p, estimator="isotonic", level=0.9)
    np.testing.assert_array_equal(banded.observed, curve.observed)
    assert ((banded.lower <= banded.observed) & (banded.observed <= banded.upper)).all()


# ---- Cumulative: MAPIE 1.6.0 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "n", "ks", "kuiper"),
    [
        (1, 50, 0.05583497831168298, 0.08603688480797693),
        (2, 500, 0.02873375673538691, 0.04258400740135933),
        (3, 5000, 0.03672976313904536, 0.04675088615817577),
    ],
)
def test_cumulative_agrees_with_mapie(seed, n, ks, kuiper):
    """``kolmogorov_smirnov_statistic`` and ``kuiper_statistic`` times ``length_scale``; it shakes scores by 1e-9."""
    y, p = sample(seed, n)
    assert calibration_error(y, p, estimator=Cumulative()) == pytest.approx(ks, abs=1e-9)
    assert calibration_error(y, p, estimator=Cumulative("kuiper")) == pytest.approx(kuiper, abs=1e-9)
    assert calibration_error(y, p, estimator=Cumulative(), norm=INF) == pytest.approx(ks, abs=1e-9)


def test_cumulative_in_the_population():
    """Gaps of one sign: the ECE itself. Half a wave up and half down: half of it. Up, down, up: less."""
    n = 400_000
    p = (np.arange(n) + 0.5) / n
    for gap, ks, kuiper in (
        (p**2 - p, 1 / 6, 1 / 6),
        (0.25 * np.sin(2 * np.pi * p), 0.25 / np.pi, 0.25 / np.pi),
        (0.25 * np.cos(2 * np.pi * p), 0.25 / (2 * np.pi), 0.25 / np.pi),
    ):
        outcomes = p + gap  # probabilities in place of outcomes: no noise
        problem = Problem(p, outcomes)
        assert Cumulative().power(problem, 1) == pytest.approx(ks, abs=1e-5)
        assert Cumulative("kuiper").power(problem, 1) == pytest.approx(kuiper, abs=1e-5)
        assert kuiper <= np.abs(gap).mean() + 1e-12


@pytest.mark.slow
def test_null_scale_of_cumulative():
    """Mean and 95 % point of both statistics on calibrated samples, in units of σ, against those of Brownian motion."""
    rng = np.random.default_rng(3)
    p = np.sort(rng.beta(0.6, 0.6, 2000))
    sigma = math.sqrt(np.sum(p * (1 - p))) / p.size
    draws = rng.random((2000, p.size)) < p
    ks, kuiper = (np.array([Cumulative(s).power(Problem(p, o), 1) for o in draws]) / sigma for s in ("ks", "kuiper"))
    # Means lie below those of the continuous motion by about 0.58 / √n steps; four standard errors besides.
    assert ks.mean() == pytest.approx(math.sqrt(math.pi / 2), abs=4 * ks.std() / math.sqrt(2000) + 0.02)
    assert kuiper.mean() == pytest.approx(math.sqrt(8 / math.pi), abs=4 * kuiper.std() / math.sqrt(2000) + 0.03)
    assert (ks > 2.2414).mean() == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 2000) + 0.003)


# ---- degenerate samples ------------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize(("s", "o"), [(0.3, 0), (0.3, 1), (0.0, 0), (0.0, 1), (1.0, 1), (1.0, 0), (0.5, 1)])
def test_one_sample(estimator, s, o):
    assert calibration_error([o], [s], estimator=estimator, labels=[0, 1]) == pytest.approx(abs(o - s), abs=1e-9)


@everywhere
@pytest.mark.parametrize("s", [0.0, 0.3, 1.0])
def test_constant_scores(estimator, s):
    """One distinct score has one gap."""
    o = np.array([0, 1, 1, 0, 1, 1, 1, 0])
    for norm in (1, 2):
        got = calibration_error(o, np.full(8, s), estimator=estimator, norm=norm)
        assert got == pytest.approx(abs(5 / 8 - s), abs=1e-6)


@everywhere
def test_no_positives_and_no_negatives(estimator):
    p = np.linspace(0.05, 0.85, 40)
    assert calibration_error(np.zeros(40), p, estimator=estimator, labels=[0, 1]) == pytest.approx(p.mean(), abs=1e-9)
    assert calibration_error(np.ones(40), p, estimator=estimator, labels=[0, 1]) == pytest.approx(
        1 - p.mean(), abs=1e-9
    )


@everywhere
def test_atoms_at_the_ends_of_a_perfect_model(estimator):
    p = np.repeat([0.0, 1.0], [30, 20])
    assert calibration_error(p.astype(int), p, estimator=estimator) == pytest.approx(0, abs=1e-12)


@everywhere
def test_without_weight_there_is_no_number(estimator):
    nothing = Problem(np.array([0.2, 0.4]), np.array([0, 1]), np.zeros(2), True)
    assert math.isnan(estimator.power(nothing, 1))
    empty = Problem(np.empty(0), np.empty(0, dtype=int))
    assert math.isnan(estimator.power(empty, 1))


def test_isotonic_curve_without_weight_is_nan():
    y, P = [0, 0, 1], [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
    curves = cal.reliability_curve(y, P, notion="top-label", estimator="isotonic", sample_weight=[1, 1, 0])
    assert np.isfinite(curves[0].observed).all()
    if 1 in curves:
        assert np.isnan(curves[1].observed).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Smooth("silverman"), "bandwidth must be 'auto'"),
        (lambda: Smooth(0), "bandwidth must be 'auto' or a number in .*; got 0"),
        (lambda: Sweep("equal"), "strategy must be one of 'uniform', 'quantile'; got 'equal'"),
        (lambda: Cumulative("ad"), "statistic must be one of 'ks', 'kuiper'; got 'ad'"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_smooth_takes_no_callable():
    with pytest.raises(TypeError, match=r"bandwidth must be 'auto' or a number in .*; got "):
        Smooth(lambda scores, weights: 0.1)


def test_smooth_streams():
    y, p = sample(2, 500)
    sums = cal.Accumulator()
    sums.update(y[:200], p[:200])
    sums.update(y[200:], p[200:])
    assert sums.estimate(estimator=Smooth(), n_resamples=10).value == pytest.approx(
        calibration_error(y, p, estimator=Smooth()), abs=1e-12
    )
