"""Rules of estimators that whole results hardly show: each is held by a formula, or by a naive second way."""

import dataclasses
import importlib
import pkgutil
import re

import numpy as np
import pytest
from scipy.special import gammaln, softmax
from scipy.stats import norm

from calibrant import estimators, sums
from calibrant.data.problem import Problem, VectorProblem
from calibrant.estimators import AdaptiveKernel, DirichletKernel, GridMoments, KernelCalibrationError
from calibrant.estimators.dirichlet import BANDWIDTHS
from calibrant.estimators.empirical_bayes import rank_cells
from calibrant.estimators.isotonic import isotonic_means
from calibrant.estimators.laplace_draws import DrawnMaps
from calibrant.estimators.ranges import _candidates, _Search
from calibrant.estimators.simplex_kernel import Simplex, log_densities
from calibrant.estimators.smooth import fixed_point, fixed_points
from calibrant.estimators.sweep import _sweep
from calibrant.sums import Runs


def vectors(n, k, seed, weights=None, integral=True):
    """Probability vectors of a calibrated model, and outcomes."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), n)
    codes = (rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    return VectorProblem(probs, codes, weights, integral, float(np.finfo(float).eps), tuple(range(k)))


def log_dirichlet(probs, h):
    """Log density of Dirichlet(f_i / h + 1) at f_j, (j, i)."""
    a = probs / h + 1
    return np.log(probs) @ (probs / h).T + gammaln(a.sum(axis=1)) - gammaln(a).sum(axis=1)


# Values


def values_of(package):
    """Dataclasses that the modules of a package define."""
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for one in vars(importlib.import_module(found.name)).values():
            if dataclasses.is_dataclass(one) and isinstance(one, type) and one.__module__ == found.name:
                yield one


@pytest.mark.parametrize("package", [estimators, sums], ids=["estimators", "sums"])
def test_values_are_never_changed_in_place(package):
    found = list(values_of(package))
    assert len(found) > 8
    assert [one for one in found if not one.__dataclass_params__.frozen] == []


@pytest.mark.parametrize("package", [estimators, sums], ids=["estimators", "sums"])
def test_values_with_arrays_compare_by_identity(package):
    """Arrays have no one truth value, and no hash."""
    array = re.compile(r"^(Annotated\[)?(Float|Int|Any)Array")
    arrays = [one for one in values_of(package) if any(array.match(str(f.type)) for f in dataclasses.fields(one))]
    assert len(arrays) > 4
    assert [one for one in arrays if one.__dataclass_params__.eq] == []


# Smooth


@pytest.mark.parametrize("size", [1, 3, 7])
def test_the_fixed_points_of_small_samples_are_found_on_the_whole_grid(size):
    """A few frequencies tell it to 3e-6; of small samples side by side each is as exact as alone."""
    rng = np.random.default_rng(size)
    many = Problem.samples(rng.random((20, size)), rng.integers(0, 2, (20, size)))
    grid = GridMoments.of(many)
    want = [fixed_point(grid[i]) for i in range(20)]
    np.testing.assert_allclose(fixed_points(grid), want, rtol=0, atol=1e-12)


# Adaptive kernels


def test_the_samples_near_a_cell_are_counted_in_units_of_their_own_kernels():
    """A row counts as 1 at its score, by its kernel's height beside it, and not beyond one standard deviation."""
    rng = np.random.default_rng(0)
    sums = GridMoments.of(Problem(0.3 + 0.4 * rng.beta(0.5, 1.5, 300), np.zeros(300)))
    cells = AdaptiveKernel(widest=0.05)._cells(sums)
    width, place = cells.smoother.widths, np.arange(cells.count.size)
    assert width.max() > 1.5 * width.min()
    away = np.abs(place[:, None] - place)
    kernel = np.where(away <= np.maximum(width, 1)[:, None], np.exp(-0.5 * (away / width[:, None]) ** 2), 0.0)
    np.testing.assert_allclose(cells.local_size, cells.count @ kernel, atol=1e-9)


# Dirichlet kernels


@pytest.mark.parametrize("residual", [False, True])
def test_the_bandwidth_by_cross_validation_predicts_outcomes_best(residual):
    """From the other outcomes; with ``residual`` from the own probabilities and the other residuals."""
    problem = vectors(40, 3, 1)
    probs, outcome, loss = problem.probs, np.eye(3)[problem.codes], []
    for h in BANDWIDTHS:
        w = log_dirichlet(probs, h)
        np.fill_diagonal(w, -np.inf)
        w = softmax(w, axis=1)
        predicted = probs + w @ (outcome - probs) if residual else w @ outcome
        loss.append(((outcome - predicted) ** 2).sum())
    found = DirichletKernel("cv", residual=residual)._details(problem, 1)["bandwidth"]
    assert found == BANDWIDTHS[int(np.argmin(loss))]


@pytest.mark.parametrize("weighted", [None, "repeats", "relative"])
def test_leave_one_out_densities_are_means_over_the_other_samples(weighted):
    n, rng = 12, np.random.default_rng(5)
    w = {None: None, "repeats": rng.integers(1, 4, n).astype(float), "relative": rng.random(n)}[weighted]
    problem = vectors(n, 3, 4, w, weighted != "relative")
    sample = Simplex.of(problem, 1e-9)
    rows = np.array([7, 0, 3])
    found = log_densities(sample, np.array([0.3, 0.05]), "data", rows)
    mass = np.ones(n) if w is None else w
    for h, each in zip((0.3, 0.05), found, strict=True):
        density = np.exp(log_dirichlet(problem.probs, h))
        for j, one in zip(rows, each, strict=True):
            # A row's repeats are other samples, but the row itself is none.
            others = mass.copy()
            others[j] -= others[j] if weighted == "relative" else 1
            assert one == pytest.approx(np.log(others @ density[j] / others.sum()))


