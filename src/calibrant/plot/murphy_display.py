"""`MurphyDisplay`: Murphy diagrams of one or several forecasts of the same outcomes."""

from __future__ import annotations

from typing import Any

from ..measure.murphy import murphy_curve
from .base import CurveDisplay
from .style import class_text, plain_text, style_of


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
    >>> display = cal.MurphyDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Decision threshold'
    """

    only = "forecast"
    made_by = staticmethod(murphy_curve)
    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> MurphyDisplay:
        """Draw on given axes, or on a new figure."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")[1]
        first = next(iter(self.curves.values()))
        ax.fill_between(
            first.thresholds, first.base_rate, color="0.93", linewidth=0, zorder=0.5, label="better than the base rate"
        )
        ax.plot(first.thresholds, first.base_rate, color="0.6", linewidth=1.0, zorder=1, label="base rate")
        for i, (name, curve) in enumerate(self.curves.items()):
            style = style_of(i)
            ax.plot(
                curve.thresholds,
                curve.scores,
                color=style.color,
                linestyle=style.linestyle,
                linewidth=1.7,
                zorder=3,
                label=plain_text(name).lstrip("_"),
            )
        ax.set(xlim=(0, 1), xlabel="Decision threshold", ylabel="Mean elementary score")
        ax.set_ylim(bottom=0)
        ax.set_title(f"Acting on {class_text(first.label)}", fontsize=10)
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.legend(fontsize=8, framealpha=0.85)
        self.ax_, self.figure_ = ax, ax.figure
        return self
