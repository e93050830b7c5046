"""Figure 2 of the paper in both interpretations, and the README's picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from pictures import COLORS, OURS, look, save

from .runs import DEFAULT, NOTIONS, Run
from .summed import Summed

#: Families of the paper's curves: colour and what the letters say.
FAMILIES = {
    "l": (COLORS[1], "l: uniform edges, hard"),
    "a": (COLORS[2], "a: quantile edges, hard"),
    "c": (COLORS[3], "c: uniform edges, linear"),
    "ac": (COLORS[4], "ac: quantile edges, linear"),
    "d": (COLORS[5], "d: ratio of densities"),
}
#: Members of a family, the bins or the bandwidth: line style and the words in the legend.
MEMBERS = {
    "10": ("-", "10 bins"),
    "30": ((0, (5, 1.6)), "30 bins"),
    "sqrt": ((0, (1.2, 1.2)), "√N bins"),
    "0.1": ("-", "bandwidth 0.1"),
    "0.033": ((0, (5, 1.6)), "bandwidth 0.033"),
    "-silverman": ((0, (1.2, 1.2)), "Silverman"),
}
#: The curves of other families, behind those that a panel is about.
_BEHIND = "0.86"
#: Measures and the words on their axes.
MEASURES = {
    "rel_p95": "|estimate − truth| / truth",
    "abs_p95": "|estimate − truth|",
}
TITLES = {
    "rel_p95": "Relative error",
    "abs_p95": "Absolute error",
}
_LABELLED = (30, 50, 100, 200, 500, 1000, 2000, 5000)
_FEW_LABELLED = (30, 100, 500, 2000)
_VALUES = (0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30)


def family_of(name: str) -> tuple[str, str]:
    """Family and member of a curve's name: ``("ac", "sqrt")``."""
    for family in sorted(FAMILIES, key=len, reverse=True):
        if name.startswith(family) and name.removeprefix(family) in MEMBERS:
            return family, name.removeprefix(family)
    raise ValueError(f"{name!r} is not one of the paper's curves")


def figure2(run: Run | Summed, measure: str, path: Path) -> None:
    """A column a family, a row a notion: its three curves and ours, all others in grey behind."""
    look()
    figure, panels = plt.subplots(2, 5, figsize=(12.4, 6.6), sharex=True, sharey="row")
    figure.subplots_adjust(left=0.075, right=0.985, top=0.875, bottom=0.08, wspace=0.1, hspace=0.1)
    for row, notion in zip(panels, NOTIONS, strict=True):
        middle = run.medians(measure, notion)
        for ax, (family, (color, words)) in zip(row, FAMILIES.items(), strict=True):
            place = ax.get_subplotspec()
            for name in run.curves:
                of, member = family_of(name)
                values = middle[:, run.columns([name])[0]]
                if of == family:
                    line, label = MEMBERS[member]
                    ax.plot(run.sizes, values, color=color, ls=line, lw=1.7, label=label, zorder=2.5)
                else:
                    ax.plot(run.sizes, values, color=_BEHIND, lw=0.8, zorder=1)
            _axes(ax, run, few=True)
            if place.is_first_row():
                ax.set_title(words, color=color, fontsize=10, fontweight="bold")
                ax.legend(loc="upper right", handlelength=2.6, borderaxespad=0.1)
            if measure == "rel_p95":
                _always_zero(ax, run, named=place.is_last_col())
            if run.has_default:
                _ours(ax, run, middle, named=place.is_first_col())
        row[0].set_ylabel(f"{NOTIONS[notion]}\n{MEASURES[measure]}")
    ours = " and of calibrant's default (blue)" if run.has_default else ""
    figure.suptitle(f"{TITLES[measure]} of the paper's {len(run.curves)} estimators{ours}", fontsize=12.5, y=0.98)
    told = "95th percentile over samples, median over distributions; grey: the other estimators. "
    figure.text(0.5, 0.925, told + _about(run), fontsize=8.5, color="0.35", ha="center")
    save(figure, path)


