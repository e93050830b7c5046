"""Displays that compare models: differences with intervals, measure by measure, and average ranks over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from ..comparison.models.compare import compare_models
from ..comparison.models.result import Difference, ModelComparison, higher_is_better, measure_text
from ..data.checks import check_type, received
from ..data.notebook import is_for_page
from ..scores.ranks import ModelRanks, rank_models
from .base import Display, draw_grid, draw_interval
from .fitting import fit, new_figure
from .style import STYLES, font_scale, percent_text, plain_text, plain_texts

#: Number of pairs up to which panels lie in rows of three; more make panels high, so that all lie side by side.
_FEW_PAIRS = 8
#: Maximum characters of a name in a pair, and of one next to an axis of ranks.
_LONGEST, _LONGEST_NAME, _LONGEST_ON_PAGE = 22, 48, 12
_DIFFERS, _SAME = STYLES[0].color, "0.55"
#: Lengths in points: the axis of ranks, from one name to the next, from one bar to the next, and next to names.
_AXIS, _LINE, _BAR, _PAD = 300.0, 15.0, 8.0, 8.0


class ModelComparisonDisplay(Display):
    """Differences of models with intervals: one panel per measure, one row per pair.

    A filled dot means that the models differ after adjustment for the number of pairs, a hollow one that the difference
    is not significant; the axis label indicates on which side each model is better.

    Attributes
    ----------
    comparison : ModelComparison
        The comparison.
    axes_ : ndarray of Axes
        The axes, one per measure.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.compare_models : Compares the models.
    calibrant.plot.CriticalDifferenceDisplay : Models over many data sets.

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

    def __init__(self, comparison: ModelComparison) -> None:
        self.comparison: ModelComparison = check_type("comparison", comparison, ModelComparison, "a ModelComparison")

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_probs: Any = None, *, measures: Sequence[str] | None = None, **options: Any
    ) -> ModelComparisonDisplay:
        """Compare models and draw.

        Parameters
        ----------
        y_true : array-like of shape (n,), or mapping of names to Predictions
            Observed labels. A mapping of Predictions of the same rows replaces the first two arguments.
        y_probs : mapping of names to array-likes of shape (n,) or (n, K), or data frame of a column per model
            Probabilities of each model.
        measures : sequence of str, optional
            Names of measures, one panel each; by default all.
        **options
            Passed to :func:`calibrant.compare_models`.
        """
        return cls(compare_models(y_true, y_probs, **options)).plot(measures=measures)

    def plot(self, *, measures: Sequence[str] | None = None) -> ModelComparisonDisplay:
        """Draw on a new figure.

        Parameters
        ----------
        measures : sequence of str, optional
            Names of measures, one panel each; by default all.
        """
        chosen = list(self.comparison.measures if measures is None else measures)
        if not chosen or isinstance(measures, str):
            raise ValueError(f"measures must be some of {list(self.comparison.measures)}; got {received(measures)}")
        found = [self.comparison.of(m) for m in chosen]
        n_pairs, scale = len(found[0]), font_scale()
        narrow = is_for_page()
        columns = min(2 if narrow else 3 if n_pairs <= _FEW_PAIRS else len(chosen), len(chosen))
        rows = -(-len(chosen) // columns)
        short = dict(
            zip(
                (m.name for m in self.comparison.models),
                self._names(_LONGEST_ON_PAGE if narrow else _LONGEST),
                strict=True,
            )
        )
        minus = " −\n" if narrow else " − "
        names = [minus.join((short[d.model], short[d.other])) for d in found[0]]
        width = (2.75 if n_pairs <= _FEW_PAIRS else 2.3) * columns + 0.068 * max(map(len, names)) + 0.3
        size = width * scale, ((1.0 + (0.32 if narrow else 0.2) * max(n_pairs, 2)) * rows + 0.45) * scale
        figure, axes = new_figure(rows, columns, *size, sharey=True)
        for ax, measure, differences in zip(axes.flat, chosen, found, strict=False):
            self._draw_panel(ax, measure, differences)
            ax.set_yticks(range(n_pairs), names, fontsize=8 * scale)
            ax.set_ylim(n_pairs - 0.4, -0.6)
        for ax in list(axes.flat)[len(chosen) :]:
            ax.set_visible(False)
        text = f"{percent_text(self.comparison.level)} intervals; filled: the models differ"
        if n_pairs > 1 and self.comparison.adjust != "none":
            text += f", adjusted for {n_pairs} pairs ({self.comparison.adjust.capitalize()})"
        figure.supxlabel("\n".join(wrap(text, int(12 * size[0] / scale))), fontsize=8.5 * scale)
        self.axes_, self.figure_ = axes.reshape(-1)[: len(chosen)], figure
        if narrow:
            fit(*self.axes_)
        return self

    def _draw_panel(self, ax: Any, measure: str, differences: Sequence[Difference]) -> None:
        """Draw one measure: one row per pair, with limits that contain all intervals and 0, and few ticks."""
        scale = font_scale()
        text = measure_text(measure)
        ax.set_title(plain_text(text[:1].upper() + text[1:]), fontsize=9.5 * scale)
        for row, d in enumerate(differences):
            color = _SAME if d.better is None else _DIFFERS
            if not np.isfinite(d.interval).all():
                place = {"transform": ax.get_yaxis_transform(), "ha": "center", "va": "center"}
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
                ax.text(0.5, row, "no interval (∞)", fontsize=7.5 * scale, color="0.35", bbox=box, **place)
                continue
            draw_interval(ax, row, d.corrected, d.interval, color, filled=d.better is not None)
        ax.axvline(0, color="0.25", linewidth=1.0, zorder=1)
        ends = np.array([0.0, *(end for d in differences for end in d.interval if np.isfinite(end))])
        border = 0.08 * (float(np.abs(ends).max()) or 1.0) + 0.12 * float(np.ptp(ends))
        ax.set_xlim(float(ends.min()) - border, float(ends.max()) + border)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=3 if is_for_page() else 4, steps=[1, 2, 2.5, 5, 10]))
        draw_grid(ax, "x")
        ax.ticklabel_format(axis="x", style="plain", useOffset=False)
        ax.tick_params(axis="x", labelsize=7.5 * scale)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        left, right = self._sides(higher_is_better(measure))
        ax.set_xlabel(f"◀ {left}    |    {right} ▶", fontsize=7.5 * scale, color="0.3")

    def _names(self, longest: int) -> list[str]:
        """Names of the models."""
        return plain_texts((m.name for m in self.comparison.models), longest)

    def _sides(self, higher: bool) -> tuple[str, str]:
        """Meaning of either side of 0."""
        c = self.comparison
        left, right = "better than reference", "worse"
        if c.reference is None:
            names = self._names(14)
            first, second = names if len(names) == 2 else ("first", "second")
            left, right = f"{first} better", f"{second} better"
        return (right, left) if higher else (left, right)


