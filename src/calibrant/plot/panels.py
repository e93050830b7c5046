"""One panel: identity line, curve with band, bins whose area is their number of samples, legend, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ..results import ReliabilityCurve
from .diagram import Diagram
from .strip import draw_strip
from .style import GRID_COLOR, IDENTITY_COLOR, Style, axis_texts, error_text, percent_text, plain_text, style_of

#: Empty border of a panel, as a share of its range, so that markers and bars at 0 and 1 are whole.
MARGIN = 0.04
#: Curves that calibrant has drawn: what is on an axes is counted on the axes itself, so clearing it starts afresh.
_CURVES: WeakSet[Artist] = WeakSet()
_IDENTITIES: WeakSet[Artist] = WeakSet()


def n_models(ax: Axes) -> int:
    """Models that are on a panel already."""
    return sum(line in _CURVES for line in ax.lines)


def draw_panel(
    ax: Axes,
    diagram: Diagram,
    *,
    name: str | None,
    strip: bool,
    legend: bool,
    small: bool,
    options: Mapping[str, Any],
) -> None:
    """Draw one diagram on one axes, beside whatever models are there."""
    index = n_models(ax)
    style = style_of(index)
    style = Style(
        options.get("color", style.color),
        options.get("linestyle", style.linestyle),
        options.get("marker", style.marker),
    )
    if not any(line in _IDENTITIES for line in ax.lines):
        _IDENTITIES.add(_draw_frame(ax, diagram, small=small))
    _set_limits(ax, diagram, fresh=index == 0)
    _name_axes(ax, diagram, fresh=index == 0, small=small)
    line = _draw_curve(ax, diagram, style, index)
    line.set(**{k: v for k, v in options.items() if k not in ("color", "linestyle", "marker")})
    _CURVES.add(line)
    if diagram.bins is not None:
        _draw_bins(ax, diagram.bins, style, small=small)
    error = f"ECE {error_text(diagram.estimate.value, diagram.estimate.interval)}"
    line.set_label(error if name is None else f"{plain_text(name).lstrip('_')}: {error}")
    if strip:
        draw_strip(ax, diagram, style, small=small)
    if legend:
        _draw_legend(ax, diagram, small=small)


def _draw_frame(ax: Axes, diagram: Diagram, *, small: bool) -> Line2D:
    """Square axes with numbers, a faint grid, the identity, and shade where no score can lie."""
    ax.set_aspect("equal", adjustable="box")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5 if not small else 4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
    ax.tick_params(labelsize=7 if small else None, labelbottom=True, labelleft=True)
    ax.grid(color=GRID_COLOR, linewidth=0.8)
    ax.set_axisbelow(True)
    if diagram.domain[0] > 0:
        ax.axvspan(-1, diagram.domain[0], facecolor="0.93", edgecolor="none", zorder=0.4)
    (line,) = ax.plot(
        [diagram.domain[0], 1], [diagram.domain[0], 1], color=IDENTITY_COLOR, linewidth=1.1, zorder=1.5, label="Perfect"
    )
    return line


def _set_limits(ax: Axes, diagram: Diagram, *, fresh: bool) -> None:
    """Give both axes one range: the domain of the scores, and what an interval needs below it."""
    low = diagram.lowest
    if not fresh:
        present = ax.get_xlim()[0]
        low = min(low, (present + MARGIN) / (1 + MARGIN) if present < 1 else low)
    border = MARGIN * (1 - low)
    ax.set(xlim=(low - border, 1 + border), ylim=(low - border, 1 + border))


def _name_axes(ax: Axes, diagram: Diagram, *, fresh: bool, small: bool) -> None:
    x, y = axis_texts(diagram)
    if not fresh and ax.get_xlabel() not in ("", x):
        x = "Predicted probability"
    size = 8 if small else None
    ax.set_xlabel(x, fontsize=size)
    ax.set_ylabel(y, fontsize=size)


def _draw_curve(ax: Axes, diagram: Diagram, style: Style, index: int) -> Line2D:
    """Line and band; a binned curve joins its bins, and breaks where a bin is empty."""
    curve = diagram.curve
    smooth = curve.edges is None
    if smooth and not np.isnan(curve.lower).all():
        ax.fill_between(
            curve.scores,
            curve.lower,
            curve.upper,
            facecolor=style.color,
            alpha=0.2 if index == 0 else 0.14,
            edgecolor="none",
            zorder=2 + 0.01 * index,
        )
    (line,) = ax.plot(
        curve.scores,
        curve.observed,
        color=style.color,
        linestyle=style.linestyle,
        linewidth=2.0 if smooth else 1.4,
        solid_capstyle="round",
        zorder=4 + 0.01 * index,
    )
    return line


def _draw_bins(ax: Axes, bins: ReliabilityCurve, style: Style, *, small: bool) -> None:
    """Bins: the area of a marker is the bin's number of samples, the bar its Wilson interval."""
    known = (bins.count > 0) & ~np.isnan(bins.observed)
    x, y, count = bins.scores[known], bins.observed[known], bins.count[known]
    if not known.any():
        return
    if not np.isnan(bins.lower[known]).all():
        reach = np.stack([y - bins.lower[known], bins.upper[known] - y])
        ax.errorbar(
            x,
            y,
            yerr=np.maximum(reach, 0),
            fmt="none",
            ecolor=style.color,
            elinewidth=0.7 if small else 0.9,
            alpha=0.75,
            zorder=3,
        )
    largest = marker_area(ax, int(known.sum()))
    ax.scatter(
        x,
        y,
        s=np.maximum(largest * count / count.max(), 0.06 * largest),
        marker=style.marker,
        facecolor="white",
        edgecolor=style.color,
        linewidth=0.8 if small else 1.1,
        zorder=5,
        clip_on=False,
    )


