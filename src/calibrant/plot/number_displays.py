"""Displays of numbers with their intervals, side by side, and of a monitor's evidence so far."""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_type
from ..data.result import MeasuresDrawn
from ..monitoring.monitor import CalibrationMonitor
from .base import Display, draw_grid, draw_interval, one_axes
from .fitting import new_figure
from .over_time_display import number_of, on_dates
from .style import IDENTITY_COLOR, STYLES, font_scale, plain_texts


class IntervalDisplay(Display):
    """Numbers with their intervals, one per row; a dashed line marks the ideal value of a row if there is one.

    Rows with the same unit share an axis; others have one each.

    Attributes
    ----------
    result : CalibrationMeasures, Decomposition, OptimismCorrected or PriorEstimate
        The numbers.
    axes_ : ndarray of Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.calibration_measures : Computes one of the results drawn.
    calibrant.decompose : Computes another one.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1] * 9, [0.1, 0.2, 0.4, 0.6, 0.8, 0.9] * 9
    >>> display = cal.plot.IntervalDisplay.from_result(cal.decompose(y, p))
    >>> len(display.axes_)
    1
    """

    sizes_its_figure: ClassVar[bool] = True

    def __init__(self, result: MeasuresDrawn) -> None:
        self.result: MeasuresDrawn = check_type("result", result, MeasuresDrawn, "a result with several numbers")

    def plot(self) -> IntervalDisplay:
        """Draw on a new figure, whose height depends on the number of rows."""
        found, scale = self.result.measured(), font_scale()
        groups = [found] if self.result.one_unit else [[row] for row in found]
        height = (0.3 if self.result.one_unit else 0.5) * len(found) + 0.6
        figure, axes = new_figure(len(groups), 1, 6.2 * scale, height * scale)
        for ax, rows in zip(axes.flat, groups, strict=True):
            for at, row in enumerate(rows):
                draw_interval(ax, at, row.value, row.interval, STYLES[0].color)
                if self.result.mark_name:
                    name = self.result.mark_name if at == 0 else None
                    ax.vlines(row.ideal, at - 0.4, at + 0.4, color=IDENTITY_COLOR, linewidth=1.6, zorder=1, label=name)
            for ideal in set() if self.result.mark_name else {row.ideal for row in rows if row.ideal is not None}:
                ax.axvline(ideal, color=IDENTITY_COLOR, linewidth=1.1, linestyle=(0, (5, 4)), zorder=1)
            ax.set_yticks(range(len(rows)), plain_texts(row.name for row in rows), fontsize=8.5 * scale)
            ax.set_ylim(len(rows) - 0.5, -0.5)
            ax.margins(x=0.1)
            ax.tick_params(axis="x", labelsize=7.5 * scale)
            ax.tick_params(axis="y", length=0)
            ax.spines[["top", "right", "left"]].set_visible(False)
            draw_grid(ax, "x")
            ax.set_xlabel(self.result.axis_name, fontsize=8.5 * scale)
            if self.result.mark_name:
                ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8.5 * scale)
        self.axes_, self.figure_ = axes.ravel(), figure
        return self


class MonitorDisplay(Display):
    """E-value of a monitor against time, or the number of rows seen, with the levels of p = 0.05 and 0.01.

    Attributes
    ----------
    monitor : CalibrationMonitor
        The monitor.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.CalibrationMonitor : Its ``plot()`` makes this display.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> monitor = cal.CalibrationMonitor()
    >>> _ = monitor.update([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4])
    >>> monitor.plot().ax_.get_xlabel()
    'Rows seen'
    """

    def __init__(self, monitor: CalibrationMonitor) -> None:
        self.monitor: CalibrationMonitor = check_type("monitor", monitor, CalibrationMonitor, "a CalibrationMonitor")

    def plot(self, ax: Any = None) -> MonitorDisplay:
        """Draw on given axes, or on a new figure."""
        ax = one_axes(ax, 5.8, 3.6)
        rows, logs = np.array([(0.0, 0.0), *self.monitor.history]).T
        times = self.monitor._look_times
        at_times = [number_of(time) for time in times]
        color, powers = STYLES[0].color, logs / np.log(10)
        ax.plot(at_times or rows, powers, color=color, marker="o", markersize=3, linewidth=1.7)
        for p in (0.05, 0.01):
            at = -float(np.log10(p))
            ax.axhline(at, color=IDENTITY_COLOR, linestyle=(0, (5, 4)), linewidth=1.0, zorder=1)
            ax.annotate(f"p = {p:g}", (0.01, at), xycoords=ax.get_yaxis_transform(), va="bottom", fontsize=8)
        if self.monitor.alarm:
            said = f"Alarm: since about {self.monitor.since_text}"
            ax.set_title(said, fontsize=10, loc="left", color="#b2182b")
        low, high = float(min(powers.min(), -0.5)), float(max(powers.max(), 2.2))
        ax.set(ylabel="e-value, power of 10", ylim=(low - 0.05 * (high - low), high * 1.08))
        if not times:
            ax.set_xlabel("Rows seen")
        else:
            on_dates(ax, isinstance(times[0], dt.date))
        draw_grid(ax)
        return self._drawn(ax)
