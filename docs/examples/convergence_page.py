"""How fast do canonical estimators converge at a fixed bandwidth?

    python docs/examples/convergence_page.py RUN_FOLDER --docs docs [--jobs 1] [--largest 500]
    python docs/examples/convergence_page.py --docs docs                        # the page, from its data files

The distributions, the bandwidth h = 0.5 and the number of repetitions are those of Popordanoska, Sayer & Blaschko
(2022). Vectors uniform on the simplex are sharpened by temperature 0.6, labelled and, except in calibrated
distributions, sharpened again. There are {repeats} samples of each size. *Cell means* and *as printed* are errors over
cells of the simplex. They compare frequencies with the cell's mean vector, or, as the paper prints it, with each
row's own.

An estimator with a fixed bandwidth or fixed cells converges to a *limit* that is not the truth. We compute it with 2¹⁶
evenly spread vectors and the true map. Slopes are of the log error against log n, by weighted least squares from
n = {least} on. ± is one standard error, lack of fit included.

A correction of the ratio cannot change the rate of the bias, which comes mostly from a norm of noise.
`bandwidth="auto"` narrows the bandwidth with n: [canonical.md](canonical.md).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from benchmark_parts.stats import FAILS, HOLDS, Number
from evidence_parts.pages import keep, kept, table, wrapped, write
from matplotlib import pyplot as plt
from pictures import COLORS, OTHER, OURS, look, name_ends, save, sizes_axis

from calibrant.benchmark.convergence import SIZES, rate, run_convergence
from calibrant.benchmark.sharpness import run_sharpness

#: Words, colour and line.
STYLE = {
    "plug-in": ("plug-in", COLORS[1], "-"),
    "ratio": ("ratio correction", COLORS[3], (0, (4, 1.5))),
    "square": ("unbiased square", COLORS[5], "-"),
    "cross": ("cross (default)", OURS, "-"),
    "binned-2": ("2 cuts, cell means", COLORS[2], "-"),
    "binned-2-row": ("2 cuts, as printed", COLORS[2], (0, (4, 1.5))),
    "binned-5-row": ("5 cuts, as printed", COLORS[2], (0, (1.2, 1.2))),
}
#: Data files of the page: all cells, the slopes, and the bias of the sharpness at a point.
DATA = ("convergence", "convergence_rates", "sharpness_rate")
LAWS = ("k4-sharpened", "k4-calibrated", "k8-sharpened", "k8-calibrated")
#: Rates are fitted to these sizes and more: below, a correction may be larger than what it corrects.
FROM = 50
#: Kernel weights that the samples of a size may take.
WEIGHTS = 2.5e9
SHARPNESS_SIZES, SHARPNESS_REPEATS = (10, 20, 50, 100, 200, 500), 20_000
#: Half-width of the range of slopes within which a rate of the paper is taken to hold.
ABOUT = 0.2


def cell(frame: pl.DataFrame, law: str, name: str, measure: str) -> pl.DataFrame:
    """One curve, by size."""
    wanted = (pl.col("distribution") == law) & (pl.col("estimator") == name) & (pl.col("measure") == measure)
    return frame.filter(wanted).sort("size")


def bias_rate(one: pl.DataFrame, least: int = FROM) -> Number:
    """The power of n with which the bias falls."""
    part = one.filter(pl.col("size") >= least)
    return Number(*rate(part["size"].to_numpy(), part["bias"].to_numpy(), part["se"].to_numpy()))


def rmse_rate(one: pl.DataFrame, to: str, least: int = FROM) -> Number:
    """The power of n with which the root mean square error falls: half that of the square."""
    part = one.filter(pl.col("size") >= least)
    a, se = rate(*(part[column].to_numpy() for column in ("size", f"{to}_mse", f"{to}_mse_se")))
    return Number(a / 2, se / 2)


def figure(frame: pl.DataFrame, path: Path) -> None:
    """Size of the bias, and RMSE against limit and truth, K = 4, both distributions, L1."""
    look()
    fig, axes = plt.subplots(2, 3, figsize=(12.6, 7.2), sharex=True, sharey=True)
    fig.subplots_adjust(left=0.06, right=0.87, top=0.95, bottom=0.07, wspace=0.56, hspace=0.15)
    titles = ("|bias| against its own limit", "RMSE against its own limit", "RMSE against the truth")
    n = np.array([10.0, frame["size"].max()])
    for row, law in enumerate(LAWS[:2]):
        for column, (ax, title) in enumerate(zip(axes[row], titles, strict=True)):
            ends = []
            for power, dash in ((-0.5, (0, (4, 2))), (-1.0, (0, (1, 1.5)))) if column < 2 else ():
                guide = 0.5 * (n / 10) ** power
                ax.plot(n, guide, color=OTHER, lw=1, ls=dash, zorder=1.5)
                ends.append((n[1], guide[1], f"slope {power:g}".replace("-", "−"), "0.4"))
            for name, (words, colour, line) in STYLE.items():
                one = cell(frame, law, name, "l1")
                if one.height == 0:
                    continue
                x = one["size"].to_numpy()
                if column == 0:
                    y, noise = np.abs(one["bias"].to_numpy()), 2 * one["se"].to_numpy()
                    y = np.where(y > noise, y, np.nan)
                else:
                    y = np.sqrt(one["limit_mse" if column == 1 else "truth_mse"].to_numpy())
                ours = name == "cross"
                alone = np.isfinite(y).sum() == 1
                ax.plot(x, y, ls=line, color=colour, lw=2.8 if ours else 1.4, marker="o" if alone else None)
                if np.isfinite(y[-1]):
                    ends.append((x[-1], y[-1], words, colour))
            ax.set(xscale="log", yscale="log", ylim=(4e-4, 1.3))
            sizes_axis(ax, sorted(frame["size"].unique()))
            ax.tick_params(labelleft=True)
            ax.set_title(f"{law.split('-')[1]}: {title}", loc="left")
            name_ends(ax, ends)
            if row == 1:
                ax.set_xlabel("rows n")
    save(fig, path)


def rates(frame: pl.DataFrame) -> pl.DataFrame:
    """Limits and slopes of every estimator, distribution and measure."""
    rows = []
    for measure in ("l1", "squared"):
        for law in LAWS:
            for name in STYLE:
                one = cell(frame, law, name, measure)
                if one.height == 0:
                    continue
                last = one.row(-1, named=True)
                row = {"measure": measure, "distribution": law, "estimator": name}
                row |= {key: last[key] for key in ("truth", "limit", "size", "bias", "se")}
                for key, slope in (
                    ("bias", bias_rate(one)),
                    ("to_limit", rmse_rate(one, "limit")),
                    ("to_truth", rmse_rate(one, "truth")),
                ):
                    row |= {f"slope_{key}": slope.value, f"slope_{key}_se": slope.se}
                rows.append(row)
    return pl.DataFrame(rows)


def sharpness_rates(frame: pl.DataFrame) -> dict[str, Number]:
    """The power of n with which the bias of the sharpness at a point falls, by formula."""
    return {name: bias_rate(frame.filter(estimator=name).sort("size")) for name in frame["estimator"].unique()}


def pictures(frame: pl.DataFrame, images: Path) -> None:
    """The picture of the page."""
    figure(frame, images / "canonical_convergence.png")


def _slope(row: dict[str, float], key: str) -> Number:
    return Number(row[f"slope_{key}"], row[f"slope_{key}_se"])


def _rows(slopes: pl.DataFrame) -> list[list[str]]:
    rows = []
    for name, (label, *_) in STYLE.items():
        wrong, right = (slopes.filter(measure="l1", distribution=law, estimator=name).to_dicts() for law in LAWS[:2])
        if wrong:
            row = wrong[0]
            limits = (f"{one['limit']:.3f}" for one in (row, right[0]))
            rows.append([label, *limits, *(_slope(row, k).text(2) for k in ("bias", "to_limit", "to_truth"))])
    return rows


def answer(frame: pl.DataFrame, slopes: pl.DataFrame, point: pl.DataFrame) -> str:
    """What holds of the paper's rates, and what a user gets."""
    found = {r["estimator"]: r for r in slopes.filter(measure="l1", distribution=LAWS[0]).to_dicts()}
    plug, ratio = found["plug-in"], found["ratio"]
    single = _slope(plug, "to_limit")
    slow = _holds(abs(_slope(plug, "bias").value + 1) < ABOUT)
    fast = _holds(single.value < -0.5 + ABOUT)
    debiased = [_slope(ratio, "bias"), *(v for k, v in sharpness_rates(point).items() if k != "plug-in")]
    square = _holds(all(abs(one.value + 2) < ABOUT for one in debiased))
    last = frame.filter(measure="l1", distribution=LAWS[0], size=frame["size"].max())
    error = {r["estimator"]: r["truth_mse"] ** 0.5 for r in last.to_dicts()}
    beside = "more" if error["cross"] > error["plug-in"] else "less"
    return (
        f"The paper's rate 1/n for the bias of the plug-in **{slow}** (power {_slope(plug, 'bias').text(2)}), 1/√n or "
        f"faster for the error of an estimate **{fast}** ({single.text(2)}), and 1/n² for the bias after debiasing "
        f"**{square}** ({debiased[0].text(2)}). These rates lead to a limit, not to the truth: at h = 0.5 the plug-in "
        f"gives {_limit(slopes, 'plug-in'):.3f} for infinitely many rows of a *calibrated* model of four classes, and "
        f"calibrant's default {_limit(slopes, 'cross'):.3f}. For the sharpened model, the default errs {beside} than "
        f"the plug-in (RMSE at n = {frame['size'].max()}: {error['cross']:.3f} against {error['plug-in']:.3f})."
    )


