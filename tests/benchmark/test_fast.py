"""The batched forms of Binned, Density and ResidualKernel are the public estimators."""

import numpy as np
import pytest

from calibrant import AdaptiveKernel, Binned, Density, ResidualKernel
from calibrant.benchmark.fast import Batch, is_fast, powers
from calibrant.benchmark.fast.density import bandwidths, density_powers
from calibrant.problem import Problem

ROWS = 6
EDGES = (0.0, 0.1, 0.35, 0.6, 0.9, 1.0)


def piles(rng, n):
    uniform = rng.random((ROWS, n))
    return np.where(rng.random((ROWS, n)) < 0.5, rng.integers(0, 2, (ROWS, n)), uniform)


SCORES = {
    "uniform": (lambda rng, n: rng.random((ROWS, n)), (0.0, 1.0)),
    "skewed": (lambda rng, n: rng.beta(0.1, 0.5, (ROWS, n)), (0.0, 1.0)),
    "nearly all at 0": (lambda rng, n: rng.beta(0.02, 0.5, (ROWS, n)), (0.0, 1.0)),
    "votes": (lambda rng, n: rng.integers(0, 101, (ROWS, n)) / 100, (0.0, 1.0)),
    "votes, float32": (lambda rng, n: (rng.integers(0, 101, (ROWS, n)) / 100).astype(np.float32), (0.0, 1.0)),
    "few values": (lambda rng, n: rng.integers(0, 5, (ROWS, n)) / 4, (0.0, 1.0)),
    "atoms at the ends": (piles, (0.0, 1.0)),
    "constant": (lambda rng, n: np.repeat(rng.random((ROWS, 1)), n, 1), (0.0, 1.0)),
    "zero": (lambda rng, n: np.zeros((ROWS, n)), (0.0, 1.0)),
    "confidence": (lambda rng, n: np.maximum(1 / 3, rng.beta(5, 2, (ROWS, n))), (1 / 3, 1.0)),
    "float32": (lambda rng, n: rng.random((ROWS, n)).astype(np.float32), (0.0, 1.0)),
}
EXACT = [
    Binned(15),
    Binned(10, span="domain"),
    Binned("sqrt"),
    Binned("cbrt", "quantile"),
    Binned(30, "quantile"),
    Binned(1),
    Binned(EDGES),
    Binned(EDGES, mapping="linear"),
    Binned(10, mapping="linear"),
    Binned("sqrt", mapping="linear", span="domain"),
    Binned(10, "quantile", "linear"),
    Binned("sqrt", "quantile", "linear"),
    Binned(1, "quantile", "linear"),
    Binned(10, mapping="linear-as-printed"),
    Binned("sqrt", "quantile", "linear-as-printed"),
    Binned(15, debias=True),
    Binned("sqrt", "quantile", debias=True),
    Binned(15, debias="kumar"),
    Binned(15, mapping="linear", debias=True),
    Binned(10, "quantile", "linear", debias=True),
    ResidualKernel(),
    ResidualKernel(0.1, kernel="cosine"),
    ResidualKernel(debias=True),
    ResidualKernel(space="score"),
    ResidualKernel(0.05, "score"),
    AdaptiveKernel(),
    AdaptiveKernel(20.0, widest=0.3),
]
#: On coarser grids than the public ones, or with the kernel's transform from a table.
CLOSE = [
    (Density(kernel="triweight"), 5e-4),
    (Density(0.1, "triweight"), 5e-4),
    (Density(0.033, "triweight"), 5e-4),
    (Density(), 5e-4),
    (Density(0.003), 2e-4),
    (Density(0.001), 1e-8),
    (Density(0.001, "triweight"), 1e-5),
    (ResidualKernel(0.05, "score", "triweight"), 5e-5),
]


def both(estimator, norm, scores, n, kind="some"):
    """Batched and public readings of the same samples."""
    draw, domain = SCORES[scores]
    rng = np.random.default_rng([n, len(scores)])
    s = draw(rng, n)
    o = rng.random(s.shape) < s**1.5 if kind == "some" else np.zeros(s.shape, dtype=bool)
    eps = float(np.finfo(s.dtype).eps)
    public = [estimator.power(Problem(row, hit, None, True, domain, eps), norm) for row, hit in zip(s, o, strict=True)]
    return powers(estimator, Batch.of(s, o, domain), norm), np.array(public)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("n", [1, 2, 30, 500])
