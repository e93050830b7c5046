"""`SubgroupDisplay`: gaps and calibration errors of subgroups, with their intervals, as a forest plot."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..comparison.subgroups.build import subgroup_calibration
from ..comparison.subgroups.result import SubgroupReport
from ..data.checks import check_type
from .base import Display, draw_grid, draw_interval
from .fitting import is_small, new_figure
from .style import class_text, percent_text, plain_text, plain_texts, style_of

#: Inches per subgroup or heading, and around the panels.
_ROW, _AROUND = 0.27, 1.45
_LONGEST_SUBGROUP = 26


class SubgroupDisplay(Display):
    """Forest plot: one row per subgroup, with its gap in the large on the left and its calibration error on the right.

    Subgroups that are miscalibrated by their adjusted p-values are filled, the others hollow. Numbers of rows are shown
    on the right; small subgroups are grey.

    Attributes
    ----------
    report : SubgroupReport
        The report.
    axes_ : tuple of two Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.subgroup_calibration : Computes the report.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p, sex = rng.random(400), rng.choice(["f", "m"], 400)
    >>> display = cal.plot.SubgroupDisplay(cal.subgroup_calibration(rng.random(400) < p, p, sex)).plot()
    >>> [text.get_text() for text in display.axes_[0].get_yticklabels()]
    ['f', 'm']
    """

    axes_: tuple[Any, Any]
    figure_: Any

    def __init__(self, report: SubgroupReport) -> None:
        self.report = check_type("report", report, SubgroupReport)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any = None, by: Any = None, *, axes: Any = None, **options: Any
    ) -> SubgroupDisplay:
        """Compute the calibration of subgroups and draw it.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Predictions
            Observed labels; Predictions replace the first two arguments.
        y_prob : array-like of shape (n,) or (n, K)
            Predicted probabilities.
        by : array-like of shape (n,), mapping, data frame, or list of columns
            Subgroup of each row.
        axes : two Axes, optional
            Two axes with a shared y-axis; by default those of a new figure.
        **options
            Passed to :func:`calibrant.subgroup_calibration`.
        """
        return cls(subgroup_calibration(y_true, y_prob, by, **options)).plot(axes)

    @staticmethod
    def size_of(report: SubgroupReport) -> tuple[float, float]:
        """Width and height in inches of a figure for a report.

        Parameters
        ----------
        report : SubgroupReport
            The report.
        """
        headings = len(report.columns) if len(report.columns) > 1 else 0
        return 7.6, _AROUND + _ROW * max(len(report.subgroups) + headings, 3)

    def plot(self, axes: Any = None) -> SubgroupDisplay:
        """Draw on two given axes with a shared y-axis, or on a new figure.

        Parameters
        ----------
        axes : two Axes, optional
            Two axes with a shared y-axis; by default those of a new figure.
        """
        report = self.report
        several = len(report.columns) > 1
        if axes is None:
            axes = new_figure(1, 2, *self.size_of(report), sharey=True)[1][0]
        if np.size(axes) != 2:
            raise TypeError(
                "a SubgroupDisplay takes two axes, for gaps and for errors: plt.subplots(1, 2, sharey=True)[1]"
            )
        left, right = axes
        style, longest = style_of(0), 14 if is_small(left) else _LONGEST_SUBGROUP
        beside = [ax.get_yaxis_transform() for ax in axes]
        ticks, names, bounds, y = [], [], [], 0.0
        for column in report.columns:
            if several:
                heading: dict[str, Any] = {"fontsize": 9, "fontweight": "bold", "ha": "right"}
                left.text(-0.02, y, plain_text(column.name, longest), transform=beside[0], va="center", **heading)
                y += 1
            short = plain_texts((subgroup.name for subgroup in column.subgroups), longest)
            for subgroup, name in zip(column.subgroups, short, strict=True):
                off = subgroup.adjusted <= 1 - report.level
                color = "0.55" if subgroup.warnings else style.color
                draw_interval(left, y, subgroup.gap, subgroup.gap_interval, color, filled=off)
                draw_interval(right, y, subgroup.error, subgroup.error_interval, color, filled=off)
                right.text(1.02, y, f"{subgroup.n_samples:,}", transform=beside[1], va="center", fontsize=8)
                bounds += [abs(v) for v in (subgroup.gap, *subgroup.gap_interval) if np.isfinite(v)]
                ticks.append(y)
                names.append(name)
                y += 1
        left.set_yticks(ticks, names)
        left.tick_params(axis="y", length=0, labelsize=9)
        right.tick_params(axis="y", length=0, labelleft=False)
        left.set_ylim(y - 0.4, -0.6)
        right.set_ylim(y - 0.4, -0.6)
        widest = max([*bounds, 0.01])
        left.set_xlim(-1.08 * widest, 1.08 * widest)
        right.set_xlim(left=0.0)
        left.axvline(0.0, color="0.45", linewidth=1.0, zorder=1)
        left.set_xlabel("Accuracy minus confidence" if report.label is None else "Observed minus stated")
        right.set_xlabel("Calibration error")
        right.text(1.02, 1.01, "rows", transform=right.transAxes, ha="left", va="bottom", fontsize=8)
        whom = "confidence" if report.label is None else class_text(report.label, notion=report.notion)
        left.set_title(f"{whom}, {percent_text(report.level)} intervals", fontsize=10, loc="left")
        which = "p" if report.adjust == "none" else "adjusted p"
        words = f"filled: miscalibrated ({which} ≤ {1 - report.level:.3g})"
        right.set_title(words, fontsize=9, loc="left", color="0.3")
        for ax in (left, right):
            draw_grid(ax, "x")
            ax.spines[["top", "right"]].set_visible(False)
            ax.locator_params(axis="x", nbins=5)
        right.spines["left"].set_visible(True)
        self.axes_ = left, right
        return self._drawn(left, right)