def _limit(slopes: pl.DataFrame, name: str) -> float:
    """What is given for infinitely many rows of a calibrated model."""
    return float(slopes.filter(measure="l1", distribution=LAWS[1], estimator=name)["limit"][0])


def _holds(held: bool) -> str:
    return HOLDS if held else FAILS


def page(docs: Path) -> None:
    """The page and its picture, from the data files."""
    data = docs / "canonical"
    frame, slopes, point = (kept(data / f"{name}.csv") for name in DATA)
    pictures(frame, docs / "images")
    done = frame.group_by("size").agg(pl.col("repetitions").first()).sort("size")
    most = int(done["repetitions"].max())  # type: ignore[arg-type]
    fewer = [f"{r:,} at n = {n}" for n, r in done.iter_rows() if r < most]
    about = (
        "The table gives L1 limits for sharpened and *calibrated* models of four classes, and for sharpened ones "
        f"slopes of the bias and of the RMSE to the limit and to the truth, {slopes['truth'][0]:.4f}."
    )
    head = ["estimator", "limit", "calibrated", "bias", "to the limit", "to the truth"]
    write(
        docs / "convergence.md",
        __doc__,
        answer(frame, slopes, point),
        ("images/canonical_convergence.png", "Bias and root mean square error of canonical estimators by rows"),
        [wrapped(about), "", *table(head, _rows(slopes))],
        [data / f"{name}.csv" for name in DATA],
        repeats=f"{most:,}" + (f" ({'; '.join(fewer)})" if fewer else ""),
        least=str(FROM),
    )


def run(folder: Path, docs: Path, jobs: int, largest: int) -> None:
    """Run what is missing, and write the data files."""
    frame = run_convergence(
        folder / "convergence", sizes=[n for n in SIZES if n <= largest], weights=WEIGHTS, n_jobs=jobs, progress=True
    )
    point = run_sharpness(
        folder / "sharpness_wide", sizes=SHARPNESS_SIZES, repetitions=SHARPNESS_REPEATS, bandwidth=0.5, n_jobs=jobs
    )
    command = "python docs/examples/convergence_page.py RUN_FOLDER --docs docs"
    for name, one in zip(DATA, (frame, rates(frame), point), strict=True):
        keep(one, docs / "canonical" / f"{name}.csv", command, "0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of the run, which goes on where it was stopped")
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--largest", type=int, default=500, help="largest n: time grows with its square")
    options = parser.parse_args()
    if options.run is not None:
        run(options.run, options.docs, options.jobs, options.largest)
    page(options.docs)


if __name__ == "__main__":
    main()
