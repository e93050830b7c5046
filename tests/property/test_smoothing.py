"""Smoothing with reflection: two ways to one result, nothing leaks, and ties share their mean rank."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.estimators import Density, ResidualKernel
from calibrant.sums import KERNELS, GridMoments, Smoother

from ..contract.naive import Sample, rank_residual


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("width", [1.0, 7.3, 64.0, 300.0])
def test_nothing_leaks_and_the_transform_is_the_matrix(kernel, width):
    smoother = Smoother(64, width, kernel)
    for counts in (np.eye(65), np.random.default_rng(0).random((3, 65))):
        smoothed = smoother.smooth(counts)
        np.testing.assert_allclose(smoothed, counts @ smoother.matrix, atol=1e-12)
        np.testing.assert_allclose(smoothed @ smoother.quadrature, counts.sum(axis=1), atol=1e-12)
    # Mirrored: an atom at one end is the image of an atom at the other.
    np.testing.assert_allclose(smoother.smooth(np.eye(65)[0]), smoother.smooth(np.eye(65)[64])[::-1], atol=1e-12)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_the_bandwidth_is_the_standard_deviation(kernel):
    atom = np.zeros(4097)
    atom[2048] = 1
    steps = np.arange(4097) - 2048
    assert np.sqrt(Smoother(4096, 50.0, kernel).smooth(atom) @ steps**2) == pytest.approx(50, rel=1e-3)


def test_tied_scores_share_their_mean_rank():
    """Three atoms, each wrong by another amount: where they lie on the rank axis decides the number."""
    p = np.repeat([0.25, 0.5, 0.75], [50, 30, 20])
    y = np.r_[np.arange(50) < 30, np.arange(30) < 3, np.arange(20) < 18].astype(int)
    got = cal.calibration_error(y, p, estimator=ResidualKernel(0.15))
    expected = rank_residual(0.15)(Sample.of(p.tolist(), y.tolist(), None), 1)
    assert got == pytest.approx(expected, abs=2e-3)


def test_the_largest_gap_is_sought_where_there_are_data():
    """Beyond the scores the tails of a kernel go on, with the frequency of the last sample; that is no gap."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.4, 0.6, 20_000)
    y = rng.random(20_000) < p
    for estimator in (cal.estimators.Density(0.01), ResidualKernel(0.01, "score")):
        assert cal.calibration_error(y, p, estimator=estimator, norm=float("inf")) < 0.08
        far = cal.calibration_error(y, p - 0.3, estimator=estimator, norm=float("inf"))
        assert far == pytest.approx(0.3, abs=0.08)


def test_a_cropped_grid_reads_and_smooths_as_the_whole_one():
    """What is cut off is empty and out of the kernel's reach; a sample near the cut keeps the part it needs."""
    rng = np.random.default_rng(0)
    for top in (0.01, 0.1, 0.24, 0.26, 0.9):
        p = top * rng.random(500)
        grid = GridMoments.of(Problem(p, (rng.random(500) < p).astype(int)))
        width = 8.0
        cropped = grid.cropped(int(grid.rows.shortest(9 * width, 128)[0]))
        assert cropped.cells <= grid.cells
        assert (cropped.cells < grid.cells) == (top <= 0.26)
        assert cropped.step == pytest.approx(grid.step, rel=1e-15)
        whole, part = (Smoother(g.cells, width).smooth(g.count) for g in (grid, cropped))
        np.testing.assert_allclose(part, whole[: part.size], rtol=0, atol=1e-12)
        read = [Density(width * grid.step).read(g.rows, 1)[0] for g in (grid, cropped)]
        assert read[0] == pytest.approx(read[1], abs=1e-6)
