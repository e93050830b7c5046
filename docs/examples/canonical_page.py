"""How near to the truth do estimators of the canonical calibration error come?

    calibrant benchmark --track canonical --out RUN_FOLDER
    python docs/examples/canonical_page.py RUN_FOLDER --docs docs
    python docs/examples/canonical_page.py --docs docs              # the page, from its data files

The experiments are those of Popordanoska, Sayer & Blaschko (2022), §4.1. Vectors uniform on the simplex are sharpened
by a temperature of 0.6, labels are drawn from them, and they are sharpened by 0.6 once more. The canonical error of
the last vectors is computed from 2·10⁶ of them; that of the vectors between the two temperatures is 0. All estimators
get the same evaluation sets, up to {sets} of each size; the table has sets of other seeds. ± is one standard error.

*As published* is the plug-in with the published bandwidth, *own width* with a leave-one-out one. Bins are cells of the
simplex, with the stated number of cuts per edge. The band is one standard deviation of a single estimate.

Candidates for the L1 default combine an orientation, a debiasing, residuals or outcomes, and a bandwidth: a multiple
of `"auto"`, or `"cv"`. Their data file has the bias on the paper's distributions, and the median RMSE on twelve others
(3 and 10 classes), on which no choice was made. The last data file estimates the square of a frequency at one point of
the simplex: at {point_size} rows the bias is {plug} for the plug-in, {printed} for eq. 7 of the paper as printed, and
{pairs} for pairs of different samples. [convergence.md](convergence.md) shows how fast estimators converge.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from benchmark_parts.stats import Number
from evidence_parts.pages import keep, kept, table, wrapped, write
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
#: Classes, the bias that the default's square may have, and from how many rows on.
BARS = ((4, 0.10, 2000), (8, 0.15, 5000))
#: What a calibrated model's estimate may be, as a share of the other's truth.
QUIET = 0.05
PAPER = tuple(f"k{k}-{kind}" for k in (4, 8) for kind in ("sharpened", "calibrated"))
DATA = ("results", "default", "candidates", "sharpness")
COMMAND = "python docs/examples/canonical_page.py RUN_FOLDER --docs docs"


def figure2a(frame: pl.DataFrame, path: Path) -> None:
    """Mean estimate against N; the default's band is one standard deviation of a single estimate."""
    look()
    fig, axes = plt.subplots(2, 2, figsize=(10.4, 7.4), sharex=True)
    fig.subplots_adjust(left=0.07, right=0.87, top=0.95, bottom=0.07, wspace=0.5, hspace=0.17)
    for column, k in enumerate((4, 8)):
        for row, kind in enumerate(("sharpened", "calibrated")):
            ax, ends = axes[row, column], []
            part = frame.filter((pl.col("distribution") == f"k{k}-{kind}") & (pl.col("measure") == "l1"))
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
                ax.set_ylabel("mean L1 estimate")
            if row == 1:
                ax.set_xlabel("rows N")
    save(fig, path)


def default_squares(frame: pl.DataFrame) -> pl.DataFrame:
    """The default's squares, as shares of the truth, where a bar was set beforehand."""
    rows = []
    part = frame.filter(estimator="default", measure="squared")
    for k, bar, least in BARS:
        wrong, right = (part.filter(distribution=f"k{k}-{x}").sort("size") for x in ("sharpened", "calibrated"))
        for a, b in zip(wrong.to_dicts(), right.to_dicts(), strict=True):
            if a["size"] >= least:
                truth = a["truth"]
                row = {"classes": k, "size": a["size"], "sets": a["sets"], "bar": bar, "mean": a["mean"]}
                row |= {"off": a["bias"] / truth, "off_se": a["sd"] / np.sqrt(a["sets"]) / truth}
                row |= {"calibrated": b["mean"] / truth, "calibrated_se": b["sd"] / np.sqrt(b["sets"]) / truth}
                rows.append(row)
    return pl.DataFrame(rows)


def candidates(frame: pl.DataFrame) -> pl.DataFrame:
    """Every candidate: bias and calibrated mean as shares of the truth, and RMSE; medians over distributions."""
    truth = pl.col("truth")
    wrong = ~pl.col("distribution").str.ends_with("calibrated")
    on_paper = pl.col("distribution").is_in(PAPER)
    group = pl.when(on_paper).then("K = " + pl.col("n_classes").cast(pl.String)).otherwise(pl.lit("others"))
    names = list(dict.fromkeys(["published", "simplex-sqrt", *TRIALS]))
    part = frame.filter(pl.col("estimator").is_in(names)).with_columns(group.alias("distributions"))
    by = ["measure", "estimator", "distributions", "size"]
    off = (
        part.filter(wrong)
        .group_by(by)
        .agg(
            (pl.col("bias") / truth).median().alias("bias"),
            (pl.col("rmse") / truth).median().alias("rmse"),
            truth.median().alias("truth"),
        )
    )
    quiet = part.filter(~wrong).group_by(by).agg(pl.col("mean").abs().mean().alias("calibrated"))
    default = pl.col("estimator").is_in([name for name in names if is_default(name)]).alias("default")
    return off.join(quiet, on=by, how="left").with_columns(default).sort(by)


