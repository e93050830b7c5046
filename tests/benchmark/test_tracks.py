"""Tracks of one score a sample: truths against other quadratures and brute force, laws of the draws, seeds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import beta as scipy_beta
from scipy.stats import kstest, norm

from calibrant.benchmark.tracks import BinaryDistribution, ScalarDistribution, distributions
from calibrant.benchmark.tracks.distribution import integrate, integrate_gap
from calibrant.benchmark.tracks.score_mixtures import Atom, Beta, LogitNormal, ScoreLaw
from calibrant.benchmark.tracks.synthetic import fitted
from calibrant.benchmark.tracks.true_maps import BetaMap, IdentityMap, Logistic, Rippled, Spline, Wavy, spline_basis
from calibrant.datasets import make_scores, true_map

SCALAR = ("beta", "networks", "imbalance", "consistency", "local")
EVERY = [d for track in SCALAR for d in distributions(track)]
WRONG = [d for d in EVERY if not d.calibrated]
CALIBRATED = [d for d in EVERY if d.calibrated]


def pairs(chosen: list) -> list:
    return [pytest.param(d, notion, id=f"{d}-{notion}") for d in chosen for notion in d.notions]


def brute(d: ScalarDistribution, notion: str, power: float, n: int = 60_000) -> tuple[float, float]:
    """Mean of |gap|^p over drawn scores with its standard error, straight from the definition of the gap."""
    s, _ = d.sample(1, n, np.random.default_rng(7))
    s = s.ravel()

    def gap(score: np.ndarray) -> np.ndarray:
        out = d.curve(logit(np.clip(score, 1e-300, 1 - 1e-16))) - score
        for atom in d.law.atoms:
            out[score == atom.score] = atom.frequency - atom.score
        return out

    if notion == "class-specific" or not isinstance(d, BinaryDistribution):
        size = np.abs(gap(s))
    else:
        mirror = 1 - s
        # Density of the score itself (its Jacobian is the same at s and 1 - s), or the mass where there is an atom.
        here, there = (mass_at(d.law, score) for score in (s, mirror))
        size = np.abs((here * gap(s) - there * gap(mirror)) / (here + there))
    values = size**power
    return float(values.mean()), float(values.std() / np.sqrt(n))


def mass_at(law: ScoreLaw, scores: np.ndarray) -> np.ndarray:
    out = law.density(logit(np.clip(scores, 1e-300, 1 - 1e-16)))
    ends = [a.score for a in law.atoms]
    for score in {*ends, *(1 - e for e in ends)}:
        out[scores == score] = sum(a.mass for a in law.atoms if a.score == score)
    return out


@pytest.mark.parametrize(("d", "notion"), pairs(WRONG))
@pytest.mark.parametrize("p", [1, 2])
def test_truth_is_the_mean_gap_of_drawn_scores(d, notion, p):
    truth = d.truth(notion, p)
    power, error = brute(d, notion, p)
    # Some 200 comparisons share this bound; float32 scores move a gap by 6e-8.
    assert abs(truth.value**p - power) < 4.5 * error + 1e-7
    assert truth.standard_error == 0


@pytest.mark.parametrize("d", WRONG[::6], ids=str)
def test_truth_agrees_with_adaptive_quadrature(d):
    """SciPy's adaptive rule, which knows nothing of the zeros, in pieces of the logit axis."""
    low, high = d.law.support()
    edges = np.linspace(low, high, 200)
    pieces = [
        quad(lambda x: float(np.abs(d.signed(np.array([x])))[0]), a, b, limit=100, epsabs=1e-11)[0]
        for a, b in pairwise(edges)
    ]
    atoms = sum(a.mass * abs(a.frequency - a.score) for a in d.law.atoms)
    assert d.truth(d.notions[0]).value == pytest.approx(sum(pieces) + atoms, abs=2e-8)


@pytest.mark.parametrize("kind", ["overconfident", "underconfident", "shifted", "wavy"])
@pytest.mark.parametrize("shape", [(1.0, 1.0), (4.0, 1.0), (5.0, 5.0)])
def test_truth_and_maps_are_those_of_make_scores(kind, shape):
    names = {(1.0, 1.0): "uniform", (4.0, 1.0): "skewed", (5.0, 5.0): "bell"}
    d = next(d for d in distributions("beta") if d.name == f"{names[shape]}-{kind}")
    other = make_scores(1, kind, a=shape[0], b=shape[1]).truth
    assert d.truth("class-specific").value == pytest.approx(other, abs=1e-7)
    s = np.linspace(0.01, 0.99, 99)
    np.testing.assert_allclose(d.curve(logit(s)), true_map(s, kind), atol=1e-14)


