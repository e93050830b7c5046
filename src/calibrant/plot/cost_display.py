"""`CostDisplay`: cost of decisions against their threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..data.printing import half_width, known
from ..decisions.cost import expected_cost
from .line_displays import CurveDisplay
from .scale import tick_text
from .style import style_of

#: Thresholds nearer to an end than this need an axis of log odds, with these ticks.
_NARROW = 0.02
_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1 - 1e-4, 1 - 1e-5, 1 - 1e-6)


class CostDisplay(CurveDisplay):
    """Cost per row against the decision threshold; lower is better.

    The thin line is the cost expected from the stated probabilities, lowest at the optimal threshold. With a single
    model, points with intervals are the costs at that threshold, at 0.5, and after recalibration.

    Attributes
    ----------
    curves : dict of str to ExpectedCost
        The costs, by the names of the models.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.expected_cost : Computes the costs.
    calibrant.plot.DecisionCurveDisplay : The net benefit instead of costs.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.CostDisplay.from_predictions(y, p, costs={"fp": 1, "fn": 4})
    >>> display.ax_.get_ylabel()
    'Cost per row'
    """

    curve_function: ClassVar[Callable[..., Any]] = staticmethod(expected_cost)
    line = ("thresholds", "costs")
    axis_texts = ("Threshold: act where the probability is at least this", "Cost per row")

    def _draw_beside(self, ax: Any, curves: list[Any]) -> None:
        ax.axvline(curves[0].threshold, color="0.6", linestyle=(0, (4, 2)), linewidth=1.2, zorder=1)

    def _draw_with(self, ax: Any, curve: Any, color: str) -> None:
        ax.plot(curve.thresholds, curve.stated_costs, color=color, linewidth=0.9, zorder=2.5, label="expected cost")
        if len(self.curves) > 1:
            return
        points = [("at {:.3g} or more", curve.threshold, curve.realised), ("at 0.5 or more", 0.5, curve.at_half)]
        if curve.recalibrated is not None and np.isfinite(curve.recalibrated_threshold):
            points.append(("recalibrated, at {:.3g} or more", curve.recalibrated_threshold, curve.recalibrated))
        for i, (text, at, cost) in enumerate(points):
            style = style_of(i + 1)
            reach = half_width(*cost.interval)
            label = f"{text.format(at)}: {known(cost.value, reach)}"
            ax.errorbar(at, cost.value, reach, fmt=style.marker, color=style.color, capsize=3, zorder=4, label=label)

    def _set_limits(self, ax: Any, curves: list[Any]) -> None:
        marked = [t for c in curves for t in (c.threshold, c.recalibrated_threshold) if t is not None and 0 < t < 1]
        end = min((min(t, 1 - t) for t in marked), default=0.5) / 4
        if end < _NARROW:  # rare or dear: the thresholds that matter lie near an end
            ticks = [t for t in _TICKS if end <= t <= 1 - end]
            ax.set_xscale("logit")
            ax.set_xticks(ticks, [tick_text(t) for t in ticks])
            ax.minorticks_off()
        ax.set_xlim((end, 1 - end) if end < _NARROW else (0, 1))
        ax.set_ylim(bottom=0)
