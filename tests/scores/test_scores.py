"""Proper scoring rules: values by hand, propriety, conventions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

import calibrant as cal
from calibrant.scores import BetaFamily, Brier, CostWeighted, Log, Spherical, mean_score, score_samples

RULES = [Brier(), Brier("half"), Log(), Spherical()]
BINARY = [BetaFamily(), BetaFamily(0.5, 2.0), BetaFamily(3.0, 0.4), CostWeighted(0.3)]


def vectors(rng, n, k):
    return rng.dirichlet(np.ones(k), n)


@pytest.mark.parametrize("rule", RULES + BINARY, ids=repr)
@given(st.integers(0, 2**32 - 1))
def test_saying_what_one_thinks_is_best(rule, seed):
    rng = np.random.default_rng(seed)
    k = 2 if rule.binary else int(rng.integers(2, 6))
    p, q = vectors(rng, 20, k), vectors(rng, 20, k)
    assert (rule.expected(p, q) >= rule.expected(q, q) - 1e-12).all()
    np.testing.assert_allclose(rule.expected(p, np.eye(k)[np.zeros(20, int)]), rule.losses(p, np.zeros(20, int)))


def test_by_hand():
    p = np.array([[0.6, 0.3, 0.1]])
    assert Brier().table(p)[0].tolist() == pytest.approx([0.26, 0.86, 1.26])
    assert Brier("half").losses(p, np.array([1]))[0] == pytest.approx(0.43)
    assert Log().losses(p, np.array([2]))[0] == pytest.approx(-np.log(0.1))
    assert Spherical().losses(p, np.array([0]))[0] == pytest.approx(1 - 0.6 / np.sqrt(0.46))
    assert CostWeighted(0.25).table(np.array([[0.5, 0.5], [0.9, 0.1], [0.75, 0.25]])).tolist() == [
        [0.25, 0.0],
        [0.0, 0.75],
        [0.125, 0.375],
    ]


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (3.0, 0.4)])
def test_beta_family_is_its_integral(a, b):
    for p in (0.1, 0.5, 0.9):
        fails, happens = BetaFamily(a, b).table(np.array([[1 - p, p]]))[0]
        assert happens == pytest.approx(quad(lambda c: c ** (a - 1) * (1 - c) ** b, p, 1)[0], rel=1e-7)
        assert fails == pytest.approx(quad(lambda c: c**a * (1 - c) ** (b - 1), 0, p)[0], rel=1e-7)


def test_limits_of_the_beta_family():
    p = np.random.default_rng(0).random((50, 1))
    p = np.hstack([1 - p, p])
    np.testing.assert_allclose(BetaFamily(1, 1).table(p), Brier("half").table(p) / 2, atol=1e-14)
    near = BetaFamily(1e-9, 1e-9).table(p)
    np.testing.assert_allclose(near, Log().table(p), rtol=1e-6)


def test_quadratic_score_is_a_mixture_of_elementary_ones():
    p = np.array([[0.35, 0.65]])
    thresholds = (np.arange(20_000) + 0.5) / 20_000
    mixed = np.mean([CostWeighted(float(c)).table(p)[0] for c in thresholds], axis=0)
    np.testing.assert_allclose(2 * mixed, Brier("half").table(p)[0], atol=1e-7)


def test_means_are_scikit_learns():
    rng = np.random.default_rng(0)
    p, w = rng.random(300), rng.random(300)
    y = (rng.random(300) < p).astype(int)
    assert cal.brier_score(y, p, scale="half", sample_weight=w) == pytest.approx(
        brier_score_loss(y, p, sample_weight=w)
    )
    assert cal.brier_score(y, p) == pytest.approx(2 * brier_score_loss(y, p))
    assert cal.log_loss(y, p, sample_weight=w) == pytest.approx(sklearn_log_loss(y, p, sample_weight=w))
    P = vectors(rng, 300, 4)
    z = rng.integers(0, 4, 300)
    assert cal.log_loss(z, P) == pytest.approx(sklearn_log_loss(z, P))
    assert cal.brier_score(z, P) == pytest.approx(((P - np.eye(4)[z]) ** 2).sum(axis=1).mean())
    assert cal.brier_score(z, P) == pytest.approx(cal.report(z, P).brier)


@pytest.mark.parametrize("rule", ["brier", "log-loss", "spherical", BetaFamily(0.5, 2.0), CostWeighted(0.3)], ids=str)
def test_shapes_labels_and_weights(rule):
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = np.where(rng.random(200) < p, "yes", "no")
    one = score_samples(y, p, rule, pos_label="yes")
    both = score_samples(y, np.column_stack([1 - p, p]), rule, labels=["no", "yes"])
    np.testing.assert_allclose(2 * one if rule == "brier" else one, both)
    if rule == "brier" or not getattr(rule, "binary", False):  # of the others the classes have different costs
        np.testing.assert_allclose(one, score_samples(y, 1 - p, rule, pos_label="no"))
    else:
        flipped = {BetaFamily(0.5, 2.0): BetaFamily(2.0, 0.5), CostWeighted(0.3): CostWeighted(0.7)}[rule]
        np.testing.assert_allclose(one, score_samples(y, 1 - p, flipped, pos_label="no"))
    w = rng.integers(0, 4, 200)
    rows = np.repeat(np.arange(200), w)
    assert mean_score(y, p, rule, pos_label="yes", sample_weight=w) == pytest.approx(
        mean_score(y[rows], p[rows], rule, pos_label="yes")
    )


def test_infinite_log_loss_is_said():
    assert cal.log_loss([0, 1], [0.5, 0.0]) == np.inf
    assert cal.log_loss([0, 1], [0.5, 0.0], sample_weight=[1, 0]) == pytest.approx(np.log(2))
    assert score_samples([0, 1], [0.5, 0.0], "log-loss").tolist() == [pytest.approx(np.log(2)), np.inf]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Brier("whole"), "scale must be one of"),
        (lambda: BetaFamily(0), "alpha must be"),
        (lambda: BetaFamily(1, np.inf), "beta must be"),
        (lambda: CostWeighted(1.0), "threshold must lie"),
        (lambda: cal.brier_score([0, 1], [0.2, 0.3], scale="x"), "scale must be one of"),
        (lambda: score_samples([0, 1], [0.2, 0.3], "x"), "score must be a scoring rule or one of"),
        (lambda: score_samples([0, 1, 2], np.full((3, 3), 1 / 3), CostWeighted(0.5)), "two classes; got 3"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make()
