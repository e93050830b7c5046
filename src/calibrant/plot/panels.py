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

from ..measure.result import ReliabilityCurve
from .axes import draw_strip, place_of, points_from
from .base import draw_grid
from .diagram import Diagram
from .fitting import draw_legend, is_small, side_of, strip_below
from .scale import Scale, ends_of, frame_of, scale_for, set_paper, set_ticks
from .style import (
    IDENTITY_COLOR,
    Style,
    axis_texts,
    error_text,
    font_scale,
    percent_text,
    plain_text,
    style_of,
)

#: Empty border of a panel, as a share of its range, so that markers and bars at 0 and 1 are whole.
MARGIN = 0.04
#: Smallest lower end of paper that shows a confidence, however low an accuracy may be.
_LOWEST = 0.01
#: With more models than this on a panel, the legend names only the models.
MOST_MODELS_WITH_KEY = 2
#: Side in points below which the text on a panel shrinks.
TINY = 120.0
#: Points from a panel's lower edge to the legend below it, at matplotlib's own font size.
BELOW = 38.0
#: The same for a small panel, and the height in points of a line of its legend.
BELOW_SMALL, SMALL_LINE = 26.0, 11.0
#: Number of characters of a legend entry up to which a legend under the axes has two columns.
LONGEST_IN_TWO_COLUMNS = 41
#: Kinds of bands, in the legend.
BAND_TEXTS = {
    "confidence": "confidence band",
    "consistency": "band if calibrated",
    "simultaneous": "simultaneous band",
}
#: Curves that calibrant has drawn: they are counted on the axes itself, so clearing it starts afresh.
_CURVES: WeakSet[Artist] = WeakSet()
_IDENTITIES: WeakSet[Artist] = WeakSet()


#: Arrowheads of bins beyond the ends of paper: below, above, on the left, on the right.
BEYOND = {-2: "v", 2: "^", -1: "<", 1: ">"}
_ARROWHEADS: WeakSet[Artist] = WeakSet()


def has_arrowheads(ax: Axes) -> bool:
    """Whether something on a panel lies beyond its scale."""
    return any(marks in _ARROWHEADS for marks in ax.collections)


def n_models(ax: Axes) -> int:
    """Number of models already on a panel."""
    return sum(line in _CURVES for line in ax.lines)


def draw_panel(
    ax: Axes,
    diagram: Diagram,
    *,
    name: str | None,
    histogram: str | None,
    legend: bool,
    small: bool,
    below: bool,
    options: Mapping[str, Any],
    scale: str | None = None,
    ref_line: bool = True,
) -> None:
    """Draw one diagram on one axes, in addition to any models already there.

    ``small`` is for one panel of many; ``below`` puts the legend under the axes, where it covers nothing.
    """
    small = small or (is_small(ax) and not below)
    index = n_models(ax)
    chosen = scale_for(ax, scale, fresh=index == 0)
    own = style_of(index)
    style = Style(*(options.get(name, getattr(own, name)) for name in Style._fields))
    if not any(line in _IDENTITIES for line in ax.lines):
        _IDENTITIES.add(_draw_frame(ax, diagram, chosen, small=small, few=small and (below or side_of(ax) < TINY)))
    next(line for line in ax.lines if line in _IDENTITIES).set_visible(ref_line)
    if not chosen.is_paper:
        _set_limits(ax, diagram, fresh=index == 0)
    _name_axes(ax, diagram, fresh=index == 0, small=small)
    line = _draw_curve(ax, diagram, style, index)
    line.set(**{k: v for k, v in options.items() if k not in Style._fields})
    _CURVES.add(line)
    if diagram.bins is not None:
        _draw_bins(ax, diagram.bins, style, small=small)
    _draw_values(ax, diagram.curve.values, style, small=small)
    found = diagram.estimate
    error = "" if found is None else f"ECE {error_text(found.value, found.interval)}"
    parts = [plain_text(name).lstrip("_")] if name is not None else []
    line.set_label(": ".join([*parts, *([error] if error else [])]) or "observed frequency")
    place = place_of(histogram, ax)
    if place is not None:
        draw_strip(ax, diagram, style, place, small=small)
    if legend:
        _draw_key(ax, diagram, small=small, below=below)


