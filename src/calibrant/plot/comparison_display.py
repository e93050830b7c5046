"""`ModelComparisonDisplay`: how far models are apart, measure by measure, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..comparison.models.compare import compare_models
from ..comparison.models.result import Difference, ModelComparison, higher_is_better, measure_text
from .base import Display
from .style import GRID_COLOR, STYLES, font_scale, percent_text, plain_text

#: Pairs up to which panels lie in rows of three; more make panels high, and so all of them lie side by side.
_FEW_PAIRS = 8
_LONGEST = 22
_DIFFERS, _SAME = STYLES[0].color, "0.55"


class ModelComparisonDisplay(Display):
    """Differences of models with their intervals: a panel a measure, a row a pair.

    A filled dot says that the models differ after adjustment for the number of pairs, a hollow one that they are not
    told apart; below each panel stands on which side which model is better.

    Attributes
    ----------
    comparison : ModelComparison
    axes_ : ndarray of Axes
        One a measure.
    figure_ : Figure

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y = [0, 0, 1, 0, 1, 1] * 20
    >>> a, b = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9] * 20, [0.3, 0.1, 0.6, 0.7, 0.6, 0.9] * 20
    >>> display = cal.plot.ModelComparisonDisplay.from_predictions(y, {"a": a, "b": b}, n_resamples=50, random_state=0)
    >>> len(display.axes_), display.axes_[0].get_title()
    (9, 'Calibration error')
    """

    sizes_its_figure = True
    axes_: Any
    figure_: Any

    def __init__(self, comparison: ModelComparison) -> None:
        if not isinstance(comparison, ModelComparison):
            raise TypeError(f"comparison must be a ModelComparison; got {type(comparison).__name__}")
        self.comparison = comparison

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_probs: Any = None, *, measures: Sequence[str] | None = None, **options: Any
    ) -> ModelComparisonDisplay:
        """Compare models and draw.

        Parameters
        ----------
        y_true, y_probs
            As :func:`calibrant.compare_models`.
        measures : sequence of str, optional
            As :meth:`plot`.
        **options
            Passed to :func:`calibrant.compare_models`.
        """
        return cls(compare_models(y_true, y_probs, **options)).plot(measures=measures)

    def plot(self, *, measures: Sequence[str] | None = None) -> ModelComparisonDisplay:
        """Draw on a new figure.

        Parameters
        ----------
        measures : sequence of str, optional
            Names of measures, a panel each; default all.
        """
        import matplotlib.pyplot as plt

        chosen = list(self.comparison.measures if measures is None else measures)
        if not chosen or isinstance(measures, str):
            raise ValueError(f"measures must be some of {list(self.comparison.measures)}; got {measures!r}")
        found = [self.comparison.of(m) for m in chosen]
        n_pairs, scale = len(found[0]), font_scale()
        columns = min(3 if n_pairs <= _FEW_PAIRS else len(chosen), len(chosen))
        rows = -(-len(chosen) // columns)
        names = [_pair_text(d) for d in found[0]]
        margin = 0.068 * max(map(len, names)) + 0.3
        width = (2.75 if n_pairs <= _FEW_PAIRS else 2.3) * columns + margin
        height = (1.0 + 0.2 * max(n_pairs, 2)) * rows + 0.45
        figure, axes = plt.subplots(
            rows,
            columns,
            figsize=(width * scale, height * scale),
            squeeze=False,
            layout="constrained",
            sharey=True,
        )
        for ax, measure, differences in zip(axes.flat, chosen, found, strict=False):
            self._panel(ax, measure, differences, names)
        for ax in list(axes.flat)[len(chosen) :]:
            ax.set_visible(False)
        level = percent_text(self.comparison.level)
        told = f"{level} intervals; filled: the models differ"
        if n_pairs > 1 and self.comparison.adjust != "none":
            told += f", adjusted for {n_pairs} pairs ({self.comparison.adjust.capitalize()})"
        figure.supxlabel(told, fontsize=8.5 * scale)
        self.axes_, self.figure_ = axes.reshape(-1)[: len(chosen)], figure
        return self

    def _panel(self, ax: Any, measure: str, differences: Sequence[Difference], names: Sequence[str]) -> None:
        """One measure."""
        scale = font_scale()
        text = measure_text(measure)
        ax.set_title(plain_text(text[:1].upper() + text[1:]), fontsize=9.5 * scale)
        for row, d in enumerate(differences):
            color = _SAME if d.better is None else _DIFFERS
            low, high = d.interval
            if not np.isfinite([low, high]).all():
                ax.text(
                    0.5,
                    row,
                    "no interval (∞)",
                    transform=ax.get_yaxis_transform(),
                    ha="center",
                    va="center",
                    fontsize=7.5 * scale,
                    color="0.35",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                )
                continue
            ax.plot([low, high], [row, row], color=color, linewidth=1.8, solid_capstyle="butt", zorder=2)
            ax.plot(
                [d.corrected],
                [row],
                marker="o",
                markersize=5,
                color=color,
                zorder=3,
                markerfacecolor="white" if d.better is None else color,
            )
        ax.axvline(0, color="0.25", linewidth=1.0, zorder=1)
        _around_zero(ax, differences)
        ax.set_yticks(range(len(names)), names, fontsize=8 * scale)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.grid(axis="x", color=GRID_COLOR, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.tick_params(axis="x", labelsize=7.5 * scale)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        left, right = self._sides(higher_is_better(measure))
        ax.set_xlabel(f"◀ {left}    |    {right} ▶", fontsize=7.5 * scale, color="0.3")

    def _sides(self, higher: bool) -> tuple[str, str]:
        """What it means to lie left and right of 0."""
        c = self.comparison
        if c.reference is not None:
            sides = "better than reference", "worse"
            return (sides[1], sides[0]) if higher else sides
        names = [plain_text(m.name, 14) for m in c.models]
        first, second = names if len(names) == 2 else ("first", "second")
        sides = f"{first} better", f"{second} better"
        return (sides[1], sides[0]) if higher else sides


def _pair_text(d: Difference) -> str:
    """A pair in words: ``a − b``; of a long name both ends, for either may tell it from others."""
    names = (
        n if len(n) <= _LONGEST else f"{n[: _LONGEST // 2]}…{n[-(_LONGEST // 2 - 1) :]}" for n in (d.model, d.other)
    )
    return " − ".join(plain_text(n) for n in names)


def _around_zero(ax: Any, differences: Sequence[Difference]) -> None:
    """Limits that hold all intervals and 0, with few ticks that do not run into each other."""
    from matplotlib.ticker import MaxNLocator

    ends = np.array([end for d in differences for end in d.interval if np.isfinite(end)])
    reach = float(np.abs(ends).max(initial=0.0)) or 1.0
    low, high = min(float(ends.min(initial=0.0)), 0.0), max(float(ends.max(initial=0.0)), 0.0)
    ax.set_xlim(low - 0.08 * reach - 0.12 * (high - low), high + 0.08 * reach + 0.12 * (high - low))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
