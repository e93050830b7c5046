"""Displays on the simplex of three classes: the predictions, and where a calibrator moves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import PowerNorm, to_rgba_array

from ..calibrators.base import Calibrator, in_column_order, predict_unnamed
from ..data.checks import check_choice, check_int, check_type
from ..data.docs import Documented
from ..data.problem import VectorProblem
from ..data.types import AnyArray, FloatArray, Label
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..estimators import DirichletKernel
from ..estimators.simplex import simplex_cells
from ..estimators.simplex_kernel import Simplex, seen_from
from ..notions import as_notion
from .fitting import fit, is_small, new_figure
from .style import LONGEST_IN_PANEL, STYLES, class_texts

#: Corners of the simplex on the page: the first class lower left, the second lower right, the third on top.
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
_COLORS = tuple(style.color for style in STYLES[:3])
#: Number of cuts of each side for layers that fill the simplex, and distance from its sides where maps are evaluated.
_STEPS, _EDGE = 60, 1e-3
#: Below this fraction of an even density, a kernel only repeats distant rows: nothing is drawn.
_LEAST_DENSITY = 0.02
#: Opacity of arrows that start without scores nearby: there a map is an extrapolation.
_FAINT = 0.25
#: Colours of a display, and the words beside them.
_SHOWN = {
    "density": ("Blues", "rows per area (even: 1)"),
    "frequency": ("viridis", "frequency"),
    "error": ("OrRd", "sum of |frequency - stated|"),
}


class SimplexDisplay(Documented):
    """Density, frequencies or errors of three-class predictions over the probability simplex, cell by cell.

    Build one with :meth:`from_predictions`. ``show="density"``: rows per area, 1 if they are spread evenly.
    ``"frequency"``: one panel per class, with its observed frequency. ``"error"``: the sum over classes of the absolute
    differences between frequencies and stated probabilities, whose mean is the canonical L1 error; noise counts
    as error.

    Attributes
    ----------
    cells : ndarray of shape (m, 3, 3)
        Corners of the triangles, each a probability vector.
    density : ndarray of shape (m,)
        Rows per area.
    frequency, stated : ndarray of shape (m, 3)
        Class frequencies and the vectors that they are compared with (means of cells, or the centre); NaN without rows.
    classes : tuple of labels
        The three labels.
    show : {"density", "frequency", "error"}
        The quantity that is drawn.
    axes_ : ndarray of Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.plot.SimplexMapDisplay : The map of a calibrator.
    calibrant.estimators.SimplexBinned : The error over the same cells.

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
        check_choice("show", show, _SHOWN)
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
        kind : {"histogram", "kernel"}, default "histogram"
            Equal triangles, those of ``SimplexBinned(n_bins)``; or Dirichlet kernels evaluated at 3600 points.
        show : {"density", "frequency", "error"}, default "density"
            The quantity to draw; see above.
        n_bins : int, default 8
            Number m of cuts of each class's probability: m² triangles.
        estimator : DirichletKernel, optional
            Bandwidth, orientation and eps for ``kind="kernel"``; by default ``DirichletKernel()``.
        ax : matplotlib Axes, or array of three for "frequency", optional
            Where to draw; by default on a new figure.

        Raises
        ------
        ValueError
            If there are not three classes, if there are no rows, or for an unknown option.

        Notes
        -----
        Cost: O(n) for a histogram, 3600 n kernel evaluations for kernels.
        """
        check_choice("kind", kind, ("histogram", "kernel"))
        check_choice("show", show, _SHOWN)
        check_int("n_bins", n_bins, 1)
        kernel = check_type(
            "estimator", DirichletKernel() if estimator is None else estimator, DirichletKernel, "a DirichletKernel"
        )
        predictions = as_predictions(y_true, y_prob, labels=labels, sample_weight=sample_weight)
        if predictions.n_classes != 3:
            raise ValueError(f"the simplex can be drawn for three classes; y_prob has {predictions.n_classes}")
        problem = as_notion("canonical", predictions).reduce(predictions)
        if not isinstance(problem, VectorProblem) or len(problem.codes) == 0:
            raise ValueError("y_prob must have at least one row; got none")
        if kind == "histogram":
            cells = _cells(n_bins)
            found = _of_cells(cells, n_bins, problem)
        else:
            cells = _cells(_STEPS)
            found = _of_kernels(cells.mean(axis=1), problem, kernel)
        return cls(cells, *found, predictions.classes, show=show).plot(ax)

    def plot(self, ax: Any = None) -> SimplexDisplay:
        """Draw on given axes, or on a new figure."""
        several = self.show == "frequency"
        values = np.column_stack([getattr(self, self.show)])
        self.axes_ = _panels(ax, values.shape[1], (12, 4.0) if several else (5.4, 4.4), f"show={self.show!r}")
        self.figure_ = self.axes_[0].figure
        most = 1.0 if several else float(np.nanmax(values))
        names = class_texts(self.classes)
        cmap, words = _SHOWN[self.show]
        for k, panel in enumerate(self.axes_):
            draw_simplex(panel, self.classes)
            known = np.isfinite(values[:, k]) & (self.density > 0)  # triangles without their number stay white
            corners = to_page(self.cells[known].reshape(-1, 3)).reshape(-1, 3, 2)
            picture = PolyCollection(
                list(corners), array=values[known, k], cmap=cmap, edgecolors="face", linewidths=0.2, zorder=0.5
            )
            # Densities are high in the corners: by their root the middle is seen too.
            picture.set_norm(PowerNorm(0.5 if self.show == "density" else 1.0, 0, max(most, 1e-9)))
            panel.add_collection(picture, autolim=False)
            if several:
                panel.set_title(f"Frequency of {names[k]}", fontsize=9, pad=8)
        _draw_bar(self.axes_, picture, words)
        fit(*self.axes_)
        return self


class SimplexMapDisplay(Documented):
    """Map of a three-class calibrator, drawn in the probability simplex.

    Build one with :meth:`from_calibrator`. ``"arrows"``: from stated to calibrated probabilities, coloured by the
    predicted class after calibration, faint without scores nearby. ``"heat"``: one panel per class, showing how much
    its probability increases (red) or decreases (blue) at each stated probability vector.

    Attributes
    ----------
    classes : tuple of labels
        The three labels.
    stated, calibrated : ndarray of shape (m, 3)
        Stated probability vectors, and their calibrated ones.
    truth : ndarray of shape (m, 3) or None
        Their true probabilities.
    scores : ndarray of shape (n, 3) or None
        Scores of the data.
    kind : {"arrows", "heat"}
        The kind of picture.
    axes_ : ndarray of Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.plot.SimplexDisplay : The scores themselves.
    calibrant.plot.CalibrationMapDisplay : Maps of two classes.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from calibrant.calibrators import TemperatureScaling
    >>> from calibrant.datasets import make_survey
    >>> data = make_survey(500, "three-class", random_state=0)
    >>> fitted = TemperatureScaling().fit(data.y_prob, data.y_true)
    >>> display = cal.plot.SimplexMapDisplay.from_calibrator(fitted)
    >>> display.stated.shape[1]
    3
    """

    axes_: AnyArray
    figure_: Any

    def __init__(
        self,
        stated: FloatArray,
        calibrated: FloatArray,
        classes: tuple[Label, ...],
        *,
        kind: str = "arrows",
        truth: FloatArray | None = None,
        scores: FloatArray | None = None,
    ) -> None:
        check_choice("kind", kind, ("arrows", "heat"))
        self.stated, self.calibrated, self.classes, self.kind = stated, calibrated, classes, kind
        self.truth, self.scores = truth, scores

    @classmethod
    def from_calibrator(
        cls,
        calibrator: Calibrator,
        *,
        kind: str = "arrows",
        scores: Any = None,
        truth: Callable[[FloatArray], Any] | None = None,
        n_steps: int = 9,
        ax: Any = None,
    ) -> SimplexMapDisplay:
        """Draw the map of a fitted calibrator.

        Parameters
        ----------
        calibrator : Calibrator
            A fitted calibrator of three classes and probabilities.
        kind : {"arrows", "heat"}, default "arrows"
            The kind of picture; see above.
        scores : array-like of shape (n, 3), optional
            Scores to draw behind the map, in the order of ``calibrator.classes_``; far from them it extrapolates.
        truth : callable, optional
            True class probabilities (m, 3) of stated ones, drawn as circles joined to the tips of arrows missing them.
        n_steps : int, default 9
            Arrows start at the centres of about ``n_steps² / 2`` cells.
        ax : matplotlib Axes, or array of three for "heat", optional
            Where to draw; by default on a new figure.
        """
        from sklearn.utils.validation import check_is_fitted

        check_type("calibrator", calibrator, Calibrator, "a fitted calibrator of this package")
        check_is_fitted(calibrator)
        classes = tuple(c.item() if isinstance(c, np.generic) else c for c in calibrator.classes_)
        if len(classes) != 3:
            raise ValueError(f"the simplex can be drawn for three classes; the calibrator has {len(classes)}")
        if calibrator.input != "probability":
            raise ValueError(f"the map is drawn over probabilities; the calibrator takes input={calibrator.input!r}")
        stated = _inner_points(check_int("n_steps", n_steps, 2)) if kind == "arrows" else simplex_grid(_STEPS)
        calibrated = predict_unnamed(calibrator, in_column_order(calibrator, stated))
        known = None if truth is None else np.asarray(truth(stated), dtype=np.float64)
        points = None if scores is None else np.asarray(scores, dtype=np.float64)
        if points is not None and (points.ndim != 2 or points.shape[1] != 3):
            raise ValueError(f"scores must have shape (n, 3); got {points.shape}")
        return cls(stated, calibrated, classes, kind=kind, truth=known, scores=points).plot(ax)

    def plot(self, ax: Any = None) -> SimplexMapDisplay:
        """Draw on given axes, or on a new figure."""
        several = self.kind == "heat"
        self.axes_ = _panels(ax, 3 if several else 1, (11.5, 3.9) if several else (4.6, 4.4), f"kind={self.kind!r}")
        self.figure_ = self.axes_[0].figure
        for panel in self.axes_:
            draw_simplex(panel, self.classes)
        if several:
            self._draw_heat()
        else:
            self._draw_arrows(self.axes_[0])
        fit(*self.axes_)
        return self

    def _draw_arrows(self, ax: Any) -> None:
        """Draw arrows, faint without scores nearby; grey lines lead from their tips to where they should end."""
        start, end = to_page(self.stated), to_page(self.calibrated)
        colors = to_rgba_array([_COLORS[k] for k in self.calibrated.argmax(axis=1)])
        if self.scores is not None:
            at = to_page(self.scores[:4000])
            ax.scatter(at[:, 0], at[:, 1], s=3, color="0.75", linewidths=0, zorder=1, rasterized=True)
            colors[:, 3] = np.where(_near(start, at), 1.0, _FAINT)
        if self.truth is not None:
            goal, opaque = to_page(self.truth), colors[:, 3]
            misses = list(np.stack([end, goal], axis=1))
            ax.add_collection(LineCollection(misses, colors="0.35", linewidths=1.0, alpha=opaque, zorder=3))
            ax.scatter(*goal.T, s=11, facecolor="white", edgecolor="0.35", linewidths=0.8, alpha=opaque, zorder=3.1)
        head: dict[str, Any] = {"headwidth": 4.5, "headlength": 5, "headaxislength": 4.5}
        size: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1, "units": "dots"}
        width = 1.3 * ax.figure.dpi / 72
        ax.quiver(*start.T, *(end - start).T, color=colors, width=width, zorder=2.5, **head, **size)

    def _draw_heat(self) -> None:
        change = self.calibrated - self.stated
        most = max(float(np.abs(change).max()), 1e-3)
        x, y = to_page(self.stated).T
        cells, names = triangles(_STEPS), class_texts(self.classes)
        colors: dict[str, Any] = {"shading": "gouraud", "cmap": "RdBu_r", "vmin": -most, "vmax": most}
        for k, panel in enumerate(self.axes_):
            picture = panel.tripcolor(x, y, cells, change[:, k], zorder=0.5, **colors)
            lines = np.linspace(-most, most, 9)
            panel.tricontour(x, y, cells, change[:, k], levels=lines, colors="0.25", linewidths=0.5, zorder=2)
            if self.scores is not None:
                at = to_page(self.scores[:1500])
                panel.scatter(at[:, 0], at[:, 1], s=2, color="black", alpha=0.25, linewidths=0, zorder=1.5)
            panel.set_title(f"Change of the probability of {names[k]}", fontsize=9, pad=8)
        _draw_bar(self.axes_, picture, "calibrated - stated probability")


def _panels(ax: Any, n: int, size: tuple[float, float], shown: str) -> AnyArray:
    """Given axes, or those of a new figure of a size in inches; ValueError if their number is not ``n``."""
    if ax is None:
        ax = new_figure(1, n, *size)[1]
    panels = [a for a in np.asarray(ax, dtype=object).ravel() if a is not None]
    if len(panels) != n:
        raise ValueError(f"ax must hold {n} axes for {shown}; got {len(panels)}")
    return np.array(panels, dtype=object)


def _draw_bar(axes: AnyArray, picture: Any, text: str) -> None:
    """Draw a colour bar next to the panels."""
    bar = axes[0].figure.colorbar(picture, ax=list(axes), shrink=0.75, pad=0.015)
    bar.set_label(text, fontsize=8)
    bar.ax.tick_params(labelsize=8)


def to_page(p: FloatArray) -> FloatArray:
    """Points of the simplex (n, 3) on the page, (n, 2)."""
    return np.asarray(p @ CORNERS)


def draw_simplex(ax: Any, classes: tuple[Label, ...]) -> None:
    """Draw a triangle with lines at every fifth, numbers along its sides, and a class at each corner."""
    ax.set_aspect("equal")
    ax.axis("off")
    ax.set(xlim=(-0.14, 1.14), ylim=(-0.13, 1.0))
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.2", linewidth=1.1, zorder=3, clip_on=False)
    for fifth in np.arange(1, 5) / 5:
        for k in range(3):
            # Where class k has this probability, from the side to the next class to the side to the one before.
            ends = np.zeros((2, 3))
            ends[:, k] = fifth
            ends[0, (k + 1) % 3] = ends[1, (k + 2) % 3] = 1 - fifth
            ax.plot(*to_page(ends).T, color="0.87", linewidth=0.6, zorder=0.8)
            # Outwards from the side that the line starts on, opposite the class before.
            out = to_page(np.full((1, 3), 1 / 3))[0] - CORNERS[(k + 2) % 3]
            at = to_page(ends[:1])[0] + 0.04 * out / np.linalg.norm(out)
            ax.text(*at, f"{fifth:.1f}", color=_COLORS[k], fontsize=6.5, ha="center", va="center")
    shifts = (-0.02, -0.075), (0.02, -0.075), (0.0, 0.06)
    for k, (at, shift, name) in enumerate(
        zip(CORNERS, shifts, class_texts(classes, 10 if is_small(ax) else LONGEST_IN_PANEL), strict=True)
    ):
        ax.text(at[0] + shift[0], at[1] + shift[1], name, color=_COLORS[k], ha="center", va="center", fontsize=9)


def simplex_grid(steps: int, edge: float = _EDGE) -> FloatArray:
    """Nodes of a triangular grid, (m, 3): whole steps of each coordinate, moved inwards by ``edge``."""
    i, j = (a.ravel() for a in np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij"))
    inside = i + j <= steps
    i, j = i[inside], j[inside]
    whole = np.stack([steps - i - j, i, j], axis=1) / steps
    return np.asarray((1 - 3 * edge) * whole + edge)


def _inner_points(steps: int) -> FloatArray:
    """Centres of the cells of a triangular grid that point up."""
    whole = simplex_grid(steps - 1)
    return np.asarray((whole * (steps - 1) + 1 / 3) / steps)


def triangles(steps: int) -> AnyArray:
    """Cells of :func:`simplex_grid` as triples of nodes."""
    number = np.full((steps + 2, steps + 2), -1)
    i, j = np.nonzero(np.add.outer(np.arange(steps + 1), np.arange(steps + 1)) <= steps)
    number[i, j] = np.arange(len(i))
    up, down = (
        np.stack([number[i + a, j], number[i + 1, j + b], number[i, j + 1]], axis=1) for a, b in ((0, 0), (1, 1))
    )
    return np.concatenate([cells[(cells >= 0).all(axis=1)] for cells in (up, down)])


def _near(points: FloatArray, scores: FloatArray) -> AnyArray:
    """Points of the page whose nearest score is at most as far away as the nearest other point."""
    from scipy.spatial import cKDTree

    apart = cKDTree(points).query(points, k=2)[0][:, 1].min() if len(points) > 1 else np.inf
    return np.asarray(cKDTree(scores).query(points)[0] <= apart)


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
