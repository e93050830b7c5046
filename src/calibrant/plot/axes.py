"""Where panels go: on the axes a user gives, or on a new figure."""

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

from ..data.types import Label

#: Figures made here, whose title and foot belong to calibrant.
_OWN: WeakSet[Figure] = WeakSet()
#: The class that a panel shows, and the panels that took the place of an axes.
_CLASS: WeakKeyDictionary[Axes, Label] = WeakKeyDictionary()
_PANELS: WeakKeyDictionary[Axes, list[weakref.ref[Axes]]] = WeakKeyDictionary()


def shape_of(n: int) -> tuple[int, int]:
    """Rows and columns for ``n`` panels, at most three a row."""
    columns = n if n <= 3 else 2 if n == 4 else 3
    return -(-n // columns), columns


def new_axes(n: int) -> list[Axes]:
    """Axes of a new figure for ``n`` panels, arranged by :mod:`calibrant.plot.figure`."""
    rows, columns = shape_of(n)
    size = (5.4, 6.6) if n == 1 else (3.1 * columns, 3.9 * rows)  # roughly: see arrange_grid for the final one
    figure, grid = plt.subplots(rows, columns, squeeze=False, figsize=size)
    _OWN.add(figure)
    flat = list(grid.flat)
    for ax in flat[n:]:
        ax.remove()
    return flat[:n]


def given_axes(ax: Any, n: int) -> list[Axes]:
    """Panels on axes that a user gives: as many as there are, or a grid in the place of a single one."""
    if isinstance(ax, Axes):
        if n == 1:
            return [ax]
        present = [panel for panel in (ref() for ref in _PANELS.get(ax, [])) if panel is not None]
        return present or _split(ax, n)
    axes = [a for a in np.asarray(ax, dtype=object).ravel() if a is not None]
    if not axes or not all(isinstance(a, Axes) for a in axes):
        raise TypeError(f"ax must be a matplotlib Axes or an array of them; got {ax!r}")
    return axes


def _split(ax: Axes, n: int) -> list[Axes]:
    spec = ax.get_subplotspec()
    figure = ax.get_figure(root=False)
    if spec is None or figure is None:
        raise ValueError(f"ax holds one panel and {n} are drawn: pass an array of axes, or one made by plt.subplots")
    rows, columns = shape_of(n)
    inner = GridSpecFromSubplotSpec(rows, columns, subplot_spec=spec, wspace=0.5, hspace=0.9)
    ax.set_axis_off()
    panels = [figure.add_subplot(inner[i // columns, i % columns]) for i in range(n)]
    _PANELS[ax] = [weakref.ref(panel) for panel in panels]
    return panels


def claim(ax: Axes, label: Label) -> None:
    """Remember which class a panel shows."""
    _CLASS[ax] = label


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
