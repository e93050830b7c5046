"""Axes of panels, given by the user or on a new figure, and the strip at each, a histogram of the scores."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecFromSubplotSpec
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
from matplotlib.transforms import Affine2D, ScaledTranslation, Transform, blended_transform_factory

from ..data.checks import check_choice, received
from ..data.notebook import is_for_page
from ..data.types import Label
from .diagram import Diagram
from .fitting import BELOW, NO_HISTOGRAM, PAGE_WIDTH, new_figure, side_of, strip_below
from .scale import frame_of
from .style import Style

#: Figures made here, whose title and footer belong to calibrant.
_OWN: WeakSet[Figure] = WeakSet()
#: The class that a panel shows, and the panels that replaced an axes.
_CLASS: WeakKeyDictionary[Axes, Label] = WeakKeyDictionary()
_PANELS: WeakKeyDictionary[Axes, list[weakref.ref[Axes]]] = WeakKeyDictionary()
STRIP_LABEL = "<calibrant strip>"
#: Positions of a strip: along the lower edge within the axes, below them within the space that they had, or above.
PLACES = ("inside", "below", "above")
#: Height of a strip within the axes, or within their space, as a share.
_SHARE = 0.17
#: Counts are drawn on a logarithmic axis when the highest bar is this many times the median bar.
LOG_RATIO = 30.0


def shape_of(n: int) -> tuple[int, int]:
    """Rows and columns for ``n`` panels, at most three per row."""
    columns = n if n <= 3 else 2 if n == 4 else 3
    return -(-n // columns), columns


def new_axes(n: int) -> list[Axes]:
    """Axes of a new figure for ``n`` panels, arranged by :mod:`calibrant.plot.figure`."""
    rows, columns = shape_of(n)
    if is_for_page():
        columns = min(columns, 2)
        rows = -(-n // columns)
        grid = new_figure(rows, columns, PAGE_WIDTH, 0.3 + PAGE_WIDTH * rows / columns)[1]
        return _first(grid, n)
    size = (5.4, 6.6) if n == 1 else (3.1 * columns, 3.9 * rows)  # roughly: see arrange_grid for the final one
    figure, grid = plt.subplots(rows, columns, squeeze=False, figsize=size)
    _OWN.add(figure)
    return _first(grid, n)


def _first(grid: Any, n: int) -> list[Axes]:
    """The first ``n`` axes of a figure; the others are removed."""
    flat = list(grid.flat)
    for ax in flat[n:]:
        ax.remove()
    return flat[:n]


def given_axes(ax: Any, n: int) -> list[Axes]:
    """Panels on axes given by the user: as many as there are, or a grid in place of a single one."""
    if isinstance(ax, Axes):
        if n == 1:
            return [ax]
        present = [panel for panel in (ref() for ref in _PANELS.get(ax, [])) if panel is not None]
        return present or _split(ax, n)
    axes = [a for a in np.asarray(ax, dtype=object).ravel() if a is not None]
    if not axes or not all(isinstance(a, Axes) for a in axes):
        raise TypeError(f"ax must be a matplotlib Axes or an array of them; got {received(ax)}")
    return axes


def _split(ax: Axes, n: int) -> list[Axes]:
    spec = ax.get_subplotspec()
    figure = ax.get_figure(root=False)
    if spec is None or figure is None:
        raise ValueError(
            f"ax has room for one panel, and {n} are drawn: pass an array of axes, such as plt.subplots returns"
        )
    rows, columns = shape_of(n)
    inner = GridSpecFromSubplotSpec(rows, columns, subplot_spec=spec, wspace=0.5, hspace=0.9)
    ax.set_axis_off()
    panels = [figure.add_subplot(inner[i // columns, i % columns]) for i in range(n)]
    _PANELS[ax] = [weakref.ref(panel) for panel in panels]
    return panels


def claim(ax: Axes, label: Label) -> None:
    """Remember which class a panel shows."""
    _CLASS[ax] = label


def panels_of(figure: Any) -> list[Axes]:
    """Panels of a figure that show a class."""
    return [ax for ax in figure.axes if ax in _CLASS]


def classes_on(ax: Any) -> list[Label] | None:
    """Classes that the panels on ``ax`` show already; None when they are new."""
    if ax is None:
        return None
    single = isinstance(ax, Axes)
    axes = [r() for r in _PANELS.get(ax, [])] if single else list(np.asarray(ax, dtype=object).ravel())
    labels = [_CLASS[a] for a in axes if isinstance(a, Axes) and a in _CLASS]
    return labels or None


def match(axes: Sequence[Axes], labels: Sequence[Label]) -> list[tuple[Axes, int]]:
    """Panels and positions in ``labels``: by the class a panel shows, else in order."""
    claimed = [_CLASS.get(ax) for ax in axes]
    if any(ax in _CLASS for ax in axes) and len(axes) > 1:
        return [(ax, labels.index(c)) for ax, c in zip(axes, claimed, strict=True) if ax in _CLASS and c in labels]
    return [(ax, i) for i, ax in enumerate(axes[: len(labels)])]


def is_own(figure: Any) -> bool:
    """Whether calibrant made the figure."""
    return figure in _OWN


def place_of(histogram: str | None, ax: Axes) -> str | None:
    """Check ``histogram``; ``"auto"`` is above in calibrant's own figures, and inside given axes that are large."""
    if histogram is None:
        return None
    check_choice("histogram", histogram, ("auto", *PLACES))
    if histogram != "auto":
        return histogram
    own = is_own(ax.get_figure(root=True))
    if not own and side_of(ax) < NO_HISTOGRAM:
        return None
    return "above" if own or is_for_page() else "inside"


