"""`CriticalDifferenceDisplay`: average ranks of models over several data sets, and which do not differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..scores.ranks import ModelRanks, rank_models
from .base import Display
from .style import STYLES, font_scale, plain_text

#: Points: the axis, from one name to the next, from one bar to the next, and beside names.
_AXIS, _LINE, _BAR, _PAD = 300.0, 15.0, 8.0, 8.0
_LONGEST = 48


class CriticalDifferenceDisplay(Display):
    """Critical-difference diagram (Demšar 2006): models on an axis of average ranks, the best on the right.

    Bars join models that do not differ significantly; above the axis stands the critical difference.

    Attributes
    ----------
    ranks : ModelRanks
    ax_, figure_ : Axes, Figure

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
    ax_: Any
    figure_: Any

    def __init__(self, ranks: ModelRanks) -> None:
        if not isinstance(ranks, ModelRanks):
            raise TypeError(f"ranks must be a ModelRanks; got {type(ranks).__name__}")
        self.ranks = ranks

    @classmethod
    def from_scores(cls, scores: Any, **options: Any) -> CriticalDifferenceDisplay:
        """Rank models and draw.

        Parameters
        ----------
        scores
            As :func:`calibrant.scores.rank_models`.
        **options
            Passed to :func:`calibrant.scores.rank_models`.
        """
        return cls(rank_models(scores, **options)).plot()

    def plot(self) -> CriticalDifferenceDisplay:
        """Draw on a new figure, whose size follows from the number of models and the length of their names."""
        import matplotlib.pyplot as plt

        r, scale = self.ranks, font_scale()
        k = len(r.models)
        bars = _levels(
            [[float(r.average_ranks[r.models.index(m)]) for m in (g[0], g[-1])] for g in r.indistinguishable]
        )
        depth = _BAR * (1 + max((level for *_, level in bars), default=-1))
        worst_first = list(r.order)[::-1]
        left, right = worst_first[: k // 2], worst_first[k // 2 :][::-1]
        texts = {i: f"{plain_text(r.models[i], _LONGEST)}  {r.average_ranks[i]:.2f}" for i in worst_first}
        below = 14 + depth + _LINE * max(len(left), len(right)) + 4
        figure = plt.figure(figsize=(8, 4))
        margins = [_width(figure, [texts[i] for i in side], 9 * scale) + _PAD * 2 for side in (left, right)]
        width, height = margins[0] + _AXIS * scale + margins[1], (below + 62) * scale
        figure.set_size_inches(width / 72, height / 72)
        # Across in average ranks (the best on the right), down in points from the axis.
        ax = figure.add_axes((margins[0] / width, 0.0, _AXIS * scale / width, 1.0))
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
        """The axis of ranks, its numbers, and the critical difference above it."""
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
        text = f"CD = {cd:.2f}" if cd <= k - 1 else f"CD = {cd:.2f}, more than the axis holds"
        ax.plot((k, end), (-30, -30), color=dark, linewidth=1.4, clip_on=False)
        for x in (k, end) if cd <= k - 1 else (k,):
            ax.plot((x, x), (-33, -27), color=dark, linewidth=1.4, clip_on=False)
        ax.text(k, -35, text, ha="left", va="bottom", fontsize=8.5 * scale)

    @staticmethod
    def _name(ax: Any, rank: float, place: tuple[float, float], text: str) -> None:
        """A line from the axis down to a name beside it, at a place; the axis runs from the worst rank to 1."""
        end, y = place
        side, scale = "right" if end == 1 else "left", font_scale()
        ax.plot((rank, rank, end), (0, y, y), color="0.3", linewidth=0.9, clip_on=False)
        ax.plot((rank,), (0,), marker="o", markersize=3.5, color="0.2", clip_on=False)
        offset = (-_PAD / 2 if side == "left" else _PAD / 2, 0)
        ax.annotate(
            text,
            (end, y),
            xytext=offset,
            textcoords="offset points",
            ha="right" if side == "left" else "left",
            va="center",
            fontsize=9 * scale,
            annotation_clip=False,
        )


def _levels(bars: Sequence[Sequence[float]]) -> list[tuple[float, float, int]]:
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
