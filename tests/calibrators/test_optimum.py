"""Fits end at the optimum of their objective, as another solver finds it."""

from types import FunctionType

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

from calibrant import calibrators as c
from calibrant.exceptions import ConvergenceWarning

from .table import several, two


def tight(objective, start, bounds=None):
    """Least value that SciPy finds from several starts, without gradients of ours."""
    best = np.inf
    for scale in (1.0, 0.3):
        found = minimize(
            objective, scale * start, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-11},
        )  # fmt: skip
        best = min(best, found.fun)
    return best


def log_loss(logits, y, w=None):
    top = logits.max(axis=1)
    own = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top - logits[np.arange(len(y)), y]
    return np.average(own, weights=w)


def binary_loss(z, o, w=None):
    return np.average(np.logaddexp(0, z) - o * z, weights=w)


PROBLEMS = [(200, False), (2000, False), (2000, True), (20_000, False)]


def binary_problem(n, ties):
    s, y, _ = two(n, n, 0.6)
    if ties:
        s = np.round(s, 1)  # with exact 0 and 1
    w = np.random.default_rng(0).random(n)
    return s, y, w


@pytest.mark.parametrize(("n", "ties"), PROBLEMS)
def test_platt_is_the_optimum(n, ties):
    s, y, w = binary_problem(n, ties)
    z = logit(s.clip(1e-12, 1 - 1e-12))
    fitted = c.PlattScaling(smoothing=False, shrinkage=0).fit(s, y, w)
    reached = binary_loss(fitted.coef_ * z + fitted.intercept_, y, w)
    assert reached <= tight(lambda t: binary_loss(t[0] * z + t[1], y, w), np.array([1.0, 0.0])) + 1e-8
    assert fitted.gradient_norm_ < 1e-9