def _draw_frame(ax: Axes, diagram: Diagram, scale: Scale, *, small: bool, few: bool) -> Line2D:
    """Draw square axes with (few) ticks, a faint grid, the identity, and shade where scores are impossible."""
    ax.set_aspect("equal", adjustable="box")
    if scale.is_paper:
        histogram = diagram.papers.get(scale.name, diagram.histogram)
        edges, bins = np.asarray(histogram.edges), diagram.bins
        markers = np.empty(0) if bins is None else np.append(bins.scores, bins.observed)[np.tile(bins.count > 0, 2)]
        low, high = ends_of(markers, histogram.count, edges)
        least = max(diagram.lowest, min(diagram.domain[0], _LOWEST))
        set_paper(ax, scale, (max(low, least), high), MARGIN)
    set_ticks(ax, scale, side_of(ax), small=few)
    ax.tick_params(labelsize=7 if small else None, labelbottom=strip_below(ax) is None, labelleft=True)
    draw_grid(ax)
    if diagram.domain[0] > 0:
        shade = frame_of(ax).inside(np.array([-1, diagram.domain[0]]))
        ax.axvspan(*shade, facecolor="0.93", edgecolor="none", zorder=0.4)
    ends = frame_of(ax).inside(np.array([diagram.domain[0], 1.0]))
    (line,) = ax.plot(ends, ends, color=IDENTITY_COLOR, linewidth=1.1, zorder=1.5, label="Perfect")
    return line


def _set_limits(ax: Axes, diagram: Diagram, *, fresh: bool) -> None:
    """Give both axes one range: the domain of the scores, and room for an interval below it."""
    low = diagram.lowest
    if not fresh:
        present = ax.get_xlim()[0]
        low = min(low, (present + MARGIN) / (1 + MARGIN) if present < 1 else low)
    border = MARGIN * (1 - low)
    ax.set(xlim=(low - border, 1 + border), ylim=(low - border, 1 + border))


def _name_axes(ax: Axes, diagram: Diagram, *, fresh: bool, small: bool) -> None:
    side = side_of(ax)
    x, y = axis_texts(diagram, short=is_small(ax))
    across = strip_below(ax) or ax
    if not fresh and across.get_xlabel() not in ("", x):
        x = "Predicted probability"
    size = (8 if side >= TINY else 6) if small else None
    across.set_xlabel(x, fontsize=size)
    ax.set_ylabel(y, fontsize=size)


def _draw_curve(ax: Axes, diagram: Diagram, style: Style, index: int) -> Line2D:
    """Draw line and band; a binned curve joins its bins, and breaks where a bin is empty."""
    curve, frame = diagram.curve.line, frame_of(ax)
    smooth = curve.edges is None or curve.isotonic
    if smooth and not np.isnan(curve.lower).all():
        x, lower, upper = frame.line(*curve.band_corners())
        look: dict[str, Any] = {"facecolor": style.color, "alpha": 0.2 if index == 0 else 0.14, "edgecolor": "none"}
        ax.fill_between(x, lower, upper, zorder=2 + 0.01 * index, **look)
    (line,) = ax.plot(
        *frame.line(*(curve.corners() if curve.isotonic else (curve.scores, curve.observed))),
        color=style.color,
        linestyle=style.linestyle,
        linewidth=2.0 if smooth else 1.4,
        solid_capstyle="round",
        zorder=4 + 0.01 * index,
    )
    return line


def _draw_bins(ax: Axes, bins: ReliabilityCurve, style: Style, *, small: bool) -> None:
    """Draw bins: a marker's area shows the bin's number of samples, the bar its interval, wherever that lies."""
    known = (bins.count > 0) & ~np.isnan(bins.observed)
    count = bins.count[known]
    if not known.any():
        return
    frame = frame_of(ax)
    across, up = (frame.outside(v[known]) for v in (bins.scores, bins.observed))
    x, y, lower, upper = (frame.inside(v[known]) for v in (bins.scores, bins.observed, bins.lower, bins.upper))
    if not np.isnan(lower).all():
        ax.vlines(x, lower, upper, color=style.color, linewidth=0.7 if small else 0.9, alpha=0.75, zorder=3)
    largest = marker_area(ax, int(known.sum()))
    area = np.maximum(largest * count / count.max(), (0.12 if small else 0.06) * largest)
    # Points beyond the ends of paper become an arrowhead on the edge: up or down, else to a side.
    way = np.where(up != 0, 2 * up, across)
    for towards, marker in ((0, style.marker), *BEYOND.items()):
        here = way == towards
        if not here.any():
            continue
        marks = ax.scatter(
            x[here],
            y[here],
            s=area[here] if towards == 0 else largest / 2,
            marker=marker,
            facecolor="white" if towards == 0 else style.color,
            edgecolor=style.color,
            linewidth=0.8 if small else 1.1,
            zorder=5,
            clip_on=False,
        )
        if towards:
            _ARROWHEADS.add(marks)