def marker_area(ax: Axes, n_bins: int) -> float:
    """Area in square points of the largest marker: it stays within the panel's border."""
    box = ax.get_window_extent()
    side = min(box.width, box.height) * 72 / ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    diameter = min(2 * 0.85 * MARGIN * side, 12.0) * min(1.0, 20 / max(n_bins, 1)) ** 0.5
    return float(max(diameter, 1.5) ** 2)


def _draw_legend(ax: Axes, diagram: Diagram, *, small: bool) -> None:
    """Every model with its error; on a large panel also what line, band and bins mean."""
    lines = [line for line in ax.lines if line in _CURVES]
    handles: list[Any] = list(lines)
    texts = [str(line.get_label()) for line in lines]
    level = percent_text(diagram.estimate.level)
    if small:
        title = None
    else:
        title = f"Calibration error ({level} interval)"
        handles.append(next(line for line in ax.lines if line in _IDENTITIES))
        texts.append("perfect calibration")
        key_handles, key_texts = key_of(diagram, Style("0.35", "-", style_of(0).marker))
        handles += key_handles
        texts += key_texts
    legend = ax.legend(
        handles,
        texts,
        loc="best",
        fontsize=7 if small else 8,
        title=title,
        title_fontsize=8,
        alignment="left",
        framealpha=0.85,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        handlelength=2.2,
        borderpad=0.4,
    )
    legend.set_zorder(6)


def key_of(diagram: Diagram, style: Style) -> tuple[list[Any], list[str]]:
    """Legend entries that say what band, bins and bars mean, in neutral grey."""
    handles: list[Any] = []
    texts: list[str] = []
    level = percent_text(diagram.estimate.level)
    if diagram.curve.edges is None:
        handles.append(Patch(facecolor=style.color, alpha=0.25))
        texts.append(f"{level} band of the curve")
    if diagram.bins is not None:
        bar = Line2D([], [], color=style.color, marker="|", markersize=9, linestyle="none")
        dot = Line2D([], [], color=style.color, marker="o", markersize=5, markerfacecolor="white", linestyle="none")
        handles.append((bar, dot))
        texts.append(f"bins: area = samples, {level} bars")
    return handles, texts
