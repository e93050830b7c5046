"""`NullDistributionDisplay`: the statistic of a test beside its distribution under calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..significance import TestResult
from .axes import new_axes
from .base import Display
from .style import STYLES, plain_text

_MOST_BINS = 40


class NullDistributionDisplay(Display):
    """A test's statistic (line) and its distribution under calibration: draws, or chi-squared.

    The part at least as large as the statistic, whose share is the p-value, is darker (Silva Filho et al. 2023, Figure
    21).

    Attributes
    ----------
    result : TestResult
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> display = cal.calibration_test(rng.random(200) < p, p, random_state=0).plot()
    >>> display.ax_.get_xlabel()
    'statistic under calibration, 999 draws'
    """

    ax_: Any
    figure_: Any

    def __init__(self, result: TestResult) -> None:
        if not isinstance(result, TestResult):
            raise TypeError(f"result must be a TestResult; got {type(result).__name__}")
        if result.draws is None and result.df is None:
            raise ValueError(f"this test has neither draws nor a chi-squared distribution to show: {result.name}")
        if not np.isfinite(result.statistic):
            raise ValueError(f"the statistic is {result.statistic}: there is nothing to show beside the draws")
        self.result = result

    def plot(self, ax: Any = None) -> NullDistributionDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
        """
        r, color = self.result, STYLES[0].color
        ax = new_axes(1)[0] if ax is None else ax
        if r.draws is not None:
            draws = r.draws[np.isfinite(r.draws)]
            low, high = min(draws.min(), r.statistic), max(draws.max(), r.statistic)
            n_bins = int(np.clip(np.sqrt(draws.size) * 1.5, 5, _MOST_BINS))
            # An edge at the statistic, so that what lies beyond is whole bars.
            step = (high - low) / n_bins or 1.0
            first, last = np.ceil((r.statistic - low) / step), np.ceil((high - r.statistic) / step)
            edges = r.statistic + step * np.arange(-first, last + 1)
            counts, edges = np.histogram(draws, edges) if len(edges) > 1 else (np.array([]), edges)
            beyond = edges[:-1] >= r.statistic - 1e-9 * step
            for part, alpha in ((~beyond, 0.35), (beyond, 0.9)):
                ax.bar(edges[:-1][part], counts[part], step, align="edge", color=color, alpha=alpha, linewidth=0)
            ax.set_xlabel(f"statistic under calibration, {r.draws.size:,} draws")
            ax.set_ylabel("draws")
        else:
            self._chi_squared(ax, float(r.df or 1), color)
        ax.axvline(r.statistic, color="0.15", linewidth=1.6)
        ax.margins(y=0.12)
        ax.set_ylim(bottom=0)
        left = r.statistic > np.mean(ax.get_xlim())
        ax.annotate(
            f"observed: {r.statistic:.3g}\np = {r.pvalue:.3g}",
            (r.statistic, 0.97),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-6 if left else 6, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5},
        )
        ax.set_title(plain_text(r.name.split(",")[0], 60), fontsize=10)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _chi_squared(self, ax: Any, df: float, color: str) -> None:
        from scipy.stats import chi2

        r = self.result
        x = np.linspace(0, max(chi2.ppf(0.999, df), 1.1 * r.statistic), 400)[1:]
        density = chi2.pdf(x, df)
        ax.plot(x, density, color=color)
        ax.fill_between(x, density, color=color, alpha=0.2, linewidth=0)
        ax.fill_between(x, density, where=x >= r.statistic, color=color, alpha=0.8, linewidth=0)
        ax.set_xlabel(f"statistic under calibration: chi-squared, df {df:g}")
        ax.set_ylabel("density")
