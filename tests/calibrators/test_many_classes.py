"""Vector and Dirichlet fits of up to a hundred classes, with ties and exact 0 and 1, against a second solver."""

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from calibrant import calibrators as c

from .table import several
from .test_optimum import log_loss


def reference(z, y, penalty, gradient, shape, apply):
    """Least objective that L-BFGS finds with gradients written here: ``apply(w)`` maps logits, linear in w."""
    n, k = z.shape
    hit = np.eye(k)[y]

    def objective(t):
        w = t.reshape(shape)
        logits = apply(z, w)
        top = logits.max(axis=1, keepdims=True)
        e = np.exp(logits - top)
        total = e.sum(axis=1, keepdims=True)
        value = (np.log(total) + top)[:, 0].mean() - logits[np.arange(n), y].mean() + penalty(w)
        residual = (e / total - hit) / n
        if len(shape) == 2 and shape[0] == 2:  # a slope and a shift a class
            likelihood = np.stack([(residual * z).sum(axis=0), residual.sum(axis=0)])
        else:
            likelihood = np.column_stack([residual.T @ z, residual.sum(axis=0)])
        return value, (likelihood + gradient(w)).ravel()

    start = np.stack([np.ones(k), np.zeros(k)]) if shape[0] == 2 else np.eye(k, k + 1)
    with threadpool_limits(1):  # products this small only wait for each other on several threads
        found = minimize(
            objective,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9},
        )
    return found.fun


#: The second solver takes most of a minute.
SLOW = pytest.param(600, 100, True, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("n", "k", "tied"), [(200, 10, False), (200, 10, True), SLOW, (20_000, 10, False), (20_000, 10, True)]
)
def test_many_classes_against_a_second_solver(n, k, tied):
    p, y, _ = several(n, k, 0, 0.6)
    if tied:  # and with exact 0 and 1
        p = np.round(p, 2)
        p[::7] = np.eye(k)[y[::7]]
        p[p.sum(axis=1) == 0] = 1 / k
        p /= p.sum(axis=1, keepdims=True)
    z = np.log(np.maximum(p, 1e-12))

    def spread(v):
        return v - v.mean()

    fitted = c.VectorScaling(0.05).fit(p, y)
    value = log_loss(z * fitted.coef_ + fitted.intercept_, y)
    value += 0.05 * ((spread(fitted.coef_) ** 2).sum() + (fitted.intercept_**2).sum()) / k
    least = reference(
        z,
        y,
        lambda w: 0.05 * ((spread(w[0]) ** 2).sum() + (w[1] ** 2).sum()) / k,
        lambda w: 0.1 * np.stack([spread(w[0]), w[1]]) / k,
        (2, k),
        lambda z, w: z * w[0] + w[1],
    )
    assert value <= least + 1e-8
    if n > 10_000:  # the reference is slow
        return
    fitted = c.DirichletCalibration("odir", 0.1, shrinkage=0).fit(p, y)
    logs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    off = 1 - np.eye(k)
    value = log_loss(logs @ fitted.coef_.T + fitted.intercept_, y)
    value += 0.1 * ((off * fitted.coef_**2).sum() / (k * (k - 1)) + (fitted.intercept_**2).mean())
    least = reference(
        logs,
        y,
        lambda w: 0.1 * ((off * w[:, :k] ** 2).sum() / (k * (k - 1)) + (w[:, k] ** 2).mean()),
        lambda w: 0.2 * np.column_stack([off * w[:, :k] / (k * (k - 1)), w[:, k] / k]),
        (k, k + 1),
        lambda z, w: z @ w[:, :k].T + w[:, k],
    )
    assert value <= least + 1e-8
    assert fitted.gradient_norm_ < 1e-7
