"""The page and figures of the canonical track, from the folder of a run: `docs/canonical.md`.

``calibrant benchmark --track canonical --out RUN_FOLDER``, then
``python docs/examples/canonical_page.py RUN_FOLDER --docs docs``

It only reads the run. Every number on the page is computed here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from benchmark_parts.stats import table
from matplotlib import pyplot as plt
from pictures import COLORS, OURS, TRUTH, look, name_ends, save, sizes_axis

from calibrant.benchmark.canonical import CURVES, TRIALS, CanonicalConfig
from calibrant.measure.question import canonical_default

#: Short name, colour and line of every curve: a family has one colour.
STYLE = {
    "published": ("as published", COLORS[1], "-"),
    "plug-in": ("plug-in, own width", COLORS[3], "-"),
    "ratio": ("ratio-corrected", COLORS[3], (0, (4, 1.5))),
    "square": ("unbiased square", COLORS[5], "-"),
    "default": ("calibrant's default", OURS, "-"),
    "simplex-sqrt": ("bins, about √n", COLORS[2], (0, (1.2, 1.2))),
    "simplex-2": ("bins, 2 cuts", COLORS[2], (0, (4, 1.5))),
    "simplex-5": ("bins, 5 cuts", COLORS[2], "-"),
}
TITLES = {"l1": "L1 error read, mean", "squared": "squared error read, mean"}
SHARPNESS = {
    "plug-in": ("plug-in", COLORS[1]),
    "as printed": ("eq. 7 as printed", COLORS[2]),
    "square": ("pairs of different samples", OURS),
}


def figure2a(frame: pl.DataFrame, measure: str, path: Path) -> None:
    """Mean estimate against N; the default's band is one standard deviation of a single estimate."""
    look()
    fig, axes = plt.subplots(2, 2, figsize=(10.4, 7.4), sharex=True)
    fig.subplots_adjust(left=0.07, right=0.87, top=0.95, bottom=0.07, wspace=0.5, hspace=0.17)
    for column, k in enumerate((4, 8)):
        for row, kind in enumerate(("sharpened", "calibrated")):
            ax, ends = axes[row, column], []
            part = frame.filter((pl.col("distribution") == f"k{k}-{kind}") & (pl.col("measure") == measure))
            for name in CURVES:
                one = part.filter(pl.col("estimator") == name).sort("size")
                if one.height == 0:
                    continue
                words, colour, line = STYLE[name]
                n, mean, sd = (one[c].to_numpy() for c in ("size", "mean", "sd"))
                ours = name == "default"
                ax.plot(n, mean, ls=line, color=colour, lw=2.8 if ours else 1.4, zorder=3 if ours else 2)
                if ours:
                    ax.fill_between(n, mean - sd, mean + sd, color=colour, alpha=0.16, lw=0)
                ends.append((n[-1], mean[-1], words, colour))
            truth = part["truth"][0]
            ax.margins(y=0.1)
            ax.axhline(truth, color=TRUTH, lw=1.1, ls=(0, (4, 2)))
            ends.append((part["size"].max(), truth, "truth", TRUTH))
            sizes_axis(ax, sorted(part["size"].unique()))
            ax.set_title(f"{k} classes, {kind}: truth {truth:.3g}", loc="left")
            name_ends(ax, ends)
            if column == 0:
                ax.set_ylabel(TITLES[measure])
            if row == 1:
                ax.set_xlabel("rows N")
    save(fig, path)


def figure2b(frame: pl.DataFrame, path: Path) -> None:
    """Bias of sharpness at a point against N."""
    look()
    fig, ax = plt.subplots(figsize=(6.6, 3.9))
    fig.subplots_adjust(left=0.1, right=0.74, top=0.97, bottom=0.13)
    sizes, ends = sorted(frame["size"].unique()), []
    for name, (words, colour) in SHARPNESS.items():
        one = frame.filter(pl.col("estimator") == name).sort("size")
        ax.errorbar(one["size"], one["bias"], 2 * one["se"], color=colour, marker="o")
        ends.append((sizes[-1], one["bias"][-1], words, colour))
    ax.axhline(0, color=TRUTH, lw=1)
    sizes_axis(ax, sizes)
    ax.set(xlabel="rows N", ylabel="bias of the sharpness at one point")
    name_ends(ax, ends)
    save(fig, path)


def bars(frame: pl.DataFrame) -> str:
    """The default's squares beside the truth, where we asked for something."""
    rows = []
    for k, bar, least in ((4, 0.10, 2000), (8, 0.15, 5000)):
        part = frame.filter((pl.col("estimator") == "default") & (pl.col("measure") == "squared"))
        wrong = part.filter(pl.col("distribution") == f"k{k}-sharpened").sort("size")
        right = part.filter(pl.col("distribution") == f"k{k}-calibrated").sort("size")
        truth = wrong["truth"][0]
        for a, b in zip(wrong.to_dicts(), right.to_dicts(), strict=True):
            if a["size"] < least:
                continue
            share, se = a["bias"] / truth, a["sd"] / np.sqrt(a["sets"]) / truth
            quiet, quiet_se = b["mean"] / truth, b["sd"] / np.sqrt(b["sets"]) / truth
            met = abs(share) <= bar and abs(quiet) <= 0.05
            rows.append(
                [
                    f"{k}",
                    f"{a['size']}",
                    f"{a['sets']}",
                    f"{a['mean']:.4f}",
                    f"{100 * share:+.1f} ± {100 * se:.1f} %",
                    f"± {100 * bar:.0f} %",
                    f"{100 * quiet:+.1f} ± {100 * quiet_se:.1f} %",
                    "yes" if met else "no",
                ]
            )
    heads = [
        "K",
        "N",
        "sets",
        "mean estimate",
        "off the truth by",
        "wanted",
        "calibrated, of that truth (wanted ± 5 %)",
        "met",
    ]
    return table(heads, [[cell.replace("-", "−") for cell in row] for row in rows])


