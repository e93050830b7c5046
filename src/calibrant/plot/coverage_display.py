"""`RiskCoverageDisplay`: error rate of the rows accepted against their share, of one or several models."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..judge.decisions.selective import risk_coverage
from .base import CurveDisplay
from .style import plain_text, style_of

#: Coverage from which on the axis of risks holds all of a curve.
_SETTLED = 0.05


class RiskCoverageDisplay(CurveDisplay):
    """Risk–coverage curves; lower is better.

    The dashed line is what a confidence that knows nothing would reach; of a single model, the dotted one is what the
    best order of its rows would, all errors last.

    Attributes
    ----------
    curves : dict of str to RiskCoverage
    ax_, figure_ : Axes, Figure

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.RiskCoverageDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Coverage: share of rows accepted'
    """

    only = "model"
    made_by = staticmethod(risk_coverage)
    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> RiskCoverageDisplay:
        """Draw on given axes, or on a new figure."""
        import matplotlib.pyplot as plt

        many = len(self.curves) > 6
        if ax is None:
            ax = plt.subplots(figsize=(8.0 if many else 5.8, 4.2), layout="constrained")[1]
        for i, (name, curve) in enumerate(self.curves.items()):
            style = style_of(i)
            single = len(curve.coverage) == 1
            ax.plot(
                curve.coverage,
                curve.risk,
                color=style.color,
                linestyle=style.linestyle,
                marker=style.marker if single else None,
                linewidth=1.7,
                zorder=3,
                label=plain_text(f"{name.lstrip('_')}, AURC {curve.aurc:.3g}"),
            )
            ax.axhline(curve.error_rate, color=style.color, linestyle=(0, (4, 2)), linewidth=0.9, alpha=0.6, zorder=1)
        if len(self.curves) == 1:
            (curve,) = self.curves.values()
            at = np.linspace(max(1 - curve.error_rate, 1e-9), 1, 101)
            ax.plot(
                np.concatenate([[0.0], at]),
                np.concatenate([[0.0], 1 - (1 - curve.error_rate) / at]),
                color="0.5",
                linestyle=":",
                linewidth=1.3,
                zorder=2,
                label="best order",
            )
        # The first rows alone say 0 or 1: they are not what the axis is for.
        top = max(float(c.risk[c.coverage >= _SETTLED].max()) for c in self.curves.values())
        ax.set(xlim=(0, 1), ylim=(0, min(1.15 * top, 1.02) if top > 0 else 0.05))
        ax.set(xlabel="Coverage: share of rows accepted", ylabel="Error rate of these rows")
        ax.grid(color="0.92", linewidth=0.8)
        ax.set_axisbelow(True)
        outside = (
            {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0} if many else {"loc": "best"}
        )
        ax.legend(fontsize=8, framealpha=0.85, **outside)
        self.ax_, self.figure_ = ax, ax.figure
        return self
