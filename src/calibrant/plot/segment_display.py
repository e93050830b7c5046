"""`SegmentDisplay`: gaps of segments with their intervals, and the reliability diagram of a chosen one."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from ..comparison.segments.find import find_segments
from ..comparison.segments.segment_report import SegmentReport
from ..data.checks import check_int, check_type
from .base import Display, draw_grid, draw_interval
from .fitting import new_figure
from .reliability_display import ReliabilityDisplay
from .style import class_text, percent_text, plain_text, plain_texts, style_of

#: Inches per segment, and around the panel.
_ROW, _AROUND = 0.44, 1.5
#: Maximum characters of a condition, and of a line of it.
_LONGEST, _LINE = 96, 34


class SegmentDisplay(Display):
    """Gaps of segments, observed minus predicted, with simultaneous intervals; one row per segment.

    A diamond shows observed minus expected at the same scores, by the map of all rows. Segments found are filled; if
    there are none, those tested are drawn hollow. Numbers of rows are shown on the right.

    Attributes
    ----------
    report : SegmentReport
        The report.
    axes_ : tuple of Axes
        The axes, once drawn: one, or two with a chosen segment.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.find_segments : Computes the report.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p, sex = rng.random(3000), rng.choice(["f", "m"], 3000)
    >>> y = rng.random(3000) < np.where(sex == "f", p**2, p)
    >>> display = cal.find_segments(y, p, {"sex": sex}).plot()
    >>> [text.get_text() for text in display.axes_[0].get_yticklabels()]
    ['sex is f']
    """

    axes_: tuple[Any, ...]
    figure_: Any

    def __init__(self, report: SegmentReport) -> None:
        self.report = check_type("report", report, SegmentReport)

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any = None, X: Any = None, **options: Any) -> SegmentDisplay:
        """Search for segments and draw those found.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Predictions
            Observed labels; Predictions replace the first two arguments.
        y_prob : array-like of shape (n,) or (n, K)
            Predicted probabilities.
        X : array of shape (n, F), mapping, data frame, or list of columns
            Features.
        **options
            Passed to :func:`calibrant.find_segments`.
        """
        return cls(find_segments(y_true, y_prob, X, **options)).plot()

    def plot(self, ax: Any = None, *, segment: int | None = None) -> SegmentDisplay:
        """Draw gaps on given axes or on a new figure, and next to them the reliability diagram of a chosen segment.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw the gaps; omit it with ``segment``, whose diagram needs its own axes.
        segment : int, optional
            Position in ``report.segments``.
        """
        report = self.report
        shown = report.segments or report.tested
        height = max(_AROUND + _ROW * max(len(shown), 2), 3.6 if segment is not None else 0.0)
        if segment is None:
            axes = [new_figure(1, 1, 7.2, height)[1][0, 0] if ax is None else ax]
        elif ax is not None:
            raise TypeError("a SegmentDisplay with a chosen segment draws a figure of its own: omit ax")
        elif not report.segments:
            raise ValueError("segment must be None: no segment was found")
        else:
            check_int("segment", segment, 0, len(report.segments) - 1)
            axes = list(new_figure(1, 2, 10.5, height, gridspec_kw={"width_ratios": [5, 4]})[1][0])
        self._draw_gaps(axes[0], shown)
        if segment is not None:
            one = report.segments[segment]
            ReliabilityDisplay.of(one.curve).plot(axes[1], histogram=None)
            axes[1].set_title(fill(plain_text(one.condition, _LONGEST), _LINE), fontsize=10, loc="left")
        self.axes_ = tuple(axes)
        return self._drawn(*axes)

    def _draw_gaps(self, ax: Any, shown: Any) -> None:
        report, color = self.report, style_of(0).color
        beside = ax.get_yaxis_transform()
        for y, one in enumerate(shown):
            off = one.adjusted <= 1 - report.level
            draw_interval(ax, y, one.gap, one.gap_interval, color, filled=off)
            ax.plot([one.gap_beyond], [y], "D", color="0.35", markersize=3.5, zorder=4)
            ax.text(1.02, y, f"{one.n_samples:,} rows", transform=beside, va="center", fontsize=8)
        names = plain_texts((report.named(one) for one in shown), _LONGEST)
        ax.set_yticks(range(len(shown)), [fill(name, _LINE) for name in names])
        ax.tick_params(axis="y", length=0, labelsize=9)
        ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
        ends = [abs(v) for one in shown for v in (*one.gap_interval, one.gap_beyond)]
        widest = max([*ends, 0.01])
        ax.set_xlim(-1.08 * widest, 1.08 * widest)
        ax.axvline(0.0, color="0.45", linewidth=1.0, zorder=1)
        ax.set_xlabel("Observed minus predicted (diamond: minus expected at the same scores)")
        if not shown:
            ax.text(0.5, 0.5, "no segment was tested", transform=ax.transAxes, ha="center", va="center", fontsize=9)
        whom = "" if report.label is None else f"{class_text(report.label, notion=report.notion)}, "
        which = "" if report.segments else "; hollow: tested, not significant"
        title = f"{whom}{percent_text(report.level)} intervals, all segments at once{which}"
        ax.set_title(title, fontsize=10, loc="left")
        draw_grid(ax, "x")
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(axis="x", nbins=5)