class CriticalDifferenceDisplay(Display):
    """Critical-difference diagram (Demšar 2006): models on an axis of average ranks, the best on the right.

    Bars join models that do not differ significantly; the critical difference is shown above the axis.

    Attributes
    ----------
    ranks : ModelRanks
        The ranks.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.scores.rank_models : Ranks the models.
    calibrant.plot.ModelComparisonDisplay : Models on one data set.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> a, b, c = [0.1, 0.2, 0.1, 0.3], [0.2, 0.3, 0.2, 0.4], [0.3, 0.1, 0.3, 0.5]
    >>> display = cal.plot.CriticalDifferenceDisplay.from_scores({"a": a, "b": b, "c": c})
    >>> round(display.ranks.critical_difference, 3)
    1.657
    """

    sizes_its_figure = True

    def __init__(self, ranks: ModelRanks) -> None:
        self.ranks: ModelRanks = check_type("ranks", ranks, ModelRanks, "a ModelRanks")

    @classmethod
    def from_scores(cls, scores: Any, **options: Any) -> CriticalDifferenceDisplay:
        """Rank models and draw.

        Parameters
        ----------
        scores : array-like of shape (N, k), mapping of names to N scores, or data frame
            One row per data set, one column per model.
        **options
            Passed to :func:`calibrant.scores.rank_models`.
        """
        return cls(rank_models(scores, **options)).plot()

    def plot(self) -> CriticalDifferenceDisplay:
        """Draw on a new figure, whose size depends on the number of models and the length of their names."""
        r, scale = self.ranks, font_scale()
        k = len(r.models)
        rank_of = dict(zip(r.models, map(float, r.average_ranks), strict=True))
        bars = _levels([(rank_of[group[0]], rank_of[group[-1]]) for group in r.indistinguishable])
        depth = _BAR * (1 + max((level for *_, level in bars), default=-1))
        worst_first = list(r.order)[::-1]
        left, right = worst_first[: k // 2], worst_first[k // 2 :][::-1]
        names = plain_texts(r.models, _LONGEST_ON_PAGE if is_for_page() else _LONGEST_NAME)
        across = _AXIS * scale * (0.5 if is_for_page() else 1.0)
        texts = {i: f"{names[i]}  {r.average_ranks[i]:.2f}" for i in worst_first}
        below = 14 + depth + _LINE * max(len(left), len(right)) + 4
        figure = plt.figure(figsize=(8, 4))
        margins = [_width(figure, [texts[i] for i in side], 9 * scale) + _PAD * 2 for side in (left, right)]
        width, height = margins[0] + across + margins[1], (below + 62) * scale
        figure.set_size_inches(width / 72, height / 72)
        # Across in average ranks (the best on the right), down in points from the axis.
        ax = figure.add_axes((margins[0] / width, 0.0, across / width, 1.0))
        ax.set(xlim=(k, 1), ylim=(below, -62))
        ax.axis("off")
        self._scale(ax, k, scale)
        for low, high, level in bars:
            y = 9 + _BAR * level
            ends = (high + 0.012 * (k - 1), low - 0.012 * (k - 1))
            ax.plot(ends, (y, y), color=STYLES[1].color, linewidth=3.2 * scale, solid_capstyle="round", clip_on=False)
        for end, models in ((k, left), (1, right)):
            for line, i in enumerate(models):
                self._name(ax, float(r.average_ranks[i]), (end, 14 + depth + _LINE * (line + 0.6)), texts[i])
        self.ax_, self.figure_ = ax, figure
        return self

    def _scale(self, ax: Any, k: int, scale: float) -> None:
        """Draw the axis of ranks, its numbers, and the critical difference above it."""
        dark = "0.2"
        ax.plot((1, k), (0, 0), color=dark, linewidth=1.2, clip_on=False)
        for rank in range(1, k + 1):
            ax.plot((rank, rank), (0, -5), color=dark, linewidth=1.2, clip_on=False)
            ax.text(rank, -8, str(rank), ha="center", va="bottom", fontsize=8.5 * scale)
        for half in np.arange(1.5, k):
            ax.plot((half, half), (0, -3), color=dark, linewidth=0.8, clip_on=False)
        ax.text((1 + k) / 2, -54, "Average rank, 1 is best", ha="center", va="center", fontsize=9 * scale)
        cd = self.ranks.critical_difference
        end = max(k - cd, 1.0)
        text = f"CD = {cd:.2f}" if cd <= k - 1 else f"CD = {cd:.2f}, longer than the axis"
        ax.plot((k, end), (-30, -30), color=dark, linewidth=1.4, clip_on=False)
        for x in (k, end) if cd <= k - 1 else (k,):
            ax.plot((x, x), (-33, -27), color=dark, linewidth=1.4, clip_on=False)
        ax.text(k, -35, text, ha="left", va="bottom", fontsize=8.5 * scale)

    @staticmethod
    def _name(ax: Any, rank: float, place: tuple[float, float], text: str) -> None:
        """Draw a line from the axis down to a name at a place; the axis runs from the worst rank to 1."""
        end, y = place
        ha, offset = ("left", _PAD / 2) if end == 1 else ("right", -_PAD / 2)
        ax.plot((rank, rank, end), (0, y, y), color="0.3", linewidth=0.9, clip_on=False)
        ax.plot((rank,), (0,), marker="o", markersize=3.5, color="0.2", clip_on=False)
        beside: dict[str, Any] = {"xytext": (offset, 0), "textcoords": "offset points", "ha": ha, "va": "center"}
        ax.annotate(text, place, fontsize=9 * font_scale(), annotation_clip=False, **beside)


def _levels(bars: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """Bars (low, high) with the highest level at which they touch no other."""
    taken: list[float] = []
    out = []
    for low, high in bars:
        level = next((i for i, end in enumerate(taken) if low > end + 0.06), len(taken))
        taken[level : level + 1] = [high]
        out.append((low, high, level))
    return out


def _width(figure: Any, texts: Sequence[str], size: float) -> float:
    """Width in points of the widest of some texts."""
    widest = 0.0
    for text in texts:
        drawn = figure.text(0, 0, text, fontsize=size)
        widest = max(widest, drawn.get_window_extent().width * 72 / figure.dpi)
        drawn.remove()
    return widest