class Square(IdentityMap):
    def __call__(self, z):
        return expit(z) ** 2


def test_closed_forms():
    """Of a uniform p: E|p² - p| = 1/6, E(p² - p)² = 1/30, E p² = 1/3."""
    d = BinaryDistribution("square", "beta", ScoreLaw((Beta(1.0, 1.0),)), Square())
    assert d._direct(1) == pytest.approx(1 / 6, abs=1e-12)
    assert d._direct(2) ** 2 == pytest.approx(1 / 30, abs=1e-12)
    assert d.base_rate == pytest.approx(1 / 3, abs=1e-12)


@pytest.mark.parametrize("d", CALIBRATED, ids=str)
def test_calibrated_distributions_have_truth_0_and_outcomes_that_agree(d):
    assert {d.truth(notion, norm) for notion in d.notions for norm in (1, 2)} == {(0.0, 0.0)}
    s, o = d.sample(1, 40_000, np.random.default_rng(1))
    assert d._direct(1) < 1e-15
    total, spread = (o - s).sum(), np.sqrt((s * (1 - s)).sum())
    assert abs(total) < 4 * spread


@pytest.mark.parametrize("d", EVERY, ids=str)
def test_outcomes_follow_the_map_and_base_rate(d):
    """Cells of equal mass: residuals from the map are 0 on average, in every cell."""
    s, o = d.sample(1, 30_000, np.random.default_rng(2))
    s, o = s.ravel(), o.ravel()
    chance = d.curve(logit(np.clip(s, 1e-300, 1 - 1e-16)))
    for atom in d.law.atoms:
        chance[s == atom.score] = atom.frequency
    chi = 0.0
    for cell in np.array_split(np.argsort(s), 10):
        variance = (chance[cell] * (1 - chance[cell])).sum()
        chi = max(chi, abs((o[cell] - chance[cell]).sum()) / max(np.sqrt(variance), 1.0))
    assert chi < 4.5
    assert abs(o.mean() - d.base_rate) < 4.5 * np.sqrt(d.base_rate * (1 - d.base_rate) / 30_000)
    assert s.min() >= d.law.low
    assert s.max() <= 1


@pytest.mark.parametrize("d", EVERY, ids=str)
def test_scores_follow_the_law(d):
    """Kolmogorov-Smirnov with a fixed seed; rounding to float32 and atoms are out of the way first."""
    x, kind = d.law.draw(15_000, np.random.default_rng(3))
    inside = kind == -1
    assert abs((~inside).mean() - d.law.atom_mass) < 0.02
    bare = ScoreLaw(d.law.components, d.law.weights, (), d.law.low)
    assert kstest(bare.scores(x[inside]), bare.cdf).pvalue > 1e-4
    for i, atom in enumerate(d.law.atoms):
        assert abs((kind == i).mean() - atom.mass) < 0.02


@pytest.mark.parametrize("d", EVERY, ids=str)
def test_densities_integrate_to_the_mass_without_atoms(d):
    total = integrate(d.law.density, d.law.support(), d.law.scale())
    assert total == pytest.approx(1 - d.law.atom_mass, abs=1e-12)


def test_components_against_scipy():
    t = np.array([0.001, 0.2, 0.5, 0.9, 0.9999])
    x = logit(t)
    np.testing.assert_allclose(Beta(0.3, 4).density(x), scipy_beta(0.3, 4).pdf(t) * t * (1 - t), rtol=1e-10)
    np.testing.assert_allclose(Beta(0.3, 4).cdf(t), scipy_beta(0.3, 4).cdf(t), rtol=1e-12)
    np.testing.assert_allclose(LogitNormal(1, 2).density(x), norm(1, 2).pdf(x), rtol=1e-12)
    np.testing.assert_allclose(LogitNormal(1, 2).cdf(t), norm(1, 2).cdf(x), rtol=1e-12)


