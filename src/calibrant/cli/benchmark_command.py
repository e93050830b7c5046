"""The command ``calibrant benchmark``: runs the known-truth benchmark and prints tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import check_option

if TYPE_CHECKING:
    import polars as pl

#: Title and column of each printed table.
_TABLES = {
    "rel": ("95th percentile of the relative error, median over distributions", "rel_p95"),
    "abs": ("95th percentile of the absolute error, median over distributions", "abs_p95"),
    "bias": ("bias, median over distributions", "bias"),
}
_MOST_SIZES = 6
#: Choices of ``--show`` on track "canonical".
_CANONICAL = {"mean": "mean estimate", "bias": "bias", "rmse": "root mean squared error"}


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """Options that every benchmark has."""

    quick: Annotated[bool, typer.Option("--quick", help="Run a smaller version that takes minutes.")] = False
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run; an interrupted run is resumed. Default: named after mode or tracks."),
    ] = None
    jobs: Annotated[int | None, typer.Option(help="Number of processes. Default: one per processor.")] = None
    seed: Annotated[int, typer.Option(help="Seed that all others are derived from.")] = 0
    show: Annotated[
        str | None,
        typer.Option(
            help="Table to print: rel (default), abs or bias; for track canonical: mean (default), bias or rmse."
        ),
    ] = None

    def shown(self, option: str, allowed: Collection[str]) -> str:
        """Quantity in the tables: as requested, else the first one allowed."""
        return check_option(option, next(iter(allowed)) if self.show is None else self.show, allowed)

    def folder(self, name: str) -> Path:
        """Folder of the run."""
        return Path(f"calibrant-benchmark-{name}{'-quick' if self.quick else ''}") if self.out is None else self.out

    def sized(self, **quick: Any) -> dict[str, Any]:
        """Options of a run, with smaller sizes with --quick."""
        return {"n_jobs": self.jobs, "seed": self.seed, "progress": True, **(quick if self.quick else {})}


def benchmark_command(
    options: BenchmarkOptions,
    mode: Annotated[str, typer.Option(help="Version of the experiment: corrected or as-published.")] = "corrected",
    sets: Annotated[
        int | None, typer.Option(help="Number of evaluation sets per sample size. Default: 200, or 60 with --quick.")
    ] = None,
    keep_predictions: Annotated[
        bool,
        typer.Option("--keep-predictions", help="Keep the predictions (11 GB) so that estimators can be added later."),
    ] = False,
    track: Annotated[
        list[str] | None,
        typer.Option(
            help="Track to run instead of the mixtures; repeatable: beta, networks, dirichlet, imbalance, consistency; "
            "or canonical."
        ),
    ] = None,
) -> None:
    """Measure the error of each estimator on data whose true calibration error is known."""
    if not track:
        mixtures(options, mode, sets=sets, keep_predictions=keep_predictions)
    elif mode != "corrected" or keep_predictions or sets is not None:
        raise ValueError("--mode, --sets and --keep-predictions apply to the mixtures only, not to tracks")
    elif "canonical" not in track:
        tracks(options, track)
    elif len(set(track)) > 1:
        raise ValueError("--track canonical cannot be combined with other tracks: its estimators differ from theirs")
    else:
        canonical(options)


def mixtures(options: BenchmarkOptions, mode: str, *, sets: int | None, keep_predictions: bool) -> None:
    """The experiment of the paper: one table per notion."""
    from ..benchmark import Config, run, summary

    show = options.shown("--show", _TABLES)
    config = (Config.quick if options.quick else Config)(mode, options.seed)
    config = config if sets is None else replace(config, sets=sets)
    about: dict[str, Any] = {"quick": options.quick, "config": config, "keep_predictions": keep_predictions}
    results = run(mode, options.out, n_jobs=options.jobs, progress=True, **about)
    print_tables(summary(results), show)


def tracks(options: BenchmarkOptions, names: Sequence[str]) -> None:
    """One table per notion for each track."""
    import polars as pl

    from ..benchmark.track_runner import run_tracks, summarize

    show = options.shown("--show", _TABLES)
    size = options.sized(sizes=(30, 120, 500), large_sizes=(1000, 10_000), n_sets=40)
    summed = summarize(run_tracks(names, out=options.folder("-".join(names)), **size))
    for name in names:
        print_tables(summed.filter(pl.col("track") == name), show)


def canonical(options: BenchmarkOptions) -> None:
    """Track "canonical": estimates beside the truth, and the bias of sharpness at a point."""
    from ..benchmark.canonical import run_canonical, run_default
    from ..benchmark.sharpness import run_sharpness

    show = options.shown("--show with --track canonical", _CANONICAL)
    folder = options.folder("canonical")
    results = run_canonical(folder, **options.sized(sizes=(200, 1000), other_sizes=(200,), most_sets=10))
    if not options.quick:
        run_default(folder / "default", **options.sized())
    sharpness = run_sharpness(folder / "sharpness", **options.sized(sizes=(10, 100), repetitions=1000))
    _print_canonical(results, show)
    _print_sharpness(sharpness)


def print_tables(summed: pl.DataFrame, show: str) -> None:
    """One table per notion: estimators in rows, sizes in columns; a star marks the best at each size."""
    import polars as pl

    title, column = _TABLES[show]
    sizes = sorted(summed["size"].unique())
    shown = [sizes[round(i * (len(sizes) - 1) / (_MOST_SIZES - 1))] for i in range(_MOST_SIZES)]
    shown = sorted(set(shown)) if len(sizes) > _MOST_SIZES else sizes
    for notion in sorted(summed["notion"].unique(), reverse=True):
        part = summed.filter(pl.col("notion") == notion)
        cell = {(name, size): value for name, size, value in part.select("estimator", "size", column).iter_rows()}
        names = sorted(part["estimator"].unique(), key=lambda name: cell[name, shown[0]])
        best = {size: min(names, key=lambda name: abs(cell[name, size])) for size in shown}
        rows = [[name, *(f"{cell[name, size]:.3f}{' *'[best[size] == name]}" for size in shown)] for name in names]
        _print(f"{notion}: {title} ({part['distributions'][0]})", ["estimator", *map(str, shown)], rows)


def _print_canonical(results: pl.DataFrame, show: str) -> None:
    """One table per distribution of the paper and measure: the figure's estimators in rows, sizes in columns."""
    import polars as pl

    from ..benchmark.canonical import CURVES, MEASURES, PUBLISHED

    for distribution in PUBLISHED:
        for measure in MEASURES:
            part = results.filter(
                (pl.col("distribution") == distribution.name)
                & (pl.col("measure") == measure)
                & pl.col("estimator").is_in(list(CURVES))
            )
            sizes = sorted(part["size"].unique())
            if not sizes:
                continue
            cell = {(name, size): value for name, size, value in part.select("estimator", "size", show).iter_rows()}
            known = [name for name in CURVES if (name, sizes[0]) in cell]
            rows = [[name, *(f"{cell[name, size]:.4f}" for size in sizes)] for name in known]
            title = f"{distribution.name}, {measure}: {_CANONICAL[show]}; truth {part['truth'][0]:.4f}"
            _print(title, ["estimator", *map(str, sizes)], rows)


def _print_sharpness(found: pl.DataFrame) -> None:
    """Bias at the point by size."""
    limit, truth = found["limit"][0], found["truth"][0]
    rows = [
        [f"{size}", name, f"{bias:+.4f}", f"{se:.4f}"]
        for size, name, bias, se in found.select("size", "estimator", "bias", "se").iter_rows()
    ]
    title = f"sharpness at a point: bias against {limit:.4f}, the kernel's limit (truth {truth:.4f})"
    _print(title, ["samples", "estimator", "bias", "± standard error"], rows)


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"\n{title}", highlight=False)
    table = Table(box=SIMPLE)
    table.add_column(columns[0], no_wrap=True)
    for name in columns[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