def frontier(frame: pl.DataFrame) -> str:
    """Every candidate for L1, on the paper's distributions and on those that nothing was chosen on."""
    part = frame.filter((pl.col("measure") == "l1") & pl.col("estimator").is_in([*TRIALS, "simplex-sqrt", "published"]))
    cell = {(r["distribution"], r["size"], r["estimator"]): r for r in part.to_dicts()}
    of_paper, fresh = (1000, 5000), (200, 1000, 3000)
    others = sorted(
        {r["distribution"] for r in part.to_dicts()}
        - {f"k{k}-{x}" for k in (4, 8) for x in ("sharpened", "calibrated")}
    )
    wrong = [d for d in others if not d.endswith("calibrated")]
    right = [d for d in others if d.endswith("calibrated")]
    rows = []
    for name in dict.fromkeys(["published", "simplex-sqrt", *TRIALS]):
        if not any(key[2] == name for key in cell):
            continue
        values = []
        for k in (4, 8):
            for size in of_paper:
                hit = cell.get((f"k{k}-sharpened", size, name))
                quiet = cell.get((f"k{k}-calibrated", size, name))
                values.append(
                    ""
                    if hit is None or quiet is None
                    else f"{hit['bias'] / hit['truth']:+.0%} / {quiet['mean'] / hit['truth']:+.0%}"
                )
        for size in fresh:
            ratios = [
                cell[d, size, name]["rmse"] / cell[d, size, name]["truth"] for d in wrong if (d, size, name) in cell
            ]
            quiet = [abs(cell[d, size, name]["mean"]) for d in right if (d, size, name) in cell]
            values.append(f"{np.median(ratios):.2f} / {np.mean(quiet):.3f}" if ratios else "")
        rows.append([f"**{name}** (default)" if is_default(name) else name, *(v.replace("-", "−") for v in values)])
    heads = [
        "candidate",
        *(f"K = {k}, N = {n}" for k in (4, 8) for n in of_paper),
        *(f"other distributions, N = {n}" for n in fresh),
    ]
    return table(heads, rows)


def is_default(name: str) -> bool:
    """Whether a trial is what ``estimator="auto"`` takes for L1."""
    return name in TRIALS and TRIALS[name].factor == 1 and TRIALS[name].estimator == canonical_default(1)


def rule(frame: pl.DataFrame) -> str:
    """What the constant of the rule "auto" does to squares: bias and RMSE as shares of the truth, by factor."""
    part = frame.filter((pl.col("measure") == "squared") & pl.col("distribution").str.ends_with("calibrated").not_())
    names = [n for n in TRIALS if n.startswith(("query-cross", "query-square")) and "squared" in TRIALS[n].measures]
    rows = []
    for name in names:
        cells = []
        for size in (200, 1000, 3000):
            one = part.filter((pl.col("estimator") == name) & (pl.col("size") == size))
            if one.height == 0:
                cells.append("")
                continue
            bias, rmse = (float((one[c] / one["truth"]).median()) for c in ("bias", "rmse"))
            cells.append(f"{bias:+.0%} / {rmse:.0%}".replace("-", "−"))
        rows.append([f"**{name}** (default)" if name == "query-cross-residual-1" else name, *cells])
    return table(["candidate", *(f"N = {n}" for n in (200, 1000, 3000))], rows)


def pictures(frame: pl.DataFrame, sharpness: pl.DataFrame, images: Path) -> None:
    """All pictures of the page."""
    for measure in TITLES:
        figure2a(frame, measure, images / f"canonical_{measure}.png")
    figure2b(sharpness, images / "canonical_sharpness.png")


def page(folder: Path, docs: Path) -> None:
    """All files."""
    frame = pl.read_parquet(folder / "results.parquet")
    many = folder / "default" / "results.parquet"
    alone = pl.read_parquet(many) if many.exists() else frame
    sharpness = pl.read_parquet(folder / "sharpness" / "results.parquet")
    images, data = docs / "images", docs / "canonical"
    images.mkdir(parents=True, exist_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    numbers = [c for c, t in frame.schema.items() if t.is_float()]
    frame.drop("seconds", "definition").with_columns(
        pl.col([c for c in numbers if c != "seconds"]).round_sig_figs(4)
    ).write_csv(data / "results.csv")
    sharpness.with_columns(pl.col(["mean", "se", "bias", "limit", "truth"]).round_sig_figs(5)).write_csv(
        data / "sharpness.csv"
    )
    pictures(frame, sharpness, images)
    at = {(r["size"], r["estimator"]): r for r in sharpness.to_dicts()}
    middle = sorted({size for size, _ in at})[len({size for size, _ in at}) // 2]
    notes = Path(__file__).with_name("canonical_page.md").read_text(encoding="utf-8")
    config = CanonicalConfig()
    text = notes.format(
        bars=bars(alone),
        frontier=frontier(frame),
        rule=rule(frame),
        sets=f"{config.most_sets}",
        point_size=middle,
        **{
            key: f"{at[middle, name]['bias']:+.4f} ± {at[middle, name]['se']:.4f}".replace("-", "−")
            for key, name in (("plug", "plug-in"), ("printed", "as printed"), ("pairs", "square"))
        },
        limit=f"{at[middle, 'square']['limit']:.4f}",
        point_truth=f"{at[middle, 'square']['truth']:.4f}",
    )
    (docs / "canonical.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    page(options.run, options.docs)


if __name__ == "__main__":
    main()
