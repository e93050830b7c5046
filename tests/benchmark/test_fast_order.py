"""Batched forms of Smooth, Sweep, Isotonic and Cumulative against the public estimators."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import Cumulative, Isotonic, Smooth, Sweep
from calibrant.benchmark.fast import Batch, is_fast, powers

EXACT = [Sweep(), Sweep("uniform"), Isotonic(), Cumulative(), Cumulative("kuiper")]
CLOSE = [Smooth(), Smooth(0.05), Smooth(0.001)]
KINDS = (
    "calibrated",
    "miscalibrated",
    "sharp",
    "tied",
    "hundredths",
    "atom",
    "constant",
    "no-positives",
    "separated",
    "nearly-separated",
    "confidence",
    "float32",
)
everything = pytest.mark.parametrize("kind", KINDS)


def batch(kind: str, n: int, rows: int = 12) -> Batch:
    rng = np.random.default_rng([n, KINDS.index(kind)])
    p = rng.beta(0.7, 0.9, (rows, n))
    chance = p**1.5 if kind in ("miscalibrated", "tied", "confidence") else p
    domain = (0.0, 1.0)
    if kind == "sharp":
        p = chance = 1 / (1 + np.exp(-rng.normal(0, 8, (rows, n))))
    elif kind == "tied":  # atoms at 0 and 1
        p = chance = np.round(p, 1)
    elif kind == "hundredths":
        p = chance = np.round(p, 2)
    elif kind == "atom":  # more than half lie on the largest score
        p = chance = np.where(rng.random(p.shape) < 0.6, 0.9, np.round(p, 1) * 0.8)
    elif kind == "constant":
        p = chance = np.full((rows, n), 0.3)
    elif kind == "confidence":
        p, domain = 0.5 + p / 2, (0.5, 1.0)
    elif kind == "float32":
        p = p.astype(np.float32)
    y = rng.random((rows, n)) < chance
    if kind == "no-positives":
        y[:] = False
    elif "separated" in kind:
        y = p > 0.5
    if kind == "nearly-separated":
        y ^= np.abs(p - 0.5) < 2 / n
    return Batch.of(p, y, domain)


def one_by_one(estimator, samples, norm):
    return np.array([estimator.power(problem, norm) for problem in samples.problems()])


@everything
@pytest.mark.parametrize("n", [1, 2, 30, 500])
def test_exact(kind, n):
    samples = batch(kind, n)
    for estimator in EXACT:
        assert is_fast(estimator)
        for norm in (1, 2, 40, np.inf):
            np.testing.assert_allclose(
                powers(estimator, samples, norm), one_by_one(estimator, samples, norm), atol=1e-11, rtol=0
            )


@everything
@pytest.mark.parametrize("n", [1, 2, 30, 500])
def test_close(kind, n):
    samples = batch(kind, n)
    for estimator in CLOSE:
        assert is_fast(estimator)
        for norm in (1, 2):
            got, expected = powers(estimator, samples, norm), one_by_one(estimator, samples, norm)
            np.testing.assert_allclose(got, expected, atol=2e-5, rtol=0)


def test_small_bandwidths_of_large_samples():
    """smECE of large calibrated samples: bandwidths that need the finer of the two resolutions, or the public grid."""
    samples = batch("calibrated", 60_000, rows=3)
    expected = one_by_one(Smooth(), samples, 1)
    assert expected.min() < 0.0085
    np.testing.assert_allclose(powers(Smooth(), samples, 1), expected, atol=2e-5, rtol=0)
    rng = np.random.default_rng(0)
    p = (rng.random((3, 5000)) < 0.3).astype(float)
    y = p > 0.5
    p[:, :5] = rng.random((3, 5))  # all others are certain, and right
    tiny = Batch.of(p, y)
    expected = one_by_one(Smooth(), tiny, 1)
    assert expected.min() < 0.00215
    np.testing.assert_allclose(powers(Smooth(), tiny, 1), expected, atol=2e-5, rtol=0)


def test_more_bins_than_are_tried_together():
    samples = batch("nearly-separated", 2000, rows=4)
    np.testing.assert_allclose(powers(Sweep(), samples, 1), one_by_one(Sweep(), samples, 1), atol=1e-11, rtol=0)
