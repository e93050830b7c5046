"""`SimplexDisplay`: density, class frequencies and calibration error over the simplex of three classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.checks import check_choice, check_int
from ..data.problem import VectorProblem
from ..data.types import AnyArray, FloatArray, Label
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..estimators import DirichletKernel
from ..estimators.simplex import simplex_cells
from ..estimators.simplex_kernel import Simplex, seen_from
from ..notions import as_notion
from .simplex_display import draw_simplex, simplex_grid, to_page, triangles
from .style import class_text

KINDS = ("histogram", "kernel")
SHOWN = ("density", "frequency", "error")
_STEPS = 60
#: Below this part of an even density a kernel only repeats what is far away: nothing is drawn.
_LEAST_DENSITY = 0.02


class SimplexDisplay:
    """Density, frequencies or errors of three-class predictions over the probability simplex, cell by cell.

    Build one with :meth:`from_predictions`. ``show="density"``: rows per area, 1 where they are spread evenly.
    ``"frequency"``: a panel a class, with its observed frequency. ``"error"``: the sum over classes of the absolute
    differences between frequencies and stated probabilities, what the canonical L1 error is the mean of; noise counts
    as error.

    Attributes
    ----------
    cells : ndarray of shape (m, 3, 3)
        Corners of the triangles, each a probability vector.
    density : ndarray of shape (m,)
    frequency, stated : ndarray of shape (m, 3)
        Class frequencies and what they are compared with (mean vectors of cells, or the centre); NaN without rows.
    classes : tuple of labels
    show : str
    axes_ : ndarray of Axes
    figure_ : Figure

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from calibrant.datasets import make_survey
    >>> data = make_survey(500, "three-class", random_state=0)
    >>> display = cal.plot.SimplexDisplay.from_predictions(data.y_true, data.y_prob, show="error", n_bins=6)
    >>> len(display.cells)
    36
    """

    axes_: AnyArray
    figure_: Any

    def __init__(
        self,
        cells: FloatArray,
        density: FloatArray,
        frequency: FloatArray,
        stated: FloatArray,
        classes: tuple[Label, ...],
        *,
        show: str = "density",
    ) -> None:
        check_choice("show", show, SHOWN)
        self.cells, self.density, self.frequency, self.stated = cells, density, frequency, stated
        self.classes, self.show = classes, show

    @property
    def error(self) -> FloatArray:
        """Sum over classes of ``|frequency - stated|``, (m,)."""
        return np.asarray(np.abs(self.frequency - self.stated).sum(axis=1))

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        kind: str = "histogram",
        show: str = "density",
        n_bins: int = 8,
        estimator: DirichletKernel | None = None,
        labels: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
    ) -> SimplexDisplay:
        """Draw a sample of three classes.

        Parameters
        ----------
        y_true, y_prob, labels, sample_weight
            As :func:`calibration_error`.
        kind : {"histogram", "kernel"}, default "histogram"
            Equal triangles, those of ``SimplexBinned(n_bins)``; or Dirichlet kernels read at 3600 points.
        show : {"density", "frequency", "error"}, default "density"
        n_bins : int, default 8
            Cuts m of every class' probability: m² triangles.
        estimator : DirichletKernel, optional
            Bandwidth, orientation and eps for ``kind="kernel"``; by default ``DirichletKernel()``.
        ax : Axes, or array of three for "frequency", optional

        Raises
        ------
        ValueError
            For other than three classes, no row, or words that are not listed.

        Notes
        -----
        Cost O(n) for a histogram; 3600 n kernels.
        """
        check_choice("kind", kind, KINDS)
        check_choice("show", show, SHOWN)
        check_int("n_bins", n_bins, 1)
        if estimator is not None and not isinstance(estimator, DirichletKernel):
            raise TypeError(f"estimator must be a DirichletKernel; got {estimator!r}")
        predictions = as_predictions(y_true, y_prob, labels=labels, sample_weight=sample_weight)
        if predictions.n_classes != 3:
            raise ValueError(f"the simplex can be drawn for three classes; y_prob has {predictions.n_classes}")
        problem = as_notion("canonical", predictions).reduce(predictions)
        if not isinstance(problem, VectorProblem) or len(problem.codes) == 0:
            raise ValueError("y_prob must hold rows; got none")
        if kind == "histogram":
            cells = _cells(n_bins)
            found = _of_cells(cells, n_bins, problem)
        else:
            cells = _cells(_STEPS)
            found = _of_kernels(cells.mean(axis=1), problem, estimator or DirichletKernel())
        return cls(cells, *found, predictions.classes, show=show).plot(ax)

    def plot(self, ax: Any = None) -> SimplexDisplay:
        """Draw on given axes, or on a new figure."""
        import matplotlib.pyplot as plt

        n = 3 if self.show == "frequency" else 1
        if ax is None:
            size = (5.4, 4.4) if n == 1 else (12, 4.0)
            flat = list(plt.subplots(1, n, figsize=size, squeeze=False, layout="constrained")[1].flat)
        else:
            flat = [a for a in np.asarray(ax, dtype=object).ravel() if a is not None]
        if len(flat) != n:
            raise ValueError(f"ax must hold {n} axes for show={self.show!r}; got {len(flat)}")
        self.axes_, self.figure_ = np.array(flat, dtype=object), flat[0].figure
        values = {"density": self.density, "error": self.error, "frequency": self.frequency}[self.show]
        most = 1.0 if self.show == "frequency" else float(np.nanmax(values))
        for k, panel in enumerate(flat):
            draw_simplex(panel, self.classes)
            picture = self._fill(panel, values if n == 1 else values[:, k], most)
            if n == 3:
                panel.set_title(f"Frequency of {class_text(self.classes[k])}", fontsize=9, pad=8)
        words = {"density": "rows per area (even: 1)", "error": "sum of |frequency - stated|", "frequency": "frequency"}
        bar = self.figure_.colorbar(picture, ax=flat, shrink=0.75, pad=0.015)
        bar.set_label(words[self.show], fontsize=8)
        bar.ax.tick_params(labelsize=8)
        return self

    def _fill(self, panel: Any, values: FloatArray, most: float) -> Any:
        """Triangles without their number stay white."""
        from matplotlib.collections import PolyCollection
        from matplotlib.colors import PowerNorm

        known = np.isfinite(values) & (self.density > 0)
        cmap = {"density": "Blues", "frequency": "viridis", "error": "OrRd"}[self.show]
        drawn = PolyCollection(
            list(to_page(self.cells[known].reshape(-1, 3)).reshape(-1, 3, 2)),
            array=values[known], cmap=cmap, edgecolors="face", linewidths=0.2, zorder=0.5,
        )  # fmt: skip
        # Densities are high in the corners: by their root the middle is seen too.
        drawn.set_norm(PowerNorm(0.5 if self.show == "density" else 1.0, 0, max(most, 1e-9)))
        panel.add_collection(drawn, autolim=False)
        return drawn


def _cells(steps: int) -> FloatArray:
    """Corners of m² equal triangles, (m², 3, 3)."""
    return np.asarray(simplex_grid(steps, edge=0.0)[triangles(steps)])


def _of_cells(cells: FloatArray, cuts: int, problem: VectorProblem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Density, frequencies and mean vectors of the cells of :class:`SimplexBinned`."""
    m = len(cells)
    probs = problem.probs.astype(np.float64)
    home = simplex_cells(np.vstack([cells.mean(axis=1), probs]), cuts, problem.eps)
    cell_of = np.full(home.max() + 1, -1)
    cell_of[home[:m]] = np.arange(m)
    here, w = cell_of[home[m:]], ones_or(problem.weights, len(probs))
    # A row on a plane at 1/K has a cell of its own there: it is drawn with a neighbour.
    lost = here < 0
    if lost.any():
        away = ((probs[lost][:, None] - cells.mean(axis=1)) ** 2).sum(axis=2)
        here[lost] = away.argmin(axis=1)
    mass = np.bincount(here, w, minlength=m)
    hot = (problem.codes[:, None] == np.arange(3)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        frequency, mean = (
            np.stack([np.bincount(here, w * column, minlength=m) for column in of.T], axis=1) / mass[:, None]
            for of in (hot, probs)
        )
    return mass * m / mass.sum(), frequency, mean


def _of_kernels(
    points: FloatArray, problem: VectorProblem, kernel: DirichletKernel
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same around points of the simplex."""
    sample = Simplex.of(problem, kernel.eps)
    density, frequency = seen_from(points, sample, sample.one_hot(), kernel._h(sample, 1), kernel.orientation)
    density = density / 2  # An even one is 2! on this simplex.
    frequency[density < _LEAST_DENSITY] = np.nan
    return density, frequency, points