def is_default(name: str) -> bool:
    """Whether a trial is what ``estimator="auto"`` takes for L1."""
    return name in TRIALS and TRIALS[name].factor == 1 and TRIALS[name].estimator == canonical_default(1)


def _rows(squares: pl.DataFrame) -> list[list[str]]:
    rows = []
    for one in squares.to_dicts():
        off, quiet = (Number(one[name], one[f"{name}_se"]).percent() for name in ("off", "calibrated"))
        wanted = f"± {100 * one['bar']:.0f} %"
        met = "yes" if _met(one) else "no"
        rows.append([str(one["classes"]), f"{one['size']:,}", str(one["sets"]), off, wanted, quiet, met])
    return rows


def _met(one: dict[str, float]) -> bool:
    return abs(one["off"]) <= one["bar"] and abs(one["calibrated"]) <= QUIET


def answer(frame: pl.DataFrame, squares: pl.DataFrame, tried: pl.DataFrame) -> str:
    """The default's squares against targets, its L1 against the published estimator, and where it is worse."""

    def off(name: str, k: int, size: int) -> float:
        one = frame.filter(estimator=name, distribution=f"k{k}-sharpened", measure="l1", size=size)
        return float(one["bias"][0] / one["truth"][0]) if one.height else float("nan")

    sizes = frame.filter(estimator="default", measure="l1", distribution=PAPER[0])["size"]
    least, most = int(sizes.min()), int(sizes.max())  # type: ignore[arg-type]
    told = {
        (n, k, size): f"{100 * off(n, k, size):+.1f} %".replace("-", "−")
        for n in ("default", "published")
        for k in (4, 8)
        for size in (least, most)
    }
    met = sum(map(_met, squares.to_dicts()))
    others = tried.filter(measure="l1", distributions="others")
    few = others["size"].min()
    best = others.filter(size=few).sort("rmse").row(0, named=True)
    own = others.filter(pl.col("default"), size=few).to_dicts()
    beside = "".join(
        f" On other distributions its RMSE at {few} rows is {one['rmse']:.2f} of the truth; "
        + (
            "no candidate has a smaller one."
            if best["estimator"] == one["estimator"]
            else f"the best candidate, `{best['estimator']}`, has {best['rmse']:.2f}, and gives "
            f"{best['calibrated']:.3f} for calibrated models where the default gives {one['calibrated']:.3f}."
        )
        for one in own
    )
    return (
        f"For the squared error, the default meets {met} of {len(squares)} targets. For the L1 error at {most:,} rows, "
        f"its bias is {told['default', 4, most]} (4 classes) and {told['default', 8, most]} (8), and the published "
        f"estimator's is {told['published', 4, most]} and {told['published', 8, most]}. At {least:,} rows the "
        f"default's bias is {told['default', 4, least]} and {told['default', 8, least]}." + beside
    )


def pictures(frame: pl.DataFrame, images: Path) -> None:
    """The picture of the page."""
    figure2a(frame, images / "canonical_l1.png")


def run(folder: Path, docs: Path) -> None:
    """The data files, from the folder of a run."""
    frame = pl.read_parquet(folder / "results.parquet").drop("seconds", "definition")
    many = folder / "default" / "results.parquet"
    alone = pl.read_parquet(many) if many.exists() else frame
    sharpness = pl.read_parquet(folder / "sharpness" / "results.parquet")
    for name, one in zip(DATA, (frame, default_squares(alone), candidates(frame), sharpness), strict=True):
        keep(one, docs / "canonical" / f"{name}.csv", COMMAND, "0", digits=4 if name == "results" else 5)


def page(docs: Path) -> None:
    """The page and its picture, from the data files."""
    data = docs / "canonical"
    frame, squares, tried, sharpness = (kept(data / f"{name}.csv") for name in DATA)
    pictures(frame, docs / "images")
    at = {(r["size"], r["estimator"]): r for r in sharpness.to_dicts()}
    sizes = sorted({size for size, _ in at})
    middle = sizes[len(sizes) // 2]
    about = (
        "The table gives the bias of the default's estimate of the squared error, and its mean for the *calibrated* "
        f"model, both as shares of the truth. The second target is ± {100 * QUIET:.0f} %."
    )
    head = ["classes", "rows", "sets", "bias", "target", "calibrated", "met"]
    write(
        docs / "canonical.md",
        __doc__,
        answer(frame, squares, tried),
        ("images/canonical_l1.png", "Mean L1 estimate of eight estimators by rows, sharpened and calibrated models"),
        [wrapped(about), "", *table(head, _rows(squares))],
        [data / f"{name}.csv" for name in DATA],
        sets=str(CanonicalConfig().most_sets),
        point_size=str(middle),
        **{
            key: f"{at[middle, name]['bias']:+.4f} ± {at[middle, name]['se']:.4f}".replace("-", "−")
            for key, name in (("plug", "plug-in"), ("printed", "as printed"), ("pairs", "square"))
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a run, whose data files are written first")
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    if options.run is not None:
        run(options.run, options.docs)
    page(options.docs)


if __name__ == "__main__":
    main()
