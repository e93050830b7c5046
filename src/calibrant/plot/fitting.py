"""Small axes: their size determines text, legend, histogram and margins, in the same way for every display."""

from __future__ import annotations

import textwrap
import weakref
from collections.abc import Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary, WeakSet

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.text import Text
from matplotlib.transforms import Bbox, ScaledTranslation

from ..data.notebook import is_for_page
from .style import font_scale

#: Shorter side in points below which axes are small, and below which they have no histogram.
SMALL, NO_HISTOGRAM = 250.0, 200.0
#: Maximum font size in points on small axes: titles, axis labels, everything else.
_TITLE, _LABEL, _REST = 8.5, 8.0, 7.0
#: Shares of the gaps between axes for the text left of them and below them.
_LEFT, _BELOW = 0.85, 0.6
#: Margin of a figure, as a share.
_EDGE = 0.004
#: Figures whose size fits their content, and the strip below a panel.
_DESIGNED: WeakSet[Any] = WeakSet()
BELOW: WeakKeyDictionary[Axes, weakref.ref[Axes]] = WeakKeyDictionary()
#: Maximum width in inches of a picture on a page, which phones show too.
PAGE_WIDTH = 4.4


def new_figure(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """A figure of a size in inches, and its axes; on a page a narrower one, whose axes are small."""
    size = min(width, PAGE_WIDTH) if is_for_page() else width, height
    figure, axes = plt.subplots(rows, columns, squeeze=False, figsize=size, layout="constrained", **options)
    if not is_for_page():
        _DESIGNED.add(figure)
    return figure, axes


def strip_below(ax: Axes) -> Axes | None:
    """Strip below a panel, which then carries its horizontal axis."""
    known = BELOW.get(ax)
    return None if known is None else known()


def side_of(ax: Axes) -> float:
    """Shorter side of an axes in points."""
    box = ax.get_window_extent()
    return float(min(box.width, box.height)) * _points(ax)


def is_small(ax: Axes) -> bool:
    """Whether an axes needs smaller text and its legend outside; not in figures sized for their content."""
    return _figure(ax) not in _DESIGNED and side_of(ax) < SMALL


def draw_legend(ax: Axes, handles: Sequence[Any], texts: Sequence[str], **options: Any) -> Any:
    """Draw a legend; for small axes a compact one below them, where it covers nothing."""
    if not is_small(ax) or strip_below(ax) is not None:
        return ax.legend(handles, texts, **{"loc": "best", "fontsize": 8, "framealpha": 0.85, **options})
    look: dict[str, Any] = {"handler_map": options["handler_map"]} if "handler_map" in options else {}
    look |= {"handlelength": 1.6, "handletextpad": 0.4, "columnspacing": 1.0, "labelspacing": 0.25, "borderpad": 0.0}
    look |= {"loc": "upper left", "frameon": False, "borderaxespad": 0.0, "alignment": "left"}
    most = ax.get_window_extent().width * 1.15
    legend: Any = None
    for columns in range(min(len(texts), 3), 0, -1):
        legend = ax.legend(handles, texts, ncols=columns, fontsize=_REST * font_scale(), **look)
        if legend.get_window_extent().width <= most:
            break
    return legend


def fit(*panels: Axes) -> None:
    """Shrink the text of small axes, put their legend below them, and keep everything around them in their space."""
    for ax in panels:
        if not is_small(ax):
            continue
        scale, box = font_scale(), ax.get_window_extent()
        legend = ax.get_legend()
        titles = [text for text in ax.get_children() if isinstance(text, Text) and text not in ax.texts]
        entries = [] if legend is None else [*legend.get_texts(), legend.get_title()]
        sizes = (titles, _TITLE), ((ax.xaxis.label, ax.yaxis.label), _LABEL), ((*ax.texts, *entries), _REST)
        for texts, size in sizes:
            for text in texts:
                _shrink(text, size * scale)
        for axis in (ax.xaxis, ax.yaxis):
            known = [tick.label1.get_fontsize() for tick in axis.get_major_ticks()[:1]]
            axis.set_tick_params(labelsize=min([_REST * scale, *known]), pad=2)
            axis.labelpad = 1.5
        for title in titles:
            _wrap(title, box.width * (1.0 if title.get_horizontalalignment() == "left" else 1.2))
        _wrap(ax.xaxis.label, box.width * 1.15)
        _wrap(ax.yaxis.label, box.height * 1.1)
        if legend is not None and not legend.get_frame_on():
            below: Any = ax.xaxis.get_tightbbox(_renderer(ax))
            down = (box.y0 - below.y0) * _points(ax) + 3
            corner = ax.transAxes + ScaledTranslation(-14 * scale / 72, -down / 72, ax.figure.dpi_scale_trans)
            legend.set_bbox_to_anchor((0.0, 0.0), transform=corner)
        if not isinstance(ax.get_axes_locator(), Room):
            ax.set_axes_locator(Room(ax))


class Room:
    """Position of small axes within their space, such that the text around them stays in it.

    A locator of axes, called before they are drawn. Layout engines make room themselves; saving a figure puts a
    placeholder in their place, ``adjust_compatible`` if the engine moved the grid, too, as a tight layout does.
    """

    def __init__(self, ax: Axes) -> None:
        self.ax = ax
        self._tried: Bbox | None = None

    def get_subplotspec(self) -> Any:
        """The position in the grid, for a tight layout."""
        return self.ax.get_subplotspec()

    def __call__(self, ax: Any, renderer: Any) -> Bbox:
        """The box, in shares of the figure."""
        box: Bbox = ax.get_position(original=True).frozen()
        engine = _figure(ax).get_layout_engine()
        cell = self._cell()
        if self._tried is not None:
            return self._tried
        ended = isinstance(engine, PlaceHolderLayoutEngine) and engine.adjust_compatible
        if cell is None or not (engine is None or ended):
            return box
        try:
            for _ in range(5):
                self._tried = box
                around: Any = ax.get_tightbbox(renderer or _renderer(ax))
                taken = around.transformed(ax.figure.transSubfigure.inverted()).get_points()
                beyond = np.maximum([[1], [-1]] * (cell.get_points() - taken), 0) * [[1], [-1]]
                smaller = Bbox(box.get_points() + beyond)
                if np.abs(beyond).max() < 1e-3 or min(smaller.width, smaller.height) < 0.05:
                    break
                box = smaller
        finally:
            self._tried = None
        return box

    def _cell(self) -> Bbox | None:
        """The cell with its share of the gaps to its neighbours; None for a part of a cell."""
        spec = self.ax.get_subplotspec()
        if spec is None:
            return Bbox([[_EDGE, _EDGE], [1 - _EDGE, 1 - _EDGE]])
        if spec.get_topmost_subplotspec() is not spec:
            return None
        bottoms, tops, lefts, rights = spec.get_gridspec().get_grid_positions(cast(Any, self.ax.figure))
        row, last_row, column, last = (
            spec.rowspan.start,
            spec.rowspan.stop - 1,
            spec.colspan.start,
            spec.colspan.stop - 1,
        )
        left = lefts[column] - _LEFT * (lefts[column] - rights[column - 1]) if column else _EDGE
        right = rights[last] + (1 - _LEFT) * (lefts[last + 1] - rights[last]) if last + 1 < len(lefts) else 1 - _EDGE
        top = tops[row] + (1 - _BELOW) * (bottoms[row - 1] - tops[row]) if row else 1 - _EDGE
        low = bottoms[last_row]
        bottom = low - _BELOW * (low - tops[last_row + 1]) if last_row + 1 < len(tops) else _EDGE
        return Bbox([[left, bottom], [right, top]])


def _points(ax: Axes) -> float:
    """Points per pixel."""
    return 72 / float(_figure(ax).dpi)


def _figure(ax: Axes) -> Any:
    return ax.get_figure(root=True)


def _renderer(ax: Axes) -> Any:
    return _figure(ax)._get_renderer()


def _shrink(text: Text, size: float) -> None:
    text.set_fontsize(min(float(text.get_fontsize()), size))


def _wrap(text: Text, most: float) -> None:
    """Break a text that is longer than ``most`` pixels."""
    words = " ".join(text.get_text().split())
    if not words:
        return
    text.set_text(words)
    box = text.get_window_extent()
    longest = max(box.width, box.height)
    if longest > most:  # lines of about one length
        lines = int(np.ceil(longest / most))
        text.set_text("\n".join(textwrap.wrap(words, max(int(min(most / longest, 1 / lines + 0.1) * len(words)), 10))))
