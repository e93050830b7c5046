"""The batched forms of Parametric, CrossFit and BetaKernel are the public estimators."""

import numpy as np
import pytest

from calibrant import BetaKernel, CrossFit, Parametric
from calibrant.benchmark.fast import Batch, is_fast, powers

ROWS = 5
#: Batched forms and how near they come: grids are coarser; a side of the logistic map may change beside its crossing.
CASES = [
    (Parametric(), 3e-4),
    (Parametric("beta"), 3e-4),
    (Parametric("quadratic", 4.0), 3e-4),
    (Parametric("logistic", 0.0), 1e-3),
    (CrossFit(), 1e-12),
    (CrossFit("logistic"), 3e-3),
    (CrossFit("histogram", 3), 1e-12),
    (BetaKernel(), 2e-4),
    (BetaKernel(0.05), 2e-4),
    (BetaKernel("loo"), 1e-12),
]
SCORES = {
    "uniform": (lambda rng, n: rng.random((ROWS, n)), (0.0, 1.0)),
    "skewed": (lambda rng, n: rng.beta(0.1, 0.5, (ROWS, n)), (0.0, 1.0)),
    "votes": (lambda rng, n: rng.integers(0, 101, (ROWS, n)) / 100, (0.0, 1.0)),
    "atoms at the ends": (
        lambda rng, n: np.where(rng.random((ROWS, n)) < 0.5, rng.integers(0, 2, (ROWS, n)), rng.random((ROWS, n))),
        (0.0, 1.0),
    ),
    "constant": (lambda rng, n: np.repeat(rng.random((ROWS, 1)), n, 1), (0.0, 1.0)),
    "zero": (lambda rng, n: np.zeros((ROWS, n)), (0.0, 1.0)),
    "confidence": (lambda rng, n: np.maximum(1 / 3, rng.beta(5, 2, (ROWS, n))), (1 / 3, 1.0)),
}


def batch_of(kind: str, n: int, outcomes: str) -> Batch:
    rng = np.random.default_rng(n)
    make, domain = SCORES[kind]
    s = make(rng, n)
    chance = {"wrong": s**1.5, "none": np.zeros_like(s), "all": np.ones_like(s)}[outcomes]
    return Batch.of(s, rng.random(s.shape) < chance, domain)


@pytest.mark.parametrize(("estimator", "close"), CASES, ids=lambda case: repr(case))
@pytest.mark.parametrize("kind", SCORES)
def test_equals_the_public_estimator(estimator, close, kind):
    for n in (1, 2, 30, 500):
        for outcomes in ("wrong",) if n == 500 else ("wrong", "none", "all"):
            batch = batch_of(kind, n, outcomes)
            for norm in (1, 2):
                got = powers(estimator, batch, norm)
                want = [estimator.power(problem, norm) for problem in batch.problems()]
                np.testing.assert_allclose(got, want, rtol=0, atol=close, err_msg=f"{n} {outcomes} {norm}")


def test_they_are_batched():
    assert all(is_fast(estimator) for estimator, _ in CASES)


@pytest.mark.parametrize("estimator", [Parametric(), BetaKernel()], ids=repr)
def test_the_maximum(estimator):
    batch = batch_of("uniform", 200, "wrong")
    want = [estimator.power(problem, np.inf) for problem in batch.problems()]
    np.testing.assert_allclose(powers(estimator, batch, np.inf), want, rtol=0, atol=1e-3)


def test_large_samples():
    batch = batch_of("uniform", 5000, "wrong")
    for estimator, close in ((Parametric(), 1e-4), (CrossFit(), 1e-12), (BetaKernel(), 1e-4)):
        want = [estimator.power(problem, 1) for problem in batch.problems()]
        np.testing.assert_allclose(powers(estimator, batch), want, rtol=0, atol=close)
