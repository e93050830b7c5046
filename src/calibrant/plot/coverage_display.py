"""`RiskCoverageDisplay`: error rate of the rows accepted against their share, of one or several models."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..decisions.selective import risk_coverage
from .base import CurveDisplay
from .style import Style

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
    >>> display = cal.plot.RiskCoverageDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Coverage: share of rows accepted'
    """

    only = "model"
    made_by = staticmethod(risk_coverage)
    axis_texts = ("Coverage: share of rows accepted", "Error rate of these rows")

    def _draw_beside(self, ax: Any) -> None:
        if len(self.curves) > 1:
            return
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

    def _draw_curve(self, ax: Any, name: str, curve: Any, style: Style) -> None:
        self._draw_line(ax, curve.coverage, curve.risk, style, f"{name}, AURC {curve.aurc:.3g}")
        ax.axhline(curve.error_rate, color=style.color, linestyle=(0, (4, 2)), linewidth=0.9, alpha=0.6, zorder=1)

    def _set_limits(self, ax: Any) -> None:
        # The first rows alone say 0 or 1: they are not what the axis is for.
        top = max(float(c.risk[c.coverage >= _SETTLED].max()) for c in self.curves.values())
        ax.set(xlim=(0, 1), ylim=(0, min(1.15 * top, 1.02) if top > 0 else 0.05))
