"""`DecisionCurveDisplay`: net benefit of one or several models against the decision threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..decisions.clinical import decision_curve
from .base import CurveDisplay
from .style import Style, class_text

#: How far below "treat none" the axis reaches, as a share of how far the best reaches above.
_BELOW = 0.25


class DecisionCurveDisplay(CurveDisplay):
    """Decision curves, with acting always and acting never; higher is better.

    Net benefit falls to minus infinity where many are treated at high thresholds, so the axis ends a quarter of its
    height below 0: what leaves it there is worse than to act never.

    Attributes
    ----------
    curves : dict of str to DecisionCurve
    ax_, figure_ : Axes, Figure

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.DecisionCurveDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Decision threshold'
    """

    only = "model"
    made_by = staticmethod(decision_curve)
    axis_texts = ("Decision threshold", "Net benefit")
    legend = "upper right"

    def _draw_beside(self, ax: Any) -> None:
        first = next(iter(self.curves.values()))
        ax.axhline(0.0, color="0.45", linewidth=1.0, zorder=1, label="act never")
        ax.plot(
            first.thresholds,
            first.treat_all,
            color="0.6",
            linestyle=(0, (4, 2)),
            linewidth=1.2,
            zorder=1.5,
            label="act always",
        )

    def _draw_curve(self, ax: Any, name: str, curve: Any, style: Style) -> None:
        self._draw_line(ax, curve.thresholds, curve.net_benefit, style, name)

    def _set_limits(self, ax: Any) -> None:
        first = next(iter(self.curves.values()))
        top = max(float(np.max(v)) for v in (first.treat_all, *(c.net_benefit for c in self.curves.values())))
        top = top if top > 0 else 0.05
        ax.set(xlim=_limits(self.curves.values()), ylim=(-_BELOW * top, 1.06 * top))
        ax.set_title(f"Acting on {class_text(first.label)}", fontsize=10)


def _limits(curves: Any) -> tuple[float, float]:
    """All thresholds, or (0, 1) where they span most of it."""
    low = min(float(c.thresholds.min()) for c in curves)
    high = max(float(c.thresholds.max()) for c in curves)
    if high - low > 0.8 or low == high:
        return 0.0, 1.0
    margin = 0.03 * (high - low)
    return max(low - margin, 0.0), min(high + margin, 1.0)
