"""How the documentation's pictures look: calibrant's own colours, one type size, one way to save. One place for all.

A line that a reader should follow is coloured and named where it ends; what it is compared with stays grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from PIL import Image

from calibrant.plot.style import GRID_COLOR, STYLES

#: What is followed, what it is compared with, and the truth.
OURS, OTHER, TRUTH = STYLES[0].color, "0.62", "black"
#: Colours of several things of equal standing.
COLORS = tuple(style.color for style in STYLES)
MARKERS = tuple(style.marker for style in STYLES)
#: Dots per inch of every picture, so that type has one size throughout.
DPI = 150

LOOK = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.35",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(color=COLORS),
    "grid.color": GRID_COLOR,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.color": "0.25",
    "ytick.color": "0.25",
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
}


def look() -> None:
    """What is drawn from here on by hand has the documentation's look; displays bring their own."""
    plt.rcParams.update(LOOK)


def save(figure: Any, path: Path, dpi: int = DPI) -> None:
    """Write a PNG of 256 colours, a third of the size and alike to the eye, and forget the figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=dpi)
    Image.open(drawn).convert("RGB").quantize(255, method=Image.Quantize.MEDIANCUT, kmeans=1).save(path, optimize=True)
    plt.close("all")


def sizes_axis(ax: Any, sizes: Sequence[int], few: Sequence[int] = ()) -> None:
    """A logarithmic axis of numbers of rows, with the sizes as its ticks, or some of them."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(few or sizes)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:g}" if n < 10_000 else f"{n / 1000:g}k"))


def name_ends(ax: Any, lines: Sequence[tuple[float, float, str, Any]], apart: float = 11.0) -> None:
    """Name lines to the right of where they end, (x, y, words, colour) each, moved apart where they would touch."""
    if not lines:
        return
    ax.figure.canvas.draw()
    per_point = ax.figure.dpi / 72
    at = [ax.transData.transform((x, y)) / per_point for x, y, _, _ in lines]
    order = np.argsort([y for _, y in at])
    wanted = np.array([at[i][1] for i in order])
    # Least squares under gaps of at least ``apart``: an isotonic fit of what is left without the gaps.
    steps = apart * np.arange(len(wanted))
    placed = _rising(wanted - steps) + steps
    for i, y in zip(order, placed, strict=True):
        x_data, y_data, words, color = lines[i]
        ax.annotate(
            words,
            (x_data, y_data),
            xytext=(7, y - at[i][1]),
            textcoords="offset points",
            color=color,
            fontsize=8.5,
            va="center",
            annotation_clip=False,
        )


def _rising(values: np.ndarray) -> np.ndarray:
    from sklearn.isotonic import isotonic_regression

    return np.asarray(isotonic_regression(values))