# Kernel calibration error


def test_one_block_has_a_value_and_no_standard_error():
    p, y = np.array([0.2, 0.7, 0.9]), np.array([1, 1, 0])
    kce = KernelCalibrationError(bandwidth=0.5, statistic="linear")
    found = kce._power_and_se(Problem(p, y), 2)
    assert found.power == pytest.approx(np.exp(-0.5 / 0.5) * (1 - 0.2) * (1 - 0.7))  # the third row fills no block
    assert np.isnan(found.se)


# Empirical Bayes


@pytest.mark.parametrize(("rows", "apart"), [(7, False), (8, True)])
def test_a_score_of_eight_rows_may_stand_apart(rows, apart):
    rng = np.random.default_rng(0)
    others = (rng.permutation(np.arange(100, 4000, 2))[: 100 - rows]) / 4096
    scores = np.concatenate([np.full(rows, 2049 / 4096), others])
    ((_, cells),) = rank_cells(GridMoments.of(Problem.samples(scores[None], np.zeros(100))), 1 << 20)
    assert cells.has_heavy_score.tolist() == [apart]


# Draws of maps


def test_samples_count_beside_a_value_by_how_far_they_lie_in_its_order():
    """1 - (d / ¼)² of the share d of samples between a cell and the value, those of the cell itself not counted."""
    rng = np.random.default_rng(3)
    share = rng.dirichlet(np.ones(9), 4)
    values, at = rng.normal(size=(4, 9)), np.linspace(-0.5, 0.5, 4)[:, None]
    nothing = np.zeros(share.shape)
    found = DrawnMaps(nothing, share, nothing, np.zeros(())).beside(values, at)
    for row in range(4):
        v, s, a = values[row], share[row], at[row, 0]
        for i in range(9):
            between = (v >= a) & (v < v[i]) if v[i] >= a else (v < a) & (v > v[i])
            away = s[between].sum()
            assert found[row, i] == pytest.approx(max(1 - (away / 0.25) ** 2, 0.0), abs=1e-12)


# Ranges of scores


def test_ranges_are_sought_at_four_places_a_width_and_two_widths_a_power_of_two():
    found = _candidates(64)
    width = found.last - found.first
    assert sorted(set(width.tolist())) == [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45]  # 2^(k/2), up to three quarters
    for w in set(width.tolist()):
        first = np.sort(found.first[width == w])
        apart = max(1, w // 4)
        np.testing.assert_array_equal(first, np.arange(0, 64 - w + 1, apart))


def test_ranges_sought_are_as_probable_as_all_that_they_stand_for():
    """One over the width, in units of log m, and places of a width alike; three shapes."""
    m = 256
    found = _candidates(m)
    widest = (found.last - found.first).max()
    every = sum(1 / (np.log(m) * w) for w in range(1, widest + 1))
    assert 3 * np.exp(found.log_prior).sum() == pytest.approx(every, rel=0.05)


def test_the_evidence_of_a_score_that_stands_apart_is_that_of_a_coefficient_of_sd_four():
    """Against calibrated scores: the likelihood averaged over its prior, here by a sum over a fine grid."""
    rng = np.random.default_rng(1)
    n, rows, score = 800, 100, 2048 / 4096
    others = rng.permutation(np.arange(100, 4000, 2))[: n - rows] / 4096
    scores = np.concatenate([np.full(rows, score), others])
    outcomes = np.concatenate([np.arange(rows) < 65, rng.random(n - rows) < others])
    ((_, cells),) = rank_cells(GridMoments.of(Problem.samples(scores[None], outcomes)), 1 << 20)
    assert cells.apart_used.tolist() == [2]
    theta = np.linspace(-20, 20, 20_001)
    # Cells are those of the pile, and neighbours that share a cell with it in part.
    logit = cells.logit[0][:, None] + cells.apart[0, :, 2, None] * theta
    likelihood = cells.positive[0] @ logit - cells.count[0] @ np.logaddexp(0, logit)
    start = cells.positive[0] @ cells.logit[0] - cells.count[0] @ np.logaddexp(0, cells.logit[0])
    want = np.log(np.mean(np.exp(likelihood - start) * norm(0, 4).pdf(theta)) * 40)
    found = _Search.of(cells, None).evidence(np.zeros((*cells.count.shape, 6)))
    assert found == pytest.approx(want, abs=0.02)


# Scores in order


def test_the_isotonic_fit_to_no_samples_has_no_values():
    assert isotonic_means(np.empty(0), np.empty(0)).shape == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_a_sweep_ends_with_the_last_runs_of_its_bins(seed):
    """Bins are added while frequencies do not fall: cut j after the ``floor(j n / b)``-th smallest score."""
    rng = np.random.default_rng(seed)
    for n in (3, 6, 12):
        scores = np.sort(rng.integers(0, 9, n) / 10)
        outcomes = (rng.random(n) < scores).astype(float) if seed else np.arange(n) < n / 2  # falling: a single bin
        distinct, run = np.unique(scores, return_inverse=True)
        best = [distinct.size - 1]
        for b in range(2, n + 1):
            # Equal scores are never parted; of the largest ones a cut lies before them.
            cuts = {min(run[j * n // b - 1], distinct.size - 2) for j in range(1, b) if j * n // b} - {-1}
            ends = sorted(cuts | {distinct.size - 1})
            bins = np.searchsorted(ends, run)
            if (np.diff(np.bincount(bins, outcomes) / np.bincount(bins)) < 0).any():
                break
            best = ends
        runs = Runs.of(Problem(scores, outcomes))
        np.testing.assert_array_equal(_sweep(runs, "quantile", runs.eps), best)