def test_cdf_counts_atoms_and_the_low_end():
    law = ScoreLaw((Beta(1.0, 1.0),), (1.0,), (Atom(0.5, 0.2, 0.5),), low=0.2)
    np.testing.assert_allclose(law.cdf(np.array([0.1, 0.2, 0.499999999, 0.5, 1.0])), [0, 0, 0.3, 0.5, 1], atol=1e-8)
    z = np.array([-1.0, 0.0, 3.0, 20.0])
    np.testing.assert_allclose(law.logits(law.positions(z)), z, rtol=1e-9, atol=1e-12)


def test_beta_tails_are_drawn_beyond_the_resolution_of_a_score():
    x = Beta(0.01, 0.01).draw(4000, np.random.default_rng(0))
    assert np.isfinite(x).all()
    assert (np.abs(x) > 40).mean() > 0.5
    assert np.abs(x).max() <= 700


@pytest.mark.parametrize("d", distributions("imbalance"), ids=str)
def test_imbalance_has_a_base_rate_of_one_percent(d):
    assert d.base_rate == pytest.approx(0.01, abs=1e-9)


def test_every_track_has_calibrated_and_miscalibrated_members():
    for track in SCALAR:
        members = distributions(track)
        assert len({d.name for d in members}) == len(members)
        assert {d.calibrated for d in members} == {True, False}
        assert all(d.track == track for d in members)
    assert len(distributions("consistency")) == 4


def test_cancelling_gaps_read_exactly_0():
    """A wavy map is odd about one half: on a symmetric law the winner's gaps cancel, and no rounding is left over."""
    d = next(d for d in distributions("beta") if d.name == "uniform-wavy")
    assert d.truth("confidence").value == 0.0
    assert d.truth("class-specific").value > 0.04
    assert not d.calibrated


def test_networks_fit_their_data():
    for row in fitted():
        fit = row["fit_data_vs_law"]
        assert fit["distance"] < 0.015, row["name"]
        for key, bound in (("mean_score", 0.003), ("rate", 0.003), ("ece15", 0.005)):
            data, law = fit[key]
            assert abs(data - law) < bound, (row["name"], key)
    by_name = {d.name: d for d in distributions("networks")}
    assert len(by_name) == 24
    # What is known of the data: 15-bin ECE .0537, .1079, .1422, and far less after temperature scaling.
    for name, known in (("wideresnet", 0.0537), ("lenet5", 0.1079), ("densenet", 0.1422)):
        assert abs(by_name[f"{name}-raw-confidence"].truth("confidence").value - known) < 0.003
        scaled = by_name[f"{name}-scaled-confidence"].truth("confidence").value
        assert 0 < scaled < 0.015
        assert by_name[f"{name}-ideal-confidence"].calibrated
    s, _ = by_name["wideresnet-raw-confidence"].sample(1, 20_000, np.random.default_rng(0))
    assert 0.15 < (s == 1).mean() < 0.25
    assert by_name["densenet-raw-confidence"].n_classes == 100


@pytest.mark.parametrize("d", [distributions(track)[1] for track in SCALAR], ids=str)
def test_same_seed_same_sample(d):
    one, two = (d.sample(3, 40, np.random.default_rng(5)) for _ in range(2))
    other = d.sample(3, 40, np.random.default_rng(6))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert (one[0] != other[0]).any()
    assert one[0].shape == one[1].shape == (3, 40)


def test_scores_fold_at_one_half():
    d = distributions("beta")[1]
    scores, outcomes = np.array([[0.2, 0.9, 0.5]]), np.array([[0, 0, 1]])
    (folded,) = d.problems(scores, outcomes, "confidence")
    np.testing.assert_allclose(folded.scores, [0.8, 0.9, 0.5])
    # At one half the first class wins, so that outcome 1 is a miss; 0.2 means class 0, which came true.
    np.testing.assert_array_equal(folded.outcomes, [1, 0, 0])
    assert folded.domain == (0.5, 1.0)
    (plain,) = d.problems(scores, outcomes, "class-specific")
    np.testing.assert_allclose(plain.scores, [0.2, 0.9, 0.5])
    assert plain.domain == (0.0, 1.0)