def test_platt_targets_are_those_of_scikit_learn():
    """On margins, scikit-learn's sigmoid calibration of a prefit model fits the same map (to its own tolerance)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = (rng.random(600) < expit(2 * x[:, 0])).astype(int)
    from sklearn.frozen import FrozenEstimator

    model = LogisticRegression().fit(x[:300], y[:300])
    peer = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid").fit(x[300:], y[300:])
    ours = c.PlattScaling(shrinkage=0, input="margin").fit(model.decision_function(x[300:]), y[300:])
    got = ours.predict_proba(model.decision_function(x))[:, 1]
    np.testing.assert_allclose(got, peer.predict_proba(x)[:, 1], atol=2e-4)


@pytest.mark.parametrize("parameters", ["abm", "am", "ab", "a"])
@pytest.mark.parametrize(("n", "ties"), PROBLEMS)
@pytest.mark.parametrize("power", [0.6, -0.5])
def test_beta_is_the_constrained_optimum(n, ties, parameters, power):
    """With power -0.5 scores are upside down and the constraints bind."""
    s, y, _ = two(n, n, power)
    if ties:
        s = np.round(s, 1)
    up, down = np.log(s.clip(1e-12)), np.log((1 - s).clip(1e-12))

    def logits(t):
        if parameters == "abm":
            a, b, m = t[0], t[1], t[2]
        elif parameters == "am":
            a, b, m = t[0], t[0], t[1]
        elif parameters == "ab":
            a, b = t
            m = (a - b) * np.log(2)
        else:
            a = b = t[0]
            m = 0.0
        return a * up - b * down + m

    free = {"abm": 2, "am": 1, "ab": 2, "a": 1}[parameters]
    start = np.concatenate([np.ones(free), np.zeros(1 if "m" in parameters else 0)])
    bounds = [(0, None)] * free + [(None, None)] * (len(start) - free)
    fitted = c.BetaCalibration(parameters, shrinkage=0).fit(s, y)
    reached = binary_loss(fitted.a_ * up - fitted.b_ * down + fitted.c_, y)
    assert reached <= tight(lambda t: binary_loss(logits(t), y), start, bounds) + 1e-8
    assert min(fitted.a_, fitted.b_) >= 0
    if fitted.a_ + fitted.b_ > 0 and np.isfinite(fitted.m_):
        assert fitted.predict_proba([fitted.m_])[0, 1] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(("n", "ties"), PROBLEMS)
def test_quadratic_is_the_optimum(n, ties):
    s, y, w = binary_problem(n, ties)
    z = logit(s.clip(1e-12, 1 - 1e-12))
    fitted = c.QuadraticLogit(shrinkage=0).fit(s, y, w)
    reached = binary_loss(fitted.intercept_ + fitted.coef_[0] * z + fitted.coef_[1] * z**2, y, w)
    least = tight(lambda t: binary_loss(t[0] + t[1] * z + t[2] * z**2, y, w), np.array([0.0, 1.0, 0.0]))
    assert reached <= least + 1e-8


SEVERAL = [(200, 2), (2000, 3), (2000, 10), (500, 40)]


@pytest.mark.parametrize(("n", "k"), SEVERAL)
def test_temperature_is_the_optimum(n, k):
    p, y, _ = several(n, k, n, 0.6)
    p[::7] = np.eye(k)[y[::7]]
    z = np.log(p.clip(1e-12))
    fitted = c.TemperatureScaling(shrinkage=0).fit(p, y)
    assert log_loss(z / fitted.temperature_, y) <= tight(lambda t: log_loss(z * t[0], y), np.ones(1)) + 1e-9
    assert fitted.gradient_norm_ < 1e-9


def test_temperature_of_many_rows_is_that_of_all():
    """Beyond 20 000 rows a part finds the start, not the end."""
    p, y, _ = several(30_000, 3, 0, 0.6)
    w = np.random.default_rng(0).integers(0, 3, 30_000)
    fitted = c.TemperatureScaling(shrinkage=0).fit(p, y, sample_weight=w)
    z = np.log(p)
    assert log_loss(z / fitted.temperature_, y, w) <= tight(lambda t: log_loss(z * t[0], y, w), np.ones(1)) + 1e-10


def test_useless_scores_have_an_infinite_temperature():
    p, y, _ = several(500, 3, 0, -0.5)
    fitted = c.TemperatureScaling(shrinkage=0).fit(p, y)
    assert fitted.temperature_ == np.inf
    np.testing.assert_allclose(fitted.predict_proba(p), 1 / 3)


@pytest.mark.parametrize(("n", "k"), SEVERAL)
def test_ensemble_is_the_optimum(n, k):
    p, y, _ = several(n, k, n, 0.6)
    flip = np.random.default_rng(0).random(n) < 0.1
    y[flip] = np.random.default_rng(1).integers(0, k, flip.sum())
    fitted = c.EnsembleTemperatureScaling().fit(p, y)
    z = np.log(p.clip(1e-12))
    parts = [np.exp(z / t) / np.exp(z / t).sum(axis=1, keepdims=True) for t in (fitted.temperature_, 1.0)]
    seen = np.column_stack([*(part[np.arange(n), y] for part in parts), np.full(n, 1 / k)])

    def loss(u):
        return -np.log(seen @ u).mean()

    grid = [np.array([a, b, 1 - a - b]) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1 - a, 51)]
    assert loss(fitted.weights_) <= min(loss(np.maximum(u, 1e-12)) for u in grid) + 1e-9
    assert fitted.gradient_norm_ < 1e-7
    assert fitted.weights_.min() >= 0


@pytest.mark.parametrize("shrinkage", [0.0, 0.05])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("n", "k"), [*SEVERAL[:2], *(pytest.param(*size, marks=pytest.mark.slow) for size in SEVERAL[2:])]
)
def test_vector_is_the_optimum(n, k, shrinkage, intercept):
    p, y, _ = several(n, k, n, 0.6)
    z = np.log(p)

    def objective(t):
        v, b = t[:k], t[k:] if intercept else np.zeros(k)
        return log_loss(z * v + b, y) + shrinkage * (((v - v.mean()) ** 2).sum() + (b**2).sum()) / k

    fitted = c.VectorScaling(shrinkage, intercept=intercept).fit(p, y)
    assert fitted.gradient_norm_ < 1e-9
    reached = objective(np.concatenate([fitted.coef_, fitted.intercept_ if intercept else []]))
    start = np.concatenate([np.ones(k), np.zeros(k if intercept else 0)])
    assert reached <= tight(objective, start) + 1e-8


@pytest.mark.parametrize(
    ("calibrator", "penalty"),
    [
        (c.MatrixScaling(0), lambda w, b, k: 0.0),
        (
            c.MatrixScaling(0.05),
            lambda w, b, k: (
                0.05 * ((w**2).sum() - (np.diag(w) ** 2).sum()) / k
                + 0.05 * ((np.diag(w) - np.diag(w).mean()) ** 2).sum() / k
                + 0.05 * (b**2).sum() / k
            ),
        ),
        (
            c.DirichletCalibration("odir", 0.02, 0.03, shrinkage=0),
            lambda w, b, k: 0.02 * ((w**2).sum() - (np.diag(w) ** 2).sum()) / (k * (k - 1)) + 0.03 * (b**2).sum() / k,
        ),
        (c.DirichletCalibration("l2", 0.02, shrinkage=0), lambda w, b, k: 0.02 * ((w**2).sum() + (b**2).sum())),
    ],
    ids=lambda value: "penalty" if isinstance(value, FunctionType) else repr(value),  # of a function: its address
)
@pytest.mark.parametrize(("n", "k"), [(400, 2), (2000, 3), pytest.param(1500, 6, marks=pytest.mark.slow)])
def test_matrices_are_the_optimum(calibrator, penalty, n, k):
    p, y, _ = several(n, k, n, 0.6)
    z = np.log(p)

    def objective(t):
        w = t.reshape(k, k + 1)
        return log_loss(z @ w[:, :k].T + w[:, k], y) + penalty(w[:, :k], w[:, k], k)

    fitted = calibrator.fit(p, y)
    assert fitted.gradient_norm_ < 1e-9
    reached = objective(np.column_stack([fitted.coef_, fitted.intercept_]).ravel())
    assert reached <= tight(objective, np.column_stack([np.eye(k), np.zeros(k)]).ravel()) + 1e-8
    # In the words of the docstring: a common shift is taken out where nothing else fixes it.
    assert fitted.intercept_.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_shrinkage_by_rule():
    """Twice the squared weights per class, n and K as the docstrings say, and eight rows as the scores expect them."""
    p, y, _ = several(300, 4, 0, 0.6)
    z = np.log(p)
    n, m = 300, 8

    def loss(logits):
        """Of the rows and of the prior's, whose classes are as likely as p says, spread over the scores."""
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return (n * log_loss(logits, y) - m * (p * logs).sum(axis=1).mean()) / (n + m)

    def vector(t):
        v, b = t[:4], t[4:]
        return loss(z * v + b) + 4 / 300 * (((v - v.mean()) ** 2).sum() + (b**2).sum())

    def matrix(t):
        w, b = t.reshape(4, 5)[:, :4], t.reshape(4, 5)[:, 4]
        d = np.diag(w)
        off = (w**2).sum() - (d**2).sum()
        return loss(z @ w.T + b) + 12 / 300 * off + 4 / 300 * (((d - d.mean()) ** 2).sum() + (b**2).sum())

    fitted = c.VectorScaling().fit(p, y)
    assert vector(np.concatenate([fitted.coef_, fitted.intercept_])) <= tight(vector, np.repeat([1.0, 0.0], 4)) + 1e-8
    fitted = c.MatrixScaling().fit(p, y)
    reached = matrix(np.column_stack([fitted.coef_, fitted.intercept_]).ravel())
    assert reached <= tight(matrix, np.column_stack([np.eye(4), np.zeros(4)]).ravel()) + 1e-8
    doubled = c.MatrixScaling().fit(p, y, sample_weight=np.full(300, 2))
    assert (
        np.abs(doubled.coef_ - np.diag(np.diag(doubled.coef_))).sum()
        > np.abs(fitted.coef_ - np.diag(np.diag(fitted.coef_))).sum()
    )


