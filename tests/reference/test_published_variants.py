"""The variants of Posocco & Bonnefoy's own code, written from its definitions, and numbers on public predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

import calibrant as cal
from calibrant import Binned, calibration_error
from calibrant.data.problem import Problem
from calibrant.estimators import Density
from calibrant.sums import BinMoments, uniform_edges

DATA = Path(__file__).parents[3] / "shared" / "data"


def sample(n=400, seed=5):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.9, n)
    return (rng.random(n) < np.clip(0.5 + 1.6 * (p - 0.5), 0, 1)).astype(int), p


def convex_as_printed(y, p, edges):
    """ECE with the convex weights of the paper's formula: a sample *at* a centre gives that bin nothing."""
    centres = (edges[:-1] + edges[1:]) / 2
    W = np.zeros((len(p), len(centres)))
    for i, s in enumerate(p):
        if s <= centres[0]:
            W[i, 0] = 1
        elif s >= centres[-1]:
            W[i, -1] = 1
        else:
            j = int(np.searchsorted(centres, s, side="right")) - 1
            width = centres[j + 1] - centres[j]
            W[i, j] = (s - centres[j]) / width
            W[i, j + 1] = (centres[j + 1] - s) / width
    np.testing.assert_allclose(W.sum(axis=1), 1)
    return np.abs(W.T @ (y - p)).sum() / len(p)


@pytest.mark.parametrize("n_bins", [2, 10, 20])
def test_linear_weights_as_printed(n_bins):
    y, p = sample()
    printed = calibration_error(y, p, estimator=Binned(n_bins, mapping="linear-as-printed"))
    assert printed == pytest.approx(convex_as_printed(y, p, np.linspace(0, 1, n_bins + 1)), abs=1e-12)
    assert abs(printed - calibration_error(y, p, estimator=Binned(n_bins, mapping="linear"))) > 1e-4


def test_as_printed_reverses_the_shares():
    """Next to a centre, the linear mapping gives that bin nearly everything and the printed one nearly nothing."""
    scores, outcomes = np.array([0.31]), np.array([1])
    for mapping, shares in (("linear", [0, 0.95, 0.05, 0, 0]), ("linear-as-printed", [0, 0.05, 0.95, 0, 0])):
        moments = BinMoments.of(Problem(scores, outcomes), uniform_edges(5), mapping)
        np.testing.assert_allclose(moments.weight, shares, atol=1e-12)
        np.testing.assert_allclose(moments.score, 0.31 * np.array(shares), atol=1e-12)


def triweight_silverman(y, p, step=0.0004):
    """Their density estimator: triweight kernel, Silverman's rule with 3N/4, one bandwidth for both densities."""
    n = len(p)
    spread = min(p.std(ddof=1), (np.quantile(p, 0.75) - np.quantile(p, 0.25)) / 1.34898)
    h = spread * (3 * n / 4) ** (-1 / 5)
    grid = np.arange(0, 1 + step / 2, step)

    def density(x):
        total = np.zeros_like(grid)
        for mirrored in (x, -x, 2 - x):
            for s in mirrored:
                u = (grid - s) / (3 * h)  # the support of a triweight kernel of standard deviation h
                total += np.where(np.abs(u) < 1, 35 / 32 * (1 - u**2) ** 3, 0) / (3 * h)
        return total / len(x)

    f, f1 = density(p), density(p[y == 1])
    rel = y.mean() * f1 / np.where(f > 0, f, 1)
    return trapezoid(f * np.abs(rel - grid), grid), h, grid, rel


def test_triweight_kernel_with_silverman():
    y, p = sample()
    value, h, grid, rel = triweight_silverman(y, p)
    estimator = Density("silverman", "triweight")
    assert calibration_error(y, p, estimator=estimator) == pytest.approx(value, abs=2e-4)
    # one bandwidth: the same number when it is given
    assert calibration_error(y, p, estimator=Density(h, "triweight")) == pytest.approx(value, abs=2e-4)
    curve = cal.reliability_curve(y, p, estimator=estimator)
    drawn = ~np.isnan(curve.observed)
    assert drawn.mean() > 0.95
    np.testing.assert_allclose(curve.observed[drawn], np.interp(curve.scores[drawn], grid, rel), atol=0.01)
    np.testing.assert_allclose(curve.lce, curve.observed - curve.scores)
    width = curve.scores[1] - curve.scores[0]
    assert (curve.density.sum() - (curve.density[0] + curve.density[-1]) / 2) * width == pytest.approx(1, abs=1e-9)


def test_each_class_has_its_own_bandwidth():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.2, 1, 5], 500)
    y = rng.integers(0, 3, 500)
    classwise = calibration_error(y, P, notion="classwise", estimator=Density())
    alone = [calibration_error(y, P, notion=cal.notions.ClassSpecific(k), estimator=Density()) for k in range(3)]
    assert classwise == pytest.approx(np.mean(alone), abs=1e-12)


@pytest.mark.parametrize(
    ("file", "accuracy", "ece"),
    [
        ("cifar10_wideresnet16x4", 0.911, 0.0537),
        ("cifar10_lenet5", 0.531, 0.1079),
        ("cifar100_densenet_bc100", 0.754, 0.1422),
    ],
)
def test_public_networks(file, accuracy, ece):
    path = DATA / f"{file}.npz"
    if not path.exists():
        pytest.skip(f"the predictions {file} are not on this machine")
    with np.load(path) as data:
        y, P = data["y_true"], data["y_prob"]
    assert (P.argmax(axis=1) == y).mean() == pytest.approx(accuracy, abs=5e-4)
    assert cal.expected_calibration_error(y, P) == pytest.approx(ece, abs=5e-5)
    assert cal.expected_calibration_error(y, P, notion="confidence", n_bins=15) == pytest.approx(ece, abs=5e-5)
    smooth = calibration_error(y, P)
    assert smooth == pytest.approx(ece, abs=0.012)
