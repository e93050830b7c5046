"""Track "dirichlet": truths of one score against brute force, closed forms, symmetry; the law of the draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, kstest

from calibrant.benchmark.tracks import DirichletDistribution, distributions
from calibrant.benchmark.tracks.dirichlet_track import dirichlet
from calibrant.benchmark.tracks.true_maps import Confused, Softened

EVERY = {d.name: d for d in distributions("dirichlet")}
ONE_OF_EACH = [
    "k3-flat-overconfident",
    "k3-unequal-tilted",
    "k5-sharp-tilted",
    "k5-unequal-confused",
    "k5-flat-underconfident",
    "k10-sharp-confused",
    "k10-sharp-underconfident",
]


def brute(d: DirichletDistribution, notion: str, norm: int, n: int = 200_000, bins: int = 80) -> tuple[float, float]:
    """Mean of sign · (q - s) over one half of the draws, the sign in bins of equal mass from the other half.

    For norm 2 the product of both halves' means in each bin. The vectors' own ``q`` stands for the labels.
    """
    p, _ = d.sample(1, n, np.random.default_rng(11))
    p = p[0]
    q = d.curve(p)
    powers, errors = [], []
    columns = range(d.n_classes) if notion == "classwise" else [None]
    for k in columns:
        pick = p.argmax(axis=1) if k is None else np.full(n, k)
        s, gap = p[np.arange(n), pick], (q - p)[np.arange(n), pick]
        rank = np.empty(n, dtype=int)
        rank[np.argsort(s)] = np.arange(n)
        cell = rank * bins // n
        half = np.arange(n) % 2 == 0
        size = [np.bincount(cell[h], minlength=bins) for h in (half, ~half)]
        mean = [np.bincount(cell[h], gap[h], minlength=bins) / c for h, c in zip((half, ~half), size, strict=True)]
        signed = np.where(half, np.sign(mean[1])[cell], np.sign(mean[0])[cell]) * gap
        if norm == 1:
            powers.append(signed.mean())
            errors.append(signed.std() / np.sqrt(n))
        else:
            powers.append((mean[0] * mean[1] * (size[0] + size[1])).sum() / n)
            errors.append(2 * (np.abs(mean[0])[cell] * gap).std() / np.sqrt(n))
    return float(np.mean(powers)), float(np.sqrt(np.sum(np.square(errors))) / len(powers))


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize("notion", ["confidence", "classwise"])
@pytest.mark.parametrize("norm", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_truth_is_what_brute_force_finds(name, notion, norm):
    d = EVERY[name]
    truth = d.truth(notion, norm)
    power, error = brute(d, notion, norm)
    own = norm * truth.value ** (norm - 1) * truth.standard_error
    # 4 standard errors, and 0.5 % for gaps that change within a bin or that half the draws give the wrong sign.
    assert abs(truth.value**norm - power) < 4 * np.hypot(error, own) + 0.005 * power


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_standard_errors_are_at_most_a_fifth_of_a_percent(name):
    for truth in (EVERY[name].truth(notion, norm) for notion in EVERY[name].notions for norm in (1, 2)):
        assert 0 < truth.standard_error < 0.002 * truth.value


def test_confused_classwise_in_closed_form():
    """``E[q_k | p_k = s] = m_kk s + (1 - s) c``, and p_k of a flat law on K = 5 classes is Beta(1, 4)."""
    d = EVERY["k5-flat-confused"]
    # Class k is left with probability 0.15 and entered from one of the four others: c = 0.15 / 4.
    gap = lambda s: abs(0.85 * s + (1 - s) * 0.15 / 4 - s) * beta(1, 4).pdf(s)  # noqa: E731
    expected = quad(gap, 0, 0.2)[0] + quad(gap, 0.2, 1)[0]
    truth = d.truth("classwise")
    assert abs(truth.value - expected) < 4 * truth.standard_error + 1e-6


def test_two_of_three_classes_in_closed_form():
    """Three flat classes: given ``p_k = s`` the share V of one other is uniform, so E over V is one quadrature."""
    d = EVERY["k3-flat-overconfident"]

    def probability(s: float) -> float:
        return quad(lambda v: s**0.6 / (s**0.6 + (1 - s) ** 0.6 * (v**0.6 + (1 - v) ** 0.6)), 0, 1)[0]

    nodes, weights = np.polynomial.legendre.leggauss(200)
    s = (nodes + 1) / 2
    gaps = np.array([abs(probability(t) - t) for t in s])
    expected = float((weights / 2 * gaps * beta(1, 2).pdf(s)).sum())
    truth = d.truth("classwise")
    assert abs(truth.value - expected) < 4 * truth.standard_error + 2e-5


@pytest.mark.slow
def test_renaming_classes_changes_nothing():
    alphas, bias = (0.3, 0.9, 2.0), (0.4, -0.3, 0.1)
    order = [2, 0, 1]
    one = DirichletDistribution("a", "dirichlet", (alphas,), (1.0,), Softened(0.7, bias))
    two = DirichletDistribution(
        "b", "dirichlet", (tuple(alphas[i] for i in order),), (1.0,), Softened(0.7, tuple(bias[i] for i in order))
    )
    for notion in ("confidence", "classwise"):
        a, b = one.truth(notion), two.truth(notion)
        assert abs(a.value - b.value) < 4 * np.hypot(a.standard_error, b.standard_error) + 1e-9


def test_a_mixture_of_equal_laws_is_the_law():
    law = EVERY["k3-flat-overconfident"]
    split = DirichletDistribution("x", "dirichlet", law.alphas * 2, (0.3, 0.7), law.curve)
    assert split.truth("classwise").value == pytest.approx(law.truth("classwise").value, rel=1e-12)
    assert split.truth("confidence").value == pytest.approx(law.truth("confidence").value, rel=1e-12)


def test_winning_has_probability_one():
    """The density of the confidence, a sum over classes of winning, integrates to 1."""
    from calibrant.benchmark.tracks import dirichlet_track as module

    for name in ("k3-sharp-tilted", "k5-unequal-confused", "k10-flat-overconfident"):
        _, density = EVERY[name]._gaps["confidence"]
        assert (density.mean(axis=-1)[0] * module._STEP).sum() == pytest.approx(1, abs=2e-3)
        _, each = EVERY[name]._gaps["classwise"]
        np.testing.assert_allclose((each.mean(axis=-1) * module._STEP).sum(axis=1), 1 / len(each), atol=1e-6)


@pytest.mark.parametrize("name", [n for n in EVERY if n.endswith("calibrated")])
def test_calibrated_vectors(name):
    d = EVERY[name]
    assert d.calibrated
    assert {d.truth(notion, norm) for notion in d.notions for norm in (1, 2)} == {(0.0, 0.0)}
    p, y = d.sample(1, 40_000, np.random.default_rng(1))
    hits = y[0][:, None] == np.arange(d.n_classes)
    z = (hits - p[0]).sum(axis=0) / np.sqrt((p[0] * (1 - p[0])).sum(axis=0))
    assert np.abs(z).max() < 4.2


@pytest.mark.parametrize("name", list(EVERY)[::4])
def test_scores_and_labels_follow_their_laws(name):
    d = EVERY[name]
    p, y = d.sample(2, 10_000, np.random.default_rng(2))
    assert p.shape == (2, 10_000, d.n_classes)
    assert y.shape == (2, 10_000)
    p, y = p.reshape(-1, d.n_classes), y.ravel()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    for k in (0, d.n_classes - 1):

        def cdf(s, k=k):
            parts = [w * beta(a[k], sum(a) - a[k]).cdf(s) for a, w in zip(d.alphas, d.weights, strict=True)]
            return sum(parts)

        assert kstest(p[:, k], cdf).pvalue > 1e-4
        q = d.curve(p)[:, k]
        assert abs(((y == k) - q).sum()) < 4.5 * np.sqrt((q * (1 - q)).sum())


@pytest.mark.slow
def test_same_seed_same_sample():
    d = EVERY["k5-sharp-tilted"]
    one, two = (d.sample(2, 30, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    again = DirichletDistribution(d.name, d.track, d.alphas, d.weights, d.curve)
    assert again.truth("classwise") == d.truth("classwise")


def test_problems_of_the_notions():
    d = EVERY["k3-flat-calibrated"]
    p = np.array([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]]])
    y = np.array([[0, 1, 1]])
    (winner,) = d.problems(p, y, "confidence")
    np.testing.assert_allclose(winner.scores, [0.5, 0.8, 0.4])
    np.testing.assert_array_equal(winner.outcomes, [1, 0, 0])  # the first class wins the tie at 0.4
    assert winner.domain == (1 / 3, 1.0)
    each = d.problems(p, y, "classwise")
    assert len(each) == 3
    np.testing.assert_allclose(each[1].scores, [0.25, 0.1, 0.4])
    np.testing.assert_array_equal(each[1].outcomes, [0, 1, 1])


def test_softmax_and_confusion_at_known_vectors():
    p = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(Softened(1.0, (0.0, 0.0, 0.0))(p), p)
    np.testing.assert_allclose(Softened(2.0, (0.0, 0.0, 0.0))(p)[0], np.array([4, 9, 25]) / 38)
    np.testing.assert_allclose(Softened(1.0, (np.log(2), 0.0, 0.0))(p)[0], np.array([4, 3, 5]) / 12)
    np.testing.assert_allclose(Confused(((1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.0, 0.2, 0.8)))(p)[0], [0.35, 0.25, 0.4])


@pytest.mark.parametrize("curve", [Softened(0.6, (0.5, -0.2, 0.1, 0.0)), Softened(1.7, (0.5, -0.2, 0.1, 0.0))])
def test_a_map_needs_only_its_statistic(curve):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.3] * 4, 500)
    confused = Confused(tuple(map(tuple, rng.dirichlet([1.0] * 4, 4))))
    for each in (curve, confused):
        for k in range(4):
            s = p[:, k]
            v = np.delete(p, k, axis=1) / (1 - s)[:, None]
            statistic = each.statistic(k, v)
            low, high = each.bounds(k)
            assert (statistic >= low - 1e-12).all()
            assert (statistic <= high + 1e-12).all()
            np.testing.assert_allclose(each.given(k, np.log(s) - np.log(v.sum(1) * (1 - s)), statistic), each(p)[:, k])


def test_underflow_is_redrawn():
    draw = dirichlet(np.full((2000, 3), 1e-3), np.random.default_rng(0))
    assert np.isfinite(draw).all()
    np.testing.assert_allclose(draw.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Softened(0.0, (0.0,)), "power must be a number above 0; got 0"),
        (lambda: Confused(((0.5, 0.4), (0.5, 0.5))), "matrix must be square"),
        (lambda: DirichletDistribution("x", "d", ((1.0, 1.0),), (1.0,), Softened(1.0, (0.0, 0.0))), "three or more"),
        (
            lambda: DirichletDistribution("x", "d", ((1.0,) * 3,), (0.5,), Softened(1.0, (0.0,) * 3)),
            "weights must have one value",
        ),
        (lambda: EVERY["k3-flat-calibrated"].truth("class-specific"), "notion of 'k3-flat-calibrated' must be one of"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
