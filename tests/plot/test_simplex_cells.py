"""`SimplexDisplay`: its cells are those of `SimplexBinned`, its surfaces those of the kernels."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import dirichlet

import calibrant as cal

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 2, 1], 400)
Y = (RNG.random((400, 1)) > P.cumsum(axis=1)).sum(axis=1)
WEIGHTS = RNG.integers(1, 4, 400)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("n_bins", [1, 4, 7])
def test_cells_make_the_binned_error(n_bins, weights):
    """Mean over rows of the cells' errors is the L1 error of ``SimplexBinned``; cells tile the triangle."""
    display = cal.plot.SimplexDisplay.from_predictions(Y, P, show="error", n_bins=n_bins, sample_weight=weights)
    assert len(display.cells) == n_bins**2
    share = display.density / display.density.sum()
    assert display.density.mean() == pytest.approx(1)
    given = {"notion": "canonical", "estimator": cal.estimators.SimplexBinned(n_bins), "sample_weight": weights}
    assert np.nansum(share * display.error) == pytest.approx(cal.calibration_error(Y, P, **given), abs=1e-12)
    np.testing.assert_allclose(display.cells.sum(axis=2), 1)
    drawn = display.axes_[0].collections[-1]
    assert len(drawn.get_paths()) == np.isfinite(display.error).sum()
    plt.close("all")


@pytest.mark.parametrize("orientation", ["data", "query"])
def test_kernels(orientation):
    """Density and frequency by SciPy's Dirichlet density, at the centres of cells."""
    kernel = cal.estimators.DirichletKernel(0.05, orientation)
    display = cal.plot.SimplexDisplay.from_predictions(Y, P, kind="kernel", show="frequency", estimator=kernel)
    centres = display.cells.mean(axis=1)
    for at in (0, 1000, 2500):
        x = centres[at]
        if orientation == "data":
            each = np.array([dirichlet.pdf(x, p / 0.05 + 1) for p in P])
        else:
            each = dirichlet.pdf(P.T, x / 0.05 + 1)
        assert display.density[at] == pytest.approx(each.mean() / 2, rel=1e-8)
        if display.density[at] > 0.02:
            np.testing.assert_allclose(display.frequency[at], each @ np.eye(3)[Y] / each.sum(), rtol=1e-8)
    assert len(display.axes_) == 3
    assert np.nanmax(np.abs(display.frequency.sum(axis=1) - 1)) < 1e-12
    plt.close("all")


def test_where_there_are_no_rows_nothing_is_drawn():
    display = cal.plot.SimplexDisplay.from_predictions([0, 1, 2], np.eye(3) * 0.94 + 0.02, n_bins=5, show="error")
    assert np.isnan(display.error).sum() == 22
    assert len(display.axes_[0].collections[-1].get_paths()) == 3
    kernel = cal.plot.SimplexDisplay.from_predictions(
        [0, 1, 2], np.eye(3) * 0.94 + 0.02, kind="kernel", estimator=cal.estimators.DirichletKernel(0.005)
    )
    assert np.isnan(kernel.error).any()
    plt.close("all")


def test_a_row_on_the_planes_at_a_third_is_in_a_neighbour():
    display = cal.plot.SimplexDisplay.from_predictions([0, 1, 2], np.full((3, 3), 1 / 3), n_bins=3)
    assert display.density.max() == pytest.approx(9)
    plt.close("all")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"kind": "surface"}, ValueError, "kind must be one of"),
        ({"show": "lce"}, ValueError, "show must be one of"),
        ({"n_bins": 0}, ValueError, "n_bins"),
        ({"estimator": cal.Binned()}, TypeError, "estimator must be a DirichletKernel"),
        ({"ax": [1, 2]}, ValueError, "ax must hold 1 axes"),
    ],
)
def test_bad_arguments(given, error, words):
    with pytest.raises(error, match=words):
        cal.plot.SimplexDisplay.from_predictions(Y, P, **given)


def test_other_than_three_classes():
    with pytest.raises(ValueError, match="three classes; y_prob has 2"):
        cal.plot.SimplexDisplay.from_predictions([0, 1, 0], [0.2, 0.8, 0.4])