@pytest.mark.parametrize("kind", ["some", "no positives"])
def test_readings_are_those_of_the_public_estimators(scores, n, kind):
    for estimator, close in [*((e, 1e-9) for e in EXACT), *CLOSE]:
        assert is_fast(estimator)
        for norm in (1, 2):
            batched, public = both(estimator, norm, scores, n, kind)
            assert batched.shape == (ROWS,)
            np.testing.assert_allclose(batched, public, rtol=0, atol=close, err_msg=f"{estimator} norm {norm}")


@pytest.mark.parametrize("scores", ["skewed", "votes", "confidence"])
def test_what_estimators_share_is_theirs(scores):
    """On one batch, after all the others, an estimator reads what it reads on its own."""
    draw, domain = SCORES[scores]
    rng = np.random.default_rng(4)
    s = draw(rng, 90)
    o = rng.random(s.shape) < s**1.5
    shared = Batch.of(s, o, domain)
    for estimator in [*EXACT, *(e for e, _ in CLOSE), *reversed(EXACT)]:
        for norm in (1, 2):
            alone = powers(estimator, Batch.of(s, o, domain), norm)
            np.testing.assert_array_equal(powers(estimator, shared, norm), alone, err_msg=f"{estimator} norm {norm}")


def test_density_on_a_coarse_grid_is_as_wide_as_on_the_public_one():
    """Without the correction for samples shared between nodes, twice as much."""
    rng = np.random.default_rng(0)
    s = rng.beta(20, 60, (60, 300))
    batch = Batch.of(s, rng.random(s.shape) < s**1.3)
    estimator = Density(0.1, "triweight")
    public = np.array([estimator.power(problem, 1) for problem in batch.problems()])
    assert np.quantile(np.abs(powers(estimator, batch, 1) - public), 0.95) < 2.5e-5


@pytest.mark.parametrize("scores", ["uniform", "votes", "confidence"])
def test_pointwise_debias_over_scores(scores):
    """Apart from the others: the public one costs O(G²)."""
    for n in (2, 40):
        for norm in (1, 2):
            batched, public = both(ResidualKernel(space="score", debias=True), norm, scores, n)
            np.testing.assert_allclose(batched, public, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "estimator",
    [
        Density("scott"),
        Density(lambda x, w: 0.07),
        Density("loo"),
        ResidualKernel("scott", "score"),
        AdaptiveKernel("loo"),
    ],
)
def test_what_has_no_batched_form_is_read_one_by_one(estimator):
    batched, public = both(estimator, 1, "uniform", 300)
    np.testing.assert_array_equal(batched, public)


def test_maximum_norm():
    for estimator in (Binned(10), Binned("sqrt", "quantile"), Density(0.05), ResidualKernel()):
        batched, public = both(estimator, float("inf"), "skewed", 200)
        np.testing.assert_allclose(batched, public, rtol=0, atol=1e-9)


def test_float32_scores_are_sorted_with_their_outcomes():
    rng = np.random.default_rng(0)
    s = rng.integers(0, 40, (3, 200)).astype(np.float32) / 39
    s[0, 0] = -0.0
    o = rng.integers(0, 2, s.shape)
    batch = Batch.of(s, o)
    assert batch.eps == np.finfo(np.float32).eps
    assert (np.diff(batch.scores, axis=1) >= 0).all()
    for row in range(3):
        for value in np.unique(s[row]):
            assert batch.outcomes[row][batch.scores[row] == value].sum() == o[row][s[row] == value].sum()
    order = np.sort(s.astype(np.float64), axis=1)
    np.testing.assert_array_equal(np.abs(batch.scores), np.abs(order))


def test_density_with_given_bandwidths():
    rng = np.random.default_rng(0)
    s = rng.random((4, 300))
    batch = Batch.of(s, rng.random(s.shape) < s)
    h = np.array([0.02, 0.05, 0.1, 0.2])
    found = density_powers(Density(kernel="triweight"), batch, 1, h)
    for i, width in enumerate(h):
        wanted = Density(float(width), "triweight").power(batch.problem(i), 1)
        assert found[i] == pytest.approx(wanted, abs=5e-5)
    assert bandwidths(Density("isj"), batch) is None
