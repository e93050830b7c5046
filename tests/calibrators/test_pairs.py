"""`OneVsOne`: couplings against general optimisers, and rows written out."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from calibrant import calibrators as c
from calibrant.calibrators.multiclass import coupled, likeliest

from .table import several


def answers(seed, k, sharp):
    rng = np.random.default_rng(seed)
    r = 1 / (1 + np.exp(-rng.normal(0, sharp, (k, k))))
    r = np.triu(r, 1) + np.tril(1 - r.T, -1)
    n = rng.integers(1, 50, (k, k))
    return r, np.triu(n, 1) + np.triu(n, 1).T


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(3, 6), st.sampled_from([0.5, 2.0]))
def test_couplings_by_a_general_optimiser(seed, k, sharp):
    r, n = answers(seed, k, sharp)
    given_r = np.where(np.eye(k, dtype=bool), 0.5, r)[None]

    def quadratic(p):
        return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(k) for j in range(k) if i != j)

    def divergence(u):
        return -sum(n[i, j] * r[i, j] * log_softmax([u[i], u[j]])[0] for i in range(k) for j in range(k) if i != j)

    ours = coupled(given_r)
    one = {"type": "eq", "fun": lambda p: p.sum() - 1}
    options = {"ftol": 1e-15, "maxiter": 500}
    found = minimize(
        quadratic, np.full(k, 1 / k), bounds=[(0, 1)] * k, constraints=[one], method="SLSQP", options=options
    )
    assert quadratic(ours[0]) <= found.fun + 1e-9
    np.testing.assert_allclose(ours[0], found.x, atol=1e-3)
    theirs = likeliest(given_r, n / n.max(), ours)
    found = minimize(divergence, np.zeros(k), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(theirs[0], softmax(found.x), atol=1e-5)
    # Hastie & Tibshirani's condition: each class has its rows' share of its pairs.
    mu = theirs[0][:, None] / (theirs[0][:, None] + theirs[0])
    np.testing.assert_allclose((n * r).sum(axis=1), (n * mu).sum(axis=1) - np.diag(n * mu), atol=1e-6 * n.sum())


@pytest.mark.parametrize("couple", [coupled, lambda r: likeliest(r, np.ones((4, 4)), coupled(r))], ids=["q", "l"])
def test_answers_that_agree_are_kept(couple):
    p = np.random.default_rng(0).dirichlet(np.ones(4), 200)
    np.testing.assert_allclose(couple(p[:, :, None] / (p[:, :, None] + p[:, None, :])), p, atol=1e-9)


def test_three_classes_by_hand():
    """r₀₁ = r₁₂ = r₂₀ = 0.7: a circle, which is a third each; and r₀₁ = r₀₂ = 0.8, r₁₂ = 0.5: 2/3, 1/6, 1/6."""
    circle = np.array([[[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]]])
    first = np.array([[[0.5, 0.8, 0.8], [0.2, 0.5, 0.5], [0.2, 0.5, 0.5]]])
    for r, want in ((circle, [1 / 3, 1 / 3, 1 / 3]), (first, [2 / 3, 1 / 6, 1 / 6])):
        np.testing.assert_allclose(coupled(r)[0], want)
        np.testing.assert_allclose(likeliest(r, np.ones((3, 3)), coupled(r))[0], want)


@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
def test_rows_written_out(kind):
    p, y, _ = several(300, 4, 0, 0.6)
    scores = p if kind == "probability" else np.log(p)
    w = np.random.default_rng(1).integers(1, 4, 300)
    fitted = c.OneVsOne(c.BetaCalibration(), input=kind).fit(scores, y, sample_weight=w)
    r = np.full((300, 4, 4), 0.5)
    for i, j in combinations(range(4), 2):
        s = p[:, i] / (p[:, i] + p[:, j]) if kind == "probability" else scores[:, i] - scores[:, j]
        rows = (y == i) | (y == j)
        one = c.BetaCalibration(input=kind).fit(s[rows], (y[rows] == i).astype(int), w[rows])
        r[:, i, j] = one.predict_proba(s)[:, 1]
        r[:, j, i] = 1 - r[:, i, j]
    np.testing.assert_allclose(fitted.predict_proba(scores), coupled(r), atol=1e-9)
    assert fitted.weights_.tolist() == [w[(y == i) | (y == j)].sum() for i, j in combinations(range(4), 2)]


def test_two_classes_are_one_pair_and_json_keeps_it():
    p, y, _ = several(200, 2)
    two = c.OneVsOne(c.PlattScaling()).fit(p, y).predict_proba(p)
    np.testing.assert_allclose(two, c.PlattScaling().fit(p, y).predict_proba(p), atol=1e-9)
    p, y, _ = several(200, 3)
    fitted = c.OneVsOne(c.PlattScaling(), "likelihood").fit(p, y)
    np.testing.assert_array_equal(c.from_dict(c.to_dict(fitted)).predict_proba(p), fitted.predict_proba(p))


def test_a_pair_without_rows_has_the_map_of_all_pairs():
    p, y, _ = several(400, 5, 0, 0.5)
    fitted = c.OneVsOne(c.PlattScaling(), labels=list(range(5))).fit(p, y % 3)
    assert fitted.weights_[-1] == 0
    assert 0.1 < fitted.calibrators_[-1].coef_ < 1
    assert np.isfinite(fitted.predict_proba(p)).all()


@pytest.mark.parametrize(
    ("calibrator", "error", "words"),
    [
        (c.OneVsOne(c.TemperatureScaling()), TypeError, "calibrator must be a binary calibrator"),
        (c.OneVsOne(c.PlattScaling(), "sum"), ValueError, "coupling must be one of"),
    ],
)
def test_bad_parameters(calibrator, error, words):
    p, y, _ = several(60, 5, 0)
    with pytest.raises(error, match=words):
        calibrator.fit(p, y)