def _draw_values(ax: Axes, values: ReliabilityCurve, style: Style, *, small: bool) -> None:
    """Draw values shared by many rows, with their own intervals."""
    if not values.scores.size:
        return
    x, *ys = (frame_of(ax).inside(v) for v in (values.scores, values.observed, values.lower, values.upper))
    if not np.isnan(values.lower).all():
        ax.vlines(x, ys[1], ys[2], color=style.color, linewidth=1.4 if small else 1.8, zorder=5.1)
    ax.scatter(x, ys[0], s=12 if small else 26, marker="D", color=style.color, zorder=5.2, clip_on=False)


def marker_area(ax: Axes, n_bins: int) -> float:
    """Area in square points of the largest marker: it stays within the panel's border."""
    diameter = min(2 * 0.85 * MARGIN * side_of(ax), 12.0) * min(1.0, 20 / max(n_bins, 1)) ** 0.5
    return float(max(diameter, 1.5) ** 2)


def _draw_key(ax: Axes, diagram: Diagram, *, small: bool, below: bool) -> None:
    """Draw the legend: every model with its error; on a large panel also the meaning of line, band and bins."""
    lines = [line for line in ax.lines if line in _CURVES]
    handles: list[Any] = list(lines)
    texts = [str(line.get_label()) for line in lines]
    if small and below and len(lines) == 1:
        texts = [texts[0][max(texts[0].rfind("ECE"), 0) :]]
    if strip_below(ax) is not None:  # a legend that is narrow leaves the curve free
        texts = [text.replace(": ECE ", "\nECE ") for text in texts]
    if not small and (below or len(lines) <= MOST_MODELS_WITH_KEY):
        identity = next(line for line in ax.lines if line in _IDENTITIES)
        if identity.get_visible():
            handles.append(identity)
            texts.append("perfect calibration")
        key_handles, key_texts = key_of(diagram, Style("0.35", "-", "o"), beyond=has_arrowheads(ax))
        handles += key_handles
        texts += key_texts
    look: dict[str, Any] = {"handler_map": {tuple: HandlerTuple(ndivide=1, pad=0)}, "alignment": "left"}
    look |= {"title_fontsize": 8.5, "handlelength": 1.8 if small else 2.2, "borderpad": 0.4, "borderaxespad": 0.4}
    if not small and diagram.estimate is not None:
        look["title"] = f"Calibration error ({percent_text(diagram.level)} interval)"
    if not below:
        draw_legend(ax, handles, texts, **look).set_zorder(6)
        return
    place: dict[str, Any] = {"loc": "upper left", "ncols": columns_of(texts), "columnspacing": 1.2, "fontsize": 8}
    place["bbox_to_anchor"] = (0.02, -BELOW * font_scale())
    if small:
        size = 7 if side_of(ax) >= TINY else 5
        place |= {
            "loc": "upper center",
            "ncols": 1,
            "bbox_to_anchor": (0.5, -BELOW_SMALL * font_scale()),
            "fontsize": size,
        }
    place["bbox_transform"] = points_from(ax, 0.0, across_figure=not small)
    ax.legend(handles, texts, frameon=False, **look, **place).set_zorder(6)


def columns_of(texts: list[str]) -> int:
    """Columns of a legend below the axes: two where they fit side by side."""
    return 2 if max(len(text) for text in texts) <= LONGEST_IN_TWO_COLUMNS else 1


def key_of(diagram: Diagram, style: Style, *, beyond: bool = False) -> tuple[list[Any], list[str]]:
    """Legend entries for band, bins, bars and arrowheads, in neutral grey."""
    handles: list[Any] = []
    texts: list[str] = []
    level = percent_text(diagram.level)
    if diagram.curve.level is not None and (diagram.curve.edges is None or diagram.curve.isotonic):
        handles.append(Patch(facecolor=style.color, alpha=0.25))
        texts.append(f"{level} {BAND_TEXTS[diagram.curve.band or 'confidence']}")
    if diagram.bins is not None:
        bar = Line2D([], [], color=style.color, marker="|", markersize=9, linestyle="none")
        dot = Line2D([], [], color=style.color, marker="o", markersize=5, markerfacecolor="white", linestyle="none")
        handles.append((bar, dot))
        texts.append(f"bins: area = samples, {level} bars")
    if diagram.curve.values.scores.size:
        handles.append(Line2D([], [], color=style.color, marker="D", markersize=4.5, linestyle="none"))
        texts.append("single score with many rows")
    if beyond:
        handles.append(Line2D([], [], color=style.color, marker="v", markersize=5, linestyle="none"))
        texts.append("0, 1 or beyond the scale")
    return handles, texts
