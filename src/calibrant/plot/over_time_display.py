"""`OverTimeDisplay`: gap and calibration error per period, with changes marked and numbers of rows below."""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

import matplotlib.dates

from ..data.checks import check_choice, check_type
from ..data.printing import Time
from ..data.types import Interval
from ..monitoring.over_time import calibration_over_time
from ..monitoring.over_time_result import CalibrationOverTime
from .base import Display, draw_grid
from .fitting import new_figure
from .style import class_text, percent_text, style_of

_CHANGE = "#b2182b"
_dates: Any = matplotlib.dates  # without types


class OverTimeDisplay(Display):
    """Gap (observed minus predicted), calibration error and number of rows against time, one below the other.

    Intervals are bars; periods that are miscalibrated by their adjusted p-values are filled, the others hollow. A line
    marks each change, a band the interval of its time, and steps show the gap before and after it.

    Attributes
    ----------
    result : CalibrationOverTime
        The result.
    axes_ : tuple of three Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.calibration_over_time : Computes the result.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p, day = rng.random(2000), np.arange(2000) // 20
    >>> display = cal.plot.OverTimeDisplay.from_predictions(rng.random(2000) < p, p, day, every=500)
    >>> display.axes_[0].get_ylabel()
    'Observed minus predicted'
    """

    sizes_its_figure: ClassVar[bool] = True
    axes_: tuple[Any, Any, Any]
    figure_: Any

    def __init__(self, result: CalibrationOverTime) -> None:
        self.result = check_type("result", result, CalibrationOverTime)

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any = None, time: Any = None, **options: Any) -> OverTimeDisplay:
        """Compute the result and draw it.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Predictions
            Observed labels; Predictions replace the first two arguments.
        y_prob : array-like of shape (n,) or (n, K)
            Predicted probabilities.
        time : array-like of shape (n,)
            Time of each row.
        **options
            Passed to :func:`calibrant.calibration_over_time`.
        """
        return cls(calibration_over_time(y_true, y_prob, time, **options)).plot()

    def plot(self, course: object = None) -> OverTimeDisplay:
        """Draw on a new figure.

        Parameters
        ----------
        course : str, optional
            Subgroup or class to draw, if there are several; default: the one with the clearest change.

        Raises
        ------
        ValueError
            If there is no such course.
        """
        result = self.result
        if course is not None:
            names = [one.course for one in result.courses]
            result = result.courses[names.index(check_choice("course", str(course), names))]
        heights = {"height_ratios": [3, 2, 1]}
        axes = new_figure(3, 1, 7.2, 5.6, sharex=True, gridspec_kw=heights)[1][:, 0]
        top, middle, bottom = axes
        periods, color = result.periods, style_of(0).color
        at = [middle_of(p.start, p.end) for p in periods]
        for ax, name in ((top, "gap"), (middle, "error")):
            values = [getattr(p, name) for p in periods]
            intervals: list[Interval] = [getattr(p, f"{name}_interval") for p in periods]
            ax.vlines(at, [i.low for i in intervals], [i.high for i in intervals], color=color, linewidth=1.4)
            faces = [color if p.adjusted <= 1 - result.level else "white" for p in periods]
            ax.scatter(at, values, s=20, c=faces, edgecolors=color, linewidths=1.2, zorder=3)
        top.axhline(0.0, color="0.45", linewidth=1.0, zorder=1)
        spans = [_width(p.start, p.end) for p in periods]
        bottom.bar(
            [number_of(p.start) for p in periods], [p.n_samples for p in periods], spans, align="edge", color="0.75"
        )
        self._mark(axes, result)
        top.set_ylabel("Accuracy minus confidence" if result.label is None else "Observed minus predicted")
        middle.set_ylabel("Calibration error")
        middle.set_ylim(bottom=0.0)
        bottom.set_ylabel("Rows")
        whom = "confidence" if result.label is None else class_text(result.label, notion=result.notion)
        if result.by not in ("", "class", "label"):
            whom = f"{result.by} {result.course}: {whom}"
        top.set_title(f"{whom}, {percent_text(result.level)} intervals", fontsize=10, loc="left")
        words = f"filled: miscalibrated (adjusted p ≤ {1 - result.level:.3g})"
        middle.set_title(words, fontsize=9, loc="left", color="0.3")
        for ax in axes:
            draw_grid(ax, "y")
            ax.spines[["top", "right"]].set_visible(False)
        for ax in (top, middle):
            ax.tick_params(axis="x", labelbottom=False)
        on_dates(bottom, bool(periods) and isinstance(periods[0].start, dt.date))
        self.axes_ = top, middle, bottom
        return self._drawn(top, middle, bottom)

    def _mark(self, axes: Any, result: CalibrationOverTime) -> None:
        """Mark changes, and the gaps between them."""
        found = result.changes
        if not found:
            return
        edges = [result.periods[0].start, *(c.time for c in found), result.periods[-1].end]
        gaps = [found[0].before, *(c.after for c in found)]
        for gap, start, end in zip(gaps, edges[:-1], edges[1:], strict=True):
            axes[0].hlines(gap, number_of(start), number_of(end), color=_CHANGE, linewidth=1.6, zorder=2)
        for change in found:
            for ax in axes:
                ax.axvline(number_of(change.time), color=_CHANGE, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
                ax.axvspan(*map(number_of, change.interval), color=_CHANGE, alpha=0.12, linewidth=0, zorder=0)


def on_dates(ax: Any, dated: bool) -> None:
    """Label the times of an axis: dates by a few ticks, numbers by the axis label."""
    if not dated:
        ax.set_xlabel("Time")
        return
    locator = _dates.AutoDateLocator(maxticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(_dates.ConciseDateFormatter(locator))


def number_of(time: Time) -> float:
    """A time as a number on an axis: dates in days."""
    return float(_dates.date2num(time)) if isinstance(time, dt.date) else float(time)


def middle_of(start: Time, end: Time) -> float:
    """Middle of a period, where it is drawn."""
    return (number_of(start) + number_of(end)) / 2


def _width(start: Time, end: Time) -> float:
    return max(number_of(end) - number_of(start), 0.8)
