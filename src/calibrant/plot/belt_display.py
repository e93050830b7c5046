"""`CalibrationBeltDisplay`: the calibration belt, and in words where it leaves the diagonal."""

from __future__ import annotations

import textwrap
from typing import Any

from ..significance.belt import CalibrationBelt, calibration_belt
from .base import Display
from .style import GRID_COLOR, IDENTITY_COLOR, class_text, percent_text, style_of

#: Characters a line of the words below the axes.
_WIDTH = 72


class CalibrationBeltDisplay(Display):
    """Calibration belt: its confidence levels (the widest lightest), the diagonal, and where the belt excludes it.

    Attributes
    ----------
    belt : CalibrationBelt
    ax_, figure_ : Axes, Figure

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = cal.plot.CalibrationBeltDisplay.from_predictions(rng.random(500) < p, p)
    >>> display.ax_.get_ylabel()
    'Observed frequency'
    """

    ax_: Any
    figure_: Any

    def __init__(self, belt: CalibrationBelt) -> None:
        if not isinstance(belt, CalibrationBelt):
            raise TypeError(f"belt must be a CalibrationBelt; got {type(belt).__name__}")
        self.belt = belt

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any = None, *, ax: Any = None, **options: Any
    ) -> CalibrationBeltDisplay:
        """Draw the belt.

        Parameters
        ----------
        y_true, y_prob : array-like
            Or Predictions, which stand for both.
        ax : Axes, optional
        **options
            Passed to :func:`calibrant.significance.calibration_belt`.
        """
        return cls(calibration_belt(y_true, y_prob, **options)).plot(ax)

    def plot(self, ax: Any = None) -> CalibrationBeltDisplay:
        """Draw on given axes, or on a new figure."""
        import matplotlib.pyplot as plt
        from matplotlib.patches import Patch

        if ax is None:
            ax = plt.subplots(figsize=(5.2, 5.6), layout="constrained")[1]
        belt, color = self.belt, style_of(0).color
        alpha = 1 - 0.45 ** (1 / len(belt.levels))  # what is common to all levels is as dark for any number of them
        handles: list[Any] = []
        for i in reversed(range(len(belt.levels))):  # the widest first, so that the others lie on it
            ax.fill_between(
                belt.scores,
                belt.lower[i],
                belt.upper[i],
                color=color,
                alpha=alpha,
                linewidth=0,
                zorder=2,
            )
            seen = 1 - (1 - alpha) ** (len(handles) + 1)
            handles.append(Patch(color=color, alpha=seen, linewidth=0, label=f"{percent_text(belt.levels[i])} belt"))
        handles += ax.plot(
            belt.scores, belt.fitted, color=color, linewidth=1.4, zorder=3, label=f"degree {belt.degree}"
        )
        ax.plot([0, 1], [0, 1], color=IDENTITY_COLOR, linewidth=1.0, linestyle=(0, (4, 3)), zorder=2.5)
        confidence = belt.label is None
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.set_xlabel("Confidence" if confidence else f"Predicted probability of {class_text(belt.label)}")
        ax.set_ylabel("Accuracy" if confidence else "Observed frequency")
        pvalue = "p < 0.001" if belt.pvalue < 0.001 else f"p = {belt.pvalue:.3f}"
        ax.set_title(f"{belt.n_samples:,} rows, test of calibration: {pvalue}", fontsize=10)
        ax.grid(color=GRID_COLOR, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.legend(handles=handles, fontsize=8, framealpha=0.85, loc="best")
        ax.text(
            0.5,
            -0.14,
            self.words,
            transform=ax.transAxes,
            ha="center",
            va="top",
            fontsize=8,
            color="0.25",
            linespacing=1.4,
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @property
    def words(self) -> str:
        """Where each belt leaves the diagonal, a line or more a level."""
        said = [f"{percent_text(level)} belt: {self.belt.where(level)}" for level in self.belt.levels]
        return "\n".join(line for text in said for line in textwrap.wrap(text, _WIDTH))