def test_conjugate_gradients_end_where_newton_does(monkeypatch):
    p, y, _ = several(800, 5, 0, 0.6)
    for calibrator in (c.VectorScaling(0.01), c.MatrixScaling(0.01), c.DirichletCalibration(), c.MatrixScaling(0)):
        direct = calibrator.fit(p, y).predict_proba(p)
        with monkeypatch.context() as patch:
            patch.setattr("calibrant.calibrators.linear._NEWTON", 0)
            indirect = calibrator.fit(p, y)
        assert indirect.gradient_norm_ < 1e-7
        np.testing.assert_allclose(indirect.predict_proba(p), direct, atol=1e-6)


@pytest.mark.slow
def test_separated_classes_are_said_to_have_no_optimum():
    z = np.eye(3)[np.arange(60) % 3] * 5 + np.random.default_rng(0).normal(size=(60, 3)) * 0.1
    with pytest.warns(ConvergenceWarning, match="add a penalty"):
        c.MatrixScaling(0, input="logit").fit(z, np.arange(60) % 3)
    with pytest.warns(ConvergenceWarning, match="smooth labels"):  # shrunk to a temperature, which is 0
        c.MatrixScaling(0.1, input="logit").fit(z, np.arange(60) % 3)
    fitted = c.DirichletCalibration("l2", 0.1, input="logit").fit(z, np.arange(60) % 3)
    assert np.abs(fitted.coef_).max() < 10
    smooth = c.LabelSmoothing(c.MatrixScaling(0.1), 0.05, input="logit").fit(z, np.arange(60) % 3)
    assert np.abs(smooth.calibrator_.coef_).max() < 10


