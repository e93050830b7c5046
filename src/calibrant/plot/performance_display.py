"""`PerformanceDisplay`: expected metrics of rows without labels, by period if there are periods."""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

from ..data.checks import check_type
from ..monitoring.expected_performance import expected_performance
from ..monitoring.performance_metrics import METRICS
from ..monitoring.performance_result import ExpectedPerformance
from .base import Display, draw_grid
from .fitting import new_figure
from .number_displays import IntervalDisplay
from .over_time_display import middle_of, on_dates
from .style import IDENTITY_COLOR, percent_text, style_of


class PerformanceDisplay(Display):
    """Metrics of each period, with their intervals, one below the other; dashed lines show those of the reference.

    Without periods, metrics are drawn as numbers side by side, as by :class:`IntervalDisplay`.

    Attributes
    ----------
    result : ExpectedPerformance
        The result.
    axes_ : ndarray of Axes
        The axes, one per metric, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.expected_performance : Computes the result.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p, new = rng.random(2000), rng.random(500)
    >>> found = cal.expected_performance(new, reference=(rng.random(2000) < p, p), metric=["f1", "brier"])
    >>> len(found.plot().axes_)
    2
    """

    sizes_its_figure: ClassVar[bool] = True

    def __init__(self, result: ExpectedPerformance) -> None:
        self.result = check_type("result", result, ExpectedPerformance)

    @classmethod
    def from_predictions(cls, p_new: Any, **options: Any) -> PerformanceDisplay:
        """Compute the expected metrics and draw them.

        Parameters
        ----------
        p_new : array-like of shape (n,) or (n, K)
            Probabilities of the rows without labels.
        **options
            Passed to :func:`calibrant.expected_performance`.
        """
        return cls(expected_performance(p_new, **options)).plot()

    def plot(self) -> PerformanceDisplay:
        """Draw on a new figure."""
        result = self.result
        if not result.periods:
            inner = IntervalDisplay(result).plot()
            self.axes_, self.figure_ = inner.axes_, inner.figure_
            self._explain(self.axes_[0])
            return self
        names = [metric.name for metric in result.metrics]
        figure, axes = new_figure(len(names), 1, 7.2, 0.9 + 1.25 * len(names), sharex=True)
        at = [middle_of(p.start, p.end) for p in result.periods]
        color = style_of(0).color
        for i, (ax, whole) in enumerate(zip(axes[:, 0], result.metrics, strict=True)):
            found = [p.metrics[i] for p in result.periods]
            ax.vlines(at, [m.interval.low for m in found], [m.interval.high for m in found], color=color, linewidth=1.4)
            ax.scatter(at, [m.value for m in found], s=18, c=color, zorder=3)
            ax.axhline(whole.reference, color=IDENTITY_COLOR, linewidth=1.1, linestyle=(0, (5, 4)), zorder=1)
            ax.set_title(METRICS[whole.name].words, fontsize=9, loc="left")
            ax.margins(y=0.12)
            draw_grid(ax, "y")
            ax.spines[["top", "right"]].set_visible(False)
            ax.tick_params(axis="x", labelbottom=i == len(names) - 1)
        self._explain(axes[0, 0])
        on_dates(axes[-1, 0], isinstance(result.periods[0].start, dt.date))
        self.axes_, self.figure_ = axes[:, 0], figure
        return self

    def _explain(self, ax: Any) -> None:
        """Explain the marks, in a title above the first axes."""
        dashed = "; dashed: reference" if self.result.n_reference else ""
        said = f"expected, {percent_text(self.result.level)} intervals{dashed}"
        ax.set_title(said, fontsize=9, loc="right", color="0.3")