def test_confidences_lie_in_their_domain():
    d = next(d for d in distributions("networks") if d.name == "densenet-raw-confidence")
    (samples,) = d.problems(*d.sample(2, 500, np.random.default_rng(0)), "confidence")
    assert samples.domain == (0.01, 1.0)
    assert samples.scores.min() >= 0.01


def test_spline_is_linear_outside_its_knots_and_constant_beyond_its_limits():
    spline = Spline((-2.0, 0.0, 1.0, 3.0), (0.1, 0.8, 0.5, -0.4), (-10.0, 10.0))
    for z in (np.linspace(-9, -3, 7), np.linspace(4, 9, 6)):
        np.testing.assert_allclose(np.diff(logit(spline(z)), 2), 0, atol=1e-9)
    assert spline(np.array([10.0])) == spline(np.array([500.0]))
    assert spline(np.array([-np.inf])) == spline(np.array([-10.0]))
    middle = np.linspace(-2, 3, 50)
    assert np.abs(np.diff(logit(spline(middle)), 2)).max() > 1e-4
    assert spline_basis(middle, spline.knots).shape == (50, 4)
    assert spline.breaks == (-2.0, 0.0, 1.0, 3.0, -10.0, 10.0)


def test_integral_splits_at_zeros_that_lie_on_nodes():
    value = integrate_gap(np.sin, np.ones_like, (-2 * np.pi, 2 * np.pi), 1.0, 1)
    assert value == pytest.approx(8.0, abs=1e-12)
    # 401 nodes, the middle one exactly 0, which is inside of one of the five panels that there would be without it.
    assert integrate_gap(lambda x: x, np.ones_like, (-1.1, 1.1), 1.0, 1) == pytest.approx(1.21, abs=1e-13)
    assert integrate_gap(np.sin, np.ones_like, (-2 * np.pi, 2 * np.pi), 1.0, 2) == pytest.approx(2 * np.pi, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beta(0, 1), "a must be a number above 0; got 0"),
        (lambda: LogitNormal(0, -1), "sd must be a number above 0; got -1"),
        (lambda: Atom(1.5, 0.1, 0.1), r"score of an Atom must be a number >= 0 and <= 1; got 1.5"),
        (lambda: ScoreLaw((Beta(1, 1),), (0.5, 0.5)), "weights must have one value per component"),
        (lambda: ScoreLaw((Beta(1, 1),), (0.5,)), "sum to 1"),
        (
            lambda: ScoreLaw((Beta(1, 1),), (1.0,), (Atom(0, 0.6, 0), Atom(1, 0.6, 1))),
            "atoms must have a total mass of at most 1",
        ),
        (lambda: ScoreLaw((Beta(1, 1),), low=1.0), "low must be a number >= 0 and below 1; got 1.0"),
        (lambda: Wavy(0.3), "amplitude must be a number >= -0.25 and <= 0.25; got 0.3"),
        (lambda: Spline((0.0, 1.0), (0.0, 1.0)), "knots must be three or more"),
        (lambda: Spline((0.0, 1.0, 2.0), (0.0, 1.0)), r"coefficients must have one value per knot \(3\); got 2"),
        (lambda: distributions("paper"), "track must be one of 'beta'"),
        (lambda: distributions("beta")[1].truth("canonical"), "notion of 'uniform-overconfident' must be one of"),
        (lambda: distributions("beta")[1].truth("confidence", np.inf), "norm must be a finite number >= 1; got inf"),
        (lambda: BinaryDistribution("x", "x", ScoreLaw((Beta(1, 1),), low=0.5), IdentityMap()), "must have low=0"),
        (lambda: integrate_gap(np.sin, np.cos, (1.0, 1.0), 1.0, 1), r"support must be an interval"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_maps_at_known_points():
    z = logit(np.array([0.2, 0.5, 0.9]))
    np.testing.assert_allclose(IdentityMap()(z), [0.2, 0.5, 0.9])
    np.testing.assert_allclose(BetaMap()(z), [0.2, 0.5, 0.9])
    np.testing.assert_allclose(BetaMap(2.0, 1.0, 0.0)(z), [0.2**2 / (0.2**2 + 0.8), 1 / 3, 0.81 / 0.91])
    np.testing.assert_allclose(Logistic(2.0)(z)[1:], [0.5, 0.81 / 0.82])
    np.testing.assert_allclose(Rippled(0.5, np.pi / 2)(np.array([1.0])), expit(1.5))
