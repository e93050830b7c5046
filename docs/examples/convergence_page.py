"""How fast canonical estimators converge at the paper's bandwidth: runs what is missing, writes `docs/convergence.md`.

``python docs/examples/convergence_page.py RUN_FOLDER --docs docs [--jobs 1] [--largest 500]``

The run can be stopped and goes on from its pieces. Every number on the page is computed here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from benchmark_parts.stats import Number, table
from matplotlib import pyplot as plt
from pictures import COLORS, OTHER, OURS, look, name_ends, save, sizes_axis

from calibrant.benchmark.convergence import SIZES, rate, run_convergence
from calibrant.benchmark.sharpness import run_sharpness

#: Words in tables, words in pictures, colour and line.
STYLE = {
    "plug-in": ("kernel, plug-in", "plug-in", COLORS[1], "-"),
    "ratio": ("kernel, ratio correction", "ratio correction", COLORS[3], (0, (4, 1.5))),
    "square": ("kernel, unbiased square", "unbiased square", COLORS[5], "-"),
    "cross": ("kernel, cross", "cross (default)", OURS, "-"),
    "binned-2": ("2 cuts an edge, cell means", "2 cuts, cell means", COLORS[2], "-"),
    "binned-2-row": ("2 cuts an edge, rows (printed)", "2 cuts, as printed", COLORS[2], (0, (4, 1.5))),
    "binned-5-row": ("5 cuts an edge, rows (printed)", "5 cuts, as printed", COLORS[2], (0, (1.2, 1.2))),
}
LAWS = ("k4-sharpened", "k4-calibrated", "k8-sharpened", "k8-calibrated")
#: Rates are fitted to these sizes and more: below, a correction may be larger than what it corrects.
FROM = 50
#: Kernel weights that the samples of a size may take.
WEIGHTS = 2.5e9
SHARPNESS_SIZES, SHARPNESS_REPEATS = (10, 20, 50, 100, 200, 500), 20_000
SHARPNESS = {
    "plug-in": ("plug-in", COLORS[1]),
    "as printed": ("eq. 7 as printed", COLORS[2]),
    "square": ("pairs of different samples", OURS),
}


def cell(frame: pl.DataFrame, law: str, name: str, measure: str) -> pl.DataFrame:
    """One curve, by size."""
    wanted = (pl.col("distribution") == law) & (pl.col("estimator") == name) & (pl.col("measure") == measure)
    return frame.filter(wanted).sort("size")


def bias_rate(one: pl.DataFrame, least: int = FROM) -> Number:
    """Power of n that the bias falls with."""
    part = one.filter(pl.col("size") >= least)
    return Number(*rate(part["size"].to_numpy(), part["bias"].to_numpy(), part["se"].to_numpy()))


def rmse_rate(one: pl.DataFrame, to: str, least: int = FROM) -> Number:
    """Power of n that the root mean square error falls with: half that of the square."""
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
            for name, (_, words, colour, line) in STYLE.items():
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


def sharpness_figure(frame: pl.DataFrame, path: Path) -> None:
    """Size of the bias of sharpness at a point."""
    look()
    fig, ax = plt.subplots(figsize=(6.6, 4.2))
    fig.subplots_adjust(left=0.11, right=0.74, top=0.97, bottom=0.12)
    sizes, ends = sorted(frame["size"].unique()), []
    n = np.array([10.0, 500.0])
    for power, dash in ((-1, (0, (1, 1.5))), (-2, (0, (4, 2)))):
        guide = 0.2 * (n / 10) ** power
        ax.plot(n, guide, color=OTHER, lw=1, ls=dash)
        ends.append((n[1], guide[1], f"slope −{-power}", "0.4"))
    for name, (words, colour) in SHARPNESS.items():
        one = frame.filter(pl.col("estimator") == name).sort("size")
        size = np.abs(one["bias"].to_numpy())
        ax.errorbar(one["size"], size, 2 * one["se"].to_numpy(), color=colour, marker="o")
        ends.append((one["size"][-1], size[-1], words, colour))
    ax.set(yscale="log", ylim=(5e-5, 0.3), xlabel="rows n", ylabel="|bias| of the sharpness at one point, h = 0.5")
    sizes_axis(ax, sizes)
    name_ends(ax, ends)
    save(fig, path)


def rates(frame: pl.DataFrame, measure: str) -> str:
    """Limits and slopes of every estimator and distribution."""
    rows = []
    for law in LAWS:
        for name, (label, *_) in STYLE.items():
            one = cell(frame, law, name, measure)
            if one.height == 0:
                continue
            last = one.row(-1, named=True)
            numbers = (bias_rate(one), rmse_rate(one, "limit"), rmse_rate(one, "truth"))
            rows.append(
                [law, label, f"{last['truth']:.4f}", f"{last['limit']:.4f}".replace("-", "−")]
                + [f"{last['bias']:+.4f} ± {last['se']:.4f}".replace("-", "−")]
                + [number.text(2) if number.se < 0.5 else "lost in noise" for number in numbers]
            )
    heads = ["distribution", "estimator", "truth", "limit", f"bias at n = {frame['size'].max()}"]
    return table([*heads, "slope of bias", "slope of RMSE to the limit", "slope of RMSE to the truth"], rows)


def sharpness_rates(frame: pl.DataFrame) -> str:
    """Bias at a hundred samples, and its slope."""
    rows = []
    for name, (label, *_) in SHARPNESS.items():
        one = frame.filter(pl.col("estimator") == name).sort("size")
        at = one.filter(pl.col("size") == 100).row(0, named=True)
        bias = f"{at['bias']:+.5f} ± {at['se']:.5f}".replace("-", "−")
        rows.append([label, bias, f"{100 * at['bias']:+.2f}".replace("-", "−"), bias_rate(one).text(2)])
    return table(["estimator", "bias at n = 100", "n times that", "slope of bias"], rows)


def pictures(frame: pl.DataFrame, point: pl.DataFrame, images: Path) -> None:
    """All pictures of the page."""
    figure(frame, images / "canonical_convergence.png")
    sharpness_figure(point, images / "canonical_sharpness_rate.png")


def page(folder: Path, docs: Path, jobs: int, largest: int) -> None:
    """All files."""
    frame = run_convergence(
        folder / "convergence", sizes=[n for n in SIZES if n <= largest], weights=WEIGHTS, n_jobs=jobs, progress=True
    )
    point = run_sharpness(
        folder / "sharpness_wide", sizes=SHARPNESS_SIZES, repetitions=SHARPNESS_REPEATS, bandwidth=0.5, n_jobs=jobs
    )
    images, data = docs / "images", docs / "canonical"
    images.mkdir(parents=True, exist_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    numbers = [c for c, t in frame.schema.items() if t.is_float()]
    frame.with_columns(pl.col(numbers).round_sig_figs(5)).write_csv(data / "convergence.csv")
    point.with_columns(pl.col(pl.Float64).round_sig_figs(5)).write_csv(data / "sharpness_rate.csv")
    pictures(frame, point, images)
    done = frame.group_by("size").agg(pl.col("repetitions").first()).sort("size")
    most = int(done["repetitions"].max())  # type: ignore[arg-type]
    fewer = [f"{r:,} at n = {n}".replace(",", " ") for n, r in done.iter_rows() if r < most]
    law = {(r["distribution"], r["estimator"], r["measure"]): r["limit"] for r in frame.to_dicts()}
    text = Path(__file__).with_name("convergence_page.md").read_text(encoding="utf-8")
    text = text.format(
        repeats=f"{most:,}".replace(",", " ") + (f" ({'; '.join(fewer)})" if fewer else ""),
        l1=rates(frame, "l1"),
        squared=rates(frame, "squared"),
        sharpness=sharpness_rates(point),
        quiet=f"{law['k4-calibrated', 'plug-in', 'l1']:.3f}",
        wrong=f"{law['k4-sharpened', 'plug-in', 'l1']:.3f}",
        least=FROM,
    )
    (docs / "convergence.md").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--largest", type=int, default=500, help="largest n: time grows with its square")
    options = parser.parse_args()
    page(options.run, options.docs, options.jobs, options.largest)


if __name__ == "__main__":
    main()
