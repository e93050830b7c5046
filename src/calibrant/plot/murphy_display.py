"""`MurphyDisplay` and `BrierCurveDisplay`: what forecasts of the same outcomes cost at each threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from ..scores.murphy import brier_curve, murphy_curve
from .base import CurveDisplay
from .style import Style, class_text, digits_of


class MurphyDisplay(CurveDisplay):
    """Murphy diagram: the mean elementary score against the decision threshold; lower is better.

    Attributes
    ----------
    curves : dict of str to MurphyCurve
    ax_, figure_ : Axes, Figure

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.MurphyDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Decision threshold'
    """

    only = "forecast"
    made_by: ClassVar[Callable[..., Any]] = staticmethod(murphy_curve)
    axis_texts = ("Decision threshold", "Mean elementary score")
    width = 5.4

    def _draw_beside(self, ax: Any) -> None:
        first = next(iter(self.curves.values()))
        ax.fill_between(
            first.thresholds, first.base_rate, color="0.93", linewidth=0, zorder=0.5, label="better than the base rate"
        )
        ax.plot(first.thresholds, first.base_rate, color="0.6", linewidth=1.0, zorder=1, label="base rate")

    def _draw_curve(self, ax: Any, name: str, curve: Any, style: Style) -> None:
        self._draw_line(ax, curve.thresholds, curve.scores, style, name)

    def _set_limits(self, ax: Any) -> None:
        ax.set(xlim=(0, 1))
        ax.set_ylim(bottom=0)
        ax.set_title(f"Acting on {class_text(next(iter(self.curves.values())).label)}", fontsize=10)


class BrierCurveDisplay(MurphyDisplay):
    """Brier curves: the expected loss against the cost proportion, whose area is the Brier score; lower is better.

    Thin lines are the same scores after isotonic recalibration, the least loss of any thresholds on these rows: what
    lies between is what calibration loses, at these costs.

    Attributes
    ----------
    curves : dict of str to BrierCurve
    ax_, figure_ : Axes, Figure

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.BrierCurveDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_legend().get_texts()[2].get_text()
    'model: area 0.137'
    """

    only = "model"
    made_by = staticmethod(brier_curve)
    axis_texts = ("Cost proportion, and threshold", "Expected loss")
    recalibrated: bool = True

    def plot(self, ax: Any = None, *, recalibrated: bool = True) -> Self:
        """Draw on given axes, or on a new figure.

        Parameters
        ----------
        ax : Axes, optional
        recalibrated : bool, default True
            Draw the recalibrated curves too.
        """
        self.recalibrated = recalibrated
        return super().plot(ax)

    def _draw_curve(self, ax: Any, name: str, curve: Any, style: Style) -> None:
        digits = digits_of(curve.refinement, curve.brier_score)
        super()._draw_curve(ax, f"{name}: area {curve.brier_score:.{digits}f}", curve, style)
        if self.recalibrated:
            ax.plot(
                curve.thresholds,
                curve.recalibrated,
                color=style.color,
                linewidth=0.9,
                zorder=2.5,
                label=f"recalibrated: area {curve.refinement:.{digits}f}",
            )