def readme_figure(run: Run | Summed, path: Path) -> None:
    """Relative error of the default, of the best of the 15 at every size, and the range of the 15."""
    look()
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.1), sharey=True)
    for ax, notion in zip(panels, NOTIONS, strict=True):
        middle = run.medians("rel_p95", notion)
        curves = middle[:, run.columns(run.curves)]
        low, high = curves.min(axis=1), curves.max(axis=1)
        ax.fill_between(run.sizes, low, high, color="#c9d3e0", linewidth=0)
        ax.plot(run.sizes, low, color="#5b7085", linewidth=1.5)
        ax.plot(run.sizes, middle[:, run.columns([DEFAULT])[0]], color=OURS, linewidth=2.8)
        ax.set_title(NOTIONS[notion], fontsize=11)
        _axes(ax, run, percent=True)
        if ax is panels[0]:
            i = len(run.sizes) // 5
            ax.annotate(
                "15 published\nestimators",
                (run.sizes[i], high[i]),
                xytext=(6, 4),
                textcoords="offset points",
                color="#33475b",
                fontsize=9,
            )
            ours = middle[:, run.columns([DEFAULT])[0]]
            ax.annotate(
                "calibrant's default",
                (run.sizes[0], _lowest_at_left(run, ours)),
                xytext=(8, -8),
                textcoords="offset points",
                color=OURS,
                fontsize=10,
                fontweight="bold",
                va="top",
            )
            k = 2 * len(run.sizes) // 3
            ax.annotate(
                "the best of the 15\nat each size",
                (run.sizes[k], low[k]),
                xytext=(44, 60),
                textcoords="offset points",
                color="#33475b",
                fontsize=9,
                ha="center",
                arrowprops={"arrowstyle": "-", "color": "#5b7085", "linewidth": 0.8},
            )
    panels[0].set_ylabel("Error of the estimate,\nas a share of the true value")
    figure.suptitle("How wrong is a calibration error measured on N samples?", fontsize=12)
    figure.text(
        0.5,
        0.012,
        "In a typical case 19 of 20 estimates are nearer to the truth than this.\n" + _about(run),
        ha="center",
        fontsize=8,
        color="0.35",
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    save(figure, path)


def _ours(ax: Axes, run: Run | Summed, middle: np.ndarray, *, named: bool) -> None:
    """The default, thick, and named on its line."""
    values = middle[:, run.columns([DEFAULT])[0]]
    ax.plot(run.sizes, values, color=OURS, linewidth=2.8, zorder=3)
    if named:
        ax.annotate(
            "calibrant's default",
            (run.sizes[0], _lowest_at_left(run, values)),
            xytext=(4, -16),
            textcoords="offset points",
            color=OURS,
            fontweight="bold",
            va="top",
        )


def _lowest_at_left(run: Run | Summed, values: np.ndarray) -> float:
    """The lowest value of a line where its label will be: over the first third of the axis."""
    third = run.sizes[0] * (run.sizes[-1] / run.sizes[0]) ** (1 / 3)
    return float(values[np.array(run.sizes) <= third].min())


def _always_zero(ax: Axes, run: Run | Summed, *, named: bool) -> None:
    """The line of an estimator that always gives 0."""
    ax.axhline(1, color="0.6", linewidth=0.8, zorder=0)
    if named:
        where = (run.sizes[-1], 1)
        ax.annotate("always 0", where, (0, 3), textcoords="offset points", color="0.4", fontsize=8, ha="right")


def _axes(ax: Axes, run: Run | Summed, *, percent: bool = False, few: bool = False) -> None:
    """Logarithmic axes with round labels; a small tick at every size of the run."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(run.sizes[0] * 0.93, run.sizes[-1] * 1.07)
    labelled = [n for n in (_FEW_LABELLED if few else _LABELLED) if run.sizes[0] <= n <= run.sizes[-1]]
    ax.xaxis.set_major_locator(FixedLocator(labelled))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:g}"))
    ax.xaxis.set_minor_locator(FixedLocator(list(run.sizes)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="x", which="major", length=7)
    ax.tick_params(axis="x", which="minor", length=3)
    ax.yaxis.set_major_locator(FixedLocator(_VALUES))
    ax.yaxis.set_minor_locator(FixedLocator([]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %" if percent else f"{v:g}"))
    ax.tick_params(axis="y", labelleft=not few or ax.get_subplotspec().is_first_col())
    if ax.get_subplotspec().is_last_row():
        ax.set_xlabel("rows N")


def _about(run: Run | Summed) -> str:
    """What the figure is of, in one line."""
    count = str(run.n_wanted) if run.finished else f"Unfinished run: {run.n_distributions} of {run.n_wanted}"
    mode = "as published" if run.config.mode == "as-published" else "corrected"
    return f"{count} score distributions of Gaussian mixtures with known truth ({mode})."
