"""Base of displays, which store a result and draw it."""

from __future__ import annotations

import io
import re
from typing import Any, ClassVar, Self, cast

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from ..data.docs import Documented
from ..data.printing import printable_spaced
from .fitting import fit, new_figure
from .style import GRID_COLOR


class Display(Documented):
    """Base of displays; a subclass stores its result and defines ``plot``."""

    #: Whether the figure's size follows from its content, so that it cannot be drawn on given axes.
    sizes_its_figure: ClassVar[bool] = False
    #: Axes of the picture; an array of axes if there are several panels.
    ax_: Any
    axes_: Any
    figure_: Any

    @classmethod
    def of(cls, result: Any) -> Self:
        """Create a display of a result without drawing it.

        Parameters
        ----------
        result : object
            The result to draw.
        """
        kind: Any = cls  # each display declares its fields
        return cast(Self, kind(result))

    @classmethod
    def from_result(cls, result: Any, ax: Any = None, **options: Any) -> Self:
        """Draw an existing result, as ``result.plot()`` does.

        Parameters
        ----------
        result : object
            The result to draw.
        **options
            Passed to :meth:`plot`.
        """
        if ax is not None and cls.sizes_its_figure:
            raise TypeError(f"{cls.__name__} draws a figure of its own, sized to its content: omit ax")
        drawn: Any = cls.of(result)
        return cast(Self, drawn.plot(*(() if ax is None else (ax,)), **options))

    def _drawn(self, *axes: Any) -> Self:
        """Return the display, drawn on axes, after fitting these to their size."""
        fit(*axes)
        self.ax_, self.figure_ = axes[0], axes[0].figure
        return self

    def to_svg(self) -> str:
        """Return the picture as part of a page, and close the figure.

        Text stays text. Parts that matplotlib writes for a separate file (header, styles for a whole page, ids that a
        second picture would repeat) are omitted.
        """
        out = io.StringIO()
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "calibrant"}):
            self.figure_.savefig(
                out,
                format="svg",
                bbox_inches="tight",
                pad_inches=0.06,
                metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
            )
        plt.close(self.figure_)
        svg = out.getvalue()
        svg = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.S)
        used = set(re.findall(r"#([\w-]+)", svg))
        svg = svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")  # which pages know
        svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", printable_spaced(svg))
        return f'<div class="picture">{svg}</div>'


def one_axes(ax: Any, width: float, height: float) -> Any:
    """Given axes, or those of a new figure of a size in inches."""
    return new_figure(1, 1, width, height)[1][0, 0] if ax is None else ax


def draw_interval(ax: Axes, at: float, value: float, interval: Any, color: str, *, filled: bool = True) -> None:
    """Draw a value with its interval on a row; a hollow marker is not significant."""
    if np.isfinite(interval).all():
        ax.plot(list(interval), [at, at], color=color, linewidth=1.8, solid_capstyle="butt", zorder=2)
    ax.plot([value], [at], "o", color=color, markersize=5, markerfacecolor=color if filled else "white", zorder=3)


def draw_grid(ax: Axes, axis: Any = "both") -> None:
    """A faint grid below everything."""
    ax.grid(axis=axis, color=GRID_COLOR, linewidth=0.8)
    ax.set_axisbelow(True)
