"""`EmpiricalBayes` for many samples at once agrees with the public estimator."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.benchmark.fast import Batch, powers

CASES = {
    "spread": lambda rng, shape: rng.random(shape),
    "sharp": lambda rng, shape: rng.beta(12, 0.6, shape),
    "near 0, within a cell of the public grid": lambda rng, shape: rng.beta(0.05, 4.95, shape),
    "tied": lambda rng, shape: np.round(rng.random(shape), 1),
    "atoms": lambda rng, shape: np.where(rng.random(shape) < 0.4, np.round(rng.random(shape)), rng.random(shape)),
    "constant": lambda rng, shape: np.full(shape, 0.3),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [1, 2, 30, 500])
@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_agrees(case, n, norm):
    rng = np.random.default_rng(n)
    s = CASES[case](rng, (8, n))
    o = rng.random(s.shape) < s**1.5
    o[0] = False
    batch = Batch.of(s, o)
    for estimator in (cal.EmpiricalBayes(), cal.EmpiricalBayes("wide")):
        alone = [estimator.power(problem, norm) for problem in batch.problems()]
        # The public one puts scores on a grid of 4096 cells first, so a sample may fall into the next rank cell.
        assert powers(estimator, batch, norm) == pytest.approx(alone, abs=3e-3 if norm != np.inf else 1e-2)
