"""Pictures of evidence: numbers of several cases beside what was aimed at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from calibrant.plot.style import style_of

#: The same numbers are the same bytes, and text stays text.
_STYLE = {"svg.hashsalt": "calibrant", "svg.fonttype": "none", "font.size": 9}
#: Standard errors on either side of a number.
_ERRORS = 2
#: A logarithmic axis whose ends are nearer has ticks at 2 and 5, too.
_FEW = 500


def dots(
    cases: Sequence[str],
    series: Mapping[str, Sequence[tuple[float, float]]],
    axis: str,
    aim: float | tuple[float, float] | None = None,
    log: bool = False,
    share: bool = False,
) -> Figure:
    """Numbers with two standard errors on either side: a line a case, a mark a series.

    Parameters
    ----------
    cases : sequence of str
        The lines, from the top.
    series : mapping of str to pairs
        Number and standard error of each case, by the name that the legend gives; NaN where there is none.
    axis : str
        What the numbers are, with their unit.
    aim : float or pair of floats, optional
        A line at what was aimed at, or a band.
    log : bool
        A logarithmic axis.
    share : bool
        The numbers are per cent of a whole: bars end at 0 and 100.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 0.9 + 0.26 * len(cases) * max(1, len(series) / 2)), layout="constrained")
        axes = figure.add_subplot()
        for j, (name, pairs) in enumerate(series.items()):
            value, error = np.array(pairs, dtype=float).T
            bar = np.minimum(_ERRORS * error, [value, 100 - value] if share else np.inf)
            at = np.arange(len(cases)) + 0.7 * ((j + 0.5) / len(series) - 0.5)
            look = style_of(j)
            axes.errorbar(
                value,
                at,
                xerr=bar,
                fmt=look.marker,
                color=look.color,
                label=name,
                markersize=4,
                elinewidth=1,
            )
        if isinstance(aim, tuple):
            axes.axvspan(*aim, color="0.9", zorder=0)
        elif aim is not None:
            axes.axvline(aim, color="0.4", linestyle="--", linewidth=1, zorder=0)
        if log:
            axes.set_xscale("log")
            low, high = axes.get_xlim()
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _FEW * low else (1,)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.12g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks(range(len(cases)), cases)
        axes.set_ylim(len(cases) - 0.5, -0.5)
        axes.set_xlabel(axis)
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        if len(series) > 1:
            figure.legend(loc="outside upper right", ncols=len(series), frameon=False)
        return figure


def write(figure: Figure, path: Path) -> None:
    """As a file, whose bytes depend on the numbers alone."""
    with mpl.rc_context(_STYLE):
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
