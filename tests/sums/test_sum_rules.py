"""Rules of sums: what adds, resamples and is read from them, each against the rows or against a formula of its own."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant.data.problem import Problem
from calibrant.sums import GridMoments, Runs
from calibrant.sums.edges import fixed_edges
from calibrant.sums.quantiles import _MANY, QuantileBins, quantile_edges
from calibrant.sums.smoothing import spectrum


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


# Smoothing


@pytest.mark.parametrize("width", [0.5, 0.55, 0.8, 1.3])
def test_the_spectrum_of_a_gaussian_is_the_transform_of_its_samples(width):
    """Its sum over images of frequencies, of which a narrow kernel needs several, is the sum of the samples."""
    cells = 64
    away = np.arange(-8 * cells, 8 * cells + 1)
    kernel = np.exp(-0.5 * (away / width) ** 2)
    frequency = np.pi / cells * np.arange(cells + 1)
    want = np.cos(frequency[:, None] * away) @ (kernel / kernel.sum())
    found = spectrum(cells, np.array([width, 9.0]), "gaussian")[0]
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


# Edges


def test_a_score_lies_on_an_edge_from_which_rounding_may_have_moved_it_but_near_edges_stay_apart():
    """Two rounding units of 1, but at most a thousandth of the bin above, or two units of the edge: a quarter."""
    eps = 2.0**-23
    edges = fixed_edges([0.0, 1e-4, 2e-4, 0.5, 0.5 + 4e-7, 1.0])
    inner = edges.values[1:-1]
    raised = edges.limits(eps) - inner
    np.testing.assert_allclose(raised, [1e-4 / 1000, 2 * eps, 4e-7 / 4, 2 * eps], rtol=1e-6)
    np.testing.assert_array_equal(replace(edges, exact=True).limits(eps), inner)
    gap = 1e-4
    assert edges.slots(np.array([gap * (1 + 0.9995e-3), gap * (1 + 1.0005e-3)]), eps).tolist() == [1, 2]


@pytest.mark.parametrize("leftovers", ["spread", "last"])
@pytest.mark.parametrize("ends", [0.0, 0.15])
def test_quantile_edges_of_many_scores_are_those_of_few(leftovers, ends):
    """From sorted scores, or from sums over equal ones: cuts within a tie lie on it, and one at an end is cut off."""
    rng = np.random.default_rng(0)
    n = _MANY + 1
    scores = np.where(rng.random(n) < 0.5, rng.integers(3, 8, n) / 10, rng.random(n))
    scores[: int(ends * n)], scores[n - int(ends * n) :] = 0.0, 1.0
    found = quantile_edges(scores, None, 13, leftovers=leftovers).values
    want = quantile_edges(scores, np.ones(n), 13, leftovers=leftovers).values
    np.testing.assert_array_equal(found, want)
    assert {0.4, 0.6} < set(found.tolist())


def test_quantile_bins_of_many_rows_keep_the_parts_of_design_effects(monkeypatch):
    """Bins looked up by sorted scores hold the same sums, side by side, as those of equal scores."""
    rng = np.random.default_rng(0)
    rows = several(rng.random(60), rng.integers(0, 2, 60), [0, 20, 60])
    rows = replace(rows, design=(2.0, 3.0), effects=rng.uniform(1, 4, (2, 5)))
    few = QuantileBins(4).of(rows)
    monkeypatch.setattr("calibrant.sums.quantiles._MANY", 1)
    many = QuantileBins(4).of(rows)
    np.testing.assert_allclose(many.parts, rows.effects * [[20], [40]], rtol=1e-12)
    for name in ("weight", "score", "outcome", "square", "parts"):
        np.testing.assert_allclose(getattr(many, name), getattr(few, name), rtol=1e-12)
