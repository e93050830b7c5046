"""Accuracy against calibration error over the strength of KDE-XE, as in Figure 4 of Popordanoska et al. (2022).

    python docs/examples/figure4.py --run FILE    # lines of train_tables.py: writes docs/training/strengths.csv
    python docs/examples/figure4.py               # draws docs/images/figure4.png from that

A panel is a data set and its networks; a point the mean of test rows over seeds, with its standard error. To the lower
right is better: more often right, and better calibrated.
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from pictures import COLORS, OTHER, look, save

DOCS = Path(__file__).resolve().parents[1]
STRENGTHS = DOCS / "training" / "strengths.csv"
MEASURES = ("accuracy", "canonical debiased", "canonical plug-in")


def summarise(run: Path) -> None:
    """Means and standard errors over seeds, by setting, bandwidth and strength."""
    found = defaultdict(list)
    for line in map(json.loads, run.read_text(encoding="utf-8").splitlines()):
        if line["family"] in ("XE", "KDE-XE"):
            key = line["setting"], line["bandwidth"] or 0.0, line["strength"] or 0.0
            found[key].append([line["test"][name] for name in MEASURES])
    STRENGTHS.parent.mkdir(exist_ok=True)
    with STRENGTHS.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            ["setting", "bandwidth", "strength", "seeds", *(f"{m}{se}" for m in MEASURES for se in ("", " se"))]
        )
        for key in sorted(found):
            values = np.array(found[key])
            se = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            pairs = [f"{v:.6g}" for pair in zip(values.mean(axis=0), se, strict=True) for v in pair]
            rows.writerow([*key, len(values), *pairs])


def strengths() -> dict[str, list[dict[str, float]]]:
    """By setting, a row a strength: those of cross-entropy have a strength of 0."""
    found = defaultdict(list)
    with STRENGTHS.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            found[row.pop("setting")].append({name: float(value) for name, value in row.items()})
    return found


def on_the_front(rows: list[dict[str, float]], error: str = "canonical debiased") -> list[dict[str, float]]:
    """Rows than which no other is both as often right and as well calibrated."""
    return [
        row
        for row in rows
        if not any(
            other["accuracy"] >= row["accuracy"] and other[error] <= row[error] and other is not row for other in rows
        )
    ]


def draw(ax: plt.Axes, setting: str, rows: list[dict[str, float]]) -> None:
    """A panel: cross-entropy, and KDE-XE by its bandwidth, along its strengths."""
    plain = [row for row in rows if row["strength"] == 0]
    for bandwidth, color in zip((0.001, 0.01), COLORS, strict=False):
        line = plain + sorted((r for r in rows if r["bandwidth"] == bandwidth), key=lambda row: row["strength"])
        x, y = ([row[name] for row in line] for name in ("accuracy", "canonical debiased"))
        ax.plot(x, y, color=color, lw=1, alpha=0.6)
        ax.errorbar(
            x[1:], y[1:], xerr=[r["accuracy se"] for r in line[1:]],
            yerr=[r["canonical debiased se"] for r in line[1:]], fmt="o", color=color, lw=0.8,
            label=f"KDE-XE, h = {bandwidth:g}",
        )  # fmt: skip
        for row in line[1:]:
            ax.annotate(
                f"{row['strength']:g}", (row["accuracy"], row["canonical debiased"]), (4, 3),
                textcoords="offset points", fontsize=7, color=color,
            )  # fmt: skip
    (row,) = plain
    ax.errorbar(
        row["accuracy"], row["canonical debiased"], xerr=row["accuracy se"], yerr=row["canonical debiased se"], fmt="s",
        color=OTHER, lw=0.8, label="cross-entropy",
    )  # fmt: skip
    ax.set_title(setting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="lines of train_tables.py, to summarise first")
    options = parser.parse_args()
    if options.run:
        summarise(options.run)
    look()
    figure, axes = plt.subplots(3, 3, figsize=(11, 9))
    for ax, (setting, rows) in zip(axes.flat, strengths().items(), strict=True):
        draw(ax, setting, rows)
        front = [
            f"γ = {r['strength']:g}, h = {r['bandwidth']:g}" if r["strength"] else "XE" for r in on_the_front(rows)
        ]
        print(f"{setting}: nothing is better in both than {'; '.join(front)}")
    figure.supxlabel("accuracy, % (numbers beside points: the strength γ of the error in the loss)", fontsize=9.5)
    figure.supylabel("canonical error, debiased", fontsize=9.5)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="upper center", ncols=3)
    figure.tight_layout(rect=(0.01, 0.01, 1, 0.96))
    save(figure, DOCS / "images" / "figure4.png")


if __name__ == "__main__":
    main()
