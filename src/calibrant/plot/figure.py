"""Figures that calibrant makes: their size, and the text around the panels.

Sizes are given in points and computed here, not by a layout engine: engines do not converge where axes are square and
have a strip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..measure.result import Estimate
from .axes import shape_of, strip_height
from .diagram import Diagram
from .panels import BELOW, SMALL_LINE, columns_of, has_arrowheads, key_of
from .style import Style, error_text, font_scale, percent_text, plain_text

_NAMES = {"classwise": "Class-wise ECE", "top-label": "Top-label ECE"}
#: Side of the panel of a single diagram, and of each panel of a grid, in points.
_SIDE, _SIDE_IN_GRID = 308.0, 168.0
_LINE = 12.5


def arrange_single(figure: Figure, ax: Axes, *, strip: bool) -> None:
    """Size a figure of one panel to make room for the strip, title, axis labels and the legend below."""
    scale = font_scale()
    left, right = 56.0 * scale, 26.0 * scale
    top = 26.0 * scale + (1.1 * strip_height(_SIDE) if strip else 0.0)
    bottom = 44.0 * scale
    legend = ax.get_legend()
    if legend is not None:
        texts = [text.get_text() for text in legend.get_texts()]
        bottom = (BELOW + 4) * scale + _LINE * (1.8 - (-len(texts) // columns_of(texts)))
    _resize(figure, (left, right, top, bottom), (_SIDE, _SIDE))


def arrange_grid(
    figure: Figure,
    axes: Sequence[Axes],
    diagram: Diagram,
    estimate: Estimate | None,
    name: str | None,
    summary: str,
    *,
    legend: bool,
) -> None:
    """Size a figure of several panels and write the overall number, the key and the classes without a panel."""
    scale = font_scale()
    line = "" if name is None else plain_text(name)
    if estimate is not None:
        number = error_text(estimate.value, estimate.interval)
        number = f"{_NAMES.get(estimate.notion, 'ECE')} {number}, {percent_text(estimate.level)} interval"
        line = f"{line}: {number}" if line else number
    before = figure.get_suptitle()
    title = f"{before}\n{line}" if before else line
    above = 1.1 * strip_height(_SIDE_IN_GRID) + 18.0 * scale
    rows, columns = shape_of(len(axes))
    top = above + 8 + 15 * scale * (1 + title.count("\n"))
    most = max((len(one.get_texts()) for one in (ax.get_legend() for ax in axes) if one is not None), default=0)
    under = SMALL_LINE * scale * most
    bottom = 34 * scale + under + (18 * scale if legend else 0.0) + (16 * scale if summary else 0.0) + 4
    margins = (44.0 * scale, 12.0, top, bottom)
    gaps = 46.0 * scale, above + 36.0 * scale + under
    _resize(figure, margins, (_SIDE_IN_GRID, _SIDE_IN_GRID), (rows, columns), gaps)
    height = figure.get_figheight() * 72
    figure.suptitle(title, fontsize=11 * scale, y=1 - 6 / height, va="top")
    if summary:
        figure.supxlabel(summary, fontsize=9 * scale, y=5 / height, va="bottom")
    if legend and not figure.legends:
        handles, texts = key_of(diagram, Style("0.35", "-", "o"), beyond=any(map(has_arrowheads, axes)))
        place: dict[str, Any] = {
            "loc": "lower center",
            "bbox_to_anchor": (0.5, (20 * scale if summary else 3) / height),
        }
        ncols = max(len(handles), 1)
        figure.legend(handles, texts, borderaxespad=0.0, ncols=ncols, fontsize=8, frameon=False, **place)


def _resize(
    figure: Figure,
    margins: tuple[float, float, float, float],
    panel: tuple[float, float],
    shape: tuple[int, int] = (1, 1),
    gaps: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Size the figure for panels of a size in points, with margins (left, right, top, bottom) and gaps between."""
    (rows, columns), (across, down) = shape, gaps
    left, right, top, bottom = margins
    width = left + right + columns * panel[0] + (columns - 1) * across
    height = top + bottom + rows * panel[1] + (rows - 1) * down
    figure.set_size_inches(width / 72, height / 72)
    places: dict[str, Any] = {
        "left": left / width,
        "right": 1 - right / width,
        "bottom": bottom / height,
        "top": 1 - top / height,
        "wspace": across / panel[0],
        "hspace": down / panel[1],
    }
    figure.subplots_adjust(**places)
