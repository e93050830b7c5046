"""`MurphyDisplay`: Murphy diagrams of one or several forecasts of the same outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..measure.murphy import MurphyCurve, murphy_curve
from .base import Display
from .response import each_model
from .style import class_text, plain_text, style_of


class MurphyDisplay(Display):
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

    ax_: Any
    figure_: Any

    def __init__(self, curves: Mapping[str, MurphyCurve]) -> None:
        if not curves:
            raise ValueError("curves must hold at least one MurphyCurve; got none")
        self.curves = dict(curves)

    @classmethod
    def of(cls, result: MurphyCurve) -> MurphyDisplay:
        """Hold the curve of one forecast."""
        return cls({"forecast": result})

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any = None, *, ax: Any = None, **options: Any) -> MurphyDisplay:
        """Draw the diagram.

        Parameters
        ----------
        y_true : array-like, Predictions, or mapping of names to Predictions
        y_prob : array-like, or mapping of names to array-likes, optional
            Probabilities of one forecast, or of several for the same rows.
        ax : Axes, optional
        **options
            Passed to :func:`calibrant.murphy_curve`.
        """
        several = each_model(y_true, y_prob, "forecast")
        return cls({str(name): murphy_curve(*rows, **options) for name, rows in several.items()}).plot(ax)

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