def strip_of(ax: Axes) -> Axes | None:
    """Strip that belongs to a panel, if it has one."""
    inside = (child for child in ax.child_axes if isinstance(child, Axes) and child.get_label() == STRIP_LABEL)
    return strip_below(ax) or next(inside, None)


def _new_strip(ax: Axes, place: str, *, small: bool) -> Axes:
    if place == "inside":
        strip = ax.inset_axes((0.0, 0.0, 1.0, _SHARE), sharex=ax, label=STRIP_LABEL, zorder=1)
        strip.patch.set_visible(False)
        strip.set_axis_off()
        return strip
    if place == "below":
        strip = _room_below(ax)
        BELOW[ax] = weakref.ref(strip)
        ax.tick_params(axis="x", labelbottom=False)
        strip.set_xlabel(ax.get_xlabel(), fontsize=ax.xaxis.label.get_fontsize())
        strip.tick_params(axis="x", labelsize=7 if small else None)
        ax.set_xlabel("")
    else:
        height = strip_height(side_of(ax))
        place_above = (0.0, 0.1 * height, 1.0, height)
        strip = ax.inset_axes(place_above, transform=points_from(ax, 1.0), sharex=ax, label=STRIP_LABEL)
        strip.tick_params(axis="x", labelbottom=False, length=0)
    strip.tick_params(axis="y", labelsize=6 if small else 7.5, length=2.5, pad=2)
    strip.spines[["top", "right"]].set_visible(False)
    return strip


def _room_below(ax: Axes) -> Axes:
    """Axes in the lower part of the space that a panel had, as wide as the panel, which is square."""
    spec, figure = ax.get_subplotspec(), ax.get_figure(root=False)
    if figure is None:
        raise ValueError("ax must belong to a figure")
    if spec is None:
        place = ax.get_position(original=True)
        low = place.height * _SHARE
        ax.set_position((place.x0, place.y0 + 1.3 * low, place.width, place.height - 1.3 * low))
        strip = figure.add_axes((place.x0, place.y0, place.width, low), sharex=ax, label=STRIP_LABEL)
    else:
        inner = spec.subgridspec(2, 1, height_ratios=(1 - _SHARE, _SHARE), hspace=0.08)
        ax.set_subplotspec(inner[0])
        strip = figure.add_subplot(inner[1], sharex=ax, label=STRIP_LABEL)

    # As wide as a square panel is, whichever side limits it, and next to it: layout engines need know nothing of this.
    strip.set_box_aspect(_SHARE / (1 - _SHARE))
    strip.set_anchor("N")
    ax.set_anchor("S")
    return strip


def draw_strip(ax: Axes, diagram: Diagram, style: Style, place: str, *, small: bool) -> Axes:
    """Draw the histogram of scores at a panel, over those already there."""
    strip = strip_of(ax)
    first = strip is None
    if strip is None:
        strip = _new_strip(ax, place, small=small)
    frame = frame_of(ax)
    histogram = diagram.papers.get(frame.scale.name, diagram.histogram)
    counts, edges = frame.bars(histogram.count, np.asarray(histogram.edges))
    log = strip.get_yscale() == "log" or _is_skewed(counts)
    base = 0.5 if log else 0.0
    if log:
        strip.set_yscale("log")
    shown = np.where(counts > 0, np.maximum(counts, base), base)
    if first:
        strip.stairs(shown, edges, baseline=base, fill=True, color=style.color, alpha=0.3, linewidth=0.0)
    strip.stairs(shown, edges, baseline=base, color=style.color, linestyle=style.linestyle, linewidth=0.9)
    top = max(float(counts.max(initial=1.0)), strip.get_ylim()[1] if not first else 0.0)
    _count_axis(strip, top, log)
    what = "Weight" if diagram.weighted and diagram.histogram.count.sum() != diagram.curve.n_samples else "Samples"
    strip.set_ylabel(what, fontsize=6 if small else 8, labelpad=2)
    return strip


def strip_height(side: float) -> float:
    """Height in points of the strip above a panel of a given side."""
    return float(np.clip(_SHARE * side, 12.0, 52.0))


def points_from(ax: Axes, height: float, *, across_figure: bool = False) -> Transform:
    """Transform: x in shares of the axes (or of the figure), y in points from a height in shares of the axes."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("ax must belong to a figure")
    corner: Any = ax.transAxes  # any transform will do; the type hints want an affine one
    points = Affine2D().scale(1 / 72) + figure.dpi_scale_trans + ScaledTranslation(0, height, corner)
    return blended_transform_factory(figure.transFigure if across_figure else ax.transAxes, points)


def _is_skewed(counts: np.ndarray) -> bool:
    filled = counts[counts > 0]
    return bool(filled.size > 1 and filled.max() > LOG_RATIO * np.median(filled))


def _count_axis(strip: Axes, top: float, log: bool) -> None:
    """Set two or three ticks with round numbers; the axis ends above the highest bar."""
    if log:
        exponent = int(np.floor(np.log10(max(top, 1.0))))
        step = max(1, int(np.ceil(exponent / 2)))
        ticks = [10.0**e for e in range(0, exponent + 1, step)]
        strip.set_ylim(0.5, max(top, 1.0) * 1.4)
    else:
        magnitude = 10.0 ** np.floor(np.log10(max(top, 1e-9)))
        highest = max(m * magnitude for m in (1, 2, 5) if m * magnitude <= top * 1.0001)
        ticks = [0.0, highest]
        strip.set_ylim(0.0, max(top, highest) * 1.04)
    strip.yaxis.set_major_locator(FixedLocator(ticks))
    strip.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))
    strip.yaxis.set_minor_locator(NullLocator())
    strip.yaxis.set_minor_formatter(NullFormatter())
