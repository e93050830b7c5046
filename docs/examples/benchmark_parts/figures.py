"""Figure 2 of the paper in both readings, and the README's picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from .runs import DEFAULT, NOTIONS, Run

#: Families of the paper's curves: colour and what the letters say.
FAMILIES = {
    "l": ("#0b4a8f", "l: uniform edges, hard"),
    "a": ("#d55e00", "a: quantile edges, hard"),
    "c": ("#009e73", "c: uniform edges, linear"),
    "ac": ("#b0629b", "ac: quantile edges, linear"),
    "d": ("#8a6d00", "d: ratio of densities"),
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
OURS_COLOR = "black"
#: Measures and the words on their axes.
MEASURES = {
    "rel_p95": "Relative error |reading − truth| / truth\n(95th percentile over sets, median over distributions)",
    "abs_p95": "Absolute error |reading − truth|\n(95th percentile over sets, median over distributions)",
}
TITLES = {
    "rel_p95": "Relative error",
    "abs_p95": "Absolute error",
}
_LABELLED = (30, 50, 100, 200, 500, 1000, 2000, 5000)
_VALUES = (0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30)


def family_of(name: str) -> tuple[str, str]:
    """Family and member of a curve's name: ``("ac", "sqrt")``."""
    for family in sorted(FAMILIES, key=len, reverse=True):
        if name.startswith(family) and name.removeprefix(family) in MEMBERS:
            return family, name.removeprefix(family)
    raise ValueError(f"{name!r} is not one of the paper's curves")


def figure2(run: Run, measure: str, path: Path) -> None:
    """One panel a notion: the 15 curves, ours over them."""
    figure, panels = plt.subplots(1, 2, figsize=(12, 7.2), sharey=True)
    for ax, notion in zip(panels, NOTIONS, strict=True):
        middle = run.medians(measure, notion)
        for name in run.curves:
            family, member = family_of(name)
            ax.plot(
                run.sizes,
                middle[:, run.columns([name])[0]],
                color=FAMILIES[family][0],
                linestyle=MEMBERS[member][0],
                linewidth=1.2,
            )
        ax.set_title(NOTIONS[notion], fontsize=12)
        if run.has_default:
            _ours(ax, run, middle)
        _axes(ax, run)
        if measure == "rel_p95":
            _always_zero(ax, run)
    panels[0].set_ylabel(MEASURES[measure])
    lines = []
    for family, (color, _) in FAMILIES.items():
        lines.append(Line2D([], [], linestyle="none"))
        for name in run.curves:
            if family_of(name)[0] == family:
                style, words = MEMBERS[family_of(name)[1]]
                lines.append(Line2D([], [], color=color, linestyle=style, linewidth=1.6, label=words))
    for line, (_, words) in zip(lines[::4], FAMILIES.values(), strict=True):
        line.set_label(words)
    legend = figure.legend(
        handles=lines, ncols=5, loc="lower center", frameon=False, fontsize=9, handlelength=3.2, columnspacing=1.4
    )
    for text in legend.get_texts()[::4]:
        text.set_fontweight("bold")
        text.set_position((-30, 0))
    ours = " and of ours" if run.has_default else ""
    figure.suptitle(f"{TITLES[measure]} of the paper's {len(run.curves)} estimators{ours}", fontsize=13, y=0.985)
    figure.text(0.5, 0.938, _about(run), fontsize=9, color="0.35", ha="center")
    figure.tight_layout(rect=(0, 0.14, 1, 0.965))
    _save(figure, path)


def readme_figure(run: Run, path: Path) -> None:
    """Relative error of the default, of the best of the 15 at every size, and the range of the 15."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.1), sharey=True)
    for ax, notion in zip(panels, NOTIONS, strict=True):
        middle = run.medians("rel_p95", notion)
        curves = middle[:, run.columns(run.curves)]
        low, high = curves.min(axis=1), curves.max(axis=1)
        ax.fill_between(run.sizes, low, high, color="#c9d3e0", linewidth=0)
        ax.plot(run.sizes, low, color="#5b7085", linewidth=1.5)
        ax.plot(run.sizes, middle[:, run.columns([DEFAULT])[0]], color="#d55e00", linewidth=2.8)
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
                color="#b34700",
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
    panels[0].set_ylabel("Error of the reading,\nas a share of the true value")
    figure.suptitle("How wrong is a calibration error measured on N samples?", fontsize=12)
    figure.text(
        0.5,
        0.012,
        "In a typical case 19 of 20 readings are nearer to the truth than this.\n" + _about(run),
        ha="center",
        fontsize=8,
        color="0.35",
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    _save(figure, path)


def _ours(ax: Axes, run: Run, middle: np.ndarray) -> None:
    """The default, thick and labelled on its line."""
    values = middle[:, run.columns([DEFAULT])[0]]
    ax.plot(run.sizes, values, color=OURS_COLOR, linewidth=3)
    ax.annotate(
        f"{DEFAULT}\n(our default)",
        (run.sizes[0], _lowest_at_left(run, values)),
        xytext=(8, -8),
        textcoords="offset points",
        fontweight="bold",
        fontsize=10,
        va="top",
    )


def _lowest_at_left(run: Run, values: np.ndarray) -> float:
    """The lowest value of a line where its label will be: over the first third of the axis."""
    third = run.sizes[0] * (run.sizes[-1] / run.sizes[0]) ** (1 / 3)
    return float(values[np.array(run.sizes) <= third].min())


def _always_zero(ax: Axes, run: Run) -> None:
    """The line of an estimator that always reads 0."""
    ax.axhline(1, color="0.6", linewidth=0.8, zorder=0)
    ax.annotate(
        "always reading 0",
        (run.sizes[-1], 1),
        xytext=(0, 3),
        textcoords="offset points",
        color="0.4",
        fontsize=8,
        ha="right",
    )


def _axes(ax: Axes, run: Run, *, percent: bool = False) -> None:
    """Logarithmic axes with round labels; a small tick at every size of the run."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(run.sizes[0] * 0.93, run.sizes[-1] * 1.07)
    ax.xaxis.set_major_locator(FixedLocator([n for n in _LABELLED if run.sizes[0] <= n <= run.sizes[-1]]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:g}"))
    ax.xaxis.set_minor_locator(FixedLocator(list(run.sizes)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(axis="x", which="major", length=7)
    ax.tick_params(axis="x", which="minor", length=3)
    ax.yaxis.set_major_locator(FixedLocator(_VALUES))
    ax.yaxis.set_minor_locator(FixedLocator([]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %" if percent else f"{v:g}"))
    ax.tick_params(axis="y", labelleft=True)
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel("Evaluation samples N" if percent else "Evaluation samples N (small ticks: the sizes of the run)")


def _about(run: Run) -> str:
    """What the figure is of, in one line."""
    count = str(run.n_wanted) if run.finished else f"Unfinished run: {run.n_distributions} of {run.n_wanted}"
    mode = "as published" if run.config.mode == "as-published" else "corrected"
    return f"{count} score distributions of Gaussian mixtures with known truth ({mode})."


def _save(figure: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)
