"""The picture of differences with intervals, from the data files of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from pictures import COLORS, OURS, look, save

#: Colours of what is better, worse and undecided.
BETTER, WORSE, NEITHER = OURS, COLORS[1], "0.6"
#: Rows of the picture of settings, and columns: methods and measures.
SHOWN = ("XE, temperature", "XE, stopped early", "mixup", "MMCE", "KDE-XE")
MEASURES = ("canonical debiased", "class-wise", "log-loss")


@dataclass(frozen=True)
class Gap:
    """A difference to cross-entropy by name of what and of which measure, with the page's verdict."""

    row: str
    measure: str
    mean: float
    low: float
    high: float
    color: str


def settings_gaps(rows: pl.DataFrame) -> dict[tuple[str, str], list[Gap]]:
    """By method and measure: a difference a setting, in percent of cross-entropy's mean."""
    of_xe = {(r["setting"], r["measure"]): r["mean"] for r in rows.filter(method="XE").to_dicts()}
    colors = {"better": BETTER, "worse": WORSE}
    found: dict[tuple[str, str], list[Gap]] = {}
    for r in rows.filter(pl.col("method").is_in(SHOWN), pl.col("measure").is_in(MEASURES)).to_dicts():
        share = (100 * r[name] / of_xe[r["setting"], r["measure"]] for name in ("less_xe", "low", "high"))
        gap = Gap(r["setting"], r["measure"], *share, colors.get(r["verdict"], NEITHER))
        found.setdefault((r["method"], r["measure"]), []).append(gap)
    return found


def draw_settings(gaps: dict[tuple[str, str], list[Gap]], path: Path) -> None:
    """One column per method, one row per measure; in each panel one difference per setting."""
    look()
    settings = [g.row for g in gaps[SHOWN[0], MEASURES[0]]]
    figure, axes = plt.subplots(len(MEASURES), len(SHOWN), figsize=(12.4, 8.4), sharey=True, sharex="row")
    figure.subplots_adjust(left=0.175, right=0.99, top=0.88, bottom=0.04, wspace=0.08, hspace=0.2)
    for row, measure in zip(axes, MEASURES, strict=True):
        for ax, method in zip(row, SHOWN, strict=True):
            _forest(ax, gaps[method, measure], settings)
            if ax.get_subplotspec().is_first_row():
                ax.set_title(method, fontweight="bold")
        row[0].set_ylabel(measure, fontweight="bold")
    _headed(figure, "Differences to cross-entropy, % of its mean, with 95 % intervals: one line per setting")
    save(figure, path)


def _forest(ax: Axes, gaps: Sequence[Gap], rows: Sequence[str]) -> None:
    """Points with intervals, one row each."""
    for gap in gaps:
        at = rows.index(gap.row)
        ax.plot([gap.low, gap.high], [at, at], color=gap.color, lw=1.7, solid_capstyle="butt")
        ax.plot(gap.mean, at, "o", color=gap.color, mfc="white" if gap.color == NEITHER else gap.color, ms=4.5)
    ax.axvline(0, color="0.25", lw=1, zorder=1)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_visible(False)


def _headed(figure: plt.Figure, title: str) -> None:
    """Title, and what colours mean."""
    figure.suptitle(title, fontsize=12, y=0.985)
    height = 1 - 0.38 / figure.get_figheight()
    for x, color, words in (
        (0.3, BETTER, "● better"),
        (0.45, WORSE, "● worse"),
        (0.6, "0.45", "○ undecided"),
    ):
        figure.text(x, height, words, color=color, fontsize=9.5, va="top")
