"""Rules of sums: what adds, resamples and is read from them, each against the rows or against a formula of its own."""

import numpy as np
import pytest

from calibrant.data.problem import Problem
from calibrant.sums import GridMoments, Runs


def several(scores, outcomes, starts, weights=None):
    """Problems side by side."""
    many = len(starts) - 1
    return Problem(
        np.asarray(scores, float),
        np.asarray(outcomes, float),
        None if weights is None else np.asarray(weights, float),
        label=tuple(range(many)),
        share=(1 / many,) * many,
        starts=np.asarray(starts),
    )


# Runs


@pytest.mark.parametrize("weighted", [False, True])
def test_runs_of_two_lots_of_rows_add_up_to_the_runs_of_all(weighted):
    """Of several problems too: equal scores merge within a problem, and never across two of them."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 8, (2, 4))
    lots = [[(rng.integers(0, 4, n) / 4, rng.integers(0, 2, n), rng.integers(1, 4, n)) for n in row] for row in sizes]

    def runs(rows):
        scores, outcomes, weights = (np.concatenate(v) for v in zip(*rows, strict=True))
        starts = np.concatenate([[0], np.cumsum([len(s) for s, _, _ in rows])])
        return Runs.of(several(scores, outcomes, starts, weights if weighted else None))

    whole = [tuple(np.concatenate(v) for v in zip(a, b, strict=True)) for a, b in zip(*lots, strict=True)]
    found, want = runs(lots[0]) + runs(lots[1]), runs(whole)
    for name in ("scores", "weight", "outcome", "square", "bounds", "n_rows", "n_samples"):
        np.testing.assert_array_equal(getattr(found, name), getattr(want, name), name)


# Grids


def test_resampled_counts_are_of_whole_samples():
    """Whatever the weights of the rows: units are drawn, each of which is one sample, so the size is the total."""
    w = np.array([0.3, 1.1, 2.7, 0.9])
    sums = GridMoments.of(Problem(np.array([0.1, 0.4, 0.6, 0.8]), np.array([0, 1, 0, 1]), w, integral=False), 8)
    assert not sums.integral
    count = np.array([[0, 1, 0, 2, 0, 3, 1, 0, 0.0], np.zeros(9)])
    found = sums.resampled(count, count / 2)
    assert found.integral
    np.testing.assert_array_equal(found.effective_size, [7.0, 0.0])
    np.testing.assert_array_equal(found.squares, [7.0, 0.0])
