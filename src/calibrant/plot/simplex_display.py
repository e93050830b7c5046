"""`SimplexMapDisplay`: where a calibrator of three classes moves the points of the simplex."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.checks import check_choice, check_int
from ..data.types import AnyArray, FloatArray, Label
from .style import STYLES, class_text

if TYPE_CHECKING:
    from ..calibrators import Calibrator

KINDS = ("arrows", "heat")
#: Corners of the simplex on the page: the first class lower left, the second lower right, the third on top.
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
_COLORS = tuple(style.color for style in STYLES[:3])
_HEAT_STEPS = 60
_EDGE = 1e-3
#: Opacity of arrows that start where there are no scores: there a map is an extrapolation.
_FAINT = 0.25


class SimplexMapDisplay:
    """Map of a three-class calibrator, drawn in the probability simplex.

    Build one with :meth:`from_calibrator`. ``"arrows"``: from stated to calibrated probabilities, coloured by the
    class that is the first choice afterwards, faint where there are no scores. ``"heat"``: a panel a class, with how
    much its probability rises (red) or falls (blue) at each stated probability vector.

    Attributes
    ----------
    classes : tuple of labels
    stated, calibrated : ndarray of shape (m, 3)
        Points and where they go.
    truth : ndarray of shape (m, 3) or None
        Where they should go.
    scores : ndarray of shape (n, 3) or None
        Points of the data.
    kind : str
    axes_ : ndarray of Axes
    figure_ : Figure

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
        check_choice("kind", kind, KINDS)
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
            Fitted, of three classes and probabilities.
        kind : {"arrows", "heat"}, default "arrows"
        scores : array-like of shape (n, 3), optional
            Data to draw behind, in the order of ``calibrator.classes_``: a map says little where there are none.
        truth : callable, optional
            True class probabilities (m, 3) of stated ones; circles, joined to the tips of the arrows that miss them.
        n_steps : int, default 9
            Arrows start at the centres of about ``n_steps² / 2`` cells.
        ax : Axes, or array of three for "heat", optional
        """
        from sklearn.utils.validation import check_is_fitted

        from ..calibrators.base import Calibrator, in_column_order, predict_unnamed

        if not isinstance(calibrator, Calibrator):
            raise TypeError(f"calibrator must be a fitted calibrator of this package; got {calibrator!r}")
        check_is_fitted(calibrator)
        classes = tuple(c.item() if isinstance(c, np.generic) else c for c in calibrator.classes_)
        if len(classes) != 3:
            raise ValueError(f"the simplex can be drawn for three classes; the calibrator has {len(classes)}")
        if calibrator.input != "probability":
            raise ValueError(f"the map is drawn over probabilities; the calibrator takes input={calibrator.input!r}")
        stated = _inner_points(check_int("n_steps", n_steps, 2)) if kind == "arrows" else simplex_grid(_HEAT_STEPS)
        calibrated = predict_unnamed(calibrator, in_column_order(calibrator, stated))
        known = None if truth is None else np.asarray(truth(stated), dtype=np.float64)
        points = None if scores is None else np.asarray(scores, dtype=np.float64)
        if points is not None and (points.ndim != 2 or points.shape[1] != 3):
            raise ValueError(f"scores must have shape (n, 3); got {points.shape}")
        return cls(stated, calibrated, classes, kind=kind, truth=known, scores=points).plot(ax)

    def plot(self, ax: Any = None) -> SimplexMapDisplay:
        """Draw on given axes, or on a new figure."""
        import matplotlib.pyplot as plt

        n = 1 if self.kind == "arrows" else 3
        if ax is None:
            axes = plt.subplots(
                1, n, figsize=(4.6 if n == 1 else 11.5, 4.4 if n == 1 else 3.9), squeeze=False, layout="constrained"
            )[1]
            flat = list(axes.flat)
        else:
            flat = [a for a in np.asarray(ax, dtype=object).ravel() if a is not None]
        if len(flat) != n:
            raise ValueError(f"ax must hold {n} axes for kind={self.kind!r}; got {len(flat)}")
        self.axes_, self.figure_ = np.array(flat, dtype=object), flat[0].figure
        for panel in flat:
            draw_simplex(panel, self.classes)
        if self.kind == "arrows":
            self._arrows(flat[0])
        else:
            self._heat(flat)
        return self

    def _arrows(self, ax: Any) -> None:
        """Arrows, faint where there are no scores; grey lines from their tips to where they should end."""
        from matplotlib.collections import LineCollection
        from matplotlib.colors import to_rgba_array

        start, end = to_page(self.stated), to_page(self.calibrated)
        colors = to_rgba_array([_COLORS[k] for k in self.calibrated.argmax(axis=1)])
        if self.scores is not None:
            at = to_page(self.scores[:4000])
            ax.scatter(at[:, 0], at[:, 1], s=3, color="0.75", linewidths=0, zorder=1, rasterized=True)
            colors[:, 3] = np.where(_near(start, at), 1.0, _FAINT)
        if self.truth is not None:
            goal, opaque = to_page(self.truth), colors[:, 3]
            ax.add_collection(
                LineCollection(
                    list(np.stack([end, goal], axis=1)), colors="0.35", linewidths=1.0, alpha=opaque, zorder=3
                )
            )
            ax.scatter(*goal.T, s=11, facecolor="white", edgecolor="0.35", linewidths=0.8, alpha=opaque, zorder=3.1)
        ax.quiver(
            *start.T,
            *(end - start).T,
            color=colors,
            angles="xy",
            scale_units="xy",
            scale=1,
            units="dots",
            width=1.3 * ax.figure.dpi / 72,
            headwidth=4.5,
            headlength=5,
            headaxislength=4.5,
            zorder=2.5,
        )

    def _heat(self, axes: list[Any]) -> None:
        change = self.calibrated - self.stated
        most = max(float(np.abs(change).max()), 1e-3)
        x, y = to_page(self.stated).T
        cells = triangles(_HEAT_STEPS)
        for k, panel in enumerate(axes):
            picture = panel.tripcolor(
                x, y, cells, change[:, k], shading="gouraud", cmap="RdBu_r", vmin=-most, vmax=most, zorder=0.5
            )
            lines = np.linspace(-most, most, 9)
            panel.tricontour(x, y, cells, change[:, k], levels=lines, colors="0.25", linewidths=0.5, zorder=2)
            if self.scores is not None:
                at = to_page(self.scores[:1500])
                panel.scatter(at[:, 0], at[:, 1], s=2, color="black", alpha=0.25, linewidths=0, zorder=1.5)
            panel.set_title(f"Change of the probability of {class_text(self.classes[k])}", fontsize=9, pad=8)
        bar = self.figure_.colorbar(picture, ax=axes, shrink=0.75, pad=0.015)
        bar.set_label("calibrated - stated probability", fontsize=8)
        bar.ax.tick_params(labelsize=8)


def to_page(p: FloatArray) -> FloatArray:
    """Points of the simplex (n, 3) on the page, (n, 2)."""
    return np.asarray(p @ CORNERS)


def draw_simplex(ax: Any, classes: tuple[Label, ...]) -> None:
    """Triangle with lines at every fifth, numbers along its sides, and a class at each corner."""
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
    for k, (at, shift) in enumerate(zip(CORNERS, ((-0.02, -0.075), (0.02, -0.075), (0.0, 0.06)), strict=True)):
        name = class_text(classes[k], 16)
        ax.text(at[0] + shift[0], at[1] + shift[1], name, color=_COLORS[k], ha="center", va="center", fontsize=9)


def simplex_grid(steps: int, edge: float = _EDGE) -> FloatArray:
    """Nodes of a triangular grid, (m, 3): whole steps of each coordinate, drawn inside by ``edge``."""
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
    number: dict[tuple[int, int], int] = {}
    for i in range(steps + 1):
        for j in range(steps + 1 - i):
            number[i, j] = len(number)
    up = [(number[i, j], number[i + 1, j], number[i, j + 1]) for i, j in number if i + j < steps]
    down = [(number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]) for i, j in number if i + j < steps - 1]
    return np.array(up + down)


def _near(points: FloatArray, scores: FloatArray) -> AnyArray:
    """Points of the page whose nearest score is no further away than the nearest other point."""
    from scipy.spatial import cKDTree

    apart = cKDTree(points).query(points, k=2)[0][:, 1].min() if len(points) > 1 else np.inf
    return np.asarray(cKDTree(scores).query(points)[0] <= apart)