def test_spline_is_the_optimum():
    """The conditions of the constrained problem, and straight lines where the penalty is heavy."""
    s, y, w = binary_problem(2000, False)
    fitted = c.SplineCalibrator().fit(s, y, w)
    assert fitted.gradient_norm_ < 1e-6
    heavy = c.SplineCalibrator(alpha=1e9, shrinkage=0).fit(s, y, w).predict_proba(s)
    platt = c.PlattScaling(smoothing=False, shrinkage=0).fit(s, y, w).predict_proba(s)
    np.testing.assert_allclose(heavy, platt, atol=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("falls", [False, True], ids=["rises", "falls"])
def test_spline_by_another_solver(alpha, falls):
    """Coefficients of the B-splines under linear constraints, by SLSQP; where outcomes fall, many of them bind."""
    rng = np.random.default_rng(5)
    s = rng.beta(1, 1, 400).clip(0.01, 0.99)
    y = (rng.random(400) < (0.5 + 0.45 * np.sin(7 * s) if falls else s**2)).astype(int)
    w = rng.integers(1, 4, 400).astype(float)
    fitted = c.SplineCalibrator(alpha=alpha).fit(s, y, w)
    z, knots, n = logit(s), fitted.knots_, w.sum()
    basis = np.column_stack([BSpline(knots, one, 3)(z) for one in np.eye(len(knots) - 4)])
    gaps = np.diff([knots[j + 1 : j + 4].mean() for j in range(len(knots) - 4)])
    target = (n * y + 8 * s) / (n + 8)

    def objective(beta):
        logits = basis @ beta
        bends = np.diff(np.diff(beta) / gaps)
        return w @ (np.logaddexp(0, logits) - target * logits) / n + alpha / (2 * n) * bends @ bends

    def gradient(beta):
        bend = np.diff(np.diff(np.eye(len(beta)), axis=0) / gaps[:, None], axis=0)
        return basis.T @ (w * (expit(basis @ beta) - target)) / n + alpha / n * bend.T @ (bend @ beta)

    start = np.linspace(-1, 1, basis.shape[1])
    rises = {"type": "ineq", "fun": lambda b: np.diff(b), "jac": lambda b: np.diff(np.eye(len(b)), axis=0)}
    options = {"ftol": 1e-15, "maxiter": 2000}
    found = minimize(objective, start, jac=gradient, method="SLSQP", constraints=[rises], options=options)
    assert objective(fitted.coef_) <= found.fun + 1e-9
    assert (np.diff(fitted.coef_) >= -1e-12).all()
    np.testing.assert_allclose(fitted.predict_proba(s)[:, 1], expit(basis @ found.x), atol=2e-4)
    if falls:
        assert (np.diff(fitted.coef_) < 1e-9).any()
        free = minimize(objective, start, jac=gradient, method="SLSQP", options=options)
        assert (np.diff(free.x) < -0.1).any()  # without the constraints it would fall


def test_temperature_of_float32_logits_ends_where_that_of_float64_does():
    """In float32 the loss is too noisy for the last steps: these rows took 200 and a warning."""
    rng = np.random.default_rng(52)
    z = 4 * rng.normal(size=(300, 26))
    y = (z / 1.6 + rng.gumbel(size=z.shape)).argmax(axis=1)
    short = z.astype(np.float32)
    one, other = (c.TemperatureScaling(input="logit").fit(v, y) for v in (short, short.astype(np.float64)))
    assert one.temperature_ == other.temperature_
    assert one.n_iter_ < 10
