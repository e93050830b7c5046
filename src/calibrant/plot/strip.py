"""The strip above a diagram: how many samples have which score."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
from matplotlib.transforms import Affine2D, ScaledTranslation, Transform, blended_transform_factory

from .diagram import Diagram
from .scale import frame_of
from .style import Style

STRIP_LABEL = "<calibrant strip>"
#: Counts are drawn on a logarithmic axis when the highest bar is this many times the median bar.
LOG_RATIO = 30.0


def strip_of(ax: Axes) -> Axes | None:
    """Strip that belongs to a panel, if it has one."""
    for child in ax.child_axes:
        if isinstance(child, Axes) and child.get_label() == STRIP_LABEL:
            return child
    return None


def draw_strip(ax: Axes, diagram: Diagram, style: Style, *, small: bool) -> Axes:
    """Draw the histogram of scores above a panel, over those that are there already."""
    strip = strip_of(ax)
    first = strip is None
    if strip is None:
        height = strip_height(side_of(ax))
        strip = ax.inset_axes(
            (0.0, 0.1 * height, 1.0, height), transform=points_from(ax, 1.0), sharex=ax, label=STRIP_LABEL
        )
        strip.tick_params(axis="x", labelbottom=False, length=0)
        strip.tick_params(axis="y", labelsize=6 if small else 7.5, length=2.5, pad=2)
        strip.spines[["top", "right"]].set_visible(False)
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
    return float(np.clip(0.17 * side, 12.0, 52.0))


def side_of(ax: Axes) -> float:
    """Shorter side of an axes in points."""
    box = ax.get_window_extent()
    figure = ax.get_figure(root=True)
    dpi = 72.0 if figure is None else figure.dpi
    return float(min(box.width, box.height) * 72 / dpi)


def points_from(ax: Axes, height: float, *, across_figure: bool = False) -> Transform:
    """Across in shares of the axes (or of the figure), up in points from a height in shares of the axes."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("ax belongs to no figure")
    corner: Any = ax.transAxes  # any transform will do; the type hints want an affine one
    points = Affine2D().scale(1 / 72) + figure.dpi_scale_trans + ScaledTranslation(0, height, corner)
    return blended_transform_factory(figure.transFigure if across_figure else ax.transAxes, points)


def _is_skewed(counts: np.ndarray) -> bool:
    filled = counts[counts > 0]
    return bool(filled.size > 1 and filled.max() > LOG_RATIO * np.median(filled))


def _count_axis(strip: Axes, top: float, log: bool) -> None:
    """Two or three ticks with round numbers; the axis ends above the highest bar."""
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
